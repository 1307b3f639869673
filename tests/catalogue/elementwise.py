"""Rows for the elementwise functions of the standard."""

import numpy as np
from hypothesis import strategies as st

import wengert as wg
from tests.catalogue.derived import OFF_AXES, PLANE, smooth
from tests.ops.cases import BOX, Case, Constant, Entry, binary, unary
from wengert.tape.primitive import PRIMITIVES
from wengert.testing import strategies as ws

NONZERO = ws.reals(-3, 3, away_from=(0,), distance=0.25)
POSITIVE = ws.reals(0.25, 3)
#: Between the points of the grid, so never equal to one, nor half-way between two integers.
BETWEEN = BOX.map(lambda x: x + 1 / 32)
#: Never a multiple of a number on the grid.
NO_MULTIPLE = ws.reals(-3, 3).map(lambda x: x + 0.01)


def two(first, second=None, complex_=True, **more):
    return Entry(
        real=binary(first, second),
        complex=binary(first, second, "complex") if complex_ else None,
        **more,
    )


def untracked_one(strategy, **more):
    return Entry(real=strategy, tracked=False, **more)


MIXED = ws.reals(-2, 2, special=(np.inf, -np.inf, np.nan, 0.0, -0.0))
BOOLS = ws.arrays("bool").map(Case)


@st.composite
def directions(draw):
    shape = draw(ws.shapes())
    drawn = [draw(ws.arrays("float64", shape, elements=BOX)) for _ in range(2)]
    return Case(*drawn, draw(ws.arrays("float64", shape, elements=ws.reals(0.5, 2))))


@st.composite
def turns(draw):
    shape = draw(ws.shapes())
    domains = ws.complexes(BOX), ws.complexes(NONZERO)
    return Case(*(draw(ws.arrays("complex128", shape, elements=each)) for each in domains))


@st.composite
def quotients(draw):
    shape, positive = draw(ws.shapes()), ws.reals(0.5, 2)
    drawn = [draw(ws.arrays("float64", shape, elements=positive)) for _ in range(2)]
    return Case(*drawn, ord=draw(ws.reals(-2, 3)))


@st.composite
def pairs(draw, dtype, elements=None, second=None):
    """Two arrays of a dtype that is not differentiated, of shapes that broadcast."""
    shapes = draw(ws.broadcastable(2))
    return Case(
        draw(ws.arrays(dtype, shapes[0], elements=elements)),
        draw(ws.arrays(dtype, shapes[1], elements=elements if second is None else second)),
    )


def comparison(**more):
    few = ws.reals(-1, 1, step=1.0)
    return untracked_one(binary(few) | pairs("int64"), **more)


INTEGERS = pairs("int64", st.integers(0, 40), st.integers(0, 5))
BOOL_PAIRS = pairs("bool")


@st.composite
def powers(draw):
    """Positive bases with any exponent, and any base with a whole one that is kept."""
    if draw(st.booleans()):
        return draw(binary(POSITIVE, BOX, scalars=False))
    x = draw(ws.arrays(elements=NONZERO))
    return Case(x, np.asarray(draw(st.sampled_from([0.0, 1.0, 2.0, 3.0]))).view(Constant))


@st.composite
def complex_powers(draw):
    shapes = draw(ws.broadcastable(2))
    kind = draw(st.sampled_from([("complex128", BOX), ("float64", BOX)]))
    exponent = ws.complexes(BOX) if kind[0] == "complex128" else BOX
    return Case(
        draw(ws.arrays("complex128", shapes[0], elements=OFF_AXES)),
        draw(ws.arrays(kind[0], shapes[1], elements=exponent)),
    )


@st.composite
def scalar_powers(draw, kind="real"):
    """A Python number as the exponent: every one that has a way of its own, and others."""
    whole = [2, 1, 0, 3, -1, -2, 4, 2.0]
    if draw(st.booleans()):
        x = draw(
            ws.arrays(elements=NONZERO)
            if kind == "real"
            else ws.arrays("complex128", elements=OFF_AXES)
        )
        return Case(x, draw(st.sampled_from(whole)))
    x = draw(
        ws.arrays(elements=POSITIVE)
        if kind == "real"
        else ws.arrays("complex128", elements=OFF_AXES)
    )
    return Case(x, draw(st.sampled_from([0.5, 1.5, -0.5, 2.25])))


