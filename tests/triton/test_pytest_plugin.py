"""The checker as a pytest plugin, in test suites that use nothing else of fgrad."""

import pytest

import fgrad.triton_kernels.check  # loaded here, since pytester unloads what a suite loads
import fgrad.triton_kernels.twin  # noqa: F401

pytest_plugins = ["pytester"]

PLUGIN = "fgrad.triton_kernels.pytest_plugin"
KERNEL = """
import numpy as np
import triton
import triton.language as tl
from fgrad.triton_kernels.runtime import empty, launch


@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n, other=0.0), mask=at < n)


x, out = np.ones(6, np.float32), np.zeros(6, np.float32)
"""


@pytest.fixture
def suite(pytester):
    """Return a function that runs tests with the plugin named in their conftest, and returns the outcome."""
    pytester.makeconftest(f"pytest_plugins = ['{PLUGIN}']")

    def run(body, *options):
        pytester.makepyfile(KERNEL + body)
        return pytester.runpytest("-p", "no:xdist", "-p", "no:cacheprovider", *options)

    return run


def test_a_clean_kernel_passes_and_leaves_its_arguments(suite):
    outcome = suite("""
def test_double(check_triton_kernel):
    check_triton_kernel(double, 2, x, out, 6, BLOCK=4, outputs=["out"])
    assert not out.any()
""")
    outcome.assert_outcomes(passed=1)


def test_a_defect_fails_with_argument_index_program_and_line(suite):
    outcome = suite("""
def test_double(check_triton_kernel):
    check_triton_kernel(double, 2, x, out, 7, BLOCK=4)
""")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*bounds out[[]6[]] in program (1, 0, 0) at *.py:10: store element 6 is outside*"])
    assert "pytest_plugin.py" not in outcome.stdout.str()


def test_functions_that_launch(suite):
    body = """
def doubled(x, n):
    out = empty(x, x.shape, x.dtype)
    launch(double, 2, x, out, n, BLOCK=4)
    return out

def test_all(check_triton_call):
    check_triton_call(doubled, x, 6)

def test_some(check_triton_call):
    check_triton_call(doubled, x, 5)
"""
    outcome = suite(body)
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(["*unwritten out[[]5[]]: 1 of 6 elements are never written"])


@pytest.mark.heavy
def test_targets_from_the_command_line_and_the_ini_file(suite, pytester):
    body = """
def test_threads(check_triton_kernel):
    check_triton_kernel(double, 2, x, out, 6, BLOCK=4, num_warps=32)
"""
    suite(body).assert_outcomes(passed=1)
    suite(body, "--triton-targets=sm_90").assert_outcomes(passed=1)
    suite(body, "--triton-targets=sm_90,gfx942").assert_outcomes(failed=1)
    pytester.makeini("[pytest]\ntriton_targets = gfx942")
    outcome = suite(body)
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*resources: gfx942: 2048 threads, the limit is 1024"])
