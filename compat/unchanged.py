"""Unchanged programs: inside `as_torch()` the name `torch` means fgrad.compat.

`python -m fgrad.compat script.py` runs a script so.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import runpy
import sys

import numpy as np

_PACKAGE = "fgrad.compat"


def namespaces():
    """Return every module of `torch` that is here, by its torch name."""
    package = sys.modules[_PACKAGE]
    found = {"torch": package}
    for info in pkgutil.walk_packages(package.__path__, _PACKAGE + "."):
        short = info.name.removeprefix(_PACKAGE + ".")
        if short.startswith(("methods", "__main__")):
            continue
        found["torch." + short] = importlib.import_module(info.name)
    return found


@contextlib.contextmanager
def as_torch():
    """Let `import torch` mean fgrad.compat inside the block; what `torch` was before is put back.

    NumPy's floating-point warnings are off inside, as torch gives none.

    Example:
        >>> import fgrad.compat
        >>> with fgrad.compat.as_torch():
        ...     import torch
        >>> torch.ones(2).sum()
        tensor(2.)
    """
    hidden = {name: module for name, module in sys.modules.items() if name == "torch" or name.startswith("torch.")}
    for name in hidden:
        del sys.modules[name]
    ours = namespaces()
    sys.modules.update(ours)
    try:
        with np.errstate(all="ignore"):
            yield sys.modules[_PACKAGE]
    finally:
        for name in [name for name in sys.modules if name == "torch" or name.startswith("torch.")]:
            del sys.modules[name]
        sys.modules.update(hidden)


def main(arguments):
    """Run a script, or a module after -m, with `torch` meaning fgrad.compat; returns the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m fgrad.compat (script.py | -m module) [arguments]", file=sys.stderr)
        return 2
    as_module = arguments[0] == "-m"
    target = arguments[1] if as_module else arguments[0]
    sys.argv = [target, *arguments[2 if as_module else 1 :]]
    with as_torch():
        if as_module:
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, target.rpartition("/")[0] or ".")
            runpy.run_path(target, run_name="__main__")
    return 0
