"""Numbers that a function counts in are inputs of its program, wherever they are."""

import collections
import copy
import dataclasses
import decimal
import enum
import math
import pickle
import random
import sys
import types
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import wengert as wg
from tests.compiler.capture.courses import Made, same_course
from wengert.compiler import compiled
from wengert.compiler.capture.errors import TraceError

Place = Callable[[Any], tuple[Callable[[Any, Any], Any], Callable[[], Any], Callable[[Any], None]]]


class Plain:
    """An object with an attribute."""

    n: Any


class Slotted:
    """An object with slots, of a class that has its own say in what is set."""

    __slots__ = ("n",)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value if value is None else value * 2)


@dataclasses.dataclass
class Progress:
    """A dataclass."""

    n: Any = 0
    others: list[int] = dataclasses.field(default_factory=list)


class Net(wg.nn.Module):
    """A Module that counts."""


class Behind:
    """Counts by a property."""

    _n: Any

    @property
    def n(self) -> Any:
        return self._n

    @n.setter
    def n(self, value: Any) -> None:
        self._n = value


class Ours(dict[str, Any]):
    """A dict of the user's."""


def _attribute(held: Any, start: Any) -> Any:
    held.n = start

    def step(x: Any, more: Any) -> Any:
        held.n = more(held.n)
        return x * held.n

    return step, lambda: held.n, lambda value: setattr(held, "n", value)


def of_a_class(start: Any) -> Any:
    return _attribute(type("Shared", (), {"__module__": __name__}), start)


def of_a_module(start: Any) -> Any:
    return _attribute(types.ModuleType("settings_that_count"), start)


def an_attribute_by_name(start: Any) -> Any:
    held, names = Plain(), ["n"]
    held.n = start

    def step(x: Any, more: Any) -> Any:
        setattr(held, names[0], more(getattr(held, names[0])))
        return x * held.n

    return step, lambda: held.n, lambda value: setattr(held, "n", value)


def by_dict(start: Any) -> Any:
    held = Plain()
    held.n = start

    def step(x: Any, more: Any) -> Any:
        vars(held).update(n=more(held.n))
        return x * held.n

    return step, lambda: held.n, lambda value: setattr(held, "n", value)


def a_global(start: Any) -> Any:
    space: dict[str, Any] = {"__name__": "program", "n": start}
    lines = "def step(x, more):\n    global n\n    n = more(n)\n    return x * n\n"
    exec(lines, space)
    return space["step"], lambda: space["n"], lambda value: space.update(n=value)


def a_cell(start: Any) -> Any:
    n = start

    def step(x: Any, more: Any) -> Any:
        nonlocal n
        n = more(n)
        return x * n

    def put(value: Any) -> None:
        nonlocal n
        n = value

    return step, lambda: n, put


def a_cell_of_a_helper(start: Any) -> Any:
    n = start

    def count(more: Any) -> None:
        nonlocal n
        n = more(n)

    def step(x: Any, more: Any) -> Any:
        before = n
        count(more)
        return x * n + before

    def put(value: Any) -> None:
        nonlocal n
        n = value

    return step, lambda: n, put


def _item(held: Any, key: Any, start: Any, inner: Any = None) -> Any:
    inner = held if inner is None else inner
    inner[key] = start

    def step(x: Any, more: Any) -> Any:
        inside = held if inner is held else held["a"][0]
        inside[key] = more(inside[key])
        return x * inside[key]

    return step, lambda: inner[key], lambda value: inner.__setitem__(key, value)


def a_nested_item(start: Any) -> Any:
    inner = {"n": start, "m": 3}
    return _item({"a": [inner], "b": 2}, "n", start, inner)


def an_item_beside_a_tensor(start: Any) -> Any:
    return _item({"n": start, "w": wg.ones(3)}, "n", start)


PLACES: dict[str, Place] = {
    "object": lambda start: _attribute(Plain(), start),
    "slots": lambda start: _attribute(Slotted(), start),
    "dataclass": lambda start: _attribute(Progress(), start),
    "Module": lambda start: _attribute(Net(), start),
    "namespace": lambda start: _attribute(types.SimpleNamespace(), start),
    "property": lambda start: _attribute(Behind(), start),
    "function": lambda start: _attribute(lambda: None, start),
    "class": of_a_class,
    "module": of_a_module,
    "by name": an_attribute_by_name,
    "by dict": by_dict,
    "global": a_global,
    "cell": a_cell,
    "cell of a helper": a_cell_of_a_helper,
    "dict": lambda start: _item({"n": start}, "n", start),
    "dict of ours": lambda start: _item(Ours(), "n", start),
    "defaultdict": lambda start: _item(collections.defaultdict(int), "n", start),
    "Counter": lambda start: _item(collections.Counter(), "n", start),
    "ordered": lambda start: _item(collections.OrderedDict(a=1), "n", start),
    "list": lambda start: _item([0.5, start], 1, start),
    "deque": lambda start: _item(collections.deque([0.5, start]), 1, start),
    "nested": a_nested_item,
    "beside a Tensor": an_item_beside_a_tensor,
}

