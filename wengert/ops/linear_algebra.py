"""Linear algebra functions: the standard's chapter of that name, with their derivatives."""

from collections.abc import Sequence
from importlib import import_module
from operator import index
from typing import Any

from wengert.interpreters.batching import as_it_is, by_labels, pairwise, shift_axes
from wengert.ops.axes import (
    as_axes,
    as_shape,
    axis_from_end,
    drop_axes,
    inverse_permutation,
    shape_of,
)
from wengert.ops.define import operation
from wengert.ops.manipulation import broadcast_shapes, reshape
from wengert.tape.tensor import Tensor

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]

# -- matrix product ------------------------------------------------------------------------------

# Each rule tells from the axes of g and of the other operand whether its own operand is a vector:
# the product has an axis less than a matrix operand exactly if the other one is a vector. Batches
# are summed by the engine.


def adjoint(xp: Any, x: Any) -> Any:
    """The conjugate transpose."""
    return xp.matrix_transpose(xp.conj(x))


def _column(xp: Any, x: Any) -> Any:
    return xp.expand_dims(x, axis=len(x.shape))


def _row(xp: Any, x: Any) -> Any:
    return xp.expand_dims(x, axis=len(x.shape) - 1)


def _matmul_x1(xp: Any, g: Any, x2: Any) -> Any:
    g_ndim, ndim = len(g.shape), len(x2.shape)
    if ndim == 1:
        if g_ndim:
            g = _column(xp, g)
        return g * xp.conj(x2)
    if g_ndim == 1 and ndim == 2:
        return xp.matmul(xp.conj(x2), g)
    if g_ndim < ndim:
        return xp.squeeze(xp.matmul(xp.conj(x2), _column(xp, g)), axis=(g_ndim,))
    return xp.matmul(g, adjoint(xp, x2))


def _matmul_x2(xp: Any, g: Any, x1: Any) -> Any:
    g_ndim, ndim = len(g.shape), len(x1.shape)
    if ndim == 1:
        if not g_ndim:
            return xp.conj(x1) * g
        return _column(xp, xp.conj(x1)) * _row(xp, g)
    if g_ndim == 1 and ndim == 2:
        return xp.matmul(adjoint(xp, x1), g)
    if g_ndim < ndim:
        return xp.squeeze(xp.matmul(adjoint(xp, x1), _column(xp, g)), axis=(g_ndim,))
    return xp.matmul(adjoint(xp, x1), g)


def _on_the_left(xp: Any, run: Any, x1: Any, x2: Any) -> Any:
    """Many vectors or matrices times one: as one product, which is faster than many."""
    shape = x1.shape
    if len(shape) == 2:
        return run(x1, x2)
    flat = run(xp.reshape(x1, (shape[0] * shape[1], shape[2])), x2)
    return xp.reshape(flat, (shape[0], shape[1], x2.shape[1]))


def _matmul_batch(call: Any, x1: Any, x2: Any) -> Any:
    xp, run = call.xp, call.run
    rank1, rank2 = call.rank(0), call.rank(1)
    if call.own == (True, False):
        if rank1 == 2 == rank2 or (rank1 == 1 and rank2 <= 2):
            return _on_the_left(xp, run, x1, x2)
    elif call.own == (False, True) and rank1 <= 2 and rank2 == 1:
        return run(x2, xp.matrix_transpose(x1) if rank1 == 2 else x1)
    # Vectors as matrices, and the members' axis as the first of the stacks.
    left = xp.expand_dims(x1, axis=len(x1.shape) - 1) if rank1 == 1 else x1
    right = xp.expand_dims(x2, axis=len(x2.shape)) if rank2 == 1 else x2
    rank = max(rank1, rank2, 2)
    matrices = call._replace(inputs=(left, right))
    out = run(matrices.with_rank(0, rank), matrices.with_rank(1, rank))
    vectors = (2, rank1), (1, rank2)
    gone = tuple([len(out.shape) - n for n, rank in vectors if rank == 1])
    return xp.squeeze(out, axis=gone) if gone else out


