"""Things are put back wherever an interrupt comes, also while they are put back, and let go."""

import gc
import sys
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.interrupting import Interrupt, InterruptError
from wengert.compiler.restoring import restoring

pytestmark = pytest.mark.skipif(sys.gettrace() is not None, reason="a tracer is at work already")


class Pair:
    """Two numbers, which are set one after the other."""

    def __init__(self) -> None:
        self.numbers = [0, 0]

    def set(self, i: int, number: int) -> None:
        self.numbers[i] = number

    def change(self) -> None:
        self.set(0, 1)
        self.set(1, 1)

    def fail(self) -> None:
        self.change()
        raise ValueError("it has failed")

    def put_back(self) -> None:
        self.set(0, 0)
        self.set(1, 0)


def interrupted(at: int, fails: bool) -> tuple[Interrupt, list[int]]:
    pair = Pair()
    with Interrupt(at) as interrupt:
        try:
            restoring(pair.fail if fails else pair.change, pair.put_back)
        except (InterruptError, ValueError):
            return interrupt, pair.numbers
    return interrupt, pair.numbers


@pytest.mark.parametrize("fails", [False, True])
def test_no_half_is_left(fails: bool) -> None:
    interrupt, numbers = interrupted(0, fails)
    assert numbers == ([0, 0] if fails else [1, 1])
    assert interrupt.count >= (3 if fails else 2)  # where functions begin
    for at in range(1, interrupt.count + 1):
        interrupt, numbers = interrupted(at, fails)
        assert interrupt.where
        assert numbers == [0, 0], interrupt.where


def test_the_error_is_the_functions() -> None:
    with pytest.raises(ValueError, match="it has failed"):
        restoring(Pair().fail, Pair().put_back)


def _keeps(x: Any, held: Any) -> Any:
    held["all"].append(1)
    return x


def _reads(x: Any, held: Any) -> Any:
    return x * float(x[0])


def _counts(x: Any, held: Any) -> Any:
    held["n"] += 1
    return x * held["n"]


def _decides_by_an_array(x: Any, held: Any) -> Any:
    return x * 2 if held["array"][0] > 0 else x


@pytest.mark.parametrize("check", [None, 0])
@pytest.mark.parametrize("rest", [_keeps, _reads, _counts, _decides_by_an_array])
def test_a_recording_that_fails_is_gone_before_the_function_runs_again(
    rest: Any, check: int | None
) -> None:
    """So that its views are not taken for ones of the user's, of which a `ViewWarning` tells."""
    w = wg.nn.Parameter(wg.ones(3))
    held = {"all": [], "n": 0, "array": np.ones(3, dtype=np.float32)}

    def step(x: Any) -> Any:
        with wg.no_grad():
            w.mul_(2.0)
        seen = w.detach()
        return seen, rest(x, held)

    function = wg.compile(step, check=check)
    gc.collect()
    gc.disable()
    try:
        for i in range(1, 6):
            assert function(wg.ones(3))[0].tolist() == [2.0**i] * 3
    finally:
        gc.enable()
