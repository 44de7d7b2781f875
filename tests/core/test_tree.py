"""Laws of pytrees: round trips, equality and hashing of structures, paths, prefixes, registration, messages."""

import copy
import dataclasses
import functools
import gc
import operator
import pickle
import weakref
from collections import OrderedDict, defaultdict, namedtuple
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgrad import tree
from fgrad.tree import nodes

Point = namedtuple("Point", "x y")


class Named(NamedTuple):
    first: object
    second: object


@tree.register_dataclass
@dataclasses.dataclass
class Layer:
    weight: object
    bias: object
    name: str = dataclasses.field(default="layer", metadata={"static": True})


@tree.register_pytree_node_class
@dataclasses.dataclass
class Bare:
    """A class registered without keys, with metadata that has no hash."""

    items: tuple
    notes: list

    def tree_flatten(self):
        return self.items, self.notes

    @classmethod
    def tree_unflatten(cls, notes, items):
        assert type(items) is tuple
        return cls(items, notes)


@tree.register_pytree_with_keys_class
@dataclasses.dataclass
class Keyed:
    value: object

    def tree_flatten_with_keys(self):
        return [(tree.GetAttrKey("value"), self.value)], None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


@tree.register_static
@dataclasses.dataclass(frozen=True)
class Mode:
    name: str


@dataclasses.dataclass
class Unregistered:
    weight: object


def built_in_containers(children):
    """Strategy of one node of a class that needs no registration around trees."""
    pairs = st.tuples(children, children)
    mappings = st.dictionaries(st.sampled_from("abcd"), children, max_size=3)
    return st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        mappings,
        st.dictionaries(st.integers(-3, 3), children, max_size=3),
        mappings.map(OrderedDict),
        mappings.map(lambda mapping: defaultdict(list, mapping)),
        pairs.map(lambda pair: Point(*pair)),
        pairs.map(lambda pair: Named(*pair)),
    )


def containers(children):
    """Strategy of one node around trees: every kind of node there is that has an == of its own."""
    pairs = st.tuples(children, children)
    return st.one_of(
        built_in_containers(children),
        pairs.map(lambda pair: Layer(*pair)),
        pairs.map(lambda pair: Bare(pair, ["note"])),
        children.map(Keyed),
    )


def containers_and_partials(children):
    return containers(children) | children.map(lambda child: tree.Partial(max, child, key=child))


LEAVES = st.one_of(st.integers(), st.text(max_size=2), st.booleans())
ENDS = st.one_of(LEAVES, st.none(), st.just(Mode("train")))
COMPARABLE_TREES = st.recursive(ENDS, containers, max_leaves=12)
TREES = st.recursive(ENDS, containers_and_partials, max_leaves=12)


def same(one, other):
    return tree.leaves(one) == tree.leaves(other) and tree.structure(one) == tree.structure(other)


# Taking apart and putting together


@pytest.mark.parity
@given(st.recursive(st.one_of(LEAVES, st.none()), built_in_containers, max_leaves=12))
def test_built_in_containers_are_those_of_jax(t):
    from jax import tree_util

    leaves, treedef = tree_util.tree_flatten(t)
    assert tree.leaves(t) == leaves
    assert repr(tree.unflatten(tree.structure(t), leaves)) == repr(treedef.unflatten(leaves))
    assert tree.structure(t).num_nodes == treedef.num_nodes
    paths = [tree_util.keystr(path) for path, _ in tree_util.tree_leaves_with_path(t)]
    assert [tree.keystr(path) for path, _ in tree.leaves_with_path(t)] == paths


@given(TREES)
def test_unflatten_undoes_flatten(t):
    leaves, treedef = tree.flatten(t)
    again = treedef.unflatten(leaves)
    assert type(again) is type(t)
    assert same(again, t)


@given(COMPARABLE_TREES)
def test_unflatten_makes_an_equal_tree(t):
    assert tree.unflatten(tree.structure(t), tree.leaves(t)) == t


@given(TREES)
def test_counts(t):
    leaves, treedef = tree.flatten(t)
    assert treedef.num_leaves == len(leaves)
    assert treedef.num_children == len(treedef.children()) == len(tree.treedef_children(treedef))
    assert treedef.num_nodes == 1 + sum(child.num_nodes for child in treedef.children())
    assert tree.treedef_is_leaf(treedef) == (treedef.num_nodes == 1)
    assert sum(child.num_leaves for child in treedef.children()) == (len(leaves) if tree.is_tree_node(t) else 0)


