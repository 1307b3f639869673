"""The elementwise chapter where its functions are singular, and how scalars and dtypes fare."""

import math

import numpy as np
import pytest

import wengert as wg
from wengert.backends import Backend
from wengert.testing.problem import values

INF, NAN = math.inf, math.nan
pytestmark = pytest.mark.filterwarnings(
    "ignore:(divide by zero|invalid value|overflow) encountered:RuntimeWarning"
)
#: For a point at which nothing may be computed that NumPy would warn of.
quiet = pytest.mark.filterwarnings("error")


def gradients(name, *args, **kwargs):
    """The gradients of a function's sum with respect to its array arguments."""
    tensors = [wg.tensor(a, dtype=kind(a), requires_grad=True) for a in args]
    out = getattr(wg, name)(*tensors, **kwargs)
    return [values(g) for g in wg.autograd.grad(out, tensors, wg.ones_like(out))]


def kind(a):
    return "complex128" if np.iscomplexobj(np.asarray(a)) else "float64"


# Function, operands, derivative of each. What PyTorch gives, and where that is nan, a number.
SINGULAR = [
    ("abs", [[-2.0, 0.0, 3.0]], [[-1.0, 0.0, 1.0]]),
    ("abs", [[0j, 3 + 4j]], [[0j, 0.6 + 0.8j]]),
    ("sign", [[-2.0, 0.0]], [[0.0, 0.0]]),
    ("sign", [[0j, 2j, 4.0]], [[0j, 0.5, 0j]]),
    ("sqrt", [[0.0, 4.0]], [[INF, 0.25]]),
    ("ceil", [[1.0, 1.5]], [[0.0, 0.0]]),
    ("floor", [[1.0, 1.5]], [[0.0, 0.0]]),
    ("round", [[1.0, 1.5]], [[0.0, 0.0]]),
    ("trunc", [[1.0, 1.5]], [[0.0, 0.0]]),
    ("asin", [[1.0, -1.0]], [[INF, INF]]),
    ("acos", [[1.0, -1.0]], [[-INF, -INF]]),
    ("acosh", [[1.0]], [[INF]]),
    ("atanh", [[1.0, -1.0]], [[INF, INF]]),
    ("log", [[0.0]], [[INF]]),
    ("log1p", [[-1.0]], [[INF]]),
    ("tanh", [[INF, -INF, 400.0]], [[0.0, 0.0, 0.0]]),
    ("atan", [[INF, -INF]], [[0.0, 0.0]]),
    ("maximum", [[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]], [[0.0, 0.5, 1.0], [1.0, 0.5, 0.0]]),
    ("minimum", [[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]], [[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]]),
    ("maximum", [[INF, -INF], [INF, INF]], [[0.5, 0.0], [0.5, 1.0]]),
    ("copysign", [[0.0, 2.0, -2.0], [-1.0, -1.0, -1.0]], [[0.0, -1.0, 1.0], [0.0] * 3]),
    ("remainder", [[5.0, -5.0], [3.0, 3.0]], [[1.0, 1.0], [-1.0, 2.0]]),
    ("floor_divide", [[5.0], [3.0]], [[0.0], [0.0]]),
    ("hypot", [[0.0, 3.0, 0.0], [0.0, 4.0, 2.0]], [[0.0, 0.6, 0.0], [0.0, 0.8, 1.0]]),
    ("hypot", [[3e200], [4e200]], [[0.6], [0.8]]),
    ("hypot", [[INF, 1.0, -INF, INF], [1.0, -INF, 0.0, INF]],
     [[1.0, 0.0, -1.0, NAN], [0.0, -1.0, 0.0, NAN]]),
    ("hypot", [[1.5e308], [1.5e308]], [[NAN], [NAN]]),
    ("atan2", [[0.0, 1.0], [0.0, 1.0]], [[0.0, 0.5], [0.0, -0.5]]),
    ("atan2", [[1e-200], [1e-200]], [[5e199], [-5e199]]),
    ("pow", [[0.0, 0.0, 0.0], [0.0, 1.0, 2.0]], [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]),
    ("pow", [[0.0], [0.5]], [[INF], [0.0]]),
    ("pow", [[-2.0], [3.0]], [[12.0], [NAN]]),
    ("pow", [[3.0], [0.0]], [[0.0], [math.log(3)]]),
    ("pow", [[0j, 0j], [2 + 0j, 0j]], [[0j, 0j], [0j, 0j]]),
    ("logaddexp", [[-INF, INF, INF], [-INF, INF, 1.0]], [[0.5, 0.5, 1.0], [0.5, 0.5, 0.0]]),
    ("logaddexp", [[2.0, 1e4], [-INF, -1e4]], [[1.0, 1.0], [0.0, 0.0]]),
    ("conj", [[1 + 2j]], [[1.0]]),
    ("real", [[1 + 2j]], [[1.0]]),
    ("imag", [[1 + 2j]], [[1j]]),
]  # fmt: skip


@pytest.mark.whole
@pytest.mark.parametrize(("name", "args", "expected"), SINGULAR)
def test_derivatives_at_singular_points(backend: Backend, name, args, expected) -> None:
    found = gradients(name, *args)
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)


def test_mixed_second_derivative_of_pow_where_the_exponent_is_zero(backend: Backend) -> None:
    x = wg.tensor([4.0], dtype="float64", requires_grad=True)
    y = wg.tensor([0.0], dtype="float64", requires_grad=True)
    (dx,) = wg.autograd.grad(wg.pow(x, y), x, create_graph=True)
    (dxdy,) = wg.autograd.grad(dx, y)
    assert dxdy.tolist() == [0.25]  # of y x**(y - 1)


def test_clip_differentiates_with_respect_to_its_bounds(backend: Backend) -> None:
    dx, dlow, dhigh = gradients("clip", [-2.0, -1.0, 0.0, 1.0, 2.0], [-1.0] * 5, [1.0])
    assert dx.tolist() == [0, 1, 1, 1, 0]
    assert dlow.tolist() == [1, 0, 0, 0, 0]
    assert dhigh.tolist() == [1]


# -- powers with a number for an exponent --------------------------------------------------------


@quiet
@pytest.mark.parametrize("zero", [0.0, 0j])
def test_powers_of_zero_by_numbers(backend: Backend, zero) -> None:
    x = wg.tensor([zero], dtype=kind(zero), requires_grad=True)
    for exponent, first, second in [(0, 0, 0), (1, 1, 0), (2, 0, 2), (3, 0, 0)]:
        out = wg.pow(x, exponent)
        assert values(out).tolist() == [0 if exponent else 1]
        (g,) = wg.autograd.grad(out, x, wg.ones_like(out), create_graph=True)
        assert values(g).tolist() == [first]
        if g.requires_grad:
            assert values(wg.autograd.grad(g, x, wg.ones_like(g))[0]).tolist() == [second]
