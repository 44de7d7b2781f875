"""What only cross-entropy has: ignored rows, labels that are no column, rows of -inf, and the arguments it refuses."""

import numpy as np
import pytest

from fgrad.triton_kernels.cross_entropy import cross_entropy_backward, cross_entropy_forward


def gradient(ct, logits, labels, **options):
    _, lse = cross_entropy_forward(logits, labels, **options)
    return cross_entropy_backward(ct, logits, labels, lse, **options)


def draw(rows=3, columns=7):
    return np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)


def test_07_every_row_ignored():
    logits, labels = draw(), np.full(3, -100)
    losses, _ = cross_entropy_forward(logits, labels)
    np.testing.assert_array_equal(losses, np.zeros(3))
    np.testing.assert_array_equal(gradient(np.full(3, np.inf, np.float32), logits, labels), np.zeros((3, 7)))


def test_ignored_rows_hide_what_they_hold():
    logits, labels = draw(), np.array([1, 2, 3])
    logits[1] = np.nan
    labels[1] = 5
    losses, _ = cross_entropy_forward(logits, labels, ignore_index=5)
    assert losses[1] == 0
    assert np.isfinite(losses).all()
    assert np.isfinite(gradient(np.ones(3, np.float32), logits, labels, ignore_index=5)).all()


@pytest.mark.parametrize("label", [-1, 7, 2**40])
def test_a_label_that_is_no_column_gives_nan(label):
    logits, labels = draw(), np.array([0, label, 6])
    losses, _ = cross_entropy_forward(logits, labels)
    np.testing.assert_array_equal(np.isnan(losses), [False, True, False])
    found = np.isnan(gradient(np.ones(3, np.float32), logits, labels))
    assert found[1].all()
    assert not found[[0, 2]].any()


def test_08_rows_and_entries_of_minus_infinity():
    logits, labels = draw(), np.array([0, 0, 3])
    logits[0] = -np.inf
    logits[1, 0] = -np.inf
    logits[2, :2] = -np.inf
    losses, _ = cross_entropy_forward(logits, labels)
    np.testing.assert_array_equal(np.isposinf(losses), [True, True, False])
    result = gradient(np.ones(3, np.float32), logits, labels)
    np.testing.assert_array_equal(result[0], [-1, 0, 0, 0, 0, 0, 0])
    assert np.isfinite(result).all()
    np.testing.assert_allclose(result.sum(1)[1:], 0, atol=1e-6)


def test_08_a_first_block_of_minus_infinity():
    logits, labels = draw(1, 5000), np.array([4500])
    logits[:, :4200] = -np.inf
    losses, _ = cross_entropy_forward(logits, labels)
    rest = logits[:, 4200:].astype(np.float64)
    np.testing.assert_allclose(losses, np.log(np.exp(rest).sum(1)) - logits[0, 4500], rtol=1e-6)
    assert np.isfinite(gradient(np.ones(1, np.float32), logits, labels)).all()


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint8])
def test_labels_of_every_integer_type(kind):
    logits, labels = draw(), np.array([0, 3, 6], kind)
    losses, _ = cross_entropy_forward(logits, labels)
    expected, _ = cross_entropy_forward(logits, labels.astype(np.int64))
    np.testing.assert_array_equal(losses, expected)


def test_classes_without_weight_count_for_nothing():
    logits, labels, weight = draw(), np.array([0, 3, 6]), np.ones(7, np.float32)
    weight[3] = 0
    logits[:, 3] = -np.inf
    for smoothing in (0.0, 0.2):
        options = {"weight": weight, "label_smoothing": smoothing}
        losses, _ = cross_entropy_forward(logits, labels, **options)
        assert np.isfinite(losses).all()
        assert np.isfinite(gradient(np.ones(3, np.float32), logits, labels, **options)).all()
    assert cross_entropy_forward(logits, labels, weight)[0][1] == 0


@pytest.mark.parametrize(
    ("logits", "labels", "options", "error", "message"),
    [
        (draw()[0], np.zeros(3, int), {}, ValueError, r"logits: got shape \(7,\)"),
        (draw(), np.zeros(4, int), {}, ValueError, r"labels: got shape \(4,\), expected \(3,\)"),
        (draw(), np.zeros(3), {}, TypeError, "labels: got float64, expected integers"),
        (draw().astype(int), np.zeros(3, int), {}, TypeError, "logits: got int64, expected a floating type"),
        (draw(), np.zeros(3, int), {"weight": np.ones(3)}, ValueError, r"weight: got shape \(3,\), expected \(7,\)"),
        (draw(), np.zeros(3, int), {"label_smoothing": 1.5}, ValueError, "label_smoothing: got 1.5"),
    ],
)
def test_wrong_arguments_are_named(logits, labels, options, error, message):
    with pytest.raises(error, match=message):
        cross_entropy_forward(logits, labels, **options)


def test_a_cotangent_of_another_shape_is_named():
    logits, labels = draw(), np.zeros(3, int)
    _, lse = cross_entropy_forward(logits, labels)
    with pytest.raises(ValueError, match=r"ct: got shape \(2,\), expected \(3,\)"):
        cross_entropy_backward(np.ones(2), logits, labels, lse)
