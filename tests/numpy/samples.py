"""What to try each public function of `fgrad.numpy` on: at least one row of arguments for every name.

A row is a `Case`. Arrays in it are traced by the laws; everything else (axes, shapes, texts) stays what it is.
"""

from typing import NamedTuple

import numpy as np

RNG = np.random.default_rng(7)
NUMPY = tuple(int(n) for n in np.__version__.split(".")[:2])


class Case(NamedTuple):
    """Arguments of one call, and which laws cannot hold of it."""

    args: tuple
    kwargs: dict
    smooth: bool = True  # derivatives exist here
    known: bool = False  # the result's shape depends on values, which jit and vmap do not have
    batched: bool = True  # a stack of calls has equal shapes
    close: float = 1e-12  # relative tolerance against NumPy


def call(*args, **kwargs):
    """Return a case at which derivatives exist."""
    return Case(args, kwargs)


def rough(*args, **kwargs):
    """Return a case at which derivatives do not exist, or whose numbers are not floating."""
    return Case(args, kwargs, smooth=False)


def known(*args, **kwargs):
    """Return a case that needs known values."""
    return Case(args, kwargs, known=True, batched=False)


def known_rough(*args, **kwargs):
    return Case(args, kwargs, smooth=False, known=True, batched=False)


def alone(*args, **kwargs):
    """Return a case that makes no sense of a batch of different values."""
    return Case(args, kwargs, batched=False)


def floats(*shape, low=-2.0, high=2.0):
    """Return distinct floats that keep clear of zero, integers and one another."""
    n = int(np.prod(shape))
    x = np.linspace(low, high, n + 2)[1:-1] + 0.0137
    return RNG.permutation(x).reshape(shape)


V, W = floats(4), floats(4)
M, N = floats(2, 3), floats(2, 3)
T = floats(2, 3, 4)
SQ = floats(3, 3)
P = floats(2, 3, low=0.1, high=0.9)  # within (0, 1)
UP = np.array([0.3, 1.1, 1.9, 3.2])  # ascending
S = np.array(0.7)
I = np.array([[3, -1, 2], [0, 5, 4]])  # noqa: E741
J = np.array([[1, 2, -3], [4, 3, 2]])
B = np.array([[True, False, True], [False, False, True]])
C = floats(2, 3) + 1j * floats(2, 3)
D = floats(2, 3) + 1j * floats(2, 3)
F4 = M.astype(np.float32)
I1 = np.array([1, 0, 2])
NANS = np.array([[1.5, np.nan, 0.5], [-0.25, 2.0, np.nan]])
EMPTY = np.zeros((0, 3))


def unary(*domains, complex_=True, ints=True):
    """Return cases of an elementwise function of one operand."""
    rows = [call(x) for x in (domains or (M,))]
    rows.append(call(F4 if not domains else domains[0].astype(np.float32)))
    rows += [rough(abs(I) % 2)] * ints + [call(C)] * complex_
    return [*rows, rough(EMPTY)]


def pair(x=M, y=N, ints=True, complex_=True):
    """Return cases of an elementwise function of two operands."""
    rows = [call(x, y), call(x, y[0]), call(x, 1.5), call(x.astype(np.float32), y), rough(EMPTY, y[:1])]
    return [*rows, *[rough(I, J), rough(I, 2)] * ints, *[call(C, D), call(x, D)] * complex_]


def compare():
    return [rough(M, N), rough(I, J), rough(M, M), rough(I, 2), rough(F4, 0.5), rough(B, M)]


def bits():
    return [rough(I, J), rough(B, B[0]), rough(I, 3)]


def reduction(ints=True, complex_=True, where=True):
    """Return cases of a reduction over axes."""
    rows = [call(T), call(T, axis=1), call(T, axis=(0, -1)), call(T, 2, keepdims=True), call(F4, 0), call(S)]
    rows += [rough(I), rough(I.astype(np.int8), 1), rough(B, axis=0)] * ints + [call(C, axis=-1)] * complex_
    return [*rows, *[call(M, where=B), call(M, axis=1, where=B)] * where]


def extreme():
    rows = [call(T), call(T, axis=1), call(T, axis=(0, 2), keepdims=True), rough(I), rough(B, 0), call(F4, 1), call(S)]
    rows += [call(M, initial=0.1), rough(np.zeros((2, 0)), axis=1, initial=3.0), rough(M, where=B, initial=-9.0)]
    return rows


def position():
    return [rough(T), rough(T, axis=1), rough(I, 0), rough(M, axis=1, keepdims=True), rough(M, keepdims=True)]


