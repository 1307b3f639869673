"""Manipulation and linear algebra: odd forms of their arguments, bad ones, several results."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.backends import Backend

X = np.arange(1.0, 25).reshape(2, 3, 4)


def tensor(x: Any = X) -> wg.Tensor:
    return wg.asarray(np.asarray(x), requires_grad=True)


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


@pytest.mark.parametrize("order", ["F", "A", None])
def test_reshape_reads_rows_and_says_how_columns_are_read(order) -> None:
    a = np.arange(24.0).reshape(2, 3, 4)
    x = wg.asarray(a)
    with pytest.raises(TypeError, match=r"elements are read in rows; np\.transpose\(np\.resh"):
        x.reshape(24, order=order)
    assert x.reshape(4, 6, order="C").tolist() == a.reshape(4, 6).tolist()
    for shape in ((24,), (4, 6), (6, 2, 2)):
        found = np.transpose(np.reshape(np.transpose(x), shape[::-1]))
        assert found.tolist() == a.reshape(shape, order="F").tolist()
