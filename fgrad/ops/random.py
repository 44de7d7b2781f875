"""Counter-based random bits, and the draws that are made of them in one go.

A key is two words, uint32[2]. The cipher Threefry-2x32 of 20 rounds turns a key and a 64-bit counter into a block of
64 random bits; element i of a draw comes from block i, so a draw depends on nothing but its key: not on what computes
it, in which order, or with how many others. Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy
as 1, 2, 3" (SC 2011). How blocks become numbers is what JAX does by default, so that equal keys draw equal numbers.

All are constant primitives over keys of any batch shape K: (*K, 2) draws (*K, *shape). Elements are independent, so a
kernel can make the bits where it needs them, in registers: additions, rotations and xor of 32-bit words.
"""

from __future__ import annotations

import math

import numpy as np

from fgrad.core import ArrayType
from fgrad.kinds import constant
from fgrad.ops.shape import move_axis, to_front

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))  # of even and odd groups of four rounds (table 2 of the source)
_PARITY = 0x1BD11BDA  # what the third word of the key schedule is xored with
_GROUPS = 5
_WORD = 0xFFFFFFFF

_CHUNK = 1 << 15  # blocks enciphered at a time: three arrays of words that fit the cache
_FEW = 8  # blocks that are cheaper one by one in Python numbers than all together in NumPy calls


# ------------------------------------------------------------------------------------------------- the cipher


def _schedule(key0, key1):
    """Yield what is added to the two words before the rounds, and after each group of four."""
    words = (key0, key1, key0 ^ key1 ^ _PARITY)
    for group in range(_GROUPS + 1):
        yield words[group % 3], words[(group + 1) % 3] + group


def _encipher_numbers(key0, key1, x0, x1):
    """Return the block of one counter (x0, x1) as two words; all are Python ints."""
    for group, (add0, add1) in enumerate(_schedule(key0, key1)):
        x0, x1 = (x0 + add0) & _WORD, (x1 + add1) & _WORD
        if group == _GROUPS:
            return x0, x1
        for turn in _ROTATIONS[group % 2]:
            x0 = (x0 + x1) & _WORD
            x1 = ((x1 << turn) & _WORD | x1 >> (32 - turn)) ^ x0
    raise AssertionError("the last group returns")


def _encipher(key0, key1, x0, x1):
    """Replace counters (x0, x1) by their blocks, in place; all are arrays of uint32, the keys broadcast."""
    turned = np.empty_like(x1)
    for group, (add0, add1) in enumerate(_schedule(key0, key1)):
        x0 += add0
        x1 += add1
        if group == _GROUPS:
            return
        for turn in _ROTATIONS[group % 2]:
            x0 += x1
            np.left_shift(x1, turn, out=turned)
            np.right_shift(x1, 32 - turn, out=x1)
            x1 |= turned
            x1 ^= x0


def _blocks(keys, counters):
    """Return the blocks of counters as two arrays of words.

    Args:
        keys: (k, 2) of uint32.
        counters: (k, n) or (1, n) of unsigned integers.
    """
    shape = (len(keys), counters.shape[1])
    x0, x1 = np.empty(shape, np.uint32), np.empty(shape, np.uint32)
    if x0.size <= _FEW:
        for at in np.ndindex(shape):
            counter = int(counters[at if len(counters) > 1 else (0, at[1])])
            x0[at], x1[at] = _encipher_numbers(*keys[at[0]].tolist(), counter >> 32, counter & _WORD)
        return x0, x1
    x0[...] = counters.astype(np.uint64) >> 32
    np.copyto(x1, counters, casting="unsafe")
    _encipher(keys[:, :1], keys[:, 1:], x0, x1)
    return x0, x1


def _draw(key, shape, dtype, finish):
    """Return an array (*K, *shape) whose parts `finish(x0, x1, out)` writes from their blocks, a chunk at a time."""
    keys = key.reshape(-1, 2)
    out = np.empty((len(keys), math.prod(shape)), dtype)
    columns = min(out.shape[1], _CHUNK)
    rows = _CHUNK // columns if columns else 1
    for start in range(0, out.shape[1], _CHUNK):
        stop = min(start + _CHUNK, out.shape[1])
        counters = np.arange(start, stop, dtype=np.uint64)[None]
        for row in range(0, len(keys), rows):
            finish(*_blocks(keys[row : row + rows], counters), out[row : row + rows, start:stop])
    return out.reshape((*key.shape[:-1], *shape))


def _drawn(dtype_of):
    """Return a type rule for draws; the key must be a key."""

    def rule(key, *, shape, **params):
        if key.dtype != np.uint32 or key.shape[-1:] != (2,):
            raise TypeError(f"a key is uint32[2], got {key}")
        return ArrayType((*key.shape[:-1], *shape), dtype_of(**params))

    return rule


