"""The strict library with mistakes in it, each in a function that agrees on ordinary arguments."""

from types import ModuleType
from typing import Any

import array_api_strict as strict
import numpy as np


def _log1p(x: Any, /) -> Any:
    return strict.log(x + 1)


def _sign(x: Any, /) -> Any:
    if not strict.isdtype(x.dtype, "real floating"):
        return strict.sign(x)
    return strict.where(strict.isnan(x), strict.zeros_like(x), strict.sign(x))


def _sum(x: Any, /, *, dtype: Any = None, **options: Any) -> Any:
    return strict.sum(x, dtype=dtype or x.dtype, **options)


def _cumulative_sum(x: Any, /, *, include_initial: bool = False, **options: Any) -> Any:
    return strict.cumulative_sum(x, **options)


def _searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    return strict.searchsorted(x1, x2, sorter=sorter)


def _remainder(x1: Any, x2: Any, /) -> Any:
    if not strict.isdtype(x1.dtype, "real floating"):
        return strict.remainder(x1, x2)
    return x1 - x2 * strict.trunc(x1 / x2)


def _argsort(x: Any, /, *, descending: bool = False, **options: Any) -> Any:
    return strict.argsort(x, **options)


def _round(x: Any, /) -> Any:
    return strict.floor(x + 0.5) if strict.isdtype(x.dtype, "real floating") else strict.round(x)


def _tril(x: Any, /, *, k: int = 0) -> Any:
    return strict.tril(x, k=k + (k < 0))


def _vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    return strict.sum(x1 * x2, axis=axis)


def _var(x: Any, /, *, correction: float = 0.0, **options: Any) -> Any:
    return strict.var(x, **options)


def _clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    return strict.clip(x, min, None)


def _remainder_by_floor(x1: Any, x2: Any, /) -> Any:
    if not strict.isdtype(x1.dtype, "real floating"):
        return strict.remainder(x1, x2)
    return x1 - strict.floor(x1 / x2) * x2


def _hypot(x1: Any, x2: Any, /) -> Any:
    return strict.sqrt(x1 * x1 + x2 * x2)


def _equal(x1: Any, x2: Any, /) -> Any:
    if strict.isdtype(x1.dtype, "complex floating"):
        x1, x2 = strict.real(x1), strict.real(x2)
    return strict.equal(x1, x2)


def _add(x1: Any, x2: Any, /) -> Any:
    """As a library without weak numbers has it."""
    if isinstance(x2, float):
        x2 = strict.asarray(x2, dtype=strict.float64)
    return strict.add(x1, x2)


def _cos(x: Any, /) -> Any:
    return strict.cos(x) if x.ndim else strict.cos(strict.astype(x, strict.float32))


def _tanh(x: Any, /) -> Any:
    """The kernel leaves out what remains of the last block."""
    found = strict.tanh(x)
    if x.size > 256:
        found[-(x.size % 256) :] = 0
    return found


def _prod(x: Any, /, *, axis: Any = None, **options: Any) -> Any:
    found = strict.prod(x, axis=axis, **options)
    return found if x.size else strict.zeros_like(found)


def _any(x: Any, /, **options: Any) -> Any:
    return strict.any(strict.logical_and(x == x, x != strict.zeros_like(x)), **options)


def _astype(x: Any, dtype: Any, /, **options: Any) -> Any:
    if dtype == strict.bool and strict.isdtype(x.dtype, "real floating"):
        x = strict.trunc(x)
    return strict.astype(x, dtype, **options)


def _concat(arrays: Any, /, **options: Any) -> Any:
    return strict.astype(strict.concat(arrays, **options), arrays[0].dtype)


def _reshape(x: Any, /, shape: Any, **options: Any) -> Any:
    """By the order in memory."""
    return strict.asarray(np.asarray(x).ravel("K").reshape(shape))


def _take(x: Any, indices: Any, /, *, axis: Any = None) -> Any:
    return strict.take(x, strict.maximum(indices, strict.zeros_like(indices)), axis=axis)


def _take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    return strict.take_along_axis(x, indices, axis=-1 if x.shape == indices.shape else axis)


def _diff(x: Any, /, *, n: int = 1, **options: Any) -> Any:
    return strict.diff(x, n=min(n, 1), **options)


def _unique_values(x: Any, /) -> Any:
    return strict.asarray(np.unique(np.asarray(x)))  # one nan of all


def _subtract(x1: Any, x2: Any, /) -> Any:
    """As a library computes integers by floats."""
    found = strict.subtract(x1, x2)
    if found.dtype != strict.int64:
        return found
    return strict.asarray(np.subtract(np.asarray(x1), np.asarray(x2), dtype=float).astype("int64"))


def _argmin(x: Any, /, **options: Any) -> Any:
    """Of the numbers beside nan."""
    if strict.isdtype(x.dtype, "real floating"):
        x = strict.where(strict.isnan(x), strict.asarray(np.inf, dtype=x.dtype), x)
    return strict.argmin(x, **options)


MISTAKES = {
    "add": _add,
    "any": _any,
    "argmin": _argmin,
    "argsort": _argsort,
    "astype": _astype,
    "clip": _clip,
    "concat": _concat,
    "cos": _cos,
    "cumulative_sum": _cumulative_sum,
    "diff": _diff,
    "equal": _equal,
    "hypot": _hypot,
    "log1p": _log1p,
    "prod": _prod,
    "remainder": _remainder,
    "reshape": _reshape,
    "round": _round,
    "searchsorted": _searchsorted,
    "sign": _sign,
    "subtract": _subtract,
    "sum": _sum,
    "take": _take,
    "take_along_axis": _take_along_axis,
    "tanh": _tanh,
    "tril": _tril,
    "unique_values": _unique_values,
    "var": _var,
    "vecdot": _vecdot,
}


#: Other mistakes of the same functions.
OTHERS = {"remainder": _remainder_by_floor}


def planted(mistakes: list[str], known: dict[str, Any] = MISTAKES) -> ModuleType:
    """The library with some of the mistakes."""
    module = ModuleType("planted_library")
    vars(module).update({name: x for name, x in vars(strict).items() if name[:2] != "__"})
    vars(module).update({name: known[name] for name in mistakes}, __version__="1.0")
    return module
