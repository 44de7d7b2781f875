"""Pictures of graphs: `draw` for Programs, and the object that it returns, which knows the formats."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fgrad import tree
from fgrad.drawing.boxes import boxes_of, summary
from fgrad.drawing.dot import render, to_dot
from fgrad.drawing.files import write_svg
from fgrad.drawing.fold import fold
from fgrad.drawing.programs import program_steps
from fgrad.drawing.record import recorded
from fgrad.drawing.steps import Group, Step
from fgrad.drawing.times import with_times
from fgrad.program import Program
from fgrad.transforms.jit import JittedFunction

MAX_NODES = 60
"""Operations that are drawn one by one; what has more is folded."""


class Picture:
    """A graph that can be shown and saved. `draw` and `fgrad.compat.draw` make it; notebooks display it.

    Attributes:
        title: what is drawn.
        groups: the boxes, in an order in which each stands after those it reads.
        summary: one line: operations, bytes saved for backward, time.
        dot: the graph as DOT text.
    """

    def __init__(self, title: str, steps: Sequence[Step], max_nodes: int = MAX_NODES, remark: str = ""):
        self.title = title
        self.groups: list[Group] = fold(steps, max_nodes)
        self.summary = "; ".join([summary(self.groups), *([remark] if remark else [])])
        self._again = steps, max_nodes, remark

    def timed(self, prof: Any) -> Picture:
        """Return this picture with the times of a profile, as numbers and as colours.

        A node of a recorded graph gets the time of its operation and of its backward. An equation of a Program gets its
        share of what its primitive took, forward and backward, in events of its line.

        Args:
            prof: a profile that observed what is drawn, or its events; for a Program with `with_stack=True`, from which
                the nodes of a recorded graph get their lines as well.

        Raises:
            ValueError: the profile has no event of anything that is drawn.

        Example:
            >>> import numpy as np, fgrad
            >>> f = lambda x: np.tanh(x).sum()
            >>> with fgrad.profile(with_stack=True) as prof:
            ...     _ = fgrad.grad(f)(np.ones(3))
            >>> fgrad.draw(f, np.ones(3)).timed(prof)  # doctest: +ELLIPSIS
            <picture of <lambda> (...): 2 operations, 24 B saved for backward, ... measured>
        """
        steps, max_nodes, remark = self._again
        measured = with_times(steps, getattr(prof, "function_events", prof))
        return Picture(self.title, measured, max_nodes, remark)

    @property
    def dot(self) -> str:
        return to_dot(boxes_of(self.groups), self.title, self.summary)

    def svg(self, layout: str = "own") -> str:
        """Return the picture as an SVG file.

        Args:
            layout: "own", which needs nothing, or "dot", Graphviz's.

        Raises:
            RuntimeError: Graphviz is asked for and not installed.
            ValueError: there is no such layout.
        """
        if layout == "dot":
            made = render(self.dot, "svg").decode()
            return made[made.index("<svg") :]  # without the prolog, so that it may also stand in a page
        if layout != "own":
            raise ValueError(f"layout must be 'own' or 'dot', got {layout!r}")
        from fgrad.drawing.graphs import graph_svg

        return graph_svg(boxes_of(self.groups), self.title, self.summary)

    def save(self, path: str | os.PathLike[str], layout: str = "own") -> None:
        """Write the picture to a file, in the format that its name ends in.

        Args:
            path: ends in .dot (text), .svg, .html, or .png or .pdf, which Graphviz makes.
            layout: for .svg, as in `svg`.

        Raises:
            RuntimeError: Graphviz is needed and not installed.
            ValueError: the name ends in none of these.
        """
        path = Path(path)
        form = path.suffix.lower().lstrip(".")
        if form in ("dot", "gv"):
            path.write_text(self.dot, encoding="utf-8")
        elif form in ("png", "pdf"):
            path.write_bytes(render(self.dot, form))
        elif form in ("svg", "html"):
            write_svg(path, self.title, self.svg(layout))
        else:
            raise ValueError(f"a picture is saved as .dot, .svg, .html, .png or .pdf, got {path.name!r}")

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg()}</div>'

    def __repr__(self) -> str:
        return f"<picture of {self.title}: {self.summary}>"


def draw(fun: Callable[..., Any] | Program, *args: Any, max_nodes: int = MAX_NODES, **kwargs: Any) -> Picture:
    """Return a picture of what a function computes for these arguments, and of what its backward pass would keep.

    The function is recorded, not run. With more than `max_nodes` operations, neighbours fold into one box: those of one
    `fgrad.named_scope`, of one line or of one function, and rounds of what repeats; a value named by `checkpoint_name`
    gives a box its name.

    Args:
        fun: a function of arrays or pytrees, jitted or not, or a Program (then without arguments).
        *args, **kwargs: arrays, numbers, or anything with `.shape` and `.dtype`.
        max_nodes: how many operations are drawn one by one.

    Returns:
        A `Picture`: `.dot`, `.svg()`, `.save("x.svg")`, shown by notebooks.

    Raises:
        TypeError: `fun` is not callable, or a Program is given with arguments.
        ValueError: `max_nodes` is less than 1.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.draw(lambda x: (np.tanh(x) * 2).sum(), np.ones(3))  # doctest: +ELLIPSIS
        <picture of <lambda> (...): 3 operations, 24 B saved for backward>
    """
    if isinstance(fun, Program):
        if args or kwargs:
            raise TypeError("draw takes a Program without further arguments, since it is recorded already")
        steps, remark = program_steps(fun)
        return Picture(fun.label, steps, max_nodes, remark)
    traced = recorded(fun, args, kwargs)
    names = _argument_names(fun, traced.in_tree, fun._static_numbers if isinstance(fun, JittedFunction) else ())
    steps, remark = program_steps(traced.program, names, _output_names(traced.out_tree))
    return Picture(traced.program.label.removeprefix("draw of "), steps, max_nodes, remark)


def _argument_names(fun: Callable[..., Any], in_tree: Any, static: Sequence[int]) -> list[str]:
    """Return for each leaf of `(args, kwargs)` how the function gets at it, such as `params['w']`.

    Arguments at the positions `static` are not in the tree.
    """
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):  # some builtins have none
        parameters = []
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]

    def called(k: int) -> str:
        for position in sorted(static):
            k += 0 <= position <= k
        return positional[k] if k < len(positional) else f"argument {k}"

    return [
        (path[1].key if path[0].idx == 1 else called(path[1].idx)) + tree.keystr(path[2:])
        for path, _ in _paths(in_tree)
    ]


def _output_names(out_tree: Any) -> list[str]:
    return [f"output{tree.keystr(path)}" for path, _ in _paths(out_tree)]


def _paths(treedef: Any) -> list[tuple[Any, Any]]:
    return tree.leaves_with_path(tree.unflatten(treedef, list(range(treedef.num_leaves))))
