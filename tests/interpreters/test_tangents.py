"""What `push` answers: types of tangents, zeros, and what it refuses."""

import numpy as np
import pytest

import wengert.ops.set  # noqa: F401 -- a chapter that is otherwise imported when it is first named
from wengert.backends import get_backend
from wengert.interpreters.duals import declared, push
from wengert.tape.primitive import NOT_IMPLEMENTED, PRIMITIVES, UNDEFINED, ZERO, Primitive

XP = get_backend("numpy").namespace


def pushed(name, inputs, tangents, **parameters):
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
        t = pushed(name, (x1, x2), (np.full((2, 1), 2, dtype=np.float32), None))
        assert t.shape == (2, 3)
        assert t.dtype == np.float64
        np.testing.assert_array_equal(t, np.full((2, 3), expected))


def test_no_tangents_and_zero_derivatives_give_none():
    x = np.array([0.5, 1.5])
    assert pushed("multiply", (x, x), (None, None)) is None
    assert pushed("floor", (x,), (x,)) is None
    assert pushed("fill", (x,), (x,), value=2.0) is None
    assert pushed("less", (x, x), (x, x)) is None
    # What an operand without derivative does is nothing; what the other does remains.
    np.testing.assert_array_equal(pushed("copysign", (x, -x), (x, x)), -x)
    assert pushed("unstack", (x,), (None,), axis=0) == (None, None)


def test_python_numbers_and_absent_inputs_stand_still():
    x = np.array([0.5, 1.5])
    np.testing.assert_array_equal(pushed("add", (x, 2), (x, None)), x)
    np.testing.assert_array_equal(pushed("where", (x > 1, 2.0, x), (None, None, x)), [0.5, 0])
    np.testing.assert_array_equal(pushed("clip", (x, None, 1.0), (x, None, None)), [0.5, 0])


def test_an_undefined_derivative_is_refused():
    x = np.array([0.5, 1.5])
    with pytest.raises(NotImplementedError, match=r"nextafter.*x1.*not defined"):
        pushed("nextafter", (x, x), (x, None))
    with pytest.raises(NotImplementedError, match=r"unique_values.*not defined"):
        pushed("unique_values", (x,), (x,))
    with pytest.raises(NotImplementedError, match=r"take.*indices.*not implemented"):
        pushed("take", (x, np.array([0])), (None, x), axis=0)


def test_a_missing_forward_rule_is_refused(scratch):
    def rule(xp, g):
        return g

    primitive = Primitive("odd", ["x", "y"], {"x": rule, "y": rule})
    x = np.array([0.5, 1.5])
    with pytest.raises(NotImplementedError, match=r"odd.*x.*not implemented"):
        push(XP, primitive, (x, x), {}, x, (x, None))
    assert declared(primitive, "x") is NOT_IMPLEMENTED


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
    assert [declared(primitive, name) for name in "xyz"] == [None, ZERO, UNDEFINED]


def test_where_forward_rules_come_from():
    assert declared(PRIMITIVES["exp"], "x") is None
    assert declared(PRIMITIVES["matmul"], "x1") is None
    assert declared(PRIMITIVES["sort"], "x") is None
    assert declared(PRIMITIVES["floor"], "x") is ZERO
    assert declared(PRIMITIVES["nextafter"], "x1") is UNDEFINED
