"""The kernel families under test: `test_battery.py` runs every rule on every family.

What they compute, and on what, is said in `fgrad.triton_kernels.bench.workloads`; here is what only tests need. A new
kernel gets a line in `KNOWN`, and tests of its own only for what no other kernel has.
"""

import numpy as np

from fgrad.triton_kernels.bench.of_products import linear_cross_entropies
from fgrad.triton_kernels.bench.workloads import WORKLOADS
from tests.triton.family import family, huge_rows

# The rows of norms have mean 100 and deviation 5: the difference from the mean alone costs a factor of 20.
_NORM = {"tolerance": 64.0}
_CARRIES = {"reduces_rows": False, "linear": True}  # moves numbers, or multiplies them by numbers of its own
_PRODUCT = {"tolerance": 16.0}  # what is multiplied is rounded before


def _zeros(*shapes):
    return lambda dtype: tuple(np.zeros(shape, dtype) for shape in shapes)


def _huge_logits(dtype):
    return *huge_rows(dtype), np.zeros(70_000, np.int64)


def _huge_state(states):
    def huge(dtype):
        return tuple(np.zeros((70_000, 40_000), kind) for kind in (dtype, dtype, *[np.float32] * states))

    return huge


def _huge_sequences(dtype):
    size = 2**27 + 64  # the second sequence ends beyond 2**31 elements
    starts = np.array([0, 48, size])
    return *[np.zeros((size, 16), dtype) for _ in range(3)], starts, starts


_WIDE_ROWS = (70_000, 40_000)
_OPERANDS = ((70_000, 64, 512), (70_000, 512, 16))
_HEADS = ((70_000, 1, 64, 512),) * 3

KNOWN = {
    "cross_entropy": {"huge": _huge_logits},
    "cross_entropy smoothed": {"huge": _huge_logits},
    "cross_entropy weighted": {
        "huge": lambda dtype: (*_huge_logits(dtype), np.zeros(40_000, dtype)),
        "tolerance": 16.0,
    },
    "softmax": {"huge": huge_rows},
    "log_softmax": {"huge": huge_rows},
    "layer_norm": {"huge": _zeros(_WIDE_ROWS, 40_000, 40_000), **_NORM},
    "rms_norm": {"huge": _zeros(_WIDE_ROWS, 40_000), **_NORM},
    "group_norm": {
        "huge": _zeros((70_000, 20_000, 2), 20_000, 20_000),
        "reduces_rows": False,
        "wide": (4097,),
        **_NORM,
    },
    "sum": {"huge": huge_rows, "linear": True},
    "mean": {"huge": huge_rows, "linear": True},
    "max": {"huge": huge_rows},
    "logsumexp": {"huge": huge_rows},
    "argmax": {"huge": huge_rows, "keeps_rows_apart": False, "linear": True},
    "cumsum": {"huge": huge_rows, "tolerance": 16.0, **_CARRIES},
    # 1 - tanh² and 1 - sigmoid lose digits.
    "gelu": {"huge": huge_rows, "reduces_rows": False, "tolerance": 16.0, "wide": (4097,)},
    "gelu_tanh gated": {
        "huge": _zeros(_WIDE_ROWS, _WIDE_ROWS),
        "reduces_rows": False,
        "tolerance": 16.0,
        "wide": (4097,),
    },
    "silu gated": {"huge": _zeros(_WIDE_ROWS, _WIDE_ROWS), "reduces_rows": False, "tolerance": 16.0, "wide": (4097,)},
    "dropout": {"huge": huge_rows, **_CARRIES},
    "rope": {"huge": _zeros((70_000, 32_768), (70_000, 16_384), (70_000, 16_384)), **_CARRIES},
    "embedding": {"huge": lambda dtype: (*huge_rows(dtype), np.arange(70_000)), **_CARRIES},
    "gather": {"huge": lambda dtype: (*huge_rows(dtype), np.arange(40_000)), "wide": (1025,), **_CARRIES},
    "scatter_add": {
        "huge": lambda dtype: (*huge_rows(dtype), np.arange(70_000), *huge_rows(dtype)),
        **_CARRIES,
    },
    "transpose": {"huge": _zeros((70_000, 20_000, 2)), "wide": (4097,), **_CARRIES},
    "linear_cross_entropy": {
        "huge": lambda dtype: (*_zeros((2, 40_000), (60_000, 40_000))(dtype), np.zeros(2, np.int64)),
        "wide": (4097,),
        **_PRODUCT,
    },
    "matmul": {"huge": _zeros(*_OPERANDS), "linear": True, "tolerance": 8.0, "wide": (4097,)},
    "linear": {"huge": _zeros(*_OPERANDS, 16), "wide": (4097,), **_PRODUCT},
    "attention": {"huge": _zeros(*_HEADS), "wide": (1025,), **_PRODUCT},
    "attention causal": {"huge": _zeros(*_HEADS), "wide": (1025,), **_PRODUCT},
    "attention with bias and dropout": {"huge": _zeros(*_HEADS, (70_000, 1, 64, 64)), "wide": (1025,), **_PRODUCT},
    "attention ragged": {"huge": _huge_sequences, "wide": (1025,), **_PRODUCT},
    "adamw": {"huge": _huge_state(2), **_CARRIES},
    "sgd": {"huge": _huge_state(1), **_CARRIES},
    "clip_by_norm": {"huge": huge_rows, "keeps_rows_apart": False, **_CARRIES},
}


def _families():
    # Chunks of two rows, so that few rows make several.
    chunked = {workload.name: workload for workload in (linear_cross_entropies(chunk=2),)}
    return [family(chunked.get(workload.name, workload), **KNOWN[workload.name]) for workload in WORKLOADS]


FAMILIES = _families()
