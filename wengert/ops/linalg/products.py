"""Products and parts of matrices: compositions, but for the cross product."""

from operator import index
from typing import Any

import numpy as np

from wengert.interpreters.batching import pairwise
from wengert.interpreters.namespaces import differentiable
from wengert.ops import statistical
from wengert.ops.axes import axis_from_end, diagonal_slice, shape_of
from wengert.ops.conversion import clone
from wengert.ops.creation import eye, ones
from wengert.ops.define import operation
from wengert.ops.elementwise import multiply
from wengert.ops.indexing import getitem
from wengert.ops.linalg.common import matrices, promote
from wengert.ops.linalg.solving import inv
from wengert.ops.linear_algebra import matmul
from wengert.ops.manipulation import broadcast_to, reshape
from wengert.ops.searching import where
from wengert.tape.tensor import Tensor, wrap
from wengert.tape.views import show

__all__ = ["cross", "diagonal", "matrix_power", "outer", "trace"]


# g . (t x b) = t . (b x g)
@operation(
    "linalg.cross",
    x1=lambda xp, g, x2, axis: xp.linalg.cross(xp.conj(x2), g, axis=axis),
    x2=lambda xp, g, x1, axis: xp.linalg.cross(g, xp.conj(x1), axis=axis),
    linear="each",
    batch=pairwise,
)
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    r"""Cross product of vectors in three dimensions, :math:`x_1 \times x_2`.

    The cotangents are :math:`\bar x_2 \times g` and :math:`g \times \bar x_1`. Raises `ValueError`
    if the axis is out of bounds, or has another length. ``axis`` is counted from the end; it may be
    non-negative where both arrays have as many axes. Array API standard.

    Examples
    --------
    >>> wg.linalg.cross(wg.asarray([1.0, 0.0, 0.0]), wg.asarray([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    shape1, shape2 = shape_of(x1), shape_of(x2)
    from_end = axis_from_end(axis, shape1, shape2, "cross")
    if shape1[from_end] != 3 or shape2[from_end] != 3:
        raise ValueError(
            f"cross along axis {axis} of shapes {tuple(shape1)} and {tuple(shape2)}: its length "
            "has to be 3 in both"
        )
    x1, x2 = promote(x1, x2)
    return cross.run(x1, x2, axis=from_end)


def outer(x1: Any, x2: Any, /) -> Tensor:
    r"""Products of each element of one vector with each of another.

    The cotangents are :math:`G \bar x_2` and :math:`G^T \bar x_1`. The result is of shape (M, N).
    Raises `ValueError` if an operand has not one axis. Array API standard.

    Examples
    --------
    >>> wg.linalg.outer(wg.asarray([1.0, 2.0]), wg.asarray([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    shape1, shape2 = shape_of(x1), shape_of(x2)
    if len(shape1) != 1 or len(shape2) != 1:
        raise ValueError(f"outer takes two vectors, not shapes {tuple(shape1)} and {tuple(shape2)}")
    return multiply(reshape(x1, (shape1[0], 1)), reshape(x2, (1, shape2[0])))


def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """Diagonal of a matrix, or of each matrix of a stack.

    The cotangent is the result's on the diagonal, and 0 elsewhere. Raises `ValueError` if ``x`` has
    fewer than two axes. ``offset`` is positive above the main diagonal, negative below.
    Array API standard.

    Examples
    --------
    >>> wg.linalg.diagonal(wg.asarray([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    shape, x = _two_axes("diagonal", x), wrap(x)
    m, n = shape[-2:]
    flat = reshape(x, (*shape[:-2], m * n))
    found = getitem(flat, (..., diagonal_slice(m, n, index(offset))))
    # A view also of a transposed matrix, whose elements in a row are a copy.
    show(found, x, np.diagonal, {"offset": offset, "axis1": -2, "axis2": -1})
    return found


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Sum of a diagonal of a matrix, or of each matrix of a stack.

    The cotangent is the result's on the diagonal, and 0 elsewhere. Raises `ValueError` if ``x`` has
    fewer than two axes. ``offset`` is that of `diagonal`, ``dtype`` that of `wengert.sum`.
    Array API standard.

    Examples
    --------
    >>> wg.linalg.trace(wg.asarray([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
    >>> wg.grad(wg.linalg.trace)(wg.ones((2, 2)))
    tensor([[1., 0.],
            [0., 1.]])
    """
    _two_axes("trace", x)
    return statistical.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def _two_axes(name: str, x: Any) -> tuple[int, ...]:
    shape = shape_of(x)
    if len(shape) < 2:
        raise ValueError(f"{name} takes a matrix or a stack of them, not shape {tuple(shape)}")
    return shape


def matrix_power(x: Any, n: int, /) -> Tensor:
    """Product of ``n`` copies of a square matrix, by repeated squaring.

    The derivative is that of the products. Raises `ValueError` if the matrices are not square. The
    power 0 is the identity; a negative one is that of the inverse. Array API standard.

    Examples
    --------
    >>> wg.linalg.matrix_power(wg.asarray([[1.0, 1.0], [1.0, 0.0]]), 10)  # Fibonacci numbers
    tensor([[89., 55.],
            [55., 34.]])
    """
    shape = matrices("matrix_power", x, square=True)
    n = index(n)
    if n < 0:
        x, n = inv(x), -n
    tensor: Tensor = wrap(x)
    if not n:
        place = differentiable.device(tensor)
        one = broadcast_to(eye(shape[-1], dtype=tensor.dtype, device=place), shape)
        # By `where`, so that the result is tracked if x is.
        return where(ones((), dtype="bool", device=place), one, tensor)
    power: Tensor | None = None
    while True:
        if n % 2:
            power = clone(tensor) if power is None else matmul(power, tensor)
        n //= 2
        if power is not None and not n:
            return power
        tensor = matmul(tensor, tensor)
