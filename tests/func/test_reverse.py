"""Transforms by the reverse sweep, against formulae and against JAX."""

import functools
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.tape.test_observers import Seen
from wengert import func
from wengert.backends import Backend
from wengert.tape.observers import observed_by


def cube(x: Any) -> Any:
    return x**3


def test_arguments_of_nested_functions_are_told_apart() -> None:
    """A classic: d/dx (x d/dy (x + y)) is 1, not 2."""
    assert func.grad(lambda x: x * func.grad(lambda y: x + y)(1.0))(1.0) == 1.0
    assert func.grad(lambda x: x * func.grad(lambda y: x * y)(1.0))(3.0) == 6.0
    x = wg.tensor(3.0, requires_grad=True)
    gradient = func.grad(lambda y: x * y)(x)  # x closed over is not the argument
    assert gradient.item() == 3
    (second,) = wg.autograd.grad(gradient, x)
    assert float(second) == 1


def test_no_grad_field_changes() -> None:
    x = wg.ones(2, requires_grad=True)
    w = wg.ones(2, requires_grad=True)
    func.grad(lambda x: wg.sum(x * w))(x)
    _, pullback = func.vjp(lambda x: x * w, x)
    pullback(wg.ones(2))
    assert x.grad is None
    assert w.grad is None


def test_argnums() -> None:
    def f(x: Any, y: Any, z: Any) -> Any:
        return x * y**2 * z**3

    args = (2.0, 3.0, 5.0)
    assert func.grad(f)(*args) == 9 * 125
    assert func.grad(f, 1)(*args) == 2 * 6 * 125
    assert func.grad(f, -1)(*args) == 2 * 9 * 75
    assert func.grad(f, (2, 0))(*args) == (1350.0, 1125.0)
    assert func.grad(f, [1])(*args) == (1500.0,)
    assert func.grad(f, np.int64(1))(*args) == 1500.0


def test_unused_arguments_have_zero_gradients(backend: Backend) -> None:
    x, y = wg.ones((2, 3)), wg.ones(4)
    a, b = func.grad(lambda x, y: wg.sum(x), (0, 1))(x, y)
    assert a.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert b.tolist() == [0, 0, 0, 0]
    assert b.dtype is y.dtype
    constant = wg.asarray(2.0)
    assert func.grad(lambda x: constant)(3.0) == 0.0
    _, pullback = func.vjp(lambda x: (constant, x), wg.asarray(1.0))
    (c,) = pullback((wg.asarray(1.0), wg.asarray(3.0)))
    assert float(c) == 3


def test_the_pullback_of_an_array_is_differentiable_in_the_cotangent() -> None:
    g = wg.asarray([3.0, 4.0], dtype=wg.float64).requires_grad_()
    _, pullback = func.vjp(lambda x: x**3, np.asarray([1.0, 2.0]))
    (found,) = pullback(g)
    assert isinstance(found, wg.Tensor)  # which g is still followed by
    assert wg.autograd.grad(wg.sum(found), g)[0].tolist() == [3, 12]
    assert func.grad(lambda g: wg.sum(pullback(g)[0]))(np.ones(2)).tolist() == [3, 12]


def test_elementwise_grad(backend: Backend) -> None:
    x = wg.asarray([[0.0, 0.5], [1.0, 2.0]], dtype=wg.float64)
    found = func.elementwise_grad(wg.tanh)(x)
    expected = 1 - np.tanh(np.asarray([[0, 0.5], [1, 2]])) ** 2
    np.testing.assert_allclose(found.backend.to_numpy(found.array), expected, rtol=1e-13)
    second = func.elementwise_grad(func.elementwise_grad(lambda x, a: a * x**3))(x, 2.0)
    assert second.tolist() == [[0, 6], [12, 24]]
    # of a holomorphic function, the conjugate of its derivative
    z = wg.asarray([1 + 2j, -1j], dtype=wg.complex128)
    assert func.elementwise_grad(wg.square)(z).tolist() == [2 - 4j, 2j]


def test_methods_callables_and_names() -> None:
    class Spring:
        """A spring."""

        def __init__(self) -> None:
            self.stiffness = 3.0

        def energy(self, x: Any) -> Any:
            """Energy at x."""
            return self.stiffness * x**2 / 2

        @functools.partial(func.grad, argnums=1)
        def force(self, x: Any) -> Any:
            return self.energy(x)

        def __call__(self, x: Any) -> Any:
            return self.energy(x)

    spring = Spring()
    assert func.grad(spring.energy)(2.0) == 6.0
    assert spring.force(2.0) == 6.0
    gradient = func.grad(spring)
    assert gradient(2.0) == 6.0
    assert not hasattr(gradient, "stiffness")
    assert func.grad(functools.partial(lambda a, x: a * x**2, 3.0))(2.0) == 12.0
    assert func.grad(spring.energy).__name__ == "energy"
    assert func.grad(spring.energy).__doc__ == "Energy at x."


