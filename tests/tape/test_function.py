"""autograd.Function: operations that users define."""

import gc
import weakref

import numpy as np
import pytest

import wengert as wg
from wengert.testing import gradcheck, gradgradcheck

pytestmark = pytest.mark.usefixtures("backend")


class Cube(wg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x * x


class Exp(wg.autograd.Function):
    """Saves its result, and has a parameter that is no Tensor."""

    @staticmethod
    def forward(ctx, x, factor):
        out = wg.exp(x * factor)
        ctx.save_for_backward(out)
        ctx.factor = factor
        return out

    @staticmethod
    def backward(ctx, g):
        (out,) = ctx.saved_tensors
        return g * out * ctx.factor, None


class SumAndProduct(wg.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x + y, x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g_sum, g_product):
        x, y = ctx.saved_tensors
        return g_sum + g_product * y, g_sum + g_product * x


def leaf(*values):
    return wg.tensor(list(values), dtype=wg.float64, requires_grad=True)


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (Cube.apply, 1),
        (lambda x: Exp.apply(x, 0.5), 1),
        (SumAndProduct.apply, 2),
        (lambda x, y: SumAndProduct.apply(x, y)[1], 2),
        (lambda x: SumAndProduct.apply(x, x)[0], 1),
    ],
)
def test_derivatives_of_first_and_second_order(function, count):
    inputs = [leaf(0.3, -1.2, 2.0), leaf(1.5, 0.7, -0.4)][:count]
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


def test_third_derivative():
    x = leaf(2.0)
    y = Cube.apply(x)
    for expected in (12.0, 12.0, 6.0):
        (y,) = wg.autograd.grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(expected)


def test_the_node_carries_the_name_and_can_be_called():
    x = leaf(2.0)
    y = Cube.apply(x)
    assert repr(y).endswith("grad_fn=<CubeBackward>)")
    assert y.grad_fn(wg.ones(1, dtype=wg.float64)).item() == 12.0
    s, p = SumAndProduct.apply(x, leaf(5.0))
    assert s.grad_fn is p.grad_fn
    gx, gy = p.grad_fn(None, wg.ones(1, dtype=wg.float64))
    assert (gx.item(), gy.item()) == (5.0, 2.0)


def test_forward_is_not_recorded_and_sees_which_gradients_are_needed():
    seen = {}

    class Probe(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            seen["recording"] = wg.is_grad_enabled()
            seen["needs"] = ctx.needs_input_grad
            return x * y

        @staticmethod
        def backward(ctx, g):
            seen["backward"] = wg.is_grad_enabled()
            return g, None

    Probe.apply(leaf(1.0), wg.ones(1, dtype=wg.float64)).backward()
    assert seen == {"recording": False, "needs": (True, False), "backward": False}
    with wg.no_grad():
        assert not Probe.apply(leaf(1.0), leaf(1.0)).requires_grad
    assert seen["needs"] == (False, False)


def test_unused_results_come_as_zeros_or_none():
    class Two(wg.autograd.Function):
        materialise = True

        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(Two.materialise)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            Two.seen = (a, b)
            return b

    x = leaf(1.0, 2.0)
    Two.apply(x)[1].sum().backward()
    np.testing.assert_array_equal(Two.seen[0].numpy(), [0.0, 0.0])
    Two.materialise = False
    Two.apply(x)[1].sum().backward()
    assert Two.seen[0] is None


def test_non_differentiable_results():
    class Sorted(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            order, marked = wg.argsort(x), x * 2
            ctx.mark_non_differentiable(marked)
            return x * 1, order, marked

        @staticmethod
        def backward(ctx, g, *_):
            return g

    out, order, marked = Sorted.apply(leaf(2.0, 1.0))
    assert out.requires_grad and not order.requires_grad and not marked.requires_grad


def test_saving_the_result_makes_no_cycle():
    gc.collect()
    gc.disable()
    try:
        y = Exp.apply(leaf(1.0), 2.0)
        ref = weakref.ref(y.grad_fn)
        del y
        assert ref() is None
    finally:
        gc.enable()


def test_second_backward_is_an_error():
    x = leaf(1.0)
    y = Cube.apply(x)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


class Wrong(wg.autograd.Function):
    answer = None

    @staticmethod
    def forward(ctx, x, y):
        return x * y

    @staticmethod
    def backward(ctx, g):
        return Wrong.answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((1.0, None), "index 0: float"),
        ((None,), "expected 2, got 1"),
        ("three", "expected 2, got 5"),
    ],
)
def test_a_backward_that_answers_wrongly(answer, message):
    Wrong.answer = answer if isinstance(answer, tuple) else tuple(answer)
    x = leaf(1.0)
    with pytest.raises((RuntimeError, TypeError), match=message):
        Wrong.apply(x, leaf(2.0)).backward()
    assert x.grad is None


def test_a_gradient_of_the_wrong_shape():
    x, y = leaf(1.0, 2.0), leaf(1.0, 2.0)
    Wrong.answer = (wg.ones(3, dtype=wg.float64), None)
    with pytest.raises(RuntimeError, match=r"got \[3\] but expected shape compatible with \[2\]"):
        Wrong.apply(x, y).sum().backward()
    Wrong.answer = (wg.ones((4, 2), dtype=wg.float64), None)
    Wrong.apply(x, y).sum().backward()  # summed over the axis that broadcasting added
    np.testing.assert_array_equal(x.grad.numpy(), [4.0, 4.0])


def test_a_forward_that_returns_no_tensor():
    class Bad(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 1.0

    with pytest.raises(TypeError, match=r"Bad\.forward should return Tensors"):
        Bad.apply(leaf(1.0))
    with pytest.raises(NotImplementedError, match="forward"):
        wg.autograd.Function.apply(leaf(1.0))
    with pytest.raises(TypeError, match="save_for_backward"):
        type(
            "Keeps",
            (wg.autograd.Function,),
            {"forward": staticmethod(lambda ctx, x: ctx.save_for_backward(1.0))},
        ).apply(leaf(1.0))
