"""autograd.Function: operations that users define."""

import copy
import gc
import threading
import weakref

import numpy as np
import pytest

import wengert as wg
from wengert.autograd import once_differentiable
from wengert.func.forward import jvp
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
        ((1.0, None), "gradient 0 .*, not float"),
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
    with pytest.raises(RuntimeError, match=r"shape \(3,\) .* should have shape \(2,\)"):
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
    for name in ("save_for_backward", "save_for_forward"):

        class Keeps(wg.autograd.Function):
            @staticmethod
            def forward(ctx, x, name=name):
                getattr(ctx, name)(1.0)

        with pytest.raises(TypeError, match=f"^{name} can only save Tensors, not float"):
            Keeps.apply(leaf(1.0))


# -- what a forward says of its arguments and results --------------------------------------------


class Doubled(wg.autograd.Function):
    """Changes its argument in place: y = 2 x, and z = x · 3 beside it."""

    says = True

    @staticmethod
    def forward(ctx, x):
        z = x * 3
        x *= 2
        if Doubled.says:
            ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x, z

    @staticmethod
    def backward(ctx, g, h):
        (y,) = ctx.saved_tensors
        Doubled.seen = y.detach().numpy()
        return g * 2 + h * 3


def test_an_argument_that_is_changed_in_place_becomes_the_result():
    x = leaf(1.0, 2.0)
    h = x * 1
    old = h * h
    y, z = Doubled.apply(h)
    assert y is h and y.grad_fn.name() == "DoubledBackward"
    (y * z + old).sum().backward()  # 2 x · 3 x + x²
    np.testing.assert_array_equal(x.grad.numpy(), [14.0, 28.0])
    np.testing.assert_array_equal(Doubled.seen, [2.0, 4.0])


def test_changes_in_place_that_are_errors():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        Doubled.apply(x)
    assert x.item() == 1.0 and x.is_leaf
    with wg.no_grad():
        Doubled.apply(x)
    assert x.item() == 2.0 and x.is_leaf and x.requires_grad
    Doubled.says = False
    try:
        h = x * 1
        with pytest.raises(RuntimeError, match="changed its argument 0 in place: call"):
            Doubled.apply(h)
        assert h.item() == 2.0
    finally:
        Doubled.says = True


