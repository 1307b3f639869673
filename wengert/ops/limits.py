"""Limits of data types."""

from typing import Any, NamedTuple

import numpy as np

from wengert.backends import DType, dtype_of
from wengert.ops.data_type import dtype_in

__all__ = ["FInfo", "IInfo", "finfo", "iinfo"]


class FInfo(NamedTuple):
    """Limits of a floating dtype: of the real and imaginary part, for a complex one.

    Examples
    --------
    >>> info = wg.finfo(wg.float32)
    >>> info.bits, info.max
    (32, 3.4028234663852886e+38)
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class IInfo(NamedTuple):
    """Limits of an integer dtype.

    Examples
    --------
    >>> wg.iinfo(wg.int8).min, wg.iinfo(wg.int8).max
    (-128, 127)
    """

    bits: int
    max: int
    min: int
    dtype: DType


#: Of the dtypes that NumPy lacks, what `FInfo` calls eps, max and smallest_normal.
_LIMITS = {
    "float8_e4m3fn": (2.0**-3, 448.0, 2.0**-6),
    "float8_e5m2": (2.0**-2, 57344.0, 2.0**-14),
    "bfloat16": (2.0**-7, (2 - 2.0**-7) * 2.0**127, 2.0**-126),
}


def finfo(type: Any, /) -> FInfo:
    """Return the limits of a floating or complex dtype, or of an array's.

    Raises `TypeError` if the dtype is neither. Array API standard.

    Examples
    --------
    >>> wg.finfo(wg.float64).eps
    2.220446049250313e-16
    """
    dtype = dtype_in(type)
    if not dtype.inexact:
        raise TypeError(f"finfo is for floating and complex dtypes, and not {dtype.name}")
    if dtype.name in _LIMITS:
        eps, top, smallest = _LIMITS[dtype.name]
        return FInfo(8 * dtype.itemsize, eps, top, -top, smallest, dtype)
    info = np.finfo(dtype.name)
    eps, top, low, smallest = map(float, (info.eps, info.max, info.min, info.smallest_normal))
    return FInfo(info.bits, eps, top, low, smallest, dtype_of(info.dtype))


def iinfo(type: Any, /) -> IInfo:
    """Return the limits of an integer dtype, or of an array's.

    Raises `TypeError` if the dtype is no integer one. Array API standard.

    Examples
    --------
    >>> wg.iinfo(wg.uint8).max
    255
    """
    dtype = dtype_in(type)
    if not dtype.kind.endswith("integer"):
        raise TypeError(f"iinfo is for integer dtypes, and not {dtype.name}")
    info = np.iinfo(dtype.name)
    return IInfo(info.bits, int(info.max), int(info.min), dtype)
