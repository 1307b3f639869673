"""Small functions that compiled programs call where NumPy has none of that kind."""

from functools import lru_cache
from typing import Any

import numpy as np

from wengert.backends.numpy_networks import counted_targets, row_layout
from wengert.compiler.passes.forms import FORMS, Form

__all__ = [
    "copied",
    "copied_into",
    "counted_losses",
    "number_counted",
    "placed",
    "polygamma",
    "targets",
]


def copied(x: Any) -> Any:
    """A copy of an array of no axes; one of NumPy's scalars, which nobody changes, as it is."""
    return x if isinstance(x, np.generic) else x.copy()


def copied_into(x: Any, shape: tuple[int, ...]) -> Any:
    """``x`` broadcast to a shape, in memory of its own."""
    out = np.empty(shape, x.dtype)
    out[...] = x
    return out


def placed(x: Any, places: Any, values: Any) -> Any:
    """A copy of ``x`` with other values at some places, counted along the whole array."""
    out = x.copy()
    out.put(places, values)
    return out


def polygamma(x: Any, n: int) -> Any:
    """The polygamma function of an order."""
    from scipy.special import polygamma

    return polygamma(n, x)


@lru_cache(maxsize=64)
def all_counted(rows: int) -> Any:
    """What says that each row counts."""
    return np.ones(rows, bool)


@lru_cache(maxsize=64)
def same_part(rows: int, part: float, dtype: Any) -> Any:
    """The same part for each row."""
    return np.full(rows, part, dtype)


def targets(
    target: Any, classes: int, ignored: int, mean: bool, dtype: Any
) -> tuple[Any, Any, Any]:
    """Where each row's right class is, each row's part in the loss, and which rows count.

    Raises
    ------
    IndexError
        For a class that there is not.
    """
    rows = len(target)
    # Unsigned, a negative index is larger than any other.
    plain = target.view(np.uint64)
    if plain.item(plain.argmax()) < classes and not 0 <= ignored < classes:
        part = same_part(rows, 1 / rows if mean else 1, dtype)
        return row_layout(rows, classes)[0] + target, part, all_counted(rows)
    target, counted, number = counted_targets(target, classes, ignored, dtype)
    part = counted / np.asarray(max(number, 1) if mean else 1, dtype)
    return row_layout(rows, classes)[0] + target, part.astype(dtype), counted != 0


def counted_losses(losses: Any, counted: Any) -> Any:
    """The losses of rows that count, and zero for the others."""
    return losses if counted is all_counted(len(losses)) else np.where(counted, losses, 0)


def number_counted(counted: Any) -> float:
    """How many rows count; not a number if none does."""
    if counted is all_counted(len(counted)):
        return len(counted)
    return int(np.count_nonzero(counted)) or np.nan


FORMS[copied_into] = Form("{out}[...] = {0}", statement=True)
FORMS[placed] = Form("{out}.put({1}, {2})", inside="only", statement=True)
