"""L-BFGS against PyTorch's, and what it promises beside."""

import itertools
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.ops.spaces import irregular
from tests.optim.rules import check_pytorchs_states
from tests.walking import refusals, refuse, walk
from wengert import nn, optim

OPTIONS: list[dict[str, Any]] = [
    {},
    {"lr": 0.3},
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "history_size": 3, "max_iter": 7},
    {"line_search_fn": "strong_wolfe", "max_eval": 4, "lr": 5},
    {"line_search_fn": "strong_wolfe", "max_eval": 1},
    {"history_size": 1, "max_iter": 1, "lr": 0.1},
    {"tolerance_grad": 0.5, "lr": 0.1},
    {"tolerance_change": 0.1, "line_search_fn": "strong_wolfe"},
    {"max_iter": 4, "max_eval": 3, "lr": 0.2},
]


def bowl(lib: Any, weights: list[Any]) -> Any:
    """Convex, and far from quadratic."""
    return sum(
        (lib.log(1 + 3 * abs(w - 0.5) ** 2) * (1 + i)).sum() + (abs(w) ** 4).sum() * 0.01
        for i, w in enumerate(weights)
    )


def valley(lib: Any, weights: list[Any]) -> Any:
    """Rosenbrock's function, of all numbers."""
    parts = []
    for w in weights:
        x = lib.reshape(w, (-1,))
        parts.append((abs(x[1:] - x[:-1] ** 2) ** 2 * 30 + abs(1 - x[:-1]) ** 2).sum())
    return sum(parts)


def run(optimiser: Any, loss: Any, steps: int) -> list[float]:
    def closure() -> Any:
        optimiser.zero_grad()
        value = loss()
        value.backward()
        return value

    return [float(optimiser.step(closure).detach()) for _ in range(steps)]


@pytest.mark.oracle
@pytest.mark.parametrize("function", [bowl, valley])
@pytest.mark.parametrize("options", OPTIONS)
def test_iterates_are_pytorchs(options: dict[str, Any], function: Any) -> None:
    torch = pytest.importorskip("torch")
    if function is valley and "line_search_fn" not in options:
        options = options | {"lr": 0.001}
    starts = [irregular(2, 3), irregular(4)]
    with wg.use_backend("numpy"):
        weights = [nn.Parameter(wg.asarray(p)) for p in starts]
        ours = optim.LBFGS(weights, **options)
        others = [torch.tensor(p, requires_grad=True) for p in starts]
        theirs = torch.optim.LBFGS(others, **options)
        for _ in range(3):
            found = run(ours, lambda: function(wg, weights), 1)
            expected = run(theirs, lambda: function(torch, others), 1)
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)
            for w, q in zip(weights, others, strict=True):
                np.testing.assert_allclose(
                    w.detach().numpy(), q.detach().numpy(), rtol=1e-5, atol=1e-7
                )
        check_pytorchs_states(ours, theirs, rtol=1e-4, atol=1e-7)
        ours.load_state_dict(theirs.state_dict())
        found = run(ours, lambda: function(wg, weights), 1)
        expected = run(theirs, lambda: function(torch, others), 1)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 100])
def test_directions_are_those_of_the_dense_update(size: int) -> None:
    """Nocedal and Wright, "Numerical Optimization", (6.17), from the pairs that are kept."""
    weight = nn.Parameter(wg.asarray(irregular(4)))
    optimiser = optim.LBFGS([weight], lr=0.1, history_size=size, max_iter=1)
    pairs: list[Any] = []
    gradient, step = None, None
    for _ in range(5):
        before = weight.detach().numpy().copy()
        run(optimiser, lambda: wg.sum(weight**4) + wg.sum(weight) ** 2, 1)
        g = weight.grad.numpy().copy()
        if gradient is None:
            expected = -g * min(1, 1 / np.abs(g).sum())
        else:
            pairs = [*pairs, (step, g - gradient)][-size:]
            s, y = pairs[-1]
            inverse = np.eye(4) * (s @ y) / (y @ y)
            for s, y in pairs:
                part = np.eye(4) - np.outer(s, y) / (s @ y)
                inverse = part @ inverse @ part.T + np.outer(s, s) / (s @ y)
            expected = -inverse @ g
        gradient, step = g, weight.detach().numpy() - before
        np.testing.assert_allclose(step, 0.1 * expected, rtol=1e-9)


