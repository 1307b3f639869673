"""Dask: arrays in chunks, computed when their values are asked for."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from wengert.backends.backend import Backend, Kernel
from wengert.backends.dtypes import DType
from wengert.backends.generators import HostStream, stream

__all__ = ["BACKEND"]


def rand_like(x: Any, *, dtype: Any) -> Any:
    # Each draw is a graph of its own, so a stream of seeds stands for the generator.
    seed = int(stream("dask", "cpu", HostStream).generator.integers(2**63))
    random = BACKEND.dask.random.default_rng(seed).random
    short = dtype.itemsize < 4  # NumPy draws no float16
    made = random(x.shape, dtype=np.float32 if short else dtype, chunks=x.chunks)
    return BACKEND.dask.minimum(made, 1 - 2.0**-11).astype(dtype) if short else made


class DaskBackend(Backend):
    """Dask through array-api-compat, over NumPy chunks."""

    name = "dask"
    module = "array_api_compat.dask.array"
    kernels: Mapping[str, Kernel] = {"rand_like": rand_like}
    immutable = True

    @cached_property
    def dask(self) -> Any:
        """``dask.array`` itself."""
        import dask.array

        return dask.array

    def raw_dtype(self, dtype: DType) -> Any:
        try:
            return np.dtype(getattr(np, dtype.name))
        except AttributeError:
            raise TypeError(f"dask has no data type {dtype.name}") from None

    def device(self, array: Any) -> Any:
        return "cpu"

    def devices(self) -> list[Any]:
        return ["cpu"]

    def to_device(self, array: Any, device: Any) -> Any:
        return array

    def to_numpy(self, array: Any) -> np.ndarray[Any, Any]:
        return np.asarray(array.compute())

    def from_numpy(self, array: np.ndarray[Any, Any], device: Any = None) -> Any:
        return self.dask.from_array(np.asarray(array))

    def from_dlpack(self, x: Any, device: Any = None, copy: bool | None = None) -> Any:
        if copy is False:
            raise ValueError("dask copies what it takes through DLPack; copy=False")
        return self.from_numpy(np.from_dlpack(x, copy=copy))


BACKEND = DaskBackend()
