"""PyTorch's DTensor: arrays that processes hold in parts, by ``torch.distributed.tensor``.

What DTensor computes on parts and is right at, as elementwise functions, sums and products of
matrices, it computes; sums over processes are completed at once. Everything else is computed on the
whole array, by each process.
"""

from collections.abc import Callable, Mapping
from functools import cached_property, wraps
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from wengert.backends.backend import EXTENSIONS, BackendError, Kernel
from wengert.backends.torch import BACKEND as TORCH
from wengert.backends.torch import TorchBackend, getitem, rand_like

__all__ = ["BACKEND", "Layout"]

_NAMES: Final = """
abs acos acosh add all any asin asinh astype atan atan2 atanh bitwise_and bitwise_invert
bitwise_or bitwise_xor broadcast_to ceil conj cos cosh divide equal exp expand_dims expit expm1
floor floor_divide greater greater_equal imag isfinite isinf isnan leaky_relu less less_equal log
log10 log1p log2 log_expit log_softmax logaddexp logical_and logical_not logical_or logical_xor
matmul matrix_transpose max maximum mean min minimum multiply negative not_equal permute_dims
positive pow real reciprocal relu remainder reshape round sign silu sin sinh softmax sqrt square
squeeze subtract sum tan tanh trunc where
"""
#: What DTensor computes on parts.
ON_PARTS: Final = frozenset(_NAMES.split())
#: What makes arrays of nothing but numbers, the same in all processes.
MAKING: Final = ("arange", "empty", "eye", "full", "linspace", "ones", "zeros")
LIKE: Final = ("empty", "full", "ones", "zeros")
#: What looks at no elements.
BARE: Final = ("broadcast_shapes", "can_cast", "result_type")
#: Of errors that all processes raise alike where DTensor can't compute on parts, as with complex
#: numbers beside arrays; others may be of one process's part.
UNABLE: Final = ("sharding strategy", "Sharding propagation failed", "unhashable type: 'complex'")


class Layout(NamedTuple):
    """How an array is spread over processes: the device of a DTensor.

    Attributes
    ----------
    mesh : DeviceMesh
        The processes.
    placements : tuple of Placement
        For each axis of the mesh ``Shard(axis)`` or ``Replicate()``.
    """

    mesh: Any
    placements: tuple[Any, ...]

    @property
    def whole(self) -> "Layout":
        """The layout with the whole array in each process of the mesh."""
        return Layout(self.mesh, (BACKEND.replicate,) * self.mesh.ndim)


