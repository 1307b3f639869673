"""Tuples of Tensors that a function replaces are state: each call reads the present one."""

import collections
import dataclasses
import enum
import functools
import runpy
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import wengert as wg
from tests.compiler.ordinary import alike


class State(NamedTuple):
    """What a cell keeps."""

    h: Any
    c: Any


class Marked(State):
    """A named tuple that has attributes, besides."""


def _zeros() -> Any:
    return wg.zeros(3)


#: A first value, and what follows one. Each is made of the same Tensors in the same places.
FOLLOWING: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], Any]]] = {
    "a pair": (lambda: (_zeros(), _zeros()), lambda s, x: (s[1] + x, wg.tanh(s[0]))),
    "one": (lambda: (_zeros(),), lambda s, x: (s[0] + x,)),
    "exchanged": (lambda: (_zeros(), wg.ones(3)), lambda s, x: s[::-1]),
    "one stays": (lambda: (_zeros(), wg.ones(3)), lambda s, x: (s[0] + s[1], s[1])),
    "nested": (
        lambda: ((_zeros(), _zeros()), _zeros()),
        lambda s, x: ((s[1] + x, s[0][0]), s[0][1] * 0.5),
    ),
    "a named one": (lambda: State(_zeros(), _zeros()), lambda s, x: State(s.c + x, s.h * 0.5)),
    "_replace": (lambda: State(_zeros(), _zeros()), lambda s, x: s._replace(c=s.c + x)),
    "with plain values": (lambda: (_zeros(), 3, None), lambda s, x: (s[0] * s[1] + x, *s[1:])),
    "layers": (lambda: ((_zeros(),) * 2,) * 2, lambda s, x: tuple((h + x, c) for h, c in s)),
    "a slice": (
        lambda: tuple(map(wg.asarray, np.eye(3, dtype="f4"))),
        lambda s, x: (*s[1:], s[0] + x),
    ),
    "the argument": (lambda: (_zeros(), _zeros()), lambda s, x: (x, s[0])),
    "one new Tensor twice": (lambda: (_zeros(), _zeros()), lambda s, x: (s[0] + x,) * 2),
    "integers": (
        lambda: (wg.asarray([1, 2, 3]), wg.zeros(3)),
        lambda s, x: (s[0] + 1, s[1] + s[0] * x),
    ),
}


def _attribute(start: Any) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    held = types.SimpleNamespace(s=start)
    return lambda: held.s, lambda s: setattr(held, "s", s)


def _of_a_module(start: Any) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    module = wg.nn.Module()
    module.s = start

    def put(s: Any) -> None:
        module.s = s

    return lambda: module.s, put


def _cell(start: Any) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    def put(s: Any) -> None:
        nonlocal start
        start = s

    return lambda: start, put


def _item(start: Any) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    held = {"s": start}

    def put(s: Any) -> None:
        held["s"] = s

    return lambda: held["s"], put


def _of_a_list(start: Any) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    held = [start]

    def put(s: Any) -> None:
        held[0] = s

    return lambda: held[0], put


def _of_a_class(start: Any) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    class Held:
        s = start

    def put(s: Any) -> None:
        Held.s = s

    return lambda: Held.s, put


def _slot(start: Any) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    class Held:
        __slots__ = ("s",)

    held = Held()
    held.s = start

    def put(s: Any) -> None:
        held.s = s

    return lambda: held.s, put


PLACES = [_attribute, _of_a_module, _cell, _item, _of_a_list, _of_a_class, _slot]


@pytest.mark.parametrize(
    ("name", "place"),
    [(name, _attribute) for name in FOLLOWING] + [("nested", place) for place in PLACES[1:]],
)
def test_it_is_read_and_replaced(name: str, place: Any) -> None:
    first, following = FOLLOWING[name]

    def made() -> Any:
        get, put = place(first())

        def step(x: Any) -> Any:
            put(following(get(), x))
            return wg.stack(
                [wg.sum(part) for part in wg.func.tree_leaves(get()) if hasattr(part, "dtype")]
            )

        return step, get

    points = [(wg.asarray(np.full(3, value, "f4")),) for value in (1.0, -2.0, 0.5, 3.0, 0.25, 1.0)]
    alike(made, points)


