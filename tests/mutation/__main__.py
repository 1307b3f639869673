"""Edit the package in many small ways, and report which edits no test notices.

Each edit is made in a copy of the checkout, and NumPy's tests that reach the edited lines run on
it, the fastest first, until one fails: those that `pytest` alone runs, then all. Which test reaches
what is collected first, and again where a file has changed; this needs Python 3.12.
"""

import argparse
import ast
import hashlib
import pickle
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from tests.mutation import reach, trials
from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mutants import Mutant, mutants

#: Seconds for collecting what one file of tests reaches.
LONGEST = 900
#: Killed by the quick choice; by the other tests.
QUICKLY, KILLED = "by pytest", "by the rest"
SURVIVED, UNREACHED, LATE = "survived", "not reached", "timed out"

#: What needs another library than NumPy, or runs in processes of its own: these functions of a
#: file, or all of it.
OTHERS: dict[str, str] = {
    **{f"wengert/backends/{name}.py": "" for name in ("cupy", "dask", "dask_linalg", "jax")},
    "wengert/nn/kernels/cupy_classification.py": "",
    **{f"wengert/backends/{name}.py": "" for name in ("torch", "fused")},
    **{f"wengert/backends/{name}.py": "" for name in ("keys", "ndonnx")},
    **{f"wengert/export/{name}.py": "" for name in ("__init__", "exporting", "graph")},
    **{f"wengert/export/{name}.py": "" for name in ("lengths", "recording", "sizes")},
    **{f"wengert/distributed/{name}.py": "" for name in ("averaging", "carriers", "gloo")},
    **{f"wengert/distributed/{name}.py": "" for name in ("launch", "mpi", "nccl", "training")},
    "wengert/compiler/emission/finish.py": "",
    **{f"wengert/compiler/cupy/{name}.py": "" for name in ("fusion", "kernels", "routines")},
    "wengert/__main__.py": "",
    "wengert/backends/special.py": "_polygamma cupy_special torch_special jax_special _check_all",
    "wengert/backends/triangular.py": "cupy_triangular jax_triangular",
    "wengert/testing/backends.py": "has_gpu",
}

Plan = list[tuple[str, list[str]]]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="of mutants, shared among the rooms")
    parser.add_argument("--seed", type=int, default=0, help="of the choice")
    parser.add_argument("--only", default="wengert/", metavar="PATH", help="how files begin")
    parser.add_argument(
        "--tests", nargs="+", default=["tests/"], metavar="PATH", help="how files of tests begin"
    )
    parser.add_argument("--line", type=int, help="mutants of this line alone")
    parser.add_argument("--again", type=Path, help="the report whose mutants are judged again")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of tests for a mutant")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds until it is given up")
    parser.add_argument(
        "--work", type=Path, default=Path(tempfile.gettempdir(), "wengert-mutation")
    )
    chosen = parser.parse_args(arguments)
    if sys.version_info < (3, 12):
        parser.error("what tests reach is collected by sys.monitoring, of Python 3.12")
    trees = [trials.copy_checkout(chosen.work / f"tree{k}") for k in range(chosen.jobs)]
    reached = collected(trees, chosen.work / "reach.pickle", tuple(chosen.tests))
    if chosen.again is None:
        choice = choose(chosen.only, chosen.line, chosen.count, chosen.seed)
    else:
        choice = listed(chosen.again.read_text())
    return report(judge(choice, reached, trees, chosen.budget, chosen.limit))


