"""CuPy with several devices, simulated: results are where the operands are, whatever is current."""

import functools
import operator
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.nn.functional as F
from backend_check.calls import arguments, prepare
from backend_check.checks import MODES, chapter, names
from backend_check.comparisons import DRAWING, UNSET, UP_TO_PHASE, difference
from tests import simulated_cupy
from tests.compiler.test_checking import swapped
from tests.scripts import python
from wengert import nn, optim
from wengert.compiler import replay as replays
from wengert.compiler.capture.errors import CompileError
from wengert.func.trees import tree_leaves

pytestmark = [pytest.mark.simulated, pytest.mark.usefixtures("backend")]


@pytest.fixture
def elsewhere(backend: Any) -> Iterator[None]:
    """New arrays are made on device 1 while CuPy's current device is 0."""
    with wg.use_backend("cupy:1"), backend.cupy.cuda.Device(0):
        yield
        assert backend.cupy.cuda.runtime.getDevice() == 0


def places(result: Any) -> set[int]:
    """The devices of the Tensors in a result."""
    return {int(x.device) for x in tree_leaves(result) if isinstance(x, wg.Tensor)}


def called(name: str, mode: str) -> Any:
    return MODES[mode](*prepare(name, arguments(name)))


def compare(name: str, mode: str) -> None:
    with wg.use_backend("numpy"):
        wanted = called(name, mode)
    found = called(name, mode)
    assert places(found) <= {1}
    if chapter(name) == "random" or name in (*UNSET, *UP_TO_PHASE, *DRAWING):
        return
    for x, y in zip(tree_leaves(found), tree_leaves(wanted), strict=True):
        if isinstance(x, wg.Tensor):
            assert difference(x.detach().numpy(), y.detach().numpy()) == ""


@pytest.mark.parametrize("name", names())
def test_functions_and_derivatives(name: str, elsewhere: None) -> None:
    for mode in ("values", "reverse", "second"):
        with suppress(NotImplementedError):  # on NumPy, and so everywhere
            compare(name, mode)


@pytest.mark.parametrize("mode", ["forward", "batched", "compiled"])
@pytest.mark.parametrize(
    "name", ["exp", "matmul", "var", "take", "linalg.solve", "F.cross_entropy"]
)
def test_other_modes(name: str, mode: str, elsewhere: None) -> None:
    compare(name, mode)


def training(device: str | None) -> tuple[Callable[[], wg.Tensor], nn.Module, Any]:
    wg.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
    model.to(dtype="float64", device=device)
    updates = optim.Adam(model.parameters(), lr=0.1)
    x = wg.asarray(np.sin(np.arange(24.0)).reshape(6, 4), device=device)
    y = wg.asarray(np.arange(6) % 3, device=device)

    def step() -> wg.Tensor:
        updates.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        updates.step()
        return loss.detach()

    return step, model, updates


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_training_follows_the_model(compiled: bool) -> None:
    step, _, _ = training(None)
    wanted = [step().item() for _ in range(5)]
    step, model, updates = training("cuda:1")
    run = wg.compile(step) if compiled else step
    losses = [run() for _ in range(5)]
    assert places(losses) == places([*model.parameters()]) == {1}
    assert places(updates.state_dict()["state"]) == {1}
    np.testing.assert_allclose([loss.item() for loss in losses], wanted, rtol=1e-12)
    if compiled:
        assert "ran eagerly" not in str(run.report)


def differentiated(results: list[wg.Tensor], x: wg.Tensor) -> list[wg.Tensor]:
    """Results, and the gradient of ``x``, if they are differentiable."""
    ends = [wg.sum(y) for y in results if y.requires_grad]
    if ends:
        x.grad = None
        functools.reduce(operator.add, ends).backward()
        results = [*results, x.grad]
    return results


