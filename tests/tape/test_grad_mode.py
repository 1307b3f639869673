"""Recording modes: contexts, decorators, threads and tasks."""

import asyncio
import threading

import pytest

import wengert as wg
from wengert.tape import grad_mode


@pytest.fixture
def x():
    return wg.tensor([1.0], requires_grad=True)


def test_contexts_nest_and_restore(x):
    with wg.no_grad():
        assert not (x * 2).requires_grad
        with wg.enable_grad():
            assert (x * 2).requires_grad
        assert not wg.is_grad_enabled()
    assert wg.is_grad_enabled()
    with pytest.raises(KeyError), wg.no_grad():
        raise KeyError
    assert wg.is_grad_enabled()
    mode = wg.no_grad()  # which can be entered twice
    with mode, mode:
        assert not wg.is_grad_enabled()
    assert wg.is_grad_enabled()


def test_nothing_is_recorded_whichever_way_a_call_goes(x):
    """Functions of one, of two and of many inputs, with parameters, and of several results."""
    for function in (
        *(wg.exp, wg.squeeze, wg.matrix_transpose, wg.nn.functional.relu, wg.unstack),
        *(lambda x: x * 2, lambda x: x * x, lambda x: x**3, lambda x: x @ x, lambda x: x[0]),
        *(lambda x: wg.reshape(x, (1, -1)), lambda x: wg.sum(x, axis=0), lambda x: wg.flip(x)),
        *(lambda x: wg.concat([x, x]), lambda x: wg.stack([x, x]), lambda x: wg.where(x > 0, x, x)),
        lambda x: wg.nn.functional.linear(x, x, x[0]),
        lambda x: wg.nn.functional.cross_entropy(x, wg.asarray([0])),
        wg.linalg.eigh,
    ):
        y = wg.reshape(x, (1, 1))
        for recorded in (True, False):
            with wg.set_grad_enabled(recorded):
                out = function(y)
            for each in out if isinstance(out, tuple | list) else [out]:
                assert each.requires_grad is recorded


def test_decorators(x):
    @wg.no_grad()
    def with_parentheses(y):
        return y * 2

    @wg.no_grad
    def bare(y):
        """Kept."""
        return y * 2

    assert not with_parentheses(x).requires_grad
    assert not bare(x).requires_grad
    assert bare.__doc__ == "Kept."
    assert wg.is_grad_enabled()


def test_a_decorated_generator_records_nothing_inside_and_does_not_leak(x):
    @wg.no_grad()
    def generate():
        got = yield x * 2
        try:
            yield got
        except ValueError:
            yield x * 3
        return x * 4

    generator = generate()
    assert not next(generator).requires_grad
    assert wg.is_grad_enabled()
    assert generator.send("sent") == "sent"
    assert not generator.throw(ValueError()).requires_grad
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert not stop.value.value.requires_grad
    assert wg.is_grad_enabled()


def test_set_grad_enabled_acts_at_once_and_until_the_block_ends(x):
    with wg.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert wg.is_grad_enabled()
    wg.set_grad_enabled(False)
    try:
        assert not wg.is_grad_enabled()
    finally:
        wg.set_grad_enabled(True)

    @wg.set_grad_enabled(False)
    def call(y):
        return y * 2

    assert wg.is_grad_enabled()
    assert not call(x).requires_grad
    assert wg.is_grad_enabled()


def test_inference_mode_cannot_be_overridden(x):
    with wg.inference_mode():
        assert wg.is_inference_mode_enabled()
        with wg.enable_grad():
            assert not (x * 2).requires_grad
        with wg.set_grad_enabled(True):
            assert not (x * 2).requires_grad
    assert not wg.is_inference_mode_enabled()
    with wg.inference_mode(False):
        assert (x * 2).requires_grad

    @wg.inference_mode()
    def call(y):
        return y * 2

    assert not call(x).requires_grad


def test_threads_have_their_own_mode(x):
    seen = []
    with wg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(wg.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_tasks_have_their_own_mode(x):
    async def quiet():
        with wg.no_grad():
            await asyncio.sleep(0)
            return (x * 2).requires_grad

    async def loud():
        await asyncio.sleep(0)
        return (x * 2).requires_grad

    async def main():
        return await asyncio.gather(quiet(), loud())

    assert asyncio.run(main()) == [False, True]


class Failing:
    """A context variable that lacks memory once, after it has been set."""

    def __init__(self, variable):
        self.variable, self.get, self.failed = variable, variable.get, False

    def set(self, value):
        token = self.variable.set(value)
        if not self.failed:
            self.failed = True
            raise MemoryError
        return token

    def reset(self, token):
        self.variable.reset(token)
        self.set(self.get())


@pytest.mark.parametrize("inside", [False, True])
def test_modes_that_fail_for_want_of_memory_end(inside, monkeypatch):
    before = grad_mode.recording()
    failing = Failing(grad_mode._recording)
    failing.failed = inside
    monkeypatch.setattr(grad_mode, "_recording", failing)
    with pytest.raises(MemoryError), wg.no_grad():
        failing.failed = False
    assert grad_mode.recording() == before


def test_modes_decorate_no_classes_nor_asynchronous_functions():
    async def waits():
        pass

    async def numbers():
        yield 1

    class Model:
        pass

    for wrong in (waits, numbers, Model):
        for mode in (wg.no_grad(), wg.enable_grad(), wg.inference_mode()):
            with pytest.raises(TypeError, match="use it as a context inside"):
                mode(wrong)
