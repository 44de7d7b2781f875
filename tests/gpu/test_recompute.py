"""Values computed again in later kernels: in the order they need, whatever was taken over before."""

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("triton", reason="Triton's wheels exist for Linux alone, see the extra fgrad[triton]")

import fgrad
import fgrad.numpy as fnp
from fgrad.backend.gpu.program import GpuProgram


def beside_its_log_softmax(x, axis):
    y = abs(x)
    return y + fgrad.nn.log_softmax(y, axis=axis)


def length_of_a_broadcast(x):
    y = fnp.broadcast_to(x, (2,))
    return fnp.sqrt((abs(x) + abs(y)) ** 2 + y * y + 1)


def gradient_of_its_own_rows(x):
    def total(x):
        y = fgrad.nn.logsumexp(abs(x), axis=1)
        return fnp.sqrt(x * x + y * y + 1).sum()

    return fgrad.grad(total)(x)


X = np.random.default_rng(0).normal(size=(6, 40)).astype(np.float32)
CASES = {
    "all of a vector": (lambda x: beside_its_log_softmax(x, 0), X[0]),
    "all of a row": (lambda x: beside_its_log_softmax(x, 1), X[:1]),
    "columns": (lambda x: beside_its_log_softmax(x, 0), X),
    "rows": (lambda x: beside_its_log_softmax(x, 1), X),
    "reshaped": (gradient_of_its_own_rows, X[:2, :1]),
    "reshaped, more": (gradient_of_its_own_rows, X[:, :1]),
    "a number": (length_of_a_broadcast, np.array(3.0, np.float32)),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_computed_again_comes_before_what_needs_it(case):
    function, x = CASES[case]
    program = fgrad.make_ir(function)(x).simplify()
    (result,) = GpuProgram(program).compute(x)
    np.testing.assert_allclose(result, program.compute(x)[0], rtol=1e-5, atol=1e-5)


def test_both_types_of_half_precision_are_compared_in_float32():
    def larger(x, y):
        return fnp.maximum(x, y).sum()

    x, y = X.astype(np.float16), X[::-1].astype(ml_dtypes.bfloat16)
    program = fgrad.make_ir(fgrad.grad(larger, (0, 1)))(x, y).simplify()
    for result, want in zip(GpuProgram(program).compute(x, y), program.compute(x, y), strict=True):
        assert result.dtype == want.dtype
        np.testing.assert_array_equal(result, want)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_what_is_computed_again_equals_what_was_rounded(dtype, axis):
    """The gradient of a maximum goes where the operand equals it."""

    def largest(x):
        return fnp.exp(x).max(axis).astype(np.float32).sum()

    x = X[:, :3].astype(dtype)
    program = fgrad.make_ir(fgrad.grad(largest))(x).simplify()
    (result,), (want,) = GpuProgram(program).compute(x), program.compute(x)
    assert np.count_nonzero(want) == np.count_nonzero(result) > 0
    np.testing.assert_allclose(result.astype(np.float32), want.astype(np.float32), rtol=2e-2)
