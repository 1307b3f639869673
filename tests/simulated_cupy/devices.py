"""Devices without memory of their own: arrays know where they are, and each thread where it is."""

import gc
import threading
from typing import Any

import cupy
import numpy as np

from tests.simulated_cupy.counters import synchronised

#: How many there are.
COUNT = 2


class _Current(threading.local):
    def __init__(self) -> None:
        self.id = 0


_current = _Current()


def current() -> int:
    """The number of this thread's device."""
    return _current.id


def make_current(number: int) -> None:
    if not 0 <= number < COUNT:
        raise RuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
    _current.id = number


def check_resides(name: str, number: int) -> None:
    """Raise ValueError for an array elsewhere, as CuPy does of devices that share no memory."""
    if number != _current.id:
        raise ValueError(
            f"The device where the array resides ({number}) is different from the current device "
            f"({_current.id}). Peer access is unavailable between these devices. [{name}]"
        )


class Device:
    """``cupy.cuda.Device``."""

    def __init__(self, device: Any = None) -> None:
        self.id = _current.id if device is None else int(device)
        self._before: list[int] = []

    def __int__(self) -> int:
        return self.id

    def __enter__(self) -> "Device":
        self._before.append(_current.id)
        make_current(self.id)
        return self

    def __exit__(self, *error: object) -> None:
        make_current(self._before.pop())

    def synchronize(self) -> None:
        synchronised("Device.synchronize")

    @property
    def pci_bus_id(self) -> str:
        return f"0000:{self.id + 1:02x}:00.0"

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Device) else NotImplemented

    def __hash__(self) -> int:
        return self.id

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"


Device.__module__ = "cupy.cuda.device"


class Memory:
    """``ndarray.data``: where an array begins, and on which device."""

    def __init__(self, host: np.ndarray, device_id: int) -> None:
        self._host = host
        self.device_id = device_id
        self.device = Device(device_id)

    @property
    def ptr(self) -> int:
        return self._host.ctypes.data if self._host.size else 0

    @property
    def mem(self) -> "Memory":
        return self

    def memset_async(self, value: int, size: int, stream: Any = None) -> None:
        from tests.simulated_cupy.counters import launched

        check_resides("memset", self.device_id)
        if size:
            launched("memset")
            self._host[...] = np.frombuffer(bytes([value] * self._host.itemsize), self._host.dtype)


class MemoryPool:
    """``cupy.get_default_memory_pool()``, which knows what arrays are alive."""

    def used_bytes(self) -> int:
        from tests.simulated_cupy.arrays import ndarray

        gc.collect()
        alive = (x for x in gc.get_objects() if type(x) is ndarray and x.base is None)
        return sum(x.nbytes for x in alive)


class Stream:
    """``cupy.cuda.get_current_stream()``, whose work is done at once."""

    ptr = 0


class Event:
    """``cupy.cuda.Event``."""

    done = True

    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        pass

    def record(self, stream: Any = None) -> None:
        pass

    def synchronize(self) -> None:
        synchronised("Event.synchronize")


def install() -> None:
    cupy.get_default_memory_pool = MemoryPool
    cupy.cuda.Event, cupy.cuda.get_current_stream = Event, Stream
    cupy.cuda.Device = cupy.cuda.device.Device = Device
    runtime = cupy.cuda.runtime
    runtime.getDeviceCount = lambda: COUNT
    runtime.getDevice = current
    runtime.setDevice = make_current
    runtime.deviceSynchronize = lambda: synchronised("deviceSynchronize")
