"""What compiled programs call in place of a backend's fast kernels.

A kernel looks at shapes and dtypes in each call; a trace knows them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from wengert.backends.numpy_networks import ones
from wengert.compiler.forms import DOT

__all__ = ["LOWERINGS"]


def _matmul(record: Any, x1: Any, x2: Any) -> Any:
    if len(x1.shape) != 2 or len(x2.shape) != 2:
        return NotImplemented
    return record("dot", DOT, x1, x2)


def _sum(
    record: Any, x: Any, *, axis: Any = None, dtype: Any = None, keepdims: bool = False
) -> Any:
    """The sum of rows, by BLAS, as the kernel does it."""
    if axis != 0 or dtype is not None or keepdims or len(x.shape) != 2 or x.dtype.char not in "fd":
        return NotImplemented
    return record("dot", DOT, ones(x.shape[0], x.dtype), x)


#: By backend and by the function's name: a function of what records a call, and of what the kernel
#: takes. It returns NotImplemented where the kernel itself should be called.
LOWERINGS: dict[str, Mapping[str, Callable[..., Any]]] = {"numpy": {"matmul": _matmul, "sum": _sum}}
