"""Strategies by name, for primitives whose inputs and parameters depend on each other; entered into `BY_NAME`.

Each is called as `f(draw, rng, smooth)` and returns `(args, params)`.
"""

import numpy as np
from hypothesis import strategies as st

from tests.laws import arrays as a
from tests.laws import matrices  # noqa: F401  (enters its strategies)
from tests.laws.strategies import strategy


def some(draw, rng, shape, smooth, dtypes=a.EVERY, place=0, special=True):
    """Return an array of a drawn dtype, a floating one if `smooth`; with special values if not."""
    dtype = draw(st.sampled_from([d for d in dtypes if not smooth or d in a.INEXACT]))
    return like(draw, rng, shape, dtype, smooth, place, special)


def like(draw, rng, shape, dtype, smooth, place=0, special=True):
    """Return an array of a given dtype, otherwise as `some` does."""
    x = a.values(rng, shape, dtype, place=place)
    return a.with_special(rng, x) if special and not smooth and draw(st.booleans()) else x


def whole(draw, low, high):
    return draw(st.integers(low, high))


@strategy("ldexp")
def _(draw, rng, smooth):
    shape = draw(a.shapes)
    return (some(draw, rng, shape, smooth, a.FLOATS), a.values(rng, shape, "int32")), {}


# -------------------------------------------------------------------------------------------------------- shape


@strategy("reshape")
def _(draw, rng, smooth):
    shape, target = draw(
        st.sampled_from(
            [((6,), (2, 3)), ((2, 3), (3, 2)), ((2, 1, 3), (6,)), ((), (1, 1)), ((1,), ()), ((0, 2), (3, 0))]
        )
    )
    return (some(draw, rng, shape, smooth),), {"shape": target}


@strategy("transpose")
def _(draw, rng, smooth):
    shape = draw(a.shapes)
    return (some(draw, rng, shape, smooth),), {"perm": tuple(draw(st.permutations(range(len(shape)))))}


@strategy("broadcast")
def _(draw, rng, smooth):
    shape = draw(a.shapes)
    narrow = tuple(1 if draw(st.booleans()) else n for n in shape)
    dropped = whole(draw, 0, next((i for i, n in enumerate(narrow) if n != 1), len(shape)))
    narrow = draw(st.sampled_from([narrow, narrow[dropped:]]))
    return (some(draw, rng, narrow, smooth),), {"shape": shape}


INDICES = ((0, 4, 1), (1, 4, 2), (3, None, -1), (2, 0, -1), (4, 0, -2), (1, 1, 1), (0, 4, 3), (-3, None, 1))


@strategy("slice")
def _(draw, rng, smooth):
    shape = draw(st.sampled_from([(), (4,), (4, 5), (4, 1, 5)]))
    index = tuple(draw(st.sampled_from(INDICES)) if n > 1 else (0, 1, 1) for n in shape)
    return (some(draw, rng, shape, smooth),), {"index": index}


@strategy("place")
def _(draw, rng, smooth):
    shape = draw(st.sampled_from([(), (4,), (4, 5), (4, 1, 5)]))
    index = tuple(draw(st.sampled_from(INDICES)) if n > 1 else (0, 1, 1) for n in shape)
    part = tuple(len(range(*slice(*triple).indices(n))) for n, triple in zip(shape, index, strict=True))
    return (some(draw, rng, part, smooth),), {"shape": shape, "index": index}


@strategy("pad")
def _(draw, rng, smooth):
    shape = draw(st.sampled_from([(), (4,), (3, 4), (0, 3), (4, 1, 3)]))
    widths = tuple(
        draw(st.sampled_from([(0, 0, 0), (1, 2, 0), (0, 1, 1), (-1, 2, 0), (2, -1, 2), (-1, -1, 1)]))
        if n >= 3
        else (1, 0, 0)
        for n in shape
    )
    x = some(draw, rng, shape, smooth)
    return (x, like(draw, rng, (), x.dtype, smooth, 1)), {"widths": widths}


@strategy("concatenate")
def _(draw, rng, smooth):
    shape = draw(a.axis_shapes)
    axis = whole(draw, 0, len(shape) - 1)
    first = some(draw, rng, shape, smooth)
    rest = [
        like(draw, rng, (*shape[:axis], whole(draw, 0, 3), *shape[axis + 1 :]), first.dtype, smooth, place)
        for place in range(1, whole(draw, 1, 3))
    ]
    return (first, *rest), {"axis": axis}


@strategy("cast")
def _(draw, rng, smooth):
    x = some(draw, rng, draw(a.shapes), smooth, special=False)
    return (x,), {"dtype": np.dtype(draw(st.sampled_from(a.INEXACT)))}


@strategy("to_integer")
def _(draw, rng, smooth):
    dtypes = (*a.FLOATS, *a.INTS, "bool")
    x = some(draw, rng, draw(a.shapes), smooth, dtypes, special=False)
    return (np.abs(x) if x.dtype.kind == "f" else x,), {"dtype": np.dtype(draw(st.sampled_from((*a.INTS, "bool"))))}


