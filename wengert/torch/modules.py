"""The modules within `wengert.torch`, as tables: PyTorch's names, and where Wengert has them."""

import contextlib
import sys
import warnings
from functools import cache, reduce
from types import ModuleType
from typing import Any

import numpy as np

import wengert as wg
from wengert import amp, data, func, nn, optim, testing
from wengert.func import tree_map
from wengert.optim import lr_scheduler, swa_utils
from wengert.torch import distributions
from wengert.torch.creation import LEGACY, Legacy, device
from wengert.torch.functions import axes
from wengert.torch.naming import FUNCTIONS, give_signature, members, name_of_torch
from wengert.torch.networks import FUNCTIONAL, LAYERS
from wengert.torch.shapes import lengths


def module(name: str, table: dict[str, Any]) -> None:
    """Make a module of its members, which `import` finds by its name."""
    made = ModuleType(f"{__package__}.{name}", f"PyTorch's ``torch.{name}``.")
    sys.modules[made.__name__] = made
    # With a path, modules inside are looked for.
    vars(made).update(table, __all__=[key for key in table if key[0] != "_"], __path__=[])
    for key, member in table.items():
        if getattr(member, "__name__", "") == "<lambda>":
            vars(made)[key] = name_of_torch(key, member)
    parent, _, own = made.__name__.rpartition(".")
    setattr(sys.modules[parent], own, made)


def names(home: Any, *left_out: str) -> dict[str, Any]:
    """The public members of one of Wengert's modules."""
    return {name: getattr(home, name) for name in home.__all__ if name not in left_out}


@cache
def say(text: str) -> None:
    """Warn, once in a process, of an option that changes nothing."""
    warnings.warn(text, UserWarning, stacklevel=4)


def nothing(*args: Any, **options: Any) -> None:
    """Do nothing: a choice of PyTorch's own kernels and devices."""


def _is_available() -> Any:
    return device(wg.empty((0,)).device).type == "cuda"


def autocast(
    device_type: str = "cuda", dtype: Any = None, enabled: bool = True, cache_enabled: Any = None
) -> Any:
    """Leave the dtypes as they are, with a warning."""
    if enabled:
        say("autocast changes no dtype here: the block is computed in the dtypes that it is given")
    return contextlib.nullcontext()


_AMP = {
    "autocast": autocast,
    "GradScaler": lambda device="cuda", *args, **options: amp.GradScaler(*args, **options),
}
_CUDA = {
    "device_count": lambda: int(_is_available()),
    "get_device_name": lambda device=None: str(wg.empty((0,)).device),
    "is_available": _is_available,
    **dict.fromkeys(("manual_seed", "manual_seed_all"), wg.manual_seed),
    **dict.fromkeys(("empty_cache", "set_device", "synchronize"), nothing),
    **{name: kind for name, kind in LEGACY.items() if name != "Tensor"},
}
module("amp", _AMP)
module("cuda", _CUDA)
module("cuda.amp", _AMP | {"GradScaler": amp.GradScaler})
module("backends", {})
module("backends.cudnn", {"benchmark": False, "deterministic": False, "enabled": True})
module("backends.mps", {"is_available": lambda: False, "is_built": lambda: False})
_GPUS = {n: _CUDA[n] for n in ("is_available", "device_count")}
_GPUS["current_accelerator"] = lambda: device("cuda") if _is_available() else None
module("accelerator", _GPUS)


def _variable(data: Any, requires_grad: bool = False, volatile: Any = None) -> Any:
    x = wg.asarray(data)
    apart = requires_grad or x.requires_grad
    return x.detach().requires_grad_(requires_grad) if apart else x


_VARIABLE = {"__slots__": (), "__doc__": "PyTorch's.", "make": staticmethod(_variable)}
Variable = give_signature(Legacy("Variable", (wg.Tensor,), _VARIABLE), _variable)


def _grad(*args: Any, only_inputs: bool = True, **options: Any) -> Any:
    return wg.autograd.grad(*args[:5], *args[6:], **options)


def _of_inputs(transform: Any) -> Any:
    def function(func: Any, inputs: Any, create_graph: bool = False, strict: bool = False) -> Any:
        several = isinstance(inputs, tuple | list)
        given = tuple(inputs) if several else (inputs,)
        if not create_graph:
            given = tuple(x.detach() for x in given)
        return transform(func, argnums=tuple(range(len(given))) if several else 0)(*given)

    return function


_OWN = {"Variable": Variable, "grad": _grad, "gradcheck": testing.gradcheck}
give_signature(_grad, wg.autograd.grad, "only_inputs")
_TWO = {"jacobian": _of_inputs(wg.jacobian), "hessian": _of_inputs(wg.hessian)}
module("autograd", names(wg.autograd, "graph") | _OWN)
module("autograd.function", {"Function": wg.autograd.Function})
module("autograd.functional", _TWO)
module("autograd.variable", {"Variable": Variable})
_VMAP = lambda func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None: wg.vmap(
    func, in_dims, out_dims, chunk_size, randomness
)
module("func", names(func) | {"vmap": _VMAP})


# -- networks and their data -----------------------------------------------------------------------

_DOES_NOTHING = "multiprocessing_context num_workers persistent_workers pin_memory "
_DOES_NOTHING += "pin_memory_device prefetch_factor timeout worker_init_fn"


class DataLoader(data.DataLoader[Any]):
    """Batches of a dataset; processes and pinned memory do nothing here, and a warning says so."""

    __new__ = lambda cls, *args, **options: object.__new__(cls)  # without the base's refusals

    def __init__(self, *args: Any, **options: Any) -> None:
        given = [name for name in _DOES_NOTHING.split() if options.pop(name, None)]
        if given:
            say(f"DataLoader makes its batches in this process: {', '.join(given)} does nothing")
        super().__init__(*args, **options)

    def _collate(self, found: list[Any]) -> Any:
        return super()._collate(_doubles(found) if self.collate_fn is None else found)


