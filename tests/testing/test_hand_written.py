"""check_derivative: derivatives of NumPy functions that somebody wrote by hand."""

import numpy as np
import pytest

import wengert as wg
from tests.testing.settings import FIRST
from wengert.backends import selection
from wengert.testing import (
    Argument,
    GradcheckError,
    KinkError,
    WrongGradientError,
    check_derivative,
    gradcheck,
)


def softplus(x):
    return np.log1p(np.exp(x))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_right_ones_pass():
    check_derivative(lambda x: np.sum(x**3), lambda x: 3 * x**2, ...)
    check_derivative(softplus, sigmoid, ..., form="elementwise")
    for form, derivative in {
        "jacobian": lambda a, x: (np.einsum("ij,k->ijk", np.eye(a.shape[0]), x), a),
        "vjp": lambda a, x, g: (np.outer(g, x), a.T @ g),
        "jvp": lambda a, x, da, dx: da @ x + a @ dx,
    }.items():
        check_derivative(lambda a, x: a @ x, derivative, ("n", "m"), ("m",), form=form)


def test_numpys_functions_are_checked_on_numpy_alone():
    seen = set()

    def cube(x):
        seen.add(selection()[0].name)
        return x**3

    check_derivative(cube, lambda x: 3 * x**2, ..., form="elementwise")
    assert seen == {"numpy"}


@pytest.mark.slow
def test_complex():
    both = ("float64", "complex128")
    check_derivative(np.exp, np.exp, ..., form="elementwise", dtypes=both)
    squares = lambda z: np.sum(abs(z) ** 2)
    check_derivative(squares, lambda z, g: 2 * g * z, ..., form="vjp", dtypes=both)
    wrong = lambda z, g: 2 * g * np.conj(z)
    with pytest.raises(WrongGradientError, match=r"d result 0 / d Im inputs\[0\]"):
        check_derivative(squares, wrong, ..., form="vjp", dtypes="complex128")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("form", "wrong"),
    [
        ("jacobian", lambda a, x: np.diag(x)),
        ("elementwise", lambda a, x: x),
        ("vjp", lambda a, x, g: x * g),
        ("jvp", lambda a, x, t: a + t),
    ],
)
def test_each_form_can_be_wrong(form, wrong):
    constant = Argument(("n",), differentiated=False)
    how = {"form": form, "min_side": 1, "settings": FIRST}
    with pytest.raises(WrongGradientError) as caught:
        check_derivative(np.multiply, wrong, constant, ("n",), **how)
    text = str(caught.value)
    assert "analytic:  " in text and (form == "vjp" or "(from the derivative)\n" in text)
    code = text.partition("To see it again:\n\n")[2]
    assert "import wengert as wg\n" in code  # the constant is one
    assert ("form=" in code) == (form != "jacobian")  # which is the default
    with pytest.raises(WrongGradientError, match=r"^multiply: the (derivative|gradient) is wrong"):
        exec("\n".join(line.strip() for line in code.splitlines()), {"wrong": wrong, "np": np})


def test_a_product_that_is_not_linear_in_the_cotangent():
    with pytest.raises(GradcheckError, match="not linear in the cotangent"):
        check_derivative(
            np.square, lambda x, g: 2 * x * g**2, ("n",), form="vjp", min_side=1, settings=FIRST
        )


def test_functions_see_arrays_and_what_is_constant_as_it_is():
    seen = []

    def scaled(x, n, labels, options):
        seen.append((wg.get_backend().name, type(x), type(n), labels.dtype, type(options["by"])))
        return x * n + labels + options["by"]

    labels, by = np.array([1, 2]), {"by": np.array([0.5, 1.5])}
    check_derivative(scaled, lambda x, n, *_: n, np.ones(2), 3, labels, by, form="elementwise")
    assert set(seen) == {("numpy", np.ndarray, int, np.dtype(np.int64), np.ndarray)}
    with pytest.raises(ValueError, match="float32: differences tell nothing"):
        check_derivative(np.square, lambda x: 2 * x, np.ones(2, np.float32), form="elementwise")


