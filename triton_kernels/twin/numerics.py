"""What each TTIR operation means on NumPy arrays: the table the translated kernels call into.

Integers are held signed; an operation that is unsigned in the compiler reads them as unsigned here. 16-bit and 8-bit
floats are ml_dtypes (or float16) arrays, so every operation rounds to nearest even once, as the hardware does; dots
accumulate in float32. Knows no Triton.
"""

import functools
import math
import statistics

import numpy as np

_NUMPY_TYPES = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}
_ML_TYPES = {
    "bf16": "bfloat16",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
}


@functools.cache
def dtype_of(element):
    """Return the NumPy dtype that holds a TTIR element type such as "bf16".

    Raises:
        NotImplementedError: NumPy has no such type.
        ModuleNotFoundError: the type needs ml_dtypes, which is not installed.
    """
    if element in _NUMPY_TYPES:
        return np.dtype(_NUMPY_TYPES[element])
    if element in _ML_TYPES:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, _ML_TYPES[element]))
    raise NotImplementedError(f"the twin has no NumPy type for {element!r}")


def is_float(dtype):
    """Say whether a dtype is a floating type, ml_dtypes' included."""
    return dtype.kind == "f" or (dtype.kind == "V" and dtype.names is None) or dtype.name in _ML_TYPES.values()


def undefined(shape, dtype):
    """Return what stands for a value the hardware leaves undefined: NaN, or a pattern that is no plausible integer."""
    if is_float(dtype):
        return np.full(shape, np.nan, dtype)
    if dtype == np.bool_:
        return np.ones(shape, dtype)
    return np.frombuffer(b"\x5a" * dtype.itemsize, dtype).repeat(max(1, math.prod(shape))).reshape(shape)


def unsigned(x):
    """Return integers read as unsigned."""
    return x if x.dtype == np.bool_ else x.view(f"u{x.dtype.itemsize}")


def _integer(op):
    """Let a ufunc wrap around in one bit as the compiler's i1 does."""

    def wrapped(x, y):
        if x.dtype == np.bool_:
            return (op(x.astype(np.int8), y.astype(np.int8)) & 1).astype(np.bool_)
        return op(x, y)

    return wrapped


def _on_unsigned(op):
    return lambda x, y: op(unsigned(x), unsigned(y)).view(x.dtype)


def _compare_unsigned(op):
    return lambda x, y: op(unsigned(x), unsigned(y))


def _divide_to_zero(x, y):
    return (x - np.fmod(x, y)) // y


def _unordered(ordered_opposite):
    return lambda x, y: ~ordered_opposite(x, y)


def _multiply_high(x, y):
    """Return the upper half of the unsigned product (Hacker's Delight, 8-2, for 64 bits)."""
    if x.dtype.itemsize < 8:
        wide = unsigned(x).astype(np.uint64) * unsigned(y).astype(np.uint64)
        return (wide >> np.uint64(8 * x.dtype.itemsize)).astype(unsigned(x).dtype).view(x.dtype)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    x, y = x.view(np.uint64), y.view(np.uint64)
    cross = (x & low) * (y & low) >> half
    first = (x >> half) * (y & low) + cross
    second = (x & low) * (y >> half) + (first & low)
    return ((x >> half) * (y >> half) + (first >> half) + (second >> half)).view(np.int64)


def _fma(x, y, z):
    """Round once; only for float64 itself the product rounds too."""
    wide = x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64)
    return wide.astype(z.dtype)


def _erf(x):
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(np.asarray(x, np.float64)), np.float64).astype(x.dtype)


def extend_signed(x, dtype):
    """Widen integers by their sign; a set bit is -1, as in the compiler."""
    wide = x.astype(dtype)
    return -wide if x.dtype == np.bool_ else wide


def extend_unsigned(x, dtype):
    """Widen integers with zeros, or turn unsigned integers into floats."""
    return unsigned(x).astype(dtype)


