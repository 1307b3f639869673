"""The optimisers' rules by formulas, in NumPy; and options of each, for tests."""

from typing import Any

import numpy as np

_DECAY = dict(weight_decay=(0, 0.2))
_MOMENTS = dict(betas=((0.9, 0.999), (0.7, 0.6)), eps=(1e-8, 0.1)) | _DECAY
_ADAM: dict[str, tuple[Any, ...]] = dict(lr=(0.001, 0.05)) | _MOMENTS | dict(amsgrad=(False, True))
_DECOUPLED = dict(decoupled_weight_decay=(False, True))
#: For each optimiser that has PyTorch's options: values, of which tests take all pairs.
OPTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "SGD": dict(lr=(0.1, 0.02), momentum=(0, 0.8), dampening=(0.3, 0), nesterov=(False, True))
    | _DECAY,
    "Adam": _ADAM | _DECOUPLED,
    "AdamW": _ADAM,
    "RMSprop": dict(lr=(0.01, 0.03), alpha=(0.99, 0.5), eps=(1e-8, 0.1))
    | dict(momentum=(0, 0.7), centered=(False, True))
    | _DECAY,
    "Adagrad": dict(lr=(0.01, 0.1), lr_decay=(0, 0.3), eps=(1e-10, 0.1))
    | dict(initial_accumulator_value=(0, 0.5))
    | _DECAY,
    "Adadelta": dict(lr=(1.0, 0.3), rho=(0.9, 0.4), eps=(1e-6, 0.1)) | _DECAY,
    "Adamax": dict(lr=(0.002, 0.05)) | _MOMENTS,
    "NAdam": dict(lr=(0.002, 0.05), momentum_decay=(0.004, 0.3)) | _MOMENTS | _DECOUPLED,
    "RAdam": _MOMENTS | dict(lr=(0.001, 0.05), betas=((0.9, 0.999), (0.7, 0.8))) | _DECOUPLED,
    "Muon": dict(lr=(0.001, 0.05), weight_decay=(0.1, 0), momentum=(0.95, 0.5), eps=(1e-7, 50))
    | dict(nesterov=(True, False), ns_steps=(5, 2))
    | dict(ns_coefficients=((3.4445, -4.775, 2.0315), (2, -1.5, 0.5)))
    | dict(adjust_lr_fn=(None, "original", "match_rms_adamw")),
    "Lion": dict(lr=(1e-4, 0.05), betas=((0.9, 0.99), (0.3, 0.5))) | _DECAY,
}


def fit(o):
    """Whether options go together."""
    return not o.get("nesterov") or "dampening" not in o or (o["momentum"] and not o["dampening"])


def prepared(p, g, o):
    """The gradient with weight decay, and the parameter, by the options."""
    if o.get("decoupled_weight_decay"):
        return p * (1 - o["lr"] * o["weight_decay"]), g
    return p, g + o.get("weight_decay", 0) * p


def moments(g, s, o):
    s["exp_avg"] = o["betas"][0] * s.get("exp_avg", 0) + (1 - o["betas"][0]) * g
    s["exp_avg_sq"] = o["betas"][1] * s.get("exp_avg_sq", 0) + (1 - o["betas"][1]) * g**2
    return s["exp_avg"], s["exp_avg_sq"]


def sgd(p, g, s, t, o):
    p, g = prepared(p, g, o)
    if o["momentum"]:
        first = "momentum_buffer" not in s
        s["momentum_buffer"] = b = (
            g if first else o["momentum"] * s["momentum_buffer"] + (1 - o["dampening"]) * g
        )
        g = g + o["momentum"] * b if o["nesterov"] else b
    return p - o["lr"] * g


def adam(p, g, s, t, o):
    p, g = prepared(p, g, o)
    m, v = moments(g, s, o)
    if o["amsgrad"]:
        s["max_exp_avg_sq"] = v = np.maximum(s.get("max_exp_avg_sq", 0), v)
    root = np.sqrt(v / (1 - o["betas"][1] ** t)) + o["eps"]
    return p - o["lr"] * m / (1 - o["betas"][0] ** t) / root


def rmsprop(p, g, s, t, o):
    p, g = prepared(p, g, o)
    s["square_avg"] = v = o["alpha"] * s.get("square_avg", 0) + (1 - o["alpha"]) * g**2
    s["grad_avg"] = o["alpha"] * s.get("grad_avg", 0) + (1 - o["alpha"]) * g
    if o["centered"]:
        v = v - s["grad_avg"] ** 2
    s["momentum_buffer"] = o["momentum"] * s.get("momentum_buffer", 0) + g / (np.sqrt(v) + o["eps"])
    return p - o["lr"] * s["momentum_buffer"]


def adagrad(p, g, s, t, o):
    p, g = prepared(p, g, o)
    s["sum"] = s.get("sum", o["initial_accumulator_value"]) + g**2
    return p - o["lr"] / (1 + (t - 1) * o["lr_decay"]) * g / (np.sqrt(s["sum"]) + o["eps"])


