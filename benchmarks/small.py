"""Small models besides the perceptrons: what a compiled step gains where calls are short.

A recurrent network, a logistic regression, and a curve with ten parameters fitted by SciPy, which
asks for a value and a gradient again and again: there the cost of one call is all that matters.

``python -m benchmarks.small`` prints this section alone.
"""

import argparse
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from benchmarks.report import describe_machine, installed, table
from benchmarks.timing import Times, Work, interleave, repeated

__all__ = ["MODELS", "Model", "contestants", "report", "times"]

Array = np.ndarray[Any, Any]
Loss = Callable[..., Any]

#: Of all models that are trained by plain gradient descent.
LEARNING_RATE = 0.05


class Model(NamedTuple):
    """A loss written against a namespace, its parameters, and the derivative by hand.

    Attributes
    ----------
    loss : callable
        ``loss(xp)`` returns a function of the parameters.
    start : callable
        Returns the parameters as NumPy arrays.
    by_hand : callable or None
        Of the parameters: the loss and its gradients, by NumPy alone.
    fitted : bool
        Whether a unit of work is a whole fit of the only parameter, and not one step.
    """

    loss: Callable[[Any], Loss]
    start: Callable[[], list[Array]]
    by_hand: Callable[..., tuple[Any, list[Array]]] | None
    fitted: bool = False


# -- a recurrent network ---------------------------------------------------------------------------

STEPS, BATCH, WIDE, HIDDEN = 12, 16, 8, 16
_random = np.random.default_rng(0)
_series = _random.standard_normal((STEPS, BATCH, WIDE), dtype=np.float32)
_after = _random.standard_normal((BATCH, 1), dtype=np.float32)


def recurrent(xp: Any) -> Loss:
    """The squared error of a last state's readout."""
    series, after = [xp.asarray(x) for x in _series], xp.asarray(_after)
    first = xp.asarray(np.zeros((BATCH, HIDDEN), np.float32))

    def loss(into: Any, across: Any, bias: Any, out: Any) -> Any:
        state = first
        for x in series:
            state = xp.tanh(x @ into + state @ across + bias)
        return xp.mean((state @ out - after) ** 2)

    return loss


def recurrent_start() -> list[Array]:
    """Weights into the state, across, its bias, and out of it."""
    random = np.random.default_rng(1)
    shapes = [(WIDE, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN,), (HIDDEN, 1)]
    return [0.2 * random.standard_normal(shape, dtype=np.float32) for shape in shapes]


def recurrent_by_hand(
    into: Array, across: Array, bias: Array, out: Array
) -> tuple[Any, list[Array]]:
    """Backpropagation through time."""
    states = [np.zeros((BATCH, HIDDEN), np.float32)]
    for x in _series:
        state = x @ into
        state += states[-1] @ across
        state += bias
        states.append(np.tanh(state, out=state))
    wrong = states[-1] @ out - _after
    loss = (wrong * wrong).mean()
    wrong *= np.float32(2 / BATCH)
    by_out = states[-1].T @ wrong
    g = wrong @ out.T
    by_into, by_across = np.zeros_like(into), np.zeros_like(across)
    by_bias = np.zeros_like(bias)
    for i in range(STEPS - 1, -1, -1):
        g *= 1 - states[i + 1] ** 2
        by_into += _series[i].T @ g
        by_across += states[i].T @ g
        by_bias += g.sum(axis=0)
        g = g @ across.T
    return loss, [by_into, by_across, by_bias, by_out]


# -- logistic regression ---------------------------------------------------------------------------

ROWS, FEATURES, PENALTY = 256, 20, 1e-3
_given = _random.standard_normal((ROWS, FEATURES))
_sides = np.sign(_given[:, 0] + 0.5 * _random.standard_normal(ROWS))


def logistic(xp: Any) -> Loss:
    """The mean logistic loss with a quadratic penalty, in double precision."""
    given, sides, zero = xp.asarray(_given), xp.asarray(-_sides), xp.asarray(np.zeros(ROWS))

    def loss(weight: Any, bias: Any) -> Any:
        margin = sides * (given @ weight + bias)
        return xp.mean(xp.logaddexp(zero, margin)) + PENALTY * xp.sum(weight * weight)

    return loss


def logistic_start() -> list[Array]:
    """A weight and a bias."""
    return [np.zeros(FEATURES), np.zeros(())]


def logistic_by_hand(weight: Array, bias: Array) -> tuple[Any, list[Array]]:
    """The residuals times the data."""
    margin = _given @ weight
    margin += bias
    margin *= -_sides
    loss = np.logaddexp(0, margin).mean() + PENALTY * (weight @ weight)
    np.negative(margin, out=margin)
    np.exp(margin, out=margin)
    margin += 1
    np.divide(-_sides / ROWS, margin, out=margin)
    return loss, [_given.T @ margin + 2 * PENALTY * weight, margin.sum()]


