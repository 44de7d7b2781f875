"""Gradient descent, momentum and Adam: fgrad has no optimisers, for on pytrees each is a few lines of `tree.map`.

All return new parameters (and a new state) and may be jitted. `params` and `grads` are pytrees of arrays.
"""

import numpy as np

from fgrad import tree


def zeros_like(params):
    """Return the state that momentum starts from."""
    return tree.map(np.zeros_like, params)


def sgd(params, grads, rate):
    """Return the parameters after a step against the gradient."""
    return tree.map(lambda p, g: p - rate * g, params, grads)


def momentum(params, grads, velocity, rate, decay=0.9):
    """Return parameters and velocity; the velocity sums up past gradients, each step forgetting a part of them."""
    velocity = tree.map(lambda v, g: decay * v + g, velocity, grads)
    return tree.map(lambda p, v: p - rate * v, params, velocity), velocity


def adam(params, grads, state, rate=1e-3, b1=0.9, b2=0.999, epsilon=1e-8):
    """Return parameters and state (step, mean, mean square), which starts as (0, zeros, zeros).

    Source: Kingma and Ba, "Adam: a method for stochastic optimization" (2015), algorithm 1.
    """
    step, mean, square = state[0] + 1, *state[1:]
    mean = tree.map(lambda m, g: b1 * m + (1 - b1) * g, mean, grads)
    square = tree.map(lambda s, g: b2 * s + (1 - b2) * g * g, square, grads)
    rate = rate * np.sqrt(1 - b2**step) / (1 - b1**step)
    params = tree.map(lambda p, m, s: p - rate * m / (np.sqrt(s) + epsilon), params, mean, square)
    return params, (step, mean, square)
