"""Manipulation and linear algebra: odd forms of their arguments, bad ones, several results."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.backends import Backend
from wengert.testing import gradcheck, gradgradcheck

X = np.arange(1.0, 25).reshape(2, 3, 4)


def tensor(x: Any = X) -> wg.Tensor:
    return wg.asarray(np.asarray(x), requires_grad=True)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("function", "want"),
    [
        (lambda x: wg.expand_dims(x, -1), X[..., None]),
        (lambda x: wg.expand_dims(x, (0, -2)), X[None, :, :, None]),
        (lambda x: wg.squeeze(wg.expand_dims(x, (0, -1)), (0, -1)), X),
        (lambda x: wg.flip(x), X[::-1, ::-1, ::-1]),
        (lambda x: wg.flip(x, axis=(0, -1)), X[::-1, :, ::-1]),
        (lambda x: wg.moveaxis(x, (0, -1), (1, 0)), np.moveaxis(X, (0, -1), (1, 0))),
        (lambda x: wg.permute_dims(x, (1, -1, 0)), X.transpose(1, 2, 0)),
        (lambda x: wg.roll(x, 5), np.roll(X, 5)),
        (lambda x: wg.roll(x, (1, -2), axis=(0, -1)), np.roll(X, (1, -2), (0, -1))),
        (lambda x: wg.roll(x, (1, 1), axis=(1, 1)), np.roll(X, 2, 1)),
        (lambda x: wg.roll(x, 1, axis=(0, 1)), np.roll(X, 1, (0, 1))),
        (lambda x: wg.repeat(x, 2), X.repeat(2)),
        (lambda x: wg.repeat(x, 0, axis=1), X.repeat(0, 1)),
        (lambda x: wg.repeat(x, wg.asarray([2, 0, 1]), axis=-2), X.repeat([2, 0, 1], 1)),
        (lambda x: wg.repeat(x, wg.asarray(2), axis=0), X.repeat(2, 0)),
        (lambda x: wg.tile(x, (2,)), np.tile(X, 2)),
        (lambda x: wg.tile(x, (2, 1, 1, 3)), np.tile(X, (2, 1, 1, 3))),
        (lambda x: wg.tile(x, (0, 1)), np.tile(X, (0, 1))),
        (lambda x: wg.tile(x, ()), X),
        (lambda x: wg.reshape(x, (-1, 6)), X.reshape(-1, 6)),
        (lambda x: wg.reshape(x, (24,), copy=True), X.reshape(24)),
        (lambda x: wg.broadcast_to(x, (2, 2, 3, 4)), np.broadcast_to(X, (2, 2, 3, 4))),
        (lambda x: wg.concat([x, x], axis=None), np.concatenate([X, X], None)),
        (lambda x: wg.concat([x, wg.asarray(X[:, :0])], axis=-2), X),
        (lambda x: wg.stack([x, x], axis=-1), np.stack([X, X], -1)),
        (lambda x: wg.unstack(x, axis=-1)[2], X[..., 2]),
    ],
)
def test_values_and_shape_of_the_derivative(backend: Backend, function: Any, want: Any) -> None:
    x = tensor()
    y = function(x)
    assert y.shape == want.shape
    np.testing.assert_array_equal(y.detach().numpy(), want)
    wg.sum(y * y).backward()
    # Every copy of an element contributes twice its value.
    copies = np.array([np.count_nonzero(want == value) for value in X.reshape(-1)])
    np.testing.assert_allclose(x.grad.numpy(), 2 * X * copies.reshape(X.shape))


def test_unstack_with_only_some_results_used(backend: Backend) -> None:
    x = tensor(X[0])
    rows = wg.unstack(x)
    assert [row.requires_grad for row in rows] == [True] * 3
    (g,) = wg.autograd.grad(wg.sum(rows[1] * rows[1] * rows[2]), [x], create_graph=True)
    np.testing.assert_array_equal(
        g.detach().numpy(), [np.zeros(4), 2 * X[0, 1] * X[0, 2], X[0, 1] ** 2]
    )
    (h,) = wg.autograd.grad(wg.sum(g), [x])
    np.testing.assert_array_equal(h.numpy(), [np.zeros(4), 2 * X[0, 2] + 2 * X[0, 1], 2 * X[0, 1]])


def test_unstack_has_all_derivatives() -> None:
    def function(x: wg.Tensor) -> wg.Tensor:
        first, _, last = wg.unstack(x, axis=1)
        return first * last * last

    assert gradcheck(function, (tensor(),))
    assert gradgradcheck(function, (tensor(),))


def test_gradients_of_results_of_one_operation() -> None:
    a, b = wg.unstack(tensor([2.0, 3.0]))
    da, db = wg.autograd.grad(a * b, [a, b])
    assert (da.item(), db.item()) == (3, 2)


def test_a_node_with_several_results_is_called_with_several_cotangents() -> None:
    a, _ = wg.unstack(tensor([2.0, 3.0]))
    assert a.grad_fn(wg.asarray(5.0), None).tolist() == [5, 0]
    with pytest.raises(RuntimeError, match="shape"):
        a.grad_fn(wg.asarray([5.0]), None)
    with pytest.raises(TypeError, match="2 cotangents"):
        a.grad_fn(wg.asarray(5.0))


def test_rules_create_arrays_on_their_tensors_backend() -> None:
    """Whichever backend is selected when the sweep runs."""
    pytest.importorskip("array_api_strict")
    with wg.use_backend("array_api_strict"):
        x = tensor([[1.0, 2.0], [3.0, 4.0]])
        rows = wg.asarray([[0, 1], [1, 1]])
    y = wg.unstack(wg.take_along_axis(x * x, rows, axis=0))[0]
    (g,) = wg.autograd.grad(wg.sum(y * y), [x], create_graph=True)
    (h,) = wg.autograd.grad(wg.sum(g), [x])
    assert h.backend.name == "array_api_strict"
    np.testing.assert_array_equal(h.numpy(), [[12, 0], [0, 192]])


def test_broadcast_arrays_and_shapes(backend: Backend) -> None:
    x, y, z = tensor(np.ones((3, 1))), tensor(np.ones(2)), tensor(2.0)
    a, b, c = wg.broadcast_arrays(x, y, z)
    assert a.shape == b.shape == c.shape == (3, 2)
    wg.sum(a * 2 + b + c).backward()
    assert x.grad.tolist() == [[4]] * 3
    assert y.grad.tolist() == [3, 3]
    assert z.grad.tolist() == 6
    assert wg.broadcast_arrays() == ()
    assert wg.broadcast_shapes((2, 1), (0,), ()) == (2, 0)


def test_each_nan_is_distinct(backend: Backend) -> None:
    values = np.asarray([[2.0, np.nan, 1.0], [np.nan, 2.0, 0.5]])
    found = wg.unique_all(wg.asarray(values))
    shown, indices, inverse, counts = [np.asarray(x.numpy()) for x in found]
    np.testing.assert_array_equal(shown, [0.5, 1, 2, np.nan, np.nan])
    np.testing.assert_array_equal(counts, [1, 1, 2, 1, 1])
    np.testing.assert_array_equal(shown[inverse], values)
    np.testing.assert_array_equal(values.reshape(-1)[indices], shown)
    again = [
        (wg.unique_values(wg.asarray(values)), 0),
        *zip(wg.unique_counts(wg.asarray(values)), (0, 3), strict=True),
        *zip(wg.unique_inverse(wg.asarray(values)), (0, 2), strict=True),
    ]
    for x, at in again:
        np.testing.assert_array_equal(x.numpy(), found[at].numpy())


def test_sort_sends_cotangents_back_to_equal_elements_in_their_order(backend: Backend) -> None:
    x = wg.asarray(np.array([2.0, 1.0, 2.0, 1.0]), requires_grad=True)
    for descending, want in ((False, [3, 1, 4, 2]), (True, [1, 3, 2, 4])):
        y = wg.sort(x, descending=descending)
        (g,) = wg.autograd.grad(y, [x], wg.asarray(np.arange(1.0, 5)))
        assert g.tolist() == want


def test_where(backend: Backend) -> None:
    x = wg.asarray(np.array([1.0, np.inf, np.nan]), requires_grad=True)
    known = wg.asarray([True, False, False])
    y = wg.where(known, x, 0)
    assert y.detach().tolist() == [1, 0, 0]
    y.backward(wg.asarray(np.array([2.0, 3.0, 4.0])))
    assert x.grad.tolist() == [2, 0, 0]
    assert wg.where(known, 1.0, 2).dtype is wg.get_default_dtype()
    assert wg.where(known, 1, 2).tolist() == [1, 2, 2]
    with pytest.raises(TypeError, match="dtype bool"):
        wg.where(wg.asarray([1, 0, 0]), x, x)


def test_what_is_repeated_is_not_copied_where_it_is_large():
    """A view costs more than a copy of few elements, and as much of many."""
    with wg.use_backend("numpy"):
        x = wg.asarray(np.arange(3.0)[:, None])
        out = wg.broadcast_to(x, (2, 3, 30_000))
        np.testing.assert_array_equal(out.numpy()[1, :, 77], [0.0, 1.0, 2.0])
        assert np.shares_memory(out.numpy(), x.numpy())