# -- a curve fitted by SciPy -----------------------------------------------------------------------

_places = np.linspace(-3, 3, 200)
_truth = np.asarray([1.0, -1.5, 0.5, 2.0, 0.0, 0.8, 1.5, 1.6, 0.4, 0.1])
#: Evaluations of each fit: all contestants are asked for the same ones.
EVALUATIONS = 40


def _curve(xp: Any, places: Any, p: Any) -> Any:
    total = p[9]
    for k in (0, 3, 6):
        total = total + p[k] * xp.exp(-(((places - p[k + 1]) / p[k + 2]) ** 2))
    return total


_measured = _curve(np, _places, _truth) + 0.02 * _random.standard_normal(200)


def peaks(xp: Any) -> Loss:
    """The squared error of three peaks on a constant, as a function of ten parameters."""
    places, measured = xp.asarray(_places), xp.asarray(_measured)

    def loss(p: Any) -> Any:
        return xp.sum((_curve(xp, places, p) - measured) ** 2)

    return loss


def peaks_start() -> list[Array]:
    """The ten parameters."""
    return [_truth + 0.3 * np.random.default_rng(2).standard_normal(10)]


def peaks_by_hand(p: Array) -> tuple[Any, list[Array]]:
    """The slopes of each peak."""
    wrong = p[9] - _measured
    parts = []
    for k in (0, 3, 6):
        z = (_places - p[k + 1]) / p[k + 2]
        high = np.exp(-z * z)
        wrong = wrong + p[k] * high
        parts.append((k, z, high))
    g, twice = np.empty(10), 2 * wrong
    g[9] = twice.sum()
    for k, z, high in parts:
        g[k] = twice @ high
        slope = twice * high * z * (2 * p[k] / p[k + 2])
        g[k + 1] = slope.sum()
        g[k + 2] = slope @ z
    return wrong @ wrong, [g]


MODELS: dict[str, Model] = {
    "recurrent network, 12 steps": Model(recurrent, recurrent_start, recurrent_by_hand),
    "logistic regression, 256 × 20": Model(logistic, logistic_start, logistic_by_hand),
    "10 parameters fitted by SciPy, 40 evaluations": Model(
        peaks, peaks_start, peaks_by_hand, fitted=True
    ),
}


# -- contestants -----------------------------------------------------------------------------------

#: A step or a fit, which returns a loss.
Unit = Callable[[], Any]


def descent(differentiate: Callable[..., tuple[Any, Any]], model: Model) -> Unit:
    """Gradient descent in NumPy on what gives a loss and gradients."""
    parameters = model.start()

    def step() -> Any:
        loss, gradients = differentiate(*parameters)
        for parameter, g in zip(parameters, gradients, strict=True):
            parameter -= LEARNING_RATE * g
        return loss

    return step


def fit(differentiate: Callable[[Array], tuple[float, Array]], model: Model) -> Unit:
    """SciPy's L-BFGS-B on what gives a loss and a gradient."""
    from scipy.optimize import minimize

    (start,) = model.start()
    options = {"maxfun": EVALUATIONS, "maxiter": EVALUATIONS, "ftol": 0.0, "gtol": 0.0}

    def run() -> Any:
        return minimize(differentiate, start, jac=True, method="L-BFGS-B", options=options).fun

    return run


def trained(loss_of: Loss, parameters: list[Any], optimizer: Any) -> Unit:
    """A step as users of PyTorch and of Wengert write it."""

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of(*parameters)
        loss.backward()
        optimizer.step()
        return loss

    return step


def numpy_unit(model: Model) -> Unit:
    """NumPy, with the derivative by hand."""
    by_hand: Any = model.by_hand
    if not model.fitted:
        return descent(by_hand, model)

    def function(p: Array) -> tuple[float, Array]:
        loss, (g,) = by_hand(p)
        return loss, g

    return fit(function, model)


def wengert_unit(model: Model, *, compiled: bool = False) -> Unit:
    """Wengert as its users write it, eager or compiled."""
    import wengert as wg

    loss_of = model.loss(wg)
    if model.fitted:
        differentiate: Any = wg.func.value_and_grad(loss_of)
        if compiled:
            differentiate = wg.compile(differentiate)

        def function(p: Array) -> tuple[float, Array]:
            loss, g = differentiate(wg.asarray(p))
            return loss.item(), g.array

        return fit(function, model)
    parameters = [wg.asarray(x, requires_grad=True) for x in model.start()]
    step = trained(loss_of, parameters, wg.optim.SGD(parameters, lr=LEARNING_RATE))
    return wg.compile(step) if compiled else step


