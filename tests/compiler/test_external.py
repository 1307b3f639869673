"""External functions: what compiled functions call as it is."""

import time

import numpy as np
import pytest

import wengert as wg
from wengert.compiler import external, messages
from wengert.compiler.capture.errors import CompileError
from wengert.compiler.exchanges import noted
from wengert.testing import gradcheck, gradgradcheck


class Log:
    """What external functions have done, which no compiled function reaches."""

    def __init__(self) -> None:
        self.given: list[np.ndarray] = []
        self.slopes = 0


def cube_and_log():
    """An external cube, which depends on values, with its derivatives; and its log."""
    log = Log()

    @external
    def cube(x):
        log.given.append(x)
        time.sleep(0)  # which a replay of a recorded call would not make again
        return np.array([v**3 if v > 0 else -((-v) ** 3) for v in x.ravel().tolist()])

    @external
    def slope(x):
        log.slopes += 1
        return 3 * np.asarray(x) ** 2

    @cube.defvjp
    def rule(g, x):
        return (g * slope(x),)

    @slope.defvjp
    def second(g, x):
        return (g * 6 * x,)

    return cube, log


X = [np.array([0.5, -1.5, 2.0]) + 0.25 * i for i in range(5)]


def test_derivatives() -> None:
    cube, _ = cube_and_log()
    x = wg.asarray(X[0], requires_grad=True)
    np.testing.assert_allclose(cube(x).detach().numpy(), X[0] ** 3)
    assert gradcheck(cube, (x,))
    assert gradgradcheck(cube, (x,))
    found = x.detach()
    for forward in (
        lambda: wg.jvp(cube, (found,), (wg.ones_like(found),)),
        lambda: wg.func.jacfwd(cube)(found),
        lambda: wg.compile(lambda x: wg.jvp(cube, (x,), (wg.ones_like(x),)))(found),
    ):
        with pytest.raises(NotImplementedError, match="cube is an external function"):
            forward()
    tangent = wg.func.linearize(cube, found)[1](wg.ones_like(found))  # by the tape
    np.testing.assert_allclose(tangent.numpy(), 3 * X[0] ** 2)


def test_once_a_call() -> None:
    """Recorded, checked and replayed, each call calls it once, with that call's values."""
    cube, log = cube_and_log()
    w = wg.asarray([1.0, 2.0, 3.0], requires_grad=True)

    @wg.compile(check=2)
    def step(x):
        w.grad = None
        loss = wg.sum(cube(w * x) * 2)
        loss.backward()
        return loss

    for i, x in enumerate(X, 1):
        found = step(wg.asarray(x))
        wx = w.detach().numpy() * x
        np.testing.assert_allclose(found.item(), 2 * np.sum(wx**3))
        np.testing.assert_allclose(w.grad.numpy(), 6 * wx**2 * x)
        assert (len(log.given), log.slopes) == (i, i)
        np.testing.assert_array_equal(log.given[-1], wx)
    # What it has kept is its own: later replays do not write into it.
    np.testing.assert_array_equal(log.given[1], w.detach().numpy() * X[1])
    assert step.report.recordings == step.report.checks == 2, step.report
    assert "eagerly" not in str(step.report), step.report
    assert "external" in step.source


def test_gradients_from_outside() -> None:
    cube, log = cube_and_log()
    w = wg.asarray([1.0, 2.0, 3.0], requires_grad=True)
    step = wg.compile(lambda x: wg.sum(cube(w * x)), check=0)  # a check gives its own graph
    for i, x in enumerate(X, 1):
        loss = step(wg.asarray(x))
        (g,) = wg.autograd.grad(loss, w)
        np.testing.assert_allclose(g.numpy(), 3 * (w.detach().numpy() * x) ** 2 * x)
        assert len(log.given) == i


def test_a_failing_program_calls_it_once() -> None:
    cube, log = cube_and_log()
    step = wg.compile(lambda x, i: wg.take(cube(x), i, axis=0))
    for at in (0, 1, 2):
        step(wg.asarray(X[0]), wg.asarray([at]))
    with pytest.raises(IndexError):
        step(wg.asarray(X[0]), wg.asarray([7]))
    assert len(log.given) == 4


def test_several_results_and_arguments() -> None:
    @external
    def both(x, y):
        return x @ y, np.sum(x)

    @both.defvjp
    def rule(g, x, y):
        product, total = g
        return product * y + total, product * x

    x, y = (wg.asarray(v, requires_grad=True) for v in X[:2])
    assert gradcheck(lambda x, y: wg.stack(both(x, y)), (x, y))
    step = wg.compile(lambda x, y: both(x, y))
    for _ in range(3):
        one, two = step(x, y)
        np.testing.assert_allclose([one.item(), two.item()], [X[0] @ X[1], np.sum(X[0])])
        (g,) = wg.autograd.grad(one + two, y)
        np.testing.assert_allclose(g.numpy(), X[0])


