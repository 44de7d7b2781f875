"""Sparse Jacobians and Hessians of functions of trees, as SciPy's arrays. SciPy is imported when one is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fgrad import tree
from fgrad.core import Tracer, type_of
from fgrad.ops import shape as s
from fgrad.program import Program, trace
from fgrad.source import function_label
from fgrad.transforms.jit import jit
from fgrad.transforms.jvp import jvp
from fgrad.transforms.linearize import as_operand, check_callable, grad, positions, vjp
from fgrad.transforms.vmap import vmap

if TYPE_CHECKING:
    from fgrad.sparse.coloring import Coloring

__all__ = ["SparseDerivative", "sparse_hessian", "sparse_jacobian"]

_KEPT = 64
"""So many signatures are kept prepared; beyond that the oldest is dropped."""

_AT_ONCE = 2**17
"""Elements of the seeds of one pass of several colors, where the user does not say how many: what a cache holds."""


def sparse_jacobian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    sparsity: Any = None,
    check: bool = False,
    chunk: int | None = None,
) -> SparseDerivative:
    """Return a function that computes the Jacobian of `fun` as a sparse matrix, in few passes.

    Where entries can be other than zero is found from the Program of `fun`; columns that share no row are computed in
    one pass of forward mode, a few full rows in reverse mode. This is done once for each set of types of the
    arguments, and of values of those integers and bools among them that are not differentiated.

    Args:
        fun: a function of arrays or pytrees, recorded as `jit` records it: its Python may not depend on values, and
            what it closes over is fixed.
        argnums: which positional arguments to differentiate, of real floating types.
        sparsity: the pattern, if known better: a matrix, dense or of SciPy, other than zero where the Jacobian can be.
        check: compare each result with a product in a random direction, and raise if the pattern missed an entry.
        chunk: number of columns or rows to compute at once; less takes less memory.

    Returns:
        A `SparseDerivative`: called like `fun`, it returns a `scipy.sparse.csr_array` with a row for each element of
        the output and a column for each element of the arguments in `argnums`, leaf after leaf in C order. Its dtype
        is the derivative's; float32 for float16, which SciPy's arrays cannot hold.

    Raises:
        ImportError: (from the call) SciPy is not installed.
        TypeError: an argument to differentiate is no real floating array, or an output is complex; an argument or
            what `fun` closes over is traced.
        ValueError: the Jacobian is not sparse (the message says why); `sparsity` has another shape or, with `check`,
            is wrong.

    Example:
        >>> import numpy as np, fgrad
        >>> jacobian = fgrad.sparse_jacobian(lambda x: x[1:] ** 2 - x[:-1])
        >>> jacobian(np.array([1., 2., 3.])).toarray()
        array([[-1.,  4.,  0.],
               [ 0., -1.,  6.]])
    """
    check_callable("sparse_jacobian", fun)
    return SparseDerivative("sparse_jacobian", fun, argnums, sparsity, check, chunk)


def sparse_hessian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    sparsity: Any = None,
    check: bool = False,
    chunk: int | None = None,
) -> SparseDerivative:
    """Return a function that computes the Hessian of a scalar `fun` as a sparse symmetric matrix, in few passes.

    The pattern is that of the Jacobian of the gradient. Columns are computed by forward over reverse mode; of each
    entry and its mirror image one is computed, so rules of one's own (`custom_jvp`, `custom_vjp`) must be derivatives
    of something: with others `check` finds that the matrix is wrong.

    Args, raises: those of `sparse_jacobian`; the value of `fun` must be a real scalar.

    Returns:
        A `SparseDerivative`: called like `fun`, it returns a symmetric `scipy.sparse.csr_array` with a row and a column
        for each element of the arguments in `argnums`, leaf after leaf in C order.

    Example:
        >>> import numpy as np, fgrad
        >>> hessian = fgrad.sparse_hessian(lambda x: ((x[1:] - x[:-1] ** 2) ** 2).sum())
        >>> hessian(np.zeros(4)).diagonal()
        array([0., 2., 2., 2.])
        >>> hessian.prepare(np.zeros(4)).colors
        3
    """
    check_callable("sparse_hessian", fun)
    return SparseDerivative("sparse_hessian", fun, argnums, sparsity, check, chunk)


class SparseDerivative:
    """What `sparse_jacobian` and `sparse_hessian` return; see there."""

    def __init__(
        self,
        name: str,
        fun: Callable[..., Any],
        argnums: int | Sequence[int],
        sparsity: Any,
        check: bool,
        chunk: int | None,
    ):
        if chunk is not None and chunk < 1:
            raise ValueError(f"{name}: chunk must be at least 1, got {chunk}")
        self.__name__ = f"{name} of {getattr(fun, '__name__', 'a function')}"
        self.name = name
        self.fun = fun
        self.argnums = argnums
        self.sparsity = sparsity
        self.check = check
        self.chunk = chunk
        self._prepared: dict[Any, Prepared] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = _Arguments(self, args, kwargs)
        return self._for(given).matrix(given.values)

    def prepare(self, *args: Any, **kwargs: Any) -> Prepared:
        """Return pattern and colors for arguments of these types, which calls will use; values are not looked at."""
        return self._for(_Arguments(self, args, kwargs))

    def _for(self, given: _Arguments) -> Prepared:
        prepared = self._prepared.get(given.key)
        if prepared is None:
            prepared = self._prepared[given.key] = Prepared(self, given)
            for key in list(self._prepared)[:-_KEPT]:
                self._prepared.pop(key, None)
        return prepared


class _Arguments:
    """The arguments of one call: what is passed as a value, what is fixed, and what is differentiated."""

    def __init__(self, derivative: SparseDerivative, args: Sequence[Any], kwargs: Any):
        name = derivative.name
        chosen = set(positions(derivative.argnums, len(args)))
        parts = [(i in chosen, tree.flatten(x)) for i, x in enumerate(args)]
        parts.append((False, tree.flatten(kwargs)))
        self.trees = [treedef for _, (_, treedef) in parts]
        leaves = [(mine, x) for mine, (xs, _) in parts for x in xs]
        self.fixed = [_NOT_FIXED if mine or _is_inexact(x) else x for mine, x in leaves]
        values = [(mine, as_operand(x, f"an argument of {name}")) for mine, x in leaves if mine or _is_inexact(x)]
        self.active = tuple(mine for mine, _ in values)
        self.values = [x if isinstance(x, Tracer) else np.asarray(x) for _, x in values]
        self.types = [type_of(x) for x in self.values]
        for mine, x, t in zip(self.active, self.values, self.types, strict=True):
            if isinstance(x, Tracer):
                raise TypeError(
                    f"{name} gives SciPy's arrays and cannot be called with a value traced by {x.interpreter.label}; "
                    "call it outside of transforms"
                )
            if mine and t.dtype.kind != "f":
                raise TypeError(f"{name} requires real floating arguments to differentiate, got {t}")
        self.key = tuple(self.trees), tuple(self.types), self.active, tuple([_identity(name, x) for x in self.fixed])

    def call(self, fun: Callable[..., Any], values: Sequence[Any]) -> Any:
        """Call `fun` with these values in their places."""
        given = iter(values)
        leaves = iter([next(given) if x is _NOT_FIXED else x for x in self.fixed])
        *args, kwargs = [tree.unflatten(t, [next(leaves) for _ in range(t.num_leaves)]) for t in self.trees]
        return fun(*args, **kwargs)


_NOT_FIXED = object()


def _is_inexact(x: Any) -> bool:
    return isinstance(x, (float, complex, Tracer)) or getattr(getattr(x, "dtype", None), "kind", "") in ("f", "c")


def _identity(name: str, x: Any) -> Any:
    """Return what tells a fixed argument from others; TypeError if nothing does."""
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype != object:
        return x.shape, x.dtype, x.tobytes()
    try:
        hash(x)
    except TypeError:
        raise TypeError(f"{name}: an argument must be an array, a number or hashable, got {x!r}") from None
    return type(x), x


class Prepared:
    """Pattern and colors of a sparse derivative for arguments of one signature.

    Attributes:
        pattern: a boolean `scipy.sparse.csr_array`.
        column_colors, row_colors: an integer for each column and row; -1 for those that are not computed as such.
        colors: how many there are, which is the number of passes.
    """

    def __init__(self, derivative: SparseDerivative, given: _Arguments):
        _check_scipy(derivative.name)
        from fgrad.sparse.coloring import color, color_symmetric  # here, for it needs SciPy

        self.name, self.check, self.chunk = derivative.name, derivative.check, derivative.chunk
        symmetric = self.name == "sparse_hessian"
        program = _recorded(derivative, given)
        columns = [t for t, a in zip(given.types, given.active, strict=True) if a]
        self.shape = sum(t.size for t in program.out_types), sum(t.size for t in columns)
        self.pattern = _pattern(derivative, program, given.active, self.shape)
        found = color_symmetric(self.pattern) if symmetric else color(self.pattern)
        self.column_colors, self.row_colors = found.columns, found.rows
        self._passes = found.passes
        self._places = _places(self.pattern, found, symmetric)
        self._columns, self._rows = _compressed(program, given.active, columns)
        self._dtype: np.dtype[Any] = np.result_type(*[t.dtype for t in columns]) if columns else np.dtype(float)

    @property
    def colors(self) -> int:
        return sum(self._passes)

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<{self.name}, {rows} by {columns}: {self.pattern.nnz} entries in {self.colors} passes>"

    def matrix(self, values: Sequence[Any]) -> Any:
        """Return the derivative at the arguments' values."""
        from scipy.sparse import csr_array

        passes = [
            self._run(one, colors, count, values)
            for one, colors, count in zip(
                (self._columns, self._rows), (self.column_colors, self.row_colors), self._passes, strict=True
            )
        ]
        data = np.concatenate(passes)[self._places]
        if data.dtype == np.float16:  # which SciPy's arrays cannot hold
            data = data.astype(np.float32)
        made = csr_array((data, self.pattern.indices.copy(), self.pattern.indptr.copy()), shape=self.shape)
        made.has_sorted_indices = True
        if self.check:
            self._verify(made, values)
        return made

    def _run(self, one: Callable[..., Any], colors: Any, count: int, values: Sequence[Any]) -> Any:
        """Return the sums of all columns (or rows) of each color, one color after the other."""
        chunk = self.chunk or max(1, _AT_ONCE // max(1, *self.shape))
        parts = [np.empty(0, self._dtype)]
        for first in range(0, count, chunk):
            seeds = np.zeros((min(chunk, count - first), colors.size), self._dtype)
            mine = np.flatnonzero((colors >= first) & (colors < first + chunk))
            seeds[colors[mine] - first, mine] = 1
            parts.append(one(values, seeds).reshape(-1))
        return np.concatenate(parts)

    def _verify(self, made: Any, values: Sequence[Any]) -> None:
        """Raise ValueError unless the matrix times a random vector is the derivative along it."""
        v = np.random.default_rng(0).uniform(1, 2, (1, self.shape[1])).astype(self._dtype)
        wanted = self._columns(values, v)[0]
        with np.errstate(all="ignore"):
            got = made @ v[0].astype(made.dtype)
            scale, eps = abs(made) @ abs(v[0]) + abs(wanted), np.finfo(self._dtype).eps
            rounding = 100 * eps * np.fmax.reduce(scale, initial=1)  # of terms that cancel
            wrong = np.flatnonzero(abs(wanted - got) > np.sqrt(eps) * scale + rounding)
        if wrong.size:
            raise ValueError(
                f"{self.name}: the pattern misses entries in {wrong.size} rows, the first of them row {wrong[0]}: "
                f"along a random direction the derivative is {wanted[wrong[0]]}, the matrix gives {got[wrong[0]]}"
            )


def _check_scipy(name: str) -> None:
    try:
        import scipy.sparse  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"fgrad.{name} returns SciPy's sparse arrays, and SciPy cannot be imported: pip install 'fgrad[scipy]'"
        ) from error


