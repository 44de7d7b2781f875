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
)


def expected(name, case):
    """Return what the list says of a row, as a set of words."""
    words = set().union(*(d.what for d in ROWS if name in d.names.split() and d.when(case)))
    return words if case.smooth else words - {"derivative"}
