"""autograd.Function: operations that users define."""

import copy
import threading

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import Cube, array, leaf, operation
from wengert.autograd import once_differentiable
from wengert.func.forward import jvp
from wengert.testing import gradcheck, gradgradcheck

pytestmark = pytest.mark.usefixtures("backend")


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


def test_forward_is_not_recorded_and_needs_input_grad_is_that_of_the_sweep():
    seen = []

    def needs(ctx, x, factor, y, nothing):
        seen.append((wg.is_grad_enabled(), *ctx.needs_input_grad))
        return x * y * factor

    def backward(ctx, g):
        seen.append((wg.is_grad_enabled(), *ctx.needs_input_grad))
        return g, None, g, None

    apply = operation(needs, backward)
    x, y = leaf(1.0), leaf(2.0)
    z = apply(x, 3.0, y, None)
    wg.autograd.grad(z, y, retain_graph=True)
    wg.autograd.grad(z, x)
    with wg.no_grad():
        assert not apply(x, 3.0, y, None).requires_grad
    asked = [(True, False, True, False), (False, False, True, False), (True, *[False] * 3)]
    assert seen == [(False, *each) for each in (*asked, (False,) * 4)]


def test_unused_results_come_as_zeros_or_none():
    for materialise in (True, False):
        seen = []

        def two(ctx, x, materialise=materialise):
            ctx.set_materialize_grads(materialise)
            return x * 1, x * 2

        apply = operation(two, lambda ctx, a, b, seen=seen: (seen.append(a), b)[1])
        apply(leaf(1.0, 2.0))[1].sum().backward()
        assert [None if g is None else g.tolist() for g in seen] == [
            [0.0, 0.0] if materialise else None
        ]


def test_non_differentiable_results():
    def sort(ctx, x):
        order, marked = wg.argsort(x), x * 2
        ctx.mark_non_differentiable(marked)
        return x * 1, order, marked

    out, order, marked = operation(sort, lambda ctx, g, *_: g)(leaf(2.0, 1.0))
    assert out.requires_grad and not order.requires_grad and not marked.requires_grad


def test_what_forward_may_not_do():
    def bad(ctx, x):
        return 1.0

    with pytest.raises(TypeError, match=r"bad\.forward should return Tensors"):
        operation(bad)(leaf(1.0))
    with pytest.raises(NotImplementedError, match="forward"):
        wg.autograd.Function.apply(leaf(1.0))
    for name in ("save_for_backward", "save_for_forward"):
        keep = operation(lambda ctx, x, name=name: getattr(ctx, name)(1.0))
        with pytest.raises(TypeError, match=f"^{name} can only save Tensors, not float"):
            keep(leaf(1.0))
    for other in (True, False):

        def marks(ctx, x, other=other):
            y = x * 2
            ctx.mark_dirty(y if other else x)
            return y

        with pytest.raises(RuntimeError, match="is no argument, or that it does not return"):
            operation(marks)(leaf(1.0))


# -- changes in place ----------------------------------------------------------------------------


def doubled(says=True):
    """What changes its argument in place, y = 2 x with z = 3 x beside it; and what it saved."""
    seen = []

    def double(ctx, x):
        z = x * 3
        x *= 2
        if says:
            ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x, z

    def backward(ctx, g, h):
        seen.append(ctx.saved_tensors[0].detach().tolist())
        return g * 2 + h * 3

    return operation(double, backward), seen


def test_an_argument_that_is_changed_in_place_becomes_the_result():
    x = leaf(1.0, 2.0)
    h = x * 1
    old = h * h
    apply, seen = doubled()
    y, z = apply(h)
    assert y is h and y.grad_fn.name() == "doubleBackward"
    (y * z + old).sum().backward()  # 2 x · 3 x + x²
    assert x.grad.tolist() == [14.0, 28.0]
    assert seen == [[2.0, 4.0]]


def test_changes_in_place_that_are_errors():
    x, (apply, _) = leaf(1.0), doubled()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        apply(x)
    assert x.item() == 1.0 and x.is_leaf
    with wg.no_grad():
        apply(x)
    assert x.item() == 2.0 and x.is_leaf and x.requires_grad
    h = x * 1
    with pytest.raises(RuntimeError, match="changed its argument 0 in place: call"):
        doubled(says=False)[0](h)
    assert h.item() == 2.0

    def swelled(ctx, *both):
        for each in both:
            each *= 2
        ctx.mark_dirty(*both)
        return both

    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        operation(swelled)(h, x)
    assert h.item() == 2.0  # an error comes before anything has changed


