"""Structured control flow: loops and branches as single operations, traceable and differentiable.

Bodies are recorded once; what they close over is found there and passed along. Under `fgrad.disable_jit()` they run
as plain Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fgrad import tree
from fgrad.core import ArrayType, Tracer, type_of
from fgrad.ops import control as c
from fgrad.ops.elementwise import clamp, select
from fgrad.program import Program, Traced, trace
from fgrad.source import function_label
from fgrad.transforms.checkpoint import checkpoint
from fgrad.transforms.jit import jit_enabled
from fgrad.transforms.linearize import as_operand, check_callable
from fgrad.transforms.programs import prefixed
from fgrad.transforms.vmap import vmap


def leaves_of(x: Any, name: str) -> tuple[list[Any], Any]:
    """Return the leaves of a pytree as arrays, strong where they are Python numbers, and its tree."""
    leaves, treedef = tree.flatten(x)
    return [as_operand(leaf, name) for leaf in leaves], treedef


def _array(x: Any) -> Any:
    return x if isinstance(x, Tracer) else np.asarray(x)


def record(fun: Callable[..., Any], args: Sequence[Any], name: str) -> tuple[Traced, Program, list[Any]]:
    """Record `fun(*args)` given types in the place of leaves; return it, with its closed-over values lifted."""
    leaves, treedef = tree.flatten((tuple(args), {}))
    traced = trace(fun, [type_of(x) for x in leaves], treedef, function_label(name, fun))
    program, consts = traced.program.simplify().lifted()
    return traced, program, consts


# ---------------------------------------------------------------------------------------------------- scan


def scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Carry a state along the leading axis of `xs`: `carry, y = f(carry, x)` per step; return the carry and all ys.

    Args:
        f: `(carry, x) -> (carry, y)`; the carry keeps its tree, shapes and dtypes.
        init: the first carry, any pytree. Python numbers in it take the dtype that the step gives.
        xs: pytree of arrays with equal leading sizes, or None.
        length: number of steps, needed if `xs` is None.
        reverse: go from the last step to the first; ys keep their places.
        unroll: accepted for JAX's signature; steps are not unrolled.

    Returns:
        `(carry, ys)`, ys stacked along a new leading axis.

    Raises:
        ValueError: leading sizes differ, or contradict `length`.
        TypeError: `f` is not callable, returns no pair, or changes the carry's tree, shapes or dtypes.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.lax.scan(lambda c, x: (c + x, c * x), 0., np.array([1., 2., 3.]))
        (array(6.), array([0., 2., 9.]))
    """
    check_callable("scan", f)
    x_leaves, x_tree = leaves_of(xs, "xs of scan")
    steps = _length([type_of(x) for x in x_leaves], length)
    if not jit_enabled():
        return _scan_in_python(f, init, x_leaves, x_tree, steps, reverse)
    carry, c_tree = leaves_of(init, "init of scan")
    x_types = [ArrayType(x.shape[1:], x.dtype) for x in [type_of(x) for x in x_leaves]]
    traced, program, consts, carry = _record_step(f, carry, c_tree, tree.unflatten(x_tree, x_types))
    k = len(carry)
    outs = c.scan(
        *consts, *carry, *x_leaves, body=program, length=steps, reverse=bool(reverse), consts=len(consts), carries=k
    )
    out_carry, out_ys = tree.treedef_children(traced.out_tree)
    return tree.unflatten(out_carry, arrays(outs[:k])), tree.unflatten(out_ys, list(outs[k:]))


def _length(kinds: Sequence[ArrayType], length: int | None) -> int:
    """Return the number of steps; ValueError if it is unknown or sizes differ."""
    for kind in kinds:
        if not kind.shape:
            raise ValueError(f"scan got an array without a leading axis in xs: {kind}")
    sizes = {kind.shape[0] for kind in kinds}
    if length is not None:
        sizes.add(int(length))
    if len(sizes) != 1:
        what = f"leading axis sizes {sorted(k.shape[0] for k in kinds)}" if kinds else "no xs"
        given = "" if length is None else f" and length={length}"
        raise ValueError(f"scan needs one number of steps, got {what}{given}")
    return sizes.pop()