@given(TREES)
def test_paths_name_the_leaves(t):
    pairs, treedef = tree.flatten_with_path(t)
    assert treedef == tree.structure(t)
    assert [leaf for _, leaf in pairs] == tree.leaves(t)
    assert len({path for path, _ in pairs}) == len(pairs)
    for path, leaf in pairs:
        expression = tree.keystr(path)
        if "<flat" not in expression:
            assert eval("t" + expression, {"t": t}) is leaf


@given(TREES)
def test_map_keeps_structure(t):
    assert same(tree.map(lambda leaf: leaf, t), t)
    assert tree.leaves(tree.map(lambda leaf, other: (leaf, other), t, t)) == [x for x in tree.leaves(t) for _ in "ab"]


@given(TREES, TREES)
def test_compose_is_nesting(outer, inner):
    nested = tree.map(lambda _: inner, outer)
    assert tree.structure(outer).compose(tree.structure(inner)) == tree.structure(nested)


@given(TREES, TREES)
def test_transpose_twice_gives_the_tree(outer, inner):
    rows, columns = tree.structure(outer), tree.structure(inner)
    t = rows.compose(columns).unflatten(range(rows.num_leaves * columns.num_leaves))
    turned = tree.transpose(rows, columns, t)
    assert tree.structure(turned) == columns.compose(rows)
    assert same(tree.transpose(columns, rows, turned), t)


@given(TREES)
def test_walk_rebuilds(t):
    leaves, treedef = tree.flatten(t)
    count = treedef.walk(lambda children, data: 1 + sum(children), lambda leaf: 1, leaves)
    assert count == treedef.num_nodes


def test_order_of_leaves():
    assert tree.leaves({"b": 1, "a": 2}) == [2, 1]
    assert tree.leaves(OrderedDict(b=1, a=2)) == [1, 2]
    assert tree.leaves(defaultdict(int, b=1, a=2)) == [2, 1]
    assert tree.leaves(Point(y=1, x=2)) == [2, 1]
    assert tree.leaves(Layer(bias=1, weight=2)) == [2, 1]


def test_a_dictionary_keeps_its_class():
    t = tree.map(operator.neg, {"d": defaultdict(list, a=1), "o": OrderedDict(b=2, a=3), "n": Named(4, 5)})
    assert t["d"].default_factory is list
    assert list(t["o"]) == ["b", "a"]
    assert t["n"] == Named(-4, -5)
    assert isinstance(t["n"], Named)


class ArrayLike(np.ndarray):
    pass


class TupleChild(tuple):
    pass


class DictChild(dict):
    pass


@pytest.mark.parametrize(
    "leaf",
    [
        np.ones(3),
        np.float32(1),
        np.ones(2).view(ArrayLike),
        1,
        1.5,
        1j,
        "text",
        {1, 2},
        Unregistered([1, 2]),
        TupleChild((1, 2)),
        DictChild(a=1),
        range(3),
        Layer,
    ],
    ids=lambda leaf: type(leaf).__name__,
)
def test_everything_else_is_a_leaf(leaf):
    leaves, treedef = tree.flatten(leaf)
    assert leaves[0] is leaf
    assert treedef == tree.structure(0)
    assert treedef.unflatten([leaf]) is leaf
    assert not tree.is_tree_node(leaf)
    assert tree.all_leaves([leaf])


def test_flatten_does_not_ask_a_leaf_for_its_class():
    class Liar:
        @property
        def __class__(self):
            raise AssertionError("the class of a leaf was asked for")

    assert len(tree.leaves([Liar()])) == 1


def test_none_has_no_leaves():
    assert tree.flatten(None) == ([], tree.structure(None))
    assert tree.leaves([None, 1], is_leaf=lambda x: x is None) == [None, 1]
    assert tree.is_tree_node(None)
    assert not tree.all_leaves([None])


