"""Weights in files of the safetensors format.

A file is the length of its header in eight bytes, the header, which is JSON and tells of each
tensor the name, dtype, shape and place, and the tensors' bytes, one after the other.
"""

import json
import math
import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from wengert import ops
from wengert.backends import DTYPES, DType, as_dtype, selection
from wengert.nn.module import Module
from wengert.tape.tensor import Tensor, wrapped

__all__ = ["load", "save"]

#: The format's names of data types.
_CODES = {
    "bool": "BOOL",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "bfloat16": "BF16",
    **{f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"F{bits}" for bits in (16, 32, 64)},
}
_DTYPES = {code: DTYPES[name] for name, code in _CODES.items()}

#: The longest header that the format allows.
_LONGEST = 100_000_000


def save(state_dict: Mapping[str, Any] | Module, path: str | os.PathLike[str]) -> None:
    """Write Tensors to a file in the safetensors format, which many libraries read.

    The file is written beside its place and moved there when it is complete: a program that is
    stopped leaves the old file as it was. A new file has the permissions that the process gives new
    files, and one that exists keeps its own.

    Parameters
    ----------
    state_dict : mapping of str to Tensor, or Module
        As `Module.state_dict` gives it; of a module, its own. Tensors of any backend are stored by
        their values.
    path : path-like
        The file, usually named ``*.safetensors``; one that exists is replaced.

    Raises
    ------
    TypeError
        If a key is no string, a value no Tensor or array, or of a dtype that the format has not.
        Nothing has been written then.

    Examples
    --------
    >>> import wengert as wg
    >>> wg.nn.save(wg.nn.Linear(2, 3), "layer.safetensors")  # doctest: +SKIP
    """
    if isinstance(state_dict, Module):
        state_dict = state_dict.state_dict()
    if not isinstance(state_dict, Mapping):
        raise TypeError(
            "save takes a mapping of names to Tensors, such as module.state_dict(), and was given "
            f"{type(state_dict).__name__}; to store one Tensor, name it: save({{'x': x}}, path)"
        )
    header: dict[str, Any] = {}
    parts: list[bytes] = []
    end = 0
    # In the order of the format's own library: wide elements first, so that all are aligned.
    stored = [(name, *_stored(name, value)) for name, value in state_dict.items()]
    for name, dtype, shape, data in sorted(stored, key=lambda s: (-s[1].itemsize, s[0])):
        header[name] = {
            "dtype": _CODES[dtype.name],
            "shape": shape,
            "data_offsets": [end, end := end + len(data)],
        }
        parts.append(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    _replace_file(os.fspath(path), [len(text).to_bytes(8, "little"), text, *parts])


def _stored(name: Any, value: Any) -> tuple[DType, list[int], bytes]:
    """The dtype, shape and bytes of what is to be stored under a name."""
    if not isinstance(name, str):
        raise TypeError(f"names of stored Tensors should be strings, not {name!r}")
    if name == "__metadata__":
        raise TypeError("the format keeps the name '__metadata__' for itself; choose another")
    try:
        tensor = wrapped(value).detach()
    except TypeError:
        raise TypeError(
            f"the value of {name!r} should be a Tensor or an array, not {type(value).__name__}; "
            "convert a number with wg.asarray, and save each of several dicts in its own file"
        ) from None
    dtype = tensor.dtype
    if dtype.name not in _CODES:
        raise TypeError(
            f"the safetensors format has no {dtype.name}, which {name!r} holds; save its real and "
            "its imaginary part, or convert it with wg.astype"
        )
    values = tensor.numpy()
    if dtype.name == "bfloat16":
        # The upper half of a float32, whatever the library gives for what NumPy has not.
        bits = np.ascontiguousarray(values.astype(np.float32)).view(np.uint32) >> 16
        values = bits.astype("<u2")
    elif dtype.name in _SMALL:
        values = _encoded(values.astype(np.float32), dtype.name)
    else:
        values = values.astype(values.dtype.newbyteorder("<"), copy=False)
    return dtype, list(tensor.shape), values.tobytes()


def load(
    path: str | os.PathLike[str], device: Any = None, *, dtype: Any = None
) -> dict[str, Tensor]:
    """Read Tensors from a file in the safetensors format.

    Parameters
    ----------
    path : path-like
        The file.
    device : optional
        Where the Tensors are made, on the selected backend.
    dtype : dtype, optional
        What floating Tensors are converted to; their own dtype by default. float32 holds each
        bfloat16 and float8 exactly.

    Returns
    -------
    dict of str to Tensor
        For `Module.load_state_dict`.

    Raises
    ------
    TypeError
        If the file holds a dtype that the backend has not, such as bfloat16 on NumPy, and no
        other was asked for.
    ValueError
        If it is no file of the format, or is not complete.
    """
    name = os.fspath(path)
    asked = None if dtype is None else as_dtype(dtype)
    if asked is not None and not asked.inexact:
        raise TypeError(f"load: dtype is a floating one, and not {asked.name}")
    with Path(name).open("rb") as file:
        found = _header(file, name)
        start = file.tell()
        arrays = {}
        for key, (held, shape, first, length) in found.items():
            wanted = held if asked is None or held.kind != "real floating" else asked
            _check_there(wanted, key, name)
            file.seek(start + first)
            arrays[key] = (_decoded(file.read(length), held).reshape(shape), wanted)
    return {
        key: ops.asarray(array, dtype=wanted, device=device)
        for key, (array, wanted) in arrays.items()
    }


def _header(file: BinaryIO, name: str) -> dict[str, tuple[DType, list[int], int, int]]:
    """Of each tensor the dtype, shape, first byte and length."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, _LONGEST):
        raise ValueError(f"{name} is no safetensors file, or is not complete")
    try:
        header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        found = {
            key: (
                item["dtype"],
                [int(n) for n in item["shape"]],
                *[int(n) for n in item["data_offsets"]],
            )
            for key, item in header.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{name} is no safetensors file: its header can't be read") from error
    answer = {}
    for key, (code, shape, first, last) in found.items():
        if code not in _DTYPES:
            raise TypeError(f"{name} holds {key!r} in the dtype {code}, which Wengert has not")
        dtype = _DTYPES[code]
        if last - first != math.prod(shape) * dtype.itemsize or min([first, *shape]) < 0:
            raise ValueError(f"{name}: the length of {key!r} is not that of its shape {shape}")
        if 8 + length + last > size:
            raise ValueError(f"{name} is not complete: it ends before {key!r} does")
        answer[key] = (dtype, shape, first, last - first)
    return answer


def _check_there(dtype: DType, key: str, name: str) -> None:
    backend = selection().backend
    try:
        backend.raw_dtype(dtype)
    except TypeError:
        exact = ", which is exact" if dtype.itemsize < 4 else ""
        raise TypeError(
            f"{name} holds {key!r} in {dtype.name}, which {backend.name} has not; pass "
            f"dtype=wg.float32 to convert it{exact}, or select a backend that has it"
        ) from None


def _decoded(data: bytes, dtype: DType) -> np.ndarray[Any, Any]:
    """The numbers in some bytes; in float32 those that NumPy has no dtype for."""
    if dtype.name == "bfloat16":
        return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
    if dtype.name in _SMALL:
        return _table(dtype.name)[np.frombuffer(data, np.uint8)]
    held = np.dtype(dtype.name).newbyteorder("<")
    return np.frombuffer(data, held).astype(held.newbyteorder("="))


# -- numbers of eight bits -----------------------------------------------------------------------

#: Bits of the exponent and of the fraction, and the largest finite code.
_SMALL = {"float8_e4m3fn": (4, 3, 0x7E), "float8_e5m2": (5, 2, 0x7B)}


def _table(name: str) -> np.ndarray[Any, Any]:
    """The number of each code of a float8."""
    exponent_bits, fraction_bits, largest = _SMALL[name]
    code = np.arange(128)
    exponent, fraction = code >> fraction_bits, code & ((1 << fraction_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    whole = np.where(exponent > 0, 1 << fraction_bits, 0) + fraction
    values = np.ldexp(whole.astype(np.float32), np.maximum(exponent, 1) - bias - fraction_bits)
    values[largest + 1 :] = np.nan
    if name == "float8_e5m2":
        values[largest + 1] = np.inf
    return np.concatenate([values, -values]).astype(np.float32)


def _encoded(values: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    """The codes of numbers that a float8 holds exactly."""
    largest = _SMALL[name][2]
    table = _table(name)[:128]
    finite = np.searchsorted(table[: largest + 1], np.abs(values))
    codes = np.where(np.isnan(values), 0x7F, np.minimum(finite, largest + 1))
    signed: np.ndarray[Any, Any] = codes | (np.signbit(values) << 7)
    return signed.astype(np.uint8)


# -- files ---------------------------------------------------------------------------------------


def _replace_file(path: str, parts: list[bytes]) -> None:
    """Write a file as a whole or not at all."""
    target = Path(path).resolve()  # of a link, what it leads to is replaced
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):  # a pipe or a device has no other beside it
        with target.open("wb") as file:
            file.writelines(parts)
        return
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(f"{path} may not be written; its permissions say so")
    beside = target.with_name(f"{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        # Not by `tempfile`, whose files are for their owner alone: here the umask decides.
        with beside.open("xb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            beside.chmod(stat.S_IMODE(mode))
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # the name is on the disk too; not all systems open a directory
        directory = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
