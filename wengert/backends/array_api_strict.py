"""array-api-strict: NumPy held to the letter of the standard, for tests."""

from typing import Any

import numpy as np

from wengert.backends.backend import Backend

__all__ = ["BACKEND"]


class StrictBackend(Backend):
    """array-api-strict with its made-up devices, such as ``no_float64``."""

    name = "array_api_strict"
    module = "array_api_strict"

    def parse_device(self, device: Any) -> Any:
        return super().parse_device("CPU_DEVICE" if device == "cpu" else device)

    def device_name(self, device: Any) -> str:
        return repr(device).split("'")[1]  # Device('no_float64')

    def to_numpy(self, array: Any) -> np.ndarray[Any, Any]:
        return np.asarray(array.to_device(self.xp.Device("CPU_DEVICE")))


BACKEND = StrictBackend()