def test_is_leaf_stops_the_walk():
    t = [(1, 2), {"a": (3,)}]
    assert tree.leaves(t, is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), (3,)]
    assert tree.map(len, t, is_leaf=lambda x: isinstance(x, tuple)) == [2, {"a": 1}]
    assert tree.leaves_with_path(t, is_leaf=lambda x: isinstance(x, tuple))[1] == (
        (tree.SequenceKey(1), tree.DictKey("a")),
        (3,),
    )
    stop = tree.leaves_with_path(t, is_leaf=lambda path, x: len(path) == 1, is_leaf_takes_path=True)
    assert [leaf for _, leaf in stop] == t
    assert tree.all_leaves(t, is_leaf=lambda x: True)


def test_reductions():
    t = {"a": 1, "b": (2, [3, 4, 5])}
    assert tree.reduce(operator.add, t) == 15
    assert tree.reduce(operator.add, t, 10) == 25
    assert tree.reduce(operator.add, None, None) is None
    assert tree.reduce(lambda count, x: count + 1, t, 0, is_leaf=lambda x: isinstance(x, list)) == 3
    assert tree.reduce_associative(lambda x, y: (x, y), t) == ((1, 2), (3, (4, 5)))
    assert tree.reduce_associative(operator.add, None, identity=7) == 7
    assert tree.all((True, [1]))
    assert not tree.all((True, [0]))
    assert tree.all(None)


def test_reductions_of_nothing():
    with pytest.raises(TypeError, match="empty"):
        tree.reduce(operator.add, ())
    with pytest.raises(TypeError, match="identity"):
        tree.reduce_associative(operator.add, ())


def test_map_with_path():
    t = {"a": [1, Point(2, None)]}
    out = tree.map_with_path(lambda path, x, y: (tree.keystr(path), x, y), t, {"a": [10, Point([20], None)]})
    assert out == {"a": [("['a'][0]", 1, 10), Point(("['a'][1].x", 2, [20]), None)]}


def test_both_spellings_are_one_function():
    for name in tree.__all__:
        if name.startswith("tree_"):
            assert getattr(tree, name) is getattr(tree, name.removeprefix("tree_"))
    assert tree.PyTreeDef is tree.TreeDef


def test_public_names_exist():
    assert [name for name in tree.__all__ if not hasattr(tree, name)] == []


# Structures


@given(TREES)
def test_structures_of_like_trees_are_equal(t):
    one, other = tree.structure(t), tree.structure(tree.map(lambda leaf: object(), t))
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other}) == 1
    assert repr(one) == repr(other)


@given(TREES, TREES)
def test_unequal_structures_print_differently(one, other):
    one, other = tree.structure(one), tree.structure(other)
    assert (one == other) == (repr(one) == repr(other))
    assert (one == other) == (other == one)


@given(TREES)
def test_pickle_and_copy(t):
    treedef = tree.structure(t)
    for again in (pickle.loads(pickle.dumps(treedef)), copy.deepcopy(treedef), copy.copy(treedef)):
        assert again == treedef
        assert hash(again) == hash(treedef)
        leaves = tree.leaves(t)
        assert same(again.unflatten(leaves), t)


def test_structure_is_not_equal_to_anything_else():
    assert tree.structure(1) != "TreeDef(*)"
    assert tree.structure((1, 2)) != (tree.structure(1), tree.structure(2))


@pytest.mark.parametrize(
    ("t", "text"),
    [
        (1, "TreeDef(*)"),
        ((), "TreeDef(())"),
        ((1,), "TreeDef((*,))"),
        ([], "TreeDef([])"),
        ({"b": (1, None), "a": 2}, "TreeDef({'a': *, 'b': (*, None)})"),
        (OrderedDict(b=1, a=2), "TreeDef(OrderedDict({'b': *, 'a': *}))"),
        (defaultdict(list, a=[1]), "TreeDef(defaultdict(list, {'a': [*]}))"),
        (Point(1, [2]), "TreeDef(Point(x=*, y=[*]))"),
        (Layer(1, 2), "TreeDef(Layer(weight=*, bias=*, name='layer'))"),
        (Bare((1, 2), ["n"]), "TreeDef(Bare[['n']](*, *))"),
        (Keyed(1), "TreeDef(Keyed(*))"),
        (Mode("eval"), "TreeDef(Mode[Mode(name='eval')]())"),
    ],
)
def test_repr(t, text):
    assert repr(tree.structure(t)) == text