def test_on_every_library(backend) -> None:
    @external
    def squared(x):
        return np.asarray(backend.to_numpy(x)) ** 2

    step = wg.compile(lambda x: squared(x) + 1)
    for v in X[:3]:
        x = wg.asarray(backend.from_numpy(v))
        for found in (squared(x) + 1, step(x)):
            assert found.backend is x.backend
            np.testing.assert_allclose(backend.to_numpy(found._array), v**2 + 1)


def test_a_compiled_rule_reads_state() -> None:
    """The rule is recorded, so that what it reads is state."""
    scale = wg.asarray(2.0)

    @external
    def same(x):
        return x

    @same.defvjp
    def rule(g, x):
        return (g * scale,)

    w = wg.asarray([1.0], requires_grad=True)

    @wg.compile
    def step(x):
        (g,) = wg.autograd.grad(wg.sum(same(w * x)), w)
        return g

    for value in (2.0, 2.0, 3.0, 4.0):
        scale += value - scale.item()
        assert step(wg.asarray([1.0])).item() == value


def test_it_runs_once_where_shapes_differ() -> None:
    batches = [np.full(n, float(n)) for n in (4, 4, 4, 2, 4, 2, 4)]
    rest = iter(batches)
    batch = external(lambda x: next(rest))
    run = wg.compile(lambda x: wg.sum(batch(x)))
    found = [run(wg.ones(1)).item() for _ in batches]
    assert found == [n * n for n in (4, 4, 4, 2, 4, 2, 4)]
    assert next(rest, None) is None


@pytest.mark.parametrize("failing", [0, 1, 2, 4])
def test_it_runs_once_where_it_raises(failing: int) -> None:
    calls = []

    @external
    def device(x):
        calls.append(1)
        if len(calls) == failing + 1:
            raise ConnectionError("device lost")
        return x * 2

    run = wg.compile(lambda x: wg.sum(device(x)))
    for k in range(6):
        if k == failing:
            with pytest.raises(ConnectionError, match="device lost"):
                run(wg.ones(2))
        else:
            assert run(wg.ones(2)).item() == 4.0
    assert len(calls) == 6


def test_external_functions_that_call_one_another() -> None:
    double = external(lambda x: x * 2)
    inside = wg.compile(lambda x: double(x) + 1)
    outer = external(lambda x: inside(wg.asarray(x)).numpy() + double(x).numpy())
    run = wg.compile(lambda x: wg.sum(outer(x)) + wg.sum(double(x)))
    for k in range(5):
        assert run(wg.full((2,), float(k))).item() == 12 * k + 2


def test_what_differs_in_a_second_run() -> None:
    """A function that gives it other values when it runs again: no silent difference."""
    cube, log = cube_and_log()
    x = wg.asarray(X[0])
    with noted("step"):
        one = cube(x)
        messages.rewind(0)
        np.testing.assert_array_equal(cube(x).numpy(), one.numpy())
        messages.rewind(0)
        with pytest.raises(CompileError, match=r"has run twice.*the operand of external"):
            cube(x * 2)
        messages.rewind(0)
        with pytest.raises(CompileError, match="external is called where external was"):
            external(lambda x: x)(x)
    assert len(log.given) == 1


def test_refusals(tmp_path) -> None:
    cube, _ = cube_and_log()
    assert wg.compiler.external is external
    with pytest.raises(TypeError, match="takes a function, not int"):
        external(3)
    with pytest.raises(TypeError, match="at least one Tensor"):
        cube()
    x = wg.asarray(X[0], requires_grad=True)
    with pytest.raises(TypeError, match="return arrays, of numpy or NumPy, and returned str"):
        external(lambda x: "a")(x)

    @external
    def plain(x):
        return x

    with pytest.raises(NotImplementedError, match=r"plain has no derivative.*plain\.defvjp"):
        wg.sum(plain(x)).backward()
    plain.defvjp(lambda g, x: g)
    with pytest.raises(TypeError, match=r"should return a tuple.*Tensor"):
        wg.sum(plain(x)).backward()
    step = wg.compile(lambda x: cube(x))
    for _ in range(2):
        step(x.detach())
    with pytest.raises(ValueError, match="cube can't be written into a file"):
        step.save(tmp_path / "step.py")
    assert not [*tmp_path.iterdir()]


def test_a_tuple_or_an_array() -> None:
    answers = [np.ones(2), (np.ones(2), np.ones(2))]
    either = external(lambda x: answers.pop())
    either(wg.ones(1))
    with pytest.raises(TypeError, match="returned an array, and a tuple before"):
        either(wg.ones(1))
