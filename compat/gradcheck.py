"""`gradcheck` and `gradgradcheck`: gradients held against finite differences.

Inputs are changed in place and the function is called with the very tensors it was given: programs may close over them.
"""

from __future__ import annotations

import warnings

import numpy as np

from . import engine, views
from .backward import grad
from .modes import enable_grad, no_grad
from .tensor import Tensor, wrap


class GradcheckError(RuntimeError):
    """Gradients and finite differences disagree, or a gradient cannot be checked."""


def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    check_sparse_nnz=None,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
):
    """Check gradients against central finite differences.

    Args:
        func: a function from tensors to a tensor or a tuple of tensors.
        inputs: a tensor or a tuple; those of a floating dtype that require grad are checked. float64 is expected.
        eps: the step of the differences.
        atol, rtol: how far gradients may be off.
        raise_exception: raise if the check fails, in place of returning False.
        nondet_tol: how far two backward passes may differ.
        check_undefined_grad: check that backward handles outputs without a gradient.
        check_grad_dtypes: check that gradients have their inputs' dtypes.
        check_batched_grad: check gradients of a batch of cotangents.

    Returns:
        True if the check passes.

    Raises:
        GradcheckError: (a RuntimeError) the check fails.
        ValueError: no input requires grad.

    Example:
        >>> import fgrad.compat as torch
        >>> x = torch.tensor([1., 2.], dtype=torch.double, requires_grad=True)
        >>> torch.autograd.gradcheck(lambda x: x.sin(), x)
        True
    """
    check = _Check(func, inputs, eps, atol, rtol, nondet_tol)
    try:
        check.inputs_fit()
        check.outputs()
        check.jacobians()
        if check_undefined_grad:
            check.undefined_gradients()
        if check_batched_grad:
            check.batches()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


