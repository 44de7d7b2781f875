"""Where fgrad and jax differ, and why: the one list. Tests assert that each entry differs as written, and nothing else.

`ROWS` speaks of rows of the samples, `CORNERS` of single points.
"""

from typing import NamedTuple

import numpy as np

from fgrad import tree

NUMPYS_TYPE = "the dtype is NumPy's"
NUMPYS_ARGUMENTS = "NumPy takes this argument, jax does not implement it"
EXACT = "the derivative is the exact one"
CHECKED = "a position out of bounds raises here too; jax cannot look at traced positions"


class Difference(NamedTuple):
    """Names of functions, what differs, why, and in which rows."""

    names: str
    what: set  # of "refused", "dtype", "shape", "value", "derivative", "batch"
    reason: str
    when: object = lambda case: True


def _arrays(case):
    return [x for x in tree.leaves((case.args, case.kwargs)) if isinstance(x, np.ndarray)]


def _kind(kinds):
    """Hold of rows whose first array has a dtype of these kinds."""
    return lambda case: [x.dtype.kind in kinds for x in _arrays(case)][:1] == [True]


def _narrow(case):
    return case.args[0].dtype in (np.int8, np.bool_)


def _float32_by_float64(case):
    """Hold of rows of float32 with weights or positions that are float64 and no Python number."""
    return case.args[0].dtype == np.float32 and type(case.args[1]) is not float


def _given(name, *values):
    """Hold of rows with a keyword, of some value if any are listed."""
    return lambda case: name in case.kwargs and (not values or case.kwargs[name] in values)


def _completed(case):
    """Hold of rows that ask for further singular vectors, and are differentiated."""
    rows, columns = case.args[0].shape[-2:]
    return case.smooth and rows != columns and len(case.args) == 1 and not case.kwargs


ROWS = (
    Difference("mean var std", {"dtype"}, NUMPYS_TYPE, _narrow),
    Difference("tri", {"dtype"}, NUMPYS_TYPE),
    Difference("argpartition searchsorted digitize", {"dtype"}, "positions are int64, as everywhere in NumPy"),
    Difference(
        "histogram",
        {"dtype"},
        "counts are integers, as in NumPy",
        lambda case: not case.kwargs.keys() & {"weights", "density"},
    ),
    Difference(
        "histogram2d histogramdd",
        {"dtype"},
        NUMPYS_TYPE,
        lambda case: not case.kwargs.keys() & {"weights", "density"} and not isinstance(case.args[0], list),
    ),
    Difference("histogramdd", {"refused"}, NUMPYS_ARGUMENTS, lambda case: isinstance(case.args[0], list)),
    Difference(
        "polydiv",
        {"shape", "derivative"},
        "the remainder is as short as NumPy's",
        lambda case: case.args[0].size >= case.args[1].size,
    ),
    Difference("result_type", {"value"}, NUMPYS_TYPE, lambda case: case.args[1] is np.float32),
    Difference("histogram_bin_edges", {"dtype"}, NUMPYS_TYPE, _kind("i")),
    Difference("convolve correlate polymul polyder", {"dtype"}, NUMPYS_TYPE, _kind("i")),
    Difference("quantile percentile", {"dtype"}, NUMPYS_TYPE, _float32_by_float64),
    Difference("reciprocal", {"dtype", "value"}, "integers have integer reciprocals, as in NumPy", _kind("i")),
    Difference(
        "frexp",
        {"value"},
        "subnormal numbers are taken apart; jax flushes them",
        lambda case: (abs(case.args[0]) == 5e-324).any(),
    ),
    Difference(
        "modf", {"value"}, "infinities have parts, as in NumPy", lambda case: not np.isfinite(case.args[0]).all()
    ),
    Difference("partition", {"value", "derivative"}, "only the place of the k-th element is determined"),
    Difference("unique_values", {"value"}, "the order is NumPy's, which is any"),
    Difference("einsum_path", {"value"}, "the report is NumPy's text"),
    Difference("sign", {"derivative"}, f"{EXACT}; jax says 0", _kind("c")),
    Difference("arccosh acosh", {"derivative"}, f"{EXACT}; jax's has the other sign for Re z < 0", _kind("c")),
    Difference("unique union1d", {"derivative"}, f"{EXACT}; jax says 0", _kind("f")),
    Difference("spacing", {"derivative"}, "0 almost everywhere; jax has no rule", _kind("f")),
    Difference(
        "std", {"derivative"}, "0 where all values are equal; jax says NaN", lambda case: case.args[0].size == 1
    ),
    Difference(
        "logsumexp logmeanexp",
        {"derivative"},
        "0 where all elements are masked; jax says NaN",
        lambda case: "where" in case.kwargs and not case.kwargs["where"].any(case.kwargs["axis"]).all(),
    ),
    Difference("sigmoid silu swish", {"refused"}, "integers are taken as floats", _kind("i")),
    Difference(
        "choose ravel_multi_index", {"batch"}, CHECKED, lambda case: case.kwargs.get("mode", "raise") == "raise"
    ),
    Difference("permute_dims", {"refused"}, NUMPYS_ARGUMENTS, lambda case: case.args[1:] != ((2, 0, 1),)),
    Difference("tril triu", {"refused"}, "a vector makes a matrix, as in NumPy", lambda case: case.args[0].ndim == 1),
    Difference("pad", {"refused"}, NUMPYS_ARGUMENTS, lambda case: isinstance(case.args[1], dict)),
    Difference("meshgrid", {"refused"}, NUMPYS_ARGUMENTS, lambda case: any(x.ndim == 0 for x in case.args)),
    Difference("fromiter", {"refused"}, "jax refuses on principle"),
    Difference(
        "round around",
        {"refused"},
        NUMPYS_ARGUMENTS,
        lambda case: _kind("i")(case) and min(case.args[1:], default=0) < 0,
    ),
    Difference(
        "quantile percentile",
        {"refused"},
        NUMPYS_ARGUMENTS,
        _given(
            "method",
            "averaged_inverted_cdf",
            "closest_observation",
            "interpolated_inverted_cdf",
            "hazen",
            "weibull",
            "median_unbiased",
            "normal_unbiased",
        ),
    ),
    Difference("gradient", {"refused"}, NUMPYS_ARGUMENTS, _given("edge_order")),
    Difference(
        "eigh eigvalsh",
        {"derivative"},
        "a triangle that is named is read alone, as in NumPy; jax takes the symmetric part",
        lambda case: len(case.args) > 1,
    ),
    Difference("eig", {"derivative"}, f"{EXACT}; jax refuses that of eigenvectors"),
    Difference("svd", {"derivative"}, f"{EXACT}; jax refuses that of full matrices", _completed),
    Difference("lstsq", {"dtype"}, "the rank is of NumPy's type"),
    Difference(
        "lstsq",
        {"shape", "derivative"},
        "there are residuals of what is overdetermined only, as in NumPy",
        lambda case: len(case.args[0]) <= len(case.args[0].T),
    ),
)