@pytest.mark.parametrize(
    ("t", "data"),
    [
        (1, None),
        (None, (type(None), None)),
        ([1], (list, None)),
        ({"b": 1, "a": 2}, (dict, ("a", "b"))),
        (OrderedDict(b=1, a=2), (OrderedDict, ("b", "a"))),
        (Point(1, 2), (Point, None)),
        (Layer(1, 2), (Layer, ("layer",))),
        (Bare((), ["n"]), (Bare, ["n"])),
    ],
)
def test_node_data(t, data):
    assert tree.structure(t).node_data() == data


def test_namedtuples_differ_by_class():
    Other = namedtuple("Point", "x y")
    assert tree.structure(Point(1, 2)) != tree.structure(Other(1, 2))
    assert tree.structure(Point(1, 2)) != tree.structure((1, 2))


def test_metadata_takes_part_in_equality():
    assert tree.structure(Layer(1, 2, "a")) != tree.structure(Layer(1, 2, "b"))
    assert tree.structure(Mode("a")) != tree.structure(Mode("b"))
    assert tree.structure(OrderedDict(a=1, b=2)) != tree.structure(OrderedDict(b=2, a=1))
    assert tree.structure(defaultdict(int)) != tree.structure(defaultdict(list))


def test_metadata_whose_equality_is_no_bool():
    one, other = (tree.structure(Bare((1,), np.ones(2))) for _ in range(2))
    with pytest.raises(ValueError, match="metadata of tree nodes needs an == that gives one bool; that of Bare raised"):
        assert one == other


def test_pickled_structure_of_a_class_that_is_no_longer_registered(monkeypatch):
    pickled = pickle.dumps(tree.structure([Keyed(1)]))
    monkeypatch.delitem(nodes.registry, Keyed)
    with pytest.raises(ValueError, match=r"a pickled tree structure has nodes of <class .*Keyed'>, which is not reg"):
        pickle.loads(pickled)


def test_treedef_tuple():
    assert tree.treedef_tuple([tree.structure(1), tree.structure([2])]) == tree.structure((1, [2]))


@pytest.mark.parametrize(("count", "word"), [(1, "few"), (3, "many")])
def test_wrong_number_of_leaves(count, word):
    treedef = tree.structure((1, [2]))
    message = rf"too {word} leaves for TreeDef\(\(\*, \[\*\]\)\): expected 2, got {count}"
    with pytest.raises(ValueError, match=message):
        tree.unflatten(treedef, range(count))
    with pytest.raises(ValueError, match=message):
        treedef.walk(lambda children, data: 0, lambda leaf: 0, range(count))


# Prefixes


@given(TREES)
def test_a_tree_is_a_prefix_of_itself(t):
    assert tree.prefix_errors(t, t) == []
    assert tree.structure(t).flatten_up_to(t) == tree.leaves(t)
    assert tree.broadcast_prefix(t, t) == tree.leaves(t)
    assert tree.broadcast_prefix(0, t) == [0] * len(tree.leaves(t))


@given(TREES, TREES)
def test_flatten_up_to_undoes_nesting(outer, inner):
    nested = tree.map(lambda _: inner, outer)
    parts = tree.structure(outer).flatten_up_to(nested)
    assert len(parts) == len(tree.leaves(outer))
    for part in parts:
        assert part is inner


@given(TREES, TREES)
def test_errors_are_found_if_there_are_any(prefix, t):
    errors = tree.prefix_errors(prefix, t)
    if errors:
        with pytest.raises(ValueError) as caught:
            tree.broadcast_prefix(prefix, t, name="in_axes")
        assert str(caught.value) == str(errors[0]("in_axes"))
    else:
        assert len(tree.broadcast_prefix(prefix, t)) == len(tree.leaves(t))


def test_broadcast():
    assert tree.broadcast((0, {"a": 1}), ([5, None, 6], {"a": Point(1, 2)})) == ([0, None, 0], {"a": Point(1, 1)})
    axes = tree.broadcast_prefix((0, None), ([1, 2], {"a": 3}), is_leaf=lambda x: x is None)
    assert axes == [0, 0, None]


