"""The functions that take trees apart and put them together, and `Partial`.

Trees are shallow, so they are walked by recursion. `all`, `map` and `reduce` here are those of trees.
"""

import builtins
import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from fgrad.tree.nodes import GetAttrKey, Path, keys_of, node_type_of, register_pytree_with_keys, registry
from fgrad.tree.treedef import LEAF, Mismatch, TreeDef, make

T = TypeVar("T")
IsLeaf = Callable[..., bool] | None
_MISSING: Any = object()
_TOO_DEEP = "the tree is nested deeper than Python's recursion limit allows, or contains itself"


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeDef]:
    """Take a tree apart into its leaves, left to right, and its structure.

    Args:
        tree: Any object; what is no node is a leaf, so an array is a tree of one leaf.
        is_leaf: Says of a node whether it is to be taken whole.

    Raises:
        RecursionError: The tree is deeper than Python's stack allows, or contains itself.
        ValueError: The keys of a dict do not sort.

    Example:
        >>> from fgrad import tree
        >>> tree.flatten({"b": [1, 2], "a": None})
        ([1, 2], TreeDef({'a': None, 'b': [*, *]}))
        >>> tree.leaves({"b": [1, 2], "a": None}, is_leaf=lambda x: x is None)
        [None, 1, 2]
    """
    out: list[Any] = []
    try:
        return out, _flatten_into(tree, out, is_leaf)
    except RecursionError as error:
        raise RecursionError(_TOO_DEEP) from error


def _flatten_into(tree: Any, out: list[Any], is_leaf: IsLeaf) -> TreeDef:
    node_type = node_type_of(type(tree))
    if node_type is None or (is_leaf is not None and is_leaf(tree)):
        out.append(tree)
        return LEAF
    start = len(out)
    children, data = node_type.flatten(tree)
    treedefs = tuple([_flatten_into(child, out, is_leaf) for child in children])
    return TreeDef(node_type, data, treedefs, len(out) - start)


def unflatten(treedef: TreeDef, leaves: Iterable[Any]) -> Any:
    """Make the tree that has this structure and these leaves; ValueError if their number is not `num_leaves`.

    Example:
        >>> from fgrad import tree
        >>> tree.unflatten(tree.structure((0, {"a": 0})), [1, 2])
        (1, {'a': 2})
    """
    return treedef.unflatten(leaves)


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Give the leaves of a tree, left to right.

    Example:
        >>> from fgrad import tree
        >>> tree.leaves((1, {"b": 3, "a": 2}, None))
        [1, 2, 3]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> TreeDef:
    """Give the structure of a tree.

    Example:
        >>> from fgrad import tree
        >>> tree.structure((1, {"b": 3, "a": 2}, None))
        TreeDef((*, {'a': *, 'b': *}, None))
    """
    return flatten(tree, is_leaf)[1]


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply a function to each leaf, and to what stands in its place in the other trees.

    Args:
        f: Takes as many arguments as there are trees.
        tree: The tree that gives the result its structure.
        *rest: Trees that have the first as a prefix.
        is_leaf: Says of a node of the first tree whether it is to be taken whole.

    Raises:
        ValueError: A tree does not have the first as a prefix; the message names the path and what differs there.

    Example:
        >>> from fgrad import tree
        >>> tree.map(lambda w, g: w - 0.5 * g, {"w": 1.0, "b": [2.0]}, {"w": 2.0, "b": [4.0]})
        {'b': [0.0], 'w': 0.0}
    """
    first, treedef = flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(leaf) for leaf in first])
    others = [treedef.flatten_named(other, f"map trees[{index}]") for index, other in enumerate(rest, 1)]
    return treedef.unflatten([f(*row) for row in zip(first, *others)])


def reduce(function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _MISSING, is_leaf: IsLeaf = None) -> Any:
    """Fold the leaves with a function of two arguments, left to right, as `functools.reduce` does.

    Raises:
        TypeError: There is neither a leaf nor an initializer.

    Example:
        >>> from fgrad import tree
        >>> tree.reduce(lambda total, leaf: total + leaf, {"a": 1, "b": (2, 3)}, 0)
        6
    """
    initial = () if initializer is _MISSING else (initializer,)
    return functools.reduce(function, leaves(tree, is_leaf), *initial)


def reduce_associative(
    operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = _MISSING, is_leaf: IsLeaf = None
) -> Any:
    """Fold the leaves with an associative function, in a balanced way: rounding grows with the log of their number.

    Raises:
        TypeError: There is neither a leaf nor an identity.

    Example:
        >>> from fgrad import tree
        >>> tree.reduce_associative(lambda a, b: (a, b), [1, 2, 3])
        (1, (2, 3))
    """

    def fold(part: list[Any]) -> Any:
        half = len(part) // 2
        return operation(fold(part[:half]), fold(part[half:])) if half else part[0]

    values = leaves(tree, is_leaf)
    if not values and identity is _MISSING:
        raise TypeError("reduce_associative: a tree without leaves needs identity=")
    return fold(values) if values else identity


def all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Say whether every leaf is true.

    Example:
        >>> from fgrad import tree
        >>> tree.all({"a": True, "b": [1, 0]})
        False
    """
    return builtins.all(leaves(tree, is_leaf))


