"""Where a backward pass starts: `backward`, `grad`, and `grad_fn(g)`; their arguments, checked in torch's words."""

from __future__ import annotations

import warnings

from fgrad.extend import TABLE, Tracer, state, vmap

from . import devices
from .engine import Needed, Pass, accumulate, in_dtype_of, run_pass, shown_operands
from .graph import AccumulateGrad, GradientEdge, GraphNode
from .hooks import as_tensor
from .modes import mode
from .tape import Output, apply, moved, place_of
from .tensor import LEAF, Tensor, wrap


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Compute the sum of gradients of `tensors` with respect to the leaves of their graph, into `.grad`.

    Args:
        tensors: a tensor or a sequence of tensors, the roots.
        grad_tensors: for each root the gradient to start from, of its shape; None for roots of one element.
        retain_graph: keep what nodes saved, so that the graph may be walked again; by default as `create_graph`.
        create_graph: record the pass, so that gradients can be differentiated.
        grad_variables: deprecated name of `grad_tensors`.
        inputs: leaves (or other tensors) that alone accumulate a gradient.

    Raises:
        RuntimeError: a root does not require grad, a gradient is missing or of the wrong shape, the graph was freed, or
            a saved tensor was changed in place.

    Example:
        >>> import fgrad.compat as torch
        >>> x = torch.tensor([1., 2.], requires_grad=True)
        >>> torch.autograd.backward([(x * x).sum()])
        >>> x.grad
        tensor([2., 4.])
    """
    if grad_variables is not None:
        warnings.warn("'grad_variables' is deprecated. Use 'grad_tensors' instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "'grad_tensors' and 'grad_variables' (deprecated) arguments both passed to backward(). Please only "
                "use 'grad_tensors'."
            )
        grad_tensors = grad_variables
    roots = start(sequence(tensors), grad_tensors, create_graph)
    keep = create_graph if retain_graph is None else bool(retain_graph)
    work = Pass(keep, bool(create_graph))
    if inputs is not None:
        inputs = sequence(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        places = [requested_place(t) for t in inputs]
        work.captured = dict.fromkeys(places)
        work.needed = Needed.toward([place for place, _ in roots], places)
    run_pass(roots, work)
    for t in inputs or ():
        g = work.captured[place_of(t)]
        if t._node is not LEAF and g is not None:
            accumulate(t, g)


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    """Compute and return the sum of gradients of `outputs` with respect to `inputs`; `.grad` is not touched.

    Args:
        outputs: a tensor or a sequence of tensors.
        inputs: a tensor or a sequence of tensors; each gives one entry of the result.
        grad_outputs: for each output the gradient to start from; None for outputs of one element.
        retain_graph: keep what nodes saved; by default as `create_graph`.
        create_graph: record the pass, so that the results can be differentiated.
        only_inputs: False also accumulates into the other leaves.
        allow_unused: give None for inputs that the outputs do not depend on, in place of an error.
        is_grads_batched: `grad_outputs` have a batch dimension in front, and so will the results; computed in one pass,
            or row by row where a hook or a custom Function is on the way, or with `create_graph`.
        materialize_grads: give zeros in place of None.

    Raises:
        RuntimeError: as `backward`, or an input was not used in the graph.

    Example:
        >>> import fgrad.compat as torch
        >>> x = torch.tensor([3.], requires_grad=True)
        >>> torch.autograd.grad(x ** 2, x)
        (tensor([6.]),)
    """
    inputs = sequence(inputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if allow_unused is False and materialize_grads:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if is_grads_batched:
        return _grad_of_batch(
            outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads
        )
    roots = start(sequence(outputs), grad_outputs, create_graph)
    places = [requested_place(t) for t in inputs]
    work = Pass(create_graph if retain_graph is None else bool(retain_graph), bool(create_graph))
    work.captured = dict.fromkeys(places)
    if only_inputs:
        work.accumulate = False
        work.needed = Needed.toward([place for place, _ in roots], places)
    run_pass(roots, work)
    return tuple(
        [
            _result(work.captured[place], t, k, allow_unused or materialize_grads, materialize_grads, create_graph)
            for k, (place, t) in enumerate(zip(places, inputs))
        ]
    )


def _result(g, t, k, allowed, materialize, create):
    """Return one gradient as `grad` gives it."""
    if g is None:
        if not allowed:
            raise RuntimeError(
                f"The differentiated Tensor at index {k} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )
        return _zeros_for(t, create) if materialize else None
    if isinstance(g, Tensor):
        return g
    if isinstance(g, Tracer):
        return wrap(in_dtype_of(t, g))
    # A copy: the gradient may be a saved value, or the very array that the caller started from.
    return wrap(devices.copied(g if isinstance(t, GradientEdge) else in_dtype_of(t, g)))


def _grad_of_batch(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize):
    """Return the gradients for each gradient in a batch of them, stacked: in one pass where every node allows it."""
    batches = sequence(grad_outputs)
    roots = sequence(outputs)
    options = {"allow_unused": allow_unused or materialize}
    _check_batches(roots, batches)
    if not create_graph and _batchable(roots):
        found = _grad_in_one_pass(roots, inputs, batches, {"retain_graph": retain_graph, **options})
        return tuple([_zeros_for(t, False) if g is None and materialize else g for g, t in zip(found, inputs)])
    count = next(len(b) for b in batches if b is not None)
    rows = [
        grad(
            roots,
            inputs,
            [None if b is None else b[i] for b in batches],
            retain_graph or i + 1 < count or create_graph,
            create_graph,
            **options,
        )
        for i in range(count)
    ]
    missing = lambda t: _zeros_for(t, create_graph) if materialize else None  # noqa: E731
    return tuple([missing(t) if column[0] is None else stack(column) for column, t in zip(zip(*rows), inputs)])


def _zeros_for(t, create):
    """Return the gradient of an input that nothing depends on, if zeros are wanted for it."""
    return wrap(devices.like(t._data, 0), LEAF if create else None)


def _check_batches(roots, batches):
    """Raise RuntimeError in torch's words unless every batch of gradients holds ones of its root's shape."""
    for k, (root, g) in enumerate(zip(roots, batches)):
        if isinstance(g, Tensor) and isinstance(root, Tensor) and (not g._data.ndim or g.shape[1:] != root.shape):
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{k}] has a shape of {g.shape} and output[{k}] has a "
                f"shape of {root.shape}. If you only want some tensors in `grad_output` to be considered batched, "
                "consider using vmap."
            )


def _batchable(roots):
    """Return whether no node between roots and leaves runs a user's code, which takes one gradient at a time."""
    places = [place_of_edge(r) if isinstance(r, GradientEdge) else place_of(r) for r in roots]
    reached = Needed.toward(places, []).reached
    return not any(
        (p._extras is not None and p._extras.hooks) if isinstance(p, Tensor) else _is_hooked(p) or _is_custom(p)
        for p in reached
    )