@operation(x1=_matmul_x1, x2=_matmul_x2, linear="each", batch=_matmul_batch, dtypes="numeric")
def matmul(x1: Any, x2: Any, /) -> Tensor:
    r"""Matrix product, :math:`(X_1 X_2)_{ik} = \sum_j (X_1)_{ij} (X_2)_{jk}`.

    The cotangents are :math:`G X_2^H` and :math:`X_1^H G`. The result is of shape (..., M, N),
    without M where ``x1`` is a vector and without N where ``x2`` is. Raises `ValueError` if an
    operand is 0-d, or the shapes do not fit. Stacks broadcast. Array API standard.

    Examples
    --------
    >>> x = wg.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> wg.matmul(x, x)
    tensor([[ 7., 10.],
            [15., 22.]])
    >>> wg.grad(lambda a: wg.matmul(a, x).sum())(x)
    tensor([[3., 7.],
            [3., 7.]])
    """
    shape1, shape2 = shape_of(x1), shape_of(x2)
    ndim1, ndim2 = len(shape1), len(shape2)
    if ndim1 == 2 == ndim2 and shape1[1] == shape2[0]:
        return matmul.run(x1, x2)
    if not ndim1 or not ndim2 or shape1[-1] != shape2[-2 if ndim2 > 1 else 0]:
        raise ValueError(
            f"matmul of shapes {tuple(shape1)} and {tuple(shape2)}: the last axis of the first "
            "needs the length of the second's last but one (of its only one)"
        )
    if ndim2 == 2 and ndim1 > 2 and shape2[1]:
        # One matrix for all: one large product is faster than a stack of small ones, and its
        # second cotangent needs no stack that is summed afterwards.
        rows = 1
        for n in shape1[:-1]:
            rows *= n
        flat = matmul.run(reshape(x1, (rows, shape1[-1])), x2)
        return reshape(flat, (*shape1[:-1], shape2[1]))
    try:
        return matmul.run(x1, x2)
    except (TypeError, ValueError):
        _check_stacks("matmul", shape1[:-2], shape2[:-2])
        raise


def _check_stacks(function: str, shape1: tuple[int, ...], shape2: tuple[int, ...]) -> None:
    shapes = as_shape(shape1), as_shape(shape2)  # which may be unknown
    try:
        broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            f"{function}: stacks of the shapes {tuple(shape1)} and {tuple(shape2)} do not broadcast"
        ) from None


@operation(x=lambda xp, g: xp.matrix_transpose(g), linear="together", view=True, batch=as_it_is)
def matrix_transpose(x: Any, /) -> Tensor:
    """Transpose a matrix, or each matrix of a stack.

    The cotangent is transposed back. The result is of shape (..., N, M) and the dtype of ``x``.
    Raises `ValueError` if ``x`` has fewer than two axes. Array API standard.

    Examples
    --------
    >>> wg.matrix_transpose(wg.asarray([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[1., 3.],
            [2., 4.]])
    """
    if len(shape_of(x)) < 2:
        raise ValueError(
            f"matrix_transpose needs two axes at least, and the shape is {tuple(x.shape)}"
        )
    return matrix_transpose.run(x)


# -- other products ------------------------------------------------------------------------------

Pairs = tuple[tuple[int, ...], tuple[int, ...]]


def _free(ndim: int, axes: tuple[int, ...]) -> list[int]:
    return [i for i in range(ndim) if i not in axes]


def _tensordot_x1(xp: Any, g: Any, x2: Any, axes: Pairs) -> Any:
    mine, other = axes
    free2 = _free(len(x2.shape), other)
    ours = len(g.shape) - len(free2)
    over = tuple(range(ours, len(g.shape))), tuple(free2)
    # What remains of x2 are its contracted axes, in its own order: each belongs to one of x1's.
    x = xp.tensordot(g, xp.conj(x2), axes=over)
    places = _free(ours + len(mine), mine) + [mine[other.index(i)] for i in sorted(other)]
    return xp.permute_dims(x, inverse_permutation(tuple(places)))


def _tensordot_x2(xp: Any, g: Any, x1: Any, axes: Pairs) -> Any:
    other, mine = axes
    free1 = _free(len(x1.shape), other)
    ours = len(g.shape) - len(free1)
    x = xp.tensordot(xp.conj(x1), g, axes=(tuple(free1), tuple(range(len(free1)))))
    places = [mine[other.index(i)] for i in sorted(other)] + _free(ours + len(mine), mine)
    return xp.permute_dims(x, inverse_permutation(tuple(places)))


