"""What is a node: the classes that trees look into, and the keys that name their children.

Owns the registry. A class is looked up by identity: a subclass of a registered class is a leaf unless it is registered
itself. Imports nothing of fgrad.
"""

from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)
Path = tuple[Any, ...]
Flatten = Callable[[Any], tuple[Iterable[Any], Any]]
Unflatten = Callable[[Any, Any], Any]


class _Key:
    """A step from a node to a child: equal to the steps of its class with the same value, and immutable.

    Not dataclasses: generating those was a tenth of the time that `import fgrad` takes.
    """

    __slots__: tuple[str, ...] = ()

    def __init__(self, value: Any):
        object.__setattr__(self, self.__slots__[0], value)

    def _value(self) -> Any:
        return getattr(self, self.__slots__[0])

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"cannot assign to {name!r}: {self!r} is immutable")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and bool(self._value() == other._value())

    def __hash__(self) -> int:
        return hash((type(self), self._value()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__slots__[0]}={self._value()!r})"

    def __reduce__(self) -> Any:
        return type(self), (self._value(),)


class SequenceKey(_Key):
    """Step to item `idx` of a tuple or list; printed `[0]`."""

    __slots__ = __match_args__ = ("idx",)
    idx: int

    def __init__(self, idx: int):
        super().__init__(idx)

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


class DictKey(_Key):
    """Step to the value at `key` of a mapping; printed `['a']`."""

    __slots__ = __match_args__ = ("key",)
    key: Hashable

    def __init__(self, key: Hashable):
        super().__init__(key)

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class GetAttrKey(_Key):
    """Step to the attribute `name` of a namedtuple, dataclass or other object; printed `.x`."""

    __slots__ = __match_args__ = ("name",)
    name: str

    def __init__(self, name: str):
        super().__init__(name)

    def __str__(self) -> str:
        return f".{self.name}"


class FlattenedIndexKey(_Key):
    """Step to child number `key` of a class that was registered without keys; printed `[<flat index 0>]`."""

    __slots__ = __match_args__ = ("key",)
    key: int

    def __init__(self, key: int):
        super().__init__(key)

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


def keystr(path: Path, *, simple: bool = False, separator: str = "") -> str:
    """Write a path as the Python expression that leads to the leaf.

    Args:
        path: Keys from the root down.
        simple: Write the bare index, key or name.
        separator: What stands between two keys.

    Example:
        >>> from fgrad import tree
        >>> [(path, leaf)] = tree.leaves_with_path({"layers": [[3.0]]})
        >>> tree.keystr(path)
        "['layers'][0][0]"
        >>> tree.keystr(path, simple=True, separator="/")
        'layers/0/0'
    """
    return separator.join([_bare(key) if simple else str(key) for key in path])


