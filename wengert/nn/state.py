"""The state of a module: its parameters and buffers by their names, given and taken."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from wengert.backends import backend_of, dtype_of
from wengert.nn.conversion import convert
from wengert.ops.data_type import storable
from wengert.tape.tensor import Tensor, untracked

#: What a class gives its state by in PyTorch, and is not called here.
_UNCALLED = ["get_extra_state", "set_extra_state", "_save_to_state_dict", "_load_from_state_dict"]


class IncompatibleKeys(NamedTuple):
    """The names that `Module.load_state_dict` has not found in the mapping, and in the module."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class State:
    """What a module gives as its state, and takes."""

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:
        """Return all parameters and persistent buffers by their dotted paths.

        The Tensors are detached, and keep their values while the module is trained further; with
        ``keep_vars`` they are the module's own. Raises `TypeError` if the class of a submodule
        defines ``state_dict`` or ``load_state_dict`` itself, or any class has PyTorch's
        ``get_extra_state``: what they add would be lost.
        """
        return {
            prefix + name: tensor if keep_vars else untracked(tensor._array)
            for name, tensor in self._state()
        }

    def _state(self: Any) -> Iterator[tuple[str, Tensor]]:
        for path, module in self.named_modules(remove_duplicate=False):
            cls = type(module)
            if own := [name for name in _UNCALLED if hasattr(cls, name)] or [
                name
                for name in ("state_dict", "load_state_dict")
                if path and getattr(cls, name) is not getattr(State, name)
            ]:
                raise hints().state_error(self, path, module, own)
            for name, parameter in module._own_parameters():
                yield join_path(path, name), parameter
            for name, buffer in module._own_buffers():
                if module._buffers[name]:
                    yield join_path(path, name), buffer

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True
    ) -> IncompatibleKeys:
        """Copy values from a `state_dict` into the parameters and buffers.

        These stay the same objects, and keep their backend, device and dtype: values are converted.
        Raises `RuntimeError` that lists all names that are missing or unexpected, if ``strict``,
        and all values that do not fit. Nothing is loaded then.
        """
        if not isinstance(state_dict, Mapping):
            raise hints().no_state(state_dict)
        own = dict(self._state())
        missing = [name for name in own if name not in state_dict]
        unexpected = [name for name in state_dict if name not in own]
        errors: list[str] = []
        if strict and unexpected:
            errors.append(f"Unexpected key(s) in state_dict: {_quote_names(unexpected)}.")
        if strict and missing:
            errors.append(f"Missing key(s) in state_dict: {_quote_names(missing)}.")
        loaded: dict[str, Any] = {}
        for name, tensor in own.items():
            if name not in state_dict:
                continue
            value, here = state_dict[name], tensor._array
            array = value._array if isinstance(value, Tensor) else value
            if (
                type(array) is type(here) is np.ndarray  # four times as fast as by `convert`
                and array.dtype is here.dtype
                and array.shape == here.shape
            ):
                loaded[name] = array.copy()
            elif problem := _misfit(array, tensor):
                errors.append(f"{problem.format(name=name)}.")
            else:
                loaded[name] = convert(array, tensor.backend, tensor.dtype, tensor.device)
        if errors:
            if strict and (missing or unexpected):
                errors.append(hints().renaming_hint(missing, unexpected))
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                + "\n\t".join(errors)
            )
        for name, array in loaded.items():
            own[name]._array = array
        return IncompatibleKeys(missing, unexpected)


def hints() -> Any:
    """The module of errors' texts, which is imported when there is an error."""
    return import_module("wengert.nn.hints")


def join_path(prefix: str, name: str) -> str:
    """Return a dotted path with one name more."""
    return f"{prefix}.{name}" if prefix else name


def _quote_names(names: list[Any]) -> str:
    return ", ".join(f'"{name}"' if isinstance(name, str) else repr(name) for name in names)


def _misfit(array: Any, tensor: Tensor) -> str:
    """Why an array can't be loaded into a Tensor; empty if it can."""
    try:
        backend_of(array)
    except TypeError:
        return f"{{name}} should be a Tensor or an array, and is a {type(array).__name__}"
    if tuple(array.shape) != tuple(tensor.shape):
        return (
            f"size mismatch for {{name}}: copying a param with shape {tuple(array.shape)} from "
            f"checkpoint, the shape in current model is {tuple(tensor.shape)}"
        )
    dtype = dtype_of(array.dtype)
    if not storable(dtype.kind, tensor.dtype):
        here = tensor.dtype.name
        return (
            f"{{name}} is {dtype.name} in the checkpoint, and {here} in current model: cast it "
            "with wg.astype"
        )
    if not (tensor.dtype.inexact or dtype is tensor.dtype or dtype.kind == "bool"):
        held, limits = backend_of(array).to_numpy(array), np.iinfo(tensor.dtype.host)
        if held.size and not (limits.min <= held.min() and held.max() <= limits.max):
            return (
                f"{{name}} holds integers from {held.min()} to {held.max()} in the checkpoint, and "
                f"{tensor.dtype.name} in current model has none beyond {limits.max}"
            )
    return ""
