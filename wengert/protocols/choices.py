"""NumPy's choices of elements by places, conditions and functions, and its writes, on Tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.interpreters.namespaces import differentiable as xp
from wengert.ops.indexing import getitem, replace, setitem
from wengert.ops.operands import operands
from wengert.protocols import UnsupportedError
from wengert.protocols.fitting import values
from wengert.protocols.translation import refuse
from wengert.tape.tensor import Tensor

__all__ = ["TABLE"]


def choose(a: Any, choices: Any, *, mode: Any = "raise") -> Tensor:
    """``np.choose``: for each place, the element of one of some arrays."""
    if isinstance(a, Tensor) and "integer" in a.dtype.kind and mode in ("clip", "wrap"):
        *arrays, at = xp.broadcast_arrays(*operands(*choices, a))
        n = len(arrays)  # every index is valid: none is read
        at = xp.clip(at, 0, n - 1) if mode == "clip" else xp.remainder(at, n)
        return xp.take_along_axis(xp.stack(arrays), xp.expand_dims(at, axis=0), axis=0)[0]  # type: ignore[no-any-return]
    *arrays, chosen = xp.broadcast_arrays(*operands(*choices, values(a)))
    whole = xp.stack(arrays)
    places = np.choose(values(chosen), [*np.arange(whole.size).reshape(whole.shape)], mode=mode)
    return getitem(xp.reshape(whole, (-1,)), places)


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
            result = replace(result, mask, value)
    return result  # type: ignore[no-any-return]


def resize(a: Any, new_shape: Any) -> Tensor:
    """``np.resize``, which repeats the elements."""
    flat = xp.reshape(*operands(a), (-1,))
    if not flat.size:
        return xp.broadcast_to(xp.sum(flat, dtype=flat.dtype), np.empty(new_shape).shape)  # type: ignore[no-any-return]
    return getitem(flat, np.resize(np.arange(flat.size), new_shape))


def real_if_close(a: Any, tol: float = 100) -> Tensor:
    """``np.real_if_close``."""
    (x,) = operands(a)
    close = x.dtype.kind != "complex floating" or np.isrealobj(np.real_if_close(values(x), tol))
    return xp.real(x) if close else x


def _partial(function: Any) -> Callable[..., Tensor]:
    """``np.partition`` and ``np.argpartition``: wholly sorted, which is a partition too."""

    def call(a: Any, kth: Any, axis: int | None = -1) -> Tensor:
        (x,) = operands(a)
        np.zeros(x.shape).partition(values(kth).tolist(), -1 if axis is None else axis)  # errors
        return function(x, axis=axis) if axis is not None else function(xp.reshape(x, (-1,)))  # type: ignore[no-any-return]

    return call


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
    "argpartition": _partial(xp.argsort),
    "choose": choose,
    "copyto": _copyto,
    "fill_diagonal": _fill_diagonal,
    "partition": _partial(xp.sort),
    "piecewise": piecewise,
    "real_if_close": real_if_close,
    "resize": resize,
}
