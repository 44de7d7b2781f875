"""How the site is built: `make docs`. Pages are Markdown; the reference is made of docstrings."""

import re

import fgrad

project = "fgrad"
author = "the fgrad authors"
copyright = "the fgrad authors"
release = version = fgrad.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "fgrad"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say what is taken, in words
autodoc_default_options = {"members": True, "imported-members": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
nitpicky = False


def _skip(app, what, name, obj, skip, options):
    """Leave out what other packages made and a module of ours merely passes on, such as NumPy's dtypes."""
    module = getattr(obj, "__module__", None) or ""
    return True if module and not module.startswith("fgrad") else None


EXAMPLE = re.compile(r"(^ *>>> .*?(?=^ *$|\Z))", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`([^`]+)`(\w?)")
MARKS = re.compile(r"[*|]")


def _as_rest(text):
    """Return plain text with `code` in it as reStructuredText."""
    prose, *rest = CODE.split(text)
    parts = [MARKS.sub(r"\\\g<0>", prose)]
    for code, letter, prose in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        parts += [f"``{code}``", letter and f"\\ {letter}", MARKS.sub(r"\\\g<0>", prose)]
    return "".join(parts)


def _plain_text(app, what, name, obj, options, lines):
    """Keep reStructuredText from reading `*args` or `|x|` in docstrings as markup of its own; examples stay."""
    parts = EXAMPLE.split("\n".join(lines))
    lines[:] = "".join(part if i % 2 else _as_rest(part) for i, part in enumerate(parts)).splitlines()


def _without_last_lines(app, name, source):
    """Drop the empty line that doctest needs at the end of a fence."""
    source[0] = source[0].replace("\n\n```\n", "\n```\n")


def setup(app):
    """Connect to Sphinx."""
    app.connect("source-read", _without_last_lines)
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _plain_text, priority=400)  # napoleon, at 500, makes markup
