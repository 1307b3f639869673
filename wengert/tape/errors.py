"""Clear errors for failed kernels: the function, its operands, and the reason.

Array libraries raise different classes and texts for the same mistake. To save time nothing is
checked before a kernel runs; the reason is found after it has failed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.backends import BackendError, backend_of, dtype_of
from wengert.tape.promotion import DTYPES_FOR


def explain(row: Any, operands: Sequence[Any], error: Exception) -> None:
    """Raise a clearer error for one that a kernel has raised, or add a note to it and return.

    ``row`` is the function's primitive. Operands are raw arrays, Python numbers and None. Raises
    `BackendError` for several devices; `ValueError` for shapes that are unknown or do not
    broadcast, and for PyTorch's RuntimeErrors of bad values; `TypeError` for dtypes.
    """
    name = row.name
    arrays = [a for a in operands if hasattr(a, "dtype")]
    _compare_devices(name, arrays, error)
    for a in arrays:
        backend_of(a).adopt(getattr(a, "bottom", a))  # which refuses unknown shapes
    broadcasts, wanted = row.elementwise, row.dtypes
    if broadcasts and any(a is None for a in operands) and name != "clip":  # its bounds may be None
        raise TypeError(f"{name} takes Tensors, arrays and Python numbers, not None") from None
    shapes = [tuple(a.shape) for a in arrays]
    if broadcasts and not _broadcast(shapes):
        listed = " and ".join(map(str, shapes))
        raise ValueError(f"{name}: the shapes {listed} do not broadcast together") from None
    given = ", ".join(_describe(a) for a in operands if a is not None)
    if {*map(_kind, operands)} - {None, *DTYPES_FOR[wanted]}:
        raise TypeError(f"{name} takes {wanted} arrays, and was given {given}") from None
    if type(error) is RuntimeError and "memory" not in str(error):
        clearer = TypeError if "type" in str(error) else ValueError
        raise clearer(f"{name} of {given}: {error}") from error
    error.add_note(f"That was {name} of {given}.")


def _compare_devices(name: str, arrays: list[Any], error: Exception) -> None:
    places = [(backend, backend.beside(a)) for a in arrays for backend in [backend_of(a)]]
    devices = [backend.device_name(place) for backend, place in places if place is not None]
    for device in devices:
        if device != devices[0]:
            raise BackendError(
                f"{name} was given arrays on two devices, {devices[0]} and {device}; move one "
                f"with tensor.to_device({devices[0]!r})"
            ) from error


def _broadcast(shapes: list[tuple[int, ...]]) -> bool:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    except TypeError:  # dask's unknown lengths
        return True
    return True


def _kind(operand: Any) -> str | None:
    """The kind of an array or a Python number; None for integers, which adapt to the arrays."""
    if hasattr(operand, "dtype"):
        return dtype_of(operand.dtype).kind
    return {float: "real floating", complex: "complex floating"}.get(type(operand))


def _describe(operand: Any) -> str:
    if hasattr(operand, "dtype"):
        return f"{dtype_of(operand.dtype).name} {tuple(operand.shape)}"
    return repr(operand)
