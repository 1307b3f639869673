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
        if self.clears == "one":
            self.weight.grad = None
        loss = self.trained(x, y)
        return (loss, held) if self.clears == "one" else loss

    def trained(self, x: Any, y: Any) -> Any:
        """A step that looks at no gradient itself."""
        if self.clears == "first":
            self.optimiser.zero_grad()
        elif self.clears == "zeros":
            self.optimiser.zero_grad(set_to_none=False)
        logits = x @ self.weight + self.bias
        loss = wg.nn.functional.cross_entropy(logits, y)
        if self.clears == "later":
            self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return loss

    def compiled(self, looks: bool = True) -> Any:
        """Its step, which has a program."""
        step = wg.compile(self.step if looks else self.trained, check=0)
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
    """Compare what compiled and eager trainings leave after something."""
    for looks in (True,) if clears == "one" else (True, False):
        found = []
        for compiled in (True, False):
            training = Training(clears)
            if compiled:
                step = training.compiled(looks)
            else:
                step = training.step if looks else training.trained
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
@pytest.mark.parametrize("looks", [False, True])
def test_old_gradients_are_free_before_new_ones_are_made(
    clears: str, gone: bool, looks: bool
) -> None:
    training = Training(clears)
    step = training.compiled(looks)
    pool, free = step._last().pool, []
    program = pool.take()
    old = weakref.ref(training.weight.grad)

    def spied(*inputs: Any) -> Any:
        free.append(old() is None)
        return program(*inputs)

    pool.give(spied)
    step(*batch(4))
    assert free == [gone and not looks]  # which might keep them, or put them back


def test_a_gradient_that_is_set_aside_and_put_back_stays() -> None:
    p = wg.asarray(np.ones(3), requires_grad=True)
    old = p.grad = wg.asarray(np.full(3, 7.0))

    def inner(x: Any) -> Any:
        held, p.grad = p.grad, None
        wg.sum(p * p * x).backward()
        found, p.grad = p.grad, held
        return found

    def by_name(x: Any) -> Any:
        name = "_grad"[1:]
        held = getattr(p, name)
        p.grad = None
        wg.sum(p * p * x).backward()
        found, p.grad = p.grad, held
        return found

    for function in (inner, by_name):
        compiled = wg.compile(function, check=0)
        for scale in (1.0, 2.0, 3.0):
            found = compiled(wg.asarray(np.full(3, scale)))
            np.testing.assert_array_equal(found.numpy(), np.full(3, 2 * scale))
            assert p.grad is old
            np.testing.assert_array_equal(old.numpy(), np.full(3, 7.0))


@pytest.mark.parametrize("compiles", [False, True])
def test_the_last_good_gradient_is_there_where_a_step_fails(compiles: bool) -> None:
    q = wg.asarray(np.ones(3), requires_grad=True)
    optimizer = wg.optim.SGD([q], lr=0.1)

    def step(x: Any) -> Any:
        last = q.grad
        optimizer.zero_grad()
        try:
            wg.sum(wg.take(q, x) * 2).backward()
        except IndexError:
            q.grad = last
        optimizer.step()
        return q.detach()

    run = wg.compile(step) if compiles else step
    for place in (0, 1, 1, 9):
        found = run(wg.asarray(np.asarray([place])))
    np.testing.assert_allclose(found.numpy(), [0.8, 0.4, 1.0])
    np.testing.assert_array_equal(q.grad.numpy(), [0.0, 2.0, 0.0])
