"""What a replay could not repeat is seen before it is done, whatever the code calls it by."""

import contextlib
import cProfile
import datetime as dt
import decimal
import gc
import io
import itertools
import logging
import math
import operator
import os
import pstats
import random
import signal
import sys
import threading
import time
import types
import uuid
import warnings
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np
import pytest

import wengert as wg
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.watch import Watch, needed

NUMBERS = [1, 2, 3]
COUNTER = itertools.count(1)
GENERATOR = np.random.default_rng(0)
TABLE = {"time": time.time, "draw": np.random.rand}


class Config:
    def __init__(self):
        self.clock = time.perf_counter


CONFIG = Config()


def _imported(x):
    from random import random as draw

    return x * draw()


def _inner(x):
    def again(y):
        return y * time.time()

    return again(x)


def _assigned():
    """A clock that C calls, by a variable that the function may assign."""
    clock = time.time

    def timed(x, other=None):
        nonlocal clock
        if other is not None:
            clock = other
        ((_, now),) = zip((1,), iter(clock, None), strict=False)
        return x * now

    return timed


UNREPEATABLE = {
    "time": lambda x: x * time.time(),
    "time after an operation": lambda x: wg.tanh(x * 2) * time.time(),
    "a clock in a container": lambda x: x * TABLE["time"](),
    "a clock in an object": lambda x: x * CONFIG.clock(),
    "a clock by another name": lambda x: x * getattr(time, "ti" + "me")(),
    "a clock in an inner function": _inner,
    "a clock that may be another": _assigned(),
    "now": lambda x: x * dt.datetime.now(dt.UTC).microsecond,
    "random": lambda x: x * random.random(),
    "choice": lambda x: x * random.choice(NUMBERS),
    "an import": _imported,
    "numpy.random": lambda x: x * np.random.rand(),  # noqa: NPY002
    "a seed": lambda x: (np.random.seed(0), x)[1],  # noqa: NPY002
    "a generator of NumPy's": lambda x: x * np.random.default_rng().random(),
    "a generator": lambda x: x * GENERATOR.random(),
    "numpy.random in a container": lambda x: x * TABLE["draw"](),
    "the process": lambda x: x * os.getpid(),
    "print": lambda x: (print(end=""), x)[1],
    "open": lambda x: (open(os.devnull).close(), x)[1],  # noqa: PTH123
    "standard output": lambda x: (sys.stdout.write(""), x)[1],
    "next": lambda x: x * next(COUNTER),
    "globals": lambda x: x * len(globals()),
    "eval": lambda x: x * eval("2"),
    "id": lambda x: x * (id(x) % 2),
    "logging": lambda x: (logging.debug("once more"), x)[1],  # noqa: LOG015
    "uuid": lambda x: x * (uuid.uuid4().int % 2),
    "a warning": lambda x: (warnings.warn("once more", stacklevel=1), x)[1],
    "sleep": lambda x: (time.sleep(0), x)[1],
    "a file of an array": lambda x: (np.ones(1).tofile(os.devnull), x)[1],
    "a thread": lambda x: x * threading.get_ident(),
    "a setting of NumPy's": lambda x: x * len(np.geterr()["over"]),
    "how NumPy prints": lambda x: x * np.get_printoptions()["precision"],
    "how decimals are rounded": lambda x: x * decimal.getcontext().prec,
}


@pytest.mark.whole
@pytest.mark.parametrize("name", UNREPEATABLE)
def test_what_a_replay_could_not_repeat_is_not_done(name):
    function = UNREPEATABLE[name]
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        with pytest.raises(TraceError):
            wg.compile(function, strict=True)(wg.ones(2))
        f = wg.compile(function)
        for _ in range(4):
            f(wg.ones(2))
    assert "ran eagerly" in str(f.report)
    assert f.report.checks <= 1


def test_draws_are_seen_in_code_that_names_very_much():
    """Names after the 256th are loaded by two instructions."""
    many = "".join(f"        x = x + more.n{i}\n" for i in range(300))
    scope = {"np": np, "more": None}
    exec(f"def f(x):\n    if more:\n{many}    return x * np.random.normal()", scope)
    with pytest.raises(TraceError, match="normal draws random numbers"):
        wg.compile(scope["f"], strict=True)(wg.ones(2))


Point = namedtuple("Point", ["a", "b"])


@dataclass
class Data:
    a: float = 2.0

    def doubled(self):
        return replace(self, a=self.a * 2)


