"""`torch.autograd.functional`: Jacobians, Hessians and their products, of functions of tensors."""

from __future__ import annotations

import numpy as np

from . import devices, views
from .backward import grad
from .func import jacfwd
from .methods.table import FUNCTIONS
from .modes import enable_grad, mode
from .tensor import LEAF, Tensor, wrap

# ------------------------------------------------------------------------------------------ arguments and results


def _as_tuple(x, what, name):
    """Return a tensor or a tuple of tensors as (was a tuple, tuple); TypeError in torch's words for anything else."""
    tupled = isinstance(x, tuple)
    items = x if tupled else (x,)
    for i, item in enumerate(items):
        if isinstance(item, Tensor):
            continue
        if what == "outputs of the user-provided function":
            raise TypeError(
                f"The {what} given to {name} must "
                f"{'be either a Tensor or a tuple of Tensors' if not tupled else 'be Tensors'} "
                f"but {f'the value at index {i}' if tupled else 'it'} has type {type(item)}."
            )
        raise TypeError(
            f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but "
            f"{f'the value at index {i}' if tupled else 'the given ' + what} has type {type(item)}."
        )
    return tupled, items


def _prepared(inputs, create_graph):
    """Return inputs that gradients can be asked for: views of those given (differentiable), or leaves."""
    made = []
    for x in inputs:
        if create_graph and views.requires_grad(x):
            made.append(x.view_as(x))
        else:
            made.append(x.detach().requires_grad_())
    return tuple(made)


def _checked_v(v, others, of_inputs):
    """Raise RuntimeError unless v has the sizes of `others`."""
    if len(others) != len(v):
        if of_inputs:
            raise RuntimeError(
                f"The number of {'inputs'} ({len(others)}) and v ({len(v)}) must match: v is a tuple of invalid "
                f"length: should be {len(others)} but got {len(v)}."
            )
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(others)} but got {len(v)}.")
    for k, (a, b) in enumerate(zip(v, others)):
        if a.size() != b.size():
            prefix = f"Entry {k} in " if len(v) > 1 else ""
            raise RuntimeError(f"{prefix}v has invalid size: should be {b.size()} but got {a.size()}.")


def _strict_outputs(outputs, inputs, name):
    """Raise RuntimeError where an output does not depend on the inputs."""
    for k, out in enumerate(outputs):
        if not views.requires_grad(out):
            raise RuntimeError(
                f"Output {k} of the user-provided function does not require gradients. The outputs must be computed "
                "in a differentiable manner from the input when running in strict mode."
            )


def _filled(grads, like, strict, stage):
    """Return gradients with zeros in place of None; RuntimeError under strict."""
    messages = {
        "back": (
            "The output of the user-provided function is independent of input {}. This is not allowed in strict mode."
        ),
        "back_trick": (
            "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the "
            "double backward trick to compute forward mode gradients. This is not allowed in strict mode."
        ),
        "double_back": (
            "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode."
        ),
        "double_back_trick": (
            "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. This is not "
            "allowed in strict mode as it prevents from using the double backward trick to replace forward mode AD."
        ),
    }
    filled = []
    for k, (g, x) in enumerate(zip(grads, like)):
        if g is None:
            if strict:
                raise RuntimeError(messages[stage].format(k))
            g = wrap(devices.like(x._data, 0))
        elif strict and mode.enabled and stage.startswith("double") and not views.requires_grad(g):
            raise RuntimeError(messages[stage].format(k))
        filled.append(g)
    return tuple(filled)


def _gradients(outputs, inputs, seeds=None, create_graph=False):
    """Return `autograd.grad` of those outputs that require grad; None for every input if none does."""
    seeds = (None,) * len(outputs) if seeds is None else seeds
    pairs = [(o, s) for o, s in zip(outputs, seeds) if o is not None and views.requires_grad(o)]
    if not pairs:
        return (None,) * len(inputs)
    return grad(
        [o for o, _ in pairs],
        inputs,
        [s for _, s in pairs],
        create_graph=create_graph,
        retain_graph=True,
        allow_unused=True,
    )


