"""``cupy.ndarray``: NumPy's array, on a device, with CuPy's methods, signatures and refusals."""

import functools
import warnings
from operator import attrgetter
from typing import Any

import cupy
import numpy as np

from tests.simulated_cupy.counters import copied, launched, synchronised
from tests.simulated_cupy.devices import Device, Memory, check_resides, current
from tests.simulated_cupy.operators import Operators
from tests.simulated_cupy.reductions import computed

RELEASE = tuple(int(number) for number in cupy.__version__.split(".")[:2])
VERSION = RELEASE[0]


class Flags:
    """``ndarray.flags``."""

    def __init__(self, host: np.ndarray, owndata: bool) -> None:
        self.c_contiguous = host.flags.c_contiguous
        self.f_contiguous = host.flags.f_contiguous
        self.owndata = owndata
        self.fnc = self.f_contiguous and not self.c_contiguous
        self.forc = self.f_contiguous or self.c_contiguous

    def __getitem__(self, name: str) -> bool:
        return getattr(self, name.lower())


def _on_host(function: Any) -> Any:
    return lambda self, *args: function(self.get(), *args)


def _view_of(name: str) -> Any:
    return lambda self, *args, **named: view(self, getattr(self._host, name)(*args, **named))


def _extreme(name: str) -> Any:
    def method(self: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        return self._call(name, axis, keepdims=keepdims, out=out)

    return method


def _place(name: str) -> Any:
    def method(
        self: Any, axis: Any = None, out: Any = None, dtype: Any = None, keepdims: bool = False
    ) -> Any:
        return self._call(name, axis, keepdims=keepdims, out=out)

    return method


def _running(name: str) -> Any:
    def method(self: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        return self._call(name, axis, dtype, out=out, launches=2)

    return method


def _deviation(name: str) -> Any:
    def method(
        self: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: int = 0,
        keepdims: bool = False,
    ) -> Any:
        launches = 2 if name == "var" else 3
        return self._call(
            name, axis, dtype, None, ddof, keepdims=keepdims, out=out, launches=launches
        )

    return method


class ndarray(Operators):
    """``cupy.ndarray``. ``_host`` has its elements, and ``base`` whose memory it is."""

    __slots__ = ("__weakref__", "_device_id", "_host", "base")

    def __init__(
        self,
        shape: Any,
        dtype: Any = float,
        memptr: Any = None,
        strides: Any = None,
        order: str = "C",
    ) -> None:
        dtype = np.dtype(dtype)
        if dtype.kind not in "biufc" or dtype.itemsize > 16:
            raise ValueError(f"Unsupported dtype {dtype}")
        if strides is not None:
            if memptr is None:
                raise ValueError("memptr is required if strides is given.")
            shape = tuple(np.atleast_1d(shape)) if np.isscalar(shape) else tuple(shape)
            host = memptr._host
            if host.flags.forc or host.dtype != dtype:
                self._host = np.ndarray(shape, dtype, host, strides=strides)
            else:  # NumPy takes no such array for memory
                self._host = np.lib.stride_tricks.as_strided(host, shape, strides)
        else:
            self._host = np.empty(shape, dtype, order or "C")
            if dtype.kind in "fc":
                self._host.fill(np.nan)  # what reads memory that nothing wrote shows it
        self._device_id = current()
        self.base = None

    @staticmethod
    def of(host: Any, device_id: int | None = None) -> "ndarray":
        """The array with these elements, on this thread's device."""
        return ndarray.at(host, current() if device_id is None else device_id)

    @staticmethod
    def at(host: Any, device_id: int) -> "ndarray":
        """An array in this memory."""
        made = object.__new__(ndarray)
        made._host, made._device_id = np.asarray(host), device_id
        made.base = None
        return made

    # -- what it is ------------------------------------------------------------------------------

    shape = property(lambda self: self._host.shape)
    strides = property(lambda self: self._host.strides)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    dtype = property(lambda self: self._host.dtype)
    itemsize, nbytes = (property(attrgetter(f"_host.{name}")) for name in ("itemsize", "nbytes"))
    flags = property(lambda self: Flags(self._host, self.base is None))
    device = property(lambda self: Device(self._device_id))
    data = property(lambda self: Memory(self._host, self._device_id))
    T = property(lambda self: view(self, self._host.T))
    if VERSION >= 14:
        mT = property(lambda self: view(self, self._host.mT))

    @property
    def real(self) -> "ndarray":
        return view(self, self._host.real) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        cupy._core.elementwise_copy(value, self.real)

    @property
    def imag(self) -> "ndarray":
        return view(self, self._host.imag) if self.dtype.kind == "c" else cupy.zeros_like(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError("cannot set imaginary part of a real array")
        cupy._core.elementwise_copy(value, self.imag)

    def _set_shape_and_strides(self, shape: Any, strides: Any, *update: Any) -> None:
        whole = self._host if self._host.flags.c_contiguous else self._host.base
        self._host = np.lib.stride_tricks.as_strided(whole, shape, strides)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": self.dtype.str, "version": 3}

    def __len__(self) -> int:
        return len(self._host)

    def __iter__(self) -> Any:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    # -- to the host -----------------------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct "
            "a NumPy array explicitly."
        )

    def get(
        self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True
    ) -> np.ndarray:
        copied("get")
        if blocking:
            synchronised("get")
        host = np.array(self._host, order=order)
        if out is None:
            return host
        out[...] = host
        return out

    item, tolist, tobytes = map(_on_host, (np.ndarray.item, np.ndarray.tolist, np.ndarray.tobytes))
    __int__, __float__, __complex__ = map(_on_host, (int, float, complex))
    __repr__, __str__, __format__ = map(_on_host, (repr, str, format))

    def __bool__(self) -> bool:
        if not self.size:
            warnings.warn(
                "The truth value of an empty array is ambiguous. Returning False, but in future "
                "this will result in an error. Use `array.size > 0` to check that an array is not "
                "empty.",
                DeprecationWarning,
                stacklevel=2,
            )
            return False
        if self.size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() "
                "or a.all()"
            )
        return bool(self.get())

    def __reduce__(self) -> Any:
        return cupy.array, (self.get(),)

    # -- copies and views ------------------------------------------------------------------------

    def copy(self, order: str = "C") -> "ndarray":
        if not self.size or self._device_id == current():
            return self.astype(self.dtype, order=order)
        with self.device:
            there = self.astype(self.dtype, order=order, copy=False)
        if not there.flags.forc:
            raise NotImplementedError("CuPy cannot copy non-contiguous array between devices.")
        launched("copy between devices")
        return ndarray.of(there._host.copy("K"))

    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: Any = None,
        subok: Any = None,
        copy: bool = True,
    ) -> "ndarray":
        if VERSION < 14 and casting is not None:
            raise TypeError("casting is not supported yet")
        if subok is not None:
            raise TypeError("subok is not supported yet")
        dtype = np.dtype(dtype)
        as_it_is = order in ("K", "A", None) or getattr(self.flags, f"{order.lower()}_contiguous")
        if dtype == self.dtype and not copy and as_it_is:
            return self
        out = ndarray.of(np.empty_like(self._host, dtype, order or "K", subok=False))
        if self.size:
            cupy._core.elementwise_copy(self, out)
        return out

    def fill(self, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.shape != ():
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        if isinstance(value, np.ndarray):
            value = value.item()
        if self.size:
            cupy._core.elementwise_copy(value, self)

    def view(self, dtype: Any = None, type: Any = None) -> "ndarray":
        return view(self, self._host if dtype is None else self._host.view(dtype))

    def reshape(self, *shape: Any, order: str = "C", **copy: Any) -> "ndarray":
        if copy and (RELEASE < (14, 2) or set(copy) != {"copy"}):
            raise TypeError(f"reshape() got an unexpected keyword argument {next(iter(copy))!r}")
        if len(shape) == 1 and not isinstance(shape[0], int | np.integer):
            shape = tuple(shape[0])
        if any(isinstance(n, ndarray) for n in shape) and VERSION < 14:
            raise TypeError("'ndarray' object cannot be interpreted as an integer")
        made = self._host.reshape(shape, order=order, **copy)
        if made.size and not np.shares_memory(made, self._host):
            check_resides("reshape", self._device_id)
            launched("copy")
            return ndarray.of(made)
        return view(self, made)

    def ravel(self, order: str = "C") -> "ndarray":
        return self.reshape(-1) if order in ("C", "K", "A") else self.T.reshape(-1)

    def flatten(self, order: str = "C") -> "ndarray":
        return self.copy(order).reshape(-1, order=order)

    transpose, swapaxes, squeeze = map(_view_of, ("transpose", "swapaxes", "squeeze"))

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> "ndarray":
        host = np.moveaxis(self._host, (axis1, axis2), (-2, -1))
        host = host[..., :, offset:] if offset >= 0 else host[..., -offset:, :]
        size = min(host.shape[-2:])
        strides = (*host.strides[:-2], sum(host.strides[-2:]))
        along = np.lib.stride_tricks.as_strided(host, (*host.shape[:-2], size), strides)
        return view(self, along)

    def conj(self) -> "ndarray":
        return cupy.conjugate(self) if self.dtype.kind == "c" else self

    conjugate = conj

    # -- keys ------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> "ndarray":
        return _keys().getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _keys().setitem(self, key, value)

    def take(self, indices: Any, axis: Any = None, out: Any = None) -> "ndarray":
        return _keys().take(self, indices, axis, out)

    # -- results of the library ------------------------------------------------------------------

    def _call(
        self, name: str, *args: Any, launches: int = 1, out: Any = None, **kwargs: Any
    ) -> Any:
        """NumPy's method of that name, as a launch of this device."""
        check_resides(name, self._device_id)
        with np.errstate(all="ignore"):
            made = computed(self._host, name, *args, **kwargs)
        launched(name, launches)
        if out is not None:
            check_resides(name, out._device_id)
            if out.shape != np.shape(made):
                raise ValueError(f"Out shape is mismatched: {out.shape} for {np.shape(made)}")
        return write(made, out)

    def sum(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> "ndarray":
        if self.dtype == "e" and dtype in (None, np.float16) and out is None:  # added in float32
            return self._call("sum", axis, np.float32, keepdims=keepdims).astype(np.float16)
        return self._call("sum", axis, dtype, keepdims=keepdims, out=out)

    def prod(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = None
    ) -> "ndarray":
        return self._call("prod", axis, dtype, keepdims=bool(keepdims), out=out)

    max, min, all, any = map(_extreme, ("max", "min", "all", "any"))
    argmax, argmin = map(_place, ("argmax", "argmin"))
    cumsum, cumprod = map(_running, ("cumsum", "cumprod"))
    var, std = map(_deviation, ("var", "std"))

    def mean(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> "ndarray":
        return self._call("mean", axis, dtype, keepdims=keepdims, out=out)

    def repeat(self, repeats: Any, axis: Any = None) -> "ndarray":
        if isinstance(repeats, ndarray):
            raise ValueError("cupy.ndaray cannot be specified as `repeats` argument.")  # noqa: TRY004 -- as CuPy
        return self._call("repeat", repeats, axis)

    def round(self, decimals: int = 0, out: Any = None) -> "ndarray":
        return cupy._core.core._round_ufunc(self, decimals, out=out)

    def sort(self, axis: int = -1, **kind: Any) -> None:
        _only_kind(kind)
        check_resides("sort", self._device_id)
        launched("sort")
        self._host.sort(axis, kind="stable")

    def argsort(self, axis: Any = -1, **kind: Any) -> "ndarray":
        _only_kind(kind)
        host = self._host.reshape(-1) if axis is None else self._host
        made = ndarray.of(host, self._device_id)
        return made._call("argsort", -1 if axis is None else axis, kind="stable")

    def nonzero(self) -> tuple["ndarray", ...]:
        if not self.ndim:
            raise ValueError(
                "Calling nonzero on 0d arrays is not allowed. Use cp.atleast_1d(scalar).nonzero() "
                "instead."
            )
        check_resides("nonzero", self._device_id)
        launched("nonzero", 2)
        synchronised("nonzero")
        return tuple(map(ndarray.of, self._host.nonzero()))

    # -- protocols -------------------------------------------------------------------------------

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self._device_id

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: Any = None,
    ) -> Any:
        if dl_device is not None and int(dl_device[0]) == 1:
            return self.get().__dlpack__(max_version=max_version)
        raise BufferError("the simulation has no memory of a GPU to give to another library")

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from cupyx.scipy import special

        inout = inputs
        if "out" in kwargs:
            (kwargs["out"],) = kwargs["out"]
            inout = (*inputs, kwargs["out"])
        try:
            name = function.__name__
            found = getattr(cupy, name, None) or getattr(special, name)
            found = found if method == "__call__" else getattr(found, method)
        except AttributeError:
            return NotImplemented
        plain = (bool, int, float, complex)
        for x in inout:
            if not isinstance(x, ndarray | np.ndarray | np.generic) and type(x) not in plain:
                return NotImplemented
        return found(*inputs, **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        try:
            module = functools.reduce(getattr, function.__module__.split(".")[1:], cupy)
            found = getattr(module, function.__name__)
        except AttributeError:
            return NotImplemented
        if found is function:
            return NotImplemented
        return found(*args, **kwargs)


def write(made: Any, out: ndarray | None) -> ndarray:
    """A result as a new array, or in the one that is given for it."""
    if out is None:
        return ndarray.of(made)
    out._host[...] = made
    return out


def view(of: ndarray, host: np.ndarray) -> ndarray:
    """An array on the memory of another."""
    made = ndarray.at(host, of._device_id)
    made.base = of if of.base is None else of.base
    return made


def _keys() -> Any:
    from tests.simulated_cupy import keys

    return keys


def _only_kind(kind: dict[str, Any]) -> None:
    if kind and (VERSION < 14 or set(kind) != {"kind"}):
        raise TypeError(f"got an unexpected keyword argument {next(iter(kind))!r}")


ndarray.__module__, ndarray.__qualname__ = "cupy", "ndarray"
