"""Programs of `jax.lax`'s elementary operations: name -> functions of `m` and arrays, with the arrays."""

import numpy as np

X = np.array([0.5, -1.25, 2.0, -0.3])
Y = np.array([1.5, 0.25, -2.0, 0.7])
M = np.array([[0.3, 1.1, -0.7], [2.2, 0.4, 0.9]])
T = np.arange(24.0).reshape(2, 3, 4) % 7 - 2
I = np.array([7, -7, 3, 0])  # noqa: E741
J = np.array([2, 2, -2, 5])
B = np.array([True, False, True, True])
UNIT = np.array([0.1, -0.6, 0.8])
LARGE = np.array([1.1, 2.5, 4.0])
IMAGES = np.sin(np.arange(96.0)).reshape(2, 4, 4, 3)
KERNELS = np.cos(np.arange(54.0)).reshape(3, 3, 3, 2)

ROWS = {}


def rows(names, *args):
    """Enter functions that are called by their names alone."""
    for name in names.split():
        ROWS.setdefault(name, []).append((lambda m, *xs, name=name: getattr(m, name)(*xs), args))


def row(name, fun, *args):
    """Enter one use of a function."""
    ROWS.setdefault(name, []).append((fun, args))


rows(
    "abs neg sign floor ceil round exp exp2 expm1 sin cos tan sinh cosh tanh square cbrt",
    X,
)
rows("reciprocal logistic atan asinh", X)
rows("acos asin atanh erf_inv", UNIT)
rows("acosh log log1p sqrt rsqrt lgamma digamma", LARGE)
rows("erf erfc bessel_i0e bessel_i1e is_finite", X)
rows("add sub mul div rem max min atan2 eq ne lt le gt ge nextafter complex", X, Y)
rows("add sub mul max min eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor", I, J)
rows("div rem", I, J[:3].repeat([1, 1, 2]))
rows("bitwise_not abs neg sign", I)
rows("shift_left shift_right_arithmetic", I, np.abs(J))
rows("bitwise_and bitwise_or bitwise_xor", B, ~B[::-1])
rows("pow", LARGE, UNIT)
rows("igamma igammac zeta", LARGE, LARGE[::-1] + 0.5)
rows("betainc", LARGE, LARGE[::-1], np.abs(UNIT))
rows("real imag conj abs exp sin", X + 1j * Y)
row("polygamma", lambda m, x: [m.polygamma(1.0, x), m.polygamma(2.0, x)], LARGE)
row("round", lambda m, x: m.round(x, m.RoundingMethod.TO_NEAREST_EVEN), np.array([0.5, 1.5, 2.4, -2.5]))
rows("round", np.array([0.5, 1.5, 2.4, -2.5, 0.49999999999999994]))
row("RoundingMethod", lambda m: [int(m.RoundingMethod.AWAY_FROM_ZERO), int(m.RoundingMethod.TO_NEAREST_EVEN)])
row("integer_pow", lambda m, x: m.integer_pow(x, 3), X)
row("clamp", lambda m, x: m.clamp(-1.0, x, 1.5), X)
rows("clamp", X - 2, Y, X + 2)
rows("select", B, X, Y)
rows("select_n", B, X, Y)
rows("select_n", np.array([2, 0, 1, 2]), X, Y, X * Y)

row("iota", lambda m: m.iota(np.float32, 5))
row("broadcasted_iota", lambda m: [m.broadcasted_iota(np.int64, (2, 3), k) for k in (0, 1)])
row("full", lambda m: m.full((2, 3), 1.5))
row("full_like", lambda m, x: [m.full_like(x, 2), m.full_like(x, 2, np.float32), m.full_like(x, 2, shape=(1,))], X)
row("convert_element_type", lambda m, x: [m.convert_element_type(x, t) for t in (np.float32, np.int64)], X)
row("bitcast_convert_type", lambda m, x: m.bitcast_convert_type(x, np.int64), X)
row("reshape", lambda m, x: [m.reshape(x, (3, 2)), m.reshape(x, (6,), (1, 0))], M)
row("transpose", lambda m, x: m.transpose(x, (2, 0, 1)), T)
row("rev", lambda m, x: m.rev(x, (0, 2)), T)
row("broadcast", lambda m, x: m.broadcast(x, (2, 1)), X)
row("broadcast_in_dim", lambda m, x: m.broadcast_in_dim(x, (2, 4, 3), (0, 2)), M)
row("expand_dims", lambda m, x: m.expand_dims(x, (0, 2)), X)
row("squeeze", lambda m, x: m.squeeze(x, (0,)), X[None])
row("collapse", lambda m, x: [m.collapse(x, 1), m.collapse(x, 0, 2)], T)
row("concatenate", lambda m, x, y: m.concatenate([x, y, x], 0), X, Y)
row("stack", lambda m, x, y: m.stack([x, y], 1), X, Y)
row("unstack", lambda m, x: m.unstack(x, 1), M)
row("split", lambda m, x: m.split(x, (1, 0, 2), 1), M)
row("tile", lambda m, x: m.tile(x, (2, 1)), M)
row("pad", lambda m, x, v: m.pad(x, v, [(1, -1, 0), (0, 2, 1)]), M, np.array(9.0))
row("slice", lambda m, x: m.slice(x, (0, 1, 0), (2, 3, 4), (1, 1, 2)), T)
row("slice_in_dim", lambda m, x: [m.slice_in_dim(x, 1, None, axis=2), m.slice_in_dim(x, 0, 3, 2, -2)], T)
row("index_in_dim", lambda m, x: [m.index_in_dim(x, -1, 1), m.index_in_dim(x, 0, keepdims=False)], T)
AT = (np.array(1), np.array(-2), np.array(9))
row("dynamic_slice", lambda m, x, *at: m.dynamic_slice(x, at, (1, 2, 3)), T, *AT)
row("dynamic_slice_in_dim", lambda m, x, i: m.dynamic_slice_in_dim(x, i, 2, 1), T, AT[0])
row(
    "dynamic_index_in_dim",
    lambda m, x, i: [m.dynamic_index_in_dim(x, i, 2), m.dynamic_index_in_dim(x, i, 1, keepdims=False)],
    T,
    AT[1],
)
row("dynamic_update_slice", lambda m, x, u, *at: m.dynamic_update_slice(x, u, at), T, T[:1, 1:, :2] * 0.5, *AT)
row("dynamic_update_slice_in_dim", lambda m, x, u, i: m.dynamic_update_slice_in_dim(x, u, i, 0), X, Y[:2], AT[2])
row(
    "dynamic_update_index_in_dim",
    lambda m, x, u, i: [m.dynamic_update_index_in_dim(x, u, i, 0), m.dynamic_update_index_in_dim(x, u[None], i, 0)],
    M,
    M[1] * 3,
    AT[0],
)

