"""A hundred training steps as people write them, changed between calls: as eagerly, to the bit.

All but a few compile as they stand. Those are refused, with the place and the way out.
"""

import itertools
import linecache
import re
from collections.abc import Callable
from contextlib import suppress
from textwrap import indent
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.ordinary import alike
from tests.compiler.realistic_steps import STEPS
from wengert.compiler import CompileError

CALLS = 6
#: What stands before each step.
BEFORE = """
import copy, dataclasses, enum, functools, itertools, random, time
from collections import OrderedDict, defaultdict, deque, namedtuple
from types import SimpleNamespace
import numpy as np
import wengert as wg
from wengert import nn, optim
F = nn.functional
model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))
optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
more = []
held = SimpleNamespace(k=1.0)
def update(loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss
def error(x, y, **options):
    return F.cross_entropy(model(x), y, **options)
def train(x, y):
    return update(error(x, y))
def state():
    found = [*model.parameters(), *model.buffers(), *more]
    found += [p.grad for p in model.parameters() if p.grad is not None]
    return [x.detach().clone() for x in found], optimizer.state_dict()["state"]
def step(x, y):
    return train(x, y)
"""
#: Those that can't be compiled, and what the error says.
REFUSED = """
counter
    says: changes .*trainer.steps.* from 1 to 2.*Return it
    trainer = SimpleNamespace(steps=0)
    def step(x, y):
        trainer.steps += 1
        return train(x, y)
counter as a variable
    says: changes counter from .*(Return it|make it a Tensor)
    counter = 0
    def step(x, y):
        nonlocal counter
        counter += 1
        return train(x, y)
item of a dict
    says: changes held\\['a'\\] from .*(Return it|make it a Tensor)
    held = {"a": 0}
    def step(x, y):
        held["a"] = held["a"] + 1
        return train(x, y)
list of losses
    says: changes the length of .*log.* from 1 to 2.*outside
    log = []
    step: log.append(train(x, y).detach())
deque of losses
    says: changes .*last.* outside
    last = deque(maxlen=3)
    step: last.append(train(x, y).detach())
augmentation by random
    says: draws from random.*wg.random
    step: train(x * random.uniform(0.9, 1.1), y)
augmentation by np.random
    says: draws from .*random.*wg.random
    step: train(x * np.random.random(), y)
augmentation by a generator of NumPy's
    says: draws from .*rng.*wg.random
    rng = np.random.default_rng(0)
    step: train(x + wg.asarray(rng.normal(size=5).astype(np.float32)), y)
NumPy buffer filled inside
    says: line \\d+ .*noise\\[0\\].*(read-only|in place|written)
    noise = np.zeros((4, 5), np.float32)
    def step(x, y):
        noise[0] = 1.0
        return train(x + wg.asarray(noise), y)
NumPy buffer filled by a view and restored
    says: (read-only|in place|written)
    noise = np.zeros((4, 5), np.float32)
    view = noise[:]
    def step(x, y):
        view[:] = 1.0
        loss = train(x + wg.asarray(noise), y)
        view[:] = 0.0
        return loss
too large a state
    says: held\\['data'\\]
    held = {"data": [float(i) for i in range(20_000)]}
    step: train(x * held["data"][0], y)
list made shorter
    says: changes the length of held.log from . to
    held.log, held.h, more = [1, 2, 3], wg.ones(3), [wg.ones(3)]
    def step(x, y):
        held.h = more[0] = more[0] * 2
        return train(x * held.log.pop(), y)
a further place of an array
    says: changes held\\.b from a ndarray
    held.a = held.b = np.ones(5, np.float32)
    def step(x, y):
        loss = train(x * wg.asarray(held.a), y)
        held.b = np.zeros(5)
        return loss
a tuple with attributes
    says: changes held\\.t
    class Hidden(namedtuple("Hiding", "a")):
        pass
    held.t = Hidden(wg.ones(5))
    held.t.k = 1.0
    def step(x, y):
        held.t = Hidden(held.t[0] * 2)
        held.t.k = 1.0
        return train(x, y)
clock
    says: differs
    step: train(x * (time.perf_counter() % 1.0), y)
"""


def rows(text: str) -> dict[str, str]:
    """The lines of each row by its name."""
    pairs = re.findall(r"^(\S.*)\n((?:    .*\n)*)", text, re.MULTILINE)
    return {name: re.sub("^    ", "", lines, flags=re.MULTILINE) for name, lines in pairs}


def source(lines: str, closed: bool) -> str:
    """The module that makes a step, of global variables or of those of a function."""
    text = re.sub(r"^step: (.*)", r"def step(x, y):\n    return \1", lines, flags=re.MULTILINE)
    text = re.sub(
        r"^loss: (.*)", r"def step(x, y):\n    return update(\1)", text, flags=re.MULTILINE
    )
    after = re.findall(r"^after ?([^:]*): (.*)", text, re.MULTILINE)
    text = re.sub(r"^(after|says).*\n", "", text, flags=re.MULTILINE)
    names = [f"nonlocal {name}" for _, line in after for name in re.findall(r"^(\w+) = ", line)]
    changes = [f"if {condition or True}:\n    {line}" for condition, line in after]
    text += "def change(i):\n" + indent("\n".join([*names, *changes, "pass"]), "    ") + "\n"
    if not closed:
        return BEFORE + text.replace("nonlocal", "global")
    inner = indent(BEFORE + text + "return step, state, change", "    ")
    return f"def make():\n{inner}\nstep, state, change = make()\n"


def make_step(name: str, lines: str) -> tuple[Callable[..., Any], ...]:
    """A step, what looks at the state that it leaves, and what happens after each call."""
    text, file = source(lines, closed=len(lines) % 2 > 0), f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space: dict[str, Any] = {"__name__": "program"}
    exec(compile(text, file, "exec"), space)
    return space["step"], space["state"], space["change"]


def batches() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    drawn = [(rng.normal(size=(4, 5)), rng.integers(0, 3, 4)) for _ in range(CALLS)]
    return [(wg.asarray(x, dtype=wg.float32), wg.asarray(y)) for x, y in drawn]


@pytest.mark.parametrize(("name", "lines"), rows(STEPS).items(), ids=rows(STEPS))
def test_steps_are_the_eager_ones(name: str, lines: str) -> None:
    def make() -> tuple[Callable[..., Any], Callable[[], Any]]:
        function, state, change = make_step(name, lines)
        calls = itertools.count()
        return function, lambda: (state(), change(next(calls)))[0]

    assert alike(make, batches()).source


@pytest.mark.parametrize(("name", "lines"), rows(REFUSED).items(), ids=rows(REFUSED))
def test_steps_are_refused_with_the_way_out(name: str, lines: str) -> None:
    function, state, _ = make_step(name, lines)
    compiled = wg.compile(function)
    with suppress(CompileError):
        compiled(*batches()[0])  # with which the optimiser begins
    before = state()

    def run() -> None:
        for x, y in batches():
            compiled(x, y)

    says = lines.splitlines()[0].removeprefix("says: ")
    with pytest.raises(CompileError, match=f"(?s){says}"):
        run()
    if name != "clock":  # which the check of the first replay finds
        for x, y in zip(*map(wg.func.tree_leaves, (before, state())), strict=True):
            assert np.array_equal(x.numpy(), y.numpy())


def test_there_are_a_hundred() -> None:
    assert len(rows(STEPS)) >= 100
