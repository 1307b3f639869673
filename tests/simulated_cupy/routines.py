"""What CuPy has compiled: the functions of ``cupy._core``, its kernels, and its reductions.

CuPy's own Python runs above these, so that a function takes, refuses, launches and waits as the
installed version does.
"""

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

from tests.simulated_cupy.arrays import ndarray, view, write
from tests.simulated_cupy.counters import copied, launched
from tests.simulated_cupy.devices import check_resides, current

VERSION = int(cupy.__version__.split(".")[0])

# -- creation ------------------------------------------------------------------------------------


def array(
    obj: Any,
    dtype: Any = None,
    copy: Any = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    blocking: bool = False,
) -> ndarray:
    if subok:
        raise NotImplementedError
    order = "K" if order is None else order
    if isinstance(obj, ndarray):
        return _of_array(obj, dtype, copy, order, ndmin)
    host = np.array(obj, dtype=dtype, ndmin=ndmin)
    if host.dtype.kind not in "biufc" or host.dtype.itemsize > 16:
        raise ValueError(f"Unsupported dtype {host.dtype}")
    if host.size:
        copied("array")
    return ndarray.of(np.array(host, order="C" if order in "KA" else order))


def _of_array(obj: ndarray, dtype: Any, copy: Any, order: str, ndmin: int) -> ndarray:
    dtype = obj.dtype if dtype is None else dtype
    if obj.data.device_id == current():
        made = obj.astype(dtype, order=order, copy=bool(copy))
    else:
        made = obj.copy(order=order).astype(dtype, copy=False)
    if ndmin > made.ndim:
        made = made.reshape((1,) * (ndmin - made.ndim) + made.shape)
    return made


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    if a.flags.c_contiguous and (dtype is None or a.dtype == dtype):
        return a
    return a.astype(a.dtype if dtype is None else dtype, order="C")


def from_dlpack(x: Any, **options: Any) -> ndarray:
    if VERSION < 14 and options:
        raise TypeError(f"from_dlpack() got an unexpected keyword argument {next(iter(options))!r}")
    if isinstance(x, ndarray):
        return view(x, x._host)
    raise BufferError(f"the simulation has no memory of a GPU that {type(x)} could share")


# -- shapes --------------------------------------------------------------------------------------


def broadcast_to(a: ndarray, shape: Any) -> ndarray:
    return view(a, np.broadcast_to(a._host, shape))


class broadcast:
    """``cupy.broadcast``."""

    def __init__(self, *arrays: Any) -> None:
        self.shape = np.broadcast_shapes(*[getattr(a, "shape", ()) for a in arrays])
        self.nd = len(self.shape)
        self.size = int(np.prod(self.shape))
        self.values = tuple(
            broadcast_to(a, self.shape) if isinstance(a, ndarray) else a for a in arrays
        )


def moveaxis(a: ndarray, source: Any, destination: Any) -> ndarray:
    return view(a, np.moveaxis(a._host, source, destination))


def expand_dims(a: ndarray, axis: Any) -> ndarray:
    return view(a, np.expand_dims(a._host, axis))


def strides_for_order_k(x: ndarray, dtype: Any, shape: Any = None) -> Any:
    """Strides that keep the order of an array's axes."""
    order = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
    strides, step = [0] * x.ndim, np.dtype(dtype).itemsize
    for axis in reversed(order):
        strides[axis] = step
        step *= (x.shape if shape is None else shape)[axis]
    return tuple(strides)


def concatenate(
    tup: Any, axis: int, out: Any = None, dtype: Any = None, casting: str = "same_kind"
) -> ndarray:
    for a in tup:
        if not isinstance(a, ndarray):
            raise TypeError(f"Only cupy arrays can be concatenated, not {type(a)}")
        check_resides("concatenate", a.data.device_id)
    if not tup:
        raise ValueError("Cannot concatenate from empty tuple")
    if any(not a.ndim for a in tup):
        raise TypeError("zero-dimensional arrays cannot be concatenated")
    made = np.concatenate([a._host for a in tup], axis, dtype=dtype, casting=casting)
    launched("concatenate", len(tup))  # small arrays alike take one
    return write(made, out)


# -- products ------------------------------------------------------------------------------------


