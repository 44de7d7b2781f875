"""The derivatives of a function of tensors: by differences, by backward passes, by dual numbers; columns or products.

A Jacobian has a row for each element of the input and a column for each of the output. A complex output counts as two
real ones, its `PARTS`; a complex input is moved along 1 and along i (`directions`). The gradient of a real s by x + iy
is torch's, ds/dx + i ds/dy.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fgrad.extend import two_point

from .. import devices, forward_ad
from ..backward import grad
from ..tensor import Tensor, wrap

PARTS = {"imaginary": (1j, np.imag), "real": (1.0, np.real)}
"""Parts of a complex output: the gradient to start from, and how it is taken of a number."""

REAL = {"real": PARTS["real"]}


class GradcheckError(RuntimeError):
    """Gradients and finite differences disagree, or a gradient cannot be checked. See docs/errors.md#gradcheckerror."""

    __module__ = "fgrad.compat.gradcheck"


def as_tuple(x):
    """Return what a function takes or gives as a tuple."""
    return x if isinstance(x, tuple) else tuple(x) if isinstance(x, list) else (x,)


def differentiable(x):
    """Return whether `x` is a tensor of a real or complex floating type."""
    return isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex())


def dense_part(x):
    """Return the tensor that derivatives by an input are taken by: the values of a sparse one."""
    return x.stored if x.is_sparse else x


def parts_of(x):
    """Return the parts that an output has."""
    return PARTS if x.is_complex() else REAL


def directions(x):
    """Return the directions that each element of an input is moved along."""
    return (1.0, 1j) if x.is_complex() else (1.0,)


class Problem:
    """A function, its inputs, and its outputs there.

    `checked` are the tensors that derivatives are taken by (of a sparse input its values), `numbers` their positions.
    `outputs` are those of `found` that require grad, `places` their positions.
    """

    def __init__(self, func: Callable, inputs: tuple):
        self.func = func
        self.inputs = inputs
        self.numbers = [k for k, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
        self.checked = [dense_part(inputs[k]) for k in self.numbers]
        self.found = as_tuple(func(*inputs))
        self.places = [k for k, out in enumerate(self.found) if isinstance(out, Tensor) and out.requires_grad]
        self.outputs = [self.found[k] for k in self.places]

    def values(self, places, change):
        """Return the values of the outputs at `places` for the inputs as they are now.

        Raises AssertionError in torch's words if they are not of the shapes and dtypes that came first; `change` says
        what was done to the inputs.
        """
        outs = as_tuple(self.func(*self.inputs))
        for k in places:
            for what in ("shape", "dtype"):
                now, first = getattr(outs[k], what), getattr(self.found[k], what)
                if now != first:
                    raise AssertionError(
                        f"Expected `func` to return outputs with the same {what} when inputs are perturbed {change}, "
                        f"but got: {what}s {first} and {now}."
                    )
        return [np.array(devices.on_host(outs[k]._data)) for k in places]


# --------------------------------------------------------------------------------------------------- by differences


def numerical_jacobians(problem, x, step, places):
    """Return for each output at `places` the Jacobian by differences along each direction of input `x`."""
    found = [np.zeros((len(directions(x)), x.numel(), problem.found[k].numel()), complex) for k in places]
    data = x._data
    for row, index in enumerate(np.ndindex(data.shape)):
        kept = data[index].copy()
        for d, direction in enumerate(directions(x)):

            def at(s, index=index, kept=kept, direction=direction):
                data[index] = kept + s * direction
                return problem.values(places, f"on index {index} by {step}")

            try:
                slopes = two_point(at(step), at(-step), step)
            finally:
                data[index] = kept
            for jacobian, slope in zip(found, slopes):
                jacobian[d, row] = slope.reshape(-1)
    return found


def numerical_products(problem, x, vectors, step, places):
    """Return for each output at `places` its derivatives along each direction of `x` times that direction's vector."""
    start = x._data.copy()
    found = []
    for direction, u in zip(directions(x), vectors):
        along = direction * u.reshape(start.shape)

        def at(s, along=along):
            x._data[...] = start + s * along
            return problem.values(places, f"by {step}")

        try:
            found.append([slope.reshape(-1) for slope in two_point(at(step), at(-step), step)])
        finally:
            x._data[...] = start
    return list(zip(*found))


# --------------------------------------------------------------------------------------------------- by backward


def pulled(problem, out, seed):
    """Return the gradients of the checked inputs for one gradient of an output; None for those unreached."""
    seed = wrap(devices.beside(out._data, seed.reshape(out._data.shape).astype(out._data.dtype)))
    return grad((out,), problem.checked, (seed,), retain_graph=True, allow_unused=True)


class Units:
    """The unit vectors of a size, one after the other."""

    def __init__(self, size):
        self.size = size

    def __iter__(self):
        for k in range(self.size):
            unit = np.zeros(self.size)
            unit[k] = 1
            yield unit


def backward_jacobians(problem, out, factor, seeds, rules):
    """Return for each checked input what backward makes of `factor * seed`, a column for each of the seeds.

    Done twice: RuntimeError if the two differ by more than `rules.nondet_tol`.
    """
    first, second = [[_column(problem, pulled(problem, out, factor * seed), rules) for seed in seeds] for _ in range(2)]
    jacobians = [_stacked(x, rows) for x, rows in zip(problem.checked, zip(*first) if first else ())]
    again = [_stacked(x, rows) for x, rows in zip(problem.checked, zip(*second) if second else ())]
    for a, b in zip(jacobians, again):
        if np.abs(a - b).max(initial=0) > rules.nondet_tol:
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                "gives different values, although analytical gradient matches numerical gradient. The tolerance for "
                f"nondeterminism was {rules.nondet_tol}. If that is expected, give a larger nondet_tol."
            )
    return jacobians or [_stacked(x, ()) for x in problem.checked]


