"""Transforms: functions that take functions and return their derivatives."""

from wengert.func.custom import custom_vjp
from wengert.func.forward import jvp
from wengert.func.functional import functional_call
from wengert.func.jacobians import hessian, jacfwd, jacobian, jacrev
from wengert.func.mapping import vmap
from wengert.func.products import ggnvp, hvp, linearize
from wengert.func.reverse import elementwise_grad, grad, value_and_grad, vjp
from wengert.func.scanning import scan
from wengert.func.trees import (
    TreeDef,
    register_node,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_structure,
    tree_unflatten,
)
from wengert.ops.hints import list_public

__all__ = [
    "TreeDef",
    "custom_vjp",
    "elementwise_grad",
    "functional_call",
    "ggnvp",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "register_node",
    "scan",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_structure",
    "tree_unflatten",
    "value_and_grad",
    "vjp",
    "vmap",
]

list_public(__name__)
