"""The oracles as fixtures."""

import pytest


@pytest.fixture(scope="module")
def jax():
    """Return jax with 64-bit types on, compiling fast rather than to fast code."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_disable_most_optimizations", True)
    with jax.enable_x64(True):
        yield jax
    jax.config.update("jax_disable_most_optimizations", False)
