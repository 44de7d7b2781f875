"""Linear algebra where it is special: singular matrices, repeated values, phases, blocks, and what is refused."""

import itertools

import numpy as np
import pytest
import scipy.linalg
from numpy.linalg import LinAlgError

import fgrad
from fgrad.ops import factor as f
from fgrad.ops import linalg as m
from fgrad.ops import spectral as sp

RNG = np.random.default_rng(11)
A = RNG.normal(size=(4, 4))
Z = A + 1j * RNG.normal(size=(4, 4))
TURN = np.linalg.qr(RNG.normal(size=(4, 4)))[0]
OTHER = np.linalg.qr(RNG.normal(size=(4, 4)))[0]
C = RNG.normal(size=(4, 4))


def symmetric(*values, turn=TURN):
    return turn @ np.diag(values) @ turn.T


def with_singular_values(*values):
    return TURN @ np.diag(values) @ OTHER


def check(function, *args, order=2):
    """Check derivatives with a step at which repeated values come clearly apart."""
    fgrad.check_grads(function, args, order, rtol=1e-6, atol=1e-6, eps=1e-3)


# ------------------------------------------------------------------------------------------------- determinants


def exact_cofactors(x):
    n = len(x)
    out = np.empty_like(x)
    for i, j in itertools.product(range(n), repeat=2):
        out[i, j] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x, i, 0), j, 1))
    return out


SINGULAR = [
    with_singular_values(3.0, 2.0, 1.0, 0.0),
    with_singular_values(3.0, 2.0, 0.0, 0.0),
    with_singular_values(2.0, 2.0, 2.0, 0.0),
    with_singular_values(3.0, 2.0, 1.0, 1e-9),
    with_singular_values(1.0, 0.0, 0.0, 0.0),
    np.zeros((4, 4)),
    np.ones((4, 4)),
    np.eye(4),
    A,
]


@pytest.mark.parametrize("x", SINGULAR)
def test_det_has_its_derivatives_at_any_matrix(x):
    np.testing.assert_allclose(fgrad.grad(m.det)(x), exact_cofactors(x), rtol=1e-8, atol=1e-14)
    check(m.det, x)


@pytest.mark.parametrize("modes", [(fgrad.jacfwd, fgrad.jacrev), (fgrad.jacrev, fgrad.jacfwd), (fgrad.jacfwd,) * 2])
def test_second_derivative_of_det_at_a_singular_matrix_in_every_order_of_modes(modes):
    x = SINGULAR[1]
    outer, inner = modes
    np.testing.assert_allclose(outer(inner(m.det))(x), fgrad.jacrev(fgrad.jacrev(m.det))(x), atol=1e-13)


def test_det_of_small_singular_matrices():
    assert fgrad.grad(m.det)(np.zeros((1, 1))).tolist() == [[1.0]]
    check(m.det, np.array([[1.0, 2.0], [2.0, 4.0]]), order=3)


def test_third_derivative_of_det():
    check(m.det, np.eye(3), order=3)
    check(m.det, A, order=3)


def test_det_of_a_stack_with_singular_members():
    x = np.stack([A, SINGULAR[0], SINGULAR[5]])
    got = fgrad.grad(lambda x: m.det(x).sum())(x)
    np.testing.assert_allclose(got, [exact_cofactors(y) for y in x], rtol=1e-8, atol=1e-13)


def test_det_of_complex_singular_matrices():
    x = Z.copy()
    x[0] = 1j * x[1]
    check(m.det, x)
    np.testing.assert_allclose(fgrad.grad(m.det, holomorphic=True)(x), exact_cofactors(x), rtol=1e-8, atol=1e-12)


def test_slogdet():
    np.testing.assert_allclose(fgrad.grad(lambda x: m.slogdet(x)[1])(-A), np.linalg.inv(-A).T)
    check(lambda x: m.slogdet(x), Z)
    with pytest.raises(LinAlgError, match="Singular"):
        fgrad.grad(lambda x: m.slogdet(x)[1])(np.zeros((2, 2)))


