"""NumPy's choices of elements by places, conditions and functions, and its writes, on Tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.interpreters.namespaces import differentiable as xp
from wengert.ops.indexing import getitem, replaced, setitem
from wengert.ops.operands import operands
from wengert.protocols import UnsupportedError
from wengert.protocols.fitting import values
from wengert.protocols.translation import refuse
from wengert.tape.tensor import Tensor

__all__ = ["TABLE"]


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **keywords: Any) -> Tensor:
    """``np.piecewise``: each function sees the elements of its condition alone."""
    (t,) = operands(x)
    single = not isinstance(condlist, list | tuple) or (np.ndim(condlist[0]) == 0 and t.ndim)
    masks = [values(one).astype(bool) for one in ([condlist] if single else condlist)]
    if len(funclist) == len(masks) + 1:
        masks.append(~np.any(masks, axis=0))
    if len(funclist) != len(masks):
        raise ValueError(f"{len(funclist)} functions for {len(masks)} conditions")
    result = xp.zeros_like(t)
    for mask, function in zip(masks, funclist, strict=True):
        if mask.any():
            value = function(t[mask], *args, **keywords) if callable(function) else function
            result = replaced(result, mask, value)
    return result  # type: ignore[no-any-return]


def resize(a: Any, new_shape: Any) -> Tensor:
    """``np.resize``, which repeats the elements."""
    flat = xp.reshape(*operands(a), (-1,))
    return getitem(flat, np.resize(np.arange(flat.size), new_shape))


# -- writes ----------------------------------------------------------------------------------------


def _target(a: Any) -> None:
    if not isinstance(a, Tensor):
        raise UnsupportedError(f"a {type(a).__name__} is not tracked: write into a Tensor")


def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    _target(dst)
    refuse({"casting": casting})
    value = xp.broadcast_to(operands(dst, src)[1], dst.shape)
    if where is True:
        setitem(dst, ..., value)
    else:
        mask = np.broadcast_to(values(where), dst.shape)
        setitem(dst, mask, getitem(value, mask))


def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    _target(a)
    if a.ndim < 2 or wrap or (a.ndim > 2 and len(set(a.shape)) > 1):
        raise UnsupportedError("a matrix is taken, or more axes of one length, and no wrap=True")
    places = np.arange(min(a.shape))
    setitem(a, (places,) * a.ndim, resize(operands(a, val)[1], places.shape))


#: NumPy's name to its counterpart.
TABLE: dict[str, Callable[..., Any]] = {
    "copyto": _copyto,
    "fill_diagonal": _fill_diagonal,
    "piecewise": piecewise,
    "resize": resize,
}
