"""The programs that the tests start on several processes: ``programs.py NAME ARGUMENT...``."""

import os
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.distributed as wd
from tests.distributed.training import (
    OPTIMISERS,
    batches,
    counted,
    model_of,
    say,
    stepper,
    training,
    training_compiled,  # noqa: F401
    trainings,  # noqa: F401
)
from wengert import nn

# -- once a call -----------------------------------------------------------------------------------


def once() -> None:
    """Collectives of a call, whatever the compiler does on one of the ranks."""
    w = wg.asarray(np.linspace(0.5, 1.5, 4), requires_grad=True)

    def step(x: Any, noisy: bool = False) -> Any:
        y = wd.all_reduce(wg.sin(w * wg.sum(x)))
        if noisy:
            float(wg.sum(y))  # which stops the recording
        loss = wg.sum(wd.broadcast(y * y, wd.size - 1))
        (g,) = wg.autograd.grad(loss, w)
        return loss.detach(), g

    run = wg.compile(step, strict=False)
    for i in range(8):
        # At steps 3 and 5 the last rank alone meets another shape, and so records and checks anew.
        rows = 3 if i in (3, 5) and wd.rank == wd.size - 1 else 2
        x = wg.asarray(np.full(rows, 0.1 * i))
        with counted(4):
            found = run(x)
        with counted(4):
            expected = step(x)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-13)
    programs = 2 if wd.rank == wd.size - 1 else 1
    assert run.report.recordings == run.report.checks == programs, run.report
    # A recording that is given up half-way, on one rank alone.
    for _ in range(3):
        with counted(4):
            found = run(x, wd.rank == 0)
        for one, other in zip(found, step(x), strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-13)
    assert ("eagerly" in str(run.report)) == (wd.rank == 0), run.report
    say("once")


def kept() -> None:
    """A collective whose result is not used, and two that are equal, stay in the program."""

    @wg.compile
    def step(x: Any) -> Any:
        wd.all_reduce(x)
        return wd.all_reduce(x) + wd.all_reduce(x)

    for _ in range(3):
        with counted(3):
            step(wg.asarray(np.ones(2)))
    assert step.source.count("= all_reduce(") == 3, step.source
    say("kept")


# -- derivatives -----------------------------------------------------------------------------------


def derivatives(fast: str = "") -> None:
    """Gradients of the collectives, as a function of all ranks' inputs together."""
    from wengert.testing import gradcheck, gradgradcheck  # which imports much

    n, root = wd.size, wd.size - 1
    draw = np.random.default_rng(5)
    values = draw.standard_normal((n, 2 * n))
    weights = wg.asarray(np.random.default_rng(7 + wd.rank).standard_normal(2 * n * n))

    def own(X: Any) -> Any:
        """This rank's row of a matrix that all ranks have."""
        return wg.reshape(wd.reduce_scatter(X) / n, (2 * n,))

    def whole(y: Any) -> Any:
        """All ranks' results, on all ranks."""
        return wd.all_gather(wg.sin(y) * weights[: y.shape[0]])

    functions = {
        "all_reduce": lambda x: wd.all_reduce(x),
        "all_reduce mean": lambda x: wd.all_reduce(x, "mean"),
        "all_reduce max": lambda x: wd.all_reduce(x, "max"),
        "all_reduce min": lambda x: wd.all_reduce(x, "min"),
        "all_gather": wd.all_gather,
        "reduce_scatter": wd.reduce_scatter,
        "broadcast": lambda x: wd.broadcast(x, root),
        "reduce": lambda x: wd.reduce(x, root),
    }
    for name, f in functions.items():
        X = wg.asarray(values, requires_grad=True)
        function = lambda X, f=f: whole(f(own(X)))
        assert gradcheck(function, (X,), fast_mode=bool(fast)), name
        assert gradgradcheck(function, (X,), fast_mode=bool(fast)), name
        # Forward, and in batches of tangents and cotangents.
        back = wg.func.jacrev(function)(X.detach())
        ahead = wg.func.jacfwd(function)(X.detach())
        np.testing.assert_allclose(back.numpy(), ahead.numpy(), atol=1e-12, err_msg=name)
        z = wg.asarray(values[wd.rank] * (1 + 2j), requires_grad=True)
        if name.split()[-1] not in ("max", "min"):
            wg.sum(wg.real(f(z) * wg.asarray(1 - 1j))).backward()
            assert z.grad.dtype.complex and bool(wg.all(wg.isfinite(z.grad))), name
    say("derivatives")


