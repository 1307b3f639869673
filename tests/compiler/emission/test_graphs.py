"""Programs in CUDA graphs: they compute what plain calls do, and never what was captured before."""

import contextlib
import contextvars
import gc
import importlib
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.simulated_cupy import counting
from wengert import nn, optim

simulated = [pytest.mark.simulated, pytest.mark.usefixtures("backend")]


def _model(*extra: nn.Module, dtype: str = "float32") -> nn.Module:
    wg.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), *extra, nn.Linear(16, 4)).to(dtype=dtype)


def _batches(count: int, rows: int = 5) -> list[tuple[wg.Tensor, wg.Tensor]]:
    rng = np.random.default_rng(0)
    given = [
        (rng.normal(size=(rows, 8)).astype("f4"), rng.integers(0, 4, rows)) for _ in "x" * count
    ]
    return [(wg.asarray(x), wg.asarray(t)) for x, t in given]


def _training(model: nn.Module, optimizer: Any, **options: Any) -> Any:
    criterion = nn.CrossEntropyLoss()

    @wg.compile(**options)
    def step(x: wg.Tensor, t: wg.Tensor) -> wg.Tensor:
        optimizer.zero_grad()
        loss = criterion(model(x), t)
        loss.backward()
        optimizer.step()
        return loss

    return step


def _host(x: Any) -> np.ndarray:
    return np.array(x.detach().numpy())


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: optim.Adam(p, lr=0.01),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01, amsgrad=True),
}


def _trained(name: str, *extra: nn.Module, **options: Any) -> tuple[list[Any], Any]:
    """All that 20 steps leave, each with another batch and another rate; and the report."""
    model = _model(*extra)
    optimizer = OPTIMIZERS[name](model.parameters())
    step = _training(model, optimizer, **options)
    left = []
    for x, t in _batches(20):
        loss = step(x, t)
        for group in optimizer.param_groups:
            group["lr"] *= 0.8
        state = [v for each in optimizer.state.values() for v in each.values()]
        kept = [p for q in model.parameters() for p in (q, q.grad)]
        left.append((loss, *kept, *state))
    # Read at the end: what a call has given is not written over by a later one.
    found = [x if isinstance(x, int | float) else wg.asarray(x) for each in left for x in each]
    return [x if isinstance(x, int | float) else _host(x).tobytes() for x in found], step.report


@pytest.mark.parametrize("name", OPTIMIZERS)
class TestTraining:
    pytestmark = simulated

    def test_captured_steps_are_the_same_to_the_bit(self, name: str) -> None:
        plain, _ = _trained(name)
        found, report = _trained(name, capture=True)
        assert found == plain
        assert "kernels are captured in 4 CUDA graphs, beside 5 calls" in str(report)
        assert "ran eagerly" not in str(report)
        assert "not captured" not in str(report)

    def test_dropout_draws_anew(self, name: str) -> None:
        plain, _ = _trained(name, nn.Dropout(0.5), nn.Softmax(-1), check=0)
        found, report = _trained(name, nn.Dropout(0.5), nn.Softmax(-1), check=0, capture=True)
        assert found == plain
        assert "are captured" in str(report)

    def test_launches(self, name: str) -> None:
        model = _model()
        step = _training(model, OPTIMIZERS[name](model.parameters()), capture=True)
        batches = _batches(6)
        for x, t in batches[:-1]:
            step(x, t)
        with counting() as counts:
            step(*batches[-1])
        started = counts.launches
        assert started.pop("matmul") == 5
        assert started.pop("graph") == 4
        # Of AdamW with amsgrad there is more than the arguments of one kernel may be.
        assert 2 <= started.pop("graph_load") + started.pop("graph_store") <= 3
        assert not started
        assert not counts.synchronisations
        assert not counts.copies


@pytest.mark.simulated
@pytest.mark.usefixtures("backend")
def test_launches_of_six_layers() -> None:
    found = []
    for capture in (False, True):
        layers = [x for _ in range(6) for x in (nn.Linear(8, 8), nn.ReLU())]
        model = nn.Sequential(*layers[:-1])
        step = _training(model, optim.Adam(model.parameters()), capture=capture)
        for x, t in _batches(5):
            with counting() as counts:
                step(x, t)
        found.append(sum(counts.launches.values()))
    assert found == [38, 31]


