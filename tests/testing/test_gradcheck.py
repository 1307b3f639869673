"""gradcheck passes what is right and catches a planted mistake of each kind, with a clear text."""

import itertools

import numpy as np
import pytest

import wengert as wg
from tests.testing.functions import of_array, slope, square
from wengert.backends import get_backend
from wengert.testing import (
    BadlyScaledError,
    GradcheckError,
    KinkError,
    WrongGradientError,
    gradcheck,
    gradgradcheck,
)
from wengert.testing.differences import RATIO, derivative

RANDOM = np.random.default_rng(7)


def real(*shape, low=-2.0, high=2.0):
    """A float64 Tensor of the selected backend that requires grad."""
    array = np.asarray(RANDOM.uniform(low, high, shape))
    return wg.Tensor(get_backend().from_numpy(array), requires_grad=True)


def complex_(*shape):
    array = np.asarray(RANDOM.uniform(-2, 2, shape) + 1j * RANDOM.uniform(-2, 2, shape))
    return wg.Tensor(get_backend().from_numpy(array), requires_grad=True)


# -- what is right passes ----------------------------------------------------------------------


def program(x, y):
    return wg.tanh(x @ y), wg.sum(x * x, axis=0)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_right_gradients_pass(backend, fast_mode):
    if backend.name == "dask" and not fast_mode:
        pytest.skip("each entry of a Jacobian is a graph there")
    for function, inputs in [
        (lambda x, y: wg.multiply(wg.exp(x), wg.add(y, x)), (real(2, 3), real(3))),
        (lambda x, y: wg.multiply(wg.exp(x), wg.conj(y)), (complex_(2, 2), complex_(2))),
        (lambda x, y: wg.multiply(wg.exp(x), y), (real(2, 1), complex_(2))),
        (lambda x: (wg.exp(x), wg.multiply(x, x)), (real(),)),
        (wg.multiply, (real(0, 1), real(3))),
        (lambda x: x, (real(2),)),
    ]:
        assert gradcheck(function, inputs, fast_mode=fast_mode)
        assert gradgradcheck(function, inputs, fast_mode=fast_mode)
    inputs = (real(2, 3), real(3, 2))
    both = {"check_batched_grad": True, "check_grad_dtypes": True, "fast_mode": fast_mode}
    ahead = {"check_forward_ad": True, "check_batched_forward_grad": True}
    assert gradcheck(program, inputs, **ahead, **both)
    more = {"check_fwd_over_rev": True, "gen_non_contig_grad_outputs": True}
    assert gradgradcheck(program, inputs, **more, **both)
    assert gradcheck(program, inputs, check_forward_ad=True, check_backward_ad=False)
    assert gradcheck(wg.exp, complex_(2), **ahead, **both)


def test_inputs_that_do_not_require_grad_are_left_alone(plant):
    product = plant(
        lambda xp, x, y: xp.multiply(x, y), x=lambda xp, g, y: xp.multiply(g, y), y=lambda xp, g: g
    )
    constant = real(3).detach()
    assert gradcheck(
        lambda x, y, n, name: wg.multiply(product(x, y), n), (real(3), constant, 2, "a name")
    )
    with pytest.raises(GradcheckError, match=r"inputs\[1\]"):
        gradcheck(product, (constant, real(3)))


def test_complex_step_is_exact_to_rounding_and_for_real_inputs():
    exact = {"complex_step": True, "rtol": 1e-14, "atol": 1e-14}
    assert gradcheck(lambda x: wg.exp(wg.multiply(x, x)), real(5), **exact)
    with pytest.raises(ValueError, match="real inputs"):
        gradcheck(wg.exp, complex_(2), complex_step=True)


def test_differences_settle_over_nine_orders_of_magnitude():
    for scale in (1e-6, 1e-3, 1.0, 1e3):
        assert gradcheck(wg.log, real(3, low=scale, high=2 * scale), rtol=1e-7)