# ------------------------------------------------------------------------------------------------------ solving


def test_only_one_triangle_is_read():
    x = np.where(np.tri(5, dtype=bool), RNG.normal(size=(5, 5)) + 3 * np.eye(5), np.nan)
    y = RNG.normal(size=(5, 2))
    for matrix, lower in ((x, True), (x.T, False)):
        for unit in (False, True):
            want = scipy.linalg.solve_triangular(np.nan_to_num(matrix), y, lower=lower, unit_diagonal=unit)
            np.testing.assert_allclose(m.triangular_solve(matrix, y, lower=lower, unit=unit), want)
    g = fgrad.grad(lambda x: m.triangular_solve(x, y, lower=True, unit=True).sum())(np.nan_to_num(x))
    assert np.all(g[np.triu_indices(5)] == 0)


@pytest.mark.parametrize("lower", [True, False])
def test_large_triangular_systems_are_solved_in_blocks(lower):
    x = RNG.normal(size=(2, 200, 200)) * 0.1 + 3 * np.eye(200)
    y = RNG.normal(size=(2, 200, 3))
    want = [scipy.linalg.solve_triangular(a, b, lower=lower) for a, b in zip(x, y)]
    np.testing.assert_allclose(m.triangular_solve(x, y, lower=lower, unit=False), want, rtol=1e-9)


def test_right_hand_sides_of_one_matrix_are_solved_at_once(monkeypatch):
    shapes = []
    original = np.linalg.solve
    monkeypatch.setattr(np.linalg, "solve", lambda x, y: shapes.append((x.shape, y.shape)) or original(x, y))
    y = RNG.normal(size=(7, 4, 2))
    out = fgrad.vmap(lambda y: m.solve(A, y))(y)
    assert shapes == [((4, 4), (4, 14))]
    np.testing.assert_allclose(A @ out, y, atol=1e-12)


def test_solve_is_linear_in_the_right_hand_side():
    y = RNG.normal(size=(4, 1))
    (g,) = fgrad.linear_transpose(lambda y: m.solve(A, y), y)(y)
    np.testing.assert_allclose(g, np.linalg.solve(A.T, y))


def test_pinv_keeps_the_rank():
    """At a matrix of rank 2 the derivative is right along directions that keep the rank."""
    rng = np.random.default_rng(0)  # near rank 1 derivatives are large: the same draws in any order of tests
    left, right = rng.normal(size=(4, 2)), rng.normal(size=(2, 3))
    check(lambda a, b: m.pinv(m.mm(a, b), rtol=1e-6), left, right)
    check(lambda a, b: m.pinv(m.mm(a, b), rtol=1e-6), left + 1j, right - 2j)


# --------------------------------------------------------------------------------------------- the exponential


@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("x", [A, Z, A[:1, :1], A[:0, :0]], ids=["real", "complex", "1", "0"])
def test_expm_is_scipys(x, size):
    np.testing.assert_allclose(m.expm(x * size), scipy.linalg.expm(x * size), rtol=1e-9 * max(size, 1))


def test_expm_of_a_stack_scales_each_by_itself():
    x = np.stack([A, 20 * A, 1e-3 * A]).astype(np.float32)
    want = [scipy.linalg.expm(y.astype(float)) for y in x]
    got = m.expm(x)
    assert got.dtype == np.float32
    for y, z in zip(got, want):
        np.testing.assert_allclose(y, z, rtol=1e-3, atol=1e-4 * np.abs(z).max())


def test_expm_has_scipys_derivative():
    np.testing.assert_allclose(fgrad.jvp(m.expm, (A,), (C,))[1], scipy.linalg.expm_frechet(A, C)[1], rtol=1e-10)
    check(m.expm, A, order=3)


