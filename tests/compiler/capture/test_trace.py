"""Tracing: every use of an array is written down, and what a replay can't do again is an error."""

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
from wengert.compiler.capture.trace import Trace
from wengert.compiler.capture.traced import current
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
