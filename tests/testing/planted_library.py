"""The strict library with mistakes in it, each in a function that agrees on ordinary arguments."""

from types import ModuleType
from typing import Any

import array_api_strict as strict


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


MISTAKES = {
    "argsort": _argsort,
    "clip": _clip,
    "cumulative_sum": _cumulative_sum,
    "log1p": _log1p,
    "remainder": _remainder,
    "round": _round,
    "searchsorted": _searchsorted,
    "sign": _sign,
    "sum": _sum,
    "tril": _tril,
    "var": _var,
    "vecdot": _vecdot,
}


def planted(mistakes: list[str]) -> ModuleType:
    """The library with some of the mistakes."""
    module = ModuleType("planted_library")
    vars(module).update({name: x for name, x in vars(strict).items() if name[:2] != "__"})
    vars(module).update({name: MISTAKES[name] for name in mistakes}, __version__="1.0")
    return module
