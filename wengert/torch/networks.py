"""PyTorch's layers and losses with options that Wengert's do not have."""

import inspect
from collections.abc import Callable
from typing import Any

import wengert as wg
import wengert.nn.functional as F
from wengert import nn
from wengert.tape.tensor import assign

#: Options of losses in PyTorch's order; two are old words for the last.
_LOSS = ("size_average", "ignore_index", "reduce", "reduction")
#: Losses that never had the old words.
_NEW = ("GaussianNLLLoss", "HuberLoss", "gaussian_nll_loss", "huber_loss")


def _as_pytorch(function: Any, *own: str) -> tuple[inspect.Signature, Callable[..., Any]]:
    """PyTorch's signature of a loss or an activation, and what gives our arguments for PyTorch's.

    All options may be given by position: ``own`` come after ours by position, and before the rest.
    """
    kind, ours = inspect.Parameter, inspect.signature(function).parameters
    own = () if function.__name__ in _NEW else own
    ours = {"input" if name == "x" else name: p for name, p in ours.items()}  # type: ignore[assignment]
    first = [name for name, p in ours.items() if p.kind is not kind.KEYWORD_ONLY]
    names = [*first, *(n for n in own if n in ours or n != "ignore_index"), *ours]
    default = {name: ours[name].default if name in ours else None for name in names}
    both = kind.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([kind(n, both, default=d) for n, d in default.items()])

    def translate(*args: Any, **options: Any) -> Any:
        bound = signature.bind(*args, **options)
        bound.apply_defaults()
        given = bound.arguments
        average, reduce = (given.pop(name, None) for name in ("size_average", "reduce"))
        if not {average, reduce} <= {None, True, False}:
            raise TypeError("size_average and reduce are True or False: give reduction by name")
        if average is not None or reduce is not None:
            word = "none" if reduce is False else "sum" if average is False else "mean"
            given["reduction"] = word
        return [given.pop(name) for name in first], given

    return signature, translate


def _function(function: Any, *own: str) -> Callable[..., Any]:
    signature, translate = _as_pytorch(function, *own)

    def call(*args: Any, **options: Any) -> Any:
        given, named = translate(*args, **options)
        inplace = named.pop("inplace", False)
        if "dropout" in function.__name__ and not (given[1] and given[2]):
            return given[0]
        result = function(*given, **named)
        return assign(given[0], result) if inplace else result

    vars(call)["__signature__"] = signature
    return call


def _subclass(kind: Any, **members: Any) -> Any:
    return type(kind.__name__, (kind,), members | {"__doc__": kind.__doc__, "__module__": __name__})


def _loss(kind: Any) -> Any:
    signature, translate = _as_pytorch(kind, *_LOSS)

    def initialise(self: Any, *args: Any, **options: Any) -> None:
        given, named = translate(*args, **options)
        kind.__init__(self, *given, **named)

    return _subclass(kind, __init__=initialise, __signature__=signature)


def _changing(kind: Any) -> Any:
    def forward(self: Any, input: Any) -> Any:
        if "Dropout" in kind.__name__ and not (self.training and self.p):
            return input
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


def _gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """Draw a softmax of logits and noise; a hard one has its place in the forward pass alone."""
    least = wg.finfo(logits.dtype).smallest_normal
    noise = -wg.log(-wg.log(wg.clip(wg.rand_like(logits), least)))
    soft = wg.softmax((logits + noise) / tau, axis=dim)
    place = F.one_hot(wg.argmax(soft, axis=dim), soft.shape[dim])
    return wg.moveaxis(place, -1, dim) - soft.detach() + soft if hard else soft


#: PyTorch's layers, by name.
LAYERS: dict[str, Any] = {"DataParallel": DataParallel}
#: PyTorch's `torch.nn.functional`, by name.
FUNCTIONAL: dict[str, Any] = {"gumbel_softmax": _gumbel_softmax}
_changed: set[str] = set()
for _name in nn.__all__:
    _member = getattr(nn, _name)
    if isinstance(_member, type):
        _options = inspect.signature(_member).parameters
        _make = _loss if "reduction" in _options else _changing if "inplace" in _options else None
        LAYERS[_name] = _make(_member) if _make else _member
        _changed.update({_name.lower()} if _make is _changing else ())
LAYERS["Identity"] = _subclass(nn.Identity, forward=lambda self, input: input)
for _name in F.__all__:
    _member = getattr(F, _name)
    if "reduction" in inspect.signature(_member).parameters:
        _member = _function(_member, *_LOSS)
    elif _name.replace("_", "") in _changed:
        _member = _function(_member, "inplace")
    FUNCTIONAL[_name] = _member
