"""NumPy's functions and methods: values as NumPy has them, derivatives as differences have them."""

import re
import warnings
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.numpy.compare import differences, evaluate, slope, total
from tests.numpy.rows import ROWS, WITHOUT, arguments

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize("line", ROWS)
def test_values_are_numpys(room: Any, line: str) -> None:
    assert differences(room, line) == []


def floating(line: str) -> list[str]:
    names = set(re.findall(r"\b(?<!\.)([a-z]+)\b", line))
    return [k for k, v in arguments().items() if k in names and v.dtype.kind == "f"]


@pytest.mark.parametrize("line", [line for line in ROWS if not any(w in line for w in WITHOUT)])
def test_derivatives_are_those_of_differences(room: Any, line: str) -> None:
    """In a direction, and once more of the gradient along it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if total(evaluate(np, line, arguments())) is None:
            pytest.skip("no floating result")
    for name in floating(line):
        given = {k: room.array(v) for k, v in arguments().items()}
        direction = np.sin(1.0 + np.arange(given[name].size)).reshape(given[name].shape)

        def f(value: Any, name: str = name, given: dict[str, Any] = given) -> Any:
            return total(evaluate(room, line, given | {name: value})) + 0 * room.sum(value * 0)

        def own(value: Any, name: str = name) -> Any:
            return total(evaluate(np, line, arguments() | {name: value}))

        def along(value: Any, f: Any = f, direction: Any = direction) -> Any:
            return room.sum(room.nan_to_num(wg.grad(f)(value)) * direction)

        x = given[name]
        defined = np.where(np.isnan(x.detach().numpy()), 0.0, direction)
        expected = slope(own, arguments()[name], defined, 1e-5)
        found = float(along(x))
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-7), name
        h = 1e-5
        second = (float(along(x + h * direction)) - float(along(x - h * direction))) / (2 * h)
        again = float(room.sum(room.nan_to_num(wg.grad(along)(x)) * direction))
        assert again == pytest.approx(second, rel=1e-4, abs=2e-5), name
