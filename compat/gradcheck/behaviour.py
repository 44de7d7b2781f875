"""What a derivative has to bear besides being right: gradients that are zero or missing, and batches of them."""

from __future__ import annotations

import warnings

import numpy as np

from .. import devices, forward_ad, func
from ..backward import grad, stack
from ..engine import Needed, Pass, run_pass
from ..tape import place_of
from ..tensor import wrap
from .jacobians import GradcheckError, Problem, dual_outputs, zeros_like


def check_zero_gradients(problem):
    """Check that zeros as gradients of the outputs give zeros: backward has to use what it is given."""
    if not problem.outputs:
        return
    zeros = [zeros_like(out) for out in problem.outputs]
    gradients = grad(problem.outputs, problem.checked, zeros, retain_graph=True, allow_unused=True)
    for g, x in zip(gradients, problem.checked):
        if g is None:
            continue
        if np.any(g._data != 0):
            raise GradcheckError("backward not multiplied by grad_output")
        if g.dtype != x.dtype:
            raise GradcheckError("grad is incorrect type")
        if g.shape != x.shape:
            raise GradcheckError("grad is incorrect size")


def check_missing_gradients(problem):
    """Check that backward bears outputs without a gradient: all of them, and each while the others get zeros."""
    if not problem.outputs:
        return
    count = len(problem.outputs)
    for missing in [set(range(count)), *([{k} for k in range(count)] if count > 1 else [])]:
        fresh = Problem(problem.func, problem.inputs)
        try:
            gradients = _gradients(fresh, missing)
        except RuntimeError as error:
            _warn_of_the_check()
            raise GradcheckError(
                "Expected backward function to handle undefined output grads. It was run without a gradient for "
                f"output {', '.join(map(str, sorted(missing)))}: {error}"
            ) from error
        if any(g is not None and np.any(devices.on_host(g) != 0) for g in gradients):
            _warn_of_the_check()
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero. "
                "Expected backward function to handle undefined output grads: it was run without a gradient for output "
                f"{', '.join(map(str, sorted(missing)))}."
            )


def _gradients(problem, missing):
    """Return the gradients of the checked inputs where some outputs have none and the others have zeros."""
    roots = [(place_of(o), None if k in missing else zeros_like(o)._data) for k, o in enumerate(problem.outputs)]
    requested = [place_of(x) for x in problem.checked]
    work = Pass(keep=False, create=False, captured=dict.fromkeys(requested), accumulate=False)
    work.needed = Needed.toward([place for place, _ in roots], requested)
    run_pass(roots, work)
    return list(work.captured.values())


def _warn_of_the_check():
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may "
        "break existing callers of this function. If this is true for you, you can call this function with "
        '"check_undefined_grad=False" to disable the feature',
        stacklevel=5,
    )


def check_missing_tangents(problem):
    """Check that forward mode gives the same for an input without a tangent as for one whose tangent is zero."""
    random = np.random.default_rng(1)
    tangents = {k: _random(random, x) for k, x in zip(problem.numbers, problem.checked)}
    for missing, x in zip(problem.numbers, problem.checked):
        with forward_ad.dual_level():
            zero = dual_outputs(problem, {**tangents, missing: zeros_like(x)})
            none = dual_outputs(problem, {**tangents, missing: None})
        for j, ((_, a), (_, b)) in enumerate(zip(zero, none)):
            if a is not None and b is not None and not np.allclose(a._data, b._data):
                raise GradcheckError(
                    f"Mismatch in tangent values for output with index: {j} when input {missing} has an undefined "
                    f"tangent value. Got: {a} but expected: {b}"
                )


# --------------------------------------------------------------------------------------------------------- batches


def check_batched_gradients(problem):
    """Check that backward run once under vmap gives what it gives for each gradient of a batch."""
    random = np.random.default_rng(2)
    for j, out in enumerate(problem.outputs):

        def pull(v, out=out):
            gradients = grad((out,), problem.checked, (v,), retain_graph=True, allow_unused=True)
            return tuple([zeros_like(x) if g is None else g for g, x in zip(gradients, problem.checked)])

        _same_in_batch(pull, [_random(random, out) for _ in range(2)], lambda i, j=j: f"For output {j} and input {i}")


def check_batched_tangents(problem):
    """Check that forward mode run once under vmap gives what it gives for each tangent of a batch."""
    random = np.random.default_rng(3)
    for i, (number, x) in enumerate(zip(problem.numbers, problem.checked)):

        def push(t, number=number):
            with forward_ad.dual_level():
                pairs = dual_outputs(problem, dict.fromkeys(problem.numbers) | {number: t})
                return tuple([zeros_like(value) if t is None else t for value, t in pairs])

        _same_in_batch(push, [_random(random, x) for _ in range(2)], lambda j, i=i: f"For output {j} and input {i}")


def _same_in_batch(derivative, examples, words):
    """Raise GradcheckError unless a derivative mapped over examples gives the stack of what it gives for each."""
    expected = [np.stack([devices.on_host(t._data) for t in each]) for each in zip(*map(derivative, examples))]
    message = "gradcheck or gradgradcheck failed while testing batched gradient computation"
    try:
        got = func.vmap(derivative)(stack(examples))
    except (RuntimeError, TypeError) as error:  # traced values refuse with a TypeError what they cannot do
        raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{message}.") from error
    for k, (a, b) in enumerate(zip(got, expected)):
        if not np.allclose(devices.on_host(a._data), b):
            raise GradcheckError(f"{words(k)}: {message}.\nGot:\n{a}\nExpected:\n{wrap(b)}")


def _random(random, x):
    values = random.standard_normal(x._data.shape)
    if x.is_complex():
        values = values + 1j * random.standard_normal(x._data.shape)
    return wrap(devices.beside(x._data, np.asarray(values, x._data.dtype)))
