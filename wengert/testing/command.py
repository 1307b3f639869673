"""``python -m wengert check module[:function]``."""

import argparse
import sys
import textwrap
from collections.abc import Sequence

from wengert.backends import BackendError, get_backend, use_backend
from wengert.testing.checkup import Examination, examine
from wengert.testing.targets import UnusableError, find, shape_of

#: The words of a report by status.
MARKS = {"ok": "ok", "wrong": "WRONG", "not checked": "not checked", "note": "note"}
#: Details that would make a longer line stand below it.
WIDTH = 100


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m wengert check",
        description="Check the derivatives of a module's public functions.",
        epilog="Exit status: 0 if all that was checked is right, 1 if something is wrong or "
        "nothing could be checked, 2 for usage.",
    )
    parser.add_argument(
        "target", help="module, module:function, path/to/file.py or path/to/file.py:function"
    )
    parser.add_argument(
        "--shape",
        action="append",
        type=shape_of,
        default=[],
        help="an argument's shape, once for each argument: 2,3 or n,m or ...,n or '' for a number",
    )
    parser.add_argument(
        "--backend",
        action="append",
        default=[],
        help="a backend to compare derivatives with differences on; more than once (numpy)",
    )
    parser.add_argument("--examples", type=int, default=20, help="calls to draw on each (20)")
    parser.add_argument("--seed", type=int, help="seed of the draws; the same each time without it")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, print the report, and return the exit status."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.examples < 1:
        parser.error("--examples should be 1 or more")
    backends = given.backend or ["numpy"]
    found = []
    try:
        for name in backends:
            get_backend(name)
        with use_backend(backends[0]):
            for target in find(given.target, given.shape):
                found.append(
                    examine(target, backends=backends, examples=given.examples, seed=given.seed)
                )
                print(text(found[-1]), end="\n\n", flush=True)
    except (UnusableError, BackendError) as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return 2
    statuses = [examination.status for examination in found]
    counts = [statuses.count("ok"), statuses.count("wrong"), statuses.count("not checked")]
    print("{} right, {} wrong, {} not checked".format(*counts))
    return 1 if "wrong" in statuses or "ok" not in statuses else 0


def text(examination: Examination) -> str:
    """Return the report of one function."""
    target = examination.target
    lines = [f"{target.name}: {MARKS[examination.status]}"]
    if target.source:
        lines.append(f"  inputs from {target.source}")
    for what, status, details in examination.lines:
        lines.append(f"  {MARKS[status]:12}{what}")
        if "\n" in details or len(lines[-1]) + len(details) > WIDTH:
            lines.append(textwrap.indent(details, " " * 14))
        elif details:
            lines[-1] += f": {details}"
    return "\n".join(lines)
