"""Reference values: the workload in plain NumPy and float64, differentiated by central differences.

A derivative is compared along a random direction, on which every entry of it has a part.
"""

import functools

import numpy as np

from benchmarks.names import composed
from benchmarks.workloads import RATE

STEP = 1e-6
SECOND_STEP = 1e-4
TOLERANCE = {"f": 2e-3, "d": 1e-6}
"""Relative, by the dtype of the parameters; float32 results are sums of float32."""


def wide(x):
    """Return parameters or data in float64, integers as they are."""
    if isinstance(x, dict):
        return {name: wide(value) for name, value in x.items()}
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def directions(params, seed):
    """Return random numbers of the shapes of the parameters."""
    rng = np.random.default_rng(seed)
    if isinstance(params, dict):
        return {name: rng.standard_normal(p.shape) for name, p in params.items()}
    return rng.standard_normal(np.shape(params))


def along(params, direction, distance):
    """Return the parameters moved along a direction."""
    if isinstance(params, dict):
        return {name: p + distance * direction[name] for name, p in params.items()}
    return params + distance * direction


def inner(x, direction):
    """Return the sum of products over parameters; leading axes of `x` that `direction` lacks stay."""
    if isinstance(x, dict):
        return sum(inner(x[name], direction[name]) for name in direction)
    x = np.asarray(x, np.float64)
    axes = tuple(range(x.ndim - direction.ndim, x.ndim))
    return (x * direction).sum(axes)


def difference(f, params, direction):
    """Return the derivative of `f` along a direction."""
    h = STEP / np.sqrt(inner(direction, direction))
    return (f(along(params, direction, h)) - f(along(params, direction, -h))) / (2 * h)


def second_difference(f, params, u, v):
    """Return the second derivative of `f` along two directions."""
    h = SECOND_STEP
    ahead = f(along(along(params, u, h), v, h)) + f(along(along(params, u, -h), v, -h))
    across = f(along(along(params, u, h), v, -h)) + f(along(along(params, u, -h), v, h))
    return (ahead - across) / (4 * h * h)


def expected(workload):
    """Return the numbers that results are compared by: the value, if asked for, and derivatives along directions."""
    params, *data = wide_arguments(workload)
    f = functools.partial(workload.function, composed(np))
    u, v = directions(params, 1), directions(params, 2)
    if workload.kind == "hessian":
        return [second_difference(lambda p: f(p, *data), params, u, v)]
    if workload.kind == "per_example":
        rows = zip(*data, strict=True)
        return [np.array([difference(lambda p, row=row: f(p, *row), params, u) for row in rows])]
    derivative = difference(lambda p: f(p, *data), params, u)
    return [f(params, *data), derivative] if workload.kind in ("value_and_gradient", "step") else [derivative]


def found(workload, result):
    """Return the same numbers of a result in NumPy arrays."""
    params = wide_arguments(workload)[0]
    u, v = directions(params, 1), directions(params, 2)
    if workload.kind == "hessian":
        return [inner(np.asarray(result) @ v, u)]
    if workload.kind == "value_and_gradient":
        return [result[0], inner(result[1], u)]
    if workload.kind == "step":
        return [result[0], (inner(params, u) - inner(result[1], u)) / RATE]
    return [inner(result, u)]


def wide_arguments(workload):
    return tuple(wide(x) for x in workload.arguments())


def check(workload, result, wanted, who):
    """Raise AssertionError if a result, in NumPy arrays, is not what the reference says."""
    first = workload.arguments()[0]
    kinds = {np.asarray(p).dtype.char for p in (first.values() if isinstance(first, dict) else [first])}
    tolerance = max(TOLERANCE[kind] for kind in kinds)
    for x, y in zip(found(workload, result), wanted, strict=True):
        scale = np.abs(y).max()
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * scale, err_msg=f"{workload.key} by {who}")
