"""NumPy's constructors, and its functions of functions."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

import wengert as wg
from wengert.numpy.naming import as_array, as_tensors, holds, passing
from wengert.ops.conversion import laid_out
from wengert.ops.indexing import getitem
from wengert.ops.operands import operands
from wengert.protocols import functions
from wengert.tape.tensor import Tensor, assign

TABLE = functions.TABLE
#: NumPy's functions that make arrays of numbers alone.
_MAKERS = "empty eye fromiter identity indices ones tri zeros"


def array(
    object: Any, dtype: Any = None, *, copy: bool | None = True, order: Any = "K",
    subok: bool = False, ndmin: int = 0, like: Any = None,
) -> Any:  # fmt: skip
    """Make a Tensor of numbers or nested lists, with the derivatives of Tensors in them."""
    if not holds(Tensor, (object,)) or (dtype is not None and np.dtype(dtype) == np.object_):
        return as_tensors(np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin))
    found: Any = wg.asarray(object, dtype=dtype)
    if order in ("C", "F") and not copy:
        found = laid_out(found, lambda one: np.asarray(one, order=order))
    if copy is False and found is not object:
        raise ValueError("copy=False, and this array cannot be made without one: leave copy=")
    found = found.clone() if copy and found is object else found
    missing = ndmin - found.ndim
    found = wg.reshape(found, (1,) * missing + found.shape) if missing > 0 else found
    return found if found is object else as_array(found)


def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: bool | None = None) -> Any:
    """A Tensor or NumPy's array as it is, and anything else as `array` makes it."""
    if isinstance(a, np.ndarray):
        return np.asarray(a, dtype, order, copy=copy)
    return array(a, dtype, copy=copy, order=order)


def require(a: Any, dtype: Any = None, requirements: Any = None) -> Any:
    """``np.require``: a Tensor as it is, or a copy."""
    order: Any = lambda one: np.require(one, None, requirements)
    found = asarray(a, dtype)
    return laid_out(found, order) if isinstance(found, Tensor) else order(found)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> Any:
    """Make a Tensor of one value, or of one that broadcasts; its derivative is kept."""
    return as_array(wg.broadcast_to(array(fill_value, dtype), shape).clone())


def _maker(name: str) -> Callable[..., Any]:
    """NumPy's function that makes arrays, which here are Tensors."""
    theirs = getattr(np, name)
    own, alike = passing(f"np.{name}", theirs), TABLE.get(name)

    @wraps(theirs)
    def make(*args: Any, **keywords: Any) -> Any:
        if alike is None or not (holds(Tensor, args) or holds(Tensor, keywords.values())):
            return as_tensors(own(*args, **keywords))
        return as_array(alike(*map(array, args[:1]), *args[1:], **keywords))

    make.__module__ = __name__
    return make


class _Indexed:
    """``np.mgrid`` and ``np.ogrid``; ``np.r_`` and ``np.c_``, which join what they are given."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not holds(Tensor, parts):
            return self._own[key] if holds(np.ndarray, parts) else as_tensors(self._own[key])
        if any(isinstance(part, str) for part in parts):
            raise TypeError("np.r_ and np.c_ take no directives with Tensors: use np.concatenate")
        arrays = operands(*[np.r_[part] if isinstance(part, slice) else part for part in parts])
        axes, axis = ((1,), 0) if self._own is np.r_ else ((1, 1), -1)
        wide = [x if x.ndim >= len(axes) else wg.reshape(x, (-1, *axes[1:])) for x in arrays]
        return wg.concat(wide, axis=axis)


class vectorize:
    """``np.vectorize``: a function of numbers is called for each place, also of Tensors."""

    def __init__(self, pyfunc: Callable[..., Any], *args: Any, **options: Any) -> None:
        self._own = np.vectorize(pyfunc, *args, **options)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if not holds(Tensor, (*args, *keywords.values())):
            return self._own(*args, **keywords)
        if keywords or self._own.signature or self._own.excluded:
            raise TypeError("np.vectorize takes Tensors by position, and no signature= with them")
        arrays = wg.broadcast_arrays(*operands(*args))
        flat = zip(*[wg.reshape(x, (-1,)) for x in arrays], strict=True)
        found = [self._own.pyfunc(*each) for each in flat]
        parts = list(zip(*found, strict=True)) if isinstance(found[0], tuple) else [found]
        shaped = [wg.reshape(array(list(part)), arrays[0].shape) for part in parts]
        return tuple(shaped) if isinstance(found[0], tuple) else shaped[0]


def shuffle(x: Any) -> None:
    """``np.random.shuffle``; a Tensor keeps its derivatives."""
    order = np.arange(len(x)) if isinstance(x, Tensor) else x
    np.random.shuffle(order)  # noqa: NPY002 -- the state that np.random.seed sets
    if order is not x:
        assign(x, getitem(x, order))


#: What stands for NumPy's functions and objects, beside the tables of `wengert.protocols`.
NAMES: dict[str, Any] = {
    **{name: _maker(name) for name in _MAKERS.split()},
    **{f"{name}_like": _maker(f"{name}_like") for name in ("empty", "full", "ones", "zeros")},
    **{one.__name__: one for one in (array, asarray, full, require, vectorize)},
    "isscalar": lambda x: np.isscalar(x) or (isinstance(x, Tensor) and not x.ndim),
    "copy": lambda a, order="K", subok=False: array(a),
    "asanyarray": asarray,
    "ascontiguousarray": lambda a, dtype=None: asarray(a, dtype, "C"),
    "asfortranarray": lambda a, dtype=None: asarray(a, dtype, "F"),
    **{name: _Indexed(getattr(np, name)) for name in ("c_", "mgrid", "ogrid", "r_")},
}
