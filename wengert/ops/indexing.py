"""Indexing: the standard's chapter of that name, and the keys of ``x[key]``."""

import math
from collections.abc import Sequence
from operator import index as as_index
from types import EllipsisType, NoneType
from typing import Any

import numpy as np

from wengert.backends import dtype_of
from wengert.backends.keys import SLOT, as_view
from wengert.interpreters.batching import shift_axes
from wengert.ops.axes import as_axis, at_axis, drop_axes, raw_array, shape_of
from wengert.ops.conversion import as_storable, asarray, beside, holds_tensors
from wengert.ops.data_type import check_storable
from wengert.ops.define import operation
from wengert.ops.index_composites import gather, put, scatter
from wengert.tape.calling import single
from wengert.tape.node import Indexed
from wengert.tape.primitive import PRIMITIVES, Primitive
from wengert.tape.tensor import Tensor, assign, untracked

__all__ = ["take", "take_along_axis"]

Key = tuple[Any, ...]

# -- the primitives ------------------------------------------------------------------------------


def _block(indices: Sequence[Any]) -> int:
    """The number of axes of the result that stand for the index arrays."""
    return max([1 if dtype_of(i.dtype).kind == "bool" else len(i.shape) for i in indices])


def _first(key: tuple[Any, ...]) -> bool:
    """Whether the index arrays' axes come first in the result, since they stand apart."""
    places = [i for i, part in enumerate(key) if part == SLOT or type(part) is int]
    apart = bool(places) and places[-1] - places[0] != len(places) - 1
    return apart and any(type(part) is str for part in key)


def _at(key: tuple[Any, ...], rank: int) -> int:
    """The place in the result of the index arrays' axes."""
    if _first(key):
        return 0
    before = key[: next(i for i, part in enumerate(key) if part == SLOT or type(part) is int)]
    wide = rank - sum(part is not None and part is not Ellipsis for part in key)
    return len(before) + (wide - 1 if Ellipsis in before else 0)


def _by_members(call: Any, indices: Sequence[Any]) -> list[Any] | None:
    """Index arrays with the members' axis in front, and one that counts members; None for masks."""
    if any(dtype_of(i.dtype).kind == "bool" for i in indices):
        return None
    block = max(call.rank(i) for i in range(1, len(call.own)))
    shape = (call.size, *(1,) * block)
    places = call.xp.reshape(call.xp.arange(call.size, device=call.xp.device(indices[0])), shape)
    return [places, *[call.with_rank(i, block) for i in range(1, len(call.own))]]


def _getitem_batch(call: Any, x: Any, *indices: Any, key: tuple[Any, ...]) -> Any:
    if not any(call.own[1:]):
        out = call.run(x, *indices, key=(slice(None), *key))
        return call.move_axis(out, _block(indices), 0) if _first(key) else out
    arrays = _by_members(call, indices)
    if arrays is None:
        return call.each(x, *indices, key=key)
    at = _at(key, call.rank(0))
    if not call.own[0]:
        return call.move_axis(call.run(x, *arrays[1:], key=key), at, 0)
    out = call.run(x, *arrays, key=(SLOT, *key))
    for _ in range(len(arrays[0].shape) - 1 if at else 0):
        out = call.move_axis(out, 1, at + len(arrays[0].shape) - 1)
    return out


def _scatter_add_batch(
    call: Any, x: Any, *indices: Any, key: tuple[Any, ...], shape: tuple[int, ...]
) -> Any:
    if any(call.own[1:]):
        arrays = _by_members(call, indices)
        if arrays is None:
            return call.each(x, *indices, key=key, shape=shape)
        x, at = call.broadcast(0), _at(key, len(shape))
        for _ in range(len(arrays[0].shape) - 1 if at else 0):
            x = call.move_axis(x, at + len(arrays[0].shape) - 1, 1)
        return call.run(x, *arrays, key=(SLOT, *key), shape=(call.size, *shape))
    count = x.shape[0]
    if _first(key):
        x = call.move_axis(x, 0, _block(indices))
    return call.run(x, *indices, key=(slice(None), *key), shape=(count, *shape))


# The derivatives of each are made of the others, so that any order needs no others.
Primitive(
    "scatter_add",
    ["x", "*indices"],
    {"x": lambda xp, g, indices, key: xp.getitem(g, *indices, key=key)},
    linear="together",
    composite=scatter,
    batch=_scatter_add_batch,
)


