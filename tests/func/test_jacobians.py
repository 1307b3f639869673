"""Jacobians and Hessians: against formulae, loops over rows, JAX and PyTorch."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import Cube
from tests.func.test_forward import host
from wengert.backends import Backend
from wengert.func import grad, jacobians
from wengert.func.jacobians import hessian, jacfwd, jacobian, jacrev

ALL = pytest.mark.parametrize("transform", [jacrev, jacfwd, jacobian])


def arrays(*shapes: tuple[int, ...], kind: str = "real") -> list[np.ndarray]:
    random = np.random.default_rng(0)
    found = [random.standard_normal(shape) for shape in shapes]
    if kind == "complex":
        found = [x + 1j * random.standard_normal(x.shape) for x in found]
    return found


def close(found: Any, expected: Any) -> None:
    found, expected = host(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


# -- values --------------------------------------------------------------------------------------


@ALL
def test_shapes_are_of_results_and_then_of_arguments(transform: Any) -> None:
    (x,) = arrays((2, 3))
    found = transform(lambda x: wg.matrix_transpose(x) ** 2)(x)
    expected = np.zeros((3, 2, 2, 3))
    for i in range(2):
        for j in range(3):
            expected[j, i, i, j] = 2 * x[i, j]
    close(found, expected)


@ALL
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("chunk_size", [1, 2, 5, 6, 100])
def test_chunks_change_nothing(
    transform: Any, chunk_size: int, together: bool, backend: Backend
) -> None:
    x = wg.asarray(arrays((2, 3))[0])

    def f(x: Any) -> Any:
        y = wg.exp(x) * wg.sum(x, axis=0)
        return y if together else hooked(y)  # whose rows come one after the other

    close(transform(f, chunk_size=chunk_size)(x), host(transform(f)(x)))


@ALL
def test_trees_of_results_of_trees_of_arguments(transform: Any) -> None:
    a, b, c = arrays((2,), (3,), ())

    def f(p: Any, q: Any) -> Any:
        return {"s": p["a"] * q, "t": (wg.sum(p["b"]), p["a"][0] * p["b"])}

    found = transform(f, argnums=(0, 1))({"a": a, "b": b}, c)
    assert isinstance(found["s"], tuple)
    close(found["s"][0]["a"], np.eye(2) * c)
    close(found["s"][0]["b"], np.zeros((2, 3)))
    close(found["s"][1], a)
    close(found["t"][0][0]["b"], np.ones(3))
    close(found["t"][0][1], np.zeros(()))
    close(found["t"][1][0]["a"], np.stack([b, np.zeros(3)], axis=1))
    close(found["t"][1][0]["b"], np.eye(3) * a[0])
    only = transform(f, argnums=1)({"a": wg.asarray(a), "b": wg.asarray(b)}, c)
    close(only["s"], a)


def hooked(x: Any) -> Any:
    if x.requires_grad:
        x.register_hook(lambda g: g)
    return x


@ALL
@pytest.mark.parametrize("compiled", [False, True])
def test_one_tensor_may_be_several_results(transform: Any, compiled: bool) -> None:
    x = np.array([1.0, 2.0])

    def twice(y: Any) -> Any:
        return y, {"again": y}

    run = wg.compile if compiled else lambda f: f
    for f, expected in [
        (lambda x: twice(wg.sum(x**2)), 2 * x),
        (lambda x: twice(wg.sum(x**2, keepdims=True)), 2 * x[None]),
        (lambda x: twice(x**2), np.diag(2 * x)),
        (lambda x: twice(hooked(x**2) * 3), np.diag(6 * x)),
    ]:
        first, second = run(transform(f))(x)
        close(first, expected)
        close(second["again"], expected)


@ALL
def test_nothing_in_nothing_out(transform: Any) -> None:
    close(transform(lambda x: x[:0])(np.ones(3)), np.zeros((0, 3)))
    close(
        transform(lambda x: wg.ones(2, dtype=wg.float64) + wg.sum(x))(np.ones(0)), np.ones((2, 0))
    )


def test_a_result_that_does_not_depend_has_zeros() -> None:
    constant = wg.ones(2, dtype=wg.float64)
    close(jacrev(lambda x: constant)(np.ones(3)), np.zeros((2, 3)))
    close(jacrev(lambda x, y: y * 2, argnums=(0, 1))(np.ones(3), np.ones(2))[0], np.zeros((2, 3)))


@ALL
def test_complex(transform: Any, backend: Backend) -> None:
    """Of complex results it is the derivative itself: of real and of complex arguments."""
    a, z = arrays((3, 2), (2,), kind="complex")
    made = wg.asarray(a)

    def f(z: Any) -> Any:
        return wg.exp(made @ wg.astype(z, wg.complex128))

    close(transform(f)(wg.asarray(z)), np.exp(a @ z)[:, None] * a)
    close(transform(f)(wg.asarray(z.real)), np.exp(a @ z.real)[:, None] * a)


def test_rows_of_real_results_are_gradients_by_complex_arguments() -> None:
    (z,) = arrays((3,), kind="complex")

    def f(z: Any) -> Any:
        return wg.sum(wg.abs(z) ** 2)

    for transform in (jacrev, jacobian):
        found = transform(lambda z: wg.stack([f(z), 2 * f(z)]))(z)
        close(found, np.stack([grad(f)(z), 2 * grad(f)(z)]))


@pytest.mark.parametrize("kinds", [("real", "complex"), ("complex", "real")])
def test_real_and_complex_arguments_together(kinds: tuple[str, str]) -> None:
    (x,), (y,) = arrays((2,), kind=kinds[0]), arrays((3,), kind=kinds[1])
    found = jacrev(lambda x, y: wg.sum(x) * y, argnums=(0, 1))(x, y)
    numbers = np.result_type(x, y)
    close(found[0], np.stack([y, y], axis=1).astype(numbers))
    close(found[1], (np.sum(x) * np.eye(3)).astype(numbers))


# -- how -----------------------------------------------------------------------------------------


def test_the_function_is_called_once() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x.shape)
        return wg.concat([wg.sum(x**2) * x, x])

    jacrev(f, chunk_size=1)(np.ones(4))
    assert calls == [(4,)]
    jacrev(f)(np.ones(120))  # where `jacobian` would push columns
    assert calls == [(4,), (120,)]


def test_jacobian_counts_rows_and_columns() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x.shape)
        return wg.concat([x, x**2])

    w = wg.asarray(1.0, dtype=wg.float64).requires_grad_()
    x = np.ones(60)
    square, tall = np.eye(60), np.concatenate([np.eye(60), 2 * np.eye(60)])
    for function, given, expected, count in [
        (f, x, tall, 2),  # recorded, and pushed
        (f, x[:2], tall[[0, 1, 60, 61], :2], 1),  # a sweep of few rows
        (lambda x: (f(x)[:2], x[0], x[1]), x[:2], None, 2),  # but not of several results
        (lambda x: f(x)[:60], x, square, 1),
        (lambda x: f(x * w), x, tall, 1),  # on the tape outside
        (lambda x: wg.real(f(x)), x + 0j, tall + 0j, 1),
    ]:
        calls.clear()
        found = jacobian(function)(given)
        if expected is not None:
            close(found, expected)
        assert len(calls) == count


@pytest.mark.parametrize(
    ("given", "inside", "expected"),
    [
        (np.float32, wg.float64, np.float32),
        (np.float64, wg.float32, np.float64),
        (np.float32, wg.complex128, np.complex64),
        (np.complex128, wg.complex64, np.complex128),
    ],
)
def test_derivatives_have_the_dtype_of_the_argument(given: Any, inside: Any, expected: Any) -> None:
    def f(x: Any) -> Any:
        x = wg.astype(x, inside)
        return wg.concat([x, x**2])

    for transform in (jacrev, jacobian):  # by rows, and by columns
        found = transform(f)(np.ones(60, dtype=given))
        close(found, np.concatenate([np.eye(60), 2 * np.eye(60)]).astype(expected))


class Looking(Cube):
    """An operation of a user's, whose backward looks at the values."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        assert type(g._array) is type(x._array)
        assert g.shape == x.shape
        return Cube.backward(ctx, g)


