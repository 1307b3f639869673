"""Evaluates an expression in two libraries, and says how the results differ."""

from typing import Any

import numpy as np

import wengert as wg
from tests.numpy.rows import arguments


def evaluate(library: Any, line: str, given: dict[str, Any]) -> Any:
    return eval(line, {"n": library} | given)


def leaves(value: Any) -> list[Any]:
    """The arrays and numbers of a result, of which parts may be in tuples and lists."""
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def plain(value: Any) -> Any:
    if isinstance(value, wg.Tensor):
        return value.detach().numpy()
    return np.asarray(value)


def differences(room: Any, line: str) -> list[str]:
    """How values, shapes and dtypes differ."""
    given = arguments()
    theirs = leaves(evaluate(np, line, given))
    for wrap in (room.array, lambda x: wg.tensor(x, requires_grad=x.dtype.kind == "f")):
        ours = leaves(evaluate(room, line, {k: wrap(v) for k, v in given.items()}))
        if len(ours) != len(theirs):
            return [f"{line}: {len(ours)} parts against {len(theirs)}"]
        for one, other in zip(map(plain, ours), map(plain, theirs), strict=True):
            if one.shape != other.shape or one.dtype != other.dtype:
                return [f"{line}: {one.dtype} {one.shape} against {other.dtype} {other.shape}"]
            if not np.allclose(one, other, rtol=1e-9, atol=1e-11, equal_nan=True):
                return [f"{line}: {one} against {other}"]
    return []


def total(library: Any, line: str, given: dict[str, Any]) -> Any:
    """A weighted sum of all floating parts of a result, or None if there are none."""
    found: Any = None
    for i, part in enumerate(leaves(evaluate(library, line, given))):
        kind = np.dtype(getattr(part, "dtype", type(part))).kind
        if kind == "f" and getattr(part, "size", 1):
            weights = np.cos(np.arange(part.size) + i).reshape(tuple(part.shape))
            held = np.isfinite(plain(part))
            term = library.sum((part * weights)[held] if part.shape else part * weights)
            found = term if found is None else found + term
    return found


def slopes(line: str, name: str, direction: Any) -> float:
    """A derivative in a direction by differences of NumPy's own values."""
    h = 1e-5
    values = []
    for step in (h, -h, 2 * h, -2 * h):
        given = arguments()
        given[name] = given[name] + step * direction
        values.append(total(np, line, given))
    one, two = (values[0] - values[1]) / (2 * h), (values[2] - values[3]) / (4 * h)
    return float((4 * one - two) / 3)
