"""Duals: every function of the table on Tensors with tangents, in both modes' nests."""

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.catalogue.table import TABLE
from tests.ops.cases import apply, function, inexact_results, leaves
from tests.ops.test_forward import TRACKED, close, inner, interpret, normal, numbers, size
from wengert.backends import dtype_of
from wengert.interpreters.duals import Dual, DualExit, make_dual, running
from wengert.interpreters.levels import leave
from wengert.interpreters.lifted import new_level
from wengert.tape.grad_mode import record_always
from wengert.tape.node import tick
from wengert.tape.tensor import Tensor, untracked


def pushed(call: Any, primals: Any, tangents: Any) -> list[tuple[Tensor, Tensor]]:
    """Primal values and tangents of what a call returns: forward mode without its front door."""
    start, level = tick(), new_level()
    inputs = [make_dual(x, t, level) for x, t in zip(primals, tangents, strict=True)]
    with running(level), record_always():
        results = call(inputs)
    pairs = leave(results, DualExit(level, start, True, True))
    return [(y, wg.zeros_like(y) if t is None else t) for y, t in pairs]


def directions(random: np.random.Generator, primals: Any) -> list[Tensor]:
    return [untracked(normal(random, x._array)) for x in primals]


def made(name: str, case: Any) -> Any:
    """The row's function, of the differentiable arguments alone; its differentiable results."""
    call = function(name, TABLE[name])
    return lambda inputs: inexact_results(apply(call, case, inputs))


@pytest.mark.parametrize(("name", "kind"), TRACKED)
def test_forward_and_reverse_nest(name, kind, backend):
    """Reverse over forward is forward over reverse, for the second derivative is symmetric."""

    def check(case):
        primals = leaves(case)
        call = made(name, case)
        random = np.random.default_rng(0)
        tangents = [t.requires_grad_() for t in directions(random, primals)]
        pairs = pushed(call, primals, tangents)
        if not pairs or not any(t.requires_grad for _, t in pairs):
            return
        g = directions(random, [y for y, _ in pairs])
        outer = [(t, seed) for (_, t), seed in zip(pairs, g, strict=True) if t.requires_grad]
        found = wg.autograd.grad(
            [t for t, _ in outer],
            [*primals, *tangents],
            [seed for _, seed in outer],
            materialize_grads=True,
        )

        def gradients(inputs):
            own = [untracked(x._array).requires_grad_() for x in inputs]
            results = [(y, seed) for y, seed in zip(call(own), g, strict=True) if y.requires_grad]
            return wg.autograd.grad(
                [y for y, _ in results],
                own,
                [seed for _, seed in results],
                create_graph=True,  # a sweep that is not recorded gives constants
                materialize_grads=True,
            )

        expected = pushed(gradients, [x.detach() for x in primals], [t.detach() for t in tangents])
        by_x, by_t = [t for _, t in expected], [y for y, _ in expected]
        for a, b in zip(found, [*by_x, *by_t], strict=True):
            close(numbers(a._array), numbers(b._array))

    interpret(name, kind, backend, check, 0.5)


@pytest.mark.parametrize(("name", "kind"), TRACKED)
def test_forward_nests_in_forward(name, kind, backend):
    """The second derivative along two directions, by Duals in Duals and by a sweep over Duals."""

    def check(case):
        primals = [x.detach() for x in leaves(case)]
        call = made(name, case)
        random = np.random.default_rng(0)
        first, second = directions(random, primals), directions(random, primals)

        def slope(inputs):
            return [t for _, t in pushed(call, inputs, first)]

        found = [t for _, t in pushed(slope, primals, second)]
        g = directions(random, found)

        def gradients(inputs):
            own = [untracked(x._array).requires_grad_() for x in inputs]
            results = [(y, seed) for y, seed in zip(call(own), g, strict=True) if y.requires_grad]
            if not results:
                return []
            outputs, seeds = zip(*results, strict=True)
            return wg.autograd.grad(outputs, own, seeds, create_graph=True, materialize_grads=True)

        swept = [t for _, t in pushed(gradients, primals, second)]
        forwards = [(y._array, t._array) for y, t in zip(g, found, strict=True)]
        backwards = [(x._array, t._array) for x, t in zip(swept, first, strict=False)]
        difference = sum(inner(*p) for p in forwards) - sum(inner(*p) for p in backwards)
        assert abs(difference) <= 1e-9 * (1 + sum(size(*p) for p in forwards + backwards))

    interpret(name, kind, backend, check, 0.4)