@pytest.mark.parametrize("name", ["a pair", "a named one", "nested"])
def test_what_others_put_there_is_read(name: str) -> None:
    first, following = FOLLOWING[name]
    answers = []
    for compiles in (False, True):
        held = types.SimpleNamespace(s=first())
        old = []

        def step(x: Any, held: Any = held) -> Any:
            held.s = following(held.s, x)
            return wg.func.tree_leaves(held.s)[0] * 2

        call = wg.compile(step) if compiles else step
        found = []
        for i in range(8):
            if i == 3:
                held.s = wg.func.tree_map(lambda t: t + 1, held.s)
            if i == 5:
                wg.func.tree_leaves(held.s)[0].fill_(7.0)
            old.append(held.s)
            found.append(call(wg.full(3, float(i))).tolist())
        found += [t.tolist() for s in old for t in wg.func.tree_leaves(s)]
        assert len({*map(id, old)}) == 8
        answers.append(found)
        if compiles:
            assert "ran eagerly" not in str(call.report), call.report
    assert answers[0] == answers[1]


def test_a_tuple_of_another_structure_is_another_program() -> None:
    held = types.SimpleNamespace(s=(_zeros(), _zeros()))

    def step(x: Any) -> Any:
        held.s = tuple(h + x for h in held.s)
        return sum(held.s)

    compiled = wg.compile(step)
    x = wg.ones(3)
    others = [(_zeros(),) * 3, (_zeros(),), State(_zeros(), wg.ones(3)), (_zeros(), wg.zeros(1))]
    for other in (None, None, *others, (_zeros(), wg.zeros(3, dtype=wg.float64))):
        held.s = held.s if other is None else other
        expected = sum([h + x for h in held.s])
        for _ in range(3):
            assert compiled(x).tolist() == expected.tolist()
            expected = expected + len(held.s)


REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "a longer one": lambda s, x: (*s, x + 1),
    "a list": lambda s, x: [s[0] + x, s[1]],
    "another number": lambda s, x: (s[0] + x, 4),
    "one with a graph": lambda s, x: (wg.tanh(s[0] + x * wg.ones(3, requires_grad=True)), s[1]),
    "one with attributes": lambda s, x: Marked(s[0] + x, s[1]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_others_run_as_they_are(name: str) -> None:
    first: Any = Marked(_zeros(), 3) if name == "one with attributes" else (_zeros(), 3)
    results = []
    for compiles in (False, True):
        held = types.SimpleNamespace(s=first)

        def step(x: Any, held: Any = held) -> Any:
            held.s = REFUSED[name](held.s, x)
            return x * 2

        call = wg.compile(step) if compiles else step
        for _ in range(4):
            call(wg.ones(3))
        results.append([str(part) for part in held.s])
    assert results[0] == results[1]
    assert "ran eagerly" in str(call.report)


def test_the_tuple_at_another_place_stays() -> None:
    both = (wg.zeros(3), wg.ones(3))
    held = types.SimpleNamespace(s=both, t=both, h=both[0])

    def step(x: Any) -> Any:
        held.s = held.s[0] + x, held.s[1] * 2
        return held.t[0] + held.t[1] + held.h + held.s[0]

    compiled = wg.compile(step)
    for i in range(1, 6):
        assert compiled(wg.ones(3)).tolist() == [1.0 + i] * 3
        assert held.t is both
    assert "ran eagerly" not in str(compiled.report)


@pytest.mark.parametrize("check", [None, 0])
def test_a_returned_object_is_the_one_that_is_there_now(check: int | None) -> None:
    def made(number: float) -> Any:
        return types.SimpleNamespace(pair=(wg.full((2,), number), wg.ones(2)), layer=wg.nn.ReLU())

    @wg.compile(check=check)
    def step(held: Any, x: Any) -> Any:
        return held.pair, held.layer, x * held.pair[0]

    held, x = [made(1.0), made(2.0), made(3.0)], wg.ones(2)
    for i in (0, 0, 0, 1, 1, 2, 0, 1, 2):
        if i == 2:
            held[i] = made(4.0)
            held[i].pair = (wg.full((2,), 5.0), wg.ones(2))
        pair, layer, y = step(held[i], x)
        assert pair is held[i].pair and layer is held[i].layer
        assert y.tolist() == pair[0].tolist()
    assert step.report.recordings == 1 and "ran eagerly" not in str(step.report)


@dataclasses.dataclass
class Loss:
    """A loss and its model, which is no leaf."""

    value: Any
    model: Any = dataclasses.field(metadata={"static": True})


#: What a function may return of a model, and what of it has to be that of the call.
OF_THE_CALL: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "a function": (lambda m: m.scaled, lambda f: f.__closure__[0].cell_contents),
    "a function made": (lambda m: lambda: m, lambda f: f()),
    "a key": (lambda m: {m: 1}, lambda made: next(iter(made))),
    "a key in a tuple": (lambda m: {(1, m): 1}, lambda made: next(iter(made))[1]),
    "Tensors as keys": (
        lambda m: dict.fromkeys((m.weight, m.bias), m),
        lambda made: next(iter(made.values())),
    ),
    "a constant": (lambda m: Loss(1.0, m), lambda made: made.model),
    "a factory": (
        lambda m: collections.defaultdict(m.forward, a=1),
        lambda made: made.default_factory.__self__,
    ),
}