def running():
    return [call(M), call(T, axis=1), call(T, -1), rough(I), rough(B, axis=1), call(C, 0), call(F4, dtype=np.float64)]


def quantiles(q, many):
    rows = [
        call(F4, many),
        *[call(F4, np.float64(q))] * (NUMPY >= (2, 2)),
        call(M, q),
        call(T, many, axis=1),
        call(T, q, axis=(0, 2), keepdims=True),
        call(M, many, 0),
        rough(I, q),
    ]
    methods = ("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen")
    methods += ("weibull", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest")
    return rows + [call(floats(7), many, method=m) for m in methods] + [call(F4, q), call(S, q)]


ELEMENTWISE = {
    **{name: unary() for name in ("exp", "exp2", "expm1", "sin", "cos", "sinh", "cosh", "tanh", "square", "negative")},
    **{name: unary() for name in ("conjugate", "conj", "absolute", "abs", "sign", "positive", "arcsinh", "asinh")},
    **{name: unary(P, P + 2.0) for name in ("log", "log2", "log10", "sqrt", "reciprocal")},
    "log1p": unary(P),
    "tan": unary(P - 0.5),
    **{name: unary(P - 0.5) for name in ("arctan", "atan")},
    **{name: unary(P - 0.5) for name in ("arcsin", "asin", "arccos", "acos", "arctanh", "atanh")},
    **{name: unary(P + 1.0, ints=False) for name in ("arccosh", "acosh")},
    **{name: unary(M, complex_=False) for name in ("cbrt", "fabs", "floor", "ceil", "trunc", "fix", "sinc", "i0")},
    **{name: unary(complex_=False) for name in ("deg2rad", "rad2deg", "radians", "degrees", "spacing")},
    "rint": unary(),
    **{name: pair() for name in ("add", "subtract", "multiply", "divide", "true_divide")},
    **{name: pair(P, N, ints=False) for name in ("power", "pow")},
    "float_power": pair(P, N),
    **{name: pair(P, P[::-1], ints=False, complex_=False) for name in ("logaddexp", "logaddexp2", "arctan2", "atan2")},
    "hypot": pair(complex_=False),
    **{name: pair(complex_=False) for name in ("maximum", "minimum", "fmax", "fmin", "copysign")},
    **{name: pair(M, N, complex_=False) for name in ("remainder", "mod", "fmod", "floor_divide", "divmod")},
    "nextafter": [rough(M, N), rough(F4, 1.0)],
    "heaviside": [call(M, 0.5), rough(I, N)],
    "ldexp": [call(M, I), call(F4, 3)],
    "frexp": [call(M), rough(np.array([0.0, 1.0, 8.0, np.inf, 5e-324])), call(F4), rough(I)],
    "modf": [call(M), rough(np.array([np.inf, -np.inf, -0.5, -2.0])), call(F4), rough(I)],
    **{name: [rough(I, J), rough(I, 6)] for name in ("gcd", "lcm")},
    **{
        name: compare()
        for name in "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor".split()
    },
    **{name: bits() for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{
        name: [rough(abs(I), abs(J)), rough(I, 2)]
        for name in ("left_shift", "right_shift", "bitwise_left_shift", "bitwise_right_shift")
    },
    **{name: [rough(I), rough(B)] for name in ("invert", "bitwise_not", "bitwise_invert")},
    "bitwise_count": [rough(I)],
    **{name: [rough(M), rough(NANS), rough(I)] for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf")},
    "logical_not": [rough(M), rough(I), rough(B)],
    "signbit": [rough(M), rough(np.array([-0.0, 0.0]))],
    **{name: [call(M), call(C), rough(I)] for name in ("real", "imag")},
    "angle": [call(C), call(P), call(C, deg=True), rough(I)],
    **{name: [rough(C), rough(M), rough(I)] for name in ("iscomplex", "isreal")},
    "real_if_close": [call(M), rough(I)],
    **{name: [rough(C), rough(M), rough([1, 2.0])] for name in ("iscomplexobj", "isrealobj")},
}

REDUCTIONS = {
    "sum": [*reduction(), call(M, initial=2.0), rough(B, dtype=np.float32), call(EMPTY, axis=0)],
    "prod": [*reduction(), call(np.array([[0.0, 2.0], [3.0, 0.5]])), call(M, initial=2.0)],
    "mean": [*reduction(), rough(M.astype(np.float16))],
    "var": [*reduction(), call(M, ddof=1), call(M, axis=0, correction=1), call(M, axis=1, mean=M[:, :1])],
    "std": [*reduction()[:-2], call(M, ddof=1), call(T, axis=1, where=T > -1.5)],
    **{name: extreme() for name in ("max", "min", "amax", "amin")},
    **{
        name: [rough(B), rough(I, 0), rough(T, axis=(0, 2), keepdims=True), rough(M, where=B)]
        for name in ("any", "all")
    },
    "count_nonzero": [rough(I), rough(B, 1), rough(M, axis=0, keepdims=True)],
    "ptp": [call(T), call(T, axis=1), rough(I, 0)],
    **{name: position() for name in ("argmax", "argmin")},
    "average": [
        call(M),
        call(M, 1, P[0]),
        call(M, weights=P),
        rough(I, 0, returned=True),
        call(T, (1, 2), T[0] + 3, keepdims=True),
    ],
    **{name: running() for name in ("cumsum", "cumprod", "nancumsum", "nancumprod")},
    **{
        name: [call(V), call(T, axis=1), rough(I, axis=-1, include_initial=True)]
        for name in ("cumulative_sum", "cumulative_prod")
    },
    **{name: [*reduction()[:6], rough(I), call(NANS), call(NANS, axis=0)] for name in ("nansum", "nanprod", "nanmean")},
    **{name: [call(T), call(NANS), call(NANS, axis=1, keepdims=True), rough(I, 0)] for name in ("nanvar", "nanstd")},
    **{name: [call(T), call(NANS, axis=1), call(NANS), rough(I, 0, keepdims=True)] for name in ("nanmax", "nanmin")},
    **{name: [rough(T), rough(NANS), rough(NANS, axis=1), rough(I, 0)] for name in ("nanargmax", "nanargmin")},
}

SHAPING = {
    "shape": [rough(T), rough([[1, 2]])],
    "ndim": [rough(T), rough(2.0)],
    "size": [rough(T), rough(T, 1), rough(T, -1)],
    "reshape": [call(T, (4, 6)), call(T, -1), call(T, (2, -1), order="F"), rough(I, (3, 2)), call(S, (1, 1))],
    "ravel": [call(T), call(T, "F"), rough(B)],
    "squeeze": [call(T[:, :1]), call(T[:1, :, :1], axis=(0, 2)), call(T[:1], 0)],
    "expand_dims": [call(M, 0), call(M, (0, -1)), rough(I, -1)],
    **{name: [call(S), call(V), call(M, S), call(T)] for name in ("atleast_1d", "atleast_2d", "atleast_3d")},
    **{name: [call(T), call(T, (2, 0, 1)), rough(I), call(T, (-1, 0, 1))] for name in ("transpose", "permute_dims")},
    "matrix_transpose": [call(T), rough(I)],
    "swapaxes": [call(T, 0, -1), call(T, 1, 1)],
    "moveaxis": [call(T, 0, -1), call(T, (0, 1), (2, 0)), call(T, [0, 2], [1, 0])],
    "rollaxis": [call(T, 2), call(T, 0, 3), call(T, 1, 0)],
    "broadcast_to": [call(V, (3, 4)), call(S, (2, 2)), rough(I1[:, None], (3, 2))],
    "broadcast_arrays": [call(M, V[:3]), call(S, M, 1.0)],
    "flip": [call(T), call(T, 1), call(T, (0, 2)), rough(I)],
    "fliplr": [call(M)],
    "flipud": [call(V), call(M)],
    "rot90": [call(M), call(T, 3, (1, 2)), call(T, -2), rough(I, 0), call(M, 1, (1, 0))],
    "roll": [call(T, 5), call(T, 1, 1), call(T, (1, -2), (0, 2)), rough(I, 1, 0), call(T, 2, (0, 1))],
    "repeat": [call(M, 2), call(M, 2, axis=1), call(M, [1, 0, 2], axis=1), call(S, 3)],
    "tile": [call(M, 2), call(V, (2, 3)), call(T, (1, 2, 1)), call(S, 2), rough(I, (2, 1, 1))],
    "resize": [call(M, (3, 3)), call(M, 4), call(V, (0, 2))],
    "diagonal": [call(SQ), call(T, 1, 1, 2), call(T, -1, 0, 2), call(M, 5), rough(I)],
    "diag": [call(V), call(SQ), call(V, 2), call(V, -1), call(M, -1), rough(I1)],
    "diagflat": [call(M), call(V, 1)],
    **{name: [call(SQ), call(T, 1), call(M, -1), call(V), rough(I)] for name in ("tril", "triu")},
    "pad": [
        call(M, 1),
        call(M, (1, 2), constant_values=3.0),
        call(M, ((0, 1), (2, 0)), mode="edge"),
        *[call(M, ((3, 1), (2, 4)), mode=m) for m in ("wrap", "reflect", "symmetric", "linear_ramp", "mean")],
        *[call(M, 2, mode=m) for m in ("maximum", "minimum")],
        call(M, ((1, 1), (2, 2)), constant_values=((1.0, 2.0), (3.0, 4.0))),
        call(M, 2, mode="linear_ramp", end_values=(5.0, -1.0)),
        call(T, ((0, 0), (1, 2), (2, 1)), mode="mean", stat_length=2),
        rough(I, 1, mode="mean"),
        *[rough(I, {1: (1, 2)})] * (NUMPY >= (2, 4)),
    ],
    "concatenate": [
        call([M, N]),
        call([M, N], axis=1),
        call((M, V), axis=None),
        rough([I, M]),
        rough([I, I], dtype=float),
    ],
    "concat": [call([M, N], axis=-1)],
    "stack": [call([M, N]), call([M, N], axis=-1), rough([I, M], 1), call(M), call([S, 2.0, 1])],
    "hstack": [call([V, W]), call([M, N]), call((S, 1.0))],
    "vstack": [call([V, W]), call([M, N]), rough([I1, V[:3]])],
    "dstack": [call([V, W]), call([M, N])],
    "column_stack": [call([V, W]), call([V, T[0].T])],
    "block": [call([[SQ, M.T], [np.ones((1, 5))]]), call([V, 1.0]), call([[M], [N]]), call(S)],
    "append": [call(M, N), call(M, N, axis=0), call(M, 1.0)],
    "array_split": [call(V, 3), call(T, [1, 3], axis=2)],
    "split": [call(V, 2), call(T, [1], axis=1), call(T, 2, 2)],
    "hsplit": [call(V, 2), call(T, [1])],
    "vsplit": [call(T, 2)],
    "dsplit": [call(T, 2)],
    "unstack": [call(M), call(T, axis=-1)],
    "delete": [
        call(V, 1),
        call(M, [0, 2], axis=1),
        call(M, slice(0, 1), 0),
        call(M, 2),
        call(V, [True, False, False, True]),
    ],
    "insert": [
        call(V, 1, 5.0),
        call(V, [0, 3], [1.0, 2.0]),
        call(M, 1, W[:2], axis=1),
        call(M, 1, V[:3], axis=0),
        call(V, 2, W),
        call(M, [0, 2], 9.0, axis=1),
        call(M, [1], N[:, :1], axis=1),
    ],
}

CREATION = {
    "zeros": [rough((2, 3)), rough(3, np.int8), rough([2], dtype="f4")],
    "ones": [rough((2, 3)), rough(3, bool)],
    "empty": [rough((0, 3)), rough(0, np.int8)],
    "full": [call((2, 3), S), rough((2,), 1), rough(2, 7, dtype=np.float32), call((2, 3), V[:3])],
    "zeros_like": [rough(M), rough(I, dtype=float), rough(M, shape=(2,)), rough([1, 2])],
    "ones_like": [rough(M), rough(F4), rough(M, shape=4)],
    "empty_like": [rough(EMPTY), rough(EMPTY, np.int8)],
    "full_like": [call(M, S), rough(I, 2.7), rough(M, 1, shape=(2, 2))],
    "array": [
        call(M),
        call([[S, 1.0], [2.0, S]]),
        rough([1, 2, 3]),
        rough(I, float),
        rough(2.0, ndmin=2),
        rough([True, 2]),
    ],
    "asarray": [call(M), call([S, S]), rough(I, np.float32), rough(3.0)],
    "asanyarray": [call(M)],
    "asarray_chkfinite": [known_rough([1.0, 2.0])],
    "ascontiguousarray": [call(M), call(S)],
    "asfortranarray": [call(V), rough([1, 2])],
    "copy": [call(M), rough(I)],
    "astype": [call(M, np.float32), rough(M, int), rough(I, float), rough(I, bool), rough(I, complex)],
    "arange": [rough(5), rough(1, 7, 2), rough(0.0, 1.0, 0.25), rough(3, dtype=np.float32)],
    "linspace": [
        call(S, 3.0, 5),
        call(S, V, 4, axis=-1),
        call(0.0, S, 3, endpoint=False),
        call(S, 2.0, 4, retstep=True),
        rough(0, 10, 5, dtype=int),
        rough(1, 2, 1),
        rough(F4[0], 2, 3),
    ],
    "logspace": [call(S, 2.0, 4), rough(0, 2, 3), call(0.0, S, 3, base=2.0)],
    "geomspace": [call(S, 9.0, 4), rough(1, 1000, 4)],
    "eye": [rough(3), rough(2, 3, 1, dtype=int)],
    "identity": [rough(3)],
    "tri": [rough(3), rough(2, 3, -1)],
    "indices": [rough((2, 3))],
    "meshgrid": [call(V, W[:2]), call(V, W[:2], S, indexing="ij"), call(V, W, sparse=True)],
    "vander": [call(V), call(V, 3, increasing=True), rough(I1)],
    "fromfunction": [rough(lambda i, j: i + 2 * j, (2, 3))],
    "frombuffer": [rough(b"\x01\x02", np.uint8)],
    "fromiter": [rough([1, 2], float)],
    "fromstring": [rough("1 2", sep=" ")],
    "mask_indices": [rough(3, np.triu)],
    "tril_indices": [rough(3), rough(2, 1, 3)],
    "triu_indices": [rough(3), rough(2, 0, 3)],
    "diag_indices": [rough(3)],
    "tril_indices_from": [rough(SQ)],
    "triu_indices_from": [rough(SQ)],
    "diag_indices_from": [rough(SQ)],
    **{name: [rough(5)] for name in ("bartlett", "blackman", "hamming", "hanning")},
    "kaiser": [rough(5, 2.0)],
}

A34, A45 = floats(3, 4), floats(4, 5)

LINEAR = {
    "matmul": [
        call(A34, A45),
        call(V, A45),
        call(A34, V),
        call(V, W),
        call(T, A45),
        call(A34[:2, :3], T),
        call(T, floats(2, 4, 2)),
        call(T[:, None], floats(5, 4, 2)),
        call(V, floats(2, 4, 3)),
        rough(I, J.T),
        call(C, D.T),
        rough(F4, N.T),
        rough(B, B.T),
    ],
    "vecdot": [call(V, W), call(T, V), call(C, D), call(T, floats(3, 1), axis=-2), rough(I, J)],
    "matvec": [call(A34, V), call(T, floats(2, 4)), rough(I, I1)],
    "vecmat": [call(V, A45), call(floats(2, 3), T), call(C[0], D.T)],
    "dot": [
        call(V, W),
        call(A34, A45),
        call(T, A45),
        call(V, T.swapaxes(1, 2)),
        call(M, S),
        call(2.0, M),
        rough(I, J.T),
    ],
    "vdot": [call(M, N), call(C, D), rough(I, J)],
    "inner": [call(V, W), call(T, V), call(M, S), call(T, T)],
    "outer": [call(V, M), rough(I1, I1), call(S, V)],
    "tensordot": [call(T, A45, 1), call(T, T, 3), call(T, M, ([0, 1], [0, 1])), call(T, M, (1, 1)), call(V, W, 0)],
    "kron": [call(V, M), call(M, SQ), call(T, V), rough(I, J), call(S, M)],
    "trace": [call(SQ), call(T, 1, 1, 2), rough(I)],
    "cross": [
        call(floats(4, 3), floats(3)),
        call(floats(3, 2), floats(3), axisa=0),
        call(SQ, SQ.T, axis=0),
        rough(I, J),
    ],
    "einsum": [
        call("ij,jk->ik", A34, A45),
        call("ij,jk", A34, A45),
        call("ii->i", SQ),
        call("ii", SQ),
        call("ijk->jik", T),
        call("...i,i->...", T, V),
        call("...ij,...jk", T, floats(4, 2)),
        call("ij,kj,kl->il", A34, A34 + 1, A34),
        call("i,j,k->kji", V[:2], V, W[:3]),
        call("ij->", M),
        call("ij,j->ij", M, V[:3]),
        call(A34, [0, 1], A45, [1, 2], [0, 2]),
        call(A34, [0, 1], A45, [1, 2]),
        call("bij,bjk->bik", T, floats(2, 4, 3)),
        call("ij,ij->i", M, N),
        call("ij,ij->i", M, N[:1]),
        call("i,i,i->", V, W, V),
        rough("ij,kj->ik", I, J),
        call("ij,jk,kl,lm->im", A34, A45, A45.T, A34.T, optimize=True),
        call("aab,b->a", floats(3, 3, 2), V[:2]),
        call("ij,jk->ik", C, D.T),
    ],
    "einsum_path": [rough("ij,jk,kl->il", A34, A45, A45.T)],
}

SORTING = {
    "sort": [call(M), call(T, axis=1), call(T, None), rough(I), rough(NANS), rough(B, 0), call(C)],
    "argsort": [rough(M), rough(T, 0), rough(I, None), rough(NANS)],
    "lexsort": [rough((I1, V[:3])), rough((I, J), 0)],
    "partition": [call(np.sort(V), 1)],
    "argpartition": [rough(np.sort(V), 1)],
    "sort_complex": [call(C), call(V), rough(I)],
    "trim_zeros": [
        known_rough(np.array([0, 0, 1, 0, 2, 0])),
        known_rough(np.array([0.0, 1.5, 0.0]), "f"),
        known_rough(0 * I1),
    ],
    "packbits": [rough(B), rough(B, axis=1), rough(np.arange(20) % 3 == 0, bitorder="little"), rough(I, 0)],
    "unpackbits": [rough(abs(I).astype(np.uint8)), rough(abs(I).astype(np.uint8), 1, 5), rough(np.uint8([7]), count=-2)]
    + [rough(np.uint8([200, 3]), None, 20, "little")],
    "searchsorted": [rough(UP, M), rough(UP, V, side="right"), rough(UP, 1.1), rough(UP[::-1], V, sorter=[3, 2, 1, 0])],
    "digitize": [known_rough(M, UP), known_rough(M, UP[::-1]), known_rough(np.array([1.1, 1.9]), UP, right=True)],
    "nonzero": [known_rough(I), known_rough(B)],
    "flatnonzero": [known_rough(I)],
    "argwhere": [known_rough(I), known_rough(np.array(1))],
    "extract": [known(B, M)],
    "compress": [alone([True, False, True], M, axis=1), alone([False, True], M), known(B[0], M, axis=1)],
    "bincount": [known_rough(I1), alone([0, 1, 1, 3], V), known_rough(I1, minlength=6)],
    "isin": [rough(I, [2, 3]), rough(M, M[0], invert=True)],
    "unique": [known(M), known_rough(I, True, True, True), known_rough(np.array([2.0, 1.0, 2.0])), known(M, axis=0)],
    **{name: [known_rough(I)] for name in ("unique_values", "unique_counts", "unique_inverse", "unique_all")},
    "union1d": [known(V, W + 0.1), known_rough(I, J)],
    "intersect1d": [known_rough(I, J), known_rough(I, J, return_indices=True), known_rough(V, V[:2])],
    "setdiff1d": [known_rough(I, J), known_rough(V, V[:2])],
    "setxor1d": [known_rough(I, J), known_rough(V, V[:2])],
}

SELECTING = {
    "where": [call(B, M, N), call(B, M, 0.0), rough(B, I, 2.5), call(B, S, V[:3]), rough(I, 1, 0), known_rough(B)],
    "clip": [
        call(M, -0.5, 0.5),
        call(M, None, 0.5),
        call(M, 0.1, None),
        *[call(M, min=N[0], max=3.0), call(M)] * (NUMPY >= (2, 1)),
        rough(I, 0, 3),
        call(F4, -0.5, 0.5),
        rough(NANS, None, 1.0),
        rough(M, None, np.nan),
    ],
    "select": [call([B, ~B], [M, N]), call([B, M > 0], [M, 2.0], 7.0), rough([I > 0], [I], 1)],
    "piecewise": [call(M, [B, ~B], [lambda x: x * 2, lambda x: -x]), call(V, [V > 0], [lambda x: x**2, 3.0])],
    "choose": [
        call(abs(I) % 2, [M, N]),
        rough(I1, [10, 20, 30]),
        call(I, [M, N], mode="clip"),
        call(I, [M, N], mode="wrap"),
    ],
    "take": [
        call(M, [0, 2], axis=1),
        call(T, I1[:2, None], 1),
        call(M, 4),
        call(M, [7, -1], mode="wrap"),
        call(M, [7, -9], mode="clip", axis=0),
        rough(I, 1, 0),
    ],
    "take_along_axis": [call(M, I % 3, 1), call(M, I[:1] % 2, axis=0), call(M, I1, None)],
    "ravel_multi_index": [rough((I % 2, J % 3), (2, 3)), rough((I1, 1), (3, 4), mode="clip")],
    "unravel_index": [rough(abs(I), (2, 3)), rough(5, (2, 3))],
    **{
        name: [rough(M), rough(M, 1), rough(I), rough(I, -1), rough(C, 1), rough(F4, 2), rough(M * 100, -2)]
        for name in ("round", "around")
    },
    "nan_to_num": [
        call(M),
        rough(NANS),
        rough(np.array([np.inf, -np.inf, 1.0]), nan=1.0, posinf=2.0),
        rough(I),
        call(C),
    ],
    "isclose": [
        rough(M, M + 1e-9),
        rough(NANS, NANS, equal_nan=True),
        rough(I, I),
        rough([np.inf, 1.0], [np.inf, 1.1]),
    ],
    "allclose": [rough(M, M + 1e-9), rough(M, N)],
    "array_equal": [rough(I, I), rough(I, J), rough(I, I1), rough(NANS, NANS, equal_nan=True)],
    "array_equiv": [rough(I1, [I1, I1]), rough(I, [1, 2])],
}

STATISTICS = {
    "quantile": quantiles(0.3, [0.1, 0.75]),
    "percentile": quantiles(30.0, [10, 75]),
    "nanquantile": [
        call(NANS, 0.3),
        call(NANS, [0.1, 0.7], axis=1),
        call(T, 0.5, axis=1),
        call(NANS, 0.3, method="nearest"),
    ],
    "nanpercentile": [call(NANS, 30), call(NANS, [10, 70], axis=0, keepdims=True)],
    "median": [
        call(M),
        call(T, axis=1),
        call(T, (0, 1), keepdims=True),
        rough(I),
        call(floats(5)),
        rough(NANS, axis=1),
    ],
    "nanmedian": [call(NANS), call(NANS, axis=0), call(M, 1)],
    "cov": [
        call(T[0]),
        call(V, W),
        call(T[0], rowvar=False),
        call(V),
        call(T[0], bias=True),
        call(M, fweights=[1, 2, 3]),
        call(M, aweights=P[0]),
        call(M, ddof=0, aweights=P[0]),
        call(C),
    ],
    "corrcoef": [call(T[0]), call(V, W)],
    "histogram": [
        rough(M, [-2.0, 0.0, 1.0, 2.0]),
        rough(M, 4),
        call(np.array([0.1, 0.4, 0.35]), [0.0, 0.3, 0.6], weights=V[:3]),
        rough(M, 3, range=(-1.0, 1.0)),
        rough(M, [-2.0, 0.0, 1.0, 2.0], density=True),
    ],
    "histogramdd": [
        rough(M.T, [3, 2]),
        rough([V, W], 4),
        call(np.array([[0.1, 0.4], [0.6, 0.2], [0.3, 0.9]]), [[0.0, 0.5, 1.0], [0.0, 0.3, 1.0]], weights=V[:3]),
        rough(M.T, 2, range=[(-1, 1), (-2, 2)], density=True),
    ],
    "histogram2d": [rough(V, W, 4), rough(V, W, [4, 5], weights=UP), rough(V, W, [-2.0, -1.0, 0.0, 2.0])],
    "histogram_bin_edges": [call(M, 4), rough(I, [0, 1, 2]), rough(M, 3, range=(0.0, 1.0))],
}

CALCULUS = {
    "diff": [call(V), call(T, 2, 1), call(M, prepend=0.0), call(M, axis=0, append=N), rough(B), rough(I)],
    "ediff1d": [call(M), call(V, 1.0, [2.0, 3.0])],
    "gradient": [
        call(V),
        call(T[:, :, :]),
        call(V, 0.5),
        call(V, UP),
        call(M, axis=1, edge_order=2),
        call(T, 2.0, UP[:3] - 1, axis=(0, 1)),
        call(floats(5), floats(5).cumsum() * 0 + np.arange(5) ** 1.5, edge_order=2),
    ],
    "trapezoid": [call(V), call(V, UP), call(M, dx=0.5, axis=0), call(T, UP[:3], axis=1), call(M, M.cumsum(1))],
    "unwrap": [call(V * 3), call(M * 4, axis=0), rough(np.array([0, 3, 6, 1]), period=6)],
    "interp": [
        call(np.array([0.5, 1.5, 2.5]), UP, V),
        call(np.array([-1.0, 9.0, 1.5]), UP, V, left=-1.0, right=7.0),
        call(np.array([0.1, 5.3]), UP, V, period=3.5),
        call(1.5, UP, V),
        rough(np.array([1, 2]), [1, 3], [10, 20]),
    ],
    **{
        name: [
            call(V, W[:3]),
            call(W[:3], V, "same"),
            call(V, W[:3], mode="valid"),
            call(V, W, "full"),
            rough(I1, [1, 2]),
        ]
        + [call(C[0], D[0][:2], "full"), call(V, W[:2], "same"), call(W[:2], V, "full")]
        for name in ("convolve", "correlate")
    },
    "polyval": [call(V, M), call(V, S), rough(I1, [1, 2]), call([1.0, 2.0], V)],
    **{name: [call(V, W[:2]), rough(I1, [1, 2])] for name in ("polyadd", "polysub", "polymul")},
    "poly": [call(V), rough(I1)],
    "polyfit": [call(UP, V, 2), call(UP, A34.T, 1), call(UP, V, 1, w=UP)],
    "polydiv": [call(W, V[:2]), call(V[:1], W)],
    "polyder": [call(V), call(V, 2), rough(I1)],
    "polyint": [call(V), call(V, 2, [1.0, 2.0]), rough(I1)],
    "apply_along_axis": [call(np.cumsum, 1, M), call(np.sum, 0, T)],
    "apply_over_axes": [call(np.sum, T, (0, 2))],
}

TYPES = {
    "result_type": [rough(M, 1), rough(F4, 2.0), rough(I, np.float32), rough(np.int8, 3)],
    "can_cast": [rough(np.int8, float), rough(float, np.int8, "unsafe")],
    "min_scalar_type": [rough(M), rough(np.int8(3))],
    "common_type": [rough(F4, M), rough(I)],
}

TABLE = ELEMENTWISE | REDUCTIONS | SHAPING | CREATION | LINEAR | SORTING | SELECTING | STATISTICS | CALCULUS | TYPES

LINALG = {
    "norm": [
        call(V),
        call(M),
        call(C),
        *[call(V, o) for o in (1, 3, 0.5, np.inf, -np.inf, -1, 0)],
        *[call(M, o) for o in ("fro", 1, -1, np.inf, -np.inf)],
        call(T, axis=1),
        call(T, 1, axis=(2, 0), keepdims=True),
        call(T, axis=(0, 2)),
        call(T, keepdims=True),
        rough(I, 1, axis=0),
        call(F4),
    ],
    "vector_norm": [call(T), call(T, axis=(0, 1), ord=3), call(V, ord=np.inf, keepdims=True), call(C, axis=0)],
    "matrix_norm": [call(T), call(T, ord=1, keepdims=True), call(M, ord=np.inf)],
    "matrix_power": [call(SQ, 3), call(SQ, 0), call(floats(2, 2, 2), 5), call(SQ, 1)],
    "multi_dot": [call([A34, A45, A45.T]), call([V, A45, floats(5)]), call([A34, A45])],
    "diagonal": [call(T), call(T, offset=1)],
    "trace": [call(T), call(SQ, offset=-1)],
    "outer": [call(V, W)],
    "cross": [call(SQ, SQ.T), call(M, N, axis=-1)],
    "matmul": [call(A34, A45)],
    "tensordot": [call(T, A45, axes=1)],
    "vecdot": [call(V, W), call(C, D, axis=0)],
    "matrix_transpose": [call(T)],
}

NEAR, FAR = floats(2, 3, low=-3.0, high=3.0), np.array([-900.0, -30.0, 40.0, 800.0])
MASK = np.array([[True, False, True], [False, False, False]])


def activation(*more):
    return [call(NEAR), call(FAR), call(F4), rough(I), *more]


NN = {
    **{
        name: activation()
        for name in "relu relu6 sigmoid log_sigmoid softplus sparse_plus sparse_sigmoid soft_sign silu swish mish elu "
        "celu selu leaky_relu squareplus hard_tanh hard_sigmoid hard_silu hard_swish tanh identity".split()
    },
    "gelu": activation(call(NEAR, approximate=False), call(FAR, False)),
    "glu": [call(T), call(T, axis=0), call(T[:, :2], 1)],
    "logsumexp": [
        call(T),
        call(T, axis=1),
        call(T, axis=(0, 2), keepdims=True),
        call(M, b=N, axis=1, return_sign=True),
        call(M, b=P),
        call(M, axis=0, where=B),
        call(M, return_sign=True),
        rough(M, axis=1, where=MASK),
        rough(I, axis=0),
    ],
    "logmeanexp": [call(T), call(T, axis=(0, 1)), call(M, axis=0, where=B[:1] | B, keepdims=True)],
    **{
        name: [call(T), call(T, axis=0), call(T, axis=(0, 2)), call(M, axis=1, where=B), call(F4), rough(I)]
        for name in ("softmax", "log_softmax")
    },
    "standardize": [call(T), call(T, axis=0), call(T, axis=(0, 2)), call(F4), rough(I)],
    "one_hot": [rough(I1, 3), rough(I, 4, axis=0), rough(np.array(2), 3, dtype=np.float32)],
}
