"""Rewriting before code generation keeps every bit of results, and takes away what it is meant to."""

import numpy as np
import pytest

import fgrad
from fgrad.backend.simplify import prepare

SPECIAL = np.array([0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 5e-324, 1e-310, 1.7e308, -3.3])

SIMPLER = [
    (lambda x: x + -(x * x), ["mul", "sub"]),
    (lambda x: -x + x * x, ["mul", "sub"]),
    (lambda x: x - -np.abs(x), ["abs", "add"]),
    (lambda x: -(3.0 * x), ["mul"]),
    (lambda x: -(x + x), ["mul"]),
    (lambda x: x + -x * np.abs(x), ["abs", "mul", "sub"]),
    (lambda x: x - np.abs(x) * -x, ["abs", "mul", "add"]),
    (lambda x: 3.0 * x - -(3.0 * x) * x, ["mul", "mul", "add"]),
    (lambda x: -x * -np.abs(x), ["abs", "mul"]),
    (lambda x: 2.0 * (3.0 * x), ["mul"]),
    (lambda x: 3.0 * (x * -4.0), ["mul"]),
    (lambda x: x**0 * x, []),
    (lambda x: x.reshape(1, 11) * np.ones((1, 11)), ["reshape"]),
    (lambda x: x * np.ones((1, 11)), ["reshape"]),
]

AS_IT_IS = [
    (lambda x: 3.0 * (5.0 * x), "both factors round"),
    (lambda x: 0.5 * (2.0 * x), "2 * x overflows where x does not"),
    (lambda x: 2.0 * (1e308 * x), "the product of the factors overflows"),
    (lambda x: -x * np.ones((3, 11)), "the sign of a row costs less than that of a matrix"),
    (lambda x: -(x - 1.5), "0 - 0 is 0 either way round"),
    (lambda x: x + 0.0, "-0.0 + 0.0 is 0.0"),
]


def same_bits(found, wanted):
    """Assert that arrays are equal and that zeros have equal signs."""
    np.testing.assert_array_equal(found, wanted)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(wanted)[numbers])


def prepared(f):
    program = prepare(fgrad.make_ir(f)(SPECIAL).simplify())
    with np.errstate(all="ignore"):
        same_bits(program.compute(SPECIAL)[0], f(SPECIAL))
    return [eq.prim.name for eq in program.equations]


@pytest.mark.parametrize(("f", "left"), SIMPLER)
def test_exact_identities_are_used(f, left):
    assert prepared(f) == left


@pytest.mark.parametrize(("f", "why"), AS_IT_IS, ids=[why for _, why in AS_IT_IS])
def test_others_are_not(f, why):
    with np.errstate(all="ignore"):
        assert len(prepared(f)) == len(fgrad.make_ir(f)(SPECIAL).simplify().equations)


def test_float32_numbers_do_not_overflow_together():
    x = np.array([1e-30], np.float32)
    f = lambda x: np.float32(2**100) * (np.float32(2**100) * x)  # noqa: E731
    program = prepare(fgrad.make_ir(f)(x).simplify())
    np.testing.assert_array_equal(program.compute(x)[0], f(x))
