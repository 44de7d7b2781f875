"""Strategies for the primitives of linear algebra and Fourier transforms; entered into `BY_NAME`.

Matrices are stacks in the dtypes that LAPACK has, well-conditioned, with eigenvalues and singular values apart; how
derivatives do at repeated ones, and at singular matrices, is in tests/ops.
"""

import numpy as np
from hypothesis import strategies as st

from tests.laws import arrays as a
from tests.laws.strategies import strategy

REAL = ("float32", "float64")
LAPACK = (*REAL, *a.COMPLEX)

stacks = st.sampled_from([(), (), (2,), (2, 1), (0,)])
sizes = st.sampled_from([1, 2, 3, 0])


def full(draw, rng, shape, dtype, place=0, size=1.0):
    return a.values(rng, shape, dtype, (-size, size), place=place)


def near(draw, rng, shape, dtype, diagonal):
    """Return matrices near a diagonal one, whose entries are evenly apart."""
    x = full(draw, rng, shape, dtype, size=0.4)
    k = min(shape[-2:])
    x[..., range(k), range(k)] += np.asarray(diagonal(np.arange(k)), dtype)
    return x


def some_dtype(draw, smooth, unique=True):
    """Return a dtype; a real one if results are to be compared with differences and are unique but for a phase."""
    return draw(st.sampled_from(REAL if smooth and not unique else LAPACK))


def system(draw, rng, smooth):
    """Return matrices and right-hand sides."""
    stack, n, dtype = draw(stacks), draw(sizes), some_dtype(draw, smooth)
    x = near(draw, rng, (*stack, n, n), dtype, lambda k: 3 + 0 * k)
    return x, full(draw, rng, (*stack, n, draw(st.integers(0, 2))), dtype, 1)


@strategy("solve")
def _(draw, rng, smooth):
    return system(draw, rng, smooth), {}


@strategy("triangular_solve")
def _(draw, rng, smooth):
    return system(draw, rng, smooth), {"lower": draw(st.booleans()), "unit": draw(st.booleans())}


@strategy("inv", "det", "cofactors", "slogdet", "expm", "cholesky")
def _(draw, rng, smooth):
    n = draw(sizes)
    return (near(draw, rng, (*draw(stacks), n, n), some_dtype(draw, smooth), lambda k: 2 + k),), {}


def direction(draw, rng, smooth, n):
    """Return matrices and a direction to move them in."""
    dtype = some_dtype(draw, smooth)
    x = near(draw, rng, (*draw(stacks), n, n), dtype, lambda k: 1 + k / 2)
    return x, full(draw, rng, x.shape, dtype, 1)


@strategy("expm_change")
def _(draw, rng, smooth):
    return direction(draw, rng, smooth, draw(sizes)), {}


@strategy("refuse_singular")
def _(draw, rng, smooth):
    return (direction(draw, rng, smooth, draw(sizes))[0],), {"why": "there is no inverse"}


@strategy("cofactors_change")
def _(draw, rng, smooth):
    """Draw matrices that have a third derivative of det: small ones have none."""
    return direction(draw, rng, smooth, draw(st.sampled_from([3, 4, 0]))), {}


@strategy("eigh", "eig", "eigvalsh", "eigvals")
def _(draw, rng, smooth):
    n = draw(sizes)
    x = near(draw, rng, (*draw(stacks), n, n), some_dtype(draw, smooth, unique=False), lambda k: 3 * k - 2)
    return (x,), {}


def rectangular(draw, rng, smooth, shapes, unique=True):
    m, n = draw(st.sampled_from(shapes))
    return near(draw, rng, (*draw(stacks), m, n), some_dtype(draw, smooth, unique), lambda k: 2 + 2 * k)


@strategy("repeated")
def _(draw, rng, smooth):
    w = full(draw, rng, (*draw(stacks), 3), some_dtype(draw, smooth))
    w[..., 1] = w[..., 0]
    return (w,), {}


