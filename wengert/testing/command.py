"""``python -m wengert check module[:function]``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import hypothesis

from wengert.backends import BackendError, get_backend, use_backend
from wengert.testing.checkup import examine
from wengert.testing.report import page, summary, text
from wengert.testing.targets import UnusableError, find, shape_of


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
        help="of an argument, once for each: 2,3 or n,m or ...,n or '' for a number",
    )
    parser.add_argument(
        "--backend",
        action="append",
        default=[],
        help="to compare derivatives with differences on; more than once for several (numpy)",
    )
    parser.add_argument("--examples", type=int, default=20, help="calls to draw on each (20)")
    parser.add_argument("--seed", type=int, help="of the draws; the same each time without it")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page, too")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, print the report, and return the exit status."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.examples < 1:
        parser.error("--examples should be 1 or more")
    backends = given.backend or ["numpy"]
    try:
        for name in backends:
            get_backend(name)
        with use_backend(backends[0]):
            targets = find(given.target, given.shape)
            found = []
            for target in targets:
                done = examine(target, backends=backends, examples=given.examples, seed=given.seed)
                print(text(done), end="\n\n", flush=True)
                found.append(done)
    except (UnusableError, BackendError) as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return 2
    print(summary(found))
    if given.html is not None:
        about = (
            f"{given.examples} calls on {', '.join(backends)}, "
            f"{'always the same' if given.seed is None else f'from the seed {given.seed}'}, "
            f"with Hypothesis {hypothesis.__version__}."
        )
        try:
            given.html.write_text(page(given.target, about, found), encoding="utf-8")
        except OSError as error:
            print(f"{parser.prog}: error: {given.html} cannot be written: {error}", file=sys.stderr)
            return 2
        print(f"written: {given.html}")
    right = [done.status == "ok" for done in found]
    wrong = any(done.status == "wrong" for done in found)
    return 1 if wrong or not any(right) else 0
