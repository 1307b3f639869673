"""Reports of a check: text for a terminal, and a page of documentation."""

import textwrap
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

import wengert
from backend_check.checks import MODES, Outcome, chapter
from backend_check.comparisons import Fault


class Findings(NamedTuple):
    """The results of all checks of one library.

    Attributes
    ----------
    title : str
        The library, its version, and the device.
    functions : dict
        For each function the outcome of each mode.
    scenes : dict
        The outcome of each other feature.
    faults : dict
        For each function of the library that differs from NumPy's, a call that shows it.
    unfinished : sequence of str
        The library's functions whose comparisons took too long to be completed.
    """

    title: str
    functions: dict[str, dict[str, Outcome]]
    scenes: dict[str, Outcome]
    faults: dict[str, Fault]
    unfinished: Sequence[str] = ()


def table(found: Findings) -> list[list[str]]:
    """For each chapter and mode, how many functions agree with NumPy, of those with a result."""
    good: Counter[tuple[str, str]] = Counter()
    every: Counter[tuple[str, str]] = Counter()
    for name, outcomes in found.functions.items():
        for mode, outcome in outcomes.items():
            for row in (chapter(name), "all"):
                good[row, mode] += outcome.verdict == "ok"
                every[row, mode] += outcome.verdict != "none"
    chapters = sorted({row for row, _ in every} - {"all"})
    return [
        ["", *MODES],
        *(
            [row, *(f"{good[row, m]}/{every[row, m]}" if every[row, m] else "" for m in MODES)]
            for row in [*chapters, "all"]
        ),
    ]


def failures(found: Findings) -> dict[str, list[str]]:
    """Each distinct reason for a failure, with its functions and modes."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for name, outcomes in found.functions.items():
        for mode, (verdict, why) in outcomes.items():
            if verdict not in ("ok", "none"):
                reasons.setdefault(f"{verdict}: {why}", {}).setdefault(name, []).append(mode)
    return {
        reason: [f"{name} ({', '.join(modes)})" for name, modes in where.items()]
        for reason, where in reasons.items()
    }


_FAULTS = "Calls of the library's own functions that differ from NumPy's:"
_UNFINISHED = "Slow to compute, so that not all of its own calls were compared with NumPy's: {}."


def text(found: Findings) -> str:
    """The report for a terminal."""
    rows = table(found)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [found.title, ""]
    for row in rows:
        first, *rest = (
            f"{x:>{w}}" if i else f"{x:{w}}"
            for i, (x, w) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join([first, *rest]).rstrip())
    if found.scenes:
        lines.append("")
        width = max(map(len, found.scenes))
        lines += [
            f"{name:{width}}  {o.verdict}  {o.why}".rstrip() for name, o in found.scenes.items()
        ]
    if found.faults:
        lines += ["", _FAULTS]
        lines += [f"  {fault.call}: {fault.why}" for _, fault in sorted(found.faults.items())]
    if found.unfinished:
        lines += ["", textwrap.fill(_UNFINISHED.format(", ".join(found.unfinished)), 98)]
    wrong = failures(found)
    if wrong:
        lines += ["", "What does not agree:"]
    for reason, where in wrong.items():
        lines.append(f"  {reason}")
        lines += textwrap.wrap(
            ", ".join(where), 98, initial_indent="      ", subsequent_indent="      "
        )
    return "\n".join(lines)


def _has_gap(counts: str) -> bool:
    """Whether "3/4" is less than all."""
    good, _, every = counts.partition("/")
    return good != every


def rst(found: Findings) -> str:
    """The report for a page of documentation, of chapters with a gap alone."""
    head, *rows = table(found)
    short = [row for row in rows if row[0] == "all" or any(map(_has_gap, row[1:]))]
    origin = f".. Made by Wengert {wengert.__version__} with NumPy {np.__version__}"
    lines = [f"{origin}, {datetime.now(tz=UTC).date()}.", ""]
    lines += [found.title, "-" * len(found.title), ""]
    lines += [".. list-table::", "    :header-rows: 1", ""]
    for row in (head, *short):
        lines += [f"    {'* -' if i == 0 else '  -'} {x}".rstrip() for i, x in enumerate(row)]
    bad = {name: o for name, o in found.scenes.items() if o.verdict != "ok"}
    good = ", ".join(name for name in found.scenes if name not in bad)
    lines += ["", f"Works: {good}."] if good else []
    lines += [""] if bad else []
    lines += [f"- {name}: {o.verdict}: ``{o.why}``" for name, o in bad.items()]
    if found.faults:
        lines += ["", _FAULTS, ""]
        lines += [f"- ``{f.call}``: ``{f.why}``" for _, f in sorted(found.faults.items())]
    if found.unfinished:
        names = ", ".join(f"``{name}``" for name in found.unfinished)
        lines += ["", _UNFINISHED.format(names)]
    return "\n".join([*lines, ""])
