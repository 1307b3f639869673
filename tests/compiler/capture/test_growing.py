"""What calls put where optimisers keep things, and where Tensors have been, stays as eagerly."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import wengert as wg

Kept = dict[str, Any]


def _list(kept: Kept, g: Any) -> None:
    held = kept.setdefault("sum", [wg.zeros(2)])
    held[0] = held[0] + g


def _object(kept: Kept, g: Any) -> None:
    kept.setdefault("sum", SimpleNamespace(value=wg.zeros(2))).value += g


def _new(kept: Kept, g: Any) -> None:
    kept["sum"] = (g * 1.0) if "sum" not in kept else kept["sum"] + g


def _pair(kept: Kept, g: Any) -> None:
    kept["sum"] = (g * 1.0,)


def _count(kept: Kept, g: Any) -> None:
    kept["count"] = kept.get("count", 0) + 1


def _flag(kept: Kept, g: Any) -> None:
    kept["odd"], kept["sum"] = not kept.get("odd", False), g * 1.0


def _less(kept: Kept, g: Any) -> None:
    if kept.pop("sum", None) is None:
        kept["sum"] = g * 1.0


def _seen(x: Any) -> Any:
    if isinstance(x, dict):
        return {key: _seen(part) for key, part in x.items()}
    if isinstance(x, list | tuple):
        return [type(x).__name__, *map(_seen, x)]
    return x.tolist() if hasattr(x, "tolist") else _seen(vars(x)) if hasattr(x, "value") else x


@pytest.mark.parametrize("add", [_list, _object, _new, _pair, _count, _flag, _less])
def test_what_an_optimizer_keeps(add: Callable[[Kept, Any], None]) -> None:
    def run(*, compiled: bool) -> list[Any]:
        p = wg.nn.Parameter(wg.ones(2))
        optimizer = wg.optim.SGD([p], lr=0.1)

        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = (p * x).sum()
            loss.backward()
            optimizer.step()
            add(optimizer.state.setdefault(p, {}), p.grad)
            return loss

        call, seen = wg.compile(step) if compiled else step, []
        for i in range(6):
            loss = call(wg.asarray([1.0 + i, 2.0]))
            seen.append((loss.tolist(), p.tolist(), _seen(optimizer.state[p])))
        return seen

    assert run(compiled=True) == run(compiled=False)


def _none(held: Any, z: Any) -> None:
    held.h = None if held.h is not None else z


def _wrapped(held: Any, z: Any) -> None:
    held.h = z if isinstance(held.h, list) else [z]


def _swapped(held: Any, z: Any) -> None:
    held.h, held.c = held.c, z


def _same(held: Any, z: Any) -> None:
    held.h = held.c
    held.c = z


@pytest.mark.parametrize("put", [_none, _wrapped, _swapped, _same])
def test_where_a_tensor_has_been(put: Callable[[Any, Any], None]) -> None:
    def run(*, compiled: bool) -> list[Any]:
        held = SimpleNamespace(h=wg.zeros(2), c=wg.ones(2))

        def step(x: Any) -> Any:
            h = held.h[0] if isinstance(held.h, list) else held.h
            z = x * 2.0 if h is None else wg.tanh(h + x)
            put(held, z)
            return z * 1.0

        call = wg.compile(step) if compiled else step
        given = [wg.asarray([0.1 * i, 0.5]) for i in range(6)]
        return [(call(x).tolist(), _seen(vars(held))) for x in given]

    assert run(compiled=True) == run(compiled=False)


def test_new_state_at_each_call_is_told() -> None:
    """Recording each call would take the time of many steps."""
    p = wg.nn.Parameter(wg.ones(2))
    optimizer = wg.optim.SGD([p], lr=0.1)

    @wg.compile
    def step(x: Any) -> Any:
        before = optimizer.state.get(p, {"sum": wg.zeros(2)})["sum"]
        optimizer.state[p] = {"sum": before + x}
        return x * 2.0

    for i in range(1, 8):
        step(wg.ones(2))
        assert optimizer.state[p]["sum"].tolist() == [float(i)] * 2
    assert step.report.recordings == 3
    assert "4 calls ran eagerly: each call makes new state" in str(step.report)


def test_new_optimizers_between_calls_are_no_new_state_of_each() -> None:
    p = wg.nn.Parameter(wg.ones(2))
    held = SimpleNamespace(optimizer=None)

    @wg.compile
    def step(x: Any) -> Any:
        loss = (p * x).sum()
        p.grad = None
        loss.backward()
        held.optimizer.step()
        return loss

    for i in range(8):
        if i < 4:
            held.optimizer = wg.optim.SGD([p], lr=0.1, momentum=0.9)
        step(wg.ones(2))
    assert not step.report._fallbacks


class Normed(wg.optim.Optimizer):
    """Keeps what NumPy has as a number of its own: a sum of everything."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {"lr": 0.1})

    def rule(self, xp: Any, group: Any) -> Any:
        def update(p: Any, g: Any, state: Kept) -> Any:
            norm = xp.sum(xp.multiply(g, g))
            state["norm"] = norm if "norm" not in state else xp.add(state["norm"], norm)
            return xp.axpby(1, p, -group["lr"], g)

        return update