def adadelta(p, g, s, t, o):
    p, g = prepared(p, g, o)
    s["square_avg"] = o["rho"] * s.get("square_avg", 0) + (1 - o["rho"]) * g**2
    d = g * np.sqrt((s.get("acc_delta", 0) + o["eps"]) / (s["square_avg"] + o["eps"]))
    s["acc_delta"] = o["rho"] * s.get("acc_delta", 0) + (1 - o["rho"]) * d**2
    return p - o["lr"] * d


def adamax(p, g, s, t, o):
    p, g = prepared(p, g, o)
    m, _ = moments(g, s, o)
    s["exp_inf"] = np.maximum(o["betas"][1] * s.get("exp_inf", 0), abs(g) + o["eps"])
    return p - o["lr"] * m / (1 - o["betas"][0] ** t) / s["exp_inf"]


def nadam(p, g, s, t, o):
    p, g = prepared(p, g, o)
    m, v = moments(g, s, o)
    mu, after = (o["betas"][0] * (1 - 0.96 ** (k * o["momentum_decay"]) / 2) for k in (t, t + 1))
    s["mu_product"] = s.get("mu_product", 1) * mu
    ahead = after * m / (1 - s["mu_product"] * after) + (1 - mu) * g / (1 - s["mu_product"])
    return p - o["lr"] * ahead / (np.sqrt(v / (1 - o["betas"][1] ** t)) + o["eps"])


def radam(p, g, s, t, o):
    p, g = prepared(p, g, o)
    m, v = moments(g, s, o)
    beta = o["betas"][1]
    most = 2 / (1 - beta) - 1
    rho = most - 2 * t * beta**t / (1 - beta**t)
    move = m / (1 - o["betas"][0] ** t)
    if rho > 5:
        r = np.sqrt((rho - 4) * (rho - 2) * most / (most - 4) / (most - 2) / rho)
        move = move * r * np.sqrt(1 - beta**t) / (np.sqrt(v) + o["eps"])
    return p - o["lr"] * move


def lion(p, g, s, t, o):
    m = s.get("exp_avg", 0)
    s["exp_avg"] = o["betas"][1] * m + (1 - o["betas"][1]) * g
    move = np.sign(o["betas"][0] * m + (1 - o["betas"][0]) * g)
    return p * (1 - o["lr"] * o["weight_decay"]) - o["lr"] * move


def muon(p, g, s, t, o):
    """By the singular values, on which the iteration works."""
    mu = o["momentum"]
    s["momentum_buffer"] = b = mu * s.get("momentum_buffer", 0) + (1 - mu) * g
    if o["nesterov"]:
        b = mu * b + (1 - mu) * g
    u, sigma, v = np.linalg.svd(b, full_matrices=False)
    sigma = sigma / max(np.sqrt((sigma**2).sum()), o["eps"])
    x, y, z = o["ns_coefficients"]
    for _ in range(o["ns_steps"]):
        sigma = x * sigma + y * sigma**3 + z * sigma**5
    rows, columns = p.shape
    scale = max(1, rows / columns) ** 0.5
    if o["adjust_lr_fn"] == "match_rms_adamw":
        scale = 0.2 * max(rows, columns) ** 0.5
    return p * (1 - o["lr"] * o["weight_decay"]) - o["lr"] * scale * (u * sigma) @ v


RULES = {
    "SGD": sgd,
    "Adam": adam,
    "AdamW": lambda p, g, s, t, o: adam(p, g, s, t, o | {"decoupled_weight_decay": True}),
    "RMSprop": rmsprop,
    "Adagrad": adagrad,
    "Adadelta": adadelta,
    "Adamax": adamax,
    "NAdam": nadam,
    "RAdam": radam,
    "Muon": muon,
    "Lion": lion,
}


def check_states(optimiser, states, t):
    """All that an optimiser keeps for each parameter is what a rule has kept by the same name."""
    found = optimiser.state_dict()["state"]
    kept = [{"step": t, **state} for state in states]
    assert [*found] == [i for i, state in enumerate(kept) if state.keys() - {"step"}]
    for i, state in found.items():
        for name, value in state.items():
            value = value.detach().numpy() if hasattr(value, "detach") else value
            np.testing.assert_allclose(value, kept[i][name], rtol=1e-10, atol=1e-12, err_msg=name)


def check_pytorchs_states(ours, theirs, rtol, atol):
    """All that an optimiser keeps for each parameter is what PyTorch's keeps."""
    mine, yours = (each.state_dict()["state"] for each in (ours, theirs))
    assert mine.keys() == yours.keys()
    for key, state in mine.items():
        scratch = {"al"}  # which L-BFGS fills anew in each iteration
        assert state.keys() == yours[key].keys() - scratch
        for name, value in state.items():
            check_equal(value, yours[key][name], rtol, atol, name)


def check_equal(mine, yours, rtol, atol, name):
    """Two values of a state: arrays, numbers, lists of them, or None."""
    if mine is None or yours is None:
        assert mine is yours, name
    elif isinstance(mine, list):
        for one, other in zip(mine, yours, strict=True):
            check_equal(one, other, rtol, atol, name)
    else:
        found, expected = (
            np.asarray(x.detach().numpy() if hasattr(x, "detach") else x) for x in (mine, yours)
        )
        assert found.shape == expected.shape, name
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol, err_msg=name)
