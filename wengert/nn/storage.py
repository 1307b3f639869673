"""Weights in files of the safetensors format."""

import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from wengert import ops
from wengert.backends import DTYPES, DType, as_dtype, selection
from wengert.nn.module import Module
from wengert.tape.tensor import Tensor, wrapped

#: Data types by the names that the format's header has for them.
_DTYPES = {
    "BOOL": DTYPES["bool"],
    "C64": DTYPES["complex64"],
    "F8_E4M3": DTYPES["float8_e4m3fn"],
    "F8_E5M2": DTYPES["float8_e5m2"],
    "BF16": DTYPES["bfloat16"],
    **{f"I{bits}": DTYPES[f"int{bits}"] for bits in (8, 16, 32, 64)},
    **{f"U{bits}": DTYPES[f"uint{bits}"] for bits in (8, 16, 32, 64)},
    **{f"F{bits}": DTYPES[f"float{bits}"] for bits in (16, 32, 64)},
}


def _library(name: str) -> Any:
    """A package that the extra installs."""
    try:
        if name == "safetensors":
            import safetensors.numpy

            return safetensors
        import ml_dtypes
    except ImportError as error:
        raise ImportError(
            f"weights are stored in the safetensors format, which needs the package {name} here; "
            "install wengert[safetensors]"
        ) from error
    return ml_dtypes


def _held(dtype: DType) -> np.dtype[Any]:
    """NumPy's dtype of a data type; ml_dtypes has those that NumPy lacks."""
    return np.dtype(
        dtype.name if dtype.host == dtype.name else getattr(_library("ml_dtypes"), dtype.name)
    )


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
    ImportError
        If the package ``safetensors`` is not installed, or for bfloat16 and float8 ``ml_dtypes``.
    TypeError
        If a key is no string, a value no Tensor or array, or of a dtype that the format lacks.
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
    library = _library("safetensors")
    arrays = {name: _stored(name, value) for name, value in state_dict.items()}
    _replace_file(os.fspath(path), library.numpy.save(arrays))


def _stored(name: Any, value: Any) -> np.ndarray[Any, Any]:
    """What is to be stored under a name, as an array in row-major order."""
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
    if dtype not in _DTYPES.values():
        raise TypeError(
            f"the safetensors format has no {dtype.name}, which {name!r} holds; save its real and "
            "its imaginary part, or convert it with wg.astype"
        )
    return np.array(tensor.numpy(), dtype=_held(dtype), order="C")


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
        For `Module.load_state_dict`, sorted by name.

    Raises
    ------
    ImportError
        As for `save`.
    TypeError
        If the file holds a dtype that the backend lacks, such as bfloat16 on NumPy, and no
        other was asked for.
    ValueError
        If it is no file of the format, or is not complete.
    """
    name = os.fspath(path)
    library = _library("safetensors")
    asked = None if dtype is None else as_dtype(dtype)
    if asked is not None and not asked.inexact:
        raise TypeError(f"load: dtype is a floating one, and not {asked.name}")
    try:
        found = sorted(library.deserialize(Path(name).read_bytes()), key=itemgetter(0))
    except library.SafetensorError as error:
        raise ValueError(f"{name} is no safetensors file, or is not complete: {error}") from error
    arrays = {}
    for key, item in found:
        if item["dtype"] not in _DTYPES:
            raise TypeError(f"{name} holds {key!r} in {item['dtype']}, which Wengert lacks")
        held = _DTYPES[item["dtype"]]
        wanted = held if asked is None or held.kind != "real floating" else asked
        _check_there(wanted, key, name)
        values = np.frombuffer(item["data"], _held(held)).astype(held.host)
        arrays[key] = (values.reshape(item["shape"]), wanted)
    return {
        key: ops.asarray(array, dtype=wanted, device=device)
        for key, (array, wanted) in arrays.items()
    }


def _check_there(dtype: DType, key: str, name: str) -> None:
    backend = selection().backend
    try:
        backend.raw_dtype(dtype)
    except TypeError:
        exact = ", which is exact" if dtype.itemsize < 4 else ""
        raise TypeError(
            f"{name} holds {key!r} in {dtype.name}, which {backend.name} lacks; pass "
            f"dtype=wg.float32 to convert it{exact}, or select a backend that has it"
        ) from None


# -- files ---------------------------------------------------------------------------------------


def _replace_file(path: str, content: bytes) -> None:
    """Write a file as a whole or not at all."""
    target = Path(path).resolve()  # of a link, what it leads to is replaced
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):  # a pipe or a device has no other beside it
        with target.open("wb") as file:
            file.write(content)
        return
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(f"{path} may not be written; its permissions say so")
    beside = target.with_name(f"{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        # Not by `tempfile`, whose files are for their owner alone: here the umask decides.
        with beside.open("xb") as file:
            file.write(content)
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
