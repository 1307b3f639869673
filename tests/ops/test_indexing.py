"""Indexing: random keys mean what they mean to NumPy, and what keys and values may be."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import wengert as wg
from tests.ops.cases import check_examples
from wengert.backends import Backend
from wengert.backends.keys import split_key

X = np.array([2.0, 3.0, 5.0])
MASK = np.array([[True, False, True], [False, True, False], [True, True, True], [False] * 3])


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


def test_an_ellipsis_for_no_axes_is_none_to_libraries_that_join_what_is_beside_it() -> None:
    i = np.asarray([0, 1])
    for key, ndim, wanted in (
        ((i, ..., i), 2, ((i, None, i), 0)),
        ((i, ..., 0, slice(1)), 3, ((i, None, 0, slice(1)), 1)),
        ((i, ..., i), 3, ((i, ..., i), None)),
        ((i, slice(1), i), 3, ((i, slice(1), i), None)),
        ((slice(1), ..., i), 2, ((slice(1), ..., i), None)),
        ((..., i, i), 2, ((..., i, i), None)),
    ):
        assert split_key(key, ndim, lambda x: x.dtype == bool) == wanted


def test_a_bound_or_an_index_that_is_changed_later_does_not_change_the_derivative() -> None:
    x = wg.asarray([1.0, 2.0, 3.0], requires_grad=True)
    start = wg.asarray(1)
    y = x[start:]
    start += 1
    wg.sum(y).backward()
    assert x.grad.tolist() == [0, 1, 1]
    rows = wg.asarray([0, 0])
    y = x[rows]
    rows[0] = 2
    wg.sum(y).backward()
    assert x.grad.tolist() == [2, 1, 1]


def test_a_place_has_the_derivative_of_what_was_written_to_it_last(backend: Backend) -> None:
    x, value = wg.asarray(np.ones(4), requires_grad=True), wg.asarray(X, requires_grad=True)
    y = x * 1
    y[[1, 3, 1]] = value
    wg.sum(y * wg.asarray([5.0, 7.0, 11.0, 13.0], dtype=wg.float64)).backward()
    assert x.grad.tolist() == [5, 0, 11, 0]
    assert value.grad.tolist() == [0, 13, 7]


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


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_indices_of_several_axes_come_in_place_of_an_axis(backend: Backend, axis: int) -> None:
    x, i = np.arange(24.0).reshape(2, 3, 4), np.asarray([[0, 1, 1], [-1, 0, -2]])
    found = wg.take(wg.asarray(x), wg.asarray(i), axis=axis)
    np.testing.assert_array_equal(found.numpy(), np.take(x, i, axis=axis))


def test_many_repetitions_lose_no_precision(backend: Backend) -> None:
    count = 100 if backend.name == "dask" else 1000  # where each is a task
    x = wg.asarray(np.zeros(3, np.float32))
    x.requires_grad = True
    wg.sum(x[np.arange(3 * count) % 3]).backward()
    assert x.grad.tolist() == [count] * 3
    assert x.grad.dtype is wg.float32


# -- random keys ---------------------------------------------------------------------------------

#: Lengths along the axes, so that an index of one axis rarely fits another.
SHAPES = ((3, 4, 2, 3), (4, 1, 3), (2, 3), (5,), (0, 3), ())


@st.composite
def keys(draw):
    """A shape, and a key of NumPy's for it."""
    shape = draw(st.sampled_from(SHAPES))
    block = draw(st.sampled_from([(), (1,), (2,), (0,), (2, 1), (1, 2)]))
    parts, axis = [], 0
    dots = draw(st.booleans())
    while axis < len(shape) and draw(st.integers(0, 7)):
        n = shape[axis]
        kind = draw(st.sampled_from("islabmtn.z"))
        if kind == "n":
            parts.append(None)
        elif kind == "z":
            parts.append(draw(st.sampled_from([True, False, np.True_])))
        elif kind == "." and dots:
            parts.append(...)
            dots = False
            axis += draw(st.integers(0, len(shape) - axis))
        elif kind == "m" and axis + 1 < len(shape):
            parts.append(draw(masks(shape[axis : axis + 2])))
            axis += 2
        elif kind == "b":
            parts.append(draw(masks((n,)).map(lambda mask: mask.tolist())))
            axis += 1
        elif kind == "s" or not n:
            bound = st.none() | st.integers(-n - 1, n + 1)
            step = st.sampled_from([None, 1, 2, -1, -2])
            parts.append(slice(draw(bound), draw(bound), draw(step)))
            axis += 1
        elif kind == "i":
            number = draw(st.integers(-n, n - 1))
            parts.append(draw(st.sampled_from([number, np.int32(number), np.asarray(number)])))
            axis += 1
        else:
            some = draw(st.lists(st.integers(-n, n - 1), min_size=4, max_size=4))
            array = np.resize(np.asarray(some), block)
            nested = array.tolist()
            if kind == "t" and isinstance(nested, list):
                nested = tuple(nested)
            parts.append(nested if kind in "lt" and block else array)
            axis += 1
    if dots and draw(st.booleans()):
        # The axes that nothing indexes, which may be none, in the middle of the key.
        at = draw(st.integers(0, len(parts)))
        parts = parts[:at] + [...] + parts[at:]
    if len(parts) == 1 and draw(st.booleans()) and type(parts[0]) is not tuple:
        return shape, parts[0]
    return shape, tuple(parts)


