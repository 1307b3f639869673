"""Calls of SciPy and of `wengert.scipy`, compared: values, and derivatives with differences."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

import wengert as wg


def tensor(x: Any) -> wg.Tensor:
    return wg.asarray(np.array(x, float))


def parts(x: Any) -> list[Any]:
    return list(x) if isinstance(x, tuple | list) else [x]


def total(results: Any) -> Any:
    """A sum of all numbers with factors, of SciPy's results or of ours."""
    found: Any = 0.0
    for i, x in enumerate(parts(results)):
        x = np.asarray(x) if isinstance(x, float) else x
        if hasattr(x, "shape") and not (isinstance(x, np.ndarray) and x.dtype.kind == "i"):
            factors = np.cos(np.arange(int(np.prod(x.shape))) + i).reshape(x.shape)
            ours = isinstance(x, wg.Tensor)
            found = found + (wg.sum(x * tensor(factors)) if ours else np.sum(x * factors))
    return found


def slope(f: Any, x: Any, along: Any, h: float = 1e-4) -> float:
    steps = [float(f(x + k * h * along)) for k in (-2, -1, 1, 2)]
    return (steps[0] - 8 * steps[1] + 8 * steps[2] - steps[3]) / (12 * h)


def wrong(ours: Any, theirs: Any, line: str, given: dict[str, Any]) -> Iterator[str]:
    """What differs of an expression of ``l``, the library, and of named arrays."""
    names = [k for k in given if re.search(rf"(?<![\w.]){k}\b(?!=)", line)]
    tensors = {k: tensor(v) for k, v in given.items()}
    expected = parts(eval(line, {"l": theirs, **given}))
    for one, own in zip(parts(eval(line, {"l": ours, **tensors})), expected, strict=True):
        if not isinstance(one, wg.Tensor):
            yield f"{line}: {type(one).__name__}"
        elif one.dtype.name != np.asarray(own).dtype.name or not np.allclose(
            one.numpy(), own, rtol=1e-11, atol=1e-13
        ):
            yield f"{line}: {one} against {own}"
    for name in names:
        along = np.sin(1.0 + np.arange(given[name].size)).reshape(given[name].shape)
        if given[name].ndim == 2 and np.array_equal(given[name], given[name].T):
            along = (along + along.T) / 2  # functions of symmetric matrices read one triangle
        x, v = tensors[name], tensor(along)

        def f(p: Any, name: str = name) -> Any:
            return total(eval(line, {"l": ours, **tensors, name: p}))

        def own(p: Any, name: str = name) -> Any:
            return total(eval(line, {"l": theirs, **given, name: p}))

        def first(p: Any, f: Any = f, v: Any = v) -> Any:
            return wg.sum(wg.grad(f)(p) * v)

        found, expected_slope = float(first(x)), slope(own, given[name], along)
        if not abs(found - expected_slope) < 1e-7 * (1 + abs(expected_slope)):
            yield f"{line} by {name}: {found} against {expected_slope}"
        pushed = float(wg.jvp(f, (x,), (v,))[1])
        if not abs(found - pushed) < 1e-9 * (1 + abs(found)):
            yield f"{line} by {name}, forward: {pushed} against {found}"
        twice = float(wg.sum(wg.grad(first)(x) * v))
        expected_twice = slope(lambda p: first(tensor(p)), given[name], along)
        if not abs(twice - expected_twice) < 1e-5 * (1 + abs(expected_twice)):
            yield f"{line} by {name}, twice: {twice} against {expected_twice}"


def all_wrong(ours: Any, theirs: Any, rows: str, given: dict[str, Any]) -> list[str]:
    return [one for line in rows.strip().splitlines() for one in wrong(ours, theirs, line, given)]
