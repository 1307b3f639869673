"""HIPS/autograd's names, with its conventions: values by hand, and by differences."""

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.signal

import wengert as wg
from tests.scripts import python

X = np.array([0.3, -0.7, 1.2])


def of(name: str, module: str = "") -> object:
    return getattr(importlib.import_module(f"wengert.hips{module}"), name)


def test_transforms_take_argnum_by_position_and_keyword():
    grad = of("grad")

    def f(x, y, scale=1.0):
        return scale * np.sum(x**2 * y)

    assert np.allclose(grad(f)(X, 2.0), 4 * X)
    assert np.allclose(grad(f, 1)(X, 2.0), np.sum(X**2))
    assert np.allclose(grad(f, argnum=1)(X, 2.0, scale=3.0), 3 * np.sum(X**2))
    both = grad(f, (1, 0))(X, 2.0)
    assert isinstance(both, tuple)
    assert np.allclose(both[0], np.sum(X**2))
    assert np.allclose(both[1], 4 * X)
    assert np.allclose(grad(f, -1)(X, 2.0), np.sum(X**2))


def test_answers_are_of_the_arguments_kind():
    grad, value_and_grad = of("grad"), of("value_and_grad")
    assert type(grad(lambda x: np.sum(x**2))(X)) is np.ndarray
    assert type(grad(lambda x: x**2)(3.0)) is float
    value, gradient = value_and_grad(lambda x: np.sum(x**2))(X)
    assert isinstance(value, float)
    assert type(gradient) is np.ndarray
    found = grad(lambda d: d["a"] * d["b"][0])({"a": 2.0, "b": [3.0]})
    assert found == {"a": 3.0, "b": [2.0]}
    assert np.allclose(grad(lambda x: np.sum(x**2))(np.array([1, 2])), [2.0, 4.0])  # integers
    assert grad(lambda x: x**2)(np.array([3.0])) == 6.0  # of shape (1,)


def test_complex_gradients_are_conjugates():
    z = np.array([1 + 2j, -0.5 + 0.3j])
    grad, make_vjp, make_jvp = of("grad"), of("make_vjp"), of("make_jvp")
    own = wg.grad(lambda z: np.sum(np.abs(z) ** 2 * np.real(z)))(z)
    assert np.allclose(grad(lambda z: np.sum(np.abs(z) ** 2 * np.real(z)))(z), np.conj(own))
    assert np.allclose(of("holomorphic_grad")(lambda z: np.sum(z**3))(z), 3 * z**2)
    pull, value = make_vjp(lambda z: z**2)(z)
    assert np.allclose(value, z**2)
    assert np.allclose(pull(np.ones(2) * 1j), 2j * z)
    assert np.allclose(make_jvp(lambda z: z**2)(z)(z)[1], 2 * z**2)
    assert np.allclose(of("jacobian")(lambda z: np.real(z**2))(z), np.diag(2 * z))
    for name, slope in (("jacobian", 1 + 0.3j), ("hessian", 2j - 0.3)):
        assert np.allclose(of(name)(lambda q: np.exp(1j * q) * q)(0.3), np.exp(0.3j) * slope)


def test_products_and_matrices():
    def f(x):
        return np.sum(np.sin(x) * x[0])

    h = of("hessian")(f)(X)
    assert np.allclose(h, wg.func.hessian(f)(X))
    assert np.allclose(of("hessian_vector_product")(f)(X, X), h @ X)
    assert np.allclose(of("make_hvp")(f)(X)[0](X), h @ X)
    jacobian = of("jacobian")(np.sin)(X)
    assert np.allclose(of("tensor_jacobian_product")(np.sin)(X, X), X @ jacobian)
    assert np.allclose(of("make_ggnvp")(np.sin)(X)(X), jacobian.T @ jacobian @ X)
    assert np.allclose(of("make_jvp_reversemode")(np.sin)(X)(X), jacobian @ X)
    assert np.allclose(of("elementwise_grad")(np.sin)(X), np.cos(X))
    assert np.allclose(of("deriv")(np.sin)(0.5), np.cos(0.5))
    assert of("grad_and_aux")(lambda x: (x**2, "aux"))(3.0) == (6.0, "aux")
    assert np.allclose(of("grad")(of("checkpoint")(f))(X), wg.grad(f)(X))


