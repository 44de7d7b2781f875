"""Law: the error classes keep JAX's names and bases, pickle, and explain themselves."""

import pickle

import pytest

from fgrad import errors

BASES = {
    "ConcretizationTypeError": TypeError,
    "NonConcreteBooleanIndexError": IndexError,
    "NonFiniteError": FloatingPointError,
    "TracerArrayConversionError": TypeError,
    "TracerBoolConversionError": errors.ConcretizationTypeError,
    "TracerIntegerConversionError": TypeError,
    "UnexpectedTracerError": TypeError,
}


def test_every_class_is_public():
    assert errors.__all__ == sorted(BASES)


@pytest.mark.parametrize("name", BASES)
def test_class(name):
    cls = getattr(errors, name)
    assert cls.__bases__ == (BASES[name],)
    assert cls.__module__ == "fgrad.errors"
    assert "Example:" in cls.__doc__
    copy = pickle.loads(pickle.dumps(cls("x is traced")))
    assert type(copy) is cls
    assert str(copy) == "x is traced"
