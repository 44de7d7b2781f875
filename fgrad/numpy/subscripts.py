"""einsum: every form NumPy reads, as products of two operands at a time in the order of `numpy.einsum_path`."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from fgrad.numpy.arguments import as_array, cast, counterpart, promoted, refuse
from fgrad.numpy.linear import contract
from fgrad.numpy.shaping import diagonal
from fgrad.ops import elementwise as e
from fgrad.ops import reduce as r
from fgrad.ops import shape as s

__all__ = ["einsum", "einsum_path"]

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@counterpart(np.einsum)
def einsum(*operands, out=None, optimize=False, dtype=None, casting="safe", order="K"):
    """Sum products of arrays as subscripts say.

    Args:
        *operands: a text such as "ij,jk->ik" and an array for each of its terms; or arrays, each followed by a list of
            ints that name its axes, and perhaps a last list for those of the result. "..." stands for axes that
            broadcast; without "->" the result has the letters that occur once, in order of the alphabet.
        out: refused on traced values.
        optimize: False for the order that NumPy finds greedily, or what `numpy.einsum_path` takes.
        dtype: dtype to compute in.
        casting, order: as NumPy takes them; nothing depends on them on traced values.

    Raises:
        ValueError: subscripts and operands do not fit.

    Example:
        >>> import fgrad.numpy as fnp
        >>> fnp.einsum("ij,j->i", [[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0])
        array([3., 7.])
    """
    refuse("einsum", out=out)
    subscripts, operands = _as_text(operands)
    xs = promoted(*[as_array(x) for x in operands])
    xs = xs if dtype is None else [cast(x, dtype) for x in xs]
    terms, result = _terms(subscripts, tuple([x.ndim for x in xs]))
    _check_lengths(subscripts, terms, xs)
    pairs = [_without_repeats(x, term) for x, term in zip(xs, terms)]
    for chosen in _order(terms, result, xs, optimize):
        taken = [pairs.pop(i) for i in sorted(chosen, reverse=True)][::-1]
        kept = set(result).union(*[term for _, term in pairs])
        while len(taken) > 1:
            later = kept.union(*[term for _, term in taken[2:]])
            taken[:2] = [_product(*taken[0], *taken[1], later)]
        pairs.append(_summed(*taken[0], kept))
    x, term = pairs[0]
    perm = tuple([term.index(letter) for letter in result])
    return x if perm == tuple(range(x.ndim)) else s.transpose(x, perm=perm)


@counterpart(np.einsum_path)
def einsum_path(*operands, optimize="greedy", einsum_call=False):
    """Return the order of products that `einsum` takes, and a text that describes it."""
    subscripts, operands = _as_text(operands)
    shapes = [np.broadcast_to(np.zeros((), bool), as_array(x).shape) for x in operands]
    return np.einsum_path(subscripts, *shapes, optimize=optimize)


# ------------------------------------------------------------------------------------------- reading subscripts


def _as_text(operands: Any) -> tuple[str, list[Any]]:
    """Return the subscripts as a text, and the operands; lists of ints become letters."""
    if not operands:
        raise ValueError("einsum: must specify the einstein sum subscripts string and at least one operand")
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), list(operands[1:])
    arrays, lists = list(operands[0:-1:2]), list(operands[1::2])
    text = ",".join(_letters(names) for names in lists)
    return (text + "->" + _letters(operands[-1]) if len(operands) % 2 else text), arrays


def _letters(names: Any) -> str:
    return "".join("..." if name is Ellipsis else _LETTERS[operator.index(name)] for name in names)


@functools.lru_cache(maxsize=1024)
def _terms(subscripts: str, ranks: tuple[int, ...]) -> tuple[list[str], str]:
    """Return the letters of each operand and of the result; axes under an ellipsis get digits of their own."""
    inputs, arrow, output = subscripts.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"einsum: {len(terms)} terms in {subscripts!r}, but {len(ranks)} operands")
    hidden = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks)]
    for term, rank, extra in zip(terms, ranks, hidden):
        if extra < 0 or (extra and "..." not in term):
            raise ValueError(f"einsum: operand has {rank} axes, but its subscripts are {term!r}")
    most = max([extra for term, extra in zip(terms, hidden) if "..." in term], default=0)
    dots = "".join(chr(ord("\u0391") + k) for k in range(most))  # letters outside the alphabet of subscripts
    terms = [term.replace("...", dots[most - extra :]) for term, extra in zip(terms, hidden)]
    if arrow:
        result = output.replace("...", dots)
    else:
        joined = "".join(terms)
        result = dots + "".join(sorted(c for c in set(joined) - set(dots) if joined.count(c) == 1))
    if len(set(result)) != len(result) or not set(result) <= set("".join(terms)):
        raise ValueError(f"einsum: the output of {subscripts!r} repeats a letter or has one that no input has")
    return terms, result


def _check_lengths(subscripts: str, terms: list[str], xs: list[Any]) -> None:
    """Raise ValueError if a letter stands for axes of different lengths (1 broadcasts)."""
    lengths: dict[str, int] = {}
    for term, x in zip(terms, xs):
        for letter, n in zip(term, x.shape):
            have = lengths.setdefault(letter, n)
            if n != have and 1 not in (n, have):
                raise ValueError(
                    f"einsum: in {subscripts!r} the letter {letter!r} stands for axes of lengths {have} and {n}"
                )
            lengths[letter] = n if have == 1 else have


def _order(terms: list[str], result: str, xs: list[Any], optimize: Any) -> list[tuple[int, ...]]:
    """Return which operands to multiply at each step; the result of a step goes to the end."""
    if len(xs) < 3:
        return [tuple(range(len(xs)))]
    names = {c: _LETTERS[k] for k, c in enumerate(dict.fromkeys("".join(terms)))}
    text = ",".join("".join(names[c] for c in term) for term in terms) + "->" + "".join(names[c] for c in result)
    shapes = [np.broadcast_to(np.zeros((), bool), x.shape) for x in xs]
    return np.einsum_path(text, *shapes, optimize="greedy" if optimize is False else optimize)[0][1:]  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------------------------- the products


def _without_repeats(x: Any, term: str) -> tuple[Any, str]:
    """Return an operand with letters that it repeats taken along the diagonal."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            x = diagonal(x, 0, first, second)
            term = term[:first] + term[first + 1 : second] + term[second + 1 :] + letter
    return x, term


def _summed(x: Any, term: str, kept: set[str]) -> tuple[Any, str]:
    """Return an operand summed over the letters that nothing else needs."""
    axes = tuple([i for i, letter in enumerate(term) if letter not in kept])
    if not axes:
        return x, term
    return r.reduce_sum(x, axes=axes), "".join(letter for letter in term if letter in kept)


def _product(x: Any, term_x: str, y: Any, term_y: str, kept: set[str]) -> tuple[Any, str]:
    """Return the product of two operands, summed over the letters that nothing else needs."""
    x, term_x = _summed(x, term_x, kept | set(term_y))
    y, term_y = _summed(y, term_y, kept | set(term_x))
    shared = [letter for letter in term_x if letter in term_y]
    if any(x.shape[term_x.index(c)] != y.shape[term_y.index(c)] for c in shared):
        return _broadcast_product(x, term_x, y, term_y, kept)
    batch = [c for c in shared if c in kept]
    over = [c for c in shared if c not in kept]
    out = contract(
        x,
        y,
        [term_x.index(c) for c in over],
        [term_y.index(c) for c in over],
        (tuple([term_x.index(c) for c in batch]), tuple([term_y.index(c) for c in batch])),
    )
    rest = [c for c in term_x if c not in shared] + [c for c in term_y if c not in shared]
    return out, "".join(batch + rest)


def _broadcast_product(x: Any, term_x: str, y: Any, term_y: str, kept: set[str]) -> tuple[Any, str]:
    """Return the product of operands in which an axis of length 1 meets a longer one."""
    letters = term_x + "".join(c for c in term_y if c not in term_x)
    x = s.reshape(x, shape=x.shape + (1,) * (len(letters) - x.ndim))
    order = tuple(sorted(range(y.ndim), key=lambda i: letters.index(term_y[i])))
    y = s.transpose(y, perm=order)
    lengths = dict(zip([term_y[i] for i in order], y.shape))
    y = s.reshape(y, shape=tuple([lengths.get(c, 1) for c in letters]))
    return _summed(e.mul(x, y), letters, kept)