def expected(name, case):
    """Return what the list says of a row, as a set of words."""
    words = set().union(*(d.what for d in ROWS if name in d.names.split() and d.when(case)))
    return words if case.smooth else words - {"derivative"}


# ------------------------------------------------------------------------------------------------------- points

FINITE = "corners are finite where a subgradient exists"
BOUNDS = "positions out of bounds raise, as in NumPy"
NAN, INF = np.nan, np.inf
ZEROS = np.zeros(3)


class Corner(NamedTuple):
    """A program of a module, what it gives with fgrad and with jax (values, or the class of an error), and why."""

    name: str
    program: object
    ours: object
    theirs: object
    reason: str


def _slope(f):
    """Return the program that differentiates the sum of `f(numpy, x)` at some points."""
    return lambda *x: lambda m: m.grad(lambda x: m.numpy.sum(f(m.numpy, x)))(*x)


def _both(find, x, y):
    """Return the program that differentiates a function of two numbers by both."""
    return lambda m: m.grad(find(m), (0, 1))(x, y)


def _custom_vjp_pushed(m):
    f = m.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x, x), lambda x, ct: (3.0 * ct * x,))
    return m.jvp(f, (2.0,), (1.0,))


def _type_of_sum(x, y):
    return lambda m: m.numpy.add(x, y).dtype.name


def _ties(m):
    return np.asarray(m.grad(m.numpy.max)(np.ones(70_000, np.float16)), float).sum().round(1)