for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"):
    row(name, lambda m, x, name=name: [getattr(m, name)(x, axes) for axes in ((0,), (2, 1), ())], T + 0.1)
    row(name, lambda m, x, name=name: getattr(m, name)(x, (0,)), I.astype(np.int8))
for name in ("reduce_and", "reduce_or", "reduce_xor"):
    row(name, lambda m, x, name=name: getattr(m, name)(x, (0,)), B)
for name in ("argmax", "argmin"):
    row(name, lambda m, x, name=name: getattr(m, name)(x, 1, np.int32), T)
for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
    row(name, lambda m, x, name=name: [getattr(m, name)(x), getattr(m, name)(x, axis=1, reverse=True)], M)
rows("cumsum cumprod cummax", I.astype(np.int8))
row("sort", lambda m, x: [m.sort(x), m.sort(x, dimension=0)], M)
row("sort", lambda m, x, y: m.sort((x, y), num_keys=2), np.array([2, 1, 2, 1]), X)
row("sort", lambda m, x, y: m.sort((x, y)), X, Y)
rows("sort_key_val", X, Y)
row("top_k", lambda m, x: m.top_k(x, 2)[0], M)
rows("dot", M, M.T)
rows("dot", X, Y)
row("dot", lambda m, x, y: m.dot(x, y, preferred_element_type=np.float64), M.astype("float32"), M.T.astype("float32"))
rows("batch_matmul", T, T.swapaxes(1, 2))
row("dot_general", lambda m, x, y: m.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))), T, T.swapaxes(1, 2))
row("dot_general", lambda m, x, y: m.dot_general(x, y, (((1,), (1,)), ((), ()))), M, M)
row("conv", lambda m, x, w: m.conv(x, w, (1, 2), "SAME"), IMAGES.transpose(0, 3, 1, 2), KERNELS.transpose(3, 2, 0, 1))
NHWC = ("NHWC", "HWIO", "NHWC")
for padding in ("SAME", "SAME_LOWER", "VALID", [(1, 0), (2, -1)]):
    row(
        "conv_general_dilated",
        lambda m, x, w, p=padding: m.conv_general_dilated(x, w, (2, 1), p, dimension_numbers=NHWC),
        IMAGES,
        KERNELS,
    )
row(
    "conv_general_dilated",
    lambda m, x, w: m.conv_general_dilated(x, w, (1,), [(1, 2)], (2,), (2,), feature_group_count=2),
    T[:, :2],
    T[:, 1:2],
)
row(
    "conv_with_general_padding",
    lambda m, x, w: m.conv_with_general_padding(x, w, (1,), [(1, 2)], (2,), (1,)),
    T,
    T[:, :, 1:3],
)
row("reduce", lambda m, x: [m.reduce(x, 0.0, m.add, axes) for axes in ((0,), (2, 1), ())], T)
row("reduce", lambda m, x: m.reduce(x, 1.0, m.mul, (0, 2)), T + 0.1)
for padding in ("SAME", "VALID", [(0, 0), (1, 0), (2, 1)]):
    row(
        "reduce_window",
        lambda m, x, p=padding: [
            m.reduce_window(x, -np.inf, m.max, (1, 2, 3), (1, 1, 2), p),
            m.reduce_window(x, 0.0, m.add, (1, 2, 2), (1, 2, 1), p),
        ],
        np.sin(3 * T),
    )
row("reduce_window", lambda m, x: m.reduce_window(x, 0.0, m.add, (2, 2), (1, 1), "VALID", (1, 2), (1, 2)), M)
for padding in ("SAME", "VALID", [(1, 2), (0, 1)]):
    row("conv_transpose", lambda m, x, w, p=padding: m.conv_transpose(x, w, (2, 3), p), IMAGES, KERNELS)
row(
    "conv_transpose",
    lambda m, x, w: m.conv_transpose(x, w, (2,), "SAME", (2,), ("NCH", "OIH", "NCH"), transpose_kernel=True),
    T,
    np.cos(np.arange(24.0)).reshape(3, 2, 4),
)
