"""What a call does around its program: it lets go of gradients where the function does."""

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg


class Training:
    """A step that clears gradients at one of several places."""

    def __init__(self, clears: str) -> None:
        rng = np.random.default_rng(0)
        self.clears, self.found = clears, 0
        self.weight = wg.asarray(rng.normal(size=(6, 3))).requires_grad_()
        self.bias = wg.asarray(rng.normal(size=(3,))).requires_grad_()
        self.optimiser = wg.optim.SGD([self.weight, self.bias], lr=0.1)

    def step(self, x: Any, y: Any) -> Any:
        if self.weight.grad is not None:
            self.found += 1
        held = self.weight.grad
        if self.clears == "first":
            self.optimiser.zero_grad()
        elif self.clears == "one":
            self.weight.grad = None
        elif self.clears == "zeros":
            self.optimiser.zero_grad(set_to_none=False)
        logits = x @ self.weight + self.bias
        loss = wg.nn.functional.cross_entropy(logits, y)
        if self.clears == "later":
            self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return (loss, held) if self.clears == "one" else loss

    def compiled(self) -> Any:
        """Its step, which has a program."""
        step = wg.compile(self.step, check=0)
        for i in range(4):
            step(*batch(i))
        assert "eagerly" not in str(step.report)
        return step

    def left(self) -> list[Any]:
        """What steps leave."""
        held = [self.weight, self.bias, self.weight.grad, self.bias.grad]
        return [self.found, *[x if x is None else np.array(x.detach()) for x in held]]


CLEARS = ["first", "one", "zeros", "later", "never"]


def batch(i: int) -> tuple[wg.Tensor, wg.Tensor]:
    rng = np.random.default_rng(i)
    return wg.asarray(rng.normal(size=(5, 6))), wg.asarray(rng.integers(0, 3, 5))


def both(clears: str, then: Callable[[Training, Any], Any]) -> None:
    """Compare what a compiled and an eager training leave after something."""
    found = []
    for compiled in (True, False):
        training = Training(clears)
        if compiled:
            step = training.compiled()
        else:
            step = training.step
            for i in range(4):
                step(*batch(i))
        answer = then(training, step)
        found.append([*training.left(), *([] if answer is None else answer)])
    for x, y in zip(*found, strict=True):
        assert type(x) is type(y)
        np.testing.assert_array_equal(x, y, strict=True)


@pytest.mark.parametrize("clears", CLEARS)
def test_steps_leave_what_eager_ones_leave(clears: str) -> None:
    def go_on(training: Training, step: Any) -> Any:
        held = training.weight.grad
        answers = [step(*batch(i)) for i in range(4, 7)]
        if clears == "one":
            answers = [x for pair in answers for x in pair]
        return [np.array(x.detach()) for x in (held, *answers)]

    both(clears, go_on)


@pytest.mark.parametrize("clears", CLEARS)
def test_steps_that_fail_leave_what_eager_ones_leave(clears: str) -> None:
    """By an index, which is looked at before the sweep begins."""

    def fail(training: Training, step: Any) -> None:
        x, _ = batch(4)
        with pytest.raises(IndexError):
            step(x, wg.asarray([0, 1, 2, 0, 3]))

    both(clears, fail)

    def fail_and_go_on(training: Training, step: Any) -> None:
        fail(training, step)
        step(*batch(5))

    both(clears, fail_and_go_on)


@pytest.mark.parametrize(
    ("clears", "gone"), [("first", True), ("zeros", False), ("later", False), ("never", False)]
)
def test_old_gradients_are_free_before_new_ones_are_made(clears: str, gone: bool) -> None:
    training = Training(clears)
    step = training.compiled()
    pool, free = step._last().pool, []
    program = pool.take()
    old = weakref.ref(training.weight.grad)

    def spied(*inputs: Any) -> Any:
        free.append(old() is None)
        return program(*inputs)

    pool.give(spied)
    step(*batch(4))
    assert free == [gone]
