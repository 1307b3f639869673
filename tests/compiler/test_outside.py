"""Results of compiled functions are differentiated outside."""

import itertools
import weakref

import pytest

import wengert as wg


def test_results_are_differentiated_outside():
    w = wg.asarray([1.0, 2.0], requires_grad=True)
    f = wg.compile(lambda x: (wg.sum(x * w**2), w * 3.0))
    for _ in range(3):
        w.grad = None
        x = wg.asarray([3.0, 5.0], requires_grad=True)
        total, scaled = f(x)
        (total + wg.sum(scaled)).backward()
        assert w.grad.tolist() == [9.0, 23.0]
        assert x.grad.tolist() == [1.0, 4.0]
    assert f.report.recordings == 1


def test_arguments_that_were_computed_are_differentiated_from_the_first_call_on():
    f = wg.compile(lambda y: wg.sum(y * y))
    x = wg.asarray([3.0, 5.0], requires_grad=True)
    for _ in range(3):
        x.grad = None
        y = x * 2.0
        f(y).backward()
        assert x.grad.tolist() == [24.0, 40.0]
        assert not y.is_leaf
    for _ in range(3):  # each transform has a function of its own
        g = wg.compile(lambda y: wg.sum(y * y))
        assert wg.grad(g)(wg.asarray([3.0, 5.0])).tolist() == [6.0, 10.0]


#: What is differentiated, one after the other: results, and whether their graphs are kept.
SWEEPS = [
    *[[((i,), False) for i in order] for order in itertools.permutations(range(3))],
    *[[((i,), False) for i in (a, b)] for a in range(3) for b in range(3)],
    [((0,), True), ((1,), False), ((0,), False)],
    [((0, 1), True), ((0,), False), ((1,), False)],
    [((0, 1), False), ((2,), False)],
    [((0, 2), False), ((1,), False)],
    [((0, 1, 2), True), ((0, 1, 2), False), ((1,), False)],
]


@pytest.mark.parametrize("sweeps", SWEEPS)
def test_results_are_differentiated_one_after_the_other(sweeps):
    """Where they have no operation in common; otherwise it is the error that it is eagerly."""
    w, v = wg.asarray([1.0, 2.0], requires_grad=True), wg.asarray([3.0, 4.0], requires_grad=True)

    def step(x):
        h = x * w
        return wg.exp(h), wg.sin(v) * w, wg.cos(h * 2)

    def seen(function):
        w.grad = v.grad = None
        results, found = function(wg.ones(2)), []
        for which, keep in sweeps:
            try:
                sum(wg.sum(results[i]) for i in which).backward(retain_graph=keep)
            except RuntimeError as error:
                found.append(str(error))
            found += [x.grad if x.grad is None else x.grad.tolist() for x in (w, v)]
        return found

    compiled = wg.compile(step)
    for _ in range(3):
        assert seen(compiled) == seen(step)
    assert compiled.report.recordings == 1


def test_what_a_sweep_needed_is_let_go_with_it():
    compiled = wg.compile(lambda x, y: (wg.sum(wg.exp(x)), wg.sum(wg.exp(y))), check=0)
    for _ in range(3):
        x, y = (wg.ones(5, requires_grad=True) for _ in range(2))
        a, b = compiled(x, y)
        node = a._node.parents[0]
        kept = [weakref.ref(array) for array in node.saved[:-1]]
        a.backward()
        assert sorted(ref() is not None for ref in kept) == [False, True]
        b.backward()
        assert node.saved is None
        assert [x.grad.tolist(), y.grad.tolist()] == [wg.exp(wg.ones(5)).tolist()] * 2