# ------------------------------------------------------------------------------------------------ the primitives


def _write_bits(x0, x1, out):
    """Write a block's bits: all of them, or as many of the xor of its words as `out` has room for."""
    if out.itemsize == 8:
        out[...] = x0
        out <<= 32
        out |= x1
    else:
        x0 ^= x1
        np.copyto(out, x0, casting="unsafe")


def _batch(prim, params, args, dims):
    """Draw for all keys at once, the batch axis in front."""
    return prim(move_axis(args[0], dims[0], 0), **params), 0


random_bits = constant(
    "random_bits",
    lambda key, *, shape, width: _draw(key, shape, f"uint{width}", _write_bits),
    type=_drawn(lambda width: f"uint{width}"),
    batch=lambda args, dims, size, **params: _batch(random_bits, params, args, dims),
    gpu="random.bits",
    doc="Random unsigned integers of `width` bits: 8, 16, 32 or 64.",
)


def _write_unit(x0, x1, out):
    """Write numbers in [0, 1): random bits as the mantissa of a number in [1, 2), less 1."""
    words = out.view(f"uint{8 * out.itemsize}")
    _write_bits(x0, x1, words)
    words >>= 8 * out.itemsize - np.finfo(out.dtype).nmant
    words |= np.ones((), out.dtype).view(words.dtype)
    out -= 1


random_uniform = constant(
    "random_uniform",
    lambda key, *, shape, dtype: _draw(key, shape, dtype, _write_unit),
    type=_drawn(lambda dtype: dtype),
    batch=lambda args, dims, size, **params: _batch(random_uniform, params, args, dims),
    gpu="random.uniform",
    doc="Random numbers of a real floating dtype, uniform in [0, 1).",
)

# Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics 37 (1988), PPND16:
# numerator and denominator, highest power first, for the centre, the tails, and the far tails.
_CENTRE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4)
    + (1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4)
    + (5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
)
_TAIL = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258)
    + (3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1)
    + (6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1.0),
)
_FAR_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2)
    + (2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4)
    + (1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0),
)


def _ratio(r, polynomials):
    """Return the ratio of two polynomials at r, by Horner's rule."""
    values = []
    for coefficients in polynomials:
        value = r * coefficients[0]
        value += coefficients[1]
        for c in coefficients[2:]:
            value *= r
            value += c
        values.append(value)
    values[0] /= values[1]
    return values[0]


def to_normal(q):
    """Replace numbers in (-1/2, 1/2) by the points below which a standard normal has probability q + 1/2, in place.

    Args:
        q: an array of float32 or float64 without strides.
    """
    outside = np.flatnonzero(np.abs(q) > 0.425)
    flat = q.reshape(-1)
    tails = flat[outside]
    centre = np.square(q)
    np.subtract(0.180625, centre, out=centre)
    q *= _ratio(centre, _CENTRE)
    r = np.sqrt(-np.log(0.5 - np.abs(tails)))
    flat[outside] = np.copysign(np.where(r <= 5, _ratio(r - 1.6, _TAIL), _ratio(r - 5, _FAR_TAIL)), tails)


def _write_normal(x0, x1, out):
    """Write standard normal numbers; those of float16 are rounded from float32, whose tails reach further."""
    q = out if out.itemsize > 2 else np.empty(out.shape, np.float32)
    _write_unit(x0, x1, q)
    q -= 0.5 - np.finfo(q.dtype).epsneg / 2  # the middle of the range is 0, its end not quite -1/2
    to_normal(q)
    if q is not out:
        np.copyto(out, q, casting="same_kind")


random_normal = constant(
    "random_normal",
    lambda key, *, shape, dtype: _draw(key, shape, dtype, _write_normal),
    type=_drawn(lambda dtype: dtype),
    batch=lambda args, dims, size, **params: _batch(random_normal, params, args, dims),
    gpu="random.normal",
    doc="Random numbers of a real floating dtype from the standard normal distribution, by inversion.",
)


def _fold(key, at):
    keys = key.reshape(-1, 2)
    x0, x1 = _blocks(keys, at.reshape(len(keys), math.prod(at.shape[key.ndim - 1 :])))
    return np.stack([x0, x1], axis=-1).reshape(*at.shape, 2)


def _batch_fold(args, dims, size):
    (key, at), (key_axis, at_axis) = args, dims
    if key_axis is None and key.ndim == 1:
        return random_fold(key, at), at_axis
    return random_fold(to_front(key, key_axis, size), to_front(at, at_axis, size)), 0


random_fold = constant(
    "random_fold",
    _fold,
    type=lambda key, at: ArrayType((*at.shape, 2), np.uint32),
    batch=_batch_fold,
    gpu="random.fold",
    doc="Keys made of a key and unsigned integers: keys (*K, 2) and integers (*K, *S) make keys (*K, *S, 2).",
)
