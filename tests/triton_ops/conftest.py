"""As the kernels themselves, the operations made of them are skipped, with the reason, where Triton has no wheel."""

from tests.triton.conftest import driver as driver
from tests.triton.conftest import pytest_pycollect_makemodule as pytest_pycollect_makemodule
from tests.triton.conftest import record as record
