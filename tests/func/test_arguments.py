"""Transforms take Tensors, arrays and numbers in trees, and answer in kind."""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from array_api_compat import array_namespace

import wengert as wg
from tests.func.test_forward import raw
from tests.walking import walk
from wengert import func
from wengert.backends import Backend, backend_of, get_backend, use_backend


def values(x: Any) -> np.ndarray:
    return backend_of(x).to_numpy(x)


def cubes(x: Any) -> Any:
    return x**3


def total(x: Any) -> Any:
    return wg.sum(x**3)


#: What gives 3 x² in the place of x, or a value of its own kind.
ANSWERS = {
    "grad": lambda x: func.grad(total)(x),
    "value_and_grad": lambda x: func.value_and_grad(total)(x)[1],
    "elementwise_grad": lambda x: func.elementwise_grad(cubes)(x),
    "vjp": lambda x: func.vjp(cubes, x)[1](x)[0] / x,
    "jvp": lambda x: func.jvp(cubes, (x,), (x,))[1] / x,
    "linearize": lambda x: func.linearize(cubes, x)[1](x) / x,
    "jacrev": lambda x: of_rows(func.jacrev(cubes)(x)),
    "jacfwd": lambda x: of_rows(func.jacfwd(cubes)(x)),
    "jacobian": lambda x: of_rows(func.jacobian(cubes)(x)),
    "hessian": lambda x: of_rows(func.hessian(total)(x)) * x / 2,
    "hvp": lambda x: func.hvp(total, (x,), (x,))[0] / 2,
    "ggnvp": lambda x: func.ggnvp(cubes, None, (x,), (x,))[0] / x**3 / 3,
    "checkpoint": lambda x: func.grad(lambda y: wg.checkpoint(total, y))(x),
    "value of jvp": lambda x: func.jvp(cubes, (x,), (x,))[0] * 3 / x,
    "value of linearize": lambda x: func.linearize(cubes, x)[0] * 3 / x,
    "aux of grad": lambda x: func.grad(both, has_aux=True)(x)[1]["y"] * 3 / x,
    "aux of value": lambda x: func.value_and_grad(both, has_aux=True)(x)[0][1]["y"] * 3 / x,
    "aux of vjp": lambda x: func.vjp(both, x, has_aux=True)[2]["y"] * 3 / x,
    "aux of jvp": lambda x: func.jvp(both, (x,), (x,), has_aux=True)[2]["y"] * 3 / x,
    "aux of linearize": lambda x: func.linearize(both, x, has_aux=True)[2]["y"] * 3 / x,
    "aux of jacfwd": lambda x: func.jacfwd(both, has_aux=True)(x)[1]["y"] * 3 / x,
    "aux of jacrev": lambda x: func.jacrev(both, has_aux=True)(x)[1]["y"] * 3 / x,
    "aux of hessian": lambda x: func.hessian(both, has_aux=True)(x)[1]["y"] * 3 / x,
}


def both(x: Any) -> Any:
    """A scalar, and auxiliary data of which the array is answered in kind."""
    y = x**3
    return wg.sum(y), {"y": y, "text": "t", "n": wg.argmax(wg.reshape(y, (-1,))), "none": None}


def of_rows(matrix: Any) -> Any:
    """The diagonal of a matrix, or the number that it is."""
    if isinstance(matrix, float) or not matrix.ndim:
        return matrix
    return wg.linalg.diagonal(matrix) if isinstance(matrix, wg.Tensor) else diagonal(matrix)


def diagonal(matrix: Any) -> Any:
    """By a sum, since each library indexes differently."""
    xp = array_namespace(matrix)
    return xp.sum(matrix * xp.eye(2, dtype=matrix.dtype), axis=0)


def test_every_transform_answers_in_kind(backend: Backend) -> None:
    given = [wg.asarray([1.0, -2.0], dtype=dtype) for dtype in ("float32", "float64")]
    given += [raw(backend, [1.0, -2.0], dtype) for dtype in ("float32", "float64")]
    given += [3.0, np.float32(3), np.float64(3)] if backend.name == "numpy" else [3.0]

    def check(name: str, x: Any) -> None:
        found = ANSWERS[name](x)
        assert type(found) is type(x)
        assert getattr(found, "dtype", 0) == getattr(x, "dtype", 0)
        plain = x.numpy() if isinstance(x, wg.Tensor) else x
        if not isinstance(x, float | np.generic | wg.Tensor):
            plain = values(x)
        numbers = values(wg.asarray(found).array)
        np.testing.assert_allclose(numbers, 3 * plain**2, rtol=1e-6)
        assert not getattr(found, "requires_grad", False)

    few = dict.fromkeys(["grad", "jvp", "jacrev"]) if backend.name in ("jax", "dask") else ANSWERS
    walk([(name, x) for name in few for x in given], check, whole=True)