class DTensorBackend(TorchBackend):
    """DTensors, whose devices are layouts. All processes of a mesh run the same program."""

    name = "dtensor"
    exchanging = True

    @cached_property
    def tensor(self) -> Any:
        """PyTorch's module of DTensors."""
        import torch.distributed.tensor

        return torch.distributed.tensor

    @cached_property
    def replicate(self) -> Any:
        """The placement of an array that is whole in each process."""
        return self.tensor.Replicate()

    def array_types(self) -> tuple[type, ...]:
        return (self.tensor.DTensor,)

    # -- functions -----------------------------------------------------------------------------

    @cached_property
    def xp(self) -> Any:
        """PyTorch's namespace, whose functions compute on parts or on whole arrays."""
        torch = TORCH.xp
        made = self._module(torch, "")
        for extension in EXTENSIONS:
            setattr(made, extension, self._module(getattr(torch, extension), f"{extension}."))
        return made

    def _module(self, module: Any, prefix: str) -> ModuleType:
        made = ModuleType(f"{__name__}.{prefix}functions")
        found = self.public(module)
        vars(made).update({name: self._wrapped(prefix + name, x) for name, x in found.items()})
        return made

    @cached_property
    def kernels(self) -> Mapping[str, Kernel]:  # type: ignore[override]
        """PyTorch's, on parts or on whole arrays."""
        made = {name: self._wrapped(name, x) for name, x in super().kernels.items()}
        return {
            **made,
            **{name: self._making(name) for name in MAKING},
            **{f"{name}_like": self._making_like(name) for name in LIKE},
            "asarray": self._asarray,
            "getitem": self._getitem,
            "rand_like": self._rand_like,
        }

    def _wrapped(self, name: str, function: Any) -> Any:
        if not callable(function) or isinstance(function, type) or name in BARE:
            return function
        if name in ON_PARTS:
            return self._on_parts(function)
        return self._on_whole(function)

    def _on_whole(self, function: Kernel) -> Kernel:
        """A function of whole arrays, which each process computes."""

        @wraps(function)
        def kernel(*args: Any, **kwargs: Any) -> Any:
            meshes: list[Any] = []

            def local(x: Any) -> Any:
                if isinstance(x, self.tensor.DTensor):
                    meshes.append(x.device_mesh)
                    return self._gathered(x)
                if isinstance(x, Layout):
                    meshes.append(x.mesh)
                    return x.mesh.device_type
                return x

            given = _mapped(local, args), _mapped(local, kwargs)
            out = function(*given[0], **given[1])
            if not meshes:
                return out
            if any(mesh != meshes[0] for mesh in meshes):
                raise ValueError(f"arrays of two meshes, {meshes[0]} and {meshes[-1]}")
            return _mapped(lambda x: self._copies(x, meshes[0]), out)

        return kernel

    def _on_parts(self, function: Kernel) -> Kernel:
        """A function that DTensor computes on parts, and where it has no way to, on the whole."""
        whole = self._on_whole(function)

        @wraps(function)
        def kernel(*args: Any, **kwargs: Any) -> Any:
            try:
                out = function(*_mapped(self._even, args), **_mapped(self._even, kwargs))
            except (NotImplementedError, RuntimeError, TypeError) as error:
                if any(part in str(error) for part in UNABLE):
                    return whole(*args, **kwargs)
                raise
            return _mapped(self._settled, out)

        return kernel

    def _even(self, x: Any) -> Any:
        """An array whose parts are equally large: without elements some functions raise."""
        if not isinstance(x, self.tensor.DTensor):
            return x
        parts = [1] * x.ndim
        for n, each in zip(x.device_mesh.shape, x.placements, strict=True):
            if each.is_shard():
                parts[each.dim] *= n
        uneven = any(length % n for length, n in zip(x.shape, parts, strict=True))
        return self._gathered(x, local=False) if uneven else x

    def _settled(self, x: Any) -> Any:
        """An array whose sums over processes are completed."""
        if isinstance(x, self.tensor.DTensor):
            for axis, placement in enumerate(x.placements):
                if placement.is_partial():
                    kept = list(x.placements)
                    kept[axis] = self.replicate
                    x = x.redistribute(placements=kept)
        return x

    def _gathered(self, x: Any, *, local: bool = True) -> Any:
        """The whole of an array, on each process."""
        if not all(p.is_replicate() for p in x.placements):
            x = x.redistribute(placements=(self.replicate,) * x.device_mesh.ndim)
        if not local:
            return x
        found = x.to_local()
        return found.wait() if hasattr(found, "wait") else found

    def _copies(self, x: Any, mesh: Any) -> Any:
        """A DTensor of an array that all processes have computed."""
        if type(x) is not self.torch.Tensor:
            return x
        placements = (self.replicate,) * mesh.ndim
        return self.tensor.DTensor.from_local(x, mesh, placements, run_check=False)

    def _spread(self, x: Any, device: Any) -> Any:
        """An array that all processes have computed, in a layout."""
        layout = self._layout(device)
        return self._copies(x, layout.mesh).redistribute(placements=layout.placements)

    def _layout(self, device: Any) -> Layout:
        if isinstance(device, Layout):
            return device
        raise BackendError(
            "a DTensor is made in a layout: name one, such as device=x.device of another DTensor, "
            "or distribute PyTorch's tensor by torch.distributed.tensor.distribute_tensor"
        )

    def _making(self, name: str) -> Kernel:
        make = getattr(TORCH.xp, name)

        def kernel(*args: Any, device: Any = None, **options: Any) -> Any:
            here = self._layout(device).mesh.device_type
            return self._spread(make(*args, device=here, **options), device)

        return kernel

    def _making_like(self, name: str) -> Kernel:
        def kernel(x: Any, /, *args: Any, dtype: Any = None, device: Any = None) -> Any:
            make = getattr(self.namespace, name)
            where = self.beside(x, alike=True) if device is None else device
            return make(tuple(x.shape), *args, dtype=dtype or x.dtype, device=where)

        return kernel

    def _asarray(self, obj: Any, /, *, device: Any = None, copy: Any = None, **options: Any) -> Any:
        if isinstance(obj, self.tensor.DTensor):
            dtype = options.get("dtype")
            made = obj if dtype is None else obj.to(dtype)
            made = made if device is None else self.to_device(made, device)
            return made.clone() if copy and made is obj else made
        return self._spread(TORCH.xp.asarray(obj, **options), device)

    def _getitem(self, x: Any, *indices: Any, key: tuple[Any, ...]) -> Any:
        get = (self._on_whole if indices or _cuts(x, key) else self._on_parts)(getitem)
        return get(x, *indices, key=key)

    def _rand_like(self, x: Any, *, dtype: Any) -> Any:
        """Numbers of one process, of which each has its part."""
        whole = self.torch.empty(x.shape, dtype=dtype, device=x.device_mesh.device_type)
        return self._distributed(rand_like(whole, dtype=dtype), self.device(x))

    def _distributed(self, array: Any, layout: Layout) -> Any:
        """An array of the first process of the mesh, in a layout."""
        return self.tensor.distribute_tensor(array, layout.mesh, layout.placements)

    # -- devices -------------------------------------------------------------------------------

    def device(self, array: Any) -> Any:
        if not isinstance(array, self.tensor.DTensor):  # one of PyTorch's, in no layout
            return None
        return Layout(array.device_mesh, tuple(array.placements))

    def beside(self, array: Any, *, alike: bool = False) -> Any:
        layout: Layout = self.device(getattr(array, "bottom", array))
        return layout if alike else layout.whole

    def devices(self) -> list[Any]:
        return []

    def parse_device(self, device: Any) -> Any:
        return self._layout(device)

    def device_name(self, device: Any) -> str:
        if device is None:
            return ""
        return f"{tuple(device.mesh.shape)} processes, {', '.join(map(repr, device.placements))}"

    def to_device(self, array: Any, device: Any) -> Any:
        if device.mesh != array.device_mesh:
            raise BackendError(
                f"a DTensor stays on its mesh, {array.device_mesh}, and can't go to {device.mesh}"
            )
        same = device == self.device(array)
        return array if same else array.redistribute(placements=device.placements)

    def is_ready(self, array: Any) -> bool:
        return all(p.is_replicate() for p in array.placements)

    def to_numpy(self, array: Any) -> np.ndarray[Any, Any]:
        return super().to_numpy(self._held(array))

    def to_dlpack(self, array: Any, **asked: Any) -> Any:
        return super().to_dlpack(self._held(array), **asked)

    def _held(self, array: Any) -> Any:
        """The whole of an array, if each process holds that."""
        if not self.is_ready(array):
            raise BackendError(
                f"processes hold parts of this array of shape {tuple(array.shape)} (placements "
                f"{tuple(array.placements)}): let all of them gather it, x.to(x.device.whole), and "
                "then read it"
            )
        return self._gathered(array)

    def from_numpy(self, array: np.ndarray[Any, Any], device: Any = None) -> Any:
        layout = self._layout(device)
        made = super().from_numpy(array, layout.mesh.device_type)
        return self._distributed(made, layout)

    def from_dlpack(self, x: Any, device: Any = None, copy: bool | None = None) -> Any:
        return self._distributed(super().from_dlpack(x, None, copy), self._layout(device))

    def adopt(self, array: Any) -> Any:
        """A DTensor off PyTorch's tape, whose sums over processes are completed."""
        return self._settled(super().adopt(array))

    def is_view(self, array: Any) -> bool:
        return True


def _mapped(change: Callable[[Any], Any], x: Any) -> Any:
    """A value in lists, tuples and dicts, changed."""
    if isinstance(x, dict):
        return {key: _mapped(change, value) for key, value in x.items()}
    if isinstance(x, Layout):
        return change(x)
    if isinstance(x, list):
        return [_mapped(change, value) for value in x]
    if isinstance(x, tuple):
        made = [_mapped(change, value) for value in x]
        return type(x)(*made) if hasattr(x, "_fields") else type(x)(made)
    return change(x)


def _cuts(x: Any, key: tuple[Any, ...]) -> bool:
    """Whether a key divides an axis along which processes hold parts."""
    divided = {p.dim for p in x.placements if p.is_shard()}
    axis = 0
    for part in key:
        if part is None:
            continue
        if part is Ellipsis:
            axis += x.ndim - (len(key) - 1 - sum(each is None for each in key))
            continue
        if axis in divided and part != slice(None):
            return True
        axis += 1
    return False


BACKEND = DTensorBackend()