def test_what_a_transform_is_given_is_told() -> None:
    with observed_by(seen := Seen()):
        func.grad(wg.sum)(wg.ones(2))
    assert [told[0] for told in seen.told] == ["positive", "sum"]


# -- misuse ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [func.grad, func.value_and_grad])
def test_results_that_are_no_real_scalar(transform: Any) -> None:
    name = transform.__name__
    with pytest.raises(ValueError, match=rf"{name} is for .* scalar.* shape \(3,\); use vjp .*jac"):
        transform(lambda x: x * 2)(np.ones(3))
    with pytest.raises(ValueError, match=r"shape \(0,\)"):
        transform(lambda x: x)(np.ones(0))
    with pytest.raises(TypeError, match="real scalar, and this one returned complex128"):
        transform(lambda z: z**2)(1j)
    with pytest.raises(TypeError, match=r"one Tensor, and this one returned tuple\(\*, \*\).*aux"):
        transform(lambda x: (x, x))(1.0)
    with pytest.raises(TypeError, match="returned None"):
        transform(lambda x: None)(1.0)
    with pytest.raises(TypeError, match=rf"given to {name} is a float, and should be a Tensor"):
        transform(lambda x: 3.0)(1.0)
    with pytest.raises(TypeError, match="is a ndarray, and should be a Tensor"):
        transform(lambda x: np.ones(()))(1.0)
    with pytest.raises(TypeError, match=r"dtype int64, .* has_aux=True"):
        transform(lambda x: wg.argmax(x))(np.ones(3))


def test_aux_that_is_missing() -> None:
    with pytest.raises(TypeError, match=r"a pair \(result, aux\), and returned a Tensor"):
        func.grad(lambda x: x * x, has_aux=True)(1.0)
    with pytest.raises(TypeError, match="returned a tuple of 3"):
        func.grad(lambda x: (x, x, x), has_aux=True)(1.0)


def test_wrong_cotangents() -> None:
    _, pullback = func.vjp(lambda x: {"y": x * 2}, np.ones(3))
    with pytest.raises(ValueError, match="the cotangent should be a dict"):
        pullback(np.ones(3))
    with pytest.raises(ValueError, match="the cotangent should have the structure"):
        pullback({"z": np.ones(3)})
    with pytest.raises(RuntimeError, match=r"cotangent\['y'\] has shape \(2,\) and .* \(3,\)"):
        pullback({"y": np.ones(2)})
    with pytest.raises(RuntimeError, match="is the number 1"):
        pullback({"y": 1.0})
    with pytest.raises(RuntimeError, match=r"has shape \(\) and .* \(3,\)"):
        pullback({"y": np.float64(1.0)})  # a float to Python, and an array of no axes to NumPy
    with pytest.raises(TypeError, match="should be floating or complex, not int64"):
        pullback({"y": np.arange(3)})
    with pytest.raises(TypeError, match="should be a Tensor, an array or a number, not str"):
        pullback({"y": "text"})
    assert pullback({"y": np.ones(3)})[0].tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match="at least one argument"):
        func.vjp(lambda: wg.ones(3))


def test_errors_of_the_function_pass_and_leave_the_mode() -> None:
    def fail(x: Any) -> Any:
        raise KeyError("mine")

    with wg.no_grad():
        with pytest.raises(KeyError, match="mine"):
            func.grad(fail)(1.0)
        assert not wg.is_grad_enabled()
    assert wg.is_grad_enabled()


# -- with forward mode -----------------------------------------------------------------------------


def slope(function: Any) -> Any:
    """The derivative of a function of a number, by forward mode."""
    return lambda x: func.jvp(function, (x,), (1.0,))[1]


def test_pullbacks_in_forward_mode() -> None:
    assert slope(lambda x: func.vjp(cube, x)[1](1.0)[0])(2.0) == 12.0
    one = np.ones(())  # which has no tangent
    assert slope(lambda x: func.vjp(cube, x)[1](one)[0])(2.0) == 12.0
    assert slope(lambda x: func.vjp(cube, x)[1](wg.asarray(one))[0])(2.0) == 12.0
    assert slope(lambda x: func.vjp(lambda y: x * y**2, 3.0)[1](1.0)[0])(2.0) == 6.0
    _, pullback = func.vjp(cube, 3.0)
    assert slope(lambda g: pullback(g)[0])(2.0) == 27.0
    # One of the results has no cotangent, and one operation no derivative.
    found = slope(lambda x: func.vjp(lambda y: (y**3, wg.floor(y) * y), x)[1]((0.0, 1.0))[0])
    assert found(2.5) == 0.0