def test_numbers_and_complex_numbers() -> None:
    value, gradient = func.value_and_grad(lambda x: wg.exp(x))(1.0)
    assert type(value) is type(gradient) is float
    assert value == pytest.approx(np.e, rel=1e-15)  # in double precision
    gradient = func.grad(lambda z: wg.abs(z) ** 2)(3 + 4j)
    assert type(gradient) is complex
    assert gradient == pytest.approx(6 + 8j)
    value, gradient = func.value_and_grad(lambda x: wg.sum(x**2))(np.asarray(3.0))
    assert type(value) is np.float64  # what NumPy's sum gives
    assert (type(gradient), gradient.shape) == (np.ndarray, ())
    value, pullback = func.vjp(lambda x: x * wg.asarray([1.0, 2.0], dtype=wg.float64), 3.0)
    assert values(value).tolist() == [3, 6]  # a number has no axes: this is an array
    assert pullback(value) == (15.0,)


def test_arrays_stay_where_they_are_whichever_backend_is_selected(backend: Backend) -> None:
    x = raw(backend, [1.0, 2.0], "float32")
    with use_backend("numpy"):
        gradient = func.grad(lambda x: wg.sum(x * x))(x)
    assert type(gradient) is type(x)
    assert gradient.dtype == x.dtype
    number = func.grad(lambda a, x: wg.sum(a * x))(2.0, x)
    assert number == 3.0
    assert type(number) is float


def test_numbers_beside_arrays_have_their_precision() -> None:
    x = np.ones(3, dtype=np.float32)
    value, (a, z) = func.value_and_grad(lambda a, x, z: wg.real(wg.sum(a * x * z)), (0, 2))(
        0.1, x, 1j
    )
    assert value.dtype == np.float32
    assert type(a) is float
    assert type(z) is complex
    assert z == np.float32(0.1) + np.float32(0.1) + np.float32(0.1)
    value = func.value_and_grad(lambda a, z: wg.real(wg.sum(a * z)))(0.1, np.ones(1, "complex64"))
    assert value[0].dtype == np.float32
    value = func.value_and_grad(lambda a, n: wg.sum(a * n))(0.1, np.arange(3))
    assert value == (pytest.approx(0.3, rel=1e-15), 3.0)
    assert value[0].dtype == np.float64


class Line(NamedTuple):
    slope: Any
    offset: Any


@dataclass
class Model:
    layers: list[Line]
    scale: Any


def test_trees_of_mixed_kinds(backend: Backend) -> None:
    def f(model: Model, x: Any) -> Any:
        for slope, offset in model.layers:
            x = x * slope + offset
        return wg.sum(x * model.scale["value"])

    x = wg.asarray([1.0, -2.0], dtype=wg.float64)
    line = Line(raw(backend, [2.0, 3.0]), wg.asarray([0.5, 0.5], dtype=wg.float64))
    model = Model([line], {"value": 4.0, "none": None})
    gradient = func.grad(f)(model, x)
    assert type(gradient) is Model
    assert type(gradient.layers[0]) is Line
    slope, offset = gradient.layers[0]
    assert values(slope).tolist() == [4, -8]
    assert type(offset) is wg.Tensor
    assert offset.tolist() == [4, 4]
    assert gradient.scale == {"value": 2.5 - 5.5, "none": None}
    assert type(gradient.scale["value"]) is float


def test_answers_are_arrays_of_their_own(backend: Backend) -> None:
    x, y = raw(backend, [1.0, 2.0]), raw(backend, [3.0, 4.0])
    seed = raw(backend, [1.0, 1.0])
    _, pullback = func.vjp(lambda x, y: x + y, x, y)
    a, b = pullback(seed)
    assert len({id(a), id(b), id(seed)}) == 3
    if backend.name != "jax":
        a[0] = 100.0
        assert values(b).tolist() == values(seed).tolist() == [1, 1]
        gradient = func.grad(wg.sum)(x)  # which is one number, broadcast
        gradient[0] = 5.0
        assert values(gradient).tolist() == [5, 1]


def test_other_arguments_come_as_they_are() -> None:
    seen = []

    def f(x: Any, data: Any, *rest: Any, **options: Any) -> Any:
        seen.extend((data, *rest, options))
        return wg.sum(x * data) * options["factor"]

    data = np.asarray([1.0, 2.0])
    gradient = func.grad(f)(np.ones(2), data, "text", [3], factor=3.0, flag=True)
    assert gradient.tolist() == [3, 6]
    assert seen[0] is data
    assert seen[1:] == ["text", [3], {"factor": 3.0, "flag": True}]


