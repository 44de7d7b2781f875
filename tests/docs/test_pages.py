"""Pages hold together: links lead somewhere, every page is in the site, every error class has its section."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LINK = re.compile(r"\]\(([^()\s]+)\)")
FOLDERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"].values()


def name(path):
    return str(path.relative_to(DOCS))


def prose(path):
    """Return a page's text without its code."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"``[^\n]*?``|`[^`\n]*`|^ +>>> .*", "`code`", text, flags=re.MULTILINE)


def anchors(path):
    """Return the anchors of a page's headings, as code hosts and the site's generator make them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    for link in LINK.findall(prose(page)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_begins_with_its_title(page):
    assert page.read_text().startswith("# ")
    assert len(re.findall(r"^# ", prose(page), re.MULTILINE)) == 1


def entries(page):
    """Return the pages that a page's tables of contents name."""
    found = set()
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line and not line.startswith(":"):
                found |= set(page.parent.glob(f"{line}.md"))
    return found


def test_every_page_is_reached_from_the_first():
    reached, new = set(), {DOCS / "index.md"}
    while new:
        reached |= new
        new = set().union(*map(entries, new)) - reached
    assert set(PAGES) - reached == set()


def errors():
    """Yield the name and the docstring of every public error class."""
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef) and re.fullmatch(r"[A-Z]\w*(Error|Defect|Assertion)", node.name):
                    yield node.name, ast.get_docstring(node)


@pytest.mark.parametrize(("error", "doc"), sorted(errors()), ids=lambda x: x.partition(" ")[0])
def test_every_error_has_its_section_and_leads_there(error, doc):
    assert error.lower() in anchors(DOCS / "errors.md")
    assert f"docs/errors.md#{error.lower()}" in doc
