"""Run one program text with torch and with fgrad.compat, and hold what it shows against each other."""

import contextlib
import warnings

import numpy as np

import fgrad.compat as compat


def real_torch():
    """Return the real torch, or skip the test where it is not installed."""
    import pytest

    return pytest.importorskip("torch")


def data(*shape, seed=0, low=None, high=None, dtype=np.float64):
    """Return the same numbers for both modules: normal, or uniform in [low, high)."""
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        return random.integers(low, high, shape).astype(dtype)
    values = random.standard_normal(shape) if low is None else random.uniform(low, high, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * random.standard_normal(shape)
    return np.asarray(values).astype(dtype)


class Outcome:
    """What a program showed, and how it ended."""

    def __init__(self, module, text, names=()):
        self.shown = []
        self.error = None
        env = {"torch": module, "np": np, "data": data, "show": self.shown.append, "warnings": warnings, **dict(names)}
        meaning = compat.as_torch() if module is compat else contextlib.nullcontext()
        with warnings.catch_warnings(record=True) as caught, meaning:
            warnings.simplefilter("always")
            try:
                exec(compile(text, "<program>", "exec"), env)
            except Exception as error:
                self.error = error
        self.warnings = caught


def plain(x):
    """Return what a program showed as plain data: arrays, dtypes by name, names of nodes."""
    if isinstance(x, (tuple, list)):
        return [plain(item) for item in x]
    if isinstance(x, dict):
        return {key: plain(item) for key, item in x.items()}
    if hasattr(x, "detach"):
        return np.asarray(x.detach().resolve_conj().numpy()), bool(x.requires_grad)
    return x if x is None or isinstance(x, (bool, int, float, complex, str)) else str(x)


def assert_same(a, b, where="result", rtol=1e-6, atol=1e-8):
    """Raise AssertionError unless two shown things agree: types, shapes, dtypes, flags, and values to rounding."""
    if isinstance(a, list):
        assert isinstance(b, list) and len(a) == len(b), f"{where}: torch shows {len(a)}, compat {len(b)}: {a} != {b}"
        for k, (x, y) in enumerate(zip(a, b)):
            assert_same(x, y, f"{where}[{k}]", rtol, atol)
    elif isinstance(a, dict):
        assert a.keys() == b.keys(), f"{where}: {a} != {b}"
        for key in a:
            assert_same(a[key], b[key], f"{where}[{key!r}]", rtol, atol)
    elif isinstance(a, tuple):
        assert isinstance(b, tuple), f"{where}: {a} != {b}"
        (x, flag_x), (y, flag_y) = a, b
        assert x.shape == y.shape, f"{where}: torch shape {x.shape}, compat {y.shape}"
        assert x.dtype == y.dtype, f"{where}: torch dtype {x.dtype}, compat {y.dtype}"
        loose = x.dtype in (np.float32, np.complex64)
        np.testing.assert_allclose(y, x, rtol=2e-5 if loose else rtol, atol=1e-6 if loose else atol, err_msg=where)
        assert flag_x == flag_y, f"{where}: torch requires_grad={flag_x}, compat {flag_y}"
    elif isinstance(a, float) and isinstance(b, float):
        np.testing.assert_allclose(b, a, rtol=1e-5, err_msg=where)
    else:
        assert a == b, f"{where}: torch {a!r}, compat {b!r}"


def same(text, phrase=None, **names):
    """Run a program with both modules; raise AssertionError unless both show the same and end in the same way.

    `phrase` is a part of the message that both errors must have.
    """
    want = Outcome(real_torch(), text, names.items())
    got = Outcome(compat, text, names.items())
    if want.error is not None or got.error is not None:
        kinds = [type(e) for e in (want.error, got.error)]
        if want.error is None:
            raise got.error
        assert got.error is not None, f"torch raises {want.error!r}, compat nothing"
        assert issubclass(kinds[1], kinds[0]) or kinds[1].__name__ == kinds[0].__name__, (
            f"torch: {want.error!r}, compat: {got.error!r}"
        )
        if phrase is not None:
            assert phrase in str(want.error), f"torch says {want.error}"
            assert phrase in str(got.error), f"compat says {got.error}"
    assert_same([plain(x) for x in want.shown], [plain(x) for x in got.shown])
    return want, got
