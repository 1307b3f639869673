"""NumPy's functions that make, move, join and split arrays, on Tensors."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import index
from typing import Any

import numpy as np

from wengert.backends import as_dtype
from wengert.ops import manipulation as ma
from wengert.ops import methods
from wengert.ops.axes import as_axes, as_axis, at_axis, diagonal_slice
from wengert.ops.creation import full_like, zeros_like
from wengert.ops.data_type import astype, check_storable
from wengert.ops.grids import meshgrid
from wengert.ops.indexing import getitem, setitem
from wengert.ops.manipulation.arranging import IN_ROWS
from wengert.ops.operands import operands
from wengert.protocols import UnsupportedError
from wengert.protocols.fitting import values
from wengert.protocols.translation import cast, list_of, refuse
from wengert.tape.tensor import Tensor


def like(function: Callable[..., Tensor], values: int = 0) -> Callable[..., Tensor]:
    """``np.zeros_like`` and its kin, the last of which takes a value."""

    def call(a: Any, *args: Any, dtype: Any = None, shape: Any = None, **keywords: Any) -> Tensor:
        given, rest = args[:values], args[values:]
        if values and not given:
            given = (keywords.pop("fill_value"),)
        if rest:
            dtype, rest = rest[0], rest[1:]
        keywords.pop("device", None)
        refuse({**keywords, **dict(zip(("order", "subok"), rest, strict=False))})
        (x,) = operands(a)
        if shape is not None:
            x = ma.broadcast_to(getitem(ma.reshape(x.detach(), (-1,)), 0), shape) if x.size else x
        return function(x, *given, dtype=dtype)

    return call


def filled_like(x: Tensor, value: Any, *, dtype: Any = None) -> Tensor:
    """``np.full_like``, whose value may be an array that broadcasts."""
    if isinstance(value, bool | int | float | complex | np.generic):
        return full_like(x, value, dtype=dtype)
    held = x.dtype if dtype is None else as_dtype(dtype)
    if isinstance(value, list | tuple):
        value = list_of("np.full_like", value, x, held)
    (_, wanted) = operands(x, value)
    check_storable("np.full_like", wanted, held)
    wanted = astype(wanted, held, copy=False)
    return ma.broadcast_to(wanted, x.shape)


def at_least(n: int) -> Callable[..., Any]:
    """``np.atleast_1d``, ``np.atleast_2d`` and ``np.atleast_3d``."""

    def one(x: Tensor) -> Tensor:
        if x.ndim >= n:
            return ma.reshape(x, x.shape)
        if n == 3 and x.ndim:  # NumPy puts the third axis last
            return ma.expand_dims(x, axis=2) if x.ndim == 2 else ma.reshape(x, (1, x.shape[0], 1))
        return ma.reshape(x, (1,) * (n - x.ndim) + tuple(x.shape))

    def call(*arys: Any) -> Any:
        made = tuple([one(x) for x in operands(*arys)])
        return made[0] if len(made) == 1 else made

    return call


def concatenate(
    arrays: Sequence[Any], axis: int | None = 0, *, dtype: Any = None, **keywords: Any
) -> Tensor:
    """``np.concatenate``."""
    refuse(keywords)
    return ma.concat([cast(x, dtype) for x in operands(*arrays)], axis=axis)


def join(arrays: Sequence[Any], axis: int = 0, *, dtype: Any = None, **keywords: Any) -> Tensor:
    """``np.stack``."""
    refuse(keywords)
    return ma.stack([cast(x, dtype) for x in operands(*arrays)], axis=axis)


def stack_with(axis: int, make: Callable[[Tensor], Tensor], ndim: int) -> Callable[..., Tensor]:
    """``np.vstack`` and its kin: arrays get the axes that they lack and are joined along one."""

    def call(tup: Sequence[Any], *, dtype: Any = None, **keywords: Any) -> Tensor:
        refuse(keywords)
        parts = [cast(x if x.ndim >= ndim else make(x), dtype) for x in operands(*tup)]
        # np.hstack joins vectors along the only axis that they have.
        return ma.concat(parts, axis=min(axis, parts[0].ndim - 1))

    return call


def block(arrays: Any) -> Tensor:
    """``np.block``: nested lists, the innermost of which are joined along the last axis."""
    depth = _depth(arrays)
    items: list[Any] = []
    _blocks(arrays, depth, items.append)
    made = operands(*items)
    ndim = max(depth, *[x.ndim for x in made])
    parts = iter([ma.reshape(x, (1,) * (ndim - x.ndim) + tuple(x.shape)) for x in made])

    def join(nest: Any, axis: int) -> Tensor:
        if not isinstance(nest, list):
            return next(parts)
        return ma.concat([join(item, axis + 1) for item in nest], axis=axis)

    return join(arrays, -depth)


def _depth(nest: Any) -> int:
    return 1 + _depth(nest[0]) if isinstance(nest, list) and nest else 0


def _blocks(nest: Any, depth: int, add: Callable[[Any], None]) -> None:
    if isinstance(nest, list) is not (depth > 0) or isinstance(nest, tuple) or (depth and not nest):
        raise ValueError("np.block takes lists that are nested equally deep, and not empty")
    if not depth:
        add(nest)
        return
    for item in nest:
        _blocks(item, depth - 1, add)


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Tensor:
    """``np.insert``."""
    if isinstance(arr, Tensor) and isinstance(values, list | tuple):
        values = list_of("np.insert", values, arr, arr.dtype)
    x, new = operands(arr, values)
    check_storable("np.insert", new if isinstance(values, list | tuple) else values, x.dtype)
    if axis is None:
        x, axis = ma.reshape(x, (-1,)), 0
    along = as_axis(axis, x.ndim)
    new = astype(ma.reshape(new, (1,) * (x.ndim - new.ndim) + tuple(new.shape)), x.dtype)
    n, at = x.shape[along], _places(obj)
    if not isinstance(at, slice) and not at.ndim:  # NumPy takes the first axis for the place
        new = ma.moveaxis(new, 0, along)
        count = new.shape[along]
    else:
        count = len(range(n)[at]) if isinstance(at, slice) else at.size
    rest = list(x.shape)
    rest[along] = count
    order = np.insert(np.arange(n), at, n + np.arange(count))
    both = ma.concat([x, ma.broadcast_to(new, tuple(rest))], axis=along)
    return getitem(both, at_axis(along, order))


def delete(arr: Any, obj: Any, axis: int | None = None) -> Tensor:
    """``np.delete``."""
    (x,) = operands(arr)
    if axis is None:
        x, axis = ma.reshape(x, (-1,)), 0
    along = as_axis(axis, x.ndim)
    kept = np.delete(np.arange(x.shape[along]), _places(obj))
    return getitem(x, at_axis(along, kept))


def _places(obj: Any) -> Any:
    """Places to insert or delete, as NumPy takes them."""
    if isinstance(obj, slice):
        return obj
    (places,) = operands(obj)
    host = places.numpy()
    return host if host.size else host.astype(np.int64)


def split(*, exact: bool) -> Callable[..., list[Tensor]]:
    """``np.split``, and ``np.array_split``, whose parts may differ in length by one."""

    def call(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
        (x,) = operands(ary)
        along = as_axis(axis, x.ndim)
        n = x.shape[along]
        if isinstance(indices_or_sections, int | np.integer):
            parts = int(indices_or_sections)
            if parts < 1 or (exact and n % parts):
                raise ValueError(f"an axis of length {n} can't be split into {parts} equal parts")
            size, more = divmod(n, parts)  # the first parts are longer by one
            cuts = [i * size + min(i, more) for i in range(1, parts)]
        else:
            cuts = [index(cut) for cut in indices_or_sections]
        edges = [None, *cuts, None]
        return [getitem(x, at_axis(along, slice(start, stop))) for start, stop in pairwise(edges)]

    return call


def split_along(axis: int) -> Callable[..., list[Tensor]]:
    """``np.vsplit`` and its kin."""

    def call(ary: Any, indices_or_sections: Any) -> list[Tensor]:
        # np.vsplit takes no vector, and np.hsplit splits one along its only axis.
        least = (2, 1, 3)[axis]
        if ary.ndim < least:
            raise ValueError(f"arrays of {least} axes at least are taken, not of {ary.ndim}")
        along = min(axis, ary.ndim - 1)
        return split(exact=True)(ary, indices_or_sections, along)

    return call


def transpose(a: Any, axes: Any = None) -> Tensor:
    """``np.transpose``: all axes in reverse, unless told otherwise."""
    (x,) = operands(a)
    return ma.permute_dims(x, tuple(range(x.ndim))[::-1] if axes is None else tuple(axes))


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """``np.rot90``."""
    first, second = (as_axis(axis, m.ndim) for axis in axes)
    if first == second:
        raise ValueError(f"axes={tuple(axes)} are one axis; a plane has two")
    turns = index(k) % 4
    if turns == 2:
        return ma.flip(m, axis=(first, second))
    if turns == 1:
        return methods.swapaxes(ma.flip(m, axis=second), first, second)
    return ma.flip(methods.swapaxes(m, first, second), axis=second) if turns == 3 else m[...]


def rollaxis(a: Any, axis: int, start: int = 0) -> Tensor:
    """``np.rollaxis``."""
    n = a.ndim
    axis, start = as_axis(axis, n), start % n if start != n else n
    return ma.moveaxis(a, axis, start - (axis < start))


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """``np.trim_zeros``."""
    (x,) = operands(filt)
    key, places = [slice(None)] * x.ndim, np.argwhere(values(x))
    for i in range(x.ndim) if axis is None else as_axes(axis, x.ndim):
        first, last = (places[:, i].min(), places[:, i].max() + 1) if len(places) else (0, 0)
        start = first if "f" in trim.lower() or not len(places) else 0
        key[i] = slice(int(start), int(last) if "b" in trim.lower() or not len(places) else None)
    return filt[key[0]] if isinstance(filt, list | tuple) else getitem(x, tuple(key))


def ravel(a: Any, order: str = "C") -> Tensor:
    """``np.ravel``."""
    return reshape(a, -1, order)


def reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None) -> Tensor:
    """``np.reshape``."""
    if order not in (None, "C"):
        raise UnsupportedError(IN_ROWS.format(order))
    return ma.reshape(a, tuple(shape) if isinstance(shape, tuple | list) else (shape,), copy=copy)


def tile(A: Any, reps: Any) -> Tensor:
    """``np.tile``."""
    return ma.tile(A, tuple(reps) if isinstance(reps, tuple | list) else (reps,))


# -- diagonals -------------------------------------------------------------------------------------


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """``np.diagonal``."""
    (x,) = operands(a)
    return methods.diagonal(x, offset, axis1, axis2)


def of_diagonal(v: Any, k: int = 0) -> Tensor:
    """``np.diag``: the diagonal of a matrix, or the matrix of a diagonal."""
    (x,) = operands(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError(f"np.diag takes a vector or a matrix, and was given {x.ndim} axes")
    n = x.shape[0] + abs(k)
    flat = zeros_like(ma.broadcast_to(ma.reshape(x.detach(), (-1,))[:1], (n * n,))) if n else x
    if x.shape[0]:
        setitem(flat, diagonal_slice(n, n, k), x)
    return ma.reshape(flat, (n, n))


def coordinates(*xi: Any, copy: bool = True, sparse: bool = False, indexing: Any = "xy") -> Any:
    """``np.meshgrid``."""
    if sparse:
        raise UnsupportedError("sparse=True is not supported for Tensors")
    given, n = operands(*xi), len(xi)
    if copy or indexing not in ("xy", "ij") or any(x.ndim > 1 for x in given):
        return meshgrid(*given, indexing=indexing)
    axes = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else range(n)
    shapes = [tuple(-1 if i == axis else 1 for i in range(n)) for axis in axes]
    return ma.broadcast_arrays(*map(ma.reshape, given, shapes))