# -- one Tensor with a tangent -------------------------------------------------------------------


def double(values: Any, **kwargs: Any) -> Tensor:
    return wg.asarray(np.asarray(values, dtype=float), **kwargs)


def jvp(f: Any, x: Any, t: Any) -> tuple[Tensor, Tensor]:
    """Value and tangent of a function of one argument that returns one Tensor."""
    ((value, tangent),) = pushed(lambda inputs: [f(*inputs)], [double(x)], [double(t)])
    return value, tangent


def test_values_can_be_looked_at(backend):
    """A branch on a value is fine: forward mode follows the way that the values take."""

    def f(x):
        assert bool(x[0] > 0)
        assert f"{x[1]:.2f}" == "3.00"
        assert x.detach().tolist() == [2, 3]
        assert len(x) == 2
        assert (x.shape, x.ndim, x.size, x.dtype) == ((2,), 1, 2, wg.float64)
        assert x.backend is backend
        assert x.device == double([1]).device
        assert not x.requires_grad
        assert x.is_leaf
        return x**2 if x[0] > 1 else x

    assert jvp(f, [2, 3], [1, 10])[1].tolist() == [4, 60]


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.numpy(),
        lambda x: np.asarray(x),
        lambda x: np.asarray(x._array),
        lambda x: x.array,
        lambda x: np.from_dlpack(x),
        lambda x: copy.deepcopy(x),
        lambda x: pickle.dumps(x),
    ],
)
def test_what_would_lose_the_tangent_is_an_error(read, backend):
    def f(x):
        with pytest.raises((RuntimeError, TypeError), match="would be lost"):
            read(x)
        return x

    jvp(f, [2, 3], [1, 10])


def test_detach_leaves_the_tangent_out():
    value, tangent = jvp(lambda x: x * x.detach(), [2, 3], [1, 10])
    assert (value.tolist(), tangent.tolist()) == ([4, 9], [2, 30])

    def inner(x):  # of all levels
        return jvp(lambda y: (x * y).detach() * y, [5.0], [1.0])[1] * x

    # x ↦ (5 x) x with the first factor held: its derivative along 1 is 5 x
    assert jvp(inner, [2.0], [1.0])[1].tolist() == [10]
    with pytest.raises(AssertionError):
        jvp(lambda x: np.testing.assert_array_equal(x.detach().numpy(), 0) or x, [2.0], [1.0])


def test_what_is_assigned_unrecorded_leaves_the_tangent():
    x, t, y = (np.full(2, number) for number in (1.0, 2.0, 3.0))
    own, inner = Dual(y, t + 1, 3), Dual(y, t + 1, 2)
    for given, value in ((y, y), (own, y), (inner, inner)):
        found = Dual(x, t, 3).with_values(given)
        assert found.inner is value
        assert found.tangent is t
        assert found.level == 3


def test_it_prints_value_and_tangent():
    seen = []
    jvp(lambda x: seen.append(repr(x)) or seen.append(repr(wg.ones_like(x) * x)) or x, 2.5, 1)
    text = (
        "tensor(2.5000, dtype=wengert.float64,\n       tangent=tensor(1., dtype=wengert.float64))"
    )
    assert seen == [text, text]
    assert repr(Dual(1.0, 2.0, 3)) == "Dual(1.0, 2.0, level=3)"


@pytest.mark.parametrize(
    "transform",
    [
        wg.func.jacfwd,
        lambda f: wg.func.jacfwd(wg.func.jacfwd(f)),
        lambda f: wg.func.jacfwd(wg.func.jacrev(f)),
    ],
)
def test_it_prints_where_the_tangent_is_yet_to_come(transform):
    seen = []
    transform(lambda x: seen.append(f"{x} {x[0]:.2f}") or x**2)(np.array([1.0, 2.0]))
    text = "tensor([1., 2.], dtype=wengert.float64"
    assert seen
    for one in seen:
        assert one.startswith(text)
        assert "tangent=tensor(..., size=(2,), dtype=wengert.float64)" in one
        assert one.endswith(" 1.00")


