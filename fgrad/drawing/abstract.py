"""Types without values: what a rule gives for arrays of which only the types are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fgrad.core import ArrayType, type_of
from fgrad.program import Trace
from fgrad.transforms.programs import under


def pulled_types(
    pull: Callable[..., Any], saved: Sequence[Any], types: Any, params: Any, ct: Any
) -> list[ArrayType | None] | None:
    """Return the types of the cotangents that a pull gives, or None where the rule needs values to say.

    Args:
        pull: the pull of a plan, of `(saved, types, params, ct)`.
        saved, types, params: what its node keeps; `saved` may hold types in place of arrays.
        ct: the type of the cotangent, or for several outputs a list of types and Nones.
    """
    recorder = Trace.alone("types of a pull")
    given = [recorder.input(type_of(x)) for x in saved]
    several = isinstance(ct, list)
    cts = [None if kind is None else recorder.input(kind) for kind in (ct if several else [ct])]
    try:
        pulled = under(recorder, pull, given, types, params, cts if several else cts[0])
    except (TypeError, NotImplementedError):
        return None
    return [None if g is None else type_of(g) for g in pulled]
