"""PyTorch's layers and losses where its options are others than Wengert's."""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import wengert.nn.functional as F
from wengert import nn
from wengert.tape.tensor import assign
from wengert.torch.naming import with_options

_OLD = ("size_average", "reduce")


def _reduction(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a loss, with PyTorch's old flags as its newer word."""
    average, reduce = (options.pop(name, None) for name in _OLD)
    if average is not None or reduce is not None:
        word = "none" if reduce is False else "sum" if average is False else "mean"
        options["reduction"] = word
    return options


def _subclass(kind: Any, **members: Any) -> Any:
    members |= {"__doc__": kind.__doc__, "__module__": __name__}
    return type(kind.__name__, (kind,), members)


def _loss(function: Any) -> Callable[..., Any]:
    def loss(*args: Any, **options: Any) -> Any:
        return function(*args, **_reduction(options))

    vars(loss)["__signature__"] = with_options(function, *_OLD)
    return loss


def _loss_class(kind: Any) -> Any:
    def initialise(self: Any, *args: Any, **options: Any) -> None:
        kind.__init__(self, *args, **_reduction(options))

    return _subclass(kind, __init__=initialise, __signature__=with_options(kind, *_OLD))


def _changing(function: Any) -> Callable[..., Any]:
    """A function that changes its argument where `inplace` says so."""

    def changing(input: Any, *args: Any, inplace: bool = False, **options: Any) -> Any:
        result = function(input, *args, **options)
        return assign(input, result) if inplace else result

    vars(changing)["__signature__"] = with_options(function, "inplace")
    return changing


def _changing_class(kind: Any) -> Any:
    def forward(self: Any, input: Any) -> Any:
        result = kind.forward(self, input)
        return assign(input, result) if self.inplace else result

    return _subclass(kind, forward=forward)


class DataParallel(nn.Module):
    """A module on the one device that there is, under PyTorch's name ``module``."""

    def __init__(
        self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **options: Any) -> Any:
        return self.module(*args, **options)


def _takes(function: Any, name: str) -> bool:
    return name in inspect.signature(function).parameters


def _layers() -> dict[str, Any]:
    found: dict[str, Any] = {"DataParallel": DataParallel}
    for name in nn.__all__:
        member = getattr(nn, name)
        if isinstance(member, ModuleType) or name in ("load", "save"):
            continue
        if _takes(member, "reduction"):
            member = _loss_class(member)
        elif _takes(member, "inplace"):
            member = _changing_class(member)
        found[name] = member
    return found


#: PyTorch's layers, by name.
LAYERS = _layers()


def _functions() -> dict[str, Any]:
    changing = {name.lower() for name, kind in LAYERS.items() if _takes(kind, "inplace")}
    found = {}
    for name in F.__all__:
        function = getattr(F, name)
        if _takes(function, "reduction"):
            function = _loss(function)
        elif name.replace("_", "") in changing:
            function = _changing(function)
        found[name] = function
    return found


#: PyTorch's `torch.nn.functional`, by name.
FUNCTIONAL = _functions()
