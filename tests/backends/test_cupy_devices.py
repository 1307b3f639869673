"""CuPy with several devices, simulated: results are where the operands are, whatever is current."""

import copy
import pickle
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.nn.functional as F
from tests import simulated_cupy
from wengert import nn, optim
from wengert.func.trees import tree_leaves
from wengert.testing.calls import arguments, prepared
from wengert.testing.libraries import MODES, chapter, names
from wengert.testing.library_calls import UNSET, UP_TO_PHASE, difference

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
    return MODES[mode](*prepared(name, arguments(name)))


def compare(name: str, mode: str) -> None:
    with wg.use_backend("numpy"):
        wanted = called(name, mode)
    found = called(name, mode)
    assert places(found) <= {1}
    if chapter(name) == "random" or name in (*UNSET, *UP_TO_PHASE, "F.dropout"):
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


def test_a_compiled_step_runs_on_another_current_device(backend: Any) -> None:
    step, _, _ = training("cuda:1")
    run = wg.compile(step)
    for current in (1, 1, 0, 0):
        with backend.cupy.cuda.Device(current):
            assert places(run()) == {1}


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


def test_copies_of_results(elsewhere: None) -> None:
    x = wg.exp(wg.asarray([1.0, 2.0])).requires_grad_(True)
    wg.sum(x * x).backward()
    for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert places(again) == {1}
        np.testing.assert_array_equal(again.detach().numpy(), x.detach().numpy())
    assert places(copy.deepcopy(x).grad) == {1}


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
    program = simulated_cupy.preamble() + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
