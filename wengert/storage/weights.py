"""Weights in files of the safetensors format."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from wengert import ops
from wengert.backends import DType, as_dtype, selection
from wengert.storage.files import STORED, host_array, library, read_file, write_file
from wengert.tape.tensor import Tensor, wrap


def save(state_dict: Any, path: str | os.PathLike[str]) -> None:
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
    if hasattr(state_dict, "state_dict") and not isinstance(state_dict, type):
        state_dict = state_dict.state_dict()
    if not isinstance(state_dict, Mapping):
        raise TypeError(
            "save takes a mapping of names to Tensors, such as module.state_dict(), and was given "
            f"{type(state_dict).__name__}; to store one Tensor, name it: save({{'x': x}}, path)"
        )
    library("safetensors")  # before arrays are copied
    write_file(
        os.fspath(path), {name: _storable_array(name, value) for name, value in state_dict.items()}
    )


def _storable_array(name: Any, value: Any) -> np.ndarray[Any, Any]:
    """What is to be stored under a name, as an array in row-major order."""
    if not isinstance(name, str):
        raise TypeError(f"names of stored Tensors should be strings, not {name!r}")
    if name == "__metadata__":
        raise TypeError("the format keeps the name '__metadata__' for itself; choose another")
    try:
        tensor = wrap(value).detach()
    except TypeError:
        raise TypeError(
            f"the value of {name!r} should be a Tensor or an array, not {type(value).__name__}; "
            "convert a number with wg.asarray, and save each of several dicts in its own file"
        ) from None
    dtype = tensor.dtype
    if dtype not in STORED.values():
        raise TypeError(
            f"the safetensors format has no {dtype.name}, which {name!r} holds; save its real and "
            "its imaginary part, or convert it with wg.astype"
        )
    return host_array(tensor)


def load(
    path: str | os.PathLike[str], device: Any = None, *, dtype: Any = None, verify: bool = True
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
    verify : bool
        Whether bytes are compared with the digest that `save` has written. For a file that memory
        does not hold, say False: Tensors are then read one after the other.

    Returns
    -------
    dict of str to Tensor
        For `Module.load_state_dict`, sorted by name.

    Raises
    ------
    ImportError
        If the package ``ml_dtypes`` is not installed, for bfloat16 and float8.
    TypeError
        If the file holds a dtype that the backend lacks, such as bfloat16 on NumPy, and no
        other was asked for.
    ValueError
        If it is no file of the format, not complete, or damaged.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> model = wg.nn.Linear(2, 3)
    >>> with TemporaryDirectory() as folder:
    ...     wg.nn.save(model.state_dict(), f"{folder}/weights.safetensors")
    ...     model.load_state_dict(wg.nn.load(f"{folder}/weights.safetensors"))
    IncompatibleKeys(missing_keys=[], unexpected_keys=[])
    """
    name = os.fspath(path)
    asked = None if dtype is None else as_dtype(dtype)
    if asked is not None and not asked.inexact:
        raise TypeError(f"load: dtype is a floating one, and not {asked.name}")

    def choose(dtype: DType) -> DType:
        return dtype if asked is None or dtype.kind != "real floating" else asked

    _, arrays = read_file(name, verify, lambda dtype, key: _check_there(choose(dtype), key, name))
    return {
        key: ops.asarray(array, dtype=choose(dtype), device=device)
        for key, (array, dtype) in arrays.items()
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
