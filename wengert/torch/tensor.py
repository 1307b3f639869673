"""PyTorch's methods and attributes, which importing `wengert.torch` gives to all Tensors."""

import weakref
from collections.abc import Callable
from typing import Any

import wengert as wg
from wengert.backends.keys import SLOT
from wengert.nn.state import State
from wengert.ops.indexing import getitem, parse_key, replaced, setitem
from wengert.ops.operators import give
from wengert.tape import aliases as tape_aliases
from wengert.tape.grad_mode import recording
from wengert.tape.node import is_lifted
from wengert.tape.observers import observing, tell
from wengert.tape.tensor import IN_PLACE_ON_LEAF, assign
from wengert.tape.views import same, show
from wengert.torch import elementwise, reductions, shapes
from wengert.torch.creation import DTYPES, LEGACY, Size, device, drawing
from wengert.torch.naming import FUNCTIONS, name_of_torch
from wengert.torch.shapes import lengths

_CHAPTERS = (elementwise, reductions, shapes)  # they list their functions
#: The core's own, which gives plain copies.
STATE_DICT = State.state_dict
#: Functions that are no methods, or others as methods.
_NO_METHODS = (
    "arange as_tensor asarray broadcast_tensors can_cast cat cdist concat concatenate "
    "einsum empty empty_like eye finfo from_dlpack from_numpy full full_like get_default_dtype "
    "get_rng_state hstack iinfo imag is_tensor linspace manual_seed meshgrid normal ones "
    "ones_like rand rand_like randint randn randn_like randperm real result_type "
    "set_default_dtype set_rng_state stack tensor tensordot vstack where zeros "
    "zeros_like"
)
#: Functions that PyTorch has in place too.
_IN_PLACE = (
    "abs acos acosh addcdiv addcmul addmm asin asinh atan atanh baddbmm bitwise_and "
    "bitwise_not bitwise_or bitwise_xor ceil clamp clamp_max clamp_min clip copysign cos cosh "
    "cumprod cumsum digamma eq erf erfc erfinv exp exp2 expm1 floor floor_divide fmod ge "
    "gt index_add index_copy index_fill le lerp lgamma log log10 log1p log2 logical_and "
    "logical_not logical_or logical_xor logit lt masked_fill multiply ne neg negative "
    "pow reciprocal relu remainder round rsqrt scatter scatter_add sgn sigmoid sign sin sinh sqrt "
    "square subtract tan tanh tril triu true_divide trunc xlogy"
)
#: Functions that change shapes, and that PyTorch has in place.
_RESHAPES = "squeeze swapaxes swapdims t transpose unsqueeze"


class _Count(int):
    """The number of elements, which can be called for the shape, as PyTorch's ``size``."""

    shape: tuple[int, ...]

    def __call__(self, dim: int | None = None) -> Any:
        return Size(self.shape) if dim is None else self.shape[dim]


def _size(self: wg.Tensor) -> _Count:
    shape = tuple(self.shape)
    count = _Count(Size(shape).numel())
    count.shape = shape
    return count


class _Left(wg.Tensor):
    """What aliases keep of a Tensor whose ``.data`` was set."""

    __slots__ = ()


class Data(wg.Tensor):
    """The values of another Tensor, untracked: what is written here changes that one."""

    __slots__ = ("_of",)

    _of: wg.Tensor

    def __deepcopy__(self, memo: Any) -> Any:
        return self.detach().__deepcopy__(memo)

    def __reduce__(self) -> Any:
        return self.detach().__reduce__()

    @property
    def _array(self) -> Any:
        return self._of._array

    @_array.setter
    def _array(self, array: Any) -> None:
        self._of._array = array

    @property
    def _shown(self) -> Any:
        return self._of._shown

    @_shown.setter
    def _shown(self, shown: Any) -> None:
        self._of._shown = shown


class Snapshot(Data):
    """A value of a ``state_dict()``: a write into it, which PyTorch's module shows, is an error."""

    __slots__ = ()

    def _refuse(self, array: Any) -> None:
        raise RuntimeError(
            "a value of state_dict() is a copy, and the module keeps its own. Write into the "
            "module: `with torch.no_grad(): p.copy_(value)` over its parameters() and buffers(). "
            "Or take a copy to change: value.clone()"
        )

    _array = property(lambda self: self._of._array, _refuse)


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


def _getitem(self: wg.Tensor, key: Any) -> wg.Tensor:
    apart = _numbers_first(self, key)
    return getitem(self, key) if apart is None else getitem(getitem(self, apart[0]), apart[1])


def _setitem(self: wg.Tensor, key: Any, value: Any) -> None:
    if (apart := _numbers_first(self, key)) is not None:
        key, value = apart[0], replaced(getitem(self, apart[0]), apart[1], value)
    setitem(self, key, value)


# -- in place --------------------------------------------------------------------------------------


def _in_place(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]

    def changed(self: wg.Tensor, *args: Any, **options: Any) -> Any:
        result = function(self, *args, **options)
        kinds = {one.dtype.kind.removeprefix("un") for one in (result, self)}
        same_kind = len(kinds) == 1 or "bool" in kinds  # others are refused by `assign`
        return assign(self, wg.astype(result, self.dtype, copy=False) if same_kind else result)

    return changed


def _reshaped(name: str) -> Callable[..., Any]:
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


