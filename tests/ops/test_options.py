"""All pairs of the options of every function: values, derivatives, batches, compiled programs."""

import itertools
import runpy

import numpy as np
import pytest

import wengert as wg
from backend_check.calls import FUNCTIONS, prepare
from tests.ops.references import reference
from tests.ops.spaces import ELSEWHERE, SPACES, options, pairs, spaces
from wengert.interpreters.batched import Batched
from wengert.interpreters.lifted import new_level
from wengert.testing import gradcheck
from wengert.testing.problem import values


def shown(chosen):
    return "-".join(f"{k}={v}" for k, v in chosen.items() if not isinstance(v, np.ndarray | list))


def calls():
    """All pairs of all functions; the first of each function is marked `whole`."""
    for name in dict.fromkeys(name for names, _ in SPACES for name in names.split()):
        found = [chosen for space in spaces(name) for chosen in pairs(space)]
        for at, chosen in enumerate(found):
            marks = () if at else pytest.mark.whole
            yield pytest.param(name, chosen, id=f"{name}-{shown(chosen)}", marks=marks)


CALLS = [*calls()]


@pytest.fixture(autouse=True)
def on_numpy():
    with wg.use_backend("numpy"):
        yield


#: Layers hand theirs on to functions.
NAMES = [name for name in FUNCTIONS if not name.startswith(("nn.", "init.", "optim."))]


@pytest.mark.parametrize("name", NAMES)
def test_every_option_has_its_values(name):
    for option in options(name):
        several = any(isinstance(space.get(option), tuple) for space in spaces(name))
        assert several or (name, option) in ELSEWHERE, f"tests/ops/spaces.py: {name} has {option}"


def test_each_pair_of_values_is_chosen():
    space = {"a": (1, 2, 3), "b": (None, 0), "held": [5], "c": ("x", "y", "z")}
    found = pairs(space)
    for one, other in itertools.combinations("abc", 2):
        both = {(chosen[one], chosen[other]) for chosen in found}
        assert both == {*itertools.product(space[one], space[other])}
    assert len(found) < 3 * 2 * 3
    assert all(chosen["held"] == [5] for chosen in found)
    assert pairs({"a": (1, 2)}) == [{"a": 1}, {"a": 2}]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "chosen"), CALLS)
def test_options(name, chosen):
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


#: Each member of a batch, and each call of a program, has random numbers of its own.
SAME_AGAIN = [param._replace(marks=()) for param in CALLS if param.values[0] != "F.dropout"]


@pytest.mark.parametrize(("name", "chosen"), SAME_AGAIN)
def test_options_in_batches_and_compiled(name, chosen, saved):
    function, leaves = prepare(name, chosen)
    level = new_level()
    members = [[x, x * 0.9] for x in leaves]
    batched = function(*(wg.Tensor(Batched(np.stack(each), level)) for each in members))
    for k, each in enumerate(zip(*members, strict=True)):
        for ours, theirs in zip(batched, function(*map(wg.asarray, each)), strict=True):
            assert tuple(ours.shape) == theirs.shape
            found = ours._array.inner[k] if isinstance(ours._array, Batched) else values(ours)
            np.testing.assert_allclose(found, values(theirs), rtol=1e-12, atol=1e-14)
    check_compiled(function, leaves, saved)


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
