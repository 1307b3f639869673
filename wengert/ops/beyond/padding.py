"""Arrays with margins."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final, Literal, cast, get_args

import numpy as np

from wengert.backends import backend_of
from wengert.interpreters.namespaces import differentiable
from wengert.ops import statistical
from wengert.ops.axes import as_axis, at_axis, bent, shape_of
from wengert.ops.beyond.quantiles import median
from wengert.ops.constants import float64
from wengert.ops.creation import full, zeros
from wengert.ops.data_type import astype
from wengert.ops.elementwise import add, divide, equal, floor, multiply, subtract
from wengert.ops.elementwise import round as round_half_even
from wengert.ops.indexing import getitem, replaced, take
from wengert.ops.manipulation import broadcast_to, concat, reshape
from wengert.ops.searching import where
from wengert.tape.primitive import anew
from wengert.tape.promotion import check_storable
from wengert.tape.tensor import Tensor, untracked, wrapped

#: The modes whose margins have a statistic of each line.
STATISTICS: Final[dict[str, Callable[..., Tensor]]] = {
    "maximum": statistical.max,
    "mean": statistical.mean,
    "median": median,
    "minimum": statistical.min,
}
Mode = Literal[
    "constant",
    "edge",
    "reflect",
    "symmetric",
    "wrap",
    "linear_ramp",
    "maximum",
    "mean",
    "median",
    "minimum",
    "empty",
]

#: The modes for which an option may be given.
OPTIONS: Final = {
    "end_values": ("linear_ramp",),
    "reflect_type": ("reflect", "symmetric"),
    "stat_length": tuple(STATISTICS),
}

_PLAIN = (int, float, complex, np.generic, np.ndarray)


def _pairs(width: Any, ndim: int, option: str = "pad_width") -> list[tuple[int, int]]:
    """Lengths before and after each axis, such as those of the margins."""
    if isinstance(width, dict):
        pairs = [(0, 0)] * ndim
        for axis, one in width.items():
            pairs[as_axis(axis, ndim)] = _pairs(one, 1, option)[0]
        return pairs
    try:
        given = np.broadcast_to(np.asarray(width), (ndim, 2))
    except ValueError:
        raise ValueError(
            f"pad: {option} is a number, a pair, or a pair for each of {ndim} axes, not {width!r}"
        ) from None
    if given.dtype.kind not in "iu" and given.size:
        raise TypeError(f"pad: {option} is of integers, not {width!r}")
    pairs = [(int(before), int(after)) for before, after in given]
    if any(n < 0 for pair in pairs for n in pair):
        raise ValueError(f"pad: {option} can't be negative: {width!r}")
    return pairs


def _constants(x: Tensor, values: Any, option: str) -> list[tuple[Any, Any]]:
    """Numbers or 0-d Tensors for the margins before and after each axis, which ``x`` can hold."""
    found = _both(values, x.ndim, option)
    for value in chain(*found):
        check_storable(f"pad: {option}", value, x.dtype)
    return found


def _both(values: Any, ndim: int, option: str) -> list[tuple[Any, Any]]:
    if not isinstance(values, list | tuple):
        return [(values, values)] * ndim
    if len(values) == 1:
        return _both(values[0], ndim, option)
    if len(values) == 2 and not any(isinstance(v, list | tuple) for v in values):
        return [(values[0], values[1])] * ndim
    if len(values) == ndim and all(isinstance(v, list | tuple) and 0 < len(v) < 3 for v in values):
        return [(v[0], v[-1]) for v in values]
    raise ValueError(
        f"pad: {option} is a number, a pair, or a pair for each of {ndim} axes, not {values!r}"
    )


def _with_constants(x: Tensor, pairs: list[tuple[int, int]], values: Any) -> Tensor:
    shape = tuple([n + before + after for n, (before, after) in zip(x.shape, pairs, strict=True)])
    device = differentiable.device(x)
    inside = tuple(
        [slice(before, before + n) for n, (before, _) in zip(x.shape, pairs, strict=True)]
    )
    constants = _constants(x, values, "constant_values")
    if isinstance(values, bool | int | float | complex):
        return replaced(full(shape, values, dtype=x.dtype, device=device), inside, x)
    out = replaced(zeros(shape, dtype=x.dtype, device=device), inside, x)
    # The corners belong to the later axes.
    for axis, (widths, filling) in enumerate(zip(pairs, constants, strict=True)):
        if widths[0]:
            out = replaced(out, at_axis(axis, slice(0, widths[0]), ...), filling[0])
        if widths[1]:
            out = replaced(
                out, at_axis(axis, slice(shape[axis] - widths[1], None), ...), filling[1]
            )
    return out


def _along(x: Tensor, axis: int, start: int, stop: int) -> Tensor:
    return getitem(x, at_axis(axis, slice(start, stop)))


def _steps(x: Tensor, axis: int, values: Any) -> Tensor:
    """Numbers along an axis of ``x``, to be broadcast over the others."""
    owner = backend_of(x._array)
    line = owner.from_numpy(np.asarray(values), owner.beside(x._array))
    return reshape(untracked(line), tuple(-1 if i == axis else 1 for i in range(x.ndim)))


def _ramps(x: Tensor, axis: int, widths: tuple[int, int], ends: tuple[Any, Any]) -> list[Tensor]:
    """Margins that go evenly from an end value to the edge."""
    n = x.shape[axis]
    wide = x if x.dtype.inexact else astype(x, float64)
    margins = []
    for width, end, start, order in zip(widths, ends, (0, n - 1), (1, -1), strict=True):
        edge = _along(wide, axis, start, start + 1)
        counts = np.arange(width)[::order]
        steps = astype(_steps(x, axis, counts), wide.dtype)
        ramp = add(multiply(steps, divide(subtract(edge, end), width or 1)), end)
        margins.append(astype(ramp if x.dtype.inexact else floor(ramp), x.dtype, copy=False))
    return margins


def _statistics(
    x: Tensor, axis: int, widths: tuple[int, int], mode: str, lengths: tuple[int, int] | None
) -> list[Tensor]:
    """Margins of one value for each line: a statistic of the elements at that end."""
    n = x.shape[axis]
    before, after = (n, n) if lengths is None else [bent(min, length, n) for length in lengths]
    if not before or not after:
        raise ValueError(f"pad: stat_length={lengths} leaves no elements for mode {mode!r}")
    rounded = not x.dtype.inexact and mode in ("mean", "median")
    wide = astype(x, float64) if rounded else x
    margins = []
    for width, start, stop in ((widths[0], 0, before), (widths[1], n - after, n)):
        value = STATISTICS[mode](_along(wide, axis, start, stop), axis=axis, keepdims=True)
        shape = (*x.shape[:axis], width, *x.shape[axis + 1 :])
        value = astype(round_half_even(value), x.dtype) if rounded else value
        margins.append(broadcast_to(value, shape))
    return margins


def _odd_reflections(x: Tensor, axis: int, widths: tuple[int, int], mode: str) -> list[Tensor]:
    """Margins by reflection in a point: twice the edge less the mirrored element.

    Extended without end, the array alternates with its mirror image, and from each copy to the next
    one it grows by twice the difference of its ends.
    """
    n = x.shape[axis]
    first, last = _along(x, axis, 0, 1), _along(x, axis, n - 1, n)
    period = n if mode == "symmetric" else max(n - 1, 1)
    margins = []
    for places in (np.arange(-widths[0], 0), np.arange(n, n + widths[1])):
        cycle, rest = np.divmod(places, period)
        mirrored = cycle % 2 == 1
        end = n - 1  # where a mirrored period starts, counting down
        picked = take(
            x, reshape(_steps(x, axis, np.where(mirrored, end - rest, rest)), (-1,)), axis=axis
        )
        parts = [
            (np.where(mirrored, -1, 1), picked),
            (np.where(mirrored, 1 - cycle, -cycle), first),
            (np.where(mirrored, cycle + 1, cycle), last),
        ]
        margin = None
        for factors, part in parts:
            factor = astype(_steps(x, axis, factors), x.dtype)
            # 0 times an infinite edge is to be 0, and not NaN.
            term = multiply(factor, where(equal(factor, 0), 0, part))
            margin = term if margin is None else add(margin, term)
        margins.append(cast(Tensor, margin))
    return margins


def pad(
    array: Any,
    pad_width: int | Sequence[Any] | dict[int, Any],
    mode: Mode = "constant",
    *,
    constant_values: Any = 0,
    end_values: Any = 0,
    stat_length: Any = None,
    reflect_type: Literal["even", "odd"] = "even",
) -> Tensor:
    """Return an array with margins on its sides.

    Cotangents go back to the elements that the margins are made of, and are added up.

    Parameters
    ----------
    array : Tensor or array
        Of any shape and dtype.
    pad_width : int, sequence or dict
        How wide: one number for all sides, a pair (before, after) for all axes, a pair for each
        axis, or a dict of axes and these.
    mode : str
        With what. ``"constant"``: with ``constant_values``. ``"edge"``: the last element.
        ``"reflect"`` and ``"symmetric"``: the array mirrored at its last element, or beyond it.
        ``"wrap"``: the array from its other end. ``"linear_ramp"``: numbers that go evenly from
        ``end_values`` to the edge. ``"maximum"``, ``"mean"``, ``"median"``, ``"minimum"``: that
        of each line. ``"empty"``: zeros, on which nobody should rely.
    constant_values, end_values : number, 0-d Tensor, or sequence
        One for all sides, a pair for all axes, or a pair for each axis. Corners belong to the
        later axis.
    stat_length : int or sequence, optional
        Of how many elements at an end the statistic is, given like ``pad_width``; of all of the
        line by default.
    reflect_type : {"even", "odd"}
        Whether a mirrored element is taken as it is, or subtracted from twice the edge.

    Returns
    -------
    Tensor
        Of the dtype of ``array``.

    Raises
    ------
    TypeError
        If ``pad_width`` is not of integers, a value is of a higher kind than the array (floating
        for integers), or the statistic is not for the dtype (complex numbers have no order).
    ValueError
        If the mode is unknown or not the option's, a width is negative, the numbers of axes
        differ, or an axis without elements has nothing to make margins of.

    Notes
    -----
    NumPy: ``pad``.

    Examples
    --------
    >>> wg.pad(wg.asarray([1, 2, 3]), (2, 1), mode="reflect")
    tensor([3, 2, 1, 2, 3, 2])
    """
    shape = shape_of(array)
    x = wrapped(array)
    ndim = len(shape)
    pairs = _pairs(pad_width, ndim)
    if mode not in get_args(Mode):
        raise ValueError(f"pad: mode is one of {', '.join(get_args(Mode))}, and not {mode!r}")
    given = {
        "end_values": bool(np.any(end_values != 0)) if isinstance(end_values, _PLAIN) else True,
        "reflect_type": reflect_type != "even",
        "stat_length": stat_length is not None,
    }
    for option, modes in OPTIONS.items():
        if given[option] and mode not in modes:
            raise ValueError(f"pad: {option} is for mode {' or '.join(modes)}, and not {mode!r}")
    if reflect_type not in ("even", "odd"):
        raise ValueError(f"pad: reflect_type is 'even' or 'odd', and not {reflect_type!r}")
    if mode in ("constant", "empty"):
        return _with_constants(x, pairs, constant_values if mode == "constant" else 0)
    ends = _constants(x, end_values, "end_values")
    lengths = None if stat_length is None else _pairs(stat_length, ndim, "stat_length")
    for axis, widths in enumerate(pairs):
        if widths == (0, 0):
            continue
        n = shape[axis]
        if not n:
            raise ValueError(f"pad: axis {axis} has no elements to extend by mode {mode!r}")
        if mode == "linear_ramp":
            before, after = _ramps(x, axis, widths, ends[axis])
        elif mode in STATISTICS:
            before, after = _statistics(x, axis, widths, mode, lengths[axis] if lengths else None)
        elif reflect_type == "odd":
            before, after = _odd_reflections(x, axis, widths, mode)
        else:
            places = np.pad(np.arange(n), widths, mode=cast(Any, mode))
            x = take(x, reshape(_steps(x, axis, places), (-1,)), axis=axis)
            continue
        x = concat([before, x, after], axis=axis)
    return anew(x) if x is array else x
