"""CuPy: NVIDIA GPUs (and AMD's, where CuPy is built for them)."""

import importlib
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from wengert.backends.backend import Backend, Kernel, no_such_device
from wengert.backends.dtypes import DType
from wengert.backends.fused import cupy_kernels
from wengert.backends.generators import stream
from wengert.backends.keys import fill, split_key, split_value
from wengert.backends.special import cupy_special
from wengert.backends.triangular import cupy_triangular
from wengert.backends.windows import strided_windows

__all__ = ["BACKEND"]


class CupyStream:
    """CuPy's generator of one device. Its state is an array there: to take it waits for nothing."""

    def __init__(self, seed: int, device: Any) -> None:
        random = BACKEND.cupy.random
        self._device = device
        with device:
            self.generator = random.Generator(random.Philox4x3210(seed=seed))
        self._held = vars(self.generator.bit_generator)["_state"]  # which has no public name

    @property
    def state(self) -> Any:
        with self._device:
            return self._held.copy()

    @state.setter
    def state(self, value: Any) -> None:
        with self._device:
            self._held[...] = BACKEND.cupy.asarray(value)


def rand_like(x: Any, *, dtype: Any) -> Any:
    found = stream("cupy", x.device, lambda seed: CupyStream(seed, x.device))
    short = np.dtype(dtype).itemsize < 4  # the generator draws float32 and float64
    with x.device:
        made = found.generator.random(x.shape, dtype=np.float32 if short else dtype)
        return np.minimum(made, 1 - 2.0**-11).astype(dtype) if short else made


# -- indexing ------------------------------------------------------------------------------------


def _is_mask(array: Any) -> bool:
    return array.dtype.kind == "b"  # type: ignore[no-any-return]


def getitem(x: Any, *indices: Any, key: tuple[Any, ...]) -> Any:
    key, after = split_key(fill(key, indices), x.ndim, _is_mask)
    return x[key] if after is None else x[key].squeeze(-1 - after)


def setitem(x: Any, value: Any, *indices: Any, key: tuple[Any, ...]) -> Any:
    out = x.copy()
    key, after = split_key(fill(key, indices), x.ndim, _is_mask)
    out[key] = split_value(value, after, BACKEND.cupy.reshape) if hasattr(value, "shape") else value
    return out


