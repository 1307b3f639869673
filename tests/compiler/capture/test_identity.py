"""One object in two places: programs and recordings tell it from two that are equal."""

import math
import operator
import types
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import wengert as wg
from tests.compiler.capture.test_shared import CONTAINERS, Make, _get
from wengert.backends import Backend
from wengert.compiler.capture.errors import TraceError


def follow(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Any:
    """Compare a compiled function with itself run eagerly, in calls that are each made thrice."""
    compiled = wg.compile(function)
    for given in calls:
        for _ in range(3):
            np.testing.assert_array_equal(compiled(*given).numpy(), function(*given).numpy())
    return compiled


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_a_container_that_is_given_twice(make: Make) -> None:
    def f(a: Any, b: Any) -> Any:
        return _get(a, "w") * (2 if a is b else 3)

    def inner(a: Any, b: Any) -> Any:
        return _get(a, "w") * (2 if a is b[0] else 3)

    x, y = make(), make()
    follow(f, [(x, x), (x, y), (y, y), (y, x), (x, x)])
    follow(f, [(x, y), (y, y)])
    follow(inner, [(x, [x]), (x, [y]), (y, [y])])


def test_a_tuple_that_is_given_twice() -> None:
    x, y = (wg.ones(2),), (wg.ones(2),)
    follow(lambda a, b: a[0] * (2 if a is b else 3), [(x, x), (x, y), (y, y), (y, x)])


class Pair(NamedTuple):
    """A tuple with names."""

    first: Any
    second: Any


def _pairs() -> list[Any]:
    w = wg.ones(2)
    return [(w, w), (1.0, 2.0), ((1.0, w), 2.0), Pair(w, 3.0), ("a", w)]


@pytest.mark.parametrize("which", range(5))
def test_a_tuple_that_is_given_and_reached(which: int) -> None:
    mine, other = _pairs()[which], _pairs()[which]
    held = SimpleNamespace(mine=mine, listed=[mine], inner=(mine, 1))

    def f(x: Any, t: Any) -> Any:
        return x * (2 if t is held.mine else 3)

    def listed(x: Any, t: Any) -> Any:
        return x * (2 if any(t is each for each in held.listed) else 3)

    def inner(x: Any, t: Any) -> Any:
        return x * (2 if t[0] is held.inner[0] else 3)

    x = wg.ones(2)
    for function in (f, listed):
        follow(function, [(x, mine), (x, other), (x, mine), (x, (5.0, wg.ones(2))), (x, other)])
    follow(inner, [(x, (mine, 1)), (x, (other, 1)), (x, held.inner), (x, (mine, 2))])


def test_a_tuple_that_is_given_and_replaced() -> None:
    def run(wrap: Callable[..., Any]) -> list[Any]:
        held = SimpleNamespace(mine=(wg.ones(2), wg.ones(2)))

        def f(x: Any, t: Any) -> Any:
            y = x * (10 if t is held.mine else 1)
            held.mine = x + 1, x + 2
            return y

        called, found, old = wrap(f), [], held.mine
        for k, present in enumerate([0, 1, 1, 0, 0, 1, 1, 1, 0, 0]):
            old = held.mine if present else old
            found.append(called(wg.ones(2) * k, old).numpy().tolist())
        return found

    assert run(wg.compile) == run(lambda f: f)


@pytest.mark.parametrize("which", range(5))
def test_a_tuple_that_is_given_and_stored(which: int) -> None:
    def run(wrap: Callable[..., Any]) -> list[Any]:
        held = SimpleNamespace(mine=_pairs()[which], listed=[_pairs()[which]])
        given = [_pairs()[which] for _ in range(2)]

        def f(x: Any, t: Any) -> Any:
            y = x * (10 if t is held.mine else 1) + (2 if t is held.listed[0] else 0)
            held.mine = held.listed[0] = t
            return y

        called, found = wrap(f), []
        for at in (0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1):
            found.append(called(wg.ones(2), given[at]).numpy().tolist())
            found.append((held.mine is given[at], held.listed[0] is given[at]))
        return found

    assert run(wg.compile) == run(lambda f: f)


def test_a_raw_array_that_is_given_twice(backend: Backend) -> None:
    x, y = (backend.from_numpy(np.asarray([1.0, 2.0])) for _ in range(2))
    compiled = wg.compile(lambda a, b: wg.asarray(a) * (2 if a is b else 3))
    for a, b, factor in ((x, x, 2), (x, y, 3), (y, y, 2), (y, x, 3), (x, x, 2)):
        for _ in range(3):
            answer = backend.to_numpy(compiled(a, b)._array)
            np.testing.assert_array_equal(answer, [factor, 2 * factor])


def test_a_raw_array_that_is_given_and_reached() -> None:
    reached, other = np.ones(2), np.ones(2)
    compiled = wg.compile(lambda a: wg.asarray(reached) * (2 if a is reached else 3))
    for given, factor in ((reached, 2), (other, 3), (other, 3), (other, 3), (reached, 2)):
        np.testing.assert_array_equal(compiled(given).numpy(), [factor, factor])
    assert "also reaches" in str(compiled.report)


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_a_container_that_is_returned(make: Make) -> None:
    """A replay would give a copy of other ones than arguments; what is done to that were lost."""
    held = make()

    def reaches(x: Any) -> Any:
        return x * 2, held

    def twice(x: Any) -> Any:
        made = [x * 2]
        return made, made

    x = wg.ones(3)
    for function in (reaches, twice):
        compiled = wg.compile(function)
        for _ in range(4):
            first, second = compiled(x)
            assert second is (first if function is twice else held)
        assert "return a copy of your own" in str(compiled.report)
        with pytest.raises(TraceError, match="return a copy"):
            wg.compile(function, strict=True)(x)


GIVEN_BACK: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (lambda x, t: t, lambda r, t: r is t),
    (lambda x, t: (x * 2, t), lambda r, t: r[1] is t),
    (lambda x, t: {"one": t, "more": [t, x]}, lambda r, t: r["one"] is t is r["more"][0]),
    (lambda x, t: t[-1], lambda r, t: r is t[-1]),
]


