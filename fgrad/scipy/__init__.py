"""SciPy's functions, differentiable, under SciPy's names: `import fgrad.scipy.special`, and so on.

Values are computed here where NumPy suffices. What takes SciPy itself, the solvers of `optimize` and some of the
functions of `special`, imports it when called; it comes with the extra `fgrad[scipy]`.
"""

from fgrad.scipy import fft, integrate, interpolate, linalg, ndimage, optimize, signal, sparse, special, stats

__all__ = ["fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "special", "stats"]
