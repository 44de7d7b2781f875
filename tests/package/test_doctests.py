"""Every example in a docstring runs and prints what it says.

pytest's own `--doctest-modules` would import compat/ and triton_kernels/ under their folders' names, as second copies
of fgrad.compat and fgrad.triton_kernels; here each module is imported by the name users know.
"""

import doctest
import importlib
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PAGES = ["README.md", *sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md"))]
LONG = {"docs/tour.md", "fgrad.backend.gpu.lowered"}  # seconds: kernels are compiled, a model is trained


def modules_with_examples():
    """Return the dotted names of the modules whose text holds a doctest prompt."""
    names = []
    for top, folder in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            if ">>> " in path.read_text():
                parts = path.relative_to(ROOT / folder).with_suffix("").parts
                names.append(".".join([top, *(part for part in parts if part != "__init__")]))
    return names


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.heavy] * (n in LONG)) for n in modules_with_examples()]
)
def test_docstrings(name, capsys):
    outcome = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert outcome.failed == 0, capsys.readouterr().out
    assert outcome.attempted > 0, f"{name} shows examples that no docstring holds"


@pytest.mark.parametrize("path", [pytest.param(ROOT / p, id=p, marks=[pytest.mark.heavy] * (p in LONG)) for p in PAGES])
def test_pages(path, capsys):
    outcome = doctest.testfile(str(path), module_relative=False, optionflags=OPTIONS, encoding="utf-8")
    assert outcome.failed == 0, capsys.readouterr().out
