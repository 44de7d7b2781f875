"""Products of arrays: dot, matmul, tensordot and their kin. All end in `dot_general`, which ends in BLAS."""

from __future__ import annotations

import operator

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from fgrad.numpy import reductions
from fgrad.numpy.arguments import as_array, cast, counterpart, moved, one_axis, promoted, refuse
from fgrad.numpy.shaping import diagonal
from fgrad.numpy.ufuncs import protocol_of
from fgrad.ops import contract as c
from fgrad.ops import elementwise as e
from fgrad.ops import shape as s

__all__ = """
    cross dot inner kron matmul matvec outer tensordot trace vdot vecdot vecmat
""".split()

_NONE = ((), ())


def contract(x, y, axes_x, axes_y, batch=_NONE):
    """Return the product of two arrays of one dtype summed over pairs of axes; batch axes come first in the result."""
    return c.dot_general(x, y, contract=(tuple(axes_x), tuple(axes_y)), batch=batch)


def _pair(x, y):
    return promoted(as_array(x), as_array(y))


# ------------------------------------------------------------------------------------------------------- matmul


def _stacks(x, y, core_x, core_y):
    """Return stacks of matrices or vectors with their leading axes broadcast, and how many there are."""
    lead_x, lead_y = x.shape[: x.ndim - core_x], y.shape[: y.ndim - core_y]
    lead = np.broadcast_shapes(lead_x, lead_y)
    if lead_x != lead:
        x = s.broadcast(x, shape=lead + x.shape[x.ndim - core_x :])
    if lead_y != lead:
        y = s.broadcast(y, shape=lead + y.shape[y.ndim - core_y :])
    return x, y, len(lead)


def _mismatch(name, signature, x, y):
    return ValueError(f"{name}: shapes {x.shape} and {y.shape} do not fit {signature}")


@protocol_of(np.matmul)
def matmul(x1, x2, /, out=None, *, dtype=None, axes=None, axis=None, keepdims=None):
    """Multiply matrices, or stacks of them, which broadcast; vectors count as a row on the left, a column on the right.

    Args:
        x1, x2: arrays of at least one axis.
        out, axes, axis, keepdims: refused on traced values.
        dtype: dtype to compute in.

    Raises:
        ValueError: an operand has no axes, or shapes do not fit.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.matmul([[1, 2], [3, 4]], [1, 1])
        array([3, 7])
    """
    refuse("matmul", out=out, axes=axes, axis=axis, keepdims=keepdims)
    x, y = _pair(x1, x2)
    if dtype is not None:
        x, y = cast(x, dtype), cast(y, dtype)
    if not x.ndim or not y.ndim:
        raise ValueError("matmul: Input operand does not have enough dimensions (a scalar has none; use multiply)")
    inner_y = max(y.ndim - 2, 0)
    if x.shape[-1] != y.shape[inner_y]:
        raise _mismatch("matmul", "(n?,k),(k,m?)->(n?,m?)", x, y)
    if y.ndim <= 2:
        return contract(x, y, (x.ndim - 1,), (0,))
    if x.ndim == 1:
        return contract(y, x, (y.ndim - 2,), (0,))
    if x.ndim == 2:
        out = contract(x, y, (1,), (inner_y,))
        return moved(out, 0, out.ndim - 2)
    x, y, lead = _stacks(x, y, 2, 2)
    batch = tuple(range(lead))
    return contract(x, y, (lead + 1,), (lead,), (batch, batch))


def _vectors(name, x1, x2, core_x, core_y, signature):
    """Return operands of a product over last axes, of one dtype and broadcast; ValueError if they do not fit."""
    x, y = _pair(x1, x2)
    if x.ndim < core_x or y.ndim < core_y:
        raise ValueError(f"{name}: Input operand does not have enough dimensions, signature {signature}")
    x, y, lead = _stacks(x, y, core_x, core_y)
    return x, y, lead, tuple(range(lead))


def _conj(x):
    return x.conj() if x.dtype.kind == "c" else x


