"""Results in memory that is there already: the same values, and nobody sees it."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.bits import same_bits
from tests.compiler.recorded import trace_arrays
from wengert.backends import get_backend
from wengert.compiler.capture.trace import Trace
from wengert.compiler.emission.emit import Emitted, emit
from wengert.compiler.passes import optimise
from wengert.compiler.passes.buffers import buffers
from wengert.compiler.program import Program

NUMPY = get_backend("numpy")


def check_emitted(program: Program, emitted: Emitted, points: Sequence[Sequence[Any]]) -> None:
    """Compare with the interpreted program, to the bit, at one point after the other.

    Inputs must not change, earlier results must not either, and no result may have the memory of an
    input, a constant or another result.
    """
    earlier: list[tuple[Any, Any]] = []
    for point in points:
        expected = [np.array(x) for x in program(*[_copy(x) for x in point])]
        given = [_copy(x) for x in point]
        found = emitted.function(*given)
        for at, (x, value) in enumerate(zip(found, expected, strict=True)):
            assert same_bits(x, value), (at, emitted.source)
        for x, y in zip(point, given, strict=True):
            assert same_bits(x, y), emitted.source
        others = [*given, *program.constants.values(), *[x for x, _ in earlier]]
        for at, x in enumerate(found):
            apart = [y for i, y in enumerate(found) if i != at]
            assert not any(_shared(x, y) for y in (*others, *apart)), (at, emitted.source)
        for x, value in earlier:
            assert same_bits(x, value), emitted.source
        earlier += [(x, np.array(x)) for x in found]


def _copy(x: Any) -> Any:
    return x.copy() if isinstance(x, np.ndarray) else x


def _shared(x: Any, y: Any) -> bool:
    arrays = isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    return arrays and np.may_share_memory(x, y)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize(
    ("function", "keys"),
    [
        (lambda x: [x[1:] * x[:-1]], 2),
        (lambda x: [x[1:-1] * 2, x[:1], x[-1:], wg.sin(x[::2]), x[2]], 5),
        (lambda x: [x[None, ::-1] * 3], 1),
        (lambda x: [x[1:], wg.exp(x), x[:-1]], 2),
        (lambda x: [x[:, None] * x[None, :]], 2),
        (lambda x: [x[()], x[...]], 2),
    ],
)
def test_cotangents_of_parts_are_added_in_place(function: Any, keys: int, dtype: str) -> None:
    def gradient(x: Any) -> Any:
        loss = sum(wg.sum(wg.real(part * part)) for part in function(x))
        return loss, *wg.autograd.grad(loss, (x,))

    rng = np.random.default_rng(7)
    points = [[np.asarray(rng.normal(size=6) + 1, dtype)] for _ in range(3)]
    program = optimise(trace_arrays(gradient, points[0][0], requires_grad=True))
    emitted = emit(program, NUMPY)
    check_emitted(program, emitted, points)
    for (x,) in points:
        eager = gradient(wg.asarray(x, requires_grad=True))
        found = zip(emitted.function(x), eager, strict=True)
        assert all(np.array_equal(y, np.asarray(z.detach())) for y, z in found)
    if dtype != "complex128":  # which NumPy rounds otherwise in place
        written = re.findall(r"^    \w+\[.*\] \+?= ", emitted.source, re.MULTILINE)
        assert len(written) == keys, emitted.source
        assert "part(" not in emitted.source, emitted.source


def test_a_part_is_added_to_a_copy_where_the_whole_is_read_later() -> None:
    trace = Trace()
    with trace.running():
        x = trace.input(np.arange(4.0), "x")
        twice = x.trace.apply(NUMPY, "multiply", (x, 2.0), {})
        more = {"key": (slice(1, None),), "own": False}
        part = trace.apply(NUMPY, "getitem", (twice,), {"key": (slice(None, 3),)})
        # The part that is added has the memory of the whole.
        first = trace.apply(NUMPY, "add_part", (twice, part), more)
        second = trace.apply(NUMPY, "add_part", (first, part), more)
        result = trace.apply(NUMPY, "multiply", (first, second), {})
    program = trace.program([result])
    check_emitted(program, emit(program, NUMPY), [[np.arange(4.0)], [np.ones(4)]])


ROWS = [
    (((20, 1, 3), (1, 20, 3)), '"clip")'),
    (((1, 20, 3), (20, 1, 3)), '"clip")'),
    (((1, 5), (200, 5)), '"clip")'),
    (((2, 10, 1, 2, 3), (2, 10, 10, 2, 3)), '"clip")'),
    (((200, 128), (128,)), "[...] = x1"),
    (((3, 1, 3), (1, 3, 3)), ""),  # few
    (((20, 1, 40), (1, 20, 40)), ""),  # long rows
    (((200, 1), (200, 5)), ""),  # a number for each row
    (((5,), (200, 5)), ""),
    (((200, 129), (129,)), ""),
    (((1, 5), (5,)), ""),
    (((3000, 128), (128,)), ""),
]


@pytest.mark.parametrize(("shapes", "way"), ROWS)
def test_short_rows_are_repeated_or_spread(shapes: Any, way: str) -> None:
    rng = np.random.default_rng(5)
    points = [[rng.normal(size=shape) for shape in shapes] for _ in range(2)]

    def function(x: Any, y: Any) -> Any:
        away = x + y
        return wg.sum(wg.exp(away)), wg.exp(x) * y

    program = trace_arrays(function, *points[0])
    emitted = emit(optimise(program), NUMPY)
    for each in ('"clip")', "[...] = x1"):
        assert (each in emitted.source) == (each == way), emitted.source
    check_emitted(program, emitted, points)


def test_a_sign_is_written_beside_its_operand() -> None:
    """Over it NumPy takes ten times as long."""
    for function, places in ((wg.sign, 2), (wg.exp, 1)):
        made = trace_arrays(lambda x, function=function: wg.exp(function(x + 1)), np.ones(3))
        assert len(buffers(optimise(made)).buffers) == places
