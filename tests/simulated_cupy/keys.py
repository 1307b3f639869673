"""Indexing, and writing and scattering at keys, as CuPy does it."""

from typing import Any

import cupy
import numpy as np

from tests.simulated_cupy.arrays import ndarray, view, write
from tests.simulated_cupy.counters import launched, synchronised
from tests.simulated_cupy.devices import check_resides

VERSION = int(cupy.__version__.split(".")[0])

#: What CUDA's atomic addition takes.
ATOMIC = {"int32", "uint32", "uint64", "float16", "float32", "float64"}
ATOMIC |= {"int64"} if VERSION >= 14 else set()


def parts_of(key: Any) -> list[Any]:
    """The parts of a key; arrays and lists are on the device, where CuPy moves them."""
    parts = list(key) if isinstance(key, tuple) else [key]
    for i, part in enumerate(parts):
        if part is None or part is Ellipsis or isinstance(part, slice | ndarray):
            continue
        if np.isscalar(part) and not isinstance(part, bool | np.bool_):
            continue
        made = cupy.array(part)
        parts[i] = (
            made.astype(np.int32) if isinstance(part, list | tuple) and not made.size else made
        )
    for part in parts:
        if isinstance(part, ndarray) and part.dtype.kind not in "biu":
            raise IndexError(
                "arrays used as indices must be of integer or boolean type. "
                f"(actual: {part.dtype.type})"
            )
        if isinstance(part, float | complex):
            raise IndexError("only integers, slices, ellipsis, None and arrays are valid indices")
    return parts


def _axes(parts: list[Any]) -> int:
    """How many axes the parts of a key take."""
    return sum(
        part.ndim if isinstance(part, ndarray) and part.dtype.kind == "b" else 1
        for part in parts
        if part is not None and part is not Ellipsis
    )


def on_host(parts: list[Any], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The key for NumPy. Integers in arrays that are out of bounds wrap around."""
    taken = _axes(parts)
    if taken > len(shape):
        raise IndexError(
            f"too many indices for array: array is {len(shape)}-dimensional, but {taken} were "
            "indexed"
        )
    host: list[Any] = []
    axis = 0
    for part in parts:
        if part is None:
            host.append(None)
        elif part is Ellipsis:
            host.append(part)
            axis += len(shape) - taken
        elif isinstance(part, ndarray) and part.dtype.kind == "b":
            host.append(part._host)
            axis += part.ndim
        elif isinstance(part, ndarray):
            size = shape[axis]
            host.append(part._host.astype(np.int64) % size if size else part._host)
            axis += 1
        else:
            host.append(part)
            axis += 1
    return tuple(host)


def _count(name: str, x: ndarray, parts: list[Any]) -> bool:
    """Count what a key with arrays costs; False for a key without them."""
    arrays = [part for part in parts if isinstance(part, ndarray)]
    for array in arrays:
        check_resides(name, array.data.device_id)
    if arrays:
        check_resides(name, x.data.device_id)
    for array in arrays:
        if array.dtype.kind == "b":
            launched("scan")
            # Of a mask alone that is written to nothing has to be counted.
            if name == "getitem" or len(arrays) > 1:
                synchronised(f"{name} with a mask")
    if len(arrays) > 1:
        launched("prepare_array_indexing", len(arrays) + 1)
    if arrays:
        launched(name)
    return bool(arrays)


def getitem(x: ndarray, key: Any) -> Any:
    parts = parts_of(key)
    host = on_host(parts, x.shape)
    if not _count("getitem", x, parts):
        return view(x, x._host[(*host, ...) if Ellipsis not in host else host])
    return ndarray.of(np.array(x._host[_without_idle_ellipsis(parts, host, x.ndim)], order="C"))


def _without_idle_ellipsis(parts: list[Any], host: tuple[Any, ...], ndim: int) -> tuple[Any, ...]:
    """The key without an Ellipsis for no axes: it keeps arrays apart in NumPy, not in CuPy."""
    if _axes(parts) < ndim:
        return host
    return tuple(part for part in host if part is not Ellipsis)


def setitem(x: ndarray, key: Any, value: Any) -> None:
    if isinstance(value, ndarray):
        while value.ndim and value.shape[0] == 1:  # CuPy leaves out leading axes of one element
            value = view(value, value._host[0:1].reshape(value.shape[1:]))
    parts = parts_of(key)
    if any(isinstance(part, ndarray) for part in parts):
        _scatter(x, parts, value, "update")
        return
    if not isinstance(value, ndarray):
        getitem(x, key).fill(value)
        return
    check_resides("update", value.data.device_id)
    part = getitem(x, key)
    check_resides("update", part.data.device_id)
    np.broadcast_to(value._host, part.shape)  # raises
    if _place(part) == _place(value):  # as after `x[key] += value`
        return
    if part.size:
        launched("copy")
    with np.errstate(all="ignore"):
        np.copyto(part._host, _real_if(value._host, part.dtype), "unsafe")


def add_at(x: ndarray, key: Any, value: Any) -> None:
    """``cupy.add.at``, of keys with arrays."""
    parts = parts_of(key)
    arrays = [part for part in parts if isinstance(part, ndarray)]
    if not arrays:
        raise NotImplementedError("the simulation adds at arrays alone")
    mask_alone = len(arrays) == 1 and arrays[0].dtype.kind == "b"
    if x.dtype.name not in ATOMIC and not mask_alone:
        raise TypeError(f"cupy.add.at only supports {sorted(ATOMIC)} as data type")
    _scatter(x, parts, value, "add")


def _scatter(x: ndarray, parts: list[Any], value: Any, op: str) -> None:
    host = _without_idle_ellipsis(parts, on_host(parts, x.shape), x.ndim)
    if isinstance(value, ndarray):
        check_resides(op, value.data.device_id)
        value = value.astype(x.dtype, copy=False)
    else:
        value = cupy.array(value, dtype=x.dtype)
    _count(op, x, parts)
    with np.errstate(all="ignore"):
        if op == "update":
            x._host[host] = value._host
        else:
            np.add.at(x._host, host, value._host)


def _place(x: ndarray) -> tuple[Any, ...]:
    return x._host.__array_interface__["data"], x._host.shape, x._host.strides


def _real_if(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return value.real if value.dtype.kind == "c" and dtype.kind not in "cb" else value


def take(x: ndarray, indices: Any, axis: int | None, out: Any) -> Any:
    """``x.take``, whose indices wrap around."""
    if not isinstance(indices, ndarray):
        scalar = np.isscalar(indices)
        indices = np.asarray(indices) if scalar else cupy.array(indices)._host
    else:
        check_resides("take", indices.data.device_id)
        indices = indices._host
    check_resides("take", x.data.device_id)
    if indices.dtype.kind not in "iu":
        raise TypeError(f"Cannot cast array data from {indices.dtype} to int64 safely")
    made = np.take(x._host, indices, axis=axis, mode="wrap")
    launched("take")
    return write(np.array(made, order="C"), out)
