"""Products of matrices and linear algebra."""

from __future__ import annotations

import types
from collections import namedtuple

import numpy as np

from fgrad.extend import TABLE as P
from fgrad.extend import Tracer, state

from ..tape import apply
from ..tensor import Tensor
from .reduce import result_type, vector_norm
from .table import FUNCTIONS, composed, define
from .table import to as cast_to

# ------------------------------------------------------------------------------------------------- products

_DOT = P["dot_general"]
_MATRICES = {"contract": ((1,), (0,)), "batch": ((), ())}
_VECTORS = {"contract": ((0,), (0,)), "batch": ((), ())}
_MATRIX_VECTOR = {"contract": ((1,), (0,)), "batch": ((), ())}
_BATCHES = {"contract": ((2,), (1,)), "batch": ((0,), (0,))}


def _dims(x):
    return "x".join(map(str, x._data.shape))


def same_dtype(x, y):
    """Raise torch's error unless two factors have one dtype."""
    a, b = x._data.dtype, y._data.dtype
    if a is not b and a != b:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {_cpp(a)} != {_cpp(b)}")


def _cpp(d):
    return {"float32": "float", "float64": "double", "int64": "long long", "int32": "int"}.get(d.name, d.name)


def contracted(x, y, dims):
    """Return the product of two factors over some of their dimensions, in their dtype."""
    out = apply(_DOT, (x, y), dims, state.interpreter)
    return out if out._data.dtype == x._data.dtype else cast_to(out, x._data.dtype)


def mm(input, mat2):
    if input._data.ndim != 2 or mat2._data.ndim != 2:
        raise RuntimeError("self must be a matrix" if input._data.ndim != 2 else "mat2 must be a matrix")
    same_dtype(input, mat2)
    if input._data.shape[1] != mat2._data.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({_dims(input)} and {_dims(mat2)})")
    return contracted(input, mat2, _MATRICES)


def mv(input, vec):
    if input._data.ndim != 2 or vec._data.ndim != 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got {vec._data.ndim}, {input._data.ndim}, {vec._data.ndim}"
        )
    if input._data.shape[1] != vec._data.shape[0]:
        raise RuntimeError(
            f"size mismatch, got input ({input._data.shape[0]}), mat ({_dims(input)}), vec ({_dims(vec)})"
        )
    return contracted(input, vec, _MATRIX_VECTOR)


def dot(input, tensor):
    if input._data.ndim != 1 or tensor._data.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {input._data.ndim}D and {tensor._data.ndim}D tensors")
    if input._data.shape != tensor._data.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {list(input._data.shape)} and src {list(tensor._data.shape)} "
            f"to have the same number of elements, but got {input._data.size} and {tensor._data.size} elements "
            "respectively"
        )
    return contracted(input, tensor, _VECTORS)


def bmm(input, mat2):
    if input._data.ndim != 3 or mat2._data.ndim != 3:
        raise RuntimeError("batch1 must be a 3D tensor" if input._data.ndim != 3 else "batch2 must be a 3D tensor")
    a, b = input._data.shape, mat2._data.shape
    if a[0] != b[0] or a[2] != b[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a[0]}, {a[2]}] but got: [{b[0]}, "
            f"{b[1]}]."
        )
    return contracted(input, mat2, _BATCHES)


_general = composed(lambda input, other: np.matmul(input, other), "MatmulBackward0")


def matmul(input, other):
    if not isinstance(other, Tensor) or not isinstance(input, Tensor):
        return NotImplemented
    m, n = input._data.ndim, other._data.ndim
    if m == 2 and n == 2:
        return mm(input, other)
    if m == 0 or n == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {m}D and {n}D")
    same_dtype(input, other)
    if m == 1 and n == 1:
        return dot(input, other)
    if m == 2 and n == 1:
        return mv(input, other)
    if m == 3 and n == 3 and input._data.shape[0] == other._data.shape[0]:
        return bmm(input, other)
    a, b = input._data.shape, other._data.shape
    if a[-1] != b[-2 if n > 1 else 0]:
        rows = int(np.prod(a[:-1]))
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a[-1]} and {b[-2 if n > 1 else 0]}x{b[-1]})"
        )
    return _general(input, other)


