"""What else is checked of a function: memory, precision, linearity, and repetition."""

import itertools

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import operation
from tests.testing.functions import slope, square
from tests.testing.test_gradcheck import BUFFER, complex_, real
from wengert.backends import get_backend
from wengert.testing import (
    GradcheckError,
    WrongGradientError,
    gradcheck,
    gradgradcheck,
)


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
def test_precision_is_looked_at_where_it_is_asked_for(check):
    """As in PyTorch, where a function may be for double precision alone."""
    seen = set()

    def cube(x):
        seen.add(x.dtype)
        return x**3

    assert check(cube, real(3))
    assert seen == {wg.float64}
    assert check(cube, real(3), check_grad_dtypes=True)
    assert seen == {wg.float64, wg.float32}


def shares(xp, g, x):
    if xp.records:
        return slope(xp, g, x)
    return np.multiply(np.multiply(g, 2), x, out=BUFFER)


def test_an_absent_cotangent_counts_as_zeros():
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def backward(ctx, g, h):
        return 5 * h if g is None else 2 * g if h is None else 2 * g + 3 * h

    wrong, x = operation(forward, backward), real(2)
    assert gradcheck(wrong, x, fast_mode=True, check_undefined_grad=False)
    with pytest.raises(GradcheckError, match="not the same without a cotangent of result 0"):
        gradcheck(wrong, x, fast_mode=True)


def test_a_result_that_leaves_single_precision_is_caught():
    for dtype, x in ((wg.float64, real(2)), (wg.complex128, complex_(2))):
        wrong = lambda x, dtype=dtype: wg.astype(x, dtype)
        assert gradcheck(wrong, x)
        with pytest.raises(GradcheckError, match=f"result 0 has dtype {dtype.name}"):
            gradcheck(wrong, x, check_grad_dtypes=True)
    assert gradcheck(lambda z: z * 2, complex_(2), check_grad_dtypes=True)


def test_a_function_that_damages_its_input(plant):
    def forward(xp, x):
        x += 1
        return xp.multiply(x, x)

    with pytest.raises(GradcheckError, match=r"changed inputs\[0\] in place"):
        gradcheck(plant(forward, x=slope), real(3))


def test_gradients_that_share_memory_with_the_cotangent(plant, monkeypatch):
    # The engine copies views; without that, a rule that passes its cotangent on shares it.
    wrong = plant(
        lambda xp, x: xp.reshape(x, (-1,)),
        linear="together",
        x=lambda xp, g, x_shape: xp.reshape(g, x_shape),
    )
    x = real(2, 2)
    assert gradcheck(wrong, x)
    monkeypatch.setattr(get_backend("numpy").namespace, "is_view", lambda array: False)
    with pytest.raises(GradcheckError, match="shares its memory with the cotangent of result 0"):
        gradcheck(wrong, x)


def test_gradients_that_share_memory_with_one_another(plant, monkeypatch):
    # The engine copies what something else holds.
    assert gradcheck(plant(square, x=shares), real(3))
    monkeypatch.setattr("wengert.tape.autograd.has_holders", lambda array: False)
    with pytest.raises(GradcheckError, match=r"shares its memory with the \.grad of another"):
        gradcheck(plant(square, x=shares), real(3))


def test_not_linear_in_the_tangent(plant):
    """Right along each axis."""
    jvps = {"x": lambda xp, t, x: slope(xp, xp.abs(t), x)}
    wrong = plant(square, elementwise=False, jvps=jvps, x=slope)
    x = wg.asarray([0.5, 0.5], dtype="float64", requires_grad=True)
    how = {"check_backward_ad": False, "check_forward_ad": True}
    with pytest.raises(GradcheckError, match=r"in the tangent: .*, of result 0\[\d\], is"):
        gradcheck(wrong, x, **how)
    squared = plant(square, linear="together", x=slope)  # the kind's forward rule
    with pytest.raises(WrongGradientError, match=r"^the derivative for random .* are not linear$"):
        gradcheck(squared, x, fast_mode=True, **how)


def test_a_rule_that_rounds_to_single_precision():
    rounded = operation(
        lambda ctx, x: 3 * x, lambda ctx, g: wg.astype(wg.astype(3 * g, wg.float32), g.dtype)
    )
    with pytest.raises(GradcheckError, match="cotangent, as by rounding to single precision"):
        gradcheck(rounded, real(3))


def test_an_input_of_no_influence_may_have_none_as_its_gradient():
    left = operation(lambda ctx, x, y: x * 2 + 0 * y, lambda ctx, g: (g * 2, None))
    x, y = real(3), real(3)
    assert gradcheck(left, (x, y), check_grad_dtypes=True)
    assert gradcheck(lambda x, y: left(wg.sin(x), wg.exp(wg.sin(y))), (x, y))


def test_results_that_differ_between_runs(plant):
    noise = itertools.count()
    noisy = plant(lambda xp, x: xp.add(x, 1e-12 * next(noise)), x=lambda xp, g: g)
    with pytest.raises(GradcheckError, match="not deterministic"):
        gradcheck(noisy, real(3), atol=1e-6)
    assert gradcheck(noisy, real(3), atol=1e-6, nondet_tol=1e-8)


def test_a_graph_that_is_not_freed_and_one_that_is_broken():
    kept = []

    def leaking(x):
        kept.append(wg.exp(x))
        return kept[-1]

    with pytest.raises(GradcheckError, match="not freed"):
        gradcheck(leaking, real(3))
    with pytest.raises(GradcheckError, match="the graph is broken"):
        gradcheck(lambda x: wg.exp(x.detach()), real(3))


def test_gradients_that_differ_between_sweeps_are_found():
    factors = itertools.count(1)
    drifting = operation(lambda ctx, x: x * 1, lambda ctx, g: g * float(next(factors)))
    x = wg.tensor([1.0, 2.0], dtype="float64", requires_grad=True)
    with pytest.raises(GradcheckError, match=r"the gradient of inputs\[0\]"):
        gradcheck(drifting, (x,))
