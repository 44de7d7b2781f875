"""Profiles of Programs on a GPU show every kernel and call, and mark what no Triton kernel computes."""

import numpy as np
import pytest

pytest.importorskip("triton", reason="Triton's wheels exist for Linux alone, see the extra fgrad[triton]")

import fgrad
import fgrad.numpy as fnp
from fgrad import kernels
from fgrad.profiler.events import SOURCES

X, W = np.ones((4, 5), np.float32), np.ones((5, 6), np.float32)
MARK = "no Triton kernel"


def profiled(f, *args):
    """Return the profile of a call that compiles nothing."""
    f(*args)
    with fgrad.profile() as prof:
        f(*args)
    return prof


def parts(prof):
    found = [e for e in prof.function_events if e.category == "kernel"]
    assert {e.source for e in found} <= set(SOURCES)
    return [(e.name, e.source) for e in found]


def test_parts_of_a_program_are_events():
    f = fgrad.jit(lambda x, w: (fnp.sort(fnp.tanh(x @ w).T, 1) * 2).sum(), device="twin")
    prof = profiled(f, X, W)
    assert parts(prof) == [
        ("fused_product", "hand-written"),
        ("sort", MARK),
        ("kernel: mul, reduce_sum", "generated"),
    ]
    row = next(line for line in prof.table().splitlines() if line.startswith("sort"))
    assert MARK in row
    product, *_ = (e for e in prof.function_events if e.category == "kernel")
    assert product.bytes == X.nbytes + W.nbytes + 4 * 6 * 4
    (region,) = (e for e in prof.function_events if e.category == "region")
    assert region.total_bytes == sum(e.bytes for e in prof.function_events if e.category == "kernel")


def test_pairs_are_kernels():
    f = fgrad.jit(fgrad.grad(lambda x: kernels.softmax(x, impl="triton").sum()), device="twin")
    marks = dict(parts(profiled(f, X)))
    assert marks["kernels.softmax_backward"] == "hand-written"
    assert MARK not in marks.values()


def test_both_passes_of_a_transform_are_seen():
    f = fgrad.jit(lambda x: (fnp.cumprod(x, 1) ** 2).sum(), device="twin")
    found = parts(profiled(fgrad.grad(f), X))
    assert ("cumprod", MARK) in found
    assert sum(source == "generated" for _, source in found) >= 2


@pytest.mark.parametrize("name", ["eigh", "fft"])
def test_what_runs_on_copies_is_marked(card, name):
    function = {"eigh": fnp.linalg.eigvalsh, "fft": fnp.fft.fft}[name]
    f = fgrad.jit(lambda x: function(x @ x.T + 1), device="cuda")
    assert any(source == MARK for _, source in parts(profiled(f, X)))


def test_nothing_is_observed_without_a_profile():
    from fgrad.backend.gpu import program

    f = fgrad.jit(fnp.tanh, device="twin")
    f(X)
    assert program.run_part.__module__ == "fgrad.backend.gpu.program"