def test_each_result_has_its_own_cotangents(backend):
    """Reverse over forward: of y² and y³ along 1, and of both results and tangents."""
    y = double(2.0, requires_grad=True)
    values = pushed(lambda inputs: [inputs[0] ** 2, inputs[0] ** 3], [y], [double(1.0)])
    for (value, tangent), first, second in zip(values, (4, 12), (2, 12), strict=True):
        gradients = [wg.autograd.grad(z, y, retain_graph=True)[0].item() for z in (value, tangent)]
        assert gradients == [first, second]


def test_changes_in_place(backend):
    def f(x):
        y = wg.zeros(4, dtype=wg.float64)
        y[0] = x[0] * 2
        y[1:3] = x
        y += 1
        y *= y
        x[0] = 7.0  # the argument's own
        return y + x[0]

    # (2 a + 1)², (a + 1)², (b + 1)², 1, each plus the constant 7
    value, tangent = jvp(f, [2, 3], [1, 10])
    assert value.tolist() == [32, 16, 23, 8]
    assert tangent.tolist() == [20, 6, 80, 0]


def test_new_arrays_are_constants(backend):
    def f(x):
        for make in (wg.zeros_like, wg.ones_like, wg.empty_like, wg.rand_like):
            made = make(x)
            assert made.shape == x.shape
            assert made.dtype is x.dtype
            assert not isinstance(made._array, Dual)
        like = wg.full_like(x, 2, dtype=wg.float32)
        assert like.dtype is wg.float32
        assert isinstance(wg.asarray(x)._array, Dual)
        assert isinstance(wg.clone(x)._array, Dual)
        single = wg.astype(x, wg.float32)
        assert single.dtype is wg.float32
        assert not isinstance((x > 0)._array, Dual)
        assert not isinstance(wg.argmax(x)._array, Dual)
        assert not isinstance(wg.astype(x, wg.int64)._array, Dual)
        return wg.astype(single * like, wg.float64) + wg.to_device(x, x.device)

    value, tangent = jvp(f, [2, 3], [1, 10])
    assert (value.tolist(), tangent.tolist()) == ([6, 9], [3, 30])


def test_raw_arrays_on_either_side(backend):
    a = backend.from_numpy(np.array([1.0, 2.0]))
    _, tangent = jvp(lambda x: wg.multiply(a, x) + wg.add(x, a), [2, 3], [1, 10])
    assert tangent.tolist() == [2, 30]


def test_arrays_of_two_backends_are_refused():
    pytest.importorskip("array_api_strict")
    with wg.use_backend("array_api_strict"):
        other = double([1, 2])
    for f in (lambda x: x * other, lambda x: other + x, lambda x: wg.matmul(x, other)):
        with pytest.raises(wg.BackendError, match=r"numpy.*array_api_strict|array_api_strict.*num"):
            jvp(f, [2, 3], [1, 10])


# -- levels --------------------------------------------------------------------------------------


def grad(f: Any, x: Any) -> Tensor:
    """The gradient by the tape, of a function that may be inside anything."""
    x = x if isinstance(x, Tensor) else double(x)
    own = x + 0 if x.requires_grad else untracked(x._array).requires_grad_()
    y = f(own)
    if not y.requires_grad:
        return wg.zeros_like(x)
    (found,) = wg.autograd.grad(y, own, create_graph=True, materialize_grads=True)
    return found


def slope(f: Any, x: Any) -> Tensor:
    """The derivative by forward mode, of a function that may be inside anything."""
    x = x if isinstance(x, Tensor) else double(x)
    ((_, tangent),) = pushed(lambda inputs: [f(*inputs)], [x], [wg.ones_like(x)])
    return tangent


MODES = list(itertools.product([grad, slope], repeat=2))


@pytest.mark.parametrize(("outer", "inner"), MODES)
def test_perturbations_are_not_confused(outer, inner):
    """Siskind and Pearlmutter's: d/dx (x d/dy (x + y)) is 1 at any point, where confusion gives 2.

    And another: d/dx (x d/dy (x y²)) = 4 x y.
    """
    assert outer(lambda x: x * inner(lambda y: x + y, 1.0), 3.0).item() == 1
    assert outer(lambda x: x * inner(lambda y: x * y**2, 5.0), 3.0).item() == 2 * 2 * 3 * 5
    # The inner function is constant in its own argument, or in the outer one.
    assert outer(lambda x: x * inner(lambda y: x, 1.0), 3.0).item() == 0
    assert outer(lambda x: inner(lambda y: y**2, 1.0), 3.0).item() == 0
    # The inner derivative is taken at the outer argument: (x · 3 x²)' = 9 x²
    assert outer(lambda x: x * inner(lambda y: y**3, x), 2.0).item() == 36