#: What numbers become, and what they are at first.
SCHEDULES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "counter": (lambda n: n + 1, 0),
    "float": (lambda n: n + 0.1, 0.0),
    "decay": (lambda n: n * 0.9, 0.1),
    "becomes float": (lambda n: n / 2 + 1, 7),
    "large": (lambda n: n * 3, 2**60 + 1),
    "negative zero": (lambda n: -n, 0.0),
    "nan": (lambda n: n - n, math.inf),
    "constant": (lambda n: 5, 0),
    "nothing to an int": (lambda n: (+(n + 0) * 1 - 0) ** 1, 3),
    "nothing to a zero": (lambda n: -(0 - (n - 0) * 1), -0.0),
    "plus zero": (lambda n: n + 0, -0.0),
    "plus a float": (lambda n: n + 0.0, 3),
    "times a float": (lambda n: n * 1.0, 3),
    "over one": (lambda n: n / 1, 3),
    "over an int": (lambda n: n // 1.0, 3),
    "the first power": (lambda n: n**1.0, 3),
    "minus itself": (lambda n: n - n * 1, math.inf),
    "bits": (lambda n: (n << 1 | 1) & 255, 1),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("place", PLACES)
def test_a_number_that_each_call_changes(place: str, schedule: str) -> None:
    more, start = SCHEDULES[schedule]

    def make() -> Made:
        step, look, put = PLACES[place](start)
        changes = [
            *(None, None, None, None, lambda: put(start), None, lambda: put(2.5), None, None),
            *(lambda: put(True), None, lambda: put(None), lambda: put(3), None, None),
        ]
        return lambda x: step(x, more), look, changes

    found = same_course(make)
    large = schedule == "large"  # too much for an array's dtype, of which eager code complains
    assert large or found.report.recordings in range(1, 6), found.report
    assert large or sum(found.report._fallbacks.values()) <= 5, found.report


# -- what numbers decide ---------------------------------------------------------------------------


class Trainer:
    """What people write: a step that counts itself, and has a schedule of its own."""

    def __init__(self) -> None:
        wg.manual_seed(0)
        self.model = wg.nn.Linear(3, 2)
        self.optimizer = wg.optim.SGD(self.model.parameters(), lr=0.1)
        self.n = self.seen = 0
        self.lr, self.total, self.best = 0.1, 0.0, math.inf
        self.stats = {"steps": 0, "rates": [0.0, 0.0]}
        self.every, self.warm = 4, 6

    def look(self) -> Any:
        plain = [self.n, self.seen, self.lr, self.total, self.best, *self.stats["rates"]]  # type: ignore[misc]
        return [
            *plain,
            self.stats["steps"],
            self.model.weight,
            self.optimizer.param_groups[0]["lr"],
        ]


def counts(self: Trainer, x: Any) -> Any:
    self.n += 1
    self.seen += len(x)
    self.stats["steps"] += 1
    return wg.sum(self.model(x)) * self.n


def schedules(self: Trainer, x: Any) -> Any:
    self.n += 1
    rate = 0.1 * min(1.0, self.n / self.warm)
    for group in self.optimizer.param_groups:
        group["lr"] = rate
    self.optimizer.zero_grad()
    loss = wg.mean(self.model(x) ** 2)
    loss.backward()
    self.optimizer.step()
    self.stats["rates"][1] = rate
    self.total += 0.5 * rate
    return loss.detach()


def decays(self: Trainer, x: Any) -> Any:
    for group in self.optimizer.param_groups:
        group["lr"] = max(group["lr"] * 0.9, 0.05)
    self.lr *= 0.99
    return wg.sum(self.model(x)) * self.lr


def accumulates(self: Trainer, x: Any) -> Any:
    loss = wg.mean(self.model(x) ** 2) / self.every
    loss.backward()
    self.n += 1
    if self.n % self.every == 0:
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
    return loss.detach()


def goes_around(self: Trainer, x: Any) -> Any:
    self.n = (self.n + 1) % 3
    return x * (2 if self.n == 0 else 3)


def takes_turns(self: Trainer, x: Any) -> Any:
    self.n = 1 - self.n
    return self.model(x) if self.n else x


def stops(self: Trainer, x: Any) -> Any:
    if self.n < 5:
        self.n += 1
        x = x * 2
    return x


def begins(self: Trainer, x: Any) -> Any:
    if not self.n:
        self.lr = 0.5
    self.n += 1
    return x * self.lr


def keeps_the_best(self: Trainer, x: Any) -> Any:
    self.lr *= 0.9
    if self.lr < self.best:
        self.best = self.lr
    return x * self.best


#: Steps, and at most how many programs each needs.
STEPS: list[tuple[Callable[[Trainer, Any], Any], int]] = [
    *((counts, 1), (schedules, 4), (decays, 2), (accumulates, 5), (goes_around, 3)),
    *((takes_turns, 2), (stops, 2), (begins, 3), (keeps_the_best, 1)),
]


@pytest.mark.parametrize(("step", "programs"), STEPS, ids=lambda x: getattr(x, "__name__", ""))
def test_training_code_that_counts(step: Callable[[Trainer, Any], Any], programs: int) -> None:
    def make() -> Made:
        held = Trainer()
        again = lambda: setattr(held, "n", 0)
        return (lambda x: step(held, x[None])), held.look, [None] * 20 + [again] + [None] * 6

    found = same_course(make)
    assert found.report.recordings <= programs + 2, found.report
    assert not found.report._fallbacks, found.report


def test_a_method_of_each_of_several_objects() -> None:
    class Counts:
        def __init__(self, n: Any) -> None:
            self.n = n

        def step(self, x: Any) -> Any:
            self.n += 1
            return x * self.n

        fast = wg.compile(step)

    one, other = Counts(1), Counts(5.0)
    for i in range(5):
        assert one.fast(wg.ones(1)).tolist() == [2 + i]
        assert other.fast(wg.ones(1)).tolist() == [6 + i]
    assert (one.n, other.n) == (6, 10.0)
    assert one.fast.report.recordings == other.fast.report.recordings == 1


def test_objects_that_are_arguments() -> None:
    def step(held: Any, x: Any) -> Any:
        held.n += 1
        held.stats["rates"][0] += held.n
        return x * held.n

    run = wg.compile(step)
    ones, twos = ([Trainer(), Trainer(), Trainer()] for _ in range(2))
    for i in range(12):
        assert run(ones[i % 3], wg.ones(1)).tolist() == step(twos[i % 3], wg.ones(1)).tolist()
        assert [repr(x.stats) for x in ones] == [repr(x.stats) for x in twos]
        assert [x.n for x in ones] == [x.n for x in twos]
    assert run.report.recordings == 1, run.report
    assert not run.report._fallbacks, run.report


# -- what can't be recorded ------------------------------------------------------------------------


def indexes(self: Trainer, x: Any) -> Any:
    self.n += 1
    return x * [2, 3, 4][self.n % 3]


def writes(self: Trainer, x: Any) -> Any:
    self.n += 1
    return x * len(f"{self.n}")


def asks_for_its_type(self: Trainer, x: Any) -> Any:
    self.n += 1
    return x * (2 if type(self.n) is int else 3)


@pytest.mark.parametrize("step", [indexes, writes, asks_for_its_type])
def test_a_number_that_decides_and_changes_runs_eagerly(step: Any) -> None:
    def make() -> Made:
        held = Trainer()
        return (lambda x: step(held, x)), held.look, [None] * 30

    found = same_course(make)
    assert found.report.recordings == 0, found.report
    reason = next(iter(found.report._fallbacks))
    assert "depends on" in reason
    assert "each call changes" in reason
    if step is indexes:
        assert "self.n % 3" in reason
        with pytest.raises(TraceError, match=r"depends on self\.n"):
            wg.compile(types.MethodType(step, Trainer()), strict=True)(wg.ones(1))


def _counts_itself(n: Any, x: Any) -> Any:
    HELD.n += 1
    return _power(x, HELD.n)


def _power(x: Any, n: Any) -> Any:
    done = 0
    while done < n:
        done += 1
    return x * done


HELD = Trainer()
#: Functions of a number that grows, as an argument or in ``HELD.seen``.
NEW_EACH_TIME: dict[str, Callable[[Any, Any], Any]] = {
    "counted": _counts_itself,
    "compared": lambda n, x: _power(x, n),
    "a length": lambda n, x: x * wg.sum(wg.ones(n)),
    "of others": lambda n, x: x * HELD.seen,
    "a shape": lambda n, x: x * wg.sum(n if isinstance(n, wg.Tensor) else wg.ones(1)),
}


@pytest.mark.parametrize("name", NEW_EACH_TIME)
def test_what_is_new_in_each_call_is_recorded_as_often_as_programs_are_kept(name: str) -> None:
    function = NEW_EACH_TIME[name]
    call = wg.compile(function)
    HELD.n = HELD.seen = 0

    def runs(n: int) -> None:
        HELD.seen, before = n, HELD.n
        given = wg.ones(n) if name == "a shape" else n
        found, HELD.n = call(given, wg.ones(2)).tolist(), before
        assert found == function(given, wg.ones(2)).tolist()

    for n in range(1, 101):
        runs(n)
    assert call.report.recordings == 8, call.report
    assert call.report._fallbacks.total() == 92
    told = [*call.report._fallbacks]
    assert told[20:] in ([], ["further reasons like these"])
    for reason in told[:20]:
        assert "none of the 8 programs kept has run again" in reason

    def settles() -> None:  # now nothing differs any more
        for _ in range(80):
            HELD.n = 1000
            runs(1000)

    with pytest.warns(RuntimeWarning, match="has recorded .* 9 times, and keeps 8 programs"):
        settles()
    assert call.report.recordings == 9
    assert call.report._fallbacks.total() <= 160


@pytest.mark.parametrize("name", ["a shape", "a length"])
@pytest.mark.parametrize("most", [12, 40])
def test_what_comes_again_after_its_program_was_dropped_is_recorded_ever_more_seldom(
    name: str, most: int
) -> None:
    function = NEW_EACH_TIME[name]
    call, order = wg.compile(function, check=0), random.Random(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for n in [order.randint(1, most) for _ in range(400)]:
            given = wg.ones(n) if name == "a shape" else n
            assert call(given, wg.ones(2)).tolist() == function(given, wg.ones(2)).tolist()
    assert 16 < call.report.recordings < 40, call.report
    assert call.report.dropped == call.report.recordings - 8
    assert " programs had to be dropped for others" in str(call.report)


def test_calls_of_new_shapes_are_seldom_inspected(monkeypatch: pytest.MonkeyPatch) -> None:
    call, walks = wg.compile(lambda x: x * HELD.seen, check=0), list[Any]()
    walk = compiled.find_state
    monkeypatch.setattr(compiled, "find_state", lambda *a, **k: walks.append(a) or walk(*a, **k))
    HELD.seen = 2
    for n in range(1, 201):
        assert call(wg.ones(n)).tolist() == [2] * n
    assert call.report.recordings == 8
    assert 8 < len(walks) < 50
    for n in range(1, 9):  # these have programs
        before = call.report._fallbacks.total()
        HELD.seen = 2
        assert call(wg.ones(n)).tolist() == [2] * n
        assert call.report._fallbacks.total() == before


def test_a_cycle_has_a_program_for_each_of_its_steps() -> None:
    held = Trainer()

    @wg.compile
    def step(x: Any) -> Any:
        held.n += 1
        return _power(x, held.n % 8)

    assert [step(wg.ones(())).item() for _ in range(40)] == [i % 8 for i in range(1, 41)]
    assert step.report.recordings == 8
    assert not step.report._fallbacks


def test_a_number_that_decides_and_does_not_change_is_compared() -> None:
    def make() -> Made:
        held = Trainer()

        def step(x: Any, on: list[bool]) -> Any:
            if on[0]:
                held.n += 1
            return x * [2, 3, 4][held.seen % 3] + held.n

        on = [True]
        other = lambda: setattr(held, "seen", held.seen + 1)
        changes = [None, None, other, None, other, None, other, None, None]
        return lambda x: step(x, on), held.look, changes

    found = same_course(make)
    assert found.report.recordings == 4, found.report
    assert not found.report._fallbacks


def test_deleting_and_other_types() -> None:
    for body, now in (
        ("del held.n", "nothing"),
        ("held.n = None", "None"),
        ("held.n = held.n > 3", "False"),
        ("held.n = [held.n]", "a list"),
    ):

        def make(body: str = body) -> Made:
            held = Plain()
            held.n = 0
            space = {"held": held, "__name__": "program"}
            lines = f"def step(x):\n    held.n += 1\n    x = x * held.n\n    {body}\n    return x\n"
            exec(lines, space)
            put = lambda: setattr(held, "n", 3)
            look = lambda: getattr(held, "n", "nothing")
            return space["step"], look, [put, None, put, put, put, None, put]  # type: ignore[return-value]

        assert f"changes held.n from 0 to {now}, which" in str(same_course(make).report)


# -- nothing is half done --------------------------------------------------------------------------


def test_an_error_in_the_step_leaves_what_eager_code_leaves() -> None:
    def make() -> Made:
        held = Trainer()
        w = wg.ones(3)

        def step(x: Any) -> Any:
            held.n += 1
            y = x @ w
            held.total += 0.5
            if held.n == 5:
                raise KeyError("the fifth")
            return y * (10 // (7 - held.n))

        def shorter() -> None:
            nonlocal w
            w = wg.ones(2)

        def back() -> None:
            nonlocal w
            w = wg.ones(3)

        changes = [None, None, None, shorter, back, None, None, None, None]
        return step, held.look, changes

    assert same_course(make).report.recordings


def test_a_recording_that_fails_puts_numbers_back() -> None:
    held = Trainer()

    def step(x: Any) -> Any:
        held.n += 1
        held.stats["steps"] += 1
        return x if wg.sum(x) > 0 else -x

    with pytest.raises(TraceError):
        wg.compile(step, strict=True)(wg.ones(1))
    assert (held.n, held.stats["steps"]) == (0, 0)
    assert type(held.n) is int


def test_numbers_are_shared_by_name_and_not_by_value() -> None:
    def make() -> Made:
        one, same = {"n": 1, "m": 1}, Plain()
        same.n = one

        def step(x: Any) -> Any:
            one["n"] += 1
            same.n["n"] *= 2
            return x * one["n"] + one["m"]

        changes = [None, None, lambda: one.update(m=5), None, lambda: one.update(n=0), None]
        return step, lambda: [*one.values()], changes

    found = same_course(make)
    assert not found.report._fallbacks, found.report


def test_copies_go_on_by_themselves() -> None:
    class Counted(wg.nn.Module):
        n = 0

        @wg.compile
        def forward(self, x: Any) -> Any:
            self.n = self.n + 1
            return x * self.n

    model = Counted()
    for _ in range(4):
        model(wg.ones(1))
    other = copy.deepcopy(model)
    for _ in range(3):
        assert other(wg.ones(1)).tolist() == [other.n]
    assert (model.n, other.n) == (4, 7)
    assert vars(pickle.loads(pickle.dumps(Progress(other.n)))) == {"n": 7, "others": []}
    assert other.forward.report.recordings == 1


def test_threads_lose_no_counts() -> None:
    held = Trainer()

    @wg.compile
    def step(x: Any) -> Any:
        held.n += 1
        held.stats["steps"] += 2
        held.lr += 0.5 * held.every
        return wg.sin(x)

    before, x = sys.getswitchinterval(), wg.ones(500)
    for _ in range(3):
        step(x)
    try:
        sys.setswitchinterval(1e-6)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: step(x), range(2000)))
    finally:
        sys.setswitchinterval(before)
    assert (held.n, held.stats["steps"], held.lr) == (2003, 4006, 0.1 + 2003 * 2.0)
    assert not step.report._fallbacks


def test_an_enumeration_is_not_set() -> None:
    class Kind(enum.Enum):
        ONE = 1

    def make() -> Made:
        member = Kind.ONE
        member.n = 0  # type: ignore[attr-defined]

        def step(x: Any) -> Any:
            member.n += 1  # type: ignore[attr-defined]
            return x * member.n  # type: ignore[attr-defined]

        return step, lambda: member.n, [None] * 5  # type: ignore[attr-defined]

    same_course(make)


def test_a_function_that_takes_python_s_numbers_alone() -> None:
    held = types.SimpleNamespace(n=1)

    def step(x: Any) -> Any:
        held.n += 1
        return x * float(decimal.Decimal(held.n))

    compiled = wg.compile(step)
    found = [compiled(wg.ones(2)).numpy().tolist() for _ in range(4)]
    assert found == [[n, n] for n in (2, 3, 4, 5)]
    assert "takes Python's own numbers alone" in str(compiled.report)  # and no bug of the compiler
    with pytest.raises(TraceError, match="own numbers alone"):
        wg.compile(step, strict=True)(wg.ones(2))
