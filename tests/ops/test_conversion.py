"""Lists, tuples and nests of Tensors, which become arrays that stay tracked, as by stacking."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.backends import Backend, BackendError

MAKERS = {"asarray": wg.asarray, "tensor": wg.tensor, "as_tensor": wg.as_tensor}
X = np.array([0.5, -1.5, 2.0])

#: Functions of three numbers, in which arrays are made by ``a`` of nests.
NESTS: dict[str, Any] = {
    "flat": lambda a, x: a([x[0] * x[1], x[2]]),
    "a tuple": lambda a, x: a((x[0] * x[1], x[2])),
    "nested": lambda a, x: a([[x[0], x[1] ** 2], [x[2], x[0] * x[2]]]),
    "a list of vectors": lambda a, x: a([x, x * x]),
    "vectors among lists": lambda a, x: a([[x[0], 1.0, x[2]], x * x]),
    "numbers": lambda a, x: a([x[0], 0.5, 2, True]),
    "NumPy's scalars": lambda a, x: a([x[0], np.float64(0.5), np.int64(3), np.float32(0.25)]),
    "NumPy's arrays": lambda a, x: a([x, np.array([1.0, 2.0, 3.0])]),
    "NumPy's arrays of no axes": lambda a, x: a([x[0], np.array(2.0)]),
    "three deep": lambda a, x: a([[[x[0]], [x[1]]], [[x[2]], [4.0]]]),
    "one": lambda a, x: a([x[1]]),
    "one twice": lambda a, x: a([x[1], x[1]]),
    "empty vectors": lambda a, x: a([x[:0], x[:0]]),
}


def by_numpy(name: str, values: Any) -> Any:
    return np.asarray(NESTS[name](lambda nest: np.array(nest, dtype=np.float64), values))


def differences(name: str) -> Any:
    """The Jacobian by central differences, which are exact for the squares here."""
    h = 2.0**-10
    columns = [(by_numpy(name, X + h * e) - by_numpy(name, X - h * e)) / (2 * h) for e in np.eye(3)]
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("name", NESTS)
def test_nests_are_tracked_in_every_mode(name: str, maker: str, backend: Backend) -> None:
    make = MAKERS[maker]

    def f(x: Any) -> Any:
        return NESTS[name](make, x)

    x = wg.asarray(X, requires_grad=True)
    made = f(x)
    expected, jacobian = by_numpy(name, X), differences(name)
    assert made.requires_grad
    assert made.dtype is wg.float64
    assert made.backend is backend
    np.testing.assert_array_equal(made.detach().numpy(), expected)
    for transform in (wg.func.jacrev, wg.func.jacfwd):
        found = transform(f)(wg.asarray(X)).numpy()
        np.testing.assert_allclose(found, jacobian, rtol=1e-12, atol=1e-12)
    if backend.name != "dask":
        np.testing.assert_array_equal(wg.compile(f)(wg.asarray(X)).numpy(), expected)
    with wg.no_grad():
        assert not f(x).requires_grad
    wg.sum(made * made).backward()
    want = 2 * np.tensordot(expected, jacobian, expected.ndim)
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-12, atol=1e-12)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("nest", "dtype"),
    [
        (lambda: [wg.tensor(3.0), 0.5], "float32"),
        (lambda: [0.5, wg.tensor(3.0), np.float64(1.5)], "float32"),
        (lambda: [wg.tensor(3.0), 2, True], "float32"),
        (lambda: [wg.tensor(3.0), 1j], "complex64"),
        (lambda: [wg.tensor(3.0), wg.asarray(1.0, dtype=wg.float64)], "float64"),
        (lambda: [wg.tensor(3.0), np.asarray(1.0)], "float64"),
        (lambda: [wg.tensor(1), 2], "int64"),
        (lambda: [wg.asarray(1, dtype=wg.int8), 2], "int8"),
        (lambda: [wg.tensor(True), False], "bool"),
        (lambda: [wg.tensor(True), 1], "int64"),
        (lambda: [wg.tensor(1), 0.5], "float32"),
    ],
)
def test_the_dtype_is_that_of_the_tensors(nest: Any, dtype: str, backend: Backend) -> None:
    assert wg.asarray(nest()).dtype.name == dtype


def test_parameters_keep_their_meaning(backend: Backend) -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    nest = [x[0], x[1] * 3]
    wide = wg.asarray(nest, dtype=wg.float64)
    assert (wide.dtype, wide.requires_grad) == (wg.float64, True)
    whole = wg.asarray(nest, dtype=wg.int32)
    assert (whole.tolist(), whole.requires_grad) == ([1, 6], False)
    assert wg.asarray(nest, device=x.device).device == x.device
    assert wg.asarray(nest, copy=True).requires_grad
    with pytest.raises(ValueError, match="copy=False"):
        wg.asarray(nest, copy=False)
    assert not wg.asarray(nest, requires_grad=True).is_leaf  # which is tracked already
    started = wg.tensor([wg.tensor(1.0), 2.0], requires_grad=True)
    assert started.is_leaf
    assert started.requires_grad


def test_bad_nests(backend: Backend) -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    for ragged in ([x, x[0]], [[x[0]], [x[0], x[1]]], [x, [1.0, 2.0, 3.0]], [x, x[:1]], [[], x[0]]):
        with pytest.raises(ValueError, match="differ in length"):
            wg.asarray(ragged)
    with pytest.raises(TypeError, match="asarray takes numbers"):
        wg.asarray([x[0], "a"])
    with pytest.raises(TypeError, match="asarray takes numbers"):
        wg.asarray([x[0], None])
    for nest in ([np.ma.array([1.0], mask=[True])], [[0.5], [np.ma.masked]], [np.ma.masked, x[0]]):
        with pytest.raises(TypeError, match="was given a Masked"):  # whose mask would be lost
            wg.asarray(nest)
    with pytest.raises(TypeError, match="complex"):
        wg.asarray([x[0], 1j], dtype=wg.float32)
    with pytest.raises(OverflowError):
        wg.asarray([wg.asarray(1, dtype=wg.int8), 300])
    if backend.name != "array_api_strict":
        with wg.use_backend("array_api_strict"):
            other = wg.tensor(1.0)
        with pytest.raises(BackendError, match=r"two backends.*to_backend"):
            wg.asarray([x[0], other])


def test_the_backend_is_that_of_the_tensors(backend: Backend) -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    with wg.use_backend("numpy"):
        assert wg.asarray([x[0], 1.0]).backend is backend
        assert wg.asarray([[x[0], 1.0], np.ones(2)]).backend is backend


# -- where else sequences are converted ------------------------------------------------------------


PLACES: dict[str, Any] = {
    "assignment": lambda x: assigned(x * 1, slice(0, 2), [x[2], x[0] * x[1]]),
    "assignment of a nest": lambda x: assigned(wg.stack([x, x]), slice(1, 2), [[x[2], 1.0, x[0]]]),
    "at.set": lambda x: wg.at(x)[0:2].set([x[2], 3.0]),
    "at.add": lambda x: wg.at(x)[[0, 0]].add([x[2], x[1]]),
    "at.multiply": lambda x: wg.at(x)[[0, 0]].multiply([x[2], x[1]]),
    "pad": lambda x: wg.pad(x, 1, constant_values=(x[0], x[1] * 2)),
    "pad, nested": lambda x: wg.pad(x, [(1, 2)], constant_values=[(x[0] * x[2], 1.0)]),
    "copy_": lambda x: (x * 1).copy_([x[1], x[2], x[0]]),
    "indices": lambda x: x[[wg.asarray(2), wg.asarray(0), 1]] * x[0],
    "nested indices": lambda x: x[[[wg.asarray(2)], [0]], ...],
}


def assigned(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


@pytest.mark.parametrize("name", PLACES)
def test_lists_of_tensors_elsewhere(name: str, backend: Backend) -> None:
    f, h = PLACES[name], 2.0**-10
    columns = [(f(wg.asarray(X + h * e)) - f(wg.asarray(X - h * e))) / (2 * h) for e in np.eye(3)]
    expected = np.stack([column.numpy() for column in columns], axis=-1)
    for transform in (wg.func.jacrev, wg.func.jacfwd):
        found = transform(f)(wg.asarray(X)).numpy()
        # The products at most are cubes, whose differences are off by h².
        np.testing.assert_allclose(found, expected, atol=2 * h**2)


def test_where_lists_are_not_taken_an_error_says_so() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    for call in (
        lambda y: wg.sum(y),
        lambda y: wg.exp(y),
        lambda y: wg.maximum(x, y),
        lambda y: wg.where(x > 1, x, y),
        lambda y: wg.matmul(x, y),
        lambda y: wg.linalg.vector_norm(y),
        lambda y: wg.concat([x, y]),
        lambda y: wg.take(x, y),
        lambda y: wg.nn.functional.mse_loss(x, y),
        lambda y: wg.nn.Parameter(y),
        lambda y: (x * 2).backward(y),
    ):
        with pytest.raises(TypeError, match="list"):
            call([x[0], x[1]])
