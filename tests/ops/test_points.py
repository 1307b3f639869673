"""Values and derivatives at hard points, judged by mpmath: `tests.ops.points` says which."""

import re

import numpy as np
import pytest
from hypothesis import settings

import wengert as wg
from tests.ops.points.judge import derivatives, fault
from tests.ops.points.several import COMPLEX_LINES, LINES
from tests.ops.points.table import COMMON, COMPLEX_ROWS, PLANE, ROWS, WIDE
from tests.walking import walk
from wengert.nn import functional as F
from wengert.tape.primitive import PRIMITIVES

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

#: `--hypothesis-profile=wide` looks at more points.
IS_WIDE = settings().max_examples > 100


def word(row):
    """The name of a row's function, without its arguments."""
    return re.split(r"[^\w.]", row.name)[0]


def real_points(row, dtype):
    single = np.finfo(dtype).dtype.type
    everywhere = COMMON + WIDE if IS_WIDE else COMMON[:: 1 if dtype == "float64" else 2]
    if row.at is not None:
        everywhere = row.at
    found = {float(single(s * x)) for x in everywhere for s in (1, -1)}
    found |= {float(single(x)) for x in row.more}
    singular = {float(x) for x in row.singular}
    return sorted(x for x in found if row.low < x < row.high and x not in singular)


def complex_points(row, dtype):
    points = {complex(np.dtype(dtype).type(z)) for z in row.at or PLANE}
    return sorted(
        (z for z in points if np.isfinite(z) and not row.cut(z)), key=lambda z: (z.real, z.imag)
    )


def levels(function, points, dtype, orders):
    """The function and its derivatives by the reverse mode, and their first by the forward one."""
    x = wg.tensor(np.asarray(points, dtype), requires_grad=True)
    level, found, tangents = function(x), [], []

    def slope(x, order):
        level = function(x)
        for _ in range(order):
            if not level.requires_grad:
                return wg.zeros_like(x)
            (level,) = wg.autograd.grad(level, x, wg.ones_like(level), create_graph=True)
        return level

    for order in range(orders + 1):
        found.append(np.asarray(level.detach().numpy()))
        assert found[-1].dtype == dtype
        if order < orders:
            level = slope(x, order + 1)
    _, tangent = wg.func.jvp(function, (x.detach(),), (wg.ones_like(x.detach()),))
    tangents.append(np.asarray(tangent.numpy()))
    return found, tangents[0]


def faults(row, dtype, points):
    found, tangent = levels(row.function, points, dtype, row.orders)
    wrong = []
    for i, x in enumerate(points):
        exact = derivatives(row, x)
        for order, values in enumerate(found):
            # The gradient of a holomorphic function is its derivative's conjugate.
            value = complex(np.conj(values[i])) if order and row.cut else values[i].item()
            why = fault(row, value, exact, x, order, dtype)
            if why:
                wrong.append(f"order {order} at {x!r}: {why}")
        why = fault(row, tangent[i].item(), exact, x, 1, dtype)
        if why:
            wrong.append(f"tangent at {x!r}: {why}")
    return wrong


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("row", [*ROWS, *LINES], ids=lambda row: row.name)
def test_values_and_derivatives_at_hard_points(row, dtype) -> None:
    wrong = faults(row, dtype, real_points(row, dtype))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
@pytest.mark.parametrize("row", [*COMPLEX_ROWS, *COMPLEX_LINES], ids=lambda row: row.name)
def test_values_and_derivatives_in_the_complex_plane(row, dtype) -> None:
    wrong = faults(row, dtype, complex_points(row, dtype))
    assert not wrong, "\n".join(wrong)


#: Lines on the side to which comparisons take nan, as PyTorch's.
STRAIGHT = {
    *("x / 3", "x ** 1", "pow(x, 1)", "xlogy(x, 2.5)"),
    *("F.elu", "F.selu", "F.relu", "F.relu6", "F.leaky_relu, straight"),
    *("F.leaky_relu(-2, x)", "F.leaky_relu(0, x)"),
}


def test_slopes_at_nan_are_nan() -> None:
    def check(row):
        (value, slope), tangent = levels(row.function, [np.nan], "float64", 1)
        assert not np.isnan(value) or np.isnan([slope, tangent]).all()

    walk([(row,) for row in [*ROWS, *LINES] if row.name not in STRAIGHT], check, whole=True)


#: Special functions: libraries' kernels may stand in, and where there are none they are composed.
COMPOSED = {row.name: row for row in ROWS if word(row) in wg.special.__all__}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", COMPOSED)
def test_compositions_at_hard_points(name) -> None:
    pytest.importorskip("array_api_strict")
    row = COMPOSED[name]
    with wg.use_backend("array_api_strict"):
        wrong = faults(row, "float64", real_points(row, "float64"))
    assert not wrong, "\n".join(wrong)


def is_judged_elsewhere(name):
    """Whether a function is exact, gives no derivative, or is a sum or another name of others."""
    primitive = PRIMITIVES.get(name)
    flat = primitive is not None and not primitive.rules
    steps = {"ceil", "floor", "round", "trunc", "sign", "signbit", "nextafter", "copysign"}
    exact = {"abs", "clip", "conj", "imag", "maximum", "minimum", "negative", "positive", "real"}
    written = {"add", "subtract", "multiply", "divide", "floor_divide", "remainder"}  # x / 3
    return flat or name in steps | exact | written | {"gammasgn", "multigammaln", "psi"}


def test_every_function_is_judged() -> None:
    """Those of `special`, elementwise ones and activations: a new one is asked for by its name."""
    judged = {word(row).removeprefix("F.") for row in [*ROWS, *LINES]}
    elementwise = {
        name
        for name in wg.__all__
        if ".elementwise." in getattr(getattr(wg, name), "__module__", "")
    }
    activations = {
        name for name in F.__all__ if getattr(F, name).__module__.endswith(".activation")
    }
    public = {*wg.special.__all__} | elementwise | activations
    missing = sorted(name for name in public - judged if not is_judged_elsewhere(name))
    assert not missing, f"no row in tests/ops/points for {missing}"
