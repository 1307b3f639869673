"""Indexing by the standard's own functions, for libraries that lack some of it.

The standard lets arrays be indexed by integers, slices, None and Ellipsis, by one mask alone, or
by integer arrays alone, and asks for no assignment. These forms need only ``take``, sorting and
``where``: they mean what NumPy's indexing means, on any library that conforms, also where arrays
cannot be written. Repeated indices are right: they are sorted, and equal ones are added up.
"""

import math
import operator
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from wengert.backends import add_composite
from wengert.backends.keys import SLOT, cut
from wengert.interpreters.namespaces import differentiable
from wengert.ops.axes import inverse_permutation, keep_axes

add_composite("cut", lambda xp, x, key: cut(x, key=key))
vars(differentiable)["cut"] = partial(cut)  # which is no method of Tensors


def add_part(xp: Any, total: Any, value: Any, *, key: tuple[Any, ...], own: bool) -> Any:
    """Return ``total`` with ``value`` added at ``[key]``, which holds no index arrays.

    With ``own`` nobody else has ``total``, and a kernel may write into it.
    """
    return total + xp.scatter_add(value, key=key, shape=total.shape)


add_composite("add_part", add_part)


class Layout:
    """The effect of a key on an array of a shape.

    Every axis of the array is cut by a slice (an integer being a slice of length 1 that is
    dropped) or indexed by an array. The indexed axes become one, of rows; `rows` says which rows.

    Attributes
    ----------
    cuts : list of (start, step, length)
        For each axis; the whole axis where an array indexes it.
    dropped : list of int
        Axes that an integer takes away.
    indexed, sliced : list of int
        Axes that remain, by what they are indexed by.
    rows : array or None
        Flat indices into the indexed axes; None if no array indexes.
    block : tuple of int
        Shape of the index arrays, broadcast together.
    at : int
        Before which of the sliced axes the block stands in the result.
    shape : tuple of int
        Of the result.
    """

    def __init__(
        self,
        xp: Any,
        x: Any,
        shape: tuple[int, ...],
        indices: tuple[Any, ...],
        key: tuple[Any, ...],
    ) -> None:
        self.cuts: list[tuple[int, int, int]] = []
        self.dropped: list[int] = []
        self.indexed: list[int] = []
        self.sliced: list[int] = []
        arrays: list[Any] = []
        blocks: list[tuple[int, ...]] = []
        advanced: list[int] = []  # places in the key of arrays, and of integers beside them
        lengths: list[tuple[int, int]] = []  # place in the key, length: the result's other axes
        operands = iter(indices)
        operands = iter([_as_positions(xp, x, next(operands)) for part in key if part == SLOT])
        parts = [next(operands) if part == SLOT else part for part in key]
        taken = sum(_width(part) for part in parts)
        if taken > len(shape) or parts.count(Ellipsis) > 1:
            raise IndexError(
                f"the index has {taken} parts and {parts.count(Ellipsis)} ellipses, and the array "
                f"{len(shape)} axes"
            )
        if Ellipsis not in parts:
            parts.append(Ellipsis)
        for place, part in enumerate(parts):
            axis = len(self.cuts)
            if part is None:
                lengths.append((place, 1))
            elif part is Ellipsis:
                for n in shape[axis : axis + len(shape) - taken]:
                    lengths.append((place, n))
                    self.sliced.append(len(self.cuts))
                    self.cuts.append((0, 1, n))
            elif type(part) is slice:
                start, step, length = _cut(part.start, part.stop, part.step, shape[axis])
                lengths.append((place, length))
                self.sliced.append(axis)
                self.cuts.append((start, step, length))
            elif type(part) is int:
                advanced.append(place)
                self.dropped.append(axis)
                self.cuts.append((_check(part, axis, shape), 1, 1))
            else:
                advanced.append(place)
                blocks.append(part.block)
                part.check(axis, shape)
                arrays += part.positions
                for n in shape[axis : axis + len(part.positions)]:
                    self.indexed.append(len(self.cuts))
                    self.cuts.append((0, 1, n))
        self.block = np.broadcast_shapes(*blocks)
        self.rows = self._flat(xp, shape, arrays, x) if blocks else None
        # Index arrays that stand together keep their place; otherwise their axes come first.
        together = advanced and advanced[-1] - advanced[0] == len(advanced) - 1
        before = [i for i, _ in lengths if blocks and together and i < advanced[0]]
        self.at = sum(parts[i] is not None for i in before)
        whole = [n for _, n in lengths]
        self.shape = (*whole[: len(before)], *self.block, *whole[len(before) :])

    def _flat(self, xp: Any, shape: tuple[int, ...], arrays: list[Any], x: Any) -> Any:
        total = math.prod([shape[i] for i in self.indexed])
        if not arrays:  # a 0-d mask alone: the whole array, once or not at all
            return xp.zeros(math.prod(self.block), dtype=xp.int64, device=xp.device(x))
        flat: Any = None
        wrong: Any = None
        for axis, positions in zip(self.indexed, arrays, strict=True):
            n = shape[axis]
            place = xp.where(positions < 0, positions + n, positions)
            outside = (positions < -n) | (positions >= n)
            flat = place if flat is None else flat * n + place
            wrong = outside if wrong is None else wrong | outside
        flat = xp.where(wrong, total, flat)  # which `take` refuses
        return xp.reshape(xp.broadcast_to(flat, self.block), (math.prod(self.block),))

    def lengths(self, axes: Iterable[int]) -> tuple[int, ...]:
        """The lengths of some axes of the array, after cutting."""
        return tuple([self.cuts[i][2] for i in axes])

    def order(self) -> list[int]:
        """For each axis of the result, None left out, which it is of (block, then sliced axes)."""
        block, sliced = len(self.block), len(self.sliced)
        others = list(range(block, block + sliced))
        return others[: self.at] + list(range(block)) + others[self.at :]


