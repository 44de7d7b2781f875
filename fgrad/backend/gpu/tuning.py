"""Which configuration a generated kernel is launched in: rows at once, length of a step, warps.

`source` has a rule. A card may know better: the fastest of a few configurations is found where tuning is asked for, and
remembered for the text of the kernel, types, and sizes up to the next powers of two (see `triton_kernels.tune`).
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from fgrad.backend.gpu.source import Source

MOST_ELEMENTS = 32768
"""Elements that a program works on at once in any configuration."""

A_THREAD = (1, 64)
"""Elements of a thread at least and at most."""


def launch_source(source: Source, kernel: Any, arrays: Sequence[Any]) -> None:
    """Launch a generated kernel on its arrays, in the configuration known to be fastest, else by the rule."""
    from fgrad.triton_kernels.runtime import launch
    from fgrad.triton_kernels.tune import is_final, tuner_of

    tuner = tuner_of(arrays)
    choice, programs, constexprs = source.ways.get(tuner, _UNKNOWN)
    if choice is None or not is_final(choice):
        choice = _choice(source, kernel, arrays, tuner)
        constexprs = {**source.constexprs, **choice.config}
        programs = _programs(source, constexprs)
        source.ways[tuner] = choice, programs, constexprs
    launch(kernel, programs, *arrays, *source.numbers, **constexprs)


_UNKNOWN = None, 0, {}


def _choice(source: Source, kernel: Any, arrays: Sequence[Any], tuner: Any) -> Any:
    """Return the `Choice` of a configuration on a card; the rule's where there is no card or nothing to do."""
    from fgrad.triton_kernels.runtime import Launch
    from fgrad.triton_kernels.tune import Choice

    sizes = source.numbers[0], _columns(source)
    if tuner is None or 0 in sizes:
        return Choice(configurations(source)[0], True, kernel)
    fixed = {name: value for name, value in source.constexprs.items() if name not in ("ROWS", "BLOCK")}
    grid = functools.partial(_grid, source)
    launch = Launch(kernel, grid, (*arrays, *source.numbers), fixed)
    return tuner.pick(launch, functools.partial(configurations, source), sizes, content_hash(source.name, source.text))


def _grid(source: Source, named: dict[str, Any]) -> tuple[int]:
    return (_programs(source, named),)


def _programs(source: Source, constexprs: dict[str, Any]) -> int:
    """Return how many programs are launched: as the rule has it where they take rows in turn, or for its own blocks."""
    if source.partials or constexprs["ROWS"] == source.constexprs["ROWS"]:
        return source.programs
    return -(-source.numbers[0] // constexprs["ROWS"])


def configurations(source: Source) -> list[dict[str, int]]:
    """Return in which ways a kernel may be launched, the rule's first: ROWS, BLOCK, num_warps.

    A kernel that leaves partial results has as many programs in all of them, since a second kernel adds these up, and
    never more rows at once, so that each program has some. One of another form keeps its blocks.
    """
    rule = {name: value for name, value in source.constexprs.items() if name in ("ROWS", "BLOCK")}
    found = [{**rule, "num_warps": source.warps}]
    for blocks, factor in itertools.product(_blocks(source, rule), (1, 2, 0.5)):
        share = _elements(source, blocks) / _elements(source, rule)
        warps = max(1, min(16, int(factor * source.warps * share)))
        fits = A_THREAD[0] <= _elements(source, blocks) / (32 * warps) <= A_THREAD[1]
        if fits and _elements(source, blocks) <= MOST_ELEMENTS and {**blocks, "num_warps": warps} not in found:
            found.append({**blocks, "num_warps": warps})
    return found


def _blocks(source: Source, rule: dict[str, int]) -> Iterator[dict[str, int]]:
    """Yield block sizes: the rule's, fewer and more rows at once, and shorter and longer steps where rows are cut."""
    yield rule
    in_turn = bool(source.partials) and "range(program * ROWS, rows, tl.num_programs(0) * ROWS)" in source.text
    once = not source.partials and source.programs == -(-source.numbers[0] // rule["ROWS"])
    highest = _power(source.numbers[0]) if once else rule["ROWS"]
    for rows in (rule["ROWS"] // 2, rule["ROWS"] * 2, rule["ROWS"] // 4) if once or in_turn else ():
        if 1 <= rows <= highest:
            yield {**rule, "ROWS": rows}
    if once and rule.get("BLOCK", math.inf) < _columns(source):
        for block in (rule["BLOCK"] // 2, rule["BLOCK"] * 2):
            yield {**rule, "BLOCK": block}


def _elements(source: Source, blocks: dict[str, int]) -> int:
    """Return how many elements a program works on at once."""
    return blocks["ROWS"] * blocks.get("BLOCK", _power(_columns(source)))


def _power(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()


def _columns(source: Source) -> int:
    return source.numbers[1] * source.constexprs["UNIT"] if "UNIT" in source.constexprs else 1


@functools.lru_cache(maxsize=1024)
def content_hash(name: str, text: str) -> str:
    """Return a hash of what a kernel does: its text but for its name, and for remarks on where lines come from."""
    plain = re.sub(rf"\b{re.escape(name)}\b", "kernel", re.sub(r"  # .*", "", text))
    return hashlib.sha256(plain.encode()).hexdigest()[:32]
