"""PyTorch's constructors, dtypes, devices and random numbers."""

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

import wengert as wg
from wengert.backends import generators
from wengert.func import tree_leaves
from wengert.tape.node import is_lifted
from wengert.torch.naming import FUNCTIONS, give_signature, lines, members
from wengert.torch.shapes import lengths

#: Dtypes by PyTorch's names.
_DTYPES = "bfloat16 bool cdouble=complex128 cfloat=complex64 complex128 complex64 double=float64 "
_DTYPES += "float=float32 float16 float32 float64 half=float16 int=int32 int16 int32 int64 int8 "
DTYPES: dict[str, Any] = dict(members(wg, f"{_DTYPES} long=int64 short=int16 uint8"))


class device(str):
    """A device by its name, such as ``"cuda:0"``, with PyTorch's ``type`` and ``index``."""

    __slots__ = ()

    def __new__(cls, type: Any, index: int | None = None) -> "device":
        name = str(type) if index is None else f"{type}:{index}"
        return super().__new__(cls, name.lower().replace("<cuda device ", "cuda:").strip(">"))

    #: The kind of device, ``"cpu"``, ``"cuda"`` or ``"mps"``, and its number, or None.
    type = property(lambda self: str(self.partition(":")[0]))
    index = property(lambda self: int(self.partition(":")[2]) if ":" in self else None)

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"


class Size(tuple[int, ...]):
    """A shape, as PyTorch prints it."""

    __slots__ = ()
    numel = lambda self: math.prod(self)  # noqa: PLW0108

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"


class Generator(np.random.Generator):
    """NumPy's generator, with PyTorch's ``manual_seed``."""

    def __init__(self, device: Any = "cpu") -> None:
        super().__init__(np.random.PCG64())

    def manual_seed(self, seed: int) -> "Generator":
        """Start again from a seed, and return the generator."""
        self.bit_generator.state = np.random.PCG64(seed).state
        return self


def with_generator(function: Callable[..., Any]) -> Any:
    """Let a function that draws on the host take a generator, whose numbers it draws then."""

    @wraps(function)
    def draw(*args: Any, generator: Any = None, **options: Any) -> Any:
        if generator is None:
            return function(*args, **options)
        if (known := generators.follower.get()) is not None:
            known.seeded()
        given = generators.as_generator(generator).bit_generator
        with generators.lock:
            own = generators.host().bit_generator
            kept, own.state = own.state, given.state
            try:
                return function(*args, **options)
            finally:
                given.state, own.state = own.state, kept

    return give_signature(draw, function, "generator")


@with_generator
def _bernoulli(input: Any, p: Any = None) -> Any:
    p = wg.broadcast_to(wg.asarray(input if p is None else p, device=input.device), input.shape)
    if not is_lifted(p._array) and not bool(wg.all((p >= 0) & (p <= 1))):
        raise RuntimeError("bernoulli takes probabilities, which are between 0 and 1")
    draws = wg.rand(p.shape, dtype=p.dtype, device=p.device)
    return wg.astype(draws < p.detach(), input.dtype)


@with_generator
def _multinomial(input: Any, num_samples: int, replacement: bool = False) -> Any:
    """Draw by the least of exponential waiting times, one for each category."""
    p = input.detach()
    if bool(wg.any(p < 0)) or bool(wg.any(wg.sum(p, axis=-1) <= 0)):
        raise RuntimeError("probabilities are at least 0, and one of a row is positive")
    if not replacement and num_samples > int(wg.min(wg.count_nonzero(p, axis=-1))):
        raise RuntimeError("fewer probabilities are positive than samples without replacement")
    shape = (*p.shape[:-1], num_samples, p.shape[-1])
    wide = wg.broadcast_to(wg.expand_dims(p, axis=-2), shape) if replacement else p
    can, draws = wide > 0, wg.rand(wide.shape, dtype=p.dtype, device=p.device)
    waiting = wg.where(can, -wg.log(1 - draws) / wg.where(can, wide, 1), wg.inf)
    order = wg.argsort(waiting, axis=-1)
    return order[..., 0] if replacement else order[..., :num_samples]


def _constructor(function: Callable[..., Any]) -> Any:
    """A function that makes Tensors, with the options that PyTorch's have."""

    @wraps(function)
    def construct(*args: Any, **options: Any) -> Any:
        for unused in ("layout", "pin_memory", "memory_format"):
            options.pop(unused, None)
        return function(*args, **options)

    names = ("dtype", "layout", "device", "requires_grad", "pin_memory", "memory_format")
    return give_signature(construct, function, *names)


def _with_size(function: Any) -> Callable[..., Any]:
    return lambda *args, size=None, **options: function(
        lengths(args if size is None else (size,)), **options
    )


