"""Random programs: recorded, optimised and compiled they give what they give eagerly, to the bit.

The same kernels run on the same operands in the same order. Two kinds are compared to rounding:
programs of complex numbers, whose products NumPy fuses where memory allows it, and those of
``jax.jit``, which fuses products and sums.
"""

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import reject
from hypothesis import strategies as st

import wengert as wg
from tests.catalogue.table import TABLE, TRACKED
from tests.compiler.bits import same_bits
from tests.fuzz.programs import Program, Wengert, inputs_of, outputs, programs
from tests.ops.cases import apply, check_examples, function, inexact_results, is_variable, tensor
from wengert.backends import Backend
from wengert.testing.problem import values

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

#: What changes no value, or comes back: food for the passes. It is drawn after each step.
SPICES: list[Callable[[Any], Any]] = [
    *[lambda x: x] * 2,
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


def seasoned(program: Program, number: int) -> Callable[..., tuple[Any, ...]]:
    """A program with spices after its calls, as a function: results, and a loss's gradients."""
    chosen = random.Random(number).choices(SPICES, k=5)
    fixed = lambda a: a if is_variable(a) else tensor(a)  # before there is a trace
    program = [(name, kind, case and case.with_arrays(fixed)) for name, kind, case in program]
    functions = {name: function(name, TABLE[name]) for name, _, case in program if case is not None}

    def call(name: str, case: Any, inputs: Any) -> Any:
        found = inexact_results(apply(functions[name], case, inputs))
        return [chosen[(y.ndim + len(name)) % 5](y) for y in found]

    lib = SimpleNamespace(x=Wengert().x, tensor=tensor, call=call)

    def run(*leaves: Any) -> tuple[Any, ...]:
        results = outputs(program, lib, leaves)
        loss = sum([wg.sum(wg.real(y)) for y in results if y.requires_grad], wg.sum(leaves[0]) * 0)
        slopes = wg.autograd.grad(wg.real(loss), leaves, materialize_grads=True)
        return tuple([x.detach() for x in (*results, *slopes)])

    return run


def has_mask(name: str, _kind: str, case: Any) -> bool:
    """Whether a call's result has a shape that depends on values."""
    keys: list[str] = []
    if name in ("getitem", "setitem"):
        case.with_arrays(lambda x: keys.append(x.dtype.kind))
    return name == "masked" or "b" in keys


def check(program: Program, number: int, backend: Backend) -> None:
    """Compare a recording and two replays, whose results stay, with eager runs."""
    program = [step for step in program if not has_mask(*step)]
    if not inputs_of(program):
        reject()
    made = seasoned(program, number)
    step, found = wg.compile(made), []
    for factor in (1.0, 0.98, 1.01):
        point = [x * x.dtype.type(factor) for x in inputs_of(program)]
        try:
            eager = made(*[tensor(x, True) for x in point])
        except (NotImplementedError, np.linalg.LinAlgError):
            reject()
        leaves = [tensor(x, True) for x in point]
        found.append((eager, step(*leaves)))
        for x, leaf in zip(point, leaves, strict=True):
            assert same_bits(x, values(leaf))
    for eager, answer in found:
        for x, y in zip(map(values, eager), map(values, answer), strict=True):
            if backend.name == "jax" or any(a.dtype.kind == "c" for a in inputs_of(program)):
                eps = np.finfo(x.dtype).eps
                size = np.max(np.abs(x), initial=1, where=np.isfinite(x))
                np.testing.assert_allclose(x, y, rtol=1e4 * eps, atol=1e4 * eps * size)
            else:
                assert same_bits(x, y), (x, y)
    assert "eagerly" not in str(step.report), step.report


@pytest.mark.slow
def test_compiled_programs_are_the_eager_ones(backend: Backend) -> None:
    count = {"numpy": 250, "torch": 40, "array_api_strict": 30}.get(backend.name, 4)
    apart = {"scatter_add"}  # whose call asks for types
    if backend.name != "numpy":  # SciPy computes zeta where a library does not
        apart |= {"zeta", "polygamma", "digamma"}
    rows = [row for row in TRACKED if row[0] not in apart]
    check_examples(
        count, lambda p, n: check(p, n, backend), programs(rows), st.integers(0, 1 << 32)
    )
