"""The benchmarks' arithmetic, and that contestants do the same work. Nothing is timed here."""

import argparse
import importlib.util
import inspect
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import wengert as wg


@pytest.fixture(scope="module")
def benchmarks() -> Iterator[ModuleType]:
    """The package, whose import binds the process to a core: undone afterwards."""
    environment = dict(os.environ)
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    yield importlib.import_module("benchmarks")
    os.environ.clear()
    os.environ.update(environment)
    if cores is not None:
        os.sched_setaffinity(0, cores)


@pytest.mark.oracle
@pytest.mark.parametrize("peer", ["PyTorch eager", "JAX jit", "HIPS/autograd", "MyGrad"])
def test_peers_train_as_hand_written_numpy_does(benchmarks: ModuleType, peer: str) -> None:
    from benchmarks import mlp

    make, library = mlp.CONTESTANTS[peer]
    pytest.importorskip(library)
    problem = mlp.Problem.make(*mlp.ROWS[0])
    np.testing.assert_allclose(make(problem).losses(10), mlp.by_hand(problem).losses(10), rtol=1e-4)


@pytest.mark.oracle
def test_rows_of_operations_compute_what_pytorch_does(benchmarks: ModuleType) -> None:
    from benchmarks import operations

    pytest.importorskip("torch")
    for row, (ours, theirs) in {k: c.values() for k, c in operations.calls(7).items()}.items():
        found, right = np.asarray(ours().numpy()), np.asarray(theirs().numpy())
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-6, err_msg=row)


@pytest.mark.parametrize("keep", [False, True])
def test_hand_written_gradients_are_right(benchmarks: ModuleType, keep: bool) -> None:
    """One step moves each weight by the learning rate times the difference quotient."""
    from benchmarks import mlp

    problem = mlp.Problem.make(4, (3, 5, 2))
    x, y = problem.batches[0]

    def loss(weight: np.ndarray) -> float:
        layers = [(weight, problem.layers[0][1]), problem.layers[1]]
        hidden = np.maximum(x.astype(np.float64) @ layers[0][0] + layers[0][1], 0)
        logits = hidden @ layers[1][0] + layers[1][1]
        chosen = logits[np.arange(4), y]
        return float(np.mean(np.log(np.exp(logits).sum(axis=1)) - chosen))

    trainer = mlp.by_hand(problem, keep=keep)
    weight = problem.layers[0][0].astype(np.float64)
    trainer(1)
    held = inspect.getclosurevars(trainer.step).nonlocals
    moved = held["layers"][0][0]
    step = np.zeros_like(weight)
    for index in np.ndindex(weight.shape):
        step[index] = 1e-6
        slope = (loss(weight + step) - loss(weight - step)) / 2e-6
        assert moved[index] - weight[index] == pytest.approx(-0.01 * slope, rel=1e-3, abs=1e-7)
        if keep:
            assert held["gradients"][-1][0][index] == pytest.approx(slope, rel=1e-3, abs=1e-5)
        step[index] = 0


OURS = "Wengert", "Wengert compiled", "NumPy by hand"
#: Rows of second derivatives, which nobody has by hand.
SECOND = "hvp", "hessian"


def workload_names() -> list[str]:
    """The rows, whose names stand in a file that is read without binding the process to a core."""
    source = Path(__file__).parents[2] / "benchmarks" / "workloads" / "rows.py"
    return re.findall(r'^    "([a-z0-9-]+)": Row\(', source.read_text(), re.MULTILINE)


def without_scipy(name: str) -> bool:
    return importlib.util.find_spec("scipy") is None and name.startswith(("black", "gp"))


@pytest.mark.whole
@pytest.mark.parametrize("name", workload_names())
def test_workloads_agree_with_numpy_by_hand(benchmarks: ModuleType, name: str) -> None:
    from benchmarks.workloads.rows import ROWS
    from benchmarks.workloads.workload import agree

    if without_scipy(name):
        pytest.skip("by hand it needs SciPy")
    row = ROWS[name]
    computes = row.make(*row.small).contestants(OURS)
    if name in SECOND:
        difference_is_small(row.make(*row.small), computes["Wengert"])
    agree(computes)


