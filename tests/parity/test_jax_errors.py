"""What goes wrong raises the class that jax raises, and the message names the function and what came."""

import numpy as np
import pytest

import fgrad

pytestmark = pytest.mark.parity

X = np.arange(3.0)


def scanned(f, init, xs=X):
    return lambda m: m.lax.scan(f, init, xs)


def with_vjp(fwd, bwd, x):
    """Return the program that differentiates a function with this rule."""

    def program(m):
        f = m.custom_vjp(lambda x: x * x)
        f.defvjp(fwd, bwd)
        return m.grad(lambda x: m.numpy.sum(f(x)))(x)

    return program


def with_jvp(rule):
    def program(m):
        f = m.custom_jvp(lambda x: x * x)
        f.defjvp(rule)
        return m.jvp(f, (X,), (X,))

    return program


def leaked(transform):
    """Return the program that keeps a traced value and uses it after the transform has ended."""

    def program(m):
        kept = []
        getattr(m, transform)(lambda x: (kept.append(x), x)[1])(X[0] if transform == "grad" else X)
        return kept[0] + 1

    return program


def squares(x):
    yield x * x


# program -> the pattern that fgrad's message has
ERRORS = {
    "a vector under grad": (lambda m: m.grad(lambda x: x)(X), r"scalar-output functions.*\(3,\)"),
    "a tuple under grad": (lambda m: m.grad(lambda x: (x,))(1.0), "scalar-output functions.*tuple"),
    "a complex output": (lambda m: m.grad(lambda x: x * 1j)(1.0), "grad requires real-valued outputs.*complex128"),
    "a real input of holomorphic": (
        lambda m: m.grad(lambda x: x * 1j, holomorphic=True)(1.0),
        "grad with holomorphic=True requires complex inputs.*float64",
    ),
    "an integer input": (lambda m: m.grad(lambda x: x * 1.0)(3), "grad requires real- or complex.*int64.*allow_int"),
    "an integer output": (lambda m: m.grad(lambda x: 3)(1.0), "grad requires real-valued outputs.*int64"),
    "a text": (lambda m: m.grad(lambda x: x)("a"), "argument 0 of type str is not a valid array"),
    "no function": (lambda m: m.grad(3), "grad expects a function.*got 3"),
    "argnums beyond the arguments": (lambda m: m.grad(lambda x: x, 2)(1.0), "argnums=2 asks for argument 2"),
    "argnums below them": (lambda m: m.grad(lambda x: x, -3)(1.0), "argnums=-3"),
    "argnums of another kind": (lambda m: m.grad(lambda x: x, "x")(1.0), "argnums must be an int.*got 'x'"),
    "no pair with has_aux": (lambda m: m.grad(lambda x: x, has_aux=True)(1.0), r"has_aux=True.*pair \(out, aux\)"),
    "a cotangent's tree": (lambda m: m.vjp(lambda x: x, X)[1]((X, X)), "cotangent.*tree of the output"),
    "a cotangent's shape": (lambda m: m.vjp(lambda x: x, X)[1](X[:2]), r"cotangent.*float64\[3\].*float64\[2\]"),
    "a cotangent's dtype": (lambda m: m.vjp(lambda x: x, X)[1](X.astype("f4")), r"float64\[3\].*got float32\[3\]"),
    "trees of tangents": (lambda m: m.jvp(lambda x: x, (X,), ((X,),)), "primals and tangents.*same tree"),
    "tangents in no tuple": (lambda m: m.jvp(lambda x: x, X, X), "must be a tuple or list, got ndarray"),
    "a tangent's dtype": (lambda m: m.jvp(lambda x: x, (X,), (X.astype("f4"),)), "types must match.*float32.*float64"),
    "a tangent's shape": (lambda m: m.jvp(lambda x: x, (X,), (X[:2],)), r"must match.*float64\[2\].*float64\[3\]"),
    "a tangent of an integer": (lambda m: m.jvp(lambda x: x * 1.0, (3,), (1.0,)), "tangent of dtype float0"),
    "a linearized function's input": (lambda m: m.linearize(lambda x: x, X)[1](X[:2]), "types must match"),
    "jacfwd of integers": (lambda m: m.jacfwd(lambda x: x * 1.0)(3), "jacfwd requires real.*int64"),
    "jacfwd of complex numbers": (lambda m: m.jacfwd(lambda x: x)(3j), "jacfwd requires real-valued inputs.*complex"),
    "jacrev to complex numbers": (lambda m: m.jacrev(lambda x: x * 1j)(3.0), "jacrev requires real-valued outputs"),
    "sizes under vmap": (
        lambda m: m.vmap(lambda x, y: x)(X, X[:2]),
        r"vmap got inconsistent sizes.*axis 0 of argument x of type float64\[3\].*argument y of type float64\[2\]",
    ),
    "nothing mapped": (lambda m: m.vmap(lambda x: x, None)(X), "vmap must have at least one mapped.*axis_size"),
    "too many in_axes": (lambda m: m.vmap(lambda x: x, (0, 0))(X), "in_axes must have one entry per.*has 2.*has 1"),
    "in_axes are no prefix": (lambda m: m.vmap(lambda x: x, ([0, 0],))((X, X)), r"vmap in_axes\[0\]: different types"),
    "in_axes of another kind": (lambda m: m.vmap(lambda x: x, "a")(X), "in_axes must hold ints and None, got 'a'"),
    "an axis that is not there": (lambda m: m.vmap(lambda x: x, 2)(X), r"axis 2 of an argument of type float64\[3\]"),
    "out_axes of a mapped output": (lambda m: m.vmap(lambda x: x, out_axes=None)(X), "mapped output.*out_axes is None"),
    "out_axes are no prefix": (lambda m: m.vmap(lambda x: x, out_axes=(0, 0))(X), "vmap out_axes: different types"),
    "an unbound axis name": (lambda m: m.vmap(lambda x: m.lax.psum(x, "j"))(X), "unbound axis name: 'j'"),
    "if under vmap": (lambda m: m.vmap(lambda x: x if x > 0 else -x)(X), "vmap of <lambda>.*Remedy.*where"),
    "if under jit": (lambda m: m.jit(lambda x: x if x > 0 else -x)(1.0), "jit of <lambda>.*Remedy.*where"),
    "range under jit": (lambda m: m.jit(lambda n: [0 for _ in range(n)])(3), "Python integer.*jit of <lambda>"),
    "a list's index": (lambda m: m.jit(lambda i: [1, 2][i])(1), "Python integer.*list index"),
    "float under jit": (lambda m: m.jit(lambda x: float(x))(1.0), r"float\(x\).*jit of <lambda>.*Remedy"),
    "float under grad": (lambda m: m.grad(lambda x: float(x) * x)(1.0), r"float\(x\).*grad of <lambda>.*stop_gradient"),
    "a NumPy array under jit": (lambda m: m.jit(lambda x: np.asarray(x))(1.0), "cannot become a NumPy array.*Remedy"),
    "a mask under jit": (lambda m: m.jit(lambda x: x[x > 0])(X), "shape of the result depends on values.*where"),
    "an unhashable static argument": (
        lambda m: m.jit(lambda x, n: x, static_argnums=1)(X, [1]),
        r"static arguments must be hashable, but argument 1 is \[1\] of type list",
    ),
    "a static argument too many": (lambda m: m.jit(lambda x: x, static_argnums=3)(X), "static_argnums has 3.*takes 1"),
    "a static name that is none": (lambda m: m.jit(lambda x: x, static_argnames="y")(1.0), "static_argnames has 'y'"),
    "a generator under jit": (lambda m: m.jit(squares)(3), "generator function squares"),
    "an output of jit": (lambda m: m.jit(lambda x: {"a": "b"})(1.0), r"outputs must be arrays.*\['a'\] is 'b'"),
    "an input of jit": (lambda m: m.jit(lambda x: x)("text"), "of type str is not a valid array.*static_argnums"),
    "a leak from jit": (leaked("jit"), "traced by jit of <lambda>.*leaked"),
    "a leak from grad": (leaked("grad"), "traced by grad of <lambda>.*leaked"),
    "a leak from vmap": (leaked("vmap"), "traced by vmap of <lambda>.*leaked"),
    "assignment": (lambda m: m.jit(lambda x: x.__setitem__(0, 1.0))(X), r"does not support item assignment.*x\.at\["),
    "no predicate": (lambda m: m.lax.cond(None, lambda: 1, lambda: 2), "cond: the predicate must be.*None"),
    "a vector as predicate": (lambda m: m.lax.cond(X > 0, lambda: 1, lambda: 2), r"cond: the predicate.*bool\[3\]"),
    "branches of two types": (lambda m: m.lax.cond(True, lambda: 1.0, lambda: 1), "cond: branches.*int64.*float64"),
    "branches of two trees": (lambda m: m.lax.cond(True, lambda: (1.0,), lambda: 1.0), "cond: branches.*same tree"),
    "branches that are no functions": (lambda m: m.lax.cond(True, 1.0, 2.0), "cond expects a function.*got 1.0"),
    "no branches": (lambda m: m.lax.switch(0, []), "switch needs at least one branch"),
    "an index that is no integer": (lambda m: m.lax.switch(0.5, [abs, abs], 1.0), "switch: the index must be an int"),
    "lengths under scan": (scanned(lambda c, x: (c, x), 0.0, (X, X[:2])), r"scan.*leading axis sizes \[2, 3\]"),
    "no length under scan": (scanned(lambda c, x: (c, x), 0.0, None), "scan.*got no xs"),
    "a carry's type": (scanned(lambda c, x: (c * X, x), np.array(1.0)), r"scan: the carry.*float64\[\].*float64\[3\]"),
    "a carry's tree": (scanned(lambda c, x: ((c, c), x), 1.0), "scan: the carry must keep its tree"),
    "no pair under scan": (scanned(lambda c, x: c, np.array(1.0)), r"scan.*pair \(carry, y\)"),
    "no function under scan": (scanned(3, 0.0), "scan expects a function.*got 3"),
    "a condition that is a vector": (
        lambda m: m.lax.while_loop(lambda s: s > 1, lambda s: s, X),
        "cond_fun.*bool scalar",
    ),
    "a loop's carry": (lambda m: m.lax.while_loop(lambda s: s < 3, lambda s: (s, s), 1.0), "carry must keep its tree"),
    "a loop in reverse": (
        lambda m: m.grad(lambda x: m.lax.while_loop(lambda s: s < 9, lambda s: s * 2, x))(1.0),
        "reverse mode.*bound.*Remedy",
    ),
    "bounds that are no integers": (lambda m: m.lax.fori_loop(0.0, 3, lambda i, s: s, X), "bounds must be integer"),
    "no pullback": (lambda m: m.grad(m.custom_vjp(lambda x: x * x))(1.0), "no VJP defined for the custom_vjp"),
    "no tangent rule": (lambda m: m.grad(m.custom_jvp(lambda x: x * x))(1.0), "no JVP defined for the custom_jvp"),
    "a pullback's shape": (
        with_vjp(lambda x: (x * x, None), lambda r, ct: (ct[:2],), X),
        r"backward function of <lambda>.*float64\[3\], got float64\[2\]",
    ),
    "a pullback's count": (
        with_vjp(lambda x: (x * x, None), lambda r, ct: (ct, ct), X),
        "backward function of <lambda>.*each of 1 arguments, got 2",
    ),
    "a pullback that is no tuple": (
        with_vjp(lambda x: (x * x, None), lambda r, ct: ct, 1.0),
        "backward function of <lambda> must return a tuple",
    ),
    "a forward function without residuals": (
        with_vjp(lambda x: x * x, lambda r, ct: (ct,), 1.0),
        r"forward function of <lambda> must return a pair \(out, residuals\)",
    ),
    "a tangent rule without a pair": (with_jvp(lambda p, t: t[0][0]), r"custom_jvp rule.*pair \(out, tangent_out\)"),
    "a tangent rule's shape": (
        with_jvp(lambda p, t: (p[0] ** 2, t[0][:2])),
        r"custom_jvp rule of <lambda>.*float64\[3\], its tangent float64\[2\]",
    ),
    "a shape in two arguments": (lambda m: m.numpy.zeros(2, 3), r"zeros.*Did you mean zeros\(\(2, 3\)\)"),
    "a repeated axis": (lambda m: m.numpy.sum(np.ones((2, 3)), axis=(0, 0)), "duplicate value in 'axis'"),
    "an axis out of bounds": (lambda m: m.numpy.sum(X, axis=3), "axis 3 is out of bounds"),
    "an impossible shape": (lambda m: m.numpy.reshape(X, (2, 2)), "cannot reshape array of size 3"),
    "too many indices": (lambda m: m.numpy.zeros(3)[0, 0], "too many indices"),
    "a mask of another shape": (lambda m: m.numpy.zeros(3)[np.ones(2, bool)], "boolean index did not match"),
    "the truth of many": (lambda m: m.grad(lambda x: x.sum() if x else 0.0)(X), "truth value.*more than one element"),
    "trees that differ": (lambda m: m.tree.map(lambda x, y: x, {"a": 1}, {"b": 1}), r"map trees\[1\].*different keys"),
    "leaves that are missing": (
        lambda m: m.tree.unflatten(m.tree.structure((1, 2)), [1]),
        "too few leaves.*expected 2, got 1",
    ),
    "arithmetic of float0": (lambda m: m.grad(lambda n: n * 1.0, allow_int=True)(2) + 1, "float0"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_as_in_jax(name, jax):
    program, pattern = ERRORS[name]
    with pytest.raises(Exception) as theirs:
        program(jax)
    with pytest.raises(Exception, match=f"(?s){pattern}") as ours:
        program(fgrad)
    assert {n for n in classes(theirs.value) if "JAX" not in n} <= classes(ours.value)


def classes(error):
    """Return the names of the classes by which an error can be caught."""
    return {c.__name__ for c in type(error).__mro__}
