"""The errors a traced value raises when Python asks it for something it cannot give.

Each class says one thing that went wrong; its docstring says why it happens and what to write instead. The classes
and their bases follow JAX's, so that code which catches them keeps working. `docs/errors.md` has a section for each,
with cause and remedy. This module imports nothing of fgrad.
"""

__all__ = [
    "ConcretizationTypeError",
    "NonConcreteBooleanIndexError",
    "NonFiniteError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
]


class ConcretizationTypeError(TypeError):
    """Report that a number was wanted where only a shape and a dtype are known.

    While `jit` and `vmap` trace a function its arguments stand for many values at once, so `float(x)`, `x.item()` or
    a shape made from `x` has no single answer. Under `grad` values are known, yet `float(x)` raises too: a plain float
    would cut the derivative without a word. Keep the value an array, or make the argument static.

    See docs/errors.md#concretizationtypeerror.

    Example:
        >>> import fgrad
        >>> fgrad.jit(lambda x, n: x * float(n))(2.0, 3)
        Traceback (most recent call last):
            ...
        fgrad.errors.ConcretizationTypeError: ...
        >>> float(fgrad.jit(lambda x, n: x * float(n), static_argnums=1)(2.0, 3))
        6.0
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """Report that `if`, `while`, `and`, `or`, `not` or `bool()` met a value that is not known while tracing.

    Which branch to take depends on numbers that `jit` and `vmap` do not have. Choose elementwise with
    `fgrad.numpy.where`, branch with `fgrad.lax.cond`, loop with `fgrad.lax.while_loop`, or make the argument static.

    See docs/errors.md#tracerboolconversionerror.

    Example:
        >>> import fgrad, fgrad.numpy as fnp
        >>> fgrad.jit(lambda x: x if x > 0 else -x)(-2.0)
        Traceback (most recent call last):
            ...
        fgrad.errors.TracerBoolConversionError: ...
        >>> float(fgrad.jit(lambda x: fnp.where(x > 0, x, -x))(-2.0))
        2.0
    """


class TracerIntegerConversionError(TypeError):
    """Report that a traced value was used where Python wants an integer: `range(n)`, a list's index, `int(n)`.

    Index with `fgrad.numpy.at(x)[i].get()` (a traced array takes `x[i]`; a plain one or a list does not know the
    traced index), loop with `fgrad.lax.fori_loop`, or make the argument static.

    See docs/errors.md#tracerintegerconversionerror.

    Example:
        >>> import fgrad, fgrad.numpy as fnp
        >>> fgrad.jit(lambda i: [1.0, 2.0][i])(1)
        Traceback (most recent call last):
            ...
        fgrad.errors.TracerIntegerConversionError: ...
        >>> float(fgrad.jit(lambda i: fnp.at([1.0, 2.0])[i].get())(1))
        2.0
    """


class TracerArrayConversionError(TypeError):
    """Report that a traced value was to become a plain NumPy array, as `np.asarray(x)` does.

    Most NumPy functions accept traced values through NumPy's own protocols; those that insist on an `ndarray` do not.
    Use the function of the same name in `fgrad.numpy`, or leave the conversion outside the traced function.

    See docs/errors.md#tracerarrayconversionerror.

    Example:
        >>> import numpy as np
        >>> import fgrad, fgrad.numpy as fnp
        >>> fgrad.jit(lambda x: np.asarray(x))(2.0)
        Traceback (most recent call last):
            ...
        fgrad.errors.TracerArrayConversionError: ...
        >>> float(fgrad.jit(lambda x: fnp.asarray(x))(2.0))
        2.0
    """


class UnexpectedTracerError(TypeError):
    """Report that a traced value leaked: it was kept, and used after the transform that made it had ended.

    A list, an attribute or a global that a traced function writes to keeps the tracer, not a number. Return the value
    instead, with `has_aux=True` where only part of the output is to be differentiated.

    See docs/errors.md#unexpectedtracererror.

    Example:
        >>> import fgrad
        >>> kept = []
        >>> float(fgrad.jit(lambda x: kept.append(2 * x) or x)(3.0))
        3.0
        >>> kept[0] + 1
        Traceback (most recent call last):
            ...
        fgrad.errors.UnexpectedTracerError: ...
        >>> float(fgrad.value_and_grad(lambda x: (x * x, 2 * x), has_aux=True)(3.0)[0][1])
        6.0
    """


class NonConcreteBooleanIndexError(IndexError):
    """Report that an array was indexed by a boolean mask that is not known while tracing.

    The number of elements such a mask picks, and so the shape of the result, is not known before the mask is. Keep
    the shape: put a neutral value where the mask is false.

    See docs/errors.md#nonconcretebooleanindexerror.

    Example:
        >>> import numpy as np
        >>> import fgrad, fgrad.numpy as fnp
        >>> x = np.array([-1.0, 2.0, 3.0])
        >>> fgrad.jit(lambda x: x[x > 0].sum())(x)
        Traceback (most recent call last):
            ...
        fgrad.errors.NonConcreteBooleanIndexError: ...
        >>> float(fgrad.jit(lambda x: fnp.where(x > 0, x, 0.0).sum())(x))
        5.0
    """


class NonFiniteError(FloatingPointError):
    """Report the first NaN or infinity that was made, inside `fgrad.debug_nans()`.

    The message names the primitive, the line of the program and what the operands held there; for a derivative the
    line is that of the forward computation. See docs/errors.md#nonfiniteerror.

    Example:
        >>> import fgrad, fgrad.numpy as fnp
        >>> with fgrad.debug_nans():
        ...     fnp.log(-1.0)
        Traceback (most recent call last):
            ...
        fgrad.errors.NonFiniteError: invalid value (nan) encountered in 'log' at ...: out = nan, from x = -1.0
    """
