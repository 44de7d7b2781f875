"""`fgrad.scipy.optimize`: solutions in the user's tree, and the exact derivatives that SciPy gets."""

import builtins
from typing import NamedTuple

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.linalg

import fgrad
import fgrad.numpy as fnp
from fgrad.scipy.optimize import least_squares, minimize, root

GRADIENT = ["CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP", None]
HESSIAN = ["Newton-CG", "trust-ncg", "trust-krylov", "trust-constr", "dogleg", "trust-exact"]
VALUE = ["Nelder-Mead", "Powell", "COBYLA", "COBYQA"]
DTYPES = [np.float64, np.float32]


class Pair(NamedTuple):
    a: object
    b: object


def rosen(p):
    """The valley of Rosenbrock, of a named tuple of a number and a row."""
    x = fnp.concatenate([fnp.reshape(p.a, (1,)), p.b])
    return fnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def start(dtype=np.float64):
    return Pair(np.array(0.8, dtype), np.array([1.1, 0.9], dtype))


# ---------------------------------------------------------------------------------------------------- minimize


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", GRADIENT + HESSIAN[:4] + HESSIAN[5:])
def test_methods_with_derivatives(method, dtype):
    found = minimize(rosen, start(dtype), method=method)
    assert isinstance(found, scipy.optimize.OptimizeResult) and found.success, found.message
    assert isinstance(found.x, Pair) and found.x.a.shape == () and found.x.b.shape == (2,)
    assert found.x.a.dtype == found.x.b.dtype == dtype
    np.testing.assert_allclose([found.x.a, *found.x.b], 1, atol=2e-3)


def test_dogleg():
    found = minimize(lambda x: fnp.sum(x**2 + x**4), np.array([0.3, -0.2]), method="dogleg")
    assert found.success
    np.testing.assert_allclose(found.x, 0, atol=1e-6)


@pytest.mark.parametrize("method", VALUE)
def test_methods_of_values_alone(method):
    found = minimize(lambda p: fnp.sum((p["x"] - 2.0) ** 2), {"x": np.zeros(2)}, method=method)
    assert found.success
    np.testing.assert_allclose(found.x["x"], 2, atol=1e-2)


def test_exact_derivatives_reach_scipy():
    seen = {}

    def spy(fun, x0, args, jac, hessp, **options):
        v = np.array([1.0, 2.0, -1.0])
        seen.update(gradient=jac(x0, *args), product=hessp(x0, v, *args))
        return scipy.optimize.OptimizeResult(x=x0, fun=fun(x0, *args), success=True)

    minimize(rosen, start(), method=spy)
    x = np.array([0.8, 1.1, 0.9])
    np.testing.assert_allclose(seen["gradient"], scipy.optimize.rosen_der(x), rtol=1e-12)
    np.testing.assert_allclose(seen["product"], scipy.optimize.rosen_hess(x) @ [1, 2, -1], rtol=1e-12)


def test_fewer_evaluations_than_differences():
    x0 = np.full(20, 1.3)
    ours = minimize(lambda x: fnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), x0, method="BFGS")
    scipys = scipy.optimize.minimize(scipy.optimize.rosen, x0, method="BFGS")
    exact = scipy.optimize.minimize(scipy.optimize.rosen, x0, jac=scipy.optimize.rosen_der, method="BFGS")
    assert ours.nfev <= exact.nfev + 2 < scipys.nfev / 10
    np.testing.assert_allclose(ours.x, exact.x, atol=1e-5)


def test_arguments_and_options_pass_through():
    found = minimize(lambda x, a, b: fnp.sum((x - a) ** 2) + b, 0.0, (3.0, 7.0), options={"maxiter": 50}, tol=1e-10)
    assert found.fun == pytest.approx(7)
    assert found.x.shape == () and found.x == pytest.approx(3)
    assert minimize(rosen, start(), method="BFGS", options={"maxiter": 2}).nit == 2


