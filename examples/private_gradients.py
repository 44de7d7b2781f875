"""Learning with differential privacy: each example's gradient is clipped, and noise hides the rest of it.

The gradients of all examples come from `vmap(grad(loss))`, on handwritten digits.
Source: Abadi and others, "Deep learning with differential privacy" (2016), algorithm 1.
"""

import numpy as np
import plots
from digits_ways import data

import fgrad
from fgrad import random, tree

BOUND = 1.0  # on the norm of each example's gradient
RATE, EPOCHS = 2.0, 6


def loss(params, image, label):
    """Return the cross-entropy of one image; there is no batch here."""
    return -fgrad.nn.log_softmax(image @ params["w"] + params["b"])[label]


def clipped(gradient):
    """Return the gradient of one example, scaled to norm BOUND at most, and its norm before."""
    norm = np.sqrt(sum((g**2).sum() for g in tree.leaves(gradient)))
    return tree.map(lambda g: g / np.maximum(norm / BOUND, 1.0), gradient), norm


@fgrad.jit
def private_gradient(params, images, labels, noise, key):
    """Return the mean of the clipped gradients with noise added, and the norms before clipping."""
    gradients = fgrad.vmap(fgrad.grad(loss), (None, 0, 0))(params, images, labels)
    gradients, norms = fgrad.vmap(clipped)(gradients)
    keys = dict(zip(params, random.split(key, len(params)), strict=True))
    scale = noise * BOUND / len(labels)

    def hidden(g, k):
        return g.mean(axis=0) + scale * random.normal(k, g.shape[1:], np.float32)

    return {name: hidden(gradients[name], keys[name]) for name in params}, norms


def train(noise, key, batches):
    """Return the weights after training, and all norms met on the way."""
    params = {"w": np.zeros((64, 10), np.float32), "b": np.zeros(10, np.float32)}
    norms = []
    for i, (images, labels) in enumerate(batches):
        gradient, met = private_gradient(params, images, labels, np.float32(noise), random.fold_in(key, i))
        params = tree.map(lambda p, g: p - np.float32(RATE) * g, params, gradient)
        norms.append(met)
    return params, np.concatenate(norms)


def main(out):
    """Print accuracy by amount of noise; draw the norms of the gradients and the accuracies."""
    split, shuffle, key = random.split(random.key(0), 3)
    (images, labels), (test_images, test_labels) = data.load(split)
    batches = data.batches(shuffle, images, labels, EPOCHS)
    accuracies = {}
    print("noise   test accuracy   gradients clipped")
    for noise in (0.0, 1.0, 3.0, 10.0):
        params, norms = train(noise, key, batches)
        guesses = (test_images @ params["w"] + params["b"]).argmax(axis=1)
        accuracies[noise] = float(np.mean(guesses == test_labels))
        print(f"{noise:5.1f}   {100 * accuracies[noise]:10.1f} %   {100 * np.mean(norms > BOUND):14.0f} %")

    picture, (left, right) = plots.figure(2)
    left.hist(norms, bins=40)
    left.axvline(BOUND, color="black", linestyle="dotted")
    left.set(title="norms of single gradients", xlabel="before clipping")
    right.plot(list(accuracies), list(accuracies.values()), "o-")
    right.set(title="test accuracy", xlabel="noise")
    plots.save(picture, out / "private_gradients.svg")
    return accuracies


if __name__ == "__main__":
    plots.run(main, __doc__)