@pytest.mark.parametrize("check", [None, 0])
@pytest.mark.parametrize("name", OF_THE_CALL)
def test_what_is_returned_of_a_model_is_of_this_one(name: str, check: int | None) -> None:
    def made() -> Any:
        model: Any = wg.nn.Linear(2, 2)
        model.scaled = lambda x: model.weight * x
        return model

    body, owner = OF_THE_CALL[name]
    step = wg.compile(lambda m, x: (m.scaled(x), body(m)), check=check)
    models = [made(), made(), made()]
    for i in (0, 0, 0, 1, 1, 2, 0, 1):
        y, answer = step(models[i], wg.ones(2))
        assert y.tolist() == models[i].weight.tolist()
        assert owner(answer) is models[i]
    assert "ValueError" not in str(step.report)


@pytest.mark.parametrize("make", [lambda x, n: {n: x}, Loss], ids=["a key", "a constant"])
def test_a_number_that_an_answer_keeps_is_that_of_the_call(make: Any) -> None:
    step = wg.compile(lambda x, n: make(x, n))
    for n in (1, 1, 2, 1):
        answer = step(wg.ones(2), n)
        assert n in (answer if isinstance(answer, dict) else [answer.model])
    assert "has ended" not in str(step.report)


class Part(enum.Enum):
    """What an epoch is divided into."""

    TRAIN = 1
    VALID = 2


def test_members_of_enumerations_are_keys() -> None:
    held = types.SimpleNamespace(part=Part.TRAIN)
    step = wg.compile(lambda x: {held.part: x, (Part.VALID, 1): x + 1})
    for part in (Part.TRAIN, Part.TRAIN, Part.VALID, Part.VALID):
        held.part = part
        assert [*step(wg.ones(2))] == [part, (Part.VALID, 1)]
    assert "ran eagerly" not in str(step.report)


@pytest.mark.parametrize("check", [None, 0])
def test_a_returned_tuple_at_two_places_is_the_one_there_now(check: int | None) -> None:
    held = types.SimpleNamespace(pair=(_zeros(), _zeros()))
    held.old = held.pair

    @wg.compile(check=check)
    def step(x: Any) -> Any:
        held.pair = (held.pair[0] + x, held.pair[1])
        return held.old

    for i in range(7):
        if i in (3, 5):
            held.old = held.pair
        assert step(wg.ones(3)) is held.old


