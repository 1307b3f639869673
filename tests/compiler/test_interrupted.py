"""Interrupted recordings and checks leave what there was before."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.compiler import compiled as functions


@pytest.mark.parametrize("check", [None, 1])
@pytest.mark.parametrize("runs", [0, 1, 2, 3])
def test_an_interrupted_call_leaves_what_there_was(runs: int, check: int | None) -> None:
    model = wg.nn.Linear(3, 2)
    optimizer, armed = wg.optim.Adam(model.parameters()), []

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = wg.mean(model(x) ** 2)
        loss.backward()
        optimizer.step()
        if armed:
            raise KeyboardInterrupt
        return loss

    def left() -> list[Any]:
        kept = [y for x in optimizer.state.values() for y in x.values()]
        found = [*model.parameters(), *[x.grad for x in model.parameters()], *kept]
        return [np.asarray(getattr(x, "_array", x)).tolist() for x in found if x is not None]

    run = wg.compile(step, check=check)
    step(wg.ones(4, 3))  # with which the optimiser begins
    for _ in range(runs):
        run(wg.ones(4, 3))
    before = left()
    armed.append(True)
    with pytest.raises(KeyboardInterrupt):
        run(wg.ones(4, 3))
    armed.clear()
    assert left() == before
    with ThreadPoolExecutor(1) as pool:  # others have their turn
        assert pool.submit(functions._lock.acquire, timeout=0).result()
        pool.submit(functions._lock.release).result()
    assert not functions._eager.get()
    run(wg.ones(4, 3))
    assert left() != before
