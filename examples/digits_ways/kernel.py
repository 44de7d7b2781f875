"""The functional model once more, whose loss is computed by Triton kernels, forward and backward.

On a machine without a GPU the kernels are interpreted on NumPy arrays: slow, and the same numbers.
"""

from optimizers import momentum, zeros_like

import fgrad
from digits_ways.functional import logits
from fgrad.kernels import cross_entropy

NAME = "Triton loss"


def loss(params, images, labels):
    """Return the mean cross-entropy of a batch, by kernels."""
    return cross_entropy(logits(params, images), labels, impl="triton").mean()


loss_and_gradients = fgrad.value_and_grad(loss)


def train(params, batches, rate):
    """Yield the loss and the parameters after each step."""
    velocity = zeros_like(params)
    for images, labels in batches:
        value, gradients = loss_and_gradients(params, images, labels)
        params, velocity = momentum(params, gradients, velocity, rate)
        yield float(value), params
