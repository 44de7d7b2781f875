"""What a profile of functional code holds: names, nesting, shapes, costs and ties, never times."""

import threading

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.core import Primitive, state
from fgrad.profiler import measured_ceiling
from tests.profiler.shapes import check_times, count, inside, outline


def observed(fun, *args, **options):
    """Return the events of one call."""
    with fgrad.profile(**options) as prof:
        fun(*args)
    check_times(prof.function_events)
    return prof.function_events


def loss(x):
    return (np.tanh(x) * x).sum()


def test_primitives_and_pulls():
    events = observed(fgrad.grad(loss), np.ones(3))
    assert outline(events) == [
        "tanh",
        "mul",
        "reduce_sum",
        ["reduce_sum pull", "reshape", "broadcast"],
        ["mul pull", "mul", "mul"],
        ["tanh pull", "mul", "sub", "mul"],
    ]


def test_pulls_are_tied_to_what_recorded_them():
    events = observed(fgrad.grad(loss), np.ones(3))
    pulls = [e for e in events if e.category == "backward"]
    assert [e.forward.name for e in pulls] == ["reduce_sum", "mul", "tanh"]
    assert all(e.forward.backward == [e] and e.sequence_nr == e.forward.sequence_nr > 0 for e in pulls)
    assert all(e.sequence_nr == -1 for e in events if not e.backward and e.forward is None)


def test_a_pullback_made_before_is_seen():
    _, pull = fgrad.vjp(loss, np.ones(3))
    events = observed(pull, 1.0)
    assert [e.name for e in events if e.parent is None] == ["reduce_sum pull", "mul pull", "tanh pull"]
    assert all(e.forward is None and e.sequence_nr == -1 for e in events)


def test_second_derivatives():
    events = observed(fgrad.grad(fgrad.grad(lambda x: x**3)), 2.0)
    assert {e.name for e in events if e.category == "backward"} >= {"pow pull", "mul pull"}


def test_shapes_dtypes_and_costs():
    x, y = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    (event,) = observed(fnp.matmul, x, y)
    assert event.input_shapes == [[2, 3], [3, 4]] and event.output_shapes == [[2, 4]]
    assert event.input_dtypes == ["float32", "float32"]
    assert event.flops == 2 * 2 * 3 * 4
    assert event.bytes == 4 * (6 + 12 + 8)
    assert event.source == "NumPy" and event.category == "primitive" and event.device == "cpu"


def test_views_move_no_bytes():
    events = observed(lambda x: fnp.reshape(fnp.transpose(x), (3, 2, 1)), np.ones((2, 3)))
    assert [(e.name, e.bytes) for e in events] == [("transpose", 0), ("reshape", 0)]


@pytest.mark.parametrize(
    ("x", "shape", "dtype"),
    [(np.ones((0, 2)), [0, 2], "float64"), (np.float16(1), [], "float16"), (2.0, [], "float"), (3, [], "int")],
)
def test_edge_operands(x, shape, dtype):
    events = observed(lambda: fgrad.ops.elementwise.mul(x, x))
    assert events[0].input_shapes == [shape, shape] and events[0].input_dtypes == [dtype, dtype]


def test_nothing_but_names_and_times_without_shapes():
    events = observed(fnp.tanh, np.ones(3), record_shapes=False)
    assert events[0].input_shapes == [] and events[0].bytes == events[0].flops == 0


def test_flops_are_optional():
    assert observed(fnp.tanh, np.ones(3), with_flops=False)[0].flops == 0


def test_jit_has_rows_for_tracing_compiling_and_running():
    f = fgrad.jit(loss)
    first, second = observed(f, np.ones(3)), observed(f, np.ones(3))
    assert [e.category for e in first] == ["jit", "trace", "compile", "region"]
    assert [e.category for e in second] == ["jit", "region"]
    assert first[0].name.startswith("jit of loss (test_functional.py:")
    assert [e.name.split(":")[0] for e in first[1:]] == ["trace", "compile", "generated"]
    region = second[-1]
    assert region.source == "generated" and region.input_shapes == [[3]] and region.flops > 0 and region.bytes > 0


def test_the_quick_way_into_a_jitted_function_is_there_again_afterwards():
    f = fgrad.jit(loss)
    f(np.ones(3))
    guard = f._guard
    assert guard is not None
    observed(f, np.ones(3))
    assert f._guard is guard
    f(np.ones(3))
    assert f.cache_info().hits == 2


def test_a_cleared_cache_is_clear():
    factor = [2.0]
    f = fgrad.jit(lambda x: x * factor[0])
    with fgrad.profile():
        assert f(1.0) == f(1.0) == 2.0
        factor[0] = 3.0
        f.clear_cache()
        assert f(1.0) == 3.0
    factor[0] = 4.0
    f.clear_cache()
    with fgrad.profile():
        assert f(1.0) == f(1.0) == 4.0


def test_tiled_regions():
    f = fgrad.jit(lambda x: (np.exp(np.tanh(x) * x) + x) * 2)
    x = np.ones((512, 1024), np.float32)
    f(x)
    events = observed(f, x)
    assert [e.name.split(":")[0] for e in events] == ["jit of <lambda> (test_functional.py", "generated", "tiles"]


def test_jit_under_grad_and_grad_under_jit():
    events = observed(fgrad.grad(fgrad.jit(loss)), np.ones(3))
    forward = next(e for e in events if e.name.startswith("call: jit of loss"))
    assert inside(forward)[1:] == ["tanh", "mul", "reduce_sum"]
    assert forward.bytes == 0 and forward.total_bytes == sum(e.bytes for e in forward.children)
    events = observed(fgrad.jit(fgrad.grad(loss)), np.ones(3))
    assert [e.category for e in events if e.parent is None] == ["jit"]