def test_operations_of_a_users_see_one_cotangent_at_a_time(backend: Backend) -> None:
    x = arrays((3,))[0]
    made = wg.asarray(x)
    for transform in (jacrev, jacobian):
        close(
            transform(lambda x: wg.sum(x) * Looking.apply(x))(made),
            x[:, None] ** 3 + np.diag(np.sum(x) * 3 * x**2),
        )
    close(jacobian(lambda x: wg.concat([Looking.apply(x), x]))(made)[:3], np.diag(3 * x**2))
    close(hessian(lambda x: wg.sum(Looking.apply(x)))(made), np.diag(6 * x))


def test_hooks_see_one_cotangent_at_a_time() -> None:
    seen = []

    def f(x: Any) -> Any:
        y = x**2
        y.register_hook(lambda g: seen.append(g.tolist()))
        return y * 3

    close(jacrev(f)(np.array([1.0, 2.0])), np.diag([6.0, 12.0]))
    assert seen == [[3.0, 0.0], [0.0, 3.0]]


def doubling(g: Any) -> Any:
    return 2 * g


@pytest.mark.parametrize("place", ["on the way", "where it can", "on the argument", "beside"])
def test_hooks_hold_for_tall_jacobians(place: str) -> None:
    """A cotangent passes them; and no Tensor takes a hook that is not recorded."""

    def f(x: Any) -> Any:
        y = x**2
        if place == "on the way" or (place == "where it can" and y.requires_grad):
            y.register_hook(doubling)
        elif place == "on the argument":
            x.register_hook(doubling)
        elif place == "beside":
            (3 * x).register_hook(doubling)
        return wg.concat([y, y])

    x = np.arange(1.0, 61.0)
    once = np.concatenate([np.diag(2 * x)] * 2)
    for transform in (jacobian, jacrev):
        close(transform(f)(x), once if place == "beside" else 2 * once)


