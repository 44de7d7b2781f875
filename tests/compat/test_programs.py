"""Programs for torch run on fgrad.compat: their assertions hold and they end as they say."""

import contextlib
import warnings

import numpy as np
import pytest

import fgrad.compat as compat
from tests.compat.programs import PROGRAMS, split
from tests.parity.both import data


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    kind, phrase, text = split(PROGRAMS[name])
    env = {"torch": compat, "np": np, "data": data, "show": lambda x: None, "warnings": warnings}
    expected = pytest.raises(kind) if kind else contextlib.nullcontext()
    with warnings.catch_warnings(), compat.as_torch(), expected as caught:
        warnings.simplefilter("ignore")
        exec(compile(text, "<program>", "exec"), env)
    if kind:
        assert phrase in str(caught.value)
