"""Samples for `fgrad.numpy.linalg` and `fgrad.numpy.fft`: see `tests.numpy.samples`, whose tables these go with.

Matrices have eigenvalues and singular values apart, so that vectors are determined but for a sign.
"""

import numpy as np

from tests.numpy import samples
from tests.numpy.samples import F4, C, I, M, S, T, V, alone, call, floats, rough

EYE = np.eye(3)
A = 3 * EYE + floats(3, 3)
AS = np.stack([A, A.T + EYE])
B = floats(2, 3, 2)
SYM = np.diag([1.0, 4.0, 8.0]) + floats(3, 3) @ EYE * 0.2
SYM = (SYM + SYM.T) / 2
POSITIVE = np.stack([SYM, SYM * 0.5 + EYE])
TALL = np.diag([1.0, 3.0, 6.0, 2.0])[:, :3] + 0.2 * floats(4, 3)
TURNING = np.array([[0.5, -2.0, 0.3], [1.5, 0.4, 0.1], [0.2, 0.3, 3.0]])  # has complex eigenvalues
TURNING4 = TURNING.astype(np.float32)
A4 = A.astype(np.float32)
CA = A + 1j * floats(3, 3)
IA = np.array([[2, 1, 0], [1, 3, 1], [0, 1, 4]])
SINGULAR = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, -1.0, 0.5]])

LINALG = samples.LINALG | {
    "norm": [
        *samples.LINALG["norm"],
        *[call(TALL, o) for o in (2, -2, "nuc")],
        call(T + 0.0, "nuc", axis=(2, 0), keepdims=True),
        call(CA, 2),
    ],
    "matrix_norm": [*samples.LINALG["matrix_norm"], call(AS, ord=2), call(TALL, ord="nuc", keepdims=True)],
    "matrix_power": [*samples.LINALG["matrix_power"], call(A, -2), call(AS, -1), rough(IA, -1)],
    "cholesky": [call(SYM), call(POSITIVE), call(SYM, upper=True), call(SYM.astype(np.float32)), alone(IA)],
    "qr": [call(A), call(TALL), call(TALL.T), call(AS), call(A4), *[call(TALL, m) for m in ("complete", "r")]]
    + [call(TALL.T, "complete"), rough(floats(4, 2), "complete"), rough(IA), call(CA)],
    "eigh": [call(SYM), call(POSITIVE), call(SYM.astype(np.float32), "L"), rough(IA)],
    "eigvalsh": [call(SYM), call(POSITIVE), call(SYM, "L"), call(SYM, "U"), rough(IA), call(SYM + 1j * (A - A.T))],
    "eig": [call(TURNING), call(np.stack([TURNING, TURNING.T])), call(TURNING4), call(CA)],
    "eigvals": [call(TURNING), call(TURNING4), call(CA)],
    "svd": [call(A), call(TALL, False), call(TALL.T, full_matrices=False), call(TALL), call(AS), call(A4)]
    + [call(TALL, compute_uv=False), rough(SYM, True, False, True), rough(floats(4, 2)), rough(IA)],
    "svdvals": [call(TALL), call(AS), call(CA), rough(IA)],
    "solve": [call(A, floats(3)), call(A, B), call(AS, floats(3, 2)), call(A4, F4.T), call(CA, floats(3, 1))]
    + [rough(IA, [1, 2, 3]), call(A, floats(3, 0)), call(AS, floats(3))],
    "inv": [call(A), call(AS), call(A4), call(CA), rough(IA), rough(np.zeros((0, 0)))],
    "det": [
        call(A),
        call(AS),
        call(A4),
        call(CA),
        rough(IA),
        call(SINGULAR),
        call(floats(1, 1)),
        rough(np.zeros((0, 0))),
    ],
    "slogdet": [call(A), call(AS), call(-A), call(A4), call(CA), rough(IA)],
    "pinv": [call(A), call(TALL), call(TALL.T), call(CA), rough(SYM, hermitian=True), call(TALL, rtol=None), rough(IA)]
    + [call(AS, 1e-3)],
    "lstsq": [call(TALL, floats(4)), call(TALL, floats(4, 2)), call(TALL.T, floats(3)), call(A, floats(3), -1)]
    + [rough(IA, [1, 2, 3])],
    "matrix_rank": [rough(A), rough(SINGULAR), rough(T), rough(SINGULAR, 1e-9), rough(TALL, rtol=1e-3)]
    + [rough(SYM, hermitian=True), rough(AS, np.array([1e-3, 1e3]))],
    "cond": [call(A), call(TALL), call(AS, -2), *[call(A, p) for p in ("fro", 1, np.inf, -1)], call(A4)],
    "tensorinv": [
        call(A.reshape(3, 3), 1),
        call((A[:2, :2, None] * np.eye(2)[None, None]).reshape(4, 2)[:2] + EYE[:2, :2], 1),
    ]
    + [call(np.kron(A[:2, :2], A[:2, :2]).reshape(2, 2, 4), 2)],
    "tensorsolve": [call(np.kron(A[:2, :2], A[:2, :2]).reshape(2, 2, 4), floats(2, 2)), call(A, floats(3))]
    + [call(A.reshape(3, 1, 3), floats(3), axes=(1,))],
}


def transform():
    """Return cases of fft or ifft."""
    rows = [call(V), call(T), call(C), call(F4), rough(I), call(T, 5, 1), call(T, 2, 0), call(C, 4, axis=0)]
    return rows + [call(T, norm=norm) for norm in ("ortho", "forward", "backward")]


def transforms(complex_=True, real=True):
    """Return cases of a transform along two or more axes."""
    rows = [call(T), call(T, (3, 5)), call(T, axes=(0, 2)), call(T, (4, 3), (1, 0), "ortho"), call(T, norm="forward")]
    return rows + [call(C), call(C[None], (5, 3), axes=(2, 1))] * complex_ + [rough(I), call(F4)] * real


def half():
    rows = [call(V), call(T), call(floats(5)), call(T, 5, 1), call(T, 2, 0), call(F4), rough(I), call(M, 1, 0)]
    return rows + [call(T, 3, norm=norm) for norm in ("ortho", "forward", "backward")]


def double():
    rows = [call(C), call(T), call(C, 5), call(C, 4, 0), call(C, 1, 1), call(C.astype(np.complex64)), rough(I)]
    return rows + [call(C, 7, norm=norm) for norm in ("ortho", "forward", "backward")]


SHIFTS = [call(V), call(floats(5)), call(T), call(T, 1), call(T, (0, -1)), rough(I, axes=0)]

FFT = {
    **{name: transform() for name in ("fft", "ifft")},
    **{name: half() for name in ("rfft", "ihfft")},
    **{name: double() for name in ("irfft", "hfft")},
    **{name: transforms() for name in ("fft2", "ifft2", "fftn", "ifftn", "irfft2", "irfftn")},
    **{name: transforms(complex_=False) for name in ("rfft2", "rfftn")},
    **dict.fromkeys(("fftshift", "ifftshift"), SHIFTS),
    **{name: [rough(5), rough(6, 0.5), alone(4, abs(S))] for name in ("fftfreq", "rfftfreq")},
}