def values() -> None:
    """What collectives give."""
    n, r = wd.size, wd.rank
    every = np.arange(6.0 * n * n).reshape(n, 2 * n, 3)
    for dtype in ("float32", "float64", "int64", "complex128"):
        given = every.astype(dtype)
        x = wg.asarray(given[r])
        expected = {
            "sum": (wd.all_reduce(x), given.sum(0)),
            "gather": (wd.all_gather(x), given.reshape(-1, 3)),
            "scatter": (wd.reduce_scatter(x), given.sum(0)[2 * r : 2 * r + 2]),
            "broadcast": (wd.broadcast(x, n - 1), given[-1]),
            "reduce": (wd.reduce(x, n - 1), given.sum(0) * (r == n - 1)),
        }
        if dtype[:5] == "float":
            expected |= {
                "mean": (wd.all_reduce(x, "mean"), given.mean(0)),
                "max": (wd.all_reduce(x, "max"), given[-1]),
                "min": (wd.all_reduce(x, "min"), given[0]),
            }
        for name, (found, right) in expected.items():
            assert found.dtype == x.dtype, name
            np.testing.assert_array_equal(found.numpy(), right, err_msg=name)
    short = () if wg.get_backend().name == "cupy" else ("int8", "uint8", "int16", "uint16")
    # Their sums wrap, as NumPy's; NCCL has not all of them.
    for dtype in (*short, "uint32", "uint64"):
        given = np.full(67 * n, np.iinfo(dtype).max, dtype)
        total, x = np.sum([given] * n, axis=0, dtype=dtype), wg.asarray(given)
        np.testing.assert_array_equal(wd.all_reduce(x).numpy(), total)
        np.testing.assert_array_equal(wd.reduce_scatter(x).numpy(), total[:67])
        np.testing.assert_array_equal(wd.reduce(x).numpy(), total * (r == 0))
    flags = wd.broadcast(wg.asarray([r == 0, False]))
    assert flags.dtype == wg.bool and flags.numpy().tolist() == [True, False]
    assert wd.all_reduce(wg.asarray(2.0)).item() == 2.0 * n
    assert wd.all_gather(wg.zeros((0, 3))).shape == (0, 3)
    turned = wg.asarray(np.asfortranarray(every[r]))
    np.testing.assert_array_equal(wd.all_reduce(turned).numpy(), every.sum(0))
    say("values")


# -- what goes wrong -------------------------------------------------------------------------------


def starts() -> None:
    say("started")


def raises() -> None:
    for i in range(5):
        if wd.rank == 1 and i == 3:
            raise ArithmeticError("of the second rank")
        wd.all_reduce(wg.asarray([1.0]))


def killed(rank: int = 1) -> None:
    for i in range(50):
        if wd.rank == rank and i == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        wd.all_reduce(wg.asarray([1.0]))
        time.sleep(0.01)


def killed_first() -> None:
    """The process that the others have found one another by."""
    killed(0)


def models_differ() -> None:
    wd.replicate(nn.Sequential(nn.Linear(3, 4 + (wd.rank == 1)), nn.Linear(4, 2)))


def batch_fewer(by: Any = list) -> None:
    model = wd.replicate(model_of(0))
    step = stepper(model, OPTIMISERS["SGD"](model.parameters()), together=True)
    for x, t in by(batches(1)[: 3 if wd.rank == 1 else 4]):
        step(x, t)


def shard_fewer() -> None:
    batch_fewer(wd.shard)


def hangs() -> None:
    wd.init(timeout=2)
    wd.all_reduce(wg.asarray([1.0]))
    if wd.rank == 1:
        time.sleep(100)
    wd.all_reduce(wg.asarray([1.0, 2.0]))


def leaves() -> None:
    """A rank that ends early, with a status of its own."""
    if wd.rank == 1:
        sys.exit(3)
    wd.all_reduce(wg.asarray([1.0]))


def interrupts() -> None:
    if wd.rank == 1:
        raise KeyboardInterrupt
    wd.all_reduce(wg.asarray([1.0]))


def shapes_differ() -> None:
    """In a compiled function, which does not run again after such an error."""
    run = wg.compile(wd.all_reduce)
    for _ in range(3):
        run(wg.zeros(2))
    run(wg.zeros(2 + wd.rank))


