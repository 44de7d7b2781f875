"""The array API standard, 2024.12: signatures of its functions, as written out from its public specification.

A line is a signature, or names that share one. `/` and `*` are the standard's: what stands before `/` is passed by
position, what stands after `*` by keyword.
"""

MAIN = """
    acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan
        log log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh square
        sqrt tan tanh trunc abs (x, /)
    add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal
        floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor
        maximum minimum multiply nextafter not_equal pow remainder subtract (x1, x2, /)
    clip (x, /, min=None, max=None)
    arange (start, /, stop=None, step=1, *, dtype=None, device=None)
    asarray (obj, /, *, dtype=None, device=None, copy=None)
    empty ones zeros (shape, *, dtype=None, device=None)
    empty_like ones_like zeros_like (x, /, *, dtype=None, device=None)
    eye (n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
    from_dlpack (x, /, *, device=None, copy=None)
    full (shape, fill_value, *, dtype=None, device=None)
    full_like (x, /, fill_value, *, dtype=None, device=None)
    linspace (start, stop, /, num, *, dtype=None, device=None, endpoint=True)
    meshgrid (*arrays, indexing='xy')
    tril triu (x, /, *, k=0)
    astype (x, dtype, /, *, copy=True, device=None)
    broadcast_arrays (*arrays)
    broadcast_to (x, /, shape)
    can_cast (from_, to, /)
    finfo iinfo (type, /)
    isdtype (dtype, kind)
    result_type (*arrays_and_dtypes)
    take (x, indices, /, *, axis=None)
    take_along_axis (x, indices, /, *, axis=-1)
    matmul (x1, x2, /)
    matrix_transpose (x, /)
    tensordot (x1, x2, /, *, axes=2)
    vecdot (x1, x2, /, *, axis=-1)
    concat (arrays, /, *, axis=0)
    expand_dims (x, /, *, axis=0)
    flip (x, /, *, axis=None)
    moveaxis (x, source, destination, /)
    permute_dims (x, /, axes)
    repeat (x, repeats, /, *, axis=None)
    reshape (x, /, shape, *, copy=None)
    roll (x, /, shift, *, axis=None)
    squeeze (x, /, axis)
    stack (arrays, /, *, axis=0)
    tile (x, repetitions, /)
    unstack (x, /, *, axis=0)
    argmax argmin (x, /, *, axis=None, keepdims=False)
    count_nonzero (x, /, *, axis=None, keepdims=False)
    nonzero (x, /)
    searchsorted (x1, x2, /, *, side='left', sorter=None)
    where (condition, x1, x2, /)
    unique_all unique_counts unique_inverse unique_values (x, /)
    argsort sort (x, /, *, axis=-1, descending=False, stable=True)
    cumulative_sum cumulative_prod (x, /, *, axis=None, dtype=None, include_initial=False)
    max min (x, /, *, axis=None, keepdims=False)
    mean (x, /, *, axis=None, keepdims=False)
    prod sum (x, /, *, axis=None, dtype=None, keepdims=False)
    std var (x, /, *, axis=None, correction=0.0, keepdims=False)
    all any (x, /, *, axis=None, keepdims=False)
    diff (x, /, *, axis=-1, n=1, prepend=None, append=None)
"""
LINALG = """
    cholesky (x, /, *, upper=False)
    cross (x1, x2, /, *, axis=-1)
    det eigh eigvalsh inv slogdet matrix_transpose svdvals (x, /)
    diagonal (x, /, *, offset=0)
    matmul outer solve (x1, x2, /)
    matrix_norm (x, /, *, keepdims=False, ord='fro')
    matrix_power (x, n, /)
    matrix_rank (x, /, *, rtol=None)
    pinv (x, /, *, rtol=None)
    qr (x, /, *, mode='reduced')
    svd (x, /, *, full_matrices=True)
    tensordot (x1, x2, /, *, axes=2)
    trace (x, /, *, offset=0, dtype=None)
    vecdot (x1, x2, /, *, axis=-1)
    vector_norm (x, /, *, axis=None, keepdims=False, ord=2)
"""
FFT = """
    fft ifft rfft irfft hfft ihfft (x, /, *, n=None, axis=-1, norm='backward')
    fftn ifftn rfftn irfftn (x, /, *, s=None, axes=None, norm='backward')
    fftfreq rfftfreq (n, /, *, d=1.0, dtype=None, device=None)
    fftshift ifftshift (x, /, *, axes=None)
"""
CONSTANTS = "e inf nan newaxis pi"
DTYPES = """
    bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128
"""
ATTRIBUTES = "dtype device mT ndim shape size T"
METHODS = """
    __abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__ __eq__ __float__
    __floordiv__ __ge__ __getitem__ __gt__ __index__ __int__ __invert__ __le__ __lshift__ __lt__ __matmul__ __mod__
    __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __rshift__ __setitem__ __sub__ __truediv__ __xor__ to_device
    __radd__ __rsub__ __rmul__ __rtruediv__ __rfloordiv__ __rpow__ __rmod__ __rmatmul__ __rand__ __ror__ __rxor__
    __rlshift__ __rrshift__
"""
INFO = "capabilities default_device default_dtypes devices dtypes"


def signatures(text):
    """Return the table of names and their signatures, as texts."""
    found, names = {}, []
    for line in text.strip().splitlines():
        head, bracket, rest = line.partition("(")
        names += head.split()
        if bracket:
            found |= dict.fromkeys(names, bracket + rest)
            names = []
    return found
