"""The twin computes what the hardware computes: every group of operations against NumPy, in every type."""

import threading

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.tools.tensor_descriptor import TensorDescriptor

from fgrad.triton_kernels.twin import KernelAssertion, KernelMemoryError, interpret, source_text

FLOATS = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]
EIGHT_BITS = [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


def draw(shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def same(result, expected):
    """Compare bit for bit; NaN equals NaN."""
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result.astype(np.float64), expected.astype(np.float64))


def mapped(kernel, result_dtype, *inputs, **meta):
    """Run an elementwise kernel over one block and return its output."""
    out = np.empty(inputs[0].shape, result_dtype)
    interpret(kernel, 1, *inputs, out, BLOCK=out.size, **meta)
    return out


@triton.jit
def add(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + tl.load(y + at))


@triton.jit
def multiply_add(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, tl.where(a < b, a * b + a, a - b))


@pytest.mark.parametrize("dtype", FLOATS)
def test_arithmetic_rounds_each_operation_to_its_type(dtype):
    x, y = draw(64, dtype), draw(64, dtype, 1)
    same(mapped(add, dtype, x, y), x + y)
    same(mapped(multiply_add, dtype, x, y), np.where(x < y, x * y + x, x - y))


@triton.jit
def cast(x, out, BLOCK: tl.constexpr, TO: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at).to(TO))


@pytest.mark.parametrize(
    ("dtype", "to"), [(ml_dtypes.bfloat16, tl.bfloat16), (np.float16, tl.float16), (np.float32, tl.float32)]
)
def test_narrowing_rounds_to_nearest_even(dtype, to):
    x = draw(1024)
    same(mapped(cast, dtype, x, TO=to), x.astype(dtype))


@pytest.mark.parametrize(("dtype", "to"), list(zip(EIGHT_BITS, [tl.float8e4nv, tl.float8e5])))
def test_eight_bit_floats_round_and_saturate(dtype, to):
    largest = np.float32(ml_dtypes.finfo(dtype).max)
    x = np.concatenate([draw(60), np.float32([1e9, -1e9, np.nan, 0.3])])
    expected = np.clip(x, -largest, largest).astype(dtype)
    result = mapped(cast, dtype, x, TO=to)
    same(result, expected)
    same(mapped(cast, np.float32, result, TO=tl.float32), expected.astype(np.float32))


@triton.jit
def to_int(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at).to(tl.int32))


def test_float_to_integer_truncates_and_saturates():
    x = np.float32([1.9, -1.9, 3e9, -3e9, np.nan, np.inf, 0.5, -0.5])
    result = mapped(to_int, np.int32, x)
    np.testing.assert_array_equal(result, [1, -1, 2**31 - 1, -(2**31), 0, 2**31 - 1, 0, 0])


@triton.jit
def divide(x, y, quotient, remainder, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(quotient + at, a // b)
    tl.store(remainder + at, a % b)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_integer_division_truncates_to_zero(dtype):
    x = np.array([7, 2**31 - 1, 100, 5], dtype)
    y = np.array([2, 3, 7, 9], dtype)
    if np.iinfo(dtype).min < 0:
        x[1:3] *= -1
    else:
        x[0] = np.iinfo(dtype).max
    quotient, remainder = np.empty_like(x), np.empty_like(x)
    interpret(divide, 1, x, y, quotient, remainder, BLOCK=4)
    exact = [divmod(abs(int(a)), int(b)) for a, b in zip(x, y)]
    signs = np.array([-1 if a < 0 else 1 for a in x]).astype(dtype)
    np.testing.assert_array_equal(quotient, np.array([q for q, _ in exact], dtype) * signs)
    np.testing.assert_array_equal(remainder, np.array([r for _, r in exact], dtype) * signs)


@triton.jit
def bits(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at)
    tl.store(out + at, ((a >> 3) ^ (a << 2)) | (a & 5))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int8, np.uint8])
def test_shifts_follow_signedness(dtype):
    x = np.arange(-64, 64, dtype=np.int64).astype(dtype)
    expected = ((x >> dtype(3)) ^ (x << dtype(2))) | (x & dtype(5))
    np.testing.assert_array_equal(mapped(bits, dtype, x), expected)


