"""jvp, jacfwd, hvp and ggnvp: against formulae, each other, and the reverse sweep."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import Cube, operation
from wengert import func
from wengert.backends import Backend


def tensor(values: Any, **kwargs: Any) -> Any:
    return wg.asarray(np.asarray(values, dtype=float), **kwargs)


def raw(backend: Backend, values: Any, dtype: str = "float64") -> Any:
    return backend.from_numpy(np.asarray(values, dtype=dtype))


def host(x: Any) -> np.ndarray:
    """The values of a Tensor or of an array of any library."""
    if isinstance(x, np.ndarray | np.generic):
        return np.asarray(x)
    x = x if isinstance(x, wg.Tensor) else wg.Tensor(x)
    return np.asarray(x.detach().numpy())


def close(a: Any, b: Any, rtol: float = 1e-12) -> None:
    np.testing.assert_allclose(host(a), host(b), rtol=rtol, atol=1e-13)


# -- jvp -----------------------------------------------------------------------------------------


def test_jvp_of_python_numbers():
    value, tangent = func.jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 10.0))
    assert (type(value), type(tangent)) == (float, float)
    assert (value, tangent) == (6, 23)
    value, tangent = func.jvp(lambda z: z**2, (1 + 2j,), (1j,))
    assert (value, tangent) == (-3 + 4j, (2 + 4j) * 1j)
    # A number is the tangent of an array of no axes, in that array's dtype.
    x = np.asarray(2.0, dtype=np.float32)
    _, tangent = func.jvp(lambda x: x**2, (x,), (3,))
    assert tangent.dtype == np.float32
    assert float(tangent) == 12


def test_results_that_do_not_depend_on_the_argument():
    constant = tensor([7.0])
    value, tangent = func.jvp(lambda x: (constant, wg.floor(x), x), (tensor(2.5),), (tensor(1.0),))
    assert [v.tolist() for v in value] == [[7], 2, 2.5]
    assert [t.tolist() for t in tangent] == [[0], 0, 1]
    assert value[0] is constant
    _, pushforward = func.linearize(lambda x: (constant, wg.floor(x), x), tensor(2.5))
    assert [t.tolist() for t in pushforward(tensor(3.0))] == [[0], 0, 3]
    jacobian = func.jacfwd(lambda x: (constant, wg.floor(x), x))(tensor(2.5))
    assert [j.tolist() for j in jacobian] == [[0], 0, 1]


def test_derivatives_of_constants_are_of_the_arguments_library(backend: Backend) -> None:
    constant = tensor([7.0])
    x = raw(backend, [1.0, 2.0])
    with wg.use_backend("numpy"):
        other = tensor([7.0])
    for y in (constant, other):
        for transform in (func.jacfwd, func.jacrev, func.jacobian):
            found = transform(lambda x, y=y: (y, x))(x)
            assert [type(j) for j in found] == [type(x), type(x)]
            assert [host(j).tolist() for j in found] == [[[0, 0]], [[1, 0], [0, 1]]]


@pytest.mark.parametrize(
    ("tangents", "error", "message"),
    [
        ((np.ones(3),), ValueError, r"tangent of argument 0 has shape \(3,\).*shape \(2,\)"),
        ((np.ones(2, np.float32),), TypeError, r"float32.*has float64.*wg\.astype\(t, wg\.float64"),
        ((np.ones(2, int),), TypeError, r"int64.*has float64"),
        ((np.ones(2, complex),), TypeError, r"complex128.*has float64"),
        ((1.0,), ValueError, r"is the number 1\.0.*shape \(2,\)"),
        (("one",), TypeError, r"should be a Tensor, an array or a number, not str"),
        ((None,), TypeError, r"not NoneType"),
        ((), ValueError, r"1 primals and 0 tangents"),
        ((np.ones(2), np.ones(2)), ValueError, r"1 primals and 2 tangents"),
        (np.ones(2), TypeError, r"tangents in a tuple, as in jvp\(f, \(x,\), \(t,\)\).*ndarray"),
        (([np.ones(2)],), TypeError, r"not list"),
    ],
)
def test_wrong_tangents(tangents, error, message):
    with pytest.raises(error, match=message):
        func.jvp(lambda x: x, (np.ones(2),), tangents)


def test_wrong_trees_of_tangents():
    primals = ({"a": np.ones(2), "b": [1.0]},)
    with pytest.raises(ValueError, match=r"tangent of argument 0.*structure"):
        func.jvp(lambda p: p["a"], primals, ({"a": np.ones(2)},))
    with pytest.raises(ValueError, match=r"argument 0\['b'\]"):
        func.jvp(lambda p: p["a"], primals, ({"a": np.ones(2), "b": (1.0,)},))
    with pytest.raises(ValueError, match=r"argument 0\['b'\]\[0\] has shape \(1,\)"):
        func.jvp(lambda p: p["a"], primals, ({"a": np.ones(2), "b": [np.ones(1)]},))


def test_misuse():
    x = np.ones(2)
    with pytest.raises(TypeError, match=r"jvp takes a function, not ndarray"):
        func.jvp(x, (x,), (x,))
    with pytest.raises(TypeError, match=r"primals in a tuple"):
        func.jvp(np.sin, x, x)
    with pytest.raises(TypeError, match="at least one argument"):
        func.jvp(np.sin, (), ())
    with pytest.raises(TypeError, match="at least one argument"):
        func.linearize(np.sin)
    with pytest.raises(TypeError, match=r"argument 0.*integer"):
        func.jvp(np.sin, (1,), (1.0,))
    with pytest.raises(TypeError, match=r"result of the function given to jvp is a float"):
        func.jvp(lambda x: 1.0, (x,), (x,))
    with pytest.raises(TypeError, match=r"given to linearize has dtype int64"):
        func.linearize(wg.argmax, x)
    _, pushforward = func.linearize(np.sin, x)
    with pytest.raises(TypeError, match=r"at 1 arguments.*given 2"):
        pushforward(x, x)
    with pytest.raises(ValueError, match=r"has shape \(3,\)"):
        pushforward(np.ones(3))
    for size, error in ((0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match="chunk_size"):
            func.jacfwd(np.sin, chunk_size=size)
    with pytest.raises(ValueError, match=r"hvp|scalar"):
        func.hvp(np.sin, (x,), (x,))
    with pytest.raises(TypeError, match="ggnvp takes a function"):
        func.ggnvp(np.sin, 3, (x,), (x,))
    with pytest.raises(NotImplementedError, match=r"nextafter.*not defined"):
        func.jvp(lambda x: wg.nextafter(x, x + 1), (x,), (x,))


def test_tangents_on_another_backend():
    pytest.importorskip("array_api_strict")
    with wg.use_backend("array_api_strict"):
        other = wg.ones(2, dtype=wg.float64)
    with pytest.raises(wg.BackendError, match=r"on array_api_strict and the argument on numpy"):
        func.jvp(lambda x: x, (np.ones(2),), (other,))


def threes(g: Any) -> Any:
    """A cotangent of 3, which is computed from nothing."""
    return wg.full(g.shape, 3.0, dtype=g.dtype)


tripled = operation(lambda ctx, x: x * 3, lambda ctx, g: threes(g), jvp=lambda ctx, t: t * 3)
triple = func.custom_vjp(lambda x: x * 3)
triple.defvjp(lambda x: (x * 3, None), lambda saved, g: (threes(g),))
triple.defjvp(lambda primals, tangents: (primals[0] * 3, tangents[0] * 3))


def hooked(x: Any) -> Any:
    y = x * 1
    y.register_hook(threes)
    return y


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("rule", [tripled, triple, hooked])
def test_tangents_through_a_sweep_in_which_a_rule_answers_with_a_constant(rule, last, backend):
    """Its cotangent is added to others, which have tangents, in either order."""
    x, v = raw(backend, [1.0, 2.0]), raw(backend, [1.0, -1.0])

    def f(x):
        if last:
            return wg.sum(x**3) + wg.sum(rule(x))
        return wg.sum(rule(x)) + wg.sum(x**3)

    gradient, tangent = func.jvp(func.grad(f), (x,), (v,))
    close(gradient, np.array([6.0, 15.0]))
    close(tangent, np.array([6.0, -12.0]))
    close(func.jacfwd(func.grad(f))(x), np.diag([6.0, 12.0]))


# -- jacfwd --------------------------------------------------------------------------------------


def test_jacfwd_calls_the_function_once_for_each_chunk() -> None:
    """Or for each column on the tape outside; and each call draws the same random numbers."""
    w = tensor(2.0, requires_grad=True)
    for closed, chunk_size, calls in ((2.0, None, 1), (2.0, 3, 3), (2.0, 7, 1), (w, None, 1 + 7)):
        draws: list[Any] = []

        def f(x: Any, closed: Any = closed, draws: list[Any] = draws) -> Any:
            draws.append(host(wg.random.rand(7, dtype=wg.float64)))
            return x * wg.asarray(draws[-1]) * closed, draws[-1]

        found, aux = func.jacfwd(f, has_aux=True, chunk_size=chunk_size)(np.ones(7))
        assert len(draws) == calls
        close(found, np.diag(draws[-1]) * 2)
        np.testing.assert_array_equal(aux, draws[-1])


# -- products with second derivatives ------------------------------------------------------------


def test_hvp_of_complex_arguments():
    """The gradient of |z|⁴ is 4 |z|² z (conjugate Wirtinger, doubled); its change along t."""
    z, t = np.array([1 + 2j, 0.5 - 1j]), np.array([1j, 2 - 1j])
    (found,) = func.hvp(lambda z: wg.sum(wg.abs(z) ** 4), (z,), (t,))
    expected = 4 * (np.abs(z) ** 2 * t + 2 * np.real(np.conj(z) * t) * z)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("followed", [True, False])
def test_hvp_refuses_a_backward_that_nothing_may_follow(followed: bool) -> None:
    class Once(Cube):
        @staticmethod
        @wg.autograd.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3 * (x if followed else x.detach()) ** 2

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            (x,) = ctx.saved_tensors
            return t * 3 * x**2

    def f(x: Any) -> Any:
        return wg.sum(Once.apply(x))

    x, v = np.array([1.0, 2.0]), np.array([1.0, -1.0])
    with pytest.raises(RuntimeError, match="once_differentiable"):
        func.hvp(f, (x,), (v,))
    with pytest.raises(RuntimeError, match="once_differentiable"):
        func.jvp(func.grad(f), (x,), (v,))
    with pytest.raises(RuntimeError, match="once_differentiable"):  # only the cotangent varies
        func.jvp(lambda g: func.vjp(f, x)[1](g), (np.asarray(1.0),), (np.asarray(1.0),))
    close(func.jacrev(Once.apply)(x), np.diag(3 * x**2))


def test_ggnvp_is_the_gauss_newton_product():
    random = np.random.default_rng(0)
    a, x, v = random.standard_normal((4, 3)), random.standard_normal(3), random.standard_normal(3)

    def f(x):
        return wg.tanh(wg.asarray(a) @ x)

    def loss(y):
        return wg.logsumexp(y) + wg.sum(y**4)

    jacobian = func.jacfwd(f)(x)
    hessian = func.hessian(loss)(host(f(wg.Tensor(x))))
    (found,) = func.ggnvp(f, loss, (x,), (v,))
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, jacobian.T @ hessian @ jacobian @ v, rtol=1e-12)
    (found,) = func.ggnvp(f, None, (x,), (v,))
    np.testing.assert_allclose(found, jacobian.T @ jacobian @ v, rtol=1e-12)
    (half,) = func.ggnvp(f, lambda y: wg.sum(y**2) / 2, (x,), (v,))
    np.testing.assert_allclose(found, half, rtol=1e-12)


def test_ggnvp_of_complex_least_squares():
    """Jᴴ J v of a holomorphic function: conj(f') f' v."""
    z, v = np.array([1 + 2j, 0.5 - 1j]), np.array([1j, 2 - 1j])
    (found,) = func.ggnvp(lambda z: z**2, None, (z,), (v,))
    np.testing.assert_allclose(found, np.abs(2 * z) ** 2 * v, rtol=1e-13)


# -- the table -----------------------------------------------------------------------------------


KEEPING = {"used": lambda kept: wg.sum(kept[0]), "returned": lambda kept: kept[1]}


@pytest.mark.parametrize("inner", ["jvp", "jacfwd"])
@pytest.mark.parametrize("way", KEEPING)
def test_what_a_forward_transform_has_left_behind_is_an_error(way: str, inner: str) -> None:
    """Its tangent means nothing once the transform has ended: derivatives would be zero."""

    def f(x: Any) -> Any:
        kept: list[Any] = []

        def inside(a: Any) -> Any:
            square = a * a
            kept.extend([square, wg.sum(square)])
            return square

        if inner == "jvp":
            wg.jvp(inside, (x,), (x,))
        else:
            wg.func.jacfwd(inside)(x)
        return KEEPING[way](kept)

    x = wg.asarray([1.0, 2.0])
    leaf = wg.tensor([1.0, 2.0], requires_grad=True)
    for outer in (
        lambda: wg.grad(f)(x),
        lambda: wg.hessian(f)(x),
        lambda: wg.jvp(f, (x,), (x,)),
        lambda: wg.func.jacfwd(f)(x),
        lambda: wg.func.vjp(f, x)[1](wg.asarray(1.0)),
        lambda: f(leaf).backward(),
    ):
        with pytest.raises((RuntimeError, ValueError), match="that has ended"):
            outer()