@strategy("bitcast")
def _(draw, rng, smooth):
    size = draw(
        st.sampled_from([("float32", "int32"), ("int64", "float64"), ("float16", "uint16"), ("uint32", "int32")])
    )
    return (a.values(rng, draw(a.shapes), size[0]),), {"dtype": np.dtype(size[1])}


# --------------------------------------------------------------------------------------------- gather and scatter


def indexed(draw, rng):
    """Return a shape, axes to index, the shape B of the indices, and indices (k, *B), also negative and repeated."""
    shape = draw(st.sampled_from([(4,), (4, 3), (3, 4, 2)]))
    axes = draw(st.sampled_from([(0,), (len(shape) - 1,), tuple(range(len(shape)))]))
    batch = draw(st.sampled_from([(), (3,), (2, 2), (0,)]))
    return shape, axes, batch, np.stack([rng.integers(-shape[axis], shape[axis], batch) for axis in axes])


@strategy("gather")
def _(draw, rng, smooth):
    shape, axes, _, i = indexed(draw, rng)
    return (some(draw, rng, shape, smooth), i), {"axes": axes}


@strategy("scatter_add", "scatter_set", "scatter_mul", "scatter_min", "scatter_max")
def _(draw, rng, smooth):
    shape, axes, batch, i = indexed(draw, rng)
    rest = tuple(n for k, n in enumerate(shape) if k not in axes)
    x = some(draw, rng, shape, smooth, (*a.FLOATS, "int64"), special=False)
    return (x, i, like(draw, rng, (*batch, *rest), x.dtype, smooth, 1, special=False)), {"axes": axes}


@strategy("take_along")
def _(draw, rng, smooth):
    shape, axis, i = along(draw, rng)
    return (some(draw, rng, shape, smooth), i), {"axis": axis}


@strategy("put_along_add")
def _(draw, rng, smooth):
    shape, axis, i = along(draw, rng)
    x = some(draw, rng, shape, smooth, (*a.INEXACT, "int64"), special=False)
    return (x, i, like(draw, rng, i.shape, x.dtype, smooth, 1, special=False)), {"axis": axis}


def along(draw, rng):
    """Return a shape, an axis, and indices of full rank that agree with the shape off the axis."""
    shape = draw(st.sampled_from([(4,), (4, 3), (2, 3, 4)]))
    axis = whole(draw, 0, len(shape) - 1)
    n = shape[axis]
    return shape, axis, rng.integers(-n, n, (*shape[:axis], whole(draw, 0, 5), *shape[axis + 1 :]))


@strategy("dynamic_slice")
def _(draw, rng, smooth):
    shape, sizes, i = window(draw, rng)
    return (some(draw, rng, shape, smooth), i), {"sizes": sizes}


@strategy("dynamic_update_slice")
def _(draw, rng, smooth):
    shape, sizes, i = window(draw, rng)
    x = some(draw, rng, shape, smooth)
    return (x, like(draw, rng, sizes, x.dtype, smooth, 1), i), {}


def window(draw, rng):
    """Return a shape, the sizes of a window, and where it starts, which may be outside."""
    shape = draw(st.sampled_from([(4,), (4, 3), (2, 3, 4)]))
    sizes = tuple(whole(draw, 0, n) for n in shape)
    return shape, sizes, rng.integers(-2, 6, len(shape))


# ------------------------------------------------------------------------------------------------ contractions

CONTRACTIONS = (  # shapes of x and y, contract, batch
    ((2, 3), (3, 4), ((1,), (0,)), ((), ())),
    ((3, 2), (4, 3), ((0,), (1,)), ((), ())),
    ((2, 3), (3,), ((1,), (0,)), ((), ())),
    ((3,), (3,), ((0,), (0,)), ((), ())),
    ((2,), (3,), ((), ()), ((), ())),
    ((), (3,), ((), ()), ((), ())),
    ((2, 3, 4), (2, 4, 5), ((2,), (1,)), ((0,), (0,))),
    ((4, 2, 3), (3, 2, 4), ((0, 2), (2, 0)), ((1,), (1,))),
    ((2, 3), (2, 3), ((0, 1), (0, 1)), ((), ())),
    ((2, 3), (2, 3), ((), ()), ((0, 1), (0, 1))),
    ((2, 0), (0, 3), ((1,), (0,)), ((), ())),
    ((0, 3), (3, 2), ((1,), (0,)), ((), ())),
    ((2, 3, 2, 2), (3, 2, 2), ((3, 1), (1, 0)), ((0,), (2,))),
)


@strategy("dot_general")
def _(draw, rng, smooth):
    x_shape, y_shape, contract, batch = draw(st.sampled_from(CONTRACTIONS))
    x = some(draw, rng, x_shape, smooth, special=False)
    return (x, like(draw, rng, y_shape, x.dtype, smooth, 1, special=False)), {"contract": contract, "batch": batch}


