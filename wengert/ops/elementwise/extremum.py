"""The larger and the smaller of two values."""

from typing import Any

import numpy as np

from wengert.backends import DTYPES, FLOATING, DType, dtype_of
from wengert.ops.data_type import astype
from wengert.ops.define import elementwise, operation
from wengert.ops.domain import Joint
from wengert.tape.promotion import join
from wengert.tape.tensor import Tensor

__all__ = ["clip", "maximum", "minimum"]

_APART = Joint(lambda x1, x2: abs(x1 - x2), "all but x1 = x2")


def _unless(xp: Any, g: Any, beaten: Any, tied: Any) -> Any:
    """The cotangent of an operand: ``g``, half of it in a tie, and 0 for a beaten one."""
    return xp.where(beaten, 0, xp.where(tied, g * 0.5, g))


@elementwise(
    dtypes="real numeric",
    x1=lambda xp, g, x1, x2: _unless(xp, g, x1 < x2, x1 == x2),
    x2=lambda xp, g, x1, x2: _unless(xp, g, x2 < x1, x2 == x1),
    domain={"x1 x2": _APART},
)
def maximum(x1: Any, x2: Any, /) -> Tensor:
    """Larger of two values; nan if one is nan.

    Derivative 1 with respect to the larger, 0 to the smaller, and 1/2 to both where they are equal.
    Real dtypes. Array API standard.

    Examples
    --------
    >>> wg.maximum(wg.asarray([1.0, 5.0]), 3.0)
    tensor([3., 5.])
    >>> wg.grad(wg.maximum, argnums=(0, 1))(3.0, 3.0)  # a tie
    (0.5, 0.5)
    """


@elementwise(
    dtypes="real numeric",
    x1=lambda xp, g, x1, x2: _unless(xp, g, x1 > x2, x1 == x2),
    x2=lambda xp, g, x1, x2: _unless(xp, g, x2 > x1, x2 == x1),
    domain={"x1 x2": _APART},
)
def minimum(x1: Any, x2: Any, /) -> Tensor:
    """Smaller of two values; nan if one is nan.

    Derivative 1 with respect to the smaller, 0 to the larger, and 1/2 to both where they are equal.
    Real dtypes. Array API standard.

    Examples
    --------
    >>> wg.minimum(wg.asarray([1.0, 5.0]), 3.0)
    tensor([1., 3.])
    >>> wg.grad(wg.minimum, argnums=(0, 1))(1.0, 3.0)
    (1.0, 0.0)
    """


# Functions compare: of complex numbers with nan, NumPy's scalars have another order than arrays.


def _clip_x(xp: Any, g: Any, x: Any, min: Any, max: Any) -> Any:
    if min is None and max is None:
        return g
    if min is None:
        inside = xp.less_equal(x, max)
    elif max is None:
        inside = xp.greater_equal(x, min)
    else:
        inside = xp.greater_equal(x, min) & xp.less_equal(x, max)
    return xp.where(inside, g, 0)


def _clip_min(xp: Any, g: Any, x: Any, min: Any, max: Any) -> Any:
    below = xp.less(x, min)
    if max is not None:
        below = below & xp.less(min, max)
    return xp.where(below, g, 0)


def _clip_max(xp: Any, g: Any, x: Any, min: Any, max: Any) -> Any:
    above = xp.greater(x, max)
    if min is not None:
        above = above | xp.less(max, min)
    return xp.where(above, g, 0)


def _check_bound(bound: DType, dtype: DType) -> None:
    """Raise if bounds are complex, or integers, and may be no numbers of the result's dtype."""
    integers = bound.kind.endswith("integer") and dtype.kind.endswith("integer")
    if (bound.complex > dtype.complex) or (integers and join(bound, dtype) is not dtype):
        raise TypeError(
            f"clip: bounds of dtype {bound.name} do not fit an array of dtype {dtype.name}; "
            "convert one with wg.astype"
        )


@operation(
    inputs=("x", "min", "max"),
    x=_clip_x,
    min=_clip_min,
    max=_clip_max,
    elementwise=True,
    dtypes="real numeric",
)
def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """Values limited to the range from ``min`` to ``max``.

    Derivative with respect to ``x`` 1 inside the range and on its bounds, and 0 outside; with
    respect to a bound 1 where the bound is the result, and 0 elsewhere. Real dtypes. The result is
    of the broadcast shape and the dtype of ``x``; of the floating dtype if ``x`` is an integer
    array and a bound is floating. Raises `TypeError` if a bound is complex and ``x`` is not, or an
    array of wider integers than those of ``x``. None leaves a side open. Where ``max`` is less than
    ``min`` the result is ``max``. Array API standard.

    Examples
    --------
    >>> wg.clip(wg.asarray([-1.0, 0.5, 2.0]), 0.0, 1.0)
    tensor([0.0000, 0.5000, 1.0000])
    >>> wg.grad(lambda x: wg.clip(x, 0.0, 1.0).sum())(wg.asarray([-1.0, 0.5, 2.0]))
    tensor([0., 1., 0.])
    """
    array = x._array if isinstance(x, Tensor) else x
    if type(min) is type(max) is float and type(array.dtype) in FLOATING:
        return clip.run(x, min, max)
    # Of numbers that a trace follows the types say the dtype.
    live = hasattr(min, "pin") or hasattr(max, "pin")
    if live and not dtype_of(array.dtype).inexact:
        min, max = [bound.pin() if hasattr(bound, "pin") else bound for bound in (min, max)]
    for bound in [x.item() if isinstance(x, np.generic) else x for x in (min, max)]:
        if hasattr(bound, "shape"):
            _check_bound(dtype_of(bound.dtype), dtype_of(array.dtype))
        elif type(bound) is complex:
            _check_bound(DTYPES["complex64"], dtype_of(array.dtype))
    found: Tensor = clip.run(x, min, max)
    if found._array.dtype is not array.dtype:
        own = dtype_of(array.dtype)
        if own.kind != "bool" and found.dtype.inexact == own.inexact:
            return astype(found, own, copy=False)
    return found
