"""Programs of tests/compat run on a stand-in for a GPU: the values, gradients and errors of the CPU, all there."""

import contextlib
import re
import warnings

import numpy as np
import pytest

pytest.importorskip("triton", reason="Triton's wheels exist for Linux alone, see the extra fgrad[triton]")

import fgrad.compat as compat
from tests.compat.programs import PROGRAMS, split
from tests.parity.both import data
from tests.parity.test_compat_ops import EXPRESSIONS, NN, cases, program_of

pytestmark = pytest.mark.heavy

ABOUT_THE_CPU = {
    "conversions: NumPy takes tensors",
    "conversions: to",
    "devices: no CUDA",
    "flags: is_tensor and friends",
    "flags: numpy() in no_grad",
    "names: removed functions",
    "x.cpu()",
    "x.get_device()",
}
"""Programs and operations that ask what only holds on the CPU, or share memory with NumPy."""

MADE_ON_THE_CPU = re.compile(
    r"from_numpy|Tensor\(|Variable\(\)|rng_state|get_state|default_generator|_basis|as_tensor\(np"
)
"""What makes tensors of the CPU whatever the default device is."""


def outcome(program, device):
    """Run a program with tensors made on a device; return what it showed."""
    kind, phrase, text = split(program)
    shown = []
    env = {"torch": compat, "np": np, "data": data, "show": shown.append, "warnings": warnings}
    expected = pytest.raises(kind) if kind else contextlib.nullcontext()
    with warnings.catch_warnings(), compat.as_torch(), expected as caught, compat.device(device):
        warnings.simplefilter("ignore")
        compat.manual_seed(0)
        exec(compile(text, "<program>", "exec"), env)
    if kind:
        assert phrase in str(caught.value)
    return shown


def assert_same(there, here, stays):
    """Raise AssertionError unless two shown things agree, and tensors of the first are on the GPU if they must."""
    if isinstance(here, compat.Tensor):
        assert there.is_cuda or not stays or here.is_sparse
        assert (there.dtype, there.shape, there.requires_grad) == (here.dtype, here.shape, here.requires_grad)
        if not here.is_sparse:
            assert (there.grad_fn is None) == (here.grad_fn is None)
            tolerances = {"rtol": 1e-4, "atol": 1e-5} if here.dtype != compat.float64 else {"rtol": 1e-6, "atol": 1e-9}
            numbers = [x.detach().cpu().resolve_conj().numpy() for x in (there, here)]
            np.testing.assert_allclose(*numbers, **tolerances)
    elif isinstance(here, (tuple, list)):
        assert len(there) == len(here)
        for a, b in zip(there, here):
            assert_same(a, b, stays)
    elif isinstance(here, dict):
        assert there.keys() == here.keys()
        for key in here:
            assert_same(there[key], here[key], stays)
    elif isinstance(here, float):
        np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-5)
    elif isinstance(here, str):
        there = there.replace(", device='cuda:0'", "").replace("torch.cuda.", "torch.")
        assert there.split() == here.split()
    else:
        assert type(there) is type(here)
        if isinstance(here, (bool, int)):
            assert there == here


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ABOUT_THE_CPU])
def test_a_program_gives_on_a_gpu_what_it_gives_on_the_cpu(card, name):
    program = PROGRAMS[name]
    assert_same(outcome(program, "cuda"), outcome(program, "cpu"), not MADE_ON_THE_CPU.search(program))


@pytest.mark.parametrize("expression", [e for e in (*cases(EXPRESSIONS), *cases(NN)) if e not in ABOUT_THE_CPU])
def test_an_operation_and_its_derivatives_are_on_a_gpu_what_they_are_on_the_cpu(card, expression):
    program = program_of(expression)
    assert_same(outcome(program, "cuda"), outcome(program, "cpu"), not MADE_ON_THE_CPU.search(expression))


def test_the_programs_left_out_exist():
    assert {*PROGRAMS, *cases(EXPRESSIONS)} >= ABOUT_THE_CPU