def quick(reached: dict[str, reach.Reach]) -> dict[str, reach.Reach]:
    """What is reached by the tests that `pytest` alone runs."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    lines = subprocess.run(command, cwd=trials.ROOT, capture_output=True, text=True)
    names = {reach.IMPORT, *lines.stdout.splitlines()}
    return {
        file: {name: seen for name, seen in tests.items() if name in names}
        for file, tests in reached.items()
    }


def collected(trees: list[Path], store: Path, begin: tuple[str, ...]) -> dict[str, reach.Reach]:
    """Of each of those files of tests what its tests reach, as stored where nothing has changed."""
    known = pickle.loads(store.read_bytes()) if store.exists() else {}
    package = hashlib.sha256(b"".join(map(source, files("wengert/")))).hexdigest()
    keys = {}
    for path in sorted((trials.ROOT / "tests").rglob("test_*.py")):
        text = path.read_bytes() + package.encode()
        keys[str(path.relative_to(trials.ROOT))] = hashlib.sha256(text).hexdigest()
    known = {file: known[file] for file in keys if file in known and known[file][0] == keys[file]}
    missing = [file for file in keys if file not in known and file.startswith(begin)]
    for file, result in trials.run_all(trees, deque(missing), _collect, LONGEST):
        tests = result if isinstance(result, dict) else {}
        known[file] = keys[file], tests
        store.write_bytes(pickle.dumps(known))
        seconds = sum(seconds for seconds, _ in tests.values())
        print(f"{file}: {max(len(tests) - 1, 0)} tests, {seconds:.1f} s", flush=True)
    return {file: tests for file, (_, tests) in known.items() if file.startswith(begin)}


def _collect(tree: Path, file: str) -> reach.Reach:
    started = time.perf_counter()
    plugin = reach.Collect(tree)
    trials.run_tests(file, plugin)
    tests = sum(seconds for seconds, _ in plugin.reach.values())
    if reach.IMPORT in plugin.reach:
        lines = plugin.reach[reach.IMPORT][1]
        plugin.reach[reach.IMPORT] = time.perf_counter() - started - tests, lines
    return plugin.reach


def files(start: str) -> list[str]:
    found = (path.relative_to(trials.ROOT) for path in (trials.ROOT / "wengert").rglob("*.py"))
    names = {str(path) for path in found if str(path).startswith(start)}
    return sorted(name for name in names if OTHERS.get(name) != "")


def for_others(path: str) -> Callable[[Mutant], bool]:
    """Whether an edit of a file is in a function that the tests on NumPy don't call."""
    names = OTHERS.get(path, "").split()
    lines = [
        range(node.lineno, node.end_lineno + 1)
        for node in ast.parse(source(path)).body
        if isinstance(node, ast.FunctionDef) and node.name in names
    ]
    return lambda mutant: any(mutant.spans[0][0] in there for there in lines)


def choose(only: str, line: int | None, count: int, seed: int) -> list[Mutant]:
    """As many mutants of each room, as far as it has them."""
    rooms = defaultdict(list)
    for path in files(only):
        skipped = for_others(path)
        for mutant in mutants(path, source(path)):
            here = line is None or mutant.spans[0][0] <= line <= mutant.spans[0][1]
            if here and not skipped(mutant):
                rooms[mutant.room].append(mutant)
    for name, found in rooms.items():
        random.Random(f"{seed} {name}").shuffle(found)
    chosen: list[Mutant] = []
    while len(chosen) < count and any(rooms.values()):
        chosen += [found.pop() for found in rooms.values() if found]
    return chosen[:count]


def listed(report: str) -> list[Mutant]:
    """The mutants that a report lists, as far as their lines are there still."""
    found = []
    for path, number, *lines in re.findall(
        r"(?m)^(wengert\S+):(\d+): .*\n- (.*)\n\+ (.*)$", report
    ):
        made = mutants(path, source(path)) if (trials.ROOT / path).exists() else []
        alike = [mutant for mutant in made if list(mutant.difference(source(path))) == lines]
        alike.sort(key=lambda mutant: abs(line_of(mutant) - int(number)))
        found += alike[:1]
    return found


def line_of(mutant: Mutant) -> int:
    return source(mutant.path).count(b"\n", 0, mutant.start) + 1


def plan(mutant: Mutant, reached: dict[str, reach.Reach], budget: float) -> tuple[Plan, bool]:
    """The tests of the narrowest lines around the edit that any test reaches, file by file.

    And whether a test is seen to reach it: what runs in a profiler's hook or in a process of its
    own is not, so that some tests of the file run for those edits, too.
    """
    found: dict[str, list[str]] = {}
    seen = True
    for first, last in (*mutant.spans, (1, 10**5)):
        lines = (1 << last + 1) - (1 << first)
        for file, tests in reached.items():
            there = [name for name, (_, at) in tests.items() if at.get(mutant.path, 0) & lines]
            found[file] = [name for name in there if name != reach.IMPORT]
        if any(found.values()):
            break
        imports = (
            tests[reach.IMPORT][1].get(mutant.path, 0) for tests in reached.values() if tests
        )
        if mutant.in_function and not any(lines & at for at in imports):
            seen = False
    if not seen:
        return ordered(found, reached, mutant.room, budget / 4), False
    if mutant.in_function:
        return ordered(found, reached, mutant.room, budget), True
    # A table, a declaration: what reads it may be elsewhere. Of many files the cheapest run first.
    whole = {file: [*tests][1:] for file, tests in reached.items()}
    near = {file: whole[file] for file, names in found.items() if names}
    others = {file: names for file, names in whole.items() if file not in near}
    steps = ordered(near, reached, mutant.room, budget)
    return steps + ordered(others, reached, "", 3 * budget), True


