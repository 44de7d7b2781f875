"""Run by hand on a machine with a GPU: `python -m tests.triton.gpu`.

First every kernel family on the card against the twin, with the inputs of the battery: the largest difference, in units
of the result's last place at its largest value. Then how fast families move memory, beside a plain copy on that card:
each input read once and each output written once.
"""

import sys

import ml_dtypes
import numpy as np

from fgrad.triton_kernels.runtime import home_of
from tests.triton.families import FAMILIES

DTYPES = (np.float32, np.float16, ml_dtypes.bfloat16)
ROWS, COLUMNS = 16_384, 4096
REPEATS = 20


def compare(home, family, dtype):
    """Return the largest differences of results and gradients between the card and the twin."""
    rows, columns = family.sizes[-1]
    arrays = family.inputs(np.random.default_rng(0), dtype, rows, columns)
    expected = family.forward(*arrays)
    ct = np.random.default_rng(1).normal(size=expected.shape).astype(dtype)
    there = [home.from_numpy(array) for array in arrays]
    forward = difference(home.to_numpy(family.forward(*there)), expected)
    gradients = zip(family.backward(home.from_numpy(ct), *there), family.backward(ct, *arrays))
    return forward, max(difference(home.to_numpy(one), other) for one, other in gradients)


def difference(result, expected):
    """Return the largest difference in units of the last place at the largest value."""
    wide = expected.astype(np.float64)
    unit = float(ml_dtypes.finfo(expected.dtype).eps) * max(np.abs(wide).max(initial=0), 1e-30)
    with np.errstate(all="ignore"):
        return float(np.abs(result.astype(np.float64) - wide).max(initial=0) / unit)


def bandwidth(home, call, nbytes):
    """Return the median GB/s of a call that moves nbytes."""
    call()
    times = sorted(home.elapsed(call) for _ in range(REPEATS))
    return nbytes / max(times[REPEATS // 2], 1e-9) / 1e6


def speed(home, family, rows, columns):
    """Return the GB/s of a family's forward and backward pass, in bfloat16."""
    arrays = family.inputs(np.random.default_rng(0), ml_dtypes.bfloat16, rows, columns)
    there = [home.from_numpy(array) for array in arrays]
    result = family.forward(*there)
    read = sum(array.nbytes for array in arrays)
    gradients = sum(arrays[position].nbytes for position in family.differentiable)
    return (
        bandwidth(home, lambda: family.forward(*there), read + result.nbytes),
        bandwidth(home, lambda: family.backward(result, *there), read + result.nbytes + gradients),
    )


def main(from_numpy, families=FAMILIES, rows=ROWS, columns=COLUMNS):
    """Print both tables for the home of the arrays that `from_numpy` makes."""
    home = home_of(from_numpy(np.zeros(1, np.float32)))
    print(f"{'family':24}{'type':12}{'forward':>12}{'gradient':>12}   (units in the last place)")
    for family in families:
        for dtype in DTYPES:
            forward, gradient = compare(home, family, dtype)
            print(f"{family.name:24}{np.dtype(dtype).name:12}{forward:12.3g}{gradient:12.3g}")
    block = from_numpy(np.zeros((rows, columns), np.float32))
    copy = bandwidth(home, block.copy, 2 * block.nbytes)
    print(f"\n{'family':24}{'forward':>12}{'gradient':>12}   (GB/s and share of a copy, {copy:.0f} GB/s)")
    for family in families:
        if family.name != "matmul":
            forward, gradient = speed(home, family, rows, columns)
            print(f"{family.name:24}{forward:7.0f}{forward / copy:5.0%}{gradient:7.0f}{gradient / copy:5.0%}")


if __name__ == "__main__":
    try:
        import cupy
    except ModuleNotFoundError:
        sys.exit("this script needs a GPU and CuPy: pip install 'fgrad[cuda13]'")
    main(cupy.asarray)