@pytest.mark.parametrize("check", [None, 0, 2])
@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_a_container_that_is_given_and_returned(make: Make, check: int | None) -> None:
    """It is the very object of each call, also in the calls that are recorded or checked."""
    x = wg.ones(3, requires_grad=True)
    for function, holds in GIVEN_BACK:
        givens = [lambda: (make(), (1.5, make())), lambda: [{}, [make()]], make]
        for given in givens[: 2 if function is GIVEN_BACK[-1][0] else 3]:
            compiled = wg.compile(function, check=check)
            for _ in range(5):
                t = given()
                assert holds(compiled(x, t), t)
            assert compiled.report.recordings == 1
            assert not compiled.report._fallbacks
    compiled = wg.compile(lambda x, t: (x * x * x, t), check=check)
    for _ in range(4):
        (g,) = wg.autograd.grad(compiled(x, [make()])[0].sum(), x, create_graph=True)
        assert wg.autograd.grad(g.sum(), x)[0].tolist() == [6.0] * 3
    with pytest.raises(ValueError, match="it returns a container among its arguments"):
        compiled.save("step.py")


class Holder:
    """An object with tuples."""

    def __init__(self) -> None:
        self.fixed: Any = (wg.ones(2), "text", Pair(1.0, wg.zeros(2)))
        self.s: Any = (wg.zeros(2), (wg.ones(2), None))
        self.t: Any = (wg.zeros(2), (wg.ones(2), None))

    def fixed_one(self, x: Any) -> Any:
        return self.fixed

    def named_one(self, x: Any) -> Any:
        return {"a": x * 2, "b": self.fixed[2]}

    def stored(self, x: Any) -> Any:
        self.s = self.s[0] + x, (self.s[1][0] * 2, None)
        return x * 3, self.s

    def stored_with_results(self, x: Any) -> Any:
        y = x * 2
        self.s = y, (y, None)
        return y, self.s, self.s

    def moved(self, x: Any) -> Any:
        self.s, self.t = self.t, (self.s[0] + x, (self.s[1][0], None))
        return [self.s, self.t, x.sum()]

    def sometimes(self, x: Any) -> Any:
        if x.shape == (2,):
            self.s = self.s[0] + x, (self.s[1][0], None)
        return self.s


RETURNS = [x for key, x in vars(Holder).items() if key[0] != "_"]


