"""Sessions: schedules with bounded memory, threads, profilers within profilers, entering again."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fgrad
import fgrad.compat as torch
import fgrad.numpy as fnp
from benchmarks import profiling
from fgrad.core import state
from fgrad.profiler import ProfilerAction, probes, schedule
from tests.profiler.shapes import check_times, count
from tests.threads import needs_fork, while_forking, with_threads

X = np.ones(2)


def names(prof):
    return [e.name for e in prof.function_events]


# ------------------------------------------------------------------------------------------------------- schedules


def run(plan, steps, **options):
    """Return what was handed over: for each cycle the names of its events."""
    cycles = []
    logs = []
    with fgrad.profile(schedule=plan, on_trace_ready=lambda p: cycles.append(names(p)), **options) as prof:
        for k in range(steps):
            with fgrad.record_function(f"work {k}"):
                pass
            logs.append(sum(len(o.records) for o in prof._observers))
            prof.step()
    return cycles, logs, prof


def test_cycles():
    cycles, logs, _ = run(schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1), 12)
    assert [[n for n in cycle if n.startswith("work")] for cycle in cycles] == [
        ["work 3", "work 4"],
        ["work 7", "work 8"],
    ]
    assert cycles[0] == ["ProfilerStep#3", "work 3", "ProfilerStep#4", "work 4"]
    assert max(logs) <= 4


def test_nothing_is_observed_while_waiting():
    with fgrad.profile(schedule=schedule(wait=2, warmup=0, active=1)) as prof:
        assert state.interpreter is None and probes._users == 0
        prof.step()
        prof.step()
        assert state.interpreter is not None
        fnp.tanh(X)
    assert names(prof) == ["ProfilerStep#2", "tanh"]


def test_what_warms_up_when_the_block_ends_is_forgotten():
    _, _, prof = run(schedule(wait=0, warmup=5, active=1), 3)
    assert names(prof) == []


def test_a_cycle_that_the_block_cuts_short_is_handed_over():
    cycles, _, _ = run(schedule(wait=0, warmup=0, active=10), 3)
    assert [n for n in cycles[0] if n.startswith("work")] == ["work 0", "work 1", "work 2"]


def test_steps_without_a_schedule():
    cycles, _, prof = run(None, 2)
    assert len(cycles) == 1 and count(prof.function_events)["work 1"] == 1


def test_the_table_of_actions():
    plan = schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=1)
    n, w, r, s = ProfilerAction
    assert [plan(k) for k in range(7)] == [n, n, w, r, s, n, n]


@pytest.mark.parametrize(("key", "value"), [("wait", -1), ("active", 0), ("repeat", -2)])
def test_wrong_schedules(key, value):
    with pytest.raises(ValueError, match=f"Invalid profiler schedule arguments: {key}={value}"):
        schedule(**{"wait": 0, "warmup": 0, "active": 1, key: value})


# --------------------------------------------------------------------------------------------- nested, and again


def test_profilers_within_profilers():
    with fgrad.profile() as outer:
        fnp.tanh(X)
        with fgrad.profile(record_shapes=False) as inner:
            fnp.exp(X)
            with fgrad.record_function("block"):
                fnp.log(X)
        fnp.sin(X)
    assert names(outer) == ["tanh", "exp", "block", "log", "sin"]
    assert names(inner) == ["exp", "block", "log"]
    for prof in (outer, inner):
        check_times(prof.function_events)
    same = {e.name: e for e in outer.function_events}
    assert all(e.total_ns == same[e.name].total_ns for e in inner.function_events)
    assert state.interpreter is None and probes._users == 0


def test_backward_passes_in_profilers_within_profilers():
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.profiler.profile() as outer, torch.autograd.profiler.profile() as inner:
        (x * 2).sum().backward()
        fgrad.grad(lambda x: (x * x).sum())(X)
    for prof in (outer, inner):
        assert [e.forward.name for e in prof.function_events if e.forward] == ["sum", "mul", "sum", "mul"]


def test_a_profiler_on_each_side_of_a_transform():
    inner = fgrad.profile()

    def fun(x):
        with inner:
            return x * x

    with fgrad.profile() as outer:
        fgrad.grad(fun)(3.0)
    assert names(inner) == ["mul"] and count(outer.function_events)["mul pull"] == 1


def test_entering_again_adds():
    prof = fgrad.profile()
    with prof:
        fnp.tanh(X)
    with prof:
        fnp.exp(X)
    assert names(prof) == ["tanh", "exp"] and len(prof.function_events.spans) == 2
    check_times(prof.function_events)


def test_entering_twice_counts_once():
    prof = fgrad.profile()
    with prof:
        with prof:
            fnp.tanh(X)
        fnp.exp(X)
    assert names(prof) == ["tanh", "exp"]


def test_leaving_in_another_order():
    first, second = fgrad.profile(), fgrad.profile()
    first.__enter__()
    second.__enter__()
    first.__exit__()
    fnp.tanh(X)
    second.__exit__()
    assert state.interpreter is None and probes._users == 0
    assert names(first) == [] and names(second) == ["tanh"]


# --------------------------------------------------------------------------------------------------------- threads


def test_threads_started_inside_are_observed():
    def work():
        fnp.tanh(X)
        x = torch.ones(2, requires_grad=True)
        (x * 2).sum().backward()

    with fgrad.profile() as prof:
        threads = [threading.Thread(target=work, name=f"worker {k}") for k in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    events = prof.function_events
    check_times(events)
    assert count(events)["tanh"] == count(events)["MulBackward0"] == 3
    assert len({e.thread for e in events}) == 3
    assert {name for _, name, _, _ in events.spans} == {"MainThread", "worker 0", "worker 1", "worker 2"}
    assert all(e.forward.thread == e.thread for e in events if e.forward is not None)


def test_one_name_for_several_threads_at_once():
    named = fgrad.record_function("shared")
    entered = threading.Event(), threading.Event()

    def first():
        with named:
            entered[0].set()
            entered[1].wait()
            fnp.exp(X)
        left.set()

    def second():
        entered[0].wait()
        with named:
            entered[1].set()
            left.wait()  # the other has left what it entered before
            fnp.tanh(X)

    left = threading.Event()
    with fgrad.profile() as prof:
        threads = [threading.Thread(target=work) for work in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    check_times(prof.function_events)
    assert count(prof.function_events) == {"shared": 2, "exp": 1, "tanh": 1}
    assert all(e.parent.name == "shared" for e in prof.function_events if e.name != "shared")


def test_a_thread_that_runs_already_joins_by_entering():
    prof = fgrad.profile()
    go, done = threading.Event(), threading.Event()

    def work():
        go.wait()
        fnp.exp(X)
        with prof:
            fnp.tanh(X)
        fnp.exp(X)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    with prof:
        go.set()
        done.wait()
        fnp.sin(X)
    thread.join()
    assert sorted(names(prof)) == ["sin", "tanh"]


def test_other_threads_are_left_alone():
    go, done = threading.Event(), threading.Event()
    seen = []

    def work():
        go.wait()
        seen.append(fgrad.grad(lambda x: (x * x).sum())(X))
        seen.append((torch.ones(2) * 2).tolist())
        seen.append(fgrad.jit(np.tanh)(X))
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    with fgrad.profile() as prof:
        go.set()
        done.wait()
    thread.join()
    assert names(prof) == [] and len(seen) == 3


def test_a_pool_that_outlives_the_block_is_observed_no_more():
    pool = ThreadPoolExecutor(1)
    with fgrad.profile() as prof:
        pool.submit(fnp.tanh, X).result()
    assert names(prof) == ["tanh"]
    pool.submit(fnp.exp, X).result()
    pool.shutdown()
    assert names(prof) == ["tanh"]
    assert probes._users == 0


def test_backward_of_many_threads_at_once():
    x = torch.ones(4, requires_grad=True)

    def work(prof):
        with prof:
            for _ in range(20):
                (x * x).sum().backward()

    prof = torch.autograd.profiler.profile()
    threads = [threading.Thread(target=work, args=(prof,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_times(prof.function_events)
    assert count(prof.function_events)["MulBackward0"] == 80
    assert x.grad.tolist() == [160.0] * 4


# ---------------------------------------------------------------------------------------------------------- the cost


@pytest.mark.heavy
def test_what_it_costs_is_measured(record_property):
    for row in profiling.measure(samples=20):
        assert row.events > 0
        record_property(f"profile, {row.name}: ns by event", f"{row.shapes:.0f}, {row.plain:.0f} without shapes")
    before, after = profiling.left_behind(samples=20)
    record_property("a tensor operation before and after a profile, ns", f"{before:.0f}, {after:.0f}")


@needs_fork
@with_threads
def test_forks_while_other_threads_enter_and_leave():
    def enter():
        with fgrad.profile():
            pass

    def job():
        with fgrad.profile() as prof:
            fnp.sin(X)
        assert names(prof) == ["sin"]

    while_forking(enter, job)
