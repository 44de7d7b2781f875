"""The home of arrays on an NVIDIA GPU: CuPy holds memory and streams, the CUDA driver loads and launches.

A launch whose arguments have been seen (types, alignment, compile-time values) goes through a plan: parameters are
written into a block made once, and one driver call starts the kernel. Imported only when an array on a GPU appears.
"""

import contextlib
import ctypes
import gc
import threading
from types import SimpleNamespace

import numpy as np

from . import toolchain
from .compile import LIMITS
from .driver import Driver
from .runtime import _HOMES, arrays_of, group, require_one_home, with_own_arrays
from .signature import bind, grid_shape, is_descriptor
from .timing import FLUSHED_BYTES
from .tune import Tuner, strided_copy

_BOXES = {
    "i8": ctypes.c_int8,
    "u1": ctypes.c_uint8,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "u64": ctypes.c_uint64,
    "fp32": ctypes.c_float,
}


# What a home hands through from what holds its arrays.
_JOBS = (
    "empty",
    "zeros",
    "copied",
    "pointer",
    "device",
    "count",
    "current_device",
    "set_device",
    "on_device",
    "stream",
    "synchronize",
    "elapsed",
    "capture",
    "group",
    "to_numpy",
    "from_numpy",
    "move",
    "adopt",
    "properties",
    "memory",
    "release",
    "owner",
    "strided",
)


@contextlib.contextmanager
def _without_collection():
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class CupyArrays:
    """What the home asks of CuPy: memory, streams, devices."""

    def __init__(self):
        import cupy

        self.cupy = cupy

    def empty(self, like, shape, dtype):
        """Return an uninitialised array on the device of `like`."""
        with like.device:
            return self.cupy.empty(shape, dtype)

    def zeros(self, like, shape, dtype):
        """Return an array of zeros on the device of `like`."""
        with like.device:
            return self.cupy.zeros(shape, dtype)

    def copied(self, array):
        """Return a copy with the same strides."""
        with array.device:
            return strided_copy(self.cupy, array)

    def pointer(self, array):
        """Return the address of an array's first element."""
        return array.data.ptr

    def device(self, array):
        """Return the number of the device an array lies on."""
        return array.device.id

    def count(self):
        """Return how many devices there are."""
        return self.cupy.cuda.runtime.getDeviceCount()

    def current_device(self):
        """Return the number of this thread's current device."""
        return self.cupy.cuda.runtime.getDevice()

    def on_device(self, device):
        """Return a context in which a device is current."""
        return self.cupy.cuda.Device(device)

    def set_device(self, device):
        """Make a device current for this thread."""
        self.cupy.cuda.Device(device).use()

    def elapsed(self, call):
        """Return the milliseconds a call takes on the current stream."""
        first, last = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        first.record()
        call()
        last.record()
        last.synchronize()
        return self.cupy.cuda.get_elapsed_time(first, last)

    def capture(self, call):
        """Record what a call launches as a graph; return a function that launches the graph on the current stream.

        The call runs once before, so that everything is compiled. Its memory comes from a pool of the graph's own, as
        what it frees must go to nobody else. Cyclic garbage is left alone meanwhile: a kernel that died now would
        unload its module inside the recording.
        """
        pool = self.cupy.cuda.MemoryPool()
        stream = self.cupy.cuda.Stream(non_blocking=True)
        self.synchronize()
        with self.cupy.cuda.using_allocator(pool.malloc), stream, _without_collection():
            call()
            stream.synchronize()
            stream.begin_capture()
            try:
                call()
            finally:
                graph = stream.end_capture()

        def start(kept=(pool, stream)):
            graph.launch(self.cupy.cuda.get_current_stream())

        return start

    def owner(self, array):
        """Return the allocation that an array lies in; views of one memory have the same."""
        return array.data.mem

    def strided(self, array, shape, strides):
        """Return a window of any strides, in bytes, on the memory from an array's first element on."""
        return self.cupy.lib.stride_tricks.as_strided(array, tuple(shape), tuple(strides))

    def properties(self, device):
        """Return what a device is: name, major, minor, total_memory in bytes, multi_processor_count."""
        found = self.cupy.cuda.runtime.getDeviceProperties(device)
        return SimpleNamespace(
            name=found["name"].decode(),
            major=found["major"],
            minor=found["minor"],
            total_memory=found["totalGlobalMem"],
            multi_processor_count=found["multiProcessorCount"],
        )

    def memory(self):
        """Return the bytes that arrays on the current device occupy, and those that the pool holds for them."""
        pool = self.cupy.get_default_memory_pool()
        return pool.used_bytes(), pool.total_bytes()

    def release(self):
        """Give memory of the pool that no array occupies back to the device."""
        self.cupy.get_default_memory_pool().free_all_blocks()

    def stream(self):
        """Return the handle of the current stream of the current device."""
        return self.cupy.cuda.get_current_stream().ptr

    def synchronize(self):
        """Wait for the current stream."""
        self.cupy.cuda.get_current_stream().synchronize()

    def group(self, index, groups):
        """Return the positions of an index in the order of its values, and where each value's positions start."""
        with index.device:
            return group(self.cupy, index, groups)

    def to_numpy(self, array):
        """Return a copy in host memory."""
        return self.cupy.asnumpy(array)

    def from_numpy(self, array):
        """Return a copy on the current device."""
        return self.cupy.asarray(array)

    def move(self, array):
        """Return a copy, on the current device, of an array on any device."""
        return self.cupy.array(array, copy=True)

    def adopt(self, array):
        """Return a view of another library's array on a device."""
        if hasattr(array, "__dlpack__"):  # first, since it knows bfloat16 and orders streams
            with contextlib.suppress(
                BufferError, TypeError
            ):  # a read-only array, or a type CuPy takes by the other way
                return self.cupy.from_dlpack(array)
        return self.cupy.asarray(array)