def _pattern(derivative: SparseDerivative, program: Program, active: Sequence[bool], shape: tuple[int, int]) -> Any:
    """Return the pattern, found or given by the user, with its entries in order; ValueError if its shape is wrong."""
    from scipy.sparse import csr_array

    from fgrad.sparse.pattern import jacobian_pattern  # here, for it needs SciPy

    symmetric = derivative.name == "sparse_hessian"
    if derivative.sparsity is None:
        pattern = jacobian_pattern(program, active)
        if symmetric:  # it and its mirror image both have all entries, and so has what they share
            pattern = pattern.multiply(pattern.T)
    else:
        pattern = csr_array(derivative.sparsity)
        if pattern.shape != shape:
            raise ValueError(f"{derivative.name}: sparsity must have shape {shape}, got {pattern.shape}")
        pattern = pattern.astype(bool)
        if symmetric:
            pattern = pattern + pattern.T
    pattern = pattern.tocsr()
    pattern.eliminate_zeros()
    pattern.sum_duplicates()
    return pattern


def _recorded(derivative: SparseDerivative, given: _Arguments) -> Program:
    """Return the Program whose Jacobian is wanted: the function, or its gradient."""

    def fun(*values: Any) -> Any:
        return given.call(derivative.fun, values)

    if derivative.name == "sparse_hessian":
        fun = grad(fun, tuple(i for i, a in enumerate(given.active) if a)) if any(given.active) else lambda *xs: ()
    label = function_label(derivative.name, derivative.fun)
    program = trace(fun, given.types, tree.structure((tuple(given.types), {})), label).program.simplify()
    for t in program.out_types:
        if t.dtype.kind == "c":
            raise TypeError(f"{derivative.name} requires real-valued outputs, got {t}")
    return program