# ----------------------------------------------------------------------------------------------- factorisations


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (90, 70), (1, 1), (3, 0)])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_lu_is_lapacks(shape, dtype):
    x = RNG.normal(size=(2, *shape))
    x = x[0] + 1j * x[1] if dtype is np.complex128 else x[0]
    packed, order = f.lu(x)
    k = min(shape)
    low, up = np.tril(packed[:, :k], -1) + np.eye(shape[0], k), np.triu(packed[:k])
    np.testing.assert_allclose(low @ up, x[order], atol=1e-12)
    if x.size and dtype == np.float64:
        np.testing.assert_allclose(packed, scipy.linalg.lu_factor(x)[0], rtol=1e-8, atol=1e-12)


def test_lu_of_a_singular_matrix():
    x = np.zeros((3, 3))
    x[0, 1] = 2.0
    packed, order = f.lu(x)
    np.testing.assert_allclose((np.tril(packed, -1) + np.eye(3)) @ np.triu(packed), x[order])


def test_cholesky_has_symmetric_derivatives():
    x = A @ A.T + np.eye(4)
    g = fgrad.grad(lambda x: (C * f.cholesky(x)).sum())(x)
    np.testing.assert_array_equal(g, g.T)
    check(f.cholesky, Z @ Z.conj().T + np.eye(4))
    with pytest.raises(LinAlgError, match="positive definite"):
        f.cholesky(-x)


def test_qr_completes():
    """What the further columns span has a derivative, in both modes, though they themselves are any basis of it."""
    x = A[:, :2]

    def beyond(x):
        rest = f.qr(x, complete=True)[0][..., 2:]
        return m.mm(rest, m.adjoint(rest))

    check(beyond, x)
    check(beyond, x + 1j * A[:, 2:])


def test_qr_of_complex_matrices():
    check(lambda x: f.qr(x, complete=False), Z[:, :3])


def test_qr_without_full_rank_is_refused():
    x = np.ones((3, 2))
    with pytest.raises(LinAlgError, match="linearly dependent"):
        fgrad.grad(lambda x: f.qr(x, complete=False)[1].sum())(x)


# ---------------------------------------------------------------------------------------------- repeated values

REPEATED = symmetric(1.0, 1.0, 1.0, 4.0)
PAIRS = symmetric(1.0, 1.0, 4.0, 4.0)


@pytest.mark.parametrize("x", [REPEATED, PAIRS, np.eye(4), np.zeros((4, 4))])
def test_sums_over_repeated_eigenvalues(x):
    """Their derivative is the projector on the space of their vectors; also of second order."""
    w = np.linalg.eigvalsh(x)
    for value in np.unique(w.round(9)):
        chosen = np.abs(w - value) < 1e-6

        def total(x, chosen=chosen):
            return (sp.eigh(x)[0] * chosen).sum()

        space = np.linalg.eigh(x)[1][:, chosen]
        np.testing.assert_allclose(fgrad.grad(total)(x), space @ space.T, atol=1e-12)
        check(total, x, order=3)


def test_an_isolated_vector_beside_repeated_ones():
    def component(x):
        v = sp.eigh(x)[1][..., 3]
        return v * v[1]

    check(component, REPEATED)


def test_the_space_of_repeated_eigenvalues():
    def projector(x):
        v = sp.eigh(x)[1][..., :2]
        return m.mm(v, m.adjoint(v))

    check(projector, PAIRS)
    check(projector, PAIRS + 0j)


def test_the_greatest_of_equal_eigenvalues_has_a_subgradient():
    g = fgrad.grad(lambda x: sp.eigvalsh(x)[3])(np.eye(4))
    assert np.trace(g) == pytest.approx(1)
    assert np.linalg.matrix_rank(g) == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x: sp.eigh(x)[1][0, 0],
        lambda x: (C * m.mm(sp.eigh(x)[1] * np.exp(m.row(sp.eigh(x)[0])), m.adjoint(sp.eigh(x)[1]))).sum(),
    ],
    ids=["a vector", "a matrix function"],
)
def test_what_depends_on_the_choice_of_vectors_is_refused(function):
    fgrad.grad(function)(symmetric(1.0, 2.0, 3.0, 4.0))
    for transform in (fgrad.grad, lambda f: fgrad.jit(fgrad.grad(f))):
        with pytest.raises(LinAlgError, match="repeated eigenvalue"):
            transform(function)(REPEATED)