def _tensordot_batch(call: Any, x1: Any, x2: Any, *, axes: Any = 2) -> Any:
    rank1, rank2 = call.rank(0), call.rank(1)
    if isinstance(axes, int):
        axes = tuple(range(rank1 - axes, rank1)), tuple(range(axes))
    over1, over2 = (
        tuple([one % rank for one in over]) for over, rank in zip(axes, (rank1, rank2), strict=True)
    )
    if call.own == (True, True):
        letters = [chr(ord("a") + i) for i in range(rank1 + rank2)]
        first, second = letters[:rank1], letters[rank1:]
        for i, j in zip(over1, over2, strict=True):
            second[j] = first[i]
        result = [c for c in first if c not in second] + [c for c in second if c not in first]
        subscripts = ("".join(first), "".join(second), "".join(result))
        import_module("wengert.ops.beyond")  # which has products by labels
        return by_labels(call, x1, x2, subscripts)
    if call.own[0]:
        return call.run(x1, x2, axes=(shift_axes(over1, rank1), over2))
    out = call.run(x1, x2, axes=(over1, shift_axes(over2, rank2)))
    return call.move_axis(out, rank1 - len(over1), 0)


@operation(
    x1=_tensordot_x1, x2=_tensordot_x2, linear="each", batch=_tensordot_batch, dtypes="numeric"
)
def tensordot(x1: Any, x2: Any, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Sum of products over pairs of axes.

    Each cotangent is the tensordot of the result's with the conjugate of the other operand, over
    the other's unpaired axes. The result's axes are the unpaired ones of ``x1``, then those of
    ``x2``. Raises `ValueError` if an axis is out of bounds or comes twice, or if a pair's lengths
    differ. A number N of ``axes`` pairs the last N of ``x1`` with the first N of ``x2``; 0 gives
    the outer product. Array API standard.

    Examples
    --------
    >>> a, b = wg.ones((2, 3, 4)), wg.ones((4, 3, 5))
    >>> wg.tensordot(a, b, axes=([1, 2], [1, 0])).shape
    (2, 5)
    """
    shape1, shape2 = shape_of(x1), shape_of(x2)
    if isinstance(axes, tuple | list):
        first, second = axes
        pairs = as_axes(first, len(shape1), "tensordot"), as_axes(second, len(shape2), "tensordot")
    else:
        n = index(axes)
        if not 0 <= n <= min(len(shape1), len(shape2)):
            raise ValueError(f"axes={n} for arrays of {len(shape1)} and {len(shape2)} axes")
        pairs = tuple(range(len(shape1) - n, len(shape1))), tuple(range(n))
    if [shape1[i] for i in pairs[0]] != [shape2[i] for i in pairs[1]]:
        raise ValueError(
            f"tensordot pairs axes {pairs[0]} of shape {tuple(shape1)} with axes {pairs[1]} of "
            f"shape {tuple(shape2)}: their lengths differ"
        )
    return tensordot.run(x1, x2, axes=pairs)


@operation(
    x1=lambda xp, g, x2, axis: xp.conj(xp.expand_dims(g, axis=len(g.shape) + 1 + axis)) * x2,
    x2=lambda xp, g, x1, axis: xp.expand_dims(g, axis=len(g.shape) + 1 + axis) * x1,
    linear="each",
    batch=pairwise,
    dtypes="numeric",
)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    r"""Inner product of vectors, :math:`\sum_i \overline{(x_1)_i} (x_2)_i`.

    The first is conjugated. The cotangents are :math:`\bar g x_2` and :math:`g x_1`. Raises
    `ValueError` if the axis is out of bounds, or has another length. ``axis`` is counted from the
    end; it may be non-negative where both arrays have as many axes. Array API standard.

    Examples
    --------
    >>> wg.vecdot(wg.asarray([1.0, 2.0]), wg.asarray([3.0, 4.0]))
    tensor(11.)
    >>> wg.vecdot(wg.ones((5, 3)), wg.ones(3)).shape
    (5,)
    """
    shape1, shape2 = shape_of(x1), shape_of(x2)
    from_end = axis_from_end(axis, shape1, shape2, "vecdot")
    if shape1[from_end] != shape2[from_end]:
        raise ValueError(
            f"vecdot along axis {axis} of shapes {tuple(shape1)} and {tuple(shape2)}: the lengths "
            "differ"
        )
    try:
        return vecdot.run(x1, x2, axis=from_end)
    except (TypeError, ValueError):
        stacks = (drop_axes(shape, (len(shape) + from_end,)) for shape in (shape1, shape2))
        _check_stacks("vecdot", *stacks)
        raise
