"""Layers of `nn`: convolutions and what stands between them, recurrent networks, transformers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from benchmarks.report import installed
from benchmarks.workloads.workload import LIBRARIES, Compute, namespace

__all__ = ["Layers", "convolutional", "encoder", "images", "recurrent", "vectors"]

Kind = Literal["gradient", "value"]


@dataclass(frozen=True)
class Layers:
    """A module, with the same weights everywhere, and its loss.

    Parameters
    ----------
    make : callable
        ``make(nn)`` returns the module.
    shape : tuple of int
        Of the input.
    classes : int
        How many classes the loss is the cross entropy of; 0 for a sum with random weights.
    kind : {"gradient", "value"}
        What is computed: the loss and its gradients by the input and all parameters, or the
        module's result alone.
    """

    make: Callable[[Any], Any]
    shape: tuple[int, ...]
    classes: int = 0
    kind: Kind = "gradient"

    def contestants(self, names: Iterable[str]) -> dict[str, Compute]:
        """How each of these peers with such modules computes it, where its library is installed."""
        made: dict[str, Callable[[], Compute]] = {
            "Wengert": partial(self._computed, "wengert"),
            "Wengert compiled": self._compiled,
            "PyTorch eager": partial(self._computed, "torch"),
        }
        return {name: made[name]() for name in names if name in made and installed(LIBRARIES[name])}

    def _compiled(self) -> Compute:
        import wengert as wg

        return wg.compile(self._computed("wengert"))

    def _computed(self, library: str) -> Compute:
        xp = namespace(library)
        random = np.random.default_rng(0)

        def drawn(*shape: int) -> Any:
            return xp.asarray(random.standard_normal(shape, dtype=np.float32))

        x = drawn(*self.shape)
        module = self.make(xp.nn)
        # Narrow, so that no gate and no softmax is saturated.
        held = {name: 0.1 * drawn(*p.shape) for name, p in module.named_parameters()}
        module.load_state_dict({**module.state_dict(), **held})
        classes, cross_entropy = self.classes, xp.nn.functional.cross_entropy
        labels = xp.asarray(random.integers(0, max(classes, 1), self.shape[0]))

        def result() -> Any:
            found = module(x)
            return found[0] if isinstance(found, tuple) else found

        def value() -> Any:
            with xp.no_grad():
                return result()

        def gradient() -> Any:
            out = result()
            loss = cross_entropy(out, labels) if classes else xp.sum(out * weights)
            return loss, xp.autograd.grad(loss, sources)

        if self.kind == "value":
            return value
        weights = drawn(*value().shape)
        sources = [x.requires_grad_(), *module.parameters()]
        return gradient


def images(
    name: str, shape: tuple[int, ...], options: tuple[Any, ...], kind: Kind = "gradient"
) -> Layers:
    """One layer of images (N, C, H, W), by its name and arguments."""
    return Layers(lambda nn: getattr(nn, name)(*options), shape, kind=kind)


def vectors(shape: tuple[int, ...]) -> Layers:
    """A normalisation of the last axis."""
    return Layers(lambda nn: nn.LayerNorm(shape[-1]), shape)


def convolutional(batch: int, size: int, first: int, second: int, classes: int) -> Layers:
    """A classifier of images: two blocks of a convolution, a norm, a rectifier and pooling."""

    def make(nn: Any) -> Any:
        def block(channels: int, produced: int) -> list[Any]:
            # The norm takes away what a bias adds.
            convolution = nn.Conv2d(channels, produced, 3, padding=1, bias=False)
            return [convolution, nn.BatchNorm2d(produced), nn.ReLU(), nn.MaxPool2d(2)]

        flat = second * (size // 4) ** 2
        return nn.Sequential(
            *block(1, first), *block(first, second), nn.Flatten(), nn.Linear(flat, classes)
        )

    return Layers(make, (batch, 1, size, size), classes)


def recurrent(name: str, steps: int, batch: int, wide: int, hidden: int) -> Layers:
    """A recurrent network along sequences."""
    return Layers(lambda nn: getattr(nn, name)(wide, hidden), (steps, batch, wide))


def encoder(batch: int, length: int, wide: int, heads: int) -> Layers:
    """A layer of a transformer's encoder."""

    def make(nn: Any) -> Any:
        return nn.TransformerEncoderLayer(wide, heads, 4 * wide, dropout=0.0, batch_first=True)

    return Layers(make, (batch, length, wide))