def test_complex_eigenvectors_up_to_a_phase():
    x = Z + Z.conj().T

    def first(x):
        v = sp.eigh(x)[1][..., :1]
        return m.mm(v, m.adjoint(v))

    check(first, x)


def test_eig_at_repeated_eigenvalues():
    x = C @ np.diag([1.0, 1.0, 2.0, 3.0]) @ np.linalg.inv(C)
    assert fgrad.grad(lambda x: sp.eig(x)[0].sum().real)(x) == pytest.approx(np.eye(4), abs=1e-6)
    with pytest.raises(LinAlgError, match="too few eigenvectors"):
        fgrad.grad(lambda x: sp.eig(x)[0].real.sum())(np.array([[1.0, 1.0], [0.0, 1.0]]))


# ---------------------------------------------------------------------------------------------- singular values

SAME = with_singular_values(2.0, 2.0, 2.0, 1.0)


@pytest.mark.parametrize("x", [SAME, np.eye(4), SAME[:, :3], SAME[:3], with_singular_values(2.0, 2.0, 1.0, 0.5)])
def test_functions_of_repeated_singular_values(x):
    def nuclear(x):
        return sp.svdvals(x).sum()

    def polar(x):
        u, _, vh, _ = sp.svd(x, full=False)
        return m.mm(u, vh)

    u, _, vh = np.linalg.svd(x, full_matrices=False)
    np.testing.assert_allclose(fgrad.grad(nuclear)(x), u @ vh, atol=1e-12)
    check(nuclear, x)
    check(polar, x)


def test_nuclear_norm_of_the_zero_matrix_has_a_subgradient():
    g = fgrad.grad(lambda x: sp.svdvals(x).sum())(np.zeros((3, 2)))
    assert np.linalg.norm(g, 2) == pytest.approx(1)


def test_an_isolated_singular_vector():
    def last(x):
        u, _, vh, _ = sp.svd(x, full=False)
        return u[..., 3:] * vh[3:][0, 0]

    check(last, SAME)


def test_the_null_space():
    """What full matrices add spans the null space."""

    def projector(x):
        vh = sp.svd(x, full=True)[2]
        return m.mm(m.adjoint(vh[..., 2:, :]), vh[..., 2:, :])

    check(projector, A[:2])
    check(projector, Z[:2])


def test_low_rank_approximation_of_complex_matrices():
    def best(x):
        u, s, vh, _ = sp.svd(x, full=False)
        return m.mm(u[..., :2] * m.row(s[..., :2]), vh[..., :2, :])

    for x in (Z, Z[:, :3], Z[:3]):
        check(best, x)


def test_vectors_of_repeated_singular_values_are_refused():
    with pytest.raises(LinAlgError, match="singular value"):
        fgrad.grad(lambda x: sp.svd(x, full=False)[0][0, 0])(SAME)


# ------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda x: m.inv(x.astype(np.float16)), TypeError, "float32, float64, complex64"),
        (lambda x: m.inv(x[:, :2]), LinAlgError, "square"),
        (lambda x: m.det(x[0]), LinAlgError, "matrices in the last two axes"),
        (lambda x: m.solve(x, x.astype(np.float32)), TypeError, "alike for all operands"),
        (lambda x: m.solve(x, x[:2]), ValueError, "does not fit"),
        (lambda x: f.qr(x[:2], complete=False), ValueError, "at least as many rows"),
    ],
)
def test_types_are_checked_when_a_program_is_traced(function, error, words):
    with pytest.raises(error, match=words):
        fgrad.make_ir(function)(A)
