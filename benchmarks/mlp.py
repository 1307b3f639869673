"""One training step of a multi-layer perceptron, written for each library.

Every contestant starts from the same weights and sees the same batches; the forward pass, the
cross entropy, the backward pass and the update by plain gradient descent are all in the step.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import cycle, pairwise
from typing import Any

import numpy as np

__all__ = ["CONTESTANTS", "ROWS", "Problem", "Trainer", "check_losses"]

Array = np.ndarray[Any, Any]

LEARNING_RATE = 0.01

#: Batch size, and widths from the input to the classes.
ROWS: list[tuple[int, tuple[int, ...]]] = [
    (32, (64, 32, 10)),
    (64, (64, 128, 64, 10)),
    (64, (784, 128, 10)),
    (128, (784, 512, 512, 10)),
]


@dataclass(frozen=True)
class Problem:
    """The data that every contestant gets: batches, and weights of shape (in, out) with biases."""

    batches: list[tuple[Array, Array]]
    layers: list[tuple[Array, Array]]

    @classmethod
    def make(cls, batch: int, widths: tuple[int, ...], seed: int = 0) -> "Problem":
        """Draw a problem: eight batches, and weights as `wengert.nn.Linear` draws them."""
        rng = np.random.default_rng(seed)
        batches = [
            (
                rng.standard_normal((batch, widths[0]), dtype=np.float32),
                rng.integers(0, widths[-1], batch),
            )
            for _ in range(8)
        ]
        layers = []
        for wide, narrow in pairwise(widths):
            bound = wide**-0.5
            layers.append(
                (
                    rng.uniform(-bound, bound, (wide, narrow)).astype(np.float32),
                    rng.uniform(-bound, bound, narrow).astype(np.float32),
                )
            )
        return cls(batches, layers)

    def copies(self, make: Callable[[Array], Any] = np.array) -> list[tuple[Any, Any]]:
        """The layers as fresh arrays that a contestant may write to."""
        return [(make(weight.copy()), make(bias.copy())) for weight, bias in self.layers]


@dataclass
class Trainer:
    """A contestant: its step, its batches, and how to wait for what it has started.

    Parameters
    ----------
    step : callable
        ``step(x, y)`` trains on one batch and returns the loss before the update.
    batches : list
        In the library's own arrays.
    wait : callable
        Returns when the work that led to a loss is done.
    """

    step: Callable[[Any, Any], Any]
    batches: list[tuple[Any, Any]]
    wait: Callable[[Any], object] = field(default=lambda loss: None)

    def __post_init__(self) -> None:
        self._turns = cycle(self.batches)

    def __call__(self, steps: int) -> None:
        step, turns = self.step, self._turns
        for _ in range(steps):
            x, y = next(turns)
            loss = step(x, y)
        self.wait(loss)

    def losses(self, steps: int) -> list[float]:
        """Train, and return each loss."""
        return [self.step(*next(self._turns)).item() for _ in range(steps)]


def by_hand(problem: Problem, xp: Any = np, *, keep: bool = False) -> Trainer:
    """NumPy or CuPy without a library for derivatives: what a careful person would write.

    It scales each gradient in place and drops it, and updates a layer before the next one's
    derivatives. With ``keep`` gradients can be looked at after the step, as with every library
    here, and parameters change when everything else has been computed.
    """
    layers = problem.copies(xp.asarray)
    gradients: list[tuple[Any, Any]] = []
    scaled = [(xp.empty_like(weight), xp.empty_like(bias)) for weight, bias in layers]
    batches = [(xp.asarray(x), xp.asarray(y)) for x, y in problem.batches]
    rows = xp.arange(len(batches[0][0]))
    scale = 1 / len(rows)

    def step(x: Any, y: Any) -> Any:
        gradients.clear()
        inputs = []
        for weight, bias in layers:
            inputs.append(x)
            x = x @ weight
            x += bias
            if len(inputs) < len(layers):
                xp.maximum(x, 0, out=x)
        # Softmax and cross entropy together: the gradient is softmax(x) - onehot(y).
        x -= x.max(axis=1, keepdims=True)
        chosen = x[rows, y]
        xp.exp(x, out=x)
        total = x.sum(axis=1, keepdims=True)
        loss = (xp.log(total[:, 0]) - chosen).sum() * scale
        x /= total
        x[rows, y] -= 1
        x *= scale
        for i in range(len(layers) - 1, -1, -1):
            weight, bias = layers[i]
            before = inputs[i]
            by_weight = before.T @ x
            by_bias = x.sum(axis=0)
            if i:
                x = x @ weight.T
                x *= before > 0
            if keep:
                gradients.append((by_weight, by_bias))
                continue
            by_weight *= LEARNING_RATE
            weight -= by_weight
            by_bias *= LEARNING_RATE
            bias -= by_bias
        for layer in zip(layers, reversed(gradients), scaled, strict=False):
            for parameter, gradient, change in zip(*layer, strict=True):
                xp.multiply(gradient, LEARNING_RATE, out=change)
                parameter -= change
        return loss

    if xp is np:
        return Trainer(step, batches)
    return Trainer(step, batches, lambda loss: xp.cuda.Device().synchronize())


def by_hand_kept(problem: Problem) -> Trainer:
    """NumPy by hand with what a step of every library here leaves: its gradients."""
    return by_hand(problem, keep=True)


def cupy_by_hand(problem: Problem) -> Trainer:
    """CuPy without a library for derivatives."""
    import cupy

    return by_hand(problem, cupy)


def wengert(problem: Problem, backend: str = "numpy") -> Trainer:
    """Wengert, through `nn` and `optim`, as its users write it."""
    import wengert as wg

    with wg.use_backend(backend):
        modules: list[Any] = []
        for weight, bias in problem.layers:
            # One after the other, so that no weights but the layers' own are there at once.
            layer = wg.nn.Linear(*weight.shape)
            values = {"weight": np.ascontiguousarray(weight.T), "bias": bias}
            layer.load_state_dict({name: wg.asarray(x) for name, x in values.items()})
            modules += [layer, wg.nn.ReLU()]
        model = wg.nn.Sequential(*modules[:-1])
        batches = [(wg.asarray(x), wg.asarray(y)) for x, y in problem.batches]
    criterion = wg.nn.CrossEntropyLoss()
    optimiser = wg.optim.SGD(model.parameters(), lr=LEARNING_RATE)

    def step(x: Any, y: Any) -> Any:
        optimiser.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimiser.step()
        return loss

    return Trainer(step, batches, lambda loss: loss.backend.synchronize())


def wengert_compiled(problem: Problem, backend: str = "numpy") -> Trainer:
    """The same step, recorded once and replayed by `wengert.compile`."""
    import wengert as wg

    trainer = wengert(problem, backend)
    trainer.step = wg.compile(trainer.step)
    return trainer


def pytorch(
    problem: Problem, device: str = "cpu", options: dict[str, Any] | None = None
) -> Trainer:
    """PyTorch through ``torch.nn`` and ``torch.optim``, compiled if there are ``options``."""
    import torch

    torch.set_num_threads(1)
    modules: list[Any] = []
    for weight, _ in problem.layers:
        modules += [torch.nn.Linear(*weight.shape), torch.nn.ReLU()]
    model = torch.nn.Sequential(*modules[:-1])
    with torch.no_grad():
        for i, (weight, bias) in enumerate(problem.layers):
            model[2 * i].weight.copy_(torch.from_numpy(weight.T))
            model[2 * i].bias.copy_(torch.from_numpy(bias))
    model.to(device)
    criterion = torch.nn.CrossEntropyLoss()
    optimiser = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    batches = [
        (torch.from_numpy(x).to(device), torch.from_numpy(y).to(device)) for x, y in problem.batches
    ]

    def step(x: Any, y: Any) -> Any:
        optimiser.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimiser.step()
        return loss

    if options is not None:
        begin = torch.compiler.cudagraph_mark_step_begin
        forward = torch.compile(lambda x, y: criterion(model(x), y), **options)
        update = torch.compile(optimiser.step, **options)

        def step(x: Any, y: Any) -> Any:
            begin()
            optimiser.zero_grad()
            loss = forward(x, y)
            loss.backward()
            update()
            return loss

    if device == "cpu":
        return Trainer(step, batches)
    return Trainer(step, batches, lambda loss: torch.cuda.synchronize())


def jax(problem: Problem) -> Trainer:
    """JAX: the whole step under ``jit``, with the old parameters' buffers given to the new."""
    import jax
    import jax.numpy as jnp

    parameters = problem.copies(jnp.asarray)
    rows = np.arange(len(problem.batches[0][0]))

    def forward(parameters: Any, x: Any, y: Any) -> Any:
        for weight, bias in parameters[:-1]:
            x = jax.nn.relu(x @ weight + bias)
        weight, bias = parameters[-1]
        return -jax.nn.log_softmax(x @ weight + bias)[rows, y].mean()

    def update(parameters: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(forward)(parameters, x, y)
        return loss, jax.tree.map(lambda p, g: p - LEARNING_RATE * g, parameters, gradients)

    compiled = jax.jit(update, donate_argnums=0)
    batches = [(jnp.asarray(x), jnp.asarray(y)) for x, y in problem.batches]

    def step(x: Any, y: Any) -> Any:
        nonlocal parameters
        loss, parameters = compiled(parameters, x, y)
        return loss

    return Trainer(step, batches, lambda loss: jax.block_until_ready((loss, parameters)))


def hips_autograd(problem: Problem) -> Trainer:
    """HIPS/autograd, with the parameters updated in place."""
    import autograd
    import autograd.numpy as anp

    parameters = problem.copies()
    rows = np.arange(len(problem.batches[0][0]))

    def forward(parameters: Any, x: Any, y: Any) -> Any:
        for weight, bias in parameters[:-1]:
            x = anp.maximum(x @ weight + bias, 0)
        weight, bias = parameters[-1]
        x = x @ weight + bias
        x = x - anp.max(x, axis=1, keepdims=True)
        return anp.mean(anp.log(anp.sum(anp.exp(x), axis=1)) - x[rows, y])

    differentiate = autograd.value_and_grad(forward)

    def step(x: Any, y: Any) -> Any:
        loss, gradients = differentiate(parameters, x, y)
        for layer, flows in zip(parameters, gradients, strict=True):
            for parameter, g in zip(layer, flows, strict=True):
                parameter -= LEARNING_RATE * g
        return loss

    return Trainer(step, problem.batches)


def mygrad(problem: Problem) -> Trainer:
    """MyGrad, with its own fused cross entropy and without its locks on arrays."""
    import mygrad
    from mygrad.nnet.activations import relu
    from mygrad.nnet.losses import softmax_crossentropy

    mygrad.turn_memory_guarding_off()
    layers = problem.copies(mygrad.tensor)

    def step(x: Any, y: Any) -> Any:
        for weight, bias in layers[:-1]:
            x = relu(x @ weight + bias)
        weight, bias = layers[-1]
        loss = softmax_crossentropy(x @ weight + bias, y)
        loss.backward()
        for layer in layers:
            for parameter in layer:
                parameter.data -= LEARNING_RATE * parameter.grad
        return loss

    return Trainer(step, problem.batches)


def check_losses(contestants: Mapping[str, Trainer], steps: int = 24) -> None:
    """Raise AssertionError unless all train as the first one does."""
    expected = None
    for name, contestant in contestants.items():
        losses = np.asarray(contestant.losses(steps))
        if expected is None:
            expected = losses
        elif not np.allclose(losses, expected, rtol=1e-4, atol=0):
            raise AssertionError(f"{name} trains differently from Wengert: {losses} {expected}")


#: The contestants by their names in the table, and the library each needs.
CONTESTANTS: dict[str, tuple[Callable[[Problem], Trainer], str]] = {
    "Wengert": (wengert, "numpy"),
    "Wengert compiled": (wengert_compiled, "numpy"),
    "NumPy by hand": (by_hand, "numpy"),
    "by hand, gradients kept": (by_hand_kept, "numpy"),
    "PyTorch eager": (pytorch, "torch"),
    "JAX jit": (jax, "jax"),
    "HIPS/autograd": (hips_autograd, "autograd"),
    "MyGrad": (mygrad, "mygrad"),
}
