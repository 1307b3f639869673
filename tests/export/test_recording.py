"""What a recording of several batch sizes finds: state, branches, and calls that fail."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ndonnx")
pytest.importorskip("onnxruntime")

import wengert as wg
from tests.export.test_exporting import Session, batch, close, net
from wengert.compiler.capture.errors import TraceError
from wengert.export import ExportError, onnx
from wengert.nn import functional as F


def test_a_batch_that_the_function_refuses(tmp_path: Path) -> None:
    """Batch normalisation has no variance of one row; ``max`` has no value of none."""
    norm = wg.nn.BatchNorm1d(2).double()

    def step(x: wg.Tensor) -> Any:
        return norm(x), wg.max(x, axis=0)

    step(wg.asarray(np.ones((3, 2))))
    before = {name: np.asarray(x) for name, x in norm.state_dict().items()}
    state = onnx(step, wg.asarray(np.eye(4)[:, :2]), tmp_path / "m")
    for name, x in norm.state_dict().items():
        np.testing.assert_array_equal(x, before[name])
    run = Session(tmp_path / "m", state)
    for n in (2, 9):
        x = np.random.default_rng(n).normal(size=(n, 2))
        close(run(x=x)["output.0"], step(wg.asarray(x))[0])
    for n in (1, 0):
        with pytest.raises(Exception, match="ONNXRuntimeError"):
            run(x=np.ones((n, 2)))


@pytest.mark.parametrize("library", ["dask", "torch", "jax"])
def test_arrays_of_a_library_are_repeated_for_the_sizes(tmp_path: Path, library: str) -> None:
    pytest.importorskip(library)
    with wg.use_backend(library):
        onnx(lambda x: 2 * x, wg.asarray(np.ones((4, 2), np.float32)), tmp_path / "m")
    x = np.ones((3, 2), np.float32)
    close(Session(tmp_path / "m", {})(x=x)["output"], 2 * x, "float32")


def test_an_error_in_a_large_batch_is_the_functions(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        assert len(x) < 100, "too many"
        return x

    with pytest.raises(AssertionError, match="too many"):
        onnx(function, wg.asarray(np.ones((4, 2))), tmp_path / "m", check_sizes=(100,))


class Running(wg.nn.Module):
    """Means that a step keeps in place, and as a new Tensor, and a count of calls."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", wg.zeros((2,), dtype=wg.float64))
        self.register_buffer("last", wg.zeros((2,), dtype=wg.float64))
        self.register_buffer("calls", wg.asarray(0))

    def forward(self, x: Any) -> Any:
        self.calls += 1
        self.last = wg.max(x, axis=0)
        self.mean *= 0.5
        self.mean += wg.mean(x, axis=0) / self.calls
        return x - self.mean


def test_buffers_and_counters_are_state(tmp_path: Path) -> None:
    model = Running()
    x = wg.asarray(np.arange(6.0).reshape(3, 2))
    model(x)
    run = Session(tmp_path / "m", onnx(model, x, tmp_path / "m"))
    for n in (3, 5):
        x = np.random.default_rng(n).normal(size=(n, 2))
        close(run(x=x)["output"], model(wg.asarray(x)))
        close(run.state["mean"], model.mean)
        close(run.state["last"], model.last)
        close(run.state["calls"], model.calls)


# -- what is refused -------------------------------------------------------------------------------


def test_a_branch_on_values_names_its_line(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        if wg.sum(x) > 0:
            return x
        return -x

    with pytest.raises(Exception, match=r"test_recording.py, line \d+ \(if wg.sum\(x\) > 0:\)"):
        onnx(function, wg.asarray(np.ones((2, 2))), tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_dropout_is_refused_in_training(tmp_path: Path) -> None:
    model = wg.nn.Sequential(wg.nn.Linear(2, 2), wg.nn.Dropout(0.5))
    x = wg.asarray(np.ones((3, 2), np.float32))
    with pytest.raises(ExportError, match=r"random numbers.*model.eval\(\)"):
        onnx(model, x, tmp_path / "m")
    onnx(model.eval(), x, tmp_path / "m")


def test_a_first_call_is_refused(tmp_path: Path) -> None:
    model = net()
    optimizer = wg.optim.Adam(model.parameters())

    def step(x: Any, y: Any) -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    with pytest.raises(ExportError, match="call it once before"):
        onnx(step, tuple(map(wg.asarray, batch(4))), tmp_path / "m")
    assert not optimizer.state


def test_a_decision_by_a_counter_is_refused(tmp_path: Path) -> None:
    class Every(wg.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", wg.asarray(0))

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return -x if self.calls % 3 == 0 else x

    with pytest.raises(TraceError, match=r"line \d+ \(return -x if"):
        onnx(Every(), wg.asarray(np.ones((2, 2))), tmp_path / "m")
