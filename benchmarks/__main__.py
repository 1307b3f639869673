"""Measure the bars: ``python -m benchmarks [--rows ...] [--quick] [--markdown]``.

``python -m benchmarks workloads`` measures what people run, besides networks, ``python -m
benchmarks operations`` single functions, ``python -m benchmarks gpu`` networks on a GPU, and
``python -m benchmarks larger`` data beyond memory. ``python -m benchmarks scaling`` computes what
training on many ranks takes.

Only NumPy is needed; PyTorch, JAX, HIPS/autograd and MyGrad are measured where they are
installed.
"""

import argparse
import gc
import math
from collections.abc import Callable

import numpy as np

from benchmarks import (
    chain,
    costs,
    gpu,
    hessian,
    importing,
    larger,
    memory,
    mlp,
    operations,
    plot,
    scaling,
    small,
)
from benchmarks.report import Verdict, bars_table, describe_machine, installed, table
from benchmarks.timing import Ratio, Times, interleave
from benchmarks.workloads import measure as workloads

MLP = [f"mlp{number}" for number in range(1, len(mlp.ROWS) + 1)]
ROWS = [*MLP, "small", "costs", "chain", "nodes", "memory", "hessian", "import"]

#: Ratios that a row may have at most, by what is measured and by peer; docs/design/decisions.md
#: says why JAX's is not the first one, and what the last row is compared with.
MLP_BARS: list[tuple[str, str, str, dict[str, float]]] = [
    ("step", "Wengert", MLP[0], {"NumPy by hand": 1.5, "PyTorch eager": 0.4}),
    ("step", "Wengert", MLP[-1], {"NumPy by hand": 1.05}),
    (
        *("compiled step", "Wengert compiled", MLP[0]),
        {"NumPy by hand": 0.8, "PyTorch eager": 0.22, "JAX jit": 1.1},
    ),
    (
        "compiled step",
        "Wengert compiled",
        MLP[-1],
        {"by hand, gradients kept": 1.0, "NumPy by hand": 1.05},
    ),
]
CHAIN_BARS = {"PyTorch eager": 0.6, "HIPS/autograd": 0.4}
CHAIN_LENGTH = 100
LENGTHS = (10**2, 10**3, 10**4, 10**5, 10**6)
FLAT = 1.5
STEPS = (100, 10_000)
RESIDENT = 1.01
IMPORT = 1.3


