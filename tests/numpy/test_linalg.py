"""`fgrad.numpy.linalg` beyond the table of samples: options, kinds of result, what is refused, NumPy's own names."""

import numpy as np
import pytest
from numpy.linalg import LinAlgError

import fgrad
import fgrad.numpy as fnp

RNG = np.random.default_rng(2)
A = RNG.normal(size=(3, 3)) + 3 * np.eye(3)
SYM = A + A.T


def test_results_are_of_numpys_classes():
    for name in ("qr", "eigh", "slogdet", "svd", "eig"):
        found = []
        fgrad.jit(lambda x, name=name, found=found: found.append(getattr(np.linalg, name)(x)) or 0.0)(A)
        assert type(found[0]) is type(getattr(np.linalg, name)(A))


@pytest.mark.parametrize("UPLO", ["L", "U", "l"])
def test_a_named_triangle_is_read_alone(UPLO):
    w, v = fnp.linalg.eigh(A, UPLO)
    want_w, want_v = np.linalg.eigh(A, UPLO)
    np.testing.assert_allclose(w, want_w)
    np.testing.assert_allclose(abs(v), abs(want_v))
    g = fgrad.grad(lambda a: fnp.linalg.eigvalsh(a, UPLO)[0])(A)
    other = np.triu(g, 1) if UPLO in "lL" else np.tril(g, -1)
    assert not other.any() and g.any()


def test_symmetric_functions_take_the_hermitian_part():
    x = A + 1j * RNG.normal(size=(3, 3))
    part = (x + x.conj().T) / 2
    np.testing.assert_allclose(fnp.linalg.eigvalsh(x), np.linalg.eigvalsh(part))
    np.testing.assert_allclose(
        fgrad.jit(np.linalg.cholesky)(x + 3 * np.eye(3)), np.linalg.cholesky(part + 3 * np.eye(3))
    )
    g = fgrad.grad(lambda x: np.linalg.eigvalsh(x)[0])(SYM)
    np.testing.assert_array_equal(g, g.T)


def test_eig_is_complex_always():
    for function in (fnp.linalg.eig, fgrad.jit(np.linalg.eig)):
        w, v = function(SYM)
        assert w.dtype == v.dtype == np.complex128
        np.testing.assert_allclose(SYM @ v, v * w, atol=1e-12)


def test_hermitian_options():
    s, pinv = fgrad.jit(lambda x: (np.linalg.svd(x, hermitian=True), np.linalg.pinv(x, hermitian=True)))(SYM)
    u, values, vh = s
    np.testing.assert_allclose(u * values @ vh, SYM, atol=1e-12)
    np.testing.assert_allclose(pinv, np.linalg.inv(SYM), atol=1e-12)


def test_rank_of_vectors_and_under_transforms():
    rank = fgrad.jit(np.linalg.matrix_rank)
    assert rank(np.zeros(3)) == 0 and rank(np.ones(3)) == 1
    ranks = fgrad.vmap(np.linalg.matrix_rank)(np.stack([np.eye(3), np.ones((3, 3)), np.zeros((3, 3))]))
    assert ranks.tolist() == [3, 1, 0]


def test_least_squares_of_deficient_rank():
    left, right = RNG.normal(size=(5, 2)), RNG.normal(size=(2, 3))
    y = RNG.normal(size=5)

    def fit(left, right, y):
        return np.linalg.lstsq(left @ right, y, rcond=1e-9)[0]

    np.testing.assert_allclose(fgrad.jit(fit)(left, right, y), fit(left, right, y))
    fgrad.check_grads(fit, (left, right, y), 2, rtol=1e-5, atol=1e-6)


def test_norms_of_special_matrices():
    assert fgrad.grad(lambda x: np.linalg.norm(x, "nuc"))(np.eye(3)) == pytest.approx(np.eye(3))
    np.testing.assert_allclose(fgrad.grad(lambda x: np.linalg.norm(x, 2))(2 * np.eye(2)), np.eye(2) / 2)
    assert np.isfinite(fgrad.grad(lambda x: np.linalg.norm(x, 2))(np.zeros((2, 3)))).all()


