"""``python -m wengert check-backend library``."""

import argparse
import importlib
import json
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

import wengert
from wengert.backends import Backend, BackendError, get_backend, plugin_backends, use_backend
from wengert.backends.registry import KNOWN, register
from wengert.testing import records
from wengert.testing.edges import edges, has_edges
from wengert.testing.libraries import LIMIT, MODES, Outcome, chapter, compare, names, scenes
from wengert.testing.library_calls import Comparisons, Fault


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
    edges : dict
        For each function what differs at edge values, with other data types and parameters.
    """

    title: str
    functions: dict[str, dict[str, Outcome]]
    scenes: dict[str, Outcome]
    faults: dict[str, Fault]
    unfinished: Sequence[str] = ()
    edges: dict[str, list[Fault]] = {}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m wengert check-backend",
        description="Run every function and its derivatives, training, compiled and saved programs "
        "on an array library and on NumPy, and tell what differs.",
        epilog="Exit status: 0 if all agrees, 1 if something does not, 2 for usage.",
    )
    parser.add_argument(
        "library", help="a backend's name, with a device (torch:cuda), or an Array API namespace"
    )
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="write the record that the library needs"
    )
    parser.add_argument("--rst", type=Path, metavar="FILE", help="write the tables for Sphinx, too")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="a function; more than once"
    )
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FILE",
        help="write what is found there after each function, and go on from what is there",
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=LIMIT,
        metavar="SECONDS",
        help=f"how long each check, and the comparisons of the calls of each of the library's own "
        f"functions, may take; {LIMIT:g} by default",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, print the tables, and return the exit status."""
    parser = _parser()
    given = parser.parse_args(arguments)
    name, _, device = given.library.partition(":")
    if not given.limit > 0:
        parser.error("--limit is a number of seconds above 0")
    unknown = set(given.only) - set(names())
    if unknown:
        parser.error(f"--only: there is no function {min(unknown)!r}")
    try:
        backend = _backend(name, given.write)
        spec = f"{backend.name}:{device}" if device else backend.name
        with use_backend(spec):  # which refuses a device that there is not
            pass
        found = examine(backend, spec, given.only, given.limit, given.keep)
    except (BackendError, ImportError, ValueError) as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return 2
    print(text(found))
    if given.rst is not None:
        given.rst.write_text(rst(found), encoding="utf-8")
    outcomes = [o for each in found.functions.values() for o in each.values()]
    outcomes += found.scenes.values()
    right = all(o.verdict in ("ok", "none") for o in outcomes) and not any(found.edges.values())
    return 0 if right else 1


def _backend(name: str, path: Path | None) -> Backend:
    """The backend of a name, or one with the record that a library's namespace needs."""
    known = name in KNOWN or name in plugin_backends()
    if known and path is None:
        return get_backend(name)
    module = get_backend(name).module if known else name
    xp = importlib.import_module(module)
    short = module.rpartition(".")[2] if known else name.replace(".", "_")
    record = records.written(module, short, _version(module), records.probe(xp))
    if path is not None:
        path.write_text(record, encoding="utf-8")
        print(f"written: {path}\n")
    if known:
        return get_backend(name)
    print(f"{name} has no record; this one is used:\n\n{textwrap.indent(record, '    ')}")
    return register(records.made(record, short))


def _version(name: str) -> str:
    """Of a library, by the name of its backend or of a module in it."""
    package = importlib.import_module(name.partition(".")[0])
    return str(getattr(package, "__version__", ""))


def examine(
    backend: Backend, spec: str, only: Sequence[str], limit: float, keep: Path | None = None
) -> Findings:
    """Check some functions, or all of them and other features, with progress on a terminal.

    Results are written to the file ``keep`` after each function, and read from it at the start.
    """
    devices = ", ".join(map(backend.device_name, backend.devices()))
    library = backend.name if backend.name in KNOWN else backend.module
    title = f"{backend.name} {_version(library)} ({devices})"
    kept = Findings(title, {}, {}, {}, edges={}) if keep is None else _kept(keep, title)
    chosen = only or names()
    with Comparisons(backend, limit) as compared:
        compared.faults.update(kept.faults)
        compared.unfinished.update(kept.unfinished)
        for i, name in enumerate(chosen):
            if sys.stderr.isatty():
                print(f"\r{i + 1}/{len(chosen)} {name:40}", end="", file=sys.stderr, flush=True)
            if name not in kept.functions:
                kept.functions[name] = compare(name, spec, limit)
                kept = kept._replace(faults=compared.faults, unfinished=sorted(compared.unfinished))
                _keep(keep, kept)
    for name in chosen:
        if name not in kept.edges:
            kept.edges[name] = edges(name, spec, limit)
            _keep(keep, kept)
    if sys.stderr.isatty():
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)
    if not only and not kept.scenes:
        kept.scenes.update(scenes(spec, limit))
        _keep(keep, kept)
    functions = {name: kept.functions[name] for name in chosen}
    return kept._replace(
        functions=functions,
        scenes={} if only else kept.scenes,
        edges={name: kept.edges[name] for name in chosen},
    )


