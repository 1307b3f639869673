"""PyTorch's methods and attributes, which importing `wengert.torch` gives to all Tensors."""

import math
import weakref
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

import wengert as wg
from wengert.backends.keys import SLOT
from wengert.nn.parameter import Parameter
from wengert.nn.state import State
from wengert.ops.conversion import laid_out
from wengert.ops.indexing import getitem, parse_key, replace, setitem
from wengert.ops.operators import give
from wengert.tape import aliases as tape_aliases
from wengert.tape.grad_mode import recording
from wengert.tape.node import is_lifted
from wengert.tape.observers import observing, tell
from wengert.tape.tensor import IN_PLACE_ON_LEAF, assign
from wengert.tape.views import same, show
from wengert.torch.creation import DTYPES, LEGACY, NO_METHODS, Size, device, with_generator
from wengert.torch.naming import FUNCTIONS, give_signature, members, name_of_torch
from wengert.torch.shapes import lengths

#: The core's own, which gives plain copies.
STATE_DICT = State.state_dict
#: Functions that are no methods, or others as methods.
_NO_METHODS = (
    "broadcast_tensors cat cdist concat concatenate einsum hstack imag is_tensor meshgrid real "
    "searchsorted stack tensordot vstack where"
)
#: Functions that PyTorch has in place too.
_IN_PLACE = (
    "abs acos addcdiv addcmul addmm asin atan baddbmm bitwise_and bitwise_or ceil clamp clamp_max "
    "clamp_min clip cos cosh cumprod cumsum div eq erf erfinv exp exp2 expm1 floor floor_divide "
    "fmod ge gt index_add index_copy index_fill le lerp log log10 log1p log2 logical_and "
    "logical_not logical_or logit lt masked_fill ne neg pow reciprocal relu remainder round rsqrt "
    "scatter scatter_add scatter_reduce sigmoid sign sin sinh sqrt square tan tanh tril triu trunc"
)
#: Functions that change shapes, and that PyTorch has in place.
_RESHAPES = "squeeze swapaxes swapdims t transpose unsqueeze"


class _Count(int):
    """The number of elements, which can be called for the shape, as PyTorch's ``size``."""

    shape: Size

    def __new__(cls, x: wg.Tensor) -> "_Count":
        count = super().__new__(cls, math.prod(x.shape))
        count.shape = Size(x.shape)
        return count

    def __call__(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]


def _through(name: str, refused: str = "") -> Any:
    def write(self: Any, value: Any) -> None:
        if refused:
            raise RuntimeError(refused)
        setattr(self._of, name, value)

    return property(lambda self: getattr(self._of, name), write)


class Data(wg.Tensor):
    """The values of another Tensor, untracked: what is written here changes that one."""

    __slots__ = ("_of",)
    _of: wg.Tensor
    _array, _shown = _through("_array"), _through("_shown")
    __deepcopy__ = lambda self, memo: self.detach().__deepcopy__(memo)
    __reduce__ = lambda self: self.detach().__reduce__()


class _Left(wg.Tensor):
    """What aliases keep of a Tensor whose ``.data`` was set."""

    __slots__ = ()


class Snapshot(Data):
    """A value of a ``state_dict()``: a write into it, which PyTorch's module shows, is an error."""

    __slots__ = ()
    _array = _through(
        "_array",
        "a value of state_dict() is a copy, and the module keeps its own. Write into the "
        "module: `with torch.no_grad(): p.copy_(value)` over its parameters() and buffers(). "
        "Or take a copy to change: value.clone()",
    )