def test_threads_replace_it_in_turn() -> None:
    held = types.SimpleNamespace(s=(wg.zeros(3), wg.zeros(3)))
    lock = threading.Lock()

    @wg.compile
    def step(x: Any) -> Any:
        held.s = held.s[0] + x, held.s[1] + held.s[0] * 0 + 2 * x
        return held.s[0] * 1

    for _ in range(3):
        step(wg.ones(3))

    def run() -> None:
        for _ in range(50):
            with lock:
                step(wg.ones(3))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [t.tolist() for t in held.s] == [[203.0] * 3, [406.0] * 3]


def _saved(step: Any, x: Any, folder: Path) -> Any:
    """The saved program of a step, after three calls."""
    for _ in range(3):
        step(wg.asarray(x))
    step.save(folder / "saved.py")
    return runpy.run_path(str(folder / "saved.py"))["step"]


def test_it_is_saved(tmp_path: Path) -> None:
    held = types.SimpleNamespace(s=(wg.zeros(3), (wg.ones(3), None)))

    @wg.compile
    def step(x: Any) -> Any:
        held.s = held.s[0] + x, (held.s[1][0] * 2 + held.s[0], None)
        return held.s[0] + held.s[1][0]

    x = np.arange(3, dtype=np.float32)
    saved = _saved(step, x, tmp_path)
    for _ in range(3):
        assert saved(x).tolist() == step(wg.asarray(x)).tolist()


def test_what_is_at_two_places_or_returned_is_saved(tmp_path: Path) -> None:
    one, two = (types.SimpleNamespace(s=(wg.zeros(3), wg.ones(3))) for _ in range(2))
    fixed = (wg.ones(2), "text")

    @wg.compile
    def step(x: Any) -> Any:
        total = x + one.s[0] + two.s[1]
        one.s, two.s = (total, one.s[1] * 2), (two.s[0] + x, total)
        return total, one.s, fixed

    x = np.arange(3, dtype=np.float32)
    saved = _saved(step, x, tmp_path)
    for _ in range(3):
        found, answer = saved(x), step(wg.asarray(x))
        assert answer[1] is one.s
        assert answer[2] is fixed
        for mine, its in zip(*map(wg.func.tree_leaves, (found, answer)), strict=True):
            assert mine == its if isinstance(its, str) else mine.tolist() == its.tolist()


# -- what else holds the Tensors, or the tuple -----------------------------------------------------

A = wg.zeros(3)


def _in_a_tuple(held: Any) -> Callable[[Any], Any]:
    held.first = (A,)
    return lambda x: held.first[0] + x


def _in_a_named_tuple(held: Any) -> Callable[[Any], Any]:
    held.first = State(A, 1)
    return lambda x: held.first.h + x


def _in_a_default(held: Any) -> Callable[[Any], Any]:
    def use(x: Any, first: Any = A) -> Any:
        return first + x

    return use


def _in_a_partial(held: Any) -> Callable[[Any], Any]:
    return functools.partial(wg.add, A)


def _in_a_method(held: Any) -> Callable[[Any], Any]:
    return A.add


FIXED = [_in_a_tuple, _in_a_named_tuple, _in_a_default, _in_a_partial, _in_a_method]


@pytest.mark.parametrize("tupled", [True, False])
@pytest.mark.parametrize("fix", FIXED)
@pytest.mark.parametrize("check", [0, 1, None])
def test_the_tensor_elsewhere_stays_what_it_was(fix: Any, tupled: bool, check: int | None) -> None:
    answers = []
    for compiles in (False, True):
        # Those that are replaced come first, so that the Tensor is found there.
        places = {"s": (A, wg.ones(3))} if tupled else {"a": A, "b": wg.ones(3)}
        held = types.SimpleNamespace(**places)
        use = fix(held)

        def exchanging(x: Any, held: Any = held, use: Any = use) -> Any:
            held.s = held.s[0], held.s[1] + x
            return held.s[0] + use(x)

        def in_places(x: Any, held: Any = held, use: Any = use) -> Any:
            held.a, held.b = held.b, held.a
            return use(x)

        step = exchanging if tupled else in_places
        call: Any = wg.compile(step, check=check) if compiles else step
        found = []
        for i in range(9):
            if i in (4, 6, 7):
                held.s = wg.full(3, 100.0 * i), wg.ones(3)
            if i == 8:
                held.s = A, A
            found.append(call(wg.full(3, float(i))).tolist())
        answers.append(found)
    assert answers[0] == answers[1]


