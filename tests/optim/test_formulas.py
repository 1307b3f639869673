"""Steps are those of the formulas that the documentation gives, with all pairs of options."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.ops.spaces import irregular, pairs
from tests.optim.rules import check_states
from wengert import nn, optim

STEPS = 4
SGD = {
    "lr": (0.1, 0.02),
    "momentum": (0.0, 0.8),
    "dampening": (0.0, 0.3),
    "weight_decay": (0.0, 0.2),
    "nesterov": (False, True),
}
ADAMW = {
    "lr": (0.1, 0.02),
    "betas": ((0.9, 0.999), (0.7, 0.6)),
    "eps": (1e-8, 0.1),
    "weight_decay": (0.0, 0.2),
    "amsgrad": (False, True),
}
CALLS = [
    *(("SGD", given) for given in pairs(SGD | {"nesterov": False})),
    *(("SGD", given) for given in pairs(SGD | {"momentum": 0.8, "dampening": 0.0})),
    *(("Adam", given) for given in pairs(ADAMW | {"decoupled_weight_decay": (False, True)})),
    *(("AdamW", given) for given in pairs(ADAMW)),
]


def sgd(p, g, state, lr, momentum, dampening, weight_decay, nesterov):
    g = g + weight_decay * p
    if momentum:
        old = state.get("momentum_buffer")
        state["momentum_buffer"] = b = g if old is None else momentum * old + (1 - dampening) * g
        g = g + momentum * b if nesterov else b
    return p - lr * g


def adam(p, g, state, lr, betas, eps, weight_decay, amsgrad, decoupled_weight_decay=True):
    if decoupled_weight_decay:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * p
    t = state["step"] = state.get("step", 0) + 1
    m = state["exp_avg"] = betas[0] * state.get("exp_avg", 0.0) + (1 - betas[0]) * g
    v = state["exp_avg_sq"] = betas[1] * state.get("exp_avg_sq", 0.0) + (1 - betas[1]) * g**2
    if amsgrad:
        v = state["max_exp_avg_sq"] = np.maximum(state.get("max_exp_avg_sq", 0.0), v)
    root = np.sqrt(v / (1 - betas[1] ** t)) + eps
    return p - lr * m / (1 - betas[0] ** t) / root


@pytest.mark.whole
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("name", "options"), CALLS)
def test_steps(name: str, options: dict[str, Any], compiled: bool) -> None:
    step = sgd if name == "SGD" else adam
    wanted = [irregular(2, 3), irregular(4)]
    states: list[dict[str, Any]] = [{} for _ in wanted]
    with wg.use_backend("numpy"):
        weights = [nn.Parameter(wg.asarray(p)) for p in wanted]
        optimiser = getattr(optim, name)(weights, **options)

        def update(scale: Any) -> None:
            optimiser.zero_grad()
            sum(wg.sum(scale * w**3) for w in weights).backward()
            optimiser.step()

        run = wg.compile(update) if compiled else update
        for i in range(STEPS):
            # A gradient that grows and shrinks, as the largest moment is to be told from the last.
            scale = (1.0, 2.0, 0.1, -0.5)[i]
            run(wg.asarray(scale, dtype="float64"))
            gradients = [3 * scale * p**2 for p in wanted]
            wanted = [
                step(p, g, state, **options)
                for p, g, state in zip(wanted, gradients, states, strict=True)
            ]
            for w, p in zip(weights, wanted, strict=True):
                np.testing.assert_allclose(w.detach().numpy(), p, rtol=1e-11, atol=1e-13)
            check_states(optimiser, states, i + 1)
    assert not compiled or run.report.recordings


@pytest.mark.whole
@pytest.mark.parametrize(("name", "options"), CALLS)
def test_a_complex_parameter_is_two_real_ones(name: str, options: dict[str, Any]) -> None:
    parts = irregular(3, 2)
    with wg.use_backend("numpy"):
        real, whole = nn.Parameter(wg.asarray(parts)), nn.Parameter(wg.asarray(parts @ [1, 1j]))
        optimisers = [getattr(optim, name)([p], **options) for p in (real, whole)]
        for scale in (1.0, 2.0, 0.1, -0.5):
            g = scale * parts**2 - 0.3
            real.grad, whole.grad = wg.asarray(g), wg.asarray(g @ [1, 1j])
            for optimiser in optimisers:
                optimiser.step()
        expected = real.detach().numpy() @ [1, 1j]
        np.testing.assert_allclose(whole.detach().numpy(), expected, rtol=1e-12)


def test_gradients_whose_squares_overflow_have_their_share_in_the_mean(backend: Any) -> None:
    """The first step is the rate, whatever the gradient; the share of its square is in range."""
    for shape in ((), (3,)):
        for method, rate in ((optim.Adam, 0.1), (optim.AdamW, 0.1), (optim.RMSprop, 1.0)):
            w = wg.ones(shape, requires_grad=True)
            w.grad = wg.full(shape, 1e20)
            method([w], lr=0.1).step()
            expected = 1 - rate - (0.001 if method is optim.AdamW else 0)
            np.testing.assert_allclose(w.detach().tolist(), np.full(shape, expected), 1e-5, 1e-6)


@pytest.mark.parametrize("dtype", [wg.complex64, wg.complex128])
def test_the_state_of_complex_parameters_is_loaded_as_it_was(dtype: Any) -> None:
    with wg.use_backend("numpy"):
        weight = nn.Parameter(wg.asarray([1 + 2j, 3 - 1j], dtype=dtype))
        optimiser = optim.Adam([weight], amsgrad=True)
        wg.sum(wg.abs(weight) ** 2).backward()
        optimiser.step()
        other = optim.Adam([nn.Parameter(weight.detach())])
        other.load_state_dict(optimiser.state_dict())
    before, after = (each.state_dict()["state"][0] for each in (optimiser, other))
    assert before.keys() == after.keys()
    for name, value in before.items():
        if isinstance(value, wg.Tensor):
            assert after[name].dtype is value.dtype
            np.testing.assert_array_equal(after[name].numpy(), value.numpy())
