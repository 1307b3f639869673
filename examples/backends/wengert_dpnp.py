"""dpnp: NumPy's functions on devices of SYCL, such as Intel's GPUs, or a CPU by OpenCL."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from wengert.backends.backend import Backend, Kernel

__all__ = ["BACKEND"]


def matmul(x1: Any, x2: Any) -> Any:
    """The product, also of arrays that dpnp's refuses: those that lie anyhow, such as broadcast."""
    import dpnp

    def packed(x: Any) -> Any:
        return x if x.flags.c_contiguous or x.flags.f_contiguous else dpnp.ascontiguousarray(x)

    return dpnp.matmul(packed(x1), packed(x2))


class DpnpBackend(Backend):
    """dpnp; devices are ``opencl:cpu:0``, ``level_zero:gpu:0`` and so on."""

    name = "dpnp"
    module = "dpnp"
    packages = ("dpctl", "dpnp")
    kernels: Mapping[str, Kernel] = {"matmul": matmul}

    @cached_property
    def dpctl(self) -> Any:
        """What tells of devices."""
        import dpctl

        return dpctl

    def devices(self) -> list[Any]:
        return [
            self.xp.asarray(0, device=found.filter_string).device
            for found in self.dpctl.get_devices()
        ]

    def device_name(self, device: Any) -> str:
        return str(device.sycl_device.filter_string)

    def to_numpy(self, array: Any) -> np.ndarray[Any, Any]:
        return np.asarray(self.xp.asnumpy(array))


BACKEND = DpnpBackend()
