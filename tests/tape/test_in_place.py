"""In-place operations give the same Tensor another array: values are shared, storage never is."""

import numpy as np
import pytest

import wengert as wg

pytestmark = pytest.mark.usefixtures("backend")


def leaf(*values):
    return wg.tensor(list(values), dtype=wg.float64, requires_grad=True)


def test_in_place_on_a_leaf_is_an_error_outside_no_grad():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x += 1
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x[0] = 5.0
    np.testing.assert_array_equal(x.detach().numpy(), [1.0, 2.0])
    assert x.is_leaf
    with wg.no_grad():
        x += 1
        x[0] = 5.0
    np.testing.assert_array_equal(x.detach().numpy(), [5.0, 3.0])
    assert x.is_leaf and x.requires_grad


def test_in_place_is_differentiated():
    x = leaf(2.0, 3.0)
    y = x * x
    same = y
    y *= x
    y[0] = y[1] * 2
    assert same is y and not y.is_leaf
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [0.0, 3 * 27.0])


def test_what_the_tape_saved_stays():
    x = leaf(2.0)
    y = wg.exp(x)
    z = y * 1.0
    y += 100.0  # exp saved its result
    z.backward()
    assert x.grad.item() == pytest.approx(np.exp(2.0))


def test_nobody_else_sees_the_change(backend):
    a = np.asarray([1.0, 2.0])
    x = wg.asarray(a)
    y, row = x.detach(), wg.asarray([[1.0, 2.0]])
    first = row[0]
    with pytest.warns(wg.ViewWarning):
        x += 1
    with pytest.warns(wg.ViewWarning):
        x[0] = 9.0
    with pytest.warns(wg.ViewWarning):
        first[0] = 7.0
    np.testing.assert_array_equal(a, [1.0, 2.0])
    np.testing.assert_array_equal(y.numpy(), [1.0, 2.0])
    np.testing.assert_array_equal(row.numpy(), [[1.0, 2.0]])


def test_an_untracked_tensor_becomes_tracked():
    x, y = leaf(2.0), wg.zeros(1, dtype=wg.float64)
    y += x * 3
    assert y.requires_grad and not y.is_leaf
    y.backward()
    assert x.grad.item() == 3.0


def test_retained_gradient_is_that_of_the_new_value():
    x = leaf(2.0)
    y = x * 1.0
    y.retain_grad()
    y *= 5.0
    (y * 7.0).backward()
    assert y.grad.item() == 7.0
    assert x.grad.item() == 35.0
