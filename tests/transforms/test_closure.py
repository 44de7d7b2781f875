"""Closures made arguments, names in Programs and messages, trees as vectors."""

import threading

import numpy as np
import pytest

import fgrad
from fgrad.check import check_grads
from fgrad.flatten_util import ravel_pytree


def test_hoists_what_is_traced_and_floating():
    seen = []

    def outer(w, n):
        constant = np.arange(3.0)
        converted, consts = fgrad.closure_convert(lambda x: {"y": w * x["a"] ** 2 + constant + n}, {"a": np.ones(3)})
        seen.append(len(consts))
        return converted({"a": 2 * np.ones(3)}, *consts)["y"].sum()

    assert fgrad.grad(outer)(1.5, 2) == 12.0
    assert fgrad.jit(outer)(1.5, 2) == outer(1.5, 2) == 27.0
    assert seen == [1, 1, 0]


def test_closures_reach_a_rule_of_ones_own():
    """A root finder that is given a function, as in JAX's documentation of closure_convert."""

    def solve(f, x0):
        converted, consts = fgrad.closure_convert(f, x0)
        return _solve(converted, x0, *consts)

    def find(f, x, *consts):
        for _ in range(40):
            x = x - f(x, *consts) / 3
        return x

    _solve = fgrad.custom_vjp(find, nondiff_argnums=(0,))

    def forward(f, x0, *consts):
        x = find(f, x0, *consts)
        return x, (x, consts)

    def backward(f, residuals, ct):
        x, consts = residuals
        by_x = fgrad.grad(f)(x, *consts)
        pulled = fgrad.vjp(lambda *c: f(x, *c), *consts)[1](-ct / by_x)
        return (np.zeros_like(x), *pulled)

    _solve.defvjp(forward, backward)
    np.testing.assert_allclose(fgrad.grad(lambda a: solve(lambda x: x**2 - a, 1.0))(2.0), 0.5 / np.sqrt(2), rtol=1e-6)


def test_refusals_of_closures():
    with pytest.raises(TypeError, match="closure_convert expects a function"):
        fgrad.closure_convert(3)
    converted, _ = fgrad.closure_convert(lambda x: x, 1.0)
    with pytest.raises(TypeError, match="the arguments must have the tree"):
        converted((1.0, 2.0))
    with pytest.raises(TypeError, match="the arguments must have the tree"):
        converted()


def test_known_values_are_computed_while_recording():
    @fgrad.jit
    def f(x):
        with fgrad.ensure_compile_time_eval():
            n = int(np.floor(np.sqrt(10.0)))
        return x * np.arange(n)

    np.testing.assert_array_equal(f(2.0), [0.0, 2.0, 4.0])


# -------------------------------------------------------------------------------------------------------- scopes


def test_scopes_stand_beside_equations():
    @fgrad.named_scope("outer")
    def f(x):
        with fgrad.named_scope("inner"):
            y = np.sin(x)
        return np.cos(y)

    lines = str(fgrad.make_ir(lambda x: np.exp(f(x)))(1.0)).splitlines()
    assert [line.partition("  # ")[2] for line in lines[1:4]] == ["outer/inner", "outer", ""]


def test_scopes_end_with_errors_and_are_a_threads_own():
    with pytest.raises(ZeroDivisionError), fgrad.named_scope("a"):
        raise ZeroDivisionError
    found = []
    with fgrad.named_scope("b"):
        thread = threading.Thread(target=lambda: found.append(str(fgrad.make_ir(np.sin)(1.0))))
        thread.start()
        thread.join()
    assert "#" not in found[0]


def test_errors_name_the_scope():
    @fgrad.jit
    def f(x):
        with fgrad.named_scope("head"):
            return 1.0 if x > 0 else 2.0

    with pytest.raises(fgrad.errors.TracerBoolConversionError, match=r"test_closure.py:\d+ in scope head"):
        f(1.0)


def test_named_calls():
    def f(x, *, k=1):
        """Multiply."""
        return x * k

    named = fgrad.named_call(f)
    assert (named.__name__, named.__doc__) == ("f", "Multiply.")
    assert "# f" in str(fgrad.make_ir(named)(1.0))
    assert "# g" in str(fgrad.make_ir(fgrad.named_call(f, name="g"))(1.0))
    assert fgrad.grad(lambda x: named(x, k=3))(1.0) == 3.0
    with pytest.raises(TypeError, match="named_call expects a function"):
        fgrad.named_call(3)
    with pytest.raises(TypeError, match="the name must be a string, got 3"):
        fgrad.named_scope(3)


# ------------------------------------------------------------------------------------------------ trees as vectors

TREES = {
    "leaf": np.arange(6.0).reshape(2, 3)[::-1],
    "nothing": {},
    "numbers": [1.0, 2, True],
    "dtypes": (np.ones(2, "float32"), np.arange(3, dtype="int8"), np.array(1.5)),
    "empty": {"a": np.zeros((0, 3)), "b": np.ones(1)},
    "complex": (np.ones(2) + 1j, np.ones(1)),
}


@pytest.mark.parametrize("name", TREES)
def test_a_tree_is_put_back(name):
    flat, unravel = ravel_pytree(TREES[name])
    assert flat.shape == (sum(np.size(x) for x in fgrad.tree.leaves(TREES[name])),)
    back = unravel(flat)
    assert fgrad.tree.structure(back) == fgrad.tree.structure(TREES[name])
    for x, y in zip(fgrad.tree.leaves(back), fgrad.tree.leaves(TREES[name]), strict=True):
        assert x.dtype == np.asarray(y).dtype
        np.testing.assert_array_equal(x, y)


def test_vectors_differentiate():
    tree = {"a": np.array([[1.0, 2.0]]), "b": 3.0}
    check_grads(lambda t: ravel_pytree(t)[0] ** 2, (tree,), order=2)
    flat, unravel = ravel_pytree(tree)
    check_grads(lambda v: unravel(v)["a"] * unravel(v)["b"], (flat,), order=2)
    np.testing.assert_array_equal(fgrad.jit(lambda t: ravel_pytree(t)[0])(tree), flat)
    assert fgrad.vmap(lambda v: unravel(v)["a"])(np.stack([flat, flat])).shape == (2, 1, 2)


def test_results_share_no_memory():
    x = np.ones(2)
    flat, unravel = ravel_pytree({"x": x})
    back = unravel(flat)["x"]
    flat[:] = 7
    assert x.sum() == back.sum() == 2.0


def test_refusals_of_vectors():
    _, unravel = ravel_pytree((np.ones(2, "float32"),))
    with pytest.raises(ValueError, match=r"must have shape \(2,\), got \(3,\)"):
        unravel(np.ones(3, "float32"))
    with pytest.raises(TypeError, match="must have dtype float32, got float64"):
        unravel(np.ones(2))
    with pytest.raises(TypeError, match="a leaf given to ravel_pytree"):
        ravel_pytree({"a": "text"})
