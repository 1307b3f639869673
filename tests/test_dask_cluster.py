"""`wengert.dask` and whole dask arrays on workers, each a process with a limit of memory."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
cloudpickle = pytest.importorskip("cloudpickle")

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
X, Y = RNG.random((60, 4)), RNG.integers(0, 3, 60)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="400MB", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def refuse(*args: Any, **kwargs: Any) -> None:
    raise AssertionError("this computes")


def test_gradients_by_chunks_are_those_of_the_whole(client: Any) -> None:
    criterion = wg.nn.CrossEntropyLoss(reduction="sum")

    def total(p: Any, x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
        return criterion(wg.tanh(x @ p["w"] + p["b"]), y)

    parameters = {"w": RNG.random((4, 3)), "b": RNG.random(3)}
    with dask.config.set(scheduler=refuse):  # the client's workers are not taken then
        run = wg.dask.value_and_grad(total)
        with pytest.raises(AssertionError, match="this computes"):
            run(parameters, da.from_array(X, chunks=7), da.from_array(Y, chunks=7))
    loss, found = run(parameters, da.from_array(X, chunks=7), da.from_array(Y, chunks=7))
    expected, gradients = wg.func.value_and_grad(total)(
        {name: wg.asarray(p) for name, p in parameters.items()}, wg.asarray(X), wg.asarray(Y)
    )
    np.testing.assert_allclose(loss.numpy(), expected.numpy(), rtol=1e-13)
    for name, g in gradients.items():
        np.testing.assert_allclose(found[name].numpy(), g.numpy(), rtol=1e-12)


def test_compiled_steps_are_pickled_with_their_model(client: Any) -> None:
    model = wg.nn.Linear(4, 3)
    optimiser = wg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = wg.nn.CrossEntropyLoss()

    @wg.compile(strict=True)
    def step(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
        optimiser.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimiser.step()
        return loss

    def run(step: Any, model: Any, rounds: int) -> tuple[Any, ...]:
        x, y = wg.asarray(X, dtype=wg.float32), wg.asarray(Y)
        losses = [step(x, y).item() for _ in range(rounds)]
        return losses, model.weight.detach().numpy(), step.report.recordings

    run(step, model, 2)
    sent = client.submit(run, step, model, 3, pure=False).result()
    here = run(*cloudpickle.loads(cloudpickle.dumps((step, model))), 3)
    losses, weights, _ = run(step, model, 3)
    for found in (sent, here):
        np.testing.assert_allclose(found[0], losses, rtol=1e-6)
        np.testing.assert_allclose(found[1], weights, rtol=1e-6)
        assert found[2] > 0  # recorded anew where it runs
    assert losses[-1] < losses[0]
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(step)  # a local function: cloudpickle's task


def most(client: Any, run: Any) -> float:
    """The megabytes that a worker has had at its peak beyond what it began with."""

    def begin() -> float:
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
        return read("VmRSS")

    def read(name: str) -> float:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(x.split()[1]) for x in lines if x.startswith(name)) * 1024 / 1e6

    before = client.run(begin)
    run()
    after = client.run(lambda: read("VmHWM"))
    return max(after[worker] - before[worker] for worker in before)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux tells the peak")
def test_a_checkpoint_of_more_than_the_memory_holds_a_few_chunks(client: Any) -> None:
    """Half of the data would be in each worker, as it is without the checkpoint."""

    def log_mean_exp(w: wg.Tensor, x: wg.Tensor) -> wg.Tensor:
        return wg.log(wg.mean(wg.exp(wg.sin(x * w))))

    def gradient(rows: int, through: Any) -> list[np.ndarray]:
        with wg.use_backend("dask"):
            w = wg.tensor([0.5, 1.0, 1.5, 2.0], requires_grad=True)
            data = da.random.default_rng(0).random((rows, 4), chunks=(2**16, 4))  # of 2 MiB
            loss = through(log_mean_exp, w, wg.asarray(data))
            return list(
                dask.compute(*[g.array for g in wg.autograd.grad(loss, w)], loss.detach().array)
            )

    def plain(f: Any, *args: Any) -> Any:
        return f(*args)

    gradient(2**18, wg.checkpoint)  # what is imported stays
    rows, found = 2**22, {}  # 134 MB
    peaks = {
        f: most(client, lambda f=f: found.update({f: gradient(rows, f)}))
        for f in (wg.checkpoint, plain)
    }
    assert peaks[wg.checkpoint] < 100 < peaks[plain]
    for a, b in zip(found[wg.checkpoint], found[plain], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
