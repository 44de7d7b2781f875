"""What to try each primitive on: a strategy per kind, and care by name where an op needs it.

`cases(prim, smooth)` draws `(args, params)`; with `smooth` they are points where derivatives exist. A primitive that
the defaults do not cover and nobody names raises `NoStrategy`.
"""

import sys
from functools import cache
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

import fgrad
from fgrad.check.table import parameters
from fgrad.core import TABLE
from tests.laws import arrays as a


def _rows():
    """Return the primitives that fgrad itself declares: tests and examples enter more into the table."""
    TABLE.complete()
    floors = (f"{fgrad.__name__}.ops.", f"{fgrad.__name__}.transforms.")
    modules = [m for name, m in sys.modules.items() if name.startswith(floors)]
    ours = {id(x) for m in modules for x in vars(m).values()}
    return [prim for prim in TABLE.values() if id(prim) in ours]


ROWS = _rows()


class NoStrategy(LookupError):
    """No strategy covers a primitive."""


class Care(NamedTuple):
    """What an elementwise primitive, or one of a single array, needs: bounds per input (the last one repeats), dtypes.

    `smooth` are bounds at which to differentiate, where values are defined more widely.
    """

    domain: tuple = ((-2.0, 2.0),)
    ints: tuple = ((-4, 5),)
    dtypes: tuple = a.EVERY
    smooth: tuple | None = None
    why: str = ""


POSITIVE = (0.1, 3.0)
CARE = {
    "log": Care(smooth=(POSITIVE,)),
    "log2": Care(smooth=(POSITIVE,)),
    "log10": Care(smooth=(POSITIVE,)),
    "log1p": Care(smooth=((-0.8, 2.0),)),
    "sqrt": Care(smooth=(POSITIVE,)),
    "rsqrt": Care(smooth=(POSITIVE,)),
    "cbrt": Care(smooth=(POSITIVE,)),
    "asin": Care(smooth=((-0.9, 0.9),)),
    "acos": Care(smooth=((-0.9, 0.9),)),
    "atanh": Care(smooth=((-0.9, 0.9),)),
    "acosh": Care(smooth=((1.2, 3.0),)),
    "erfinv": Care(smooth=((-0.9, 0.9),)),
    "tan": Care(smooth=((-1.2, 1.2),)),
    "atan": Care(smooth=((-0.8, 0.8),), why="complex: branch points at ±i"),
    "asinh": Care(smooth=((-0.8, 0.8),), why="complex: branch points at ±i"),
    "reciprocal": Care(smooth=(POSITIVE,)),
    "div": Care(smooth=((-2.0, 2.0), POSITIVE)),
    "rem": Care(smooth=((-2.0, 2.0), (0.6, 3.0))),
    "fmod": Care(smooth=((-2.0, 2.0), (0.6, 3.0))),
    "pow": Care(
        ints=((-4, 5), (0, 4)), smooth=(POSITIVE, (-2.0, 2.0)), why="NumPy refuses negative integer powers of integers"
    ),
    "xlogy": Care(smooth=((-2.0, 2.0), POSITIVE)),
    "xlog1py": Care(smooth=((-2.0, 2.0), (-0.8, 2.0))),
    "lgamma": Care(smooth=(POSITIVE,)),
    "digamma": Care(smooth=((0.6, 3.0),)),
    "polygamma": Care(smooth=((0.6, 3.0),)),
    "left_shift": Care(ints=((-4, 5), (0, 5)), dtypes=a.INTS, why="a shift by a negative number is undefined"),
    "right_shift": Care(ints=((-4, 5), (0, 5)), dtypes=a.INTS, why="a shift by a negative number is undefined"),
    "max": Care(dtypes=(*a.FLOATS, *a.INTS, "bool"), why="complex numbers have no order"),
    "min": Care(dtypes=(*a.FLOATS, *a.INTS, "bool"), why="complex numbers have no order"),
    "abs": Care(dtypes=(*a.FLOATS, *a.INTS), why="complex numbers have complex_abs"),
    "complex": Care(dtypes=a.FLOATS, why="parts are real"),
    "complex_sign": Care(dtypes=a.COMPLEX, why="real numbers have sign"),
    "conj": Care(dtypes=(*a.INEXACT, *a.INTS), why="NumPy's conjugate of a bool is an int8"),
    "logsumexp": Care(dtypes=a.INEXACT, why="callers cast"),
    "clamp": Care(dtypes=(*a.FLOATS, *a.INTS), why="complex numbers have no order"),
}

