"""An interrupted step has updated a parameter with all that is kept for it, or neither."""

import inspect
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.interrupting import Interrupt, InterruptError

pytestmark = pytest.mark.skipif(sys.gettrace() is not None, reason="a tracer is at work already")

OPTIM = str(Path(inspect.getfile(wg.optim)).parent)
RULES = {
    "Adam": partial(wg.optim.Adam, amsgrad=True),
    "RMSprop": partial(wg.optim.RMSprop, centered=True, momentum=0.5),
}


def after(rule: Any, steps: int, at: int, dtype: str) -> tuple[list[Any], str]:
    """What the step after some others leaves that is interrupted, parameter by parameter."""
    params = [wg.asarray(np.full((2, 2), i), dtype=dtype) for i in (1.0, 2.0)]
    optimizer = rule([param.requires_grad_() for param in params])
    for i in range(steps + 1):
        for param in params:
            param.grad = param.detach() * (i + 1.0)
        if i < steps:
            optimizer.step()
    with Interrupt(at, OPTIM) as interrupt:
        try:
            if at >= 0:
                optimizer.step()
        except InterruptError:
            pass
    left = []
    for param in params:
        kept = {name: np.array(x).tolist() for name, x in optimizer.state.get(param, {}).items()}
        left.append((param.tolist(), kept))
    return left, interrupt.where


@pytest.mark.parametrize("name", RULES)
def test_interrupted_steps_leave_each_parameter_whole(name: str) -> None:
    # A complex parameter is updated in two parts.
    for steps, dtype in ((0, "float64"), (1, "complex128")):
        before, whole = (after(RULES[name], steps, at, dtype)[0] for at in (-1, 0))
        seen, at = set(), 1
        while True:
            left, where = after(RULES[name], steps, at, dtype)
            if not where:
                break
            number = next((i for i in range(3) if left == whole[:i] + before[i:]), None)
            assert number is not None, where
            seen.add(number)
            at += 1
        assert at > 10
        assert seen >= {0, 1}


def test_a_rule_lets_go_of_what_it_has_kept() -> None:
    class Forgetful(wg.optim.Optimizer):
        def rule(self, xp: Any, group: Any) -> Any:
            def update(p: Any, g: Any, state: dict[str, Any]) -> Any:
                if state.pop("first", None) is None:
                    state["first"] = g
                return xp.subtract(p, g)

            return update

    x = wg.ones(2, requires_grad=True)
    optimizer = Forgetful([x], {})
    seen = []
    for _ in range(4):
        x.grad = wg.ones(2)
        optimizer.step()
        seen.append([*optimizer.state[x]])
    assert seen == [["first"], [], ["first"], []]