def _record_step(
    f: Callable[..., Any], carry: list[Any], c_tree: Any, x: Any
) -> tuple[Traced, Program, list[Any], list[Any]]:
    """Record one step; a weak carry (a Python number) takes the dtype that comes out of the step."""
    for _ in range(2):
        kinds = [type_of(v).strong() for v in carry]
        traced, program, consts = record(f, (tree.unflatten(c_tree, kinds), x), "scan")
        children = tree.treedef_children(traced.out_tree)
        if len(children) != 2 or tree.structure((0, 0)).node_data() != traced.out_tree.node_data():
            raise TypeError(f"scan: the function must return a pair (carry, y), got {traced.out_tree}")
        outs = program.out_types[: children[0].num_leaves]
        promoted = [
            np.asarray(v, o.dtype) if type_of(v).weak and not isinstance(v, Tracer) and o.dtype != t.dtype else v
            for v, t, o in zip(carry, kinds, outs, strict=False)
        ]
        if all(p is v for p, v in zip(promoted, carry, strict=True)):
            break
        carry = promoted
    check_carry("scan", c_tree, kinds, children[0], outs)
    return traced, program, consts, [_array(v) for v in carry]


def check_carry(name: str, in_tree: Any, kinds: Sequence[ArrayType], out_tree: Any, outs: Sequence[ArrayType]) -> None:
    """Raise TypeError unless the carry keeps its tree and types; the message lists the components that differ."""
    if in_tree != out_tree:
        raise TypeError(f"{name}: the carry must keep its tree, which is {in_tree} going in and {out_tree} coming out")
    paths = [tree.keystr(path) for path, _ in tree.leaves_with_path(tree.unflatten(in_tree, list(kinds)))]
    wrong = [
        f"  carry{path} goes in as {a} and comes out as {b}"
        for path, a, b in zip(paths, kinds, outs, strict=True)
        if a.shape != b.shape or a.dtype != b.dtype
    ]
    if wrong:
        raise TypeError(f"{name}: the carry must keep its shapes and dtypes, but\n" + "\n".join(wrong))


