"""What is compared before a program runs: each thing that it has taken for granted."""

from typing import Any

import wengert as wg
from wengert import nn

X = [1.0, -2.0]


def test_a_rate_that_two_groups_share() -> None:
    def parameters(compiled: bool) -> list[Any]:
        p, q = (nn.Parameter(wg.asarray(X)) for _ in range(2))
        optimizer = wg.optim.SGD([{"params": [p]}, {"params": [q]}], lr=0.5)

        def step() -> None:
            optimizer.zero_grad()
            wg.sum(wg.sin(p) + wg.cos(q)).backward()
            optimizer.step()

        run, found = wg.compile(step, check=0) if compiled else step, []
        for rates in (
            [(0.5, 0.5)] * 4 + [(0.25, 0.25)] * 2 + [(0.25, 0.125), (0.5, 0.5), (0.1, 0.5)]
        ):
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate
            run()
            found.append((p.tolist(), q.tolist()))
        return found

    assert parameters(True) == parameters(False)


def test_one_array_as_two_arguments_and_two_arrays() -> None:
    def function(x: Any, y: Any) -> Any:
        return wg.sum(x) * y if x is y else x - y

    run = wg.compile(function, check=0)
    one, other = wg.asarray(X), wg.asarray([3.0, 5.0])
    for pair in [(one, one)] * 3 + [(one, other)] * 3 + [(one, one), (other, other)]:
        assert run(*pair).tolist() == function(*pair).tolist()
    raw = wg.compile(lambda x, y: wg.asarray(x) * wg.asarray(y), check=0)
    for pair in [(one._array, one._array)] * 3 + [(one._array, other._array)]:
        assert raw(*pair).tolist() == (pair[0] * pair[1]).tolist()