class _Check:
    """One run of gradcheck."""

    def __init__(self, func, inputs, eps, atol, rtol, nondet_tol):
        self.func = func
        self.inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
        self.eps, self.atol, self.rtol, self.nondet_tol = eps, atol, rtol, nondet_tol
        self.checked = [(k, x) for k, x in enumerate(self.inputs) if isinstance(x, Tensor) and x.requires_grad]

    def inputs_fit(self):
        """Warn of low precision and overlapping memory; ValueError if there is nothing to check."""
        if not self.checked:
            raise ValueError(
                "gradcheck expects at least one input tensor to require gradient, but none of the them have "
                "requires_grad=True."
            )
        for k, x in self.checked:
            if x._data.dtype not in (np.float64, np.complex128):
                warnings.warn(
                    f"Input #{k} requires gradient and is not a double precision floating point or complex. This "
                    "check will likely fail if "
                    "all the inputs are not of double precision floating point or complex. ",
                    stacklevel=3,
                )
            if any(s == 0 and n > 1 for s, n in zip(x._data.strides, x._data.shape)):
                raise RuntimeError(
                    f"The {k}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                    "non-overlapping to be "
                    "able to compute the numerical gradients correctly. You should call .contiguous on the input "
                    "before passing it "
                    "to gradcheck."
                )
            x.retain_grad()

    def run(self):
        """Return the differentiable outputs of the function, in a tuple."""
        with enable_grad():
            out = self.func(*self.inputs)
        outs = (out,) if isinstance(out, Tensor) else tuple(out) if isinstance(out, (tuple, list)) else (out,)
        return outs

    def outputs(self):
        """Find the outputs to check; if there are none, the numerical derivative has to be zero."""
        outs = self.run()
        self.outs = [o for o in outs if isinstance(o, Tensor) and o.requires_grad]
        if not self.outs:
            for i, numerical in enumerate(
                self._all_numerical([k for k, o in enumerate(outs) if isinstance(o, Tensor) and o.is_floating_point()])
            ):
                if any(np.abs(j).max(initial=0) > 0 for j in numerical):
                    raise GradcheckError("Numerical gradient for function expected to be zero")
                assert i >= 0

    def _numbers(self, which=None):
        with no_grad():
            outs = self.func(*self.inputs)
        outs = (outs,) if isinstance(outs, Tensor) else outs
        if which is not None:
            return [np.array(outs[k]._data) for k in which]
        return [np.array(o._data) for o in outs if isinstance(o, Tensor) and o._data.dtype.kind in "fc"]

    def _all_numerical(self, which=None):
        """Return for each checked input the numerical Jacobians (input elements x output elements) of the outputs."""
        return [self._numerical(x, which) for _, x in self.checked]

    def _numerical(self, x, which):
        flat = x._data.reshape(-1) if x._data.flags.c_contiguous else None
        steps = (self.eps,) if x._data.dtype.kind != "c" else (self.eps, 1j * self.eps)
        rows = []
        for number, index in enumerate(np.ndindex(x._data.shape)):
            found = []
            for step in steps:
                kept = x._data[index]
                target = (flat, number) if flat is not None else (x._data, index)
                target[0][target[1]] = kept + step
                plus = self._numbers(which)
                target[0][target[1]] = kept - step
                minus = self._numbers(which)
                target[0][target[1]] = kept
                for a, b in zip(plus, minus):
                    if a.shape != b.shape or a.dtype != b.dtype:
                        raise AssertionError(
                            "Expected `func` to return outputs with the same shape and dtype when inputs are perturbed"
                        )
                found.append([((a - b) / (2 * self.eps)).reshape(-1) for a, b in zip(plus, minus)])
            rows.append(found)
        count = len(rows[0][0]) if rows else len(self._numbers(which))
        return [np.array([[part[k] for part in row] for row in rows]) for k in range(count)]

    def jacobians(self):
        """Compare analytical with numerical Jacobians, and two backward passes with each other."""
        if not self.outs:
            return
        all_outs = [o for o in self.run() if isinstance(o, Tensor) and o._data.dtype.kind in "fc"]
        differentiable = [k for k, o in enumerate(all_outs) if o.requires_grad]
        numerical = self._all_numerical()
        for j, k in enumerate(differentiable):
            out = all_outs[k]
            for i, (number, x) in enumerate(self.checked):
                self._compare(out, x, numerical[i][k], j, i)
                assert number >= 0

    def _pull(self, out, x, element, factor):
        seed = np.zeros(out._data.shape, out._data.dtype)
        seed.reshape(-1)[element] = factor
        (g,) = grad((out,), (x,), (wrap(seed),), retain_graph=True, allow_unused=True)
        if g is None:
            return np.zeros(x._data.shape, x._data.dtype)
        if g._data.shape != x._data.shape:
            raise GradcheckError("Analytical gradient has incorrect size")
        return g._data

    def _compare(self, out, x, numerical, j, i):
        """Compare the Jacobian of output j with respect to input i with the numerical one."""
        analytical = np.zeros(numerical.shape, np.result_type(numerical, np.float64))
        factors = (1.0,) if out._data.dtype.kind != "c" else (1.0, 1j)
        for element in range(out._data.size):
            for factor in factors:
                first, second = self._pull(out, x, element, factor), self._pull(out, x, element, factor)
                if np.abs(first - second).max(initial=0) > self.nondet_tol:
                    raise GradcheckError(
                        "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
                        "times gives different "
                        "values, although analytical gradient matches numerical gradient."
                        f"The tolerance for nondeterminism was {self.nondet_tol}."
                    )
                parts = (first.real, first.imag) if x._data.dtype.kind == "c" else (first.real,)
                for p, part in enumerate(parts):
                    analytical[:, p, element] += part.reshape(-1) * (1 if factor == 1 else 1j)
        if not np.allclose(analytical, numerical, self.rtol, self.atol):
            raise GradcheckError(
                f"Jacobian mismatch for output {j} with respect to input "
                f"{i},\nnumerical:{_shown(numerical)}\nanalytical:{_shown(analytical)}\n"
            )

    def undefined_gradients(self):
        """Check that backward gives no gradient, or zeros, where no output has one."""
        outs = [o for o in self.run() if isinstance(o, Tensor) and o.requires_grad]
        if not outs:
            return
        places = [views.place_of(o) for o in outs]
        inputs = [x for _, x in self.checked]
        work = engine.Pass(True, False)
        requested = [views.place_of(x) for x in inputs]
        work.captured = dict.fromkeys(requested)
        work.accumulate = False
        work.needed = engine.Needed.toward(places, requested)
        engine.run_pass([(p, None) for p in places], work)
        for g in work.captured.values():
            if g is not None and np.any(np.asarray(g) != 0):
                warnings.warn(
                    "Backwards compatibility: New undefined gradient support checking feature is enabled by default, "
                    "but it may break "
                    "existing callers of this function. If this is true for you, you can call this function with "
                    '"check_undefined_grad=False" to disable the feature',
                    stacklevel=4,
                )
                raise GradcheckError(
                    "Expected all inputs' gradients to be None or zero: Expected backward function to handle "
                    "undefined output grads. Please look "
                    'at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
                )

    def batches(self):
        """Check that a batch of cotangents gives the stacked gradients."""
        outs = [o for o in self.run() if isinstance(o, Tensor) and o.requires_grad]
        inputs = [x for _, x in self.checked]
        for out in outs:
            seed = wrap(np.random.default_rng(0).standard_normal((2, *out._data.shape)).astype(out._data.dtype))
            grad(out, inputs, seed, retain_graph=True, allow_unused=True, is_grads_batched=True)