@strategy("sylvester")
def _(draw, rng, smooth):
    """Draw diagonal matrices of numbers apart, or some equal in both, where the result is 0."""
    stack, (m, n), dtype = (
        draw(stacks),
        draw(st.sampled_from([(3, 3), (2, 3), (3, 1), (0, 2)])),
        some_dtype(draw, smooth),
    )
    same = not smooth and draw(st.booleans())
    left, right = (np.zeros((*stack, k, k), dtype) for k in (m, n))
    left[..., range(m), range(m)] = np.arange(m)
    right[..., range(n), range(n)] = np.arange(n) * 2 + (0 if same else 0.5)
    return (full(draw, rng, (*stack, m, n), dtype), left, right), {}


@strategy("refuse_turns")
def _(draw, rng, smooth):
    """Draw what is allowed where the last two values are equal, and where none are."""
    dtype = some_dtype(draw, smooth)
    shape = (*draw(stacks), 3, 3)
    p, rate = full(draw, rng, shape, dtype), full(draw, rng, shape[:-1], np.empty(0, dtype).real.dtype, 1)
    w = np.broadcast_to(np.asarray([1, 2, 3], rate.dtype), rate.shape).copy()
    if not smooth and draw(st.booleans()):
        p, rate[...], w[..., 1] = p + np.swapaxes(p, -1, -2).conj(), 1, 3
    return (p, rate, w), {}


TALL = ((1, 1), (3, 3), (4, 2), (3, 1), (2, 0))
WIDE = ((2, 4), (1, 3))


def completed(draw, x, smooth):
    """Say whether to ask for further columns; for derivatives only if they are unique but for a sign."""
    m, n = x.shape[-2:]
    return draw(st.booleans()) and (not smooth or (abs(m - n) < 2 and x.dtype.kind == "f"))


@strategy("qr")
def _(draw, rng, smooth):
    x = rectangular(draw, rng, smooth, (*TALL, (2, 1), (3, 2)))
    return (x,), {"complete": completed(draw, x, smooth)}


@strategy("lu")
def _(draw, rng, smooth):
    return (rectangular(draw, rng, smooth, TALL + WIDE)[..., ::-1, :],), {}


@strategy("svd")
def _(draw, rng, smooth):
    x = rectangular(draw, rng, smooth, (*TALL, *WIDE, (3, 2), (1, 2)), unique=False)
    return (x,), {"full": completed(draw, x, smooth)}


@strategy("svdvals")
def _(draw, rng, smooth):
    return (rectangular(draw, rng, smooth, TALL + WIDE, unique=False),), {}


@strategy("pinv")
def _(draw, rng, smooth):
    return (rectangular(draw, rng, smooth, TALL + WIDE),), {"rtol": 1e-5}


# ---------------------------------------------------------------------------------------------------------- fft

SIGNALS = ((1,), (2,), (5,), (6,), (2, 3), (4, 1, 3), (0, 3))


@strategy("fft", "ifft")
def _(draw, rng, smooth):
    shape = draw(st.sampled_from(SIGNALS))
    axes = [axis for axis, n in enumerate(shape) if n]
    axes = tuple(axes[: draw(st.integers(1, len(axes)))])
    return (full(draw, rng, shape, draw(st.sampled_from(LAPACK))),), {"axes": axes}


@strategy("rfft")
def _(draw, rng, smooth):
    shape = draw(st.sampled_from(SIGNALS))
    axis = draw(st.sampled_from([k for k, n in enumerate(shape) if n]))
    return (full(draw, rng, shape, draw(st.sampled_from(REAL))),), {"axis": axis}


@strategy("irfft")
def _(draw, rng, smooth):
    shape = draw(st.sampled_from(SIGNALS))
    axis = draw(st.sampled_from([k for k, n in enumerate(shape) if n]))
    n = max(1, 2 * shape[axis] - draw(st.integers(1, 2)))
    return (full(draw, rng, shape, draw(st.sampled_from(LAPACK))),), {"axis": axis, "n": n}