def _is_hooked(place):
    more = place._more
    return more is not None and (more.tensor or more.pre or more.post or more.retains)


def _is_custom(place):
    return not isinstance(place, Output) and place._plan is None


def _grad_in_one_pass(roots, inputs, batches, options):
    """Run one pass on gradients batched by the core."""
    missing = []

    def pull(*rows):
        found = iter(rows)
        seeds = [None if b is None else wrap(next(found)) for b in batches]
        pulled = grad(roots, inputs, seeds, **options)
        missing.append([g is None for g in pulled])
        return [g._data for g in pulled if g is not None]

    results = iter(vmap(pull)(*[b._data for b in batches if b is not None]))
    return tuple([None if gone else wrap(next(results)) for gone in missing[0]])


def stack(tensors):
    """Return tensors of one shape along a new first dimension, recorded."""
    first = TABLE["concatenate"]
    rows = [t.unsqueeze(0) for t in tensors]
    return apply(first, rows, {"axis": 0}, state.interpreter)


def sequence(x):
    """Return one tensor, an edge or a sequence of them as a tuple."""
    if isinstance(x, (Tensor, GradientEdge)):
        return (x,)
    return tuple(x)


def requested_place(t):
    """Return the place whose gradient an entry of `inputs` asks for; RuntimeError if it requires no grad."""
    if isinstance(t, GradientEdge):
        return place_of_edge(t)
    place = place_of(t)
    if place is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return place


def start(roots, gradients, create):
    """Return pairs of a root's place and the gradient to start from, checked in torch's words."""
    if gradients is None or isinstance(gradients, Tensor):
        gradients = (gradients,) * (len(roots) if gradients is None else 1)
    gradients = tuple(gradients)
    if len(gradients) != len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(gradients)} gradients")
    pairs = []
    for k, (root, g) in enumerate(zip(roots, gradients)):
        place = place_of_edge(root) if isinstance(root, GradientEdge) else place_of(root)
        if place is None:
            raise RuntimeError(f"element {k} of tensors does not require grad and does not have a grad_fn")
        g = _implicit(root) if g is None else _explicit(root, g, k)
        pairs.append((place, g if create else g._data))
    return pairs


def place_of_edge(gradient_edge):
    """Return the place that an edge names."""
    node, index = gradient_edge
    if isinstance(node, AccumulateGrad):
        return node.variable
    return node.place(index)


def _implicit(root):
    """Return the gradient 1 of a root of one element."""
    if root._data.size != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if root._data.dtype.kind == "c":
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {root.dtype!r}")
    return wrap(devices.like(root._data, 1))


def _explicit(root, g, k):
    """Return a gradient given by the caller, checked against its root."""
    if not isinstance(g, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    if isinstance(root, GradientEdge):
        return g
    if g.shape != root.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{k}] has a shape of {g.shape} and output[{k}] has a shape of {root.shape}."
        )
    if (g._data.dtype.kind == "c") != (root._data.dtype.kind == "c"):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{k}] has a dtype of {g.dtype} and output[{k}] has a dtype of {root.dtype}."
        )
    if g._data.__class__ is not root._data.__class__ and not isinstance(g._data, Tracer):
        g = _beside(root, g, k)
    return g if g._data.dtype == root._data.dtype else g.to(root.dtype)


def _beside(root, g, k):
    """Return a gradient where its root is: a number is moved there; RuntimeError in torch's words for others."""
    here, there = root.device, g.device
    if here != there and g._data.ndim:
        raise RuntimeError(f"invalid gradient at index {k} - expected device {here} but got {there}")
    return moved(g, devices.place_of(root._data))


def call_node(node, *grads):
    """Run one node on gradients of its outputs and return those of its inputs: what `grad_fn(g)` does.

    Raises:
        TypeError: the number of gradients is not that of the outputs.
    """
    width = getattr(node, "_width", 1) if node._plan is None or node._plan.prim.multiple else 1
    if len(grads) != width:
        raise TypeError(f"expected {width} arguments, got {len(grads)} instead")
    operands = shown_operands(node)
    sources = [place for place in operands if place is not None]
    work = Pass(True, mode.enabled, accumulate=False)
    work.captured = dict.fromkeys(sources)
    work.needed = Needed.toward([node], sources)
    work.needed.interior -= set(sources)
    given = [None if g is None else g if work.create else g._data for g in grads]
    run_pass([(node, given if width > 1 else given[0])], work)
    pulled = tuple([None if place is None else as_tensor(work.captured[place]) for place in operands])
    return pulled[0] if len(pulled) == 1 else pulled


GraphNode.__call__ = call_node