def masks(shape):
    size = int(np.prod(shape))
    return st.lists(st.booleans(), min_size=size, max_size=size).map(
        lambda flat: np.asarray(flat, dtype=bool).reshape(shape)
    )


def for_tensors(key, draw):
    """The key, with some of its arrays as Tensors."""
    if isinstance(key, tuple):
        return tuple(for_tensors(part, draw) for part in key)
    if isinstance(key, np.ndarray) and draw(st.booleans()):
        return wg.asarray(key)
    return key


def test_a_key_means_what_it_means_to_numpy(backend: Backend) -> None:
    # On dask each evaluation is a graph, and JAX compiles for each shape.
    count = {"dask": 20, "jax": 12}.get(backend.name, 120)
    check_examples(count, check_a_key, st.data())


def check_a_key(data) -> None:
    shape, key = data.draw(keys())
    array = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    ours = for_tensors(key, data.draw) if isinstance(key, tuple) else key
    x = wg.asarray(array, requires_grad=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            expected = np.asarray(array[key])
    except IndexError:
        with pytest.raises((IndexError, ValueError)):
            x[ours]
        return
    got = x[ours]
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got.detach().numpy(), expected)

    # What flows back is added up where an element was taken several times.
    weights = np.arange(2.0, 2.0 + expected.size).reshape(expected.shape)
    wanted = np.zeros(shape)
    np.add.at(wanted, key, weights)
    if got.requires_grad:
        wg.sum(got * wg.asarray(weights)).backward()
        np.testing.assert_array_equal(x.grad.numpy(), wanted)

    # Assignment, of an array and of a number, and the sum that counts repeated places.
    y = wg.asarray(array) * 1
    y[ours] = 7.0
    written = array.copy()
    written[key] = 7.0
    np.testing.assert_array_equal(y.numpy(), written)
    added = wg.at(wg.asarray(array))[ours].add(wg.asarray(weights))
    np.testing.assert_array_equal(added.numpy(), array + wanted)
    places = np.arange(array.size).reshape(shape)[key]
    if np.unique(places).size == places.size:  # of several for one place any may stand
        value = wg.asarray(weights, requires_grad=True)
        y = wg.asarray(array) * 1
        y[ours] = value
        written = array.copy()
        written[key] = weights
        np.testing.assert_array_equal(y.detach().numpy(), written)
        wg.sum(y * wg.asarray(array)).backward()
        if value.size:
            np.testing.assert_array_equal(value.grad.numpy(), expected)
        if weights.shape[:1] and weights.shape[0]:  # a value that is stretched
            y = wg.asarray(array) * 1
            y[ours] = wg.asarray(weights[:1])
            written = array.copy()
            written[key] = weights[:1]
            np.testing.assert_array_equal(y.numpy(), written)
