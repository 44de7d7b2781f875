"""Loud instead of silently wrong: arrays that are changed in place, and memory that results might share.

An argument, a closed-over array or a buffer of f's own may be written to at any time before the pullback runs. The
gradient is the right one or an error says what happened; it is never a wrong number.
"""

import itertools

import numpy as np
import pytest

import fgrad

N = 6


def start():
    return np.linspace(0.5, 1.5, N)


# ------------------------------------------------------------------------- writes between forward and backward


def test_argument_changed_before_the_pullback():
    x = start()
    _, pull = fgrad.vjp(lambda x: np.sin(x) * x, x)
    want = np.cos(x) * x + np.sin(x)
    x[:] = -7
    np.testing.assert_allclose(pull(np.ones(N))[0], want)


def test_argument_changed_inside_the_function():
    x = start()

    def f(y):
        z = y * y
        x[:] = -7
        return z.sum()

    np.testing.assert_allclose(fgrad.grad(f)(x), 2 * start())


def test_closed_over_array_changed_before_the_pullback():
    w = start()
    out, pull = fgrad.vjp(lambda x: x * w, start())
    w[:] = 0
    np.testing.assert_allclose(pull(np.ones(N))[0], start())
    np.testing.assert_allclose(out, start() ** 2)


def test_closed_over_array_changed_before_the_tangent():
    w = start()
    _, push = fgrad.linearize(lambda x: x * w, start())
    w[:] = 0
    np.testing.assert_allclose(push(np.ones(N)), start())


def test_buffer_refilled_in_the_functions_own_loop():
    def f(x):
        buffer = np.empty(N)
        total = 0.0
        for k in range(1, 4):
            buffer.fill(k)
            total = total + (x * buffer).sum() + (buffer * x * x).sum()
        return total

    np.testing.assert_allclose(fgrad.grad(f)(start()), 6 + 12 * start())


def test_view_of_a_buffer_refilled():
    def f(x):
        base = np.zeros((2, N))
        total = 0.0
        for k in range(1, 3):
            base[0] = k
            total = total + (x * base[0]).sum()
        return total

    np.testing.assert_allclose(fgrad.grad(f)(start()), np.full(N, 3.0))


def test_base_of_a_read_only_view_changed():
    base = start()
    view = base[:]
    view.flags.writeable = False
    _, pull = fgrad.vjp(lambda x: x * view, start())
    base[:] = 0
    np.testing.assert_allclose(pull(np.ones(N))[0], start())


def test_index_array_changed_before_the_pullback():
    i = np.array([0, 1, 1])
    _, pull = fgrad.vjp(lambda x: x[i], start())
    i[:] = 5
    np.testing.assert_allclose(pull(np.ones(3))[0], [1, 2, 0, 0, 0, 0])


def test_condition_changed_before_the_pullback():
    mask = np.array([True, False] * 3)
    _, pull = fgrad.vjp(lambda x: np.where(mask, x, 0.0), start())
    mask[:] = False
    np.testing.assert_allclose(pull(np.ones(N))[0], [1, 0] * 3)


def test_value_changed_before_the_pullback():
    """The value a transform returns is the caller's own: exp saves its output."""
    out, pull = fgrad.vjp(np.exp, start())
    out[:] = 0
    np.testing.assert_allclose(pull(np.ones(N))[0], np.exp(start()))


def test_aux_changed_before_the_pullback():
    def f(x):
        y = np.exp(x)
        return y.sum(), y

    _, pull, aux = fgrad.vjp(f, start(), has_aux=True)
    aux[:] = 0
    np.testing.assert_allclose(pull(1.0)[0], np.exp(start()))


def test_cotangent_is_not_written_to_and_may_change_later():
    ct = np.ones(N)
    _, pull = fgrad.vjp(lambda x: x + x + x, start())
    (g,) = pull(ct)
    np.testing.assert_allclose(ct, np.ones(N))
    ct[:] = 9
    np.testing.assert_allclose(g, np.full(N, 3.0))


def test_pullback_is_repeatable():
    _, pull = fgrad.vjp(lambda x, y: (x * y + x, x), start(), start())
    cts = (np.ones(N), np.ones(N))
    first = pull(cts)
    for g in first:
        g[:] = 0
    np.testing.assert_allclose(pull(cts)[0], start() + 2)
    np.testing.assert_allclose(pull(cts)[1], start())