def test_a_function_may_hold_its_input_and_its_gradient_is_untouched():
    x = real(3)
    held = x.grad = wg.zeros_like(x)
    assert gradcheck(lambda _: wg.multiply(x, x), x)
    assert x.grad is held


def test_arguments_and_results_in_containers():
    def function(pair, scale):
        return {"a": pair["x"] * scale, "b": [wg.sin(pair["y"][0])]}

    inputs = ({"x": real(2), "y": [real(3)]}, 2.0)
    assert gradcheck(function, inputs, check_forward_ad=True)
    assert gradgradcheck(function, inputs)
    with pytest.raises(WrongGradientError, match=r"d result 1\[\d\] / d inputs\[1\]\[\d\]"):
        gradcheck(
            lambda pair: function({"x": pair["x"], "y": [pair["y"][0].detach()]}, 2), inputs[:1]
        )


def test_misuse():
    x, ahead = real(2), {"check_backward_ad": False, "check_forward_ad": True}
    assert gradcheck(wg.exp, x, masked=False)
    for options, message in [
        ({"masked": True}, "sparse"),
        ({"check_backward_ad": False}, "check_backward_ad or check_forward_ad"),
        ({**ahead, "check_batched_grad": True}, "check_batched_grad needs check_backward_ad"),
        ({"check_batched_forward_grad": True}, "check_batched_forward_grad needs check_forward_ad"),
    ]:
        with pytest.raises(ValueError, match=message):
            gradcheck(wg.exp, x, **options)
    for check, function, given, message in [
        (gradcheck, wg.exp, x.detach(), "at least one input"),
        (gradcheck, wg.exp, wg.ones(3, requires_grad=True), r"inputs\[0\] has dtype float32"),
        (gradcheck, lambda x: wg.astype(x, wg.float32), x, "result 0 has dtype float32"),
        (gradcheck, lambda x: [1.0], x, "result 0 is a float"),
        (gradgradcheck, lambda x: x.detach(), x, "no second derivatives"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            check(function, given)


def test_verdicts():
    one = wg.asarray(0.0, dtype=wg.float64).requires_grad_()
    for function, kind, text in [
        (lambda x: wg.where(x > 0, x, 0 * x), KinkError, "kink here"),
        (lambda x: wg.where(x > 0, x + 1, x), KinkError, "jumps"),
        (lambda x: wg.sign(x) * wg.sqrt(wg.abs(x) + 0 * x), KinkError, "steep"),
        (wg.sqrt, KinkError, "one side of this point alone"),
        (lambda x: 1 / x, KinkError, "not defined, at this point"),
        (lambda x: wg.sin(1e10 * (x + 1)), BadlyScaledError, "don't settle"),
        (lambda x: wg.exp(709.782 + 1e16 * x * x), BadlyScaledError, "overflows"),
        (lambda x: wg.sin(x.detach() + x) * 1, WrongGradientError, "gradient is wrong"),
        # The values on both sides are 0 and 1; Wengert's relu would give 0, and this one gives -1.
        (lambda x: wg.where(x > 0, x, 0 * x) - x + x.detach(), WrongGradientError, "between"),
    ]:
        with np.errstate(all="ignore"), pytest.raises(kind, match=text) as caught:
            gradcheck(function, one)
        assert type(caught.value) is kind


# -- planted mistakes ----------------------------------------------------------------------------


def damages_input(xp, g, x):
    out = slope(xp, g, x)
    if not xp.records:
        x += 1
    return out


def damages_cotangent(xp, g, x):
    if xp.records:
        return slope(xp, g, x)
    g *= 2
    return xp.multiply(g, x)


BUFFER = np.zeros(3)


def narrow(dtype):
    """Exact for the values below: nothing but the dtype is wrong."""
    return lambda xp, g, x: xp.astype(slope(xp, g, x), np.dtype(dtype))


def noisy(xp, g, x):
    return xp.multiply(xp.multiply(g, x), 2 + 1e-13 * next(NOISE))


NOISE = itertools.count()
#: A wrong rule of a square, the options of the check, and what it says.
MISTAKES = {
    "a sign": (lambda xp, g, x: slope(xp, g, xp.negative(x)), {}, "gradient is wrong(.|\n)*numer"),
    "an input": (damages_input, {}, r"changed inputs\[0\] in place"),
    "the cotangent": (damages_cotangent, {}, "changed the cotangent"),
    "float32": (narrow("float32"), {"atol": 1e-2}, "returns float32"),
    "float16": (narrow("float16"), {"atol": 1e-2}, "returns float16"),
    "not linear": (
        lambda xp, g, x: slope(xp, xp.multiply(g, g), x),
        {},
        r"in the cotangent: .*, at inputs\[0\]\[0\], is",
    ),
    "not linear, fast": (
        lambda xp, g, x: slope(xp, xp.multiply(g, g), x),
        {"fast_mode": True},
        "^the gradient for random .* are not linear$",
    ),
    "noise": (noisy, {}, r"gradient of inputs\[0\] differs between two runs"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_wrong_rule_is_caught(plant, name):
    rule, options, text = MISTAKES[name]
    x = wg.asarray([1.0, 2.0, 0.5], dtype=wg.float64).requires_grad_()
    wrong = plant(square, x=rule)
    with pytest.raises(GradcheckError, match=text):
        gradcheck(wrong, x, **options)
    assert not gradcheck(wrong, x, raise_exception=False, **options)


def test_a_wrong_forward_rule_is_caught(plant):
    # The kind gives the forward rule, and it is not linear.
    wrong = plant(square, linear="together", x=slope)
    assert gradcheck(wrong, real(2))
    for fast_mode in (False, True):
        with pytest.raises(WrongGradientError, match="forward derivative is wrong"):
            gradcheck(wrong, real(2), check_forward_ad=True, fast_mode=fast_mode)


def test_a_rule_that_mixes_the_members_of_a_batch_is_caught():
    def backward(x, g):
        array = g._array
        if hasattr(array, "inner"):
            array = type(array)(array.inner[::-1], array.level)
        return wg.tape.tensor.untracked(array) * (2 * x)

    wrong, x = of_array(wg.square, backward), real(2)
    assert gradcheck(wrong, x)
    with pytest.raises(GradcheckError, match="batch of cotangents differs"):
        gradcheck(wrong, x, check_batched_grad=True)


def test_the_worst_entry_and_both_values_are_named(plant):
    def rule(xp, g, y):
        return xp.multiply(g, xp.add(y, xp.asarray([[0.0, 1e-3], [5.0, 0.0]])))

    wrong = plant(lambda xp, x, y: xp.multiply(x, y), x=rule, y=lambda xp, g, x: xp.multiply(g, x))
    x, y = wg.ones((2, 2), dtype=wg.float64), wg.asarray([[2.0, 2.0], [3.0, 2.0]], dtype=wg.float64)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(wrong, (x.requires_grad_(), y))
    for text in (
        *("d result 0[1, 0] / d inputs[0][1, 0]", "analytic:  8", "2 of 16 entries"),
        "numerical: 3  (from differences of values)\n",
    ):
        assert text in str(caught.value)


def test_differences_are_extrapolated_in_every_order():
    """Each smaller step takes away one more power of it: few steps are exact."""
    steps = []

    def line(h):
        steps.append(abs(h))
        return np.exp(np.asarray([h]))

    estimate = derivative(line, 0.5, lambda found: bool(found.error[0] < 1e-12))
    assert abs(estimate.value[0] - 1) < 1e-13
    assert min(filter(None, steps)) == 0.5 / RATIO**4


# -- derivatives that are smaller than the tolerance --------------------------------------------


MODES = [
    {**mode, "fast_mode": fast}
    for fast in (False, True)
    for mode in ({}, {"check_backward_ad": False, "check_forward_ad": True})
]


def slope_of_sine(by):
    return lambda xp, g, x: xp.multiply(xp.multiply(g, by), xp.cos(x))


@pytest.mark.parametrize("options", MODES)
def test_derivatives_below_atol_are_judged_at_their_own_scale(plant, options):
    for size in (6.626e-34, 1e-12, 1e-9, 1e-140):
        for factor in (-5, 0, 1.01):
            wrong = plant(lambda xp, x, size=size: xp.sin(x) * size, x=slope_of_sine(factor * size))
            beside = lambda x, y, wrong=wrong: (wg.cos(x), wrong(y))
            for function, inputs in ((wrong, (real(2),)), (beside, (real(2), real(2)))):
                with pytest.raises(WrongGradientError, match=r"than atol=\S+e-\d\d") as caught:
                    gradcheck(function, inputs, **options)
                assert caught.value.below_atol
        assert gradcheck(lambda x, size=size: size * wg.exp(x) * wg.sin(x), real(3), **options)


def test_second_derivatives_below_atol_are_judged_at_their_own_scale():
    x = wg.tensor([0.5, 1.5], dtype=wg.float64, requires_grad=True)
    detached = of_array(lambda x: x**3, lambda x, g: 3 * g * x * x.detach())
    with pytest.raises(WrongGradientError):
        gradgradcheck(lambda x: 1e-20 * detached(x), x)
    assert gradgradcheck(lambda x: 1e-20 * x**3, x, check_fwd_over_rev=True)


@pytest.mark.parametrize("options", MODES)
@pytest.mark.parametrize(
    ("a", "k", "s"), [(1.5, 1e-8, 1e-9), (1.5, 1e-9, 1), (1.5, 1e-10, 1), (1 / 3, 1e-10, 1e-9)]
)
def test_rounding_that_atol_hides_is_not_called_wrong(a, k, s, options):
    centred = lambda x: s * ((a + k * x) - (a + k * x).mean())
    for seed in range(4):
        point = np.random.default_rng(seed).normal(size=3)
        x = wg.tensor(point, requires_grad=True)
        assert gradcheck(centred, x, **options)
        assert gradgradcheck(lambda x: s * wg.var(a + k * x), x, fast_mode=options["fast_mode"])


#: Right derivatives with values that are noise, constant by rounding, or have a kink.
FAINT = {
    "zero but for rounding": lambda x: wg.sum(x - wg.mean(x)),
    "two terms that cancel": lambda x: (1 + x) - 1 - x,
    "rounding of a logarithm": lambda x: wg.log(1 + wg.exp(-x)),
    "a difference of large numbers": lambda x: wg.logsumexp(x) - wg.max(x),
    "squares of sine and cosine": lambda x: wg.sin(x) ** 2 + wg.cos(x) ** 2 - 1,
    "a kink": lambda x: 1e-12 * wg.abs(x - 30),
    "two kinks": lambda x: 1e-12 * (wg.max(x) + wg.min(x)),
    "a jump": lambda x: 1e-12 * wg.floor(x),
    "an infinite slope": lambda x: 1e-12 * wg.sqrt(x - 30),
    "underflow": lambda x: wg.exp(-24 * x),
}


@pytest.mark.parametrize("name", FAINT)
def test_right_derivatives_below_atol_pass(name):
    for point in ([30.0, 30.0], [30.0], [31.25, 36.0, 30.5], [40.0, 38.0], [700.0]):
        for check in (gradcheck, gradgradcheck):
            x = wg.tensor(point, dtype=wg.float64, requires_grad=True)
            try:
                with np.errstate(all="ignore"):
                    assert check(FAINT[name], x)
            except KinkError:
                assert name in ("an infinite slope", "a difference of large numbers")
