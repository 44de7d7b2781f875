"""What named cards can do at most: the ceilings that projected times come from.

Sources: the vendors' data sheets (dense figures, without sparsity): NVIDIA A100 80 GB SXM, H100 SXM, H200 SXM, B200;
AMD Instinct MI300X.
"""

from __future__ import annotations

from typing import NamedTuple


class Card(NamedTuple):
    """Ceilings of a card: bytes per second of memory, operations per second by what they are done in."""

    target: str
    bandwidth: float
    float32: float
    float64: float
    half_products: float


CARDS = {
    "A100": Card("sm_80", 2.04e12, 19.5e12, 9.7e12, 312e12),
    "H100": Card("sm_90", 3.35e12, 67e12, 34e12, 989e12),
    "H200": Card("sm_90", 4.8e12, 67e12, 34e12, 989e12),
    "B200": Card("sm_100", 8.0e12, 75e12, 37e12, 2250e12),
    "MI300X": Card("gfx942", 5.3e12, 163e12, 81e12, 1307e12),
}

LAUNCH = 2.5e-6
"""Seconds from one kernel of a stream to the next."""


def projected(card: Card, moved: int, flops: int, dtype: str, product: bool = False) -> float:
    """Return the seconds that a kernel takes at least on a card: memory or arithmetic at its ceiling, and the launch.

    Args:
        card: the ceilings.
        moved: bytes read and written.
        flops: floating-point operations.
        dtype: what they are done in.
        product: whether they are those of a matrix product, which half precision does on matrix units.
    """
    peak = card.float64 if dtype == "float64" else card.float32
    if product and dtype in ("float16", "bfloat16"):
        peak = card.half_products
    return max(moved / card.bandwidth, flops / peak) + LAUNCH
