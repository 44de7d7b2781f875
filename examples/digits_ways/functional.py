"""The functional way: parameters go in, the loss and its gradient come out, and nothing is changed in place."""

import numpy as np
from optimizers import momentum, zeros_like

import fgrad
from fgrad.kernels import cross_entropy

NAME = "functional"


def logits(params, images):
    """Return a score for each image and digit."""
    hidden = np.tanh(images @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def loss(params, images, labels):
    """Return the mean cross-entropy of a batch."""
    return cross_entropy(logits(params, images), labels).mean()


loss_and_gradients = fgrad.jit(fgrad.value_and_grad(loss))


def train(params, batches, rate):
    """Yield the loss and the parameters after each step."""
    velocity = zeros_like(params)
    for images, labels in batches:
        value, gradients = loss_and_gradients(params, images, labels)
        params, velocity = momentum(params, gradients, velocity, rate)
        yield float(value), params
