"""custom_vjp: functions whose derivative is given beside them."""

import copy
import dataclasses
import functools
import pickle

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import array, leaf
from wengert.func import grad, jvp
from wengert.func.custom import custom_vjp
from wengert.testing import gradcheck, gradgradcheck

pytestmark = pytest.mark.usefixtures("backend")


def softplus():
    """log(1 + eˣ), whose rule needs eˣ: neither an argument nor a result."""

    @custom_vjp
    def log1pexp(x):
        """Softplus."""
        return wg.log(1 + wg.exp(x))

    def forward(x):
        e = wg.exp(x)
        return wg.log(1 + e), e

    def backward(e, g):
        return (g * e / (1 + e),)

    log1pexp.defvjp(forward, backward)
    return log1pexp


def test_derivatives_of_any_order():
    f = softplus()
    x = leaf(0.3, -1.2, 2.0)
    assert f.__name__ == "log1pexp" and f.__doc__ == "Softplus."
    assert f(x).grad_fn.name() == "log1pexpBackward"
    assert gradcheck(f, [x], check_forward_ad=False)
    assert gradgradcheck(f, [x])
    s = 1 / (1 + np.exp(-0.5))
    third = grad(grad(grad(f)))(wg.asarray(0.5, dtype=wg.float64))
    assert third.item() == pytest.approx(s * (1 - s) * (1 - 2 * s))


def test_the_rule_takes_the_place_of_the_functions_own_derivative():
    calls = []

    @custom_vjp
    def clipped(x):
        calls.append("function")
        return x * 1

    def forward(x):
        calls.append("forward")
        return x * 1, None

    clipped.defvjp(forward, lambda nothing, g: (wg.clip(g, -1, 1),))
    x = leaf(1.0, 2.0)
    (clipped(x) * wg.asarray([5.0, -0.5])).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, -0.5])
    clipped(x.detach())
    with wg.no_grad():
        clipped(x)
    assert calls == ["forward", "function", "function"]


@dataclasses.dataclass
class Point:
    x: object
    y: object


def test_trees_of_arguments_and_results():
    @custom_vjp
    def f(parameters, point, scale=2):
        w, b = parameters["w"], parameters["b"]
        return {"sum": w * point.x + b, "rest": [point.y * scale]}

    def forward(parameters, point, scale):
        return f._function(parameters, point, scale), (parameters, point, scale, "text")

    def backward(residuals, g):
        parameters, point, scale, text = residuals
        assert (scale, text) == (2, "text")
        return (
            {"w": g["sum"] * point.x, "b": g["sum"]},
            Point(g["sum"] * parameters["w"], g["rest"][0] * scale),
            None,
        )

    f.defvjp(forward, backward)

    def flat(w, b, x, y):
        out = f({"w": w, "b": b}, point=Point(x, y))
        return out["sum"] * out["rest"][0]

    inputs = [leaf(0.3), leaf(0.4), leaf(0.5), leaf(0.6)]
    assert gradcheck(flat, inputs, check_forward_ad=False)
    assert gradgradcheck(flat, inputs)


def test_none_stands_for_zeros():
    @custom_vjp
    def f(pair, z, nothing):
        return pair[0] * pair[1] * z

    f.defvjp(
        lambda pair, z, nothing: (f._function(pair, z, nothing), pair),
        lambda pair, g: ((g * pair[1], None), None, None),
    )
    x, y, z = leaf(2.0), leaf(3.0), leaf(4.0)
    f((x, y), z, None).backward()
    assert x.grad.item() == 3.0 and y.grad is None and z.grad is None


def test_arguments_that_are_not_differentiated():
    @functools.partial(custom_vjp, nondiff_argnums=(0, 2))
    def apply(function, x, n):
        return function(x) * n

    apply.defvjp(
        lambda function, x, n: (function(x) * n, x), lambda function, n, x, g: (g * 100 * n,)
    )
    apply.defjvp(
        lambda function, n, primals, tangents: (function(*primals) * n, tangents[0] * 100 * n)
    )
    x = leaf(2.0)
    apply(wg.sin, x, 3).backward()
    assert x.grad.item() == 300.0
    y, t = jvp(lambda x: apply(wg.sin, x, 3), (array(2.0),), (array(1.0),))
    assert t.item() == 300.0 and y.item() == pytest.approx(3 * np.sin(2.0))
    with pytest.raises(TypeError, match="argument 2 is among nondiff_argnums"):
        apply(wg.sin, x, leaf(1.0))
    with pytest.raises(ValueError, match="count from 0"):
        custom_vjp(lambda x: x, nondiff_argnums=(-1,))


