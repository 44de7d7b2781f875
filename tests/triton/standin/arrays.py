"""Arrays that claim to lie on a GPU: their memory is the host's, and they take and refuse what CuPy's arrays do."""

import operator
from types import SimpleNamespace

import numpy as np

REFUSED_UFUNCS = frozenset({"spacing", "isnat", "matvec", "vecmat", "vecdot", "bitwise_count"})
REFUSED_FUNCTIONS = frozenset(
    "apply_over_axes array_repr array_str eig eigvals cond insert ix_ matrix_norm nancumprod nancumsum poly "
    "save savetxt trapz unwrap vector_norm svdvals diagonal_ trace_".split()
)
"""NumPy's functions that CuPy has not, as far as anything here may call them."""

METHODS = frozenset(
    "all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy cumprod cumsum "
    "diagonal dot fill flatten item max mean min nonzero partition prod put ravel repeat reshape round searchsorted "
    "sort squeeze std sum swapaxes take tobytes tolist trace transpose var view".split()
)
"""The methods of CuPy's arrays, as far as anything here may call them."""

ATTRIBUTES = frozenset({"shape", "ndim", "size", "itemsize", "nbytes", "strides", "T", "real", "imag"})


def _operators(cls):
    """Give a class Python's operators, which leave to what has a higher priority as CuPy's do."""
    for name in "add sub mul truediv floordiv mod pow matmul lshift rshift and or xor".split():
        own = getattr(operator, f"__{name}__")
        setattr(cls, f"__{name}__", _binary(own, f"__r{name}__"))
        setattr(cls, f"__r{name}__", _binary(lambda x, y, own=own: own(y, x), f"__{name}__"))
        setattr(cls, f"__i{name}__", _in_place(getattr(operator, f"__i{name}__")))
    for name, other in {"lt": "gt", "le": "ge", "eq": "eq", "ne": "ne", "gt": "lt", "ge": "le"}.items():
        setattr(cls, f"__{name}__", _binary(getattr(operator, f"__{name}__"), f"__{other}__"))
    for name in ("neg", "pos", "abs", "invert"):
        setattr(cls, f"__{name}__", _unary(getattr(operator, f"__{name}__")))
    return cls


def _unary(own):
    return lambda x: x._there(own(x.host), x)


def _binary(own, reflected):
    def method(x, y):
        if getattr(y, "__array_priority__", 0) > x.__array_priority__:
            return getattr(y, reflected)(x)
        _check_one_device([x, y])
        return x._there(own(x.host, _taken(y)), x)

    return method


def _in_place(own):
    def method(x, y):
        own(x.host, _taken(y))
        return x

    return method


@_operators
class DeviceArray:
    """An array on a device that does not exist: NumPy does for it what CuPy would.

    Like a CuPy array it mixes with numbers alone, never with NumPy's arrays, and becomes one only when asked to.
    """

    __hash__ = None
    __array_priority__ = 100

    def __init__(self, host, number=0, base=None, owner=None):
        self.host = host
        self.number = number
        self.dtype = host.dtype
        self.pointer = host.ctypes.data
        self.base = base
        self.owner = owner if owner is not None else host if base is None else base.owner

    def __getattr__(self, name):
        if name in METHODS:
            return self._call(getattr(self.host, name), self)
        if name in ATTRIBUTES:
            return self._there(getattr(self.host, name), self)
        raise AttributeError(f"'ndarray' object has no attribute '{name}'")

    def __getitem__(self, index):
        return self._there(self.host[_taken(index)], self)

    def __setitem__(self, index, value):
        self.host[_taken(index)] = _taken(value)

    def __len__(self):
        return len(self.host)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __bool__(self):
        return bool(self.host)

    def __int__(self):
        return int(self.host)

    def __float__(self):
        return float(self.host)

    def __complex__(self):
        return complex(self.host)

    def __index__(self):
        return self.host.__index__()

    def __repr__(self):
        return f"DeviceArray({self.host!r}, {self.number})"

    def __array__(self, *args, **kwargs):
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array "
            "explicitly."
        )

    def __array_ufunc__(self, ufunc, method, *args, out=None, **kwargs):
        own = getattr(np, ufunc.__name__, None) is ufunc and ufunc.__name__ not in REFUSED_UFUNCS
        if method != "__call__" or not own:
            return NotImplemented
        if "where" in kwargs:
            raise TypeError("Wrong arguments {'where'}")
        _check_one_device(args)
        args = _taken(args)
        if out is None:
            return self._there(ufunc(*args, **kwargs), self)
        ufunc(*args, out=_taken(out), **kwargs)
        return out[0] if len(out) == 1 else out

    def __array_function__(self, function, types, args, kwargs):
        if function.__name__ in REFUSED_FUNCTIONS:
            return NotImplemented
        _check_one_device(_arrays_in((args, kwargs)))
        if function is np.broadcast_to:  # CuPy's result may be written to
            host = np.broadcast_to(self.host, args[1])
            return self._there(np.lib.stride_tricks.as_strided(self.host, host.shape, host.strides), self)
        return self._call(function, *_arrays_in((args, kwargs)))(*args, **kwargs)

    @property
    def device(self):
        return self.number

    @property
    def flags(self):
        flags = self.host.flags
        return SimpleNamespace(
            c_contiguous=flags.c_contiguous, f_contiguous=flags.f_contiguous, owndata=self.base is None
        )

    @property
    def __cuda_array_interface__(self):
        return self.host.__array_interface__

    def _call(self, function, *sources):
        return lambda *args, **kwargs: self._there(function(*_taken(args), **_taken(kwargs)), *sources)

    def _there(self, x, *sources):
        """Return what NumPy gave as arrays on the device; views know whose memory they look into."""
        if isinstance(x, (tuple, list)):
            made = [self._there(item, *sources) for item in x]
            return type(x)(*made) if hasattr(x, "_fields") else type(x)(made)
        if not isinstance(x, (np.ndarray, np.generic)):
            return x
        x = np.asarray(x)
        for source in sources:
            if x is source.host:
                return source
            if source.size and x.size and np.shares_memory(x, source.host):
                return DeviceArray(x, self.number, source if source.base is None else source.base)
        return DeviceArray(x, self.number)


def here(x):
    """Return nested arguments with arrays on the device as what they are."""
    if isinstance(x, (tuple, list)):
        return type(x)(map(here, x))
    if isinstance(x, dict):
        return {name: here(value) for name, value in x.items()}
    return getattr(x, "host", x)


def _taken(x):
    """Return what `here` does; TypeError, as CuPy's, if an array of NumPy's is among the arguments."""
    if isinstance(x, (tuple, list)):
        return type(x)(map(_taken, x))
    if isinstance(x, dict):
        return {name: _taken(value) for name, value in x.items()}
    if isinstance(x, np.ndarray):
        raise TypeError(f"Unsupported type {type(x)}")
    return here(x)


def _check_one_device(values):
    """Raise ValueError, as CuPy does where GPUs do not reach each other's memory, for arrays of several devices."""
    numbers = sorted({x.number for x in values if isinstance(x, DeviceArray)})
    if len(numbers) > 1:
        raise ValueError(
            f"Array device must be same as the current device: array device = {numbers[1]} while current = {numbers[0]}"
        )


def _arrays_in(x):
    """Return the arrays on the device among nested arguments."""
    if isinstance(x, (tuple, list)):
        return [a for item in x for a in _arrays_in(item)]
    if isinstance(x, dict):
        return _arrays_in(list(x.values()))
    return [x] if isinstance(x, DeviceArray) else []
