"""Functions that make arrays. Outside transforms what they return has `at` (see `fgrad.numpy.at`).

Shapes and limits are concrete; values to fill with, and the ends of `linspace`, may be traced.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fgrad.core import Tracer, type_of
from fgrad.numpy.arguments import as_array, as_shape, cast, counterpart, operand, promotes_as, stands_for
from fgrad.numpy.indexing import unknown_values
from fgrad.numpy.updating import AtArray, created
from fgrad.ops import elementwise as e
from fgrad.ops import shape as s

__all__ = """
    arange array asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray astype bartlett blackman
    copy diag_indices diag_indices_from empty empty_like eye from_dlpack frombuffer fromfile fromfunction
    fromiter fromstring full full_like geomspace hamming hanning identity indices kaiser linspace logspace
    mask_indices meshgrid ones ones_like tri tril_indices tril_indices_from triu_indices triu_indices_from
    vander zeros zeros_like
""".split()

# ------------------------------------------------------------------------------------------- of a given shape


def _hinted(function: str, shape: Any, dtype: Any, error: TypeError) -> TypeError:
    """Return the error for a shape or dtype that NumPy refused, with a hint at `zeros((2, 3))` for `zeros(2, 3)`."""
    if isinstance(dtype, (int, np.integer)) and not isinstance(dtype, bool):
        return TypeError(
            f"{function}: cannot read {dtype!r} as a dtype. Did you mean {function}(({shape!r}, {dtype!r}))? The shape "
            "is one argument, a tuple of ints."
        )
    as_shape(shape, function)
    return TypeError(f"{function}: {error}")


def zeros(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
    """Return an array of zeros.

    Args:
        shape: an int or a sequence of ints.
        dtype: float64 if None.
        order: "C" or "F", the layout in memory.
        device: "cpu" or None.
        like: a foreign array that says by which library to make it.

    Raises:
        TypeError: the shape is no int or sequence of ints, such as in `zeros(2, 3)`.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.zeros((2, 2)).at[0].set(1.0)
        array([[1., 1.],
               [0., 0.]])
    """
    try:
        return np.zeros(shape, dtype, order, device=device, like=like).view(AtArray)
    except TypeError as error:
        raise _hinted("zeros", shape, dtype, error) from None


def ones(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
    """Return an array of ones; takes the arguments of `zeros`."""
    try:
        return np.ones(shape, dtype, order, device=device, like=like).view(AtArray)
    except TypeError as error:
        raise _hinted("ones", shape, dtype, error) from None


def empty(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
    """Return an array of whatever was in memory; takes the arguments of `zeros`."""
    try:
        return np.empty(shape, dtype, order, device=device, like=like).view(AtArray)
    except TypeError as error:
        raise _hinted("empty", shape, dtype, error) from None


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> Any:
    """Return an array filled with a value, which may be traced; its dtype is that of the value unless one is given."""
    _on_cpu("full", device)
    shape = as_shape(shape, "full")
    if not _traced(fill_value):
        return created(np.full(shape, fill_value, dtype, order, like=like))
    fill_value = as_array(fill_value)
    return s.broadcast(fill_value if dtype is None else cast(fill_value, dtype), shape=shape)


def _traced(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(_traced(item) for item in x)
    return isinstance(x, Tracer)


def _on_cpu(function: str, device: Any) -> None:
    """Raise ValueError for a device other than the one there is."""
    if device not in (None, "cpu"):
        raise ValueError(f"{function}: device must be 'cpu' or None, got {device!r}")


def _like(function: str, a: Any, dtype: Any, shape: Any, device: Any) -> tuple[Any, Any]:
    """Return the shape and dtype of an array, unless others are given."""
    _on_cpu(function, device)
    kind = type_of(operand(a))
    return (kind.shape if shape is None else as_shape(shape, "shape")), (kind.dtype if dtype is None else dtype)


@stands_for(np.zeros_like)
def zeros_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    """Return zeros of the shape and dtype of an array, unless others are given."""
    return created(np.zeros(*_like("zeros_like", a, dtype, shape, device)))


@stands_for(np.ones_like)
def ones_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    """Return ones of the shape and dtype of an array, unless others are given."""
    return created(np.ones(*_like("ones_like", a, dtype, shape, device)))


@stands_for(np.empty_like)
def empty_like(
    prototype: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    """Return an array of the shape and dtype of another, of whatever was in memory."""
    return created(np.empty(*_like("empty_like", prototype, dtype, shape, device)))


@stands_for(np.full_like)
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """Return an array of the shape and dtype of another, filled with a value, which may be traced."""
    shape, dtype = _like("full_like", a, dtype, shape, device)
    return full(shape, fill_value, dtype)


# ------------------------------------------------------------------------------------------------ from values


def array(
    object: Any, dtype: Any = None, *, copy: bool | None = True, order: str = "K", ndmin: int = 0, like: Any = None
) -> Any:
    """Return an array made of numbers, nested lists of them, or arrays; traced values may stand anywhere in it.

    Args:
        object: what to make it of.
        dtype: dtype of the result; that of the values if None.
        copy: True for fresh memory, None only if needed, False never (ValueError if needed).
        order, like: as NumPy takes them.
        ndmin: the least number of axes, put in front.

    Raises:
        TypeError: it is made of something else than numbers.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.array([[1, 2], [3, 4.5]])
        array([[1. , 2. ],
               [3. , 4.5]])
    """
    if not _traced(object):
        out = np.array(object, dtype, copy=copy, order=order, ndmin=ndmin, like=like)
        if out.dtype.kind not in "biufcV":
            raise TypeError(f"array: expected numbers, got {object!r}, which NumPy makes an array of {out.dtype} of")
        return out.view(AtArray)
    x = as_array(object)
    x = x if dtype is None else cast(x, dtype)
    return x if x.ndim >= ndmin else s.reshape(x, shape=(1,) * (ndmin - x.ndim) + x.shape)


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    device: Any = None,
    copy: bool | None = None,
    like: Any = None,
) -> Any:
    """Return an array, without a copy if it is one of that dtype; takes what `array` takes."""
    _on_cpu("asarray", device)
    return array(a, dtype, copy=copy, order=order or "K", like=like)


asanyarray = asarray


def asarray_chkfinite(a: Any, dtype: Any = None, order: str | None = None) -> Any:
    """Return an array; ValueError if it holds inf or NaN."""
    return created(np.asarray_chkfinite(known_or_refuse("asarray_chkfinite", "a", a), dtype, order))


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """Return an array of at least one axis, laid out in C order."""
    return array(a, dtype, copy=None, order="C", ndmin=1, like=like)


def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """Return an array of at least one axis, laid out in Fortran order (traced values have no layout)."""
    return array(a, dtype, copy=None, order="F", ndmin=1, like=like)


def known_or_refuse(function: str, name: str, x: Any) -> Any:
    """Return an argument that has to be known; an error says so if it is traced."""
    if _traced(x):
        raise unknown_values(function, name, x if isinstance(x, Tracer) else as_array(x))
    return x


@stands_for(np.copy)
def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """Return an array in memory of its own."""
    return s.copy(as_array(a)) if _traced(a) else created(np.array(a, order=order))


@stands_for(np.astype)
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """Return an array in another dtype; a complex one loses its imaginary part on the way to reals.

    With `copy=False` the array itself is returned if it has the dtype.
    """
    _on_cpu("astype", device)
    return cast(as_array(x), dtype, fresh=copy)


# ------------------------------------------------------------------------------------------- ranges and grids


def _made_by(original: Callable[..., Any], doc: str) -> Any:
    """Return the function that makes arrays as a NumPy function of known arguments does."""

    def function(*args: Any, **kwargs: Any) -> Any:
        for k, arg in enumerate(args):
            known_or_refuse(original.__name__, f"argument {k}", arg)
        for name, arg in kwargs.items():
            known_or_refuse(original.__name__, name, arg)
        out = original(*args, **kwargs)
        return tuple([created(x) for x in out]) if isinstance(out, tuple) else created(out)

    function.__name__ = function.__qualname__ = original.__name__
    inner = inspect.unwrap(original)
    if inspect.isfunction(inner) or inner.__text_signature__:  # older NumPy's functions in C have no signature to show
        function.__wrapped__ = original  # type: ignore[attr-defined]
    function.__doc__ = (
        doc + f"\n\n    Takes the arguments of NumPy's `{original.__name__}`; they must be known, not traced."
    )
    return function


arange = _made_by(np.arange, "Return evenly spaced numbers from start up to, not including, stop.")
eye = _made_by(np.eye, "Return a matrix with ones on a diagonal and zeros elsewhere.")
identity = _made_by(np.identity, "Return the square identity matrix.")
tri = _made_by(np.tri, "Return a matrix with ones on and below a diagonal.")
indices = _made_by(np.indices, "Return the indices of a grid, one array per axis.")
tril_indices = _made_by(np.tril_indices, "Return the indices of the lower triangle of a matrix.")
triu_indices = _made_by(np.triu_indices, "Return the indices of the upper triangle of a matrix.")
diag_indices = _made_by(np.diag_indices, "Return the indices of the main diagonal.")
mask_indices = _made_by(np.mask_indices, "Return the indices at which a masking function leaves elements.")
frombuffer = _made_by(np.frombuffer, "Return a buffer read as an array.")
fromfile = _made_by(np.fromfile, "Return the contents of a file as an array.")
fromiter = _made_by(np.fromiter, "Return an array of the items of an iterable.")
fromstring = _made_by(np.fromstring, "Return an array of the numbers in a text.")
from_dlpack = _made_by(np.from_dlpack, "Return an array over the memory of another library's array.")
bartlett = _made_by(np.bartlett, "Return the Bartlett window.")
blackman = _made_by(np.blackman, "Return the Blackman window.")
hamming = _made_by(np.hamming, "Return the Hamming window.")
hanning = _made_by(np.hanning, "Return the Hanning window.")
kaiser = _made_by(np.kaiser, "Return the Kaiser window.")


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """Return an array whose elements are a function of their indices, called once with an array for each axis."""
    return function(*np.indices(as_shape(shape, "fromfunction"), dtype=dtype), **kwargs)


@stands_for(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Return evenly spaced numbers from start to stop.

    Args:
        start, stop: numbers or arrays, which may be traced.
        num: how many numbers.
        endpoint: whether stop is the last of them.
        retstep: return the step too.
        dtype: dtype of the result; floating if None.
        axis: where the new axis goes if start and stop are arrays.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.linspace(0.0, 1.0, 5)
        array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    _on_cpu("linspace", device)
    num = operator.index(num)
    if not _traced(start) and not _traced(stop):
        out = np.linspace(start, stop, num, endpoint, retstep, dtype, axis)
        return (created(out[0]), out[1]) if retstep else created(out)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    ends = operand(start), operand(stop)
    inner = np.result_type(*[promotes_as(x) for x in ends], 1.0)
    first, last = [cast(as_array(x), inner) for x in ends]
    parts = num - 1 if endpoint else num
    span = e.sub(last, first)
    step = e.div(span, parts) if parts else e.mul(span, np.nan)
    number = np.arange(num).reshape((num, *(1,) * span.ndim)).astype(inner)
    out = e.add(e.mul(number, step), first) if parts else e.add(number, first)
    if endpoint and num > 1:
        out = e.select(number == parts, last, out)
    out = out if dtype is None else cast(out, dtype)
    out = np.moveaxis(out, 0, axis)
    return (out, step) if retstep else out


@stands_for(np.logspace)
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """Return numbers base**t for t evenly spaced from start to stop; takes the arguments of `linspace`."""
    if not (_traced(start) or _traced(stop) or _traced(base)):
        return created(np.logspace(start, stop, num, endpoint, base, dtype, axis))
    out = e.pow(operand(base), linspace(start, stop, num, endpoint, axis=axis))
    return out if dtype is None else cast(out, dtype)


@stands_for(np.geomspace)
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Return numbers in geometric progression from start to stop, which have one sign; see `linspace`."""
    if not (_traced(start) or _traced(stop)):
        return created(np.geomspace(start, stop, num, endpoint, dtype, axis))
    first, last = as_array(start), as_array(stop)
    ratio = e.log(e.div(last, first))
    out = e.mul(first, e.exp(linspace(np.zeros(()), ratio, num, endpoint, axis=axis)))
    return out if dtype is None else cast(out, dtype)


