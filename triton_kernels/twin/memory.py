"""The memory a kernel sees when it is interpreted: one region of addresses for each array argument.

An address carries its argument in the high bits, so that a pointer that strays, however far, is caught and named, and
never touches the process's own memory. Knows no Triton.
"""

import numpy as np

from .numerics import undefined, unsigned

_REGION_BITS = 44
_MIDDLE = 1 << (_REGION_BITS - 1)


class KernelMemoryError(Exception):
    """A kernel touched memory that no argument owns, or in a way the hardware refuses.

    See docs/errors.md#kernelmemoryerror.
    """


class KernelAssertion(AssertionError):
    """A `tl.device_assert`, `tl.assume` or overflow check of an interpreted kernel does not hold.

    See docs/errors.md#kernelassertion.
    """


class Buffer:
    """One array argument: where it lies in the kernel's addresses, and its bytes.

    `address` is the kernel's address of the first element, `low` that of the lowest byte, `process_low` where that
    byte truly lies. `flat` are all bytes between the first and the last element; `inside` marks those that belong to
    an element where a strided view has gaps, and is None where it has none.
    """

    def __init__(self, name, array, region):
        low, high = np.lib.array_utils.byte_bounds(array)
        first = array.__array_interface__["data"][0]
        self.name = name
        self.array = array
        # Keep the true alignment: it decides which accesses the hardware would refuse.
        self.address = (region << _REGION_BITS) + _MIDDLE + first % 256
        self.low = self.address - (first - low)
        self.process_low = low
        self.flat = _bytes(array, low, high)
        self.inside = _gaps(array, low, high)

    @property
    def dtype(self):
        """Return the element type of the argument."""
        return self.array.dtype

    def outside(self, offsets, width):
        """Mark byte offsets at which an access of `width` bytes leaves the array."""
        bad = (offsets < 0) | (offsets > len(self.flat) - width)
        if self.inside is not None:
            bad |= ~self.inside[np.where(bad, 0, offsets)]
        return bad

    def index_of(self, offset):
        """Return the element position, counted from the argument's first element, that a byte offset falls on."""
        return (int(offset) - (self.address - self.low)) // self.dtype.itemsize

    def typed(self, dtype):
        """Return the bytes as elements of a dtype, and the byte offset of the first of them."""
        lead = -self.low % dtype.itemsize
        count = (len(self.flat) - lead) // dtype.itemsize
        return self.flat[lead : lead + count * dtype.itemsize].view(dtype), lead


def _bytes(array, low, high):
    """View everything between two addresses of an array's memory, whatever its strides, as bytes."""
    if not array.size:
        return np.empty(0, np.uint8)
    lowest = tuple(slice(-1, None) if stride < 0 else slice(0, 1) for stride in array.strides)
    corner = array.reshape(1) if array.ndim == 0 else array[lowest].reshape(1)
    return np.lib.stride_tricks.as_strided(corner.view(np.uint8), (high - low,), (1,), writeable=array.flags.writeable)


def _gaps(array, low, high):
    """Return which bytes between two addresses belong to an element, or None where all do."""
    distinct = array[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in array.strides)]
    if distinct.size * distinct.itemsize == high - low:
        return None
    inside = np.zeros(high - low, np.bool_)
    first = array.__array_interface__["data"][0] - low
    shape, strides = distinct.shape + (array.itemsize,), distinct.strides + (1,)
    np.lib.stride_tricks.as_strided(inside[first:], shape, strides)[...] = True
    return inside


