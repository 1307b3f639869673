"""Data larger than memory, on dask's workers: ``python -m benchmarks larger --gigabytes 20``.

A log-mean-exp of numbers that are drawn chunk by chunk, never all in memory nor on a disk, and its
gradient: chunk by chunk, by `wengert.dask.value_and_grad`, and as a function of the whole array,
inside of `wengert.checkpoint`. Both have to agree.
"""

import argparse
import math
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import wengert as wg
from benchmarks import CORES
from benchmarks.report import describe_machine, table

__all__ = ["WAYS", "add_arguments", "chunks_of", "main", "measure"]

#: Numbers in a row of the data; as many parameters scale them.
COLUMNS = 4

#: The value, and the gradient by the parameters.
Way = Callable[[np.ndarray, Any], tuple[float, np.ndarray]]


def chunks_of(gigabytes: float, megabytes: float) -> Any:
    """A dask array of numbers in [0, 1), in rows of four, and of that size, in chunks of that."""
    import dask.array as da

    rows, chunk = (
        max(1, round(size / (8 * COLUMNS))) for size in (gigabytes * 1e9, megabytes * 1e6)
    )
    draw = da.random.default_rng(0).random
    return draw((rows, COLUMNS), chunks=(min(chunk, rows), COLUMNS))


def by_chunks(w: np.ndarray, data: Any) -> tuple[float, np.ndarray]:
    """One compiled program of NumPy's for each chunk: the mean is of the chunks' means."""

    def mean_exp(w: wg.Tensor, x: wg.Tensor) -> wg.Tensor:
        return wg.mean(wg.exp(wg.sin(x * w)))

    mean, gradient = wg.dask.value_and_grad(mean_exp, reduce="mean")(w, data)
    return math.log(float(mean)), (gradient / mean).numpy()


def whole(w: np.ndarray, data: Any) -> tuple[float, np.ndarray]:
    """One lazy graph: the chunks are drawn and computed again when the mean is known."""
    import dask

    def log_mean_exp(w: wg.Tensor, x: wg.Tensor) -> wg.Tensor:
        return wg.log(wg.mean(wg.exp(wg.sin(x * w))))

    with wg.use_backend("dask"):
        at = wg.tensor(w, requires_grad=True)
        loss = wg.checkpoint(log_mean_exp, at, wg.asarray(data))
        (gradient,) = wg.autograd.grad(loss, at)
        value, gradient = dask.compute(loss.detach().array, gradient.array)
    return float(value), gradient


WAYS: dict[str, Way] = {"value_and_grad, by chunks": by_chunks, "checkpoint, whole": whole}


def measure(client: Any, way: Way, data: Any) -> tuple[float, Any, list[float], list[float]]:
    """The seconds of a way, what it has found, and the megabytes of each worker before and at most.

    Before is after a small problem of the same kind, whose imports stay.
    """
    status = "/proc/self/status"

    # Functions in functions are pickled by value: a worker that imported this package would be
    # bound to a core.
    def begin() -> float:
        import gc
        from pathlib import Path

        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
        return read("VmRSS")

    def read(name: str) -> float:
        from pathlib import Path

        lines = dict(line.split(":", 1) for line in Path(status).read_text().splitlines())
        return int(lines[name].split()[0]) * 1024 / 1e6

    w = np.linspace(0.5, 2, COLUMNS)
    way(w, data[:64].rechunk(1))  # in small pieces, of which each worker gets some
    before = client.run(begin)
    start = time.perf_counter()
    found = way(w, data)
    seconds = time.perf_counter() - start
    most = client.run(lambda: read("VmHWM"))
    return seconds, found, [*before.values()], [most[worker] for worker in before]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command line takes."""
    parser.add_argument("--gigabytes", type=float, default=1, help="size of the data")
    parser.add_argument("--chunk", type=float, default=4, metavar="MB", help="size of a chunk")
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--memory", default="400MB", help="memory limit of a worker")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=[*WAYS], metavar="WAY")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")


def main(options: argparse.Namespace) -> None:
    """Run what the command line asks for, and print it."""
    from dask.distributed import Client, LocalCluster

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, CORES)  # the workers have all of them
    rows = [["GB", "way", "seconds", "MB before", "at most", "more"]]
    results = []
    for name in options.ways:
        with (
            LocalCluster(
                n_workers=options.workers,
                threads_per_worker=1,
                memory_limit=options.memory,
                dashboard_address=None,
            ) as cluster,
            Client(cluster) as client,
        ):
            data = chunks_of(options.gigabytes, options.chunk)
            seconds, found, before, most = measure(client, WAYS[name], data)
        results.append(found)
        more = [high - low for high, low in zip(most, before, strict=True)]
        rows.append(
            [f"{options.gigabytes:g}", name, f"{seconds:.1f}"]
            + [", ".join(f"{x:.0f}" for x in each) for each in (before, most, more)]
        )
    for value, gradient in results:
        np.testing.assert_allclose(value, results[0][0], rtol=1e-10)
        np.testing.assert_allclose(gradient, results[0][1], rtol=1e-10)
    print(describe_machine(), end="\n\n")
    print(f"{options.workers} workers of {options.memory}, chunks of {options.chunk:g} MB.\n")
    print(table(rows, markdown=options.markdown))