@pytest.mark.parametrize("other", [True, False])
def test_marks_that_are_wrong(other):
    class Marks(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_dirty(y if other else x)
            return y

    with pytest.raises(RuntimeError, match="is no argument, or that it does not return"):
        Marks.apply(leaf(1.0))


def test_what_is_saved_has_the_value_that_it_had():
    class Saves(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            x *= 3
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            assert x.requires_grad == wg.is_grad_enabled()
            Saves.seen = x.item()
            return g * 3

    x = leaf(2.0)
    Saves.apply(x * 1).backward()
    assert Saves.seen == 2.0


def test_needs_input_grad_is_that_of_the_sweep():
    seen = []

    class Needs(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor, y, nothing):
            seen.append(ctx.needs_input_grad)
            return x * y * factor

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g, None, g, None

    x, y = leaf(1.0), leaf(2.0)
    z = Needs.apply(x, 3.0, y, None)
    wg.autograd.grad(z, y, retain_graph=True)
    wg.autograd.grad(z, x)
    assert seen == [(True, False, True, False), (False, False, True, False), (True, *[False] * 3)]


def test_a_backward_that_is_not_differentiable():
    class Once(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return wg.sin(x)

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            assert not wg.is_grad_enabled()
            return wg.asarray(np.cos(x.numpy())).to_backend(x.backend.name) * g

    x = leaf(0.5)
    (g,) = wg.autograd.grad(Once.apply(x), x)
    assert g.item() == pytest.approx(np.cos(0.5)) and not g.requires_grad
    (g,) = wg.autograd.grad(Once.apply(x), x, create_graph=True)
    assert g.item() == pytest.approx(np.cos(0.5))
    with pytest.raises(RuntimeError, match="the backward of Once has no derivative"):
        g.backward()


# -- forward mode --------------------------------------------------------------------------------


def array(*numbers):
    return wg.asarray(list(numbers), dtype=wg.float64)


class Power(wg.autograd.Function):
    """x**n, with a jvp; the last result is not differentiable."""

    @staticmethod
    def forward(ctx, x, n, y):
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x)
        ctx.n = n
        sign = wg.sign(x)
        ctx.mark_non_differentiable(sign)
        return x**n, x * y, sign

    @staticmethod
    def backward(ctx, g, h, _):
        x, y = ctx.saved_tensors
        return g * ctx.n * x ** (ctx.n - 1) + h * y, None, h * x

    @staticmethod
    def jvp(ctx, t, n, s):
        (x,) = ctx.saved_tensors
        assert n is None
        Power.given = s
        return t * ctx.n * x ** (ctx.n - 1), s * x + t * 0, None


def test_the_tangent_is_that_of_jvp():
    x, y, t = array(1.0, 2.0), array(3.0, 4.0), array(1.0, 10.0)
    results, tangents = jvp(lambda x: Power.apply(x, 3, y), (x,), (t,))
    np.testing.assert_array_equal([r.numpy() for r in results], [[1, 8], [3, 8], [1, 1]])
    # that of the product as the jvp says, which is wrong
    np.testing.assert_array_equal([d.numpy() for d in tangents], [[3, 120], [0, 0], [0, 0]])
    np.testing.assert_array_equal(Power.given.numpy(), [0.0, 0.0])


def test_a_function_without_a_jvp_names_it():
    with pytest.raises(NotImplementedError, match=r"static method jvp\(ctx, \*tangents\)"):
        jvp(lambda x: Exp.apply(x, 2.0), (array(1.0),), (array(1.0),))


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ((), RuntimeError, "expected 1, got 0"),
        (3.0, TypeError, "tangent 0 .*, not float"),
        ("wide", RuntimeError, r"shape \(3,\) .* should have shape \(1,\)"),
    ],
)
def test_a_jvp_that_answers_wrongly(answer, error, message):
    class Bad(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def jvp(ctx, t):
            return wg.ones(3, dtype=wg.float64) if answer == "wide" else answer

    with pytest.raises(error, match=message):
        jvp(Bad.apply, (array(1.0),), (array(1.0),))


def test_a_jvp_may_answer_none_and_see_none():
    class Zero(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(False)
            return wg.floor(x)

        @staticmethod
        def jvp(ctx, t, s):
            assert s is None
            return

    y, t = jvp(lambda x: Zero.apply(x, array(2.0)), (array(1.5),), (array(1.0),))
    assert (y.item(), t.item()) == (1.0, 0.0)


def test_a_tangent_takes_the_dtype_of_its_result():
    class Half(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return wg.astype(x, wg.float32)

        @staticmethod
        def jvp(ctx, t):
            return t

    _, t = jvp(Half.apply, (array(1.0),), (array(1.0),))
    assert t.dtype is wg.float32


WAYS = {
    "save_for_backward": (
        lambda ctx, t: ctx.save_for_backward(t),
        lambda ctx: ctx.saved_tensors[0],
    ),
    "attribute": (lambda ctx, t: setattr(ctx, "t", t), lambda ctx: ctx.t),
    "list": (lambda ctx, t: setattr(ctx, "t", [{"t": t}]), lambda ctx: ctx.t[0]["t"]),
    "global": (lambda ctx, t: _KEPT.update(t=t), lambda ctx: _KEPT["t"]),
    "in place": (
        lambda ctx, t: setattr(ctx, "t", wg.zeros(t.shape, dtype=t.dtype).copy_(t)),
        lambda ctx: ctx.t,
    ),
    "gradient": (
        lambda ctx, t: setattr(ctx, "t", wg.grad(lambda y: wg.sum(y * y) / 2)(t)),
        lambda ctx: ctx.t,
    ),
    "nested": (lambda ctx, t: setattr(ctx, "t", Cube.apply(t) / (t * t)), lambda ctx: ctx.t),
    "deep copy": (lambda ctx, t: setattr(ctx, "t", copy.deepcopy([t])), lambda ctx: ctx.t[0]),
}
_KEPT = {}


def exponential(keep, kept, compute=wg.exp):
    class Exponential(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            keep(ctx, compute(x))
            return wg.exp(x)

        @staticmethod
        def backward(ctx, g):
            return g * kept(ctx)

        jvp = backward

    return lambda x: wg.sum(Exponential.apply(x))


def twice(f):
    """Second derivatives of a function of an array, by all ways of differentiating twice."""
    x, v = wg.asarray([1.0, 2.0], dtype=wg.float64), wg.ones(2, dtype=wg.float64)

    def tape():
        y = wg.clone(x).requires_grad_()
        (g,) = wg.autograd.grad(f(y), y, create_graph=True)
        g.sum().backward()
        return y.grad

    found = {
        "tape": tape,
        "reverse over reverse": lambda: wg.grad(lambda z: wg.sum(wg.grad(f)(z)))(x),
        "forward over reverse": lambda: wg.jvp(wg.grad(f), (x,), (v,))[1],
        "reverse over forward": lambda: wg.grad(lambda z: wg.jvp(f, (z,), (v,))[1])(x),
        "forward over forward": lambda: wg.jvp(lambda z: wg.jvp(f, (z,), (v,))[1], (x,), (v,))[1],
        "batched": lambda: wg.jacobian(wg.grad(f))(x),
    }
    return {
        name: lambda way=way: way().detach().to_backend("numpy").numpy()
        for name, way in found.items()
    }


def test_what_a_forward_computed_is_not_differentiated(backend):
    wrong = []
    for way, (keep, kept) in WAYS.items():
        f = exponential(keep, kept)
        assert wg.grad(f)(1.0) == pytest.approx(np.e), way
        for name, second in twice(f).items():
            try:
                wrong.append((way, name, second()))
            except NotImplementedError as error:
                if "Exponential.forward computed" not in str(error):
                    wrong.append((way, name, error))
    assert not wrong


def test_what_a_forward_computed_is_no_result_of_a_forward_transform():
    keep, kept = WAYS["global"]
    f = exponential(keep, kept)
    x, v = wg.asarray([1.0, 2.0]), wg.ones(2)
    with pytest.raises(NotImplementedError, match=r"Exponential\.forward computed"):
        wg.jvp(lambda z: (f(z), _KEPT["t"])[1], (x,), (v,))  # whose tangent is not 0
    told = []
    wg.jvp(lambda z: (f(z), told.append(repr(_KEPT["t"])))[0], (x,), (v,))
    assert told == ["tensor([2.7183, 7.3891])"]


def _in_a_thread(compute, x):
    found = []
    thread = threading.Thread(target=lambda: found.append(compute(x)))
    thread.start()
    thread.join()
    return found[0]


#: How a forward may record what it computes.
RECORDED = {
    "enable_grad": wg.enable_grad()(wg.exp),
    "set_grad_enabled": wg.set_grad_enabled(True)(wg.exp),
    "thread": lambda x: _in_a_thread(wg.exp, x),
    "in place": wg.enable_grad()(lambda x: wg.zeros_like(x).copy_(wg.exp(x))),
    "several": wg.enable_grad()(lambda x: wg.unstack(wg.stack([wg.exp(x), x]))[0]),
    "nested": wg.enable_grad()(lambda x: Cube.apply(wg.exp(x)) / wg.exp(2 * x)),
    "checkpoint": wg.enable_grad()(lambda x: wg.checkpoint(wg.exp, x)),
    "vjp": lambda x: wg.func.vjp(wg.exp, x)[0],
}


@pytest.mark.parametrize("how", RECORDED)
def test_what_a_forward_recorded_is_no_constant_either(how):
    """Its derivative is right where the tape has it, and an error in forward mode."""
    exact, wrong = np.exp([1.0, 2.0]), []
    for way in ("save_for_backward", "attribute", "list"):
        keep, kept = WAYS[way]
        for name, second in twice(exponential(keep, kept, RECORDED[how])).items():
            try:
                found = second()
            except NotImplementedError as error:
                if "Exponential.forward computed" not in str(error):
                    wrong.append((way, name, error))
                continue
            if not np.allclose(found, np.diag(exact) if name == "batched" else exact):
                wrong.append((way, name, found))
    assert not wrong


def test_functions_with_callers_of_their_own_mark_what_they_compute():
    keep, kept = WAYS["attribute"]
    F, labels = wg.nn.functional, wg.asarray([0])
    for compute in (
        lambda x: F.linear(x[None], x[None], wg.zeros(1, dtype=x.dtype)),
        lambda x: F.cross_entropy(x[None], labels),
    ):
        with pytest.raises(NotImplementedError, match=r"Exponential\.forward computed"):
            twice(exponential(keep, kept, compute))["tape"]()


def test_what_a_forward_did_not_compute_from_its_arguments_is_constant(backend):
    # exp(x) has the derivative that its backward says: of a constant it has no second one.
    keep, kept = WAYS["attribute"]
    for compute in (
        lambda x: wg.exp(x).detach(),
        lambda x: wg.floor(x) + 1,
        wg.sign,
        lambda x: wg.linalg.slogdet(wg.reshape(x, (2, 1, 1))).sign,
        lambda x: wg.astype(x > 0, x.dtype),
        lambda x: wg.ones_like(x),
    ):
        for name, second in twice(exponential(keep, kept, compute)).items():
            if name != "tape":
                assert not np.any(second()), name


def test_an_argument_that_is_an_attribute_keeps_its_derivative(backend):
    keep, kept = WAYS["attribute"]
    expected = {"forward over forward": 2.0, "batched": np.eye(2)}
    for name, second in twice(exponential(keep, kept, lambda x: x)).items():
        np.testing.assert_array_equal(second(), expected.get(name, np.ones(2)), err_msg=name)


def test_what_a_forward_computed_looks_like_a_constant():
    keep, kept = WAYS["global"]
    x = wg.tensor([1.0], requires_grad=True)
    exponential(keep, kept)(x)
    assert not _KEPT["t"].requires_grad and _KEPT["t"].is_leaf and _KEPT["t"].grad_fn is None
    assert _KEPT["t"].numpy() == pytest.approx(np.e)
    with pytest.raises(NotImplementedError, match="computed is differentiated"):
        (x * _KEPT["t"]).backward()  # of which the derivative would lack a part
