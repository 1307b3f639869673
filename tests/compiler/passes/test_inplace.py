"""Updates in place: of what nobody else looks at, and after all that may fail."""

import copy
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.compiler.passes.inplace import writable

#: Above the number of elements up to which parameters are joined in one line.
WIDTH = 96

OPTIMISERS: dict[str, Any] = {
    "SGD": lambda ps: wg.optim.SGD(ps, lr=0.1),
    "momentum": lambda ps: wg.optim.SGD(ps, lr=0.1, momentum=0.9),
    "dampening": lambda ps: wg.optim.SGD(ps, lr=0.1, momentum=0.9, dampening=0.5),
    "Nesterov": lambda ps: wg.optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "Adam": lambda ps: wg.optim.Adam(ps, lr=0.01),
    "AMSGrad": lambda ps: wg.optim.Adam(ps, lr=0.01, amsgrad=True, weight_decay=0.1),
    "AdamW": lambda ps: wg.optim.AdamW(ps, lr=0.01),
}


class Training:
    """A network of two large layers, one of them used twice, a small one, and its optimiser."""

    def __init__(self, optimiser: str, **options: Any) -> None:
        wg.manual_seed(0)
        self.options = options
        self.weights = [
            (wg.randn(*shape) * 0.1).requires_grad_()
            for shape in ((WIDTH, WIDTH), (WIDTH, WIDTH + 4), (WIDTH + 4, 3))
        ]
        self.optimiser = OPTIMISERS[optimiser](self.weights)

    def step(self, x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
        first, second, last = self.weights
        if not self.options.get("accumulates"):
            self.optimiser.zero_grad()
        x = wg.tanh(wg.tanh(x @ first) @ first.mT)
        if self.options.get("dropout"):
            x = wg.nn.functional.dropout(x, 0.2)
        loss = wg.nn.functional.cross_entropy(wg.tanh(x @ second) @ last, y)
        loss.backward()
        if self.options.get("clips"):
            wg.nn.utils.clip_grad_norm_(self.weights, 0.01)
        self.optimiser.step()
        if self.options.get("twice"):
            (first * first).sum().backward()
            self.optimiser.step()
        return loss

    def compiled(self) -> Any:
        step = wg.compile(self.step, check=0)
        for i in range(4):
            step(*batch(i))
        return step

    def held(self) -> list[Any]:
        """All that steps replace: parameters and what the optimiser keeps."""
        kept = [x for state in self.optimiser.state.values() for x in state.values()]
        return [*[p._array for p in self.weights], *kept]

    def state(self) -> list[Any]:
        """All that steps change, copied."""
        grads = [p.grad._array for p in self.weights if p.grad is not None]
        return [np.array(x) for x in (*self.held(), *grads) if x is not None]

    def places(self) -> list[int]:
        """Where in memory the large arrays are."""
        return [x.ctypes.data for x in self.held() if np.size(x) > WIDTH * WIDTH // 2]


def batch(i: int) -> tuple[wg.Tensor, wg.Tensor]:
    rng = np.random.default_rng(i)
    return wg.asarray(rng.normal(size=(5, WIDTH))), wg.asarray(rng.integers(0, 3, 5))


def same(found: list[Any], expected: list[Any]) -> bool:
    return [x.tobytes() for x in found] == [x.tobytes() for x in expected]


def eagerly(optimiser: str, steps: int, **options: Any) -> Training:
    training = Training(optimiser, **options)
    for i in range(steps):
        training.step(*batch(i))
    return training


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Any:
    """As in a program of one thread, where warnings are shown."""
    monkeypatch.setattr(sys, "_current_frames", dict.fromkeys([0]).copy)
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("ignore")
        yield


WAYS = [{}, *[{way: True} for way in ("accumulates", "clips", "dropout", "twice")]]


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_steps_leave_what_eager_ones_leave_where_it_was(optimiser: str) -> None:
    for options in WAYS:
        training = Training(optimiser, **options)
        step = training.compiled()
        before = training.places()
        for i in range(4, 10):
            step(*batch(i))
        assert training.places() == before
        assert same(training.state(), eagerly(optimiser, 10, **options).state())
        assert "writable(" in step.source


def _graph(training: Training) -> Any:
    first, second, _ = training.weights
    loss = wg.sum((first @ second) ** 2)
    return lambda: [g._array for g in wg.autograd.grad(loss, [first, second], retain_graph=True)]


def _other(training: Training) -> Any:
    other = wg.zeros((WIDTH, WIDTH))
    other._array = training.weights[0]._array
    return lambda: [other._array]


def _kept(*arrays: Any) -> Any:
    return lambda: [getattr(x, "_array", x) for x in arrays]


def _of_state(states: Any) -> list[Any]:
    return [x for state in states for x in state.values() if hasattr(x, "dtype")]


#: Who may hold the array of a parameter, or of the optimiser's state: a function that reads it.
HOLDERS: dict[str, Any] = {
    "detached": lambda t: _kept(t.weights[0].detach()),
    "a view": lambda t: _kept(t.weights[0].detach()[2:, ::3]),
    "transposed": lambda t: _kept(t.weights[1].detach().mT),
    "NumPy's": lambda t: _kept(t.weights[1].detach().numpy()),
    "a view of NumPy's": lambda t: _kept(t.weights[1].detach().numpy()[::-1]),
    "memory": lambda t: _kept(np.asarray(memoryview(t.weights[0]._array))),
    "a broadcast": lambda t: _kept(np.broadcast_to(t.weights[0]._array, (2, WIDTH, WIDTH))),
    "a graph": _graph,
    "another Tensor": _other,
    "state_dict": lambda t: _kept(*_of_state(t.optimiser.state_dict()["state"].values())),
    "the state": lambda t: _kept(*_of_state(t.optimiser.state.values())),
    "a copy": lambda t: _kept(copy.deepcopy(t.weights[0])),
    "gradients": lambda t: _kept(*[p.grad for p in t.weights]),
}


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_what_somebody_holds_stays(optimiser: str) -> None:
    expected = eagerly(optimiser, 9).state()
    for holder in HOLDERS.values():
        training = Training(optimiser)
        step = training.compiled()
        readers = []
        for i in range(4, 9):
            read = holder(training)
            readers.append((read, [np.array(x) for x in read()]))
            step(*batch(i))
        for read, values in readers:
            assert same(read(), values)
        assert same(training.state(), expected)


# -- faults ----------------------------------------------------------------------------------------


def _complain(*of: Any, **options: Any) -> None:
    raise ArithmeticError(of)


_complain.__module__ = "elsewhere"


@contextmanager
def _warned(kind: str, **names: Any) -> Iterator[None]:
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patched:
        warnings.simplefilter(kind)  # type: ignore[arg-type]
        for name, value in names.items():
            patched.setattr(warnings, name, value)
        yield


#: What makes a step fail whose update overflows, and the error; an index makes any step fail.
FAULTS: dict[str, tuple[Any, type[Exception]]] = {
    "an index": (nullcontext, IndexError),
    "errstate raise": (lambda: np.errstate(all="raise"), FloatingPointError),
    "a filter": (lambda: _warned("error"), RuntimeWarning),
    "errstate call": (lambda: np.errstate(all="call", call=_complain), ArithmeticError),
    "showwarning": (lambda: _warned("always", showwarning=_complain), ArithmeticError),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_a_step_that_fails_leaves_what_an_eager_one_leaves(optimiser: str, fault: str) -> None:
    one = Training(optimiser, accumulates=True)
    other = eagerly(optimiser, 4, accumulates=True)
    step = one.compiled()
    handled = fault in ("errstate call", "showwarning")  # whose error is raised, and nothing run
    for training, run in ((one, step), (other, other.step)):
        if fault != "an index":
            # The first update is done then, and a part of the second.
            training.optimiser.param_groups[0]["lr"] = 1e4
            training.weights[1].grad = wg.full((WIDTH, WIDTH + 4), 1e37)
        before = training.state()
        if training is one or not handled:
            x, y = batch(4)
            around, error = FAULTS[fault]
            with around(), pytest.raises(error):
                run(x, wg.asarray([0, 1, 2, 0, 3]) if fault == "an index" else y)
        if handled:
            assert same(training.state(), before)
    assert same(one.state(), other.state())
    for training, run in ((one, step), (other, other.step)):
        training.weights[1].grad = None
        training.optimiser.param_groups[0]["lr"] = 0.1
        run(*batch(5))
    assert same(one.state(), other.state())


def test_an_error_between_two_updates_is_raised() -> None:
    """The function would begin with what has changed."""
    training = Training("momentum")
    step = training.compiled()
    lines = step.source.splitlines()
    last = max(i for i, line in enumerate(lines, 1) if "= np.add(" in line)
    space: dict[str, Any] = {"__name__": "numpy.elsewhere"}
    exec("def fail(): raise MemoryError", space)

    def within(frame: Any, event: str, arg: Any) -> Any:
        if event == "line" and frame.f_lineno == last:
            space["fail"]()
        return within

    before = sys.gettrace()
    sys.settrace(lambda frame, *of: within if "<compiled" in frame.f_code.co_filename else None)
    try:
        with pytest.raises(MemoryError):
            step(*batch(4))
    finally:
        sys.settrace(before)
    assert "eagerly" not in str(step.report)


# -- who else runs ---------------------------------------------------------------------------------


def test_beside_another_thread_nothing_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    training = Training("momentum")
    step = training.compiled()
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        for i in range(4, 8):
            places = training.places()
            step(*batch(i))
            assert set(places).isdisjoint(training.places())
    finally:
        done.set()
        thread.join()
    assert same(training.state(), eagerly("momentum", 8).state())


def test_memory_that_is_not_its_own_is_not_written() -> None:
    """Arrays that are read-only, weakly referred to, or parts of others."""
    alone = np.zeros(1)
    held = [np.ones(4), np.ones((2, 4))[0], np.ones(4), np.ones(4)]
    held[2].flags.writeable = False
    reference = weakref.ref(held[3])
    before = list(map(id, held))
    first, weak = held[0], held[3]  # as the last argument: by one name
    held[0] = held[3] = None
    found = writable(first, held[1], held[2], weak, alone)
    assert [id(x) == y for x, y in zip(found, before, strict=True)] == [True, False, False, False]
    assert found[3] is not reference()