def truncate_integer(x, dtype):
    """Keep the low bits."""
    return (x & 1).astype(np.bool_) if dtype == np.bool_ else x.astype(dtype)


def float_to_integer(x, dtype):
    """Truncate towards zero; saturate, and turn NaN into 0, as PTX `cvt` does."""
    info = np.iinfo(dtype)
    x = np.trunc(np.asarray(x, np.float64))
    inside = np.where((x >= float(info.min)) & (x < float(info.max)), x, 0.0).astype(dtype)
    return np.where(x >= float(info.max), info.max, np.where(x < float(info.min), info.min, inside)).astype(dtype)


def float_to_unsigned(x, dtype):
    """Truncate towards zero into the unsigned range; saturate, and turn NaN into 0."""
    return float_to_integer(x, np.dtype(f"u{dtype.itemsize}")).view(dtype)


def convert_float(x, dtype, rounding="rtne"):
    """Convert between floating types.

    8-bit results saturate at their largest finite value (PTX `cvt.satfinite`); `rounding` is "rtne" or "rtz".
    """
    if dtype.itemsize == 1:
        import ml_dtypes

        largest = float(ml_dtypes.finfo(dtype).max)
        x = np.clip(x.astype(np.float32), np.float32(-largest), np.float32(largest))
    result = x.astype(dtype)
    if rounding == "rtz" and dtype.itemsize < x.dtype.itemsize:
        bits = result.view(f"u{dtype.itemsize}")
        too_far = np.abs(result.astype(np.float64)) > np.abs(x.astype(np.float64))
        result = np.where(too_far, bits - bits.dtype.type(1), bits).view(dtype)
    return result


def clamp(x, low, high, propagate):
    """Clamp to [low, high]; NaN gives low unless propagate is "all"."""
    if propagate == "all":
        return np.minimum(np.maximum(x, low), high)
    return np.fmin(np.fmax(x, low), high)


def dot(x, y, accumulator, precision):
    """Return x @ y + accumulator, accumulated in the accumulator's type (float32 for narrower floats).

    precision "tf32" rounds float32 operands to TF32's ten fraction bits first, as the tensor core reads them.
    """
    wide = np.result_type(accumulator.dtype, np.float32) if is_float(accumulator.dtype) else accumulator.dtype
    if precision == "tf32" and x.dtype == np.float32:
        x, y = _to_tf32(x), _to_tf32(y)
    product = np.matmul(x.astype(wide), y.astype(wide))
    return (product + accumulator.astype(wide)).astype(accumulator.dtype)


def _to_tf32(x):
    bits = np.ascontiguousarray(x).view(np.uint32)
    rounded = (bits + np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1))) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(x), rounded.view(np.float32), x)


def reduce(values, axis, combine):
    """Combine along an axis as a balanced tree of neighbours, all lanes at once."""
    values = tuple(np.moveaxis(value, axis, 0) for value in values)
    while len(values[0]) > 1:
        even = len(values[0]) // 2 * 2
        paired = combine(*(v[0:even:2] for v in values), *(v[1:even:2] for v in values))
        paired = paired if isinstance(paired, tuple) else (paired,)
        values = tuple(np.concatenate([p, v[even:]]) if even < len(v) else p for p, v in zip(paired, values))
    return values[0][0] if len(values) == 1 else tuple(value[0] for value in values)


def scan(values, axis, reverse, combine):
    """Return inclusive prefixes along an axis, doubling the combined distance each step, all lanes at once."""
    values = tuple(np.moveaxis(value, axis, 0) for value in values)
    values = tuple(value[::-1] for value in values) if reverse else values
    distance = 1
    while distance < len(values[0]):
        tails = combine(*(v[:-distance] for v in values), *(v[distance:] for v in values))
        tails = tails if isinstance(tails, tuple) else (tails,)
        values = tuple(np.concatenate([v[:distance], tail]) for v, tail in zip(values, tails))
        distance *= 2
    values = tuple(value[::-1] for value in values) if reverse else values
    values = tuple(np.moveaxis(value, 0, axis) for value in values)
    return values[0] if len(values) == 1 else values