class Memory:
    """The buffers of one launch, and every access to them; a checker overrides what stands under "Notes"."""

    def __init__(self):
        self.buffers = {}
        self.program = (0, 0, 0)
        self.source = ""

    def bind(self, name, array):
        """Give an array its region and return the address of its first element."""
        region = len(self.buffers) + 1
        self.buffers[region] = Buffer(name, array, region)
        return np.int64(self.buffers[region].address)

    def load(self, pointers, mask, other, dtype, source):
        """Return the values at the pointers; lanes that are masked off give `other`, or an undefined value."""
        pointers = np.asarray(pointers)
        if other is None:
            result = np.empty(pointers.shape, dtype) if mask is None else self.undefined(pointers.shape, dtype)
        else:
            result = np.array(np.broadcast_to(other, pointers.shape), dtype)
        for buffer, offsets, lanes in self._accesses(pointers, mask, dtype, "load", source):
            elements, lead = buffer.typed(dtype)
            result[lanes] = elements[(offsets - lead) // dtype.itemsize]
            self.loaded(buffer, offsets, dtype)
        return result[()]

    def store(self, pointers, values, mask, dtype, source):
        """Write values at the pointers of lanes that are not masked off."""
        pointers = np.asarray(pointers)
        values = np.broadcast_to(values, pointers.shape)
        for buffer, offsets, lanes in self._accesses(pointers, mask, dtype, "store", source):
            elements, lead = buffer.typed(dtype)
            self.storing(buffer, offsets, values[lanes])
            elements[(offsets - lead) // dtype.itemsize] = values[lanes]

    def atomic(self, kind, pointers, values, mask, dtype, source):
        """Read, combine and write back one lane after the other; return what was there before each."""
        combine = _ATOMICS[kind]
        pointers = np.asarray(pointers)
        values = np.broadcast_to(values, pointers.shape)
        before = np.zeros(pointers.shape, dtype)
        for buffer, offsets, lanes in self._accesses(pointers, mask, dtype, "atomic", source):
            elements, lead = buffer.typed(dtype)
            indices = (offsets - lead) // dtype.itemsize
            self.updating(buffer, offsets, dtype)
            before[lanes] = _in_turn(elements, indices, values[lanes], combine)
        return before[()]

    def compare_and_swap(self, pointers, expected, values, dtype, source):
        """Write values where memory holds what is expected; return what it held."""
        pointers = np.asarray(pointers)
        pairs = np.stack(np.broadcast_arrays(expected, values, np.empty(pointers.shape, dtype))[:2], axis=-1)
        before = np.zeros(pointers.shape, dtype)
        for buffer, offsets, lanes in self._accesses(pointers, None, dtype, "atomic", source):
            elements, lead = buffer.typed(dtype)
            indices = (offsets - lead) // dtype.itemsize
            self.updating(buffer, offsets, dtype)
            before[lanes] = _in_turn(elements, indices, pairs[lanes], _swap)
        return before[()]

    # Notes

    def undefined(self, shape, dtype):
        """Return what a lane of a masked load without `other` reads."""
        return undefined(shape, dtype).copy()

    def loaded(self, buffer, offsets, dtype):
        """Take note of a load."""

    def storing(self, buffer, offsets, values):
        """Take note of values about to be stored."""

    def updating(self, buffer, offsets, dtype):
        """Take note of an atomic access about to happen."""

    def fail(self, message, source):
        """Raise for an assertion of the kernel that does not hold.

        Raises:
            KernelAssertion: always.
        """
        raise KernelAssertion(f"{message} in program {self.program}{f' ({source})' if source else ''}")

    def refuse(self, action, buffer, message, offset=None):
        """Raise for an access the hardware would refuse.

        Raises:
            KernelMemoryError: always.
        """
        place = f" ({self.source})" if self.source else ""
        owner = f" argument {buffer.name!r}" if buffer else ""
        raise KernelMemoryError(f"{action} in program {self.program}{place}:{owner} {message}")

    def _accesses(self, pointers, mask, dtype, action, source):
        """Yield (buffer, byte offsets, lanes) of the lanes in use, one buffer after the other, all inside it."""
        self.source = source
        mask = np.ones(pointers.shape, np.bool_) if mask is None else np.broadcast_to(mask, pointers.shape)
        addresses = pointers[mask]
        if not addresses.size:
            return
        regions = addresses >> _REGION_BITS
        found = [regions.flat[0]] if (regions == regions.flat[0]).all() else np.unique(regions)
        for region in found:
            lanes = mask if len(found) == 1 else mask & (pointers >> _REGION_BITS == region)
            buffer = self.buffers.get(int(region))
            if buffer is None:
                self.refuse(action, None, f"address {int(addresses.flat[0]):#x} belongs to no argument")
                continue
            offsets = pointers[lanes] - buffer.low
            bad = self._bad(buffer, offsets, dtype, action)
            if bad is not None:
                if bad.all():
                    continue
                lanes = lanes.copy()
                lanes[lanes] = ~bad
                offsets = offsets[~bad]
            yield buffer, offsets, lanes

    def _bad(self, buffer, offsets, dtype, action):
        """Refuse accesses that are read-only, misaligned or outside; return which, or None."""
        if action != "load" and not buffer.array.flags.writeable:
            self.refuse(action, buffer, "is read-only")
            return np.ones(offsets.shape, np.bool_)
        misaligned = (offsets + buffer.low) % dtype.itemsize != 0
        if misaligned.any():
            self.refuse(action, buffer, f"address is not a multiple of {dtype.itemsize} bytes")
            return misaligned
        outside = buffer.outside(offsets, dtype.itemsize)
        if not outside.any():
            return None
        offset = offsets[outside].flat[0]
        where = buffer.index_of(offset)
        self.refuse(
            action,
            buffer,
            f"element {where} is outside: the array has {buffer.array.size} elements, "
            f"shape {buffer.array.shape}, strides {tuple(s // buffer.dtype.itemsize for s in buffer.array.strides)}",
            offset,
        )
        return outside


def _in_turn(elements, indices, values, combine):
    """Combine values into elements lane after lane; at once where no index repeats."""
    if np.unique(indices).size == indices.size:
        before = elements[indices]
        elements[indices] = combine(before, values)
        return before
    before = np.empty(indices.shape, elements.dtype)
    for lane, index in enumerate(indices):
        before[lane] = elements[index]
        elements[index] = combine(elements[index], values[lane])
    return before


def _swap(old, pair):
    """Return the new value where old is the expected one; pair holds (expected, new) in its last axis."""
    return np.where(old == pair[..., 0], pair[..., 1], old)


def _as_unsigned(op):
    return lambda x, y: op(unsigned(x), unsigned(y)).view(x.dtype)


_ATOMICS = {
    "add": np.add,
    "fadd": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "umin": _as_unsigned(np.minimum),
    "umax": _as_unsigned(np.maximum),
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, new: new,
}
