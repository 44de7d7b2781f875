"""`python -m fgrad` prints what a bug report needs: versions, back ends, GPU, BLAS and threads.

It looks and never fails: what is missing or broken is printed as such. Optional packages are imported only where
nothing else answers the question.
"""

import ctypes
import importlib.metadata
import importlib.util
import os
import platform
import sys
from collections.abc import Iterator

import numpy as np

# Import name -> the names it is distributed under.
OPTIONAL = {
    "scipy": ("scipy",),
    "ml_dtypes": ("ml_dtypes",),
    "triton": ("triton",),
    "cupy": ("cupy-cuda12x", "cupy-cuda13x", "cupy"),
    "threadpoolctl": ("threadpoolctl",),
}
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_CORETYPE")


def version(*distributions: str) -> str | None:
    """Return the installed version of the first of these distributions that is installed, or None."""
    for name in distributions:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def found(module: str) -> bool:
    """Say whether a module could be imported, without importing it."""
    return importlib.util.find_spec(module) is not None


def blas() -> str:
    """Return the name and version of the BLAS that NumPy was built with."""
    built = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    return f"{built.get('name', 'unknown')} {built.get('version', '')}".strip()


def blas_threads() -> str:
    """Return the thread count of each BLAS that is loaded, or how to find it out."""
    if not found("threadpoolctl"):
        return "unknown (pip install threadpoolctl)"
    from threadpoolctl import threadpool_info

    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return ", ".join(f"{pool['num_threads']} ({pool.get('architecture', pool['internal_api'])})" for pool in pools)


def gpu() -> str:
    """Name the GPUs that CuPy sees, or say why there are none."""
    if not found("cupy"):
        return f"none: CuPy is not installed (pip install 'fgrad[cuda13]'); {driver()}"
    # A broken installation raises anything from ImportError to the CUDA runtime's own error: each is the answer here.
    try:
        import cupy

        devices = range(cupy.cuda.runtime.getDeviceCount())
        names = [cupy.cuda.runtime.getDeviceProperties(device)["name"].decode() for device in devices]
    except Exception as error:
        return f"none: CuPy failed with {type(error).__name__}: {error}; {driver()}"
    return ", ".join(names)


def driver() -> str:
    """Say whether the NVIDIA or the AMD driver library can be loaded."""
    for library, name in (("libcuda.so.1", "NVIDIA"), ("libamdhip64.so", "AMD")):
        try:
            ctypes.CDLL(library)
        except OSError:
            continue
        return f"{name} driver found"
    return "no GPU driver found"


def back_ends(gpus: str) -> Iterator[tuple[str, str]]:
    """Yield each back end and whether it can run here."""
    triton = "yes" if found("triton") else "no: Triton is not installed (pip install 'fgrad[triton]', Linux only)"
    yield "cpu (NumPy)", "yes"
    yield "Triton kernels, interpreted", triton
    yield "gpu (CuPy and Triton)", "no: see GPU" if gpus.startswith("none") else triton


def report() -> Iterator[tuple[str, str]]:
    """Yield every line of the report as a pair of label and value."""
    yield "fgrad", f"{version('fgrad')} in {os.path.dirname(os.path.abspath(__file__))}"
    yield "python", f"{platform.python_version()} ({platform.python_implementation()}) at {sys.executable}"
    yield "numpy", np.__version__
    for module, distributions in OPTIONAL.items():
        yield module, version(*distributions) or "not installed"
    gpus = gpu()
    yield from back_ends(gpus)
    yield "GPU", gpus
    yield "BLAS", blas()
    yield "BLAS threads", blas_threads()
    for name in THREAD_VARIABLES:
        if name in os.environ:
            yield name, os.environ[name]
    yield "cores", str(os.cpu_count())
    yield "system", f"{platform.platform()} ({platform.machine()})"


def main() -> None:
    """Print the report, one fact a line."""
    lines = list(report())
    width = max(len(label) for label, _ in lines)
    for label, value in lines:
        print(f"{label:<{width}}  {value}")


if __name__ == "__main__":
    main()
