"""The workloads' times as pictures, for explanation/performance.md."""

import re
from collections.abc import Iterable
from pathlib import Path

import matplotlib.pyplot as plt

text = (Path(__file__).parent / "measured" / "workloads.md").read_text(encoding="utf-8")
table = text.partition("| microseconds")[2].partition("\n\n")[0].splitlines()
head, _, *lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
times: dict[str, dict[str, float]] = {}
for row, *cells in lines:
    medians = [re.sub(r" \([^)]*–[^)]*\)", "", cell) for cell in cells]
    times[row] = {n: float(t) for n, t in zip(head[1:], medians, strict=True) if t != "-"}

COLOURS = {
    "Wengert": "tab:blue",
    "Wengert compiled": "navy",
    "PyTorch eager": "tab:orange",
    "JAX jit": "tab:green",
}


def draw(rows: Iterable[str], beside: str) -> None:
    """Draw the times of rows as multiples of one contestant's."""
    rows = list(rows)
    figure, axis = plt.subplots(figsize=(7, 0.24 * len(rows) + 1))
    for name, colour in COLOURS.items():
        ratios = [
            (times[r][name] / times[r][beside], -i) for i, r in enumerate(rows) if name in times[r]
        ]
        if name != beside:
            axis.plot(*zip(*ratios, strict=True), "o", color=colour, label=name, markersize=5)
    axis.axvline(1, color="black", linewidth=0.8)
    axis.set_yticks([-i for i in range(len(rows))], rows, fontsize=8)
    axis.set(xscale="log", ylim=(0.5 - len(rows), 0.5))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.set_xlabel(f"time ÷ that of {beside}: left of the line is faster")
    axis.grid(axis="y", color="0.92")
    axis.set_axisbelow(True)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    figure.set_layout_engine("constrained")
