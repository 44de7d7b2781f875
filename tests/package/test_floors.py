"""Imports go down only: DESIGN's floors, enforced on the source, function-level imports included."""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]

# A module's floor is that of its longest prefix here. A file without one is an error: decide where it belongs.
FLOORS = {
    "fgrad.triton_kernels": -1,
    "fgrad.errors": 0,
    "fgrad.nonfinite": 0,
    "fgrad.source": 0,
    "fgrad.forks": 0,
    "fgrad.config": 0,
    "fgrad.tree": 0,
    "fgrad.core": 0,
    "fgrad.placement": 0,
    "fgrad.program": 1,
    "fgrad.plans": 1,
    "fgrad.kinds": 1,
    "fgrad.ops": 2,
    "fgrad.transforms": 3,
    "fgrad.backend": 3,
    "fgrad.numpy": 4,
    "fgrad.lax": 4,
    "fgrad.random": 4,
    "fgrad.interop": 4,
    "fgrad.kernel_arguments": 4,
    "fgrad.kernel_bench": 4,
    "fgrad.kernel_call": 4,
    "fgrad.kernel_check": 4,
    "fgrad.flatten_util": 4,
    "fgrad.kernel_pair": 4,
    "fgrad.kernels": 4,
    "fgrad.scipy": 4,
    "fgrad.sparse": 4,
    "fgrad.nn": 4,
    "fgrad.check": 4,
    "fgrad.debug": 4,
    "fgrad.drawing": 4,
    "fgrad.extend": 4,
    "fgrad.profiler": 4,
    "fgrad.compat": 5,
    "fgrad.__main__": 5,
    "fgrad": 6,  # fgrad/__init__.py: the public names, from every floor below
}
# Clients of the public interface: all of fgrad that they may import, besides themselves.
CLIENTS = {
    "fgrad.triton_kernels": (),
    "fgrad.compat": ("fgrad.extend", "fgrad.numpy"),
}
# Upward imports that are meant: (importing module, imported module) -> why.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("fgrad.program", "fgrad.drawing.tables"): "a Program shows itself where a notebook asks for it",
}


def source_files():
    """Map the dotted name of every module of the distribution to its file."""
    modules = {}
    for top, folder in FOLDERS.items():
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            modules[".".join([top, *(part for part in parts if part != "__init__")])] = path
    return modules


MODULES = source_files()


def under(module, prefix):
    """Say whether `module` is `prefix` or lies inside it."""
    return module == prefix or module.startswith(prefix + ".")


def floor(module):
    """Return the floor of a module, by the longest prefix that names it."""
    if module == "fgrad":
        return FLOORS["fgrad"]
    prefix = max((p for p in FLOORS if p != "fgrad" and under(module, p)), key=len, default=None)
    assert prefix, f"{module} has no floor: add it to FLOORS"
    return FLOORS[prefix]


def imports(module):
    """List (line, imported module of ours) for every import statement of a module, wherever it stands."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            targets = imported_from(node, package)
        else:
            continue
        yield from ((node.lineno, target) for target in targets if under(target, "fgrad"))


def imported_from(node, package):
    """Resolve `from base import names`: a name that is a module of ours counts as that module, another as the base."""
    base = node.module or ""
    if node.level:
        parents = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*parents, *([node.module] if node.module else [])])
    return [name if (name := f"{base}.{alias.name}") in MODULES else base for alias in node.names]


def allowed(importer, imported):
    """Say whether the floors let `importer` import `imported`."""
    if (importer, imported) in EXCEPTIONS:
        return True
    for client, public in CLIENTS.items():
        if under(importer, client):
            return any(under(imported, name) for name in (client, *public))
    if under(imported, "fgrad.compat"):
        return False
    return floor(imported) <= floor(importer)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_go_down(module):
    upward = [f"line {line}: {target}" for line, target in imports(module) if not allowed(module, target)]
    assert floor(module) is not None
    assert not upward, f"{module} imports upward: {upward}"


def test_exceptions_are_used():
    for importer, imported in EXCEPTIONS:
        assert imported in {target for _, target in imports(importer)}


@pytest.mark.parametrize(
    ("importer", "imported", "legal"),
    [
        ("fgrad.ops.shape", "fgrad.kinds", True),
        ("fgrad.ops.shape", "fgrad.ops.index", True),
        ("fgrad.core", "fgrad.kinds", False),
        ("fgrad.transforms.vmap", "fgrad.numpy", False),
        ("fgrad.numpy.api", "fgrad", False),
        ("fgrad", "fgrad.compat", False),
        ("fgrad.compat.tensor", "fgrad.extend", True),
        ("fgrad.compat.tensor", "fgrad.core", False),
        ("fgrad.triton_kernels.twin", "fgrad.errors", False),
        ("fgrad.backend.gpu", "fgrad.triton_kernels.runtime", True),
    ],
)
def test_the_rule_itself(importer, imported, legal):
    assert allowed(importer, imported) is legal


def test_relative_imports_are_resolved():
    siblings, parent = ast.parse("from . import errors, sin\nfrom ..errors import ShapeError").body
    assert imported_from(siblings, "fgrad") == ["fgrad.errors", "fgrad"]
    assert imported_from(parent, "fgrad.ops") == ["fgrad.errors"]
