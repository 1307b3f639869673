"""Training steps on a GPU, beside their peers: ``python -m benchmarks gpu``.

Times are by the wall's clock, from before the first step of a block until the device has done the
last one. ``--simulated`` runs the page without a GPU, at small sizes: its times mean nothing.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from benchmarks import mlp
from benchmarks.report import Verdict, bars_table, describe_machine, installed, table
from benchmarks.timing import Ratio, Times, interleave
from wengert.backends import get_backend

__all__ = ["Page", "add_arguments", "bar", "contestants", "main", "memory", "verdicts"]

COMPILED, TORCH = "Wengert compiled", "PyTorch eager"
#: Products of a forward pass up to which launches decide how long a step takes, and no arithmetic.
FEW = 2**25
#: How long a compiled step may take, in steps of eager PyTorch: with few products, and with more.
BARS = 0.5, 1.05
#: How much device memory may be in use after all steps, against after the first ones.
FLAT = 1.0

Make = Callable[[mlp.Problem], mlp.Trainer]


class Page(NamedTuple):
    """What is run: on a GPU, or to see that the page runs.

    Attributes
    ----------
    networks : list of str
        Widths from the input to the classes.
    batches : list of int
        Sizes.
    rounds, block : int, float
        How often each contestant is timed, and for about how many seconds.
    steps : tuple of int
        Numbers of steps after which device memory is read.
    """

    networks: list[str]
    batches: list[int]
    rounds: int
    block: float
    steps: tuple[int, int]


REAL = Page(
    ["64-32-10", "784-128-10", "784-512-512-10", "1024-1024-1024-10", "4096-4096-4096-10"],
    [32, 256, 2048, 8192],
    rounds=50,
    block=0.02,
    steps=(100, 10_000),
)
SIMULATED = Page(["8-6-3", "12-8-8-4"], [4, 16], rounds=4, block=0.002, steps=(20, 60))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command line takes."""
    parser.add_argument("--networks", nargs="+", metavar="WIDTHS", help="such as 784-128-10")
    parser.add_argument("--batches", nargs="+", type=int, metavar="SIZE", help="sizes of batches")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS, metavar="PEER")
    parser.add_argument("--quick", action="store_true", help="few rounds, for a first look")
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    parser.add_argument(
        "--simulated", action="store_true", help="without a GPU, to see that the page runs"
    )


def main(options: argparse.Namespace) -> None:
    """Run what the command line asks for, and print it."""
    # JAX takes most of a device's memory when it starts.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    page = SIMULATED if options.simulated else REAL
    page = page._replace(
        networks=options.networks or page.networks, batches=options.batches or page.batches
    )
    if options.quick:
        page = page._replace(rounds=8)
    if options.simulated:
        from tests import simulated_cupy

        simulated_cupy.install()
        print("Simulated, PyTorch and JAX on the CPU: no time below says anything of a GPU.")
    try:
        get_backend("cupy").require_device()
    except RuntimeError as error:
        sys.exit(f"error: {error}")
    chosen = contestants(simulated=options.simulated)
    chosen = {name: chosen[name] for name in chosen if name not in set(PEERS) - {*options.peers}}
    print(describe_machine(), describe_device(simulated=options.simulated), sep="\n", end="\n\n")

    measured = {}
    for shape, problem in problems(page):
        trainers = {name: make(problem) for name, make in chosen.items()}
        mlp.check_losses(trainers)
        measured[shape] = interleave(trainers, rounds=page.rounds, block=page.block, wall=True)
        # A run that is cut short has shown what it found.
        print(*lines({shape: measured[shape]}, list(chosen))[1], file=sys.stderr, flush=True)
    print(table(lines(measured, list(chosen)), markdown=options.markdown), end="\n\n")
    found = verdicts(measured)
    for name in ("Wengert", COMPILED):
        found.append(memory(name, chosen[name], page))
    print(table(bars_table(found), markdown=options.markdown))