@pytest.mark.parametrize(
    ("prefix", "t", "message"),
    [
        ((0, 1), [5, 6], "vmap in_axes: different types: the prefix has tuple of 2, the tree has list of 2"),
        ((0, 1), 5, "vmap in_axes: different types: the prefix has tuple of 2, the tree has int (a leaf)"),
        (
            (0, [1]),
            (5, None),
            "vmap in_axes[1]: different types: the prefix has list of 1, the tree has None",
        ),
        (
            {"a": None},
            {"a": np.ones(2)},
            "vmap in_axes['a']: different types: the prefix has None, the tree has ndarray (a leaf)",
        ),
        (
            [0, (1, 2)],
            [5, (6, 7, 8)],
            "vmap in_axes[1]: different numbers of children: the prefix has tuple of 2, the tree has tuple of 3",
        ),
        (
            ({"a": 0, "b": 1},),
            ({"a": 5, "c": 6},),
            "vmap in_axes[0]: different keys: only the prefix has ['b'], only the tree has ['c']",
        ),
        (
            defaultdict(int, a=1),
            defaultdict(int, b=1),
            "vmap in_axes: different keys: only the prefix has ['a'], only the tree has ['b']",
        ),
        (
            OrderedDict(a=0, b=1),
            OrderedDict(b=1, a=0),
            "vmap in_axes: different metadata: OrderedDict has ('a', 'b') in the prefix and ('b', 'a') in the tree",
        ),
        (
            Point(0, Layer(0, 0, "one")),
            Point(5, Layer(5, 5, "two")),
            "vmap in_axes.y: different metadata: Layer has ('one',) in the prefix and ('two',) in the tree",
        ),
        (
            Bare((0, Keyed([0])), []),
            Bare((1, Keyed((1,))), []),
            "vmap in_axes[<flat index 1>].value: different types: the prefix has list of 1, the tree has tuple of 1",
        ),
        (Point(0, 0), Named(0, 0), "vmap in_axes: different types: the prefix has Point of 2, the tree has Named of 2"),
        (
            tree.Partial(max, (0,)),
            tree.Partial(max, [0]),
            "vmap in_axes.args[0]: different types: the prefix has tuple of 1, the tree has list of 1",
        ),
    ],
)
def test_messages(prefix, t, message):
    (error,) = tree.prefix_errors(prefix, t)
    assert str(error("vmap in_axes")) == message
    with pytest.raises(ValueError) as caught:
        tree.broadcast_prefix(prefix, t, name="vmap in_axes")
    assert str(caught.value) == message


def test_every_error_is_listed():
    errors = tree.prefix_errors({"a": [0], "b": 1, "c": (2,)}, {"a": (5,), "b": [6, 7], "c": (8, 9)})
    assert [(tree.keystr(error.path), error.what) for error in errors] == [
        ("['a']", "different types"),
        ("['c']", "different numbers of children"),
    ]


def test_map_names_the_tree_and_the_path():
    with pytest.raises(ValueError, match=r"^map trees\[2\]\['a'\]\[1\]: different types: .* tuple of 1, .* list of 1$"):
        tree.map(lambda *x: x, {"a": [1, (2,)]}, {"a": [1, (2,)]}, {"a": [1, [2]]})
    with pytest.raises(ValueError, match=r"^map_with_path trees\[1\]: different types"):
        tree.map_with_path(lambda *x: x, [1], (1,))
    with pytest.raises(ValueError, match=r"^broadcast prefix\[0\]: different types"):
        tree.broadcast([(1,)], [[1]])


def test_transpose_refuses_other_trees():
    outer, inner = tree.structure((0, 0)), tree.structure([0, 0])
    with pytest.raises(TypeError, match=r"expected a tree of structure .*\(\[\*, \*\], \[\*, \*\]\).* got .*\[\*\]"):
        tree.transpose(outer, inner, ([1, 2, 3], [4]))
    with pytest.raises(TypeError, match="without leaves needs inner_treedef"):
        tree.transpose(tree.structure(()), None, ())
    assert tree.transpose(outer, None, ([1, 2], [3, 4])) == [(1, 3), (2, 4)]
    assert tree.transpose(tree.structure(()), inner, ()) == [(), ()]


def test_transpose_of_a_class_that_hides_its_structure():
    class Flat:
        def __init__(self, t):
            self.t = t

    tree.register_pytree_node(Flat, lambda f: tree.flatten(f.t), lambda treedef, ch: Flat(treedef.unflatten(ch)))
    outer = tree.structure(Flat({"a": 1, "b": 2}))
    out = tree.transpose(outer, tree.structure([1, 2]), Flat({"a": [3, 4], "b": [5, 6]}))
    assert [flat.t for flat in out] == [{"a": 3, "b": 5}, {"a": 4, "b": 6}]