@protocol_of(np.vecdot)
def vecdot(x1, x2, /, *, axis=-1):
    """Multiply vectors along an axis and sum; the first is conjugated, leading axes broadcast."""
    x, y = _pair(x1, x2)
    x, y = moved(x, one_axis(axis, x.ndim), x.ndim - 1), moved(y, one_axis(axis, y.ndim), y.ndim - 1)
    if x.shape[-1] != y.shape[-1]:
        raise _mismatch("vecdot", "(n),(n)->()", x, y)
    x, y, lead, batch = _vectors("vecdot", _conj(x), y, 1, 1, "(n),(n)->()")
    return contract(x, y, (lead,), (lead,), (batch, batch))


@protocol_of(getattr(np, "matvec", None))
def matvec(x1, x2, /):
    """Multiply matrices by vectors; leading axes broadcast."""
    x, y, lead, batch = _vectors("matvec", x1, x2, 2, 1, "(m,n),(n)->(m)")
    if x.shape[-1] != y.shape[-1]:
        raise _mismatch("matvec", "(m,n),(n)->(m)", x, y)
    return contract(x, y, (lead + 1,), (lead,), (batch, batch))


@protocol_of(getattr(np, "vecmat", None))
def vecmat(x1, x2, /):
    """Multiply vectors, conjugated, by matrices; leading axes broadcast."""
    x, y, lead, batch = _vectors("vecmat", x1, x2, 1, 2, "(n),(n,m)->(m)")
    if x.shape[-1] != y.shape[-2]:
        raise _mismatch("vecmat", "(n),(n,m)->(m)", x, y)
    return contract(_conj(x), y, (lead,), (lead,), (batch, batch))


# --------------------------------------------------------------------------------------------------- dot and kin


@counterpart(np.dot)
def dot(a, b, out=None):
    """Multiply arrays: the last axis of the first with the last but one of the second, or plainly if one has no axes.

    Args:
        a, b: arrays.
        out: refused on traced values.

    Raises:
        ValueError: shapes do not fit.

    Example:
        >>> import fgrad.numpy as fnp
        >>> float(fnp.dot([1.0, 2.0], [3.0, 4.0]))
        11.0
    """
    refuse("dot", out=out)
    x, y = _pair(a, b)
    if not x.ndim or not y.ndim:
        return e.mul(x, y)
    inner = max(y.ndim - 2, 0)
    if x.shape[-1] != y.shape[inner]:
        raise ValueError(
            f"shapes {x.shape} and {y.shape} not aligned: "
            f"{x.shape[-1]} (dim {x.ndim - 1}) != {y.shape[inner]} (dim {inner})"
        )
    return contract(x, y, (x.ndim - 1,), (inner,))


@counterpart(np.vdot)
def vdot(a, b):
    """Multiply two arrays, flattened, and sum; the first is conjugated."""
    x, y = _pair(a, b)
    if x.size != y.size:
        raise ValueError("cannot reshape array: vdot takes arrays of equal size")
    return contract(s.reshape(_conj(x), shape=(x.size,)), s.reshape(y, shape=(y.size,)), (0,), (0,))


@counterpart(np.inner)
def inner(a, b, /):
    """Multiply arrays over their last axes, or plainly if one has no axes."""
    x, y = _pair(a, b)
    if not x.ndim or not y.ndim:
        return e.mul(x, y)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"shapes {x.shape} and {y.shape} not aligned: {x.shape[-1]} != {y.shape[-1]} (last axes)")
    return contract(x, y, (x.ndim - 1,), (y.ndim - 1,))


@counterpart(np.outer)
def outer(a, b, out=None):
    """Multiply every element of one array by every one of another, both flattened."""
    refuse("outer", out=out)
    x, y = as_array(a), as_array(b)
    return e.mul(s.reshape(x, shape=(x.size, 1)), s.reshape(y, shape=(1, y.size)))


