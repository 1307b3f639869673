"""Duals: every function of the table on Tensors with tangents, in both modes' nests."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.ops.cases import apply, function, inexact_results, leaves
from tests.ops.tables import TABLE
from tests.ops.test_forward import TRACKED, close, inner, normal, numbers, run, size
from wengert.backends import dtype_of, namespaces
from wengert.tape.dual import Dual, Exit, drop, lift
from wengert.tape.lifted import new_level
from wengert.tape.node import tick
from wengert.tape.tensor import Tensor, untracked


def pushed(call: Any, primals: Any, tangents: Any) -> list[tuple[Tensor, Tensor]]:
    """Primal values and tangents of what a call returns: forward mode without its front door."""
    start, level = tick(), new_level()
    inputs = [lift(x, t, level) for x, t in zip(primals, tangents, strict=True)]
    pairs = drop(call(inputs), Exit(level, start))
    return [(y, wg.zeros_like(y) if t is None else t) for y, t in pairs]


def directions(random: np.random.Generator, primals: Any) -> list[Tensor]:
    return [untracked(normal(random, x._array)) for x in primals]


def made(name: str, case: Any) -> Any:
    """The row's function, of the differentiable arguments alone; its differentiable results."""
    call = function(name, TABLE[name])
    return lambda inputs: inexact_results(apply(call, case, inputs))


@pytest.mark.parametrize(("name", "kind"), TRACKED)
def test_every_function_carries_tangents(name, kind, backend):
    r"""Re ⟨g, J t⟩ by Duals is Re ⟨Jᴴ g, t⟩ by the sweep; values are those without tangents."""

    def check(case):
        primals = leaves(case)
        call = made(name, case)
        plain = call(primals)
        if not primals or not plain:
            return
        random = np.random.default_rng(0)
        tangents = directions(random, primals)
        found = pushed(call, [x.detach() for x in primals], tangents)
        g = directions(random, plain)
        forwards, backwards = [], []
        for y, expected, (value, tangent) in zip(g, plain, found, strict=True):
            np.testing.assert_array_equal(numbers(value._array), numbers(expected._array))
            assert not isinstance(tangent._array, Dual)
            assert tangent.shape == value.shape
            assert tangent.dtype is value.dtype
            forwards.append((y._array, tangent._array))
        tracked = [(y, seed) for y, seed in zip(plain, g, strict=True) if y.requires_grad]
        if tracked:
            outputs, seeds = zip(*tracked, strict=True)
            swept = wg.autograd.grad(outputs, primals, seeds, materialize_grads=True)
            backwards = [(x._array, t._array) for x, t in zip(swept, tangents, strict=True)]
        difference = sum(inner(*p) for p in forwards) - sum(inner(*p) for p in backwards)
        # Both sums lose some units of the last place of their largest terms.
        assert abs(difference) <= 1e-11 * (1 + sum(size(*p) for p in forwards + backwards))

    run(name, kind, backend, check)


@pytest.mark.parametrize(("name", "kind"), TRACKED)
def test_forward_and_reverse_nest(name, kind, backend):
    """Reverse over forward is forward over reverse, for the second derivative is symmetric."""

    def check(case):
        primals = leaves(case)
        call = made(name, case)
        random = np.random.default_rng(0)
        tangents = [t.requires_grad_() for t in directions(random, primals)]
        pairs = pushed(call, primals, tangents)
        if not pairs or not any(t.requires_grad for _, t in pairs):
            return
        g = directions(random, [y for y, _ in pairs])
        outer = [(t, seed) for (_, t), seed in zip(pairs, g, strict=True) if t.requires_grad]
        found = wg.autograd.grad(
            [t for t, _ in outer],
            [*primals, *tangents],
            [seed for _, seed in outer],
            materialize_grads=True,
        )

        def gradients(inputs):
            own = [untracked(x._array).requires_grad_() for x in inputs]
            results = [(y, seed) for y, seed in zip(call(own), g, strict=True) if y.requires_grad]
            return wg.autograd.grad(
                [y for y, _ in results],
                own,
                [seed for _, seed in results],
                materialize_grads=True,
            )

        expected = pushed(gradients, [x.detach() for x in primals], [t.detach() for t in tangents])
        by_x, by_t = [t for _, t in expected], [y for y, _ in expected]
        for a, b in zip(found, [*by_x, *by_t], strict=True):
            close(numbers(a._array), numbers(b._array))

    run(name, kind, backend, check, 0.5)
