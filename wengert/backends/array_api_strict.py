"""array-api-strict: NumPy held to the letter of the standard, for tests."""

from functools import cached_property
from typing import Any

import numpy as np

from wengert.backends.backend import Backend

__all__ = ["BACKEND"]


class StrictBackend(Backend):
    """array-api-strict with its made-up devices, such as ``no_float64``."""

    name = "array_api_strict"
    module = "array_api_strict"

    @cached_property
    def xp(self) -> Any:
        xp = super().xp
        _let_others_answer(type(xp.zeros(())))
        return xp

    def parse_device(self, device: Any) -> Any:
        return super().parse_device("CPU_DEVICE" if device == "cpu" else device)

    def device_name(self, device: Any) -> str:
        return repr(device).split("'")[1]  # Device('no_float64')

    def to_numpy(self, array: Any) -> np.ndarray[Any, Any]:
        return np.asarray(array.to_device(self.xp.Device("CPU_DEVICE")))


def _let_others_answer(array: Any) -> None:
    """Let operators pass an operand that asks for it (NEP 13), instead of raising.

    Python then asks the operand's reflected operator, as it does for other libraries' arrays.
    """
    check = array._check_type_device

    def check_operand(x: Any, other: Any) -> None:
        if getattr(other, "__array_ufunc__", check) is not None:
            check(x, other)

    array._check_type_device = check_operand


BACKEND = StrictBackend()