def _returned(tensors, tupled, create_graph):
    """Return results in the form their origin had, cut from the graph unless it is wanted."""
    if not create_graph:
        tensors = tuple([t.detach() for t in tensors])
    return tensors if tupled else tensors[0]


# ---------------------------------------------------------------------------------------------------- products


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """Return `func(*inputs)` and the product of `v` with the Jacobian of `func` there.

    Args:
        func: a function from tensors to a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: of the sizes of the outputs; may be left out for a single output of one element.
        create_graph: make the results differentiable.
        strict: raise if an output does not depend on an input, in place of giving zeros.

    Raises:
        TypeError: inputs, outputs or v are no tensors.
        RuntimeError: v does not fit, or strict found an independence.

    Example:
        >>> import fgrad.compat as torch
        >>> torch.autograd.functional.vjp(lambda x: x.exp().sum(), torch.zeros(2))
        (tensor(2.), tensor([1., 1.]))
    """
    with enable_grad():
        in_tupled, inputs = _as_tuple(inputs, "inputs", "vjp")
        inputs = _prepared(inputs, create_graph)
        out_tupled, outputs = _as_tuple(func(*inputs), "outputs of the user-provided function", "vjp")
        if strict:
            _strict_outputs(outputs, inputs, "vjp")
        if v is not None:
            _, v = _as_tuple(v, "v", "vjp")
            v = _prepared_v(v, create_graph)
            _checked_v(v, outputs, False)
        elif len(outputs) != 1 or outputs[0]._data.size != 1:
            raise RuntimeError(
                "The vector v can only be None if the user-provided function returns a single Tensor with a single "
                "element."
            )
        got = _gradients(outputs, inputs, v, create_graph)
        products = _filled(got, inputs, strict, "back")
    return _returned(outputs, out_tupled, create_graph), _returned(products, in_tupled, create_graph)


def _prepared_v(v, create_graph):
    return v if create_graph else tuple([t.detach() for t in v])


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """Return `func(*inputs)` and the product of its Jacobian there with `v`, by two passes backward.

    Takes the arguments of `vjp`; `v` has the sizes of the inputs and may be left out for a single input of one element.

    Example:
        >>> import fgrad.compat as torch
        >>> torch.autograd.functional.jvp(lambda x: x ** 2, torch.tensor([3.]), torch.ones(1))
        (tensor([9.]), tensor([6.]))
    """
    with enable_grad():
        _, inputs = _as_tuple(inputs, "inputs", "jvp")
        inputs = _prepared(inputs, create_graph)
        if v is not None:
            _, v = _as_tuple(v, "v", "jvp")
            v = _prepared_v(v, create_graph)
            _checked_v(v, inputs, False)
        elif len(inputs) != 1 or inputs[0]._data.size != 1:
            raise RuntimeError(
                "The vector v can only be None if the input to the user-provided function is a single Tensor with a "
                "single element."
            )
        out_tupled, outputs = _as_tuple(func(*inputs), "outputs of the user-provided function", "jvp")
        if strict:
            _strict_outputs(outputs, inputs, "jvp")
        seeds = tuple([wrap(devices.like(o._data, 0), LEAF) for o in outputs])
        back = _filled(_gradients(outputs, inputs, seeds, True), inputs, strict, "back")
        v = v if v is not None else tuple([wrap(devices.like(x._data, 1)) for x in inputs])
        products = _filled(_gradients(back, seeds, v, create_graph), outputs, strict, "back_trick")
    return _returned(outputs, out_tupled, create_graph), _returned(products, out_tupled, create_graph)


def _scalar_output(func, inputs, name):
    tupled, outputs = _as_tuple(func(*inputs), "outputs of the user-provided function", name)
    if tupled or not isinstance(outputs[0], Tensor):
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0]._data.size != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
    return outputs[0].squeeze()


