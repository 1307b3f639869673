"""What a wrong derivative looks like."""

from fractions import Fraction

import numpy as np
import pytest

from tests.testing.test_contrast import told
from wengert.testing.differences import Segment
from wengert.testing.likeness import NEAR, Found, likeness, name_factor

# -- how -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_factor_that_follows_a_length(plant):
    for function, by, words in (
        (lambda xp, x: xp.mean(x), 1, "of n, where n = 2 is the length of an axis"),
        (lambda xp, x: xp.sum(x), -1, "of 1/n, where n = 2"),
    ):

        def rule(xp, g, x_shape):
            factor = 1 if by == 1 else 1 / max(x_shape)  # noqa: B023
            return xp.broadcast_to(xp.multiply(g, factor), x_shape)

        wrong = plant(function, linear="together", x=rule)
        assert f"off by a factor {words}" in told(wrong, ("n",), settings=None)


def test_a_transposed_gradient(plant):
    wrong = plant(lambda xp, x: xp.matrix_transpose(x), linear="together", x=lambda xp, g: g)
    assert "looks:     transposed" in told(wrong, (2, 2))


def found(analytic, numerical, **kinds):
    a, n = np.atleast_2d(np.asarray(analytic, float)), np.atleast_2d(np.asarray(numerical, float))
    rows, columns = n.shape
    parts = {"inputs": [Segment((columns,), False)], "results": [Segment((rows,), False)]} | kinds
    return Found(a, n, ~np.isclose(a, n), **parts)


def test_likeness():
    for analytic, numerical, words in [
        ([-1, -2.5], [1, 2.5], "the sign is flipped"),
        ([0, 0], [1, 2.5], "zero where it should not be"),
        ([3, 1], [0, 1], "not zero where it should be"),
        ([1, 1], [1e-12, 1], "not zero where it should be"),
        ([2.0, 4.0], [2e-6, 4e-6], "off by a factor of 1000000"),
        ([np.nan, 1], [1, 1], "nan where it should be a number"),
        ([np.inf, 1], [1, 1], "infinite where it should be finite"),
        ([2, 1], [6, 3], "off by a factor of 1/3"),
        ([np.log(2), 1], [1, 1], "off by a factor of log 2"),
        ([1.5, 3.5, 7.5], [1, 3, 7], "off by the same amount everywhere, 0.5"),
        ([1e5 + 1.5, 1e3 + 2], [1e5, 1e3], None),  # amounts that are alike beside the first only
        ([3, 2, 1], [1, 2, 3], "in reverse order"),
        ([7, 1.25], [1, 3], None),
    ]:
        assert likeness(found(analytic, numerical)) == words
    # The Jacobian of z -> (2 + 3i) z in reals, and of its real part, and those of the conjugates.
    number, real, either = [Segment((), True)], [Segment((), False)], "conjugated the sign is flip"
    one = found([[2, 3], [-3, 2]], [[2, -3], [3, 2]], inputs=number, results=number)
    assert likeness(one._replace(wrong=np.ones((2, 2), bool)))[:16] in either
    assert likeness(found([[2, 3]], [[2, -3]], inputs=number, results=real))[:16] in either
    # t -> (2 + 3i) t, of a real number: the second part alone is turned.
    one = found([[2], [-3]], [[2], [3]], inputs=real, results=number)
    assert likeness(one._replace(wrong=np.ones((2, 1), bool))) == "conjugated"
    # Of a 2 x 2 argument; atol of `found` would call entries of 1e-6 equal.
    square = {"inputs": [Segment((2, 2), False)], "wrong": np.ones((2, 4), bool)}
    right = 1e-6 * np.asarray([[1.0, 2, 3, 4], [5, 6, 7, 8]])
    three = found(3 * right, right)._replace(**square)
    assert likeness(three) == "off by a factor of 3"
    assert (
        likeness(three._replace(analytic=-right * 1e-3, numerical=right * 1e-3))[-7:] == "flipped"
    )
    assert likeness(three._replace(analytic=right[:, [0, 2, 1, 3]])) == "transposed"


def test_names_of_factors():
    numbers = (0.5, -2.0, 1 / 3, 2 * np.pi, -np.sqrt(2), 1.2345678)
    assert "; ".join(map(name_factor, numbers)) == "1/2; -2; 1/3; 2 pi; -sqrt 2; 1.23457"
    assert name_factor(1.000003) == "1.000003"
    for number in (1 / 64, 0.5, 100.0):  # relatively to the factor
        assert name_factor(number * (1 + NEAR / 2)) == str(Fraction(number))
        assert "." in name_factor(number * (1 + 3 * NEAR))
