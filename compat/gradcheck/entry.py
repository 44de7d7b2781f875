"""`gradcheck` and `gradgradcheck`: their arguments, checked in torch's words, and the order of the checks."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from .. import devices
from ..backward import grad
from ..modes import enable_grad
from ..tensor import Tensor, wrap
from . import behaviour
from .comparison import compare
from .jacobians import GradcheckError, Problem, as_tuple, dense_part


class Rules(NamedTuple):
    """What is compared and how closely: the arguments of `gradcheck` that its parts share."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_grad_dtypes: bool
    check_forward_ad: bool
    check_backward_ad: bool
    fast_mode: bool


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
        inputs: a tensor or a tuple; those of a floating or complex dtype that require grad are checked. Double
            precision is expected. They are changed in place and put back.
        eps: the step of the differences.
        atol, rtol: how far gradients may be off: by `atol + rtol * abs(numerical)`.
        raise_exception: raise if the check fails, in place of returning False.
        check_sparse_nnz, masked: take sparse inputs, and check their gradients at the stored positions.
        nondet_tol: how far two backward passes may differ.
        check_undefined_grad: check that backward handles outputs without a gradient, and forward mode inputs without
            a tangent.
        check_grad_dtypes: check that gradients have their inputs' dtypes.
        check_batched_grad: check that backward under vmap gives the gradients of a batch.
        check_batched_forward_grad: check that forward mode under vmap gives the tangents of a batch.
        check_forward_ad: check forward mode.
        check_backward_ad: check backward.
        fast_mode: compare random projections of the Jacobians, which takes a few calls of `func` in place of two for
            each element of the inputs.

    Returns:
        True if the check passes.

    Raises:
        GradcheckError: (a RuntimeError) the check fails; the message shows both Jacobians and the worst entry.
        ValueError: no input requires grad.
        AssertionError: nothing is to be checked, or outputs change their shape or dtype as the inputs are moved.

    Example:
        >>> import fgrad.compat as torch
        >>> x = torch.tensor([1., 2.], dtype=torch.double, requires_grad=True)
        >>> torch.autograd.gradcheck(lambda x: x.sin(), x, check_forward_ad=True, check_batched_grad=True)
        True
    """
    _require(check_forward_ad or check_backward_ad, "Expected at least one of check_forward_ad or check_backward_ad")
    _require(check_backward_ad or not check_batched_grad, "Setting check_batched_grad=True requires check_backward_ad")
    _require(
        check_forward_ad or not check_batched_forward_grad,
        "Setting check_batched_forward_grad=True requires check_forward_ad",
    )
    inputs = as_tuple(inputs)
    _inputs_fit(inputs, check_sparse_nnz or masked)
    rules = Rules(eps, atol, rtol, nondet_tol, check_grad_dtypes, check_forward_ad, check_backward_ad, fast_mode)
    try:
        problem = Problem(func, inputs)
        _outputs_fit(problem.found)
        compare(problem, rules)
        if check_forward_ad and check_undefined_grad:
            behaviour.check_missing_tangents(problem)
        if check_batched_forward_grad:
            behaviour.check_batched_tangents(problem)
        if check_batched_grad:
            behaviour.check_batched_gradients(problem)
        if check_backward_ad:
            behaviour.check_zero_gradients(problem)
            if check_undefined_grad:
                behaviour.check_missing_gradients(problem)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _require(holds, what):
    if not holds:
        raise AssertionError(f"{what} to be True")


def _inputs_fit(inputs, sparse):
    """Warn of low precision and shared memory; RuntimeError for stride 0, ValueError if there is nothing to check."""
    wanted = [(k, x) for k, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for k, x in wanted:
        if x.is_sparse and not sparse:
            raise RuntimeError(
                f"gradcheck expects all tensor inputs are dense when check_sparse_nnz is set to False: input {k} is "
                "sparse. check_sparse_nnz=True (or masked=True) checks its gradient at the stored positions."
            )
        data = dense_part(x)._data
        if data.dtype not in (np.float64, np.complex128):
            warnings.warn(
                f"Input #{k} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=3,
            )
        if any(s == 0 and n > 1 for s, n in zip(data.strides, data.shape)):
            raise RuntimeError(
                f"The {k}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous "
                "on the input before passing it to gradcheck."
            )
        if _overlaps(data):
            warnings.warn(
                f"Input #{k} has elements that share memory with one another: they are moved together, and this check "
                "will likely fail. Call .contiguous() on it before passing it to gradcheck.",
                stacklevel=3,
            )


def _overlaps(data):
    """Return whether two elements of an array lie at one address."""
    if data.flags.c_contiguous or data.flags.f_contiguous:
        return False
    addresses = np.zeros((), np.int64)
    for n, stride in zip(data.shape, data.strides):
        addresses = np.add.outer(addresses, np.arange(n) * stride)
    return np.unique(addresses).size < data.size


def _outputs_fit(outputs):
    if any(isinstance(out, Tensor) and out.is_sparse for out in outputs):
        raise ValueError(
            "Sparse output is not supported at gradcheck yet. Please call to_dense() on the output of fn for gradcheck."
        )


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
        check_rev_over_rev: check gradients of the gradients.
        check_fwd_over_rev: check tangents of the gradients, by forward mode.
        eps, atol, rtol, raise_exception, nondet_tol, fast_mode, masked: as `gradcheck`.
        check_undefined_grad, check_grad_dtypes, check_batched_grad: as `gradcheck`.

    Returns:
        True if the check passes; raises as `gradcheck`.

    Example:
        >>> import fgrad.compat as torch
        >>> x = torch.tensor([1., 2.], dtype=torch.double, requires_grad=True)
        >>> torch.autograd.gradgradcheck(lambda x: x.sin(), x)
        True
    """
    _require(
        check_fwd_over_rev or check_rev_over_rev, "Expected at least one of check_fwd_over_rev or check_rev_over_rev"
    )
    _require(
        check_rev_over_rev or not check_undefined_grad, "Setting check_undefined_grad=True requires check_rev_over_rev"
    )
    _require(
        check_rev_over_rev or not check_batched_grad, "Setting check_batched_grad=True requires check_rev_over_rev"
    )
    inputs = as_tuple(inputs)
    seeds = _seeds(func, inputs, gen_non_contig_grad_outputs) if grad_outputs is None else as_tuple(grad_outputs)
    with enable_grad():
        return gradcheck(
            _gradients_of(func, inputs, seeds), (*inputs, *seeds), eps=eps, atol=atol, rtol=rtol,
            raise_exception=raise_exception, nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad,
            check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
            check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev, fast_mode=fast_mode,
            masked=masked,
        )  # fmt: skip


