"""PyTorch, as an array library: its own autograd is not used."""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from wengert.backends.backend import TRANSFORMS, Backend, Kernel, no_such_device
from wengert.backends.dtypes import dtype_of
from wengert.backends.fused import torch_kernels
from wengert.backends.generators import stream
from wengert.backends.keys import (
    check_integers,
    fill,
    forward_slices,
    indexed_axes,
    split_key,
    split_value,
)
from wengert.backends.special import torch_special
from wengert.backends.windows import torch_windows

__all__ = ["BACKEND"]


class TorchStream:
    """PyTorch's generator of one device."""

    def __init__(self, seed: int, device: Any) -> None:
        self.generator = BACKEND.torch.Generator(device=device).manual_seed(seed)

    @property
    def state(self) -> Any:
        return self.generator.get_state()

    @state.setter
    def state(self, value: Any) -> None:
        self.generator.set_state(BACKEND.torch.as_tensor(value))  # of a file, in NumPy's array


def rand_like(x: Any, *, dtype: Any) -> Any:
    if x.is_meta:
        return x.new_empty(x.shape, dtype=dtype)
    found = stream("torch", x.device, lambda seed: TorchStream(seed, x.device))
    return x.new_empty(x.shape, dtype=dtype).uniform_(generator=found.generator)


# -- indexing ------------------------------------------------------------------------------------

# PyTorch has no slices that go backwards, takes uint8 for a mask, and treats an integer beside
# index arrays as a slice. Here keys mean what they mean in NumPy.


def _is_mask(array: Any) -> bool:
    return array.dtype == BACKEND.torch.bool  # type: ignore[no-any-return]


def _index(array: Any) -> Any:
    torch = BACKEND.torch
    return array if array.dtype in (torch.bool, torch.int64) else array.to(torch.int64)


def _key(
    key: tuple[Any, ...], indices: tuple[Any, ...], shape: tuple[int, ...]
) -> tuple[tuple[Any, ...], tuple[int, ...], int | None]:
    """The key that PyTorch understands, the axes to flip first, and what `split_key` tells."""
    arrays = tuple([_index(i) for i in indices])
    key, after = split_key(fill(key, arrays), len(shape), _is_mask) if arrays else (key, None)
    if any(i.ndim for i in arrays):
        check_integers(key, shape, _is_mask)  # PyTorch checks none beside an empty array
        key = tuple([_beside_arrays(part, arrays[0].device) for part in key])
    return *forward_slices(key, shape, _is_mask), after


def _beside_arrays(part: Any, device: Any) -> Any:
    if type(part) is int:
        return BACKEND.torch.tensor([part], device=device)
    whole = isinstance(part, BACKEND.torch.Tensor) and not part.ndim and not _is_mask(part)
    return part.reshape(1) if whole else part


def _flip(x: Any, axes: tuple[int, ...]) -> Any:
    """``x.flip``, which some unsigned integers have not: there as signed ones of their size."""
    signed = {"torch.uint16": "int16", "torch.uint32": "int32", "torch.uint64": "int64"}
    other = signed.get(str(x.dtype))
    if other is None:
        return x.flip(axes)
    return x.view(getattr(BACKEND.torch, other)).flip(axes).view(x.dtype)


def getitem(x: Any, *indices: Any, key: tuple[Any, ...]) -> Any:
    key, flipped, after = _key(key, indices, x.shape)
    out = (_flip(x, flipped) if flipped else x)[key]
    return out if after is None else out.squeeze(-1 - after)


def setitem(x: Any, value: Any, *indices: Any, key: tuple[Any, ...]) -> Any:
    key, flipped, after = _key(key, indices, x.shape)
    out = _flip(x, flipped) if flipped else x.clone()
    if isinstance(value, BACKEND.torch.Tensor):
        value = split_value(value.to(x.dtype), after, BACKEND.torch.reshape)
    out[key] = value
    return _flip(out, flipped) if flipped else out