class CudaHome:
    """The home of arrays on CUDA devices.

    Args:
        arrays: what holds memory and streams; CuPy unless a test says otherwise.
        driver: the driver library.
    """

    def __init__(self, arrays=None, driver=None):
        self.arrays = arrays or CupyArrays()
        self.driver = driver or Driver()
        for job in _JOBS:
            setattr(self, job, getattr(self.arrays, job))
        self.plans = {}
        self.fixed = {}
        self.tuners = {}
        self.lock = threading.Lock()

    def execute(self, launch):
        """Start a kernel on the current stream of the device its arrays lie on."""
        # By identity, since a jitted function hashes its source; kept alive, so that no other takes its identity.
        identity = id(launch.kernel)
        if identity not in self.fixed:
            if toolchain.is_tuned(launch.kernel):
                return self._execute_tuned(launch)
            self.fixed[identity] = launch.kernel, toolchain.fixed_names(launch.kernel)
        _, fixed = self.fixed[identity]
        key = (
            identity,
            tuple([_exact(value) if name else self._kind(value) for value, name in zip(launch.args, fixed)]),
            tuple(
                [
                    (name, _exact(value) if name in fixed or name in toolchain.LAUNCH_OPTIONS else self._kind(value))
                    for name, value in launch.meta.items()
                ]
            ),
        )
        plan = self.plans.get(key)
        if plan is None:
            if (ours := with_own_arrays(launch)) is not launch:
                return self.execute(ours)
            plan = self._plan(key, launch)
        if self.current_device() == plan.device:
            plan.start(launch, self.stream())
        else:
            with self.arrays.on_device(plan.device):
                plan.start(launch, self.stream())

    def _execute_tuned(self, launch):
        launch = with_own_arrays(launch)
        require_one_home(launch.args)
        arrays = arrays_of(launch.args)
        device = self.device(arrays[0]) if arrays else self.current_device()
        with self.arrays.on_device(device):
            return self.execute(self.tuner(device).resolve(launch))

    def tuner(self, device):
        """Return what picks the configurations of kernels on a device."""
        if device not in self.tuners:
            self.tuners[device] = Tuner(self.execute, self.elapsed, self.driver.target(device), self.copied, self.flush)
        return self.tuners[device]

    def flush(self, like, size=FLUSHED_BYTES):
        """Empty the second-level cache of the device that an array lies on: write more bytes than it holds."""
        self.zeros(like, (size,), np.dtype(np.uint8))

    def _plan(self, key, launch):
        """Make the plan for arguments of a new kind."""
        require_one_home(launch.args)
        arrays = arrays_of(launch.args)
        device = self.device(arrays[0]) if arrays else self.current_device()
        with self.lock, self.arrays.on_device(device):
            if key not in self.plans:
                self.plans[key] = Plan(self, launch, device)
            return self.plans[key]

    def _kind(self, value):
        """Return what of an argument decides which binary runs, and where."""
        kind = type(value)
        if kind is int:
            return value % 16 == 0, -(2**31) <= value < 2**31, value < 2**63
        if value is None or kind is float or kind is bool:
            return kind
        if kind is tuple:
            return tuple(map(self._kind, value))
        if _HOMES.get(kind) is not self:
            return kind  # making the plan says what is wrong
        return value.dtype, self.pointer(value) % 16 == 0, self.device(value)