@pytest.mark.parametrize(
    "function", [lambda w: w**2 / 20 + wg.sin(3 * w), lambda w: wg.log(1 + (w - 3) ** 2)]
)
@pytest.mark.parametrize("first", [0.01, 0.1, 1, 10, 100])
def test_steps_satisfy_the_strong_conditions_of_wolfe(first: float, function: Any) -> None:
    """Whether the first point falls short of where the loss rises, or lies far beyond."""
    weight = nn.Parameter(wg.asarray(0.5, dtype="float64"))
    points, looks = [], itertools.count()

    def loss() -> Any:
        next(looks)
        return function(weight)

    for _ in range(2):
        value = function(weight)
        (slope,) = wg.autograd.grad(value, weight)
        points.append([weight.item(), value.item(), slope.item()])
        if len(points) == 1:
            options = {"line_search_fn": "strong_wolfe", "max_iter": 1, "max_eval": 25}
            optimiser = optim.LBFGS([weight], lr=first, **options)
            run(optimiser, loss, 1)
            assert optimiser.state_dict()["state"][0]["func_evals"] == next(looks)
    (x, f, slope), (y, g, end) = points
    assert g <= f + 1e-4 * slope * (y - x) < f
    assert abs(end) <= 0.9 * abs(slope)


@pytest.mark.parametrize(
    ("function", "starts"),
    [(valley, [irregular(2, 3), irregular(6)]), (bowl, [np.asarray(1.5), irregular(3)])],
    ids=["axes", "beside a number"],
)
def test_a_saved_state_goes_on(backend: Any, function: Any, starts: list[Any]) -> None:
    weights = [nn.Parameter(wg.asarray(p)) for p in starts]
    optimiser = optim.LBFGS(weights, line_search_fn="strong_wolfe", max_iter=3)
    losses = run(optimiser, lambda: function(wg, weights), 2)
    assert losses[1] < losses[0]
    again = [nn.Parameter(w.detach()) for w in weights]
    other = optim.LBFGS(again)
    other.load_state_dict(optimiser.state_dict())
    first = run(optimiser, lambda: function(wg, weights), 2)
    second = run(other, lambda: function(wg, again), 2)
    assert first == second
    assert all(w.dtype is wg.float64 and w.backend is backend for w in again)


def test_a_failing_closure_changes_nothing() -> None:
    weights = [nn.Parameter(wg.asarray(irregular(2, 3)))]
    for options in ({"line_search_fn": "strong_wolfe"}, {"lr": 0.01}):
        optimiser = optim.LBFGS(weights, max_iter=5, **options)
        run(optimiser, lambda: valley(wg, weights), 1)
        before, state = weights[0].tolist(), optimiser.state_dict()["state"][0]
        counter = itertools.count()

        def failing(counter: Any = counter) -> Any:
            if next(counter) == 3:
                raise KeyboardInterrupt
            return valley(wg, weights)

        with pytest.raises(KeyboardInterrupt):
            run(optimiser, failing, 1)
        assert weights[0].tolist() == before
        after = optimiser.state_dict()["state"][0]
        assert (after["n_iter"], after["func_evals"]) == (state["n_iter"], state["func_evals"])


def test_at_a_minimum_and_without_gradients() -> None:
    weights = [nn.Parameter(wg.zeros(3)), nn.Parameter(wg.ones(2))]
    optimiser = optim.LBFGS(weights)
    assert run(optimiser, lambda: wg.sum(weights[0] ** 2), 1) == [0.0]
    assert weights[1].tolist() == [1, 1]
    with pytest.raises(TypeError, match="closure"):
        optimiser.step()


def test_a_step_ends_where_the_loss_would_hardly_fall() -> None:
    weight = nn.Parameter(wg.full(3, 1e-3))
    optimiser = optim.LBFGS([weight], tolerance_grad=0.0, tolerance_change=1e-3)
    run(optimiser, lambda: wg.sum(weight**2), 1)
    assert optimiser.state_dict()["state"][0]["n_iter"] == 1
    assert weight.tolist() == wg.full(3, 1e-3).tolist()


#: Calls, their errors, and what these say.
REFUSED = r"""
optim.LBFGS([p], lr=-1) | ValueError | Invalid learning rate: -1
optim.LBFGS([p], history_size=0) | ValueError | Invalid history_size value: 0
optim.LBFGS([p], line_search_fn="x") | ValueError | only 'strong_wolfe' is supported
optim.LBFGS([wg.ones(2, dtype="complex64")]) | ValueError | LBFGS takes real parameters
optim.LBFGS([{"params": [p]}, {"params": [wg.ones(1)]}]) | ValueError | per-parameter
"""


def test_bad_input() -> None:
    walk(refusals(REFUSED), refuse(p=nn.Parameter(wg.ones(2))), whole=True)
