"""The machine-independent passes: what they leave of a program, and what callers get."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.compiler.recorded import agrees, names, traces
from wengert.backends import Backend, get_backend
from wengert.compiler.passes import optimise, simplify
from wengert.compiler.passes.simplify import LARGEST
from wengert.compiler.program import Instruction, Program, Value

NUMPY = get_backend("numpy")

#: What identities go wrong at: the arrays `x` and `y`, complex `z`, integers `n`, a square `s`.
SPECIAL = np.array([[-0.0, 0.0, np.nan], [np.inf, -np.inf, -2.25]])
DTYPES = {name: np.dtype(name) for name in ("u1", "f2", "f4")}
POINTS = {
    "x": SPECIAL,
    "y": SPECIAL[::-1].copy(),
    "z": np.array([complex(a, b) for a in (-0.0, np.inf, 1.5) for b in (-0.0, np.nan, -2.0)]),
    "n": np.array([1, 2]),
    "s": np.array([[1.0, 2.0], [3.0, 4.0]]),
}

#: Expressions of which nothing is left.
SAME = """
xp.multiply(x, 1)
xp.multiply(1.0, x)
xp.multiply(x, xp.ones_like(x))
xp.multiply(xp.ones_like(x[0]), x)
xp.multiply(x, xp.full_like(x, 1.0))
xp.multiply(xp.broadcast_to(xp.ones_like(xp.sum(x)), (2, 3)), x)
xp.divide(x, 1)
xp.divide(x, xp.ones_like(x))
xp.pow(x, 1)
xp.pow(x, 1.0)
xp.negative(xp.negative(x))
xp.matrix_transpose(xp.matrix_transpose(x))
xp.permute_dims(x, axes=(0, 1))
xp.reshape(x, shape=(2, 3))
xp.reshape(xp.reshape(x, shape=(6,)), shape=(2, 3))
xp.squeeze(xp.expand_dims(x, axis=1), axis=1)
xp.broadcast_to(x, (2, 3))
xp.asarray(x, copy=True)
xp.astype(x, x.dtype, copy=True)
"""
#: Expressions, and the calls that are left of them.
LEFT = """
xp.negative(xp.permute_dims(xp.permute_dims(x[None], axes=(2, 0, 1)), axes=(1, 2, 0)))
    | getitem negative
xp.add(x, xp.negative(y)) | subtract
xp.add(xp.negative(x), y) | subtract
xp.add(xp.negative(x), xp.negative(y)) | negative subtract
xp.subtract(x, xp.negative(y)) | add
xp.multiply(xp.negative(x), xp.negative(y)) | multiply
xp.add(xp.multiply(xp.negative(x), 2), y) | multiply add
xp.subtract(y, xp.divide(0, xp.negative(x))) | divide subtract
xp.sin(xp.negative(xp.multiply(x, 3.0))) | multiply sin
xp.add(x, xp.divide(xp.negative(x), y)) | divide subtract
xp.negative(xp.multiply(xp.negative(x), y)) | multiply
xp.multiply(x, xp.negative(y[0])) | getitem negative multiply
xp.copysign(x, xp.add(x, xp.negative(y))) | negative add copysign
xp.multiply(xp.full_like(x, -0.0), x) | multiply
xp.add_part(x, xp.negative(y[0]), key=(0,), own=False) | getitem subtract_part
xp.add(z, xp.negative(z)) | negative add
xp.add(xp.astype(n, u1), xp.negative(xp.astype(n, u1))) | astype negative add
xp.negative(xp.add(x, 0.0)) | add negative
xp.negative(xp.add(x, 0)) | add negative
xp.negative(xp.add(x, xp.zeros_like(x))) | add negative
xp.negative(xp.multiply(z, 1)) | multiply negative
xp.negative(xp.divide(z, 1)) | divide negative
xp.negative(xp.divide(n, xp.ones_like(n))) | divide negative
xp.negative(xp.multiply(x, 1.5)) | multiply
xp.negative(xp.multiply(x, 0)) | multiply
xp.negative(xp.divide(1, x)) | divide
xp.negative(xp.subtract(0, x)) | subtract negative
xp.negative(xp.pow(1, x)) | pow negative
xp.negative(xp.reshape(x, shape=(3, 2))) | reshape negative
xp.negative(xp.reshape(xp.reshape(x, shape=(6,)), shape=(3, 2))) | reshape reshape negative
xp.negative(xp.broadcast_to(x, (4, 2, 3))) | broadcast_to negative
xp.negative(xp.multiply(x, xp.ones((3, 2, 3), device=xp.device(x)))) | multiply negative
xp.negative(xp.matrix_transpose(s)) | matrix_transpose negative
xp.negative(xp.permute_dims(s, axes=(1, 0))) | permute_dims negative
xp.permute_dims(xp.permute_dims(xp.expand_dims(x, axis=2), axes=(2, 0, 1)), axes=(2, 0, 1))
    | expand_dims permute_dims permute_dims
