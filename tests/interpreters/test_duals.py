"""Duals: every function of the table on Tensors with tangents, in both modes' nests."""

import itertools
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.ops.set
from tests.catalogue.table import TRACKED, entry_on
from tests.ops.cases import SCALE, apply, check_examples, function, inexact_results, leaves, tensor
from wengert.backends import get_backend
from wengert.interpreters.duals import Dual, declaration, push
from wengert.tape.primitive import NOT_IMPLEMENTED, PRIMITIVES, UNDEFINED, ZERO, Primitive
from wengert.tape.tensor import Tensor
from wengert.testing.problem import values

EXAMPLES = {"numpy": 8, "torch": 3, "cupy": 3}


def directions(case: Any, seed: int) -> tuple[Tensor, ...]:
    """A random tangent for each input of a call."""
    random = np.random.default_rng(seed)
    drawn = [random.standard_normal(x.shape) for x in case.inexact()]
    return tuple(
        tensor(d + 1j * random.standard_normal(x.shape) if x.dtype.kind == "c" else np.asarray(d))
        for d, x in zip(drawn, case.inexact(), strict=True)
    )


def inner(xs: Any, ys: Any) -> Any:
    """A real number of two lists of Tensors, and the sum of what was added up for it."""
    parts = [wg.real(wg.sum(wg.conj(x) * y)) for x, y in zip(xs, ys, strict=True)]
    sizes = [np.sum(abs(values(x)) * abs(values(y))) for x, y in zip(xs, ys, strict=True)]
    return sum(part.item() for part in parts), sum(map(float, sizes))


@pytest.mark.parametrize(("name", "kind"), TRACKED)
def test_modes_nest(name, kind, backend):
    """Reverse over forward is forward over reverse, since the second derivative is symmetric.

    And forward over forward is its product with two directions.
    """
    entry = entry_on(name, backend.name)
    if backend.name not in EXAMPLES and SCALE <= 1:
        pytest.skip("rules and kernels are tested on it alone; the wide profile runs it")

    def check(case):
        def total(*inputs):
            outs = inexact_results(apply(function(name, entry), case, inputs))
            # Weights of size 1, and of another phase for each element.
            weights = [wg.asarray(np.exp(1j * np.arange(y.size))).reshape(y.shape) for y in outs]
            return sum(wg.sum(wg.real(y * w)) for y, w in zip(outs, weights, strict=True))

        primals, first, second = leaves(case), directions(case, 0), directions(case, 1)
        if not primals or not total(*primals).requires_grad:
            return
        primals, every = tuple(x.detach() for x in primals), tuple(range(len(primals)))

        def along(*both):
            inputs, tangents = both[: len(primals)], both[len(primals) :]
            return wg.jvp(total, inputs, tangents)[1]

        gradient, pushed = wg.jvp(wg.grad(total, every), primals, first)
        found = wg.grad(along, range(2 * len(primals)))(*primals, *first)
        for ours, theirs in zip(found, [*pushed, *gradient], strict=True):
            scale = max(1.0, float(np.max(abs(values(theirs)), initial=0.0)))
            np.testing.assert_allclose(values(ours), values(theirs), 1e-9, 1e-11 * scale)
        twice = wg.jvp(lambda *inputs: along(*inputs, *first), primals, second)[1].item()
        expected, size = inner(pushed, second)
        assert abs(twice - expected) <= 1e-9 * (1 + size)

    check_examples(EXAMPLES.get(backend.name, 1) * 0.5, check, getattr(entry, kind))


# -- one Tensor with a tangent -------------------------------------------------------------------


def double(values: Any, **kwargs: Any) -> Tensor:
    return wg.asarray(np.asarray(values, dtype=float), **kwargs)


def jvp(f: Any, x: Any, t: Any) -> tuple[Tensor, Tensor]:
    """Value and tangent of a function of one argument that returns one Tensor."""
    return wg.jvp(f, (double(x),), (double(t),))


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
    y, one = double(2.0, requires_grad=True), double(1.0)
    found = wg.jvp(lambda y: (y**2, y**3), (y,), (one,))
    for value, tangent, first, second in zip(*found, (4, 12), (2, 12), strict=True):
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


def slope(f: Any) -> Any:
    """The derivative of a function of a number, by forward mode."""
    return lambda x: wg.jvp(f, (x,), (1.0,))[1]


MODES = list(itertools.product([wg.grad, slope], repeat=2))


@pytest.mark.parametrize(("outer", "inner"), MODES)
def test_perturbations_are_not_confused(outer, inner):
    """Siskind and Pearlmutter's: d/dx (x d/dy (x + y)) is 1 at any point, where confusion gives 2.

    And another: d/dx (x d/dy (x y²)) = 4 x y.
    """
    assert outer(lambda x: x * inner(lambda y: x + y)(1.0))(3.0) == 1
    assert outer(lambda x: x * inner(lambda y: x * y**2)(5.0))(3.0) == 2 * 2 * 3 * 5
    # The inner function is constant in its own argument, or in the outer one.
    assert outer(lambda x: x * inner(lambda y: x)(1.0))(3.0) == 0
    assert outer(lambda x: x * 0 + inner(lambda y: y**2)(1.0))(3.0) == 0
    # The inner derivative is taken at the outer argument: (x · 3 x²)' = 9 x²
    assert outer(lambda x: x * inner(lambda y: y**3)(x))(2.0) == 36


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