@triton.jit
def transcendental(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n, other=0.0)
    value = tl.exp(a) + tl.log(a * a + 1) + tl.sin(a) * tl.cos(a) + tl.sqrt(a * a) + tl.erf(a)
    value += tl.math.rsqrt(a * a + 1) + tl.exp2(a) + tl.log2(a * a + 1) + tl.floor(a) + tl.ceil(a) + tl.abs(a)
    value += libdevice.tanh(a) + libdevice.log1p(a * a) + libdevice.expm1(a) + libdevice.pow(a * a + 1, a)
    tl.store(out + at, value + tl.math.fma(a, a, a), mask=at < n)


def test_transcendentals_and_the_device_library():
    scipy_special = pytest.importorskip("scipy.special")
    x = draw(37)
    out = np.empty_like(x)
    interpret(transcendental, 1, x, out, 37, BLOCK=64)
    a = x.astype(np.float64)
    expected = np.exp(a) + np.log(a * a + 1) + np.sin(a) * np.cos(a) + np.abs(a) + scipy_special.erf(a)
    expected += 1 / np.sqrt(a * a + 1) + np.exp2(a) + np.log2(a * a + 1) + np.floor(a) + np.ceil(a) + np.abs(a)
    expected += np.tanh(a) + np.log1p(a * a) + np.expm1(a) + (a * a + 1) ** a + a * a + a
    np.testing.assert_allclose(out, expected, rtol=3e-6)


@triton.jit
def matmul(x, y, out, m, n, k, PRECISION: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        inner = start + tl.arange(0, K)
        a = tl.load(x + rows[:, None] * k + inner[None, :], (rows[:, None] < m) & (inner[None, :] < k), 0.0)
        b = tl.load(y + inner[:, None] * n + columns[None, :], (inner[:, None] < k) & (columns[None, :] < n), 0.0)
        total = tl.dot(a, b, total, input_precision=PRECISION)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(out + rows[:, None] * n + columns[None, :], total, mask)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, *EIGHT_BITS])
def test_dot_accumulates_in_float32(dtype):
    x, y = draw((33, 70), dtype), draw((70, 17), dtype, 1)
    out = np.full((33, 17), np.nan, np.float32)
    interpret(matmul, (2, 1), x, y, out, 33, 17, 70, PRECISION="ieee", M=32, N=32, K=32)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(out, exact, rtol=1e-5, atol=1e-5)


def test_tf32_reads_ten_fraction_bits():
    x, y = draw((32, 32)), draw((32, 32), seed=1)
    precise, coarse = np.empty((2, 32, 32), np.float32)
    interpret(matmul, (1, 1), x, y, precise, 32, 32, 32, PRECISION="ieee", M=32, N=32, K=32)
    interpret(matmul, (1, 1), x, y, coarse, 32, 32, 32, PRECISION="tf32", M=32, N=32, K=32)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    assert np.abs(precise - exact).max() < 1e-5
    assert 1e-5 < np.abs(coarse - exact).max() < 2e-2