def test_numbers_of_the_library_that_an_optimizer_keeps() -> None:
    seen = []
    for compiled in (False, True):
        p = wg.nn.Parameter(wg.ones(2))
        optimizer = Normed([p])

        def step(x: Any, p: Any = p, optimizer: Any = optimizer) -> Any:
            p.grad = None
            loss = (p * x).sum()
            loss.backward()
            optimizer.step()
            return loss

        call: Any = wg.compile(step) if compiled else step
        losses = [call(wg.asarray([1.0 + i, 2.0])).tolist() for i in range(5)]
        seen.append((losses, p.tolist(), float(optimizer.state[p]["norm"])))
    assert seen[0] == seen[1]
    assert (call.report.recordings, call.report._fallbacks) == (2, {})


@pytest.mark.parametrize("sums", [False, True])
def test_a_model_that_changes_its_dtype_between_steps(*, sums: bool) -> None:
    """What its program is for is of another kind then; gradients keep theirs."""

    def run(*, compiled: bool) -> list[Any]:
        wg.manual_seed(0)
        model = wg.nn.Linear(3, 3, bias=False)
        optimizer = wg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step(x: Any) -> Any:
            if not sums:
                optimizer.zero_grad()
            y = wg.tanh(model.weight * x + 0.1)
            y.sum().backward()
            optimizer.step()
            return y.detach()

        call = wg.compile(step, check=0) if compiled else step
        model.double()
        seen = []
        for narrow in (*[False] * 3, *[True] * 4, False, False):
            (model.float if narrow else model.double)()
            optimizer.load_state_dict(optimizer.state_dict())  # takes the momentum along
            y = call(wg.ones(3, 3))
            held = (y, model.weight, model.weight.grad)
            seen.append([(x.dtype, x.tolist()) for x in held])
        return seen

    assert run(compiled=True) == run(compiled=False)


@pytest.mark.parametrize("other", [3.0, -0.0, 5])
def test_counters_that_are_equal_and_of_other_types(other: float) -> None:
    def run(*, compiled: bool, before: int) -> list[Any]:
        a, b = (wg.ones(3, requires_grad=True) for _ in range(2))
        optimizer = wg.optim.Adam([a, b], lr=0.1)

        def step() -> None:
            optimizer.zero_grad()
            ((a * a).sum() + (b * b).sum()).backward()
            optimizer.step()

        call = wg.compile(step, check=0) if compiled else step
        seen = []
        for i in range(8):
            if i == before:
                if other == 0:
                    optimizer.state[b]["step"] = 0.0
                optimizer.state[a]["step"] = other  # as a checkpoint may hold it
            call()
            seen.append([(repr(optimizer.state[p]["step"]), p.tolist()) for p in (a, b)])
        return seen

    for before in (1, 3):
        assert run(compiled=True, before=before) == run(compiled=False, before=before)
