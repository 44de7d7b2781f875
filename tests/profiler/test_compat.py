"""What a profile of tensors holds: torch's names, one event a function, backward passes tied to forward ones."""

import inspect

import pytest

import fgrad
import fgrad.compat as torch
from fgrad.compat.tensor import Tensor
from tests.profiler.shapes import check_times, count, inside, outline

profiler = torch.autograd.profiler


def observed(fun, *args, **options):
    """Return the events of one call."""
    with profiler.profile(**options) as prof:
        fun(*args)
    check_times(prof.function_events)
    return prof.function_events


def test_the_example_of_the_documentation():
    x = torch.randn((1, 1), requires_grad=True)
    with torch.autograd.profiler.profile() as prof:
        for _ in range(100):  # any normal python code, really!
            y = x**2
            y.backward()
    averages = prof.key_averages()
    assert count(averages) == {
        "mul": 200,
        "pow": 200,
        "PowBackward0": 100,
        "torch::autograd::AccumulateGrad": 100,
        "torch::autograd::GraphRoot": 100,
    }
    text = averages.table(sort_by="self_cpu_time_total")
    for title in ("Name", "Self CPU total", "CPU time avg", "Number of Calls"):
        assert title in text
    rows = [line.split()[0] for line in text.splitlines()[3:8]]
    times = [e.self_cpu_time_total for e in sorted(averages, key=lambda e: -e.self_ns)]
    assert sorted(rows) == sorted(count(averages)) and times == sorted(times, reverse=True)
    check_times(prof.function_events)


def test_the_pull_of_a_node_lies_inside_it():
    x = torch.randn((1, 1), requires_grad=True)
    events = observed(lambda: (x**2).backward())
    assert outline(events) == [
        "pow",
        "torch::autograd::GraphRoot",
        ["PowBackward0", "pow", "mul", "mul"],
        "torch::autograd::AccumulateGrad",
    ]
    node = events[2]
    assert node.forward is events[0] and events[0].sequence_nr == node.sequence_nr > 0


@pytest.mark.parametrize(
    ("compute", "names"),
    [
        (lambda x: x * 2 + 4, ["mul", "add"]),
        (lambda x: 2 - x, [["rsub", "sub"]]),
        (lambda x: -x / 3, ["neg", "div"]),
        (lambda x: x.t(), [["t", "permute"]]),
        (lambda x: x[0], ["select"]),
        (lambda x: x[:, 1:], ["slice"]),
        (lambda x: x.exp().sum(), ["exp", "sum"]),
        (lambda x: x @ x, [["matmul", "mm"]]),
        (lambda x: torch.cat([x, x]), ["cat"]),
        (lambda x: x.clone().add_(1), ["clone", "add_"]),
        (lambda x: x > 0, ["gt"]),
        (lambda x: x.view(4), ["view"]),
        (lambda x: torch.nn.functional.relu(x), ["relu"]),
        (lambda x: torch.ones(2), ["ones"]),
    ],
)
def test_names_of_functions(compute, names):
    assert outline(observed(compute, torch.ones(2, 2))) == names


def test_functions_made_of_others_show_them():
    x = torch.ones(2, 3)
    event = observed(lambda: x.softmax(-1), record_shapes=True)[0]
    assert inside(event)[:2] == ["softmax", "amax"] and {c.category for c in event.children} == {"primitive"}
    assert event.bytes == 0 and event.total_bytes == sum(c.bytes for c in event.children) > 0


def test_every_function_and_method_is_named_after_itself():
    from fgrad.compat.profiling import NOT_OPERATIONS, operation_name, probes

    owners = {(owner, name) for owner, name, _ in probes()}
    for name in torch._FUNCTIONS:
        if name not in NOT_OPERATIONS and inspect.isfunction(vars(torch).get(name)):
            assert (torch, name) in owners, name
    named = {"__radd__": "add", "__iadd__": "add_", "__rsub__": "rsub", "__itruediv__": "div_", "__pow__": "pow",
             "__rpow__": "pow", "__invert__": "bitwise_not", "__rshift__": "rshift", "__irshift__": "rshift_",
             "__or__": "or", "__ror__": "or", "__ior__": "or_", "__eq__": "eq", "exp_": "exp_"}  # fmt: skip
    assert {name: operation_name(name) for name in named} == named