def test_jitted_function_reads_arguments_anew():
    f = fgrad.jit(lambda x: (x * x).sum())
    x = start()
    f(x)
    x[:] = 2
    np.testing.assert_allclose(f(x), 4 * N)
    np.testing.assert_allclose(fgrad.grad(f)(x), np.full(N, 4.0))


@pytest.mark.parametrize("batched", [False, True])
def test_second_order_after_a_change(batched):
    w = start()

    def f(x):
        g = fgrad.grad(lambda y: (w * y**3).sum())(x)
        w[:] = 0
        return g.sum()

    g = (fgrad.vmap(fgrad.grad(f)) if batched else fgrad.grad(f))(start()[None] if batched else start())
    np.testing.assert_allclose(np.reshape(g, N), 6 * start() ** 2)


# ------------------------------------------------------------------------------------------ memory of results


def results():
    """Yield a name and a function from an array to the results of a transform."""
    constant = start()
    yield "identity vjp", lambda x: flat(fgrad.vjp(lambda y: y, x), x)
    yield "two names for one", lambda x: flat(fgrad.vjp(lambda y: (y, y, y[:], y.T), x), (x, x, x, x))
    yield "constant output", lambda x: flat(fgrad.vjp(lambda y: (y, constant), x), (x, x))
    yield "value_and_grad", lambda x: fgrad.value_and_grad(lambda y: y.sum())(x)
    yield "aux", lambda x: leaves(fgrad.value_and_grad(lambda y: (y.sum(), (y, constant, y)), has_aux=True)(x))
    yield "two arguments", lambda x: fgrad.grad(lambda y, z: (y + z).sum(), argnums=(0, 1))(x, x)
    yield "jvp", lambda x: fgrad.jvp(lambda y: y, (x,), (x,))
    yield "jvp of a pair", lambda x: leaves(fgrad.jvp(lambda y: (y, y), (x,), (x,)))
    yield "jvp of a constant", lambda x: leaves(fgrad.jvp(lambda y: (y, constant), (x,), (x,)))
    yield "jvp's aux", lambda x: leaves(fgrad.jvp(lambda y: (y, (y, constant)), (x,), (x,), has_aux=True))
    yield "linearize", lambda x: linearized(lambda y: (y, y), x)
    yield "vmap", lambda x: leaves(fgrad.vmap(lambda y: (y, y, y + 0))(x))
    yield "vmap of a constant", lambda x: leaves(fgrad.vmap(lambda y: (y, constant), out_axes=(0, None))(x))
    yield "jit", lambda x: leaves(fgrad.jit(lambda y: (y, y, constant, y.reshape(2, 3)))(x))
    yield "jit under debug_nans", lambda x: leaves(watched(fgrad.jit(lambda y: (y, y, constant, y.reshape(2, 3))))(x))
    yield "jacrev", lambda x: [fgrad.jacrev(lambda y: y)(x), fgrad.jacfwd(lambda y: y)(x)]
    yield "checkpoint", lambda x: flat(fgrad.vjp(fgrad.checkpoint(lambda y: (y, y)), x), (x, x))
    yield "stop_gradient", lambda x: [fgrad.stop_gradient(x)]
    yield "linear_transpose", lambda x: fgrad.linear_transpose(lambda y: y, x)(x)


def watched(f):
    return fgrad.debug_nans()(f)


def leaves(x):
    return [leaf for leaf in fgrad.tree.leaves(x) if isinstance(leaf, np.ndarray)]


def flat(pair, ct):
    out, pull = pair
    return leaves((out, pull(ct)))


def linearized(f, x):
    out, push = fgrad.linearize(f, x)
    return leaves((out, push(x)))


@pytest.mark.parametrize(("name", "transform"), list(results()), ids=[name for name, _ in results()])
def test_results_share_no_memory(name, transform):
    x = start()
    before = x.copy()
    outs = list(transform(x))
    for a, b in itertools.combinations([x, *outs], 2):
        assert not np.shares_memory(a, b), name
    for out in outs:
        out[...] = np.nan  # they are writeable, too
    np.testing.assert_array_equal(x, before)
    again = list(transform(x))
    assert all(np.isfinite(out).all() for out in again), f"{name}: writing to a result changed what comes next"
