"""Transforms: functions that take functions and return their derivatives."""

from wengert.func.reverse import elementwise_grad, grad, value_and_grad, vjp
from wengert.func.trees import (
    TreeDef,
    register_node,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_structure,
    tree_unflatten,
)

__all__ = [
    "TreeDef",
    "elementwise_grad",
    "grad",
    "register_node",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_structure",
    "tree_unflatten",
    "value_and_grad",
    "vjp",
]
