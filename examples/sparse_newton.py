"""A chain of ten thousand springs that hangs over a step, at rest: Newton's method with a sparse Hessian.

Each spring knows its neighbours alone, so the Hessian is a narrow band; its pattern is found from the program.
"""

import time

import numpy as np
import plots
import scipy.sparse.linalg

import fgrad

LINKS = 10_000
AT = np.linspace(0, 1, LINKS + 1)[1:-1]


def ground(x):
    """Return the height of the ground: a soft step."""
    return -0.3 + 0.25 / (1 + np.exp(-40 * (x - 0.6)))


def energy(heights):
    """Return the energy of a chain fixed at both ends: stretching, weight, and a ground that pushes back."""
    steps = np.diff(np.concatenate([np.zeros(1), heights, np.zeros(1)])) * LINKS
    stretching = (np.sqrt(1 + steps**2) * (1 + 0.1 * steps**2)).mean()
    inside = np.maximum(ground(AT) - heights, 0)
    return stretching + (3 * heights + 5e3 * inside**2).mean()


def main(out):
    """Solve, print how it converges, draw the chain."""
    gradient, hessian = fgrad.jit(fgrad.grad(energy)), fgrad.sparse_hessian(energy)
    heights = np.zeros(LINKS - 1)
    start = time.perf_counter()
    pattern = hessian.prepare(heights)
    print(f"pattern: {pattern.pattern.nnz:,} of {heights.size**2:,} entries, {pattern.colors} passes a Hessian")
    print("round   energy       largest force")
    for step in range(30):
        force = gradient(heights)
        print(f"{step:5d}   {energy(heights):.8f}   {abs(force).max() * LINKS:.1e}")
        if abs(force).max() * LINKS < 1e-8:
            break
        heights = heights - scipy.sparse.linalg.spsolve(hessian(heights).tocsc(), force)
    print(f"{time.perf_counter() - start:.2f} s in all")

    picture, axes = plots.figure(width=6)
    shown = slice(None, None, 50)
    axes.plot(AT[shown], heights[shown], label="chain")
    axes.fill_between(AT[shown], -0.4, ground(AT[shown]), color="0.85", label="ground")
    axes.legend()
    plots.save(picture, out / "sparse_newton.svg")
    return float(abs(gradient(heights)).max() * LINKS), step


if __name__ == "__main__":
    plots.run(main, __doc__)