def main() -> None:
    """Run what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--rows",
        nargs="+",
        choices=ROWS,
        default=None,
        metavar="ROW",
        help=f"which to run: {', '.join(ROWS)}; all by default",
    )
    parser.add_argument("--quick", action="store_true", help="few rounds, for a first look")
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    parser.add_argument("--plot", metavar="PNG", help="also draw the steps of all models")
    commands = parser.add_subparsers(title="other benchmarks", metavar="COMMAND")
    for name, module, about in (
        ("workloads", workloads, "what people run, beside their peers"),
        ("gpu", gpu, "training steps on a GPU, beside their peers"),
        ("operations", operations, "single functions, forward, beside PyTorch"),
        ("larger", larger, "gradients of data larger than memory, on dask's workers"),
        ("scaling", scaling, "training on many ranks, on paper"),
    ):
        command = commands.add_parser(name, help=about)
        module.add_arguments(command)
        command.set_defaults(run=module.main)
    options = parser.parse_args()
    if "run" in options:
        options.run(options)
        return
    rows = options.rows or ROWS
    rounds = 15 if options.quick else 100

    verdicts: list[Verdict] = []
    networks = [row for row in rows if row in MLP]
    print(describe_machine(), end="\n\n")
    if networks:
        # Where the bar is close, the median has to be sharp.
        times = {row: train(row, rounds * (2 if row == MLP[-1] else 1)) for row in networks}
        print(table(mlp_table(times), markdown=options.markdown), end="\n\n")
        verdicts += mlp_verdicts(times)
    models = small.report(rounds, markdown=options.markdown) if "small" in rows else {}
    if options.plot:
        plot.draw(labelled(times if networks else {}) | models, options.plot)
    if "costs" in rows:
        verdicts += costs.report(5 if options.quick else 25, markdown=options.markdown)
    if "chain" in rows:
        verdicts += chain_verdicts(rounds, markdown=options.markdown)
    if "nodes" in rows:
        verdicts.append(nodes_verdict(2 if options.quick else 7, markdown=options.markdown))
    if "memory" in rows:
        verdicts += memory_verdicts()
    if "hessian" in rows:
        verdicts += hessian.report(rounds, markdown=options.markdown)
    if "import" in rows:
        starts = importing.measure(5 if options.quick else 25)
        for what, name in (("import wengert", "wengert"), ("a first gradient", "gradient")):
            ratio = starts.ratio(name, "numpy")
            verdicts.append(Verdict(f"{what}, against import numpy", ratio, IMPORT))
    if verdicts:
        print(table(bars_table(verdicts), markdown=options.markdown))


def train(row: str, rounds: int) -> Times:
    """Time one row of the MLP table, after checking that the contestants do the same work."""
    problem = mlp.Problem.make(*mlp.ROWS[MLP.index(row)])
    contestants = {
        name: make(problem)
        for name, (make, library) in mlp.CONTESTANTS.items()
        if installed(library)
    }
    mlp.check_losses(contestants)
    # A block holds several steps: the first ones after another contestant's run on cold caches.
    block = 0.024 if row == MLP[-1] else 0.004
    return interleave(contestants, rounds=rounds, block=block)


def labelled(times: dict[str, Times]) -> dict[str, Times]:
    """The rows of the MLP table by what they are."""
    found = {}
    for row, measured in times.items():
        batch, widths = mlp.ROWS[MLP.index(row)]
        found[f"{batch} × {'-'.join(map(str, widths))}"] = measured
    return found


def mlp_table(times: dict[str, Times]) -> list[list[str]]:
    """The rows of the MLP table, the heading first."""
    names = [name for name in mlp.CONTESTANTS if name in next(iter(times.values())).rounds]
    rows = [["microseconds a training step: batch, layers", *names]]
    for row, measured in times.items():
        batch, widths = mlp.ROWS[MLP.index(row)]
        label = f"{batch}, {'-'.join(map(str, widths))}"
        rows.append([label, *(f"{measured.median(name) * 1e6:.0f}" for name in names)])
    return rows


def mlp_verdicts(times: dict[str, Times]) -> list[Verdict]:
    """The bars of the MLP rows that were measured."""
    verdicts = []
    for what, contestant, row, limits in MLP_BARS:
        if row not in times:
            continue
        batch, widths = mlp.ROWS[MLP.index(row)]
        label = f"{what}, {batch} × {'-'.join(map(str, widths))}"
        verdicts += [
            Verdict(f"{label}, against {peer}", times[row].ratio(contestant, peer), limit)
            for peer, limit in limits.items()
            if peer in times[row].rounds
        ]
    return verdicts


def chain_verdicts(rounds: int, *, markdown: bool) -> list[Verdict]:
    """Time the chain against each peer, after checking that the gradients agree."""
    chains = {
        name: make() for name, (make, library) in chain.CONTESTANTS.items() if installed(library)
    }
    for name, run in chains.items():
        for length in (3, 4):
            expected = chain.FACTOR**length, length * chain.START * chain.FACTOR ** (length - 1)
            if not np.allclose([np.asarray(g) for g in run(length)], expected):
                raise AssertionError(f"{name} computes other gradients for a chain of {length}")

    contestants = {name: repeated(run, CHAIN_LENGTH) for name, run in chains.items()}
    times = interleave(contestants, rounds=rounds, block=0.004)
    each = [f"{times.median(name) / CHAIN_LENGTH * 1e6:.1f}" for name in chains]
    rows = [["microseconds an operation", *chains], [f"chain of {CHAIN_LENGTH}", *each]]
    print(table(rows, markdown=markdown), end="\n\n")
    return [
        Verdict(f"chain of multiplications, against {peer}", times.ratio("Wengert", peer), limit)
        for peer, limit in CHAIN_BARS.items()
        if peer in chains
    ]


def nodes_verdict(rounds: int, *, markdown: bool) -> Verdict:
    """Time chains of very different lengths: the dearest node against the cheapest.

    The bar is for Wengert's own work, and so without Python's garbage collector, which walks over
    whatever is alive. What it adds to any graph in Python shows the bare list beside it.
    """
    rows = [["microseconds a node, by the nodes in the graph", *(f"{n:,}" for n in LENGTHS)]]
    for collected in (True, False):
        for name, run in ("Wengert", chain.wengert()), ("a bare linked list", chain.linked_list()):
            if not collected:
                gc.disable()
            times = nodes_times(run, rounds)
            gc.enable()
            label = name if collected else f"{name}, garbage collector off"
            rows.append([label, *(f"{times.median(name) * 1e6:.1f}" for name in times.rounds)])
            if name == "Wengert":
                costs = times
    print(table(rows, markdown=markdown), end="\n\n")
    dearest, cheapest = max(costs.rounds, key=costs.median), min(costs.rounds, key=costs.median)
    return Verdict(
        f"cost a node without the collector, {dearest} nodes against {cheapest}",
        costs.ratio(dearest, cheapest),
        FLAT,
    )


def nodes_times(run: chain.Chain, rounds: int) -> Times:
    """Seconds a node in chains of each length."""
    chains = {f"{length:,}": repeated(run, length) for length in LENGTHS}
    times = interleave(chains, rounds=rounds, block=0.2)
    return Times(
        {
            name: [seconds / length for seconds in times.rounds[name]]
            for name, length in zip(chains, LENGTHS, strict=True)
        }
    )


def repeated(run: chain.Chain, length: int) -> Callable[[int], None]:
    """Work whose unit is one chain."""

    def work(units: int) -> None:
        for _ in range(units):
            run(length)

    return work


def memory_verdicts() -> list[Verdict]:
    """Compare what is live and resident after many steps with what was after few."""
    (few_nodes, few_bytes), (many_nodes, many_bytes) = memory.measure(STEPS)
    few, many = STEPS
    print(
        f"After {few} and after {many} training steps: {few_nodes} and {many_nodes} live nodes, "
        f"{few_bytes / 2**20:.1f} and {many_bytes / 2**20:.1f} MiB resident.",
        end="\n\n",
    )
    nodes = many_nodes / few_nodes if few_nodes else math.inf if many_nodes else 1.0
    size = many_bytes / few_bytes
    return [
        Verdict(f"live nodes after {many} steps, against {few}", Ratio(nodes, nodes, nodes), 1),
        Verdict(
            f"resident memory after {many} steps, against {few}", Ratio(size, size, size), RESIDENT
        ),
    ]


if __name__ == "__main__":
    main()