def stepping(x: wg.Tensor) -> Callable[[wg.Tensor], Any]:
    """A training that takes its rows as an argument."""
    wg.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.2), nn.Linear(4, 1))
    model.to(dtype="float64", device=x.device)
    updates = optim.Adam(model.parameters(), lr=0.1)

    def step(x: wg.Tensor) -> wg.Tensor:
        updates.zero_grad()
        loss = wg.mean(model(x.detach()) ** 2)
        loss.backward()
        updates.step()
        return loss.detach()

    return step


def changing(x: wg.Tensor) -> Callable[[wg.Tensor], Any]:
    """What a function changes: a Tensor that it reaches, and the elements of another."""
    held, out = wg.zeros_like(x.detach()), wg.zeros_like(x.detach())
    kept = {"mean": held}

    def changed(x: wg.Tensor) -> wg.Tensor:
        kept["mean"] = kept["mean"] * 0.9 + x.detach()
        out[0] = kept["mean"][0] + 1
        return out * kept["mean"]

    return changed


def weighing(x: wg.Tensor) -> Callable[[wg.Tensor], Any]:
    weight = wg.tensor([1.0, 2.0, 4.0], dtype="float64", device=f"cuda:{1 - x.device.id}")
    return lambda x: wg.sum((x * x).to_device(weight.device) * weight).to_device(x.device)


#: By what a function does, what makes it.
COMPILED: dict[str, Callable[[wg.Tensor], Callable[[wg.Tensor], Any]]] = {
    "values": lambda x: lambda x: wg.exp(x.detach()) * 2,
    "gradients inside": lambda x: wg.func.grad(lambda x: wg.sum(wg.sin(x) * x)),
    "gradients through": lambda x: lambda x: wg.mean(x**2),
    "second derivatives": lambda x: wg.func.hessian(lambda x: wg.sum(wg.sin(x) * x)),
    "a training step": stepping,
    "dropout": lambda x: lambda x: F.dropout(x, 0.5),
    "several outputs": lambda x: lambda x: {"a": wg.mean(x**2), "b": (x * 2, wg.exp(x), 3)},
    "changes": changing,
    "views and products": lambda x: lambda x: wg.sum(x[1:] * x[:-1]) + wg.sum(wg.sort(x) * x),
    "another device": lambda x: (
        lambda x: wg.sum(wg.exp(x.to_device(f"cuda:{1 - x.device.id}")).to_device(x.device) * x)
    ),
    "there and back": lambda x: (
        lambda x: (x.to_device(f"cuda:{1 - x.device.id}") * 2).to_device(x.device)
    ),
    "a weight on another device": weighing,
    "new arrays": lambda x: lambda x: x + wg.ones(3, device=x.device) + wg.zeros_like(x),
}


