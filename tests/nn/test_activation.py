"""Activations by their formulas and against PyTorch, at special points too; dropout of channels."""

import pickle

import numpy as np

import wengert as wg
from tests.walking import refusals, refuse, walk
from wengert.nn import functional as F


def test_nothing_becomes_nan_at_infinity_and_nan_stays() -> None:
    ends = np.array([np.inf, -np.inf, np.nan])
    for name in ("relu6", "hardswish", "selu"):
        x = wg.asarray(ends).requires_grad_()
        y = getattr(F, name)(x)
        assert np.isnan(y.detach().numpy()).tolist() == [False, False, True], name
        y.backward(wg.asarray([1.0, 1.0, 0.0], dtype=wg.float64))
        assert not np.isnan(x.grad.numpy()[:2]).any(), name


def test_functions_of_arrays_are_pickled_by_their_names_here() -> None:
    for f in (F.relu, F.silu, F.leaky_relu, wg.relu):
        assert pickle.loads(pickle.dumps(f)) is f


def test_digits_of_hardswish_beside_its_end() -> None:
    x = np.linspace(-2.9999, -2.99, 401, dtype="float32")
    exact = x.astype("float64") * (x.astype("float64") + 3) / 6
    np.testing.assert_allclose(F.hardswish(wg.asarray(x)).numpy(), exact, rtol=3e-7)


#: Calls, their errors, and what these say.
REFUSED = r"""
F.softmax(wg.ones(2)) | ValueError | needs dim
F.hardswish(wg.ones(2, dtype="complex64")) | TypeError | real floating input, not one of
F.elu(wg.ones(2, dtype="complex64")) | TypeError | real floating input, not one of
nn.Dropout2d(1.5) | ValueError | between 0 and 1, but got 1.5
"""


def test_what_does_not_fit_is_told() -> None:
    walk(refusals(REFUSED), refuse(), whole=True)


def test_softplus_is_straight_beyond_its_threshold_and_not_at_it() -> None:
    x = wg.asarray([20.0, np.nextafter(20.0, 21.0)], dtype="float64", requires_grad=True)
    y = F.softplus(x)
    wg.sum(y).backward()
    small = np.exp(-20.0)
    np.testing.assert_allclose(y.detach().numpy() - 20, [np.log1p(small), 0], atol=1e-14)
    np.testing.assert_allclose(1 - x.grad.numpy(), [small / (1 + small), 0], atol=1e-15)


def test_the_second_derivative_of_elu_at_zero_is_that_of_the_line(backend):
    """It is 0 there and above, as in PyTorch, whose first one is alpha at 0."""
    half = wg.asarray(0.5, dtype=wg.float64)
    for function, first, left in (
        (lambda x: F.elu(x), 1, 1),
        (lambda x: F.elu(x, 2.0), 2, 2),
        (lambda x: F.elu(x, 2), 2, 2),
        (lambda x: F.elu(x, half), 0.5, 0.5),
        (lambda x: F.selu(x) / 1.0507009873554805, 1.6732632423543772, 1.6732632423543772),
    ):
        x = wg.tensor([0.0, -1.0, 1.0], dtype=wg.float64, requires_grad=True)
        (g,) = wg.autograd.grad(function(x).sum(), x, create_graph=True)
        (second,) = wg.autograd.grad(g.sum(), x)
        expected = [0, left * np.exp(-1), 0]
        np.testing.assert_allclose(second.numpy(), expected, rtol=1e-12)
        np.testing.assert_allclose(g.detach().numpy()[[0, 2]], [first, 1], rtol=1e-12)
