"""The CUDA driver library, called through ctypes: the eight functions that loading and launching a kernel need."""

import ctypes

_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_CAPABILITY = (75, 76)  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
_SHARED_WITHOUT_OPT_IN = 48 << 10


class CudaError(RuntimeError):
    """A call of the CUDA driver failed. See docs/errors.md#cudaerror."""


class Driver:
    """A loaded driver library.

    Raises:
        CudaError: the library is missing or finds no device.
    """

    def __init__(self, path="libcuda.so.1"):
        try:
            self.library = ctypes.CDLL(path)
        except OSError as error:
            raise CudaError(f"no CUDA driver: {error}") from error
        self.launch_kernel = self.library.cuLaunchKernel
        self.launch_kernel.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
        self.call("cuInit", 0)

    def call(self, name, *args):
        """Call a function by name.

        Raises:
            CudaError: it returned an error.
        """
        self.check(name, getattr(self.library, name)(*args))

    def check(self, name, code):
        """Raise CudaError for a return code other than 0."""
        if code:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(code, ctypes.byref(text))
            raise CudaError(f"{name}: {(text.value or b'unknown error').decode()} ({code})")

    def target(self, device):
        """Return the name of a device's instruction set, such as "sm_90"."""
        value = ctypes.c_int()
        numbers = []
        for attribute in _CAPABILITY:
            self.call("cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
            numbers.append(value.value)
        return f"sm_{numbers[0]}{numbers[1]}"

    def load(self, binary, name, shared_bytes):
        """Load a binary into the current context and return the handle of one of its kernels."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), binary)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        if shared_bytes > _SHARED_WITHOUT_OPT_IN:
            self.call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, shared_bytes)
        return function