def _state_dict(self: State, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
    found = STATE_DICT(self, prefix=prefix, keep_vars=keep_vars)
    return found if keep_vars else {name: _data(value, Snapshot) for name, value in found.items()}


_ALIASES: weakref.WeakValueDictionary[int, Data] = weakref.WeakValueDictionary()


def _data(self: wg.Tensor, kind: type[Data] = Data) -> Data:
    if is_lifted(self._array):
        raise RuntimeError(
            "x.data is not there inside transforms and compiled functions: read x.detach(), and "
            "write by x.copy_(values) under torch.no_grad()"
        )
    if observing:
        tell("left", self, "data")
    alias = kind.__new__(kind)
    alias._of = self
    _ALIASES[id(alias)] = alias
    alias._grad = alias._node = None
    return alias


def _aliases(of: wg.Tensor) -> list[Data]:
    return [alias for alias in list(_ALIASES.values()) if alias._of is of]


def _set_data(self: wg.Tensor, value: Any) -> None:
    if value is self or (isinstance(value, Data) and value._of is self):
        return
    value = value if isinstance(value, wg.Tensor) else wg.asarray(value)
    earlier = [self] if isinstance(self, Data) else _aliases(self)
    if earlier:
        left = _Left(self._array)
        if hasattr(self, "_shown"):
            left._shown = self._shown
        for alias in earlier:
            alias._of = left
    alike = value.shape == self.shape and value.dtype is self.dtype
    anew = self.requires_grad and self.is_leaf and not alike
    if anew:
        self.requires_grad = False
    if observing:
        tell("assigned", self, value)
    self._array = value._array
    show(self, value, same, {})  # in PyTorch the two share memory now
    if isinstance(value, Data) and type(value._of) is _Left:
        for alias in _aliases(value._of):
            alias._of = self
    if anew:
        self.requires_grad = True


# -- indexing --------------------------------------------------------------------------------------


def _numbers_first(x: wg.Tensor, key: Any) -> tuple[Any, Any] | None:
    """The numbers of an index that has arrays too, as an index, and what is left; else None.

    NumPy counts such numbers as arrays, and so puts the arrays' axes elsewhere.
    """
    if type(key) is not tuple or all(type(part) in (int, slice) for part in key):
        return None
    parts, arrays = parse_key(x, key)
    numbers: list[Any] = []
    rest, arrays = [], arrays[::-1]
    for part in parts:
        one: Any = arrays.pop() if part == SLOT else part
        mask = isinstance(one, wg.Tensor) and one.dtype is wg.bool
        if type(one) is int or (isinstance(one, wg.Tensor) and not one.ndim and not mask):
            numbers.append(one)
        else:
            rest.append(one)
            axes = one.ndim if mask else one is not None
            numbers += [... if one is Ellipsis else slice(None)] * axes
    mixed = len(rest) < len(parts) and any(isinstance(p, wg.Tensor) for p in rest)
    return (tuple(numbers), tuple(rest)) if mixed else None


def _masks(key: Any) -> Any:
    """An index in which Tensors of dtype uint8 are masks, as in PyTorch."""
    if type(key) is tuple:
        return tuple(map(_masks, key))
    return key.bool() if isinstance(key, wg.Tensor) and key.dtype is wg.uint8 else key


def _getitem(self: wg.Tensor, key: Any) -> wg.Tensor:
    apart = _numbers_first(self, key := _masks(key))
    return getitem(self, key) if apart is None else getitem(getitem(self, apart[0]), apart[1])


def _setitem(self: wg.Tensor, key: Any, value: Any) -> None:
    if (apart := _numbers_first(self, key := _masks(key))) is not None:
        key, value = apart[0], replace(getitem(self, apart[0]), apart[1], value)
    setitem(self, key, value)


# -- in place --------------------------------------------------------------------------------------


def _in_place(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]

    @wraps(function)
    def change(self: wg.Tensor, *args: Any, **options: Any) -> Any:
        result = function(self, *args, **options)
        kinds = {one.dtype.kind.removeprefix("un") for one in (result, self)}
        same_kind = len(kinds) == 1 or "bool" in kinds  # others are refused by `assign`
        return assign(self, wg.astype(result, self.dtype, copy=False) if same_kind else result)

    return change


def _reshaping(name: str) -> Callable[..., Any]:
    return lambda self, *args, **options: become(self, FUNCTIONS[name](self, *args, **options))


def become(self: wg.Tensor, result: wg.Tensor) -> wg.Tensor:
    """Let a Tensor take over the value and the node of another, of any shape."""
    if self.requires_grad and self.is_leaf and recording():
        raise RuntimeError(IN_PLACE_ON_LEAF)
    if observing:
        tell("assigned", self, result)
    self._array, self._node = result._array, result._node
    if hasattr(result, "_shown"):
        self._shown = result._shown
    return self


def _drawing(draw: Callable[..., Any]) -> Any:
    def fill(self: Any, *args: Any, **named: Any) -> Any:
        options = {{"from": "low", "to": "high"}.get(key, key): v for key, v in named.items()}
        where = {"size": self.shape, "dtype": self.dtype, "device": self.device}
        return self.copy_(draw(*args, **where, **options))

    return with_generator(fill)


def _integers(low: int = 0, high: int | None = None, *, size: Any, dtype: Any, device: Any) -> Any:
    if high is None:
        most = 2**24 if dtype.inexact else 2 ** (8 * dtype.itemsize - 1)
        low, high = (0, low) if low else (0, most)
    return wg.astype(wg.randint(low, high, size, device=device), dtype)


def as_dtype(dtype: Any) -> Any:
    """The dtype that PyTorch's words and classes name: ``"torch.FloatTensor"`` is float32."""
    if isinstance(dtype, str):
        name = dtype.rpartition(".")[2]
        return LEGACY[name].dtype if name in LEGACY else DTYPES.get(name, dtype)
    return getattr(dtype, "dtype", dtype) if isinstance(dtype, type) else dtype


def _type(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    if dtype is None:
        name = next(n for n, kind in LEGACY.items() if kind.__dict__.get("dtype") is self.dtype)
        return f"torch.{'cuda.' if self.is_cuda else ''}{name}"
    return wg.astype(self, as_dtype(dtype), copy=False)


def _to(core: Any) -> Any:
    def to(
        self: Any, *where: Any, non_blocking: Any = None, memory_format: Any = None, **options: Any
    ) -> Any:
        return core(self, *(w for w in where if not isinstance(w, bool)), **options)

    return give_signature(to, core, "non_blocking", "memory_format")


def _cast(dtype: Any) -> Callable[..., Any]:
    return lambda self: wg.astype(self, dtype, copy=False)


def _cuda(self: Any, device: Any = "cuda", non_blocking: bool = False) -> Any:
    return self.to(f"cuda:{device}" if isinstance(device, int) else device or "cuda")


def _new(function: str) -> Callable[..., Any]:
    def new(self: Any, *size: Any, dtype: Any = None, device: Any = None, **more: Any) -> Any:
        where, kind = self.device if device is None else device, dtype or self.dtype
        return FUNCTIONS[function](*size, dtype=kind, device=where, **more)

    return new


def _detach(self: Any) -> Any:
    return self.requires_grad_(False) if self.is_leaf else become(self, self.detach())


def _format(self: Any, spec: str) -> str:
    whole = self.ndim or is_lifted(self._array)
    return object.__format__(self, spec) if whole else format(self.item(), spec)


def _copy(self: Any) -> Any:
    """``copy.copy(x)``, a view as in PyTorch."""
    alias = self.detach()
    if isinstance(self, Parameter):
        return type(self)(alias, self.requires_grad)
    return alias.requires_grad_(self.requires_grad)


_same = lambda self, *args, **options: self
in_rows = partial(np.asarray, order="C")
_core = dict(vars(wg.Tensor))
#: What PyTorch's Tensors have, by name: made once, of the core's own attributes.
ATTRIBUTES: dict[str, Any] = {
    **{n: FUNCTIONS[n] for n in FUNCTIONS.keys() - NO_METHODS - {*_NO_METHODS.split()}},
    **{f"{name}_": _in_place(name) for name in _IN_PLACE.split()},
    **{f"{name}_": _reshaping(name) for name in _RESHAPES.split()},
    **{f"new_{name}": _new(name) for name in ("empty", "full", "ones", "tensor", "zeros")},
    **{n: _cast(d) for n, d in members(wg, "bfloat16 byte=uint8 char=int8 short=int16")},
    **dict.fromkeys(("pin_memory", "share_memory_"), _same),
    **dict.fromkeys(("H", "mH"), property(lambda self: self.mT.conj())),
    "__copy__": _copy,
    "__format__": _format,
    "__getitem__": _getitem,
    "__pos__": FUNCTIONS["positive"],
    "__setitem__": _setitem,
    "bernoulli_": lambda self, p=0.5, *, generator=None: self.copy_(
        self.bernoulli(p, generator=generator)
    ),
    "contiguous": lambda self, memory_format=None: laid_out(self, in_rows),
    "cuda": _cuda,
    "data": property(_data, _set_data),
    "detach_": _detach,
    "device": property(lambda self: device(_core["device"].fget(self))),
    "is_contiguous": lambda self: True,
    "is_cuda": property(lambda self: self.device.type == "cuda"),
    "new": lambda self, *data: wg.astype(LEGACY["Tensor"](*data), self.dtype, copy=False),
    "normal_": _drawing(wg.normal),
    "random_": _drawing(_integers),
    "repeat": lambda self, *repeats: wg.tile(self, lengths(repeats)),
    "size": property(_Count),
    "to": _to(_core["to"]),
    "type": _type,
    "uniform_": _drawing(wg.uniform),
    "where": lambda self, condition, other: wg.where(condition, self, other),
}


def install() -> None:
    """Give all Tensors of this process PyTorch's meanings; a lost write to a view is an error."""
    own = {n for n, attribute in ATTRIBUTES.items() if callable(attribute)} - FUNCTIONS.keys()
    give("wengert.torch", ATTRIBUTES | {n: name_of_torch(n, ATTRIBUTES[n]) for n in own})
    tape_aliases.lost_writes_raise = True
    State.state_dict = _state_dict  # type: ignore[method-assign]
