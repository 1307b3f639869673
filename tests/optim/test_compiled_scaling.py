"""Loss scaling inside compiled steps: every step is computed, and selected where all is finite."""

import math
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert import nn, optim
from wengert.backends import Backend

#: Every optimiser that updates each parameter by itself.
OPTIMIZERS = [
    name
    for name in optim.__all__
    if isinstance(kind := getattr(optim, name), type)
    and issubclass(kind, optim.Optimizer)
    and kind not in (optim.Optimizer, optim.LBFGS)
]
#: What the loss is multiplied by in each step.
FACTORS = [1.0, 1.0, 1.0, math.inf, 2.0, math.nan, 1.0, 1.0, 1.0, 1e38, 1.0, 1.0]


def _numbers(x: Any) -> Any:
    """A state with the values of its Tensors."""
    if isinstance(x, dict):
        return {key: _numbers(part) for key, part in x.items()}
    if isinstance(x, list):
        return [_numbers(part) for part in x]
    return repr(x.tolist() if isinstance(x, wg.Tensor) else x)


def _train(
    name: str, *, compiled: bool, half: bool = False, clip: bool = False, **options: Any
) -> tuple[list[Any], int]:
    """The loss, weights and states after each step; how often the step was recorded."""
    wg.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4, bias=False), nn.Tanh(), nn.Linear(4, 2, bias=False))
    model = model.half() if half else model
    optimizer = getattr(optim, name)(model.parameters(), **options)
    if half:
        wg.amp.master_weights(optimizer)
    scaler = wg.amp.GradScaler(init_scale=4.0, growth_interval=3)

    def step(x: wg.Tensor, factor: wg.Tensor) -> wg.Tensor:
        optimizer.zero_grad()
        loss = wg.mean(wg.astype(model(x), wg.float32) ** 2) * factor
        scaler.scale(loss).backward()
        if clip:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
        return loss

    run: Any = wg.compile(step) if compiled else step
    random, found = np.random.default_rng(0), []
    for factor in FACTORS:
        x = random.standard_normal((5, 3)).astype("float16" if half else "float32")
        loss = run(wg.asarray(x), wg.asarray(factor, dtype=wg.float32))
        found.append((loss, list(model.parameters()), optimizer.state_dict(), scaler.state_dict()))
        found[-1] = _numbers(list(found[-1]))
    return found, run.report.recordings if compiled else 0


@pytest.mark.filterwarnings("ignore:(invalid value|overflow):RuntimeWarning")
@pytest.mark.parametrize("half", [False, True], ids=["float32", "float16 with masters"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_the_eager_ones(name: str, half: bool) -> None:
    expected, _ = _train(name, compiled=False, half=half)
    found, recordings = _train(name, compiled=True, half=half)
    assert found == expected
    assert recordings == (2 if name == "RAdam" else 1)  # whose step changes its form once


@pytest.mark.filterwarnings("ignore:(invalid value|overflow):RuntimeWarning")
def test_clipped_steps(backend: Backend) -> None:
    if backend.name == "dask":
        pytest.skip("each step computes, and twelve of them take minutes")
    expected, _ = _train("Adam", compiled=False, clip=True)
    found, recordings = _train("Adam", compiled=True, clip=True)
    if backend.name == "numpy":
        assert found == expected
    assert [x[3] for x in found] == [x[3] for x in expected]  # the scales
    for one, other in zip(found, expected, strict=True):
        for p, q in zip(one[1], other[1], strict=True):
            given = {"nan": math.nan, "inf": math.inf}
            np.testing.assert_allclose(eval(p, given), eval(q, given), rtol=1e-5, atol=1e-6)
    assert recordings == 1


@pytest.mark.filterwarnings("ignore:(invalid value|overflow):RuntimeWarning")
def test_two_optimizers_are_left_out_each_by_itself() -> None:
    def run(compiled: bool) -> list[Any]:
        p, q = nn.Parameter(wg.ones(2)), nn.Parameter(wg.ones(2))
        scaler = wg.amp.GradScaler(init_scale=2.0, growth_interval=2)
        first, second = optim.Adam([p], lr=0.1), optim.SGD([q], lr=0.1, momentum=0.9)

        def step(a: wg.Tensor, b: wg.Tensor) -> None:
            first.zero_grad()
            second.zero_grad()
            scaler.scale(wg.sum(p * p * a) + wg.sum(q * q * b)).backward()
            scaler.step(first)
            scaler.step(second)
            scaler.update()

        called: Any = wg.compile(step) if compiled else step
        found = []
        for a, b in [(1, 1), (1, math.inf), (math.inf, 1), (1, 1), (1, 2), (math.nan, math.nan)]:
            called(wg.asarray(float(a)), wg.asarray(float(b)))
            found.append(_numbers([p, q, first.state_dict(), second.state_dict()]))
            found[-1].append(scaler.get_scale())
        return found

    assert run(True) == run(False)


@pytest.mark.filterwarnings("ignore:(invalid value|overflow):RuntimeWarning")
def test_a_first_step_may_be_left_out() -> None:
    p = nn.Parameter(wg.ones(2))
    optimizer, scaler = optim.Adam([p], lr=0.1), wg.amp.GradScaler(init_scale=4.0)

    @wg.compile
    def step(x: wg.Tensor) -> None:
        optimizer.zero_grad()
        scaler.scale(wg.sum(p * x)).backward()
        scaler.step(optimizer)
        scaler.update()

    step(wg.asarray(math.inf))
    assert p.tolist() == [1.0, 1.0] and scaler.get_scale() == 2.0
    step(wg.asarray(1.0))
    np.testing.assert_allclose(p.tolist(), 0.9, rtol=1e-6)


def test_an_optimizer_begins_its_state_by_a_step_that_is_not_compiled() -> None:
    p = nn.Parameter(wg.ones(2))
    optimizer, scaler = optim.SGD([p], lr=0.1, momentum=0.9, dampening=0.1), wg.amp.GradScaler(4.0)

    def step(x: wg.Tensor) -> None:
        optimizer.zero_grad()
        scaler.scale(wg.sum(p * x)).backward()
        scaler.step(optimizer)
        scaler.update()

    compiled = wg.compile(step)
    compiled(wg.asarray(1.0))
    compiled(wg.asarray(math.inf))
    np.testing.assert_allclose(p.tolist(), 0.9, rtol=1e-6)
    compiled(wg.asarray(1.0))
    np.testing.assert_allclose(p.tolist(), 0.9 - 0.1 * (0.9 + 0.9), rtol=1e-6)
