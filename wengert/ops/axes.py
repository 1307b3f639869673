"""Axes, shapes and numbers made canonical, for all chapters of this package."""

from collections.abc import Sequence
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np

from wengert.backends import as_dtype, backend_of
from wengert.backends.lengths import known_lengths, unsized
from wengert.backends.registry import lost_with
from wengert.ops.data_type import astype
from wengert.tape.tensor import Tensor, differentiates, number_of, wrap


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of a Tensor or an array; an error that names what else was given."""
    try:
        return known_lengths(x.shape) if unsized else x.shape
    except AttributeError:
        advice = lost_with(type(x)) or "convert it with wg.asarray"
        raise TypeError(
            f"a Tensor or an array is needed, not {type(x).__name__}; {advice}"
        ) from None


def raw_array(x: Any) -> Any:
    """The raw array of a Tensor; an array as it is."""
    return x._array if isinstance(x, Tensor) else x


def raw_dtype(x: Any, dtype: Any) -> Any:
    """A dtype of the library of ``x``."""
    return backend_of(raw_array(x)).raw_dtype(as_dtype(dtype))


_INTEGER = frozenset({int})


def as_shape(shape: Any) -> tuple[int, ...]:
    """A shape, or one length, as a tuple of Python integers."""
    if type(shape) is tuple and _INTEGER.issuperset(map(type, shape)):
        return shape
    if type(shape) is int:
        return (shape,)
    try:
        if hasattr(shape, "__index__") and not getattr(shape, "shape", ()):  # NumPy's too
            return (index(shape),)
        return tuple([index(n) for n in shape])
    except TypeError:
        raise TypeError(f"a shape is made of integers, and {shape!r} is not") from None


def as_axis(axis: Any, ndim: int, function: str | None = None) -> int:
    """One axis as a non-negative number.

    Raises `TypeError` if the axis is no integer; `numpy.exceptions.AxisError`, a ValueError and an
    IndexError, if there is none.
    """
    if type(axis) is not int:
        try:
            if isinstance(axis, bool | Tensor):  # PyTorch's std(False) and max(other) mean no axis
                raise TypeError
            axis = index(axis)
        except TypeError:
            whose = f"{function}: " if function else ""
            hint = f"; use wg.{function}imum for two arrays" if function in ("max", "min") else ""
            raise TypeError(f"{whose}an axis is an integer, and {axis!r} is not{hint}") from None
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim, function)
    return axis + ndim if axis < 0 else axis  # type: ignore[no-any-return]


def axis_from_end(
    axis: Any, shape1: tuple[int, ...], shape2: tuple[int, ...], function: str
) -> int:
    """One axis of two arrays that are broadcast, as a negative number.

    Raises as `as_axis`; `ValueError` if it is counted from the start and the numbers of axes
    differ.
    """
    negative = as_axis(axis, len(shape1), function) - len(shape1)
    if index(axis) >= 0 and len(shape1) != len(shape2):
        raise ValueError(
            f"{function}: axis={axis} is not the same axis of shapes {tuple(shape1)} and "
            f"{tuple(shape2)}: count it from the end"
        )
    as_axis(negative, len(shape2), function)
    return negative


def as_axes(axis: int | Sequence[int], ndim: int, function: str | None = None) -> tuple[int, ...]:
    """One axis or several as a tuple of non-negative numbers, each once; errors as of `as_axis`."""
    if type(axis) is int and 0 <= axis < ndim:
        return (axis,)
    axis = tuple(axis) if isinstance(axis, list) else axis
    try:
        return _normalise_numbers(axis, ndim, function)
    except TypeError:  # of what is no key, or no axis
        return _as_axes(axis, ndim, function)


@lru_cache(maxsize=1024, typed=True)
def _normalise_numbers(axis: Any, ndim: int, function: str | None) -> tuple[int, ...]:
    """The same for Python's own numbers: what others stand for may change."""
    if not {int, bool}.issuperset(map(type, axis if isinstance(axis, tuple) else (axis,))):
        raise TypeError("no key")
    return _as_axes(axis, ndim, function)


def _as_axes(axis: Any, ndim: int, function: str | None) -> tuple[int, ...]:
    if not isinstance(axis, tuple):
        return (as_axis(axis, ndim, function),)
    axes = tuple([as_axis(one, ndim, function) for one in axis])
    if len(set(axes)) != len(axes):
        whose = f"{function}: " if function else ""
        raise ValueError(f"{whose}an axis comes twice in {tuple(axis)}")
    return axes


def all_axes(axis: tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """The axes that a reduction goes over, None being all of them."""
    return tuple(range(ndim)) if axis is None else axis


def keep_axes(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """A shape with the length 1 along some axes."""
    return tuple([1 if i in axes else n for i, n in enumerate(shape)])


def drop_axes(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """A shape without some axes."""
    return tuple([n for i, n in enumerate(shape) if i not in axes])


def at_axis(axis: int, *parts: Any) -> tuple[Any, ...]:
    """A key that takes a part along an axis, and the whole of the axes before it."""
    return (slice(None),) * axis + parts


@lru_cache(maxsize=1024)
def inverse_permutation(order: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes one."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


NUMBERS = (bool, int, float, complex)


def number(value: Any, function: str, parameter: str) -> Any:
    """A number as it is, and Python's out of an array of one element, by `number_of`."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, NUMBERS) or hasattr(value, "regularise"):  # a number that a trace follows
        return value
    if hasattr(value, "dtype"):
        given = wrap(value)
        if given.size == 1:
            return number_of(given, "item")
        raise TypeError(
            f"{function} takes one number as {parameter}, and was given an array of shape "
            f"{tuple(given.shape)}"
        )
    raise TypeError(f"{function} takes a number as {parameter}, not {value!r}")


def operand(value: Any, x: Tensor, function: str, parameter: str) -> Any:
    """A number that a derivative may flow through: a Tensor of the dtype of ``x``, or Python's.

    A Tensor of another backend that no derivative follows is its number.
    """
    if not isinstance(value, Tensor):
        return number(value, function, parameter)
    if value.backend is not x.backend and not differentiates(value):
        return number(value, function, parameter)
    dtype = x.dtype
    if not dtype.inexact:
        return value
    if dtype.complex or not value.dtype.complex:
        return astype(value, dtype, copy=False)
    raise TypeError(
        f"{function} takes a real {parameter} beside an array of {dtype.name}, not one of "
        f"{value.dtype.name}"
    )


def fill_zeros(xp: Any, g: tuple[Any, ...]) -> tuple[Any, ...]:
    """Cotangents of results of one shape, with zeros where nothing depends on one."""
    if all(one is not None for one in g):
        return g
    zeros = xp.zeros_like(next(one for one in g if one is not None))
    return tuple([zeros if one is None else one for one in g])


def diagonal_slice(rows: int, columns: int, offset: int) -> slice:
    """The place of a diagonal in a flattened matrix: every (columns + 1)-th element."""
    row, column = max(0, -offset), max(0, offset)
    n = max(0, min(rows - row, columns - column))
    start = row * columns + column
    return slice(start, start + n * (columns + 1) - columns if n else start, columns + 1)