# Keys


@pytest.mark.parametrize(
    ("t", "key", "text", "bare"),
    [
        ((1,), tree.SequenceKey(0), "[0]", "0"),
        ([1], tree.SequenceKey(0), "[0]", "0"),
        ({"a": 1}, tree.DictKey("a"), "['a']", "a"),
        ({5: 1}, tree.DictKey(5), "[5]", "5"),
        (OrderedDict(a=1), tree.DictKey("a"), "['a']", "a"),
        (defaultdict(int, a=1), tree.DictKey("a"), "['a']", "a"),
        (Point(1, None), tree.GetAttrKey("x"), ".x", "x"),
        (Layer(1, None), tree.GetAttrKey("weight"), ".weight", "weight"),
        (Keyed(1), tree.GetAttrKey("value"), ".value", "value"),
        (Bare((1,), []), tree.FlattenedIndexKey(0), "[<flat index 0>]", "0"),
    ],
)
def test_keys(t, key, text, bare):
    [(path, _)] = tree.leaves_with_path(t)
    assert path == (key,)
    assert tree.keystr(path) == text
    assert tree.keystr(path, simple=True) == bare
    assert pickle.loads(pickle.dumps(key)) == key


def test_keys_of_different_kinds_differ():
    keys = [tree.SequenceKey(0), tree.DictKey(0), tree.FlattenedIndexKey(0), tree.GetAttrKey("0")]
    assert len(set(keys)) == 4


def test_keystr_of_a_foreign_key():
    assert tree.keystr((tree.DictKey("a"), "custom"), simple=True, separator="/") == "a/custom"


# Registration


def test_registration_refuses_what_is_no_class():
    with pytest.raises(TypeError, match="only a class can be registered as a tree node, got 3 of type int"):
        tree.register_pytree_node(3, lambda x: ((), None), lambda data, children: None)


@pytest.mark.parametrize("cls", [dict, type(None), Layer, tree.Partial])
def test_registration_happens_once(cls):
    with pytest.raises(ValueError, match=f"{cls.__name__} is already registered"):
        tree.register_pytree_node(cls, lambda x: ((), None), lambda data, children: None)


@pytest.mark.parametrize("given", [[], (1,), (1, 2, 3), 5])
def test_flatten_function_must_give_a_pair(given):
    class Odd:
        pass

    tree.register_pytree_node(Odd, lambda odd: given, lambda data, children: Odd())
    with pytest.raises(ValueError, match=r"flatten_func of Odd must give a pair \(children, metadata\), got"):
        tree.flatten([Odd()])


def test_children_may_come_from_a_generator():
    class Lazy:
        pass

    tree.register_pytree_node(Lazy, lambda lazy: ((i for i in range(3)), None), lambda data, children: children)
    assert tree.leaves(Lazy()) == [0, 1, 2]
    assert tree.map(operator.neg, Lazy()) == (0, -1, -2)
    assert [path for path, _ in tree.leaves_with_path(Lazy())] == [(tree.FlattenedIndexKey(i),) for i in range(3)]


def test_keys_without_a_quicker_flatten():
    class Slow:
        def __init__(self, a):
            self.a = a

    tree.register_pytree_with_keys(
        Slow, lambda s: (((tree.GetAttrKey("a"), s.a),), "data"), lambda _, children: Slow(*children)
    )
    assert tree.flatten(Slow(1))[0] == [1]
    assert tree.structure(Slow(1)).node_data() == (Slow, "data")


def test_a_registered_namedtuple_follows_its_registration():
    Pair = namedtuple("Pair", "a b")
    tree.register_pytree_node(Pair, lambda p: ((p.a,), p.b), lambda b, children: Pair(*children, b))
    assert tree.leaves(Pair(1, 2)) == [1]
    assert tree.map(operator.neg, Pair(1, 2)) == Pair(-1, 2)