def test_what_is_saved_has_the_value_that_it_had():
    seen = []

    def tripled(ctx, x):
        ctx.save_for_backward(x)
        x *= 3
        ctx.mark_dirty(x)
        return x

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        assert x.requires_grad == wg.is_grad_enabled()
        seen.append(x.item())
        return g * 3

    operation(tripled, backward)(leaf(2.0) * 1).backward()
    assert seen == [2.0]


def test_a_backward_that_is_not_differentiable():
    def once(ctx, x):
        ctx.save_for_backward(x)
        return wg.sin(x)

    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        assert not wg.is_grad_enabled()
        return wg.asarray(np.cos(x.numpy())).to_backend(x.backend.name) * g

    x, apply = leaf(0.5), operation(once, backward)
    for create_graph in (False, True):
        (g,) = wg.autograd.grad(apply(x), x, create_graph=create_graph)
        assert g.item() == pytest.approx(np.cos(0.5))
        assert g.requires_grad == create_graph
    with pytest.raises(RuntimeError, match="the backward of once has no derivative"):
        g.backward()


# -- forward mode --------------------------------------------------------------------------------


def test_the_tangent_is_that_of_jvp():
    """Of x**n, x y with a rule that is wrong, and a result that is not differentiable."""
    given = []

    def power(ctx, x, n, y):
        ctx.save_for_forward(x)
        ctx.n = n
        sign = wg.sign(x)
        ctx.mark_non_differentiable(sign)
        return x**n, x * y, sign

    def rule(ctx, t, n, s):
        (x,) = ctx.saved_tensors
        assert n is None
        given.append(s.tolist())
        return t * ctx.n * x ** (ctx.n - 1), s * x + t * 0, None

    apply = operation(power, jvp=rule)
    x, y, t = array(1.0, 2.0), array(3.0, 4.0), array(1.0, 10.0)
    results, tangents = jvp(lambda x: apply(x, 3, y), (x,), (t,))
    np.testing.assert_array_equal([r.numpy() for r in results], [[1, 8], [3, 8], [1, 1]])
    np.testing.assert_array_equal([d.numpy() for d in tangents], [[3, 120], [0, 0], [0, 0]])
    assert given == [[0.0, 0.0]]


def test_a_function_without_a_jvp_names_it():
    with pytest.raises(NotImplementedError, match=r"static method jvp\(ctx, \*tangents\)"):
        jvp(lambda x: Exp.apply(x, 2.0), (array(1.0),), (array(1.0),))


def test_a_jvp_may_answer_none_and_see_none_and_its_answer_takes_the_results_dtype():
    def zero(ctx, x, y):
        ctx.set_materialize_grads(False)
        return wg.floor(x)

    def rule(ctx, t, s):
        assert s is None

    apply = operation(zero, jvp=rule)
    y, t = jvp(lambda x: apply(x, array(2.0)), (array(1.5),), (array(1.0),))
    assert (y.item(), t.item()) == (1.0, 0.0)
    half = operation(lambda ctx, x: wg.astype(x, wg.float32), jvp=lambda ctx, t: t)
    assert jvp(half, (array(1.0),), (array(1.0),))[1].dtype is wg.float32


WAYS = {
    "save_for_backward": (lambda ctx, t: ctx.save_for_backward(t),
        lambda ctx: ctx.saved_tensors[0]),
    "attribute": (lambda ctx, t: setattr(ctx, "t", t), lambda ctx: ctx.t),
    "list": (lambda ctx, t: setattr(ctx, "t", [{"t": t}]), lambda ctx: ctx.t[0]["t"]),
    "global": (lambda ctx, t: _KEPT.update(t=t), lambda ctx: _KEPT["t"]),
    "in place": (lambda ctx, t: setattr(ctx, "t", wg.zeros(t.shape, dtype=t.dtype).copy_(t)),
        lambda ctx: ctx.t),
    "gradient": (lambda ctx, t: setattr(ctx, "t", wg.grad(lambda y: wg.sum(y * y) / 2)(t)),
        lambda ctx: ctx.t),
    "nested": (lambda ctx, t: setattr(ctx, "t", Cube.apply(t) / (t * t)), lambda ctx: ctx.t),
    "deep copy": (lambda ctx, t: setattr(ctx, "t", copy.deepcopy([t])), lambda ctx: ctx.t[0]),
}  # fmt: skip
_KEPT = {}


def exponential(keep, kept, compute=wg.exp):
    def Exponential(ctx, x):
        keep(ctx, compute(x))
        return wg.exp(x)

    def backward(ctx, g):
        return g * kept(ctx)

    apply = operation(Exponential, backward, jvp=backward)
    return lambda x: wg.sum(apply(x))


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
