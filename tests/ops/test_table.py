"""Every primitive has a row, and the row's calls reach the primitive."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import Phase, find, settings
from hypothesis.errors import NoSuchExample

import wengert as wg
import wengert.optim
from tests.catalogue.table import TABLE, TRACKED
from tests.ops.cases import apply, check_examples, function, inexact_results, leaves
from tests.ops.watching import watched
from tests.walking import walk
from wengert.backends import namespaces
from wengert.backends.backend import composites
from wengert.compiler.facts import facts_of
from wengert.interpreters.duals import declaration
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
        "primitives without a row in tests/catalogue"
    )
    assert TABLE.keys() - PRIMITIVES.keys() == set(), "rows without a primitive"


def test_a_row_says_three_levels_or_why_not_and_has_forward_rules():
    def check(name):
        primitive, entry = PRIMITIVES[name], TABLE[name]
        rules = primitive.rules
        assert entry.tracked == bool(rules) or entry.order == 0
        if entry.tracked and any(rule is not UNDEFINED for rule in rules.values()):
            assert entry.order == 3
        else:
            assert not entry.tracked or entry.order == 0
        for argument in rules:
            assert declaration(primitive, argument) is not NOT_IMPLEMENTED, argument

    walk([(name,) for name in sorted(TABLE)], check, whole=True)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_the_calls_reach_the_primitive_and_track_each_input(name):
    """A row would test nothing if its calls went another way, nor a rule that no call needs."""
    entry, primitive = TABLE[name], PRIMITIVES[name]
    if not entry.tracked:
        assert not primitive.rules
        return
    wanted = {i for i, x in enumerate(primitive.inputs) if x.lstrip("*") in primitive.rules}
    missing = set(wanted)
    for kind in entry.kinds():
        reached = False

        def covers(case):
            nonlocal reached
            results = apply(function(name, entry), case, leaves(case))
            for node in ancestors(r._node for r in inexact_results(results) if r._node is not None):
                if hasattr(node, "plan") and node.operation == name:
                    reached = True
                    missing.difference_update(
                        min(i, len(primitive.inputs) - 1)
                        for i, parent in enumerate(node.parents)
                        if parent is not None
                    )
            return reached and not missing

        with suppress(NoSuchExample):
            find(getattr(entry, kind), covers, settings=SEARCH)
        assert reached, f"no {kind} call"
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


def test_primitives_that_move_elements():
    """A program takes a constant that they move for the same constant."""

    def check(name, kind):
        calls = []
        see = lambda call: calls.append(call) if call.primitive.name == name else None

        def moves(case):
            with watched(see):
                apply(function(name, TABLE[name]), case, leaves(case))

        check_examples(8, moves, getattr(TABLE[name], kind))
        for call in calls:
            arrays = [x for x in call.inputs if hasattr(x, "dtype") and x.dtype.kind in "fc"]
            for result in call.results:
                assert np.isin(result, np.concatenate([*map(np.ravel, arrays)])).all()

    with wg.use_backend("numpy"):
        walk([row for row in TRACKED if facts_of(PRIMITIVES[row[0]]).moves], check, whole=True)