def test_tall_jacobians_of_functions_that_sweep_inside() -> None:
    x = np.arange(1.0, 61.0)

    def f(x: Any) -> Any:
        (g,) = wg.autograd.grad(wg.sum(x**3), x, create_graph=True)
        return wg.concat([g, g])

    close(jacobian(f)(x), np.concatenate([np.diag(6 * x)] * 2))


def test_a_mistake_in_the_second_call_is_told() -> None:
    class Wrong(Cube):
        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            raise ValueError("a mistake")

    with pytest.raises(ValueError, match="a mistake"):
        jacobian(lambda x: wg.concat([Wrong.apply(x)] * 2))(np.ones(60))


@pytest.mark.parametrize("transform", [jacrev, jacobian, hessian])
def test_misuse_is_explained(transform: Any) -> None:
    with pytest.raises(TypeError, match="takes a function"):
        transform(3)
    with pytest.raises(ValueError, match="positive"):
        transform(lambda x: x, chunk_size=0)
    with pytest.raises(TypeError, match="chunk_size"):
        transform(lambda x: x, chunk_size=2.0)
    with pytest.raises(TypeError, match="integer"):
        transform(lambda x: x)(2)
    with pytest.raises(TypeError, match="should be a Tensor"):
        transform(lambda x: 3.0)(2.0)
    with pytest.raises(ValueError, match="argnums"):
        transform(lambda x: x, argnums=1)(2.0)


@pytest.mark.parametrize("transform", [jacfwd, jacobian])
def test_calls_that_follow_another_find_what_that_one_found(transform: Any) -> None:
    """A state would differ between columns; `jacobian` then takes the rows of its first call."""
    count, norm, one = wg.zeros(()), wg.nn.BatchNorm1d(2), transform is jacobian

    def f(x: Any) -> Any:
        return wg.concat([x * count.add_(1)] * 60)

    if one:
        close(jacobian(f)(np.ones(2)), np.tile(np.eye(2), (60, 1)))
    else:
        with pytest.raises(RuntimeError, match="more than once, and it changes a Tensor"):
            jacfwd(f, chunk_size=1)(np.ones(2))
        with pytest.raises(RuntimeError, match="more than once, and it changes"):
            jacfwd(norm)(wg.ones((2, 2)))  # by its parameters, a call for each column
        assert norm.running_mean.tolist() == [0.0, 0.0]
        close(jacfwd(lambda x: x * count.add_(1))(np.ones(2)), np.eye(2))
    assert count.item() == 1


# -- Hessians ------------------------------------------------------------------------------------


def test_hessian_of_trees() -> None:
    x, y = arrays((2,), (3,))
    found = hessian(lambda p: wg.sum(p["x"]) ** 2 * p["y"][0])({"x": x, "y": y})
    close(found["x"]["x"], np.full((2, 2), 2 * y[0]))
    close(found["x"]["y"], 2 * np.sum(x) * np.array([[1.0, 0, 0]] * 2))
    close(found["y"]["x"], host(found["x"]["y"]).T)
    close(found["y"]["y"], np.zeros((3, 3)))
    both = hessian(lambda x, y: x * y**2, argnums=(0, 1))(2.0, 3.0)
    assert both == ((0.0, 6.0), (6.0, 4.0))


# -- oracles -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cache", "sweeps"), [(10**9, 1), (80, 3), (1, 5)])
def test_sweeps_fit_into_the_cache(monkeypatch: Any, cache: int, sweeps: int) -> None:
    """Of rows that are large on the way, here of 40 bytes, not all are computed at once."""
    seen = []
    rows = jacobians._Source.rows
    monkeypatch.setattr(jacobians, "_CACHE", cache)
    monkeypatch.setattr(jacobians, "_FEWEST", 1)
    monkeypatch.setattr(
        jacobians._Source, "rows", lambda self, *at: (seen.append(at), rows(self, *at))[1]
    )
    x = np.arange(1.0, 6.0)
    close(jacrev(lambda x: x * x)(x), np.diag(2 * x))
    assert len(seen) == sweeps
