"""A program's first run is compared with the function's own, and a wrong one is an error."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import wengert as wg
from tests.compiler.ordinary import training_step
from wengert.compiler import recording
from wengert.compiler import replay as replays
from wengert.compiler.capture.errors import CompileError
from wengert.compiler.capture.recorded import Effect
from wengert.compiler.checking import distance
from wengert.compiler.passes import optimise
from wengert.compiler.passes.buffers import buffers


def training(**options):
    wg.manual_seed(5)
    model = wg.nn.Sequential(wg.nn.Linear(4, 3), wg.nn.Tanh(), wg.nn.Dropout(0.5))
    optimizer = wg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step = training_step(optimizer, lambda x: wg.sum(model(x) ** 2))
    return (wg.compile(step, **options) if options else step), model, optimizer


def run(step, model, optimizer, steps):
    found = [step(wg.ones(2, 4) * float(i)).item() for i in range(steps)]
    found += [p.tolist() for p in model.parameters()]
    found += [p.grad.tolist() for p in model.parameters()]
    found += [wg.Tensor(kept["momentum_buffer"]).tolist() for kept in optimizer.state.values()]
    return found, wg.rand_like(wg.ones(3)).tolist(), wg.randn(3).tolist()


@pytest.mark.parametrize(("check", "checks"), [(None, 1), (0, 0), (1, 8), (3, 3)])
def test_how_often_calls_are_checked(check, checks, monkeypatch):
    """A call makes the optimiser's state, one is recorded, and the others are replays."""
    monkeypatch.delenv("WENGERT_COMPILE_CHECK", raising=False)
    step, *rest = training(check=check)
    found = run(step, *rest, 10)
    assert found == run(*training(), 10)
    assert step.report.checks == checks
    assert step.report.recordings == 1


def test_the_environment_says_how_often(monkeypatch):
    monkeypatch.setenv("WENGERT_COMPILE_CHECK", "2")
    f = wg.compile(lambda x: x * 2)
    g = wg.compile(lambda x: x * 2, check=0)
    for _ in range(5):
        f(wg.ones(2)), g(wg.ones(2))
    assert (f.report.checks, g.report.checks) == (2, 0)
    monkeypatch.setenv("WENGERT_COMPILE_CHECK", "-1")
    with pytest.raises(ValueError, match="check is how often"):
        wg.compile(lambda x: x)


def test_wrong_gradients_are_found(monkeypatch):
    w, effects_of = wg.ones(2, requires_grad=True), recording.effects_of

    def step(g):
        w.grad, new = g, g * 2
        new.grad = g
        return new

    copied = lambda call: [x._replace(same=None, new=True) for x in effects_of(call)]
    monkeypatch.setattr(recording, "effects_of", copied)
    monkeypatch.setattr(recording, "move", lambda call, ref, *_: Effect(ref, None))
    run = wg.compile(step)
    for _ in range(2):
        run(wg.ones(2))
    with pytest.raises(CompileError, match=r"result.grad is None, .*w.grad is another Tensor by"):
        run(wg.ones(2))


def swapped(name, by, program):
    program = optimise(program)
    steps = [
        replace(step, function=by) if step.name == name and by is not None else step
        for step in program.instructions
    ]
    return replace(program, instructions=tuple(steps))


def test_a_wrong_program_is_dropped_and_the_function_has_run(monkeypatch):
    step, model, _ = training(check=None)
    wg.manual_seed(1)
    with monkeypatch.context() as wrong:
        wrong.setattr(replays, "optimise", partial(swapped, "tanh", np.sin))
        for _ in range(2):
            step(wg.ones(2, 4))
        with pytest.raises(CompileError, match="result differs from what the function gives by up"):
            step(wg.ones(2, 4))
    other, *rest = training()
    wg.manual_seed(1)
    for _ in range(3):
        other(wg.ones(2, 4))
    for x, y in zip(model.parameters(), rest[0].parameters(), strict=True):
        assert x.tolist() == y.tolist()  # what the function itself has left
        assert x.grad.tolist() == y.grad.tolist()
    for _ in range(3):
        found = []
        for call in (step, other):
            wg.manual_seed(2)
            found.append(call(wg.ones(2, 4)).item())
        assert found[0] == found[1]
    assert step.report.recordings == 2


def drawing_twice(program):
    program = optimise(program)
    draws = [step for step in program.instructions if not step.pure]
    again = [replace(step, results=(replays.Value.like(1.0),)) for step in draws]
    return replace(program, instructions=(*program.instructions, *again))


def writing_into_the_state(program, *given, **options):
    """A pass that takes memory of the caller's for its results."""
    placed = buffers(program, *given, **options)
    steps = list(placed.instructions)
    at = next(i for i, step in enumerate(steps) if step.name == "multiply")
    steps[at] = replace(steps[at], out=placed.inputs[0])
    return replace(placed, instructions=tuple(steps))


W = wg.asarray([1.0, 2.0])
WRONG = {
    "wengert.compiler.replay.optimise": (
        *(drawing_twice, lambda x: x * wg.rand_like(x)),
        "other random numbers are drawn",
    ),
    "wengert.compiler.emission.emit.buffers": (
        *(writing_into_the_state, lambda x: wg.exp(W * x)),
        "differs from what the function gives",
    ),
}


@pytest.mark.parametrize("place", WRONG)
def test_what_a_wrong_pass_draws_or_writes_is_found(place, monkeypatch):
    wrong, function, says = WRONG[place]
    monkeypatch.setattr(place, wrong)
    f = wg.compile(function)
    f(wg.ones(2) * 3.0)
    with pytest.raises(CompileError, match=says):
        f(wg.ones(2) * 3.0)


@pytest.mark.parametrize(
    ("x", "y", "dtype", "same"),
    [
        ([1.0, np.nan], [1.0, np.nan], "float32", True),
        ([1.0, np.nan], [np.nan, 1.0], "float32", False),
        ([1.0, np.inf], [1.0, np.inf], "float32", True),
        ([1.0, np.inf], [1.0, -np.inf], "float32", False),
        ([1.0, 2.0], [1.0, np.inf], "float32", False),
        ([1.0, np.inf], [1.0, 2.0], "float32", False),
        ([1.0, 1e-30], [1.0 + 2**-22, 0.0], "float32", True),
        ([1.0, 1e-3], [1.0, 1.1e-3], "float32", False),
        ([1.0], [1.0 + 1e-12], "float64", False),
        ([1.0 + 1j], [1.0 + 1.001j], "complex64", False),
        ([1.0 + 1j], [1.0 + (1 + 2**-22) * 1j], "complex64", True),
        ([1, 2], [1, 3], "int64", False),
        ([True], [False], "bool", False),
        ([], [], "float16", True),
    ],
)
def test_rounding(x, y, dtype, same):
    assert (distance(np.asarray(x, dtype), np.asarray(y, dtype)) == 0) is same


def test_a_function_that_raises_where_its_program_does_not():
    """The error is the function's."""
    step = wg.compile(lambda x: raises(x) * 2.0)
    assert step(wg.ones(1)).item() == 2.0
    with pytest.raises(ValueError, match="in the check"):
        step(wg.ones(1))
    assert [step(wg.ones(1)).item() for _ in range(3)] == [2.0] * 3


def raises(x):
    """Raise an error in the third run, of which the compiler sees nothing."""
    globals()["CA" + "LLS"] = calls = globals().get("CA" + "LLS", 0) + 1
    if calls == 3:
        raise ValueError("in the check")
    return x
