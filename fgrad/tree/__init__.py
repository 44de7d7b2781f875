"""Pytrees: nested containers (nodes) around anything else (leaves).

Nodes are tuple, list, dict, OrderedDict, defaultdict, namedtuples, None and registered classes; everything else, an
array above all, is a leaf. Names follow JAX, in both its spellings: `tree.map` and `tree.tree_map`. This package
imports nothing else of fgrad.

Example:
    >>> from fgrad import tree
    >>> tree.map(lambda x: 10 * x, {"w": 1, "b": (2, None)})
    {'b': (20, None), 'w': 10}
    >>> tree.structure({"w": 1, "b": (2, None)})
    TreeDef({'b': (*, None), 'w': *})
"""

from fgrad.tree.functions import (
    Partial,
    all,
    all_leaves,
    broadcast,
    broadcast_prefix,
    flatten,
    flatten_with_path,
    is_tree_node,
    leaves,
    leaves_with_path,
    map,
    map_with_path,
    prefix_errors,
    reduce,
    reduce_associative,
    structure,
    transpose,
    treedef_children,
    treedef_is_leaf,
    treedef_tuple,
    unflatten,
)
from fgrad.tree.nodes import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    SequenceKey,
    keystr,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)
from fgrad.tree.treedef import Mismatch, TreeDef

# The names of jax.tree_util.
PyTreeDef = TreeDef
tree_all = all
tree_broadcast = broadcast
tree_flatten = flatten
tree_flatten_with_path = flatten_with_path
tree_leaves = leaves
tree_leaves_with_path = leaves_with_path
tree_map = map
tree_map_with_path = map_with_path
tree_reduce = reduce
tree_reduce_associative = reduce_associative
tree_structure = structure
tree_transpose = transpose
tree_unflatten = unflatten

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "Mismatch",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "TreeDef",
    "all",
    "all_leaves",
    "broadcast",
    "broadcast_prefix",
    "flatten",
    "flatten_with_path",
    "is_tree_node",
    "keystr",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "prefix_errors",
    "reduce",
    "reduce_associative",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "structure",
    "transpose",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
    "unflatten",
]
