"""The handwritten digits and what all three ways start from: images, labels, batches, weights."""

import numpy as np
from sklearn.datasets import load_digits

from fgrad import random

BATCH = 64
HIDDEN = 64


def load(key):
    """Return (images, labels) to train on and to test on: four fifths and one fifth of 1,797 images of 8 × 8 pixels."""
    digits = load_digits()
    order = random.permutation(key, len(digits.target))
    images = (digits.data[order] / 16).astype(np.float32)
    labels = digits.target[order]
    cut = len(labels) * 4 // 5
    return (images[:cut], labels[:cut]), (images[cut:], labels[cut:])


def batches(key, images, labels, epochs):
    """Return the batches of all epochs, shuffled anew in each."""
    rows = len(labels) // BATCH * BATCH
    orders = [random.permutation(random.fold_in(key, epoch), len(labels))[:rows] for epoch in range(epochs)]
    return [(images[at], labels[at]) for order in orders for at in order.reshape(-1, BATCH)]


def weights(key):
    """Return the first weights of the network 64 → HIDDEN → 10, in float32."""
    first, second = random.split(key)
    return {
        "w1": random.normal(first, (64, HIDDEN), np.float32) * np.float32(64**-0.5),
        "b1": np.zeros(HIDDEN, np.float32),
        "w2": random.normal(second, (HIDDEN, 10), np.float32) * np.float32(HIDDEN**-0.5),
        "b2": np.zeros(10, np.float32),
    }
