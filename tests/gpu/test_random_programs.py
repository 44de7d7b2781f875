"""Random programs cut into generated kernels give what NumPy gives: forward and gradient, and the checker is silent."""

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("triton", reason="Triton's wheels exist for Linux alone, see the extra fgrad[triton]")

from hypothesis import HealthCheck, given, settings

import fgrad
import fgrad.numpy as fnp
from fgrad.backend.gpu import fusion, source
from fgrad.backend.gpu.program import GpuProgram
from fgrad.triton_kernels import check_call
from tests.gpu.programs import programs

SINGLE = (np.float32, np.float64)
INTEGERS = (np.int32, np.int8, np.uint8, np.bool_, np.float32)

few = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
many = settings(few, max_examples=2000, derandomize=False)


def compare(function, arguments):
    """Run a function's Program on the twin and on NumPy.

    Half precision is rounded by NumPy after every operation, by kernels when it is stored: the tolerance is that of
    the narrowest type, and counts from the largest value of a result.
    """
    program = fgrad.make_ir(function)(*arguments).simplify()
    with np.errstate(all="ignore"):
        expected = program.compute(*arguments)
        results = GpuProgram(program).compute(*arguments)
    dtypes = {a.type.dtype.name for eq in program.equations for a in (*eq.inputs, *eq.outputs)}
    tolerance = 0.1 if "bfloat16" in dtypes else 0.02 if "float16" in dtypes else 2e-4
    for result, want in zip(results, expected, strict=True):
        assert (result.dtype, result.shape) == (want.dtype, want.shape)
        wide = want.astype(np.float64)
        scale = np.abs(wide[np.isfinite(wide)]).max(initial=1e-3)
        np.testing.assert_allclose(result.astype(np.float64), wide, rtol=tolerance, atol=tolerance * scale)


def gradient_of(function, arguments):
    """Return the gradient, by all arguments, of a sum of what a function returns, no two elements weighed alike."""

    def weighed(y):
        weights = fnp.cos(fnp.arange(y.size, dtype=np.float32)).reshape(y.shape)
        return fnp.sum(y.astype(np.float32) * weights)

    def loss(*xs):
        return sum([weighed(y) for y in function(*xs)], np.float32(0))

    return fgrad.grad(loss, tuple(range(len(arguments))))


def findings(function, arguments):
    """Return what the checker finds in the kernels of a function."""
    compiled = GpuProgram(fgrad.make_ir(function)(*arguments).simplify())
    with np.errstate(all="ignore"):
        return check_call(compiled.compute, *arguments, overflow=False)


def forward(case):
    compare(*case)


def gradient(case):
    compare(gradient_of(*case), case[1])


def checked(case):
    function, arguments = case
    assert findings(function, arguments) == []
    assert findings(gradient_of(function, arguments), arguments) == []


@pytest.fixture
def little_room(monkeypatch):
    """Let rows of 9 be long beside totals, rows of 17 too long for registers, and three of those few."""
    monkeypatch.setattr(fusion.Domain.__new__, "__defaults__", ((), (), 16))
    for module, limits in (
        (fusion, {"LONGEST_SHARE": 8, "MOST_PARTS": 8, "FEW_ROWS": 4, "ENOUGH_ROWS": 4, "LONGEST_APART": 4}),
        (source, {"LONGEST_ROW": 16, "LONGEST_APART": 16, "LONGEST_HELD": 4, "LONGEST_WITH_TOTALS": 8}),
        (source, {"ROWS_A_PART": 2, "ELEMENTS": 8, "MOST_PARTS": 8}),
    ):
        for name, value in limits.items():
            monkeypatch.setattr(module, name, value)


WIDE = (1, 2, 11, 17)

KINDS = {
    "forward": (forward, programs()),
    "forward, NaN and inf": (forward, programs(dtypes=SINGLE, tame=False)),
    "forward, integers": (forward, programs(dtypes=INTEGERS)),
    "gradient": (gradient, programs(dtypes=SINGLE)),
    "gradient, half precision": (gradient, programs(dtypes=(np.float16, ml_dtypes.bfloat16), most=4)),
    "checked": (checked, programs(dtypes=SINGLE, most=6)),
}


@pytest.mark.heavy
@pytest.mark.parametrize("kind", KINDS)
def test_random_programs(kind):
    test, cases = KINDS[kind]
    few(given(cases)(test))()


LONG_ROWS = {
    "forward": (forward, programs(sizes=WIDE)),
    "forward, NaN and inf": (forward, programs(dtypes=SINGLE, tame=False, sizes=WIDE)),
    "forward, integers": (forward, programs(dtypes=INTEGERS, sizes=WIDE)),
    "gradient": (gradient, programs(dtypes=SINGLE, most=5, sizes=WIDE)),
    "gradient, half precision": (gradient, programs(dtypes=(np.float16, ml_dtypes.bfloat16), most=3, sizes=WIDE)),
    "checked": (checked, programs(dtypes=SINGLE, most=4, sizes=WIDE)),
}


@pytest.mark.heavy
@pytest.mark.parametrize("kind", LONG_ROWS)
def test_random_programs_of_long_rows(kind, little_room):
    test, cases = LONG_ROWS[kind]
    settings(few, max_examples=25)(given(cases)(test))()


@pytest.mark.slow
@pytest.mark.parametrize("kind", LONG_ROWS)
def test_many_random_programs_of_long_rows(kind, little_room):
    test, cases = LONG_ROWS[kind]
    many(given(cases)(test))()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_random_programs(kind):
    test, cases = KINDS[kind]
    many(given(cases)(test))()
