"""The distribution holds every package of the tree, typed, and nothing else."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS = PROJECT["tool"]["setuptools"]["package-dir"]


def packages_in_tree():
    """Return the dotted name of every folder that holds Python files, under the mapping of folders to packages."""
    return {
        ".".join([top, *folder.relative_to(ROOT / where).parts])
        for top, where in FOLDERS.items()
        for folder in {path.parent for path in (ROOT / where).rglob("*.py")}
    }


def test_the_list_of_packages_is_the_tree():
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages_in_tree()


@pytest.mark.parametrize("folder", FOLDERS.values())
def test_mapped_packages_are_typed(folder):
    assert (ROOT / folder / "py.typed").is_file()


@pytest.mark.parametrize("folder", FOLDERS.values())
def test_every_package_folder_has_an_init(folder):
    bare = {path.parent for path in (ROOT / folder).rglob("*.py")} - {
        path.parent for path in (ROOT / folder).rglob("__init__.py")
    }
    assert not bare


def test_typed_modules_exist():
    assert PROJECT["tool"]["mypy"]["files"]
    assert all((ROOT / name).exists() for name in PROJECT["tool"]["mypy"]["files"])


def test_every_decision_is_in_the_index():
    index = (ROOT / "docs/adr/README.md").read_text()
    assert [path.name for path in (ROOT / "docs/adr").glob("0*.md") if f"({path.name})" not in index] == []
