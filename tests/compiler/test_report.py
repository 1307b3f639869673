"""Why a function was recorded anew, in words that a stranger understands."""

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert import nn

X = np.ones(3, dtype="float32")

#: What is told of a function of ``x`` and other things, by what is done first, and then.
REASONS = """
the argument n was 2 and is a float now | x * n | f(x, 2) | f(x, 2.5)
the argument n was 2 and is 3 now | x * n | f(x, 2) | f(x, 3)
the argument n was True and is 2 now | x * n | f(x, True) | f(x, 2)
the argument n was 2 and is float32 of shape (3,) on cpu without requires_grad now
    | x * n | f(x, 2) | f(x, x)
the argument n was 2 and is np.float32(3.0) now | x * n | f(x, 2) | f(x, np.float32(3))
the argument n was float32 of shape (3,) on cpu without | x * n | f(x, x) | f(x, x.double())
the structure of the arguments was x and is x, n now | x * 2 | f(x) | f(x, 'b')
held['k'] was 1 and is 2 now | x * held['k'] | held['k'] = 1; f(x) | held['k'] = 2; f(x)
held['k'] was 'ab' and is 'abc' now
    | x * len(held['k']) | held['k'] = 'ab'; f(x) | held['k'] = 'abc'; f(x)
held['k'] was of length 2 and is of length 3 now
    | x * len(held['k']) | held['k'] = [1, 2]; f(x) | held['k'] = [1, 2, 3]; f(x)
the recording mode has changed | x * 2 | f(x) | with wg.no_grad(): f(x)
layer.bias was float32 of shape (2,) on cpu that is a leaf
    | layer(x).detach() | f(x) | layer.bias.requires_grad = False; f(x)
"""


@pytest.mark.parametrize("row", REASONS.strip().replace("\n   ", "").split("\n"))
def test_reasons(row: str) -> None:
    told, body, first, then = row.split(" | ")
    space: dict[str, Any] = {"wg": wg, "np": np, "x": wg.asarray(X), "held": {}}
    space |= {"layer": nn.Linear(3, 2), "__name__": "program"}
    space["f"] = f = wg.compile(eval(f"lambda x, n='a': {body}", space))
    exec(first, space)
    exec(then, space)
    assert f.report.reasons[0].startswith("the first call: ")
    assert f.report.reasons[1].startswith(told)
    assert "ran eagerly" not in str(f.report)


def test_hooks() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    compiled = wg.compile(lambda x: model(x).sum().backward())
    for _ in range(2):
        compiled(wg.asarray(X))
        model.zero_grad()
        model[0].register_forward_hook(lambda *given: None)
    model[0].weight.register_hook(lambda g: None)
    compiled(wg.asarray(X))
    assert all("model.0" in reason for reason in compiled.report.reasons[1:])


def test_one_is_no_plural() -> None:
    f = wg.compile(lambda x: x * 2, cache_size=1, check=0)
    assert repr(f).endswith(": 0 programs>")
    f(wg.asarray(X))
    assert repr(f).endswith(": 1 program>")
    told = ": recorded 1 time, checked 0 times\n  1. the first call: 1 instruction"
    assert str(f.report).endswith(told)
    with pytest.warns(RuntimeWarning, match="keeps 1 program: the argument x was"):
        f(wg.ones(2))
    assert f.report.dropped == 1


def test_a_number_whose_value_is_fixed_is_named_with_its_line() -> None:
    f = wg.compile(lambda x, power, offset: x**power + offset, check=0)
    for power in (2.0, 2.0, 3.0):
        f(wg.ones(2), power, 1.0)
    assert f.report.reasons[1].startswith("power (test_report.py, line ")


def test_what_the_code_does_not_name_is_not_compared() -> None:
    held = SimpleNamespace(scale=2.0, log=[])
    f = wg.compile(lambda x: {"{}: {:.1f}".format("x", 1.0): x * held.scale}["x: 1.0"])
    for _ in range(5):
        held.log.append(f(wg.asarray(X)))
    assert f.report.recordings == 1


def test_what_is_not_looked_into_is_reported() -> None:
    held = SimpleNamespace(source=threading.Lock())
    f = wg.compile(lambda x: x * 2 if held.source else x)
    f(wg.asarray(X))
    assert "not looked into: held.source" in str(f.report)


def test_not_strict_runs_as_it_is_and_warns_once() -> None:
    f = wg.compile(lambda x: x if wg.sum(x) > 0 else -x, strict=False)
    call = lambda x: f(x)
    with pytest.warns(RuntimeWarning, match=r"test_report\.py, line") as told:
        assert call(wg.asarray(-X)).tolist() == [1.0] * 3
    assert told[0].lineno == call.__code__.co_firstlineno
    assert "\n  1 call ran eagerly: " in str(f.report)
    assert f(wg.asarray(X)).tolist() == [1.0] * 3
    assert "\n  2 calls ran eagerly: " in str(f.report)