def transpose(outer_treedef: TreeDef, inner_treedef: TreeDef | None, tree: Any) -> Any:
    """Turn a tree of trees inside out.

    Args:
        outer_treedef: The structure of the outer tree.
        inner_treedef: The structure of each inner tree. Default: that of the first.
        tree: A tree of the outer structure with trees of the inner one for leaves.

    Raises:
        TypeError: The tree is no such tree.

    Example:
        >>> from fgrad import tree
        >>> tree.transpose(tree.structure({"x": 0, "y": 0}), tree.structure((0, 0)), {"x": (1, 2), "y": (3, 4)})
        ({'x': 1, 'y': 3}, {'x': 2, 'y': 4})
    """
    if inner_treedef is None:
        if not outer_treedef.num_leaves:
            raise TypeError("transpose: an outer tree without leaves needs inner_treedef")
        inner_treedef = structure(outer_treedef.flatten_up_to(tree)[0])
    flat, treedef = flatten(tree)
    rows, columns = outer_treedef.num_leaves, inner_treedef.num_leaves
    # Not outer.compose(inner): a class may keep its children's structure in its metadata.
    expected = structure(outer_treedef.unflatten([inner_treedef.unflatten([0] * columns)] * rows))
    if treedef != expected:
        raise TypeError(f"transpose: expected a tree of structure {expected!r}, got {treedef!r}")
    return inner_treedef.unflatten([outer_treedef.unflatten(flat[column::columns]) for column in range(columns)])


def flatten_with_path(
    tree: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[Path, Any]], TreeDef]:
    """Take a tree apart into `(path, leaf)` pairs and its structure; a path is a tuple of keys, see `keystr`.

    Args:
        tree: Any tree.
        is_leaf: Says of a node whether it is to be taken whole.
        is_leaf_takes_path: Call it as `is_leaf(path, node)`.

    Example:
        >>> from fgrad import tree
        >>> tree.flatten_with_path({"a": [1]})
        ([((DictKey(key='a'), SequenceKey(idx=0)), 1)], TreeDef({'a': [*]}))
    """
    out: list[tuple[Path, Any]] = []
    taken_whole = is_leaf if is_leaf_takes_path or is_leaf is None else lambda path, node: is_leaf(node)
    try:
        return out, _flatten_at((), tree, taken_whole, out)
    except RecursionError as error:
        raise RecursionError(_TOO_DEEP) from error


def _flatten_at(path: Path, node: Any, taken_whole: Any, out: list[tuple[Path, Any]]) -> TreeDef:
    """Give the structure of a node and append its leaves. No closure: one that calls itself would keep them alive."""
    node_type = node_type_of(type(node))
    if node_type is None or (taken_whole is not None and taken_whole(path, node)):
        out.append((path, node))
        return LEAF
    children, data = node_type.flatten(node)
    children = tuple(children)
    keys = keys_of(node_type, node, len(children))
    parts = [_flatten_at(path + (key,), child, taken_whole, out) for key, child in zip(keys, children)]
    return make(node_type, data, tuple(parts))


