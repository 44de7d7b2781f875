"""The workloads: each is one function and its numbers, written once for all libraries.

A function takes `m`, the names that a library fills in (see `libraries`), then the parameters to differentiate by, then
data. It returns a scalar. This module imports NumPy alone where it can: a process of its own is timed from its start.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

RATE = 0.1
"""Of the gradient steps of W4 and W5."""


class Workload(NamedTuple):
    """What is computed: `kind` (a method of a library) of `function` at `arguments()`, parameters first.

    `per` is how many times the unit of work is done, for figures per operation.
    """

    key: str
    title: str
    kind: str
    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    per: int = 1


def _rng():
    return np.random.default_rng(0)


def _normal(rng, *shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


# ------------------------------------------------------------------------------------------------- small and scalar


def twenty_operations(m, x):
    """Return a number after 20 elementary operations on one number."""
    a = m.sin(x) * 1.5 + m.exp(-x)
    b = m.tanh(a * x) - m.log(x + 2.0)
    c = m.sqrt(b * b + 1.0) / (a + 3.0)
    return m.cos(c) * b + a * c - m.sin(b * 0.5)


def scalar():
    return Workload("W1", "20 operations on one float", "gradient", twenty_operations, lambda: (0.7,))


def rosenbrock_of(m, x):
    """Return Rosenbrock's function. Source: Rosenbrock (1960), in its extended form."""
    head, tail = x[:-1], x[1:]
    return m.sum(100.0 * (tail - head**2) ** 2 + (1.0 - head) ** 2)


def rosenbrock(n, key="W2"):
    """Return the workload for `n` numbers."""
    return Workload(key, f"Rosenbrock, n = {n}", "gradient", rosenbrock_of, lambda: (np.linspace(-1.0, 1.5, n),))


def logistic_loss(m, weights, features, signs):
    """Return the mean logistic loss of labels -1 and 1."""
    return m.mean(m.softplus(-signs * (features @ weights)))


def _cancer():
    from sklearn.datasets import load_breast_cancer  # here, for it is slow to import

    data = load_breast_cancer()
    features = (data.data - data.data.mean(0)) / data.data.std(0)
    return np.full(30, 0.1), features, data.target * 2.0 - 1.0


def logistic():
    return Workload("W3", "logistic regression, 569 × 30", "gradient", logistic_loss, _cancer)


def rotated_tanh(m, x, matrix):
    """Return a small function whose Hessian is full."""
    return m.sum(m.tanh(matrix @ x) ** 2)


def small_hessian(n=50):
    def arguments():
        rng = _rng()
        return rng.standard_normal(n), rng.standard_normal((n, n)) / n**0.5

    return Workload("W7", f"Hessian, {n} × {n}", "hessian", rotated_tanh, arguments)


# ----------------------------------------------------------------------------------------------------------- networks


def perceptron_loss(m, params, inputs, labels):
    """Return the mean cross-entropy of a network of three layers with relu between."""
    hidden = m.relu(inputs @ params["w1"] + params["b1"])
    hidden = m.relu(hidden @ params["w2"] + params["b2"])
    return m.cross_entropy(hidden @ params["w3"] + params["b3"], labels)


def _layers(*widths):
    rng = _rng()
    params = {}
    for k, (a, b) in enumerate(pairwise(widths), 1):
        params[f"w{k}"] = _normal(rng, a, b, scale=(2 / a) ** 0.5)
        params[f"b{k}"] = np.zeros(b, np.float32)
    return params


def _digits(batch):
    from sklearn.datasets import load_digits  # here, for it is slow to import

    digits = load_digits()
    rows = np.arange(batch) % len(digits.target)
    return (digits.data[rows] / 16).astype(np.float32), digits.target[rows]


def digits_step(batch=128, key="W4"):
    """Return the workload of one step of gradient descent on `batch` digits."""
    title = f"MLP 64-128-128-10, batch {batch}, step"
    return Workload(key, title, "step", perceptron_loss, lambda: (_layers(64, 128, 128, 10), *_digits(batch)))


def large_step(batch=256):
    def arguments():
        rng = _rng()
        return _layers(784, 1024, 1024, 10), _normal(rng, batch, 784), rng.integers(0, 10, batch)

    return Workload("W5", f"MLP 784-1024-1024-10, batch {batch}, step", "step", perceptron_loss, arguments)


def per_example():
    step = digits_step()
    return step._replace(key="W8", title="per-example gradients of W4", kind="per_example")


def gelu_sum(m, x):
    """Return the sum of gelu by the hyperbolic tangent."""
    return m.sum(m.gelu(x))


def gelu_norm_softmax(m, x, scale, shift):
    """Return the sum of squares of softmax of layer norm of gelu, over rows."""
    y = m.softmax(m.layer_norm(m.gelu(x), scale, shift))
    return m.sum(y * y)


