"""Settings every test shares: hypothesis profiles, the oracles' presence, and measured figures in the summary."""

import gc
import importlib.util
import os

import pytest
from hypothesis import HealthCheck, settings

# Machines are shared: a deadline or a slow draw says nothing about the code.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None)
settings.register_profile("fast", settings.get_profile("ci"), max_examples=10)
settings.register_profile("slow", settings.get_profile("dev"), max_examples=1_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.fixture
def no_collector():
    """Turn the cycle collector off, so that what is freed is freed by reference count; it leaves alone what is there.

    `gc.get_objects` lists what is made from here on: thousands of tests have left too much to look through.
    """
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


ORACLES = ("torch", "jax", "autograd")


def pytest_configure(config):
    """Refuse to run the parity tests without an oracle: they would be skipped and look passed."""
    if config.option.markexpr != "parity":
        return
    missing = [name for name in ORACLES if importlib.util.find_spec(name) is None]
    if missing:
        raise pytest.UsageError(f"parity tests need {', '.join(missing)}: run `make test-parity`")


def pytest_terminal_summary(terminalreporter):
    """Show what tests measured with `record_property`: figures are reported, they never decide a test."""
    passed = terminalreporter.stats.get("passed", [])
    figures = [
        f"{name}: {value}" for report in passed if report.when == "call" for name, value in report.user_properties
    ]
    if figures:
        terminalreporter.section("measured")
    for figure in figures:
        terminalreporter.write_line(figure)
