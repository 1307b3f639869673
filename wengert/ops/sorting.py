"""Sorting functions: the standard's chapter of that name, with their derivatives."""

from typing import Any

from wengert.interpreters.batching import along
from wengert.ops.axes import as_axis, shape_of
from wengert.ops.define import operation
from wengert.tape.tensor import Tensor

__all__ = ["argsort", "sort"]


def _sort_rule(xp: Any, g: Any, x: Any, axis: int, descending: bool) -> Any:
    # Sorting the permutation gives its inverse: where each element has gone.
    order = xp.argsort(x, axis=axis, descending=descending, stable=True)
    places = xp.argsort(order, axis=axis, descending=False, stable=True)
    return xp.take_along_axis(g, places, axis=axis)


def _sort_tangent(xp: Any, t: Any, x: Any, axis: int, descending: bool) -> Any:
    order = xp.argsort(x, axis=axis, descending=descending, stable=True)
    return xp.take_along_axis(t, order, axis=axis)


@operation(batch=along(descending=False, stable=True), dtypes="real numeric")
def argsort(x: Any, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the indices that sort an array along an axis.

    Raises `ValueError` if the axis is out of bounds. Array API standard.

    Examples
    --------
    >>> wg.argsort(wg.asarray([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    """
    at = as_axis(axis, len(shape_of(x)), "argsort")
    return argsort.run(x, axis=at, descending=descending, stable=stable)


@operation(
    x=_sort_rule,
    jvps={"x": _sort_tangent},
    batch=along(descending=False, stable=True),
    dtypes="real numeric",
)
def sort(x: Any, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """Sort an array along an axis.

    Cotangents go back to where the elements came from; among equal ones in their order. Raises
    `ValueError` if the axis is out of bounds. Array API standard.

    Examples
    --------
    >>> wg.sort(wg.asarray([3.0, 1.0, 2.0]), descending=True)
    tensor([3., 2., 1.])
    >>> weights = wg.asarray([1.0, 10.0, 100.0])
    >>> wg.grad(lambda x: (wg.sort(x) * weights).sum())(wg.asarray([3.0, 1.0, 2.0]))
    tensor([100.,   1.,  10.])
    """
    at = as_axis(axis, len(shape_of(x)), "sort")
    return sort.run(x, axis=at, descending=descending, stable=stable)