def _drawn(draw: Any) -> Callable[..., Any]:
    def filled(self: Any, *args: Any, generator: Any = None, **named: Any) -> Any:
        options = {{"from": "low", "to": "high"}.get(key, key): v for key, v in named.items()}
        size, dtype, device = self.shape, self.dtype, self.device
        with drawing(generator):
            return self.copy_(draw(*args, size=size, dtype=dtype, device=device, **options))

    return filled


def _coins(self: Any, p: Any = 0.5, *, generator: Any = None) -> Any:
    return self.copy_(FUNCTIONS["bernoulli"](self, p, generator=generator))


def _integers(low: int = 0, high: int | None = None, *, size: Any, dtype: Any, device: Any) -> Any:
    if high is None:
        most = 2**24 if dtype.inexact else 2 ** (8 * dtype.itemsize - 1)
        low, high = (0, low) if low else (0, most)
    return wg.astype(wg.randint(low, high, size, device=device), dtype)


# -- converting ------------------------------------------------------------------------------------


def as_dtype(dtype: Any) -> Any:
    """The dtype that PyTorch's words and classes name: ``"torch.FloatTensor"`` is float32."""
    if isinstance(dtype, str):
        name = dtype.rpartition(".")[2]
        return LEGACY[name].dtype if name in LEGACY else DTYPES.get(name, dtype)
    return getattr(dtype, "dtype", dtype) if isinstance(dtype, type) else dtype


def _type(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    if dtype is None:
        name = next(n for n, kind in LEGACY.items() if kind.__dict__.get("dtype") is self.dtype)
        return f"torch.{'cuda.' if _is_cuda(self) else ''}{name}"
    return wg.astype(self, as_dtype(dtype), copy=False)


def _to(core: Any) -> Callable[..., Any]:
    def to(
        self: Any,
        *where: Any,
        dtype: Any = None,
        device: Any = None,
        non_blocking: bool = False,
        copy: bool = False,
        memory_format: Any = None,
    ) -> Any:
        where = tuple(w for w in where if not isinstance(w, bool))
        return core(self, *where, dtype=dtype, device=device, copy=copy)

    return to


def _is_cuda(self: Any) -> bool:
    return bool(self.device.type == "cuda")


def _new(function: str) -> Callable[..., Any]:
    def new(self: Any, *size: Any, dtype: Any = None, device: Any = None, **more: Any) -> Any:
        where, kind = self.device if device is None else device, dtype or self.dtype
        return FUNCTIONS[function](*size, dtype=kind, device=where, **more)

    return new


def _same(self: Any, *args: Any, **options: Any) -> Any:
    return self


def _attributes() -> dict[str, Any]:
    core = vars(wg.Tensor)
    own_device = core["device"].fget
    found: dict[str, Any] = {
        name: function for name, function in FUNCTIONS.items() if name not in _NO_METHODS.split()
    }
    found.update({f"{name}_": _in_place(name) for name in _IN_PLACE.split()})
    found.update({f"{name}_": _reshaped(name) for name in _RESHAPES.split()})
    new = ("empty", "full", "ones", "tensor", "zeros")
    found.update({f"new_{name}": _new(name) for name in new})
    transposed = property(lambda self: FUNCTIONS["conj"](wg.matrix_transpose(self)))
    found.update(
        H=transposed,
        __getitem__=_getitem,
        __setitem__=_setitem,
        bernoulli_=_coins,
        bfloat16=lambda self: wg.astype(self, wg.bfloat16, copy=False),
        byte=lambda self: wg.astype(self, wg.uint8, copy=False),
        char=lambda self: wg.astype(self, wg.int8, copy=False),
        contiguous=_same,
        cuda=lambda self, device=None, non_blocking=False: self.to(
            "cuda" if device is None else device if isinstance(device, str) else f"cuda:{device}"
        ),
        data=property(_data, _set_data),
        detach_=lambda self: (
            self.requires_grad_(False) if self.is_leaf else become(self, self.detach())
        ),
        device=property(lambda self: device(own_device(self))),
        get_device=lambda self: self.device.index or (0 if _is_cuda(self) else -1),
        is_contiguous=lambda self: True,
        is_cuda=property(_is_cuda),
        itemsize=property(lambda self: self.dtype.itemsize),
        mH=transposed,
        nbytes=property(lambda self: int(self.size) * self.dtype.itemsize),
        new=lambda self, *data: wg.astype(LEGACY["Tensor"](*data), self.dtype, copy=False),
        normal_=_drawn(wg.normal),
        pin_memory=_same,
        random_=_drawn(_integers),
        repeat=lambda self, *repeats: wg.tile(self, lengths(repeats)),
        resize_=lambda self, *size: become(self, wg.reshape(self, lengths(size))),
        share_memory_=_same,
        short=lambda self: wg.astype(self, wg.int16, copy=False),
        size=property(_size),
        to=_to(core["to"]),
        type=_type,
        uniform_=_drawn(wg.uniform),
        where=lambda self, condition, other: wg.where(condition, self, other),
    )
    own = {name for name, attribute in found.items() if callable(attribute)} - FUNCTIONS.keys()
    return found | {name: name_of_torch(name, found[name]) for name in own}


#: What PyTorch's Tensors have, by name: made once, of the core's own attributes.
ATTRIBUTES = _attributes()


def install() -> None:
    """Give PyTorch's meanings to all Tensors of this process, and make lost writes errors."""
    give("wengert.torch", ATTRIBUTES)
    tape_aliases.lost_writes_raise = True
    State.state_dict = _state_dict  # type: ignore[method-assign]