def _alike(function: Any) -> Callable[..., Any]:
    return lambda input, *args, dtype=None, device=None, **more: function(
        tuple(input.shape), *args, dtype=dtype or input.dtype, device=device or input.device, **more
    )


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, wg.Tensor | np.generic) else x


def _arange(start: Any = 0, end: Any = None, step: Any = 1, **options: Any) -> Any:
    start, end = (0, start) if end is None else (start, end)
    return wg.arange(_number(start), _number(end), _number(step), **options)


def _randint(low: int, high: Any = None, size: Any = None, **options: Any) -> Any:
    low, high, size = (0, low, high) if isinstance(high, tuple | list) else (low, high, size)
    low, high = (0, low) if high is None else (low, high)
    return wg.randint(low, high, tuple(size), **options)


@wg.no_grad()  # PyTorch's derivatives by the moments are 0
def _normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, **options: Any) -> Any:
    return wg.normal(mean, std, size, **options)


@wg.no_grad()
def _tensor(data: Any, **options: Any) -> Any:
    """A copy that is untracked; Python's numbers are float32 beside NumPy's of other kinds."""
    found = wg.tensor(data.detach() if isinstance(data, wg.Tensor) else data, **options)
    if found.dtype is wg.float64 and not options.get("dtype") and isinstance(data, list | tuple):
        kinds = {str(getattr(leaf, "dtype", "")).rpartition(".")[2] for leaf in tree_leaves(data)}
        if "float64" not in kinds:
            return wg.tensor(data, **options | {"dtype": wg.get_default_dtype()})
    return found


_CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    **{name: _with_size(function) for name, function in members(wg, "empty ones zeros")},
    **{name: with_generator(_with_size(function)) for name, function in members(wg, "rand randn")},
    **{f"{name}_like": _alike(f) for name, f in members(wg, "empty full ones randn zeros")},
    "arange": _arange,
    "eye": lambda n, m=None, **options: wg.eye(n, m, **options),
    "full": lambda size, fill_value, **options: wg.full(tuple(size), fill_value, **options),
    "linspace": lambda start, end, steps, **options: wg.linspace(
        _number(start), _number(end), steps, **options
    ),
    "normal": with_generator(_normal),
    "randint": with_generator(_randint),
    "randperm": with_generator(lambda n, **options: wg.randperm(n, **options)),  # noqa: PLW0108
    "tensor": _tensor,
    **dict.fromkeys(
        ("as_tensor", "asarray"),
        lambda data, **options: (wg.asarray if hasattr(data, "shape") else _tensor)(
            data, **options
        ),
    ),
}
_SAME = "can_cast finfo from_dlpack from_numpy get_default_dtype get_rng_state "
_SAME += "iinfo manual_seed rand_like result_type set_default_dtype set_rng_state"
FUNCTIONS.update(members(wg, _SAME))
lines(**{name: _constructor(function) for name, function in _CONSTRUCTORS.items()})
lines(bernoulli=_bernoulli, multinomial=_multinomial)
#: Functions that are no methods.
NO_METHODS = {*_CONSTRUCTORS, *_SAME.split()}


class Legacy(type(wg.Tensor)):  # type: ignore[misc]
    """The class of `Tensor`, `FloatTensor` and `Variable`: Tensors are of these types."""

    dtype: Any
    __eq__ = lambda cls, other: cls is other or (other is wg.Tensor and cls is LEGACY["Tensor"])
    __hash__ = lambda cls: hash(wg.Tensor)

    def __instancecheck__(cls, value: Any) -> bool:
        dtype = cls.__dict__.get("dtype")
        return isinstance(value, wg.Tensor) and (dtype is None or value.dtype is dtype)

    def __call__(cls, *data: Any, **options: Any) -> Any:
        return cls.make(*data, **options)

    def make(cls, *data: Any, **options: Any) -> Any:
        dtype = cls.__dict__.get("dtype") or wg.get_default_dtype()
        one = data[0] if len(data) == 1 else 0
        if isinstance(one, int | Size):
            return wg.zeros(lengths(data or (0,)), dtype=dtype, **options)
        if isinstance(one, wg.Tensor):
            return one if one.dtype is dtype else wg.astype(one, dtype)
        return _tensor(one, dtype=dtype, **options)


_KINDS = "Bool=bool Byte=uint8 Char=int8 Double=float64 Float=float32 Half=float16 "
_KINDS += "Int=int32 Long=int64 Short=int16"
#: The classes by which PyTorch's old programs name dtypes.
LEGACY: dict[str, Any] = {
    name: Legacy(name, (wg.Tensor,), {"__slots__": (), "__doc__": "PyTorch's.", **more})
    for name, more in [
        ("Tensor", {}),
        *((f"{k}Tensor", {"dtype": dtype}) for k, dtype in members(wg, _KINDS)),
    ]
}
