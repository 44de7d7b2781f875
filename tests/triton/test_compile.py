"""Compilation without a GPU: what the reports say, the calling convention, limits, the store."""

import dataclasses
import multiprocessing
import os

import numpy as np
import pytest
import triton
import triton.language as tl

from fgrad.triton_kernels import compile_call, compile_kernel, store, toolchain
from fgrad.triton_kernels.compile import HIDDEN_ARGUMENTS, LIMITS, AbiError, Report, _check_abi
from fgrad.triton_kernels.runtime import launch


@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n, other=0.0), mask=at < n)


@triton.jit
def hold(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(out + at, value * tl.sum(value, 0))


@triton.jit
def product(x, y, out, SIZE: tl.constexpr, PRECISION: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(out + at, tl.dot(tl.load(x + at), tl.load(y + at), input_precision=PRECISION))


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_report_of_a_copy(target):
    signature = {"x": "*fp32", "out": "*fp32", "n": "i32:16"}
    report = compile_kernel(copy, signature, {"BLOCK": 1024}, [target])[target]
    assert report.parameters == 3 + HIDDEN_ARGUMENTS
    assert report.load_bits == report.store_bits == 128
    assert report.threads == 4 * (64 if target == "gfx942" else 32)
    assert 0 < report.registers < 64
    assert report.occupancy == 1
    assert (report.spill_bytes, report.local_accesses, report.tensor_cores, report.problems) == (0, 0, (), ())


def test_unaligned_pointers_are_not_read_as_vectors():
    signature = {"x": "*fp32:1", "out": "*fp32", "n": "i32:16"}
    report = compile_kernel(copy, signature, {"BLOCK": 1024}, ["sm_90"])["sm_90"]
    assert (report.load_bits, report.store_bits) == (32, 128)


def test_spills_show():
    reports = {
        block: compile_kernel(hold, {"x": "*bf16", "out": "*bf16"}, {"BLOCK": block}, ["sm_90"], num_warps=warps)[
            "sm_90"
        ]
        for block, warps in ((16384, 16), (131072, 32))
    }
    assert reports[16384].spill_bytes == 0
    assert reports[131072].spill_bytes > 0
    assert reports[131072].local_accesses > 0


TENSOR_CORES = {"sm_80": "HMMA", "sm_90": "HGMMA", "sm_100": "UTCHMMA", "gfx942": "v_mfma", "gfx950": "v_mfma"}


@pytest.mark.parametrize(("target", "name"), TENSOR_CORES.items())
def test_tensor_cores_show(target, name):
    signature = {"x": "*bf16", "y": "*bf16", "out": "*fp32"}
    report = compile_kernel(product, signature, {"SIZE": 64, "PRECISION": "ieee"}, [target])[target]
    assert any(instruction.startswith(name) for instruction in report.tensor_cores)


def test_float32_products_use_tensor_cores_only_on_request():
    signature = {"x": "*fp32", "y": "*fp32", "out": "*fp32"}
    used = {
        precision: compile_kernel(product, signature, {"SIZE": 32, "PRECISION": precision}, ["sm_80"])[
            "sm_80"
        ].tensor_cores
        for precision in ("ieee", "tf32")
    }
    assert used == {"ieee": (), "tf32": ("HMMA",)}


def test_a_kernel_that_compiles_and_cannot_launch_has_problems():
    signature = {"x": "*fp32", "out": "*fp32", "n": "i32"}
    report = compile_kernel(copy, signature, {"BLOCK": 1024}, ["sm_90"], num_warps=64)["sm_90"]
    assert report.problems == ("2048 threads, the limit is 1024",)


@pytest.mark.heavy
@pytest.mark.parametrize("target", LIMITS)
def test_every_figure_is_there_for_every_target(target):
    signature = {"x": "*bf16", "y": "*bf16", "out": "*fp32"}
    report = compile_kernel(product, signature, {"SIZE": 128, "PRECISION": "ieee"}, [target])[target]
    assert report.registers > 16
    assert 16 << 10 <= report.shared_bytes <= LIMITS[target].shared_bytes
    assert report.load_bits >= 64
    assert report.tensor_cores
    assert 0 < report.occupancy < 1
    assert report.parameters == 3 + HIDDEN_ARGUMENTS


def test_figures_are_read_once_and_kept_between_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("FGRAD_CACHE_DIR", str(tmp_path))
    signature = {"x": "*fp32", "out": "*fp32", "n": "i32"}
    first = compile_kernel(copy, signature, {"BLOCK": 512}, ["sm_90"])
    monkeypatch.setattr(toolchain, "disassemble", None)
    assert compile_kernel(copy, signature, {"BLOCK": 512}, ["sm_90"]) == first


def test_a_changed_calling_convention_raises():
    report = Report("sm_90", 32, 0, 0, 128, 128, 128, (), 0, parameters=6)
    _check_abi(report, 4)
    with pytest.raises(AbiError, match="takes 6 parameters, a launch passes 3 arguments and 2 scratch pointers"):
        _check_abi(report, 3)


@pytest.mark.parametrize("value", [1, 3, 16])
def test_every_integer_value_builds_and_shares_the_parameters(value):
    def call(n):
        launch(copy, 1, np.empty(16, np.float32), np.empty(16, np.float32), n, BLOCK=16)

    report = compile_call(call, value, targets=["sm_90"])["copy"]["sm_90"]
    assert report.parameters == 3 + HIDDEN_ARGUMENTS


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"targets: got \['sm_12'\]"):
        compile_kernel(copy, {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 16}, ["sm_12"])
    with pytest.raises(ValueError, match=r"unknown parameters \['z'\], missing parameters \['out'\]"):
        compile_kernel(copy, {"x": "*fp32", "z": "*fp32", "n": "i32"}, {"BLOCK": 16}, ["sm_90"])
    with pytest.raises(ValueError, match=r"signature: x has type '\*float16', expected one of"):
        compile_kernel(copy, {"x": "*float16", "out": "*fp32", "n": "i32"}, {"BLOCK": 16}, ["sm_90"])


@pytest.mark.slow
@pytest.mark.parametrize("target", LIMITS)
def test_products_build_for_every_target(target):
    for kind in ("fp32", "fp16", "bf16"):
        signature = {"x": f"*{kind}", "y": f"*{kind}", "out": "*fp32"}
        report = compile_kernel(product, signature, {"SIZE": 64, "PRECISION": "ieee"}, [target])[target]
        assert not report.problems


def _compile_in_a_process(folder):
    os.environ["TRITON_CACHE_DIR"] = os.environ["FGRAD_CACHE_DIR"] = folder
    signature = {"x": "*fp32", "out": "*fp32", "n": "i32"}
    report = compile_kernel(copy, signature, {"BLOCK": 256}, ["sm_90"])["sm_90"]
    return dataclasses.astuple(report)


@pytest.mark.heavy
def test_processes_share_a_cache(tmp_path):
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        results = pool.map(_compile_in_a_process, [str(tmp_path)] * 4, chunksize=1)
    assert len(set(results)) == 1


def test_stored_values_outlive_a_damaged_file_and_a_missing_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FGRAD_CACHE_DIR", str(tmp_path / "cache"))
    calls = []

    def compute():
        calls.append(1)
        return {"a": 1}

    assert store.remembered("key", compute) == store.remembered("key", compute) == {"a": 1}
    assert len(calls) == 1
    next((tmp_path / "cache").iterdir()).write_text("{")
    assert store.remembered("key", compute) == {"a": 1}
    assert len(calls) == 2
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FGRAD_CACHE_DIR", str(tmp_path / "file"))
    assert store.remembered("key", compute) == {"a": 1}
