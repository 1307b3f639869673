"""The machine-independent passes: what each does, what it leaves, and what callers get."""

import operator
from typing import Any

import numpy as np
import pytest

from tests.compiler.passes.test_simplify import of
from tests.compiler.recorded import agrees, names, traces
from wengert.backends import Backend, get_backend
from wengert.compiler.passes import optimise, simplify
from wengert.compiler.passes.simplify import LARGEST
from wengert.compiler.program import Instruction, Program, Value

NUMPY = get_backend("numpy")

# -- what callers get ------------------------------------------------------------------------------

OWN = """
xp.multiply(x, 1)
xp.reshape(xp.multiply(x, 1), shape=(6,))
xp.matrix_transpose(xp.expand_dims(xp.multiply(x, xp.ones_like(x)), axis=0))
xp.zeros((2, 3), device=xp.device(x))
xp.reshape(xp.zeros((2, 3), device=xp.device(x)), shape=(6,))
(xp.sin(x), xp.sin(x))
(xp.multiply(x, 1), xp.multiply(x, 1))
((y := xp.sin(x)), xp.multiply(y, 1))
(xp.multiply(y := xp.sin(x), 1), xp.divide(y, 1))
xp.multiply(xp.reshape(x, shape=(6,)), 1)
(xp.exp(xp.sin(x)), xp.sin(x), xp.sin(x))
(xp.reshape(xp.sin(x), shape=(6,)), xp.matrix_transpose(xp.sin(x)))
"""


@pytest.mark.parametrize("text", OWN.strip().splitlines())
def test_outputs_have_memory_of_their_own(text: str) -> None:
    x = np.arange(6.0).reshape(2, 3)
    program = traces(of(text), x)
    better = optimise(program)
    agrees(program, better, NUMPY, x)
    first, second = better(x), better(x)
    held = [x, *better.constants.values(), *first, *second]
    for i, a in enumerate(held):
        assert not any(np.shares_memory(a, b) for b in held[i + 1 :])


def test_numbers_have_no_memory() -> None:
    program = traces(lambda xp, x, a: (a * 1, a * 1, x), np.ones(2), 0.5)
    better = optimise(program)
    assert not better.instructions
    assert better.outputs == (better.inputs[1], better.inputs[1], better.inputs[0])


# -- dead code -------------------------------------------------------------------------------------


def test_draws_stay(backend: Backend) -> None:
    """A generator goes on although nobody looks at what it drew."""

    def function(xp: Any, x: Any) -> Any:
        xp.rand_like(x, dtype=x.dtype)
        xp.rand_like(x, dtype=x.dtype)
        return xp.sin(x)

    program = traces(function, backend.from_numpy(np.ones(3)))
    assert names(optimise(program)) == ["rand_like", "rand_like", "sin"]


# -- common subexpressions -------------------------------------------------------------------------


EQUAL = """
xp.sin(x)
xp.multiply(x, 2.5)
xp.multiply(x, -0.0)
xp.multiply(x, np.nan)
xp.multiply(x, float("nan"))
xp.getitem(x, key=(slice(0, 1), slice(None, None, 2)))
xp.astype(x, np.dtype(np.float32), copy=True)
xp.sum(x, axis=(0, 1), keepdims=True)
xp.asarray([1.0, 2.0, 3.0], device=xp.device(x))
xp.exp(xp.sin(xp.cos(x)))
xp.linalg.qr(x)[0]
"""
DIFFERENT = """
xp.multiply(x, 0.0), xp.multiply(x, -0.0)
xp.add(x, 1), xp.add(x, 1.0)
xp.add(x, 1), xp.add(x, True)
xp.add(x, 1), xp.add(x, 1 + 0j)
xp.subtract(x, 2), xp.subtract(2, x)
xp.sin(x), xp.cos(x)
xp.sum(x, axis=0), xp.sum(x, axis=1, keepdims=True)
xp.sum(x, axis=0), xp.prod(x, axis=0)
xp.astype(x, np.dtype(np.float32)), xp.astype(x, np.dtype(np.float16))
xp.getitem(x, key=(slice(0, 1),)), xp.getitem(x, key=(slice(1, 2),))
xp.rand_like(x, dtype=x.dtype), xp.rand_like(x, dtype=x.dtype)
"""
POINT = np.arange(1.0, 7).reshape(2, 3)


@pytest.mark.parametrize("text", EQUAL.strip().splitlines())
def test_equal_calls_are_one(text: str) -> None:
    program = traces(of(f"xp.add({text}, {text})"), POINT)
    once, better = traces(of(text), POINT), simplify(program)
    assert len(better.instructions) + len(better.constants) == len(once.instructions) + 1
    agrees(program, better, NUMPY, POINT - 1)


@pytest.mark.parametrize("pair", DIFFERENT.strip().splitlines())
def test_different_calls_are_two(pair: str) -> None:
    program = traces(of(f"xp.add({pair})"), POINT)
    assert simplify(program) is program


# -- constant folding ------------------------------------------------------------------------------


def test_what_depends_on_nothing_is_computed_once(backend: Backend) -> None:
    at = np.arange(3.0)
    held = backend.from_numpy(np.arange(1.0, 4.0))

    def function(xp: Any, x: Any) -> Any:
        row = xp.expand_dims(xp.exp(held), axis=0)
        grid = xp.arange(3, dtype=x.dtype, device=xp.device(x))
        return xp.multiply(xp.add(x, row), xp.add(grid, xp.full_like(x, 0.5)))

    program = traces(function, backend.from_numpy(at))
    better = optimise(program)
    assert names(better) == ["add", "multiply"]
    assert len(better.constants) == 2
    agrees(program, better, backend, at)


def test_python_numbers_are_folded_where_they_are_used() -> None:
    x, half, whole = Value((2,), np.dtype(float)), Value(None, float), Value(None, float)
    out = Value((2,), np.dtype(float))
    steps = (
        Instruction("number.truediv", operator.truediv, (1, 2), {}, (half,)),
        Instruction("number.add", operator.add, (half, 0.25), {}, (whole,)),
        Instruction("multiply", np.multiply, (x, whole), {}, (out,)),
    )
    better = simplify(Program((x,), steps, (out, half)))
    assert names(better) == ["multiply"]
    assert better.instructions[0].operands == (x, 0.75)
    assert better.outputs == (out, 0.5)


def test_numbers_that_are_inputs_are_not_folded() -> None:
    program = traces(lambda xp, x, a: xp.multiply(x, a + 1), np.ones(2), 0.5)
    assert simplify(program) is program


def test_large_results_are_not_kept() -> None:
    for length, left in ((LARGEST, 1), (LARGEST + 1, 3)):
        made = of(f"xp.multiply(x, xp.sum(xp.zeros(({length},), device=xp.device(x))))")
        assert len(simplify(traces(made, np.ones(2))).instructions) == left