def _asks(held: Any, x: Any) -> Any:
    r = x * 1 if held.s is held.t else x * 100
    held.s = held.s[0] + x, held.s[1]
    held.t = held.s[0] * 1, held.s[1]
    return r


def _asks_for_the_first(held: Any, x: Any) -> Any:
    r = x * 1 if held.s is held.first else x * 100
    held.s = held.s[0] + x, held.s[1]
    return r


def _puts_one_in_two(held: Any, x: Any) -> Any:
    r = x * 1 if held.s is held.t else x * 100
    held.s = held.t = held.s[0] + x, held.s[1]
    return r


def _hands_on(held: Any, x: Any) -> Any:
    r = x * 1 if held.s is held.t else x * 100
    held.t = held.s
    held.s = held.s[0] + x, held.s[1]
    return r


def _exchanges(held: Any, x: Any) -> Any:
    held.s, held.t = held.t, held.s
    return held.s[0] + x if held.s is held.first else held.t[1] - x


def _puts_an_old_one_in_two(held: Any, x: Any) -> Any:
    held.first = held.s
    held.t = held.s
    held.s = held.first[0] + x, held.first[1]
    return held.t[0] * (2 if held.t is held.first else 3)


def _asks_for_parts(held: Any, x: Any) -> Any:
    tied = held.n[0] is held.n[1]
    h, c = held.n[0]
    held.n = (h + x, c * 1), (h * 2, c)
    return x * (1 if tied else 10)


def _puts_a_part_in_two(held: Any, x: Any) -> Any:
    tied = held.n[0] is held.n[1]
    held.n = ((held.n[0][0] + x, held.n[1][1]),) * 2
    return x * (1 if tied else 10)


ASKING = [
    *(_asks, _asks_for_the_first, _puts_one_in_two, _hands_on, _exchanges),
    *(_puts_an_old_one_in_two, _asks_for_parts, _puts_a_part_in_two),
]


@pytest.mark.parametrize("check", [0, 1, None])
@pytest.mark.parametrize("body", ASKING)
def test_code_may_ask_which_tuple_it_is(body: Any, check: int | None) -> None:
    answers = []
    for compiles in (False, True):
        u, v = wg.zeros(3), wg.zeros(3)
        held = types.SimpleNamespace(s=(u, v), t=(u, v), first=(u, v), n=((v, u),) * 2)

        def step(x: Any, held: Any = held) -> Any:
            return body(held, x)

        call: Any = wg.compile(step, check=check) if compiles else step
        found = []
        for i in range(10):
            if i == 4:
                held.t = held.s
            if i == 6:
                held.s = held.first
            if i == 8:
                held.first = held.s
            found.append((call(wg.full(3, float(i))).tolist(), held.s is held.t))
        answers.append(found)
    assert answers[0] == answers[1]
    eager = body is _puts_a_part_in_two
    assert eager or "ran eagerly" not in str(call.report)


def test_it_may_begin_anew_with_each_sequence() -> None:
    held = types.SimpleNamespace(first=(wg.zeros(3), wg.ones(3)), s=None)

    @wg.compile
    def step(x: Any) -> Any:
        held.s = held.s[0] + x, held.s[1]
        return held.s[0] * 2

    for _ in range(6):
        held.s = held.first
        found = [step(wg.ones(3)).tolist() for _ in range(4)]
        assert found == [[2.0 * i] * 3 for i in range(1, 5)]
    assert step.report.recordings <= 4
    assert "ran eagerly" not in str(step.report)