def _gradients_of(func, inputs, seeds):
    """Return the function of inputs and gradients of the outputs that gives the gradients of the inputs."""
    count = len(inputs)
    wanted = [isinstance(x, Tensor) and x.requires_grad for x in (*inputs, *seeds)]

    def gradients(*args):
        # Forward mode hands in tensors that are detached: they require grad as the given ones did.
        args = [x.requires_grad_() if w and not x.requires_grad else x for x, w in zip(args, wanted)]
        outs = [o for o in as_tuple(func(*args[:count])) if isinstance(o, Tensor) and o.requires_grad]
        targets = [dense_part(x) for x, w in zip(args[:count], wanted) if w]
        found = grad(outs, targets, args[count:], create_graph=True, allow_unused=True)
        return tuple([g for g in found if g is not None])

    return gradients


def _seeds(func, inputs, strided):
    """Return random gradients for the outputs of a function; with gaps between the elements if `strided`."""
    random = np.random.default_rng(0)
    seeds = []
    for out in as_tuple(func(*inputs)):
        if isinstance(out, Tensor) and out.requires_grad:
            values = random.uniform(-1, 1, (*out.shape, 2))
            if out.is_complex():
                values = values + 1j * random.uniform(-1, 1, (*out.shape, 2))
            values = values.astype(out._data.dtype)
            values = devices.beside(out._data, values)
            seeds.append(wrap(values[..., 0] if strided and out.ndim else values[..., 0].copy()).requires_grad_())
    return tuple(seeds)