def _keep(path: Path | None, found: Findings) -> None:
    if path is not None:
        made = path.with_name(f"{path.name}.new")
        made.write_text(json.dumps(found._asdict()), encoding="utf-8")
        made.replace(path)  # atomically, in case of an interrupt


def _kept(path: Path, title: str) -> Findings:
    """The results that an earlier run has kept; empty ones if there is no file.

    Raises
    ------
    ValueError
        If they are of another library.
    """
    if not path.exists():
        return Findings(title, {}, {}, {}, edges={})
    held = json.loads(path.read_text(encoding="utf-8"))
    if held["title"] != title:
        raise ValueError(f"--keep: {path} is of {held['title']}, and this is {title}; name another")
    outcomes = {
        name: {mode: Outcome(*each) for mode, each in modes.items()}
        for name, modes in held["functions"].items()
    }
    others = {name: Outcome(*each) for name, each in held["scenes"].items()}
    faults = {name: Fault(*each) for name, each in held["faults"].items()}
    found = {name: [Fault(*x) for x in each] for name, each in held.get("edges", {}).items()}
    return Findings(title, outcomes, others, faults, held["unfinished"], found)


def table(found: Findings) -> list[list[str]]:
    """For each chapter and mode, how many functions agree with NumPy, of those it supports.

    The last column is of calls at edges.
    """
    good: Counter[tuple[str, str]] = Counter()
    every: Counter[tuple[str, str]] = Counter()
    for name, outcomes in found.functions.items():
        for mode, outcome in outcomes.items():
            for row in (chapter(name), "all"):
                good[row, mode] += outcome.verdict == "ok"
                every[row, mode] += outcome.verdict != "none"
    for name, faults in found.edges.items():
        for row in (chapter(name), "all") if has_edges(name) else ():
            good[row, "edges"] += not faults
            every[row, "edges"] += 1
    columns = [*MODES, "edges"]
    chapters = sorted({row for row, _ in every} - {"all"})
    return [
        ["", *columns],
        *(
            [row, *(f"{good[row, m]}/{every[row, m]}" if every[row, m] else "" for m in columns)]
            for row in [*chapters, "all"]
        ),
    ]


def failures(found: Findings) -> dict[str, list[str]]:
    """Each distinct reason for a failure, with its functions and modes."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for name, outcomes in found.functions.items():
        for mode, (verdict, told) in outcomes.items():
            if verdict not in ("ok", "none"):
                key = f"{verdict}: {told}"
                reasons.setdefault(key, {}).setdefault(name, []).append(mode)
    return {
        reason: [f"{name} ({', '.join(modes)})" for name, modes in where.items()]
        for reason, where in reasons.items()
    }


def _at_edges(found: Findings) -> list[str]:
    """The differences at edges, as lines."""
    return [f"{fault.call}: {fault.told}" for each in found.edges.values() for fault in each]


_EDGES = "Calls at edge values, of other data types and with other parameters that differ:"
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
            f"{name:{width}}  {o.verdict}  {o.told}".rstrip() for name, o in found.scenes.items()
        ]
    if found.faults:
        lines += ["", "Calls of the library itself that are not as NumPy's are:"]
        lines += [f"  {fault.call}: {fault.told}" for _, fault in sorted(found.faults.items())]
    if found_here := _at_edges(found):
        lines += ["", _EDGES, *(f"  {line}" for line in found_here)]
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


def _misses(counts: str) -> bool:
    """Whether "3/4" is less than all."""
    good, _, every = counts.partition("/")
    return good != every


def rst(found: Findings) -> str:
    """The report for a page of documentation, with those chapters in which something is amiss."""
    head, *rows = table(found)
    short = [row for row in rows if row[0] == "all" or any(map(_misses, row[1:]))]
    made = f".. Made by Wengert {wengert.__version__} with NumPy {np.__version__}"
    lines = [f"{made}, {datetime.now(tz=UTC).date()}.", "", found.title, "-" * len(found.title), ""]
    lines += [".. list-table::", "    :header-rows: 1", ""]
    for row in (head, *short):
        lines += [f"    {'* -' if i == 0 else '  -'} {x}".rstrip() for i, x in enumerate(row)]
    bad = {name: o for name, o in found.scenes.items() if o.verdict != "ok"}
    works = [name for name in found.scenes if name not in bad]
    good = ", ".join(works)
    lines += ["", f"Works: {good}."] if good else []
    lines += (
        ["", *(f"- {name}: {o.verdict}: ``{o.told}``" for name, o in bad.items())] if bad else []
    )
    if found.faults:
        lines += ["", "Calls of the library itself that are not as NumPy's are:", ""]
        lines += [f"- ``{f.call}``: ``{f.told}``" for _, f in sorted(found.faults.items())]
    if any(found.edges.values()):
        lines += ["", _EDGES, ""]
        lines += [
            f"- ``{call}``: ``{told}``" for each in found.edges.values() for call, told in each
        ]
    if found.unfinished:
        names = ", ".join(f"``{name}``" for name in found.unfinished)
        lines += ["", _UNFINISHED.format(names)]
    return "\n".join([*lines, ""])