def _shown(jacobian):
    return np.array2string(np.squeeze(jacobian.swapaxes(0, 1)), precision=4)


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=False,
):
    """Check second derivatives: gradients of the gradients with respect to inputs and grad_outputs.

    Args:
        func, inputs: as `gradcheck`.
        grad_outputs: the gradients with respect to the outputs; random by default.
        gen_non_contig_grad_outputs: make the random ones not contiguous.

    Returns:
        True if the check passes; raises as `gradcheck`.

    Example:
        >>> import fgrad.compat as torch
        >>> x = torch.tensor([1., 2.], dtype=torch.double, requires_grad=True)
        >>> torch.autograd.gradgradcheck(lambda x: x.sin(), x)
        True
    """
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    outs = func(*inputs)
    outs = [o for o in ((outs,) if isinstance(outs, Tensor) else outs) if isinstance(o, Tensor) and o.requires_grad]
    if grad_outputs is None:
        seeds = tuple([_random_like(o, gen_non_contig_grad_outputs) for o in outs])
    else:
        seeds = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
    count = len(inputs)

    def gradients(*args):
        given = tuple(
            [
                x.requires_grad_()
                if isinstance(x, Tensor) and x.is_leaf and x.is_floating_point() and k in wanted
                else x
                for k, x in enumerate(args[:count])
            ]
        )
        made = func(*given)
        made = [o for o in ((made,) if isinstance(made, Tensor) else made) if isinstance(o, Tensor) and o.requires_grad]
        targets = [given[k] for k in wanted]
        got = grad(made, targets, args[count:], create_graph=True, allow_unused=True)
        return tuple([g for g in got if g is not None])

    wanted = [k for k, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    with enable_grad():
        return gradcheck(
            _recording(gradients), (*inputs, *seeds), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
            nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad,
        )  # fmt: skip


def _recording(fun):
    """Return `fun` run with recording on: gradcheck turns it off, but here gradients are what is checked."""

    def call(*args):
        with enable_grad():
            return fun(*args)

    return call


def _random_like(o, strided):
    random = np.random.default_rng(0)
    shape = o._data.shape
    values = random.standard_normal((*shape, 2))
    if o._data.dtype.kind == "c":
        values = values + 1j * random.standard_normal((*shape, 2))
    values = values.astype(o._data.dtype)
    return wrap(values[..., 0] if strided and shape else np.array(values[..., 0])).requires_grad_()
