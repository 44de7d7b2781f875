"""The way in and out of a jitted function: generated code that recognises the last signature.

It takes the arguments apart, compares classes, shapes and dtypes, runs the compiled Program and puts the results
together, with no general tree walk. Whatever it does not recognise goes the general way.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from fgrad.core import PYTHON_SCALARS

MISS = object()
"""What a guard returns for a call that it does not recognise."""


class _Unknown(Exception):
    """A tree that guards are not written for."""


class _Writer:
    def __init__(self) -> None:
        self.env: dict[str, Any] = {"ndarray": np.ndarray, "MISS": MISS}
        self.lines: list[str] = []
        self.leaves: list[str] = []
        self.count = 0

    def name(self, value: Any) -> str:
        key = f"k{len(self.env)}"
        self.env[key] = value
        return key

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def take_apart(self, treedef: Any, source: str, leaves: Any) -> None:
        """Write the lines that take a tree apart and check it; `leaves` yields example leaves in order."""
        if treedef.num_leaves == 1 and treedef.num_nodes == 1:
            self._check_leaf(source, next(leaves))
            return
        data = treedef.node_data()
        if data is None:  # None: a tree without leaves
            self.lines.append(f"if {source} is not None: return MISS")
            return
        cls, keys = data
        children = treedef.children()
        if cls not in (dict, tuple, list):
            raise _Unknown
        self.lines.append(
            f"if {source}.__class__ is not {self.name(cls)} or len({source}) != {len(children)}: return MISS"
        )
        for k, child in enumerate(children):
            part = self.fresh()
            if cls is dict:
                self.lines.append(f"{part} = {source}.get({self.name(keys[k])}, MISS)")
            else:
                self.lines.append(f"{part} = {source}[{k}]")
            self.take_apart(child, part, leaves)

    def _check_leaf(self, source: str, x: Any) -> None:
        self.leaves.append(source)
        if x.__class__ is np.ndarray:
            test = f"{source}.__class__ is not ndarray or {source}.shape != {x.shape} or {source}.dtype is not "
            self.lines.append(f"if {test}{self.name(x.dtype)}: return MISS")
        elif x.__class__ in PYTHON_SCALARS or isinstance(x, np.generic):
            self.lines.append(f"if {source}.__class__ is not {self.name(x.__class__)}: return MISS")
        else:
            raise _Unknown

    def put_together(self, treedef: Any, results: Any) -> str:
        """Return the expression of a tree of results."""
        if treedef.num_leaves == 1 and treedef.num_nodes == 1:
            return next(results)  # type: ignore[no-any-return]
        data = treedef.node_data()
        if data is None:
            return "None"
        cls, keys = data
        parts = [self.put_together(child, results) for child in treedef.children()]
        if cls is dict:
            return "{" + ", ".join(f"{self.name(key)}: {part}" for key, part in zip(keys, parts, strict=True)) + "}"
        if cls is tuple:
            return "(" + "".join(part + ", " for part in parts) + ")"
        if cls is list:
            return "[" + ", ".join(parts) + "]"
        raise _Unknown


def make_guard(function: Any, in_tree: Any, leaves: Sequence[Any], entry: Any) -> Any:
    """Return the guard of a signature, a function of the tuple of arguments; None for trees it cannot be written for.

    Args:
        function: what to count hits on.
        in_tree: the tree of (list of positional arguments, keyword arguments).
        leaves: example leaves.
        entry: has `compiled` and `out_tree`.
    """
    w = _Writer()
    positional = in_tree.children()[0]
    arguments = [f"a{k}" for k in range(positional.num_children)]
    examples = iter(leaves)
    try:
        for argument, child in zip(arguments, positional.children(), strict=True):
            w.take_apart(child, argument, examples)
        results = [f"r{k}" for k in range(entry.out_tree.num_leaves)]
        out = w.put_together(entry.out_tree, iter(results))
    except _Unknown:
        return None
    call = f"{w.name(entry.compiled.compute)}({', '.join(w.leaves)})"
    unpack = f"{''.join(r + ', ' for r in results)}= " if results else ""
    body = [
        f"if len(args) != {len(arguments)}: return MISS",
        *([f"{''.join(a + ', ' for a in arguments)}= args"] if arguments else []),
        *w.lines,
        f"{unpack}{call}",
        f"{w.name(weakref.ref(function))}()._hits += 1",  # what a function owns must not own it: both go at once
        f"return {out}",
    ]
    source = "def guard(args):\n" + "".join(f"    {line}\n" for line in body)
    exec(compile(source, "<fgrad guard>", "exec"), w.env)
    return w.env.pop("guard")
