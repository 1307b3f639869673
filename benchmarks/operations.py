"""Single functions, forward, beside PyTorch: ``python -m benchmarks operations``.

Each row is one call on float32 Tensors that record nothing, of few and of many elements. ``bar`` is
how many times PyTorch's time a row may take.
"""

import argparse
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from benchmarks.report import describe_machine, installed, table
from benchmarks.timing import Ratio, interleave, repeated

__all__ = ["ROWS", "Size", "add_arguments", "calls", "main"]


class Size(NamedTuple):
    """Sides of a square matrix, the bar of a row, and how many rows may miss it."""

    side: int
    bar: float
    misses: int


SIZES = {"few": Size(2, 1.2, 8), "many": Size(1000, 1.5, 8)}

#: Wengert's expression and PyTorch's, where that is another. ``x``, ``y``: two matrices of numbers
#: in (0, 1); ``n``: numbers of both signs; ``i``: indices of rows.
ROWS: dict[str, tuple[str, ...]] = {
    "add": ("x + y",),
    "subtract": ("x - y",),
    "multiply": ("x * y",),
    "divide": ("x / y",),
    "pow": ("x ** y",),
    "square": ("xp.square(n)",),
    "sqrt": ("xp.sqrt(x)",),
    "exp": ("xp.exp(n)",),
    "expm1": ("xp.expm1(n)",),
    "log": ("xp.log(x)",),
    "log1p": ("xp.log1p(x)",),
    "log2": ("xp.log2(x)",),
    "sin": ("xp.sin(n)",),
    "cos": ("xp.cos(n)",),
    "tan": ("xp.tan(n)",),
    "asin": ("xp.asin(x)",),
    "atan": ("xp.atan(n)",),
    "atan2": ("xp.atan2(n, y)",),
    "sinh": ("xp.sinh(n)",),
    "tanh": ("xp.tanh(n)",),
    "hypot": ("xp.hypot(n, y)",),
    "logaddexp": ("xp.logaddexp(n, y)",),
    "abs": ("xp.abs(n)",),
    "sign": ("xp.sign(n)",),
    "floor": ("xp.floor(n)",),
    "maximum": ("xp.maximum(x, n)",),
    "clip": ("xp.clip(n, -0.5, 0.5)",),
    "where": ("xp.where(n > 0, x, y)",),
    "less": ("x < y",),
    "erf": ("xp.special.erf(n)",),
    "lgamma": ("xp.special.gammaln(x)",),
    "sigmoid": ("F.sigmoid(n)",),
    "relu": ("F.relu(n)",),
    "gelu": ("F.gelu(n)",),
    "silu": ("F.silu(n)",),
    "elu": ("F.elu(n)",),
    "softplus": ("F.softplus(n)",),
    "softmax": ("F.softmax(n, dim=-1)",),
    "log_softmax": ("F.log_softmax(n, dim=-1)",),
    "logsumexp": ("xp.logsumexp(n, axis=-1)", "xp.logsumexp(n, dim=-1)"),
    "layer_norm": ("F.layer_norm(n, n.shape[-1:])",),
    "sum": ("xp.sum(n)",),
    "sum of rows": ("xp.sum(n, axis=1)",),
    "sum of columns": ("xp.sum(n, axis=0)",),
    "mean": ("xp.mean(n)",),
    "var": ("xp.var(n, correction=1)",),
    "std of rows": ("xp.std(n, axis=1, correction=1)",),
    "norm": ("xp.linalg.vector_norm(n)",),
    "prod": ("xp.prod(x)",),
    "max": ("xp.max(n)",),
    "max of rows": ("xp.max(n, axis=1)", "xp.amax(n, dim=1)"),
    "argmax": ("xp.argmax(n, axis=1)",),
    "cumulative_sum": ("xp.cumulative_sum(n, axis=1)", "xp.cumsum(n, dim=1)"),
    "sort": ("xp.sort(n, axis=1)", "xp.sort(n, dim=1).values"),
    "concat": ("xp.concat([x, y])",),
    "stack": ("xp.stack([x, y])",),
    "pad": ("F.pad(x, (1, 1))",),
    "roll": ("xp.roll(x, 1, axis=0)", "xp.roll(x, 1, dims=0)"),
    "flip": ("xp.flip(x, axis=0)", "xp.flip(x, dims=(0,))"),
    "tril": ("xp.tril(x)",),
    "take": ("xp.take(x, i, axis=0)", "xp.index_select(x, 0, i)"),
    "matmul": ("x @ y",),
    "einsum": ("xp.einsum('ij,ij->i', x, y)",),
}


def calls(side: int) -> dict[str, dict[str, Callable[[], Any]]]:
    """For each row the calls of Wengert and, where it is installed, of PyTorch."""
    import wengert
    import wengert.nn.functional

    random = np.random.default_rng(0)
    given: dict[str, Any] = {
        "x": random.uniform(0.05, 0.95, (side, side)).astype(np.float32),
        "y": random.uniform(0.05, 0.95, (side, side)).astype(np.float32),
        "n": random.standard_normal((side, side), dtype=np.float32),
        "i": random.permutation(side),
    }
    libraries: dict[str, Mapping[str, Any]] = {
        "Wengert": {"xp": wengert, "F": wengert.nn.functional}
        | {name: wengert.asarray(a) for name, a in given.items()}
    }
    if installed("torch"):
        import torch

        libraries["PyTorch"] = {"xp": torch, "F": torch.nn.functional} | {
            name: torch.asarray(a) for name, a in given.items()
        }
    return {
        row: {
            name: eval(f"lambda: {texts[0 if name == 'Wengert' else -1]}", dict(names))  # noqa: S307
            for name, names in libraries.items()
        }
        for row, texts in ROWS.items()
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("rows", nargs="*", metavar="ROW", help="which; all by default")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=[*SIZES])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")


def main(options: argparse.Namespace) -> None:
    """Print the table of each size, slowest ratios first, and how many rows miss the bar."""
    print(describe_machine(), end="\n\n")
    for size in options.sizes:
        side, bar, misses = SIZES[size]
        found: list[tuple[str, list[str], Ratio | None]] = []
        for row, contestants in calls(side).items():
            if options.rows and row not in options.rows:
                continue
            work = {name: repeated(call) for name, call in contestants.items()}
            times = interleave(work, rounds=options.rounds, block=0.004)
            ratio = times.ratio("Wengert", "PyTorch") if "PyTorch" in contestants else None
            found.append((row, [f"{times.median(name) * 1e6:.1f}" for name in contestants], ratio))
        found.sort(key=lambda each: -each[2].median if each[2] else 0)
        names = [*contestants]
        rows = [[f"microseconds, {side * side:,} elements", *names, "ratio", "quartiles"]]
        for row, cells, ratio in found:
            shown = ["", ""]
            if ratio is not None:
                shown = [f"{ratio.median:.2f} ×", f"{ratio.low:.2f} – {ratio.high:.2f}"]
            rows.append([row, *cells, *shown])
        print(table(rows, markdown=options.markdown), end="\n\n")
        beyond = sum(ratio is not None and ratio.median > bar for *_, ratio in found)
        print(f"{beyond} of {len(found)} rows beyond {bar:g} × PyTorch (bar: {misses})\n")
