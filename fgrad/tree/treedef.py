"""`TreeDef`, the structure of a tree without its leaves, and how a tree is held against one.

Imports only the registry of nodes.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from fgrad.tree.nodes import NAMEDTUPLE, NodeType, Path, keys_of, keystr, node_type_of


class Mismatch(NamedTuple):
    """Where and why a tree does not fit a prefix; called with the prefix's name it gives the error to raise."""

    path: Path
    what: str
    detail: str

    def __call__(self, name: str) -> ValueError:
        return ValueError(f"{name}{keystr(self.path)}: {self.what}: {self.detail}")


class TreeDef:
    """The structure of a tree: its containers, keys and metadata, with `*` where leaves were.

    Made by `structure` and `flatten`. Equal if types, keys, metadata (by `==`) and children are; hashable; picklable
    where classes and metadata are.

    Attributes:
        num_leaves: Number of leaves.

    Example:
        >>> from fgrad import tree
        >>> treedef = tree.structure({"a": 1, "b": (2, None)})
        >>> treedef
        TreeDef({'a': *, 'b': (*, None)})
        >>> treedef.unflatten([10, 20])
        {'a': 10, 'b': (20, None)}
    """

    __slots__ = ("_children", "_data", "_hash", "_type", "num_leaves")

    def __init__(self, node_type: NodeType | None, data: Any, children: tuple["TreeDef", ...], num_leaves: int):
        self._type = node_type  # None for a leaf
        self._data = data
        self._children = children
        self._hash: int | None = None
        self.num_leaves = num_leaves

    def __repr__(self) -> str:
        return f"TreeDef({self._show()})"

    def _show(self) -> str:
        return "*" if self._type is None else self._type.show(self._data, [child._show() for child in self._children])

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeDef):
            return NotImplemented
        return (
            self._type is other._type
            and self.num_leaves == other.num_leaves
            and self._has_data(other._data)
            and self._children == other._children
        )

    def _has_data(self, data: Any) -> bool:
        if self._data is data:
            return True
        try:
            return bool(self._data == data)
        except Exception as error:
            raise ValueError(
                f"metadata of tree nodes needs an == that gives one bool; that of {self._cls.__name__} raised: "
                f"{self._data!r} == {data!r}"
            ) from error

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self._type, self._hash_data(), self._children))
        return self._hash

    def _hash_data(self) -> int:
        try:
            return hash(self._data)
        except TypeError:  # such trees are told apart by == alone
            return 0

    def __reduce__(self) -> Any:
        return make, (self._type, self._data, self._children)

    @property
    def _cls(self) -> Any:
        """The class of the root node."""
        assert self._type is not None
        return self._data if self._type is NAMEDTUPLE else self._type.cls

    @property
    def _metadata(self) -> Any:
        return None if self._type is NAMEDTUPLE else self._data

    @property
    def num_nodes(self) -> int:
        """Number of nodes, leaves counted."""
        return 1 + sum([child.num_nodes for child in self._children])

    @property
    def num_children(self) -> int:
        """Number of the root's children."""
        return len(self._children)

    def node_data(self) -> tuple[type, Any] | None:
        """Give the root's `(class, metadata)`, or None for a leaf."""
        if self._type is None:
            return None
        return self._cls, self._metadata

    def children(self) -> list["TreeDef"]:
        """Give the structures of the root's children."""
        return list(self._children)

    def compose(self, inner: "TreeDef") -> "TreeDef":
        """Put `inner` in the place of every leaf.

        Example:
            >>> from fgrad import tree
            >>> tree.structure([1, 2]).compose(tree.structure((3, 4)))
            TreeDef([(*, *), (*, *)])
        """
        if self._type is None:
            return inner
        return make(self._type, self._data, tuple([child.compose(inner) for child in self._children]))

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Make the tree that has this structure and these leaves.

        Raises:
            ValueError: Their number is not `num_leaves`.
        """
        return self._build(self._counted(leaves))

    def _counted(self, leaves: Iterable[Any]) -> Iterator[Any]:
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            few_or_many = "few" if len(leaves) < self.num_leaves else "many"
            raise ValueError(f"too {few_or_many} leaves for {self!r}: expected {self.num_leaves}, got {len(leaves)}")
        return iter(leaves)

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self._type is None:
            return next(leaves)
        children = [next(leaves) if child is LEAF else child._build(leaves) for child in self._children]
        return self._type.unflatten(self._data, children)

    def walk(
        self, f_node: Callable[[tuple[Any, ...], Any], Any], f_leaf: Callable[[Any], Any], leaves: Iterable[Any]
    ) -> Any:
        """Fold the tree from the bottom up.

        Args:
            f_node: Takes the tuple of a node's folded children and its metadata.
            f_leaf: Takes a leaf.
            leaves: The leaves, in order.

        Raises:
            ValueError: The number of leaves is not `num_leaves`.

        Example:
            >>> from fgrad import tree
            >>> tree.structure((1, [2, 3])).walk(lambda children, data: 1 + max(children), lambda leaf: 0, [1, 2, 3])
            2
        """
        remaining = self._counted(leaves)

        def fold(treedef: TreeDef) -> Any:
            if treedef._type is None:
                return f_leaf(next(remaining))
            return f_node(tuple([fold(child) for child in treedef._children]), treedef._metadata)

        return fold(self)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Take `tree` apart as far as this structure goes; what stands at a leaf of it may be a subtree.

        Raises:
            ValueError: This structure is no prefix of `tree`; the message names the path and what differs there.

        Example:
            >>> from fgrad import tree
            >>> tree.structure((1, {"a": 2})).flatten_up_to(([10, 20], {"a": 30}))
            [[10, 20], 30]
        """
        return self.flatten_named(tree, "tree")

    def flatten_named(self, tree: Any, name: str) -> list[Any]:
        """Do as `flatten_up_to`, with `name` for the tree in the message."""
        if self is LEAF:
            return [tree]
        out: list[Any] = []
        try:
            self._collect(tree, out)
        except _Differs:
            # Paths cost time, so they are made only here, on a second walk.
            raise next(self.mismatches(tree))(name) from None
        return out

    def _collect(self, tree: Any, out: list[Any]) -> None:
        children, why = self._open(tree)
        if why:
            raise _Differs
        for treedef, child in zip(self._children, children):
            if treedef is LEAF:
                out.append(child)
            else:
                treedef._collect(child, out)

    def mismatches(self, tree: Any, path: Path = ()) -> Iterator[Mismatch]:
        """Find every place where this structure is no prefix of `tree`."""
        if self._type is None:
            return
        children, why = self._open(tree)
        if why:
            yield Mismatch(path, *why)
            return
        for treedef, child, key in zip(self._children, children, keys_of(self._type, tree, len(children))):
            yield from treedef.mismatches(child, path + (key,))

    def _open(self, tree: Any) -> tuple[tuple[Any, ...], tuple[str, str] | None]:
        """Give the children of `tree` if its root is like this one, and otherwise what differs and how."""
        node_type = self._type
        assert node_type is not None
        if type(tree) is not (self._data if node_type is NAMEDTUPLE else node_type.cls):
            return (), ("different types", self._beside(tree))
        values, data = node_type.flatten(tree)
        children = tuple(values)
        if not self._has_data(data):
            return (), self._data_difference(data)
        if len(children) != len(self._children):
            return (), ("different numbers of children", self._beside(tree))
        return children, None

    def _data_difference(self, data: Any) -> tuple[str, str]:
        ours, theirs = self._data, data
        if self._cls is defaultdict:
            (_, ours), (_, theirs) = ours, theirs
        if self._cls in (dict, OrderedDict, defaultdict) and set(ours) != set(theirs):
            only_ours = [key for key in ours if key not in theirs]
            only_theirs = [key for key in theirs if key not in ours]
            return "different keys", f"only the prefix has {only_ours!r}, only the tree has {only_theirs!r}"
        return "different metadata", f"{self._cls.__name__} has {self._data!r} in the prefix and {data!r} in the tree"

    def _beside(self, tree: Any) -> str:
        node_type = node_type_of(type(tree))
        count = None if node_type is None else len(tuple(node_type.flatten(tree)[0]))
        ours = _describe(self._cls, len(self._children))
        return f"the prefix has {ours}, the tree has {_describe(type(tree), count)}"


class _Differs(Exception):
    """Ends a walk at the first difference."""


def _describe(cls: type, count: int | None) -> str:
    if cls is type(None):
        return "None"
    return f"{cls.__name__} (a leaf)" if count is None else f"{cls.__name__} of {count}"


LEAF = TreeDef(None, None, (), 1)


def make(node_type: NodeType | None, data: Any, children: tuple[TreeDef, ...]) -> TreeDef:
    """Make a structure from its root and the structures of the root's children."""
    if node_type is None:
        return LEAF
    return TreeDef(node_type, data, children, sum([child.num_leaves for child in children]))