@pytest.mark.parametrize("method", RETURNS)
def test_a_tuple_of_the_state_is_returned_itself(method: Any) -> None:
    def run(compiled: bool) -> tuple[list[Any], Any]:
        held, found = Holder(), list[Any]()
        step = wg.compile(types.MethodType(method, held))
        known = {id(held.fixed): "fixed", id(held.fixed[2]): "named"}
        for i in range(6):
            x = wg.ones(2 if i % 3 else ())
            answer = (step if compiled else step.eagerly)(x)
            places = known | {id(held.s): "s", id(held.t): "t"}
            parts: list[Any] = []
            wg.func.tree_flatten(
                answer, lambda y, p=parts, known=places: p.append(known.get(id(y)))
            )
            leaves = wg.func.tree_leaves(answer)
            values = [x.tolist() if isinstance(x, wg.Tensor) else x for x in leaves]
            found.append((parts, values))
        return found, step

    found, step = run(compiled=True)
    assert found == run(compiled=False)[0]
    assert not step.report._fallbacks


def test_results_beside_a_tuple_of_the_state_are_differentiated() -> None:
    w, fixed = wg.asarray(3.0, requires_grad=True), (wg.ones(2), wg.ones(2))

    @wg.compile
    def step(x: Any) -> Any:
        return fixed, w * w * x

    for _ in range(4):
        held, y = step(wg.asarray(2.0))
        assert held is fixed
        (g,) = wg.autograd.grad(y, w, create_graph=True)
        assert g.item() == 12.0
        assert wg.autograd.grad(g, w)[0].item() == 4.0


def _twice(x: Any, t: Any) -> Any:
    made = (x, x)
    return made, made


def _old(x: Any, t: Any) -> Any:
    old, STATE.s = STATE.s, (STATE.s[0] + x, (x * 2,))
    return old


def _part(x: Any, t: Any) -> Any:
    STATE.s = (STATE.s[0] + x, (x * 2,))
    return STATE.s[1]


STATE = SimpleNamespace()


@pytest.mark.parametrize("function", [_twice, _old, _part])
def test_another_tuple_that_is_returned_is_refused(function: Any) -> None:
    STATE.s = (wg.ones(2), (wg.zeros(2),))
    with pytest.raises(TraceError, match="return a copy"):
        wg.compile(function, strict=True)(wg.ones(2), (1.0, (wg.ones(2),)))
    step = wg.compile(function)
    for _ in range(4):
        given, old = (1.0, (wg.ones(2),)), STATE.s
        one = step(wg.ones(2), given)
        made = one[0] if function is _twice else STATE.s[1]
        same = (one, one[-1]) if type(one[-1]) is tuple else (one,)
        assert any(x is y for x in same for y in (old, made))


NAN, OTHER = float("nan"), float("nan")


def _nan_cases() -> dict[str, tuple[Callable[..., Any], Callable[[Any], tuple[Any, ...]]]]:
    """Functions that ask for ``NAN``, and what to give them for a number."""
    held = SimpleNamespace(a=0.0, t=(), l=[], d={}, s=set(), n=[0.0] * 99)
    of = lambda key, make: lambda x: setattr(held, key, make(x)) or ()
    times = lambda yes: lambda y: y * (2 if yes() else 3)
    return {
        "a tuple": (times(lambda: NAN in held.t), of("t", lambda x: (x,))),
        "equal tuples": (times(lambda: held.t == (1, NAN)), of("t", lambda x: (1, x))),
        "a list": (times(lambda: NAN in held.l), of("l", lambda x: [x])),
        "a count": (lambda y: y * held.l.count(NAN), of("l", lambda x: [1.0, x])),
        "a long list": (times(lambda: NAN in held.n), of("n", lambda x: [0.0] * 99 + [x])),
        "a key": (times(lambda: held.d.get(NAN)), of("d", lambda x: {x: 1})),
        "a set": (times(lambda: NAN in held.s), of("s", lambda x: {x})),
        "an attribute": (times(lambda: held.a in (NAN, 1.0)), of("a", lambda x: x)),
        "an argument by `is`": (lambda y, n: y * (2 if n is NAN else 3), lambda x: (x,)),
        "an attribute by `is`": (times(lambda: held.a is NAN), of("a", lambda x: x)),
        "an argument": (lambda y, n: y * (2 if n in (NAN, 1.0) else 3), lambda x: (x,)),
        "arguments": (lambda y, n: y * (2 if NAN in n else 3), lambda x: ([x, 1.0],)),
        "keys of arguments": (lambda y, n: y * (2 if NAN in n else 3), lambda x: ({x: 1.0},)),
    }