class _Positions:
    """An index array as integer positions, one array for each axis that it indexes."""

    def __init__(self, positions: list[Any], block: tuple[int, ...], mask: Any) -> None:
        self.positions, self.block, self.mask = positions, block, mask

    def check(self, axis: int, shape: tuple[int, ...]) -> None:
        if self.mask is not None and self.mask != shape[axis : axis + len(self.mask)]:
            raise IndexError(
                f"a mask of shape {self.mask} does not fit axes of shape "
                f"{shape[axis : axis + len(self.mask)]}"
            )


def _as_positions(xp: Any, x: Any, index: Any) -> _Positions:
    if index.dtype != xp.bool:
        return _Positions([xp.astype(index, xp.int64)], tuple(index.shape), None)
    # How many elements a mask chooses is data: it is read back whatever the library.
    found = np.nonzero(np.atleast_1d(xp.backend.to_numpy(index)))
    shape = tuple(index.shape)
    if not shape:
        return _Positions([], found[0].shape, ())
    device = xp.device(x)
    return _Positions([xp.backend.from_numpy(i, device) for i in found], found[0].shape, shape)


def _cut(start: int | None, stop: int | None, step: int | None, n: int) -> tuple[int, int, int]:
    """The first index that a slice chooses, the step, and how many they are."""
    steps = range(*slice(start, stop, step).indices(n))
    return steps.start if steps else 0, steps.step, len(steps)


def _width(part: Any) -> int:
    if isinstance(part, _Positions):
        return len(part.positions)
    return 0 if part is None or part is Ellipsis else 1


def _check(i: int, axis: int, shape: tuple[int, ...]) -> int:
    n = shape[axis]
    if n != n:  # nan, which the library explains
        raise ValueError(f"axis {axis} has no known size")
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of bounds for axis {axis} with size {n}")
    return i + n if i < 0 else i