@counterpart(np.tensordot)
def tensordot(a, b, axes=2):
    """Multiply arrays over several axes.

    Args:
        a, b: arrays.
        axes: how many last axes of `a` to pair with as many first ones of `b`; or two sequences of axes to pair.

    Raises:
        ValueError: paired axes differ in length.
    """
    x, y = _pair(a, b)
    if np.ndim(axes) == 0 and not isinstance(axes, (list, tuple)):
        n = operator.index(axes)
        first, second = list(range(x.ndim - n, x.ndim)), list(range(n))
    else:
        first, second = axes
        first = list(normalize_axis_tuple(first, x.ndim, "axes"))
        second = list(normalize_axis_tuple(second, y.ndim, "axes"))
    if len(first) != len(second) or any(x.shape[i] != y.shape[j] for i, j in zip(first, second)):
        raise ValueError(f"shape-mismatch for sum: axes {first} of {x.shape} and {second} of {y.shape}")
    return contract(x, y, first, second)


@counterpart(np.kron)
def kron(a, b):
    """Return the Kronecker product: every element of the first times the whole second, laid out in blocks."""
    x, y = as_array(a), as_array(b)
    ndim = max(x.ndim, y.ndim)
    lengths_x = (1,) * (ndim - x.ndim) + x.shape
    lengths_y = (1,) * (ndim - y.ndim) + y.shape
    x = s.reshape(x, shape=tuple([m for n in lengths_x for m in (n, 1)]))
    y = s.reshape(y, shape=tuple([m for n in lengths_y for m in (1, n)]))
    return s.reshape(e.mul(x, y), shape=tuple([m * n for m, n in zip(lengths_x, lengths_y)]))


@counterpart(np.trace)
def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """Sum a diagonal of the plane of two axes."""
    return reductions.sum(diagonal(as_array(a), offset, axis1, axis2), -1, dtype=dtype, out=out)


@counterpart(np.cross)
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """Compute the cross product of vectors of 2 or 3 components; leading axes broadcast.

    Args:
        a, b: arrays of vectors.
        axisa, axisb, axisc: the axes of the vectors in `a`, `b` and the result; `axis` sets all three.

    Raises:
        ValueError: vectors have other than 2 or 3 components.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = _pair(a, b)
    if not x.ndim or not y.ndim:
        raise ValueError("At least one array has zero dimension")
    x, y = (
        moved(x, one_axis(axisa, x.ndim, "axisa"), x.ndim - 1),
        moved(y, one_axis(axisb, y.ndim, "axisb"), y.ndim - 1),
    )
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ValueError(
            f"incompatible dimensions for cross product (dimension must be 2 or 3): {x.shape} and {y.shape}"
        )
    p, q = [[v[..., i] for i in range(v.shape[-1])] for v in (x, y)]
    last = p[0] * q[1] - p[1] * q[0]
    if len(p) == len(q) == 2:
        return last
    p, q = [v if len(v) == 3 else [*v, np.zeros((), x.dtype)] for v in (p, q)]
    out = np.stack(np.broadcast_arrays(p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], last), axis=-1)
    return moved(out, out.ndim - 1, one_axis(axisc, out.ndim, "axisc"))


@counterpart(np.linalg.multi_dot)
def multi_dot(arrays, *, out=None):
    """Multiply two or more matrices in the order that takes the fewest operations; first and last may be vectors."""
    refuse("multi_dot", out=out)
    xs = promoted(*[as_array(x) for x in arrays])
    if len(xs) < 2:
        raise ValueError("Expecting at least two arrays.")
    from fgrad.numpy.subscripts import einsum

    letters = "abcdefghijklmnopqrstuvwxyz"
    parts, place = [], 0
    for k, x in enumerate(xs):
        if x.ndim == 2:
            parts.append(letters[place : place + 2])
            place += 1
        elif x.ndim == 1 and k in (0, len(xs) - 1):
            parts.append(letters[place])
            place += 0
        else:
            raise np.linalg.LinAlgError(
                f"{x.ndim}-dimensional array given at position {k}. Array must be two-dimensional"
            )
    kept = (parts[0][0] if xs[0].ndim == 2 else "") + (parts[-1][-1] if xs[-1].ndim == 2 else "")
    return einsum(f"{','.join(parts)}->{kept}", *xs, optimize="optimal" if len(xs) < 8 else "greedy")
