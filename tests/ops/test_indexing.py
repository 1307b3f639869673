"""Indexing: NumPy's answers on every backend, derivatives at repeated indices, and values."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.backends import Backend

RNG = np.random.default_rng(7)
MASK = np.array([[True, False, True], [False, True, False], [True, True, True], [False] * 3])
A = np.array

#: Shape, and keys for it. A key is written with NumPy arrays and lists.
KEYS: list[tuple[tuple[int, ...], Any]] = [
    ((5,), 2),
    ((5,), -1),
    ((5,), np.int64(3)),
    ((5,), slice(10, 20)),
    ((), ()),
    ((), None),
    ((), ...),
    ((0, 3), (slice(None), 1)),
    ((4, 3), (slice(None), 1)),
    ((4, 3), slice(None, None, -1)),
    ((4, 3), (slice(3, 0, -2), None, slice(1, 2))),
    ((4, 3), (..., None, 0)),
    ((4, 3), (None, ...)),
    ((4, 3), slice(2, 2)),
    ((4, 3), [0, 0, 3]),
    ((4, 3), []),
    ((4, 3), A([-1, 0, -1, 2])),
    ((4, 3), A(2)),
    ((4, 3), (slice(None), A(-1))),
    ((4, 3), A([1, 3], np.uint8)),
    ((4, 3), ([0, 0, 3], [1, 1, 2])),
    ((4, 3), (A([[0], [3]]), [1, 1, 2])),
    ((4, 3), (slice(None), [0, 0, 2])),
    ((4, 3), (A([[0, 1], [1, 1]]), slice(None, None, -1))),
    ((4, 3), (slice(None, None, -2), A([1, 1], np.int16))),
    ((4, 3), (..., [0, 0])),
    ((4, 3), ([1, 1], None)),
    ((2, 3, 4), (0, slice(None), [0, 1])),
    ((2, 3, 4), (slice(None), 0, [1, 1])),
    ((2, 3, 4), ([1, 1], None, 1)),
    ((2, 3, 4), (None, [1, 1], 1)),
    ((2, 3, 4), ([1, 1], ..., [0, 0])),
    ((2, 3, 4, 5), ([0, 1], slice(None), [3, 3])),
    ((2, 3, 4, 5), (slice(None), [0, 1], slice(1, 3), [3, 3])),
    ((2, 3, 4, 5), (slice(None), [0, 0], [3, 3])),
    ((2, 3, 4, 5), (slice(None, None, -1), [0, 1], slice(3, None, -2), [3, 3])),
    ((4, 3), MASK),
    ((4, 3), MASK[:, 0]),
    ((4, 3), np.zeros(4, bool)),
    ((4, 3), (slice(None), MASK[0])),
    ((4, 3), (MASK[:, 0], 1)),
    ((4, 3), (MASK[:, 0], [2, 2])),
    ((2, 4, 3), (1, MASK)),
    ((2, 4, 3), ([True, False], slice(1, None), [0, 2])),
    ((4, 3), True),
    ((4, 3), False),
    ((5, 0), [1, 1]),
]
each_key = pytest.mark.parametrize(("shape", "key"), KEYS, ids=str)


def number(shape: tuple[int, ...]) -> np.ndarray:
    return RNG.normal(size=shape)


def numpy_key(key: Any) -> Any:
    """NumPy takes an empty list for floats, which are no indices."""
    return np.asarray(key, np.int64) if isinstance(key, list) and not key else key


@pytest.mark.whole
@each_key
def test_getitem_and_its_derivative_are_numpys(
    backend: Backend, shape: tuple[int, ...], key: Any
) -> None:
    x = number(shape)
    key_ = numpy_key(key)
    want = x[key_]
    t = wg.asarray(x)
    t.requires_grad = True
    got = t[key]
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.detach().numpy(), want)
    g = number(want.shape)
    sums = np.zeros(shape)
    np.add.at(sums, key_, g)
    got.backward(wg.asarray(g))
    np.testing.assert_allclose(t.grad.numpy(), sums, atol=1e-14)


@each_key
@pytest.mark.parametrize("kind", ["array", "broadcast"])
def test_setitem_and_its_derivatives_are_numpys(
    backend: Backend, shape: tuple[int, ...], key: Any, kind: str
) -> None:
    x = number(shape)
    key_ = numpy_key(key)
    place = x[key_].shape
    value = number(place if kind == "array" else place[-1:])
    want = x.copy()
    want[key_] = value
    base, given = wg.asarray(x, requires_grad=True), wg.asarray(value, requires_grad=True)
    result = base * 1
    result[key] = given
    assert result.dtype is base.dtype
    np.testing.assert_array_equal(result.detach().numpy(), want)
    np.testing.assert_array_equal(base.detach().numpy(), x)

    g = number(shape)
    result.backward(wg.asarray(g))
    zeroed = g.copy()
    zeroed[key_] = 0
    np.testing.assert_array_equal(base.grad.numpy(), zeroed)
    if kind == "array":
        # Each place has the derivative of the value that was written to it last.
        last = np.full(shape, -1)
        order = np.arange(want[key_].size).reshape(place)
        last[key_] = order
        chosen = np.where(last[key_] == order, g[key_], 0)
        np.testing.assert_array_equal(given.grad.numpy(), chosen)


@pytest.mark.parametrize(
    "key",
    [
        (slice(None), [1, 1], ..., [0, 0]),
        (slice(None), [True, False], ..., 0),
        (slice(0, 2), [0, 1], ..., 0),
        (slice(None), [[1, 0]], ..., [0], None),
        (0, [0, 1], ..., slice(None)),
        (slice(None), [0, 1], 0, ...),
        (..., [1, 0], slice(None), [0, 2]),
    ],
    ids=str,
)
def test_an_ellipsis_for_no_axes_separates_as_in_numpy(backend: Backend, key) -> None:
    array = np.arange(42.0).reshape(7, 2, 3)
    x = wg.asarray(array, requires_grad=True)
    expected = array[key]
    weights = np.arange(1.0, 1.0 + expected.size).reshape(expected.shape)
    np.testing.assert_array_equal(x[key].detach().numpy(), expected)
    wg.sum(x[key] * wg.asarray(weights)).backward()
    gradient = np.zeros(array.shape)
    np.add.at(gradient, key, weights)
    np.testing.assert_array_equal(x.grad.numpy(), gradient)
    # The rows of a Jacobian come as a batch, and a tangent beside the value.
    rows = wg.jacobian(lambda x: x[key])(array)
    np.testing.assert_array_equal(np.einsum("...ijk,ijk", rows, array), expected)
    _, tangent = wg.jvp(lambda x: x[key], (array,), (2 * array,))
    np.testing.assert_array_equal(tangent, 2 * expected)
    value = np.arange(expected.shape[-1], dtype=float)  # is stretched along the others
    written = array.copy()
    written[key] = value
    y = wg.asarray(array)
    y[key] = wg.asarray(value)
    np.testing.assert_array_equal(y.numpy(), written)


def test_tuples_within_a_key_are_arrays(backend: Backend) -> None:
    array = np.arange(12.0).reshape(3, 4)
    x = wg.asarray(array)
    for key in (
        ((0, 1, 0), (1, 1, 0)),
        ((0, 2),),
        (((0, 1), (2, 0)), 1),
        (slice(None), (True, False, True, False)),
        (range(2),),
        ([(0, 1), [2, 0]],),
        ((),),
    ):
        np.testing.assert_array_equal(x[key].numpy(), array[key])
        y, written = wg.asarray(array), array.copy()
        y[key] = written[key] = 5.0
        np.testing.assert_array_equal(y.numpy(), written)
    one = wg.asarray(1)
    np.testing.assert_array_equal(x[(0, one), (one, 2)].numpy(), array[[0, 1], [1, 2]])
    np.testing.assert_array_equal(x[[[0, one], [one, 2]]].numpy(), array[[[0, 1], [1, 2]]])
    with pytest.raises(IndexError, match="float64"):
        x[(0.5, 1.5), 0]


def test_a_bound_that_is_changed_later_does_not_change_the_derivative() -> None:
    x = wg.asarray([1.0, 2.0, 3.0], requires_grad=True)
    start = wg.asarray(1)
    y = x[start:]
    start += 1
    wg.sum(y).backward()
    assert x.grad.tolist() == [0, 1, 1]


def test_an_index_tensor_that_is_changed_later_does_not_change_the_derivative() -> None:
    x = wg.asarray([1.0, 2.0, 3.0], requires_grad=True)
    rows = wg.asarray([0, 0])
    y = x[rows]
    rows[0] = 2
    wg.sum(y).backward()
    assert x.grad.tolist() == [2, 0, 0]


def test_setitem_changes_no_array_that_something_else_sees(backend: Backend) -> None:
    x = wg.asarray(np.zeros(3))
    view, same = x[1:], x.detach()
    with pytest.warns(wg.ViewWarning):
        x[:] = 1
    with pytest.warns(wg.ViewWarning):
        x[[0, 0]] = wg.asarray([2.0, 3.0])
    assert view.tolist() == [0, 0]
    assert same.tolist() == [0, 0, 0]
    assert x.tolist() == [3, 1, 1]


def test_setitem_keeps_the_dtype_and_casts_the_value(backend: Backend) -> None:
    x = wg.asarray([1.0, 2.0, 3.0], dtype=wg.float32)
    x[0] = 7
    x[1:] = wg.asarray([4.5, 5.5], dtype=wg.float64)
    assert x.dtype is wg.float32
    assert x.tolist() == [7, 4.5, 5.5]
    z = wg.asarray([0j, 0j])
    z[0] = wg.asarray(2.0, requires_grad=True)
    assert z.dtype.complex
    assert z.requires_grad


def test_setitem_gives_a_real_value_a_real_derivative() -> None:
    value = wg.asarray(2.0, dtype=wg.float64, requires_grad=True)
    z = wg.asarray([0j, 0j], dtype=wg.complex128)
    z[1] = value
    wg.real(wg.sum(z * (3 - 4j))).backward()
    assert value.grad.dtype is wg.float64
    assert value.grad.item() == 3


def test_setitem_takes_lists_and_values_with_more_axes_of_length_one(backend: Backend) -> None:
    x = wg.asarray(np.zeros((2, 3)))
    x[0] = [1.0, 2.0, 3.0]
    x[1, 2] = wg.asarray([[7.0]])
    x[wg.asarray(MASK[:2])] = wg.asarray([[[9.0]]])
    np.testing.assert_array_equal(x.numpy(), [[9, 2, 9], [0, 9, 7]])


@pytest.mark.parametrize("key", [3, -4, (0, 2), (0, 0, 0), 1.0, "a", (slice(None), [0.5])])
def test_bad_keys(backend: Backend, key: Any) -> None:
    x = wg.asarray(np.zeros((3, 2)))
    with pytest.raises(IndexError):
        x[key]
    with pytest.raises(IndexError):
        x[key] = 1.0
    assert x.tolist() == [[0, 0]] * 3


def test_bad_values() -> None:
    x = wg.asarray([1.0, 2.0])
    with pytest.raises(TypeError, match="a complex floating value does not fit"):
        x[0] = 1j
    with pytest.raises(TypeError, match="a complex floating value does not fit"):
        x[0] = wg.asarray(1j)
    with pytest.raises(ValueError, match="broadcast"):
        x[:] = wg.asarray([1.0, 2.0, 3.0])
    x.requires_grad = True
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x[0] = 0.0
    assert x.tolist() == [1, 2]
    with wg.no_grad():
        x[0] = 0.0
    assert x.tolist() == [0, 2]
    assert x.requires_grad


def test_a_tensor_of_another_backend_is_no_index() -> None:
    pytest.importorskip("array_api_strict")
    x = wg.asarray([1.0, 2.0])
    with wg.use_backend("array_api_strict"):
        rows = wg.asarray([0])
    with pytest.raises(wg.BackendError, match="two backends"):
        x[rows]


def test_take(backend: Backend) -> None:
    x = wg.asarray(np.arange(6.0).reshape(2, 3))
    x.requires_grad = True
    y = wg.take(x, wg.asarray([2, -1, 0, 2]), axis=1)
    np.testing.assert_array_equal(y.detach().numpy(), [[2, 2, 0, 2], [5, 5, 3, 5]])
    wg.sum(y).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[1, 0, 3]] * 2)
    assert wg.take(x, wg.asarray([[0, 1], [1, 1]]), axis=0).shape == (2, 2, 3)
    assert wg.take(x, wg.asarray([], dtype=wg.int64), axis=0).shape == (0, 3)
    with pytest.raises(ValueError, match="needs axis="):
        wg.take(x, wg.asarray([0]))
    with pytest.raises(TypeError, match="integer dtype"):
        wg.take(x, wg.asarray([0.0]), axis=0)


def test_take_along_axis_broadcasts(backend: Backend) -> None:
    x = wg.asarray(np.arange(6.0).reshape(2, 3))
    x.requires_grad = True
    y = wg.take_along_axis(x, wg.asarray([[1, 0, 1], [1, 1, -1]]), axis=0)
    np.testing.assert_array_equal(y.detach().numpy(), [[3, 1, 5], [3, 4, 5]])
    z = wg.take_along_axis(x, wg.asarray([[0, 0]]), axis=-1)
    np.testing.assert_array_equal(z.detach().numpy(), [[0, 0], [3, 3]])
    (wg.sum(y) + wg.sum(z)).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[2, 1, 0], [4, 1, 2]])
    with pytest.raises(ValueError, match="of 2 axes"):
        wg.take_along_axis(x, wg.asarray([0]))


def test_many_repetitions_lose_no_precision(backend: Backend) -> None:
    count = 100 if backend.name == "dask" else 1000  # where each is a task
    x = wg.asarray(np.zeros(3, np.float32))
    x.requires_grad = True
    wg.sum(x[np.arange(3 * count) % 3]).backward()
    assert x.grad.tolist() == [count] * 3
    assert x.grad.dtype is wg.float32