def saves(folder: str) -> None:
    model = wd.replicate(model_of(wd.rank))
    path = Path(folder) / "run.safetensors"
    wd.save(path, model=model, step=1)
    assert path.exists()
    wd.save(path, model=model, step=2)
    other = model_of(5)
    assert wg.load(path, model=other)["step"] == 2
    for x, y in zip(model.parameters(), other.parameters(), strict=True):
        np.testing.assert_array_equal(x.detach().numpy(), y.detach().numpy())
    text = "No such file" if wd.rank == 0 else "rank 0 could not write"
    with pytest.raises((RuntimeError, FileNotFoundError), match=text):
        wd.save(Path(folder) / "nowhere" / "x.safetensors", model=model)

    def loader(seed: int) -> wg.data.DataLoader:
        data = wg.data.TensorDataset(wg.arange(6))
        return wg.data.DataLoader(data, shuffle=True, generator=seed)

    drifted = {"model": model_of(wd.rank), "loader": loader(wd.rank), "best": 0.5 + wd.rank}
    rng = np.random.default_rng(wd.rank)
    differ = "processes differ in model, loader, best; rank 0's are written"
    with pytest.warns(UserWarning, match=differ):
        wd.save(path, **drifted, rng=rng, same=model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wd.save(path, model=model, loader=loader(7), rng=rng, best=0.5, names=["a", None])
    say("saved", sorted(x.name for x in Path(folder).iterdir()))


def rates_differ() -> None:
    model = nn.Linear(2, 1)
    wd.replicate(model, wg.optim.SGD(model.parameters(), lr=0.25 if wd.rank else 0.5))


def states_differ() -> None:
    model = model_of(0)
    optimizer = wg.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    if wd.rank:  # as where one process has loaded a checkpoint
        model(batches(1)[0][0]).sum().backward()
        optimizer.step()
    wd.replicate(model, optimizer)


def names_differ() -> None:
    model = model_of(0)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/training.safetensors"
        wg.save(path, model=model, other=model_of(0))
        wd.load(path, model=model, **({"other": model_of(0)} if wd.rank else {}))


def saved_names_differ() -> None:
    with tempfile.TemporaryDirectory() as folder:
        wd.save(f"{folder}/x.safetensors", **({"model": model_of(0)} if wd.rank else {}), step=1)


def files_differ(lacking: bool = False) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, model = f"{folder}/training.safetensors", nn.Linear(2, 1)
        if not (lacking and wd.rank):
            wg.save(path, model=model, epoch=wd.rank)
        wd.load(path, model=model)


def file_is_missing() -> None:
    files_differ(lacking=True)


def batches_differ() -> None:
    wg.manual_seed(wd.rank)
    data = wg.data.TensorDataset(wg.arange(64))
    list(wd.shard(wg.data.DataLoader(data, batch_size=16, shuffle=True)))


ANOTHER = "training.safetensors: another file, or other names, on other processes"
#: What processes have to have alike, and what each of them says if they don't.
DIFFERING = {
    rates_differ: "optimizer 0, group 0, lr: rank 0: 0.5; rank 1: 0.25",
    states_differ: "the processes differ in the state of optimizer 0: rank 0: ",
    names_differ: ANOTHER,
    saved_names_differ: "save: the processes differ in model",
    files_differ: ANOTHER,
    batches_differ: "and the first batches of the processes differ.*generator=seed",
    models_differ: r"differ in 0.weight: rank 0: float\d+ of shape \(4, 3\); rank 1: float\d+ of",
}


def differ() -> None:
    for program, told in DIFFERING.items():
        with pytest.raises(ValueError, match=told):
            program()
    say("differ")


def comes_late() -> None:
    """The last rank comes when the others have given up."""


comes_late_in_mpi = first_comes_late = comes_late


def leaves_by_a_status() -> None:
    if wd.rank == 1:
        os._exit(3)
    for _ in range(2):
        wd.all_reduce(wg.ones(2))


def _with_dropout(folder: str, steps: range) -> None:
    rng = np.random.default_rng(wd.rank)
    wg.manual_seed(wd.rank)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    wd.replicate(model)
    optimizer = wg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    states = {"model": model, "optimizer": optimizer, "generator": True, "rng": rng}
    path = f"{folder}/dropout.safetensors"
    if steps.start:
        assert wd.load(path, **states) == {"step": steps.start}
    for i in steps:
        if i == 3:
            wd.save(path, **states, step=3)
        optimizer.zero_grad()
        x = wg.asarray(rng.standard_normal((3, 4)), dtype=wg.float32)
        (model(x) ** 2).mean().backward()
        wd.average(model)
        optimizer.step()
    every = [*wd.all_gather(wg.rand(1)).tolist(), *rng.random(1), *model[0].weight.tolist()[0]]
    assert len({x.hex() for x in every[: wd.size]}) == wd.size  # each rank draws its own
    say(f"weights {[x.hex() for x in every]}")


def unbroken(folder: str) -> None:
    _with_dropout(folder, range(6))


def resumed(folder: str) -> None:
    _with_dropout(folder, range(3, 6))


def loads_alone(folder: str) -> None:
    wg.load(f"{folder}/dropout.safetensors", generator=True)


def killed_while_saving(folder: str) -> None:
    """Rank 0 is killed before the new file has taken the old one's place."""
    path, model = Path(folder) / "run.safetensors", model_of(0)
    wd.save(path, model=model, step=1)
    say("old file")
    if wd.rank == 0:
        Path.replace = lambda self, target: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
    wd.save(path, model=model, step=2)
    say("new file")


def reads(folder: str) -> None:
    say("step", wg.load(Path(folder) / "run.safetensors", model=model_of(0))["step"])


def torch_arrays() -> None:
    """Training on PyTorch's arrays, and the collectives of torch.distributed itself."""
    import torch
    import torch.distributed as dist

    with wg.use_backend("torch"):
        training("SGD", "eager")
        training("SGD", "compiled")
        x = torch.arange(6.0).reshape(2, 3) + wd.rank
        expected = x.clone()
        dist.all_reduce(expected)
        found = wd.all_reduce(x)
        assert found.backend.name == "torch"
        assert torch.equal(found.array, expected)


# -- other libraries -------------------------------------------------------------------------------


def on_jax() -> None:
    """Let what follows run on JAX's arrays."""
    wg.set_backend("jax")


def on_cupy() -> None:
    """Let what follows run on simulated CuPy's arrays, on a device for each process."""
    from tests import simulated_cupy

    simulated_cupy.install()
    wg.set_backend(f"cupy:{wd.rank}")


def on_one_gpu() -> None:
    """Arrays of two processes on one GPU, between which NCCL would not begin."""
    on_cupy()
    wg.set_backend("cupy:0")
    with pytest.raises(wg.backends.BackendError, match="ranks 0, 1 use one"):
        wd.all_reduce(wg.asarray([1.0]))
    say("refused")


def of_nccl() -> None:
    """What NCCL carries beside `values`, and what it does not."""
    from tests.simulated_cupy import counting

    halves = wg.asarray(np.asarray([1.5, 2.0], np.float16) * (wd.rank + 1))
    with counting() as counts:
        found = wd.all_reduce(halves)
    assert counts.launches["allReduce"] == 1, counts
    np.testing.assert_array_equal(found.numpy(), halves.numpy() * 3 / (wd.rank + 1))
    with pytest.raises(TypeError, match="NCCL carries no int16"):
        wd.all_reduce(wg.asarray([1], dtype="int16"))
    one = pytest.raises(wg.BackendError, match="one GPU a process")
    with wg.use_backend(f"cupy:{1 - wd.rank}"), one:
        wd.all_reduce(wg.asarray([1.0]))
    run = wg.compile(lambda x: wd.all_reduce(wg.sin(x) * 2) + 1)
    x = wg.asarray(np.arange(3.0) + wd.rank)
    for _ in range(4):
        with counted(1):
            found = run(x)
    every = [np.sin(np.arange(3.0) + rank) * 2 for rank in range(wd.size)]
    np.testing.assert_allclose(found.numpy(), sum(every) + 1, rtol=1e-14)
    say("NCCL")


def spread() -> None:
    """JAX's arrays on several devices of each process are gathered, and spread as they were."""
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    rows = NamedSharding(Mesh(np.asarray(jax.devices()), ("rows",)), PartitionSpec("rows"))
    x = wg.asarray(np.arange(8.0).reshape(4, 2) + wd.rank, device=rows)
    found = wd.all_reduce(x)
    assert found.device.is_equivalent_to(rows, 2), found.device
    np.testing.assert_array_equal(found.numpy(), np.arange(8.0).reshape(4, 2) * 2 + 1)
    for made, n in ((wd.all_gather(x), 8), (wd.reduce_scatter(x), 2)):
        assert made.shape == (n, 2) and len(made.device.device_set) == 2, made.device
        assert made.device.is_fully_replicated
    say("spread")


#: The programs that take an argument.
TAKING = (
    "derivatives",
    "saves",
    "unbroken",
    "resumed",
    "loads_alone",
    "killed_while_saving",
    "reads",
)

if __name__ == "__main__":
    late = {"comes_late": 1, "comes_late_in_mpi": 1, "first_comes_late": 0}.get(sys.argv[1])
    if sys.argv[1] == "comes_late_in_mpi":
        from mpi4py import MPI  # noqa: F401
    if late is not None and str(late) == os.environ.get(
        "RANK", os.environ.get("OMPI_COMM_WORLD_RANK")
    ):
        time.sleep(60)
    wd.init(timeout=30 if late is None else 3)
    for name in sys.argv[1].split("+"):
        globals()[name](*sys.argv[2:] if name in TAKING else ())
