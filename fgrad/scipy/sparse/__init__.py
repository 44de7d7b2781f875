"""Iterative solvers of linear systems, in the names of `jax.scipy.sparse`."""

from fgrad.scipy.sparse import linalg

__all__ = ["linalg"]
