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


def total(results: Any) -> Any:
    """A weighted sum of all floating parts of a result, or None if there are none."""
    found: Any = None
    for i, part in enumerate(leaves(results)):
        kind = np.dtype(getattr(part, "dtype", type(part))).kind
        if kind == "f" and getattr(part, "size", 1):
            weights = np.cos(np.arange(np.size(part)) + i).reshape(np.shape(part))
            held = np.isfinite(plain(part))
            term = (part * weights)[held] if weights.shape else part * weights
            term = (wg if isinstance(part, wg.Tensor) else np).sum(term)
            found = term if found is None else found + term
    return found


def slope(f: Any, x: Any, along: Any, h: float = 1e-4) -> float:
    """The derivative of a function in a direction, by differences."""
    steps = [float(f(x + k * h * along)) for k in (-2, -1, 1, 2)]
    return (steps[0] - 8 * steps[1] + 8 * steps[2] - steps[3]) / (12 * h)