def _doubles(batch: Any) -> Any:
    """Samples whose Python floats become float64, as in PyTorch."""
    return tree_map(lambda x: np.float64(x) if type(x) is float else x, [*batch])


#: The modules by which PyTorch's own files are imported.
_FILES = "activation batchnorm container conv dropout linear loss module normalization padding "
_FILES += "pooling rnn sparse transformer upsampling"
_INIT = names(nn.init)
_DATA = names(data, "progress")
_DATA["DataLoader"] = give_signature(DataLoader, data.DataLoader, *_DOES_NOTHING.split())
_DATA["default_collate"] = lambda batch: data.default_collate(_doubles(batch))
_SCHEDULES = {**names(lr_scheduler), "_LRScheduler": lr_scheduler.LRScheduler}
_CHECKPOINT = {"checkpoint": wg.checkpoint, "checkpoint_sequential": wg.checkpoint_sequential}
_NORMS = {name: one for name, one in names(nn.utils).items() if name[0] in "cgpv"}
module("nn", LAYERS)
module("nn.functional", FUNCTIONAL)
module("nn.init", _INIT | {name.rstrip("_"): function for name, function in _INIT.items()})
module("nn.modules", LAYERS)
module("nn.parameter", {"Parameter": nn.Parameter})
module("nn.parallel", {"DataParallel": LAYERS["DataParallel"]})
module("nn.utils", {**_NORMS, "clip_grad_norm": nn.utils.clip_grad_norm_})
module("nn.utils.parametrizations", names(nn.utils.parametrizations))
module("nn.utils.rnn", names(nn.utils.rnn))
module("optim", names(optim, "lr_scheduler", "swa_utils"))
module("optim.lr_scheduler", _SCHEDULES)
module("optim.optimizer", {"Optimizer": optim.Optimizer})
module("optim.swa_utils", names(swa_utils))
module("utils", {})
module("utils.checkpoint", _CHECKPOINT)
module("utils.data", _DATA)
for _name in _FILES.split():
    module(f"nn.modules.{_name}", LAYERS)
for _name in ("dataset", "dataloader", "sampler"):
    module(f"utils.data.{_name}", _DATA)


def save(obj: Any, f: Any) -> None:
    """Write Tensors, numbers and text in dicts and lists: of a module its ``state_dict()``."""
    if isinstance(obj, nn.Module):
        raise TypeError("torch.save writes no modules, whose pickles run code: model.state_dict()")
    tracked = tree_map(lambda x: isinstance(x, wg.Tensor) and x.requires_grad, obj)
    wg.save(f, value=obj, tracked=tracked)


def load(f: Any, map_location: Any = None, *, weights_only: bool = True, mmap: Any = None) -> Any:
    """Read what `save` wrote, or any safetensors file; a pickle, as PyTorch's, is an error."""
    try:
        found = wg.load(f)
    except ValueError as error:
        if "without a checkpoint" not in str(error):
            raise
        return nn.load(f)
    return tree_map(lambda x, t: x.requires_grad_() if t else x, found["value"], found["tracked"])


def _transform(name: str) -> Any:
    own = getattr(wg.fft, name.replace("2", "n"))
    if name[-1] not in "n2":
        return lambda input, n=None, dim=-1, norm=None: own(
            input, n=n, axis=dim, norm=norm or "backward"
        )
    last = (-2, -1) if name[-1] == "2" else None
    return lambda input, s=None, dim=last, norm=None: own(
        input, s=s, axes=dim, norm=norm or "backward"
    )


_FFT = {
    name + end: _transform(name + end)
    for name in ("fft", "ifft", "rfft", "irfft")
    for end in ("", "2", "n")
}
_FFT |= members(wg.fft, "fftfreq rfftfreq")
_FFT["fftshift"] = lambda input, dim=None: wg.fft.fftshift(input, axes=dim)
_FFT["ifftshift"] = lambda input, dim=None: wg.fft.ifftshift(input, axes=dim)


def _linalg_norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    if ord is None or (A.ndim if dim is None else len(lengths((dim,)))) != 2:
        return FUNCTIONS["norm"](A, ord, dim, keepdim)
    if keepdim and dim is not None:
        raise NotImplementedError("norm of matrices along dim has no keepdim: matrix_norm")
    moved = A if dim is None else wg.moveaxis(A, dim, (-2, -1))
    return wg.linalg.matrix_norm(moved, ord=ord, keepdims=keepdim)


_LINALG = names(wg.linalg, "matmul", "tensordot", "vecdot", "outer", "trace") | {
    "cross": lambda input, other, dim=-1: wg.linalg.cross(input, other, axis=dim),
    "matmul": wg.matmul,
    "matrix_norm": lambda A, ord="fro", *, keepdim=False: wg.linalg.matrix_norm(
        A, ord=ord, keepdims=keepdim
    ),
    "multi_dot": lambda tensors: reduce(wg.matmul, tensors),
    "norm": _linalg_norm,
    "vecdot": lambda x, y, *, dim=-1: wg.vecdot(x, y, axis=dim),
    "vector_norm": lambda x, ord=2, dim=None, keepdim=False: wg.linalg.vector_norm(
        x, ord=ord, axis=axes(dim), keepdims=keepdim
    ),
}
_SPECIAL = names(wg.special) | {n: FUNCTIONS[n] for n in ("log_softmax", "logsumexp", "softmax")}
module("fft", _FFT)
module("linalg", _LINALG)
module("special", _SPECIAL)
for _name in distributions.FAMILIES.split():
    module(f"distributions.{_name.lower()}", {_name: getattr(distributions, _name)})