#: Bodies that store NaN, or return it: one that was there, or a new one.
STORED = [
    "s.b = s.a",
    "s.b = HELD['nan']\nreturn s.b",
    "s.b = s.c = math.nan",
    "s.b = s.t[0]",
    "s.c = s.b\ns.b = s.a",
    "s.b = float('nan')",
    "s.b = s.c = float('nan')\nreturn s.b",
    "return s.a",
    "return float('nan')",
    "s.b = s.c = s.a + 1.0",
    "s.n = s.n + 1.0\ns.b = s.n\nreturn s.b",
    "s.b = -s.n\ns.c = s.b",
    "s.a, s.n = s.n, s.a",
    "s.a = s.n = 1.0 - s.n\nreturn s.a",
    "s.l[0], s.a = s.a, s.l[0]\nreturn s.l[0]",
]


@pytest.mark.parametrize("check", [None, 0, 1])
@pytest.mark.parametrize("body", STORED)
def test_which_nan_is_stored(body: str, check: int | None) -> None:
    def course(compiled: bool) -> list[list[Any]]:
        s = SimpleNamespace(a=float("nan"), b=1.0, c=2.0, n=float("nan"))
        s.t, s.l = (s.a, 2), [float("nan")]
        space = {"s": s, "HELD": {"nan": float("nan")}, "math": math, "__name__": "program"}
        exec("def step(x):\n    " + body.replace("\n", "\n    "), space)
        step = wg.compile(space["step"], check=check) if compiled else space["step"]
        seen: list[Any] = []
        course = []
        for i in range(6):
            if i == 4:
                s.a = float("nan")
            now = [step(wg.ones(2)), s.a, s.b, s.c, s.n, s.l[0], space["HELD"]["nan"]]
            now.append(math.nan)
            seen += now
            course.append([next(k for k, y in enumerate(seen) if y is x) for x in now if x != x])
        assert not compiled or not step.report._fallbacks
        return course

    assert course(compiled=True) == course(compiled=False)


@pytest.mark.parametrize("scalar", [float, np.float64])
@pytest.mark.parametrize("name", _nan_cases())
def test_nan_is_told_by_identity(name: str, scalar: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """So ``in`` and ``==`` of containers do."""
    mine, other = scalar("nan"), scalar("nan")
    monkeypatch.setitem(globals(), "NAN", mine)
    function, put = _nan_cases()[name]
    compiled = wg.compile(function)
    for number in (other, mine, scalar(0.5), other, mine, scalar(0.5)):
        given = put(number)
        for _ in range(3):
            assert compiled(wg.ones(()), *given).item() == function(wg.ones(()), *given).item()
    assert compiled.report.recordings <= 3


@pytest.mark.parametrize("with_", ["a constant", "an argument", "another"])
def test_a_counter_that_is_nan_is_told_by_identity(with_: str) -> None:
    held = SimpleNamespace(n=0.0, k=0.0)

    def step(x: Any, n: Any) -> Any:
        beside = {"a constant": NAN, "an argument": n, "another": held.k}[with_]
        found = x * (2 if held.n in (beside, 1.0) else 3)
        if held.n != held.n:
            found = found + 1
        held.n, held.k = held.n + 1, held.k + 1
        return found

    compiled = wg.compile(step)
    numbers = (0.0, 1.0, 5.0, NAN, 7.0, OTHER, NAN)
    for n, k in [(n, k) for n in numbers for k in (0.0, 5.0, NAN)] * 2:
        found = []
        for call in (compiled, step):
            held.n, held.k = n, k
            found.append(call(wg.ones(()), k).item())
        assert found[0] == found[1]


def test_containers_that_are_made_are_returned_by_programs() -> None:
    compiled = wg.compile(lambda x, d: {"a": x * 2, "b": [x, x * d["k"]], "c": (x, x)})
    for _ in range(4):
        answer = compiled(wg.ones(2), {"k": 3.0})
    assert answer["b"][1].tolist() == [3, 3]
    assert "ran eagerly" not in str(compiled.report)


def test_a_tensor_that_no_name_leads_to() -> None:
    """What holds it is taken to be immutable, and is not looked through."""

    def run(compiled: bool) -> list[Any]:
        found, w = [], wg.asarray([2.0, 3.0])
        hidden = operator.methodcaller("__mul__", w)
        function = wg.compile(hidden_in(hidden), check=0) if compiled else hidden_in(hidden)
        for i in range(4):
            with wg.no_grad():
                w[...] = float(i)
            found.append(function(wg.ones(2)).tolist())
        if compiled:
            assert "by none of the names" in str(function.report)
        return found

    hidden_in = lambda hidden: lambda x: hidden(x)
    assert run(True) == run(False)
