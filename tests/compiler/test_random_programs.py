"""Random programs: recorded, optimised and compiled they give what they give eagerly, to the bit.

The same kernels run on the same operands in the same order, so there is no rounding to allow for,
with two exceptions, which are compared to rounding:

- Complex numbers. NumPy multiplies them with fused operations where the memory of operands and
  result allows it, and otherwise without: ``np.square(z)`` of a scalar, and a product in place,
  differ in the last bit from those of a 0-d array and into another array.
- Programs under ``jax.jit``. XLA fuses products and sums across operations.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wengert as wg
from tests.compiler.bits import same_bits
from tests.ops.cases import examples
from tests.programs import Program, programs
from wengert.backends import Backend

# Second points are drawn without regard to where a program is smooth, or defined.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

#: What changes no value, or comes back: food for the passes. It is drawn after each step.
SPICES: list[Callable[[Any], Any]] = [
    *[lambda x: x] * 4,
    lambda x: x * 1,
    lambda x: x / 1.0,
    lambda x: x + 0.0,
    lambda x: x - 0,
    lambda x: x**1,
    lambda x: wg.negative(-x),
    lambda x: x * wg.ones_like(x),
    lambda x: x + wg.zeros_like(x),
    lambda x: x + wg.sin(wg.zeros(x.shape[-1:], dtype=x.dtype)),
    lambda x: wg.reshape(wg.reshape(x, (-1,)), x.shape),
    lambda x: wg.squeeze(wg.expand_dims(x, axis=0), axis=0),
    lambda x: wg.broadcast_to(x, x.shape),
    lambda x: wg.astype(x, x.dtype),
    lambda x: x.clone(),
    lambda x: x[...],
    lambda x: x[::-1][::-1] if x.ndim else x,
    lambda x: wg.where(wg.real(x) > 0, x, x * 1.0),
    lambda x: wg.where(wg.real(x) > 0, x, -x),
    lambda x: wg.concat([x, x])[: x.shape[0]] if x.ndim else x,
    lambda x: x.mT.mT if x.ndim > 1 else x,
    lambda x: wg.permute_dims(wg.stack([x, x], axis=-1), (x.ndim, *range(x.ndim)))[0],
    lambda x: 0.5 * x + 0.5 * x,
    lambda x: wg.sin(x) + wg.sin(x),
    lambda x: x + (x - x.detach()),
    lambda x: x + wg.sum(x * 0.25),
]


class Seasoned:
    """A random program with spices between its steps, as a loss and its gradients."""

    def __init__(self, program: Program, spices: tuple[int, ...]) -> None:
        self.program, self.spices = program, spices

    def value(self, *inputs: Any) -> Any:
        known = list(inputs)
        for i, step in enumerate(self.program.steps):
            function: Any = wg
            for part in step.name.split("."):
                function = getattr(function, part)
            operands = [known[i] for i in step.operands]
            taken = [operands] if step.listed else operands
            found = function(*taken, **dict(step.keywords))
            known.append(SPICES[self.spices[i % len(self.spices)]](found))
        return known[-1]

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """The value, and the gradient of the real part's sum by each input."""
        value = self.value(*inputs)
        loss = wg.sum(wg.real(value))
        # A step without a derivative may be all there is.
        if not loss.requires_grad:
            return (value, value * 2)
        grads = wg.autograd.grad(loss, inputs, allow_unused=True)
        pairs = zip(inputs, grads, strict=True)
        return (value, *[wg.zeros_like(x) if g is None else g for x, g in pairs])

    def __repr__(self) -> str:
        return f"{self.program!r}\n# spices {self.spices}"


def _seasoned(dtype: str) -> Any:
    spices = st.lists(st.integers(0, len(SPICES) - 1), min_size=1, max_size=5).map(tuple)
    return st.builds(Seasoned, programs(dtype=dtype, max_steps=6), spices)


def points(made: Seasoned, dtype: str) -> list[list[Any]]:
    """Where the program was drawn, and two more points of the same shapes."""
    first = [x.astype(dtype) for x in made.program.inputs]
    rng = np.random.default_rng(7)
    others = []
    for _ in range(2):
        point = [rng.normal(size=x.shape) for x in first]
        if first[0].dtype.kind == "c":
            point = [x + 1j * rng.normal(size=x.shape) for x in point]
        others.append([x.astype(dtype) for x in point])
    return [first, *others]


def tensors(backend: Backend, point: list[Any]) -> list[Any]:
    return [wg.Tensor(backend.from_numpy(x.copy()), requires_grad=True) for x in point]


def arrays(answer: Any, backend: Backend) -> list[Any]:
    """Copies in host memory of the Tensors or raw arrays that a program gives."""
    found = [x.detach()._array if isinstance(x, wg.Tensor) else x for x in answer]
    return [np.array(backend.to_numpy(backend.array(x))) for x in found]


def equal(xs: list[Any], ys: list[Any]) -> None:
    assert len(xs) == len(ys)
    for x, y in zip(xs, ys, strict=True):
        assert same_bits(x, y), (x, y)


def close(xs: list[Any], ys: list[Any]) -> None:
    assert len(xs) == len(ys)
    for x, y in zip(xs, ys, strict=True):
        eps = np.finfo(x.dtype).eps
        size = np.max(np.abs(x), initial=1, where=np.isfinite(x))
        np.testing.assert_allclose(x, y, rtol=1e4 * eps, atol=1e4 * eps * size)


#: Programs for each backend and dtype, which the thorough profile doubles.
COUNTS = {"numpy": (100, 40), "torch": (15, 6), "array_api_strict": (12, 6), "jax": (2, 2)}


def _backward(made: Seasoned, *inputs: Any) -> Any:
    """A loss of a program, whose backward pass adds to the inputs' ``.grad``."""
    value = wg.sum(wg.real(made.value(*inputs)) + sum(wg.sum(wg.real(x)) for x in inputs))
    value.backward()
    return value


@pytest.mark.slow
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_compiled(backend: Backend, dtype: str, backward: bool) -> None:
    """`wg.compile`: two replays, whose results stay, and the gradients that they leave."""
    many, few = COUNTS.get(backend.name, (2, 2))
    number = examples(many if dtype == "float64" else few)
    same = close if dtype == "complex128" or backend.name == "jax" else equal

    @settings(max_examples=max(1, number // 2) if backward else number)
    @given(_seasoned("complex128" if dtype == "complex128" else "float64"))
    def run(made: Seasoned) -> None:
        function = partial(_backward, made) if backward else made
        step, found = wg.compile(function), []
        first = points(made, dtype)[0]
        there, here = tensors(backend, first), tensors(backend, first)
        for point in points(made, dtype):
            for x, value in zip((*there, *here), (*point, *point), strict=True):
                x._array = backend.from_numpy(value.copy())
            eager, answer = function(*there), step(*here)
            eager, answer = ((x,) if backward else x for x in (eager, answer))
            found.append((arrays(eager, backend), answer))
            equal(point, arrays(here, backend))
            if backward:
                grads = [[x.grad for x in inputs] for inputs in (there, here)]
                same(*[arrays(each, backend) for each in grads])
        for expected, answer in found:
            same(expected, arrays(answer, backend))
        assert "eagerly" not in str(step.report), step.report

    run()