def _product(function: Callable[..., Any]) -> Callable[..., ndarray]:
    def product(a: ndarray, b: ndarray, out: Any = None) -> ndarray:
        for x in (a, b):
            if not isinstance(x, ndarray):
                raise TypeError(f"Argument has incorrect type (got {type(x).__name__})")
            check_resides(function.__name__, x.data.device_id)
        with np.errstate(all="ignore"):
            made = np.asarray(function(a._host, b._host))
        launched(function.__name__)
        return write(made, out)

    return product


dot, matmul = _product(np.dot), _product(np.matmul)


def tensordot_core(
    a: ndarray, b: ndarray, out: Any, n: int, m: int, k: int, ret_shape: Any
) -> ndarray:
    for x in (a, b):
        check_resides("tensordot", x.data.device_id)
    launched("tensordot")
    if not a.size or not b.size:
        made = np.zeros(ret_shape, np.promote_types(a.dtype, b.dtype))
    else:
        made = (a._host.reshape(k, n).T @ b._host.reshape(k, m)).reshape(ret_shape)
    return write(made, out)


def scan_core(a: Any, axis: Any, op: Any, dtype: Any = None, out: Any = None) -> ndarray:
    """Cumulative sums and products."""
    if not isinstance(a, ndarray):
        raise TypeError(f"Argument 'a' has incorrect type (got {type(a).__name__})")
    if op == cupy._core._routines_math.scan_op.SCAN_SUM:
        return a.cumsum(axis, dtype, out)
    return a.cumprod(axis, dtype, out)


# -- kernels -------------------------------------------------------------------------------------


def _searchsorted(x: Any, bins: Any, number: Any, right: Any, increasing: Any, y: Any) -> None:
    y._host[...] = np.searchsorted(bins._host, x._host, "right" if right else "left")


def _exists(x: Any, bins: Any, number: Any, invert: Any) -> Any:
    return ndarray.of(np.isin(x._host, bins._host, invert=bool(invert)))


def _tri(m: Any, k: Any, out: Any) -> Any:
    out._host[...] = np.tri(*out.shape, k, dtype=out.dtype)
    return out


def _kernels() -> dict[str, Callable[..., Any]]:
    return {
        "cupy_exists_kernel": _exists,
        "cupy_searchsorted_kernel": _searchsorted,
        "cupy_tri": _tri,
        "dot_product": lambda a, b, **k: ndarray.of(np.sum(a._host * b._host, k.get("axis"))),
    }


class Kernel:
    """An ``ElementwiseKernel`` or ``ReductionKernel`` of CuPy's own Python."""

    def __init__(self, real: Any) -> None:
        self.name = self.__name__ = real.name
        self._function = _kernels().get(real.name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._function is None:
            raise NotImplementedError(f"the simulation has no kernel {self.name}")
        for x in args:
            if isinstance(x, ndarray):
                check_resides(self.name, x.data.device_id)
            elif isinstance(x, np.ndarray):
                raise TypeError(f"Unsupported type {type(x)}")
        launched(self.name)
        with np.errstate(all="ignore"):
            return self._function(*args, **kwargs)


def _norm(x: np.ndarray, axis: Any, keepdims: bool) -> Any:
    return np.sum(np.abs(x) ** 2, axis=axis, keepdims=keepdims) ** 0.5


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "cupy_count_nonzero": lambda x, axis, keepdims: np.count_nonzero(x, axis, keepdims=keepdims),
    "cupy_nanmax": lambda x, axis, keepdims: np.nanmax(x, axis, keepdims=keepdims),
    "cupy_nanmin": lambda x, axis, keepdims: np.nanmin(x, axis, keepdims=keepdims),
    "_norm_ord2": _norm,
    "_norm_ord2_complex": _norm,
}


class Reduction:
    """What ``cupy._core.create_reduction_func`` makes."""

    def __init__(self, real: Any) -> None:
        self.name = self.__name__ = real.name
        self._function = _REDUCTIONS.get(real.name)
        self._ops, self.identity = real._ops, real.identity

    def __call__(
        self, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        if self._function is None:
            raise NotImplementedError(f"the simulation has no reduction {self.name}")
        if not isinstance(a, ndarray):
            raise TypeError(f"Unsupported type {type(a)}")
        check_resides(self.name, a.data.device_id)
        launched(self.name)
        with np.errstate(all="ignore"):
            made = ndarray.of(self._function(a._host, axis, keepdims))
        if out is None:
            return made if dtype is None else made.astype(dtype, copy=False)
        out._host[...] = made._host
        return out
