"""The imperative way: tensors record what is done to them, `backward` fills in `.grad`, steps change them in place."""

import fgrad.compat as torch
from fgrad.compat.nn.functional import cross_entropy

NAME = "imperative"


def as_parameters(weights):
    """Return tensors that ask for gradients."""
    return {name: torch.tensor(w, requires_grad=True) for name, w in weights.items()}


def loss(params, images, labels):
    """Return the mean cross-entropy of a batch."""
    hidden = torch.tanh(torch.from_numpy(images) @ params["w1"] + params["b1"])
    return cross_entropy(hidden @ params["w2"] + params["b2"], torch.from_numpy(labels))


def loss_and_gradients(weights, images, labels):
    """Return the loss of a batch and the gradients of the weights, as NumPy arrays."""
    params = as_parameters(weights)
    value = loss(params, images, labels)
    value.backward()
    return value.item(), {name: p.grad.numpy() for name, p in params.items()}


def train(weights, batches, rate, decay=0.9):
    """Yield the loss and the parameters after each step."""
    params = as_parameters(weights)
    velocity = {name: torch.zeros_like(p) for name, p in params.items()}
    for images, labels in batches:
        value = loss(params, images, labels)
        value.backward()
        with torch.no_grad():
            for name, p in params.items():
                velocity[name].mul_(decay).add_(p.grad)
                p.sub_(rate * velocity[name])
                p.grad = None
        yield value.item(), {name: p.detach().numpy().copy() for name, p in params.items()}
