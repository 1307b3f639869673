"""Arrays with margins."""

from collections.abc import Sequence
from itertools import chain
from typing import Any, Literal, get_args

import numpy as np

from wengert.interpreters.namespaces import differentiable
from wengert.ops.axes import as_axis, at_axis, shape_of
from wengert.ops.conversion import beside
from wengert.ops.creation import full, zeros
from wengert.ops.data_type import check_storable
from wengert.ops.indexing import replace, take
from wengert.tape.primitive import anew
from wengert.tape.tensor import Tensor, wrap

Mode = Literal["constant", "edge", "reflect", "symmetric", "wrap"]
MODES = get_args(Mode)


def _pairs(width: Any, ndim: int) -> list[tuple[int, int]]:
    """Widths of the margins before and after each axis."""
    if isinstance(width, dict):
        pairs = [(0, 0)] * ndim
        for axis, one in width.items():
            pairs[as_axis(axis, ndim)] = _pairs(one, 1)[0]
        return pairs
    try:
        given = np.full((ndim, 2), width)
    except ValueError:
        raise ValueError(
            f"pad: pad_width is a number, a pair, or a pair for each of {ndim} axes, not {width!r}"
        ) from None
    if given.dtype.kind not in "iu" and given.size:
        raise TypeError(f"pad: pad_width is of integers, not {width!r}")
    if (given < 0).any():
        raise ValueError(f"pad: pad_width can't be negative: {width!r}")
    return [(before, after) for before, after in given.tolist()]


def _constants(values: Any, ndim: int) -> list[tuple[Any, Any]]:
    """Numbers or 0-d Tensors for the margins before and after each axis."""
    if not isinstance(values, list | tuple):
        return [(values, values)] * ndim
    if len(values) == 1:
        return _constants(values[0], ndim)
    if len(values) == 2 and not any(isinstance(v, list | tuple) for v in values):
        return [(values[0], values[1])] * ndim
    if len(values) == ndim and all(isinstance(v, list | tuple) and 0 < len(v) < 3 for v in values):
        return [(v[0], v[-1]) for v in values]
    raise ValueError(
        f"pad: constant_values is a number, a pair, or a pair for each of {ndim} axes, not "
        f"{values!r}"
    )


def _with_constants(x: Tensor, pairs: list[tuple[int, int]], values: Any) -> Tensor:
    shape = tuple([n + before + after for n, (before, after) in zip(x.shape, pairs, strict=True)])
    inside = tuple([slice(at, at + n) for n, (at, _) in zip(x.shape, pairs, strict=True)])
    if type(values) is int and not values:
        return differentiable.scatter_add(x, key=inside, shape=shape)  # type: ignore[no-any-return]
    device = differentiable.device(x)
    constants = _constants(values, x.ndim)
    for value in chain(*constants):
        check_storable("pad: constant_values", value, x.dtype)
    if isinstance(values, bool | int | float | complex):
        return replace(full(shape, values, dtype=x.dtype, device=device), inside, x)
    out = replace(zeros(shape, dtype=x.dtype, device=device), inside, x)
    # The corners belong to the later axes.
    for axis, (widths, filling) in enumerate(zip(pairs, constants, strict=True)):
        if widths[0]:
            out = replace(out, at_axis(axis, slice(0, widths[0]), ...), filling[0])
        if widths[1]:
            out = replace(out, at_axis(axis, slice(shape[axis] - widths[1], None), ...), filling[1])
    return out


def pad(
    array: Any,
    pad_width: int | Sequence[Any] | dict[int, Any],
    mode: Mode = "constant",
    *,
    constant_values: Any = 0,
) -> Tensor:
    """Return an array with margins on its sides.

    Cotangents of the margins are added to those of their elements. Raises `TypeError` if
    ``pad_width`` is not of integers, or a constant is of a higher kind than the array; `ValueError`
    for an unknown mode, a negative width, another number of axes, or an axis without elements.
    NumPy: ``pad``, with fewer modes.

    Parameters
    ----------
    pad_width : int, sequence or dict
        One number for all sides, a pair (before, after) for all axes, a pair for each axis, or a
        dict of axes and these.
    mode : str
        ``"constant"``: filled with ``constant_values``. ``"edge"``: the last element.
        ``"reflect"`` and ``"symmetric"``: the array mirrored at its last element, or beyond it.
        ``"wrap"``: the array from its other end.
    constant_values : number, 0-d Tensor, or sequence
        One for all sides, a pair for all axes, or a pair for each axis. Corners belong to the
        later axis.

    Examples
    --------
    >>> wg.pad(wg.asarray([1, 2, 3]), (2, 1), mode="reflect")
    tensor([3, 2, 1, 2, 3, 2])
    """
    shape = shape_of(array)
    x = wrap(array)
    pairs = _pairs(pad_width, len(shape))
    if mode not in MODES:
        raise ValueError(f"pad: mode is one of {', '.join(MODES)}, and not {mode!r}")
    if mode == "constant":
        return _with_constants(x, pairs, constant_values)
    for axis, widths in enumerate(pairs):
        if widths == (0, 0):
            continue
        if not shape[axis]:
            raise ValueError(f"pad: axis {axis} has no elements to extend by mode {mode!r}")
        places = np.pad(np.arange(shape[axis]), widths, mode=mode)
        x = take(x, beside(x, places), axis=axis)
    return anew(x) if x is array else x