def _value_rule(
    xp: Any, g: Any, indices: tuple[Any, ...], value_shape: tuple[int, ...], key: Key
) -> Any:
    masks = all(dtype_of(i.dtype).kind == "bool" for i in indices)
    if masks and indices and not value_shape:  # a sum, for which no places need be known
        nowhere = xp.zeros(g.shape, dtype=xp.bool, device=xp.device(g))
        return xp.where(xp.setitem(nowhere, True, *indices, key=key), g, 0)
    chosen = xp.getitem(g, *indices, key=key)
    if masks:
        return chosen
    # Of the values for one place only one was stored, and only that one has a derivative. Which
    # one it was is found by storing their numbers in the same way.
    device = xp.device(g)
    number = math.prod(chosen.shape)
    order = xp.reshape(xp.arange(1, number + 1, dtype=xp.int64, device=device), chosen.shape)
    stored = xp.setitem(xp.zeros(g.shape, dtype=xp.int64, device=device), order, *indices, key=key)
    return xp.where(xp.getitem(stored, *indices, key=key) == order, chosen, 0)


def _setitem_batch(call: Any, x: Any, value: Any, *indices: Any, key: tuple[Any, ...]) -> Any:
    if any(call.own[2:]):
        return call.each(x, value, *indices, key=key)
    if hasattr(value, "shape"):
        rank = call.rank(0) + sum([part is None for part in key])
        arrays = iter(indices)
        for part in key:
            if type(part) is int:
                rank -= 1
            elif part == SLOT:
                index = next(arrays)
                rank -= len(index.shape) if dtype_of(index.dtype).kind == "bool" else 1
        rank += _block(indices) if indices else 0
        value = call.with_batch_axis(1)
        shape = tuple(value.shape)
        value = call.xp.reshape(value, (shape[0], *(1,) * (rank + 1 - len(shape)), *shape[1:]))
        if _first(key):
            value = call.move_axis(value, 0, _block(indices))
    return call.run(call.broadcast(0), value, *indices, key=(slice(None), *key))


# -- keys ----------------------------------------------------------------------------------------

_STATIC = frozenset({int, NoneType, EllipsisType})
_BOUND = frozenset({int, NoneType})
_INTEGER_KINDS = frozenset({"signed integer", "unsigned integer"})
_INDEX_KINDS = _INTEGER_KINDS | {"bool"}


def _is_static(part: Any) -> bool:
    kind = type(part)
    if kind is slice:
        return (
            type(part.start) in _BOUND and type(part.stop) in _BOUND and type(part.step) in _BOUND
        )
    return kind in _STATIC


def parse_key(x: Tensor, key: Any) -> tuple[Key, list[Any]]:
    """Split a key into its static part and the index arrays, as the primitives take it."""
    indices: list[Any] = []
    parts: list[Any] = []
    for part in key if type(key) is tuple else (key,):
        if not _is_static(part):
            if isinstance(part, slice):
                # The key is kept for the derivative, and so holds no Tensor.
                bounds = part.start, part.stop, part.step
                part = slice(*[n if n is None else as_index(n) for n in bounds])
            elif isinstance(part, np.integer) or (
                isinstance(part, int) and not isinstance(part, bool)
            ):
                part = int(part)
            else:
                indices.append(_index_array(x, part))
                part = SLOT
        parts.append(part)
    return tuple(parts), indices


def _index_array(x: Tensor, part: Any) -> Tensor:
    """An index array, mask or list as a Tensor of the backend of ``x``."""
    if isinstance(part, Tensor):
        if dtype_of(part._array.dtype).kind in _INDEX_KINDS:
            return part
        array = part._array
    elif isinstance(part, list | tuple) and holds_tensors(part):
        array = asarray(part)._array
    elif isinstance(part, list | tuple | range | bool | np.bool_):
        host = np.asarray(part)
        array = host.astype(np.int64) if not host.size else host
    else:
        array = part
    if isinstance(array, np.ndarray) and not isinstance(part, Tensor):
        array = beside(x, array)._array
    kind = dtype_of(array.dtype).kind if hasattr(array, "dtype") else None
    if kind is None and hasattr(part, "__index__"):
        array = beside(x, as_index(part))._array
    elif kind not in _INDEX_KINDS:
        what = f"an array of {dtype_of(array.dtype).name}" if kind else type(part).__name__
        raise IndexError(
            "only integers, slices (:), ellipsis (...), None and integer or boolean arrays are "
            f"valid indices, not {what}"
        )
    return untracked(array)