def test_a_result_that_depends_on_nothing_warns():
    with pytest.warns(UserWarning, match="independent"):
        assert of("grad")(lambda x: 3.0)(2.0) == 0.0


def test_primitives():
    primitive, defvjp = (of(n, ".extend") for n in ("primitive", "defvjp"))
    seen = []

    @primitive
    def scaled(x, y, by=1.0):
        seen.append(type(x))
        return by * np.sin(x) * y

    defvjp(
        scaled,
        lambda ans, x, y, by=1.0: lambda g: g * by * np.cos(x) * y,
        lambda ans, x, y, by=1.0: lambda g: np.sum(g * ans / y),
    )
    grad, check = of("grad"), of("check_grads", ".test_util")
    assert np.allclose(grad(lambda x: np.sum(scaled(x, 2.0, by=3.0)))(X), 6 * np.cos(X))
    assert seen == [np.ndarray]  # the function itself sees NumPy's arrays
    check(scaled, (0, 1), modes=["rev"])(X, 2.0)
    assert np.allclose(of("hessian")(lambda x: np.sum(scaled(x, 2.0)))(X), np.diag(-2 * np.sin(X)))
    assert type(scaled(X, 2.0)) is np.ndarray
    with pytest.raises(NotImplementedError, match=r"scaled .*make_jvp_reversemode"):
        of("make_jvp")(scaled)(X, 2.0)(X)
    with pytest.raises(TypeError, match="nondiff"):
        grad(lambda by: np.sum(scaled(X, 2.0, by=by)))(2.0)
    defvjp(scaled, lambda ans, x, y: lambda g: g)
    with pytest.raises(NotImplementedError, match="scaled: no rule for argument 1"):
        grad(lambda y: np.sum(scaled(X, y)))(2.0)


def test_a_wrong_rule_is_found():
    primitive, defvjp = of("primitive", ".extend"), of("defvjp", ".extend")
    wrong = primitive(lambda x: x**2)
    defvjp(wrong, lambda ans, x: lambda g: g * 2.01 * x)
    with pytest.raises(AssertionError):
        of("check_grads", ".test_util")(wrong, modes=["rev"], order=1)(X)


def test_flatten_orders_keys_and_comes_back():
    flatten, flatten_func = of("flatten", ".misc"), of("flatten_func", ".misc.flatten")
    tree = {"b": (2.0, [X]), "a": np.ones((2, 2))}
    vector, back = flatten(tree)
    assert vector.tolist() == [1.0] * 4 + [2.0, *X.tolist()]
    again = back(vector)
    assert again["b"][0] == 2.0
    assert again["a"].shape == (2, 2)
    f, _, start = flatten_func(lambda p: {"c": p["a"] ** 2, "d": p["b"]}, {"b": X, "a": 2.0})
    assert f(start).tolist() == [4.0, *X.tolist()]
    assert of("grad")(lambda v: np.sum(back(v)["a"] ** 2))(vector).tolist() == [2.0] * 4 + [0.0] * 4
    assert flatten([])[0].shape == (0,)


def test_optimisers_take_their_known_steps():
    one = {name: of(name, ".misc.optimizers") for name in ("adam", "rmsprop", "sgd")}

    def g(x, i):
        return np.array([2.0, -4.0])

    zero = np.zeros(2)
    assert np.allclose(one["adam"](g, zero, None, 3, 0.1), [-0.3, 0.3])
    root = np.sqrt(0.9 + 0.1 * np.array([4.0, 16.0]))
    assert np.allclose(one["rmsprop"](g, zero, None, 1, 0.1), -0.1 * g(0, 0) / root)
    velocity = 0.1 * g(0, 0)
    assert np.allclose(one["sgd"](g, zero, None, 1), -0.1 * velocity)
    assert np.allclose(one["sgd"](g, zero, None, 2), -0.1 * (velocity + 0.19 * g(0, 0)))


