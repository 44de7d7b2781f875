"""The memory that a profile follows: what is taken and given back, by whom, and what for."""

import gc
import weakref

import numpy as np

import fgrad
import fgrad.compat as torch
import fgrad.numpy as fnp


def entries(prof):
    """Return the timeline as (bytes, kind, name of the maker)."""
    return [(m.bytes, m.kind, m.event.name if m.event else None) for m in prof.function_events.memory]


def balance(prof):
    """Return the bytes of each kind at the end."""
    found = {"value": 0, "saved": 0, "gradient": 0}
    for nbytes, kind, _ in entries(prof):
        found[kind] += nbytes
        assert found[kind] >= 0
    return found


def test_values():
    with fgrad.profile(profile_memory=True) as prof:
        x = fnp.tanh(np.ones(100))
        y = fnp.exp(x)
        del x
    assert entries(prof) == [(800, "value", "tanh"), (800, "value", "exp"), (-800, "value", "tanh")]
    assert [e.allocated_bytes for e in prof.function_events] == [800, 800]
    assert balance(prof)["value"] == y.nbytes


def test_what_dies_after_the_block_is_not_part_of_it():
    with fgrad.profile(profile_memory=True) as prof:
        x = fnp.tanh(np.ones(100))
    del x
    assert entries(prof) == [(800, "value", "tanh")]


def test_results_of_generated_code():
    f = fgrad.jit(lambda x: x * 2)
    f(np.ones(100))
    with fgrad.profile(profile_memory=True) as prof:
        y = f(np.ones(100))
    assert [(nbytes, kind, name.partition(":")[0]) for nbytes, kind, name in entries(prof)] == [
        (y.nbytes, "value", "generated")
    ]


def test_views_and_arrays_that_were_there_take_nothing():
    x = np.ones((2, 3))
    with fgrad.profile(profile_memory=True) as prof:
        fnp.reshape(x, (6,))
        fnp.asarray(x)
    assert entries(prof) == []


def test_what_is_saved_for_a_backward_pass():
    x = torch.ones(100, requires_grad=True)
    with torch.autograd.profiler.profile(profile_memory=True) as prof:
        y = x.exp()
        loss = y.sum()
        del y
        loss.backward()
    found = entries(prof)
    saved = [e for e in found if "saved" in e]
    assert saved == [(400, "saved", "exp"), (-400, "saved", "exp")]
    assert (400, "gradient", "torch::autograd::AccumulateGrad") in found
    assert balance(prof) == {"value": loss.nbytes, "saved": 0, "gradient": x.grad.nbytes}


def test_what_a_functional_tape_saves_goes_with_it():
    with fgrad.profile(profile_memory=True) as prof:
        fgrad.grad(lambda x: (np.tanh(x) * x).sum())(np.ones(100))
        gc.collect()
    assert {kind for _, kind, _ in entries(prof)} == {"value", "saved", "gradient"}
    assert sum(balance(prof).values()) <= 800


def test_several_nodes_may_save_one_array():
    x = torch.ones(100, requires_grad=True)
    with torch.autograd.profiler.profile(profile_memory=True) as prof:
        y = x.exp()
        (y * y).sum().backward()
    assert [e for e in entries(prof) if e[1] == "saved"] == [(400, "saved", "exp"), (-400, "saved", "exp")]
    assert balance(prof)["value"] == y.nbytes


def test_in_place_takes_nothing():
    x = torch.ones(100)
    with torch.autograd.profiler.profile(profile_memory=True) as prof:
        x.add_(1)
        x.zero_()
    assert balance(prof) == {"value": 0, "saved": 0, "gradient": 0}


def test_events_have_what_they_took_with_and_without_those_inside():
    x = np.ones((4, 4), np.float32)
    with fgrad.profile(profile_memory=True) as prof, fgrad.record_function("block"):
        y = fnp.exp(fnp.matmul(x, x))
    block = prof.function_events[0]
    assert (block.self_allocated_bytes, block.allocated_bytes) == (-64, y.nbytes)
    assert block.cpu_memory_usage == y.nbytes and block.self_cpu_memory_usage == -64
    (row,) = [e for e in prof.key_averages() if e.key == "block"]
    assert row.cpu_memory_usage == y.nbytes


def test_nothing_is_kept_alive():
    with fgrad.profile(profile_memory=True) as prof:
        x = fnp.tanh(np.ones(10))
        gone = weakref.ref(x)
        del x
        assert gone() is None
    assert prof.function_events
