"""Moves of arrays between backends, devices and dtypes; the Tensors stay the same objects."""

from collections import Counter
from typing import Any

import numpy as np

from wengert.backends import (
    Backend,
    DType,
    Selection,
    as_dtype,
    backend_of,
    dtype_of,
    selection,
    target_device,
    use_backend,
)
from wengert.backends.registry import is_backend
from wengert.interpreters.namespaces import differentiable
from wengert.tape.tensor import Tensor, differentiates, wrap


def convert(array: Any, backend: Backend, dtype: DType, device: Any = None) -> Any:
    """Copy a raw array to another backend, dtype or device."""
    source = backend_of(array)
    if source is not backend:
        named = device.device if isinstance(device, Selection) else device
        array = backend.from_numpy(
            source.to_numpy(source.adopt(source.array(array))),
            None if named is None else backend.parse_device(named),
        )
    elif device is not None:
        array = backend.to_device(array, target_device(array, device))
    array = backend.adopt(backend.array(array))
    with backend.on(backend.device(array)):
        return backend.xp.astype(array, backend.raw_dtype(dtype), copy=True)


def replace(tensor: Tensor, array: Any) -> None:
    """Give a leaf another array, of any backend, device and dtype, and a new node."""
    tracked = tensor.requires_grad
    tensor._node = None
    tensor._array = array
    tensor.requires_grad = tracked


def destination(what: Any) -> dict[str, Any]:
    """Tell what a positional argument of `Module.to` names: a backend, a dtype or a device."""
    if isinstance(what, Tensor):
        return {"backend": what.backend, "dtype": what.dtype, "device": differentiable.device(what)}
    if isinstance(what, str):
        name = what.partition(":")[0]
        if is_backend(name):
            return place(what)
    try:
        return {"dtype": as_dtype(what)}
    except TypeError:
        return {"device": what}


def place(spec: str) -> dict[str, Any]:
    """The backend and device that a string such as ``"torch:cuda:0"`` names."""
    with use_backend(spec):
        chosen = selection()
    return {"backend": chosen.backend, "device": chosen.device}


def castable(tensor: Tensor, dtype: DType | None) -> DType:
    """The dtype that a parameter or buffer takes on a move: only inexact ones are cast."""
    held = dtype_of(tensor._array.dtype)
    return held if dtype is None or not held.inexact else dtype


def check_constant(value: Any, name: str) -> None:
    """Raise `TypeError` if a derivative flows through a hyper-parameter, or an item of it."""
    for item in value if isinstance(value, list | tuple | Counter) else (value,):
        if differentiates(item):
            raise TypeError(
                f"{name} should be a number without a derivative, because steps are not recorded; "
                "pass tensor.detach().item()"
            )


def as_number(value: Any, name: str) -> Any:
    """Return a hyper-parameter with NumPy scalars and 0-d arrays as Python's numbers.

    A NumPy scalar would promote parameters, and an array belongs to one library alone.
    """
    if isinstance(value, list | tuple):
        items = [as_number(item, name) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, np.generic):
        return value.item()
    if not hasattr(value, "dtype"):
        return value
    tensor = wrap(value)
    check_constant(tensor, name)
    if tensor.shape:
        raise TypeError(
            f"{name} should be a number (or a tuple of numbers), and is an array of shape "
            f"{tuple(tensor.shape)}; parameters that need different ones make groups of their own"
        )
    return tensor.item()
