"""Folding: many steps into few boxes, by user line, by function, and by what repeats.

Only neighbours in the order of the steps are joined. Such an interval can be contracted without making a cycle,
whatever its edges, since the order of the intervals is still one in which each stands after those it reads.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

from fgrad.drawing.steps import Group, Step
from fgrad.drawing.text import plural

LONGEST_PERIOD = 64
"""Repetitions whose one round has more boxes than this are not looked for."""

Runs = list[list[Step]]


def fold(steps: Sequence[Step], limit: int) -> list[Group]:
    """Return the groups to draw: each step on its own if at most `limit` are operations, else folded until they are.

    Raises:
        ValueError: `limit` is less than 1.
    """
    if limit < 1:
        raise ValueError(f"max_nodes must be at least 1, got {limit}")
    operations = [step for step in steps if step.role == "operation"]
    groups = [_single(step) for step in operations]
    if len(groups) > limit:
        groups = _folded(operations, limit)
    return _connected(steps, groups, merge=len(operations) > limit)


def _single(step: Step) -> Group:
    return Group([step], step.label or step.name, [step.note] if step.note else [])


def _folded(operations: Sequence[Step], limit: int) -> list[Group]:
    """Return the folding with most groups, up to `limit`: by scopes where there are any, else by line or by function.

    If it is one by function with few groups, many lines lie in few functions: these are cut into ranges of lines.
    """
    single = [[step] for step in operations]
    lines = _runs(single, lambda step: step.source)
    functions = _runs(lines, lambda step: function_at(step.source))
    by_scope = max([_finest(runs, limit) for runs in _scoped(single)], key=len, default=[])
    if by_scope:
        return by_scope
    by_line, by_function = _finest(lines, limit), _finest(functions, limit)
    if by_line and len(by_line) >= len(by_function):
        return by_line
    if 4 * len(by_function) >= limit:
        return by_function
    return _chunks(lines if by_function else functions, limit)


def _scoped(single: Runs) -> Iterator[Runs]:
    """Yield the steps by the names of their scopes, from all to the outermost; by function where they have none."""
    for depth in range(max(len(_scopes(run[0])) for run in single), 0, -1):
        yield _runs(single, functools.partial(_outer_scope, depth))


def _outer_scope(depth: int, step: Step) -> object:
    return tuple(_scopes(step)[:depth]) or function_at(step.source)


def _scopes(step: Step) -> list[str]:
    return step.scope.split("/") if step.scope else []


def _finest(runs: Runs, limit: int) -> list[Group]:
    """Return a group for each run, or with what repeats joined; nothing if that is more than `limit`, too."""
    groups = [_group(run) for run in runs]
    if len(groups) > limit:
        groups = _repeats(runs)
    return groups if len(groups) <= limit else []


def _runs(runs: Runs, key: Callable[[Step], object]) -> Runs:
    """Join neighbours of equal key, forward and derivative apart; those without a key stay as they are."""
    joined: Runs = []
    last: object = None
    for run in runs:
        found = key(run[0])
        this = (found, run[0].derivative) if found else None
        if this and this == last:
            joined[-1] = joined[-1] + run
        else:
            joined.append(run)
        last = this
    return joined


def _chunks(runs: Runs, limit: int) -> list[Group]:
    """Join as many neighbours as it takes, evenly."""
    size = -(-len(runs) // limit)
    return [_group([step for run in runs[k : k + size] for step in run]) for k in range(0, len(runs), size)]


def _repeats(runs: Runs) -> list[Group]:
    """Join neighbours that repeat: the period that covers most, from left to right."""
    signatures = [tuple([(step.name, step.source, step.note) for step in run]) for run in runs]
    groups = []
    k = 0
    while k < len(runs):
        period, rounds = _repetition(signatures, k)
        width = period * rounds
        groups.append(_group([step for run in runs[k : k + width] for step in run]))
        k += width
    return groups


def _repetition(signatures: Sequence[object], start: int) -> tuple[int, int]:
    """Return period and rounds of the repetition from `start` on that covers most; (1, 1) if nothing repeats."""
    best = (1, 1)
    for period in range(1, min(LONGEST_PERIOD, (len(signatures) - start) // 2) + 1):
        end = start + period
        while end < len(signatures) and signatures[end] == signatures[end - period]:
            end += 1
        rounds = (end - start) // period
        if rounds > 1 and rounds * period > best[0] * best[1]:
            best = period, rounds
    return best


def _group(steps: Sequence[Step]) -> Group:
    if len(steps) == 1:
        return _single(steps[0])
    labels = list(dict.fromkeys(step.label for step in steps if step.label))
    levels = zip(*[_scopes(step) for step in steps], strict=False)
    scope = [names[0] for names in takewhile(lambda names: len(set(names)) == 1, levels)]
    places = list(dict.fromkeys(step.source for step in steps if step.source))
    names = list(dict.fromkeys(function_at(place).rpartition(":")[2] for place in places))
    rounds = _rounds([step.name for step in steps])
    named = ["/".join(scope)] if scope else labels or [name for name in names if name]
    title = ", ".join(named) or plural(len(steps) // rounds, "operation")
    if all(step.derivative for step in steps):
        title += ", derivative"
    return Group(steps, title, _place(places), rounds)


def _rounds(names: Sequence[str]) -> int:
    """Return how many times a whole sequence repeats its beginning."""
    periods = [p for p in range(1, min(LONGEST_PERIOD, len(names) // 2) + 1) if len(names) % p == 0]
    return next((len(names) // p for p in periods if names[p:] == names[:-p]), 1)


def _place(places: Sequence[str]) -> list[str]:
    """Return `model.py:3-7` for places in one file; nothing if they are in several."""
    files = {place.rpartition(":")[0] for place in places}
    lines = sorted({int(line) for place in places if (line := place.rpartition(":")[2]).isdigit()})
    if len(files) != 1 or not lines:
        return []
    return [f"{os.path.basename(files.pop())}:{lines[0]}{f'-{lines[-1]}' if len(lines) > 1 else ''}"]


def _connected(steps: Sequence[Step], groups: list[Group], merge: bool) -> list[Group]:
    """Add inputs, constants and outputs to groups of operations, and fill in who reads what and what leaves a group."""
    first = [_single(step) for step in steps if step.role in ("input", "constant")]
    last = [_single(step) for step in steps if step.role == "output"]
    if merge:
        first = _alike(steps, first, groups)
        last = [_several([step for group in last for step in group.steps])] if last else []
    everything = [*first, *groups, *last]
    home = {id(step): k for k, group in enumerate(everything) for step in group.steps}
    leaves: dict[int, None] = {}
    for k, group in enumerate(everything):
        sources = [i for step in group.steps for i in step.inputs]
        group.reads = sorted({home[id(steps[i])] for i in sources} - {k})
        leaves.update((i, None) for i in sources if home[id(steps[i])] != k)
    for i in sorted(leaves):
        everything[home[id(steps[i])]].shown += steps[i].types
    for group in everything:
        group.shown = group.shown or list(group.steps[-1].types)
    return everything


def _alike(steps: Sequence[Step], ends: Sequence[Group], groups: Sequence[Group]) -> list[Group]:
    """Join the inputs (and the constants) that the same groups read."""
    readers: dict[int, set[int]] = {id(end.steps[0]): set() for end in ends}
    for k, group in enumerate(groups):
        for i in {i for step in group.steps for i in step.inputs}:
            readers.get(id(steps[i]), set()).add(k)
    sets: dict[object, list[Step]] = {}
    for end in ends:
        step = end.steps[0]
        sets.setdefault((step.role, frozenset(readers[id(step)])), []).append(step)
    return [_several(alike) for alike in sets.values()]


def _several(ends: Sequence[Step]) -> Group:
    if len(ends) == 1:
        return _single(ends[0])
    names = list(dict.fromkeys(step.name for step in ends))
    return Group(ends, plural(len(ends), ends[0].role), names)


def function_at(source: str) -> str:
    """Return `file:function` for a place `file:line`; nothing for an unknown place or one outside of functions."""
    file, _, line = source.rpartition(":")
    if not line.isdigit():
        return ""
    return next((f"{file}:{name}" for first, last, name in _functions(file) if first <= int(line) <= last), "")


@functools.lru_cache(maxsize=64)
def _functions(file: str) -> list[tuple[int, int, str]]:
    """Return first line, last line and qualified name of the functions in a file, inner ones first."""
    try:
        module = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return []
    found: list[tuple[int, int, str]] = []

    def visit(node: ast.AST, path: str) -> None:
        for child in ast.iter_child_nodes(node):
            named = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            name = f"{path}{child.name}" if named else path  # type: ignore[attr-defined]
            visit(child, f"{name}." if named else path)
            if named and not isinstance(child, ast.ClassDef):
                found.append((child.lineno, child.end_lineno or child.lineno, name))  # type: ignore[attr-defined]

    visit(module, "")
    return found