CORNERS = (
    Corner("abs", _slope(lambda n, x: n.abs(x))(np.array([0.0, -0.0])), [0, 0], [1, 1], FINITE),
    Corner("abs to a power", _slope(lambda n, x: n.abs(x) ** 1.0)(0.0), 0, 1, FINITE),
    Corner("norm", _slope(lambda n, x: n.linalg.norm(x))(ZEROS), [0, 0, 0], [NAN] * 3, FINITE),
    Corner("1-norm", _slope(lambda n, x: n.linalg.norm(x, 1))(ZEROS), [0, 0, 0], [1, 1, 1], FINITE),
    Corner("std", _slope(lambda n, x: n.std(x))(ZEROS), [0, 0, 0], [NAN] * 3, FINITE),
    Corner("power 0", _slope(lambda n, x: n.power(x, 0.0))(0.0), 0, NAN, FINITE),
    Corner("power 0, by an array", _slope(lambda n, x: n.power(x, ZEROS))(ZEROS), [0, 0, 0], [NAN] * 3, FINITE),
    Corner("power 0, twice", lambda m: m.grad(m.grad(lambda x: x**0.0))(0.0), 0, NAN, FINITE),
    Corner("arctan2", _both(lambda m: m.numpy.arctan2, 0.0, 0.0), [0, 0], [NAN, NAN], FINITE),
    Corner("hypot", _both(lambda m: m.numpy.hypot, 0.0, 0.0), [0, 0], [0.5, 0.5], FINITE),
    Corner("logaddexp", _both(lambda m: m.numpy.logaddexp, -INF, -INF), [0, 0], [NAN, NAN], FINITE),
    Corner("logsumexp", lambda m: m.grad(m.nn.logsumexp)(np.full(3, -INF)), [0, 0, 0], [NAN] * 3, FINITE),
    Corner("logsumexp of inf", lambda m: m.grad(m.nn.logsumexp)(np.array([INF, 0.0])), [1, 0], [NAN, 0], FINITE),
    Corner("many ties", _ties, 1.0, 0.0, "shares among the tied sum to 1 in every dtype"),
    Corner(
        "clip",
        _slope(lambda n, x: n.clip(x, -1.0, 1.0))(np.array([-2.0, -1.0, 0.0, 1.0, 2.0])),
        [0, 1, 1, 1, 0],
        [0, 0.5, 1, 0.5, 0],
        "a value at a bound belongs to the operand",
    ),
    Corner("indexing", lambda m: m.numpy.arange(5)[np.array([7])], IndexError, [4], BOUNDS),
    Corner("indexing by a number", lambda m: m.numpy.arange(5)[-9], IndexError, 0, BOUNDS),
    Corner("take", lambda m: m.numpy.take(np.arange(5.0), np.array([7])), IndexError, [NAN], BOUNDS),
    Corner("writing", lambda m: m.numpy.zeros(3).at[7].set(1.0), IndexError, [0, 0, 0], BOUNDS),
    Corner("lists", lambda m: m.numpy.sum([1.0, 2.0]), 3.0, TypeError, "lists are arrays, as in NumPy"),
    Corner(
        "float and int arrays",
        _type_of_sum(np.ones(2, np.float32), np.ones(2, np.int64)),
        "float64",
        "float32",
        NUMPYS_TYPE,
    ),
    Corner("half of bytes", lambda m: m.numpy.sin(np.ones(2, np.int8)).dtype.name, "float16", "float32", NUMPYS_TYPE),
    Corner(
        "integer division by 0",
        lambda m: m.numpy.floor_divide(np.array([1]), np.array([0])),
        [0],
        [-2],
        "the value is NumPy's",
    ),
    Corner(
        "negative power of integers",
        lambda m: m.numpy.power(np.array([2]), -1),
        ValueError,
        TypeError,
        "the error is NumPy's",
    ),
    Corner(
        "item",
        lambda m: m.grad(lambda x: x.item() * x)(2.0),
        TypeError,
        2.0,
        "a number out of grad cuts the derivative",
    ),
    Corner(
        "NumPy's functions",
        lambda m: m.grad(lambda x: np.square(x))(2.0),
        4.0,
        TypeError,
        "NumPy's functions take traced values",
    ),
    Corner(
        "updates by products",
        lambda m: m.grad(lambda x: m.numpy.sum(m.numpy.ones(3).at[np.array([1, 1])].multiply(x)))(2.0),
        4.0,
        NotImplementedError,
        "repeated positions multiply, with their derivative",
    ),
    Corner(
        "custom_vjp in forward mode",
        _custom_vjp_pushed,
        [4.0, 6.0],
        TypeError,
        "a pullback that is linear has a forward mode",
    ),
    Corner(
        "ppermute",
        lambda m: m.vmap(lambda v: m.lax.ppermute(v, "i", [(0, 1)]), axis_name="i")(ZEROS + 1),
        [0, 1, 0],
        AssertionError,
        "a position that receives nothing gets 0",
    ),
)
