"""Random index expressions mean what they mean to NumPy: values, gradients, assignment, `at`."""

import warnings

import numpy as np
import pytest
from hypothesis import strategies as st

import wengert as wg
from tests.ops.cases import check_examples
from wengert.backends import Backend

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


def numpy_part(array, key):
    """NumPy's answer, and whether it is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return np.asarray(array[key])


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
        expected = numpy_part(array, key)
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
