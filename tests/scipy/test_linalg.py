"""`fgrad.scipy.linalg`: values against SciPy's, derivatives against finite differences, under vmap and jit."""

import numpy as np
import pytest
import scipy.linalg

import fgrad
from fgrad.scipy import linalg

RNG = np.random.default_rng(0)
A = RNG.standard_normal((3, 3)) + 2 * np.eye(3)
C = A + 1j * RNG.standard_normal((3, 3))
B = RNG.standard_normal((3, 2))
POSITIVE = {x.dtype.kind: x @ x.conj().T + np.eye(3) for x in (A, C)}


def projections(w, v):
    """Return eigenvalues, and what of the vectors does not depend on their signs."""
    return w, v[:, :1] @ v[:, :1].T, v[:, 2:] @ v[:, 2:].T


CASES = {
    "solve": (lambda a, b: linalg.solve(a, b), scipy.linalg.solve, (A, B)),
    "solve of a vector": (lambda a, b: linalg.solve(a, b), scipy.linalg.solve, (A, B[:, 0])),
    "inv": (linalg.inv, scipy.linalg.inv, (A,)),
    "det": (linalg.det, scipy.linalg.det, (A,)),
    "expm": (linalg.expm, scipy.linalg.expm, (A,)),
    "expm_frechet": (linalg.expm_frechet, scipy.linalg.expm_frechet, (A, A.T)),
    "lu": (linalg.lu, scipy.linalg.lu, (A,)),
    "lu, wide": (linalg.lu, scipy.linalg.lu, (A[:2],)),
    "lu, permuted": (lambda a: linalg.lu(a, True), lambda a: scipy.linalg.lu(a, True), (A[:, :2],)),
    "block_diag": (linalg.block_diag, scipy.linalg.block_diag, (A, B, B[:, 0])),
    "toeplitz": (linalg.toeplitz, scipy.linalg.toeplitz, (A[0], B[:, 0])),
    "qr": (linalg.qr, scipy.linalg.qr, (A,)),
    "qr, economic": (lambda a: linalg.qr(a, "economic"), lambda a: scipy.linalg.qr(a, mode="economic"), (B,)),
    "qr, r": (lambda a: linalg.qr(a, mode="r")[0], lambda a: scipy.linalg.qr(a, mode="r")[0], (A,)),
    "svd": (lambda a: linalg.svd(a, compute_uv=False), lambda a: scipy.linalg.svd(a, compute_uv=False), (A,)),
    "svdvals": (linalg.svdvals, scipy.linalg.svdvals, (B,)),
    "eigvalsh": (linalg.eigvalsh, scipy.linalg.eigvalsh, (A + A.T,)),
    "eigvalsh of two": (linalg.eigvalsh, scipy.linalg.eigvalsh, (A + A.T, A @ A.T + np.eye(3))),
    "eigh, projections": (
        lambda a, b: projections(*linalg.eigh(a + a.T, b + b.T)),
        lambda a, b: projections(*scipy.linalg.eigh(a + a.T, b + b.T)),
        (A, A @ A.T + np.eye(3)),
    ),
    "sqrtm": (linalg.sqrtm, scipy.linalg.sqrtm, (A @ A.T + np.eye(3),)),
    "sqrtm, complex": (linalg.sqrtm, scipy.linalg.sqrtm, (C,)),
    "solve_sylvester": (linalg.solve_sylvester, scipy.linalg.solve_sylvester, (A, B.T @ B + np.eye(2), B)),
    "polar": (linalg.polar, scipy.linalg.polar, (A,)),
    "polar of a tall one": (linalg.polar, scipy.linalg.polar, (B,)),
    "polar of a wide one": (linalg.polar, scipy.linalg.polar, (B.T,)),
    "polar, left": (lambda a: linalg.polar(a, "left"), lambda a: scipy.linalg.polar(a, "left"), (C,)),
    "polar of a tall one, left": (lambda a: linalg.polar(a, "left"), lambda a: scipy.linalg.polar(a, "left"), (B,)),
    "polar of a wide one, left": (lambda a: linalg.polar(a, "left"), lambda a: scipy.linalg.polar(a, "left"), (B.T,)),
    "eigh_tridiagonal": (
        lambda d, e: linalg.eigh_tridiagonal(d, e, True),
        lambda d, e: scipy.linalg.eigh_tridiagonal(d, e, True),
        (A[0], B[:2, 0]),
    ),
    "eigh_tridiagonal, projections": (
        lambda d, e: projections(*linalg.eigh_tridiagonal(d, e)),
        lambda d, e: projections(*scipy.linalg.eigh_tridiagonal(d, e)),
        (A[0], B[:2, 0]),
    ),
    "lu_factor": (lambda a: linalg.lu_factor(a)[0], lambda a: scipy.linalg.lu_factor(a)[0], (A,)),
    "hankel": (linalg.hankel, scipy.linalg.hankel, (A[0], B[:, 0])),
    "hankel of one": (linalg.hankel, scipy.linalg.hankel, (A[0],)),
    "circulant": (linalg.circulant, scipy.linalg.circulant, (A[0],)),
    "toeplitz of one": (linalg.toeplitz, scipy.linalg.toeplitz, (C[0],)),
}


@pytest.mark.parametrize("name", CASES)
def test_functions(name):
    ours, scipys, args = CASES[name]
    check(ours, scipys, args)


def check(ours, scipys, args, order=2):
    """Hold a function against SciPy's: its values, also batched and compiled, and its derivatives."""
    want = scipys(*args)
    close(ours(*args), want)
    close(fgrad.jit(ours)(*args), want)
    mapped = fgrad.vmap(ours)(*[np.stack([x, x]) for x in args])
    close(fgrad.tree.map(lambda x: x[1], mapped), want)
    fgrad.check_grads(ours, args, order, atol=1e-5, rtol=1e-5)