def test_alike_places_are_two(tmp_path: Path) -> None:
    def counter() -> Any:
        h = (wg.zeros(()),)

        def f(x: Any) -> Any:
            nonlocal h
            h = (h[0] + x,)
            return h[0] * 1

        return f

    one, two = counter(), counter()
    alike_ones = [types.SimpleNamespace(s=(wg.zeros(3), wg.zeros(3))) for _ in range(2)]

    @wg.compile
    def step(x: Any) -> Any:
        for i, held in enumerate(alike_ones):
            held.s = held.s[0] + i, held.s[1] + x
        return wg.stack(
            [one(x), two(x * 2), *[wg.sum(held.s[0] + held.s[1]) for held in alike_ones]]
        )

    found = [step(wg.asarray(1.0)).tolist() for _ in range(3)]
    assert found == [[i, 2 * i, 3 * i, 6 * i] for i in (1, 2, 3)]
    assert "ran eagerly" not in str(step.report)
    step.save(tmp_path / "saved.py")
    saved = runpy.run_path(str(tmp_path / "saved.py"))["step"]
    for _ in range(3):
        assert saved(np.float32(1.0)).tolist() == step(wg.asarray(1.0)).tolist()


class Turned(State):
    """A named tuple that shows its parts in another order."""

    __slots__ = ()

    def __iter__(self) -> Any:
        return iter((self.c, self.h))


class Scaled(State):
    """A named tuple with a method that reads an attribute of the class."""

    __slots__ = ()
    by = 2.0

    def scaled(self) -> Any:
        return self.h * self.by


def test_what_methods_of_a_named_tuple_read_is_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    held = types.SimpleNamespace(s=Scaled(wg.ones(3), wg.ones(3)))

    @wg.compile
    def step(x: Any) -> Any:
        found = held.s.scaled() + x
        held.s = Scaled(held.s.h * 1, held.s.c)
        return found

    for _ in range(4):
        assert step(wg.zeros(3)).tolist() == [2.0] * 3
    monkeypatch.setattr(Scaled, "by", 5.0)
    assert step(wg.zeros(3)).tolist() == [5.0] * 3
    assert "ran eagerly" not in str(step.report)


class Doubling(State):
    """A named tuple whose constructor does more than store."""

    __slots__ = ()

    def __new__(cls, h: Any, c: Any = None) -> Any:
        return super().__new__(cls, h * 2, c)


class Heir(Doubling):
    """One that inherits such a constructor."""

    __slots__ = ()


@pytest.mark.parametrize("kind", [Doubling, Heir])
def test_named_tuples_with_constructors_are_returned_as_they_are(kind: Any) -> None:
    step = wg.compile(lambda x: kind(x + 1, x))
    for _ in range(4):
        assert step(wg.ones(2)).h.tolist() == [4.0, 4.0]


OTHERS: dict[str, Callable[[Any, Any], Any]] = {
    "of another order": lambda s, x: Turned(s.h + x, s.c * 0.5),
    "a leaf": lambda s, x: State((s.h.detach() + x).requires_grad_(), s.c),
    "a parameter": lambda s, x: State(wg.nn.Parameter(s.h.detach() + x), s.c),
}


@pytest.mark.parametrize("check", [0, 1, None])
@pytest.mark.parametrize("name", OTHERS)
def test_what_a_replay_would_not_make_is_not_compiled(name: str, check: int | None) -> None:
    results = []
    for compiles in (False, True):
        first = (Turned if "order" in name else State)(wg.zeros(3), wg.ones(3))
        held = types.SimpleNamespace(s=first)

        def step(x: Any, held: Any = held) -> Any:
            held.s = OTHERS[name](held.s, x)
            return x * 2

        call: Any = wg.compile(step, check=check) if compiles else step
        for _ in range(4):
            call(wg.ones(3))
        results.append([(type(part), part.requires_grad, part.tolist()) for part in tuple(held.s)])
    assert results[0] == results[1]
    assert "ran eagerly" in str(call.report)


