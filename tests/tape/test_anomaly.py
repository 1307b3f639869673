"""Anomaly detection: the line, the operation and the shapes of the first NaN or infinity."""

import inspect
import threading
from pathlib import Path

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import leaf, operation
from wengert.autograd import detect_anomaly, set_detect_anomaly
from wengert.tape.anomaly import detecting
from wengert.tape.observers import observing

pytestmark = [
    pytest.mark.usefixtures("backend"),
    # Dividing by zero is what is looked for; NumPy and libraries upon it warn of it.
    pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning"),
]


def line_of(function, text):
    lines, start = inspect.getsourcelines(function)
    return start + next(i for i, line in enumerate(lines) if text in line)


def test_the_line_the_operation_and_the_shapes_are_named():
    def model(x, y):
        z = x * y
        ratio = wg.sqrt(z)  # the culprit: 1 / (2 √0) is infinite
        return wg.sum(ratio * 2)

    x, y = leaf(0.0, 1.0, 4.0), leaf(3.0)
    with detect_anomaly():
        loss = model(x, y)
        with pytest.raises(RuntimeError) as caught:
            loss.backward()
    text = str(caught.value)
    assert "Function 'SqrtBackward0' returned infinite values in its 0th output" in text
    assert "sqrt of inputs of shape (3,), with a result of shape (3,)" in text
    culprit = f'File "{__file__}", line {line_of(model, "culprit")}, in model'
    assert text.index(culprit) > text.index("in test_the_line")  # the innermost call is the last
    assert "ratio = wg.sqrt(z)" in text
    assert str(Path(wg.__file__).parent) not in text
    assert x.grad is None and y.grad is None


def test_the_first_is_named_though_others_follow():
    def model(x):
        a = wg.exp(x)
        b = wg.log(a - 1)  # log(0)
        return wg.sum(b * b)

    with detect_anomaly():
        loss = model(leaf(0.0, 1.0))
        # the cotangent of b is 2 log 0 = -inf: the product is what gives it
        with pytest.raises(RuntimeError, match=r"MulBackward0.* infinite (.|\n)*return wg.sum"):
            loss.backward()
        with pytest.raises(RuntimeError, match=r"LogBackward0.* infinite (.|\n)*wg.sum\(wg.log"):
            wg.sum(wg.log(leaf(0.0))).backward()


def test_nan_is_told_from_infinity():
    x = leaf(0.0)
    with detect_anomaly():
        y = wg.sqrt(x) * 0.0
        with pytest.raises(RuntimeError, match="SqrtBackward0' returned nan"):
            y.backward()  # 0 · ∞


def test_a_seed_that_is_not_finite_is_not_blamed_on_the_operation():
    with detect_anomaly():
        y = leaf(1.0) * 2
        with pytest.raises(RuntimeError, match="reached it was not finite already"):
            y.backward(wg.asarray([np.nan], dtype=wg.float64))


def test_operations_recorded_outside_have_no_line():
    y = wg.log(leaf(0.0))
    with (
        detect_anomaly(),
        pytest.raises(RuntimeError, match=r"log of inputs.*recorded outside of detect_anomaly"),
    ):
        y.backward()


def test_finite_derivatives_pass_and_are_the_same():
    def function(x):
        return wg.sum(wg.exp(wg.unstack(x)[0]) * wg.concat([x, x]))

    x = leaf(0.5, 2.0)
    (plain,) = wg.autograd.grad(function(x), x)
    with detect_anomaly():
        (g,) = wg.autograd.grad(function(x), x, create_graph=True)
        (gg,) = wg.autograd.grad(g.sum(), x)
    np.testing.assert_array_equal(g.detach().numpy(), plain.numpy())
    (g,) = wg.autograd.grad(function(x), x, create_graph=True)
    np.testing.assert_array_equal(gg.numpy(), wg.autograd.grad(g.sum(), x)[0].numpy())


def test_in_transforms_of_a_recorded_sweep(backend):
    """Cotangents are Tensors there, of arrays with arrays inside."""
    # XLA divides by a broadcast divisor by its reciprocal: a batch is rounded otherwise.
    rtol = 1e-15 if backend.name == "jax" else 0

    def slope(x):
        return wg.grad(lambda x: wg.sum(wg.sqrt(x) * x))(x)

    x = wg.asarray([0.5, 2.0], dtype=wg.float64)
    for transform in (
        lambda f: wg.func.jacfwd(f)(x),
        lambda f: wg.func.jacrev(f)(x),
        lambda f: wg.func.jvp(f, (x,), (x,))[1],
    ):
        with detect_anomaly():
            found = transform(slope)
            with pytest.raises(RuntimeError, match="SqrtBackward0"):
                transform(lambda x: slope(x * 0))
        np.testing.assert_allclose(found.numpy(), transform(slope).numpy(), rtol=rtol)


def test_a_users_function_is_named_and_its_errors_get_a_note():
    def Bad(ctx, x, fail):
        ctx.fail = fail
        return x * 1

    def backward(ctx, g):
        if ctx.fail:
            raise KeyError("some error in backward")
        return g * float("nan"), None

    bad = operation(Bad, backward)
    with detect_anomaly():
        y = bad(leaf(1.0), False)  # here
        with pytest.raises(RuntimeError, match="'BadBackward' returned nan") as caught:
            y.backward()
        assert "y = bad(leaf(1.0), False)  # here" in str(caught.value)
    with detect_anomaly(check_nan=False):
        bad(leaf(1.0), False).backward()
        y = bad(leaf(1.0), True)  # there
        with pytest.raises(KeyError) as failed:
            y.backward()
    assert "y = bad(leaf(1.0), True)  # there" in failed.value.__notes__[0]


def test_it_is_off_outside_and_belongs_to_the_thread():
    others = []
    with detect_anomaly():
        thread = threading.Thread(target=lambda: others.append(detecting()))
        thread.start()
        thread.join()
        with detect_anomaly(check_nan=False):
            assert not detecting().check_nan
        assert detecting().check_nan
    assert others == [None] and detecting() is None and not observing
    y = wg.log(leaf(0.0))
    y.backward()
    assert type(y.grad_fn) is wg.tape.Node


def test_switching_it_on_and_off():
    set_detect_anomaly(True)
    try:
        y = wg.log(leaf(0.0))
        with pytest.raises(RuntimeError, match=r"y = wg\.log"):
            y.backward()
        with set_detect_anomaly(False):
            wg.log(leaf(0.0)).backward()
        with pytest.raises(RuntimeError, match="LogBackward0"):
            wg.log(leaf(0.0)).backward()
    finally:
        set_detect_anomaly(False)
    assert detecting() is None and not observing


def test_it_goes_with_hooks_and_checkpoints():
    x = leaf(0.0)
    with detect_anomaly():
        y = wg.autograd.checkpoint(lambda x: wg.exp(wg.log(x)), x)
        y.register_hook(lambda g: g + 1)
        with pytest.raises(RuntimeError, match=r"LogBackward0(.|\n)*lambda x: wg\.exp"):
            y.backward()
    assert not observing
