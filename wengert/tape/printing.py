"""How Tensors print: PyTorch's format, whatever the backend."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.backends import DTYPES, BackendError, backend_of, selection
from wengert.tape.node import is_lifted

LINE_WIDTH = 80
DIGITS = 4
#: Longer arrays are shown by this many entries at either end of each axis.
EDGE = 3
THRESHOLD = 1000

#: Data types that are not printed.
_UNNAMED = {DTYPES["float32"], DTYPES["complex64"], DTYPES["int64"], DTYPES["bool"]}


def format_tensor(tensor: Any, read: Callable[[Any], np.ndarray[Any, Any]]) -> str:
    """Return ``tensor(values, what is not obvious)``, as PyTorch prints a tensor.

    The data type is named unless it is a default one, the device unless it is a CPU or, where none
    was selected, the library's own choice. What an array has inside beside its values, such as a
    tangent, comes last, in the same format.
    """
    prefix = "parameter(" if type(tensor).__name__ == "Parameter" else "tensor("
    size, dtype = f"size={tuple(tensor.shape)}", f"dtype={tensor.dtype!r}"
    try:
        array = tensor._array
        # What a transform or a trace follows says itself whether it has values.
        if not (is_lifted(array) or backend_of(array).is_ready(array)):
            raise BackendError("to print values is no reason to compute them")
        values = read(tensor)
    except (BackendError, TypeError):  # no one array has them, as of a batch, or none at all
        return f"{prefix}..., {', '.join([*_place(tensor), size, dtype, *_origin(tensor)])})"
    text = "[]"
    if values.size:
        text = _brackets(values, _element_format(_visible(values)), len(prefix), values.size)
    notes = [size] if not values.size and values.ndim != 1 else []
    notes += _place(tensor)
    if tensor.dtype not in _UNNAMED or (not values.size and not tensor.dtype.inexact):
        notes.append(dtype)
    notes += _origin(tensor)
    if is_lifted(tensor._array):
        for name, part in tensor._array.parts().items():
            notes.append(f"{name}={format_tensor(type(tensor)(part), read)}")
    lines = [prefix + text]
    column = len(lines[0]) - lines[0].rfind("\n") + 1  # two more than there are, as PyTorch counts
    for note in notes:
        column += len(note) + 2
        if column > LINE_WIDTH:
            lines.append(",\n" + " " * len(prefix) + note)
            column = len(prefix) + len(note)
        else:
            lines.append(", " + note)
    return "".join(lines) + ")"


def _origin(tensor: Any) -> list[str]:
    """How a Tensor came onto the tape, if it is there."""
    if tensor.grad_fn is not None:
        return [f"grad_fn=<{tensor.grad_fn.name()}>"]
    return ["requires_grad=True"] if tensor.requires_grad else []


def _place(tensor: Any) -> list[str]:
    """The name of a Tensor's device, if that is not obvious."""
    backend = backend_of(tensor._array)
    name = backend.device_name(tensor.device)
    if "cpu" in name.lower():
        return []
    chosen = selection()
    unset = chosen.backend is backend and chosen.device is None
    home = backend.device_name(backend.device(backend.xp.empty(0))) if unset else None
    return [] if name == home else [f"device={name!r}"]


def _visible(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The entries that will be printed, from which the number format is chosen."""
    if values.size <= THRESHOLD:
        return values
    for axis, length in enumerate(values.shape):
        if length > 2 * EDGE:
            ends = np.r_[0:EDGE, length - EDGE : length]
            values = np.take(values, ends, axis=axis)
    return values


def _element_format(values: np.ndarray[Any, Any]) -> Callable[[Any], str]:
    """Return the function that prints one entry, so that all entries have one width."""
    if values.dtype.kind == "c":
        real, imaginary = _real_format(values.real), _real_format(np.abs(values.imag))
        return lambda z: (
            f"{real(z.real)}{'-' if math.copysign(1, z.imag) < 0 else '+'}"
            f"{imaginary(abs(z.imag)).strip()}j"
        )
    if values.dtype.kind in "fV" or values.dtype.name == "bfloat16":
        return _real_format(values)
    width = max(len(str(value)) for value in values.ravel().tolist())
    return lambda value: str(value).rjust(width)


def _real_format(values: np.ndarray[Any, Any]) -> Callable[[Any], str]:
    entries = [float(value) for value in values.ravel().tolist()]
    sizes = [abs(value) for value in entries if math.isfinite(value) and value]
    largest, smallest = max(sizes, default=0.0), min(sizes, default=0.0)
    whole = all(value == math.floor(value) for value in entries if math.isfinite(value))
    if largest > 1e8 or (sizes and largest / smallest > 1000) or (not whole and smallest < 1e-4):
        style = f".{DIGITS}e"
    else:
        style = ".0f" if whole else f".{DIGITS}f"
    point = "." if style == ".0f" else ""

    def show(value: float) -> str:
        return f"{value:{style}}{point}" if math.isfinite(value) else f"{value:f}"

    width = max((len(show(value)) for value in entries if math.isfinite(value)), default=0)
    return lambda value: show(float(value)).rjust(width)


def _brackets(
    values: np.ndarray[Any, Any], show: Callable[[Any], str], indent: int, size: int
) -> str:
    """Return nested brackets, each row on its own line; ``size`` is that of the whole array."""
    if values.ndim == 0:
        return show(values[()]).strip() if values.dtype.kind != "c" else show(values[()])
    length = len(values)
    cut = size > THRESHOLD and length > 2 * EDGE
    shown = [*range(EDGE), None, *range(length - EDGE, length)] if cut else [*range(length)]
    if values.ndim == 1:
        cells = [" ..." if i is None else show(values[i]) for i in shown]
        per_line = max(1, (LINE_WIDTH - indent) // (max(map(len, cells), default=0) + 2))
        lines = [", ".join(cells[i : i + per_line]) for i in range(0, len(cells), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    rows = ["..." if i is None else _brackets(values[i], show, indent + 1, size) for i in shown]
    gap = "," + "\n" * (values.ndim - 1) + " " * (indent + 1)
    return "[" + gap.join(rows) + "]"
