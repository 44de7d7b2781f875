"""Anomaly mode: which operation an error or a NaN in backward belongs to, what is said of it, and what is put back."""

import threading
import warnings
import weakref

import numpy as np
import pytest

import fgrad.compat as torch
from fgrad.compat import engine, tape


class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g * float("nan")


class Raises(Bad):
    @staticmethod
    def backward(ctx, g):
        raise KeyError("lost")


def leaf(*values):
    return torch.tensor(values, dtype=torch.double, requires_grad=True)


def failure(run, error=RuntimeError, check_nan=True):
    """Return the message of the error that `run` raises in anomaly mode, and those of the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(error) as info, torch.autograd.detect_anomaly(check_nan):
            run()
    assert not torch.is_anomaly_enabled()
    return str(info.value), [str(w.message) for w in caught]


def test_a_nan_names_the_operation_and_its_forward_call():
    def run():
        x = leaf(1, 0, 4)
        y = x.sqrt()  # the forward call
        (y * 0).sum().backward()

    message, (entered, told) = failure(run)
    assert "Anomaly Detection has been enabled" in entered
    assert "Function 'SqrtBackward0' returned nan values in its 0th output." in message
    assert "At [1] it met: grad_output[1] = 0.0, result[1] = 0.0" in message
    assert "it was made here, in backward" in message
    assert "Error detected in SqrtBackward0. Traceback of forward call that caused the error:" in told
    assert "y = x.sqrt()  # the forward call" in told and "test_anomaly.py" in told
    assert "compat/methods" not in told, "only the user's lines"


def test_a_nan_of_the_forward_pass_names_the_operand_that_made_it():
    def run():
        y = leaf(1, -1, 4).log()
        (y * y).sum().backward()

    message, _ = failure(run)
    assert "Function 'MulBackward0' returned nan values" in message
    assert "The forward value was NaN already" in message
    assert "LogBackward0" in message and "made it from self[1] = -1.0" in message


def test_a_nan_that_came_in_with_the_leaf():
    message, _ = failure(lambda: (leaf(1, np.nan) ** 2).sum().backward())
    assert "which came into the graph as it is" in message


def test_a_nan_made_by_an_operation_that_keeps_its_result_alone():
    def run():
        y = leaf(-1).sqrt()
        (y * 2).sum().backward()

    message, _ = failure(run)
    assert "The forward value was NaN already: result[0] = nan of SqrtBackward0" in message
    assert "made there from self[0] = -1.0" in message


def test_a_nan_made_of_what_nobody_keeps():
    def run():
        y = (leaf(-1) * 1).sqrt()
        (y * 2).sum().backward()

    message, _ = failure(run)
    assert "result[0] = nan of SqrtBackward0" in message
    assert "fgrad.debug_nans() around the forward pass shows its operands" in message


def test_what_a_custom_function_saved_is_shown():
    class Root(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sqrt()

        @staticmethod
        def backward(ctx, g):
            return g / (2 * ctx.saved_tensors[0].sqrt())

    message, _ = failure(lambda: (Root.apply(leaf(4, 0)) * 0).sum().backward())
    assert "At [1] it met: grad_output[1] = 0.0, saved_tensors[0][1] = 0.0" in message
    message, _ = failure(lambda: Root.apply(leaf(4, -3).log()).sum().backward())
    assert "saved_tensors[0][1] = nan of RootBackward" in message
    assert "LogBackward0" in message and "made it from self[1] = -3.0" in message


@pytest.mark.parametrize("function", [Bad, Raises])
def test_custom_functions(function):
    message, (_, told) = failure(lambda: function.apply(leaf(1)).sum().backward(), (RuntimeError, KeyError))
    assert "lost" in message or f"Function '{function.__name__}Backward' returned nan values in its 0th" in message
    assert f"Error detected in {function.__name__}Backward" in told
    assert "function.apply(leaf(1))" in told


def test_recorded_while_the_mode_was_off():
    y = Bad.apply(leaf(1)).sum()
    _, (_, told) = failure(y.backward)
    assert "Error detected in BadBackward. No forward pass information available." in told


def test_of_a_double_backward_each_backward_is_told():
    def run():
        x = leaf(0)
        y = x**1.5
        (g,) = torch.autograd.grad(y, x, create_graph=True)  # first
        (g2,) = torch.autograd.grad(g, x, create_graph=True)  # second
        torch.autograd.grad(g2, x, torch.zeros(1, dtype=torch.double))

    _, (_, first, *induced) = failure(run)
    assert "Error detected in" in first and "# second" in first
    assert len(induced) == 2
    assert all("Previous calculation was induced by PowBackward0" in text for text in induced)
    assert "# first" in induced[0] and "y = x**1.5" in induced[1]


def test_errors_of_hooks():
    def run():
        y = leaf(1) * 2
        y.register_hook(lambda g: 1 / 0)
        y.sum().backward()

    _, (_, told) = failure(run, ZeroDivisionError)
    assert "Error detected in MulBackward0" in told
    x = leaf(1)
    x.register_hook(lambda g: 1 / 0)
    _, (_, told) = failure((x * 2).sum().backward, ZeroDivisionError)
    assert "Error detected in torch::autograd::AccumulateGrad. No forward pass" in told


def test_check_nan_off_still_reports_errors():
    x = leaf(0)
    with pytest.warns(UserWarning, match="enabled"), torch.autograd.detect_anomaly(check_nan=False):
        (x.sqrt() * 0).sum().backward()
    assert np.isnan(x.grad.numpy()).all()
    failure(lambda: Raises.apply(leaf(1)).sum().backward(), KeyError, check_nan=False)


def test_create_graph_and_several_outputs():
    def run():
        x = leaf(2, 0)
        values, _ = x.sqrt().sort()
        torch.autograd.grad((values * 0).sum(), x, create_graph=True)

    assert "Function 'SqrtBackward0'" in failure(run)[0]


def test_second_of_two_inputs():
    def run():
        x, y = leaf(1), leaf(0)
        (x / y).backward(torch.zeros(1, dtype=torch.double))

    assert "returned nan values in its 0th output" in failure(run)[0]


def test_warnings_that_are_errors_go_to_stderr(capsys):
    torch.autograd.set_detect_anomaly(True)
    try:
        y = (leaf(0).sqrt() * 0).sum()
        with pytest.raises(RuntimeError, match="SqrtBackward0"):  # warnings are errors in these tests
            y.backward()
    finally:
        torch.autograd.set_detect_anomaly(False)
    assert "Error detected in SqrtBackward0" in capsys.readouterr().err


def test_nesting_puts_back_what_was():
    set_detect = torch.autograd.set_detect_anomaly
    with set_detect(True, check_nan=False):
        with set_detect(False):
            assert not torch.is_anomaly_enabled()
        assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
        with set_detect(True):
            assert torch.is_anomaly_check_nan_enabled()
        assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
    assert not torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
    set_detect(True)
    assert torch.is_anomaly_enabled()
    set_detect(False)


def test_nothing_is_left_behind():
    slot, plain = tape.Node._seq, engine.pass_class
    with torch.autograd.set_detect_anomaly(True):
        y = leaf(1) * 2
    assert tape.Node._seq is slot and engine.pass_class is plain is engine.Pass
    assert "traceback_" in y.grad_fn.metadata
    assert "traceback_" not in (leaf(1) * 2).grad_fn.metadata
    y.sum().backward()


def test_holds_in_every_thread():
    found = []

    def work():
        try:
            (leaf(0).sqrt() * 0).sum().backward()
        except RuntimeError as error:
            found.append(str(error))

    with torch.autograd.set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert "SqrtBackward0" in found[0]


def test_metadata_dies_with_the_node(no_collector):
    with torch.autograd.set_detect_anomaly(True):
        y = leaf(1) * 2
        note = torch.Size([1])
        y.grad_fn.metadata["mine"] = Box = type("Box", (), {})()
        dead = weakref.ref(Box)
        del y, Box, note
    assert dead() is None


def test_gradients_are_those_without_the_mode():
    def run():
        x, y = leaf(1, 2, 3), leaf(4, 5, 6)
        z = (x * y + x.exp().sum() / y.prod()) ** 2
        return [g.numpy() for g in torch.autograd.grad(z.sum(), (x, y))]

    plain = run()
    with torch.autograd.set_detect_anomaly(True):
        watched = run()
    for a, b in zip(plain, watched, strict=True):
        np.testing.assert_array_equal(a, b)
