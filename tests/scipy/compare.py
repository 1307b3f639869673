"""Rows of the catalogue, compared: values with SciPy's, and derivatives with differences."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

import wengert as wg
from tests.catalogue.scipy import Call
from tests.numpy.compare import leaves, slope, total


def tensor(x: Any) -> wg.Tensor:
    return wg.asarray(np.array(x, float))


def libraries(row: Call) -> tuple[Any, Any]:
    """Our module of a row's function, and SciPy's."""
    module = row.name.rpartition(".")[0]
    return import_module(f"wengert.scipy.{module}"), import_module(f"scipy.{module}")


def is_symmetric(x: Any) -> bool:
    return bool(np.ndim(x) == 2 and np.array_equal(x, np.transpose(x)))


def mirrored(x: Any) -> Any:
    """A symmetric matrix: functions of these read one triangle."""
    return (x + x.T) / 2


def wrong(row: Call) -> Iterator[str]:
    """What differs in one row."""
    (ours, theirs), given = libraries(row), row.given
    values, slopes, seconds = row.near
    tensors = {k: tensor(v).requires_grad_() for k, v in given.items()}
    expected = leaves(row.run(theirs, given))
    for one, own in zip(leaves(row.run(ours, tensors)), expected, strict=True):
        if not isinstance(one, wg.Tensor):
            yield f"{type(one).__name__}"
        elif one.dtype.name != np.asarray(own).dtype.name or not np.allclose(
            one.detach().numpy(), own, rtol=values, atol=values / 100
        ):
            yield f"{one} against {own}"
    for name in given:
        along = np.sin(1.0 + np.arange(given[name].size)).reshape(given[name].shape)
        along = mirrored(along) if is_symmetric(given[name]) else along
        x, v = tensor(given[name]), tensor(along)

        def f(p: Any, name: str = name) -> Any:
            return total(row.run(ours, {**{k: tensor(x) for k, x in given.items()}, name: p}))

        def own(p: Any, name: str = name) -> Any:
            return total(row.run(theirs, {**given, name: p}))

        def first(p: Any, f: Any = f, v: Any = v) -> Any:
            return wg.sum(wg.grad(f)(p) * v)

        found, number = float(first(x)), slope(own, given[name], along, row.step)
        if not abs(found - number) < slopes * (1 + abs(number)):
            yield f"by {name}: {found} against {number}"
        if seconds:
            pushed = float(wg.jvp(f, (x,), (v,))[1])
            if not abs(found - pushed) < slopes / 10 * (1 + abs(found)):
                yield f"by {name}, forward: {pushed} against {found}"
            twice = float(wg.sum(wg.grad(first)(x) * v))
            number = slope(lambda p, first=first: first(tensor(p)), given[name], along, row.step)
            if not abs(twice - number) < seconds * (1 + abs(number)):
                yield f"by {name}, twice: {twice} against {number}"