class Steps(dict):
    def put(self, key, value):
        self.update({key: value})
        return self


def _comprehended(x):
    pairs = sorted(zip("ab", [2.0, 3.0], strict=True), key=operator.itemgetter(1))
    table = OrderedDict(pairs)
    return x * sum(v for _, v in table.items()) * max(map(len, table))


def _counted(x):
    made = defaultdict(list)
    made["a"].append(x)
    times = Counter("aab")
    return made["a"][0] * times["a"] * len(deque([1, 2], maxlen=1))


@contextlib.contextmanager
def _within():
    yield 3.0


def _managed(x):
    with _within() as by, wg.no_grad():
        return x * by


def _walked(x):
    it = iter([x, x * 2])
    first = next(it)
    return first + next(it) + next((y for y in [x]), x)


REPEATABLE = {
    "math": lambda x: x * math.sqrt(2) * math.prod([1, 2]),
    "functools": lambda x: reduce(operator.add, [x, x, partial(operator.mul, 2)(x)]),
    "itertools": lambda x: sum((a * b for a, b in itertools.product([x], [1, 2])), x),
    "containers": _comprehended,
    "other containers": _counted,
    "tuples": lambda x: x * Point(1, b=2)._replace(b=3).b,
    "data": lambda x: x * Data().doubled().a,
    "a dict's class": lambda x: x * Steps().put("a", 2.0)["a"],
    "text": lambda x: x * len(f"{1.5:.2f}".upper().split(".")),
    "numpy": lambda x: x * float(np.sum(np.arange(3.0)) + np.linalg.norm(np.ones(2))),
    "a context": _managed,
    "iterators": _walked,
    "sets": lambda x: x * len({1, 2} | set(range(3))),
    "draws": lambda x: x * wg.rand_like(x) + wg.randn(2),
    "asking": lambda x: x * isinstance(x, wg.Tensor) * hasattr(x, "grad") * callable(len),
}


@pytest.mark.parametrize("name", REPEATABLE)
def test_ordinary_code_is_compiled(name):
    function = REPEATABLE[name]
    f = wg.compile(function, strict=True, check=0)  # which is watched
    g = wg.compile(function, strict=True)
    for compiled in (f, g):
        for i in range(3):
            wg.manual_seed(i)
            found = compiled(wg.asarray([1.0, float(i)]))
            wg.manual_seed(i)
            assert found.tolist() == function(wg.asarray([1.0, float(i)])).tolist()
        assert compiled.report.recordings == 1
    assert g.report.checks >= 1


def _holding(held):
    return lambda x: x * held(2.0) if callable(held) else x * held


@pytest.mark.parametrize(
    ("function", "seen"),
    [
        (lambda x: wg.linalg.matmul(x, x), False),
        (lambda x: wg.nn.functional.relu(wg.func.grad(wg.sin)(x)), False),
        (_holding(2.0), False),
        (_holding(wg.ones(2)), False),
        (_holding(math.sin), True),
        (_holding(time.time), True),
    ],
)
def test_what_is_watched(function, seen):
    """Watching takes time, so what names only what is harmless goes without."""
    assert needed([], [function]) is seen


def test_nothing_happens_twice():
    """A call that can't be repeated stops the recording before it is made, not after."""
    said = io.StringIO()

    def step(x):
        print("once", file=said)
        if wg.sum(x) > 0:
            return x * 2
        return x

    f = wg.compile(step)
    for i in range(1, 5):
        f(wg.ones(2))
        assert said.getvalue().count("once") == i


def test_code_that_catches_everything_does_not_hide_it():
    said = io.StringIO()

    def step(x):
        try:
            print("once", file=said)
        except BaseException:
            return x * 0.0
        return x * 2.0

    f = wg.compile(step)
    for i in range(1, 4):
        assert f(wg.ones(1)).tolist() == [2.0]
        assert said.getvalue().count("once") == i


def test_another_profiler_goes_on():
    seen = Counter()

    def profiler(frame, event, arg):
        seen[frame.f_code.co_name] += 1

    def function(x):
        return x * math.sqrt(2.0)

    f = wg.compile(function, check=0)
    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        f(wg.ones(2))
        assert sys.getprofile() is profiler
        with pytest.raises(TraceError):
            wg.compile(lambda x: x * time.time(), strict=True)(wg.ones(2))
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(before)
    assert seen["__call__"]


