"""Weights in files."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from wengert import ops
from wengert.tape.tensor import Tensor, wrapped

__all__ = ["load", "save"]


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(
            "weights are stored in the safetensors format, which needs the package safetensors; "
            "install wengert[safetensors]"
        ) from error
    return safetensors.numpy


def save(state_dict: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write Tensors to a file in the safetensors format, which many libraries read.

    Parameters
    ----------
    state_dict : mapping of str to Tensor
        As `Module.state_dict` gives it. Tensors of any backend are stored by their values.
    path : path-like
        The file, usually named ``*.safetensors``; one that exists is replaced.

    Raises
    ------
    ImportError
        If the package ``safetensors`` is not installed.
    TypeError
        If a key is no string or a value no Tensor or array. Nothing has been written then.
    """
    storage = _safetensors()
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for name, value in state_dict.items():
        if not isinstance(name, str):
            raise TypeError(f"names of stored Tensors should be strings, not {name!r}")
        arrays[name] = np.array(wrapped(value).detach().numpy(), order="C")
    storage.save_file(arrays, os.fspath(path))


def load(path: str | os.PathLike[str], device: Any = None) -> dict[str, Tensor]:
    """Read Tensors from a file in the safetensors format.

    Parameters
    ----------
    path : path-like
        The file.
    device : optional
        Where the Tensors are made, on the selected backend.

    Returns
    -------
    dict of str to Tensor
        For `Module.load_state_dict`.

    Raises
    ------
    ImportError
        If the package ``safetensors`` is not installed.
    """
    arrays = _safetensors().load_file(os.fspath(path))
    return {name: ops.asarray(array, device=device) for name, array in arrays.items()}
