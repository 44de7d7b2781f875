"""What calls of this package add to a gradient, and to NumPy: one file, one Python call each."""

import sys
from pathlib import Path

import numpy as np

import fgrad
from fgrad.numpy import sum, tanh

HOME = Path(fgrad.__file__).parent


def entered(function, suffix=""):
    """Return the files of fgrad that a call enters, and the number of Python calls in those of a given ending."""
    files, calls = set(), 0

    def note(frame, event, arg):
        nonlocal calls
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(str(HOME)):
            calls += name.endswith(suffix)
            files.add(name)

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return {Path(name).relative_to(HOME).as_posix() for name in files}, calls


def test_gradient_of_a_sum():
    x = np.linspace(0.0, 1.0, 8)

    def gradient():
        return fgrad.grad(lambda x: sum(tanh(x * x)))(x)

    gradient()
    files, _ = entered(gradient)
    assert {name for name in files if name.startswith("numpy/")} == {"numpy/ufuncs.py"}
    assert entered(gradient, "ufuncs.py")[1] == 2


def test_eager_calls_are_numpys():
    x = np.ones(3)
    assert entered(lambda: tanh(x)) == ({"numpy/ufuncs.py"}, 1)
    assert entered(lambda: sum(x)) == ({"numpy/ufuncs.py"}, 1)
