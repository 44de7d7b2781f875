"""Which configuration a generated kernel is launched in: rows at once, length of a step, warps.

`source` has a rule. A card may know better: the fastest of a few configurations is found where tuning is asked for, and
remembered for the text of the kernel, types, and sizes up to the next powers of two (see `triton_kernels.tune`).
"""

from __future__ import annotations

import functools
import hashlib
import itertools
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

    A kernel that leaves partial results has as many programs in all of them, since a second kernel adds these up: each
    program takes rows in turn, until there are none.
    """
    rule = {name: value for name, value in source.constexprs.items() if name in ("ROWS", "BLOCK")}
    found = [{**rule, "num_warps": source.warps}]
    for blocks, factor in itertools.product(_blocks(source, rule), (1, 2, 0.5)):
        elements = blocks["ROWS"] * blocks.get("BLOCK", 1)
        warps = max(1, min(16, int(factor * source.warps * elements / (rule["ROWS"] * rule.get("BLOCK", 1)))))
        fits = A_THREAD[0] <= elements / (32 * warps) <= A_THREAD[1] and elements <= MOST_ELEMENTS
        if fits and {**blocks, "num_warps": warps} not in found:
            found.append({**blocks, "num_warps": warps})
    return found


def _blocks(source: Source, rule: dict[str, int]) -> Iterator[dict[str, int]]:
    """Yield block sizes: the rule's, fewer and more rows at once, and shorter and longer steps where rows are cut."""
    yield rule
    highest = 1 << max(0, source.numbers[0] - 1).bit_length()
    for rows in (rule["ROWS"] // 2, rule["ROWS"] * 2, rule["ROWS"] // 4):
        if 1 <= rows <= highest:
            yield {**rule, "ROWS": rows}
    if rule.get("BLOCK", 1) < _columns(source):
        for block in (rule["BLOCK"] // 2, rule["BLOCK"] * 2):
            yield {**rule, "BLOCK": block}


def _columns(source: Source) -> int:
    return source.numbers[1] * source.constexprs["UNIT"] if "UNIT" in source.constexprs else 1


@functools.lru_cache(maxsize=1024)
def content_hash(name: str, text: str) -> str:
    """Return a hash of what a kernel does: its text but for its name, and for remarks on where lines come from."""
    plain = re.sub(rf"\b{re.escape(name)}\b", "kernel", re.sub(r"  # .*", "", text))
    return hashlib.sha256(plain.encode()).hexdigest()[:32]