@pytest.mark.parametrize("check", [None, 1], ids=["by default", "each call"])
@pytest.mark.parametrize(("home", "current"), [(1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("what", COMPILED)
def test_compiled_functions(
    what: str, home: int, current: int, check: int | None, backend: Any
) -> None:
    found: list[list[list[wg.Tensor]]] = []
    for compiled in (False, True):
        x = wg.tensor([1.0, 2.0, 3.0], dtype="float64", device=f"cuda:{home}", requires_grad=True)
        inner = COMPILED[what](x)

        def function(x: wg.Tensor, inner: Any = inner) -> list[wg.Tensor]:
            return differentiated([y for y in tree_leaves(inner(x)) if isinstance(y, wg.Tensor)], x)

        run = wg.compile(function, check=check) if compiled else function
        wg.manual_seed(1)
        found.append([])
        with backend.cupy.cuda.Device(current):
            for _ in range(4):
                found[-1].append(run(x))
            assert backend.cupy.cuda.runtime.getDevice() == current
    assert run.report.checks > 0
    assert "ran eagerly" not in str(run.report)
    assert places(found) == {home}
    for x, y in zip(*map(tree_leaves, found), strict=True):
        np.testing.assert_allclose(y.detach().numpy(), x.detach().numpy(), rtol=1e-12)


def test_a_wrong_program_is_found(
    elsewhere: None, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = partial(swapped, "matmul", lambda x, y: x @ y * 2)
    monkeypatch.setattr(replays, "optimise", wrong)
    f = wg.compile(lambda x: wg.sum(x @ x))
    x = wg.ones((2, 2))
    f(x)
    with pytest.raises(CompileError, match="result differs from what the function gives by up to"):
        f(x)


def test_a_program_without_arguments_is_where_its_arrays_are(backend: Any) -> None:
    run = wg.compile(lambda n: wg.exp(wg.ones(3, device="cuda:1") * n) + wg.arange(3, device=1))
    for n in (1.0, 2.0, 3.0):
        result = run(n)
        assert places(result) == {1}
        np.testing.assert_allclose(result.numpy(), np.exp(n) + np.arange(3), rtol=1e-6)
    assert run.report.checks > 0
    assert "ran eagerly" not in str(run.report)


def test_arrays_elsewhere_can_not_be_written_while_recorded(backend: Any) -> None:
    with backend.cupy.cuda.Device(1):
        held = backend.cupy.zeros(3)

    def f(x: wg.Tensor) -> wg.Tensor:
        with backend.cupy.cuda.Device(1):
            held[...] += 1
        return x * 2

    # The simulated library is a user's, whose device in a thread can't be looked into.
    with pytest.raises(CompileError, match=r"writes into a raw array|can't look"):
        wg.compile(f)(wg.ones((3,), device="cuda:1"))
    assert held.get().tolist() == [0] * 3


def test_the_backward_pass_of_another_thread() -> None:
    x = wg.ones((3, 4), device="cuda:1", requires_grad=True)
    with wg.use_backend("cupy:1"):
        loss = wg.sum(wg.exp(x) * x)
    failed: list[BaseException] = []

    def run() -> None:
        try:
            loss.backward()
        except BaseException as error:  # for the thread that waits
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not failed
    assert places(x.grad) == {1}
    np.testing.assert_allclose(x.grad.numpy(), np.full((3, 4), 2 * np.e))


def test_changes_in_place_and_reading(elsewhere: None) -> None:
    x = wg.zeros((3, 4))
    x[1, 1:] = 2.0
    x[wg.asarray([True, False, False])] = wg.ones((1, 4))
    x += 1
    assert places(x) == {1}
    assert x[1, 2].item() == 3.0
    assert x.tolist()[0] == [2.0] * 4
    assert "device='cuda:1'" in repr(x)
    assert bool(x[0, 0] > 1)


def test_arrays_of_two_devices_are_an_error_that_names_both() -> None:
    here, there = wg.ones((2,), device="cuda:0"), wg.ones((2,), device="cuda:1")
    for call in (
        lambda: here + there,
        lambda: wg.concat([here, there]),
        lambda: wg.where(here > 0, here, there),
    ):
        with pytest.raises(RuntimeError, match=r"two devices, cuda:0 and cuda:1.*to_device"):
            call()
    np.testing.assert_array_equal((here + there.to_device(here.device)).numpy(), [2, 2])


def test_views_move_to_another_device() -> None:
    x = wg.asarray(np.arange(12.0).reshape(3, 4), device="cuda:1")
    for view in (x[:, 1:3], x[:, ::-1], wg.broadcast_to(x[0], (2, 4)), x.T):
        moved = view.to_device("cuda:0")
        assert places(moved) == {0}
        np.testing.assert_array_equal(moved.numpy(), view.numpy())


def test_one_device_costs_nothing() -> None:
    """With one device the namespace has CuPy's own functions."""
    program = """
        from tests.simulated_cupy import devices
        devices.COUNT = 1
        import cupy, wengert as wg
        from wengert.backends import get_backend
        assert get_backend("cupy").namespace.exp is cupy.exp
        with wg.use_backend("cupy"):
            x = wg.ones((2,), requires_grad=True)
            wg.sum(wg.exp(x)).backward()
            assert abs(x.grad[0].item() - 2.718281828) < 1e-6
    """
    python("-c", simulated_cupy.preamble() + textwrap.dedent(program))
