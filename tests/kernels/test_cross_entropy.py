"""The public cross-entropy: shapes, types and errors. What it computes is held against torch and the definition."""

import numpy as np
import pytest

import fgrad
from fgrad.extend import TABLE
from fgrad.kernels import cross_entropy


def test_value_and_gradient_by_hand():
    logits, labels = np.log([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]), np.array([0, 2])
    losses, pull = fgrad.vjp(lambda x: cross_entropy(x, labels), logits)
    np.testing.assert_allclose(losses, -np.log([0.5, 0.7]))
    np.testing.assert_allclose(pull(np.array([1.0, 2.0]))[0], [[-0.5, 0.25, 0.25], [0.2, 0.4, -0.6]], atol=1e-15)


def test_smoothing_mixes_in_the_uniform_distribution():
    logits, labels = np.random.default_rng(0).normal(size=(3, 4)), np.array([0, 3, 1])
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    want = -0.8 * log_p[np.arange(3), labels] - 0.2 * log_p.mean(axis=1)
    np.testing.assert_allclose(cross_entropy(logits, labels, label_smoothing=0.2), want)


def test_any_shape_of_rows():
    logits, labels = np.random.default_rng(0).normal(size=(2, 3, 4)), np.array([[0, 3, 1], [2, 2, -100]])
    losses = cross_entropy(logits, labels)
    assert losses.shape == (2, 3)
    assert losses[1, 2] == 0
    np.testing.assert_array_equal(losses[0, 1], cross_entropy(logits[0, 1], labels[0, 1]))


@pytest.mark.parametrize(("dtype", "out"), [("float16", "float32"), ("float32", "float32"), ("float64", "float64")])
def test_types(dtype, out):
    losses, pull = fgrad.vjp(lambda x: cross_entropy(x, np.array([0], "int32")), np.zeros((1, 3), dtype))
    assert losses.dtype == out
    assert pull(np.ones(1, out))[0].dtype == dtype


def test_gradient_of_float32_is_computed_in_float32():
    program = str(
        fgrad.make_ir(fgrad.grad(lambda x: cross_entropy(x, np.array([1])).sum()))(np.zeros((1, 3), "float32"))
    )
    assert "float64" not in program


@pytest.mark.parametrize(
    ("logits", "labels", "options", "error", "said"),
    [
        (np.zeros((2, 3), int), np.zeros(2, int), {}, TypeError, "logits must be floating, got int64"),
        (np.zeros((2, 3)), np.zeros(2), {}, TypeError, "labels must be integers, got float64"),
        (np.zeros((2, 3)), np.zeros(3, int), {}, ValueError, r"got \(2, 3\) and \(3,\)"),
        (np.zeros((2, 0)), np.zeros(2, int), {}, ValueError, "at least one column"),
        (np.zeros(()), np.zeros((), int), {}, ValueError, "at least one column"),
        (np.zeros((2, 3)), np.zeros(2, int), {"label_smoothing": 1.0}, ValueError, "label_smoothing must be in"),
        (np.zeros((2, 3)), np.zeros(2, int), {"impl": "cuda"}, ValueError, 'impl must be "numpy" or "triton"'),
    ],
)
def test_errors(logits, labels, options, error, said):
    with pytest.raises(error, match=f"cross_entropy: .*{said}"):
        cross_entropy(logits, labels, **options)


@pytest.mark.parity
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_as_in_torch(smoothing):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    logits, labels, ct = rng.normal(size=(6, 5)), rng.integers(0, 5, 6), rng.normal(size=6)
    labels[2] = -100
    theirs = torch.tensor(logits, requires_grad=True)
    want = torch.nn.functional.cross_entropy(theirs, torch.tensor(labels), reduction="none", label_smoothing=smoothing)
    want.backward(torch.tensor(ct))
    losses, pull = fgrad.vjp(lambda x: cross_entropy(x, labels, label_smoothing=smoothing), logits)
    np.testing.assert_allclose(losses, want.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(pull(ct)[0], theirs.grad.numpy(), rtol=1e-12, atol=1e-15)


ROWS = np.array(
    [
        [0.1, 2.0, -3.0],
        [1.5, 1.5, 1.5],
        [-np.inf, 0.5, -np.inf],
        [-np.inf, -np.inf, -np.inf],
        [np.inf, 1.0, np.inf],
        [np.nan, 1.0, 2.0],
        [1e30, -1e30, 0.0],
    ]
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("labels", [[0, 1, 2, 0, 1, 2, 0], [0, 1, 1, 0, 0, 1, 1], [0, 1, 1, 0, 3, -100, -1]])
@pytest.mark.parametrize("kind", ["int64", "int16"])
def test_the_short_way_gives_the_bits_of_the_definition(dtype, labels, kind, monkeypatch):
    cases = [slice(0, 3), slice(0, 7), slice(2, 3), slice(3, 4), slice(4, 5), slice(5, 6), slice(6, 7)]
    for rows in cases:
        logits, of = ROWS[rows].astype(dtype), np.array(labels[rows], kind)
        ct = np.linspace(-1, 1, len(of)).astype(dtype)

        def both(logits=logits, of=of, ct=ct):
            with np.errstate(invalid="ignore"):  # inf - inf
                losses, pull = fgrad.vjp(lambda x: cross_entropy(x, of), logits)
                return losses, pull(ct)[0]

        short = both()
        with monkeypatch.context() as patch:
            patch.setattr("fgrad.ops.kernels._plain_log_totals", lambda *args: None)
            defined = both()
        for found, wanted in zip(short, defined, strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("count", [1, 3])
def test_the_primitive_takes_a_label_for_each_row(count):
    with pytest.raises(ValueError, match="shape|reshape"):
        TABLE["cross_entropy"](np.zeros((2, 3)), np.zeros(count, int), ignore_index=-100, label_smoothing=0.0)
