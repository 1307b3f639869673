"""check_derivative: derivatives of NumPy functions that somebody wrote by hand."""

import numpy as np
import pytest

from wengert.testing import (
    Argument,
    GradcheckError,
    KinkError,
    WrongGradientError,
    check_derivative,
)


def softplus(x):
    return np.log1p(np.exp(x))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_right_ones_pass():
    check_derivative(lambda x: np.sum(x**3), lambda x: 3 * x**2, ...)
    check_derivative(softplus, sigmoid, ..., form="elementwise")
    check_derivative(lambda a, x: a @ x, _product_jacobian, ("n", "m"), ("m",))
    check_derivative(
        lambda a, x: a @ x,
        lambda a, x, g: (np.outer(g, x), a.T @ g),
        ("n", "m"),
        ("m",),
        form="vjp",
    )
    check_derivative(
        lambda a, x: a @ x,
        lambda a, x, da, dx: da @ x + a @ dx,
        ("n", "m"),
        ("m",),
        form="jvp",
    )


def _product_jacobian(a, x):
    return np.einsum("ij,k->ijk", np.eye(a.shape[0]), x), a


def test_complex():
    both = ("float64", "complex128")
    check_derivative(np.exp, np.exp, ..., form="elementwise", dtypes=both)
    check_derivative(
        lambda z: np.sum(abs(z) ** 2), lambda z, g: 2 * g * z, ..., form="vjp", dtypes=both
    )
    with pytest.raises(WrongGradientError, match="d result / d Im arguments"):
        check_derivative(
            lambda z: np.sum(abs(z) ** 2),
            lambda z, g: 2 * g * np.conj(z),
            ...,
            form="vjp",
            dtypes="complex128",
        )


def test_a_wrong_one_is_shown_with_code_that_runs():
    with pytest.raises(WrongGradientError) as caught:
        check_derivative(softplus, np.exp, ..., form="elementwise")
    text = str(caught.value)
    assert "softplus: the derivative is wrong: d result / d arguments[0]\n" in text
    assert "  numerical: 0.5\n  by hand:   1\n" in text
    code = text.partition("To see it again:\n\n")[2]
    assert "np.array(0.0, dtype=np.float64)" in code
    with pytest.raises(WrongGradientError, match="softplus: the derivative is wrong"):
        exec("\n".join(line.strip() for line in code.splitlines()), {})


def test_wrong_at_a_special_value_only():
    def wrong(x):
        return np.where(x == -1, 7.0, 2 * x)

    with pytest.raises(WrongGradientError, match=r"np.array\(-1.0"):
        check_derivative(np.square, wrong, ..., form="elementwise", examples=100)


def test_kinks():
    check_derivative(np.abs, np.sign, ..., form="elementwise")
    with pytest.raises(KinkError, match="has a kink here"):
        check_derivative(
            np.abs,
            lambda x: np.where(x < 0, -1.0, 1.0),
            1.0 * np.zeros(1),
            form="elementwise",
            kinks="fail",
        )
    with pytest.raises(WrongGradientError, match="not between them"):
        check_derivative(
            np.abs, lambda x: np.where(x == 0, 2.0, np.sign(x)), ..., form="elementwise"
        )
    check_derivative(
        np.sqrt, lambda x: 0.5 / np.sqrt(x), Argument(domain=(0, 4)), form="elementwise"
    )


def test_damage_to_an_argument():
    def damages(x):
        x += 1
        return x

    with pytest.raises(GradcheckError, match=r"the function changed arguments\[0\] in place"):
        check_derivative(damages, np.ones_like, ("n",), form="elementwise", min_side=1)
    with pytest.raises(GradcheckError, match=r"the derivative changed arguments\[0\] in place"):
        check_derivative(np.square, damages, ("n",), form="elementwise", min_side=1)


def test_misuse():
    x = np.ones(2)
    with pytest.raises(ValueError, match="form should be"):
        check_derivative(np.exp, np.exp, x, form="gradient")
    with pytest.raises(ValueError, match=r"has shape \(2,\), and should have \(2, 2\)"):
        check_derivative(np.exp, np.exp, x)
    with pytest.raises(ValueError, match=r"the derivatives are 1, .* are 2"):
        check_derivative(np.add, lambda x, y: x, x, x)
    with pytest.raises(TypeError, match="floating or complex array"):
        check_derivative(np.exp, np.exp, 1)
    with pytest.raises(ValueError, match="kinks should be"):
        check_derivative(np.exp, np.exp, x, kinks="never")
