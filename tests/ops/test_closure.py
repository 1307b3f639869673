"""The set of rules is closed: every entry of the table can be differentiated three times.

`tests.ops.test_derivatives` compares the interpreters to that depth, on every backend, and looks at
which functions the rules of rules of rules call. Here is what comes out.
"""

import numpy as np
import pytest

import wengert as wg
from tests.catalogue.table import TABLE
from tests.ops.cases import apply, check_examples, function, inexact_results, leaves
from wengert.testing import gradgradcheck
from wengert.testing.problem import like

DIFFERENTIABLE = [
    (name, kind)
    for name, entry in sorted(TABLE.items())
    if entry.tracked and entry.order
    for kind in entry.kinds()
]


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
