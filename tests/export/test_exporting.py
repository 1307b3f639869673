"""ONNX models: inferences, gradients and training steps, run by onnxruntime against eager code."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.export.sessions import Session
from wengert.export import ExportError, onnx
from wengert.nn import functional as F

pytest.importorskip("ndonnx")
runtime = pytest.importorskip("onnxruntime")


def net(dtype: str = "float64") -> Any:
    wg.manual_seed(3)
    layers = [wg.nn.Linear(4, 6), wg.nn.Tanh(), wg.nn.Linear(6, 3)]
    return wg.nn.Sequential(*layers).to(dtype=dtype)


def batch(n: int, dtype: str = "float64") -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, 4)).astype(dtype), rng.integers(0, 3, n)


def close(x: Any, y: Any, dtype: str = "float64") -> None:
    y = np.asarray(y.detach() if isinstance(y, wg.Tensor) else y)
    assert (x.dtype, x.shape) == (y.dtype, y.shape)
    tol = 1e-9 if dtype == "float64" else 1e-3
    np.testing.assert_allclose(x, y, rtol=tol, atol=tol)


def same(found: dict[str, Any], wanted: Any) -> None:
    for got, want in zip(found.values(), wanted, strict=True):
        np.testing.assert_array_equal(got, np.asarray(want), strict=True)


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: wg.optim.SGD(p, lr=0.1),
    "momentum": lambda p: wg.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.2, weight_decay=0.1),
    "nesterov": lambda p: wg.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: wg.optim.Adam(p, lr=0.01),
    "AMSGrad": lambda p: wg.optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1),
    "AdamW": lambda p: wg.optim.AdamW([{"params": list(p)[:1], "lr": 0.1}, {"params": []}]),
}
#: Those of the quick choice: the ones with the most options and state.
TRIED = {("nesterov", "float64"), ("AMSGrad", "float64"), ("AdamW", "float32")}


@pytest.mark.parametrize(
    ("optimizer", "dtype"),
    [
        pytest.param(name, dtype, marks=() if (name, dtype) in TRIED else pytest.mark.slow)
        for name in OPTIMIZERS
        for dtype in ("float32", "float64")
    ],
)
def test_a_training_step_is_the_eager_one(tmp_path: Path, optimizer: str, dtype: str) -> None:
    model = net(dtype)
    optim = OPTIMIZERS[optimizer](model.parameters())

    def step(x: Any, y: Any) -> Any:
        optim.zero_grad()
        prediction = model(x)
        loss = F.cross_entropy(prediction, y)
        loss.backward()
        wg.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optim.step()
        return {"loss": loss, "prediction": prediction.detach()}

    step(*map(wg.asarray, batch(5, dtype)))
    before = {name: np.asarray(x) for name, x in model.state_dict().items()}
    run = Session(
        tmp_path / "m", onnx(step, tuple(map(wg.asarray, batch(6, dtype))), tmp_path / "m")
    )
    for name, x in model.state_dict().items():
        np.testing.assert_array_equal(x, before[name])  # the export has trained nothing
    for n in (6, 1, 2, 33, 3):
        x, y = batch(n, dtype)
        found, wanted = run(x=x, y=y), step(wg.asarray(x), wg.asarray(y))
        close(found["output.loss"], wanted["loss"], dtype)
        close(found["output.prediction"], wanted["prediction"], dtype)
        for name, x in model.state_dict().items():
            close(run.state[f"model.{name}"], x, dtype)
    counters = [x for name, x in run.state.items() if name.endswith(".step")]
    assert all(x.dtype == np.int64 and x == 6 for x in counters)
    assert bool(counters) == ("Adam" in optimizer or optimizer == "AMSGrad")


def test_a_learning_rate_is_an_input(tmp_path: Path) -> None:
    model = net()
    optimizer = wg.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    x, y = batch(4)
    step(wg.asarray(x), wg.asarray(y))
    run = Session(
        tmp_path / "m", onnx(wg.compile(step), (wg.asarray(x), wg.asarray(y)), tmp_path / "m")
    )
    optimizer.param_groups[0]["lr"] = 0.5
    run.state["optimizer.lr"] = np.asarray(0.5)
    run(x=x, y=y)
    step(wg.asarray(x), wg.asarray(y))
    for name, p in model.state_dict().items():
        close(run.state[f"model.{name}"], p)


def test_an_inference(tmp_path: Path) -> None:
    model = net("float32")
    x = batch(3, "float32")[0]
    state = onnx(model, wg.asarray(x), tmp_path / "m")
    assert list(state) == list(model.state_dict())
    for n in (1, 8):
        x = batch(n, "float32")[0]
        close(Session(tmp_path / "m", {})(x=x)["output"], model(wg.asarray(x)), "float32")
    zeros = {name: np.zeros_like(value) for name, value in state.items()}
    assert not Session(tmp_path / "m", zeros)(x=x)["output"].any()
    assert onnx(model, wg.asarray(x), tmp_path / "m", constants=True) == {}
    close(Session(tmp_path / "m", {})(x=x)["output"], model(wg.asarray(x)), "float32")


def test_gradients_of_a_tree(tmp_path: Path) -> None:
    def loss(params: Any, x: Any, y: Any) -> Any:
        return F.cross_entropy(wg.tanh(x @ params["w"]) + params["b"][0], y)

    rng = np.random.default_rng(0)
    params = {"w": wg.asarray(rng.normal(size=(4, 3))), "b": [wg.asarray(rng.normal(size=3))]}
    x, y = batch(5)
    given = (params, wg.asarray(x), wg.asarray(y))
    function = wg.value_and_grad(loss)
    onnx(function, given, tmp_path / "m", batch_axes=(None, 0, 0))
    x, y = batch(9)
    value, grads = function(params, wg.asarray(x), wg.asarray(y))
    named = {"params.w": np.asarray(params["w"]), "params.b.0": np.asarray(params["b"][0])}
    found = Session(tmp_path / "m", {})(**named, x=x, y=y)
    close(found["output.0"], value)
    close(found["output.1.w"], grads["w"])
    close(found["output.1.b.0"], grads["b"][0])


class Last(wg.nn.Module):
    """The last step of a network for sequences, which also takes a loss."""

    def __init__(self, inner: wg.nn.Module, width: int) -> None:
        super().__init__()
        self.inner, self.head = inner, wg.nn.Linear(width, 3)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        found = self.inner(x, x, x) if isinstance(self.inner, Attention) else self.inner(x)
        return self.head((found[0] if isinstance(found, tuple) else found)[:, -1])


Attention = wg.nn.MultiheadAttention
SEQUENCES: dict[str, Callable[[], Any]] = {
    "attention": lambda: Last(Attention(4, 2, batch_first=True), 4),
    "encoder": lambda: Last(
        wg.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), 4
    ),
    "RNN": lambda: Last(wg.nn.RNN(4, 3, batch_first=True), 3),
    "GRU": lambda: Last(wg.nn.GRU(4, 3, batch_first=True, bidirectional=True), 6),
    "LSTM": lambda: Last(wg.nn.LSTM(4, 3, batch_first=True), 3),
}


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=() if x == "RNN" else pytest.mark.slow) for x in SEQUENCES]
)
def test_networks_for_sequences(tmp_path: Path, name: str) -> None:
    wg.manual_seed(0)
    model = SEQUENCES[name]().double()
    rng = np.random.default_rng(0)

    def step(x: Any, y: Any) -> Any:
        model.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return {"loss": loss, "grads": [p.grad for p in model.parameters()]}

    def given(n: int) -> dict[str, Any]:
        return {"x": rng.normal(size=(n, 2, 4)), "y": rng.integers(0, 3, n)}

    step(**{k: wg.asarray(x) for k, x in given(4).items()})
    onnx(step, tuple(map(wg.asarray, given(4).values())), tmp_path / "m")
    for n in (1, 3, 17):
        batch = given(n)
        found = Session(tmp_path / "m", {})(**batch)
        wanted = step(**{k: wg.asarray(x) for k, x in batch.items()})
        close(found["output.loss"], wanted["loss"])
        for i, x in enumerate(wanted["grads"]):
            close(found[f"output.grads.{i}"], x)


def test_a_fixed_batch(tmp_path: Path) -> None:
    function = lambda x: wg.sum(x[::2], axis=0)
    x = wg.asarray(np.arange(12.0).reshape(6, 2))
    with pytest.raises(ExportError, match="batch_axes=None"):
        onnx(function, x, tmp_path / "m")
    onnx(function, x, tmp_path / "m", batch_axes=None)
    run = Session(tmp_path / "m", {})
    close(run(x=np.ones((6, 2)))["output"], np.full(2, 3.0))
    with pytest.raises(Exception, match="Got: 4 Expected: 6"):
        run(x=np.ones((4, 2)))


def follows(path: Path, function: Any, sizes: Any, rows: int = 8, **options: Any) -> Any:
    """Whether a model gives what a function gives for batches of these sizes."""
    onnx(function, wg.asarray(np.arange(2.0 * rows).reshape(rows, 2)), path, **options)
    run = Session(path, {})
    for n in sizes:
        x = np.random.default_rng(n).normal(size=(n, 2))
        close(run(x=x)["output"], function(wg.asarray(x)))
    return run


def test_a_branch_on_the_batch_size_is_an_error(tmp_path: Path) -> None:
    x, sizes = wg.asarray(np.ones((6, 2))), (0, 1, 2, 100)
    for size, told in {
        1: "of batch size 0,",
        3: "size 2,",
        30: "which op",
        100: "size 100",
    }.items():
        function = lambda x: 2 * x if x.shape[0] >= size else wg.sum(x + 3, axis=0)  # noqa: B023
        with pytest.raises(ExportError, match=told):
            onnx(function, x, tmp_path / "m", check_sizes=sizes)


def test_batches_of_two_sizes_are_an_error(tmp_path: Path) -> None:
    x = wg.asarray(np.ones((4, 2)))
    onnx(lambda x, y: x - y, (x, x), tmp_path / "m")
    with pytest.raises(Exception, match=r"[Rr]eshape"):  # of which one row would fit all
        Session(tmp_path / "m", {})(x=np.ones((4, 2)), y=np.ones((1, 2)))


CUTS: dict[str, Callable[[Any], Any]] = {
    "an end": lambda x: x[:-3],
    "both ends": lambda x: x[2:-2],
    "backwards": lambda x: x[-3::-1],
    "a lag": lambda x: x[3:] - x[:-3],
    "beside another row": lambda x: wg.sum(x[:-4]) + x[1],
    "a gradient": lambda x: wg.grad(lambda x: wg.sum(x[:-2] ** 2))(x),
}


@pytest.mark.parametrize("name", CUTS)
def test_a_batch_may_be_shorter_than_what_is_cut_off(tmp_path: Path, name: str) -> None:
    follows(tmp_path / "m", CUTS[name], (1, 2, 3, 4, 5, 9)[name == "beside another row" :])


PIECES = {
    "rows": lambda x: x[:3],
    "their mean": lambda x: wg.mean(x[:3], axis=0),
    "their sum": lambda x: wg.sum(x[1:3]),
    "the last": lambda x: wg.mean(x[-3:]),
    "rows by the batch size": lambda x: x[: len(x) - 3],
    "a limit": lambda x: x * max(len(x), 3),
}


@pytest.mark.parametrize("name", PIECES)
def test_a_model_takes_no_smaller_batches_than_were_checked(tmp_path: Path, name: str) -> None:
    function, x = PIECES[name], wg.asarray(np.arange(16.0).reshape(8, 2))
    with pytest.raises(ExportError, match=r"of batch size 2, .*; give check_sizes above 2, or"):
        onnx(function, x, tmp_path / "m")
    assert not (tmp_path / "m").exists()
    run = follows(tmp_path / "m", function, (3, 4, 9, 100), check_sizes=(3, 100))
    for n in (0, 1, 2):
        with pytest.raises(Exception, match="ONNXRuntimeError"):
            run(x=np.ones((n, 2)))


def test_an_empty_batch_is_taken_where_it_was_checked(tmp_path: Path) -> None:
    x = wg.asarray(np.ones((4, 2)))
    onnx(lambda x: wg.sum(x, axis=0), x, tmp_path / "m", check_sizes=(0, 1))
    close(Session(tmp_path / "m", {})(x=np.ones((0, 2)))["output"], np.zeros(2))
    onnx(lambda x: wg.sum(x, axis=0), x, tmp_path / "m")
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        Session(tmp_path / "m", {})(x=np.ones((0, 2)))


def test_sizes_are_integers(tmp_path: Path) -> None:
    for sizes in ((-1,), (2.0,)):
        with pytest.raises(ValueError, match="check_sizes are integers"):
            onnx(lambda x: x, wg.asarray(np.ones((4, 2))), tmp_path / "m", check_sizes=sizes)


def test_numbers_are_outputs(tmp_path: Path) -> None:
    kept = {"lr": 0.5, "new": True}
    function = lambda x: {"loss": wg.sum(x), "n": len(x), "part": 1 / len(x), **kept}
    onnx(function, wg.asarray(np.ones((8, 2))), tmp_path / "m")
    run = Session(tmp_path / "m", {})
    for n in (1, 3, 100):
        x = np.random.default_rng(n).normal(size=(n, 2))
        found, wanted = run(x=x), function(wg.asarray(x))
        assert found.keys() == {f"output.{name}" for name in wanted}
        for name, value in wanted.items():
            close(found[f"output.{name}"], value)


def test_the_check_says_what_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ndx = pytest.importorskip("ndonnx")
    monkeypatch.setattr(ndx, "sin", lambda x: ndx.multiply(x, 1.001))
    x = wg.asarray(np.full((2, 2), 1e-3))
    with pytest.raises(
        ExportError, match=r"call 1, of batch size 2, .* for output elements .* by up to 1e-06"
    ):
        onnx(lambda x: wg.sin(x), x, tmp_path / "m")
    assert not list(tmp_path.iterdir())
    onnx(lambda x: wg.sin(x), x, tmp_path / "m", tolerance=0.01)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ndonnx", None)
    with pytest.raises(ImportError, match=r"install wengert\[onnx\]"):
        onnx(lambda x: x, wg.asarray(np.ones(2)), tmp_path / "m")
