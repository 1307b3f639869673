"""check_gradients catches a planted mistake of each kind, and lets through what is right."""

import numpy as np
import pytest

import wengert as wg
from tests.testing.functions import square
from tests.testing.settings import FIRST
from tests.testing.test_gradcheck import slope_of_sine
from wengert.testing import (
    Argument,
    KinkError,
    WrongGradientError,
    check_derivative,
    check_gradients,
    gradcheck,
)


def caught(error, function, *arguments, match, **options):
    """Whether the check fails so, with a text that has the verdict, the backend, and code."""
    options = {"backends": ["numpy"], "examples": 40, "settings": FIRST, **options}
    with pytest.raises(error, match=match) as found:
        check_gradients(*arguments, **options)(function)()
    text = str(found.value)
    assert f"verdict:   {found.value.verdict}" in text
    assert "import wengert as wg" in text
    return text


# -- each kind of mistake --------------------------------------------------------------------------


def test_wrong_sign(plant, backend):
    if backend.name == "dask":
        pytest.skip("each of many examples is a graph there")
    wrong = plant(square, x=lambda xp, g, x: xp.multiply(xp.multiply(g, x), -2))
    options = {"match": "gradient is wrong", "backends": [backend.name], "settings": None}
    text = caught(WrongGradientError, wrong, ..., **options)
    # What fails on JAX shrinks on NumPy, which is faster.
    on = "numpy, as on jax" if backend.name == "jax" else backend.name
    for line in (
        *(f"backend:   {on}\n", "order:     first derivative"),
        *("numerical: 2  (", "analytic:  -2  ("),
        # 0-d arrays are the smallest there are, and 1 the number next to 0, where nothing shows.
        "inputs = [wg.tensor(1.0, dtype=wg.float64, requires_grad=True)]",
    ):
        assert line in text


def test_wrong_derivatives_of_a_physical_constant(plant):
    for size, factor in ((6.626e-34, -5), (2e-9, -1), (1e-12, 0)):
        rule = slope_of_sine(size * factor)
        sine = lambda xp, x, size=size: xp.multiply(xp.sin(x), size)
        caught(WrongGradientError, plant(sine, x=rule), ..., match="gradient is wrong")
        check_gradients(plant(sine, x=slope_of_sine(size)), ..., backends=["numpy"], examples=20)
    with pytest.raises(WrongGradientError, match="derivative is wrong"):
        check_derivative(
            lambda x: 1e-12 * np.sin(x), lambda x: -7e-12 * np.cos(x), ..., form="elementwise"
        )


def test_a_rule_with_absolute_digits_alone_is_right(plant):
    """Of the logistic loss: where it vanishes, the difference of two numbers near 1 is rounding."""
    rule = lambda xp, g, x: xp.multiply(g, xp.subtract(xp.divide(1, xp.add(xp.exp(-x), 1)), 1))
    loss = plant(lambda xp, x: xp.log1p(xp.exp(-x)), x=rule)
    check_gradients(loss, Argument(("n",)), backends=["numpy"], settings=None)


# -- a kink, a jump, bad scaling -------------------------------------------------------------------


@pytest.mark.slow
def test_a_kink_is_told_from_a_wrong_rule(plant):
    values = lambda xp, x: xp.where(x > 0, x, xp.zeros_like(x))
    relu = plant(values, x=lambda xp, g, x: xp.where(x > 0, g, xp.zeros_like(g)))
    check_gradients(relu, ..., backends=["numpy"])
    text = caught(KinkError, relu, ..., match="has a kink here", kinks="fail")
    assert "verdict:   not differentiable here" in text
    check_gradients(relu, Argument(away_from=[0]), backends=["numpy"], kinks="fail")
    turned = lambda xp, g, x: xp.where(x > 0, xp.multiply(g, -1), xp.zeros_like(g))
    wrong = plant(values, x=turned)
    options = {"match": "gradient is wrong", "settings": None}  # of several, the gravest is told
    for kinks in ("skip", "fail"):
        caught(WrongGradientError, wrong, ..., kinks=kinks, **options)


def test_a_gradient_at_a_kink_lies_between_both_sides(plant):
    def rule(xp, g, x):
        slope = xp.where(x > 0, xp.ones_like(x), xp.full_like(x, -1.0))
        return xp.multiply(g, xp.where(xp.equal(x, 0), xp.full_like(x, 1.5), slope))

    wrong = plant(lambda xp, x: xp.abs(x), x=rule)
    caught(WrongGradientError, wrong, ..., match="not between them: it is wrong")


BESIDE = {
    "an infinite slope": wg.sqrt,
    "a norm": wg.linalg.vector_norm,
    "a jump": lambda y: wg.floor(y),
    "a median": lambda y: wg.median(y + 1),
}


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("fast_mode", [False, True])
def test_a_kink_in_one_input_is_no_excuse_in_another(plant, beside, fast_mode):
    wrong = plant(
        lambda xp, x: xp.sin(x), x=lambda xp, g, x: xp.multiply(g, xp.multiply(xp.cos(x), 1.01))
    )
    x, y = (wg.tensor(v, dtype=wg.float64, requires_grad=True) for v in ([0.3, 0.5], [0.0] * 3))
    with np.errstate(all="ignore"), pytest.raises(WrongGradientError):
        gradcheck(lambda x, y: wg.sum(wrong(x)) + BESIDE[beside](y), (x, y), fast_mode=fast_mode)


@pytest.mark.slow
def test_a_kink_of_the_derivative_is_one_of_second_order():
    def huber(x):
        return wg.where(wg.abs(x) < 1, x * x / 2, wg.abs(x) - 0.5)

    check_gradients(huber, ..., backends=["numpy"])
    text = caught(KinkError, huber, ..., match="kink|jump", kinks="fail")
    assert "order:     second derivative" in text


@pytest.mark.slow
def test_a_function_that_is_differentiable_nowhere_is_told():
    told = r"no call of log could be checked: .* examples lie at kinks"
    options = {"min_side": 1, "backends": ["numpy"], "examples": 15, "settings": FIRST}
    with pytest.raises(KinkError, match=told):
        check_gradients(wg.log, Argument(("n",), domain=(-2, -1)), **options)
