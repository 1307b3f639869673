"""PyTorch, as an array library: its own autograd is not used."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from wengert.backends.backend import Backend, Kernel
from wengert.backends.generators import stream

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
        self.generator.set_state(value)


def rand_like(x: Any, *, dtype: Any) -> Any:
    device = x.device
    found = stream("torch", device, lambda seed: TorchStream(seed, device))
    return BACKEND.torch.rand(x.shape, generator=found.generator, dtype=dtype, device=device)


class TorchBackend(Backend):
    """PyTorch through array-api-compat, on the CPU, CUDA, and whatever devices it has."""

    name = "torch"
    module = "array_api_compat.torch"
    kernels: Mapping[str, Kernel] = {"rand_like": rand_like}

    @cached_property
    def torch(self) -> Any:
        """PyTorch itself."""
        import torch

        return torch

    def parse_device(self, device: Any) -> Any:
        if isinstance(device, str) and device.isdigit():
            device = int(device)
        try:
            found = self.torch.device(device)
        except (RuntimeError, TypeError):
            raise self.unknown_device(device) from None
        if found.index is None and found.type == "cuda" and self.torch.cuda.is_available():
            found = self.torch.device("cuda", self.torch.cuda.current_device())
        if found not in self.devices() and found.type != "meta":
            raise self.unknown_device(device)
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
        return array.to(device)

    def to_numpy(self, array: Any) -> np.ndarray[Any, Any]:
        if array.dtype == self.torch.bfloat16:  # which NumPy has not
            array = array.to(self.torch.float32)
        return array.detach().cpu().resolve_conj().resolve_neg().numpy()  # type: ignore[no-any-return]

    def from_numpy(self, array: np.ndarray[Any, Any], device: Any = None) -> Any:
        # PyTorch shares the memory, and knows neither read-only nor reversed nor swapped arrays.
        array = np.asarray(array, dtype=array.dtype.newbyteorder("="))
        if not array.flags.writeable or any(stride < 0 for stride in array.strides):
            array = array.copy()
        return self.torch.from_numpy(array).to(device)

    def adopt(self, array: Any) -> Any:
        return array.detach() if array.requires_grad else array

    def is_view(self, array: Any) -> bool:
        return array._is_view()  # type: ignore[no-any-return]

    def synchronize(self) -> None:
        if self.torch.cuda.is_available():
            self.torch.cuda.synchronize()


BACKEND = TorchBackend()