CARE.update(
    dict.fromkeys(("lt", "le", "gt", "ge"), Care(dtypes=CARE["max"].dtypes, why="complex numbers have no order"))
)

BY_NAME = {}
"""Strategies for primitives whose inputs or parameters depend on each other: `f(draw, rng, smooth)`."""


def strategy(*names):
    """Register a strategy for primitives by name; it is called as `f(draw, rng, dtype)`."""

    def enter(f):
        BY_NAME.update(dict.fromkeys(names, f))
        return f

    return enter


def cases(prim, smooth=False):
    """Return a strategy for `(args, params)`; NoStrategy if nothing covers the primitive."""
    if prim.name in BY_NAME:
        return _named(BY_NAME[prim.name], prim, smooth)
    missing = [p for p in parameters(prim) if p not in PARAMETERS]
    if missing:
        raise NoStrategy(f"no strategy for parameter {', '.join(missing)} of '{prim.name}': add one to BY_NAME")
    if prim.kind == "elementwise" or prim.declared.get("elementwise"):
        return _elementwise(prim, smooth)
    if len(prim.inputs) == 1 and not prim.inputs[0].startswith("*") and prim.kind != "structured":
        return _one_array(prim, smooth)
    raise NoStrategy(f"no strategy for '{prim.name}' of kind {prim.kind} with inputs {prim.inputs}: add one to BY_NAME")


@st.composite
def _named(draw, f, prim, smooth):
    rng = np.random.default_rng(draw(a.seeds))
    args, params = f(draw, rng, smooth)
    return tuple(a.laid_out(draw, x) if isinstance(x, np.ndarray) else x for x in args), params


# ------------------------------------------------------------------------------------------------ elementwise


@cache
def takes(prim, dtypes):
    """Say whether an elementwise primitive takes inputs of these dtypes, by trying it on ones."""
    samples = [np.ones(1, d) for d in dtypes]
    params = {name: SAMPLES[name] for name in parameters(prim)}
    try:
        with np.errstate(all="ignore"):
            out = prim.impl(*samples, **params)
    except (TypeError, AttributeError):
        return False
    return np.asarray(out).dtype.kind in "biufc"


def dtypes_of(prim, smooth):
    """Return the dtypes that a primitive takes, for all of its inputs alike."""
    care = CARE.get(prim.name, Care())
    usable = [d for d in care.dtypes if takes(prim, (d,) * len(prim.inputs))]
    if smooth:
        usable = [d for d in usable if d in a.INEXACT]
    if not usable:
        raise NoStrategy(f"no strategy for '{prim.name}': it takes none of the usual dtypes; add it to CARE or BY_NAME")
    return usable


@st.composite
def _elementwise(draw, prim, smooth):
    rng = np.random.default_rng(draw(a.seeds))
    care = CARE.get(prim.name, Care())
    n = len(prim.inputs)
    usable = dtypes_of(prim, smooth)
    dtype = draw(st.sampled_from(usable))
    dtypes = [dtype] + [draw(st.sampled_from([dtype, dtype, *usable])) for _ in range(n - 1)]
    if not takes(prim, tuple(dtypes)):
        dtypes = [dtype] * n
    shape = draw(a.shapes)
    special = not smooth and draw(st.booleans())
    domains = care.smooth if smooth and care.smooth else care.domain
    args = []
    for i, d in enumerate(dtypes):
        domain, ints = domains[min(i, len(domains) - 1)], care.ints[min(i, len(care.ints) - 1)]
        x = a.values(rng, _narrowed(draw, shape) if i else shape, d, domain, ints, i)
        x = a.laid_out(draw, a.with_special(rng, x) if special else x)
        python = prim.declared.get("operator") and n > 1 and x.ndim == 0 and x.dtype.name in PYTHON
        args.append(np.abs(x).item() if python and draw(st.booleans()) else x)  # uint8 refuses negative Python ints
    return tuple(args), {name: PARAMETERS[name](draw, shape) for name in parameters(prim)}


