"""Duals: every function of the table on Tensors with tangents, in both modes' nests."""

import itertools
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.ops.set
from tests.catalogue.table import TABLE, TRACKED
from tests.ops.cases import SCALE, apply, check_examples, function, inexact_results, leaves
from wengert.backends import backend_of, dtype_of, get_backend
from wengert.interpreters.duals import Dual, DualExit, declaration, make_dual, push, running
from wengert.interpreters.levels import leave
from wengert.interpreters.lifted import new_level
from wengert.tape.grad_mode import record_always
from wengert.tape.node import tick
from wengert.tape.primitive import NOT_IMPLEMENTED, PRIMITIVES, UNDEFINED, ZERO, Primitive
from wengert.tape.tensor import Tensor, untracked
from wengert.testing.differences import to_reals

EXAMPLES = {"numpy": 8, "torch": 3, "cupy": 3}


def normal(random: np.random.Generator, x: Any) -> Any:
    """A random raw array of the backend, shape and dtype of another."""
    array = random.standard_normal(x.shape)
    if dtype_of(x.dtype).complex:
        array = array + 1j * random.standard_normal(x.shape)
    backend = backend_of(x)
    return backend.from_numpy(np.asarray(array), backend.device(x))


def numbers(array: Any) -> np.ndarray:
    return to_reals(backend_of(array).to_numpy(backend_of(array).array(array)))


def interpret(name: str, kind: str, backend: Any, check: Any, share: float) -> None:
    """Walk the table through an interpreter of arrays with arrays inside, one for all."""
    entry = TABLE[name]
    if backend.name not in EXAMPLES and SCALE <= 1:
        pytest.skip("rules and kernels are tested on it alone; the wide profile runs it")
    if backend.name in entry.not_on:
        pytest.skip(entry.not_on[backend.name])
    check_examples(EXAMPLES.get(backend.name, 1) * share, check, getattr(entry, kind))


def close(a: Any, b: Any) -> None:
    scale = max(1.0, float(np.max(np.abs(b), initial=0.0)))
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11 * scale)


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
        pairs = [(numbers(a), numbers(b)) for a, b in forwards + backwards]
        products = [float(a @ b) for a, b in pairs]
        difference = sum(products[: len(forwards)]) - sum(products[len(forwards) :])
        assert abs(difference) <= 1e-9 * (1 + sum(float(abs(a) @ abs(b)) for a, b in pairs))

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


# -- what `push` answers --------------------------------------------------------------------------

XP = get_backend("numpy").namespace


def push_of(name, inputs, tangents, **parameters):
    """The tangent of a call with NumPy arrays."""
    primitive = PRIMITIVES[name]
    out = primitive.kernels[np.ndarray](*inputs, **parameters)
    return push(XP, primitive, inputs, parameters, out, tangents)


@pytest.fixture
def scratch(monkeypatch):
    """Primitives made in a test are gone after it."""
    monkeypatch.setattr("wengert.tape.primitive.PRIMITIVES", dict(PRIMITIVES))


def test_the_tangent_has_the_results_shape_and_dtype():
    x1, x2 = np.ones((2, 1), dtype=np.float32), np.ones(3)
    for name, expected in [("add", 2.0), ("subtract", 2.0), ("multiply", 2.0), ("maximum", 1.0)]:
        t = push_of(name, (x1, x2), (np.full((2, 1), 2, dtype=np.float32), None))
        assert t.shape == (2, 3)
        assert t.dtype == np.float64
        np.testing.assert_array_equal(t, np.full((2, 3), expected))


def test_no_tangents_and_zero_derivatives_give_none():
    x = np.array([0.5, 1.5])
    assert push_of("multiply", (x, x), (None, None)) is None
    assert push_of("floor", (x,), (x,)) is None
    assert push_of("fill", (x,), (x,), value=2.0) is None
    assert push_of("less", (x, x), (x, x)) is None
    # What an operand without derivative does is nothing; what the other does remains.
    np.testing.assert_array_equal(push_of("copysign", (x, -x), (x, x)), -x)
    assert push_of("unstack", (x,), (None,), axis=0) == (None, None)


def test_python_numbers_and_absent_inputs_stand_still():
    x = np.array([0.5, 1.5])
    np.testing.assert_array_equal(push_of("add", (x, 2), (x, None)), x)
    np.testing.assert_array_equal(push_of("where", (x > 1, 2.0, x), (None, None, x)), [0.5, 0])
    np.testing.assert_array_equal(push_of("clip", (x, None, 1.0), (x, None, None)), [0.5, 0])


def test_an_undefined_derivative_is_refused():
    x = np.array([0.5, 1.5])
    with pytest.raises(NotImplementedError, match=r"nextafter.*x1.*not defined"):
        push_of("nextafter", (x, x), (x, None))
    with pytest.raises(NotImplementedError, match=r"unique_values.*not defined"):
        push_of("unique_values", (x,), (x,))
    with pytest.raises(NotImplementedError, match=r"take.*indices.*not implemented"):
        push_of("take", (x, np.array([0])), (None, x), axis=0)


def test_a_missing_forward_rule_is_refused(scratch):
    def rule(xp, g):
        return g

    primitive = Primitive("odd", ["x", "y"], {"x": rule, "y": rule})
    x = np.array([0.5, 1.5])
    with pytest.raises(NotImplementedError, match=r"odd.*x.*not implemented"):
        push(XP, primitive, (x, x), {}, x, (x, None))
    assert declaration(primitive, "x") is NOT_IMPLEMENTED


def test_declarations_among_forward_rules(scratch):
    def rule(xp, g):
        return g

    primitive = Primitive(
        "odd",
        ["x", "y", "z"],
        {"x": rule, "y": rule, "z": UNDEFINED},
        jvps={"x": lambda xp, t: xp.multiply(t, 2), "y": ZERO},
    )
    x = np.array([0.5, 1.5])
    np.testing.assert_array_equal(push(XP, primitive, (x, x, x), {}, x, (x, x, None)), 2 * x)
    assert push(XP, primitive, (x, x, x), {}, x, (None, x, None)) is None
    with pytest.raises(NotImplementedError, match=r"odd.*z.*not defined"):
        push(XP, primitive, (x, x, x), {}, x, (x, x, x))
    assert [declaration(primitive, name) for name in "xyz"] == [None, ZERO, UNDEFINED]


def test_where_forward_rules_come_from():
    assert declaration(PRIMITIVES["exp"], "x") is None
    assert declaration(PRIMITIVES["matmul"], "x1") is None
    assert declaration(PRIMITIVES["sort"], "x") is None
    assert declaration(PRIMITIVES["floor"], "x") is ZERO
    assert declaration(PRIMITIVES["nextafter"], "x1") is UNDEFINED
