"""The set of rules is closed: every entry of the table can be differentiated three times.

`tests.ops.test_derivatives` compares the interpreters to that depth, on every backend. Here is what
they share: which functions the rules of rules of rules call, and what comes out.
"""

import numpy as np
import pytest

import wengert as wg
from tests.ops.cases import apply, check_examples, function, inexact_results, leaves
from tests.ops.tables import TABLE
from tests.ops.watching import watched
from wengert.backends import dtype_of
from wengert.tape.primitive import PRIMITIVES, UNDEFINED
from wengert.testing import gradgradcheck
from wengert.testing.problem import like, values

DIFFERENTIABLE = [
    (name, kind)
    for name, entry in sorted(TABLE.items())
    if entry.tracked and entry.order
    for kind in entry.kinds()
]


@pytest.mark.parametrize("name", sorted(TABLE))
def test_a_row_says_three_levels_or_why_not(name):
    rules, entry = PRIMITIVES[name].rules, TABLE[name]
    assert entry.tracked == bool(rules) or entry.order == 0
    if entry.tracked and any(rule is not UNDEFINED for rule in rules.values()):
        assert entry.order == 3
    else:
        assert not entry.tracked or entry.order == 0


@pytest.mark.parametrize(("name", "kind"), DIFFERENTIABLE)
def test_three_levels_deep(name, kind):
    """No rule of any level puts what depends on the inputs through a function without rules."""
    entry = TABLE[name]

    def check(case):
        inputs = leaves(case)
        if not inputs:
            return
        moving = {id(x._array) for x in inputs}
        alive = []  # an id belongs to another array once its own is gone

        def see(call):
            alive.append(call)
            if any(id(x) in moving for x in call.inputs):
                inexact = [y for y in call.results if dtype_of(y.dtype).inexact]
                assert call.primitive.rules or not inexact, f"{call.primitive} has no rules"
                moving.update(map(id, inexact))

        with watched(see):
            level = inexact_results(apply(function(name, entry), case, inputs))
            for _ in range(3):
                level = [y for y in level if y.requires_grad]
                if not level:
                    return
                seeds = [wg.full_like(y, 0.75) for y in level]
                level = wg.autograd.grad(
                    level, inputs, seeds, create_graph=True, materialize_grads=True
                )
                for gradient, x in zip(level, inputs, strict=True):
                    assert gradient.shape == x.shape
                    assert gradient.dtype is x.dtype
                    assert np.isfinite(values(gradient)).all()

    check_examples(8, check, getattr(entry, kind))


@pytest.mark.parametrize(("name", "kind"), DIFFERENTIABLE)
def test_third_derivative(name, kind):
    """Against differences of second derivatives along a fixed direction."""
    entry = TABLE[name]

    def check(case):
        inputs = leaves(case)
        random = np.random.default_rng(0)
        direction = [like(x, normal(random, x)) for x in inputs]

        def along(*inputs):
            """The first derivative along the direction, of each result's sum."""
            results = [y for y in inexact_results(apply(call, case, inputs)) if y.requires_grad]
            if not results:
                return [wg.sum(wg.real(x) * 0.0) for x in inputs]
            gradients = wg.autograd.grad(
                results,
                inputs,
                [wg.full_like(y, 0.75) for y in results],
                create_graph=True,
                materialize_grads=True,
            )
            return [g * t for g, t in zip(gradients, direction, strict=True)]

        if inputs:
            call = function(name, entry)
            if any(y.requires_grad for y in along(*inputs)):
                gradgradcheck(along, inputs, fast_mode=True)

    check_examples(6, check, getattr(entry, kind))


def normal(random, x):
    array = random.standard_normal(x.shape)
    return array + 1j * random.standard_normal(x.shape) if x.dtype.complex else np.asarray(array)
