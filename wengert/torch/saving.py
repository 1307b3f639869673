"""PyTorch's ``save`` and ``load``, on safetensors files, and never pickles."""

import os
from typing import Any

import wengert as wg
from wengert import nn
from wengert.func import tree_map


def _path(f: Any) -> Any:
    if isinstance(f, str | os.PathLike):
        return f
    raise TypeError(f"torch.save and torch.load take a path, and not a {type(f).__name__}")


def save(obj: Any, f: Any) -> None:
    """Write Tensors, numbers and text in dicts and lists, such as a state dict.

    Raises `TypeError` for a module or a file object: a module is its ``state_dict()``.
    """
    if isinstance(obj, nn.Module):
        raise TypeError("torch.save writes no modules, whose pickles run code: model.state_dict()")
    tracked = tree_map(lambda x: isinstance(x, wg.Tensor) and x.requires_grad, obj)
    wg.save(_path(f), value=obj, tracked=tracked)


def load(f: Any, map_location: Any = None, *, weights_only: bool = True, mmap: Any = None) -> Any:
    """Read what `save` wrote, or the Tensors of any safetensors file; never a pickle.

    Raises `ValueError` for a pickle, such as PyTorch's own files: PyTorch itself converts them by
    ``safetensors.torch.save_file``.
    """
    try:
        found = wg.load(_path(f))
    except ValueError as error:
        if "without a checkpoint" not in str(error):
            raise
        return nn.load(f)
    return tree_map(lambda x, t: x.requires_grad_() if t else x, found["value"], found["tracked"])