SAMPLES = {"order": 1, "n": 1}
"""A value for each parameter of elementwise primitives, to try dtypes with."""

PYTHON = ("float64", "complex128", "int64", "bool")


def _narrowed(draw, shape):
    """Return a shape that broadcasts to `shape`: axes of size 1, leading axes dropped."""
    how = draw(st.sampled_from(("same", "same", "ones", "dropped", "scalar")))
    if how == "ones":
        return tuple(1 if draw(st.booleans()) else n for n in shape)
    return {"same": shape, "dropped": shape[1:], "scalar": ()}[how]


# ----------------------------------------------------------------------------------- one array and parameters

PARAMETERS = {
    "axes": lambda draw, shape: tuple(i for i in range(len(shape)) if draw(st.booleans())),
    "axis": lambda draw, shape: draw(st.integers(0, len(shape) - 1)),
    "reverse": lambda draw, shape: draw(st.booleans()),
    "name": lambda draw, shape: "activations",
    "order": lambda draw, shape: draw(st.integers(0, 3)),
    "n": lambda draw, shape: draw(st.integers(1, 3)),
}


def accepts(prim, dtype, params):
    """Say whether a primitive of one array takes a dtype, by trying it on ones."""
    try:
        with np.errstate(all="ignore"):
            prim.impl(np.ones((1, 1, 1), dtype), **params)
    except TypeError:
        return False
    return True


@st.composite
def _one_array(draw, prim, smooth):
    rng = np.random.default_rng(draw(a.seeds))
    care = CARE.get(prim.name, Care())
    names = parameters(prim)
    shape = draw(a.axis_shapes if "axis" in names else a.shapes)
    if prim.name in NEED_ENTRIES or smooth:
        shape = tuple(max(n, 1) for n in shape)
    params = {name: PARAMETERS[name](draw, shape) for name in names}
    usable = [d for d in care.dtypes if accepts(prim, d, params) and not (smooth and d not in a.INEXACT)]
    domains = care.smooth if smooth and care.smooth else care.domain
    x = a.values(rng, shape, draw(st.sampled_from(usable)), domains[0], care.ints[0])
    if not smooth and draw(st.booleans()):
        x = a.with_special(rng, x)
    return (a.laid_out(draw, x),), params


WITHOUT_LAWS = {
    "call": "holds a Program: laws of its meaning under every transform are in tests/transforms/test_jit.py",
    "cond": "holds Programs: tests/transforms/test_control.py",
    "scan": "holds a Program: tests/transforms/test_control.py",
    "while_loop": "holds Programs: tests/transforms/test_control.py",
    "callback_call": "it has no derivative: tests/transforms/test_callback.py",
    "linear_solve": "holds Programs: tests/transforms/test_implicit.py",
    "custom_jvp_call": "its derivative is the user's: tests/transforms/test_custom.py",
    "custom_vjp_call": "its derivative is the user's: tests/transforms/test_custom.py",
    "checkpoint_call": "holds a function: tests/transforms/test_checkpoint.py",
    "psum": "has a meaning only inside a vmap that names the axis: tests/transforms/test_vmap.py",
    "all_gather": "as psum: tests/transforms/test_vmap.py",
    "own_part": "as psum: tests/transforms/test_vmap.py",
    "own_place": "as psum: tests/transforms/test_vmap.py",
    "axis_index": "as psum: tests/transforms/test_vmap.py",
}
"""Primitives that the laws are not run on, with the reason and the tests that stand in for them."""

NEED_ENTRIES = {"reduce_max", "reduce_min", "argmax", "argmin"}
"""Primitives that refuse an empty axis, as NumPy does; logsumexp of nothing is -inf, where nothing is smooth."""