def _scan_in_python(f: Any, init: Any, x_leaves: Any, x_tree: Any, steps: int, reverse: bool) -> tuple[Any, Any]:
    carry, ys = init, []
    for i in reversed(range(steps)) if reverse else range(steps):
        carry, y = f(carry, tree.unflatten(x_tree, [x[i] for x in x_leaves]))
        ys.append(y)
    if reverse:
        ys.reverse()
    return carry, tree.map(lambda *parts: np.stack(parts), *ys) if ys else None


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Apply `f` to each slice of `xs` along the leading axis, one after the other, and stack the results.

    Args:
        f: a function of one slice (a pytree if `xs` is one).
        xs: pytree of arrays with equal leading sizes.
        batch_size: if given, slices are vectorised by `vmap` in groups of this size.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.lax.map(lambda x: x * x, np.array([1., 2., 3.]))
        array([1., 4., 9.])
    """
    check_callable("map", f)
    if batch_size is not None:
        return _map_in_batches(f, xs, batch_size)
    return scan(lambda _, x: (None, f(x)), None, xs)[1]


def _map_in_batches(f: Callable[[Any], Any], xs: Any, size: int) -> Any:
    leaves, treedef = leaves_of(xs, "xs of map")
    count = _length([type_of(x) for x in leaves], None)
    many = vmap(f)
    whole = count // size
    parts = []
    if whole:
        shaped = [x[: whole * size].reshape((whole, size, *x.shape[1:])) for x in leaves]
        out = scan(lambda _, x: (None, many(x)), None, tree.unflatten(treedef, shaped))[1]
        parts.append(tree.map(lambda y: y.reshape((whole * size, *y.shape[2:])), out))
    if whole * size < count or not parts:
        parts.append(many(tree.unflatten(treedef, [x[whole * size :] for x in leaves])))
    return parts[0] if len(parts) == 1 else tree.map(lambda *ys: np.concatenate(ys), *parts)


# --------------------------------------------------------------------------------------------------- branches


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Apply the branch number `index`, clamped to the branches there are, to `operands`.

    Args:
        index: an integer scalar.
        branches: functions of the operands with results of equal tree, shapes and dtypes.
        *operands: pytrees.

    Raises:
        ValueError: there is no branch.
        TypeError: `index` is no integer scalar; a branch is not callable; results differ.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.lax.switch(1, [np.sin, np.negative], np.array(2.))
        array(-2.)
    """
    branches = list(branches)
    if not branches:
        raise ValueError("switch needs at least one branch")
    for branch in branches:
        check_callable("switch", branch)
    index = as_operand(index, "index of switch")
    kind = type_of(index)
    if kind.shape or kind.dtype.kind not in "iu":
        raise TypeError(f"switch: the index must be an integer scalar, got {kind}")
    index = (
        clamp(index, 0, len(branches) - 1) if isinstance(index, Tracer) else min(max(int(index), 0), len(branches) - 1)
    )
    return _choose(index, branches, operands, "switch")


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """Apply `true_fun` or `false_fun` to `operands`, as `pred` says; only that one is computed and differentiated.

    Under vmap with a predicate per example both are computed and the results selected.

    Args:
        pred: a bool or number scalar.
        true_fun, false_fun: functions of the operands with results of equal tree, shapes and dtypes.
        *operands: pytrees.

    Raises:
        TypeError: `pred` is no scalar; a branch is not callable; results differ (the message says where).

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.grad(lambda x: fgrad.lax.cond(x > 0, np.sqrt, lambda x: x, x))(np.array(-1.))
        array(1.)
    """
    if not callable(true_fun) and callable(false_fun) and len(operands) == 2 and callable(operands[1]):
        return cond(pred, _on(false_fun, true_fun), _on(operands[1], operands[0]))  # the old operand-first form
    check_callable("cond", true_fun)
    check_callable("cond", false_fun)
    if pred is None or isinstance(pred, (tuple, list, dict)):
        raise TypeError(f"cond: the predicate must be a bool or number scalar, got {pred!r}")
    pred = as_operand(pred, "predicate of cond")
    kind = type_of(pred)
    if kind.shape or kind.dtype.kind not in "biuf":
        raise TypeError(f"cond: the predicate must be a bool or number scalar, got {kind}")
    if not jit_enabled():
        return true_fun(*operands) if pred else false_fun(*operands)
    index = (pred != 0).astype(np.int64) if isinstance(pred, Tracer) else int(bool(pred))
    return _choose(index, [false_fun, true_fun], operands, "cond")


def _on(fun: Callable[..., Any], operand: Any) -> Callable[[], Any]:
    return lambda: fun(operand)


def _choose(index: Any, branches: Sequence[Callable[..., Any]], operands: Sequence[Any], name: str) -> Any:
    """Record the branches, give each the closed-over values of all, and bind the choice."""
    if not jit_enabled():
        return branches[int(index)](*operands)
    leaves, treedef = leaves_of(tuple(operands), f"an operand of {name}")
    kinds = [type_of(x) for x in leaves]
    recorded = [record(f, tree.unflatten(treedef, kinds), name) for f in branches]
    first = recorded[0][0]
    for k, (traced, _, _) in enumerate(recorded[1:], 1):
        _check_branches(name, first, traced, k)
    programs = []
    all_consts = [[type_of(x) for x in consts] for _, _, consts in recorded]
    for k, (_, program, _) in enumerate(recorded):
        before = [t for ts in all_consts[:k] for t in ts]
        after = [t for ts in all_consts[k + 1 :] for t in ts]
        own, rest = program.inputs[: len(all_consts[k])], program.inputs[len(all_consts[k]) :]
        inner = Program(program.label, own, (), program.equations, program.outputs)
        wide = prefixed(inner, before, after)
        programs.append(Program(wide.label, [*wide.inputs, *rest], (), wide.equations, wide.outputs))
    consts = [x for _, _, values in recorded for x in values]
    outs = c.cond(index, *consts, *leaves, branches=tuple(programs))
    return tree.unflatten(first.out_tree, arrays(outs))