def test_a_stopped_recording_leaves_no_hook_to_a_tracer():
    """As under `coverage`: what it traces would later be stopped as the user's impure calls."""

    def tracer(frame, event, arg):
        return tracer

    step = wg.compile(lambda x: x * time.time(), check=0)
    with contextlib.ExitStack() as stack:  # whose calls no hook of the watch stops
        stack.callback(sys.setprofile, sys.getprofile())
        stack.callback(sys.settrace, sys.gettrace())
        sys.settrace(tracer)
        step(wg.ones(2))
        assert sys.gettrace() is tracer
        assert sys.getprofile() is None
    assert "time.time is called" in str(step.report)


def test_python_s_own_profiler_goes_on():
    f = wg.compile(lambda x: x * 2.0)
    profile = cProfile.Profile()
    profile.enable()
    try:
        for _ in range(3):
            f(wg.ones(2))
        sum([1.0, 2.0])
    finally:
        profile.disable()
    called = {key[2] for key in pstats.Stats(profile).stats}
    assert "<built-in method builtins.sum>" in called


def test_other_threads_are_not_watched():
    """They may ask for the time while this one records."""

    def function(x):
        for _ in range(200):
            x = x + 1.0
        return x

    asked = []
    thread = threading.Thread(target=lambda: asked.extend(time.time() for _ in range(20_000)))
    thread.start()
    f = wg.compile(function, strict=True, check=0)
    f(wg.ones(1))
    thread.join()
    assert f.report.recordings == 1
    assert len(asked) == 20_000


def test_what_the_collector_ends_is_not_the_function_s() -> None:
    """Generators, weak references and finalisers of others, whose frame is the function's."""
    seen = []
    scope = {"__name__": "hypothesis.foreign", "seen": seen}
    exec(
        "import weakref\n"
        "def waiting():\n"
        "    try:\n"
        "        yield\n"
        "    finally:\n"
        "        seen.append('generator')\n"
        "class Ends:\n"
        "    def __del__(self): seen.append('finaliser')\n"
        "def leave():\n"
        "    x, y = Ends(), waiting()\n"
        "    next(y)\n"
        "    x.me, x.it = x, y\n"
        "    kept.append(weakref.ref(x, lambda _: seen.append('reference')))\n"
        "kept = []\n",
        scope,
    )

    def make() -> list[list[int]]:
        return [[i] for i in range(3000)]  # which the collector counts

    def call() -> None:
        leave()

    watch, threshold = Watch([make, call], stop=False), gc.get_threshold()
    gc.collect()
    scope["leave"]()
    gc.set_threshold(700, 1, 1)
    try:
        with watch.on():
            make()
    finally:
        gc.set_threshold(*threshold)
    assert {"generator", "finaliser", "reference"} <= set(seen)
    assert not watch.met
    leave = scope["leave"]
    with watch.on():
        call()
    assert "hypothesis.foreign.leave is called" in watch.met


def test_callbacks_of_the_collector_and_finalisers_are_let_run() -> None:
    """What the hook raises in them is lost, and may end the process."""
    seen = []

    def called(phase: str, info: dict[str, int]) -> None:
        seen.append(time.perf_counter())

    class Ends:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            seen.append(time.perf_counter())

    def make(x: wg.Tensor) -> wg.Tensor:
        for _ in range(40):
            x = x * 1.0
        return x

    def drop(x: wg.Tensor) -> wg.Tensor:
        Ends().me = None
        return x * 2.0

    threshold = gc.get_threshold()
    gc.callbacks.append(called)
    gc.set_threshold(5, 5, 5)
    try:
        for _ in range(30):
            f = wg.compile(make, check=0, strict=True)
            assert [f(wg.ones(1)).item() for _ in range(3)] == [1.0] * 3
        g = wg.compile(drop)
        assert [g(wg.ones(1)).item() for _ in range(3)] == [2.0] * 3
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(called)
    assert seen
    assert g.report.recordings == 0, g.report


# -- once, also on the way out ---------------------------------------------------------------------


class Counted:
    """Has methods that only other libraries' code names."""

    def __init__(self):
        self.by, self.n = 2.0, 0

    def close(self):
        self.n += self.by

    def max(self, axis=None, out=None):
        return self.by


def closed(held, x):
    with contextlib.closing(held):
        y = x * 2
    return y + held.n


def given(made, use):
    return lambda x: x * use(made)


