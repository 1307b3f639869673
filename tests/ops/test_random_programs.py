"""Random programs of primitives: the same values and gradients as PyTorch's and JAX's."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wengert as wg
from tests.ops.cases import examples, leaves, tensor
from wengert.testing import gradcheck, gradgradcheck
from wengert.testing import strategies as ws
from wengert.testing.problem import values

SIDE = 3

#: Smooth functions that keep shapes of (1 or SIDE, 1 or SIDE) and, mostly, values near 1.
UNARY = ["sin", "cos", "tanh", "atan", "negative", "square", "matrix_transpose", "asinh"]
BINARY = ["add", "subtract", "multiply", "hypot_one", "matmul", "concat_halves"]
REDUCTIONS = ["sum", "mean", "cumulative_sum", "flip", "logsumexp_like"]


class Step(NamedTuple):
    """One operation: its name, which earlier values it takes, and its axis."""

    name: str
    operands: tuple[int, ...]
    axis: int


class Program(NamedTuple):
    """Inputs, and steps that each take what inputs and earlier steps gave."""

    inputs: list[np.ndarray]
    steps: list[Step]

    def inexact(self):
        return self.inputs


@st.composite
def programs(draw):
    inputs = draw(
        st.lists(
            ws.arrays(
                shape=st.sampled_from([(SIDE, SIDE), (1, SIDE), (SIDE, 1), (SIDE,), ()]),
                elements=ws.reals(-1, 1),
            ),
            min_size=1,
            max_size=3,
        )
    )
    steps = []
    for i in range(draw(st.integers(2, 9))):
        name = draw(st.sampled_from(UNARY + BINARY + REDUCTIONS))
        count = 2 if name in BINARY else 1
        # Late values are taken more often, so that programs grow deep; and twice, so that
        # cotangents meet.
        top = len(inputs) + i
        at = [top - 1 - draw(st.integers(0, top - 1)) for _ in range(count)]
        steps.append(Step(name, tuple(at), draw(st.integers(-2, 1))))
    return Program(inputs, steps)


def square(xp, x):
    return xp.broadcast_to(x, (SIDE, SIDE))


def execute(program, xp, inputs):
    """Run a program on the arrays of a namespace; the result is one number."""
    known = list(inputs)
    for name, operands, axis in program.steps:
        x = [known[i] for i in operands]
        if name == "matmul":
            out = xp.multiply(xp.matmul(square(xp, x[0]), square(xp, x[1])), 1 / SIDE)
        elif name == "hypot_one":
            out = xp.sqrt(xp.add(xp.add(xp.square(x[0]), xp.square(x[1])), 1))
        elif name == "concat_halves":
            joined = xp.concat([square(xp, x[0]), square(xp, x[1])], axis=axis)
            out = joined[1 : SIDE + 1, :] if axis in (0, -2) else joined[:, 1 : SIDE + 1]
        elif name == "matrix_transpose":
            out = xp.matrix_transpose(square(xp, x[0]))
        elif name == "logsumexp_like":
            out = xp.log(xp.sum(xp.exp(xp.tanh(square(xp, x[0]))), axis=axis, keepdims=True))
        elif name in ("sum", "mean"):
            out = getattr(xp, name)(square(xp, x[0]), axis=axis, keepdims=True)
        elif name in ("cumulative_sum", "flip"):
            out = getattr(xp, name)(square(xp, x[0]), axis=axis)
        elif name == "square":
            out = xp.square(xp.tanh(x[0]))
        else:
            out = getattr(xp, name)(*x)
        known.append(out)
    # Every value counts, also those that no later step took.
    total = xp.sum(square(xp, known[0]))
    for i, x in enumerate(known[1:]):
        total = xp.add(total, xp.multiply(xp.sum(xp.sin(x)), 1 / (i + 1)))
    return total


def ours(program):
    """The value, the gradients, and the gradients of their weighted sum."""
    inputs = leaves(program)
    loss = execute(program, wg, inputs)
    first = wg.autograd.grad(loss, inputs, create_graph=True)
    mixed = sum_of(wg, [wg.sum(wg.multiply(g, g)) for g in first])
    second = wg.autograd.grad(mixed, inputs, materialize_grads=True)
    return [values(t) for t in (loss, *first, *second)]


def sum_of(xp, terms):
    total = terms[0]
    for term in terms[1:]:
        total = xp.add(total, term)
    return total


def check(found, expected):
    for a, b in zip(found, expected, strict=True):
        scale = max(1.0, float(np.max(np.abs(b), initial=0.0)))
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11 * scale)


def test_gradients_against_differences(backend):
    count = {"numpy": 30, "torch": 5, "jax": 2, "dask": 2}.get(backend.name, 4)

    @settings(max_examples=examples(count))
    @given(programs())
    def run(program):
        inputs = leaves(program)
        gradcheck(lambda *x: execute(program, wg, x), inputs, fast_mode=True)
        gradgradcheck(lambda *x: execute(program, wg, x), inputs, fast_mode=True)

    run()


def test_backends_agree(backend):
    """Every backend runs the same program to what NumPy gives."""
    count = {"torch": 10, "jax": 3, "dask": 3}.get(backend.name, 10)

    @settings(max_examples=examples(count))
    @given(programs())
    def run(program):
        found = ours(program)
        with wg.use_backend("numpy"):
            assert tensor(program.inputs[0]).backend.name == "numpy"
            expected = ours(program)
        check(found, expected)

    run()


@pytest.mark.oracle
@settings(max_examples=examples(40))
@given(programs())
def test_pytorch_agrees(program):
    torch = pytest.importorskip("torch")
    xp = pytest.importorskip("array_api_compat.torch")
    inputs = [torch.tensor(array, requires_grad=True) for array in program.inputs]
    loss = execute(program, xp, inputs)
    first = torch.autograd.grad(loss, inputs, create_graph=True)
    mixed = sum_of(xp, [xp.sum(xp.multiply(g, g)) for g in first])
    second = (
        torch.autograd.grad(mixed, inputs, allow_unused=True)
        if mixed.requires_grad
        else [None for _ in inputs]
    )
    second = [torch.zeros_like(x) if g is None else g for g, x in zip(second, inputs, strict=True)]
    check(ours(program), [t.detach().numpy() for t in (loss, *first, *second)])


@pytest.mark.oracle
@settings(max_examples=examples(3))
@given(programs())
def test_jax_agrees(program):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    every = tuple(range(len(program.inputs)))

    def loss(*inputs):
        return execute(program, jnp, inputs)

    def mixed(*inputs):
        return sum(jnp.sum(g * g) for g in jax.grad(loss, every)(*inputs))

    inputs = [jnp.asarray(array) for array in program.inputs]
    expected = [loss(*inputs), *jax.grad(loss, every)(*inputs), *jax.grad(mixed, every)(*inputs)]
    check(ours(program), [np.asarray(t) for t in expected])