def arrays(outs: Sequence[Any]) -> list[Any]:
    """Return outputs as arrays or traced values."""
    return [_array(x) for x in outs]


def _check_branches(name: str, first: Traced, other: Traced, k: int) -> None:
    """Raise TypeError unless two branches give the same tree and types."""
    labels = ("false_fun", "true_fun") if name == "cond" else (f"branch 0 of {name}", f"branch {k} of {name}")
    if first.out_tree != other.out_tree:
        raise TypeError(
            f"{name}: branches must return the same tree, but {labels[0]} returns {first.out_tree} and {labels[1]} "
            f"{other.out_tree}"
        )
    a_types, b_types = first.program.out_types, other.program.out_types
    paths = [tree.keystr(path) for path, _ in tree.leaves_with_path(tree.unflatten(first.out_tree, a_types))]
    wrong = [
        f"  output{path} is {a} in {labels[0]} and {b} in {labels[1]}"
        for path, a, b in zip(paths, a_types, b_types, strict=True)
        if a.shape != b.shape or a.dtype != b.dtype
    ]
    if wrong:
        raise TypeError(f"{name}: branches must return the same shapes and dtypes, but\n" + "\n".join(wrong))


# ------------------------------------------------------------------------------------------------------ loops


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any, *, max_steps: int | None = None
) -> Any:
    """Apply `body_fun` to the state for as long as `cond_fun` of it is true.

    Forward mode works; reverse mode needs `max_steps`. Under vmap the loop runs until all examples are done, and those
    that are done keep their state.

    Args:
        cond_fun: state -> bool scalar.
        body_fun: state -> state of the same tree, shapes and dtypes.
        init_val: the first state, any pytree.
        max_steps: a bound on the number of steps, n. With it the loop has reverse mode in memory for 2√n states: the
            steps run in √n blocks of √n, and the backward pass runs each block again. A loop that is not done after n
            steps raises ValueError where its state is known, and gives nan where it is traced.

    Raises:
        TypeError: a function is not callable, the condition is no bool scalar, or the state changes type.
        ValueError: `max_steps` is negative, or too small.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.lax.while_loop(lambda x: x < 100, lambda x: 2 * x, np.array(3.))
        array(192.)
    """
    check_callable("while_loop", cond_fun)
    check_callable("while_loop", body_fun)
    if max_steps is not None:
        return _bounded_loop(cond_fun, body_fun, init_val, max_steps)
    if not jit_enabled():
        while cond_fun(init_val):
            init_val = body_fun(init_val)
        return init_val
    leaves, treedef = leaves_of(init_val, "init_val of while_loop")
    for _ in range(2):
        kinds = [type_of(x).strong() for x in leaves]
        traced, body, body_consts = record(body_fun, (tree.unflatten(treedef, kinds),), "while_loop")
        if traced.out_tree != treedef:
            break
        leaves = [
            np.asarray(x, o.dtype) if type_of(x).weak and not isinstance(x, Tracer) else x
            for x, o in zip(leaves, body.out_types, strict=True)
        ]
    check_carry("while_loop", treedef, kinds, traced.out_tree, body.out_types)
    checked, test, test_consts = record(cond_fun, (tree.unflatten(treedef, kinds),), "while_loop")
    if len(test.outputs) != 1 or test.out_types[0].shape or test.out_types[0].dtype.kind != "b":
        raise TypeError(f"while_loop: cond_fun must return a bool scalar, got {test.out_types} in {checked.out_tree}")
    outs = c.while_loop(
        *test_consts,
        *body_consts,
        *[_array(x) for x in leaves],
        test=test,
        body=body,
        test_consts=len(test_consts),
        body_consts=len(body_consts),
    )
    return tree.unflatten(treedef, arrays(outs))


