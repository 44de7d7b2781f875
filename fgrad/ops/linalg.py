"""Matrices: products and transposes of stacks, solving, inverses, determinants, the exponential.

A matrix lies in the last two axes; axes before them count examples and are the same for all operands. What has a
derivative at all gets it by formulas in the result itself, or by solving, never by way of an inverse. Values come from
LAPACK, as NumPy calls it, in float32, float64 and their complex kin.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.linalg import LinAlgError

from fgrad.core import ArrayType, type_of
from fgrad.kinds import differential
from fgrad.ops.complex import conj, imag, real
from fgrad.ops.contract import dot_general
from fgrad.ops.elementwise import select
from fgrad.ops.shape import concatenate, move_axis, to_front

# ------------------------------------------------------------------------------------ what the rules are made of


def mm(x, y):
    """Return the products of two stacks of matrices."""
    lead = x.ndim - 2
    batch = tuple(range(lead))
    return dot_general(x, y, contract=((lead + 1,), (lead,)), batch=(batch, batch))


@functools.lru_cache(maxsize=64)
def _swapped(ndim):
    return (*range(ndim - 2), ndim - 1, ndim - 2)


def swap(x):
    """Return the transposes of a stack of matrices."""
    return x.transpose(_swapped(x.ndim))


def conjugate(x):
    """Return the complex conjugate, which of a real array is the array itself."""
    return conj(x) if x.dtype.kind == "c" else x


def adjoint(x):
    """Return the conjugate transposes of a stack of matrices."""
    return conjugate(swap(x))


def hermitian(x):
    """Return the Hermitian parts of a stack of matrices."""
    return (x + adjoint(x)) * 0.5


def lower(x, k=0):
    """Return a stack of matrices with zeros above the k-th diagonal."""
    return select(np.tri(*x.shape[-2:], k, dtype=bool), x, 0)


def upper(x, k=0):
    """Return a stack of matrices with zeros below the k-th diagonal."""
    return select(np.tri(*x.shape[-2:], k - 1, dtype=bool), 0, x)


def diagonal(x):
    """Return the diagonals of a stack of square matrices."""
    return select(np.eye(x.shape[-1], dtype=bool), x, 0).sum(axis=-1)


def row(v):
    """Return a stack of vectors as matrices of one row."""
    return v.reshape((*v.shape[:-1], 1, v.shape[-1]))


def column(v):
    """Return a stack of vectors as matrices of one column."""
    return v.reshape((*v.shape, 1))


def pairing(x, y):
    """Return the sums of products of corresponding entries of two stacks of matrices."""
    return (x * y).sum(axis=(-2, -1))


def as_number(v):
    """Return a number for each matrix, so that it multiplies matrices."""
    return v.reshape((*v.shape, 1, 1))


def stay(size, **params):
    """The `shift` of a primitive on matrices: leading axes count examples anyway."""
    return {}


def floating(prim, *types):
    """Raise TypeError unless LAPACK has the types; they must agree."""
    for x in types:
        if x.dtype.char not in "fdFD" or x.dtype != types[0].dtype:
            raise TypeError(
                f"{prim} is computed in float32, float64, complex64 or complex128, alike for all operands, "
                f"got {' and '.join(map(str, types))}"
            )


def matrices(prim, *types):
    """Raise unless types are those of stacks of matrices with equal leading axes."""
    floating(prim, *types)
    for x in types:
        if x.ndim < 2 or x.shape[:-2] != types[0].shape[:-2]:
            raise LinAlgError(f"{prim} takes matrices in the last two axes, got {' and '.join(map(str, types))}")


def square(prim, x):
    """Raise LinAlgError unless the type is that of a stack of square matrices."""
    matrices(prim, x)
    if x.shape[-1] != x.shape[-2]:
        raise LinAlgError(f"{prim}: the last 2 dimensions of the array must be square, got {x}")


def real_dtype(dtype):
    """Return the dtype of real parts."""
    return np.empty(0, dtype).real.dtype


def square_type(prim):
    """Return the type rule of a function of square matrices whose values are like them."""

    def rule(x, **params):
        square(prim, x)
        return ArrayType(x.shape, x.dtype)

    return rule


# ------------------------------------------------------------------------------------------------------ solving


def _solve_type(prim):
    def rule(x, y, **params):
        matrices(prim, x, y)
        square(prim, x)
        if x.shape[-1] != y.shape[-2]:
            raise ValueError(f"{prim}: {x} does not fit a right-hand side {y}")
        return ArrayType(y.shape, y.dtype)

    return rule


def _batch_solve(prim):
    """Return the batching rule of a solver: examples that share a matrix are further right-hand sides."""

    def batch(args, dims, size, **params):
        x, y = args
        if dims[0] is not None:
            return prim()(to_front(x, dims[0], size), to_front(y, dims[1], size), **params), 0
        y = move_axis(y, dims[1], y.ndim - 1)
        out = prim()(x, y.reshape((*y.shape[:-2], y.shape[-2] * size)), **params)
        return out.reshape(y.shape), y.ndim - 1

    return batch


_BLOCK = 64  # rows that LAPACK substitutes faster than a split into products of matrices


def _substitute(x, y, unit):
    """Solve upper triangular systems, of which the lower part is not read, from the last row to the first.

    LAPACK's general solver finds nothing to eliminate, so that it is exactly the substitution.
    """
    n = x.shape[-1]
    if n <= _BLOCK:
        x = np.triu(x)
        if unit:
            x[..., range(n), range(n)] = 1
        return np.linalg.solve(x, y)
    h = n // 2
    last = _substitute(x[..., h:, h:], y[..., h:, :], unit)
    first = _substitute(x[..., :h, :h], y[..., :h, :] - np.matmul(x[..., :h, h:], last), unit)
    return np.concatenate((first, last), -2)


def _triangular_solve(x, y, *, lower, unit):
    if not lower:
        return _substitute(x, y, unit)
    turned = np.ascontiguousarray(x[..., ::-1, ::-1]), np.ascontiguousarray(y[..., ::-1, :])
    return np.ascontiguousarray(_substitute(*turned, unit)[..., ::-1, :])


def _triangle(x, lower_, unit):
    """Return the part that a triangular solver reads of its matrices."""
    return lower(x, -unit) if lower_ else upper(x, int(unit))


def _transposed(ct, x, lower, unit):
    return triangular_solve(swap(x), ct, lower=not lower, unit=unit)


triangular_solve = differential(
    "triangular_solve",
    _triangular_solve,
    type=_solve_type("triangular_solve"),
    jvp=(
        lambda t, x, out, *, lower, unit: (
            -triangular_solve(x, mm(_triangle(t, lower, unit), out), lower=lower, unit=unit)
        ),
        lambda t, x, *, lower, unit: triangular_solve(x, t, lower=lower, unit=unit),
    ),
    pull=(
        lambda ct, x, out, *, lower, unit: -_triangle(mm(_transposed(ct, x, lower, unit), swap(out)), lower, unit),
        lambda ct, x, *, lower, unit: _transposed(ct, x, lower, unit),
    ),
    batch=_batch_solve(lambda: triangular_solve),
    gpu="linalg.triangular_solve",
    doc="Solve triangular systems; the other triangle of x is not read, nor is its diagonal, taken as 1, if `unit`.",
)
solve = differential(
    "solve",
    lambda x, y: np.linalg.solve(x, y),
    type=_solve_type("solve"),
    jvp=(lambda t, x, out: -solve(x, mm(t, out)), lambda t, x: solve(x, t)),
    pull=(lambda ct, x, out: -mm(solve(swap(x), ct), swap(out)), lambda ct, x: solve(swap(x), ct)),
    batch=_batch_solve(lambda: solve),
    gpu="linalg.solve",
    doc="The solutions z of x z = y, matrices each.",
)

# ----------------------------------------------------------------------------------------------------- inverses


def _refuse_singular(x, *, why):
    if x.size and not (np.linalg.cond(x, 1) * (16 * np.finfo(x.dtype).eps) < 1).all():
        raise LinAlgError(why)
    return np.array(x)


refuse_singular = differential(
    "refuse_singular",
    _refuse_singular,
    type=square_type("refuse_singular"),
    jvp=lambda t: t,
    pull=lambda ct: ct,
    shift=stay,
    gpu="linalg.refuse_singular",
    doc="x, of which a derivative takes the inverse; LinAlgError, saying why, if it has none to working precision.",
)

inv = differential(
    "inv",
    lambda x: np.linalg.inv(x),
    type=square_type("inv"),
    jvp=lambda t, out: -mm(out, mm(t, out)),
    pull=lambda ct, out: -mm(swap(out), mm(ct, swap(out))),
    shift=stay,
    gpu="linalg.inv",
    doc="Inverses of square matrices.",
)


def _pinv_type(x, *, rtol):
    matrices("pinv", x)
    return ArrayType((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)


def _pinv_tangent(t, x, out):
    """Golub and Pereyra, SIAM Journal on Numerical Analysis 10 (1973), formula (4.12): the rank must not change."""
    th, oh = adjoint(t), adjoint(out)
    left = mm(mm(out, oh), th)
    right = mm(th, mm(oh, out))
    return left - mm(mm(left, x), out) + right - mm(out, mm(x, right)) - mm(out, mm(t, out))


pinv = differential(
    "pinv",
    lambda x, *, rtol: np.linalg.pinv(x, rtol),
    type=_pinv_type,
    jvp=_pinv_tangent,
    shift=stay,
    gpu="linalg.pinv",
    doc="Pseudo-inverses of Moore and Penrose; singular values up to `rtol` times the greatest count as 0. The "
    "derivative is that at constant rank.",
)

# ------------------------------------------------------------------------------------------------- determinants


def _number_type(prim):
    def rule(x):
        square(prim, x)
        return ArrayType(x.shape[:-2], x.dtype)

    return rule


det = differential(
    "det",
    lambda x: np.linalg.det(x),
    type=_number_type("det"),
    jvp=lambda t, x: pairing(cofactors(x), t),
    pull=lambda ct, x: as_number(ct) * cofactors(x),
    shift=stay,
    gpu="linalg.det",
    doc="Determinants; their derivative is exact also where they are 0.",
)

_TAME = 1e3  # up to this condition number the inverse gives cofactors to almost all digits


def _cofactors(x):
    """Return det(x) x⁻ᵀ, by way of singular values where x is singular or nearly so."""
    try:
        inverse = np.linalg.inv(x)
    except LinAlgError:
        return _singular_cofactors(x)
    out = as_number(np.linalg.det(x)) * np.swapaxes(inverse, -1, -2)
    condition = np.linalg.norm(x, axis=(-2, -1)) * np.linalg.norm(inverse, axis=(-2, -1))
    wild = np.asarray(~(condition < _TAME))
    if wild.any():
        out[wild] = _singular_cofactors(x[wild])
    return out


def _without(s):
    """Return for each of the numbers s[..., i] the product of all others."""
    ones = np.ones_like(s[..., :1])
    before = np.cumprod(np.concatenate((ones, s), -1), -1)[..., :-1]
    after = np.cumprod(np.concatenate((ones, s[..., ::-1]), -1), -1)[..., -2::-1]
    return before * after


def _without_two(s):
    """Return for each pair i, j of the descending numbers s the product of all others; 0 for i = j.

    Division is by the greater of the two; if that is 0, all others are different from 0 for the last pair alone.
    """
    n = s.shape[-1]
    i, j = np.minimum.outer(np.arange(n), np.arange(n)), np.maximum.outer(np.arange(n), np.arange(n))
    greater = s[..., i]
    out = np.where(greater == 0, 0, _without(s)[..., j] / np.where(greater == 0, 1, greater))
    out[..., range(n), range(n)] = 0
    if n > 1:
        out[..., -2, -1] = out[..., -1, -2] = np.prod(s[..., :-2], -1)
    return out


def _turned(x):
    """Return the singular value decomposition of x and det(u) det(vh).

    With it cofactors(x) = phase conj(u) cofactors(diag(s)) conj(vh).
    """
    u, s, vh = np.linalg.svd(x)
    return u, s, vh, (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]


def _singular_cofactors(x):
    u, s, vh, phase = _turned(x)
    return phase * np.matmul(u.conj() * _without(s)[..., None, :], vh.conj())


cofactors = differential(
    "cofactors",
    _cofactors,
    type=square_type("cofactors"),
    jvp=lambda t, x: cofactors_change(x, t),
    pull=lambda ct, x: cofactors_change(x, ct),
    shift=stay,
    gpu="linalg.cofactors",
    doc="The derivative of det: det(x) x⁻ᵀ, and its limit where x is singular.",
)


def _cofactors_change(x, y):
    """Differentiate the cofactors of the diagonal matrix of singular values, in their bases, and turn back."""
    u, s, vh, phase = _turned(x)
    y = np.matmul(np.matmul(adjoint(u), y), adjoint(vh))
    others = _without_two(s)
    out = -others * np.swapaxes(y, -1, -2)
    n = s.shape[-1]
    out[..., range(n), range(n)] = np.matmul(others, y[..., range(n), range(n), None])[..., 0]
    return phase * np.matmul(np.matmul(u.conj(), out), vh.conj())


def _third_derivative(t, x, y, out):
    """Return the third derivative of det at regular x along t and y, as a matrix that pairs with a third direction.

    It is that of out = (c Σ(c∘y) - c yᵀ c) / det(x), with c the cofactors of x; of small matrices it is 0.
    """
    if type_of(x).shape[-1] < 3:
        return t * 0
    c = cofactors(x)
    change = cofactors_change(x, t)
    yt = swap(y)
    sums = change * as_number(pairing(c, y)) + c * as_number(pairing(change, y))
    products = mm(change, mm(yt, c)) + mm(c, mm(yt, change))
    return (sums - products - out * as_number(pairing(c, t))) / as_number(det(x))


def _pair_type(x, y):
    matrices("cofactors_change", x, y)
    return square_type("cofactors_change")(x)


cofactors_change = differential(
    "cofactors_change",
    _cofactors_change,
    type=_pair_type,
    jvp=(_third_derivative, lambda t, x: cofactors_change(x, t)),
    pull=(lambda ct, x, y, out: _third_derivative(ct, x, y, out), lambda ct, x: cofactors_change(x, ct)),
    shift=stay,
    gpu="linalg.cofactors_change",
    doc="The derivative of cofactors along y: the second derivative of det. Its own derivative divides by det(x).",
)


def _slogdet_type(x):
    square("slogdet", x)
    return ArrayType(x.shape[:-2], x.dtype), ArrayType(x.shape[:-2], real_dtype(x.dtype))


def _slogdet_tangent(t, x):
    """A change of log det(x) turns the sign, if it is complex, by its imaginary part."""
    rate = pairing(swap(inv(x)), t)
    if x.dtype.kind != "c":
        return None, rate
    return slogdet(x)[0] * (imag(rate) * 1j), real(rate)


def _slogdet_pull(ct, x):
    rate = ct[1]
    if x.dtype.kind == "c":
        rate = rate + imag(ct[0] * slogdet(x)[0]) * 1j
    return as_number(rate) * swap(inv(x))


slogdet = differential(
    "slogdet",
    lambda x: tuple(np.linalg.slogdet(x)),
    type=_slogdet_type,
    outputs=("sign", "logabsdet"),
    jvp=_slogdet_tangent,
    pull=_slogdet_pull,
    shift=stay,
    gpu="linalg.slogdet",
    doc="Sign (of modulus 1 if complex) and logarithm of the modulus of determinants.",
)

# ------------------------------------------------------------------------------------------- the exponential

_DEGREE = 13  # of the Padé approximant, and the 1-norm up to which it is exact in double precision:
_REACH = 5.371920351148152  # Higham, SIAM Journal on Matrix Analysis and Applications 26 (2005), table 2.3
_PADE = [math.factorial(2 * _DEGREE - j) * math.comb(_DEGREE, j) // math.factorial(_DEGREE) for j in range(_DEGREE + 1)]


def _expm(x):
    """Scale by a power of 2, take the Padé approximant, square as often (Higham's algorithm 2.3)."""
    n = x.shape[-1]
    if not x.size:
        return x.copy()
    norms = np.linalg.norm(x, 1, axis=(-2, -1))
    squarings = np.ceil(np.log2(np.maximum(norms / _REACH, 1))).astype(int)[..., None, None]
    y = x / np.exp2(squarings).astype(norms.dtype)
    eye = np.eye(n, dtype=x.dtype)
    y2 = np.matmul(y, y)
    odd, even = (_PADE[k] * eye for k in (13, 12))
    for k in range(_DEGREE - 2, 0, -2):
        odd = np.matmul(odd, y2) + _PADE[k] * eye
        even = np.matmul(even, y2) + _PADE[k - 1] * eye
    odd = np.matmul(odd, y)
    out = np.linalg.solve(even - odd, even + odd)
    for k in range(squarings.max()):
        out = np.where(k < squarings, np.matmul(out, out), out)
    return out


expm = differential(
    "expm",
    _expm,
    type=square_type("expm"),
    jvp=lambda t, x: expm_change(x, t),
    pull=lambda ct, x: expm_change(swap(x), ct),
    shift=stay,
    gpu="linalg.expm",
    doc="Exponentials of square matrices.",
)


def _blocks(x, y):
    """Return the stack of matrices [[x, y], [0, x]]."""
    last = type_of(x).ndim - 1
    above, below = concatenate(x, y, axis=last), concatenate(x * 0, x, axis=last)
    return concatenate(above, below, axis=last - 1)


def _corner(x):
    """Return the upper right quarter of a stack of matrices."""
    n = x.shape[-1] // 2
    return x[..., :n, n:]


def _expm_second(t, x, y):
    """Return the derivative of expm_change(x, y) along x: what holds of expm holds of its derivative."""
    return _corner(expm_change(_blocks(x, y), _blocks(t, t * 0)))


expm_change = differential(
    "expm_change",
    lambda x, y: _corner(_expm(np.block([[x, y], [np.zeros_like(x), x]]))),
    type=_pair_type,
    jvp=(_expm_second, lambda t, x: expm_change(x, t)),
    pull=(None, lambda ct, x: expm_change(swap(x), ct)),
    shift=stay,
    gpu="linalg.expm_change",
    doc="The derivative of expm along y: the corner of the exponential of [[x, y], [0, x]] (Mathias, SIAM Journal on "
    "Matrix Analysis and Applications 17, 1996, theorem 2.1).",
)