def test_lists_of_numbers_are_arrays_and_integers_become_floats():
    found = minimize(lambda x: (x**2).sum(), [1, 2])
    assert found.x.dtype == np.float64 and found.x.shape == (2,)
    found = minimize(lambda x: x[0] ** 2 + x[1] ** 2, (1, 2))
    assert isinstance(found.x, tuple) and found.x[0].dtype == np.float64


def test_plain_numpy_functions_serve():
    found = minimize(lambda x: np.sum(np.cosh(x - 1)), np.zeros(3, np.float32))
    np.testing.assert_allclose(found.x, 1, atol=1e-4)
    assert found.fun == pytest.approx(3, abs=1e-9)  # in float64 throughout


def test_jitted_functions_serve():
    found = minimize(fgrad.jit(rosen), start(), method="trust-krylov")
    np.testing.assert_allclose(found.x.b, 1, atol=1e-4)


@pytest.mark.parametrize("method", ["L-BFGS-B", "trust-constr", "SLSQP", "Nelder-Mead"])
def test_bounds_are_trees_or_prefixes(method):
    def distance(p):
        return fnp.sum((p["x"] - 3) ** 2) + (p["y"] + 5) ** 2

    x0 = {"x": np.ones(2), "y": 0.0}
    found = minimize(distance, x0, method=method, bounds=({"x": None, "y": -1.0}, {"x": np.array([2.0, 9.0]), "y": 7}))
    np.testing.assert_allclose(found.x["x"], [2, 3], atol=1e-3)
    assert found.x["y"] == pytest.approx(-1, abs=1e-3)
    found = minimize(distance, x0, method=method, bounds=(-2.0, 2.0))
    np.testing.assert_allclose([*found.x["x"], found.x["y"]], [2, 2, -2], atol=1e-3)
    flat = minimize(distance, x0, method=method, bounds=scipy.optimize.Bounds(-2, 2))
    np.testing.assert_allclose(flat.x["x"], found.x["x"], atol=1e-6)


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
@pytest.mark.parametrize("form", ["dict", "object"])
def test_constraints_are_functions_of_the_tree(method, form):
    def radius(p):
        return p["x"] ** 2 + p["y"] ** 2

    constraint = {
        "dict": {"type": "eq", "fun": lambda p: radius(p) - 2},
        "object": scipy.optimize.NonlinearConstraint(radius, 2, 2),
    }[form]
    found = minimize(lambda p: p["x"] + p["y"], {"x": -1.5, "y": -0.5}, method=method, constraints=constraint)
    np.testing.assert_allclose([found.x["x"], found.x["y"]], -1, atol=1e-4)


def test_linear_constraints_are_of_the_vector():
    constraint = scipy.optimize.LinearConstraint([[1, 1]], 1, 1)
    found = minimize(lambda p: p[0] ** 2 + p[1] ** 2, (0.3, 0.9), method="SLSQP", constraints=[constraint])
    np.testing.assert_allclose(found.x, 0.5, atol=1e-6)


def test_callbacks_see_the_tree():
    seen = []
    minimize(rosen, start(), method="BFGS", callback=lambda x: seen.append(x))
    assert seen and all(isinstance(x, Pair) for x in seen)

    def stop(intermediate_result):
        assert isinstance(intermediate_result.x, Pair)
        raise StopIteration

    assert minimize(rosen, start(), method="BFGS", callback=stop).nit == 1


# ----------------------------------------------------------------------------------------- root, least squares


def circle_and_line(p, radius):
    return {"circle": p["x"] ** 2 + p["y"] ** 2 - radius**2, "line": p["x"] - p["y"]}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["hybr", "lm", "krylov", "broyden1", "df-sane"])
def test_root(method, dtype):
    found = root(circle_and_line, {"x": dtype(1.2), "y": dtype(0.8)}, (2.0,), method)
    assert found.success
    assert found.x["x"].dtype == dtype
    np.testing.assert_allclose([found.x["x"], found.x["y"]], 2**0.5, rtol=1e-4)