def test_a_gradient_that_is_still_followed_stays_a_tensor() -> None:
    w = wg.tensor(3.0, dtype=wg.float64, requires_grad=True)
    gradient = func.grad(lambda x: w * x**2)(2.0)
    assert isinstance(gradient, wg.Tensor)
    (slope,) = wg.autograd.grad(gradient, w)
    assert float(slope) == 4
    with wg.no_grad():
        assert func.grad(lambda x: w * x**2)(2.0) == 12.0
    assert func.grad(lambda x: x**2 + w)(2.0) == 4.0  # which does not depend on w
    value, _ = func.value_and_grad(lambda x: x**2 + w)(2.0)
    assert isinstance(value, wg.Tensor)
    assert value.requires_grad


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (3, r"argument 0 is the integer 3, .* pass 3\.0"),
        (True, "argument 0 is the truth value True"),
        (np.arange(3), "argument 0 has dtype int64"),
        (np.ones(3) > 0, "argument 0 has dtype bool"),
        ({"w": [1.0, 2]}, r"argument 0\['w'\]\[1\] is the integer 2"),
        ({"w": Line(1.0, np.arange(2, dtype="int8"))}, r"argument 0\['w'\]\.offset has dtype int8"),
        (["text"], r"argument 0\[0\] is a str"),
        (np.asarray(["a"], dtype=object), r"argument 0 has no derivative: dtype\('O'\)"),
    ],
)
def test_what_has_no_derivative_is_an_error_that_names_it(argument: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        func.grad(lambda x: wg.sum(x))(argument)


@pytest.mark.parametrize(
    ("argnums", "message"),
    [
        (2, "no argument 2 to differentiate among the 2"),
        (-3, "no argument -3"),
        ((0, 2), "no argument 2"),
        ((0, -2), "names an argument twice"),
        ((), "argnums is empty"),
    ],
)
def test_argnums_that_do_not_fit(argnums: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        func.grad(lambda x, y: x * y, argnums)(1.0, 2.0)


@pytest.mark.parametrize(
    "name",
    ["grad", "value_and_grad", "elementwise_grad", "jacrev", "jacfwd", "jacobian", "hessian"],
)
def test_the_keyword_of_autograd_is_told(name: str) -> None:
    with pytest.raises(TypeError, match=f"^{name} takes no argnum, .* write argnums=$"):
        getattr(func, name)(lambda x: x, argnum=0)


@pytest.mark.parametrize("argnums", ["x", 1.0, (0, None), None])
def test_argnums_that_are_no_integers(argnums: Any) -> None:
    with pytest.raises(TypeError, match="argnums should be an integer or several"):
        func.grad(lambda x, y: x * y, argnums)(1.0, 2.0)


def test_keyword_arguments_are_not_differentiated() -> None:
    with pytest.raises(ValueError, match="given by keyword are passed on"):
        func.grad(lambda x: x * x)(x=1.0)


def test_backends_are_not_mixed_silently() -> None:
    other = raw(get_backend("array_api_strict"), [1.0, 2.0])
    with pytest.raises(wg.BackendError, match=r"numpy.*array_api_strict"):
        func.grad(lambda x: wg.sum(x * other))(np.ones(2))


X = np.ones(2)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *[
            (name, lambda f: f("no function")(1.0))
            for name in (
                *("grad", "value_and_grad", "elementwise_grad", "jacfwd", "jacrev", "jacobian"),
                "hessian",
            )
        ],
        *[(name, lambda f: f("no function", X)) for name in ("vjp", "linearize")],
        *[(name, lambda f: f("no function", (X,), (X,))) for name in ("jvp", "hvp")],
        ("ggnvp", lambda f: f("no function", wg.sum, (X,), (X,))),
        ("ggnvp", lambda f: f(lambda x: x, "no function", (X,), (X,))),
        *[(name, lambda f: f(wg.sum, (X,), ())) for name in ("jvp", "hvp")],
        ("ggnvp", lambda f: f(lambda x: x, wg.sum, (X,), ())),
        ("grad", lambda f: f(lambda x: x)(X)),
        ("value_and_grad", lambda f: f(lambda x: x)(X)),
        ("elementwise_grad", lambda f: f(lambda x: (x, x))(X)),
        *[
            (name, lambda f: f(lambda x: "text")(X))
            for name in (
                *("jacfwd", "jacrev", "jacobian", "grad", "value_and_grad", "elementwise_grad"),
            )
        ],
        *[(name, lambda f: f(lambda x: "text", (X,), (X,))) for name in ("jvp",)],
        *[(name, lambda f: f(lambda x: "text", X)) for name in ("vjp", "linearize")],
    ],
)
def test_the_error_of_a_transform_names_it(name: str, wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        wrong(getattr(func, name))
    assert re.search(rf"\b{name}\b", str(caught.value)), caught.value


def test_constants_beside_numbers_alone_are_doubles() -> None:
    def f(x: Any) -> Any:
        return wg.sum(wg.asarray([0.1, 0.2])) * x

    assert wg.func.grad(f)(0.1) == 0.1 + 0.2
    assert wg.func.jacrev(f)(0.1) == 0.1 + 0.2
    assert wg.func.jvp(f, (0.1,), (1.0,))[1] == 0.1 + 0.2
