"""What differences tell of a point: a derivative, or that there is none."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wengert.testing.differences import derivative


def estimated(function: Callable[[Any], Any]) -> Any:
    """The estimate at 0."""
    return derivative(
        lambda t: np.asarray([function(np.float64(t))]), 2.0**-8, lambda estimate: False
    )


SMOOTH: list[tuple[Callable[[Any], Any], float]] = [
    (np.sin, 1.0),
    (lambda t: np.exp(3 * t), 3.0),
    (lambda t: 1 / (2 + t), -0.25),
    (lambda t: 5 * t, 5.0),
]
JUMPS: list[Callable[[Any], Any]] = [lambda t: np.where(t > 0, 1.0, 0.0), np.sign, np.cbrt]


@pytest.mark.parametrize(("function", "slope"), SMOOTH)
def test_slopes_to_a_few_digits_less_than_there_are(
    function: Callable[[Any], Any], slope: float
) -> None:
    found = estimated(function)
    np.testing.assert_allclose(found.value, [slope], rtol=1e-12)
    assert found.error[0] <= 1e-10


@pytest.mark.parametrize("function", JUMPS)
def test_where_nothing_converges_the_error_is_as_large_as_the_value(
    function: Callable[[Any], Any],
) -> None:
    found = estimated(function)
    assert found.error[0] >= abs(found.value[0]) / 10
