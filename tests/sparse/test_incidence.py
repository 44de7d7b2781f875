"""Every primitive of the table: an element that its output depends on is one that its incidence names."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fgrad.check.laws import differentiable_inputs
from fgrad.core import type_of
from fgrad.program import Trace
from fgrad.sparse.pattern import jacobian_pattern
from fgrad.transforms.jacobian import jacfwd
from tests.laws import families  # noqa: F401  (enters its strategies)
from tests.laws.strategies import ROWS, WITHOUT_LAWS, cases

pytestmark = pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
EXAMPLES = max(4, settings().max_examples // 10)


def recorded(prim, args, params, inputs):
    """Return the Program of one application; what is not among `inputs` is known."""
    recorder = Trace("one application")
    given = [recorder.input(type_of(x).strong()) if i in inputs else x for i, x in enumerate(args)]
    with recorder:
        out = prim(*given, **params)
    return recorder.finish(out if prim.multiple else (out,))


def nonzeros(program, args):
    """Return where the dense Jacobian of a Program is other than zero, by output."""

    def fun(*xs):
        return [np.stack([y.real, y.imag], -1) if y.dtype.kind == "c" else y for y in program.run(*xs)]

    for t, blocks in zip(program.out_types, jacfwd(fun, tuple(range(len(args))))(*args), strict=True):
        parts = 2 if t.dtype.kind == "c" else 1
        each = [np.reshape(b, (t.size, parts, x.size)).any(axis=1) for b, x in zip(blocks, args, strict=True)]
        yield np.concatenate(each, axis=1)


DIFFERENTIABLE = [p for p in ROWS if p.name not in WITHOUT_LAWS and p.kind != "constant"]


@pytest.mark.parametrize("others", ["known", "unknown"])
@pytest.mark.parametrize("prim", DIFFERENTIABLE, ids=lambda p: p.name)
def test_incidence_names_every_dependence(prim, others):
    @settings(max_examples=EXAMPLES, report_multiple_bugs=False)
    @given(st.data())
    def holds(data):
        args, params = data.draw(cases(prim, True))
        active = [i for i in differentiable_inputs(prim, args) if type_of(args[i]).dtype.kind == "f"]
        if not active:
            return
        chosen = [np.asarray(args[i]) for i in active]
        inputs = active if others == "known" else range(len(args))
        pattern = jacobian_pattern(recorded(prim, args, params, inputs), [i in active for i in inputs]).toarray()
        program = recorded(prim, args, params, active)
        start = 0
        for t, entries in zip(program.out_types, nonzeros(program, chosen), strict=True):
            missed = entries & ~pattern[start : start + t.size]
            start += t.size
            assert t.dtype.kind not in "fc" or not missed.any(), f"missed {np.argwhere(missed)[:3]}"

    holds()
