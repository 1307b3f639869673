"""Modes, generators and observers around compiled functions and in them."""

import pytest

import wengert as wg
from wengert.compiler.capture.errors import TraceError
from wengert.testing import graph_breaks

F = wg.nn.functional


def _leaves_a_state(x):
    state = wg.random.get_rng_state()
    y = x * wg.rand_like(x)
    wg.random.set_rng_state(state)
    return y


def _draws_again(x):
    state = wg.random.get_rng_state()
    first = wg.rand_like(x)
    wg.random.set_rng_state(state)
    return first - wg.rand_like(x)


OUTSIDE = wg.random.get_rng_state()


def _takes_a_state(x):
    wg.random.set_rng_state(OUTSIDE)
    return x * wg.rand_like(x)


def _checkpoints_dropout(x):
    y = wg.checkpoint(lambda x: F.dropout(wg.sin(x), 0.5), x.requires_grad_())
    return wg.autograd.grad(wg.sum(y), [x])[0]


BACK = [_leaves_a_state, _draws_again, _takes_a_state, _checkpoints_dropout]


@pytest.mark.parametrize("function", BACK)
def test_states_of_generators_that_a_replay_would_not_set(function):
    with pytest.raises(TraceError, match="go back"):
        wg.compile(function)(wg.ones(2))


def test_graph_breaks_sees_what_a_replay_would_not_show():
    w = wg.asarray([1.5], requires_grad=True)

    @wg.compile
    def function(x):
        return wg.sum(wg.floor(w * x) + w.detach()).detach()

    for _ in range(3):
        function(wg.ones(1))
    with graph_breaks() as breaks:
        function(wg.ones(1))
    assert {one.operation for one in breaks} >= {"floor", "detach"}


MODES = {
    wg.set_grad_enabled: (False, wg.is_grad_enabled),
    wg.set_default_dtype: (wg.float64, wg.get_default_dtype),
    wg.set_backend: ("array_api_strict", lambda: wg.get_backend().name),
}


@pytest.mark.parametrize("change", MODES)
def test_modes_that_are_set_inside_are_errors(change):
    pytest.importorskip("array_api_strict")
    value, mode = MODES[change]
    before = mode()

    def function(x):
        change(value)
        return x * 2

    try:
        with pytest.raises(TraceError, match="the mode"):
            wg.compile(function)(wg.ones(2))
        assert mode() == before
    finally:
        change(before)


@pytest.mark.parametrize("check", [None, 0, 1])
def test_a_loss_that_was_differentiated_inside_comes_back_as_it_does_eagerly(check):
    wg.manual_seed(0)
    model = wg.nn.Linear(3, 2)

    def step(x):
        model.zero_grad()
        out = model(x)
        loss = wg.mean(out**2)
        loss.backward()
        return loss, {"again": loss, "twice": loss * 2.0, "no": x * 1.0}

    def seen(call):
        loss, others = call(x)
        found = [others["again"] is loss]
        for each in (loss, *others.values()):
            with pytest.raises(RuntimeError):
                each.backward()
            found.append((each.requires_grad, each.is_leaf))
        # Two losses are two places on the tape.
        one, other = call(x)[0], call(x)[0]
        return found + wg.func.tree_leaves(wg.autograd.grad(one + 3.0 * other, [one, other]))

    x = wg.randn(4, 3)
    expected = seen(step)
    assert expected[1][0]
    compiled = wg.compile(step, check=check)
    for _ in range(4):
        assert seen(compiled) == expected
    assert compiled.report.recordings == 1


@pytest.mark.parametrize("mode", [wg.inference_mode, wg.no_grad])
def test_a_mode_has_one_program(mode):
    f = wg.compile(wg.nn.Linear(3, 2))
    with mode():
        for _ in range(4):
            f(wg.ones(4, 3))
    assert f.report.recordings == 1