@pytest.mark.whole
@pytest.mark.parametrize("name", workload_names())
def test_compiled_workloads_have_programs(
    benchmarks: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the compiled contestant is the eager one."""
    from benchmarks.workloads.rows import ROWS

    monkeypatch.setattr(wg, "compile", partial(wg.compile, strict=True))
    row = ROWS[name]
    for compute in row.make(*row.small).contestants(["Wengert compiled"]).values():
        for _ in range(3):
            compute()


def difference_is_small(workload: Any, compute: Any) -> None:
    """Compare second derivatives with differences of the gradient by hand."""
    from benchmarks.workloads.science import n_body
    from benchmarks.workloads.workload import flat

    x = workload.inputs[0]
    gradient = n_body(len(x) // 3).by_hand
    assert gradient is not None
    columns = [
        (gradient(x + step)[1][0] - gradient(x - step)[1][0]) / 2e-5
        for step in 1e-5 * np.eye(len(x))
    ]
    hessian = np.stack(columns, axis=1)
    expected = hessian if workload.kind == "hessian" else hessian.sum(axis=1)
    np.testing.assert_allclose(flat(compute())[0], expected, atol=1e-6 * np.abs(hessian).max())


# PyTorch's forward mode scripts its rules when it is first used.
@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning:torch")
@pytest.mark.oracle
@pytest.mark.whole
@pytest.mark.parametrize("name", workload_names())
def test_peers_agree_with_wengert(benchmarks: ModuleType, name: str) -> None:
    from benchmarks.workloads.rows import ROWS
    from benchmarks.workloads.workload import LIBRARIES, agree

    row = ROWS[name]
    agree(row.make(*row.small).contestants(["Wengert", *list(LIBRARIES)[3:]]))


@pytest.mark.parametrize(
    "wrong",
    [
        [np.asarray([1.0, 2.0 + 1e-8])],
        [np.asarray([1.0, np.nan])],
        [np.asarray([1.0, 2.0], np.float32)],
        [np.asarray([[1.0, 2.0]])],
        [np.asarray([1.0, 2.0]), np.asarray(1.0)],
    ],
)
def test_what_disagrees_is_not_timed(benchmarks: ModuleType, wrong: list[Any]) -> None:
    from benchmarks.workloads.workload import agree

    right = (np.asarray([1.0, 2.0]),)
    agree({"a": lambda: right, "b": lambda: [np.asarray([1.0, 2.0 + 1e-14])]})
    with pytest.raises(AssertionError):
        agree({"a": lambda: right, "b": lambda: wrong})


def test_bars_of_workloads(benchmarks: ModuleType) -> None:
    from benchmarks.timing import Times
    from benchmarks.workloads.measure import bars

    def times(**seconds: float) -> Times:
        named = {name.replace("_", " "): [x] * 3 for name, x in seconds.items()}
        return Times({name.replace("HIPS ", "HIPS/"): x for name, x in named.items()})

    measured = {
        "first": times(
            Wengert=2, Wengert_compiled=1, NumPy_by_hand=2, PyTorch_eager=4, HIPS_autograd=3
        ),
        "second": times(Wengert=2, Wengert_compiled=4, NumPy_by_hand=2, PyTorch_eager=2),
        "third": times(Wengert=1, Wengert_compiled=2, JAX_jit=4),
        "fourth": times(Wengert=1, Wengert_compiled=8, JAX_jit=1),
    }
    found = {verdict.what: (verdict.ratio.median, verdict.passed) for verdict in bars(measured)}
    assert found == {
        "first, eager, against HIPS/autograd": (pytest.approx(2 / 3), True),
        "second, eager, against PyTorch eager": (1, True),
        "eager, against the fastest eager peer, the best 75% of 2 rows": (1, False),
        "first, compiled, against NumPy by hand": (0.5, True),
        "second, compiled, against NumPy by hand": (2, False),
        "compiled, against NumPy by hand, the best 50% of 2 rows": (0.5, True),
        "first, compiled, against PyTorch eager": (0.25, True),
        "second, compiled, against PyTorch eager": (2, False),
        "compiled, against JAX jit, geometric mean of 2 rows": (pytest.approx(2), False),
    }


def gpu_options(benchmarks: ModuleType, *arguments: str) -> argparse.Namespace:
    from benchmarks import gpu

    parser = argparse.ArgumentParser()
    gpu.add_arguments(parser)
    return parser.parse_args(arguments)


@pytest.mark.simulated
@pytest.mark.usefixtures("backend")
def test_the_gpu_page(benchmarks: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import gpu

    tiny = "--simulated", "--quick", "--networks", "6-4-3", "5-3", "--batches", "4"
    gpu.main(gpu_options(benchmarks, *tiny, "--peers", "CuPy by hand"))
    out = capsys.readouterr().out
    assert out.startswith("Simulated")
    lines = out.splitlines()
    assert [line.split("  ")[0] for line in lines if line.startswith("4, ")] == [
        "4, 6-4-3",
        "4, 5-3",
    ]
    assert [line.split()[-1] for line in lines if "device memory" in line] == ["pass"] * 2


def test_all_reduces_on_paper_are_those_of_their_messages(benchmarks: ModuleType) -> None:
    """The formulas against the messages themselves, counted: who sends how much, round by round."""
    from benchmarks import scaling

    network = scaling.Network(latency=3.0, byte=0.5, adding=0.25)

    def seconds(rounds: list[tuple[float, float]]) -> float:
        return sum(3.0 + 0.5 * sent + 0.25 * added for sent, added in rounds)

    n = 960.0
    for ranks in (2, 4, 8):
        doubling = [(n, n)] * ranks.bit_length()
        doubling.pop()
        assert scaling.recursive_doubling(ranks, n, network) == pytest.approx(seconds(doubling))
        part = n / ranks
        around = [(part, part)] * (ranks - 1) + [(part, 0)] * (ranks - 1)
        assert scaling.ring(ranks, n, network) == pytest.approx(seconds(around))
        halves = [n / 2**k for k in range(1, ranks.bit_length())]
        parts = [(h, h) for h in halves] + [(h, 0) for h in halves]
        assert scaling.halving(ranks, n, network) == pytest.approx(seconds(parts))
    first, last = (n, n), (n, 0)
    six = [first, *[(n, n)] * 2, last]
    assert scaling.recursive_doubling(6, n, network) == pytest.approx(seconds(six))
    six = [first, (n / 2, n / 2), (n / 4, n / 4), (n / 4, 0), (n / 2, 0), last]
    assert scaling.halving(6, n, network) == pytest.approx(seconds(six))
    assert scaling.ring(1, n, network) == scaling.halving(1, n, network) == 0


def test_a_step_on_paper_computes_agrees_and_sums(benchmarks: ModuleType) -> None:
    from benchmarks import scaling

    network = scaling.Network(latency=0.5, byte=0.001, adding=0)
    training = scaling.Training(fixed=1, rows=2, gradient=100, divided=True)
    after = 1 + 2 / 8 + scaling.ring(8, 100, network)
    after += scaling.recursive_doubling(8, scaling.AGREEMENT, network)
    assert scaling.step(training, 8, network, scaling.ring) == pytest.approx(after)
    assert scaling.step(training, 1, network, scaling.ring) == 3


def test_data_larger_than_memory_gives_one_gradient_both_ways(benchmarks: ModuleType) -> None:
    """Also that of NumPy's numbers by hand."""
    dask = pytest.importorskip("dask")
    pytest.importorskip("dask.array")
    from benchmarks import larger

    with dask.config.set(scheduler="synchronous"):
        data = larger.chunks_of(gigabytes=1e-5, megabytes=1e-3)
        assert data.nbytes == pytest.approx(1e4, rel=0.01) and data.npartitions == 11
        w, x = np.linspace(0.5, 2, 4), data.compute()
        exp = np.exp(np.sin(x * w))
        gradient = (exp * np.cos(x * w) * x).sum(axis=0) / exp.sum()
        for way in larger.WAYS.values():
            value, found = way(w, data)
            np.testing.assert_allclose(value, np.log(exp.mean()), rtol=1e-12)
            np.testing.assert_allclose(found, gradient, rtol=1e-12)
