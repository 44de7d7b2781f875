"""Random programs for the tests of generated kernels: a strategy of functions, each with arguments to run it on."""

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

import fgrad
import fgrad.numpy as fnp

FLOATS = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)
UNARY = {
    "tanh": fnp.tanh,
    "sin": fnp.sin,
    "sigmoid": fgrad.nn.sigmoid,
    "softplus": fgrad.nn.softplus,
    "gelu": fgrad.nn.gelu,
    "relu": fgrad.nn.relu,
    "abs": fnp.abs,
    "square": fnp.square,
    "bounded exp": lambda x: fnp.exp(fnp.minimum(x, 1)),
    "root": lambda x: fnp.sqrt(fnp.abs(x) + 1),
    "log1p": lambda x: fnp.log1p(fnp.abs(x)),
    "halved": lambda x: 0.5 * x - 1,
    "transposed": lambda x: x.T,
    "reversed": lambda x: x[::-1] if x.ndim else x,
    "flat": lambda x: x.reshape(-1),
    "grown": lambda x: fnp.broadcast_to(x, (2, *x.shape)) if x.size < 500 else x,
    "picked": lambda x: x[np.array([1, 0, -1]) % len(x)] if x.ndim and len(x) and x.size < 500 else x,
    "picked inside": lambda x: x.T[np.array([[0], [-1]])] if x.ndim and x.shape[-1] and x.size < 500 else x,
}
BINARY = {
    "add": fnp.add,
    "sub": fnp.subtract,
    "mul": fnp.multiply,
    "max": fnp.maximum,
    "tame ratio": lambda x, y: x / (2 + y * y),
    "hypot": lambda x, y: fnp.sqrt(x * x + y * y + 1),
}
REDUCED = {
    "sum": lambda x, axes, keep: x.sum(axes, keepdims=keep),
    "mean": lambda x, axes, keep: x.mean(axes, keepdims=keep),
    "max": lambda x, axes, keep: x.max(axes, keepdims=keep),
    "min": lambda x, axes, keep: x.min(axes, keepdims=keep),
    "logsumexp": lambda x, axes, keep: fgrad.nn.logsumexp(x, axis=axes, keepdims=keep),
}
NESTS = {
    "softmax": lambda x, axis: fgrad.nn.softmax(x, axis=axis),
    "log_softmax": lambda x, axis: fgrad.nn.log_softmax(x, axis=axis),
    "standardize": lambda x, axis: fgrad.nn.standardize(x, axis=axis, epsilon=0.1),
    "centred": lambda x, axis: x - x.mean(axis, keepdims=True),
}

OF_INTEGERS = ("transposed", "reversed", "flat", "grown", "picked", "picked inside", "add", "mul", "max", "sum", "min")
"""What is done with integers and bools as they are; else they become float32."""


def apply(steps, values):
    """Run steps on values, each step adding one; a step that does not fit its operand is left out."""
    values = list(values)
    for kind, name, first, second, axes, keep in steps:
        x = values[first % len(values)]
        if name not in OF_INTEGERS and x.dtype.kind in "iub":
            x = x.astype(np.float32)
        axes = tuple(sorted({a % x.ndim for a in axes})) if x.ndim else ()
        if kind == "unary":
            values.append(UNARY[name](x))
        elif kind == "binary":
            values.append(BINARY[name](x, _fitting(x, values, second)))
        elif kind == "reduced" and x.size:
            values.append(REDUCED[name](x, axes, keep))
        elif kind == "nest" and x.size and axes:
            values.append(NESTS[name](x, axes[0]))
        elif kind == "cast":
            values.append(x.astype(FLOATS[second % len(FLOATS)]))
    return values


def _fitting(x, values, start):
    """Return the first value from `start` on that broadcasts against x without growing beyond reason."""
    for k in range(len(values)):
        y = values[(start + k) % len(values)]
        pairs = zip(reversed(x.shape), reversed(y.shape))
        if all(m == n or 1 in (m, n) for m, n in pairs) and x.size * y.size < 50_000:
            return y
    return x


def steps(most):
    named = [
        st.tuples(st.just(kind), st.sampled_from(sorted(table)))
        for kind, table in (("unary", UNARY), ("binary", BINARY), ("reduced", REDUCED), ("nest", NESTS))
    ]
    kind = st.one_of(*named, st.just(("cast", "")))
    number = st.integers(0, 20)
    step = st.builds(
        lambda kind, *rest: (*kind, *rest),
        kind,
        number,
        number,
        st.lists(st.integers(0, 3), min_size=1, max_size=3),
        st.booleans(),
    )
    return st.lists(step, min_size=1, max_size=most)


@st.composite
def arguments(draw, dtypes=FLOATS, tame=True, sizes=(1, 2, 3, 5, 17)):
    """Draw arrays whose shapes broadcast together: of rank 0 to 4, and now and then empty."""
    shape = draw(st.lists(st.sampled_from(sizes), max_size=4).map(tuple))
    if draw(st.integers(0, 15)) == 0 and shape:
        shape = (*shape[:-1], 0)
    found = []
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    for _ in range(draw(st.integers(1, 3))):
        part = shape[draw(st.integers(0, len(shape))) :]
        part = tuple(1 if draw(st.integers(0, 3)) == 0 else n for n in part)
        x = rng.normal(size=part)
        if not tame:
            x = np.where(rng.random(part) < 0.05, rng.choice([np.nan, np.inf, -np.inf], part), x)
        found.append(np.asarray(x).astype(draw(st.sampled_from(dtypes))))
    return found


@st.composite
def programs(draw, most=8, **options):
    """Draw (function, arguments): a function of arrays that returns one to three arrays."""
    chosen, given = draw(steps(most)), draw(arguments(**options))
    results = draw(st.integers(1, 3))

    def function(*xs):
        return tuple(apply(chosen, xs)[-results:])

    return function, given