CALLED_BY_OTHERS = {
    "closing": lambda held: partial(closed, held),
    "a method of another name": lambda held: lambda x: x * np.amax(held),
    "a ufunc": lambda held: given(np.frompyfunc(lambda v: v * held.by, 1, 1), lambda u: u(1)),
    "a property": lambda held: given(property(lambda _: held.by), lambda p: p.fget(None)),
}


@pytest.mark.parametrize("check", [None, 0])
@pytest.mark.parametrize("name", CALLED_BY_OTHERS)
def test_code_that_only_others_name(name, check):
    """What it reads is not known before it runs."""

    def course(compiles):
        held = Counted()
        function = CALLED_BY_OTHERS[name](held)
        function = wg.compile(function, check=check) if compiles else function
        found = []
        for i in range(6):
            held.by = 2.0 + i // 3
            found.append((function(wg.ones(2)).tolist(), held.n))
        return found, function

    found, function = course(compiles=True)
    assert found == course(compiles=False)[0]
    assert "no name in the code leads" in str(function.report)


class Ending:
    """Counts its end."""

    ended = 0

    def __del__(self):
        Ending.ended += 1


def test_handlers_and_finalisers_that_no_name_leads_to():
    """They may run at any time, and are let run."""
    handled, kept = [], {}
    before = signal.signal(signal.SIGALRM, lambda *_: handled.append(1))

    def step(x):
        for _ in range(200):
            x = wg.tanh(x)
        kept["thing"] = None
        return x

    try:
        for _ in range(3):
            function = wg.compile(step, check=0)
            kept["thing"] = Ending()
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
            for _ in range(4):
                function(wg.ones(2))
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert "no name" not in str(function.report)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert handled


class Said:
    """Writes on entry and exit."""

    def __enter__(self):
        print("enters")

    def __exit__(self, *_):
        print("exits")


def in_finally(x):
    try:
        try:
            time.time()
            print("not before")
        finally:
            print("inner")
    finally:
        print("outer")
    return x


def in_an_exit(x):
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: print("callback"))
        with Said(): time.time()  # noqa: E701  # fmt: skip
    return x


def in_a_handler(x):
    try:
        time.time()
        raise KeyError
    except BaseException:
        print("handled")
    finally:
        print("after")
    return x


def in_a_generator(x):
    def gives():
        try:
            yield time.time()
        finally:
            print("closed")

    for _ in gives():
        print("given")
    return x


def after_a_refusal(x):
    try:
        return x * float(wg.sum(x))
    finally:
        print("after")


def before_a_refusal(x):
    with ThreadPoolExecutor(1) as pool:
        list(pool.map(print, ["before"]))
    return x * float(wg.sum(x))


def by_map(x):
    return x * len([*map(print, ["by map"])])


class Settings:
    def __init__(self):
        self.log = print


SETTINGS, SPACE = Settings(), types.SimpleNamespace(inner=Settings())


def by_an_attribute(x):
    return x * len([*map(SETTINGS.log, ["by an attribute"])])


def by_a_namespace(x):
    return x * len([*map(SPACE.inner.log, ["by a namespace"])])


def by_a_context(x):
    with contextlib.ExitStack() as stack:
        stack.callback(print, "at the end")
    return x


def by_a_partial(x):
    partial(print, "partly")()
    return x


@pytest.mark.parametrize(
    "function",
    [
        in_finally,
        in_an_exit,
        in_a_handler,
        in_a_generator,
        after_a_refusal,
        before_a_refusal,
        by_map,
        by_an_attribute,
        by_a_namespace,
        by_a_context,
        by_a_partial,
    ],
)
def test_what_is_done_on_the_way_out_is_done_once(function, capsys):
    function(wg.ones(2))
    expected = capsys.readouterr().out
    assert expected
    compiled, tracing = wg.compile(function), sys.gettrace()
    for _ in range(4):
        compiled(wg.ones(2))
        assert capsys.readouterr().out == expected
    assert compiled.report.recordings == 0
    assert sys.gettrace() is tracing


LARGE = np.zeros(100_000, np.float32)


@pytest.mark.parametrize("refused", [False, True])
def test_a_large_array_is_written_into_once(refused):
    def writes(x):
        if LARGE[0] < 100:
            LARGE[...] += 1
        return x * float(wg.sum(x)) if refused else x * 2

    compiled = wg.compile(writes)
    LARGE[...] = 0
    for i in range(1, 5):
        compiled(wg.ones(2))
        assert LARGE[0] == LARGE[-1] == i