def _hessian_setup(func, inputs, v, create_graph, strict, name):
    """Return what vhp and hvp start from: inputs, v, the output and its recorded gradient."""
    tupled, inputs = _as_tuple(inputs, "inputs", name)
    inputs = _prepared(inputs, create_graph)
    if v is not None:
        _, v = _as_tuple(v, "v", name)
        v = _prepared_v(v, create_graph)
        _checked_v(v, inputs, False)
    elif len(inputs) != 1 or inputs[0]._data.size != 1:
        raise RuntimeError(
            "The vector v can only be None if the input to the user-provided function is a single Tensor with a "
            "single element."
        )
    out = _scalar_output(func, inputs, name)
    if strict:
        _strict_outputs((out,), inputs, name)
    jacobian = _filled(_gradients((out,), inputs, None, True), inputs, strict, "back")
    if strict:
        for k, g in enumerate(jacobian):
            if not views.requires_grad(g):
                raise RuntimeError(
                    "While computing the hessian, found that the jacobian of the user-provided function with respect "
                    f"to input {k} is independent of the input. This is not allowed in strict mode."
                )
    v = v if v is not None else tuple([wrap(devices.like(x._data, 1)) for x in inputs])
    return tupled, inputs, v, out, jacobian


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """Return `func(*inputs)` and the product of `v` with its Hessian there.

    Takes the arguments of `vjp`; `func` returns a single element, `v` has the sizes of the inputs.

    Example:
        >>> import fgrad.compat as torch
        >>> torch.autograd.functional.vhp(lambda x: (x ** 3).sum(), torch.ones(2), torch.ones(2))
        (tensor(2.), tensor([6., 6.]))
    """
    with enable_grad():
        tupled, inputs, v, out, jacobian = _hessian_setup(func, inputs, v, create_graph, strict, "vhp")
        got = _filled(_gradients(jacobian, inputs, v, create_graph), inputs, strict, "double_back")
    return _returned((out,), False, create_graph), _returned(got, tupled, create_graph)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """Return `func(*inputs)` and the product of its Hessian there with `v`, by the double backward trick.

    Takes the arguments of `vhp`, which is cheaper where the Hessian is symmetric.

    Example:
        >>> import fgrad.compat as torch
        >>> torch.autograd.functional.hvp(lambda x: (x ** 3).sum(), torch.ones(2), torch.ones(2))
        (tensor(2.), tensor([6., 6.]))
    """
    with enable_grad():
        tupled, inputs, v, out, jacobian = _hessian_setup(func, inputs, v, create_graph, strict, "hvp")
        seeds = tuple([wrap(devices.like(x._data, 0), LEAF) for x in inputs])
        back = _filled(_gradients(jacobian, inputs, seeds, True), inputs, strict, "double_back")
        got = _filled(_gradients(back, seeds, v, create_graph), inputs, strict, "double_back_trick")
    return _returned((out,), False, create_graph), _returned(got, tupled, create_graph)


