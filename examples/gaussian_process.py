"""A Gaussian process whose scales are found by SciPy's optimisers, from exact gradients and products with Hessians.

The marginal likelihood is written once, in NumPy. `minimize` gets its derivatives from there, for a tree of parameters.
"""

import time

import numpy as np
import plots

import fgrad
from fgrad.scipy.optimize import minimize

START = {"length": 0.0, "height": 0.0, "noise": 0.0}  # logarithms


def kernel(scales, a, b):
    """Return the covariance of the function's values at a and at b."""
    distance = (a[:, None] - b) / np.exp(scales["length"])
    return np.exp(2 * scales["height"] - distance**2 / 2)


def factor(scales, x):
    """Return the Cholesky factor of the observations' covariance."""
    return np.linalg.cholesky(kernel(scales, x, x) + np.exp(2 * scales["noise"]) * np.eye(len(x)))


def negative_log_likelihood(scales, x, y):
    """Return -log p(y). Source: Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), eq. 2.30."""
    half = factor(scales, x)
    white = np.linalg.solve(half, y)
    return white @ white / 2 + np.log(np.diagonal(half)).sum() + len(y) / 2 * np.log(2 * np.pi)


def predict(scales, x, y, at):
    """Return mean and standard deviation of the function at new places."""
    half = factor(scales, x)
    known = np.linalg.solve(half, kernel(scales, x, at))
    mean = known.T @ np.linalg.solve(half, y)
    return mean, np.sqrt(np.exp(2 * scales["height"]) - (known**2).sum(axis=0))


def main(out):
    """Print what each method took and found; draw the fit."""
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(-4, 4, 60))
    y = np.sin(2 * x) + 0.3 * x + rng.normal(scale=0.2, size=60)
    objective = fgrad.jit(negative_log_likelihood)
    print("method        calls  gradients  Hessian products     time   -log p")
    results = {}
    for method in ("Nelder-Mead", "BFGS", "Newton-CG", "trust-ncg"):
        start = time.perf_counter()
        best = results[method] = minimize(objective, START, (x, y), method=method)
        took = time.perf_counter() - start
        gradients, products = best.get("njev", 0), best.get("nhev", 0)
        print(f"{method:12s}  {best.nfev:5d}  {gradients:9d}  {products:16d}  {took:6.2f} s  {best.fun:.5f}")
    scales = results["Newton-CG"].x
    uncertain = np.sqrt(np.diagonal(np.linalg.inv(np.array(curvature(scales, x, y)))))
    for name, spread in zip(sorted(scales), uncertain, strict=True):
        print(f"{name:6s} {np.exp(scales[name]):.3f}, known to {100 * spread:.0f} %")

    at = np.linspace(-5, 5, 200)
    mean, deviation = predict(scales, x, y, at)
    picture, axes = plots.figure(width=6)
    axes.fill_between(at, mean - 2 * deviation, mean + 2 * deviation, alpha=0.2, label="95 %")
    axes.plot(at, mean, label="mean")
    axes.plot(x, y, ".", label="data")
    axes.legend()
    plots.save(picture, out / "gaussian_process.svg")
    return results


def curvature(scales, x, y):
    """Return the Hessian by the logarithms of the scales, in the order of their names."""
    blocks = fgrad.hessian(negative_log_likelihood)(scales, x, y)
    return [[blocks[row][column] for column in sorted(scales)] for row in sorted(scales)]


if __name__ == "__main__":
    plots.run(main, __doc__)