def test_dataclass_fields_by_name():
    @functools.partial(tree.register_dataclass, data_fields=["b"], meta_fields=["a"], drop_fields=["c"])
    @dataclasses.dataclass
    class Three:
        a: int
        b: int
        c: int = 0
        d: int = dataclasses.field(default=4, init=False)

    assert tree.map(operator.neg, Three(1, 2, 3)) == Three(1, -2, 0)

    class Plain:
        def __init__(self, *, a, b):
            self.a, self.b = a, b

    tree.register_dataclass(Plain, ["a"], ["b"])
    out = tree.map(operator.neg, Plain(a=1, b=2))
    assert (out.a, out.b) == (-1, 2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"data_fields": ["a", "b"]}, TypeError, "data_fields and meta_fields go together"),
        ({"data_fields": ["a"], "meta_fields": []}, ValueError, r"Two once: \['a', 'b'\], got \['a'\]"),
        ({"data_fields": ["a", "b"], "meta_fields": ["b"]}, ValueError, r"got \['a', 'b', 'b'\]"),
        ({"data_fields": ["a", "b", "z"], "meta_fields": []}, ValueError, r"got \['a', 'b', 'z'\]"),
    ],
)
def test_dataclass_fields_are_checked(arguments, error, message):
    @dataclasses.dataclass
    class Two:
        a: int
        b: int

    with pytest.raises(error, match=message):
        tree.register_dataclass(Two, **arguments)


def test_no_dataclass_without_fields():
    with pytest.raises(TypeError, match="is no dataclass, so data_fields and meta_fields are needed"):
        tree.register_dataclass(TupleChild)


# What cannot be taken apart


def test_keys_that_do_not_sort():
    with pytest.raises(ValueError, match=r"keys of a dict in a tree must sort, got \[1, 'a'\]; an OrderedDict"):
        tree.flatten([{1: 0, "a": 0}])
    with pytest.raises(ValueError, match="must sort"):
        tree.flatten(defaultdict(int, {1: 0, "a": 0}))
    assert tree.leaves(OrderedDict({1: 0, "a": 5})) == [0, 5]


@pytest.mark.parametrize("f", [tree.flatten, tree.flatten_with_path, lambda t: tree.map(abs, t)])
def test_too_deep(f):
    deep = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError, match="nested deeper than"):
        f(deep)
    endless = []
    endless.append(endless)
    with pytest.raises(RecursionError, match="contains itself"):
        f(endless)


# Partial


def test_partial():
    partial = tree.Partial(pow, 2, mod=5)
    assert isinstance(partial, functools.partial)
    assert partial(3) == 3
    leaves, treedef = tree.flatten(partial)
    assert leaves == [2, 5]
    assert treedef.unflatten([3, 7])(2) == 2
    assert treedef == tree.structure(tree.Partial(pow, 9, mod=1))
    assert treedef != tree.structure(tree.Partial(max, 9, mod=1))
    assert pickle.loads(pickle.dumps(partial))(3) == 3


def test_partial_of_a_partial():
    inner = functools.partial(pow, 2)
    whole = tree.Partial(inner, 3)
    assert whole(5) == 2**3 % 5
    assert tree.leaves(whole) == [3]
    assert whole.func == inner
    assert inner == whole.func
    assert hash(whole.func) == hash(tree.Partial(inner, 1).func)
    assert tree.structure(whole) == tree.structure(tree.Partial(inner, 4))
    assert tree.map(lambda x: x + 1, whole)(5) == 2**4 % 5
    assert pickle.loads(pickle.dumps(whole))(5) == 3
    # Arguments bound by another Partial stay children, so that nothing traced hides in the structure.
    assert tree.leaves(tree.Partial(tree.Partial(pow, 2), 3)) == [2, 3]


@pytest.mark.parametrize(
    "key", [tree.SequenceKey(1), tree.DictKey("a"), tree.GetAttrKey("x"), tree.FlattenedIndexKey(2)]
)
def test_keys_are_immutable_values(key):
    again = pickle.loads(pickle.dumps(key))
    assert again == key and hash(again) == hash(key) and copy.copy(key) == key
    assert key != tree.SequenceKey(7) and repr(key) == eval("repr(tree." + repr(key) + ")")
    with pytest.raises(AttributeError, match="immutable"):
        setattr(key, type(key).__slots__[0], 3)


def test_leaves_with_paths_leave_no_cycles():
    class Leaf:
        pass

    leaf = Leaf()
    alive = weakref.ref(leaf)
    gc.disable()
    try:
        assert tree.leaves_with_path([leaf], lambda path, node: False, True)[0][1] is leaf
        del leaf
        assert alive() is None
    finally:
        gc.enable()
