"""NumPy's methods and attributes, which importing `wengert.numpy` gives to all Tensors."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import wengert as wg
from wengert.numpy.filling import read, write
from wengert.numpy.functions import TABLE, array
from wengert.numpy.naming import ARRAYS, door, transpose
from wengert.ops import indexing
from wengert.ops.operators import GIVEN, OWN, give
from wengert.tape import aliases
from wengert.tape.grad_mode import recording
from wengert.tape.node import AccumulateGrad
from wengert.tape.tensor import Tensor, assign

_METHODS = (
    "argmax argmin argpartition argsort choose clip cumprod cumsum diagonal max mean min nonzero "
    "prod ravel repeat round searchsorted squeeze std sum swapaxes take trace var"
)
#: Operators that change an array in place, and give a new number.
_IN_PLACE = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"


class _Flat:
    """``x.flat``: the elements in a row, to be read and written."""

    def __init__(self, x: Tensor) -> None:
        self._x = x

    def __getitem__(self, key: Any) -> Any:
        return read(wg.reshape(self._x, (-1,)).clone(), key)

    def __setitem__(self, key: Any, value: Any) -> None:
        flat = indexing.replace(wg.reshape(self._x, (-1,)), key, value)
        assign(self._x, wg.reshape(flat, self._x.shape), value)


def _changes(x: Tensor) -> bool:
    """Whether a Tensor stands for an array, which changes in place, and not for a number."""
    return bool(x.ndim) or ARRAYS.get(id(x)) is x


def _number(name: str) -> Callable[..., Any]:
    """An operator in place: NumPy's numbers do not change, so that ``s += x`` gives another one."""
    change, compute = OWN[f"__i{name}__"], OWN[f"__{name}__"]

    def operate(self: Tensor, other: Any, /) -> Any:
        step = type(self._node) is AccumulateGrad and not recording()  # an optimiser's
        if _changes(self) or step or hasattr(self, "_shown"):
            return change(self, other)
        if len(GIVEN) > 1:
            raise TypeError(
                "a Tensor without axes changes in place in PyTorch, and in NumPy is a number that "
                "does not: write s = s + x for s += x"
            )
        return compute(self, other)

    return operate


_in_place: Any = lambda name: lambda x, *args, **more: assign(x, TABLE[name](x, *args, **more))


def _python(kind: type) -> Callable[[Any], Any]:
    def convert(self: Tensor) -> Any:
        if self.dtype.inexact and self.requires_grad and recording():
            raise TypeError(
                f"{kind.__name__}(x) of a tracked Tensor loses its derivative, also in a[i] = x of "
                "NumPy's own a: take a = np.array(a). Where none is needed, write x.item()"
            )
        return OWN[f"__{kind.__name__}__"](self)

    return convert


def _iter(self: Tensor) -> Iterator[Any]:
    # One element is a number, and no view.
    return (row if row.ndim else delattr(row, "_shown") or row for row in OWN["__iter__"](self))  # type: ignore[func-returns-value, redundant-expr]


def _transpose(self: Tensor, *axes: Any) -> Any:
    order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
    return TABLE["transpose"](self, order)


def _item(self: Tensor, *place: Any) -> Any:
    where = place[0] if len(place) == 1 else place
    if place:
        self = read(self, where) if isinstance(where, tuple) else _Flat(self)[where]
    return OWN["item"](self)


ATTRIBUTES: dict[str, Any] = {
    **{name: door(f"x.{name}", getattr(np, name), TABLE[name]) for name in _METHODS.split()},
    **{f"__i{name}__": _number(name) for name in _IN_PLACE.split()},
    **{f"__{kind.__name__}__": _python(kind) for kind in (complex, float)},
    **{name: _in_place(name) for name in ("partition", "sort")},
    "T": property(transpose),
    "__eq__": lambda self, y: OWN["__eq__"](self, array(y) if type(y) in (list, tuple) else y),
    "__getitem__": read,
    "__iter__": _iter,
    "__ne__": lambda self, y: OWN["__ne__"](self, array(y) if type(y) in (list, tuple) else y),
    "__round__": lambda self, *at: TABLE["round"](self, *at) if at else int(self.round()),
    "__setitem__": write,
    "compress": lambda self, condition, axis=None: self.take(
        np.compress(np.asarray(condition), range(np.size(self, axis))), axis
    ),
    "conj": lambda self: OWN["conj"](self) if self.dtype.complex else self,
    "conjugate": lambda self: self.conj(),
    "copy": lambda self, order="C": array(self) if _changes(self) else self.clone(),
    "fill": lambda self, value: indexing.setitem(self, ..., value),
    "flat": property(_Flat, lambda self, value: _Flat(self).__setitem__(..., value)),
    "flatten": lambda self, order="C": TABLE["ravel"](self, order).clone(),
    "item": _item,
    "itemsize": property(lambda self: self.dtype.itemsize),
    "nbytes": property(lambda self: int(self.size) * self.dtype.itemsize),
    "transpose": _transpose,
}


def install() -> None:
    """Give NumPy's meanings to all Tensors of this process, and make lost writes errors."""
    give("wengert.numpy", ATTRIBUTES)
    aliases.lost_writes_raise = True
    wg.set_default_dtype(wg.float64)
