"""Every primitive of the table: an element that its output depends on is one that its incidence names."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fgrad
import fgrad.numpy as fnp
from fgrad.check.laws import differentiable_inputs
from fgrad.core import type_of
from fgrad.program import Trace
from fgrad.sparse import incidence
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


FAMILIES = [
    incidence.MOVING,
    incidence.ADDING,
    incidence.IN_PLACE,
    incidence.REDUCING,
    incidence.ALONG,
    incidence.OF_MATRICES,
]
ON_THEIR_OWN = {"dot_general", "conv_general", "top_k"}
LOOKED_INTO = {"composite", "structured", "elementwise", "constant"}
EVERYTHING = {
    "psum": "resolved by the vmap that names its axis",
    "all_gather": "as psum",
    "own_part": "as psum",
    "own_place": "as psum",
    "scatter_max": "which of the updates wins is not known",
    "scatter_min": "as scatter_max",
    "sylvester": "inside derivatives of matrices, which depend on all of the matrix",
    "refuse_turns": "as sylvester",
}


def test_every_primitive_is_of_a_family_or_depends_on_everything_for_a_reason():
    named = set().union(*FAMILIES, ON_THEIR_OWN)
    assert named <= {p.name for p in ROWS}
    rest = {p.name for p in ROWS if p.kind not in LOOKED_INTO} - named
    assert rest == set(EVERYTHING)


@pytest.mark.parametrize(
    ("fun", "entries"),
    [
        (lambda x: x[[2, 0, 0]], 3),
        (lambda x: x[None].repeat(2, 0), 12),
        (lambda x: np.pad(x, 2), 6),
        (lambda x: np.flip(x)[::2], 3),
        (lambda x: fnp.at(np.zeros(4))[[1, 1, 3]].add(x[:3]), 3),
        (lambda x: fnp.at(x)[[1, 1]].set(x[:2]), 6),
        (lambda x: x.reshape(2, 3).sum(0), 6),
        (lambda x: x.reshape(2, 3) @ np.array([[1.0], [0.0], [2.0]]), 4),
        (lambda x: np.take_along_axis(x, np.array([5, 5]), 0), 2),
        (lambda x: np.linalg.det(x[:4].reshape(2, 2)), 4),
        (lambda x: np.convolve(x, np.ones(3), "valid"), 12),
        (lambda x: np.where(x > 0, x, 1.0) * (x > 1), 6),
    ],
)
def test_patterns_have_no_entry_too_many(fun, entries):
    assert fgrad.sparse_jacobian(fun).prepare(np.ones(6)).pattern.nnz == entries
