"""What differences tell of a point: a derivative, or that there is none."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from wengert.testing.differences import Segment, agree, derivative


def estimated(function: Callable[[Any], Any]) -> Any:
    """The estimate at 0."""
    along = lambda t: np.asarray([function(np.float64(t))])
    return derivative(along, 2.0**-8, lambda estimate: False)


SMOOTH: list[tuple[Callable[[Any], Any], float]] = [
    (np.sin, 1.0),
    (lambda t: np.exp(3 * t), 3.0),
    (lambda t: 1 / (2 + t), -0.25),
    (lambda t: 5 * t, 5.0),
]
JUMPS: list[Callable[[Any], Any]] = [lambda t: np.where(t > 0, 1.0, 0.0), np.sign, np.cbrt]


def test_slopes_to_a_few_digits_less_than_there_are() -> None:
    for function, slope in SMOOTH:
        found = estimated(function)
        np.testing.assert_allclose(found.value, [slope], rtol=1e-12)
        assert found.error[0] <= 1e-10


def test_where_nothing_converges_the_error_is_as_large_as_the_value() -> None:
    for found in map(estimated, JUMPS):
        assert found.error[0] >= abs(found.value[0]) / 10


def test_numbers_of_a_row_are_named_by_their_entries():
    assert [Segment((3,), True).entry("x", at) for at in range(6)] == [
        *("Re x[0]", "Im x[0]", "Re x[1]", "Im x[1]", "Re x[2]", "Im x[2]")
    ]
    assert [Segment((2, 2), False).entry("x", at) for at in range(3)] == [
        *("x[0, 0]", "x[0, 1]", "x[1, 0]")
    ]
    assert [Segment((), True).entry("x", at) for at in range(2)] == ["Re x", "Im x"]


def test_arrays_agree_up_to_rounding_of_the_largest_finite_element():
    near = partial(agree, rtol=1e-9, atol=1e-12, of_largest=1e-12)
    expected = np.asarray([np.inf, 1e6, 1.0, np.nan])
    assert near(expected * (1 + 1e-10), expected)
    assert near(expected + [0, 0, 5e-7, 0], expected)  # 1e-12 of 1e6 are 1e-6
    for i in range(4):
        wrong = expected.copy()
        wrong[i] = 2.0
        assert not near(wrong, expected)  # an infinite element allows nothing
    assert not near(np.zeros(2), np.zeros((2, 1)))
    assert near(np.asarray(1e-13), np.asarray(0.0))
    assert not near(np.asarray(1e-11), np.asarray(0.0))
    assert near(np.zeros(0), np.zeros(0))