@triton.jit
def reductions(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(out, tl.sum(a))
    tl.store(out + 1, tl.max(a))
    tl.store(out + 2, tl.min(a))
    tl.store(out + 3, tl.argmax(a, 0).to(tl.float32))
    tl.store(out + 4, tl.argmin(a, 0).to(tl.float32))
    tl.store(out + 5, tl.xor_sum(at).to(tl.float32))


@pytest.mark.parametrize("dtype", FLOATS)
def test_reductions(dtype):
    x = draw(100, dtype)
    out = np.empty(6, np.float32)
    interpret(reductions, 1, x, out, 100, BLOCK=128)
    wide = x.astype(np.float64)
    expected = [wide.sum(), wide.max(), wide.min(), wide.argmax(), wide.argmin(), 0]
    np.testing.assert_allclose(out, expected, rtol=2e-2 if np.dtype(dtype).itemsize == 2 else 1e-5)


def test_argmax_takes_the_first_of_equals():
    out = np.empty(6, np.float32)
    interpret(reductions, 1, np.float32([0, 3, 1, 3, -2, 3, -2, 0]), out, 8, BLOCK=8)
    assert out[3] == 1
    assert out[4] == 4


@triton.jit
def row_sums(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, AXIS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    total = tl.sum(tl.load(x + at), AXIS)
    tl.store(out + tl.arange(0, ROWS if AXIS == 1 else COLUMNS), total)


@pytest.mark.parametrize("axis", [0, 1])
def test_reduction_along_an_axis(axis):
    x = draw((8, 32))
    out = np.empty(8 if axis else 32, np.float32)
    interpret(row_sums, 1, x, out, ROWS=8, COLUMNS=32, AXIS=axis)
    np.testing.assert_allclose(out, x.sum(axis), rtol=1e-5)


@triton.jit
def affine(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def scans(x, y, sums, products, states, BLOCK: tl.constexpr, REVERSE: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(sums + at, tl.cumsum(a, 0, reverse=REVERSE))
    tl.store(products + at, tl.cumprod(a, 0, reverse=REVERSE))
    _, state = tl.associative_scan((a, b), 0, affine, reverse=REVERSE)
    tl.store(states + at, state)


@pytest.mark.parametrize("reverse", [False, True])
def test_scans(reverse):
    x, y = 1 + 0.1 * draw(64), draw(64, seed=1)
    sums, products, states = np.empty((3, 64), np.float32)
    interpret(scans, 1, x, y, sums, products, states, BLOCK=64, REVERSE=reverse)
    x, y = (x[::-1], y[::-1]) if reverse else (x, y)
    expected, state = [], 0.0
    for a, b in zip(x.astype(np.float64), y.astype(np.float64)):
        state = state * a + b
        expected.append(state)
    results = [r[::-1] if reverse else r for r in (sums, products, states)]
    for result, wanted in zip(results, (x.cumsum(), x.cumprod(), expected)):
        np.testing.assert_allclose(result, wanted, rtol=2e-4, atol=1e-5)


@triton.jit
def ordering(x, ascending, descending, largest, BLOCK: tl.constexpr, K: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at)
    tl.store(ascending + at, tl.sort(a))
    tl.store(descending + at, tl.sort(a, descending=True))
    tl.store(largest + tl.arange(0, K), tl.topk(a, K))


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint32])
def test_sort_and_topk(dtype):
    x = (draw(64) * 1e6).astype(np.int64).astype(dtype)
    ascending, descending, largest = np.empty_like(x), np.empty_like(x), np.empty(8, dtype)
    interpret(ordering, 1, x, ascending, descending, largest, BLOCK=64, K=8)
    np.testing.assert_array_equal(ascending, np.sort(x))
    np.testing.assert_array_equal(descending, np.sort(x)[::-1])
    np.testing.assert_array_equal(largest, np.sort(x)[::-1][:8])


@triton.jit
def shuffles(x, index, out, counts, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, i = tl.load(x + at), tl.load(index + at)
    gathered = tl.gather(a, i, 0)
    even, odd = tl.split(tl.reshape(a, (BLOCK // 2, 2)))
    swapped = tl.reshape(tl.join(odd, even), (BLOCK,))
    turned = tl.reshape(tl.trans(tl.reshape(a, (4, BLOCK // 4))), (BLOCK,))
    tl.store(out + at, gathered)
    tl.store(out + BLOCK + at, swapped)
    tl.store(out + 2 * BLOCK + at, turned)
    tl.store(out + 3 * BLOCK + at, tl.flip(a, 0))
    tl.store(counts + tl.arange(0, 16), tl.histogram(i, 16))


def test_gather_join_transpose_flip_histogram():
    x, index = draw(32), np.random.default_rng(0).integers(0, 20, 32).astype(np.int32)
    out, counts = np.empty((4, 32), np.float32), np.empty(16, np.int32)
    interpret(shuffles, 1, x, index, out, counts, BLOCK=32)
    same(out[0], x[index])
    same(out[1], x.reshape(16, 2)[:, ::-1].reshape(-1))
    same(out[2], x.reshape(4, 8).T.reshape(-1))
    same(out[3], x[::-1].copy())
    np.testing.assert_array_equal(counts, np.bincount(index[index < 16], minlength=16))


@triton.jit
def draws(seed, uniform, normal, integers, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(uniform + at, tl.rand(seed, at))
    tl.store(normal + at, tl.randn(seed, at))
    tl.store(integers + at, tl.randint(seed, at))


def test_random_numbers_are_philox_and_do_not_depend_on_the_block():
    results = []
    for block in (64, 256):
        uniform, normal, integers = np.empty(512, np.float32), np.empty(512, np.float32), np.empty(512, np.int32)
        interpret(draws, 512 // block, 7, uniform, normal, integers, BLOCK=block)
        results.append((uniform, normal, integers))
    for first, second in zip(*results):
        np.testing.assert_array_equal(first, second)
    uniform, normal, integers = results[0]
    assert 0 <= uniform.min() < uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.05
    assert abs(normal.std() - 1) < 0.1
    assert len(set(integers.tolist())) > 500


def philox(counter, key):
    """Philox 4x32-10 (Salmon et al., 2011), one counter."""
    counter, key = list(counter), list(key)
    for _ in range(10):
        high_a, low_a = divmod(0xD2511F53 * counter[0], 2**32)
        high_b, low_b = divmod(0xCD9E8D57 * counter[2], 2**32)
        counter = [high_b ^ counter[1] ^ key[0], low_b, high_a ^ counter[3] ^ key[1], low_a]
        key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
    return counter


def test_random_integers_equal_the_published_generator():
    uniform, normal, integers = np.empty(16, np.float32), np.empty(16, np.float32), np.empty(16, np.int32)
    interpret(draws, 1, 7, uniform, normal, integers, BLOCK=16)
    expected = [philox((offset, 0, 0, 0), (7, 0))[0] for offset in range(16)]
    np.testing.assert_array_equal(integers.view(np.uint32), expected)


@triton.jit
def atomics(index, total, largest, before, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = tl.load(index + at)
    tl.store(before + at, tl.atomic_add(total + i, 1.0))
    tl.atomic_max(largest + i, at)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_atomics_combine_repeated_indices(dtype):
    index = np.random.default_rng(0).integers(0, 5, 64).astype(np.int32)
    total, largest, before = np.zeros(5, dtype), np.zeros(5, np.int32), np.empty(64, dtype)
    interpret(atomics, 4, index, total, largest, before, BLOCK=16)
    np.testing.assert_array_equal(total.astype(int), np.bincount(index))
    np.testing.assert_array_equal(largest, [np.flatnonzero(index == i).max() for i in range(5)])
    for i in range(5):
        np.testing.assert_array_equal(np.sort(before[index == i].astype(int)), np.arange((index == i).sum()))


@triton.jit
def extremes(x, least, most, BLOCK: tl.constexpr):
    value = tl.load(x + tl.arange(0, BLOCK))
    tl.atomic_min(least + tl.zeros((BLOCK,), tl.int32), value)
    tl.atomic_max(most + tl.zeros((BLOCK,), tl.int32), value)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint32, np.int64])
def test_atomic_extremes(dtype):
    x = (10 * draw(16)).astype(np.int64).astype(dtype)
    least, most = x[3:4].copy(), x[3:4].copy()
    interpret(extremes, 1, x, least, most, BLOCK=16)
    assert (least[0], most[0]) == (x.min(), x.max())


@triton.jit
def locked_sum(lock, total, x):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + tl.load(x + tl.program_id(0)))
    tl.atomic_xchg(lock, 0)


def test_compare_and_swap_lock():
    x, lock, total = draw(10), np.zeros(1, np.int32), np.zeros(1, np.float32)
    interpret(locked_sum, 10, lock, total, x)
    np.testing.assert_allclose(total, x.sum(), rtol=1e-6)


@triton.jit
def control(x, out, n, DOUBLE: tl.constexpr):
    row = tl.program_id(0)
    if row == 3:
        return
    value = tl.load(x + row)
    steps = 0
    while value < n:
        value *= 2
        steps += 1
    for i in range(3, 0, -1):
        value += i.to(tl.float32)
    if DOUBLE:
        value = value * 2
    elif row > 1:
        value = -value
    for _ in tl.static_range(2):
        value += 0.5
    tl.store(out + row, value + steps)


def test_loops_branches_and_early_return():
    x, out = np.float32([1, 3, 9, 4, 20]), np.full(5, -1, np.float32)
    interpret(control, 5, x, out, 8, DOUBLE=False)
    np.testing.assert_array_equal(out, [8 + 6 + 1 + 3, 12 + 6 + 1 + 2, -15 + 1, -1, -26 + 1])


@triton.jit
def through_descriptors(x, out, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [m, n], [n, 1], [ROWS, COLUMNS])
    target = tl.make_tensor_descriptor(out, [m, n], [n, 1], [ROWS, COLUMNS])
    row = tl.program_id(0) * ROWS
    target.store([row, 0], source.load([row, 0]) * 2)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_tensor_descriptors_made_in_the_kernel(dtype):
    x = draw((10, 24), dtype)
    out = np.zeros_like(x)
    interpret(through_descriptors, 3, x, out, 10, 24, ROWS=4, COLUMNS=32)
    same(out, x * dtype(2))


@triton.jit
def from_host(source, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    block = source.load([tl.program_id(0) * ROWS, 0])
    at = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + at, block)


class Pointed:
    """What Triton's host descriptor asks of an array."""

    def __init__(self, array):
        self.array = array
        self.dtype = array.dtype

    def data_ptr(self):
        return self.array.ctypes.data


def test_tensor_descriptors_made_on_the_host():
    x, out = draw((6, 16)), np.empty((8, 16), np.float32)
    descriptor = TensorDescriptor(Pointed(x), list(x.shape), [16, 1], [4, 16])
    interpret(from_host, 2, descriptor, out, ROWS=4, COLUMNS=16)
    same(out[:6], x)
    assert not out[6:].any()


@triton.jit
def strided_copy(x, out, m, n, row_stride, column_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    mask = at < n
    values = tl.load(x + row * row_stride + at * column_stride, mask=mask, other=0.0)
    tl.store(out + row * n + at, values, mask=mask)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x.T,
        lambda x: x[::-1, ::-1],
        lambda x: x[1:, 2:],
        lambda x: x[:, ::3],
        lambda x: np.broadcast_to(x[0], (5, x.shape[1])),
    ],
)
def test_views_are_read_in_place(view):
    x = view(draw((7, 11)))
    out = np.empty(x.shape, np.float32)
    interpret(strided_copy, x.shape[0], x, out, *x.shape, *(s // 4 for s in x.strides), BLOCK=16)
    same(out, np.ascontiguousarray(x))


@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < BLOCK)


def test_masked_load_without_other_gives_nan():
    out = np.empty(8, np.float32)
    interpret(copy, 1, np.ones(5, np.float32), out, 5, BLOCK=8)
    np.testing.assert_array_equal(np.isnan(out), [False] * 5 + [True] * 3)


def test_access_outside_an_argument_raises_and_names_it():
    with pytest.raises(KernelMemoryError, match=r"store in program \(0, 0, 0\).*argument 'out' element 6 is outside"):
        interpret(copy, 1, np.ones(8, np.float32), np.empty(6, np.float32), 8, BLOCK=8)


def test_access_between_the_rows_of_a_view_raises():
    base = draw((4, 10))
    with pytest.raises(KernelMemoryError, match="argument 'x' element 5 is outside"):
        interpret(copy, 1, base[:, :5], np.empty(8, np.float32), 8, BLOCK=8)


def test_writing_a_read_only_array_raises():
    out = np.broadcast_to(np.float32(0), (8,))
    with pytest.raises(KernelMemoryError, match="argument 'out' is read-only"):
        interpret(copy, 1, np.ones(8, np.float32), out, 8, BLOCK=8)


@triton.jit
def asserting(x, n):
    tl.device_assert(tl.load(x + tl.program_id(0)) < n, "too large")


def test_device_assert_raises_with_its_program():
    with pytest.raises(KernelAssertion, match=r"too large in program \(2, 0, 0\)"):
        interpret(asserting, 4, np.int32([0, 1, 5, 2]), 3)


@triton.jit
def large_offset(x, out, step):
    tl.store(out, (tl.program_id(0) + 1) * step)


def test_integer_arithmetic_wraps_as_on_the_hardware_or_raises_on_request():
    out = np.empty(1, np.int32)
    interpret(large_offset, 1, out, out, 2**31 - 1, programs=[(0, 0, 0)])
    interpret(large_offset, 2, out, out, 2**31 - 1)
    assert out[0] == -2
    with pytest.raises(KernelAssertion, match="overflow"):
        interpret(large_offset, 2, out, out, 2**31 - 1, sanitize_overflow=True)


@triton.jit
def breaks(out):
    for i in range(4):
        if i == 2:
            break
    tl.store(out, 1.0)


def test_what_does_not_compile_does_not_interpret():
    with pytest.raises(Exception, match="break"):
        interpret(breaks, 1, np.empty(1, np.float32))


@triton.jit
def assembly(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at)
    b = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [a], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(out + at, b)


def test_a_gap_raises_before_anything_runs():
    out = np.zeros(4, np.float32)
    with pytest.raises(NotImplementedError, match="elementwise_inline_asm"):
        interpret(assembly, 1, draw(4), out, BLOCK=4)
    assert not out.any()


@triton.jit
def pair_sum(xs, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(xs[0] + at) + tl.load(xs[1] + at) * xs[2])


def test_tuples_as_arguments():
    x, y, out = draw(8), draw(8, seed=1), np.empty(8, np.float32)
    interpret(pair_sum, 1, (x, y, 2.0), out, BLOCK=8)
    same(out, x + y * np.float32(2))


@triton.autotune([triton.Config({"BLOCK": 8}), triton.Config({"BLOCK": 16})], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned_copy(x, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < (n + BLOCK if EVEN else n)
    tl.store(out + at, tl.load(x + at, mask=mask, other=0.0), mask=mask)


def test_tuned_kernels_run_their_first_configuration():
    x, out = draw(20), np.empty(20, np.float32)
    interpret(tuned_copy, lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),), x, out, 20)
    same(out, x)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.float32(1), "argument 'x': got a NumPy scalar"),
        ("text", "argument 'x': got str"),
        (np.zeros(1, complex), "argument 'x': a kernel has no type for arrays of complex128"),
        (np.zeros(1, ">f4"), "argument 'x': got byte-swapped"),
        (2**64, "argument 'x': 18446744073709551616 does not fit in 64 bits"),
    ],
)
def test_wrong_arguments_are_named(x, message):
    with pytest.raises(TypeError, match=message):
        interpret(copy, 1, x, np.empty(8, np.float32), 8, BLOCK=8)


def test_missing_unknown_and_repeated_arguments_are_named():
    x = np.zeros(8, np.float32)
    with pytest.raises(TypeError, match="argument 'out' is missing"):
        interpret(copy, 1, x, BLOCK=8)
    with pytest.raises(TypeError, match="no argument 'BLOK'"):
        interpret(copy, 1, x, x, 8, BLOK=8)
    with pytest.raises(TypeError, match="argument 'n' is given twice"):
        interpret(copy, 1, x, x, 8, n=8, BLOCK=8)


def test_threads_interpret_at_the_same_time():
    x = draw((16, 64))
    outs = [np.empty_like(x) for _ in range(4)]

    def work(out):
        interpret(strided_copy, 16, x, out, 16, 64, 64, 1, BLOCK=64)

    threads = [threading.Thread(target=work, args=(out,)) for out in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for out in outs:
        same(out, x)


def test_the_translation_can_be_read():
    text = source_text(add, *np.empty((3, 8), np.float32), BLOCK=8)
    assert "machine.memory.load" in text
    assert "addf(" in text