def _square():
    return _normal(_rng(), 1000, 1000)


def elementwise():
    return Workload("W6a", "tanh-gelu of 10⁶ float32", "value_and_gradient", gelu_sum, lambda: (_square(),))


def row_wise():
    def arguments():
        return _square(), np.linspace(0.5, 1.5, 1000, dtype=np.float32), np.zeros(1000, np.float32)

    return Workload("W6b", "gelu, layer norm, softmax, 1000 × 1000", "value_and_gradient", gelu_norm_softmax, arguments)


def recurrent_loss(m, params, steps):
    """Return the mean square of the last state of a plain recurrent network; `steps` is (length, batch, inputs)."""

    def step(state, x):
        return m.tanh(x @ params["inputs"] + state @ params["states"] + params["bias"])

    last = m.scan(step, params["first"], steps)
    return m.mean(last * last)


def recurrent(length=100, hidden=64, batch=16, key="W9"):
    """Return the workload for a sequence of `length` steps."""

    def arguments():
        rng = _rng()
        params = {
            "inputs": _normal(rng, hidden, hidden, scale=hidden**-0.5),
            "states": _normal(rng, hidden, hidden, scale=hidden**-0.5),
            "bias": np.zeros(hidden, np.float32),
            "first": np.zeros((batch, hidden), np.float32),
        }
        return params, _normal(rng, length, batch, hidden)

    title = f"RNN scan, length {length}, hidden {hidden}, batch {batch}"
    return Workload(key, title, "value_and_gradient", recurrent_loss, arguments)


def block_loss(m, p, x, heads=4):
    """Return the mean square of the output of a transformer block; `x` is (batch, sequence, width)."""
    batch, length, width = x.shape

    def split(y):
        return y.reshape((batch, length, heads, width // heads)).swapaxes(1, 2)

    y = m.layer_norm(x, p["scale1"], p["shift1"])
    seen = m.attention(split(y @ p["query"]), split(y @ p["key"]), split(y @ p["value"]))
    x = x + seen.swapaxes(1, 2).reshape((batch, length, width)) @ p["out"]
    y = m.layer_norm(x, p["scale2"], p["shift2"])
    x = x + m.gelu(y @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
    return m.mean(x * x)


def transformer(batch=8, length=64, width=128):
    def arguments():
        rng = _rng()
        params = {name: _normal(rng, width, width, scale=width**-0.5) for name in ("query", "key", "value", "out")}
        params |= {f"scale{k}": np.ones(width, np.float32) for k in (1, 2)}
        params |= {f"shift{k}": np.zeros(width, np.float32) for k in (1, 2)}
        params |= {"w1": _normal(rng, width, 4 * width, scale=width**-0.5), "b1": np.zeros(4 * width, np.float32)}
        params |= {"w2": _normal(rng, 4 * width, width, scale=width**-0.5), "b2": np.zeros(width, np.float32)}
        return params, _normal(rng, batch, length, width)

    return Workload(
        "W10", f"transformer block, {batch} × {length} × {width}", "value_and_gradient", block_loss, arguments
    )


# ----------------------------------------------------------------------------------------------------------- the tape


def chain_of(operations):
    """Return a function of a chain of multiplications and additions, and a sum."""

    def chain(m, p):
        y, w, b = p["x"], p["w"], p["b"]
        for _ in range(operations // 2):
            y = y * w + b
        return m.sum(y)

    return chain


def chain(operations, key="W11", kind="tape"):
    """Return the workload of a chain recorded operation by operation."""

    def arguments():
        x = np.linspace(0.1, 0.4, 4, dtype=np.float32)
        return ({"x": x, "w": np.full(4, 1 - 1 / operations, np.float32), "b": x / operations},)

    what = "forward alone" if kind == "forward" else "forward and backward"
    return Workload(
        key, f"chain of {operations:,} operations, {what}", kind, chain_of(operations), arguments, operations
    )


def eager_chain(operations=20):
    """Return the workload of an eager gradient with operations on 8 elements."""

    def function(m, x):
        for _ in range(operations // 2):
            x = m.sin(x) * 1.1
        return m.sum(x)

    title = f"{operations} operations on 8 elements, eager"
    return Workload("E", title, "tape", function, lambda: (np.linspace(0.1, 0.8, 8),), operations)


WORKLOADS = [
    scalar(),
    rosenbrock(10, "W2a"),
    rosenbrock(100, "W2b"),
    logistic(),
    digits_step(),
    large_step(),
    elementwise(),
    row_wise(),
    small_hessian(),
    per_example(),
    recurrent(),
    transformer(),
    eager_chain(),
    chain(1000),
    chain(1000, "W11f", "forward"),
    chain(100_000, "W12")._replace(per=1),
]
"""In the order of the table; W13 is in `start`."""