def histogram(x, bins, mask=None):
    """Count integers in [0, bins); others are dropped."""
    x = unsigned(x)
    counted = x < bins if mask is None else (x < bins) & mask
    return np.bincount(x[counted], minlength=bins).astype(np.int32)


def gather(x, indices, axis):
    """Take elements of x along an axis."""
    return np.take_along_axis(x, indices.astype(np.int64), axis)


def offset_pointers(pointers, offsets, itemsize):
    """Move pointers by offsets counted in elements."""
    return pointers + offsets.astype(np.int64) * itemsize


def counted(first, last, step):
    """Yield a loop's counter in the type of its bounds."""
    kind = np.asarray(first).dtype.type
    for value in range(int(first), int(last), int(step)):
        yield kind(value)


_RANGES = {"slt": np.less, "sle": np.less_equal, "sgt": np.greater, "sge": np.greater_equal}
_ORDERED = {"olt": np.less, "ole": np.less_equal, "ogt": np.greater, "oge": np.greater_equal, "oeq": np.equal}

OPERATIONS = {
    **{f"arith.cmpi {name}": op for name, op in _RANGES.items()},
    **{f"arith.cmpi u{name[1:]}": _compare_unsigned(op) for name, op in _RANGES.items()},
    "arith.cmpi eq": np.equal,
    "arith.cmpi ne": np.not_equal,
    **{f"arith.cmpf {name}": op for name, op in _ORDERED.items()},
    "arith.cmpf une": np.not_equal,
    "arith.cmpf one": lambda x, y: (x < y) | (x > y),
    "arith.cmpf ueq": lambda x, y: ~((x < y) | (x > y)),
    "arith.cmpf ult": _unordered(np.greater_equal),
    "arith.cmpf ule": _unordered(np.greater),
    "arith.cmpf ugt": _unordered(np.less_equal),
    "arith.cmpf uge": _unordered(np.less),
    "arith.cmpf ord": lambda x, y: (x == x) & (y == y),
    "arith.cmpf uno": lambda x, y: (x != x) | (y != y),
    "arith.addi": _integer(np.add),
    "arith.subi": _integer(np.subtract),
    "arith.muli": _integer(np.multiply),
    "arith.divsi": _divide_to_zero,
    "arith.divui": _on_unsigned(np.floor_divide),
    "arith.remsi": np.fmod,
    "arith.remui": _on_unsigned(np.remainder),
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
    "arith.shrui": _on_unsigned(np.right_shift),
    "arith.minsi": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.minui": _on_unsigned(np.minimum),
    "arith.maxui": _on_unsigned(np.maximum),
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.remf": np.fmod,
    "arith.negf": np.negative,
    "arith.minimumf": np.minimum,
    "arith.maximumf": np.maximum,
    "arith.minnumf": np.fmin,
    "arith.maxnumf": np.fmax,
    "arith.select": np.where,
    "math.absf": np.abs,
    "math.absi": np.abs,
    "math.ceil": np.ceil,
    "math.cos": np.cos,
    "math.erf": _erf,
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.floor": np.floor,
    "math.fma": _fma,
    "math.log": np.log,
    "math.log2": np.log2,
    "math.rsqrt": lambda x: (1 / np.sqrt(x)).astype(x.dtype),
    "math.sin": np.sin,
    "math.sqrt": np.sqrt,
    "tt.precise_sqrt": np.sqrt,
    "tt.precise_divf": np.divide,
    "tt.mulhiui": _multiply_high,
    "tt.join": lambda x, y: np.stack([x, y], axis=-1),
    "tt.split": lambda x: (x[..., 0], x[..., 1]),
    "tt.cat": lambda x, y: np.concatenate([x, y]),
    "tt.unsplat": lambda x: x.reshape(())[()],
    "tt.int_to_ptr": lambda x: x,
    "tt.ptr_to_int": lambda x: x,
}

