"""NaN and infinity in arrays: where the first stands, and what the operands held there."""

from __future__ import annotations

from typing import Any

import numpy as np

Index = tuple[int, ...]


def _on_host(x: Any) -> Any:
    if not hasattr(x, "__cuda_array_interface__"):
        return np.asarray(x)
    from fgrad.triton_kernels.interop import to_numpy  # loaded when there is an array on a GPU

    return to_numpy(x)


def first_bad(x: Any, nan: bool = True, inf: bool = False) -> Index | None:
    """Return the index of the first NaN (or infinity, where asked for) in an array or number, None if there is none."""
    x = _on_host(x)
    if x.dtype.kind not in "fc" or not x.size or (np.isfinite(x).all() and (nan or inf)):
        return None
    bad = np.isnan(x) if nan and not inf else np.isinf(x) if not nan else ~np.isfinite(x)
    if not bad.any():
        return None
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), x.shape))


def entry(name: str, x: Any, index: Index = ()) -> str:
    """Return one entry of an array in words, such as `x[1] = nan`."""
    x = _on_host(x)
    return f"{name}{list(index) if index else ''} = {x[index].item()!r}"


def counterpart(name: str, x: Any, shape: Index, index: Index) -> str:
    """Return in words what an operand held where a result of this shape has `index`.

    Where the operand does not broadcast to the result: its first entry that is not finite, or that there is none.
    """
    x = _on_host(x)
    if x.dtype.kind not in "biufc":
        return f"{name}: {x.dtype}"
    if x.ndim <= len(shape) and all(n in (1, m) for n, m in zip(x.shape[::-1], shape[::-1], strict=False)):
        own = index[len(index) - x.ndim :] if x.ndim else ()
        return entry(name, x, tuple(0 if n == 1 else i for i, n in zip(own, x.shape, strict=True)))
    bad = first_bad(x, inf=True)
    if bad is not None:
        return entry(name, x, bad)
    return f"{name}: {x.dtype}[{','.join(map(str, x.shape))}], all finite"
