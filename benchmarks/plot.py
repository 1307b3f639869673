"""A picture of the steps that were timed: how long each contestant takes beside NumPy by hand."""

from collections.abc import Mapping
from pathlib import Path

from benchmarks.timing import Times

__all__ = ["draw"]

#: The contestants that are drawn, and their colours: those that no row has are left out.
COLOURS = {
    "Wengert compiled": "#1f5fa8",
    "Wengert": "#7fb0e0",
    "JAX jit": "#3a8f5c",
    "PyTorch eager": "#d0632b",
    "MyGrad": "#a9a9a9",
    "HIPS/autograd": "#cfcfcf",
}
PEER = "NumPy by hand"
#: The ends of the axis, at which longer bars are cut off.
LEAST, MOST = 0.35, 30


def draw(times: Mapping[str, Times], path: str | Path) -> None:
    """Draw ratios to NumPy by hand, on a logarithmic axis, with their quartiles.

    Parameters
    ----------
    times : mapping of str to Times
        By what was timed. Rows without NumPy by hand are left out.
    path : path
        Of the picture.
    """
    from matplotlib.figure import Figure

    rows = {label: each for label, each in times.items() if PEER in each.rounds}
    names = [name for name in COLOURS if any(name in each.rounds for each in rows.values())]
    figure = Figure(figsize=(9, 0.9 + 0.16 * len(names) * len(rows)), layout="constrained")
    axes = figure.subplots()
    high = 0.8 / max(len(names), 1)
    for i, name in enumerate(names):
        for j, each in enumerate(rows.values()):
            if name not in each.rounds:
                continue
            ratio, place = each.ratio(name, PEER), j + (i + 0.5) * high - 0.4
            axes.barh(
                place,
                ratio.median - 1,
                0.9 * high,
                left=1,
                color=COLOURS[name],
                label=name if j == 0 else None,
            )
            axes.plot([ratio.low, ratio.high], [place, place], color="black", linewidth=0.8)
            faster = ratio.low > 1.2 * LEAST and ratio.median < 1
            end = ratio.low if faster else min(max(ratio.high, 1), MOST)
            axes.annotate(
                f" {ratio.median:.2f} ",
                (end, place),
                ha="right" if faster else "left",
                va="center",
                size=7,
            )
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    ticks = (0.5, 1, 2, 5, 10, 20)
    axes.set_xlim(LEAST, MOST)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel("time of a step or a fit ÷ that of NumPy by hand (median and quartiles)")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, loc="outside upper center", ncols=len(names), fontsize=8)
    figure.savefig(path, dpi=150)
