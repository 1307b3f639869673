"""The printed report: tables for a terminal or in Markdown, and the machine."""

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import numpy as np  # noqa: F401 -- whose BLAS `describe_threads` looks for

from benchmarks.timing import Ratio

__all__ = ["Verdict", "bars_table", "describe_machine", "describe_threads", "installed", "table"]


@dataclass(frozen=True)
class Verdict:
    """A bar, and where the measurement stands.

    Parameters
    ----------
    what : str
        What was measured, and against what.
    ratio : Ratio
        The measured ratio.
    limit : float
        The largest ratio that passes.
    """

    what: str
    ratio: Ratio
    limit: float

    @property
    def passed(self) -> bool:
        """Whether the median is within the limit."""
        return self.ratio.median <= self.limit


def bars_table(verdicts: Iterable[Verdict]) -> list[list[str]]:
    """The bars as a table's rows, the heading first."""
    rows = [["what", "measured", "quartiles", "bar", ""]]
    for verdict in verdicts:
        low, median, high = verdict.ratio.low, verdict.ratio.median, verdict.ratio.high
        rows.append(
            [
                verdict.what,
                f"{median:.2f} ×",
                f"{low:.2f} – {high:.2f}",
                f"≤ {verdict.limit:g} ×",
                "pass" if verdict.passed else "**fail**",
            ]
        )
    return rows


def table(rows: Sequence[Sequence[str]], *, markdown: bool) -> str:
    """Lay a table out; its first row is the heading, its first column is text."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for number, row in enumerate(rows):
        cells = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("| " + " | ".join(cells) + " |" if markdown else "  ".join(cells).rstrip())
        if number == 0 and markdown:
            rules = [
                "-" * width if i == 0 else "-" * (width - 1) + ":" for i, width in enumerate(widths)
            ]
            lines.append("| " + " | ".join(rules) + " |")
        elif number == 0:
            lines.append("  ".join("-" * width for width in widths))
    return "\n".join(lines)


def installed(library: str) -> bool:
    """Whether a library can be imported."""
    return find_spec(library) is not None


def describe_machine() -> str:
    """The machine and the versions, in a sentence."""
    cores = os.cpu_count()
    libraries = [
        f"{name} {_version(name)}"
        for name in ("numpy", "cupy", "torch", "jax", "autograd", "mygrad")
        if installed(name)
    ]
    return (
        f"{_processor()}, {cores} cores, {platform.system()} {platform.machine()}; "
        f"Python {platform.python_version()}, {', '.join(libraries)}."
    )


def describe_threads() -> str:
    """The pools of threads and the kernels of BLAS, by threadpoolctl where it is installed."""
    if not installed("threadpoolctl"):
        return "threadpoolctl is not installed: it would tell which kernels BLAS has chosen."
    from threadpoolctl import threadpool_info

    pools = []
    for pool in threadpool_info():
        parts = [pool["internal_api"], pool.get("version"), pool.get("architecture")]
        name = " ".join(part for part in parts if part)
        threads = pool["num_threads"]
        pools.append(f"{name}, {threads} thread{'s' if threads > 1 else ''}")
    return f"Pools: {'; '.join(pools)}."


def _version(name: str) -> str:
    for distribution in (name, f"{name}-cuda12x", f"{name}-cuda13x"):
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return "of unknown version"


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "a processor"
