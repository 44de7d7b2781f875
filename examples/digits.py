"""Train a small network on handwritten digits three ways, from the same weights, and compare them.

Prints a table of accuracy, loss, time and the largest difference of gradients, and draws the loss curves. The ways
themselves are in `digits_ways/`: read those first.
"""

import argparse
import pathlib
import time
from typing import NamedTuple

import matplotlib
import numpy as np
from digits_ways import data, functional, imperative, kernel
from rich.console import Console
from rich.table import Table
from tqdm.auto import tqdm  # draws itself in a notebook, too

from fgrad import random, tree

matplotlib.use("Agg")  # draws without a screen
import matplotlib.pyplot as plt

RATE = 0.1
PROBES = 5  # steps at whose weights the gradients of all ways are compared


class Run(NamedTuple):
    """What came of training one way."""

    way: str
    losses: list[float]
    params: dict
    seconds: float  # of the median step
    probes: list[tuple]  # loss and gradients at the probes


def train(way, weights, batches, probes):
    """Train with one way; `probes` are (weights, batch) at which to compute loss and gradients as well."""
    losses, seconds = [], []
    params = weights
    steps = way.train(weights, batches, RATE)
    for _ in tqdm(batches, desc=way.NAME, unit="step", leave=False):
        start = time.perf_counter()
        loss, params = next(steps)
        seconds.append(time.perf_counter() - start)
        losses.append(loss)
    found = [way.loss_and_gradients(w, *batch) for w, batch in probes]
    return Run(way.NAME, losses, params, float(np.median(seconds)), found)


def probes_along(weights, batches):
    """Return (weights, batch) for the first steps of training."""
    points = [weights, *[params for _, params in functional.train(weights, batches[: PROBES - 1], RATE)]]
    return list(zip(points, batches[:PROBES], strict=True))


def accuracy(params, images, labels):
    """Return the share of images whose largest logit is at their label."""
    return float(np.mean(functional.logits(params, images).argmax(axis=1) == labels))


def largest_difference(run, first):
    """Return the largest difference of losses and gradients, relative to the largest entry of each array."""
    pairs = [(tree.leaves(found), tree.leaves(wanted)) for found, wanted in zip(run.probes, first.probes, strict=True)]
    return max(np.abs(x - y).max() / np.abs(y).max() for xs, ys in pairs for x, y in zip(xs, ys, strict=True))


def compare(epochs=30, kernel_steps=10):
    """Train all ways and return their runs, those that could not run as (name, reason), and their test accuracies."""
    split, shuffle, start = random.split(random.key(0), 3)
    (images, labels), test = data.load(split)
    batches = data.batches(shuffle, images, labels, epochs)
    weights = data.weights(start)
    probes = probes_along(weights, batches)
    runs, missing = [], []
    for way, steps in ((functional, batches), (imperative, batches), (kernel, batches[:kernel_steps])):
        try:
            runs.append(train(way, weights, steps, probes))
        except ImportError as error:
            missing.append((way.NAME, str(error)))
    return runs, missing, [accuracy(run.params, *test) for run in runs]


def table(runs, missing, accuracies):
    """Return the comparison as a table."""
    out = Table(title="Handwritten digits, three ways from the same float32 weights")
    out.add_column("way")
    for heading in ("steps", "test accuracy", "loss", "time/step", "gradients off"):
        out.add_column(heading, justify="right")
    for run, share in zip(runs, accuracies, strict=True):
        differ = "–" if run is runs[0] else f"{largest_difference(run, runs[0]):.1e}"
        figures = (len(run.losses), f"{share:.1%}", f"{run.losses[-1]:.4f}", f"{run.seconds * 1e3:.2f} ms", differ)
        out.add_row(run.way, *map(str, figures))
    for name, reason in missing:
        out.add_row(f"{name}: {reason}", *["–"] * 5)
    return out


def plot(runs, path):
    """Draw the loss of every step of every run."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for run, style in zip(runs, ("-", "--", "o"), strict=False):
        axes.plot(range(1, len(run.losses) + 1), run.losses, style, label=run.way, alpha=0.8, markersize=4)
    axes.set(xlabel="step", ylabel="loss of the batch", xscale="log", yscale="log")
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main():
    """Run the comparison, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--kernel-steps", type=int, default=10, help="steps of the way with interpreted kernels")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out"), help="folder for the plot")
    options = parser.parse_args()
    runs, missing, accuracies = compare(options.epochs, options.kernel_steps)
    Console().print(table(runs, missing, accuracies))
    path = options.out / "digits_loss.png"
    plot(runs, path)
    print(f"loss curves: {path}")


if __name__ == "__main__":
    main()