def compiled_unit(model: Model) -> Unit:
    """Wengert, compiled."""
    return wengert_unit(model, compiled=True)


def torch_unit(model: Model) -> Unit:
    """PyTorch, eager."""
    import torch

    torch.set_num_threads(1)
    loss_of = model.loss(torch)
    if model.fitted:

        def function(p: Array) -> tuple[float, Array]:
            x = torch.from_numpy(p).requires_grad_()
            loss = loss_of(x)
            loss.backward()
            assert x.grad is not None
            return loss.item(), x.grad.numpy()

        return fit(function, model)
    parameters = [torch.from_numpy(x.copy()).requires_grad_() for x in model.start()]
    return trained(loss_of, parameters, torch.optim.SGD(parameters, lr=LEARNING_RATE))


def jax_unit(model: Model) -> Unit:
    """JAX, with the step under ``jit``, and waited for, as a loop that looks at the loss does."""
    import jax

    jax.config.update("jax_enable_x64", True)
    differentiate = jax.value_and_grad(model.loss(jax.numpy), range(len(model.start())))
    if model.fitted:
        compiled = jax.jit(differentiate)

        def function(p: Array) -> tuple[float, Array]:
            loss, (g,) = compiled(p)
            return float(loss), np.asarray(g)

        return fit(function, model)
    parameters = [jax.numpy.asarray(x) for x in model.start()]

    def update(parameters: Any) -> Any:
        loss, gradients = differentiate(*parameters)
        return loss, jax.tree.map(lambda p, g: p - LEARNING_RATE * g, parameters, list(gradients))

    moved = jax.jit(update, donate_argnums=0)

    def step() -> Any:
        nonlocal parameters
        loss, parameters = moved(parameters)
        return jax.block_until_ready(loss)

    return step


CONTESTANTS: Mapping[str, tuple[Callable[[Model], Unit], str]] = {
    "Wengert": (wengert_unit, "numpy"),
    "Wengert compiled": (compiled_unit, "numpy"),
    "NumPy by hand": (numpy_unit, "numpy"),
    "PyTorch eager": (torch_unit, "torch"),
    "JAX jit": (jax_unit, "jax"),
}


def contestants(model: Model) -> dict[str, Work]:
    """Who can run, after checking that all see the same losses."""
    if model.fitted and not installed("scipy"):
        return {}
    made: dict[str, Work] = {}
    expected = None
    for name, (make, library) in CONTESTANTS.items():
        if not installed(library):
            continue
        unit = make(model)
        losses = np.asarray([_number(unit()) for _ in range(5)])
        if expected is None:
            expected = losses
        elif not np.allclose(losses, expected, rtol=1e-3 if model.fitted else 1e-4):
            raise AssertionError(f"{name} goes another way than Wengert: {losses} {expected}")
        made[name] = repeated(unit)
    return made


def _number(loss: Any) -> float:
    return loss.item() if hasattr(loss, "item") else float(loss)


def times(rounds: int) -> dict[str, Times]:
    """Seconds a step or a fit, for each model."""
    made = {label: contestants(model) for label, model in MODELS.items()}
    return {
        label: interleave(works, rounds=rounds, block=0.008)
        for label, works in made.items()
        if works
    }


def rows(measured: Mapping[str, Times]) -> list[list[str]]:
    """A table: microseconds, and the compiled step's ratio to each of the others."""
    lines = [["microseconds a step, or a fit", *CONTESTANTS]]
    for label, each in measured.items():
        cells = [
            f"{each.median(name) * 1e6:.0f}" if name in each.rounds else "-" for name in CONTESTANTS
        ]
        lines.append([label, *cells])
        ratios = []
        for name in CONTESTANTS:
            if name not in each.rounds or name == "Wengert compiled":
                ratios.append("")
                continue
            ratio = each.ratio("Wengert compiled", name)
            ratios.append(f"{ratio.median:.2f} ({ratio.low:.2f} – {ratio.high:.2f})")
        lines.append(["compiled ÷ that", *ratios])
    return lines


def report(rounds: int, *, markdown: bool) -> dict[str, Times]:
    """Measure everything and print the table."""
    measured = times(rounds)
    print(table(rows(measured), markdown=markdown), end="\n\n")
    return measured


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds, for a first look")
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    options = parser.parse_args()
    print(describe_machine(), end="\n\n")
    report(15 if options.quick else 60, markdown=options.markdown)
