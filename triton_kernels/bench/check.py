"""No figure of a case is reported before its result is right: small arrays, against float64."""

from __future__ import annotations

import numpy as np

ROWS, COLUMNS = 8, 128
_TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 6e-2}


def require_right(case, dtype, home):
    """Raise AssertionError unless a case computes what its reference does, on the arrays of a home."""
    work = case.make(np.random.default_rng(1), dtype, ROWS, COLUMNS)
    results = work.function(*work.prepare(*[home.from_numpy(x) for x in work.args]))
    results = [home.to_numpy(x) for x in _listed(results)]
    wide = [x if x.dtype.kind in "iub" else x.astype(np.float64) for x in work.args]
    tolerance = _TOLERANCE[np.dtype(dtype).name]
    if work.error is not None:
        if not work.error([x.astype(np.float64) for x in results], *wide) <= tolerance:
            raise AssertionError(f"{case.name} of {np.dtype(dtype).name}: the result is wrong")
        return
    if work.reference is None:
        if not all(np.isfinite(x.astype(np.float64)).all() for x in results):
            raise AssertionError(f"{case.name} of {np.dtype(dtype).name}: the result is not finite")
        return
    for result, want in zip(results, _listed(work.reference(*wide)), strict=False):
        scale = np.abs(want).max(initial=1e-30)
        if not np.abs(result.astype(np.float64) - want).max(initial=0) <= tolerance * scale:
            raise AssertionError(f"{case.name} of {np.dtype(dtype).name}: the result is wrong")


def _listed(x):
    return list(x) if isinstance(x, (tuple, list)) else [x]
