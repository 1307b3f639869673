"""Negations that other operations take up: the same bits, by fewer calls."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.bits import same_bits
from tests.compiler.emitted import check_emitted
from tests.compiler.recorded import names, trace_arrays
from wengert.backends import get_backend
from wengert.compiler.emission.emit import emit
from wengert.compiler.passes import dead, optimise
from wengert.compiler.passes.signs import signs

NUMPY = get_backend("numpy")

#: What signs go wrong at: also sums that cancel.
SPECIAL = np.array([-0.0, 0.0, np.nan, np.inf, -np.inf, -2.25, 3.0, 5e-324, 1.7e308])
X, Y = (x.reshape(-1) for x in np.meshgrid(SPECIAL, SPECIAL))

Function = Callable[[Any, Any], Any]


def _twice(negated: Any, y: Any) -> Any:
    return wg.subtract(wg.add(y, negated), wg.exp(negated))


def _negative(x: Any) -> Any:
    return wg.negative(x)


def _both(x: Any) -> Any:
    """A value and its negation, as the two operands of a difference give their gradients."""
    return wg.exp(x) * wg.exp(wg.negative(x))


#: How many negations stay.
CASES: dict[str, tuple[int, Function]] = {
    "x + -y": (0, lambda x, y: wg.add(x, -y)),
    "-x + y": (0, lambda x, y: wg.add(-x, y)),
    "-x + -y": (1, lambda x, y: wg.add(-x, -y)),
    "x - -y": (0, lambda x, y: wg.subtract(x, -y)),
    "-x - y": (1, lambda x, y: wg.subtract(-x, y)),
    "-x - -y": (1, lambda x, y: wg.subtract(-x, -y)),
    "-x * -y": (0, lambda x, y: wg.multiply(-x, -y)),
    "-x * y": (1, lambda x, y: wg.multiply(-x, y)),
    "-x * y + x": (0, lambda x, y: wg.add(wg.multiply(-x, y), x)),
    "y - x / -y": (0, lambda x, y: wg.subtract(y, wg.divide(x, -y))),
    "-(-x * y)": (0, lambda x, y: wg.subtract(x, wg.negative(wg.multiply(x, y)))),
    "-x * 2": (0, lambda x, y: wg.multiply(-x, 2)),
    "0 * -x": (0, lambda x, y: wg.multiply(0, -x)),
    "-x * -0.0": (0, lambda x, y: wg.multiply(-x, -0.0)),
    "-0.5 / -x": (0, lambda x, y: wg.divide(-0.5, -x)),
    "-(x / 3)": (0, lambda x, y: wg.negative(wg.divide(x, 3))),
    "-(0 * x)": (0, lambda x, y: wg.negative(wg.multiply(0, x))),
    "-(-x * 2) + y": (0, lambda x, y: wg.add(wg.negative(wg.multiply(-x, 2)), y)),
    "-(-x / y) alone": (0, lambda x, y: wg.negative(wg.divide(-x, y))),
    "-(-x) alone": (2, lambda x, y: wg.negative(-x)),
    "-(-x * y) and -x * y": (2, lambda x, y: _both(wg.multiply(-x, y))),
    "-(-(-x * y) / y)": (1, lambda x, y: wg.negative(wg.divide(_negative(wg.multiply(-x, y)), y))),
    "square": (0, lambda x, y: wg.square(-x)),
    "1 - -x": (0, lambda x, y: wg.subtract(1, -x)),
    "-x + 0": (0, lambda x, y: wg.add(-x, 0)),
    "a function between": (1, lambda x, y: wg.add(y, wg.exp(-x))),
    "taken twice": (1, lambda x, y: _twice(-x, y)),
    "a negation of less": (1, lambda x, y: wg.multiply(-x[:1], y)),
    "added to more": (0, lambda x, y: wg.add(y, -x[:1])),
}


@pytest.mark.whole
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_negations_that_are_taken_up(name: str, dtype: str) -> None:
    stay, function = CASES[name]
    with np.errstate(all="ignore"):
        x, y = X.astype(dtype), Y.astype(dtype)
        program = dead(trace_arrays(function, x, y))
        made = dead(signs(program))
        assert names(made).count("negative") == stay, str(made)
        for points in ([x, y], [y, x]):
            (expected,), (found,) = program(*points), made(*points)
            assert same_bits(found, expected), str(made)
        check_emitted(program, emit(optimise(program), NUMPY), [[x, y], [y, x]])


def test_constants_that_are_full_of_a_number_are_numbers() -> None:
    x = np.array([1.5, -0.0, np.nan, 1e308])

    def function(x: Any) -> Any:
        full = [wg.full((4,), number, dtype=wg.float64) for number in (-0.0, 0.1, -np.inf)]
        mixed = wg.asarray([0.0, -0.0, 0.0, 0.0], dtype=wg.float64)
        single = wg.full((4,), 0.1, dtype=wg.float32)
        return (
            *[wg.add(y, x) for y in full],
            *[wg.multiply(x, y) for y in full],
            x + mixed, x * single, wg.divide(full[1], x), wg.pow(x, full[1]),
            wg.subtract(x[:1], full[1]),
        )  # fmt: skip

    with np.errstate(all="ignore"):
        program = trace_arrays(function, x)
        made = optimise(program)
        for found, expected in zip(made(x), program(x), strict=True):
            assert same_bits(found, expected)
        check_emitted(program, emit(made, NUMPY), [[x], [-x]])
    # Not zeros of both signs, not of another dtype, not where shape or rounding need the array.
    assert len(made.constants) == 3, str(made)


def test_cotangents_of_parts_are_subtracted_in_place() -> None:
    def function(x: Any, y: Any) -> Any:
        behind, before = x[1:], x[:-1]
        loss = wg.sum((before - behind) * y)
        return loss, *wg.autograd.grad(loss, (x, y))

    points = [[np.arange(5.0) ** k, np.arange(4.0) - k] for k in range(3)]
    program = trace_arrays(function, *points[0], requires_grad=True)
    emitted = emit(optimise(program), NUMPY)
    assert "[1:] -= " in emitted.source, emitted.source
    check_emitted(program, emitted, points)


@pytest.mark.parametrize("reader", [wg.copysign, lambda one, x: wg.where(wg.signbit(x), -one, one)])
def test_signs_of_nan_are_kept_where_they_are_read(reader: Any) -> None:
    def function(x: Any) -> Any:
        return reader(wg.ones_like(x), -(x * 2.0)), reader(wg.ones_like(x), -x * 3.0 + x)

    step = wg.compile(function, check=0)
    for value in (1.0, -2.0, np.nan, -np.nan, 0.0):
        x = wg.asarray([value, -value])
        for found, expected in zip(step(x), function(x), strict=True):
            assert same_bits(found.numpy(), expected.numpy())


UNARY: list[Callable[[Any], Any]] = [
    wg.negative,
    wg.negative,
    wg.negative,
    wg.square,
    lambda x: wg.multiply(x, -2),
    lambda x: wg.divide(0, x),
    lambda x: wg.broadcast_to(wg.sum(x, axis=0, keepdims=True), x.shape),
    lambda x: wg.broadcast_to(wg.sum(x, axis=1, keepdims=True), x.shape),
    lambda x: wg.add(x, -x[:1]),
    lambda x: wg.exp(x) if wg.isdtype(x.dtype, "real floating") else wg.conj(x),
]
BINARY = [wg.add, wg.subtract, wg.multiply, wg.divide]


def _drawn(seed: int) -> Function:
    """A program in which a value may be negated by some, negated back by others, and returned."""

    def function(x: Any, y: Any) -> Any:
        rng = np.random.default_rng(seed)
        made = [x, y]
        for _ in range(12):
            if rng.random() < 0.5:
                made.append(UNARY[rng.integers(len(UNARY))](made[rng.integers(len(made))]))
            else:
                a, b = (made[rng.integers(len(made))] for _ in range(2))
                made.append(BINARY[rng.integers(4)](a, b))
        return tuple([made[2 + i] for i in rng.choice(11, 2, replace=False)] + made[-1:])

    return function


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64"])
def test_negations_in_random_programs(dtype: str) -> None:
    rng = np.random.default_rng(7)
    spared = 0
    for seed in range(60):
        x, y = (rng.choice(SPECIAL, (4, 3)) for _ in range(2))
        if dtype == "int64":
            x, y = rng.integers(1, 9, (2, 4, 3)).astype(float)
        with np.errstate(all="ignore"):
            points = [[x.astype(dtype), y.astype(dtype)], [y.astype(dtype), x.astype(dtype)]]
            if dtype == "complex128":
                points = [[a + 1j * b, b - 1j * a] for a, b in points]
            if dtype == "int64":  # which has no quotients
                program = dead(trace_arrays(lambda x, y: wg.negative(-x * y) - -y, *points[0]))
            else:
                program = dead(trace_arrays(_drawn(seed), *points[0]))
            made = signs(program)
            spared += names(dead(program)).count("negative") - names(dead(made)).count("negative")
            check_emitted(program, emit(optimise(program), NUMPY), points)
            if dtype not in ("float64", "float32"):
                assert made is program  # whose negations mean something else
    assert dtype not in ("float64", "float32") or spared > 30