def _compressed(program: Program, active: Sequence[bool], kinds: Sequence[Any]) -> tuple[Any, Any]:
    """Return functions that compute products of the Jacobian, and of its transpose, with all rows of a matrix."""

    def split(values: Sequence[Any]) -> tuple[Any, list[Any]]:
        def fun(*chosen: Any) -> Any:
            given = iter(chosen)
            outs = program.run(*[next(given) if a else x for x, a in zip(values, active, strict=True)])
            return _vector(outs)

        return fun, [x for x, a in zip(values, active, strict=True) if a]

    def columns(values: Sequence[Any], seeds: Any) -> Any:
        fun, chosen = split(values)
        return vmap(lambda t: jvp(fun, chosen, _parts(t, kinds))[1])(seeds)

    def rows(values: Sequence[Any], seeds: Any) -> Any:
        fun, chosen = split(values)
        out, pull = vjp(fun, *chosen)
        return vmap(lambda ct: _vector(pull(ct)))(seeds.astype(out.dtype))

    return jit(columns), jit(rows)


def _vector(leaves: Sequence[Any]) -> Any:
    """Return arrays as one vector; integers, which have no derivative, as floats."""
    flat = [s.reshape(x, shape=(type_of(x).size,)) for x in leaves]
    flat = [x if type_of(x).dtype.kind == "f" else s.cast(x, dtype=np.dtype(float)) for x in flat]
    return s.concatenate(*flat, axis=0) if flat else np.zeros(0)


def _parts(vector: Any, kinds: Sequence[Any]) -> list[Any]:
    """Return a vector as arrays of the given types."""
    parts, start = [], 0
    for t in kinds:
        parts.append(s.cast(vector[start : start + t.size].reshape(t.shape), dtype=t.dtype))
        start += t.size
    return parts


def _places(pattern: Any, found: Coloring, symmetric: bool) -> Any:
    """Return where each entry of the pattern, in CSR order, lies in the passes laid end to end."""
    m, n = pattern.shape
    row = np.repeat(np.arange(m), np.diff(pattern.indptr))
    column = pattern.indices.astype(np.int64)
    if symmetric:
        alone = (
            np.bincount(found.columns[found.columns >= 0], minlength=1)[found.columns] == 1
        )  # a hub is, and what others cannot spoil
        low, high = np.minimum(row, column), np.maximum(row, column)
        swap = alone[high] > alone[low]
        row, column = np.where(swap, low, high), np.where(swap, high, low)
        return found.columns[column] * m + row
    by_rows = found.rows[row] >= 0
    return np.where(by_rows, found.passes[0] * m + found.rows[row] * n + column, found.columns[column] * m + row)