# ------------------------------------------------------------------------------------------- Jacobian and Hessian


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """Return the Jacobian of `func` at `inputs`.

    Args:
        func: a function from tensors to a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        create_graph: make the result differentiable.
        strict: raise if an output does not depend on an input, in place of giving zeros.
        vectorize: compute all rows in one pass.
        strategy: "reverse-mode", or "forward-mode": one pass with all columns, for more outputs than inputs.

    Returns:
        For output i and input j a tensor of the shapes of both, one after the other: nested tuples where outputs or
        inputs are tuples.

    Example:
        >>> import fgrad.compat as torch
        >>> torch.autograd.functional.jacobian(lambda x: x * x, torch.tensor([1., 2.]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if vectorize and strict:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
            "Please either set `strict=False` or `vectorize=False`."
        )
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(f'Expected strategy to be either "forward-mode" or "reverse-mode". Got: {strategy}')
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
            "`vectorize=True`."
        )
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs, create_graph)
    with enable_grad():
        in_tupled, inputs = _as_tuple(inputs, "inputs", "jacobian")
        inputs = _prepared(inputs, create_graph)
        out_tupled, outputs = _as_tuple(func(*inputs), "outputs of the user-provided function", "jacobian")
        if strict:
            _strict_outputs(outputs, inputs, "jacobian")
        if vectorize:
            rows = tuple([_batched_jacobian(out, inputs, create_graph) for out in outputs])
        else:
            rows = tuple([_jacobian_of(out, k, inputs, create_graph, strict) for k, out in enumerate(outputs)])
    if not create_graph:
        rows = tuple([tuple([b.detach() for b in row]) for row in rows])
    if out_tupled:
        return rows if in_tupled else tuple([row[0] for row in rows])
    return rows[0] if in_tupled else rows[0][0]


def _forward_jacobian(func, inputs, create_graph):
    """Return the Jacobian by forward mode, batched over the elements of the inputs."""
    if create_graph:
        raise NotImplementedError(
            'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported '
            'together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
        )
    tupled, inputs = _as_tuple(inputs, "inputs", "jacobian")
    plain = [x.detach() for x in inputs]
    found = jacfwd(func, tuple(range(len(plain))))(*plain)
    if tupled:
        return found
    return tuple([row[0] for row in found]) if isinstance(found[0], tuple) else found[0]


def _batched_jacobian(out, inputs, create_graph):
    """Return the blocks of the Jacobian of one output, an input each, from one pass for all of its elements."""
    count, shape = out._data.size, out._data.shape
    if not views.requires_grad(out) or not count:
        return tuple(
            [
                wrap(devices.filled(0, (*shape, *x._data.shape), x._data.dtype, devices.place_of(x._data)))
                for x in inputs
            ]
        )
    basis = wrap(devices.beside(out._data, np.eye(count, dtype=out._data.dtype).reshape(count, *shape)))
    options = {"create_graph": create_graph, "retain_graph": True, "is_grads_batched": True}
    got = grad(out, inputs, basis, allow_unused=True, **options)
    return tuple(
        [
            wrap(devices.filled(0, (*shape, *x._data.shape), x._data.dtype, devices.place_of(x._data)))
            if g is None
            else g.reshape(*shape, *x._data.shape)
            for g, x in zip(got, inputs)
        ]
    )


def _jacobian_of(out, number, inputs, create_graph, strict):
    """Return the blocks of the Jacobian of one output, an input each."""
    columns = [[] for _ in inputs]
    flat = out.reshape(-1)
    for j in range(out._data.size):
        got = _gradients((flat[j],), inputs, None, create_graph)
        for k, (g, x) in enumerate(zip(got, inputs)):
            if g is None:
                if strict:
                    raise RuntimeError(
                        f"Output {number} of the user-provided function is independent of input {k}. This is not "
                        "allowed in strict mode."
                    )
                g = wrap(devices.like(x._data, 0))
            elif strict and create_graph and not views.requires_grad(g):
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {k}. This is not allowed in "
                    "strict mode when create_graph=True."
                )
            columns[k].append(g)
    return tuple([_block(column, out, x) for column, x in zip(columns, inputs)])


def _block(rows, out, x):
    """Return the gradients of each element of `out` with respect to `x`, stacked in the shapes of both."""
    shape = (*out._data.shape, *x._data.shape)
    return (
        FUNCTIONS["stack"](rows).view(*shape)
        if rows
        else wrap(devices.filled(0, shape, x._data.dtype, devices.place_of(x._data)))
    )


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """Return the Hessian of `func`, which returns a single element, at `inputs`.

    Takes the arguments of `jacobian`. For inputs i and j the result has the shapes of both: nested tuples for a tuple
    of inputs.

    Example:
        >>> import fgrad.compat as torch
        >>> torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), torch.ones(2))
        tensor([[6., 0.],
                [0., 6.]])
    """
    tupled, inputs = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(
            f'Expected strategy to be either "forward-mode" or "reverse-mode". Got: {outer_jacobian_strategy}'
        )

    if outer_jacobian_strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
            "`vectorize=True`."
        )

    def gradient(*given):
        out = _scalar_output(func, given, "hessian")
        if strict:
            _strict_outputs((out,), given, "hessian")
        got = _filled(_gradients((out,), given, None, True), given, strict, "back")
        if strict:
            for k, g in enumerate(got):
                if not views.requires_grad(g):
                    raise RuntimeError(
                        "While computing the hessian, found that the jacobian of the user-provided function with "
                        f"respect to input {k} is independent of the input. This is not allowed in strict mode."
                    )
        return got

    found = jacobian(gradient, inputs, create_graph, strict, vectorize)
    return found if tupled else found[0][0]