@counterpart(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Return the coordinate arrays of a grid, a tuple with one for each vector.

    Args:
        *xi: vectors of coordinates, which may be traced.
        copy: nothing depends on it here.
        sparse: leave axes along which nothing changes at length 1.
        indexing: "xy" (the first vector runs along axis 1) or "ij".
    """
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    xs = [as_array(x) for x in xi]
    order = [1, 0, *range(2, len(xs))] if indexing == "xy" and len(xs) > 1 else list(range(len(xs)))
    shape = [0] * len(xs)
    for k, x in enumerate(xs):
        shape[order[k]] = x.size
    columns = [
        s.reshape(x, shape=tuple([x.size if i == order[k] else 1 for i in range(len(xs))])) for k, x in enumerate(xs)
    ]
    return tuple(columns if sparse else [s.broadcast(x, shape=tuple(shape)) for x in columns])


@counterpart(np.vander)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Return the matrix of powers of a vector, one row for each element; powers fall unless `increasing`."""
    x = as_array(x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    powers = np.arange(x.size if N is None else N)
    return e.pow(s.reshape(x, shape=(x.size, 1)), powers if increasing else powers[::-1])


@counterpart(np.tril_indices_from)
def tril_indices_from(arr: Any, k: int = 0) -> Any:
    """Return the indices of the lower triangle of a matrix."""
    return np.tril_indices(arr.shape[-2], k, arr.shape[-1])


@counterpart(np.triu_indices_from)
def triu_indices_from(arr: Any, k: int = 0) -> Any:
    """Return the indices of the upper triangle of a matrix."""
    return np.triu_indices(arr.shape[-2], k, arr.shape[-1])


@counterpart(np.diag_indices_from)
def diag_indices_from(arr: Any) -> Any:
    """Return the indices of the main diagonal of a square array."""
    return np.diag_indices_from(np.broadcast_to(0, arr.shape))
