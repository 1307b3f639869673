"""All pairs of the options of every function: values, derivatives, batches, compiled programs."""

import itertools
import runpy

import numpy as np
import pytest

import wengert as wg
from backend_check.calls import FUNCTIONS, prepare
from tests import walking
from tests.ops.references import reference
from tests.ops.spaces import ELSEWHERE, SPACES, choices, options, pairs, spaces
from tests.walking import walk
from wengert.testing import gradcheck
from wengert.testing.problem import values

NAMES = [*dict.fromkeys(name for names, _ in SPACES for name in names.split())]


def calls(name):
    """All pairs of the values of a function's options; the quick choice takes two or three."""
    found = choices(name)
    return found[:: 1 + len(found) // 2 * (walking.chosen.shares.get("numpy", 1) > 1)]


@pytest.fixture(autouse=True)
def on_numpy():
    with wg.use_backend("numpy"):
        yield


def test_every_option_has_its_values():
    missing = [
        (name, option)
        for name in FUNCTIONS
        if not name.startswith(("nn.", "init.", "optim."))  # layers hand theirs on to functions
        for option in options(name)
        if not any(isinstance(space.get(option), tuple) for space in spaces(name))
        and (name, option) not in ELSEWHERE
    ]
    assert not missing, "tests/ops/spaces.py lacks them"


def test_each_pair_of_values_is_chosen():
    space = {"a": (1, 2, 3), "b": (None, 0), "held": [5], "c": ("x", "y", "z")}
    found = pairs(space)
    for one, other in itertools.combinations("abc", 2):
        both = {(chosen[one], chosen[other]) for chosen in found}
        assert both == {*itertools.product(space[one], space[other])}
    assert len(found) < 3 * 2 * 3
    assert all(chosen["held"] == [5] for chosen in found)
    assert pairs({"a": (1, 2)}) == [{"a": 1}, {"a": 2}]


@pytest.mark.whole
@pytest.mark.parametrize("name", NAMES)
def test_options(name):
    def check(_, chosen):
        function, leaves = prepare(name, chosen)
        expected = [values(out) for out in function(*map(wg.asarray, leaves))]
        for ours, theirs in zip(expected, reference(name, chosen) or expected, strict=True):
            assert ours.shape == np.shape(theirs)
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)
        tracked = [wg.asarray(x, requires_grad=True) for x in leaves]
        if any(out.requires_grad for out in function(*tracked)):
            assert gradcheck(
                function,
                tracked,
                check_forward_ad=True,
                check_batched_grad=True,
                check_batched_forward_grad=True,
                fast_mode=True,
            )

    walk([(name, chosen) for chosen in calls(name)], check, whole=True)


@pytest.mark.whole
@pytest.mark.parametrize("name", [name for name in NAMES if name != "F.dropout"])
def test_options_in_batches_and_compiled(name, saved):
    """Of a dropout each member of a batch and each call of a program has its own numbers."""

    def check(_, chosen):
        function, leaves = prepare(name, chosen)
        members = [[x, x * 0.9] for x in leaves]
        batched = wg.vmap(function)(*(wg.asarray(np.stack(each)) for each in members))
        for k, each in enumerate(zip(*members, strict=True)):
            for ours, theirs in zip(batched, function(*map(wg.asarray, each)), strict=True):
                np.testing.assert_allclose(
                    values(ours)[k], values(theirs), rtol=1e-12, atol=1e-14, strict=True
                )
        check_compiled(function, leaves, saved)

    walk([(name, chosen) for chosen in calls(name)], check, whole=True)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return tmp_path_factory.mktemp("options") / "saved.py"


def check_compiled(function, leaves, path):
    """The results and their gradients, of the program and of its file."""

    def both(*arrays):
        outs = function(*arrays)
        tracked = [out for out in outs if out.requires_grad]
        return *outs, *wg.autograd.grad(
            tracked, arrays, [wg.cos(out) for out in tracked], materialize_grads=True
        )

    compiled = wg.compile(both)
    # The function holds the leaves, with which no result of a program may share memory.
    inputs = [wg.asarray(x, copy=True, requires_grad=True) for x in leaves]
    compiled(*inputs)
    found = compiled(*inputs)
    assert compiled.report.recordings == 1, compiled.report
    compiled.save(path)
    saved = runpy.run_path(str(path))["both"](*leaves)
    for ours, theirs, written in zip(found, both(*inputs), saved, strict=True):
        assert ours.shape == theirs.shape == written.shape
        np.testing.assert_allclose(values(ours), values(theirs), rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(written, values(ours))
