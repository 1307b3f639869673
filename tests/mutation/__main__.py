"""Edit the package in many small ways, and report which edits no test of their room notices.

Each edit is made in a copy of the checkout, in which the quick choice of the room's tests runs.
"""

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutation.mutants import Mutant, mutants

ROOT = Path(__file__).parents[2]
KILLED, SURVIVED = "killed", "survived"
#: Where the tests of a room are, if not in the folder of its name.
HOMES = {"protocols": "tests/interplay", "wengert": "tests/project"}
MEMORY = 12 << 30


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="of mutants, shared among the rooms")
    parser.add_argument("--seed", type=int, default=0, help="of the choice")
    parser.add_argument("--only", default="wengert/", metavar="PATH", help="how files begin")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="in place of the room's")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds until it is given up")
    given = parser.parse_args(arguments)
    chosen = choose(given.only, given.count, given.seed)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    trees: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(given.jobs) as pool:
        for k in range(given.jobs):
            ignored = shutil.ignore_patterns(".*", "_build")
            trees.put(shutil.copytree(ROOT, Path(work, str(k)), ignore=ignored))

        def judge(mutant: Mutant) -> tuple[Mutant, str]:
            tree = trees.get()
            try:
                return mutant, verdict(mutant, tree, given.tests, given.limit)
            finally:
                trees.put(tree)

        for mutant, found in pool.map(judge, chosen):
            counts[mutant.room][found] += 1
            if found == SURVIVED:
                old, new = mutant.difference(source(mutant.path))
                print(f"{mutant.path}:{line_of(mutant)}: {found}\n- {old}\n+ {new}", flush=True)
    return report(counts)


def choose(only: str, count: int, seed: int) -> list[Mutant]:
    """As many mutants of each room, as far as it has them."""
    paths = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "wengert").rglob("*.py"))
    rooms = defaultdict(list)
    for path in paths:
        if path.startswith(only):
            for mutant in mutants(path, source(path)):
                rooms[mutant.room].append(mutant)
    for name, found in rooms.items():
        random.Random(f"{seed} {name}").shuffle(found)
    chosen: list[Mutant] = []
    while len(chosen) < count and any(rooms.values()):
        chosen += [found.pop() for found in rooms.values() if found]
    return chosen[:count]


def verdict(mutant: Mutant, tree: Path, tests: list[str] | None, limit: float) -> str:
    """Whether a test fails, or does not end, of an edited copy of the checkout."""
    edited = tree / mutant.path
    edited.write_bytes(mutant.edited(source(mutant.path)))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--quick"]
    if "cupy" in mutant.path:  # of which NumPy and array_api_strict run nothing
        command.append("--wengert-backend=numpy,array_api_strict,cupy-simulated")
    run = subprocess.Popen(
        [*command, *(tests or [HOMES.get(mutant.room, f"tests/{mutant.room}")])],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )
    try:
        return SURVIVED if run.wait(limit) == 0 else KILLED
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, 9)
        run.wait()
        return KILLED
    finally:
        edited.write_bytes(source(mutant.path))


def source(path: str) -> bytes:
    return (ROOT / path).read_bytes()


def line_of(mutant: Mutant) -> int:
    return source(mutant.path).count(b"\n", 0, mutant.start) + 1


def report(counts: dict[str, Counter[str]]) -> int:
    """Print a table by room. Some that survive are equivalent: someone else has to judge them."""
    total: Counter[str] = sum(counts.values(), Counter())
    print(f"\n{'room':12}{KILLED:>10}{SURVIVED:>10}")
    for room, found in (*sorted(counts.items()), ("all", total)):
        print(f"{room:12}{found[KILLED]:10}{found[SURVIVED]:10}")
    print(f"killed: {total[KILLED] / max(total.total(), 1):.1%}")
    return 1 if total[SURVIVED] else 0


if __name__ == "__main__":
    sys.exit(main())
