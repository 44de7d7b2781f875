"""Entries by index are loads of the kernel that uses them: values, gradients, edges, bytes, and every target."""

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("triton", reason="Triton's wheels exist for Linux alone, see the extra fgrad[triton]")

import fgrad
import fgrad.numpy as fnp
from fgrad.backend.gpu.program import GpuProgram
from fgrad.triton_kernels import check_call
from fgrad.triton_kernels.cards import CARDS
from fgrad.triton_kernels.traffic import traffic

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(11, 6)).astype(np.float32)
AT = np.array([[3, 0, -1], [10, 3, -11]])


def compiled(f, *args):
    return GpuProgram(fgrad.make_ir(f)(*args).simplify())


def compare(f, *args, rtol=2e-5):
    program = fgrad.make_ir(f)(*args).simplify()
    run = GpuProgram(program)
    with np.errstate(all="ignore"):
        for got, want in zip(run.compute(*args), program.compute(*args), strict=True):
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=rtol)
        assert check_call(run.compute, *args, overflow=False) == []
    return run


CASES = {
    "rows": lambda x: x[AT] * 2,
    "columns": lambda x: fnp.take(x, AT, axis=1) + 1 if x.shape[1] > 10 else x[:, AT % 6] + 1,
    "of a view": lambda x: x.T[::-1][AT % 6] * 3,
    "of every other row": lambda x: x[::2][AT % 6] * 3,
    "one entry": lambda x: x[np.array(3)] * x,
    "one entry of one axis for all": lambda x: x[:, 0][np.array([[4]])] * x,
    "an entry for each row": lambda x: x[:, 1][np.arange(11)[::-1, None] % 11] * fgrad.nn.softmax(x),
    "an entry for each column": lambda x: x[:, 1][np.arange(6) * 2] * fgrad.nn.softmax(x),
    "none": lambda x: x[AT[:0]] * 2,
    "summed along rows": lambda x: x[AT].sum(-1),
    "summed over rows": lambda x: x[AT].sum((0, 1)),
    "standardized": lambda x: fgrad.nn.standardize(x[AT]),
    "of what a kernel makes": lambda x: fnp.tanh(x)[AT] * x[0],
    "twice": lambda x: x[AT] * x[AT[::-1]] + x[AT],
    "of entries": lambda x: x[AT][np.array([1, 1, 0])] - 1,
    "of what counts": lambda x: np.arange(11)[AT] * x[AT, 0],
}


@pytest.mark.parametrize("name", CASES)
def test_entries(name):
    f = CASES[name]
    compare(f, TABLE)
    if name != "none":
        compare(fgrad.grad(lambda x: fnp.sum(f(x) * fnp.cos(f(x)))), TABLE, rtol=2e-4)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8, np.int64, np.bool_])
@pytest.mark.parametrize("index", [np.int64, np.int32, np.uint8, np.int8])
def test_types(dtype, index):
    x = (TABLE * 3).astype(dtype)
    compare(lambda x, i: fnp.concatenate([x[i], x[i]]), x, np.abs(AT).astype(index) % 11, rtol=1e-2)
    compare(lambda x, i: x[i] * x[i], x, np.abs(AT).astype(index) % 11, rtol=1e-2)


def test_an_index_that_is_an_argument_of_no_axes():
    run = compare(lambda x, i: x[:, 0][i] + x[:, 1], TABLE, np.array(4))
    assert run.compute(TABLE, np.array(-1))[0].shape == (11,)
    run = compare(lambda x, i: x[:, 0][i] * x.sum(1), TABLE, np.array([4]))


def test_indices_are_arguments():
    f = fgrad.jit(lambda x, i: x[i].sum(1), device="twin")
    for at in (AT, AT[::-1], AT % 3):
        np.testing.assert_allclose(f(TABLE, at), TABLE[at].sum(1), rtol=1e-5)


def test_what_is_no_entry_is_nan_and_touches_no_memory():
    run = compiled(lambda x, i: (x[i] * 2, x.astype(np.int32)[i]), TABLE, AT)
    at = np.array([[0, 11, -12], [10**9, -(10**9), 1]])
    there = (at >= -11) & (at < 11)
    floats, integers = run.compute(TABLE, at)
    np.testing.assert_array_equal(np.isnan(floats).all(-1), ~there)
    np.testing.assert_allclose(floats[there], TABLE[at[there]] * 2)
    assert (integers[~there] == 0).all()
    assert check_call(run.compute, TABLE, at, overflow=False) == []


def test_rows_too_long_for_registers(monkeypatch):
    from fgrad.backend.gpu import fusion

    monkeypatch.setattr(fusion.Domain.__new__, "__defaults__", ((), (), 4))
    x = RNG.normal(size=(5, 300)).astype(np.float32)
    compare(lambda x: fgrad.nn.softmax(x[np.array([4, 0, -2])] * 2), x, rtol=1e-4)


def test_an_embedding_and_its_norm_are_one_kernel_that_reads_each_row_once():
    table = RNG.normal(size=(1000, 64)).astype(np.float32)
    at = RNG.permutation(1000)[:128]

    def f(table, at):
        return fgrad.nn.standardize(table[at]) * 2

    [launch] = traffic(fgrad.jit(f, device="twin"), table, at)
    assert launch.moved == 2 * 128 * 64 * 4 + at.nbytes


@pytest.mark.heavy
@pytest.mark.parametrize("target", sorted({card.target for card in CARDS.values()} | {"sm_80"}))
def test_targets(target):
    low = fgrad.jit(lambda x, i: fgrad.nn.standardize(x[i])).lower(np.ones((99, 1024), np.float32), AT, target=target)
    [part] = [part for part in low.parts if part.kind != "view"]
    assert (part.kind, part.report.spill_bytes) == ("generated", 0)