def _bounded_loop(test: Callable[[Any], Any], body: Callable[[Any], Any], init: Any, max_steps: int) -> Any:
    """Run a loop of at most `max_steps` as blocks of steps, each block recomputed in the backward pass."""
    if not isinstance(max_steps, (int, np.integer)):
        raise TypeError(f"while_loop: max_steps must be an int, got {max_steps!r}")
    if max_steps < 0:
        raise ValueError(f"while_loop: max_steps must not be negative, got {max_steps}")
    init = tree.map(lambda x: _array(as_operand(x, "init_val of while_loop")), init)
    size = math.isqrt(max_steps)
    blocks = max_steps // size if size else 0

    def step(value: Any) -> Any:
        return cond(test(value), body, lambda v: v, value)

    def steps(value: Any, count: int) -> Any:
        return scan(lambda v, _: (step(v), None), value, None, length=count)[0]

    @checkpoint
    def block(value: Any) -> Any:
        return steps(value, size)

    value = init
    if blocks:
        value = scan(lambda v, _: (cond(test(v), block, lambda u: u, v), None), value, None, length=blocks)[0]
    value = steps(value, max_steps - blocks * size)
    return _checked_end(test(value), value, max_steps)


def _checked_end(going: Any, value: Any, max_steps: int) -> Any:
    """Return the state of a bounded loop if it is done; if not, ValueError, or nan in it and its derivatives."""
    if not isinstance(going, Tracer):
        if going:
            raise ValueError(f"while_loop: the condition still holds after max_steps={max_steps} steps")
        return value

    def spoil(x: Any) -> Any:
        dtype = type_of(x).dtype
        return x * select(going, dtype.type(np.nan), dtype.type(1)) if dtype.kind in "fc" else x

    return tree.map(spoil, value)


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any, *, unroll: Any = None) -> Any:
    """Apply `state = body_fun(i, state)` for i from `lower` to `upper - 1`.

    With bounds that are known it is a scan and has reverse mode; with traced bounds it is a `while_loop`.

    Args:
        lower, upper: integer scalars; `upper <= lower` gives `init_val`.
        body_fun: `(i, state) -> state` of the same tree, shapes and dtypes.
        init_val: the first state, any pytree.
        unroll: accepted for JAX's signature; steps are not unrolled.

    Raises:
        TypeError: bounds are no integers, `body_fun` is not callable or changes the state's type.

    Example:
        >>> import numpy as np, fgrad
        >>> fgrad.lax.fori_loop(0, 5, lambda i, x: x + i, np.array(0))
        array(10)
    """
    check_callable("fori_loop", body_fun)
    bounds = [as_operand(b, "a bound of fori_loop") for b in (lower, upper)]
    kinds = [type_of(b) for b in bounds]
    if any(k.shape or k.dtype.kind not in "iu" for k in kinds):
        raise TypeError(f"fori_loop: bounds must be integer scalars, got {kinds[0]} and {kinds[1]}")
    if not any(isinstance(b, Tracer) and b.concrete() is None for b in bounds):
        dtype = np.result_type(*[k.dtype for k in kinds])
        steps = np.arange(int(lower), int(upper), dtype=dtype)
        return scan(lambda state, i: (body_fun(i, state), None), init_val, steps)[0]
    lo, hi = bounds

    def body(both: Any) -> Any:
        i, state = both
        return i + 1, body_fun(i, state)

    return while_loop(lambda both: both[0] < hi, body, (lo + 0 * hi, init_val))[1]