def test_solve_against_a_jacobian_without_rules():
    y = RNG.normal(size=3)
    got = fgrad.jacrev(np.linalg.solve, (0, 1))(A, y)
    inverse = np.linalg.inv(A)
    np.testing.assert_allclose(got[1], inverse)
    np.testing.assert_allclose(got[0], -np.einsum("ij,k->ijk", inverse, inverse @ y))


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda x: np.linalg.inv(x[0]), LinAlgError, "at least two-dimensional"),
        (lambda x: np.linalg.det(x[:2]), LinAlgError, "must be square"),
        (lambda x: np.linalg.solve(x, x[:2]), ValueError, "do not fit"),
        (lambda x: np.linalg.qr(x, "raw"), ValueError, "'reduced', 'complete' or 'r'"),
        (lambda x: np.linalg.eigh(x, "X"), ValueError, "UPLO argument must be 'L' or 'U'"),
        (lambda x: np.linalg.pinv(x, 0.1, rtol=0.2), ValueError, "can't be both set"),
        (lambda x: np.linalg.pinv(x, x[0]), TypeError, "rcond must be one known number"),
        (lambda x: np.linalg.matrix_rank(x, 0.1, rtol=0.2), ValueError, "can't be both set"),
        (lambda x: np.linalg.lstsq(x[None], x), LinAlgError, "a matrix and a vector or matrix"),
        (lambda x: np.linalg.lstsq(x, x[:2]), LinAlgError, "Incompatible"),
        (lambda x: np.linalg.tensorinv(x, 0), ValueError, "Invalid ind"),
        (lambda x: np.linalg.tensorsolve(x[:2], x[0, :2]), LinAlgError, "must satisfy"),
        (lambda x: np.linalg.cond(x[:0]), LinAlgError, "not defined on empty"),
        (lambda x: np.linalg.cholesky(-x), LinAlgError, "positive definite"),
        (lambda x: np.linalg.inv(x * 0), LinAlgError, "Singular"),
    ],
)
@pytest.mark.parametrize("transform", [fgrad.jit, lambda f: lambda x: fgrad.vjp(f, x)], ids=["jit", "vjp"])
def test_refusals(transform, function, error, words):
    with pytest.raises(error, match=words):
        transform(function)(SYM)


def test_a_value_of_no_matrix_type_is_refused():
    with pytest.raises(TypeError, match="float16"):
        fgrad.jit(np.linalg.inv)(A.astype(np.float16))


TURN, _ = np.linalg.qr(RNG.normal(size=(4, 4)))
STACK = np.stack(
    [TURN @ np.diag(w) @ TURN.T for w in ([1.0, 2.0, 2.0, 5.0], [3.0, 3.0, 3.0, 3.0], [1.0, 2.0, 3.0, 4.0])]
)
OF_REPEATED = {
    "norm of all": lambda x: np.linalg.svd(x, compute_uv=False).sum(-1),
    "logarithms of all": lambda x: np.log(np.linalg.eigvalsh(x)).sum(-1),
    "squares by the vectors": lambda x: np.trace((v := np.linalg.eigh(x))[1] @ np.diag(v[0]) @ v[1].T @ x),
}


@pytest.mark.parametrize("name", OF_REPEATED)
@pytest.mark.parametrize("way", ["grad", "jit", "vmap"])
def test_repeated_values_among_others_in_a_stack(name, way):
    """Each is trace(f(x)) of a smooth f, whose gradient f'(x) is known where values are repeated, too."""
    f = OF_REPEATED[name]
    slope = {
        "norm of all": np.ones_like,
        "logarithms of all": lambda w: 1 / w,
        "squares by the vectors": lambda w: 2 * w,
    }
    grad = fgrad.grad(f)
    if way == "vmap":
        got = fgrad.vmap(grad)(STACK)
    else:
        got = [(fgrad.jit(grad) if way == "jit" else grad)(x) for x in STACK]
    for x, g in zip(STACK, got, strict=True):
        w, v = np.linalg.eigh(x)
        np.testing.assert_allclose(g, v * slope[name](w) @ v.T, atol=1e-10)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5)])
def test_rectangular_matrices_of_repeated_singular_values(shape):
    u, _ = np.linalg.qr(RNG.normal(size=(shape[0], shape[0])))
    v, _ = np.linalg.qr(RNG.normal(size=(shape[1], shape[1])))
    x = u[:, :3] @ np.diag([2.0, 2.0, 1.0]) @ v[:, :3].T
    # d(sum of all) = U Vᵀ, d(sum of squares) = 2 x, and the sum of the equal two, apart from the third
    np.testing.assert_allclose(fgrad.grad(lambda x: np.linalg.norm(x, "nuc"))(x), u[:, :3] @ v[:, :3].T, atol=1e-12)
    np.testing.assert_allclose(fgrad.grad(lambda x: (np.linalg.svdvals(x) ** 2).sum())(x), 2 * x, atol=1e-12)
    two = fgrad.grad(lambda x: np.linalg.svdvals(x)[:2].sum())(x)
    np.testing.assert_allclose(two, u[:, :2] @ v[:, :2].T, atol=1e-12)
    fgrad.check_grads(np.linalg.pinv, (x,), 2, rtol=1e-4)
    with pytest.raises(LinAlgError, match="vectors of a repeated"):
        fgrad.grad(lambda x: np.linalg.svd(x, full_matrices=False)[0][:, 0] @ np.arange(1.0, shape[0] + 1))(x)