def test_modules_and_values():
    numpy = importlib.import_module("wengert.hips.numpy")
    assert numpy is importlib.import_module("wengert.numpy")
    assert importlib.import_module("wengert.hips.numpy.linalg") is numpy.linalg
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("wengert.hips.nothing")
    getval, isbox = of("getval", ".tracer"), of("isbox", ".tracer")
    seen = []

    def f(x):
        seen.append((type(getval(x)), isbox(x), of("isinstance", ".builtins")(x, np.ndarray)))
        seen.append((x._value.tolist(), of("type", ".builtins")(x)))
        return np.sum(x)

    of("grad")(f)(X)
    assert seen == [(np.ndarray, True, True), (X.tolist(), np.ndarray)]


def test_fixed_points_are_differentiated_implicitly():
    fixed_point, jacobian = of("fixed_point", ".misc.fixed_points"), of("jacobian")

    def root(a, scale=1.0):  # by Heron's steps, which converge wholly; the factor is in a closure
        return fixed_point(
            lambda a: lambda x: (x + a * scale / x) / 2,
            a,
            X**2 + 1,
            lambda x, y: np.max(abs(x - y)),
            1e-14,
        )

    a = np.array([2.0, 3.0, 0.5])
    assert np.allclose(root(a), np.sqrt(a))
    assert np.allclose(jacobian(root)(a), np.diag(0.5 / np.sqrt(a)))
    assert np.allclose(jacobian(root, 1)(a, 1.0), np.sqrt(a) / 2)
    assert np.allclose(of("make_jvp")(root)(a)(X)[1], X / 2 / np.sqrt(a))
    second = of("hessian")(lambda a: np.sum(root(a)))(a)
    assert np.allclose(second, np.diag(-(a**-1.5) / 4))

    def pair(p):  # trees: the circle's point by an angle, as the point that a contraction keeps
        step = lambda x: {"c": x["c"] / 2 + np.cos(p[0]) / 2, "s": [x["s"][0] / 3 + p[1]]}
        away = lambda x, y: abs(x["c"] - y["c"]) + abs(x["s"][0] - y["s"][0])
        found = fixed_point(lambda _: step, p, {"c": 0.0, "s": [0.0]}, away, 1e-15)
        return found["c"] * found["s"][0]

    p = np.array([0.4, 2.0])
    assert np.allclose(of("grad")(pair)(p), [-3 * np.sin(0.4), 1.5 * np.cos(0.4)])


def test_checks_of_combinations_name_the_function():
    combo_check, getval = of("combo_check", ".test_util"), of("getval", ".tracer")
    seen = []

    def scaled(x, y, by):
        seen.append((float(getval(x)), float(getval(y)), by))
        return x * y * by

    combo_check(scaled, (0, 1), order=1)([1.0, 2.0], [3.0], by=[4.0, 5.0])
    assert {(1.0, 3.0, 5.0), (2.0, 3.0, 4.0)} < {*seen}
    wrong = of("primitive", ".extend")(lambda x: x**2)
    wrong.__name__ = "squared"
    of("defvjp", ".extend")(wrong, lambda ans, x: lambda g: g * 2.01 * x)
    with pytest.raises(AssertionError, match=r"\(VJP\) check of squared failed: the gradient"):
        combo_check(wrong, modes=["rev"], order=1)([1.0])


def test_equality_of_trees():
    equal, close = (of(name, ".test_util") for name in ("check_equivalent", "scalar_close"))
    equal({"a": X, "b": [1.0]}, {"a": X + 1e-9, "b": [1.0]})
    with pytest.raises(AssertionError):
        equal({"a": X, "b": [1.0]}, {"a": X, "b": [1.001]})
    assert close(1e6, 1e6 + 1)
    assert not close(1.0, 1.00001)