def test_an_integer_does_not_move():
    check_derivative(lambda x: 3, lambda x: 0 * x, ("n",))
    check_derivative(lambda x: x.size, lambda x, g: np.zeros(x.shape, int), ("n",), form="vjp")


def test_complex_numbers_of_real_arguments():
    check_derivative(lambda x: np.exp(1j * x), lambda x: 1j * np.exp(1j * x), np.array(0.3))
    pull = lambda x, g: -1j * np.exp(-1j * x) * g
    check_derivative(lambda x: np.exp(1j * x), pull, ("n",), form="vjp")


def test_complex_derivatives_of_real_results():
    x, z = np.array([0.3, 0.7]), np.array([0.3 + 0.2j, 0.7 - 0.1j])
    for point, form, function, derivative in (
        (x, "jacobian", np.square, lambda x: np.diag(2 * x + 1j)),
        (x, "elementwise", np.square, lambda x: 2 * x + 1j),
        (x, "vjp", np.square, lambda x, g: g * (2 * x + 1j)),
        (x, "jvp", np.square, lambda x, t: t * (2 * x + 1j)),
        (z, "elementwise", np.real, lambda z: 1.0),  # as if it were holomorphic
        (z, "jvp", np.abs, lambda z, t: np.conj(z) * t / np.abs(z)),
    ):
        with pytest.raises(GradcheckError, match=r"inputs\[0\] gives complex numbers where"):
            check_derivative(function, derivative, point, form=form)
    spectral = lambda x: np.fft.ifft(np.fft.fft(x))  # complex by roundoff alone
    check_derivative(
        lambda x: np.real(spectral(x)), lambda x, t: spectral(t), ("n",), form="jvp", min_side=1
    )


def test_forward_mode_alone_says_what_is_wrong():
    @wg.custom_vjp
    def wrong(x):
        return wg.sin(x)

    wrong.defjvp(lambda x, t: (wg.sin(x[0]), 2 * t[0]))
    x = wg.tensor([1.0, 2.0], dtype=wg.float64, requires_grad=True)
    with pytest.raises(WrongGradientError, match=r"the derivative is wrong: d result 0\[1\]"):
        gradcheck(wrong, [x], check_forward_ad=True, check_backward_ad=False)


@pytest.mark.slow
def test_kinks():
    how = {"form": "elementwise"}
    check_derivative(np.abs, np.sign, ..., **how)
    right = lambda x: np.where(x < 0, -1.0, 1.0)
    with pytest.raises(KinkError, match="has a kink here"):
        check_derivative(np.abs, right, np.zeros(1), kinks="fail", **how)
    with pytest.raises(WrongGradientError, match="not between them"):
        check_derivative(np.abs, lambda x: np.where(x == 0, 2.0, np.sign(x)), ..., **how)
    check_derivative(np.sqrt, lambda x: 0.5 / np.sqrt(x), Argument(domain=(0, 4)), **how)


def test_damage_to_an_argument():
    def damages(x):
        x += 1
        return x

    with pytest.raises(GradcheckError, match=r"the function changed inputs\[0\] in place"):
        check_derivative(damages, np.ones_like, ("n",), form="elementwise", min_side=1)
    with pytest.raises(GradcheckError, match=r"the derivative changed inputs\[0\] in place"):
        check_derivative(np.square, damages, ("n",), form="elementwise", min_side=1)
    for form in ("vjp", "jvp"):
        multiplied = lambda x, given: np.multiply(given, 2 * x, out=given)
        with pytest.raises(GradcheckError, match="changed argument 1, behind the inputs, in place"):
            check_derivative(np.square, multiplied, np.ones(2), form=form)


def test_misuse():
    x = np.ones(2)
    for given, options, message in (
        ((np.exp, np.exp, x), {"form": "gradient"}, "form should be"),
        ((np.exp, np.exp, x), {}, r"has shape \(2,\), and should have \(2, 2\)"),
        ((np.add, lambda x, y: x, x, x), {}, r"the derivatives are 1, .* are 2"),
        ((np.exp, np.exp, 1), {}, "floating or complex array"),
        ((np.exp, np.exp, x), {"kinks": "never"}, "kinks should be"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            check_derivative(*given, **options)