def gather(xp: Any, x: Any, *indices: Any, key: tuple[Any, ...]) -> Any:
    """``x[key]``."""
    layout = Layout(xp, x, x.shape, indices, key)
    slices = [
        start if i in layout.dropped else _slice(start, step, length)
        for i, (start, step, length) in enumerate(layout.cuts)
    ]
    x = xp.cut(x, key=tuple(slices))
    if layout.rows is not None:
        remaining = sorted(layout.indexed + layout.sliced)
        places = [remaining.index(i) for i in layout.indexed + layout.sliced]
        lengths = layout.lengths(layout.sliced)
        rows = math.prod(layout.lengths(layout.indexed))
        x = xp.reshape(xp.permute_dims(x, tuple(places)), (rows, math.prod(lengths)))
        x = xp.reshape(xp.take(x, layout.rows, axis=0), (*layout.block, *lengths))
        x = xp.permute_dims(x, tuple(layout.order()))
    return xp.reshape(x, layout.shape)


def _slice(start: int, step: int, length: int) -> slice:
    # One past the last: the standard has no stop further out of bounds.
    stop = start + step * (length - 1) + (1 if step > 0 else -1)
    return slice(start, stop if stop >= 0 else None, step) if length else slice(0, 0)


def scatter(xp: Any, x: Any, *indices: Any, key: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """Add ``x`` up in zeros of a shape, at ``[key]``."""
    return _scatter(xp, x, Layout(xp, x, shape, indices, key), shape, add=True)


def put(xp: Any, x: Any, value: Any, *indices: Any, key: tuple[Any, ...]) -> Any:
    """Return ``x`` with ``[key]`` replaced by ``value``; the last of repeated indices stands."""
    filled = _fill(xp, x, value, indices, key)
    if filled is not None:
        return filled
    layout = Layout(xp, x, x.shape, indices, key)
    if hasattr(value, "shape"):
        value = xp.astype(value, x.dtype)
        more = len(value.shape) - len(layout.shape)
        if more > 0 and math.prod(value.shape[:more]) == 1:
            value = xp.reshape(value, value.shape[more:])
    else:
        value = xp.asarray(value, dtype=x.dtype, device=xp.device(x))
    value = xp.broadcast_to(value, layout.shape)
    written = xp.ones(layout.shape, dtype=xp.bool, device=xp.device(x))
    written = _scatter(xp, written, layout, x.shape, add=False)
    return xp.where(written, _scatter(xp, value, layout, x.shape, add=False), x)


def _fill(xp: Any, x: Any, value: Any, indices: tuple[Any, ...], key: tuple[Any, ...]) -> Any:
    """`put` of what all places that one mask chooses have in common; None for any other call.

    Which places these are need not be known, so that nothing is computed where arrays are lazy.
    """
    if len(indices) != 1 or indices[0].dtype != xp.bool:
        return None
    (mask,), at = indices, key.index(SLOT)
    whole = (*key[:at], *(slice(None),) * len(mask.shape), *key[at + 1 :])
    part = gather(xp, x, key=whole)
    if Ellipsis in key[:at]:
        behind = sum(type(one) is not int for one in key[at + 1 :])
    else:
        before = sum(type(one) is not int for one in key[:at])
        behind = len(part.shape) - before - len(mask.shape)
    axes = part.shape[len(part.shape) - behind - len(mask.shape) :]
    given = tuple(getattr(value, "shape", ()))
    common = len(given) <= behind and (not given or int not in map(type, key))
    fits = all(n in (1, own) for n, own in zip(given[::-1], axes[::-1], strict=False))
    if not common or not fits or axes[: len(mask.shape)] != mask.shape:
        return None
    if hasattr(value, "shape"):
        value = xp.astype(value, x.dtype)
    else:
        value = xp.asarray(value, dtype=x.dtype, device=xp.device(x))
    filled = xp.where(xp.reshape(mask, (*mask.shape, *(1,) * behind)), value, part)
    untouched = all(one is Ellipsis or one == slice(None) for one in whole)
    return filled if untouched else put(xp, x, filled, key=whole)


def _scatter(xp: Any, x: Any, layout: Layout, shape: tuple[int, ...], *, add: bool) -> Any:
    lengths = layout.lengths(layout.sliced)
    if layout.rows is not None:
        order = layout.order()
        whole = (*layout.block, *lengths)
        x = xp.reshape(x, tuple([whole[i] for i in order]))
        x = xp.permute_dims(x, inverse_permutation(tuple(order)))
        indexed = layout.lengths(layout.indexed)
        x = xp.reshape(x, (math.prod(layout.block), math.prod(lengths)))
        scatter_rows = xp.add_rows if add else partial(_scatter_rows, xp, add=False)
        x = scatter_rows(x, layout.rows, n=math.prod(indexed))
        x = xp.reshape(x, (*indexed, *lengths))
        places = layout.indexed + layout.sliced
        x = xp.permute_dims(x, inverse_permutation(tuple(places)))
    x = xp.reshape(x, layout.lengths(range(len(shape))))
    for axis, (start, step, length) in enumerate(layout.cuts):
        if (step, length) != (1, shape[axis]):
            x = _uncut(xp, x, axis, start, step, length, shape[axis])
    return x


def _uncut(xp: Any, x: Any, axis: int, start: int, step: int, length: int, n: int) -> Any:
    """Spread the slices of ``x`` along an axis of length ``n``, with zeros between them."""
    device = xp.device(x)
    blank = xp.zeros(keep_axes(x.shape, (axis,)), dtype=x.dtype, device=device)
    x = xp.concat([x, blank], axis=axis)
    away = xp.arange(-start, n - start, dtype=xp.int64, device=device)
    slices = xp.floor_divide(away, step)
    inside = (slices >= 0) & (slices < length)
    there = inside & (xp.remainder(away, step) == 0)
    return xp.take(x, xp.where(there, slices, length), axis=axis)


def combine_rows(xp: Any, x: Any, rows: Any, n: int, combine: Any) -> tuple[Any, Any]:
    """For each of ``n`` rows its elements of ``x``, combined, and whether it has any.

    ``rows`` says to which row each element belongs. Without ``combine`` the last one stands.
    """
    count = rows.shape[0]
    order = xp.argsort(rows, stable=True)
    rows, x = xp.take(rows, order, axis=0), xp.take(x, order, axis=0)
    span = 1
    while combine and span < count:
        # Each element is combined of the last 2, 4, 8, ... that have the same row.
        before, behind = slice(0, count - span), slice(span, count)
        same = xp.cut(rows, key=(behind,)) == xp.cut(rows, key=(before,))
        same = xp.reshape(same, (count - span,) + (1,) * (len(x.shape) - 1))
        early, late = xp.cut(x, key=(before, ...)), xp.cut(x, key=(behind, ...))
        late = xp.where(same, combine(late, early), late)
        x = xp.concat([xp.cut(x, key=(slice(0, span), ...)), late], axis=0)
        span *= 2
    places = xp.arange(n, dtype=rows.dtype, device=xp.device(x))
    last = xp.astype(xp.searchsorted(rows, places, side="right"), rows.dtype) - 1
    last = xp.where(last < 0, xp.zeros_like(last), last)
    return xp.take(x, last, axis=0), xp.take(rows, last, axis=0) == places


def _scatter_rows(xp: Any, x: Any, rows: Any, *, n: int, add: bool) -> Any:
    """Scatter the rows of ``x`` among ``n`` rows of zeros."""
    if not x.shape[0] or not n:
        return xp.zeros((n, x.shape[1]), dtype=x.dtype, device=xp.device(x))
    found, held = combine_rows(xp, x, rows, n, operator.add if add else None)
    return xp.where(xp.expand_dims(held, axis=1), found, xp.zeros_like(found))


def _add_rows(xp: Any, x: Any, rows: Any, *, n: int) -> Any:
    """Add the rows of ``x`` up among ``n`` rows of zeros: a library may have a function for it."""
    return _scatter_rows(xp, x, rows, n=n, add=True)


add_composite("add_rows", _add_rows)
