"""A layer that is defined by an equation: its output solves z = tanh(W z + U x + b), however deep that takes.

Its gradient is that of the solution, one linear solve, where a loop written out would keep every step. Here it learns
to tell two spirals apart. Source of the layer: Bai, Kolter and Koltun, "Deep equilibrium models" (2019).
"""

import numpy as np
import plots
from optimizers import adam, zeros_like

import fgrad

WIDTH, POINTS, STEPS, ROUNDS = 24, 128, 300, 60


def inner(z, p, x):
    """Return one round; tanh and a W of norm 0.9 make it a contraction."""
    w = 0.9 * p["w"] / np.linalg.norm(p["w"])
    return np.tanh(z @ w + x @ p["u"] + p["b"])


def equilibrium(p, x):
    """Return the layer's output: where another round changes nothing."""
    return fgrad.fixed_point(inner, np.zeros((len(x), WIDTH)), p, x)


def unrolled(p, x):
    """Return the same from a loop, all of whose steps are kept for the gradient."""
    z = np.zeros((len(x), WIDTH))
    for _ in range(ROUNDS):
        z = inner(z, p, x)
    return z


def loss(p, x, labels, layer=equilibrium):
    """Return the mean logistic loss; labels are ±1."""
    return np.logaddexp(0, -labels * (layer(p, x) @ p["out"])).mean()


def spirals(rng):
    """Return points of two spirals and which they belong to, as ±1."""
    turn = np.sqrt(rng.uniform(0.05, 1, POINTS)) * 1.5 * np.pi
    labels = np.where(np.arange(POINTS) % 2, 1.0, -1.0)
    return labels[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1) * turn[:, None] / 3, labels


def weights(rng):
    """Return random weights."""
    shapes = {"w": (WIDTH, WIDTH), "u": (2, WIDTH), "b": (WIDTH,), "out": (WIDTH,)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def main(out):
    """Compare with the loop, train, draw the boundary."""
    rng = np.random.default_rng(0)
    x, labels = spirals(rng)
    p = weights(rng)
    pictures = [fgrad.draw(lambda p, layer=layer: loss(p, x, labels, layer), p) for layer in (equilibrium, unrolled)]
    print(f"equilibrium: {pictures[0].summary}\nunrolled:    {pictures[1].summary}")
    ours, theirs = (fgrad.grad(loss)(p, x, labels, layer) for layer in (equilibrium, unrolled))
    difference = max(abs(ours[name] - theirs[name]).max() for name in p)
    print(f"gradients differ by {difference:.1e}")

    @fgrad.jit
    def step(p, state):
        value, gradients = fgrad.value_and_grad(loss)(p, x, labels)
        return value, *adam(p, gradients, state, rate=0.05)

    state, losses = (0, zeros_like(p), zeros_like(p)), []
    for _ in range(STEPS):
        value, p, state = step(p, state)
        losses.append(float(value))
    right = np.mean(np.sign(equilibrium(p, x) @ p["out"]) == labels)
    print(f"after {STEPS} steps: loss {losses[-1]:.4f}, {100 * right:.0f} % of the points right")

    side = np.linspace(-2, 2, 80)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    picture, (curve, plane) = plots.figure(2)
    curve.semilogy(losses)
    curve.set(title="loss", xlabel="step")
    plane.contourf(side, side, np.tanh(equilibrium(p, grid) @ p["out"]).reshape(80, 80), cmap="RdBu", alpha=0.6)
    plane.scatter(*x.T, c=labels, cmap="RdBu", edgecolors="black", linewidths=0.5, s=15)
    plane.set(title="what it tells apart", aspect="equal")
    plots.save(picture, out / "implicit_layer.svg")
    return difference, losses, right


if __name__ == "__main__":
    plots.run(main, __doc__)
