"""Keys and the cipher behind them."""

import numpy as np
import pytest

import fgrad
from fgrad import random as r
from fgrad.ops import random as ops

# Of the reference implementation that the source of the cipher is published with.
KNOWN = (
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
)


@pytest.mark.parametrize(("key", "counter", "block"), KNOWN)
def test_the_cipher_gives_known_blocks(key, counter, block):
    at = np.array([[counter[0] << 32 | counter[1]]], np.uint64)
    few = ops._blocks(np.array([key], np.uint32), at)
    many = ops._blocks(np.array([key], np.uint32), np.repeat(at, 50, axis=1))
    assert [x.item() for x in few] == list(block)
    assert all((x == word).all() for x, word in zip(many, block, strict=True))


@pytest.mark.parametrize(
    ("seed", "words"),
    [
        (0, (0, 0)),
        (42, (0, 42)),
        (-1, (0xFFFFFFFF, 0xFFFFFFFF)),
        (2**40 + 3, (256, 3)),
        (2**64 - 1, (0xFFFFFFFF, 0xFFFFFFFF)),
        (np.int32(7), (0, 7)),
        (np.array(7), (0, 7)),
    ],
)
def test_seeds(seed, words):
    key = r.key(seed)
    assert key.dtype == np.uint32
    assert key.tolist() == list(words)
    if abs(int(seed)) < 2**63:
        assert np.array_equal(fgrad.jit(r.key)(seed), key)


def test_prngkey_is_key():
    assert np.array_equal(r.PRNGKey(3), r.key(3))


def test_fold_in_of_a_step_is_the_key_split_off_there():
    key = r.key(1)
    assert np.array_equal(r.split(key, 20), [r.fold_in(key, i) for i in range(20)])
    assert np.array_equal(fgrad.vmap(r.fold_in, (None, 0))(key, np.arange(20)), r.split(key, 20))
    assert np.array_equal(
        fgrad.vmap(r.fold_in, (0, None))(r.split(key, 3), 4), [r.fold_in(k, 4) for k in r.split(key, 3)]
    )


def test_split_takes_shapes():
    key = r.key(1)
    assert np.array_equal(r.split(key, (2, 3)), r.split(key, 6).reshape(2, 3, 2))
    assert r.split(key, 0).shape == (0, 2)


def test_one_key_draws_the_same_twice():
    key = r.key(1)
    before = key.copy()
    assert np.array_equal(r.normal(key, (5,)), r.normal(key, (5,)))
    assert np.array_equal(key, before)


@pytest.mark.parametrize("shape", [(7,), (100,), (70_000,)])
def test_a_longer_draw_starts_as_a_shorter_one(shape):
    key = r.key(2)
    assert np.array_equal(r.bits(key, shape)[:3], r.bits(key, (3,)))


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (3, r"int64\[\]\* \(3\)"),
        (None, "None of type NoneType"),
        ("a", "'a' of type str"),
        (np.zeros(2), r"float64\[2\]"),
        (np.zeros((3, 2), np.uint32), r"uint32\[3,2\].\nRemedy: .* use fgrad.vmap"),
    ],
)
def test_what_is_no_key_is_refused(bad, said):
    with pytest.raises(TypeError, match=rf"random.normal: key must be a key, uint32\[2\], .*; got {said}"):
        r.normal(bad, (2,))


def test_a_traced_array_that_is_no_key_is_refused():
    with pytest.raises(TypeError, match=r"random.bits: .* got float64\[2\]"):
        fgrad.jit(r.bits)(np.zeros(2))


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: r.key(1.5), TypeError, "random.key: seed must be an integer, got 1.5 of type float"),
        (lambda: r.key(2**64), ValueError, "random.key: seed must fit into 64 bits"),
        (lambda: r.fold_in(r.key(0), -1), ValueError, "random.fold_in: data must be from 0 to"),
        (lambda: r.fold_in(r.key(0), 2.0), TypeError, "random.fold_in: data must be an integer, got float64"),
        (lambda: r.fold_in(r.key(0), np.arange(2)), TypeError, r"got int64\[2\]"),
        (lambda: r.split(r.key(0), -1), ValueError, "random.split: shape must hold no negative sizes"),
        (lambda: r.split(r.key(0), 1.5), TypeError, "random.split: shape must be"),
    ],
)
def test_errors_of_keys(call, error, said):
    with pytest.raises(error, match=said):
        call()