@st.composite
def clips(draw):
    """Bounds that are absent, numbers or arrays that broadcast."""
    shapes = draw(ws.broadcastable(3))
    x = draw(ws.arrays(shape=shapes[0], elements=BOX))

    def bound(shape, low, high, shift):
        kind = draw(st.integers(0, 3))
        values = ws.reals(low, high).map(lambda v: v + shift)
        if kind == 0:
            return None
        if kind == 1:
            return draw(values)
        return draw(ws.arrays(shape=shape, elements=values))

    low, high = bound(shapes[1], -2, 0.5, 1 / 32), bound(shapes[2], -0.5, 2, 1 / 64)
    if low is not None and high is not None and np.any(low > high):  # array_api_strict refuses it
        high = np.maximum(low, high) + 1 / 64
        high = high if isinstance(high, np.ndarray) else float(high)
    return Case(x, low, high)


def clip_reference(x, low, high):
    out = x
    if low is not None:
        out = np.maximum(out, low)
    if high is not None:
        out = np.minimum(out, high)
    return np.asarray(out)


def power_reference(x, exponent):
    return np.power(x, exponent)


#: Rows of functions of one array follow from their primitives (`tests.catalogue.derived`).
ELEMENTWISE = {
    # arithmetic
    "add": two(BOX),
    "subtract": two(BOX),
    "multiply": two(BOX),
    "divide": two(BOX, NONZERO),
    "floor_divide": two(NO_MULTIPLE, NONZERO, complex_=False,
        differs={"torch-real": "PyTorch has no derivative of floor_divide"}),
    "remainder": two(NO_MULTIPLE, NONZERO, complex_=False),
    "pow": Entry(
        real=powers(),
        complex=complex_powers(),
        differs={"torch-complex": "PyTorch's mixed second derivative is wrong at an exponent of 0"},
    ),
    "slope_of_pow": Entry(real=powers().map(lambda case: Case(*case.args, order=2)),
        complex=complex_powers().map(lambda case: Case(*case.args, order=2)),
        reference=lambda x, y, order: y * (y - 1) * power_reference(x, y - 2)),
    "pow_scalar": Entry(real=scalar_powers(), complex=scalar_powers("complex"), call=wg.pow,
        reference=power_reference, torch="pow", jax="pow"),
    # exponentials
    "logaddexp": two(BOX, complex_=False),
    # trigonometry
    "one_minus_square": smooth(PRIMITIVES["one_minus_square"], reference=lambda x: 1 - x * x),
    "cosine_of": two(NONZERO, BOX, complex_=False, reference=lambda x, y: x / np.hypot(x, y)),
    "direction": Entry(real=directions(), reference=lambda scale, x, norm: scale * x / norm),
    "along": Entry(complex=turns(), reference=lambda scale, x: scale * x / abs(x)),
    "quotient_power": Entry(real=quotients(), reference=lambda x, unit, ord: (x / unit) ** ord),
    # It has a derivative nowhere: only of no elements.
    "sharp": Entry(real=st.just(Case(np.zeros((0, 2)))), reference=np.zeros_like),
    "atan2": two(NONZERO, BOX, complex_=False),
    "hypot": two(NONZERO, BOX, complex_=False),
    "acosh": smooth(
        PRIMITIVES["acosh"],
        differs={"jax-complex": "JAX's derivative has the wrong sign in the left half-plane"},
    ),
    # complex numbers
    "conj": Entry(real=unary(), complex=unary(PLANE, "complex")),
    "imag": Entry(complex=unary(PLANE, "complex")),
    "sign": smooth(
        PRIMITIVES["sign"],
        differs={"jax-complex": "JAX takes the direction of a complex number as constant"},
    ),
    # extrema
    "maximum": two(BOX, BETWEEN, complex_=False),
    "minimum": two(BOX, BETWEEN, complex_=False),
    "clip": Entry(real=clips(), reference=clip_reference),
    # rounding
    "copysign": two(NONZERO, NONZERO, complex_=False),
    "nextafter": two(NONZERO, NONZERO, complex_=False, order=0),
    # not tracked
    **{
        name: comparison()
        for name in (
            "equal",
            "not_equal",
            "less",
            "less_equal",
            "greater",
            "greater_equal",
        )
    },
    **{name: untracked_one(unary(MIXED)) for name in ("isfinite", "isinf", "isnan", "signbit")},
    **{name: untracked_one(BOOL_PAIRS) for name in ("logical_and", "logical_or", "logical_xor")},
    "logical_not": untracked_one(BOOLS),
    **{
        name: untracked_one(BOOL_PAIRS | INTEGERS)
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor")
    },
    "bitwise_invert": untracked_one(BOOLS | ws.arrays("int64").map(Case)),
    "bitwise_left_shift": untracked_one(INTEGERS),
    "bitwise_right_shift": untracked_one(INTEGERS),
}  # fmt: skip