def ordered(
    found: dict[str, list[str]], reached: dict[str, reach.Reach], room: str, budget: float
) -> Plan:
    """The room's own files first, then the fastest, as far as the budget goes."""
    steps = []
    for file, names in found.items():
        seconds = {name: reached[file][name][0] for name in names}
        order = sorted(names, key=seconds.__getitem__)
        # What takes longest of a file is left out, if that makes room for others.
        while order and sum(map(seconds.__getitem__, order)) > budget / 2:
            order.pop()
        if order:
            cost = reached[file][reach.IMPORT][0] + sum(map(seconds.__getitem__, order))
            steps.append((not file.startswith(f"tests/{room}/"), cost, file, order))
    taken: Plan = []
    for _, cost, file, order in sorted(steps):
        if cost <= budget:
            taken.append((file, order))
            budget -= cost
    return taken


def judge(
    choice: list[Mutant],
    reached: dict[str, reach.Reach],
    trees: list[Path],
    budget: float,
    limit: float,
) -> dict[Mutant, str]:
    first = quick(reached)
    plans = {mutant: plan(mutant, reached, budget) for mutant in choice}
    tasks = deque((mutant, plan(mutant, first, budget)[0], "quick") for mutant in choice)
    verdicts = {}
    with suppress(KeyboardInterrupt):  # and what is known by then is reported
        for (mutant, _, profile), result in trials.run_all(trees, tasks, _try, limit):
            steps, seen = plans[mutant]
            if profile == "quick" and result == "":
                # In a process of its own: there are tests that can't run twice in one.
                tasks.appendleft((mutant, steps, "ci"))
            elif result:
                verdicts[mutant] = QUICKLY if profile == "quick" else KILLED
                if profile != "quick":
                    show(mutant, f"{KILLED}, {result}")
            elif result is None:
                verdicts[mutant] = LATE
                show(mutant, LATE)
            else:
                verdicts[mutant] = SURVIVED if seen else UNREACHED
                tests = f" {sum(len(names) for _, names in steps)} tests" if seen else ""
                show(mutant, f"{verdicts[mutant]}{tests}")
    return verdicts


def _try(tree: Path, task: tuple[Mutant, Plan, str]) -> str:
    """The first test that fails, or the file where pytest does."""
    sys.dont_write_bytecode = True
    mutant, steps, profile = task
    last = tree / "mutated.txt"
    if last.exists():
        (tree / last.read_text()).write_bytes(source(last.read_text()))
    last.write_text(mutant.path)
    (tree / mutant.path).write_bytes(mutant.edited(source(mutant.path)))
    for file, names in steps:
        chosen = reach.Choose(names)
        # No tests: an edit has changed the names of these.
        if trials.run_tests(file, chosen, "-x", f"--hypothesis-profile={profile}") not in (0, 5):
            return chosen.failed[0] if chosen.failed else file
    return ""


@cache
def source(path: str) -> bytes:
    """The text of a file as it was when this began."""
    return (trials.ROOT / path).read_bytes()


def explained(mutant: Mutant) -> bool:
    return (mutant.path, *mutant.difference(source(mutant.path))) in EQUIVALENT


def show(mutant: Mutant, verdict: str) -> None:
    if not explained(mutant):
        old, new = mutant.difference(source(mutant.path))
        print(f"{mutant.path}:{line_of(mutant)}: {verdict}\n- {old}\n+ {new}", flush=True)


def report(verdicts: dict[Mutant, str]) -> int:
    """Print a table by room; equivalent mutants that survive are left out.

    Of those that stay, what `pytest` alone kills and what all tests kill is told in per cent. A
    test that does not end kills, too. "Timed out" are those whose tests take too long together,
    which nothing has noticed by then.
    """
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant, verdict in verdicts.items():
        if verdict in (QUICKLY, KILLED) or not explained(mutant):
            rooms[mutant.room][verdict] += 1
    columns = QUICKLY, KILLED, LATE, SURVIVED, UNREACHED
    total: Any = sum(rooms.values(), Counter())
    print(f"\n{'room':12}{'mutants':>9}" + "".join(f"{name:>13}" for name in columns))
    for room, counts in (*sorted(rooms.items()), ("all", total)):
        row = "".join(f"{counts[name]:13}" for name in columns)
        print(f"{room:12}{counts.total():9}{row}")
    quickly, killed = total[QUICKLY], total[QUICKLY] + total[KILLED]
    count = max(total.total(), 1)
    print(f"killed by pytest: {quickly / count:.1%}; by all tests on NumPy: {killed / count:.1%}")
    return 1 if total[SURVIVED] + total[UNREACHED] else 0


if __name__ == "__main__":
    sys.exit(main())