for fun in (mm, mv, dot, bmm, matmul):
    define(fun.__name__, fun)
Tensor.__matmul__ = matmul
Tensor.__rmatmul__ = lambda self, other: matmul(other, self)


def combined(product):
    """Return addmm and its kin: beta * input + alpha * product(a, b)."""

    def fun(input, a, b, *, beta=1, alpha=1):
        made = product(a, b)
        made = made if alpha == 1 else made * alpha
        return made + (input if beta == 1 else input * beta)

    return fun


def outer(input, vec2):
    if input._data.ndim != 1 or vec2._data.ndim != 1:
        raise RuntimeError(f"outer: Expected 1-D argument self, but got {input._data.ndim}-D")
    return FUNCTIONS["mul"](input.unsqueeze(1), vec2)


define("outer", outer, aliases=("ger",))
for name, product in {
    "addmm": mm,
    "addmv": mv,
    "addr": outer,
    "baddbmm": bmm,
    "addbmm": lambda a, b: FUNCTIONS["sum"](bmm(a, b), 0),
}.items():
    define(name, combined(product), inplace=True)


def einsum(equation, *operands):
    operands = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    return _einsum(equation, *operands)


_einsum = composed(lambda equation, *operands: np.einsum(equation, *operands), "EinsumBackward0")
define("einsum", einsum, method=False)
define("tensordot", composed(lambda a, b, dims=2: np.tensordot(a, b, dims), "TensordotBackward0"), method=False)
define("kron", composed(lambda input, other: np.kron(input, other), "KronBackward0"))
define("inner", composed(lambda input, other: np.inner(input, other), "InnerBackward0"))
define("vdot", composed(lambda input, other: np.vdot(input, other), "VdotBackward0"))