def test_diagonal_matrices():
    make = of("make_diagonal", ".numpy")
    rows = np.array([[1.0, np.inf, 3.0], [4.0, 5.0, 6.0]])
    expected = np.stack([np.where(np.eye(3) > 0, row, 0.0) for row in rows])
    assert np.array_equal(make(rows, axis1=-1, axis2=-2), expected)
    assert np.array_equal(make(rows), np.moveaxis(expected, (1, 2), (0, 1)))
    weights = np.arange(9.0).reshape(3, 3)
    found = of("grad")(lambda d: np.sum(make(d, axis1=-1, axis2=-2) * weights))(X)
    assert found.tolist() == [0.0, 4.0, 8.0]


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
def test_convolutions_along_axes(mode: str):
    convolve = importlib.import_module("wengert.hips.scipy.signal").convolve
    draw = np.random.default_rng(1).standard_normal
    a, b = draw((3, 7, 2)), draw((4, 2, 3))
    for axes, dots in (
        (([1], [0]), ([2], [1])),
        (([1], [2]), ([], [])),
        (([1, 0], [0, 2]), ([2], [1])),
        (([2], [0]), ([0], [2])),  # the second one is longer
    ):
        found = convolve(a, b, axes=axes, dot_axes=dots, mode=mode)
        rest = [
            [i for i in range(3) if i not in (*along, *dot)]
            for along, dot in zip(axes, dots, strict=True)
        ]
        # By SciPy, for each pair of places along the other axes, and each of the sum.
        x, y = (
            np.transpose(z, (*r, *dot, *along)).reshape(
                *[z.shape[i] for i in r], -1, *[z.shape[i] for i in along]
            )
            for z, r, dot, along in zip((a, b), rest, dots, axes, strict=True)
        )
        for i in np.ndindex(x.shape[: len(rest[0])]):
            for j in np.ndindex(y.shape[: len(rest[1])]):
                pairs = zip(x[i], y[j], strict=True)
                expected = sum(scipy.signal.convolve(*pair, mode, "direct") for pair in pairs)
                assert np.allclose(found[(*i, *j)], expected)
        of("check_grads", ".test_util")(convolve, (0, 1), modes=["rev"])(
            a, b, axes=axes, dot_axes=dots, mode=mode
        )
    assert type(found) is np.ndarray
    line = convolve(a[0, :, 0], b[:, 0, 0], mode=mode)  # without axes SciPy's own
    assert np.array_equal(line, scipy.signal.convolve(a[0, :, 0], b[:, 0, 0], mode))


@pytest.mark.parametrize(
    "door",
    [
        "from wengert.hips.scipy import signal",
        "import wengert.hips.scipy as sp; signal = sp.signal",
        "import wengert.hips.scipy.signal as signal",
        "from wengert import hips; signal = hips.scipy.signal",
    ],
)
def test_the_convolution_along_axes_is_of_hips_alone(door: str):
    found: dict[str, Any] = {}
    exec(door, found)
    signal, shared = found["signal"], importlib.import_module("wengert.scipy.signal")
    assert signal.convolve(np.ones((2, 3)), np.ones((4, 2)), axes=([1], [1])).shape == (2, 4, 4)
    assert signal.lfilter is shared.lfilter
    assert of("__getattr__", ".scipy")("signal") is sys.modules["wengert.hips.scipy.signal"]
    assert sys.modules["wengert.scipy"].signal is shared
    same = shared.convolve(wg.asarray([1.0, 2.0, 3.0]), wg.asarray([1.0, 1.0]), "same")
    assert same.numpy().tolist() == [1.0, 3.0, 5.0]


SCRIPT = """
import sys
import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import grad
from autograd.misc.optimizers import adam
from autograd.misc import flatten

x = npr.RandomState(0).randn(3)
print(np.allclose(grad(lambda x: np.sum(np.sin(x)))(x), np.cos(x)), sys.argv[1:])
"""


def test_scripts_run_by_the_module(tmp_path: Path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = python("-m", "wengert.hips", tmp_path / "script.py", "--n", "3")
    assert (done.stdout, done.stderr) == ("True ['--n', '3']\n", "")
