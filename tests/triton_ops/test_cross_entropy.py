"""Cross-entropy by Triton kernels is cross-entropy by NumPy: values, gradients, and under every transform."""

import numpy as np
import pytest

import fgrad
from fgrad.check import LAWS, check_grads, check_push
from fgrad.kernels import cross_entropy
from fgrad.kernels.losses import cross_entropy_of_rows

OP = cross_entropy_of_rows.op("logits", "labels")
DTYPES = ("float16", "float32", "float64")
SIZES = ((1, 1), (3, 5), (4, 17), (2, 127), (3, 1000), (1, 5000), (0, 4))


def drawn(rows, columns, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, columns, rows)
    if rows > 2:
        labels[1] = -100
    return (3 * rng.normal(size=(rows, columns))).astype(dtype), labels


def agree(x, y):
    """Check that numbers are equal to a few units in the last place of the largest."""
    assert x.dtype == y.dtype
    scale = np.abs(y[np.isfinite(y)]).max(initial=1)
    np.testing.assert_allclose(x, y, rtol=0, atol=8 * np.finfo(y.dtype).eps * scale)


def value_and_pull(impl, logits, labels, **options):
    losses, pull = fgrad.vjp(lambda x: cross_entropy(x, labels, impl=impl, **options), logits)
    ct = np.random.default_rng(1).normal(size=losses.shape).astype(losses.dtype)
    return losses, pull(ct)[0]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_values_and_gradients(size, dtype, smoothing):
    logits, labels = drawn(*size, dtype)
    want = value_and_pull("numpy", logits, labels, label_smoothing=smoothing)
    got = value_and_pull("triton", logits, labels, label_smoothing=smoothing)
    for x, y in zip(got, want, strict=True):
        agree(x, y)


@pytest.mark.parametrize(
    ("row", "label"),
    [
        ([1.0, np.nan, 2.0], 0),
        ([1.0, np.nan, 2.0], -100),
        ([np.inf, np.nan, 2.0], -100),
        ([1.0, -np.inf, 2.0], 0),
        ([1.0, -np.inf, 2.0], 1),
        ([-np.inf, -np.inf, -np.inf], 1),
        ([1.0, 2.0, 3.0], 3),
        ([1.0, 2.0, 3.0], -1),
        ([1e4, -1e4, 0.0], 0),
    ],
)
def test_edges(row, label):
    logits, labels = np.array([row, [0.0, 1.0, 2.0]]), np.array([label, 2])
    for got, want in zip(
        value_and_pull("triton", logits, labels), value_and_pull("numpy", logits, labels), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-14)


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda x: np.repeat(x, 2, 1)[:, ::2], lambda x: x[::-1, ::-1]])
def test_strides_do_not_matter(layout):
    logits, labels = drawn(4, 6)
    strided = layout(logits)
    for got, want in zip(
        value_and_pull("triton", strided, labels), value_and_pull("numpy", np.array(strided), labels), strict=True
    ):
        agree(got, want)


def test_laws_hold():
    logits, labels = drawn(4, 5)
    for law in LAWS.values():
        if law.applies(OP.forward) and law.check is not check_push:  # what is kept for backward has no derivative
            law.check(OP.forward, logits, labels, ignore_index=-100, label_smoothing=0.2)


def test_second_derivatives():
    logits, labels = drawn(3, 4)
    check_grads(lambda x: cross_entropy(x, labels, label_smoothing=0.1, impl="triton"), (logits,), order=2)


TRANSFORMS = {
    "jit": fgrad.jit,
    "grad": fgrad.grad,
    "jit of grad": lambda f: fgrad.jit(fgrad.grad(f)),
    "hessian": fgrad.hessian,
    "jit of hessian": lambda f: fgrad.jit(fgrad.hessian(f)),
    "jvp": lambda f: lambda x: fgrad.jvp(f, (x,), (np.cos(x),))[1],
    "vmap": lambda f: lambda x: fgrad.vmap(f)(np.stack([x, 2 * x])),
    "vmap of grad": lambda f: lambda x: fgrad.vmap(fgrad.grad(f))(np.stack([x, 2 * x])),
    "grad of vmap": lambda f: fgrad.grad(lambda x: fgrad.vmap(f)(np.stack([x, 2 * x])).sum()),
    "checkpoint": lambda f: fgrad.grad(fgrad.checkpoint(f)),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_under_transforms(transform):
    logits, labels = drawn(3, 5)
    got, want = (
        transform(lambda x, impl=impl: cross_entropy(x, labels, impl=impl).mean())(logits)
        for impl in ("triton", "numpy")
    )
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15)


def test_one_op_serves_all_calls():
    assert cross_entropy_of_rows.op("logits", "labels") is OP
