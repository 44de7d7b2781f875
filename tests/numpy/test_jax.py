"""Derivatives of every public function against JAX's: the same cotangents pulled back, the same tangents pushed."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from tests.numpy import samples
from tests.numpy.laws import Call, outputs

pytestmark = pytest.mark.parity
jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")


def rows():
    jax.config.update("jax_enable_x64", True)
    out = []
    for table, mine, theirs in ((samples.TABLE, fnp, jnp), (samples.LINALG, fnp.linalg, jnp.linalg)):
        for name, cases in table.items():
            for k, case in enumerate(cases):
                if case.smooth and not case.known and f"{name}-{k}" not in DIFFERENT and name not in DIFFERENT:
                    out.append(pytest.param(getattr(mine, name), getattr(theirs, name), case, id=f"{name}-{k}"))
    return out


DIFFERENT = {
    **dict.fromkeys("fix real_if_close asanyarray ascontiguousarray asfortranarray".split(), "JAX has none"),
    **dict.fromkeys("spacing gradient-4 gradient-6 tril-3 triu-3".split(), "JAX refuses"),
    **dict.fromkeys("meshgrid-1 permute_dims-0 permute_dims-3".split(), "JAX takes other arguments"),
    **dict.fromkeys("arccosh-2 acosh-2".split(), "JAX has the wrong sign left of the imaginary axis"),
    "sign-3": "JAX has no derivative of a complex sign",
    "std-5": "JAX has nan for one element, fgrad 0",
    **{f"{name}-{k}": "JAX lacks the method" for name in ("quantile", "percentile") for k in range(10, 15)},
    "partition-0": "JAX orders the parts in another way",
}


def with_arrays(function):
    """Return a function of JAX that takes lists of numbers too, as NumPy's do."""

    def call(*args, **kwargs):
        return function(*map(_array, args), **{name: _array(x) for name, x in kwargs.items()})

    return call


def _array(x):
    return np.array(x) if isinstance(x, list) and all(isinstance(y, (int, float)) for y in x) else x


@pytest.mark.parametrize(("function", "theirs", "case"), rows())
def test_derivatives(function, theirs, case):
    f, g = Call(function, case), Call(with_arrays(theirs), case)
    primals = [x for x in f.arrays if x.dtype.kind in "fc"]
    rng = np.random.default_rng(0)

    def of_floats(call):
        def run(*xs):
            given = iter(xs)
            return [
                y for y in outputs(call(*[next(given) if x.dtype.kind in "fc" else x for x in f.arrays])) if inexact(y)
            ]

        return run

    mine, pull = fgrad.vjp(of_floats(f), *primals)
    other, their_pull = jax.vjp(of_floats(g), *map(jnp.asarray, primals))
    cts = [draw(rng, y) for y in mine]
    assert_close(mine, other)
    if not primals:
        return
    assert_close(pull(cts), their_pull([jnp.asarray(ct, y.dtype) for ct, y in zip(cts, other, strict=True)]))
    tangents = [draw(rng, x) for x in primals]
    assert_close(
        fgrad.jvp(of_floats(f), primals, tangents)[1],
        jax.jvp(of_floats(g), [jnp.asarray(x) for x in primals], [jnp.asarray(t) for t in tangents])[1],
    )


def inexact(y):
    return hasattr(y, "dtype") and y.dtype.kind in "fc"


def draw(rng, y):
    y = np.asarray(y)
    x = rng.normal(size=y.shape)
    return (x + 1j * rng.normal(size=y.shape) if y.dtype.kind == "c" else x).astype(y.dtype)


def assert_close(got, want):
    for g, w in zip(got, want, strict=True):
        g, w = np.asarray(g), np.asarray(w)
        tolerance = 1e-4 if np.finfo(np.result_type(g, np.float16)).bits == 32 or w.dtype == np.float32 else 1e-9
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)
