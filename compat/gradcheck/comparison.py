"""Derivatives held against finite differences: entry by entry, or by random projections, which take a few calls.

Fast mode compares uᵀ J v for one random u and v in place of all entries of J; the tolerance is scaled by what the same
projection makes of a matrix whose entries are all `atol`.
"""

from __future__ import annotations

import numpy as np

from fgrad.extend import worst_entry

from ..tensor import wrap
from .jacobians import (
    GradcheckError,
    Units,
    backward_jacobians,
    differentiable,
    directions,
    forward_jacobians,
    forward_products,
    numerical_jacobians,
    numerical_products,
    parts_of,
)


def compare(problem, rules):
    """Check the derivatives of a problem; GradcheckError has both Jacobians and the worst entry."""
    if not problem.outputs:
        _no_outputs(problem, rules)
        return
    if rules.check_backward_ad:
        (_backward_fast if rules.fast_mode else _backward)(problem, rules)
    if rules.check_forward_ad:
        (_forward_fast if rules.fast_mode else _forward)(problem, rules)


def _no_outputs(problem, rules):
    """Check that outputs of which none requires grad do not depend on the inputs."""
    places = [k for k, out in enumerate(problem.found) if differentiable(out)]
    for x in problem.checked:
        if any(np.any(j != 0) for j in numerical_jacobians(problem, x, rules.eps, places)):
            raise GradcheckError("Numerical gradient for function expected to be zero")


def _real_gradient(part, along):
    """Return the derivatives of a part of an output, in torch's convention, out of those along each direction."""
    return part(along[0]) + 1j * part(along[1]) if len(along) > 1 else part(along[0])


# ------------------------------------------------------------------------------------------------- entry by entry


def _backward(problem, rules):
    numerical = [numerical_jacobians(problem, x, rules.eps, problem.places) for x in problem.checked]
    for j, out in enumerate(problem.outputs):
        for name, (factor, part) in parts_of(out).items():
            analytical = backward_jacobians(problem, out, factor, Units(out.numel()), rules)
            for i, a in enumerate(analytical):
                _agree(a, _real_gradient(part, numerical[i][j]), rules, _title(j, i, out, name))


def _forward(problem, rules):
    for i, (number, x) in enumerate(zip(problem.numbers, problem.checked)):
        numerical = numerical_jacobians(problem, x, rules.eps, problem.places)
        for d, name in _imaginary_first(x):
            analytical = forward_jacobians(problem, number, x, directions(x)[d], rules)
            for j, (a, out) in enumerate(zip(analytical, problem.outputs)):
                n = numerical[j][d]
                _agree(a, n if out.is_complex() else n.real, rules, _forward_title(j, i, x, name))


def _imaginary_first(x):
    """Return numbers and names of the directions of an input, in torch's order."""
    return [(1, "imaginary"), (0, "real")] if x.is_complex() else [(0, "real")]


def _title(j, i, x, part, what="outputs", mode=""):
    """Return what a failure says first, in torch's words."""
    words = f"While considering the {part} part of complex {what} only, " if x.is_complex() else ""
    return f"{words}Jacobian {mode}mismatch for output {j} with respect to input {i},"


def _forward_title(j, i, x, part):
    return _title(j, i, x, part, "inputs", "computed with forward mode ")


def _agree(a, n, rules, title):
    """Raise GradcheckError unless a Jacobian and its numerical estimate agree."""
    index = worst_entry(a, n, rules.atol, rules.rtol, equal_nan=False)
    if index is not None:
        raise GradcheckError(f"{title}\n{shown(a, n, index)}")


def shown(a, n, index):
    """Return both Jacobians and their worst entry in words."""
    row, column = index
    return (
        f"numerical:{wrap(np.array(n))}\nanalytical:{wrap(np.array(a))}\n"
        f"worst entry [{row}, {column}] (element {row} of the input, {column} of the output): numerical "
        f"{n[index]:.6g}, analytical {a[index]:.6g}, difference {abs(a[index] - n[index]):.3g}"
    )


# ------------------------------------------------------------------------------------------------- by projections


def _vectors(problem):
    """Return random vectors of length 1: for each checked input one for each direction, and one for each output."""
    random = np.random.default_rng(0)

    def vector(size):
        v = random.random(size)
        return v / (np.linalg.norm(v) or 1)

    inputs = [[vector(x.numel()) for _ in directions(x)] for x in problem.checked]
    return inputs, [vector(out.numel()) for out in problem.outputs]


def _backward_fast(problem, rules):
    us, vs = _vectors(problem)
    numerical = [numerical_products(problem, x, u, rules.eps, problem.places) for x, u in zip(problem.checked, us)]
    for j, (out, v) in enumerate(zip(problem.outputs, vs)):
        for name, (factor, part) in parts_of(out).items():
            pulled = backward_jacobians(problem, out, factor, [v], rules)
            for i, (g, u) in enumerate(zip(pulled, us)):
                a = g[:, 0].real @ u[0] + (1j * (g[:, 0].imag @ u[1]) if len(u) > 1 else 0)
                n = _real_gradient(part, [along @ v for along in numerical[i][j]])
                if not _close(a, n, rules, sum(map(np.sum, u)) * v.sum()):
                    _fail_fast(a, n, _title(j, i, out, name), _backward, problem, rules)


def _forward_fast(problem, rules):
    us, _ = _vectors(problem)
    for i, (number, x) in enumerate(zip(problem.numbers, problem.checked)):
        numerical = numerical_products(problem, x, us[i], rules.eps, problem.places)
        for d, name in _imaginary_first(x):
            pushed = forward_products(problem, number, directions(x)[d] * us[i][d], rules)
            for j, a in enumerate(pushed):
                n = numerical[j][d]
                if not _close(a, n, rules, us[i][d].sum()):
                    _fail_fast(a, n, _forward_title(j, i, x, name), _forward, problem, rules)


def _close(a, n, rules, scale):
    return worst_entry(np.atleast_1d(a), np.atleast_1d(n), rules.atol * scale, rules.rtol, equal_nan=False) is None


def _fail_fast(a, n, title, slowly, problem, rules):
    """Raise GradcheckError for projections that disagree, with what the entries say."""
    try:
        slowly(problem, rules)
        entries = "compared entry by entry the Jacobians agree: fast_mode=False would pass"
    except GradcheckError as error:
        entries = f"entry by entry:\n{error}"
    raise GradcheckError(
        f"{title}\nnumerical:{n}\nanalytical:{a}\nThe above quantities relating the numerical and analytical jacobians "
        f"are computed in fast mode, from random projections; {entries}"
    )
