"""Draw what a small transformer computes, what its backward pass keeps, and where its time and memory go.

Writes the pictures of docs/guides/pictures.md into a folder. Nothing beyond NumPy is needed.
"""

import argparse
import pathlib

import numpy as np

import fgrad
import fgrad.compat as torch

WIDTH = 64


def norm(x):
    """Scale rows to mean 0 and variance 1."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def attention(p, x):
    """Let rows look at each other."""
    scores = (x @ p["q"]) @ (x @ p["k"]).T / np.sqrt(WIDTH)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ (x @ p["v"])


def mlp(p, x):
    """Work on each row alone."""
    return np.tanh(x @ p["up"]) @ p["down"]


def transformer(layers, x):
    """Return a number to differentiate: the mean square of what the layers make of x."""
    for p in layers:
        x = x + attention(p, norm(x))
        x = x + mlp(p, norm(x))
    return (norm(x) ** 2).mean()


def weights(rng, count):
    """Return random weights of some layers."""
    shapes = {"q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH)}
    shapes |= {"up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    return [{name: rng.normal(size=s) / 8 for name, s in shapes.items()} for _ in range(count)]


def recorded_loss(x, w1, w2, target):
    """Return the cross entropy of a network of two layers, on tensors."""
    hidden = torch.tanh(x @ w1)
    return torch.nn.functional.cross_entropy(hidden @ w2, target)


def main(out):
    """Write all pictures into a folder and return their names."""
    rng = np.random.default_rng(0)
    layers, x = weights(rng, 4), rng.normal(size=(256, WIDTH))
    fgrad.draw(transformer, layers[:1], x, max_nodes=12).save(out / "program.svg")

    w1, w2 = (torch.randn(8, 16, requires_grad=True), torch.randn(16, 3, requires_grad=True))
    with torch.autograd.profiler.profile() as prof:
        loss = recorded_loss(torch.randn(32, 8), w1, w2, torch.arange(32) % 3)
        loss.backward(retain_graph=True)
    torch.draw(loss, names={"w1": w1, "w2": w2}).timed(prof).save(out / "graph.svg")

    with fgrad.profile(profile_memory=True, with_stack=True) as prof:
        fgrad.grad(transformer)(layers, x)
    prof.plot(out / "plot.svg")
    prof.memory_timeline(out / "memory.svg")
    step = fgrad.jit(fgrad.grad(transformer))
    with fgrad.profile() as prof:
        with fgrad.record_function("first step"):
            step(layers, x)
        with fgrad.record_function("eager step"):
            fgrad.grad(transformer)(layers, x)
        with fgrad.record_function("second step"):
            step(layers, x)
    prof.flamegraph(out / "flame.svg")
    return sorted(path.name for path in out.glob("*.svg"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("pictures"))
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    print(*main(folder))