def scatter_add(x: Any, *indices: Any, key: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    cupy = BACKEND.cupy
    with x.device:
        out = cupy.zeros(shape, x.dtype)
        key, after = split_key(fill(key, indices), len(shape), _is_mask)
        x = split_value(x, after, cupy.reshape)
        if all(map(_is_mask, indices)):
            out[key] = x
        elif 1 < len(indices) == len(shape) and not any(map(_is_mask, indices)):
            _add_at(cupy, out.reshape(-1), (_joining(len(shape))(*indices, *shape),), x)
        else:
            _add_at(cupy, out, key, x)
    return out


@cache
def _joining(count: int) -> Any:
    """Flat indices of an index array for each axis in one launch; CuPy's own takes one for each."""
    given = [f"{chr(65 + k)} at{k}" for k in range(count)] + [f"int64 n{k}" for k in range(count)]
    places = [f"out = out * n{k} + (at{k} % n{k} + n{k}) % n{k};" for k in range(count)]
    text = "out = 0; " + " ".join(places)
    return BACKEND.cupy.ElementwiseKernel(", ".join(given), "int64 out", text, "joined_indices")


def _add_at(cupy: Any, out: Any, key: tuple[Any, ...], x: Any) -> None:
    """``cupy.add.at`` of every dtype: CUDA adds some in one piece, of which the others are made."""
    kind, itemsize = out.dtype.kind, out.dtype.itemsize
    if kind == "c":
        cupy.add.at(out.real, key, x.real)
        cupy.add.at(out.imag, key, x.imag)
    elif kind == "i" and itemsize == 8:  # the bits of a sum are the same without a sign
        cupy.add.at(out.view(np.uint64), key, x.view(np.uint64))
    elif itemsize < 4:  # a sum of halves ends at 2048; a wide sum of integers wraps around below
        wide = cupy.zeros(out.shape, np.float32 if kind == "f" else np.int32)
        cupy.add.at(wide, key, x.astype(wide.dtype))
        out[...] = wide
    else:
        cupy.add.at(out, key, x)


@cache
def _taking() -> Any:
    return BACKEND.cupy.ElementwiseKernel(
        "raw T x, S index, int64 length, int64 taken, int64 after",
        "T out",
        """
        long long at = static_cast<long long>(index) % length;
        if (at < 0) {
            at = at + length;
        }
        out = x[(i / (taken * after) * length + at) * after + i % after];
        """,
        "take_along_axis",
    )


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """``take_along_axis`` in one launch instead of seven; places beyond the axis wrap around."""
    axis = axis % x.ndim
    others = x.shape[:axis] + x.shape[axis + 1 :]
    if others != indices.shape[:axis] + indices.shape[axis + 1 :] or not x.shape[axis]:
        return BACKEND.cupy.take_along_axis(x, indices, axis)
    after = math.prod(x.shape[axis + 1 :])
    return _taking()(x, indices, x.shape[axis], indices.shape[axis], after)


def reciprocal(x: Any, /) -> Any:
    """Reciprocal, also of integers, which ``cupy.reciprocal`` divides as integers."""
    cupy = BACKEND.cupy
    return cupy.reciprocal(x) if x.dtype.kind in "fc" else cupy.true_divide(1, x)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """``clip`` in the dtype of ``x``. Bounds that are nan give nan."""
    cupy = BACKEND.cupy
    out = x if min is None else cupy.maximum(x, min)
    out = out if max is None else cupy.minimum(out, max)
    return x.copy() if out is x else out.astype(x.dtype, copy=False)


# -- creation ------------------------------------------------------------------------------------


def _creation(name: str) -> Kernel:
    """A function of the standard that makes arrays; array-api-compat's leave out the device."""
    like = name.endswith("_like")  # another array: on its device, if none is named

    def make(*given: Any, device: Any = None, **options: Any) -> Any:
        function = getattr(BACKEND.xp, name)
        device = given[0].device if like and device is None else device
        with BACKEND.cupy.cuda.Device(device):  # of None, the current one
            return function(*given, **options)

    return make


def linspace(start: Any, stop: Any, /, num: int, *, device: Any = None, **options: Any) -> Any:
    """``linspace``, also of complex numbers, of which CuPy makes none."""
    make, cupy = BACKEND.xp.linspace, BACKEND.cupy
    with cupy.cuda.Device(device):
        if not isinstance(start, complex) and not isinstance(stop, complex):
            return make(start, stop, num, **options)
        start, stop, dtype = complex(start), complex(stop), options.pop("dtype", None)
        dtype = np.dtype(np.complex128 if dtype is None else dtype)
        real = np.empty(0, dtype).real.dtype
        out = cupy.empty(num, dtype)
        out.real = make(start.real, stop.real, num, dtype=real, **options)
        out.imag = make(start.imag, stop.imag, num, dtype=real, **options)
        return out


def asarray(obj: Any, /, *, device: Any = None, **options: Any) -> Any:
    """``asarray``; an array stays on its device, if none is named."""
    if device is None and hasattr(obj, "__cuda_array_interface__"):
        device = obj.device
    return BACKEND.xp.asarray(obj, device=device, **options)


def add_part(total: Any, value: Any, *, key: tuple[Any, ...], own: bool) -> Any:
    """Add a value at a key without arrays: into ``total`` itself where that is the caller's own."""
    with total.device:
        total = total if own else total.copy()
        part = total[key]
        part += value
    return total


def eig(x: Any, /) -> Any:
    """``cupy.linalg.eig``, complex also where there are no eigenvalues."""
    values, vectors = BACKEND.cupy.linalg.eig(x)
    dtype = np.result_type(values.dtype, np.complex64)
    return values.astype(dtype, copy=False), vectors.astype(dtype, copy=False)


def _elsewhere(
    kind: Any, current: Kernel, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """The device of a call's arrays, if it is not the current one."""
    here = current()
    for x in arguments:
        if (isinstance(x, kind) and x.data.device_id != here) or isinstance(x, list | tuple):
            break
    else:
        if not keywords:
            return None
    there = list(_arrays(kind, (*arguments, *keywords.values())))
    numbers = {x.data.device_id for x in there}
    if len(numbers) > 1:
        raise ValueError(f"an operation takes arrays of one device, not of {sorted(numbers)}")
    return there[0].device if numbers and here not in numbers else None


def _arrays(kind: Any, given: Iterable[Any]) -> Iterator[Any]:
    """The arrays among arguments, and in lists and tuples of these."""
    for x in given:
        if isinstance(x, kind):
            yield x
        elif isinstance(x, list | tuple):
            yield from _arrays(kind, x)


class CupyBackend(Backend):
    """CuPy through array-api-compat; devices are ``cupy:0``, ``cupy:1`` and so on."""

    name = "cupy"
    module = "array_api_compat.cupy"

    @cached_property
    def cupy(self) -> Any:
        """CuPy itself."""
        import cupy

        return cupy

    @cached_property
    def kernels(self) -> Mapping[str, Kernel]:  # type: ignore[override]
        """Indexing, drawing, and what the library computes in one piece."""
        filled = [n + s for n in ("empty", "full", "ones", "zeros") for s in ("", "_like")]
        return {
            **{name: _creation(name) for name in ("arange", "eye", *filled)},
            "add_part": add_part,
            "asarray": asarray,
            "clip": clip,
            "getitem": getitem,
            "linalg.solve_triangular": cupy_triangular,
            "linspace": linspace,
            "rand_like": rand_like,
            "reciprocal": reciprocal,
            "scatter_add": scatter_add,
            "setitem": setitem,
            "sliding_windows": strided_windows(self.cupy.lib.stride_tricks.as_strided),
            "take_along_axis": take_along_axis,
            **({"linalg.eig": eig} if hasattr(self.cupy.linalg, "eig") else {}),
            **cupy_kernels(self.cupy, importlib.import_module("cupyx.scipy.special")),
            **cupy_special(self.cupy, importlib.import_module("cupyx.scipy.special")),
        }

    def require_device(self) -> None:
        try:
            self.cupy.cuda.runtime.getDeviceCount()
        except RuntimeError as error:
            raise RuntimeError(
                f"CuPy {self.cupy.__version__} finds no GPU that it can use ({error}); select "
                "another backend, or repair the driver that CuPy names"
            ) from error

    def raw_dtype(self, dtype: DType) -> Any:
        return np.dtype(super().raw_dtype(dtype))

    def parse_device(self, device: Any) -> Any:
        device_type = self.cupy.cuda.Device
        if isinstance(device, device_type):
            return device
        number = str(device).removeprefix("cuda:").replace("cuda", "0")
        if not number.isdigit() or int(number) >= self.cupy.cuda.runtime.getDeviceCount():
            raise no_such_device(self, device)
        return device_type(int(number))

    def on(self, device: Any) -> AbstractContextManager[Any]:
        return self.cupy.cuda.Device(device)  # type: ignore[no-any-return]

    @cached_property
    def elsewhere(self) -> Any:  # type: ignore[override]
        """CuPy computes on its current device; the operands' is another where there are several."""
        runtime = self.cupy.cuda.runtime
        try:
            if runtime.getDeviceCount() < 2:
                return None
        except RuntimeError:  # no driver
            return None
        return partial(_elsewhere, self.cupy.ndarray, runtime.getDevice)

    def device_name(self, device: Any) -> str:
        return f"cuda:{device.id}"

    def to_pickle(self, array: Any) -> tuple[Any, str | None]:
        return self.to_numpy(array), self.device_name(array.device)

    def devices(self) -> list[Any]:
        count = self.cupy.cuda.runtime.getDeviceCount()
        return [self.cupy.cuda.Device(i) for i in range(count)]

    def to_device(self, array: Any, device: Any) -> Any:
        flags = array.flags
        if array.device != device and not (flags.c_contiguous or flags.f_contiguous):
            with array.device:  # between devices CuPy copies contiguous memory alone
                array = self.cupy.ascontiguousarray(array)
        with device:
            return self.cupy.asarray(array)

    def to_numpy(self, array: Any) -> np.ndarray[Any, Any]:
        return np.asarray(self.cupy.asnumpy(array))

    def from_numpy(self, array: np.ndarray[Any, Any], device: Any = None) -> Any:
        if device is None:
            return self.cupy.asarray(array)
        with device:
            return self.cupy.asarray(array)

    def from_dlpack(self, x: Any, device: Any = None, copy: bool | None = None) -> Any:
        kind, number = x.__dlpack_device__()
        if kind == 1:  # host memory, which CuPy does not import
            if copy is False:
                raise ValueError("moving to the GPU needs a copy, and copy=False was given")
            return self.from_numpy(np.from_dlpack(x), device)
        made = self.cupy.from_dlpack(x)
        if device is not None and device.id != number:
            if copy is False:
                raise ValueError(f"moving to {device} needs a copy, and copy=False was given")
            return self.to_device(made, device)
        return made.copy() if copy else made

    def is_view(self, array: Any) -> bool:
        return array.base is not None

    def synchronize(self) -> None:
        self.cupy.cuda.Device().synchronize()


BACKEND = CupyBackend()
