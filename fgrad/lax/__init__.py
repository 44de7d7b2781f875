"""Control flow, implicit functions and named axes, and elementary operations, in the names of `jax.lax`."""

from importlib import import_module as _import_module

from fgrad.lax import elementwise as _elementwise
from fgrad.lax import reductions as _reductions
from fgrad.lax import shapes as _shapes
from fgrad.lax import windows as _windows
from fgrad.lax.associative import associative_scan
from fgrad.lax.collective import all_gather, all_to_all, axis_index, pmax, pmean, pmin, ppermute, psum, psum_scatter
from fgrad.lax.control import cond, fori_loop, map, scan, switch, while_loop
from fgrad.lax.elementwise import *  # noqa: F403
from fgrad.lax.implicit import custom_linear_solve, custom_root, fixed_point
from fgrad.lax.reductions import *  # noqa: F403
from fgrad.lax.shapes import *  # noqa: F403
from fgrad.lax.windows import *  # noqa: F403
from fgrad.transforms.collective import axis_size
from fgrad.transforms.stop import stop_gradient

_SPECIAL = {
    "bessel_i0e": "i0e",
    "bessel_i1e": "i1e",
    "betainc": "betainc",
    "digamma": "digamma",
    "erf": "erf",
    "erf_inv": "erfinv",
    "erfc": "erfc",
    "igamma": "gammainc",
    "igammac": "gammaincc",
    "lgamma": "gammaln",
    "polygamma": "polygamma",
    "zeta": "zeta",
}
"""Names that are `fgrad.scipy.special`'s, which is loaded when one is asked for."""


def __getattr__(name: str) -> object:
    if name in _SPECIAL:
        return getattr(_import_module("fgrad.scipy.special"), _SPECIAL[name])
    raise AttributeError(f"module 'fgrad.lax' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SPECIAL})


__all__ = [
    "all_gather",
    "all_to_all",
    "associative_scan",
    "axis_index",
    "axis_size",
    "cond",
    "custom_linear_solve",
    "custom_root",
    "fixed_point",
    "fori_loop",
    "map",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "psum",
    "psum_scatter",
    "scan",
    "stop_gradient",
    "switch",
    "while_loop",
    *_elementwise.__all__,
    *_reductions.__all__,
    *_shapes.__all__,
    *_windows.__all__,
    *_SPECIAL,
]
