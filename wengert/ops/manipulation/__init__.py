"""Manipulation functions: the standard's chapter of that name, with their derivatives."""

from wengert.ops.manipulation.arranging import (
    expand_dims,
    flip,
    moveaxis,
    permute_dims,
    reshape,
    roll,
    squeeze,
)
from wengert.ops.manipulation.copying import (
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    repeat,
    tile,
)
from wengert.ops.manipulation.joining import concat, stack, unstack

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]
