"""Control flow and named axes, in the names of `jax.lax`."""

from fgrad.lax.associative import associative_scan
from fgrad.lax.collective import all_gather, all_to_all, axis_index, pmax, pmean, pmin, ppermute, psum, psum_scatter
from fgrad.lax.control import cond, fori_loop, map, scan, switch, while_loop
from fgrad.lax.implicit import custom_linear_solve, custom_root, fixed_point
from fgrad.transforms.collective import axis_size
from fgrad.transforms.stop import stop_gradient

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
]
