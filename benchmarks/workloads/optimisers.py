"""Optimisers alone: updates with gradients that stay the same, and searches of L-BFGS."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.report import installed
from benchmarks.workloads.workload import LIBRARIES, Array, Compute, namespace

__all__ = ["METHODS", "Searches", "Updates"]

#: Of Adam, in all libraries by default.
BETA1, BETA2, EPS = 0.9, 0.999, 1e-8
RATE, MOMENTUM = 1e-3, 0.9

#: The optimisers by the names of their rows: the class, and the options that are not PyTorch's own.
METHODS: dict[str, tuple[str, dict[str, float]]] = {
    "sgd": ("SGD", {}),
    "momentum": ("SGD", {"lr": RATE, "momentum": MOMENTUM}),
    "adam": ("Adam", {}),
    "adamw": ("AdamW", {}),
    "rmsprop": ("RMSprop", {}),
    "adagrad": ("Adagrad", {}),
    "adadelta": ("Adadelta", {}),
    "adamax": ("Adamax", {}),
    "nadam": ("NAdam", {}),
    "radam": ("RAdam", {}),
    "muon": ("Muon", {}),
}


@dataclass(frozen=True)
class Updates:
    """Steps of an optimiser with gradients that stay the same, and nothing else.

    Parameters
    ----------
    shapes : sequence of tuple of int
        Of the parameters.
    method : str
        One of `METHODS`. JAX and NumPy by hand have "adam" and "momentum" alone.
    """

    shapes: tuple[tuple[int, ...], ...]
    method: str

    @property
    def start(self) -> tuple[list[Array], list[Array]]:
        """Parameters and gradients."""
        random = np.random.default_rng(4)
        parameters, gradients = (
            [random.standard_normal(shape, dtype=np.float32) for shape in self.shapes]
            for _ in range(2)
        )
        return parameters, gradients

    def contestants(self, names: Iterable[str]) -> dict[str, Compute]:
        """The step of each of these peers that has the optimiser."""
        made: dict[str, Callable[[], Compute]] = {
            "Wengert": self.wengert,
            "Wengert compiled": self.wengert_compiled,
            "PyTorch eager": self.pytorch,
        }
        if self.method in ("adam", "momentum"):
            made |= {"NumPy by hand": self.by_hand, "JAX jit": self.jax}
        return {name: made[name]() for name in names if name in made and installed(LIBRARIES[name])}

    def wengert(self) -> Compute:
        """`wengert.optim`."""
        import wengert as wg

        parameters, gradients = (list(map(wg.asarray, arrays)) for arrays in self.start)
        return self._stepping(wg.optim, parameters, gradients)

    def wengert_compiled(self) -> Compute:
        """The same step, compiled."""
        import wengert as wg

        return wg.compile(self.wengert())

    def pytorch(self) -> Compute:
        """`torch.optim`."""
        import torch

        torch.set_num_threads(1)
        parameters, gradients = (list(map(torch.from_numpy, arrays)) for arrays in self.start)
        return self._stepping(torch.optim, parameters, gradients)

    def _stepping(self, optim: Any, parameters: list[Any], gradients: list[Any]) -> Compute:
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.requires_grad_().grad = gradient
        name, options = METHODS[self.method]
        optimiser = getattr(optim, name)(parameters, **options)

        def step() -> Any:
            optimiser.step()
            return tuple(parameters)  # of its own: what returns a list of before isn't compiled

        return step

    def by_hand(self) -> Compute:
        """Updates in place, with one temporary."""
        parameters, gradients = self.start
        means = [np.zeros_like(p) for p in parameters]
        squares = [np.zeros_like(p) for p in parameters]
        done = 0

        def adam() -> Any:
            nonlocal done
            done += 1
            size = RATE / (1 - BETA1**done)
            root = (1 - BETA2**done) ** 0.5
            for p, g, m, v in zip(parameters, gradients, means, squares, strict=True):
                m *= BETA1
                m += (1 - BETA1) * g
                part = g * g
                part *= 1 - BETA2
                v *= BETA2
                v += part
                np.sqrt(v, out=part)
                part /= root
                part += EPS
                np.divide(m, part, out=part)
                part *= size
                p -= part
            return parameters

        def sgd() -> Any:
            for p, g, m in zip(parameters, gradients, means, strict=True):
                m *= MOMENTUM
                m += g
                p -= RATE * m
            return parameters

        return adam if self.method == "adam" else sgd

    def jax(self) -> Compute:
        """The formulas under ``jit``, with the old buffers given to the new."""
        import jax

        xp = jax.numpy
        (parameters, gradients) = (list(map(xp.asarray, arrays)) for arrays in self.start)
        state: Any = xp.zeros(()), parameters, *([xp.zeros_like(p) for p in parameters],) * 2
        state = jax.tree.map(xp.copy, state)

        def adam(state: Any) -> Any:
            done, parameters, means, squares = state
            done = done + 1
            size, root = RATE / (1 - BETA1**done), xp.sqrt(1 - BETA2**done)
            means = [BETA1 * m + (1 - BETA1) * g for m, g in zip(means, gradients, strict=True)]
            squares = [
                BETA2 * v + (1 - BETA2) * g * g for v, g in zip(squares, gradients, strict=True)
            ]
            parameters = [
                (p - size * m / (xp.sqrt(v) / root + EPS)).astype(p.dtype)
                for p, m, v in zip(parameters, means, squares, strict=True)
            ]
            return done, parameters, means, squares

        def sgd(state: Any) -> Any:
            done, parameters, means, squares = state
            means = [MOMENTUM * m + g for m, g in zip(means, gradients, strict=True)]
            parameters = [p - RATE * m for p, m in zip(parameters, means, strict=True)]
            return done, parameters, means, squares

        moved = jax.jit(adam if self.method == "adam" else sgd, donate_argnums=0)

        def step() -> Any:
            nonlocal state
            state = moved(state)
            return jax.block_until_ready(state)[1]

        return step


@dataclass(frozen=True)
class Searches:
    """A search of L-BFGS from its start, by default 20 iterations, with the function's gradients.

    Parameters
    ----------
    number : int
        How many numbers are searched for.
    line : str or None
        How long steps are found.
    """

    number: int
    line: str | None

    def contestants(self, names: Iterable[str]) -> dict[str, Compute]:
        """The search by each of these peers that has the optimiser."""
        made: dict[str, Callable[[], Compute]] = {
            "Wengert": lambda: self._search("wengert"),
            "Wengert compiled": lambda: self._search("wengert", compiled=True),
            "PyTorch eager": lambda: self._search("torch"),
        }
        return {name: made[name]() for name in names if name in made and installed(LIBRARIES[name])}

    def _search(self, library: str, *, compiled: bool = False) -> Compute:
        """A search; it branches on values, so that only its function can be compiled."""
        xp = namespace(library)
        random = np.random.default_rng(5)
        start = xp.asarray(random.standard_normal(self.number))
        stiffness = xp.asarray(random.uniform(1, 100, self.number))
        x = xp.asarray(np.zeros(self.number)).requires_grad_()

        def closure() -> Any:
            x.grad = None
            loss = xp.sum(stiffness * x * x) + xp.sum((x[1:] - x[:-1]) ** 4)
            loss.backward()
            return loss

        if compiled:
            closure = xp.compile(closure)
        options = {"lr": 1e-2 if self.line is None else 1.0, "line_search_fn": self.line}

        def search() -> Any:
            with xp.no_grad():
                x.copy_(start)
            xp.optim.LBFGS([x], **options).step(closure)
            return x

        return search