@operation(
    inputs=["x", "*indices"],
    x=lambda xp, g, indices, key, x_shape: xp.scatter_add(g, *indices, key=key, shape=x_shape),
    linear="together",
    composite=gather,
    view=as_view,
    batch=_getitem_batch,
)
def getitem(x: Tensor, key: Any) -> Tensor:
    """Return the part of a Tensor that ``x[key]`` names, as NumPy's indexing does.

    A key has integers, slices, Ellipsis, None, boolean masks and integer arrays, mixed at will.
    Arrays are Tensors, arrays, or lists or tuples inside the key. Where a slice, None or an
    Ellipsis separates arrays, their axes come first in the result, as in NumPy and unlike PyTorch.
    The cotangent goes back to the places of the elements, and is added up where an element was
    taken several times. Raises `IndexError` for an index that is out of bounds or of a wrong kind;
    JAX and CuPy do not report arrays of indices that are out of bounds. Array API standard.
    """
    if _is_static(key):
        return _getitem_static(x, key=(key,))  # type: ignore[no-any-return]
    if type(key) is tuple and all(map(_is_static, key)):
        return _getitem_static(x, key=key)  # type: ignore[no-any-return]
    parts, indices = parse_key(x, key)
    if not indices:
        return _getitem_static(x, key=parts)  # type: ignore[no-any-return]
    return getitem.run(x, *indices, key=parts)


_getitem_static = single(PRIMITIVES["getitem"], Indexed)


def setitem(x: Tensor, key: Any, value: Any) -> None:
    """Replace the part of a Tensor that ``x[key] = value`` names.

    The Tensor gets a new array; others that hold the old one do not see the change. The operation
    is recorded and has a derivative in both ``x`` and ``value``, which is broadcast and cast. Of
    several values for one place one is kept, on most libraries the last. Raises `IndexError` as
    `getitem` does; `TypeError` if the value is of a higher kind than ``x`` (:doc:`/conventions`);
    `ValueError` if it does not broadcast; `RuntimeError` if ``x`` is a leaf that requires grad,
    outside `no_grad`.
    """
    assign(x, replace(x, key, value), value, key)


@operation(
    "setitem",
    inputs=["x", "value", "*indices"],
    x=lambda xp, g, indices, key: xp.setitem(g, 0, *indices, key=key),
    value=_value_rule,
    linear="together",
    # No rule by kind: the kernel takes arrays alone as x, and not the number 0.
    jvps={
        "x": lambda xp, t, indices, key: xp.setitem(t, 0, *indices, key=key),
        "value": lambda xp, t, indices, key, x: xp.setitem(xp.zeros_like(x), t, *indices, key=key),
    },
    composite=put,
    weak=True,
    batch=_setitem_batch,
)
def replace(x: Tensor, key: Any, value: Any, call: str = "x[key] = value") -> Tensor:
    """A copy of ``x`` after ``x[key] = value``, as in `setitem`; errors name the ``call``."""
    parts, indices = parse_key(x, key)
    if isinstance(value, list | tuple):
        value = as_storable(call, value, x.dtype)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = beside(x, value)
    check_storable(call, value, x.dtype)
    if hasattr(value, "shape") and value.shape[:1] == (1,):
        # Only some libraries let a value have more axes than its place, if they are of length 1.
        first = next((i for i, n in enumerate(value.shape) if n != 1), len(value.shape))
        value = getitem.run(value, key=(0,) * first)
    return replace.run(x, value, *indices, key=parts)


# -- take ----------------------------------------------------------------------------------------


def _take_batch(call: Any, x: Any, indices: Any, *, axis: int | None = None) -> Any:
    at = shift_axes(axis or 0, call.rank(0))
    if call.own == (True, False):
        return call.run(x, indices, axis=at)
    getitem = call._replace(primitive=PRIMITIVES["getitem"])
    return _getitem_batch(getitem, x, indices, key=at_axis(at - 1, SLOT))