def close(got, want):
    for g, w in zip(fgrad.tree.leaves(got), fgrad.tree.leaves(want), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-11)


@pytest.mark.heavy
@pytest.mark.parametrize("x", [A, C], ids=["real", "complex"])
@pytest.mark.parametrize("trans", [0, "T", 2])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_solve_triangular(x, trans, lower, unit):
    options = {"trans": trans, "lower": lower, "unit_diagonal": unit}
    check(
        lambda a, b: linalg.solve_triangular(a, b, **options),
        lambda a, b: scipy.linalg.solve_triangular(a, b, **options),
        (x, B.astype(x.dtype)),
        order=1,
    )


@pytest.mark.parametrize("kind", ["f", "c"])
@pytest.mark.parametrize("lower", [True, False])
def test_cholesky_and_what_it_solves(kind, lower):
    x, b = POSITIVE[kind], B.astype(POSITIVE[kind].dtype)
    close(linalg.cholesky(x, lower), scipy.linalg.cholesky(x, lower))
    fgrad.check_grads(lambda x: linalg.cholesky(x, lower), (x,), 2)
    check(lambda x, b: linalg.cho_solve(linalg.cho_factor(x, lower), b), scipy.linalg.solve, (x, b))
    close(linalg.solve(x, b[:, 0], assume_a="pos"), scipy.linalg.solve(x, b[:, 0]))


@pytest.mark.heavy
@pytest.mark.parametrize("trans", [0, 1, 2])
@pytest.mark.parametrize("x", [A, C], ids=["real", "complex"])
@pytest.mark.parametrize("b", [B, B[:, 0]], ids=["matrix", "vector"])
def test_what_lu_solves(x, b, trans):
    b = b.astype(x.dtype)
    want = scipy.linalg.lu_solve(scipy.linalg.lu_factor(x), b, trans)
    close(linalg.lu_solve(scipy.linalg.lu_factor(x), b, trans), want)
    close(scipy.linalg.lu_solve(linalg.lu_factor(x), b, trans), want)
    check(
        lambda x, b: linalg.lu_solve(linalg.lu_factor(x), b, trans),
        lambda x, b: scipy.linalg.lu_solve(scipy.linalg.lu_factor(x), b, trans),
        (x, b),
    )
    close(linalg.lu_solve(linalg.lu_factor(np.stack([x, 2 * x])), b, trans)[1], want / 2)


@pytest.mark.parametrize("shape", [(5, 5), (5, 3), (3, 5)])
def test_pivots_are_lapacks(shape):
    x = RNG.standard_normal(shape)
    np.testing.assert_array_equal(linalg.lu_factor(x)[1], scipy.linalg.lu_factor(x)[1])


@pytest.mark.parametrize("lower", [True, False])
def test_eigh_reads_one_triangle(lower):
    other = np.triu(np.full((3, 3), 9.0), 1) if lower else np.tril(np.full((3, 3), 9.0), -1)
    a, b = A + A.T, A @ A.T + np.eye(3)
    for second in (None, b + 0 * other):
        close(linalg.eigh(a + other, second, lower=lower)[0], scipy.linalg.eigh(a, second)[0])
    np.testing.assert_allclose(np.abs(linalg.eigh(a, b)[1]), np.abs(scipy.linalg.eigh(a, b)[1]))


def test_square_roots_that_are_not_real():
    with pytest.raises(np.linalg.LinAlgError, match="no real square root"):
        linalg.sqrtm(np.diag([1.0, -1.0]))
    close(linalg.sqrtm(np.diag([1.0, -1.0]).astype(complex)), np.diag([1, 1j]))
    close(linalg.sqrtm(np.diag([4.0, 0.0])), np.diag([2.0, 0.0]))


def test_leading_axes_broadcast():
    stack = np.stack([A, 2 * A])
    close(linalg.solve(stack, B), np.stack([scipy.linalg.solve(A, B), scipy.linalg.solve(2 * A, B)]))
    close(linalg.solve(A, np.stack([B, B])), np.stack([scipy.linalg.solve(A, B)] * 2))
    assert linalg.solve(A.astype(np.float32), B.astype(np.float32)).dtype == np.float32
    assert linalg.inv([[2, 0], [0, 1]]).dtype == np.float64


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"solve: a must be square and fit b, got shapes \(3, 2\) and \(3,\)"):
        linalg.solve(B, B[:, 0])
    with pytest.raises(ValueError, match="trans must be"):
        linalg.solve_triangular(A, B, "X")
    with pytest.raises(np.linalg.LinAlgError):
        linalg.cholesky(-np.eye(2))
    with pytest.raises(ValueError, match="argument 1 has shape"):
        linalg.block_diag(A, A[None])
    for f in (linalg.toeplitz, linalg.hankel):
        with pytest.raises(ValueError, match="vectors"):
            f(A)
    with pytest.raises(ValueError, match="solve_sylvester"):
        linalg.solve_sylvester(A, A, B)
    with pytest.raises(ValueError, match="side must be"):
        linalg.polar(A, "up")
    with pytest.raises(ValueError, match="one shorter"):
        linalg.eigh_tridiagonal([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(NotImplementedError, match="pivoting"):
        linalg.qr(A, pivoting=True)
    with pytest.raises(ValueError, match="mode must be 'full', 'economic' or 'r'"):
        linalg.qr(A, "reduced")
    with pytest.raises(ValueError, match="lu_solve"):
        linalg.lu_solve(linalg.lu_factor(A), B[:2])