def _exact(value):
    """Return a compile-time value as part of a plan's key: 1, 1.0 and True are equal, and compile differently."""
    return type(value), value


class Plan:
    """One binary, loaded, with a parameter block that a launch fills in."""

    def __init__(self, home, launch, device):
        kernel, meta = launch.kernel, launch.meta
        bound = bind(toolchain.parameters(kernel), launch.args, meta, toolchain.LAUNCH_OPTIONS)
        if any(is_descriptor(value) for _, value in bound.runtime):
            raise NotImplementedError("a tensor descriptor made on the host: launch with kernel[grid], see `native`")
        options = {"num_warps": 4, "enable_fp_fusion": True}
        options |= {name: value for name, value in meta.items() if name in toolchain.LAUNCH_OPTIONS}
        if options.get("num_ctas", 1) != 1:
            raise NotImplementedError("clusters of programs (num_ctas > 1): launch with kernel[grid], see `native`")
        attributes = {path: [["tt.divisibility", 16]] for path in bound.aligned}
        binary = toolchain.to_binary(
            kernel, bound.types, bound.constexprs, home.driver.target(device), options, attributes
        )
        self.home = home
        self.device = device
        self.parameters = toolchain.parameters(kernel)
        self._prepare(binary, bound)

    def _prepare(self, binary, bound):
        """Load the binary and make its parameter block: the arguments, then two scratch pointers."""
        metadata = binary.metadata
        self.scratch_bytes = metadata.global_scratch_size
        self.threads = metadata.num_warps * metadata.target.warp_size
        self.shared = metadata.shared
        limits = LIMITS.get(f"sm_{metadata.target.arch}", LIMITS["sm_80"])
        if self.threads > limits.threads or self.shared > limits.shared_bytes:
            raise ValueError(
                f"{metadata.name}: {self.threads} threads and {self.shared} bytes of shared memory do not fit"
            )
        self.function = self.home.driver.load(binary.asm["cubin"], metadata.name, self.shared)
        kinds = [bound.type_at(path) for path in bound.paths]
        boxes = [ctypes.c_uint64() if kind.startswith("*") else _BOXES[kind]() for kind in kinds]
        self.slots = [(box, path, kind.startswith("*")) for box, path, kind in zip(boxes, bound.paths, kinds)]
        scratch = [ctypes.c_uint64(), ctypes.c_uint64()]
        addresses = [ctypes.addressof(box) for box in (*boxes, *scratch)]
        self.scratch = scratch
        self.block = (ctypes.c_void_p * len(addresses))(*addresses)
        self.lock = threading.Lock()

    def start(self, launch, stream):
        """Fill in the parameters and start the kernel."""
        named = None
        if callable(launch.grid):
            named = {**{name: value for (name, _, _), value in zip(self.parameters, launch.args)}, **launch.meta}
        grid = grid_shape(launch.grid, named)
        if 0 in grid:
            return
        with self.lock:
            if self.scratch_bytes:
                self._allocate_scratch(launch, grid)
            for box, path, is_pointer in self.slots:
                value = self._at(launch, path)
                box.value = self.home.pointer(value) if is_pointer else value
            code = self.home.driver.launch_kernel(
                self.function, *grid, self.threads, 1, 1, self.shared, stream, self.block, None
            )
        self.home.driver.check("cuLaunchKernel", code)

    def _allocate_scratch(self, launch, grid):
        """Give the launch its scratch memory; the pool reuses it in stream order once it is dropped."""
        size = grid[0] * grid[1] * grid[2] * self.scratch_bytes
        self.workspace = self.home.empty(arrays_of(launch.args)[0], (size,), np.dtype(np.uint8))
        self.scratch[0].value = self.home.pointer(self.workspace)

    def _at(self, launch, path):
        first = path[0]
        if first < len(launch.args):
            value = launch.args[first]
        else:
            name, _, default = self.parameters[first]
            value = launch.meta.get(name, default)
        for index in path[1:]:
            value = value[index]
        return value