def _column(problem, gradients, rules):
    """Return gradients as flat arrays, checked against their inputs."""
    columns = []
    for g, x in zip(gradients, problem.checked):
        if g is not None and g.shape != x.shape:
            raise GradcheckError("Analytical gradient has incorrect size")
        if g is not None and rules.check_grad_dtypes and g.dtype != x.dtype:
            raise GradcheckError(f"Gradient has dtype mismatch: {g.dtype} for an input of {x.dtype}")
        columns.append(np.zeros(x.numel()) if g is None else devices.on_host(g._data).reshape(-1))
    return columns


def _stacked(x, columns):
    return np.stack(columns, 1) if len(columns) else np.zeros((x.numel(), 0))


# --------------------------------------------------------------------------------------------------- by dual numbers


def dual_outputs(problem, tangents):
    """Return pairs of value and tangent (None if it has none) of the outputs that require grad, in a level.

    `tangents` has one for each number of a checked input, None for an input that is passed without.
    """
    given = list(problem.inputs)
    for k, t in tangents.items():
        given[k] = given[k].detach()
        if t is not None:
            given[k] = forward_ad.make_dual(given[k], t)
    outs = as_tuple(problem.func(*given))
    return [forward_ad.unpack_dual(outs[k]) for k in problem.places]


def forward_products(problem, number, tangent, rules):
    """Return for each output that requires grad its tangent for a tangent of one input; the others' are zero."""
    tangents = {k: zeros_like(x) for k, x in zip(problem.numbers, problem.checked)}
    own = problem.inputs[number]._data
    tangents[number] = wrap(devices.beside(own, tangent.reshape(own.shape).astype(own.dtype)))
    with forward_ad.dual_level():
        pairs = dual_outputs(problem, tangents)
    for value, t in pairs:
        if rules.check_grad_dtypes and t is not None and t.is_complex() != value.is_complex():
            raise GradcheckError("Forward AD gradient has dtype mismatch.")
    return [np.zeros(value.numel()) if t is None else devices.on_host(t._data).reshape(-1) for value, t in pairs]


def zeros_like(x):
    """Return zeros of the shape and dtype of a tensor."""
    return wrap(devices.like(x._data, 0))


def forward_jacobians(problem, number, x, direction, rules):
    """Return for each output that requires grad its Jacobian by one input along a direction."""
    rows = []
    for k in range(x.numel()):
        tangent = np.zeros(x.numel(), x._data.dtype)
        tangent[k] = direction
        rows.append(forward_products(problem, number, tangent, rules))
    return [np.stack(each) for each in zip(*rows)]