def test_a_method():
    class Scale:
        def __init__(self, by):
            self.by = by

        @functools.partial(custom_vjp, nondiff_argnums=(0,))
        def __call__(self, x):
            return x * self.by

        __call__.defvjp(lambda self, x: (x * self.by, None), lambda self, _, g: (g * 10 * self.by,))

    x = leaf(1.0)
    Scale(3)(x).backward()
    assert x.grad.item() == 30.0


def test_a_rule_for_forward_mode():
    f = softplus()
    with pytest.raises(NotImplementedError, match=r"log1pexp\.defjvp"):
        jvp(f, (array(1.0),), (array(1.0),))
    f.defjvp(lambda primals, tangents: (f._function(*primals), tangents[0] * wg.expit(*primals)))
    assert gradcheck(f, [leaf(0.3, -1.2)], check_forward_ad=True)
    second = jvp(lambda x: jvp(f, (x,), (array(1.0),))[1], (array(0.5),), (array(1.0),))[1]
    s = 1 / (1 + np.exp(-0.5))
    assert second.item() == pytest.approx(s * (1 - s))

    @custom_vjp
    def g(x):
        return x * 2

    g.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 2))
    assert jvp(g, (array(1.0),), (array(1.0),))[1].item() == 2.0
    with pytest.raises(NotImplementedError, match=r"g\.defvjp"):
        g(leaf(1.0)).backward()


@pytest.mark.parametrize(
    ("forward", "backward", "error", "message"),
    [
        (lambda x, y: x * y, None, TypeError, "forward should return a tuple of the result and"),
        (lambda x, y: (3.0, None), None, TypeError, "should return Tensors, and returned float"),
        (lambda x, y: ((), None), None, TypeError, "returned no Tensor"),
        (None, lambda r, g: g, TypeError, "backward should return a tuple.*returned a Tensor"),
        (None, lambda r, g: (g,), RuntimeError, "expected 2, got 1"),
        (None, lambda r, g: ((g,), g), TypeError, "gradient 1 .*, not tuple"),
        (None, lambda r, g: (g, wg.ones(3)), RuntimeError, r"shape \(3,\) .* should have"),
    ],
)
def test_rules_that_answer_wrongly(forward, backward, error, message):
    @custom_vjp
    def f(x, y):
        return x * y

    f.defvjp(forward or (lambda x, y: (x * y, None)), backward or (lambda r, g: (g, g)))
    x = leaf(1.0, 2.0)
    with pytest.raises(error, match=message):
        f(x, leaf(3.0, 4.0)).sum().backward()
    assert x.grad is None


def test_misuse():
    @custom_vjp
    def f(x, *, by=1):
        return x["a"] * by

    with pytest.raises(TypeError, match="keyword-only arguments"):
        f({"a": leaf(1.0)}, by=2)

    @custom_vjp
    def g(x):
        return x["a"] * 1

    with pytest.raises(TypeError, match=r"g has no derivative yet: give it one by g\.defvjp"):
        g({"a": leaf(1.0)})
    assert g({"a": array(2.0)}).item() == 2.0
    g.defvjp(lambda x: (x["a"] * 1, None), lambda nothing, g: ([g],))
    with pytest.raises(TypeError, match="gradient of argument 0 should be a dict"):
        g({"a": leaf(1.0)}).backward()
    g.defjvp(lambda primals, tangents: tangents[0]["a"])
    with pytest.raises(TypeError, match="jvp should return a tuple"):
        jvp(lambda x: g({"a": x}), (array(1.0),), (array(1.0),))
    with pytest.raises(TypeError, match="custom_vjp takes a function, not int"):
        custom_vjp(3)
    with pytest.raises(TypeError, match="defvjp takes functions, not str"):
        g.defvjp(lambda x: x, "x")


def test_a_forward_rule_sees_arguments_that_are_no_tensors_where_they_were():
    @custom_vjp
    def power(n, x):
        return x**n

    seen = []

    def rule(primals, tangents):
        seen.append(primals[0])
        n, x = primals
        return power._function(n, x), n * x ** (n - 1) * tangents[1]

    power.defvjp(lambda n, x: (x**n, (n, x)), lambda kept, g: (None, g * kept[0] * kept[1] ** 2))
    power.defjvp(rule)
    out, t = jvp(lambda x: power(3, x), (array(2.0),), (array(1.0),))
    assert (out.tolist(), t.tolist()) == ([8.0], [12.0])
    assert seen == [3]


@wg.custom_vjp
def _named(x):
    return wg.sin(x)


_named.defvjp(lambda x: (wg.sin(x), None), lambda saved, g: (3 * g,))


def test_copied_and_pickled_as_functions_are():
    assert copy.deepcopy(_named) is copy.copy(_named) is _named
    assert pickle.loads(pickle.dumps(_named)) is _named
    nameless = wg.custom_vjp(functools.partial(wg.sin))
    assert copy.deepcopy({"f": nameless})["f"] is nameless
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(nameless)
