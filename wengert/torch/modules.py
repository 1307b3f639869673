"""The modules within `wengert.torch`, as tables: PyTorch's names, and where Wengert has them."""

import contextlib
import sys
import warnings
from functools import cache, reduce
from types import ModuleType
from typing import Any

import wengert as wg
from wengert import amp, data, func, nn, optim, testing
from wengert.optim import lr_scheduler, swa_utils
from wengert.torch import distributions
from wengert.torch.creation import LEGACY, Legacy, device
from wengert.torch.naming import FUNCTIONS, name_of_torch, with_options
from wengert.torch.networks import FUNCTIONAL, LAYERS
from wengert.torch.reductions import axes
from wengert.torch.shapes import lengths
from wengert.torch.tensor import as_dtype


def module(name: str, members: dict[str, Any]) -> ModuleType:
    """Make a module of its members, which `import` finds by its name."""
    made = ModuleType(f"{__package__}.{name}", f"PyTorch's ``torch.{name}``.")
    sys.modules[made.__name__] = made
    vars(made).update(members, __all__=[key for key in members if key[0] != "_"])
    vars(made)["__path__"] = []  # so that modules inside are looked for
    for key, member in members.items():
        if getattr(member, "__name__", "") == "<lambda>":
            vars(made)[key] = name_of_torch(key, member)
    parent, _, own = made.__name__.rpartition(".")
    setattr(sys.modules[parent], own, made)
    return made


def names(home: Any, *left_out: str) -> dict[str, Any]:
    """The public members of one of Wengert's modules."""
    return {name: getattr(home, name) for name in home.__all__ if name not in left_out}


@cache
def say(text: str) -> None:
    """Warn, once in a process, of an option that changes nothing."""
    warnings.warn(text, UserWarning, stacklevel=4)


def nothing(*args: Any, **options: Any) -> None:
    """Do nothing: a choice of PyTorch's own kernels and devices."""


def set_default_tensor_type(t: Any) -> None:
    """Set the dtype that new Tensors have by default, by a class or its name."""
    wg.set_default_dtype(as_dtype(t))


def _is_available() -> Any:
    """Whether the selected backend is on a GPU."""
    return device(wg.empty((0,)).device).type == "cuda"


# -- devices ---------------------------------------------------------------------------------------


def autocast(
    device_type: str = "cuda", dtype: Any = None, enabled: bool = True, cache_enabled: Any = None
) -> Any:
    """Leave the dtypes as they are, with a warning."""
    if enabled:
        say("autocast changes no dtype here: the block is computed in the dtypes that it is given")
    return contextlib.nullcontext()


_AMP = {"autocast": autocast, "GradScaler": amp.GradScaler}
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
module("cuda.amp", _AMP)
module("backends", {})
module("backends.cudnn", {"benchmark": False, "deterministic": False, "enabled": True})
module("backends.mps", {"is_available": lambda: False, "is_built": lambda: False})
_CURRENT = {"current_accelerator": lambda: device("cuda") if _is_available() else None}
module("accelerator", {**_CURRENT, **{n: _CUDA[n] for n in ("is_available", "device_count")}})


# -- autograd --------------------------------------------------------------------------------------


class _Variable(Legacy):
    """The class of `Variable`."""

    def make(cls, *data: Any, **options: Any) -> Any:  # noqa: N805
        """Return the values, and let them require grad where that is asked for."""
        tensor = wg.asarray(data[0] if data else options["data"])
        tracked = bool(options.get("requires_grad"))
        return tensor.detach().requires_grad_() if tracked else tensor


_TAKES = with_options(lambda data, requires_grad=False: None, "volatile")
_AS_VARIABLE = {"__slots__": (), "__doc__": "A Tensor.", "__signature__": _TAKES}
Variable = _Variable("Variable", (wg.Tensor,), _AS_VARIABLE)


def _grad(*args: Any, only_inputs: bool = True, **options: Any) -> Any:
    return wg.autograd.grad(*args, **options)


vars(_grad)["__signature__"] = with_options(wg.autograd.grad, "only_inputs")


def _of_inputs(transform: Any) -> Any:
    def function(func: Any, inputs: Any, create_graph: bool = False, strict: bool = False) -> Any:
        several = isinstance(inputs, tuple | list)
        given = tuple(inputs) if several else (inputs,)
        if not create_graph:
            given = tuple(x.detach() for x in given)
        return transform(func, argnums=tuple(range(len(given))) if several else 0)(*given)

    return function


_OWN = {"Variable": Variable, "grad": _grad, "gradcheck": testing.gradcheck}
_TWO = {"jacobian": _of_inputs(wg.jacobian), "hessian": _of_inputs(wg.hessian)}
module("autograd", names(wg.autograd, "graph") | _OWN)
module("autograd.function", {"Function": wg.autograd.Function})
module("autograd.functional", _TWO)
module("autograd.variable", {"Variable": Variable})
module("func", names(func))


# -- networks and their data -----------------------------------------------------------------------

_DOES_NOTHING = [
    *("multiprocessing_context", "num_workers", "persistent_workers", "pin_memory"),
    *("pin_memory_device", "prefetch_factor", "timeout", "worker_init_fn"),
]


class DataLoader(data.DataLoader):
    """Batches of a dataset; processes and pinned memory do nothing here, and a warning says so."""

    __signature__ = with_options(data.DataLoader, *_DOES_NOTHING)
    __new__ = lambda cls, *args, **options: object.__new__(cls)  # without the base's refusals

    def __init__(self, *args: Any, **options: Any) -> None:
        given = [name for name in _DOES_NOTHING if options.pop(name, None)]
        if given:
            say(f"DataLoader makes its batches in this process: {', '.join(given)} does nothing")
        super().__init__(*args, **options)


#: The modules by which PyTorch's own files are imported.
_FILES = (
    "activation batchnorm container conv dropout linear loss module normalization padding pooling "
    "rnn sparse transformer upsampling"
)
_INIT = names(nn.init)
_DATA = {**names(data, "progress"), "DataLoader": DataLoader}
_SCHEDULES = {**names(lr_scheduler), "_LRScheduler": lr_scheduler.LRScheduler}
_CHECKPOINT = {"checkpoint": wg.checkpoint, "checkpoint_sequential": wg.checkpoint_sequential}
_NORMS = {name: getattr(nn.utils, name) for name in nn.utils.__all__ if name[0] in "cgpv"}
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


# -- the standard's extensions ---------------------------------------------------------------------


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
_FFT |= {name: getattr(wg.fft, name) for name in ("fftfreq", "rfftfreq")}
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