def test_custom_functions():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.ones(2, requires_grad=True)
    events = observed(lambda: Twice.apply(x).sum().backward())
    assert outline(events)[0] == ["Twice", "mul"]
    node = next(e for e in events if e.name == "TwiceBackward")
    assert inside(node) == ["TwiceBackward", "mul"] and node.forward is events[0]


def test_shapes():
    def compute():
        torch.add(torch.ones(2, 3), torch.ones(3), alpha=2)
        torch.cat([torch.ones(1, 2), torch.ones(3, 2)], 0)

    shapes = {e.name: e.input_shapes for e in observed(compute, record_shapes=True) if e.parent is None}
    assert shapes["add"] == [[2, 3], [3], []] and shapes["cat"] == [[[1, 2], [3, 2]], []]
    assert {str(e.input_shapes) for e in observed(compute)} == {"[]"}


def test_costs():
    x = torch.ones(2, 3)
    (event,) = observed(lambda: x * x, with_flops=True)
    assert (event.flops, event.bytes) == (6, 3 * 24)
    (event,) = observed(lambda: x.add_(1.0), with_flops=True)
    assert (event.name, event.flops) == ("add_", 6)


def test_several_outputs_and_second_derivatives():
    x = torch.randn(3, 3, requires_grad=True)

    def compute():
        values, _ = x.sort()
        (g,) = torch.autograd.grad((values**3).sum(), x, create_graph=True)
        g.sum().backward()

    events = observed(compute)
    found = count(events)
    assert found["torch::autograd::GraphRoot"] == 2 and found["torch::autograd::AccumulateGrad"] == 1
    assert found["PowBackward0"] == 2 or found["PowBackward0"] == 1
    assert all(e.forward is None or e.forward.start_ns < e.start_ns for e in events)


def test_grad_of_leaves_accumulates_nothing():
    x = torch.ones(2, requires_grad=True)
    assert "torch::autograd::AccumulateGrad" not in count(observed(lambda: torch.autograd.grad((x * x).sum(), x)))


def test_hooks_run_inside_their_node():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 3)
    node = next(e for e in observed(y.sum().backward) if e.name == "MulBackward0")
    assert inside(node) == ["MulBackward0", "mul", "mul"]


def test_passes_within_passes():
    x = torch.ones(1, requires_grad=True)

    class Deep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            if ctx.depth:
                with torch.enable_grad():
                    Deep.apply(x.detach().requires_grad_(), ctx.depth - 1).sum().backward()
            return g, None

    events = observed(lambda: Deep.apply(x, 30).sum().backward())
    assert count(events)["DeepBackward"] == 31


def test_anomaly_mode_and_a_profiler_at_once():
    x = torch.tensor([0.0], requires_grad=True)

    def compute():
        with (
            torch.autograd.set_detect_anomaly(True),
            pytest.warns(UserWarning, match="Error detected in SqrtBackward0"),
        ):
            (x.sqrt() * 0).sum().backward()

    with profiler.profile() as prof, pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan"):
        compute()
    assert "SqrtBackward0" in count(prof.function_events)
    check_times(prof.function_events)


def test_record_function():
    def compute():
        with profiler.record_function("label") as block:
            torch.ones(1) * 2
        block.__exit__(None, None, None)

    assert outline(observed(compute)) == [["label", "ones", "mul"]]


def test_text_is_that_of_the_table():
    with profiler.profile() as prof:
        torch.ones(1) * 2
    assert str(prof) == prof.table() == prof.function_events.table() and "mul" in str(prof)


