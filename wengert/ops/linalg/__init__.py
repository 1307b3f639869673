"""The standard's extension ``linalg``."""

from wengert.ops.linear_algebra import matmul, matrix_transpose, tensordot, vecdot

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]