def leaves_with_path(tree: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False) -> list[tuple[Path, Any]]:
    """Give the `(path, leaf)` pairs of a tree.

    Example:
        >>> from fgrad import tree
        >>> [(tree.keystr(path), leaf) for path, leaf in tree.leaves_with_path({"a": [1, 2]})]
        [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def map_with_path(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> Any:
    """Apply a function to each leaf's path, the leaf, and what stands in its place in the other trees; see `map`.

    Example:
        >>> from fgrad import tree
        >>> tree.map_with_path(lambda path, leaf: f"{tree.keystr(path)} = {leaf}", {"a": [1]})
        {'a': ["['a'][0] = 1"]}
    """
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [treedef.flatten_named(other, f"map_with_path trees[{index}]") for index, other in enumerate(rest, 1)]
    return treedef.unflatten([f(*pair, *row) for pair, *row in zip(pairs, *others)])


def prefix_errors(prefix: Any, tree: Any, is_leaf: IsLeaf = None) -> list[Mismatch]:
    """List every place where `prefix` is no prefix of `tree`; each entry, called with a name, gives a ValueError.

    Example:
        >>> from fgrad import tree
        >>> [error] = tree.prefix_errors((0, [1, 2]), (5, (6, 7)))
        >>> error("vmap in_axes")
        ValueError('vmap in_axes[1]: different types: the prefix has list of 2, the tree has tuple of 2')
    """
    return list(structure(prefix, is_leaf).mismatches(tree))


def broadcast_prefix(prefix: Any, tree: Any, is_leaf: IsLeaf = None, name: str = "in_axes") -> list[Any]:
    """Repeat each leaf of a prefix for every leaf of the subtree it stands for.

    Args:
        prefix: The prefix tree.
        tree: The full tree.
        is_leaf: Says of a node of the prefix whether it is to be taken whole.
        name: What the message calls the prefix.

    Returns:
        One leaf of the prefix per leaf of `tree`.

    Raises:
        ValueError: `prefix` is no prefix of `tree`; the message names the path and what differs there.

    Example:
        >>> from fgrad import tree
        >>> tree.broadcast_prefix((0, {"a": 1, "b": None}), ([5, 6], {"a": 7, "b": 8}), is_leaf=lambda x: x is None)
        [0, 0, 1, None]
    """
    values, treedef = flatten(prefix, is_leaf)
    out: list[Any] = []
    for value, subtree in zip(values, treedef.flatten_named(tree, name)):
        out += [value] * structure(subtree).num_leaves
    return out


def broadcast(prefix: Any, tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Give a tree of the structure of `tree` with the leaves of a prefix of it; see `broadcast_prefix`.

    Example:
        >>> from fgrad import tree
        >>> tree.broadcast((0, 1), ([5, 6], {"a": 7}))
        ([0, 0], {'a': 1})
    """
    return structure(tree).unflatten(broadcast_prefix(prefix, tree, is_leaf, "broadcast prefix"))


def is_tree_node(tree: Any) -> bool:
    """Say whether an object is a node, that is not a leaf; None is a node.

    Example:
        >>> from fgrad import tree
        >>> tree.is_tree_node([]), tree.is_tree_node(1.0)
        (True, False)
    """
    return node_type_of(type(tree)) is not None


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Say whether every item is a leaf.

    Example:
        >>> from fgrad import tree
        >>> tree.all_leaves([1, 2.0]), tree.all_leaves([1, (2.0,)])
        (True, False)
    """
    return builtins.all(not is_tree_node(item) or (is_leaf is not None and is_leaf(item)) for item in iterable)


def treedef_is_leaf(treedef: TreeDef) -> bool:
    """Say whether a structure has no node under its root: a leaf, None or an empty container.

    Example:
        >>> from fgrad import tree
        >>> tree.treedef_is_leaf(tree.structure(1)), tree.treedef_is_leaf(tree.structure([1]))
        (True, False)
    """
    return treedef.num_nodes == 1


def treedef_children(treedef: TreeDef) -> list[TreeDef]:
    """Give the structures of the root's children.

    Example:
        >>> from fgrad import tree
        >>> tree.treedef_children(tree.structure((1, [2])))
        [TreeDef(*), TreeDef([*])]
    """
    return treedef.children()


def treedef_tuple(treedefs: Iterable[TreeDef]) -> TreeDef:
    """Make the structure of a tuple from those of its items.

    Example:
        >>> from fgrad import tree
        >>> tree.treedef_tuple([tree.structure(1), tree.structure([2])])
        TreeDef((*, [*]))
    """
    return make(registry[tuple], None, tuple(treedefs))


class Partial(functools.partial[T]):
    """Bind arguments to a function, as `functools.partial` does; the bound arguments are the children of a node.

    The function belongs to the structure, so two of them are alike if their functions are equal.

    Example:
        >>> from fgrad import tree
        >>> add = tree.Partial(lambda x, y: x + y, 1)
        >>> add(2), tree.leaves(add)
        (3, [1])
    """

    def __new__(cls, func: Callable[..., T], /, *args: Any, **keywords: Any) -> "Partial[T]":
        """Keep a plain partial whole: the arguments it was given elsewhere are no children of this node."""
        if type(func) is functools.partial:
            func = _Whole(func)
        return super().__new__(cls, func, *args, **keywords)


class _Whole:
    """A callable that `functools.partial` does not merge with itself."""

    __slots__ = ("func",)

    def __init__(self, func: Callable[..., Any]):
        self.func = func

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.func(*args, **keywords)

    def __eq__(self, other: object) -> bool:
        return bool(self.func == (other.func if isinstance(other, _Whole) else other))

    def __hash__(self) -> int:
        return hash(self.func)


register_pytree_with_keys(
    Partial,
    lambda p: (((GetAttrKey("args"), p.args), (GetAttrKey("keywords"), p.keywords)), p.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
    lambda p: ((p.args, p.keywords), p.func),
)
