"""Every primitive has a row, and the row's calls reach the primitive."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import Phase, find, settings
from hypothesis.errors import NoSuchExample

import wengert as wg
import wengert.optim
from tests.ops.cases import apply, function, inexact_results, leaves
from tests.ops.tables import TABLE
from wengert.backends import namespaces
from wengert.backends.backend import composites
from wengert.tape.primitive import NOT_IMPLEMENTED, PRIMITIVES, UNDEFINED, ZERO
from wengert.tape.sweep import ancestors

SEARCH = settings(max_examples=50, database=None, phases=[Phase.generate])


def test_every_primitive_has_a_row_and_every_row_a_primitive():
    rooms = {
        name
        for name in PRIMITIVES
        if getattr(composites.get(name), "__module__", "").startswith("wengert.scipy")
    }
    assert PRIMITIVES.keys() - TABLE.keys() - rooms == set(), (
        "primitives without a row in tests/ops/tables"
    )
    assert TABLE.keys() - PRIMITIVES.keys() == set(), "rows without a primitive"


@pytest.mark.parametrize("name", sorted(TABLE))
def test_the_calls_reach_the_primitive(name):
    """A row would test nothing if its calls went another way."""
    entry = TABLE[name]
    if not entry.tracked:
        assert not PRIMITIVES[name].rules
        return
    for kind in entry.kinds():
        seen = set()

        def reaches(case, seen=seen):
            results = apply(function(name, entry), case, leaves(case))
            nodes = [r._node for r in inexact_results(results) if r._node is not None]
            seen.update(node.operation for node in ancestors(nodes) if hasattr(node, "plan"))
            return name in seen

        find(getattr(entry, kind), reaches, settings=SEARCH)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_every_differentiable_input_is_tracked_in_some_call(name):
    """A rule that no call of the row needs would go untested."""
    entry = TABLE[name]
    primitive = PRIMITIVES[name]
    wanted = {i for i, x in enumerate(primitive.inputs) if x.lstrip("*") in primitive.rules}
    missing = set(wanted)
    for kind in entry.kinds():
        if not missing:
            break

        def covers(case, missing=missing):
            results = apply(function(name, entry), case, leaves(case))
            for node in ancestors(r._node for r in inexact_results(results) if r._node is not None):
                if hasattr(node, "plan") and node.operation == name:
                    missing -= {
                        min(i, len(primitive.inputs) - 1)
                        for i, parent in enumerate(node.parents)
                        if parent is not None
                    }
            return not missing

        with suppress(NoSuchExample):
            find(getattr(entry, kind), covers, settings=SEARCH)
    assert not missing, f"no call differentiates {[primitive.inputs[i] for i in missing]}"


def test_declarations_behave_differently():
    """A derivative that is zero, one that is undefined, and one that is not there yet."""
    x = wg.asarray([0.5, 1.5], dtype=wg.float64).requires_grad_()
    for name, primitive in list(PRIMITIVES.items()):
        for argument, rule in primitive.rules.items():
            if rule is ZERO:
                zero = rule.rule(name, argument)(namespaces[np.ndarray], np.ones(3))
                np.testing.assert_array_equal(zero, np.zeros(3))
            if rule in (UNDEFINED, NOT_IMPLEMENTED):
                with pytest.raises(NotImplementedError, match=name):
                    rule.rule(name, argument)(None, None)
    (gradient,) = wg.autograd.grad(wg.floor(x), x, wg.ones_like(x))
    assert not gradient.numpy().any()
    out = wg.nextafter(x, 2 * x)
    with pytest.raises(NotImplementedError, match=r"nextafter.*not defined"):
        wg.autograd.grad(out, x, wg.ones_like(x))
