"""NumPy's reductions on Tensors, with ``where``, ``initial`` and NumPy's dtypes."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.ops import elementwise as ew
from wengert.ops import statistical, utility
from wengert.ops.axes import all_axes, as_axes, as_axis
from wengert.ops.data_type import astype
from wengert.ops.indexing import getitem
from wengert.ops.linalg.norms import vector_norm
from wengert.ops.manipulation import broadcast_to, reshape
from wengert.ops.operands import operands
from wengert.ops.searching import where as where_
from wengert.ops.shares import by_float32
from wengert.protocols import UnsupportedError
from wengert.protocols.translation import cast, floats, inexact
from wengert.tape.tensor import Tensor

Function = Callable[..., Any]


def _is_given(value: Any) -> bool:
    return value is not None and value is not np._NoValue


def _choose(x: Tensor, where: Any, otherwise: Any) -> Tensor:
    """``x`` where it counts, and a neutral value elsewhere."""
    return x if where is True else where_(operands(x, where)[1], x, otherwise)


def _number(where: Any, x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    """The number of elements that count."""
    counted = broadcast_to(operands(x, where)[1], x.shape)
    return statistical.sum(astype(counted, x.dtype), axis=axis, keepdims=keepdims)


def _total(reduce: Function, combine: Function, neutral: int) -> Function:
    """``np.sum`` and ``np.prod``."""

    def call(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        *,
        keepdims: bool = False,
        initial: Any = neutral,
        where: Any = True,
    ) -> Tensor:
        (x,) = operands(a)
        total = reduce(_choose(cast(x, dtype), where, neutral), axis=axis, keepdims=keepdims)
        plain = isinstance(initial, bool | int | float | complex)
        nothing = initial is None or (plain and initial == neutral)
        return total if nothing else combine(total, initial)  # type: ignore[no-any-return]

    return call


sum_of = _total(statistical.sum, operator.add, 0)
product_of = _total(statistical.prod, operator.mul, 1)


def _extreme(reduce: Function, choose: Function) -> Function:
    def call(
        a: Any, axis: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> Tensor:
        (x,) = operands(a)
        if where is not True:
            if not _is_given(initial):
                raise ValueError("where= needs initial=, the value where nothing counts")
            x = where_(operands(x, where)[1], x, initial)
        if _is_given(initial) and not all(x.shape[i] for i in _axes(axis, x)):
            shape = statistical.sum(x, axis=axis, keepdims=keepdims).shape
            return broadcast_to(operands(x, initial)[1], shape)
        result = reduce(x, axis=axis, keepdims=keepdims)
        return choose(result, initial) if _is_given(initial) else result  # type: ignore[no-any-return]

    return call


def _axes(axis: Any, x: Tensor) -> tuple[int, ...]:
    return all_axes(None if axis is None else as_axes(axis, x.ndim), x.ndim)


maximum_of = _extreme(statistical.max, ew.maximum)
minimum_of = _extreme(statistical.min, ew.minimum)


def _quantifier(reduce: Function, neutral: bool) -> Function:
    """``np.all`` and ``np.any``."""

    def call(a: Any, axis: Any = None, *, keepdims: bool = False, where: Any = True) -> Tensor:
        (x,) = operands(a)
        chosen = _choose(cast(x, "bool"), where, neutral)
        return reduce(chosen, axis=axis, keepdims=keepdims)  # type: ignore[no-any-return]

    return call


all_of = _quantifier(utility.all, True)
any_of = _quantifier(utility.any, False)


def mean_of(
    a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, where: Any = True
) -> Tensor:
    """``np.mean``."""
    x = cast(inexact(*operands(a)), dtype)
    if where is True:
        return statistical.mean(x, axis=axis, keepdims=keepdims)
    if x.dtype.narrow:
        return by_float32(mean_of, x, axis, keepdims=keepdims, where=where)  # type: ignore[no-any-return]
    number = _number(where, x, axis, keepdims)
    return statistical.sum(_choose(x, where, 0), axis=axis, keepdims=keepdims) / number


def spread_over(reduce: Function) -> Function:
    """``np.var`` and ``np.std``."""

    def call(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        ddof: float = 0,
        *,
        keepdims: bool = False,
        correction: Any = None,
        where: Any = True,
        mean: Any = None,
    ) -> Tensor:
        x = cast(inexact(*operands(a)), dtype)
        freedom = correction if _is_given(correction) else ddof
        if where is True and not _is_given(mean):
            return reduce(x, axis=axis, correction=freedom, keepdims=keepdims)  # type: ignore[no-any-return]
        if x.dtype.narrow:
            options = {"keepdims": keepdims, "correction": freedom, "where": where, "mean": mean}
            return by_float32(call, x, axis, **options)  # type: ignore[no-any-return]
        centre = mean if _is_given(mean) else mean_of(x, axis, keepdims=True, where=where)
        # Elements are left out before they are squared: the slope of a NaN's square is NaN.
        away = _choose(x - centre, where, 0)
        size = ew.abs(away)
        number = ew.maximum(_number(where, size, axis, keepdims) - freedom, 0)
        if reduce is statistical.var:
            return statistical.sum(ew.square(size), axis=axis, keepdims=keepdims) / number
        axes = None if axis is None else as_axes(axis, away.ndim)
        return vector_norm(away, axis=axes, keepdims=keepdims) / ew.sqrt(number)

    return call


def nan_version(function: Function, neutral: Any) -> Function:
    """A reduction that leaves NaNs out, by a value that changes nothing or by ``where``."""

    def call(a: Any, *args: Any, **keywords: Any) -> Any:
        (x,) = operands(a)
        absent = ew.isnan(x)
        if neutral is None:
            return function(x, *args, where=ew.logical_not(absent), **keywords)
        return function(where_(absent, neutral, x), *args, **keywords)

    return call


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """``np.average``."""
    if weights is None:
        x = inexact(*operands(a))
        result = statistical.mean(x, axis=axis, keepdims=keepdims)
        count = x.size // result.size if result.size else 0
        total = ew.multiply(result, 0) + count if returned else None
    else:
        x, w = floats(a, weights)
        if x.dtype.narrow:
            return by_float32(average, x, axis, w, returned, keepdims=keepdims)
        if w.shape != x.shape:
            axes = _axes(axis, x)
            if axis is None or w.shape != tuple(x.shape[i] for i in axes):
                raise (TypeError if axis is None else ValueError)(
                    f"weights of shape {tuple(w.shape)} for an array of shape {tuple(x.shape)} "
                    f"and axis {axis!r}: they need the array's shape, or its shape along the axis"
                )
            if list(axes) != sorted(axes):
                raise UnsupportedError(
                    f"axis={axis!r} is not supported with weights along it alone"
                )
            w = reshape(w, tuple(n if i in axes else 1 for i, n in enumerate(x.shape)))
            w = broadcast_to(w, x.shape)
        total = statistical.sum(w, axis=axis, keepdims=keepdims)
        result = statistical.sum(x * w, axis=axis, keepdims=keepdims) / total
    return (result, total) if returned else result


def accumulate(function: Function) -> Function:
    """``np.cumsum`` and ``np.cumprod``: along the flattened array, where no axis is given."""

    def call(a: Any, axis: Any = None, dtype: Any = None, **keywords: Any) -> Tensor:
        (x,) = operands(a)
        if axis is None:
            x, axis = reshape(x, (-1,)), 0
        return function(x, axis=axis, dtype=dtype, **keywords)  # type: ignore[no-any-return]

    return call


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """``np.trapezoid``."""
    values, *points = operands(y) if x is None else operands(y, x)
    along = as_axis(axis, values.ndim)
    step: Any = dx
    for places in points:
        step = utility.diff(places, axis=-1 if places.ndim == 1 else axis)
        if places.ndim == 1:
            step = reshape(step, (-1, *[1] * (values.ndim - along - 1)))
    before = (slice(None),) * along
    pairs = getitem(values, (*before, slice(1, None))) + getitem(values, (*before, slice(None, -1)))
    return statistical.sum(pairs * step / 2, axis=axis)
