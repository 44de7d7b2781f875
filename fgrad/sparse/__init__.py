"""Jacobians and Hessians that are mostly zero: found where they are not, computed in few passes, as SciPy's arrays.

`incidence` says what each primitive's outputs depend on, `pattern` follows that through a Program, `coloring` finds
which columns can share a pass, `derivatives` has the functions that users call. SciPy is imported when one is called.
"""

from fgrad.sparse.derivatives import SparseDerivative, sparse_hessian, sparse_jacobian

__all__ = ["SparseDerivative", "sparse_hessian", "sparse_jacobian"]