class TestNeverStale:
    pytestmark = simulated

    def test_numbers_among_the_arguments(self) -> None:
        @wg.compile(capture=True)
        def f(x: wg.Tensor, a: float, n: int) -> tuple[wg.Tensor, ...]:
            y = wg.exp(x * a) + n
            m = wg.max(y, axis=0)
            z = wg.max(wg.sin(y - m) * n, axis=1)
            return z, wg.max(wg.sum(z) / (y * a), axis=0), a * 2, n

        x = wg.asarray(np.linspace(0, 1, 12, dtype="f4").reshape(3, 4))
        for i in range(6):
            found, plain = f(x, i / 4, i + 1), f.eagerly(x, i / 4, i + 1)
            for one, other in zip(found[:2], plain[:2], strict=True):
                np.testing.assert_allclose(_host(one), _host(other), rtol=1e-6)
            assert found[2:] == plain[2:]
        assert "are captured" in str(f.report)
        assert f.report.recordings == 1

    @pytest.mark.parametrize("dtype", ["complex64", "float16", "float64"])
    def test_numbers_beside_calls_that_are_no_kernels(self, dtype: str) -> None:
        def function(x: wg.Tensor, a: float) -> wg.Tensor:
            y = x * a
            for _ in range(6):
                y = (y + x) * a - y
            return y

        f, plain = wg.compile(function, capture=True), wg.compile(function)
        x = wg.asarray(np.linspace(-1, 1, 12).reshape(3, 4).astype(dtype))
        for i in range(5):
            assert _host(f(x, i / 8)).tobytes() == _host(plain(x, i / 8)).tobytes()
        captured = "not captured" not in str(f.report)
        assert captured is (dtype in ("complex64", "float16"))  # of which there are no kernels

    def test_a_raw_array_that_somebody_writes_into(self) -> None:
        model, other = _model(), _model()
        steps = [
            _training(m, OPTIMIZERS["Adam"](m.parameters()), capture=c)
            for m, c in ((model, True), (other, False))
        ]
        for i, (x, t) in enumerate(_batches(8)):
            for m, step in zip((model, other), steps, strict=True):
                if i > 4:
                    x.array[0, :] = i
                    next(m.parameters()).array[...] *= 0.5
                step(x, t)
        for p, q in zip(model.parameters(), other.parameters(), strict=True):
            assert _host(p).tobytes() == _host(q).tobytes()

    def test_state_that_is_put_in_another_place(self) -> None:
        """Weights that are loaded, frozen and replaced, a new batch size, evaluation."""
        left = []
        for capture in (False, True):
            model = _model(nn.Dropout(0.5))
            optimizer = OPTIMIZERS["momentum"](model.parameters())
            step = _training(model, optimizer, capture=capture)
            start = {k: v.clone() for k, v in model.state_dict().items()}
            batches = _batches(16)
            for i, (x, t) in enumerate(batches):
                if i == 5:
                    model.load_state_dict(start)
                if i == 7:
                    next(model.parameters()).requires_grad = False
                if i == 9:
                    x, t = _batches(1, rows=7)[0]
                if i == 11:
                    model.eval()
                if i == 13:
                    optimizer.load_state_dict(optimizer.state_dict())
                step(x, t)
            left.append([_host(p).tobytes() for p in model.parameters()])
            if capture:
                assert str(step.report).count("are captured") >= 1
        assert left[0] == left[1]

    def test_derivatives_outside(self) -> None:
        @wg.compile(capture=True)
        def f(x: wg.Tensor, a: float) -> wg.Tensor:
            y = wg.softmax(x @ x, axis=1) if hasattr(wg, "softmax") else wg.tanh(x @ x)
            return wg.sum(wg.exp(y - wg.max(y, axis=0)) * a)

        for i in range(5):
            x = wg.asarray(np.linspace(0, i + 1, 9).reshape(3, 3), requires_grad=True)
            f(x, i + 1.0).backward()
            z = x.detach().clone()
            z.requires_grad = True
            f.eagerly(z, i + 1.0).backward()
            np.testing.assert_allclose(_host(x.grad), _host(z.grad), rtol=1e-12)


