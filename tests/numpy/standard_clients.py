"""Calls into libraries written against the array API standard; run as a module, it differentiates each by fgrad.

SciPy reads whether to dispatch on arrays' namespaces when it is imported, hence a process of its own.
"""

import os
import warnings

os.environ["SCIPY_ARRAY_API"] = "1"

import array_api_extra as xpx
import numpy as np
import scipy.fft
import scipy.integrate
import scipy.optimize
import scipy.signal
import scipy.special
import scipy.stats
import sklearn
from sklearn.metrics import pairwise

import fgrad

sklearn.set_config(array_api_dispatch=True)

X = np.array([0.3, 1.2, -0.7, 2.0])


def square(x):
    return x.reshape(2, 2)


CALLS = {
    "scipy.special.softmax": lambda x: scipy.special.softmax(x)[0],
    "scipy.special.xlogy": lambda x: scipy.special.xlogy(x * x, x * x).sum(),
    "scipy.stats.gmean": lambda x: scipy.stats.gmean(x * x),
    "scipy.stats.pmean": lambda x: scipy.stats.pmean(x * x, 3),
    "scipy.stats.skew": scipy.stats.skew,
    "scipy.stats.kurtosis": scipy.stats.kurtosis,
    "scipy.stats.sem": scipy.stats.sem,
    "scipy.stats.circvar": scipy.stats.circvar,
    "scipy.integrate.trapezoid": lambda x: scipy.integrate.trapezoid(x * x),
    "scipy.fft.fft": lambda x: abs(scipy.fft.fft(x))[1],
    "scipy.signal.fftconvolve": lambda x: scipy.signal.fftconvolve(x, x * x)[1],
    "scipy.optimize.rosen": scipy.optimize.rosen,
    "array_api_extra.cov": lambda x: xpx.cov(square(x))[0, 1],
    "array_api_extra.kron": lambda x: xpx.kron(x, x * x)[3],
    "array_api_extra.sinc": lambda x: xpx.sinc(x).sum(),
    "sklearn.metrics.pairwise.rbf_kernel": lambda x: pairwise.rbf_kernel(square(x), square(x) ** 2).sum(),
    "sklearn.metrics.pairwise.polynomial_kernel": lambda x: pairwise.polynomial_kernel(square(x), square(x)).sum(),
    "sklearn.metrics.pairwise.euclidean_distances": lambda x: pairwise.euclidean_distances(
        square(x), 1 + square(x) ** 2
    ).sum(),
}


def outcome(f):
    """Return "ok", or what is wrong with the derivatives of a function at X."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fgrad.check_grads(f, (X,), 1, rtol=1e-4)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return "ok"


if __name__ == "__main__":
    for name, f in CALLS.items():
        print(f"{name}\t{outcome(f)}")
