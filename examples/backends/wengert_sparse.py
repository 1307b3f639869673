"""sparse: arrays that store what differs from one fill value."""

from typing import Any

import numpy as np

from wengert.backends.backend import Backend

__all__ = ["BACKEND"]


class SparseBackend(Backend):
    """PyData's sparse, on the CPU."""

    name = "sparse"
    module = "sparse"
    immutable = True
    packages = ("sparse",)

    def to_numpy(self, array: Any) -> np.ndarray[Any, Any]:
        return np.asarray(array.todense())


BACKEND = SparseBackend()
