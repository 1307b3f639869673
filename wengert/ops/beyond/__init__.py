"""Useful functions beside the standard: each a primitive or a composition of the standard's."""

from wengert.ops.beyond.contraction import einsum
from wengert.ops.beyond.padding import pad
from wengert.ops.beyond.quantiles import median, one_hot, quantile
from wengert.ops.beyond.updates import at

__all__ = ["at", "einsum", "median", "one_hot", "pad", "quantile"]
