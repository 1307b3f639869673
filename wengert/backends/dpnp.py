"""dpnp: NumPy's functions on devices of SYCL, such as Intel's GPUs, or a CPU by OpenCL."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from wengert.backends.backend import Backend, Kernel

__all__ = ["BACKEND"]


class DpnpBackend(Backend):
    """dpnp; devices are ``opencl:cpu:0``, ``level_zero:gpu:0`` and so on."""

    name = "dpnp"
    module = "dpnp"

    @cached_property
    def dpctl(self) -> Any:
        """What tells of devices."""
        import dpctl

        return dpctl

    @cached_property
    def kernels(self) -> Mapping[str, Kernel]:  # type: ignore[override]
        """What refuses arrays whose elements lie anyhow in memory, such as broadcast ones."""
        return {"matmul": self._matmul}

    def _matmul(self, x1: Any, x2: Any) -> Any:
        return self.xp.matmul(*map(self._packed, (x1, x2)))

    def _packed(self, array: Any) -> Any:
        flags = array.flags
        packed = flags.c_contiguous or flags.f_contiguous
        return array if packed else self.xp.ascontiguousarray(array)

    def devices(self) -> list[Any]:
        return [
            self.xp.asarray(0, device=found.filter_string).device
            for found in self.dpctl.get_devices()
        ]

    def device_name(self, device: Any) -> str:
        return str(device.sycl_device.filter_string)

    def device_source(self, device: Any) -> str:
        return f'"{self.device_name(device)}"'

    def to_numpy(self, array: Any) -> np.ndarray[Any, Any]:
        return np.asarray(self.xp.asnumpy(array))


BACKEND = DpnpBackend()