xp.squeeze(xp.expand_dims(x[:, :1], axis=0), axis=2) | getitem expand_dims squeeze
xp.negative(xp.reshape(xp.matrix_transpose(xp.reshape(x, shape=(3, 2))), shape=(2, 3)))
    | reshape matrix_transpose negative
xp.negative(xp.asarray(x, device="cpu")) | asarray negative
xp.add(xp.multiply(x, 2.5), xp.multiply(x, 2.5)) | multiply add
xp.add(xp.multiply(x, -0.0), xp.multiply(x, -0.0)) | multiply add
xp.add(xp.multiply(x, np.nan), xp.multiply(x, float("nan"))) | multiply add
xp.add(x[:1, ::2], x[:1, ::2]) | getitem add
xp.add(xp.astype(x, f4, copy=True), xp.astype(x, f4, copy=True)) | astype add
xp.add(xp.sum(x, axis=(0, 1)), xp.sum(x, axis=(0, 1))) | sum add
xp.add(xp.asarray([1.0], device=xp.device(x)), xp.asarray([1.0], device=xp.device(x))) | add
xp.add(xp.exp(xp.sin(xp.cos(x))), xp.exp(xp.sin(xp.cos(x)))) | cos sin exp add
xp.add(xp.linalg.qr(x)[0], xp.linalg.qr(x)[0]) | linalg.qr add
xp.add(xp.multiply(x, 0.0), xp.multiply(x, -0.0)) | multiply multiply add
xp.add(xp.add(x, 1), xp.add(x, 1.0)) | add add add
xp.add(xp.add(x, 1), xp.add(x, True)) | add add add
xp.add(xp.add(x, 1), xp.add(x, 1 + 0j)) | add add add
xp.add(xp.subtract(x, 2), xp.subtract(2, x)) | subtract subtract add
xp.add(xp.sin(x), xp.cos(x)) | sin cos add
xp.add(xp.sum(x, axis=0), xp.sum(x, axis=1, keepdims=True)) | sum sum add
xp.add(xp.sum(x, axis=0), xp.prod(x, axis=0)) | sum prod add
xp.add(xp.astype(x, f4), xp.astype(x, f2)) | astype astype add
xp.add(x[:1], x[1:]) | getitem getitem add
xp.add(xp.rand_like(x, dtype=x.dtype), xp.rand_like(x, dtype=x.dtype)) | rand_like rand_like add
"""
ROWS = dict(row.split(" |") for row in LEFT.strip().replace("\n    |", " |").split("\n"))


def of(text: str) -> Callable[..., Any]:
    return eval(f"lambda xp, x, y, z, n, s: {text}", {"np": np} | DTYPES)  # type: ignore[no-any-return]


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("text", SAME.strip().splitlines())
def test_identities_of_floats(backend: Backend, text: str) -> None:
    given = [backend.from_numpy(x) for x in POINTS.values()]
    program = traces(lambda xp, *arrays: xp.negative(of(text)(xp, *arrays)), *given)
    better = optimise(program)
    assert names(better) == ["negative"]
    assert better.instructions[0].operands == (better.inputs[0],)
    agrees(program, better, backend, *POINTS.values())


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("text", ROWS)
def test_what_is_left_of_expressions(text: str) -> None:
    program = traces(of(text), *POINTS.values())
    better = optimise(program)
    assert names(better) == ROWS[text].split()
    if "rand" not in text:
        agrees(program, better, NUMPY, *POINTS.values())
        x, y, *others = POINTS.values()
        agrees(program, better, NUMPY, y, x[:, ::-1].copy(), *others)


TURNED = """
xp.multiply(x, 1)
xp.multiply(x, xp.ones_like(x))
xp.asarray(x, copy=True)
xp.reshape(xp.reshape(x, shape=(-1,)), shape=x.shape)
xp.multiply(xp.negative(x), xp.ones_like(x))
"""


@pytest.mark.parametrize("turn", ["matrix_transpose", "flip"])
def test_what_puts_elements_in_order_stays(turn: str) -> None:
    """NumPy's functions round otherwise on elements that are not in order."""
    at = np.random.default_rng(0).normal(size=(40, 50))
    for text in TURNED.strip().splitlines():
        whole = of(f"xp.sinh((lambda x: {text})(xp.{turn}(x)))")
        program = traces(lambda xp, x: whole(xp, x, *[x] * 4), at)  # noqa: B023
        better = optimise(program)
        given = program.instructions[-1].operands[0], better.instructions[-1].operands[0]
        assert given[0].order == given[1].order
        agrees(program, better, NUMPY, at)


