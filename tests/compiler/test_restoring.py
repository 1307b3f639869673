"""Things are put back wherever an interrupt comes, also while they are put back."""

import sys

import pytest

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
