"""PyTorch's layers and losses where its options are others than Wengert's."""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import wengert as wg
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


def _loss(function: Any) -> Callable[..., Any]:
    def loss(*args: Any, **options: Any) -> Any:
        return function(*args, **_reduction(options))

    vars(loss)["__signature__"] = with_options(function, *_OLD)
    return loss


def _loss_class(kind: Any) -> Any:
    def initialise(self: Any, *args: Any, **options: Any) -> None:
        kind.__init__(self, *args, **_reduction(options))

    members = {"__init__": initialise, "__doc__": kind.__doc__, "__module__": __name__}
    members["__signature__"] = with_options(kind, *_OLD)
    return type(kind.__name__, (kind,), members)


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

    members = {"forward": forward, "__doc__": kind.__doc__, "__module__": __name__}
    return type(kind.__name__, (kind,), members)


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
    found = {}
    for name in F.__all__:
        function = getattr(F, name)
        changes = name.title().replace("_", "").lower()
        if _takes(function, "reduction"):
            function = _loss(function)
        elif changes in {n.lower() for n, k in LAYERS.items() if hasattr(k, "inplace")} | _IN_PLACE:
            function = _changing(function)
        found[name] = function
    return found


def _gumbel_softmax(
    logits: Any, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    noisy = logits - wg.log(-wg.log1p(-wg.rand_like(logits)))
    soft = wg.softmax(noisy / tau, axis=dim)
    if not hard:
        return soft
    most = soft == wg.max(soft, axis=dim, keepdims=True)
    return wg.astype(most, soft.dtype) - soft.detach() + soft


#: Functions whose layers take ``inplace``.
_IN_PLACE = {
    name.lower()
    for name in nn.__all__
    if isinstance(getattr(nn, name), type) and _takes(getattr(nn, name), "inplace")
}
#: PyTorch's `torch.nn.functional`, by name.
FUNCTIONAL = {**_functions(), "gumbel_softmax": _gumbel_softmax}
FUNCTIONAL.update(
    {
        f"{n}_": lambda x, *a, f=FUNCTIONAL[n]: f(x, *a, inplace=True)
        for n in ("relu", "elu", "leaky_relu", "selu")
    }
)
