"""Why a function was recorded anew, in words that a stranger understands."""

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert import nn

X = np.ones(3, dtype="float32")
settings: dict[str, Any] = {}


def read(x: Any) -> Any:
    found = settings["k"]
    return x * (found if isinstance(found, int | float) else len(found))


def reasons(function: Any, *calls: Any) -> list[str]:
    """Why the function was recorded, but for the first time."""
    compiled = wg.compile(function)
    for call in calls:
        compiled(*call)
    assert "ran eagerly" not in str(compiled.report)
    first, *others = [reason.rpartition(": ")[0] for reason in compiled.report.reasons]
    assert first == "the first call"
    return others


ARRAY = "float32 of shape (3,) on cpu"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((2, 2.5), "the argument n was 2 and is a float now"),
        ((2, 3), "the argument n was 2 and is 3 now"),
        ((True, 2), "the argument n was True and is 2 now"),
        ((2, X), f"the argument n was 2 and is {ARRAY} without requires_grad now"),
        ((2, np.float32(3)), "the argument n was 2 and is np.float32(3.0) now"),
        ((X, X.astype("float64")), "the argument n was float32 of shape (3,) on cpu without"),
    ],
)
def test_arguments(given: Any, told: str) -> None:
    calls = [
        (wg.asarray(X), wg.asarray(n) if n is X or n.__class__ is X.__class__ else n) for n in given
    ]
    (found,) = reasons(lambda x, n: x * n, *calls)
    assert found.startswith(told)


def test_names_of_arguments() -> None:
    x = wg.asarray(X)
    assert reasons(lambda x, flag="a": x * 2, (x,), (x, "b")) == [
        "the structure of the arguments was x and is x, flag now"
    ]


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (1, 2, "settings['k'] was 1 and is 2 now"),
        ("ab", "abc", "settings['k'] was 'ab' and is 'abc' now"),
        ([1, 2], [1, 2, 3], "settings['k'] was of length 2 and is of length 3 now"),
    ],
)
def test_what_a_function_reads(before: Any, now: Any, told: str) -> None:
    compiled = wg.compile(read)
    for settings["k"] in (before, now):
        compiled(wg.asarray(X))
    assert [reason.rpartition(": ")[0] for reason in compiled.report.reasons[1:]] == [told]


def test_modes() -> None:
    x = wg.asarray(X)
    double = wg.compile(lambda x: x * 2)
    double(x)
    with wg.no_grad():
        double(x)
    assert double.report.reasons[1].startswith("the recording mode has changed")


def test_a_tensor_of_the_state_that_has_changed_is_named():
    layer = wg.nn.Linear(2, 2)
    step = wg.compile(lambda x: layer(x).detach())
    step(wg.ones(1, 2))
    layer.bias.requires_grad = False
    step(wg.ones(1, 2))
    assert "layer.bias was float32 of shape (2,) on cpu that is a leaf" in str(step.report)


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
    f = wg.compile(lambda x: x * 2, check=0)
    assert repr(f).endswith(": 0 programs>")
    f(wg.asarray(X))
    assert repr(f).endswith(": 1 program>")
    assert str(f.report).endswith(
        ": recorded 1 time, checked 0 times\n  1. the first call: 1 instruction"
    )
    f = wg.compile(lambda x: x.tolist(), strict=False)
    with pytest.warns(RuntimeWarning, match="runs as it is"):
        f(wg.asarray(X))
    assert "\n  1 call ran eagerly: " in str(f.report)
    f(wg.asarray(X))
    assert "\n  2 calls ran eagerly: " in str(f.report)
    f = wg.compile(lambda x: x * 2, cache_size=1, check=0)
    f(wg.ones(1))
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
    f = wg.compile(lambda x: x * held.scale)
    for _ in range(5):
        held.log.append(f(wg.asarray(X)))
    assert f.report.recordings == f.report.checks == 1


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
    assert f(wg.asarray(X)).tolist() == [1.0] * 3