def _bare(key: Any) -> str:
    for attribute in ("key", "idx", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


class NodeType:
    """How the instances of one container class are taken apart, put together and shown."""

    __slots__ = ("cls", "flatten", "unflatten", "keys", "show")

    def __init__(
        self,
        cls: Any,
        flatten: Flatten,  # node -> (children, metadata)
        unflatten: Unflatten,  # (metadata, children) -> node
        keys: Callable[[Any], Iterable[Any]] | None,  # node -> one key per child; None: children have only numbers
        show: Callable[[Any, list[str]], str],  # (metadata, shown children) -> text
    ):
        self.cls = cls
        self.flatten = flatten
        self.unflatten = unflatten
        self.keys = keys
        self.show = show

    def __reduce__(self) -> Any:
        return _registered, (self.cls,)


def keys_of(node_type: NodeType, node: Any, count: int) -> Iterable[Any]:
    """Give the keys of a node's `count` children."""
    return [FlattenedIndexKey(index) for index in range(count)] if node_type.keys is None else node_type.keys(node)


def _sorted_keys(node: dict[Any, Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(node))
    except TypeError as error:
        raise ValueError(
            f"the keys of a dict in a tree must sort, got {list(node)!r}; an OrderedDict keeps its own order"
        ) from error


def _flatten_dict(node: dict[Any, Any]) -> tuple[list[Any], tuple[Any, ...]]:
    keys = _sorted_keys(node)
    return [node[key] for key in keys], keys


def _flatten_defaultdict(node: defaultdict[Any, Any]) -> tuple[list[Any], Any]:
    children, keys = _flatten_dict(node)
    return children, (node.default_factory, keys)


def _sequence_keys(node: Sequence[Any]) -> list[SequenceKey]:
    return [SequenceKey(index) for index in range(len(node))]


def _sorted_dict_keys(node: dict[Any, Any]) -> list[DictKey]:
    return [DictKey(key) for key in _sorted_keys(node)]


def _show_tuple(data: Any, children: list[str]) -> str:
    return f"({children[0]},)" if len(children) == 1 else f"({', '.join(children)})"


def _show_dict(keys: Iterable[Any], children: list[str]) -> str:
    return "{" + ", ".join([f"{key!r}: {child}" for key, child in zip(keys, children)]) + "}"


def _show_defaultdict(data: Any, children: list[str]) -> str:
    factory, keys = data
    return f"defaultdict({getattr(factory, '__name__', factory)}, {_show_dict(keys, children)})"


def _show_fields(cls: type, names: Iterable[str], children: Iterable[str]) -> str:
    return f"{cls.__name__}({', '.join([f'{name}={child}' for name, child in zip(names, children)])})"


_NONE = NodeType(
    type(None),
    flatten=lambda node: ((), None),
    unflatten=lambda data, children: None,
    keys=lambda node: (),
    show=lambda data, children: "None",
)
_TUPLE = NodeType(
    tuple,
    flatten=lambda node: (node, None),
    unflatten=lambda data, children: tuple(children),
    keys=_sequence_keys,
    show=_show_tuple,
)
_LIST = NodeType(
    list,
    flatten=lambda node: (node, None),
    unflatten=lambda data, children: children,
    keys=_sequence_keys,
    show=lambda data, children: f"[{', '.join(children)}]",
)
_DICT = NodeType(
    dict,
    flatten=_flatten_dict,
    unflatten=lambda keys, children: dict(zip(keys, children)),
    keys=_sorted_dict_keys,
    show=_show_dict,
)
_ORDERED_DICT = NodeType(
    OrderedDict,
    flatten=lambda node: (node.values(), tuple(node)),
    unflatten=lambda keys, children: OrderedDict(zip(keys, children)),
    keys=lambda node: [DictKey(key) for key in node],
    show=lambda keys, children: f"OrderedDict({_show_dict(keys, children)})",
)
_DEFAULT_DICT = NodeType(
    defaultdict,
    flatten=_flatten_defaultdict,
    unflatten=lambda data, children: defaultdict(data[0], zip(data[1], children)),
    keys=_sorted_dict_keys,
    show=_show_defaultdict,
)
# One entry serves every namedtuple class: the class is the metadata, so the registry keeps none alive.
NAMEDTUPLE = NodeType(
    namedtuple,
    flatten=lambda node: (node, type(node)),
    unflatten=lambda cls, children: cls._make(children),
    keys=lambda node: [GetAttrKey(name) for name in node._fields],
    show=lambda cls, children: _show_fields(cls, cls._fields, children),
)
registry: dict[Any, NodeType] = {
    node_type.cls: node_type for node_type in (_NONE, _TUPLE, _LIST, _DICT, _ORDERED_DICT, _DEFAULT_DICT, NAMEDTUPLE)
}


def node_type_of(cls: type) -> NodeType | None:
    """Find how instances of a class are taken apart; None for a leaf."""
    node_type = registry.get(cls)
    if node_type is None and issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return NAMEDTUPLE
    return node_type


def _registered(cls: Any) -> NodeType:
    """Find the entry of a class that a pickled structure names."""
    if cls not in registry:
        raise ValueError(f"a pickled tree structure has nodes of {cls!r}, which is not registered here")
    return registry[cls]


def _add(node_type: NodeType) -> None:
    cls = node_type.cls
    if not isinstance(cls, type):
        raise TypeError(f"only a class can be registered as a tree node, got {cls!r} of type {type(cls).__name__}")
    if cls in registry:
        raise ValueError(f"{cls.__name__} is already registered as a tree node")
    registry[cls] = node_type


def register_pytree_node(
    cls: type, flatten_func: Flatten, unflatten_func: Unflatten, flatten_with_keys_func: Flatten | None = None
) -> None:
    """Make the instances of a class (not of its subclasses) nodes of trees.

    Args:
        cls: The class.
        flatten_func: Gives `(children, metadata)` of an instance. Metadata needs `==`; a hash makes caches quicker.
        unflatten_func: Makes an instance from metadata and a tuple of children, which may be any objects.
        flatten_with_keys_func: Gives `((key, child) pairs, metadata)`, for paths in messages.

    Raises:
        TypeError: `cls` is not a class.
        ValueError: `cls` is registered already. When a tree is taken apart: `flatten_func` gave no such pair.

    Example:
        >>> from fgrad import tree
        >>> class Interval:
        ...     def __init__(self, low, high):
        ...         self.low, self.high = low, high
        >>> tree.register_pytree_node(Interval, lambda i: ((i.low, i.high), None), lambda _, ends: Interval(*ends))
        >>> tree.leaves([Interval(1, 2), 3])
        [1, 2, 3]
    """

    def flatten(node: Any) -> tuple[Iterable[Any], Any]:
        pair = flatten_func(node)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ValueError(f"flatten_func of {cls.__name__} must give a pair (children, metadata), got {pair!r}")
        return tuple(pair[0]), pair[1]

    def unflatten(data: Any, children: list[Any]) -> Any:
        return unflatten_func(data, tuple(children))

    def show(data: Any, children: list[str]) -> str:
        return f"{cls.__name__}{'' if data is None else f'[{data!r}]'}({', '.join(children)})"

    _add(NodeType(cls, flatten, unflatten, _keys_function(flatten_with_keys_func), show))


def _keys_function(flatten_with_keys: Flatten | None) -> Callable[[Any], Iterable[Any]] | None:
    if flatten_with_keys is None:
        return None

    def keys(node: Any) -> list[Any]:
        return [key for key, _ in flatten_with_keys(node)[0]]

    return keys


def register_pytree_with_keys(
    cls: type, flatten_with_keys: Flatten, unflatten_func: Unflatten, flatten_func: Flatten | None = None
) -> None:
    """Make a class a node of trees whose children have keys; `flatten_func` is a quicker flatten without them.

    Example:
        >>> from fgrad import tree
        >>> class Line:
        ...     def __init__(self, slope):
        ...         self.slope = slope
        >>> def with_keys(line):
        ...     return [(tree.GetAttrKey("slope"), line.slope)], None
        >>> tree.register_pytree_with_keys(Line, with_keys, lambda data, children: Line(*children))
        >>> [(tree.keystr(path), leaf) for path, leaf in tree.leaves_with_path([Line(2)])]
        [('[0].slope', 2)]
    """

    def without_keys(node: Any) -> tuple[Iterable[Any], Any]:
        pairs, data = flatten_with_keys(node)
        return [child for _, child in pairs], data

    register_pytree_node(cls, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: Class) -> Class:
    """Make a class a node of trees through its methods `tree_flatten(self)` and `tree_unflatten(cls, data, children)`.

    Example:
        >>> from fgrad import tree
        >>> @tree.register_pytree_node_class
        ... class Box:
        ...     def __init__(self, content):
        ...         self.content = content
        ...     def tree_flatten(self):
        ...         return (self.content,), None
        ...     @classmethod
        ...     def tree_unflatten(cls, data, children):
        ...         return cls(*children)
        >>> tree.map(lambda x: x + 1, Box(1)).content
        2
    """
    owner: Any = cls
    register_pytree_node(cls, owner.tree_flatten, owner.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: Class) -> Class:
    """Make a class a node of trees through `tree_flatten_with_keys`, `tree_unflatten` and, if there, `tree_flatten`.

    Example:
        >>> from fgrad import tree
        >>> @tree.register_pytree_with_keys_class
        ... class Crate:
        ...     def __init__(self, content):
        ...         self.content = content
        ...     def tree_flatten_with_keys(self):
        ...         return [(tree.GetAttrKey("content"), self.content)], None
        ...     @classmethod
        ...     def tree_unflatten(cls, data, children):
        ...         return cls(*children)
        >>> tree.keystr(tree.leaves_with_path(Crate(1))[0][0])
        '.content'
    """
    owner: Any = cls
    register_pytree_with_keys(
        cls, owner.tree_flatten_with_keys, owner.tree_unflatten, getattr(owner, "tree_flatten", None)
    )
    return cls


def register_dataclass(
    cls: Class,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Class:
    """Make a dataclass a node of trees; usable as a decorator. An unregistered dataclass is a leaf.

    Args:
        cls: A dataclass, or any class whose constructor takes the fields by name.
        data_fields: Fields that are children. Default: those without `metadata={"static": True}`.
        meta_fields: Fields that belong to the structure. Default: those with it.
        drop_fields: Fields with a default that are left out when the tree is taken apart.

    Raises:
        TypeError: Only one of the two lists is given, or none and `cls` is not a dataclass.
        ValueError: The lists are not exactly the fields of the constructor.

    Example:
        >>> import dataclasses
        >>> from fgrad import tree
        >>> @tree.register_dataclass
        ... @dataclasses.dataclass
        ... class Layer:
        ...     weight: float
        ...     name: str = dataclasses.field(metadata={"static": True})
        >>> tree.flatten(Layer(2.0, "first"))
        ([2.0], TreeDef(Layer(weight=*, name='first')))
    """
    data_fields, meta_fields = _split_fields(cls, data_fields, meta_fields, drop_fields)

    def flatten_fields(node: Any) -> tuple[Iterable[Any], Any]:
        return [getattr(node, name) for name in data_fields], tuple([getattr(node, name) for name in meta_fields])

    def unflatten_fields(data: Any, children: list[Any]) -> Any:
        return cls(**dict(zip(data_fields, children)), **dict(zip(meta_fields, data)))

    def keys(node: Any) -> list[GetAttrKey]:
        return [GetAttrKey(name) for name in data_fields]

    def show(data: Any, children: list[str]) -> str:
        return _show_fields(cls, data_fields + meta_fields, children + [repr(value) for value in data])

    _add(NodeType(cls, flatten_fields, unflatten_fields, keys, show))
    return cls


def _split_fields(
    cls: type, data_fields: Sequence[str] | None, meta_fields: Sequence[str] | None, drop_fields: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Complete and check the field lists of `register_dataclass`."""
    if (data_fields is None) != (meta_fields is None):
        raise TypeError(
            "register_dataclass: data_fields and meta_fields go together, "
            f"got data_fields={data_fields!r} and meta_fields={meta_fields!r}"
        )
    import dataclasses  # slow to import, and loaded already where there is a dataclass to register

    if not dataclasses.is_dataclass(cls):
        if data_fields is None or meta_fields is None:
            raise TypeError(f"register_dataclass: {cls!r} is no dataclass, so data_fields and meta_fields are needed")
        return tuple(data_fields), tuple(meta_fields)
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init and field.name not in drop_fields}
    if data_fields is None or meta_fields is None:
        meta_fields = [name for name, field in fields.items() if field.metadata.get("static", False)]
        data_fields = [name for name in fields if name not in meta_fields]
    given = [*data_fields, *meta_fields]
    if sorted(given) != sorted(fields):
        raise ValueError(
            f"register_dataclass: data_fields and meta_fields together must name each constructor field of "
            f"{cls.__name__} once: {sorted(fields)}, got {sorted(given)}; drop_fields leaves out a field with a default"
        )
    return tuple(data_fields), tuple(meta_fields)


def register_static(cls: Class) -> Class:
    """Make the instances of a class nodes without children: part of the structure, compared by `==`, never traced.

    Example:
        >>> from fgrad import tree
        >>> @tree.register_static
        ... class Mode(str):
        ...     pass
        >>> tree.flatten((Mode("train"), 1))
        ([1], TreeDef((Mode['train'](), *)))
    """
    register_pytree_node(cls, lambda node: ((), node), lambda data, _: data)
    return cls