def test_events_carry_torchs_attributes():
    with profiler.profile(use_cuda=False) as prof:
        torch.ones(1) * 2
    event = prof.function_events[-1]
    assert event.name == event.key == event.trace_name == "mul" and event.count == 1
    assert event.cpu_time == event.cpu_time_total >= event.self_cpu_time_total > 0
    assert event.cpu_interval.elapsed_us() == pytest.approx(event.cpu_time_total, rel=1e-6)
    assert event.time_range.start < event.time_range.end
    assert event.cuda_time_total == 0 and event.cpu_parent is None and event.cpu_children == []
    assert event.cpu_time_str.endswith("us") and "mul" in repr(event) and "Interval(" in repr(event.cpu_interval)
    assert prof.self_cpu_time_total == pytest.approx(sum(e.self_cpu_time_total for e in prof.function_events))


def test_total_average():
    with profiler.profile() as prof:
        torch.ones(2, 2).softmax(-1)
    total = prof.total_average()
    assert total.key == "Total" and total.count == len(prof.function_events)
    assert total.self_ns == prof.function_events.attributed_ns == total.total_ns
    again = prof.key_averages().total_average()
    assert (again.count, again.self_ns, again.total_ns) == (total.count, total.self_ns, total.total_ns)


def test_averages_by_shape_and_by_line():
    def compute():
        for n in (1, 2, 2):
            torch.ones(n).exp()

    with profiler.profile(record_shapes=True, with_stack=True) as prof:
        compute()
        torch.ones(2).exp()
    rows = [(e.key, str(e.input_shapes), e.count) for e in prof.key_averages(group_by_input_shape=True)]
    assert ("exp", "[[1]]", 1) in rows and ("exp", "[[2]]", 3) in rows
    rows = [(e.stack[0].rpartition(": ")[2], e.count) for e in prof.key_averages(group_by_stack_n=1) if e.key == "exp"]
    assert rows == [("compute", 3), ("test_averages_by_shape_and_by_line", 1)]


def test_nothing_is_left_behind():
    before = dict(vars(Tensor))
    functions = {name: vars(torch)[name] for name in torch._FUNCTIONS if name in vars(torch)}
    assert not torch.autograd._profiler_enabled()
    with profiler.profile():
        assert torch.autograd._profiler_enabled()
        assert Tensor.__mul__ is not before["__mul__"] and torch.mul is not functions["mul"]
    assert not torch.autograd._profiler_enabled()
    assert all(vars(Tensor)[name] is value for name, value in before.items())
    assert all(vars(torch)[name] is value for name, value in functions.items())


def test_disabled():
    with profiler.profile(enabled=False) as prof:
        torch.ones(1) * 2
    assert len(prof.function_events) == 0 and prof.table() == ""


def test_gpus_are_refused_with_a_warning():
    with pytest.warns(UserWarning, match="CUDA is not available"):
        profiler.profile(use_cuda=True)


def test_functional_code_and_tensors_in_one_profile():
    def compute():
        torch.ones(2).exp()
        fgrad.grad(fgrad.numpy.tanh)(1.0)

    assert [e.name for e in observed(compute) if e.parent is None] == ["ones", "exp", "tanh", "tanh pull"]
    with fgrad.profile() as prof:
        compute()
    assert [e.name for e in prof.function_events if e.parent is None] == ["ones", "exp", "tanh", "tanh pull"]


def test_the_names_of_torch_profiler():
    kept = []
    activities = [torch.profiler.ProfilerActivity.CPU]
    assert torch.profiler.supported_activities() == set(activities)
    plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    with torch.profiler.profile(activities=activities, schedule=plan, on_trace_ready=kept.append) as prof:
        for k in range(6):
            torch.ones(k + 1).exp()
            prof.step()
    assert kept == [prof]
    assert [e.name for e in prof.events() if e.category == "user"] == ["ProfilerStep#2", "ProfilerStep#3"]


def test_traces_for_tensorboard(tmp_path):
    handler = torch.profiler.tensorboard_trace_handler(tmp_path / "runs", "me", use_gzip=True)
    with torch.profiler.profile(on_trace_ready=handler):
        torch.ones(1).exp()
    (file,) = (tmp_path / "runs").iterdir()
    assert file.name.startswith("me.") and file.name.endswith(".pt.trace.json.gz")
