"""A pytest plugin: the kernel checker as fixtures, for tests of Triton kernels that use nothing else from here.

In conftest.py at the root of the tests: `pytest_plugins = ["fgrad.triton_kernels.pytest_plugin"]`. The targets that
kernels are compiled for come from the ini option `triton_targets` or the command line's `--triton-targets`.
"""

import pytest

_HELP = "GPUs that check_triton_kernel compiles for as well, such as sm_90 gfx942"


def pytest_addoption(parser):
    """Add `--triton-targets` and the ini option `triton_targets`."""
    parser.addini("triton_targets", _HELP, type="args", default=[])
    parser.getgroup("triton").addoption("--triton-targets", metavar="NAMES", help=f"{_HELP}, separated by commas")


@pytest.fixture(scope="session")
def triton_targets(pytestconfig):
    """Return the names of the GPUs that kernels are compiled for."""
    given = pytestconfig.getoption("--triton-targets")
    return tuple(pytestconfig.getini("triton_targets") if given is None else filter(None, given.split(",")))


@pytest.fixture
def check_triton_kernel(triton_targets):
    """Return `check(kernel, grid, *args, outputs=…, …)`: run a kernel without a GPU, fail the test for what is wrong.

    Arguments are those of `check_kernel`. Accesses out of bounds, races, overflow, undefined values, unwritten outputs
    and limits of the targets fail the test, with program, argument, index and source line. The arguments are left as
    they were; call `interpret` for the kernel's results.
    """
    from .check import check_kernel

    def check(kernel, grid, *args, **options):
        __tracebackhide__ = True
        _fail(check_kernel(kernel, grid, *args, **{"targets": triton_targets, **options}))

    return check


@pytest.fixture
def check_triton_call(triton_targets):
    """Return `check(function, *args, …)`: the same for every kernel that a function launches with `runtime.launch`."""
    from .check import check_call

    def check(function, *args, **options):
        __tracebackhide__ = True
        _fail(check_call(function, *args, **{"targets": triton_targets, **options}))

    return check


def _fail(findings):
    __tracebackhide__ = True
    if findings:
        pytest.fail("\n".join(map(str, findings)))
