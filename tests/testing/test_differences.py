"""What differences tell of a point: a slope, a kink, a jump, or neither."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wengert.testing.differences import derivative

POINTS: list[tuple[str, Callable[[Any], Any], float, bool]] = [
    ("smooth", np.sin, 0.0, False),
    ("a kink", np.abs, 2.0, False),
    ("a kink on a slope", lambda t: 3 * t + np.maximum(t, 0), 1.0, False),
    ("a step", lambda t: np.where(t > 0, 1.0, 0.0), 0.0, True),
    ("a step on both sides", np.sign, 0.0, True),
    ("a root, as steep as none", lambda t: np.sqrt(np.abs(t)), 0.0, True),
    ("a cubic root", np.cbrt, 0.0, True),
]


@pytest.mark.parametrize(("what", "function", "kink", "jump"), POINTS)
def test_what_a_point_is(
    what: str, function: Callable[[Any], Any], kink: float, jump: bool
) -> None:
    def line(t: float) -> Any:
        return np.asarray([function(np.float64(t))])

    found = derivative(line, 2.0**-8, lambda estimate: False)
    np.testing.assert_allclose(found.kink, [kink], rtol=1e-6, atol=1e-9)
    assert list(found.jump) == [jump]
    if what == "smooth":
        np.testing.assert_allclose(found.value, [1.0], rtol=1e-12)
    if kink:
        np.testing.assert_allclose(found.right - found.left, [kink], rtol=1e-6)
