"""Values computed again in later kernels: in the order they need, whatever was taken over before."""

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


X = np.random.default_rng(0).normal(size=(6, 40)).astype(np.float32)
CASES = {
    "all of a vector": (lambda x: beside_its_log_softmax(x, 0), X[0]),
    "all of a row": (lambda x: beside_its_log_softmax(x, 1), X[:1]),
    "columns": (lambda x: beside_its_log_softmax(x, 0), X),
    "rows": (lambda x: beside_its_log_softmax(x, 1), X),
    "a number": (length_of_a_broadcast, np.array(3.0, np.float32)),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_computed_again_comes_before_what_needs_it(case):
    function, x = CASES[case]
    program = fgrad.make_ir(function)(x).simplify()
    (result,) = GpuProgram(program).compute(x)
    np.testing.assert_allclose(result, program.compute(x)[0], rtol=1e-5, atol=1e-5)