@strategy("conv_general")
def _(draw, rng, smooth):
    rank = whole(draw, 0, 2)
    groups = whole(draw, 1, 2)
    n, channels, features = whole(draw, 1, 2), whole(draw, 1, 2), whole(draw, 1, 2)
    kernel = [whole(draw, 1, 3) for _ in range(rank)]
    dilation = [whole(draw, 1, 2) for _ in range(rank)]
    space = [whole(draw, 1, 3) + (k - 1) * d for k, d in zip(kernel, dilation, strict=True)]
    x = some(draw, rng, (n, groups * channels, *space), smooth, a.INEXACT, special=False)
    w = like(draw, rng, (groups * features, channels, *kernel), x.dtype, smooth, 1, special=False)
    return (x, w), {
        "strides": tuple(whole(draw, 1, 2) for _ in range(rank)),
        "padding": tuple((whole(draw, 0, 2), whole(draw, 0, 1)) for _ in range(rank)),
        "x_dilation": tuple(whole(draw, 1, 2) for _ in range(rank)),
        "w_dilation": tuple(dilation),
        "groups": groups,
    }


@strategy("recurrence")
def _(draw, rng, smooth):
    shape = draw(a.axis_shapes)
    x = some(draw, rng, shape, smooth, a.INEXACT, special=False)
    u = like(draw, rng, shape, x.dtype, smooth, 1, special=False)
    return (x, u), {"axis": whole(draw, 0, len(shape) - 1), "reverse": draw(st.booleans())}


# ---------------------------------------------------------------------------------------------------- sorting


@strategy("argsort")
def _(draw, rng, smooth):
    shape = draw(a.axis_shapes)
    keys = [some(draw, rng, shape, smooth, (*a.FLOATS, *a.INTS), k) for k in range(whole(draw, 1, 3))]
    return tuple(keys), {"axis": whole(draw, 0, len(shape) - 1)}


@strategy("sort")
def _(draw, rng, smooth):
    shape = draw(a.axis_shapes)
    x = some(draw, rng, shape, smooth, (*a.FLOATS, *a.INTS, "bool"))
    return (x,), {"axis": whole(draw, 0, len(shape) - 1)}


@strategy("top_k")
def _(draw, rng, smooth):
    shape = draw(a.axis_shapes)
    x = some(draw, rng, shape, smooth, (*a.FLOATS, *a.INTS))
    return (x,), {"k": whole(draw, 0, shape[-1])}


# ------------------------------------------------------------------------------------------------ random numbers

SHAPES_DRAWN = ((), (3,), (2, 2), (0,), (3, 4))


def keys(draw, rng):
    return rng.integers(0, 2**32, (*draw(st.sampled_from([(), (3,)])), 2)).astype(np.uint32)


@strategy("random_bits")
def _(draw, rng, smooth):
    shape = draw(st.sampled_from(SHAPES_DRAWN))
    return (keys(draw, rng),), {"shape": shape, "width": draw(st.sampled_from((8, 16, 32, 64)))}


@strategy("random_uniform", "random_normal")
def _(draw, rng, smooth):
    shape = draw(st.sampled_from(SHAPES_DRAWN))
    return (keys(draw, rng),), {"shape": shape, "dtype": np.dtype(draw(st.sampled_from(a.FLOATS)))}


@strategy("random_fold")
def _(draw, rng, smooth):
    key = keys(draw, rng)
    return (key, a.values(rng, (*key.shape[:-1], *draw(a.shapes)), "uint32")), {}


# ------------------------------------------------------------------------------------------ beside hand-written kernels


def over_axes(draw, rng, smooth):
    """Return an array of floats and some of its axes, at least one."""
    shape = draw(st.sampled_from([(3,), (2, 3), (1, 4), (2, 0), (2, 3, 2)]))
    axes = draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    return some(draw, rng, shape, smooth, a.FLOATS), tuple(sorted(axes))


@strategy("softmax", "log_softmax")
def _(draw, rng, smooth):
    x, axes = over_axes(draw, rng, smooth)
    return (x,), {"axes": axes}


@strategy("standardize")
def _(draw, rng, smooth):
    x, axes = over_axes(draw, rng, smooth)
    return (x,), {"axes": axes, "epsilon": draw(st.sampled_from((0.1, 1.0)))}


@strategy("gelu_tanh")
def _(draw, rng, smooth):
    return (some(draw, rng, draw(a.shapes), smooth, a.FLOATS),), {}


@strategy("philox_kept")
def _(draw, rng, smooth):
    numbers = rng.integers(0, 2**40, draw(a.shapes))
    return (rng.integers(-(2**60), 2**60, ()), numbers), {"rate": draw(st.sampled_from((0.0, 0.3)))}


@strategy("cross_entropy")
def _(draw, rng, smooth):
    rows, columns = draw(st.sampled_from([(1, 1), (3, 4), (0, 2), (2, 7)]))
    labels = rng.integers(0, columns, rows)
    labels[rng.random(rows) < 0.2] = -100
    logits = some(draw, rng, (rows, columns), smooth, a.FLOATS)
    return (logits, labels), {"ignore_index": -100, "label_smoothing": draw(st.sampled_from((0.0, 0.1)))}
