"""Tensor descriptors: blocks of an array read and written by coordinates, with everything outside the array padded."""

import numpy as np

from .memory import KernelMemoryError


class Descriptor:
    """An array of up to five dimensions, cut into blocks, as the hardware's bulk copies see it."""

    def __init__(self, memory, base, shape, strides, dtype, block, padding=0.0):
        self.memory = memory
        self.base = np.int64(base)
        self.shape = tuple(int(size) for size in shape)
        self.strides = tuple(int(stride) for stride in strides)
        self.dtype = dtype
        self.block = block
        self.padding = padding
        self._check()

    def _check(self):
        """Refuse what the hardware refuses (CUDA driver API, cuTensorMapEncodeTiled)."""
        byte_strides = [stride * self.dtype.itemsize for stride in self.strides[:-1]]
        if self.base % 16 or any(stride % 16 for stride in byte_strides) or self.strides[-1] != 1:
            raise KernelMemoryError(
                "tensor descriptor: expected a base and outer strides that are multiples of 16 bytes and a last stride "
                f"of 1, got a base {int(self.base) % 16} bytes off and strides {self.strides}"
            )

    def load(self, corner, source):
        """Return the block at a corner given in elements."""
        pointers, mask = self._block_at(corner)
        return self.memory.load(pointers, mask, self.dtype.type(self.padding), self.dtype, source)

    def store(self, corner, values, source):
        """Write the block at a corner; what lies outside the array is dropped."""
        pointers, mask = self._block_at(corner)
        self.memory.store(pointers, values.reshape(self.block), mask, self.dtype, source)

    def reduce(self, kind, corner, values, source):
        """Combine a block into memory atomically."""
        pointers, mask = self._block_at(corner)
        self.memory.atomic(kind, pointers, values.reshape(self.block), mask, self.dtype, source)

    def gather(self, rows, column, source):
        """Return one row of the block's width for each row index."""
        pointers, mask = self._rows_at(rows, column)
        return self.memory.load(pointers, mask, self.dtype.type(self.padding), self.dtype, source)

    def scatter(self, rows, column, values, source):
        """Write one row of the block's width for each row index."""
        pointers, mask = self._rows_at(rows, column)
        self.memory.store(pointers, values, mask, self.dtype, source)

    def _block_at(self, corner):
        indices = [int(start) + np.arange(size) for start, size in zip(corner, self.block)]
        return self._pointers(np.ix_(*indices))

    def _rows_at(self, rows, column):
        return self._pointers(np.ix_(np.asarray(rows, np.int64), int(column) + np.arange(self.block[-1])))

    def _pointers(self, indices):
        offset = sum(index * stride for index, stride in zip(indices, self.strides))
        mask = np.ones(offset.shape, np.bool_)
        for index, size in zip(indices, self.shape):
            mask &= (index >= 0) & (index < size)
        return self.base + offset * self.dtype.itemsize, mask
