"""Run by `test_native.py` in a process where the stand-in is the only CUDA driver: Triton's own launches."""

import ctypes
import os
import sys
import threading

import numpy as np
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from fgrad.triton_kernels.cuda import CudaHome
from fgrad.triton_kernels.driver import Driver
from fgrad.triton_kernels.native import Argument, activate
from fgrad.triton_kernels.runtime import register_home
from tests.triton import standin


@triton.jit
def scale(x, out, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n, other=0.0) * factor, mask=at < n)


@triton.autotune(
    [triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=["n"], reset_to_zero=["out"], restore_value=["x"]
)
@triton.jit
def tuned(x, out, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n, other=0.0) * factor, mask=at < n)


@triton.jit
def described(source, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out + at, source.load([0, 0]))


@triton.jit
def described_on_device(x, out, rows, columns, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [BLOCK, BLOCK])
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out + at, source.load([0, 0]))


def in_a_thread(square, out):
    """Launch a kernel that needs scratch memory in a thread: the allocator is a thread's own."""
    outcomes = []

    def launch(prepared):
        try:
            if prepared:
                activate(square)
            described_on_device[(1,)](Argument(square), Argument(out), 16, 16, BLOCK=16)
            outcomes.append("launched")
        except RuntimeError as error:
            outcomes.append(str(error))

    for prepared in (True, False):
        thread = threading.Thread(target=launch, args=(prepared,))
        thread.start()
        thread.join()
    assert outcomes[0] == "launched", outcomes
    assert "allocator" in outcomes[1], outcomes


def main():
    driver = Driver(os.environ["STANDIN"])
    record = standin.Record.in_dll(driver.library, "record")
    count = ctypes.c_int.in_dll(driver.library, "parameter_count")
    home = register_home(standin.DeviceArray, CudaHome(standin.Arrays(driver), driver))
    x, out = home.from_numpy(np.ones(64, np.float32)), home.from_numpy(np.zeros(64, np.float32))
    driver.call("cuCtxSetCurrent", ctypes.c_uint64(0x1000))
    activate(x)

    count.value = 6
    scale[(2,)](Argument(x), Argument(out), 48, 1.5, BLOCK=32, num_warps=2)
    assert list(record.grid) == [2, 1, 1]
    assert list(record.block) == [64, 1, 1]
    assert record.stream == standin.Arrays.handle
    assert list(record.parameters)[:2] == [x.pointer, out.pointer]
    assert record.parameters[2] & 0xFFFFFFFF == 48
    assert list(record.parameters)[4:6] == [0, 0]

    count.value = 0
    before = record.launches
    tuned[lambda meta: (triton.cdiv(64, meta["BLOCK"]),)](Argument(x), Argument(out), 64, 1.5)
    assert record.launches > before + 2
    before = record.launches
    tuned[lambda meta: (triton.cdiv(64, meta["BLOCK"]),)](Argument(x), Argument(out), 64, 1.5)
    assert record.launches == before + 1

    square = home.from_numpy(np.zeros((16, 16), np.float32))
    described[(1,)](TensorDescriptor(Argument(square), [16, 16], [16, 1], [16, 16]), Argument(out), BLOCK=16)
    assert record.launches == before + 2
    in_a_thread(square, out)
    assert "torch" not in sys.modules
    print("native launches arrive")


if __name__ == "__main__":
    main()