CASTS = {
    "arith.extsi": extend_signed,
    "arith.extui": extend_unsigned,
    "arith.trunci": truncate_integer,
    "arith.sitofp": extend_signed,
    "arith.uitofp": extend_unsigned,
    "arith.fptosi": float_to_integer,
    "arith.fptoui": float_to_unsigned,
    "arith.extf": convert_float,
    "arith.truncf": convert_float,
    "arith.bitcast": lambda x, dtype: x.view(dtype),
    "tt.bitcast": lambda x, dtype: x.view(dtype),
    "tt.fp_to_fp": convert_float,
}


def _elementwise_float64(function):
    return lambda x: np.asarray(np.frompyfunc(function, 1, 1)(np.asarray(x, np.float64)), np.float64).astype(x.dtype)


def _gamma(function):
    def total(x):
        try:
            return function(x)
        except (ValueError, OverflowError):
            return math.inf

    return total


def _erfinv(x):
    """Return the inverse of erf: a quantile of the normal distribution, with one step of Newton's for small x."""
    if not abs(x) < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    guess = statistics.NormalDist().inv_cdf((x + 1) / 2) / math.sqrt(2)
    slope = 2 / math.sqrt(math.pi) * math.exp(-guess * guess)
    return guess - (math.erf(guess) - x) / slope


_LIBDEVICE = {
    name: getattr(np, name)
    for name in (
        "cos cosh exp exp2 expm1 floor ceil trunc rint log log10 log1p log2 sin sinh sqrt tan tanh cbrt hypot copysign "
        "fmod nextafter fmin fmax isnan isinf signbit ldexp"
    ).split()
} | {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "fabs": np.abs,
    "abs": np.abs,
    "pow": np.power,
    "powi": lambda x, n: np.power(x, n.astype(x.dtype)),
    "pown": lambda x, n: np.power(x, n.astype(x.dtype)),
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "fdim": lambda x, y: np.where(x > y, x - y, np.where(x <= y, x.dtype.type(0), x + y)),
    "fma": _fma,
    "erf": _erf,
    "erfc": _elementwise_float64(math.erfc),
    "lgamma": _elementwise_float64(_gamma(math.lgamma)),
    "tgamma": _elementwise_float64(_gamma(math.gamma)),
    "finite": np.isfinite,
    "isfinite": np.isfinite,
    "div_rn": np.divide,
    "fdiv_rn": np.divide,
    "div_rz": lambda x, y: convert_float(np.divide(x, y, dtype=np.float64), x.dtype, "rtz"),
    "rsqrt": lambda x: (1 / np.sqrt(x)).astype(x.dtype),
    "sqrt_rn": np.sqrt,
    "fsqrt_rn": np.sqrt,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x),
    "normcdf": _elementwise_float64(lambda x: 0.5 * math.erfc(-x * math.sqrt(0.5))),
    "erfinv": _elementwise_float64(_erfinv),
    "popc": lambda x: np.bitwise_count(x.view(f"u{x.itemsize}")).astype(np.int32),
    "popcll": lambda x: np.bitwise_count(x.view(f"u{x.itemsize}")).astype(np.int32),
    "mulhi": lambda x, y: (x.astype(np.int64) * y >> 32).astype(np.int32),
    "umulhi": _multiply_high,
}


def libdevice(symbol):
    """Return the function behind a device-library symbol such as `__nv_tanhf` or `__ocml_tanh_f32`.

    Raises:
        NotImplementedError: the table has no such function.
    """
    name = symbol.removeprefix("__nv_").removeprefix("__ocml_").removeprefix("fast_").removeprefix("native_")
    name = name.rsplit("_", 1)[0] if name.endswith(("_f16", "_f32", "_f64")) else name
    for candidate in (name, name[:-1]):
        if candidate in _LIBDEVICE and name in (candidate, candidate + "f", candidate + "d"):
            return _LIBDEVICE[candidate]
    raise NotImplementedError(f"the twin has no NumPy function for the device-library symbol {symbol!r}")