def test_a_leaf_at_a_place_of_its_own_is_not_compiled() -> None:
    for check in (0, 1):
        held = types.SimpleNamespace(h=wg.zeros(3))

        @wg.compile(check=check)
        def step(x: Any, held: Any = held) -> Any:
            held.h = (held.h.detach() + x).requires_grad_()
            return x * 2

        for _ in range(4):
            step(wg.ones(3))
            assert held.h.requires_grad
        assert "a leaf that requires grad" in str(step.report)


def test_the_tuple_is_read_once() -> None:
    """Others may replace it meanwhile: no call sees a part of one and a part of the next."""
    held = collections.defaultdict(int, s=(wg.zeros(3), wg.zeros(3)))

    @wg.compile
    def step(x: Any) -> Any:
        h, c = held["s"]
        held["s"] = h + x, c + x
        return h - c

    for _ in range(4):
        step(wg.ones(3))
    (replay,) = step._replays
    call, state = step.looked((wg.ones(3),), {})
    source, _ = replay._glue(replay.pool).function(state, call.leaves)
    assert source.count("'s', MISS)") == 1


#: What puts one Tensor in several places, of ``s`` and of a list, or takes it from there.
SEVERAL = [
    "s.h = x * 2\ns.g = s.h",
    "s.h = s.g = x",
    "s.h = x + s.h\ns.g = l[0] = s.h",
    "s.g = s.h\ns.h = x * 2",
    "s.h = s.g = x * 2\ns.g = s.g + 1",
    "s.g = s.h",
    "s.g = x * 1",
    "s.t = (x * 2, 2)\ns.g = s.h = s.t[0]",
    "s.h, s.g = s.g, s.h",
    "s.h += x\ns.g = s.h",
]


@pytest.mark.parametrize("check", [None, 0, 1])
@pytest.mark.parametrize("body", SEVERAL)
def test_one_tensor_in_several_places(body: str, check: int | None) -> None:
    def course(compiled: bool) -> list[list[Any]]:
        s = types.SimpleNamespace(h=_zeros(), g=wg.ones(3), t=(_zeros(), 2))
        l = [_zeros()]
        space = {"s": s, "l": l, "wg": wg, "__name__": "program"}
        exec("def step(x):\n    " + f"{body}\nreturn s.g".replace("\n", "\n    "), space)
        step: Any = wg.compile(space["step"], check=check) if compiled else space["step"]
        seen, found = list[Any](), list[list[Any]]()
        for i in range(8):
            if i == 5:
                s.h = _zeros()
            if i == 6:
                s.g = s.h
            now = [step(wg.full(3, float(i))), s.h, s.g, s.t[0], l[0]]
            seen += now
            found.append([(next(k for k, y in enumerate(seen) if y is x), x.tolist()) for x in now])
        assert not compiled or (step.report.recordings < 4 and not step.report._fallbacks)
        return found

    assert course(compiled=True) == course(compiled=False)


def test_a_file_of_a_program_that_puts_one_tensor_in_two_places(tmp_path: Path) -> None:
    s = types.SimpleNamespace(h=wg.ones(3), g=_zeros())

    @wg.compile
    def step(x: Any) -> Any:
        s.h = x * 2 + s.g
        s.g = s.h
        return s.g * 1

    for _ in range(3):
        step(wg.ones(3))
    step.save(tmp_path / "step.py")
    saved = runpy.run_path(str(tmp_path / "step.py"))
    for _ in range(3):
        assert saved["step"](np.ones(3, "f4")).tolist() == step(wg.ones(3)).tolist()
    assert [*saved["state"]] == ["s.h"]
    s.g = _zeros()
    with pytest.raises(RuntimeError, match="the state of step has changed since it ran"):
        step.save(tmp_path / "step.py")
