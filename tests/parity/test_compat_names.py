"""Every public name of torch.autograd stands where torch has it, or in the list of what is missing."""

import importlib

import pytest

import fgrad.compat  # noqa: F401
from tests.parity.both import real_torch

pytestmark = pytest.mark.parity

NESTED = "no nested arguments: torch keeps it for old programs alone"
LAYOUT = "about the memory layout of gradients on a GPU"
THREADS = "passes run in the thread that asks for them"
NAMESPACES = ("", ".function", ".functional", ".forward_ad", ".graph", ".grad_mode", ".gradcheck")
MISSING = {
    "": {
        "profiler": "belongs to the profiler",
        "set_multithreading_enabled": THREADS,
        "enforce_grad_layout_policy": LAYOUT,
        "NestedIOFunction": NESTED,
    },
    ".function": {"NestedIOFunction": NESTED},
    ".graph": {
        "allow_mutation_on_saved_tensors": "saved tensors are checked, never copied on a write",
        "set_warn_on_accumulate_grad_stream_mismatch": "about streams of a GPU",
        "set_override_stale_capture_stream": "about streams of a GPU",
        "region_activation_memory_budget": "about torch.compile",
    },
    ".grad_mode": {"set_multithreading_enabled": THREADS, "enforce_grad_layout_policy": LAYOUT},
    ".forward_ad": {},
}


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_names(namespace):
    real_torch()
    theirs = importlib.import_module("torch.autograd" + namespace)
    ours = importlib.import_module("fgrad.compat.autograd" + namespace)
    wanted = {n for n in getattr(theirs, "__all__", None) or dir(theirs) if not n.startswith("_")}
    if namespace == ".gradcheck":
        wanted = {"gradcheck", "gradgradcheck", "GradcheckError"}
    absent = {n for n in wanted if not hasattr(ours, n)}
    known = set(MISSING.get(namespace, {}))
    assert not absent - known, "neither there nor listed"
    assert not known & set(dir(ours)), "listed as missing, yet there"
