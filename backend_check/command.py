"""``python -m backend_check LIBRARY``: the command, and what it finds."""

import argparse
import importlib
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from backend_check import records
from backend_check.checks import LIMIT, compare, names, scenes
from backend_check.comparisons import Comparisons
from backend_check.report import Findings, rst, text
from wengert.backends import Backend, BackendError, get_backend, plugin_backends, use_backend
from wengert.backends.registry import KNOWN, register


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m backend_check",
        description="Run every function and its derivatives, training, compiled and saved programs "
        "on an array library and on NumPy, and report the differences.",
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
        backend = find_backend(name, given.write)
        spec = f"{backend.name}:{device}" if device else backend.name
        with use_backend(spec):  # an unknown device is an error
            pass
        found = examine(backend, spec, given.only, given.limit)
    except (BackendError, ImportError, ValueError) as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return 2
    print(text(found))
    if given.rst is not None:
        given.rst.write_text(rst(found), encoding="utf-8")
    outcomes = [o for modes in found.functions.values() for o in modes.values()]
    outcomes += found.scenes.values()
    return 0 if all(o.verdict in ("ok", "none") for o in outcomes) else 1


def find_backend(name: str, path: Path | None) -> Backend:
    """Return the backend of a name, or one with the record that a library's namespace needs."""
    known = name in KNOWN or name in plugin_backends()
    if known and path is None:
        return get_backend(name)
    module = get_backend(name).module if known else name
    xp = importlib.import_module(module)
    short = module.rpartition(".")[2] if known else name.replace(".", "_")
    record = records.write_record(module, short, _version(module), records.probe(xp))
    if path is not None:
        path.write_text(record, encoding="utf-8")
        print(f"written: {path}\n")
    if known:
        return get_backend(name)
    print(f"{name} has no record; this one is used:\n\n{textwrap.indent(record, '    ')}")
    return register(records.run_record(record, short))


def _version(name: str) -> str:
    """The version of a library, by the name of its backend or of a module in it."""
    package = importlib.import_module(name.partition(".")[0])
    return str(getattr(package, "__version__", ""))


def examine(backend: Backend, spec: str, only: Sequence[str], limit: float) -> Findings:
    """Check some functions, or all functions and other features, with progress on a terminal."""
    devices = ", ".join(map(backend.device_name, backend.devices()))
    library = backend.name if backend.name in KNOWN else backend.module
    title = f"{backend.name} {_version(library)} ({devices})"
    chosen = only or names()
    functions = {}
    with Comparisons(backend, limit) as compared:
        for i, name in enumerate(chosen):
            if sys.stderr.isatty():
                print(f"\r{i + 1}/{len(chosen)} {name:40}", end="", file=sys.stderr, flush=True)
            functions[name] = compare(name, spec, limit)
    if sys.stderr.isatty():
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)
    other = {} if only else dict(scenes(spec, limit))
    return Findings(title, functions, other, compared.faults, sorted(compared.unfinished))
