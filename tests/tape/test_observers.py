"""Who observes is told of each operation and of each value that leaves, in one thread or task."""

import ast
import threading
from contextvars import copy_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import operation
from wengert.tape.observers import Observer, exchange, observed_by, observing
from wengert.tape.tensor import Tensor

PACKAGE = Path(wg.__file__).parent


class Seen(Observer):
    """What was told, in order."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def operated(self, name: str, primitive: Any, inputs: Any, results: Any) -> None:
        tracked = [result.requires_grad for result in results]
        self.told.append((name, [tuple(x.shape) for x in inputs], tracked))

    def left(self, tensor: Tensor, way: str) -> None:
        self.told.append((way, tensor.shape))

    def assigned(self, tensor: Tensor, result: Tensor) -> None:
        self.told.append(("assigned", tensor.shape))


def Double(ctx: Any, x: Tensor) -> Tensor:
    float(x[0, 0])
    return x * 2


A = np.asarray([[1.0, 2.0], [3.0, 5.0]])
S = (2, 2)
#: Each way in which a function calls its primitive.
CALLS = {
    "unary": (lambda x: wg.exp(x), [("exp", [S])]),
    "binary": (lambda x: wg.multiply(x, x), [("multiply", [S, S])]),
    "a number on the right": (lambda x: x * 2, [("multiply", [S])]),
    "a number on the left": (lambda x: 2 - x, [("subtract", [S])]),
    "an array": (lambda x: wg.add(x, A), [("add", [S])]),
    "one input and parameters": (lambda x: wg.sum(x, axis=0), [("sum", [S])]),
    "several inputs": (lambda x: wg.concat([x, x, wg.tensor(A)]), [("concat_arrays", [S, S, S])]),
    "several results": (lambda x: wg.linalg.eigh(x), [("linalg.eigh", [S])]),
    "linear": (lambda x: wg.nn.functional.linear(x, x, x[0]), [("getitem", [S]), "linear"]),
    "cross entropy": (lambda x: wg.nn.functional.cross_entropy(x, wg.tensor([0, 1])),
        [("softmax_cross_entropy", [S, (2,)])]),
    "a Function": (operation(Double, lambda ctx, g: g * 2), [("Double", [S])]),
}  # fmt: skip


@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize("name", CALLS)
def test_every_call_is_told_once(name: str, tracked: bool) -> None:
    function, expected = CALLS[name]
    x = wg.tensor(A, requires_grad=tracked)
    with observed_by(seen := Seen()):
        function(x)
    for told, want in zip(seen.told, expected, strict=True):
        assert told[: len(want)] == want if isinstance(want, tuple) else told[0] == want
        assert set(told[2]) == {tracked}


def test_who_records_tells() -> None:
    silent = []
    for path in PACKAGE.rglob("*.py"):
        if "from wengert.tape.record import" not in path.read_text():
            continue
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef) or function.name == "_several":
                continue
            called = {
                call.func.id
                for call in ast.walk(function)
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
            }
            if called & {"record", "record_several"} and "observe" not in called:
                silent.append(f"{path}: {function.name}")
    assert not silent


def test_values_that_leave_are_told_once() -> None:
    x = wg.tensor(2.0)
    answers = {
        "item": x.item,
        "__float__": lambda: float(x),
        "__bool__": lambda: bool(x),
        "tolist": x.tolist,
        "array": lambda: x.array,
        "__array__": lambda: np.asarray(x),
        "numpy": x.numpy,
        "detach": x.detach,
    }
    for way, leave in answers.items():
        with observed_by(seen := Seen()):
            leave()
        assert seen.told == [(way, ())]


def test_a_way_out_that_raises_is_told() -> None:
    x = wg.tensor([2.0, 3.0], requires_grad=True)
    with observed_by(seen := Seen()), pytest.raises(RuntimeError):
        x.numpy()
    assert seen.told == [("numpy", (2,))]


def test_a_change_in_place_is_told() -> None:
    x = wg.tensor([1.0, 2.0])
    with observed_by(seen := Seen()):
        x += 1
    assert [told[0] for told in seen.told] == ["add", "assigned"]


def test_what_an_observer_does_is_told_to_nobody() -> None:
    class Busy(Seen):
        def operated(self, name: str, *what: Any) -> None:
            super().operated(name, *what)
            wg.exp(what[1][0])

    with observed_by(busy := Busy()), observed_by(other := Seen()):
        wg.sin(wg.tensor([1.0]))
    assert [told[0] for told in busy.told] == [told[0] for told in other.told] == ["sin"]


def test_another_thread_is_not_observed() -> None:
    thread = threading.Thread(target=lambda: wg.exp(wg.tensor([1.0])))
    with observed_by(seen := Seen()):
        thread.start()
        thread.join()
    assert not seen.told and not observing


def test_one_observer_instead_of_another() -> None:
    one, other = Seen(), Seen()
    exchange(None, one)
    exchange(one, other)
    wg.exp(wg.tensor([1.0]))
    exchange(other, one)
    wg.sin(wg.tensor([1.0]))
    exchange(one, None)
    assert [told[0] for told in other.told] == ["exp"]
    assert [told[0] for told in one.told] == ["sin"]
    assert not observing


def test_in_a_copied_context_an_observer_that_has_ended_begins_no_more() -> None:
    one, other = Seen(), Seen()

    def inside() -> None:
        exchange(None, other)
        exchange(other, None)

    exchange(None, one)
    context = copy_context()
    exchange(one, None)
    context.run(inside)
    assert not observing