def problems(page: Page) -> Iterator[tuple[tuple[int, str], mlp.Problem]]:
    """Each batch size and network, with what is to be trained."""
    for network in page.networks:
        widths = tuple(map(int, network.split("-")))
        for batch in page.batches:
            yield (batch, network), mlp.Problem.make(batch, widths)


# -- who runs ------------------------------------------------------------------------------------


def _torch_compiled(problem: mlp.Problem, device: str) -> mlp.Trainer:
    """PyTorch's compiler, for the forward pass with the loss and for the update."""
    options = {"backend": "eager"} if device == "cpu" else {"mode": "reduce-overhead"}
    return mlp.pytorch(problem, device, options)


def _jax(problem: mlp.Problem) -> mlp.Trainer:
    import jax

    # Everybody multiplies in float32; XLA would take fewer bits on a GPU.
    jax.config.update("jax_default_matmul_precision", "highest")
    return mlp.jax(problem)


#: Who is timed beside Wengert.
PEERS = ("CuPy by hand", TORCH, "torch.compile", "JAX jit")


def contestants(*, simulated: bool) -> dict[str, Make]:
    """Wengert, and the peers that are installed and find a GPU."""
    device = "cpu" if simulated else "cuda"
    found: dict[str, Make] = {
        "Wengert": partial(mlp.wengert, backend="cupy"),
        COMPILED: partial(mlp.wengert_compiled, backend="cupy"),
        "CuPy by hand": mlp.cupy_by_hand,
    }
    if installed("torch") and (simulated or _torch_has_gpu()):
        found[TORCH] = partial(mlp.pytorch, device=device)
        found["torch.compile"] = partial(_torch_compiled, device=device)
    if installed("jax") and (simulated or _jax_has_gpu()):
        found["JAX jit"] = _jax
    return found


def _torch_has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _jax_has_gpu() -> bool:
    import jax

    return bool(jax.default_backend() == "gpu")


def describe_device(*, simulated: bool) -> str:
    """The GPU and what drives it, in a sentence."""
    if simulated:
        return "No GPU."
    import cupy

    runtime = cupy.cuda.runtime
    name = runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
    return f"{name}, CUDA {runtime.runtimeGetVersion()}, driver {runtime.driverGetVersion()}."


# -- what is printed -----------------------------------------------------------------------------

Measured = Mapping[tuple[int, str], Times]


def lines(measured: Measured, names: list[str]) -> list[list[str]]:
    """The table of steps, the heading first."""
    rows = [["microseconds a training step: batch, layers", *names]]
    for (batch, network), times in measured.items():
        each = [f"{times.median(name) * 1e6:.0f}" for name in names]
        rows.append([f"{batch}, {network}", *each])
    return rows


def bar(batch: int, network: str) -> float:
    """How long a compiled step may take, in steps of eager PyTorch."""
    widths = list(map(int, network.split("-")))
    products = batch * sum(a * b for a, b in pairwise(widths))
    return BARS[products > FEW]


def verdicts(measured: Measured) -> list[Verdict]:
    """The bars of the rows that PyTorch has run."""
    return [
        Verdict(
            f"compiled step, {batch} × {network}, against {TORCH}",
            times.ratio(COMPILED, TORCH),
            bar(batch, network),
        )
        for (batch, network), times in measured.items()
        if TORCH in times.rounds
    ]


def memory(name: str, make: Make, page: Page) -> Verdict:
    """Train, and compare what of the device's memory is in use with what was after few steps."""
    import cupy

    trainer = make(next(problems(page))[1])
    few, many = page.steps
    trainer(few)
    before = cupy.get_default_memory_pool().used_bytes()
    trainer(many - few)
    ratio = cupy.get_default_memory_pool().used_bytes() / before
    what = f"{name}: device memory after {many} steps, against {few}"
    return Verdict(what, Ratio(ratio, ratio, ratio), FLAT)
