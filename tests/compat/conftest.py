"""The stand-in for a GPU, for tensors."""

import importlib.util

if importlib.util.find_spec("triton"):
    from tests.gpu.conftest import card  # noqa: F401  (a fixture)
    from tests.triton.conftest import driver, record  # noqa: F401  (fixtures)
