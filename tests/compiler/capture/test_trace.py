"""Tracing: every use of an array is written down, and what a replay can't do again is an error."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.bits import same_bits
from tests.compiler.recorded import names, trace_arrays
from wengert.autograd import checkpoint
from wengert.backends import Backend
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.recorded import Arithmetic
from wengert.compiler.capture.trace import Trace
from wengert.compiler.capture.traced import current
from wengert.compiler.capture.traced_number import TracedNumber
from wengert.compiler.program import Program
from wengert.tape.tensor import untracked

F = wg.nn.functional

POINT = np.array([[0.5, -1.25, 2.0], [0.75, 1.5, -0.5]])
OTHER = np.array([[-2.0, 0.25, 0.125], [1.0, -0.75, 3.0]])


def host(x: Any, backend: Backend) -> Any:
    array = x.detach()._array if isinstance(x, wg.Tensor) else x
    return backend.to_numpy(backend.array(array)) if hasattr(array, "dtype") else array


def replays(
    backend: Backend,
    function: Callable[..., Any],
    *points: tuple[Any, ...],
    requires_grad: bool = True,
) -> Program:
    """Trace a function at the first point; its program gives at every point what it gives."""

    def raws(point: tuple[Any, ...]) -> list[Any]:
        return [backend.from_numpy(np.array(x)) for x in point]

    program = trace_arrays(function, *raws(points[0]), requires_grad=requires_grad)
    assert current() is None
    for point in points:
        inputs = [untracked(x) for x in raws(point)]
        for x in inputs:
            x.requires_grad = requires_grad
        expected = function(*inputs)
        expected = expected if isinstance(expected, tuple | list) else (expected,)
        found = program(*raws(point))
        assert len(found) == len(expected)
        for x, y in zip(found, expected, strict=True):
            assert same_bits(host(x, backend), host(y, backend))
    return program


# -- what is recorded ------------------------------------------------------------------------------


def _assigned(x: Any) -> Any:
    y = x * 1.5
    y[0, :] = x[1, :]
    y[:, 1] += 2.0
    y *= x
    return y


def _mixed(x: Any) -> Any:
    index = wg.argmax(x, axis=1)
    return wg.take_along_axis(x, index[:, None], axis=1), index


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "shapes": lambda x: wg.permute_dims(wg.expand_dims(wg.reshape(x, (3, 2)), axis=0), (2, 0, 1)),
    "views": lambda x: wg.squeeze(wg.flip(x.mT, axis=0)[:2, None], axis=1),
    "joined": lambda x: (wg.concat([x, x * 2], axis=1), wg.stack([x, -x]), wg.tile(x, (2, 1))),
    "parted": lambda x: wg.unstack(x, axis=1),
    "indices": lambda x: (x[0], x[:, ::2], x[..., -1], x[::-1], x[1, 2]),
    "index arrays": lambda x: x[wg.asarray([1, 0, 1]), :][:, wg.asarray([2, 0])],
    "taken": lambda x: wg.take(x, wg.asarray([2, 2, 0]), axis=1),
    "computed indices": _mixed,
    "assigned": _assigned,
    "made": lambda x: x + wg.zeros((2, 3)) + wg.arange(3.0) + wg.full((2, 1), 0.5) + wg.eye(2, 3),
    "made alike": lambda x: x * wg.ones_like(x) + wg.full_like(x, 0.25) + wg.zeros_like(x),
    "constants": lambda x: x + wg.asarray([[1.0], [2.0]], dtype=x.dtype),
    "dtypes": lambda x: wg.astype(wg.astype(x, wg.float32) * 1.1, x.dtype),
    "copies": lambda x: (x.clone(), wg.asarray(x, copy=True), wg.positive(x)),
    "several": lambda x: wg.linalg.qr(x.mT)[1],
    "a shape in Python": lambda x: x / x.shape[0] + len(x) + x.ndim + x.size,
}


@pytest.mark.whole
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(backend: Backend, name: str) -> None:
    wg.set_default_dtype(wg.float64)
    try:
        program = replays(backend, FUNCTIONS[name], (POINT,), (OTHER,))
    finally:
        wg.set_default_dtype(wg.float32)
    assert program.instructions


def test_checkpoints(backend: Backend) -> None:
    def function(x: Any) -> Any:
        loss = wg.sum(checkpoint(lambda x: wg.exp(wg.sin(x)), x))
        return loss, *wg.autograd.grad(loss, [x])

    program = replays(backend, function, (POINT,), (OTHER,))
    assert names(program).count("sin") == 2


# -- what an instruction knows ---------------------------------------------------------------------


def test_lines() -> None:
    def function(x: Any) -> Any:
        y = wg.sin(x)
        z = wg.exp(y)
        return wg.autograd.grad(wg.sum(z), [x])

    first = function.__code__.co_firstlineno
    program = trace_arrays(function, POINT, requires_grad=True)
    at = {step.name: (step.line.number - first, step.line.stage) for step in program.instructions}
    assert at["sin"] == (1, "forward")
    assert at["exp"] == (2, "forward")
    assert at["cos"] == (1, "backward")
    assert all(step.line.file == __file__ for step in program.instructions)


# -- live numbers ----------------------------------------------------------------------------------


def with_number(
    function: Callable[[Any, Any], Any], number: Any, array: Any = POINT
) -> tuple[Trace, Program]:
    trace = Trace()
    with trace.running():
        answer = function(untracked(trace.input(array)), trace.input(number))
        return trace, trace.program([getattr(answer, "_array", answer)])


@pytest.mark.parametrize(
    "function",
    [
        lambda a: int(a),
        lambda a: float(a),
        lambda a: complex(a),
        lambda a: [10, 20, 30][a],
        lambda a: range(a)[-1],
        lambda a: hash(a),
        lambda a: math.sqrt(a),
        lambda a: round(a / 2),
        lambda a: math.floor(a),
        lambda a: f"{a}",
        lambda a: f"{a:.2f}",
        lambda a: {2: "two"}[a],
        lambda a: int(a * 2 + 1),
    ],
)
def test_deciding_pins_a_number(function: Any) -> None:
    seen = []
    trace, _ = with_number(lambda x, a: (seen.append(function(a)), x)[1], 2)
    assert list(trace.pinned) == [list(trace.inputs)[1]]
    assert seen == [function(2)]


@pytest.mark.parametrize(
    ("function", "alike", "other"),
    [
        (lambda a: 1 if a > 1 else 2, 3, 1),
        (lambda a: a == 2, 2, -2),
        (lambda a: a != 2, 2, 3),
        (lambda a: a <= 2, 1, 2.5),
        (lambda a: bool(a), -1, 0),
        (lambda a: not a, math.nan, -0.0),
        (lambda a: (a * 2 + 1) % 3 == 2, 5, 4),
        (lambda a: 0 < a < 3, 1, 3),
        (lambda a: 7 // (a - 1) > 1, 3, 1),
        (lambda a: a in (1, 2), 2, 5),
        (lambda a: a == a, 3, math.nan),
        (lambda a: max(a, 1) is a, 3, 0),
    ],
)
def test_comparisons_decide(function: Any, alike: Any, other: Any) -> None:
    seen = []
    trace, _ = with_number(lambda x, a: (seen.append(function(a)), x)[1], 2)
    assert not trace.pinned
    program, outcomes = trace.decisions()
    decided = Arithmetic((), program, outcomes)
    assert decided.fits([2])
    assert decided.fits([alike])
    assert not decided.fits([other])


def test_only_the_numbers_that_decide_are_pinned() -> None:
    trace = Trace()
    with trace.running():
        a, b, c = trace.input(1), trace.input(2), trace.input(3)
        assert isinstance(a + b * c, TracedNumber)
        assert a > 0
        assert int(a + b) > 0
        assert set(trace.pinned) == {a.value, b.value}
        assert c.value not in trace.pinned
        assert not trace.decisions()[1]


# -- random draws ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + wg.randn(2, 3),
        lambda x: x + wg.rand(2, 3) * wg.rand(1, 3),
        lambda x: x * wg.rand_like(x),
        lambda x: F.dropout(x, 0.5, training=True),
        lambda x: x * wg.astype(wg.random.randint(0, 9, (2, 3)), x.dtype),
        lambda x: x[wg.randperm(2)],
        lambda x: wg.bernoulli(wg.clip(x, 0.2, 0.8)),
        lambda x: wg.normal(0.0, 1.0, (2, 3)) * x,
    ],
    ids=["randn", "rand", "rand_like", "dropout", "randint", "randperm"] + ["bernoulli", "normal"],
)
def test_draws_stay_live(backend: Backend, function: Any) -> None:
    """From one seed, runs of the program draw what runs of the function draw."""
    array = backend.from_numpy(POINT)
    wg.manual_seed(11)
    eager = [host(function(untracked(array)), backend) for _ in range(4)]
    wg.manual_seed(11)
    inside = []

    def seen(x: Any) -> Any:
        answer = function(x)
        inside.append(answer._array.inner)
        return answer

    program = trace_arrays(seen, array)
    found = [inside[0], *[program(array)[0] for _ in range(3)]]
    for x, y in zip(eager, found, strict=True):
        assert same_bits(x, host(y, backend))
    assert any(not same_bits(eager[0], x) for x in eager[1:])
    assert any(not step.pure for step in program.instructions)


# -- errors ----------------------------------------------------------------------------------------


def _branch(x: Any) -> Any:
    return x if wg.sum(x) > 0 else -x


def _loop(x: Any) -> Any:
    while wg.max(x) > 1:
        x = x / 2
    return x


ERRORS: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "a branch": (_branch, "branch on the values", "if wg.sum(x) > 0"),
    "a loop": (_loop, "branch on the values", "while wg.max(x) > 1"),
    "item": (lambda x: x * x[0, 0].item(), r"\(item\)", "x[0, 0].item()"),
    "float": (lambda x: x * float(x[0, 0]), r"\(float\)", "float(x[0, 0])"),
    "int": (lambda x: x * int(x[0, 0]), r"\(int\)", "int(x[0, 0])"),
    "tolist": (lambda x: x.tolist(), r"\(tolist\)", "x.tolist()"),
    "printing": (lambda x: str(x), "values of a Tensor are read", "str(x)"),
    "formatting": (lambda x: f"{x[0, 0]:.3f}", "values of a Tensor are read", ":.3f"),
    "numpy": (lambda x: x.numpy(), r"off the tape \(numpy\)", "x.numpy()"),
    "detached numpy": (lambda x: x.detach().numpy(), r"off the tape \(numpy\)", "detach().numpy()"),
    "array": (lambda x: x.array, r"raw array \(\.array\)", "x.array"),
    "np.asarray": (lambda x: np.asarray(x), r"\(np\.asarray\)", "np.asarray(x)"),
    "a mask": (lambda x: x[x > 0], "indexing with a mask", "x[x > 0]"),
    "nonzero": (lambda x: wg.nonzero(x)[0], "what nonzero gives", "wg.nonzero(x)"),
    "unique": (lambda x: wg.unique_values(x), "what unique_values gives", "unique_values(x)"),
    "an index": (lambda x: range(10)[wg.argmax(x)], "values of a Tensor", "range(10)[wg.argmax"),
    "repeats": (
        lambda x: wg.repeat(x[0], wg.argsort(x[0])),
        "values of a Tensor are read",
        "wg.repeat",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_the_line(backend: Backend, name: str) -> None:
    function, message, text = ERRORS[name]
    with pytest.raises(TraceError, match=message) as caught:
        trace_arrays(function, backend.from_numpy(POINT))
    assert "test_trace.py, line " in str(caught.value)
    assert text in str(caught.value)


def test_a_value_kept_after_the_trace(backend: Backend) -> None:
    kept = []

    def function(x: Any) -> Any:
        kept.append(wg.sin(x))  # kept here
        return x * 2

    trace_arrays(function, backend.from_numpy(POINT))
    uses: list[Callable[[Any], Any]] = [
        lambda y: y + 1,
        lambda y: wg.exp(y),
        lambda y: y[0],
        lambda y: wg.sum(y, axis=0),
        lambda y: wg.concat([y, y]),
        lambda y: y.item() if y.size == 1 else y.tolist(),
        lambda y: repr(y),
    ]
    for use in uses:
        with pytest.raises(TraceError, match="which has ended") as caught:
            use(kept[0])
        assert "# kept here" in str(caught.value)


def test_a_number_kept_after_the_trace() -> None:
    kept = []
    with_number(lambda x, a: (kept.append(a * 2), x)[1], 0.5)
    for use in (lambda a: a + 1, lambda a: a > 1, float):
        with pytest.raises(TraceError, match="which has ended"):
            use(kept[0])
