"""What is right is not condemned, whatever a function does with its inputs: as PyTorch has it."""

import numpy as np
import pytest

import wengert as wg
from tests.testing.settings import FIRST
from wengert import nn
from wengert.testing import GradcheckError, KinkError, check_gradients, gradcheck, gradgradcheck

FORWARD = {"check_forward_ad": True, "check_batched_forward_grad": True}


def real(*shape):
    array = np.arange(1.0, 1 + int(np.prod(shape))).reshape(shape) / 4
    return wg.tensor(array, dtype=wg.float64, requires_grad=True)


def complex_(*shape):
    return (real(*shape).detach() * (1 + 2j)).requires_grad_()


def strided():
    return wg.Tensor(np.arange(1.0, 13.0).reshape(3, 4)[:, ::2].T, requires_grad=True)


def added_to_a_copy(x):
    y = x.clone()
    y += 1
    y[0] = 2 * y[1]
    return y


X = real(3)
HELD = real(3)

#: A function, and inputs of it.
RETURNED = {
    "the input": (lambda x: x, [real(3)]),
    "a 0-d input": (lambda x: x, [real()]),
    "an empty input": (lambda x: x, [real(0, 2)]),
    "a strided input": (lambda x: x, [strided()]),
    "Identity": (nn.Identity(), [real(3)]),
    "Dropout.eval": (nn.Dropout().eval(), [real(3)]),
    "with another result": (lambda x: (x, 2 * x), [real(3)]),
    "after another result": (lambda x: (2 * x, x), [real(3)]),
    "twice": (lambda x: (x, x), [real(3)]),
    "in containers": (lambda x: {"a": x, "b": [x, (x * x,)]}, [real(3)]),
    "of its own dtype": (lambda x: x.to(x.dtype), [real(3)]),
    "not copied by astype": (lambda x: wg.astype(x, x.dtype, copy=False), [real(3)]),
    "one of two": (lambda x, y: y, [real(3), real(2)]),
    "both": (lambda x, y: (y, x), [real(3), real(2)]),
    "a view": (lambda x: x[1:], [real(3)]),
    "changed as a copy": (added_to_a_copy, [real(3)]),
    "one Tensor given twice": (lambda x, y: (x * y, y), [X, X]),
    "one Tensor twice in a list": (lambda xs: xs[0] * xs[1], [[X, X]]),
    "beside a constant one": (lambda x, c: (2 * x, c), [real(3), wg.ones(2, dtype=wg.float64)]),
    "beside an integer": (lambda x: (x * 2, wg.argmax(x)), [real(3)]),
    "beside None": (lambda x: (x * 2, None), [real(3)]),
    "beside what it does not depend on": (lambda x: (x, wg.ones(2, dtype=wg.float64)), [real(3)]),
    "from a module of parameters": (nn.Linear(3, 2, dtype=wg.float64), [real(2, 3)]),
    "with a NumPy argument": (lambda x, a: x * a, [real(3), np.arange(3.0)]),
    "from what it holds": (lambda x: x * HELD, [real(3)]),
    "a constant": (lambda x: wg.zeros_like(x), [real(3)]),
}


@pytest.mark.parametrize("case", RETURNED)
def test_every_mode_accepts(case):
    function, inputs = RETURNED[case]
    options = FORWARD | {"check_batched_grad": True, "check_grad_dtypes": True}
    assert gradcheck(function, inputs, **options)
    assert gradcheck(function, inputs, fast_mode=True, **options)
    if "module" not in case:  # whose real weights take no complex input
        assert gradcheck(function, inputs, complex_step=True)
    if case != "a constant":
        assert gradgradcheck(function, inputs, check_fwd_over_rev=True)


def test_every_mode_accepts_complex_inputs():
    for function in (lambda z: z, lambda z: (z, wg.abs(z), wg.real(z)), lambda z: (wg.conj(z), z)):
        assert gradcheck(function, complex_(3), check_batched_grad=True, **FORWARD)
        assert gradgradcheck(function, complex_(3), check_fwd_over_rev=True)


def test_check_gradients_accepts():
    constant = lambda x: wg.ones(2, dtype=wg.float64)
    for function in (nn.Identity(), lambda x: (x, 2 * x), wg.zeros_like, constant, wg.sign):
        check_gradients(function, ..., backends=["numpy"], examples=8)


# -- what is not right is told by its right name ---------------------------------------------------


def test_a_random_function_is_told_from_a_wrong_one():
    drop = nn.Dropout(0.5)
    calls = iter(range(10**6))
    for options in ({}, {"fast_mode": True}, {"complex_step": True}, {"check_forward_ad": True}):
        for function in (drop, lambda x: x * next(calls)):
            with pytest.raises(GradcheckError, match="not deterministic"):
                gradcheck(function, real(8), **options)
    with pytest.raises(GradcheckError, match="not deterministic"):  # though at 0 nothing shows
        check_gradients(drop, ..., backends=["numpy"], examples=8, settings=FIRST)


def test_complex_steps_are_for_real_results():
    for function, inputs in [
        (lambda x: wg.exp(1j * x), real(3)),
        (lambda x, z: x * z, (real(3), complex_(3).detach())),
    ]:
        for fast in (False, True):
            with pytest.raises(ValueError, match="result 0 is complex"):
                gradcheck(function, inputs, complex_step=True, fast_mode=fast)


def test_a_shape_that_changes_with_the_values_is_no_derivative():
    x = wg.tensor([0.5, 1.0], dtype=wg.float64, requires_grad=True)
    with pytest.raises(KinkError, match="shapes of the results change"):
        gradcheck(lambda x: x[x > 0.5], x)
    assert gradcheck(lambda x: x[x > 0.75], x)


def test_double_precision_that_a_function_brings_with_it():
    x = real(3)
    with pytest.raises(GradcheckError, match="holds a constant in double precision"):
        gradcheck(lambda x: x * np.arange(3.0), x, check_grad_dtypes=True)
