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
#: Half of them run twice more, with a backward pass inside and outside.
DTYPES = ("float64", "float32", "complex128")


def _count(backend: Backend, dtype: str) -> int:
    many, few = COUNTS.get(backend.name, (2, 2))
    return examples(many if dtype == "float64" else few)


def _comparison(backend: Backend, dtype: str, *, jitted: bool = False) -> Any:
    return close if dtype == "complex128" or (jitted and backend.name == "jax") else equal


def _drawn(dtype: str) -> str:
    return "complex128" if dtype == "complex128" else "float64"


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled(backend: Backend, dtype: str) -> None:
    """`wg.compile`: two replays, whose results stay, and a backward pass outside."""
    same = _comparison(backend, dtype, jitted=True)

    @settings(max_examples=_count(backend, dtype))
    @given(_seasoned(_drawn(dtype)))
    def run(made: Seasoned) -> None:
        step = wg.compile(made)
        found = []
        for point in points(made, dtype):
            eager = arrays(made(*tensors(backend, point)), backend)
            inputs = tensors(backend, point)
            answer = step(*inputs)
            same(eager, arrays(answer, backend))
            equal(point, arrays(inputs, backend))
            found.append((eager, answer))
        for eager, answer in found:
            same(eager, arrays(answer, backend))

    run()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_backward_inside(backend: Backend, dtype: str) -> None:
    """``backward`` in the compiled function fills the arguments' ``.grad``, and adds to it."""
    same = _comparison(backend, dtype, jitted=True)

    def loss(made: Seasoned, *inputs: Any) -> Any:
        value = wg.sum(wg.real(made.value(*inputs)) + sum(wg.sum(wg.real(x)) for x in inputs))
        value.backward()
        return value

    @settings(max_examples=max(1, _count(backend, dtype) // 2))
    @given(_seasoned(_drawn(dtype)))
    def run(made: Seasoned) -> None:
        step = wg.compile(partial(loss, made))
        first, *others = points(made, dtype)
        there, here = tensors(backend, first), tensors(backend, first)
        for point in (first, *others):
            for x, y, value in zip(there, here, point, strict=True):
                x._array, y._array = backend.from_numpy(value), backend.from_numpy(value)
            eager, compiled = loss(made, *there), step(*here)
            same(arrays([eager], backend), arrays([compiled], backend))
            same(arrays([x.grad for x in there], backend), arrays([x.grad for x in here], backend))

    run()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_backward_outside(backend: Backend, dtype: str) -> None:
    """What a compiled function returns can be differentiated."""
    same = _comparison(backend, dtype, jitted=True)

    @settings(max_examples=max(1, _count(backend, dtype) // 2))
    @given(_seasoned(_drawn(dtype)))
    def run(made: Seasoned) -> None:
        step = wg.compile(made.value)
        for point in points(made, dtype)[:2]:
            grads = []
            for function in (made.value, step):
                inputs = tensors(backend, point)
                value = wg.sum(wg.real(function(*inputs)) * 0.5)
                if value.requires_grad:
                    value.backward()
                grads.append(arrays([x if x.grad is None else x.grad for x in inputs], backend))
            same(*grads)

    run()