def cross(input, other, dim=None):
    if dim is None:
        dim = next((i for i, n in enumerate(input.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return np.cross(input, other, axis=dim)


define("cross", composed(cross))


def matrix_power(input, n):
    if n < 0:
        return matrix_power(np.linalg.inv(input), -n)
    out, square = None, input
    while n:
        if n & 1:
            out = square if out is None else np.matmul(out, square)
        n >>= 1
        square = np.matmul(square, square) if n else square
    return np.broadcast_to(np.eye(input.shape[-1], dtype=input.dtype), input.shape) + 0 * input if out is None else out


define("matrix_power", composed(matrix_power))


def chain_matmul(*matrices):
    return _multi_dot(list(matrices))


def _multi_dot(tensors):
    out = tensors[0]
    for x in tensors[1:]:
        out = matmul(out, x)
    return out


define("chain_matmul", chain_matmul, method=False)


def cdist(x1, x2, p=2.0, compute_mode=None):
    return vector_norm(np.expand_dims(x1, -2) - np.expand_dims(x2, -3), p, -1)


def pdist(input, p=2.0):
    i, j = np.triu_indices(input.shape[0], 1)
    return vector_norm(np.take(input, i, 0) - np.take(input, j, 0), p, -1)


define("cdist", composed(cdist), method=False)
define("pdist", composed(pdist), method=False)

# ---------------------------------------------------------------------------------------------- decompositions, solving

_slogdet = namedtuple("slogdet", ("sign", "logabsdet"))
_qr, _svd, _eigh = (
    result_type("qr", "Q", "R"),
    result_type("svd", "U", "S", "V"),
    result_type("symeig", "eigenvalues", "eigenvectors"),
)


def det(input):
    return np.linalg.det(input)


def slogdet(input):
    return _slogdet(*np.linalg.slogdet(input))


def logdet(input):
    sign, value = np.linalg.slogdet(input)
    return np.where(sign < 0, np.nan, value)


def inverse(input):
    return np.linalg.inv(input)


def cholesky(input, upper=False):
    factor = np.linalg.cholesky(input)
    return adjoint(factor) if upper else factor


def adjoint(x):
    """Return the conjugate transpose of the last two axes."""
    swapped = np.swapaxes(x, -1, -2)
    return swapped.conj() if x.dtype.kind == "c" else swapped


def cholesky_solve(input, input2, upper=False):
    gram = np.matmul(adjoint(input2), input2) if upper else np.matmul(input2, adjoint(input2))
    return np.linalg.solve(gram, input)


def cholesky_inverse(input, upper=False):
    gram = np.matmul(adjoint(input), input) if upper else np.matmul(input, adjoint(input))
    return np.linalg.inv(gram)


def qr(input, some=True):
    return _factors(input, "reduced" if some else "complete")


def _factors(A, mode="reduced"):
    if mode == "complete" and A.shape[-2] > A.shape[-1] and isinstance(A, Tracer) and A.concrete() is not None:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    return _qr(*np.linalg.qr(A, mode))


def svd(input, some=True, compute_uv=True):
    u, s, vh = np.linalg.svd(input, full_matrices=not some)
    return _svd(u, s, adjoint(vh))


def pinverse(input, rcond=1e-15):
    return np.linalg.pinv(input, rcond)


_triangular = result_type("triangular_solve", "solution", "cloned_coefficient")


def triangular_solve(b, A, upper=True, transpose=False, unitriangular=False):
    a = np.where(
        np.tri(A.shape[-1], dtype=bool).T if upper else np.tri(A.shape[-1], dtype=bool), A, np.zeros((), A.dtype)
    )
    if unitriangular:
        eye = np.eye(A.shape[-1], dtype=A.dtype)
        a = np.where(eye != 0, eye, a)
    return _triangular(np.linalg.solve(np.swapaxes(a, -1, -2) if transpose else a, b), A + 0)


def solve(A, B, *, left=True):
    vector = B.ndim == 1 or B.ndim == A.ndim - 1 and B.shape == A.shape[:-1]
    out = np.linalg.solve(A, np.expand_dims(B, -1) if vector else B)
    return out.reshape(B.shape) if vector else out


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    if ord == "fro":
        return vector_norm(A, 2, dim, keepdim)
    return np.linalg.norm(A, ord, dim, keepdim)


def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    if ord is None:
        return vector_norm(A, 2, dim, keepdim)
    whole = dim is None and A.ndim == 2 or isinstance(dim, (tuple, list)) and len(dim) == 2
    return matrix_norm(A, ord, dim or (-2, -1), keepdim) if whole else vector_norm(A, ord, dim, keepdim)


for fun in (
    det, slogdet, logdet, inverse, cholesky, cholesky_solve, cholesky_inverse, qr, svd, pinverse, triangular_solve,
):  # fmt: skip
    define(fun.__name__, composed(fun))

LINALG = types.SimpleNamespace(
    vector_norm=composed(vector_norm, "LinalgVectorNormBackward0"),
    matrix_norm=composed(matrix_norm),
    norm=composed(norm),
    solve=composed(solve, "LinalgSolveExBackward0"),
    det=composed(det, "LinalgDetBackward0"),
    slogdet=composed(slogdet, "LinalgSlogdetBackward0"),
    inv=composed(inverse, "LinalgInvExBackward0"),
    cholesky=composed(lambda A, *, upper=False: cholesky(A, upper), "LinalgCholeskyExBackward0"),
    qr=composed(_factors, "LinalgQrBackward0"),
    svd=composed(
        lambda A, full_matrices=True: result_type("linalg_svd", "U", "S", "Vh")(*np.linalg.svd(A, full_matrices)),
        "LinalgSvdBackward0",
    ),
    svdvals=composed(lambda A: np.linalg.svd(A, full_matrices=False)[1], "LinalgSvdBackward0"),
    eigh=composed(
        lambda A, UPLO="L": result_type("linalg_eigh", "eigenvalues", "eigenvectors")(*np.linalg.eigh(A)),
        "LinalgEighBackward0",
    ),
    eigvalsh=composed(lambda A, UPLO="L": np.linalg.eigh(A)[0], "LinalgEighBackward0"),
    pinv=composed(lambda A: np.linalg.pinv(A), "LinalgPinvBackward0"),
    matrix_power=composed(matrix_power),
    multi_dot=_multi_dot,
    matmul=matmul,
    cross=composed(lambda input, other, *, dim=-1: np.cross(input, other, axis=dim), "LinalgCrossBackward0"),
)
