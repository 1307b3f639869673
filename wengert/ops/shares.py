"""Sums and counts, and what is divided by them: of half precision in float32.

float16 ends at 65504, and bfloat16 counts to 256. So a count is never of the data's dtype, nor is a
sum that is divided.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from wengert.backends import dtype_of
from wengert.interpreters.namespaces import differentiable

__all__ = ["by_float32", "divide", "in_float32", "total", "wide"]


def wide(xp: Any, x: Any) -> Any:
    """An array as it is, or one of half precision as float32."""
    return xp.astype(x, xp.float32) if dtype_of(x.dtype).narrow else x


def total(xp: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The sum, as float32 where the array is of half precision."""
    dtype = xp.float32 if dtype_of(x.dtype).narrow else None
    return xp.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)


def divide(xp: Any, x: Any, n: Any, dtype: Any = None) -> Any:
    """An array over counts: one of Python's, or an array of them; of ``dtype`` or the array's."""
    if type(n) is int and n <= 256 and dtype is None:  # which all dtypes hold
        return x / n
    held = dtype_of(x.dtype)
    if held.narrow:
        return xp.astype(divide(xp, wide(xp, x), n), x.dtype if dtype is None else dtype)
    if hasattr(n, "shape"):
        n = xp.astype(n, (xp.real(x) if held.complex else x).dtype)
    found = x / n
    return found if dtype is None or found.dtype == dtype else xp.astype(found, dtype)


def wide_argument(xp: Any, x: Any) -> Any:
    """An argument of a function: an array by `wide`, anything else as it is."""
    return wide(xp, x) if hasattr(x, "dtype") else x


def by_float32(
    function: Callable[..., Any], x: Any, *rest: Any, xp: Any = differentiable, **options: Any
) -> Any:
    """Call a function of Tensors with one of half precision, and others, as float32."""
    found = function(wide(xp, x), *(wide_argument(xp, y) for y in rest), **options)
    if isinstance(found, tuple):
        return tuple([xp.astype(y, x.dtype) for y in found])
    return xp.astype(found, x.dtype)


def in_float32(composite: Callable[..., Any]) -> Callable[..., Any]:
    """Make a composite, or a rule, compute with arrays of half precision in float32."""

    @wraps(composite)
    def call(xp: Any, x: Any, *rest: Any, **parameters: Any) -> Any:
        if not dtype_of(x.dtype).narrow:
            return composite(xp, x, *rest, **parameters)
        return by_float32(partial(composite, xp), x, *rest, xp=xp, **parameters)

    return call