@operation(
    x=lambda xp, g, indices, x_shape, axis: xp.scatter_add(
        g, indices, key=at_axis(axis, SLOT), shape=x_shape
    ),
    linear="together",
    batch=_take_batch,
)
def take(x: Any, indices: Any, /, axis: int | None = None) -> Tensor:
    """Choose slices along an axis by their indices.

    Cotangents are added up where a slice was taken several times. Raises `IndexError` if an index
    is out of bounds, where the library reports it; `TypeError` if the indices are not integers;
    `ValueError` if the axis is out of bounds, or left out where there are several. Negative indices
    count from the end; several axes of indices come in place of ``axis``. Array API standard.

    Examples
    --------
    >>> x = wg.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> wg.take(x, wg.asarray([1, 1]), axis=0)
    tensor([[3., 4.],
            [3., 4.]])
    >>> wg.grad(lambda x: wg.take(x, wg.asarray([1, 1]), axis=0).sum())(x)  # taken twice
    tensor([[0., 0.],
            [2., 2.]])
    """
    ndim = len(shape_of(x))
    if axis is None and ndim != 1:
        raise ValueError(f"take from an array of {ndim} axes needs axis=")
    at = as_axis(0 if axis is None else axis, ndim, "take")
    _check_indices(indices, "take")
    if len(indices.shape) != 1:
        return getitem.run(x, indices, key=at_axis(at, SLOT))
    return take.run(x, indices, axis=at)


def _check_indices(indices: Any, function: str) -> None:
    shape_of(indices)
    if dtype_of(raw_array(indices).dtype).kind not in _INTEGER_KINDS:
        raise TypeError(
            f"{function} needs indices of an integer dtype, not {dtype_of(indices.dtype).name}"
        )


def _everywhere_else(xp: Any, indices: Any, shape: tuple[int, ...], axis: int) -> list[Any]:
    """An index array for each axis: ``indices`` along one, and all positions along the others."""
    ndim = len(shape)
    device = xp.device(indices)
    return [
        indices
        if i == axis
        else xp.reshape(
            xp.arange(n, dtype=indices.dtype, device=device),
            (1,) * i + (n,) + (1,) * (ndim - i - 1),
        )
        for i, n in enumerate(shape)
    ]


def _take_along_axis_rule(
    xp: Any, g: Any, indices: Any, x_shape: tuple[int, ...], axis: int
) -> Any:
    arrays = _everywhere_else(xp, indices, x_shape, axis)
    return xp.scatter_add(g, *arrays, key=(SLOT,) * len(x_shape), shape=x_shape)


def _take_along_axis_batch(call: Any, x: Any, indices: Any, *, axis: int = -1) -> Any:
    at = shift_axes(axis, call.rank(0))
    return call.run(call.with_batch_axis(0), call.with_batch_axis(1), axis=at)


@operation(x=_take_along_axis_rule, linear="together", batch=_take_along_axis_batch)
def take_along_axis(x: Any, indices: Any, /, axis: int = -1) -> Tensor:
    """Choose elements along an axis, at indices of their own for each place along the others.

    Cotangents are added up where an element was taken several times. The result is of the dtype of
    ``x`` and the length of ``indices`` along ``axis``. Raises `IndexError` if an index is out of
    bounds, where the library reports it; `TypeError` if the indices are not integers; `ValueError`
    if the axis is out of bounds, or the numbers of axes differ. All axes of ``indices`` but
    ``axis`` broadcast against those of ``x``; negative indices count from the end.
    Array API standard.

    Examples
    --------
    >>> x = wg.asarray([[3.0, 1.0, 2.0], [1.0, 5.0, 4.0]])
    >>> wg.take_along_axis(x, wg.argsort(x, axis=1), axis=1)
    tensor([[1., 2., 3.], [1., 4., 5.]])
    """
    shape = shape_of(x)
    at = as_axis(axis, len(shape), "take_along_axis")
    _check_indices(indices, "take_along_axis")
    if len(indices.shape) != len(shape):
        raise ValueError(
            f"take_along_axis needs indices of {len(shape)} axes, like the array, and their shape "
            f"is {tuple(indices.shape)}"
        )
    try:
        return take_along_axis.run(x, indices, axis=at)
    except (IndexError, TypeError, ValueError):
        others = zip(drop_axes(shape, (at,)), drop_axes(indices.shape, (at,)), strict=True)
        if any(n != m and 1 not in (n, m) for n, m in others):
            raise ValueError(
                f"take_along_axis: indices of shape {tuple(indices.shape)} do not broadcast "
                f"against an array of shape {tuple(shape)} along the axes other than {at}"
            ) from None
        raise