def test_kernels():
    double = fgrad.kernel_op(lambda x: 2 * x, lambda ct: 2 * ct, lambda x: x + x, name="double_it")
    events = observed(fgrad.grad(lambda x: double(x).sum()), np.ones(3))
    kernels = [e for e in events if e.category == "kernel"]
    assert [e.name for e in kernels] == ["double_it", "double_it_backward"]
    assert {e.source for e in kernels} == {"hand-written"}


def test_cupy_arrays_are_told_apart():
    array = type("ndarray", (), {"__module__": "cupy", "shape": (2,), "dtype": np.dtype("f4")})()
    prim = Primitive("of_cupy", "constant", lambda x: np.ones(2), lambda x: x)
    assert observed(prim, array)[0].source == "CuPy"


def test_loops_show_their_steps():
    def run(x):
        return fgrad.lax.scan(lambda c, y: (c * y, None), x, np.ones(3))[0]

    (scan,) = [e for e in observed(run, 2.0) if e.name.startswith("scan")]
    assert inside(scan)[1:] == ["mul"] * 3
    assert "scan pull" in count(observed(fgrad.grad(run), 2.0))


def test_notes(tmp_path):
    with fgrad.profile() as prof, fgrad.record_function("step", "of 3"):
        fnp.exp(1.0)
    assert prof.function_events[0].note == "of 3" and prof.function_events[1].note is None
    prof.export_chrome_trace(tmp_path / "t.json")
    assert '"note": "of 3"' in (tmp_path / "t.json").read_text()


def test_record_function_names_a_stretch():
    @fgrad.record_function("decorated")
    def named(x):
        return np.tanh(x)

    def work(x):
        with fgrad.record_function("block"):
            named(fnp.exp(x))

    events = observed(work, np.ones(3))
    assert outline(events) == [["block", "exp", "decorated"]]
    assert named.__name__ == "named"


def test_record_function_outside_of_a_profile_does_nothing():
    block = fgrad.record_function("x")
    with block:
        pass
    block.__exit__(None, None, None)
    block.__exit__(None, None, None)


def test_record_function_may_nest_in_itself():
    block = fgrad.record_function("twice")

    def work():
        with block, block:
            pass

    assert outline(observed(work)) == [["twice", "twice"]]


def test_errors_pass_and_close_everything():
    def fail(x):
        with fgrad.record_function("failing"):
            fgrad.grad(lambda x: fnp.reshape(x, (7,)).sum())(x)

    prof = fgrad.profile()
    with pytest.raises(ValueError), prof:
        fail(np.ones(3))
    assert state.interpreter is None
    assert prof.function_events[0].name == "failing"
    check_times(prof.function_events)
    assert not_installed()


def not_installed():
    """Say whether no entry point is exchanged."""
    from fgrad.transforms.jit import JittedFunction

    return (
        "observed" not in JittedFunction.__call__.__qualname__ and "observed" not in threading.Thread.start.__qualname__
    )


def test_off_means_off():
    assert not_installed()
    with fgrad.profile(enabled=False) as prof:
        assert not_installed() and state.interpreter is None
        fnp.tanh(np.ones(3))
    assert len(prof.function_events) == 0 and prof.function_events.unattributed_ns == 0
    with fgrad.profile():
        assert not not_installed()
    assert not_installed()


def test_results_are_there_when_the_block_has_ended():
    with fgrad.profile() as prof, pytest.raises(RuntimeError, match="didn't finish running"):
        _ = prof.function_events
    assert "has not finished" in str(fgrad.profile())


def test_leaked_values_are_reported():
    kept = []
    fgrad.grad(lambda x: kept.append(x) or x)(1.0)
    with fgrad.profile(), pytest.raises(fgrad.errors.UnexpectedTracerError, match="leaked"):
        fgrad.ops.elementwise.mul(kept[0], 2.0)


def test_inside_of_a_transform():
    profiles = []

    def fun(x):
        with fgrad.profile() as prof:
            y = x * x
        profiles.append(prof)
        return y

    assert fgrad.grad(fun)(3.0) == 6.0
    assert count(profiles[0].function_events) == {"mul": 1}
    assert fgrad.vmap(fun)(np.arange(3.0)).tolist() == [0.0, 1.0, 4.0]


def test_stacks():
    def inner(x):
        return fnp.tanh(x)

    (event,) = observed(inner, np.ones(1), with_stack=True)
    assert event.stack[0].endswith(": inner") and "test_functional.py(" in event.stack[0]
    assert event.stack[1].endswith(": observed")


def test_max_events_keeps_the_last():
    def work(x):
        for _ in range(10):
            x = fnp.tanh(x)
        fnp.exp(x)

    with fgrad.profile(max_events=4) as prof:
        work(np.ones(1))
    assert [e.name for e in prof.function_events] == ["tanh"] * 3 + ["exp"]
    assert prof.function_events.truncated and "oldest events are missing" in prof.table()
    with pytest.raises(ValueError, match="max_events must be positive, got 0"):
        fgrad.profile(max_events=0)


def test_the_ceiling_is_measured_once():
    ceiling = measured_ceiling()
    assert measured_ceiling() is ceiling
    assert ceiling.ideal_ns(int(ceiling.bytes_per_s), 0) == pytest.approx(1e9, rel=1e-6)
    assert ceiling.ideal_ns(0, int(ceiling.flops_per_s)) == pytest.approx(1e9, rel=1e-6)