def test_what_is_broadcast_leaves_results_in_order() -> None:
    def function(xp: Any, x: Any, row: Any) -> Any:
        spread = xp.broadcast_to(row, (2, 2))
        first = xp.multiply(xp.add(xp.matmul(x, x), spread), 1)
        return xp.sinh(first), xp.exp(xp.multiply(spread, 1))

    points = np.ones((2, 2)), np.ones(2)
    program = traces(function, *points)
    kept = names(optimise(program))
    assert kept[-3:] == ["add", "sinh", "exp"]
    assert "multiply" not in kept
    agrees(program, optimise(program), NUMPY, *points)


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
(xp.exp(xp.sin(x)), xp.sin(x), xp.sin(x))
(xp.reshape(xp.sin(x), shape=(6,)), xp.matrix_transpose(xp.sin(x)))
"""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("text", OWN.strip().splitlines())
def test_outputs_have_memory_of_their_own(text: str) -> None:
    program = traces(of(text), *POINTS.values())
    better = optimise(program)
    first, second = better(*POINTS.values()), better(*POINTS.values())
    held = [SPECIAL, *better.constants.values(), *first, *second]
    for i, a in enumerate(held):
        assert not any(np.shares_memory(a, b) for b in held[i + 1 :])


def test_draws_stay(backend: Backend) -> None:
    """A generator goes on although nobody looks at what it drew."""
    function = lambda xp, x: [xp.rand_like(x, dtype=x.dtype), xp.sin(x)][1]
    program = traces(function, backend.from_numpy(np.ones(3)))
    assert names(optimise(program)) == ["rand_like", "sin"]


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


def test_python_numbers_are_folded_unless_they_are_inputs() -> None:
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
    program = traces(lambda xp, x, a: xp.multiply(x, a + 1), np.ones(2), 0.5)
    assert simplify(program) is program


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_large_results_are_not_kept() -> None:
    for length, left in ((LARGEST, 1), (LARGEST + 1, 3)):
        made = of(f"xp.multiply(x, xp.sum(xp.zeros(({length},), device=xp.device(x))))")
        assert len(simplify(traces(made, *POINTS.values())).instructions) == left