class TestMemory:
    pytestmark = simulated

    def test_calls_on_another_stream_wait_for_the_last(self) -> None:
        cupy: Any = importlib.import_module("cupy")
        model = _model()
        step = _training(model, OPTIMIZERS["SGD"](model.parameters()), capture=True)
        (x, t), *_ = _batches(1)
        for _ in range(5):
            step(x, t)
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            step(x, t)
            step(x, t)
        assert stream.waits == [cupy.cuda.Stream.null]
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(step, x, t))
        with stream:
            thread.start()
            thread.join()
        assert cupy.cuda.Stream.null.waits[-1:] == [stream]

    def test_the_first_call_waits_for_what_a_capture_has_tried(self) -> None:
        """A view that has to be copied is found out by making it, in memory that graphs use."""
        null = importlib.import_module("cupy").cuda.Stream.null

        @wg.compile(capture=True)
        def f(x: wg.Tensor) -> wg.Tensor:
            for _ in range(4):
                x = wg.exp(wg.max(x, axis=0) - x)
            return x

        x = wg.asarray(np.linspace(0, 1, 12).reshape(3, 4))
        before = len(null.waits)
        for _ in range(4):
            f(x)
        assert "are captured" in str(f.report)
        assert len(null.waits) == before + 1

    def test_nothing_is_freed_where_memory_is_short(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """CuPy's pool lets go of what is not used, which a graph may write into all the same."""
        graphs = importlib.import_module("wengert.compiler.emission.graphs")
        cuda = importlib.import_module("cupy").cuda

        class Memory:
            def __init__(self, size: int) -> None:
                self.size = size

        monkeypatch.setattr(cuda, "Memory", Memory)
        monkeypatch.setattr(cuda, "MemoryPointer", lambda memory, offset: memory)
        pool = graphs._lasting(cuda)
        given = weakref.ref(pool.allocator(512))
        assert given() is not None
        assert given().size == 512
        del pool
        gc.collect()
        assert given() is None

    def test_calls_at_once_have_memory_of_their_own(self) -> None:
        @wg.compile(capture=True, check=0)
        def f(x: wg.Tensor, a: float) -> wg.Tensor:
            y = x * a
            for _ in range(4):
                y = wg.max(y, axis=0) + wg.exp(-y)
            return y

        x = wg.asarray(np.linspace(0, 1, 12).reshape(3, 4))
        wanted = {i: _host(f.eagerly(x, float(i))) for i in range(4)}
        found: dict[int, list[np.ndarray]] = {i: [] for i in wanted}

        def run(i: int) -> None:
            for _ in range(20):
                found[i].append(_host(f(x, float(i))))

        threads = [threading.Thread(target=run, args=(i,)) for i in wanted]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i, each in found.items():
            for y in each:
                np.testing.assert_allclose(y, wanted[i], rtol=1e-12)

    def test_on_the_second_device(self) -> None:
        with wg.use_backend("cupy:1"):
            model = _model()
            batches = _batches(5)
        step = _training(model, OPTIMIZERS["Adam"](model.parameters()), capture=True)
        for x, t in batches:
            assert step(x, t).array.device.id == 1
        assert "are captured" in str(step.report)


class TestRefusals:
    pytestmark = simulated

    def _runs(self, report: str) -> None:
        plain, _ = _trained("Adam")
        found, told = _trained("Adam", capture=True)
        assert found == plain
        assert report in str(told)
        assert "plain calls instead" in str(told)
        assert "ran eagerly" not in str(told)

    def test_what_cupy_refuses(self, monkeypatch: pytest.MonkeyPatch) -> None:
        graphs = importlib.import_module("wengert.compiler.emission.graphs")
        captures = graphs._captures
        monkeypatch.setattr(
            graphs, "_captures", lambda step: step.name == "matmul" or captures(step)
        )
        self._runs("not captured (NotImplementedError (calling cuBLAS API during stream capture")

    def test_a_driver_that_captures_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cupy: Any = importlib.import_module("cupy")

        def refuse(self: Any, mode: Any = None) -> None:
            raise RuntimeError("cudaErrorNotSupported")

        monkeypatch.setattr(cupy.cuda.Stream, "begin_capture", refuse)
        self._runs("not captured (RuntimeError (cudaErrorNotSupported)")

    def test_a_program_for_which_graphs_are_no_gain(self) -> None:
        f = wg.compile(lambda x: wg.exp(x) @ x, capture=True, check=0)
        x = wg.eye(3)
        for _ in range(3):
            np.testing.assert_allclose(_host(f(x)), _host(f.eagerly(x)))
        assert "not captured (1 graphs and 1 copies are no less than the 1 kernels)" in str(
            f.report
        )

    def test_a_program_on_two_devices(self) -> None:
        def function(x: wg.Tensor) -> wg.Tensor:
            y = wg.max(wg.exp(x), axis=0) + wg.sum(x)
            z = wg.max(y - x, axis=1).to(device="cuda:1")
            return wg.max(wg.exp(z - wg.max(z, axis=0)), axis=0)

        f = wg.compile(function, capture=True)
        for i in range(5):
            x = wg.asarray(np.linspace(i, i + 1, 12).reshape(3, 4))
            np.testing.assert_allclose(_host(f(x)), _host(function(x)))
        assert "not captured (arrays are on several devices)" in str(f.report)

    def test_a_call_that_fails(self) -> None:
        """The function's own error, and graphs afterwards."""
        model = _model()
        step = _training(model, OPTIMIZERS["Adam"](model.parameters()), capture=True)
        (x, t), *_ = _batches(1)
        for i in range(8):
            with pytest.raises(RuntimeError, match="linear got an input") if i == 3 else _nothing():
                step(x[:, :3] if i == 3 else x, t)
        assert "are captured" in str(step.report)


def _nothing() -> Any:
    return contextlib.nullcontext()


@pytest.mark.backend
@pytest.mark.usefixtures("backend")
def test_other_backends_say_that_they_have_no_graphs() -> None:
    f = wg.compile(lambda x: wg.exp(x) * 2, capture=True)
    x = wg.ones((3,))
    for _ in range(3):
        np.testing.assert_allclose(_host(f(x)), 2 * np.e)
    name = x.backend.name
    assert (f"capture=True is for CuPy: {name} has no CUDA graphs" in str(f.report)) is (
        name != "cupy"
    )