def test_root_gets_its_jacobian():
    ours = root(lambda x: x**3 - 2, np.full(10, 1.5))
    scipys = scipy.optimize.root(lambda x: x**3 - 2, np.full(10, 1.5))
    assert ours.nfev < scipys.nfev
    np.testing.assert_allclose(ours.x, 2 ** (1 / 3), rtol=1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares(method, dtype):
    t = np.linspace(0, 2, 9)

    def residuals(p, t, shift=0.0):
        size, rates = p
        return [size * fnp.exp(-rates[0] * t) + shift - 2 * np.exp(-t), rates[1] - 4]

    found = least_squares(
        residuals, (dtype(1), np.array([0.5, 1], dtype)), method=method, args=(t,), kwargs={"shift": 0}
    )
    assert found.success and found.x[1].dtype == dtype
    np.testing.assert_allclose([found.x[0], *found.x[1]], [2, 1, 4], rtol=1e-5)
    size, rates = (np.asarray(leaf, np.float64) for leaf in found.x)
    column = np.exp(-rates[0] * t)
    np.testing.assert_allclose(found.jac[:9, 0], column, rtol=1e-5)
    np.testing.assert_allclose(found.jac[:9, 1], -size * t * column, rtol=1e-5, atol=1e-6)


def test_least_squares_with_bounds_and_losses():
    x0 = {"a": 0.5, "b": np.zeros(2)}
    found = least_squares(
        lambda p: fnp.concatenate([fnp.reshape(p["a"] - 3, (1,)), p["b"] + 2]),
        x0,
        ({"a": 0, "b": -1}, 1),
        loss="soft_l1",
    )
    np.testing.assert_allclose([found.x["a"], *found.x["b"]], [1, -1, -1], atol=1e-4)


@pytest.mark.parametrize("method", ["trf", "dogbox"])
def test_large_problems_never_form_the_jacobian(method):
    n = 2000

    def residuals(p):
        return {"data": 3 * p["x"] + p["x"] ** 3 - 4, "smooth": p["x"][1:] - p["x"][:-1]}

    found = least_squares(residuals, {"x": np.linspace(0, 0.5, n)}, method=method, tr_solver="lsmr")
    assert found.success and isinstance(found.jac, scipy.sparse.linalg.LinearOperator)
    np.testing.assert_allclose(found.x["x"], 1, atol=1e-5)


# ------------------------------------------------------------------------------------------------------ errors


def test_wrong_starts():
    with pytest.raises(TypeError, match=r"minimize: x0\['a'\]\[0\] must be real numbers, got complex128"):
        minimize(lambda x: 0.0, {"a": [1j]})
    with pytest.raises(TypeError, match="x0 must be real numbers, got bool"):
        minimize(lambda x: 0.0, np.array([True]))
    with pytest.raises(ValueError, match="root: x0 has no elements"):
        root(lambda x: x, {})
    with pytest.raises(TypeError, match="minimize: x0 is traced.*custom_jvp"):
        fgrad.grad(lambda x: minimize(lambda y: (y - x) ** 2, x).x)(1.0)


def test_wrong_arguments():
    with pytest.raises(TypeError, match="leave it out"):
        least_squares(lambda x: x, np.ones(2), jac="2-point")
    with pytest.raises(TypeError, match="pair"):
        minimize(rosen, start(), bounds=3.0)
    with pytest.raises(ValueError, match="lower bound"):
        minimize(rosen, start(), bounds=((0.0, 1.0, 2.0), None))
    with pytest.raises(TypeError, match="scalar"):
        minimize(lambda x: x, np.ones(2))


def test_without_scipy(monkeypatch):
    found = builtins.__import__

    def absent(name, *args, **kwargs):
        if name.startswith("scipy"):
            raise ModuleNotFoundError(name)
        return found(name, *args, **kwargs)

    monkeypatch.setattr("importlib.import_module", lambda name: absent(name))
    with pytest.raises(ImportError, match=r"fgrad\.scipy\.optimize\.minimize .* pip install 'fgrad\[scipy\]'"):
        minimize(rosen, start())


# --------------------------------------------------------------------------------------- derivatives of solutions


def _cube_root(a):
    return root(lambda x, a: x**3 - a, 1.0, (a,), tol=1e-14).x


def _weighted_mean(w):
    return minimize(lambda x, w: (w * (x - np.arange(3.0)) ** 2).sum(), np.zeros(()), (w,), tol=1e-12).x


def _fit(y):
    """The slope of a line through the origin."""
    return least_squares(lambda p, y: p["slope"] * np.arange(1.0, 4.0) - y, {"slope": 1.0}, args=(y,)).x["slope"]


SOLUTIONS = {
    "root": (_cube_root, np.cbrt, np.array(8.0)),
    "minimum": (_weighted_mean, lambda w: (w * np.arange(3.0)).sum() / w.sum(), np.array([1.0, 2.0, 3.0])),
    "least squares": (_fit, lambda y: (np.arange(1.0, 4.0) * y).sum() / 14, np.array([2.0, 3.9, 6.2])),
}


MADE = {
    "forward": fgrad.jacfwd,
    "reverse": fgrad.jacrev,
    "hessian": fgrad.hessian,
    "reverse of reverse": lambda f: fgrad.jacrev(fgrad.jacrev(f)),
}


@pytest.mark.parametrize("what", SOLUTIONS)
@pytest.mark.parametrize("how", MADE)
def test_solutions_differentiate_by_args(what, how):
    ours, exact, at = SOLUTIONS[what]
    made = MADE[how]
    np.testing.assert_allclose(ours(at), exact(at), rtol=1e-7)
    np.testing.assert_allclose(made(ours)(at), made(exact)(at), rtol=1e-6, atol=1e-8)


def test_a_solution_in_float32_has_derivatives_in_float32():
    def fun(a, label):
        found = root(lambda x, a, label: {"r": x["r"] ** 2 - a, "s": x["s"] - label}, X0, (a, label))
        assert found.success
        return found.x["r"]

    X0 = {"r": np.ones(2, "float32"), "s": np.zeros(1)}
    found = fgrad.jacrev(fun)(np.array([1.0, 4.0], "float32"), 3)
    assert found.dtype == "float32"
    np.testing.assert_allclose(found, np.diag([0.5, 0.25]), rtol=1e-6)


def test_solutions_under_transforms_that_know_no_values():
    a = np.array([1.0, 8.0])
    for made in (fgrad.vmap, lambda f: fgrad.jit(fgrad.vmap(f)), lambda f: fgrad.vmap(fgrad.jit(f))):
        np.testing.assert_allclose(made(_cube_root)(a), [1.0, 2.0])
        np.testing.assert_allclose(made(fgrad.grad(_cube_root))(a), [1 / 3, 1 / 12], rtol=1e-7)
    assert list(fgrad.jit(lambda a: dict(root(lambda x, a: x - a, 1.0, (a,))))(2.0)) == ["x"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a: minimize(lambda x, a: (x - a) ** 2, 1.0, (a,), bounds=(0, None)).x, "bounds or constraints"),
        (lambda a: least_squares(lambda x, a: x - a, 1.0, (0, 9), args=(a,)).x, "bounds or a loss"),
        (lambda a: least_squares(lambda x, a: x - a, 1.0, args=(a,), loss="huber").x, "bounds or a loss"),
    ],
)
def test_solutions_at_bounds_are_not_differentiated(call, message):
    with pytest.raises(TypeError, match=message):
        fgrad.grad(call)(2.0)


def test_an_undetermined_solution_has_no_derivative():
    with pytest.raises(np.linalg.LinAlgError):
        fgrad.grad(lambda a: minimize(lambda x, a: 0 * x[0] + (x[1] - a) ** 2, np.ones(2), (a,)).x[1])(2.0)