@pytest.mark.parametrize("modes", list(itertools.product([grad, slope], repeat=3)))
def test_modes_nest_in_any_order(modes):
    """∂³/∂u ∂v ∂w of sin(u v) w² v, with every argument closed over somewhere."""
    first, second, third = modes

    def f(u, v, w):
        return wg.sin(u * v) * w**2 * v

    u, v, w = 0.3, 0.7, 1.1
    found = first(lambda w: second(lambda u: third(lambda v: f(u, v, w), v), u), w)
    # ∂u f = v² w² cos(uv); ∂v of that is w² (2 v cos(uv) - u v² sin(uv)); ∂w doubles it over w.
    expected = 2 * w * (2 * v * np.cos(u * v) - u * v**2 * np.sin(u * v))
    assert found.item() == pytest.approx(expected, rel=1e-13)
    # And where what is closed over is computed inside.
    found = first(lambda w: second(lambda u: third(lambda v: f(wg.exp(u), v, w), v), u), w)
    u, factor = np.exp(u), np.exp(u)
    expected = factor * 2 * w * (2 * v * np.cos(u * v) - u * v**2 * np.sin(u * v))
    assert found.item() == pytest.approx(expected, rel=1e-13)


def test_a_leaf_outside_gets_its_gradient():
    """`backward` reaches a forward transform's arguments, tangents and what it closed over."""
    x, t, z = (double(v, requires_grad=True) for v in ([1.0, 2.0], [3.0, 5.0], [7.0, 11.0]))
    ((value, tangent),) = pushed(lambda inputs: [z * inputs[0] ** 2], [x], [t])
    wg.sum(value + tangent).backward()
    # z x² + 2 z x t
    assert x.grad.tolist() == [2 * 7 * 1 + 2 * 7 * 3, 2 * 11 * 2 + 2 * 11 * 5]
    assert t.grad.tolist() == [14, 44]
    assert z.grad.tolist() == [1 + 6, 4 + 20]
    with pytest.raises(RuntimeError, match="second time"):
        wg.sum(value).backward()


def test_a_tensor_and_what_it_was_computed_from():
    """Both are closed over: what is recorded outside is swept once, outside."""
    z = double(3.0, requires_grad=True)
    w = z**2
    ((_, tangent),) = pushed(lambda i: [z * w * i[0] ** 2], [double(2.0)], [double(1.0)])
    # 4 z³
    (by_z,) = wg.autograd.grad(tangent, z)
    assert by_z.item() == 12 * 9


def test_backward_inside():
    """Leaves made inside have gradients with tangents: forward over reverse by hand."""

    def f(x, create_graph=True):
        w = double([2.0, 3.0], requires_grad=True)
        wg.sum(w**2 * x).backward(create_graph=create_graph)
        return w.grad

    value, tangent = jvp(f, [5, 7], [1, 10])
    assert (value.tolist(), tangent.tolist()) == ([20, 42], [4, 60])
    # Without the graph a gradient is a constant, as it is to reverse mode.
    value, tangent = jvp(lambda x: f(x, create_graph=False), [5, 7], [1, 10])
    assert (value.tolist(), tangent.tolist()) == ([20, 42], [0, 0])


def test_what_was_recorded_inside_is_released():
    x = double([1.0, 2.0], requires_grad=True)
    before = len(wg.global_tape)
    ((value, tangent),) = pushed(lambda i: [wg.sin(i[0]) ** 2], [x], [double([1.0, 1.0])])
    assert len(wg.global_tape) > before
    wg.sum(value * tangent).backward()
    del value, tangent
    assert len(wg.global_tape) == before


def test_nodes_have_names():
    x = double([1.0, 2.0], requires_grad=True)
    kept = []
    ((value, _),) = pushed(lambda i: kept.append(i[0]) or [i[0] * 2], [x], [double([1.0, 1.0])])
    assert "unpack_dual" in str(wg.global_tape.of(value))
    assert repr(value.grad_fn).startswith("<UnpackDualBackward0")
    assert kept[0].grad_fn.name() == "Entry"
    assert kept[0].grad_fn.operation == "leaf"
    assert dtype_of(kept[0]._array.dtype) is wg.float64