def scatter_add(x: Any, *indices: Any, key: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    torch = BACKEND.torch
    short = x.dtype.is_floating_point and x.dtype.itemsize < 4
    if indices and short:  # a running sum of ones ends at 2048, or 256
        return scatter_add(x.to(torch.float32), *indices, key=key, shape=shape).to(x.dtype)
    out = torch.zeros(shape, dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    key, flipped, after = _key(key, indices, shape)
    if all(map(_is_mask, indices)):
        out[key] = split_value(x, after, torch.reshape)
    elif len(indices) == len(key) == len(shape) and not any(map(_is_mask, indices)):
        out.index_put_(key, x, accumulate=True)
    else:
        leading = indexed_axes(key, len(shape), _is_mask)
        rows = torch.arange(math.prod(shape[:leading]), device=x.device)
        rows = rows.reshape(shape[:leading])[key].reshape(-1)
        width = math.prod(shape[leading:])
        out.view(-1, width).index_add_(0, rows, x.reshape(rows.shape[0], width))
    return _flip(out, flipped) if flipped else out


def add_part(total: Any, value: Any, *, key: tuple[Any, ...], own: bool) -> Any:
    """Add a value at a key without arrays: into ``total`` itself where that is the caller's own."""
    view, flipped, _ = _key(key, (), total.shape)
    if flipped:  # which PyTorch does by a copy
        return total + scatter_add(value, key=key, shape=total.shape)
    total = total if own else total.clone()
    part = total[view]
    part += value
    return total


def scatter_extreme(how: str) -> Kernel:
    """The best of an array's own elements and of the values for their places."""
    return lambda x, value, rows: x.scatter_reduce(0, rows, value, how)


def take(x: Any, indices: Any, /, *, axis: int) -> Any:
    """Also with negative indices, which ``index_select`` has not."""
    return x[(slice(None),) * axis + (_index(indices),)]


def unique_all(x: Any, /) -> tuple[Any, Any, Any, Any]:
    """PyTorch's ``unique``, and where each value is first, which that does not tell."""
    torch = BACKEND.torch
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    flat = inverse.reshape(-1)
    places = torch.arange(flat.shape[0], device=x.device)
    first = torch.full_like(counts, flat.shape[0])
    return values, first.scatter_reduce_(0, flat, places, "amin"), inverse, counts


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    # array-api-compat's answers wrongly for no axes.
    return BACKEND.xp.sum(x != 0, axis=axis, dtype=BACKEND.torch.int64, keepdims=keepdims)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """With any correction, of which array-api-compat takes integers alone."""
    if axis == ():  # which PyTorch takes for all axes
        x, axis, keepdims = x[..., None], -1, False
    return BACKEND.torch.var(x, dim=axis, correction=correction, keepdim=keepdims)


def transform(name: str) -> Kernel:
    """A Fourier transform, also of arrays without elements, which MKL refuses."""

    def kernel(x: Any, /, *, s: Any = None, axes: Any, norm: str = "backward") -> Any:
        torch = BACKEND.torch
        if x.numel():
            return getattr(torch.fft, name)(x, s=s, dim=axes, norm=norm)
        shape, dtype = list(x.shape), x.dtype
        for axis, n in zip(axes, s or (), strict=False):
            shape[axis] = n
        if name == "rfftn":
            shape[axes[-1]] = shape[axes[-1]] // 2 + 1
            dtype = dtype.to_complex()
        elif name == "irfftn":
            dtype = dtype.to_real()
        return torch.zeros(shape, dtype=dtype, device=x.device)

    return kernel


def _transform() -> Any:
    """The innermost of the transforms of ``torch.func`` that run, None if none does."""
    return BACKEND.torch._C._functorch.peek_interpreter_stack()


class TorchBackend(Backend):
    """PyTorch through array-api-compat, on the CPU, CUDA, and whatever devices it has."""

    name = "torch"
    module = "array_api_compat.torch"

    @cached_property
    def torch(self) -> Any:
        """PyTorch itself."""
        import torch

        return torch

    @cached_property
    def kernels(self) -> Mapping[str, Kernel]:  # type: ignore[override]
        """Indexing, drawing, and what the library computes in one piece."""
        return {
            "add_part": add_part,
            "getitem": getitem,
            "linalg.solve_triangular": self.torch.linalg.solve_triangular,
            "count_nonzero": count_nonzero,
            "var": var,
            "rand_like": rand_like,
            "scatter_add": scatter_add,
            "scatter_max": scatter_extreme("amax"),
            "scatter_min": scatter_extreme("amin"),
            "setitem": setitem,
            "sliding_windows": torch_windows,
            "take": take,
            "unique_all": unique_all,
            **torch_kernels(self.torch),
            **torch_special(self.torch),
            **{f"fft.{name}": transform(name) for name in TRANSFORMS},
        }

    def parse_device(self, device: Any) -> Any:
        if isinstance(device, str) and device.isdigit():
            device = int(device)
        try:
            found = self.torch.device(device)
        except (RuntimeError, TypeError):
            raise no_such_device(self, device) from None
        if found.index is None and found.type == "cuda" and self.torch.cuda.is_available():
            found = self.torch.device("cuda", self.torch.cuda.current_device())
        if found not in self.devices() and found.type != "meta":
            raise no_such_device(self, device)
        return found

    def devices(self) -> list[Any]:
        device = self.torch.device
        found = [device("cpu")]
        if self.torch.cuda.is_available():
            found += [device("cuda", i) for i in range(self.torch.cuda.device_count())]
        if self.torch.backends.mps.is_available():
            found.append(device("mps", 0))
        return found

    def to_device(self, array: Any, device: Any) -> Any:
        return (array if device.type == "meta" else self._check_values(array)).to(device)

    def _check_values(self, array: Any) -> Any:
        if array.is_meta:
            raise TypeError(
                f"an array on PyTorch's device meta has a shape {tuple(array.shape)} and a dtype, "
                "and no values; what needs these runs on another device"
            )
        return array

    def to_numpy(self, array: Any) -> np.ndarray[Any, Any]:
        array = self._check_values(array)
        if dtype_of(array.dtype).host == "float32":  # also what NumPy has not
            array = array.to(self.torch.float32)
        return array.detach().cpu().resolve_conj().resolve_neg().numpy()  # type: ignore[no-any-return]

    def from_numpy(self, array: np.ndarray[Any, Any], device: Any = None) -> Any:
        # PyTorch shares the memory, and knows neither read-only nor reversed arrays.
        array = np.asarray(array)
        if not array.flags.writeable or any(stride < 0 for stride in array.strides):
            array = array.copy()
        return self.torch.from_numpy(array).to(device)

    def adopt(self, array: Any) -> Any:
        """A tensor off PyTorch's tape; TypeError if PyTorch's transforms differentiate it."""
        # Others are lifted, over what was adopted, or recorded: those say that they are Tensors.
        if not issubclass(type(array), self.torch.Tensor):
            return array
        if _transform() is not None or self.torch.autograd.forward_ad._current_level >= 0:
            self._refuse_derivatives(array)
        return array.detach() if array.requires_grad else array

    def _refuse_derivatives(self, array: Any) -> None:
        functorch, inside = self.torch._C._functorch, array
        differentiated = self.torch.autograd.forward_ad.unpack_dual(array).tangent is not None
        while functorch.is_functorch_wrapped_tensor(inside):
            differentiated = differentiated or functorch.is_gradtrackingtensor(inside)
            inside = functorch.get_unwrapped(inside)
        if differentiated:
            raise TypeError(
                "PyTorch's own transforms (torch.func.grad, jvp, ..., forward_ad) do not "
                "differentiate what Wengert computes: use wg.grad, wg.func.jvp and their like, or "
                "wrap the computation in a torch.autograd.Function"
            )

    def is_view(self, array: Any) -> bool:
        return array._is_view()  # type: ignore[no-any-return]

    def synchronize(self) -> None:
        if self.torch.cuda.is_available():
            self.torch.cuda.synchronize()


BACKEND = TorchBackend()
