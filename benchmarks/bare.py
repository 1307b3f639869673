"""What an eager row's calls of NumPy take by themselves: the least that the row can take.

``python -m benchmarks.bare chain momentum`` runs each row once and writes down which functions of
NumPy's namespace it calls, and with what; then it times the row, and these calls alone, in turns.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable
from time import process_time
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.report import describe_machine, table
from benchmarks.timing import interleave, repeated
from benchmarks.workloads.rows import ROWS

__all__ = ["calls", "report"]

Call = tuple[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class _Watch:
    """While it is entered, the calls of a namespace's functions from outside of it."""

    def __init__(self, namespace: ModuleType) -> None:
        self.made: list[Call] | None = []
        self._homes = [namespace, namespace.linalg, namespace.fft]
        self._own = [dict(vars(home)) for home in self._homes]

    def __enter__(self) -> list[Call]:
        for home, own in zip(self._homes, self._own, strict=True):
            for name, value in own.items():
                if name[0] != "_" and callable(value) and not isinstance(value, type):
                    setattr(home, name, self._watched(name, value))
        self._look_up_anew()
        assert self.made is not None
        return self.made

    def __exit__(self, *error: object) -> None:
        for home, own in zip(self._homes, self._own, strict=True):
            vars(home).update(own)
        self._look_up_anew()

    def _look_up_anew(self) -> None:
        from wengert.tape.primitive import PRIMITIVES

        for primitive in PRIMITIVES.values():
            primitive.kernels.clear()

    def _watched(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*operands: Any, **parameters: Any) -> Any:
            made, self.made = self.made, None  # what it calls itself is a part of it
            if made is None:
                return function(*operands, **parameters)
            made.append((name, function, operands, parameters))
            try:
                return function(*operands, **parameters)
            finally:
                self.made = made

        return watched


def calls(compute: Callable[[], Any]) -> list[Call]:
    """The calls of NumPy's namespace that a function makes."""
    from wengert.backends import namespaces

    with _Watch(namespaces[np.ndarray]) as made:
        compute()
    return made


def _replayed(made: list[Call]) -> Callable[[], None]:
    def replay() -> None:
        for _, function, operands, parameters in made:
            function(*operands, **parameters)

    return replay


def _costs(made: list[Call], repeats: int = 5) -> dict[str, float]:
    """Seconds by function: of each call the least of some."""
    found: dict[str, float] = defaultdict(float)
    for name, function, operands, parameters in made:
        times = []
        for _ in range(repeats):
            start = process_time()
            function(*operands, **parameters)
            times.append(process_time() - start)
        found[name] += min(times)
    return found


def report(names: list[str], *, rounds: int, markdown: bool) -> None:
    """Measure rows and print the table."""
    lines = [["microseconds", "Wengert", "its calls alone", "share", "calls", "the dearest"]]
    for name in names:
        row = ROWS[name]
        compute = row.make(*row.size).contestants(["Wengert"])["Wengert"]
        for _ in range(3):
            compute()
        made = calls(compute)
        works = {"Wengert": repeated(compute), "calls": repeated(_replayed(made))}
        times = interleave(works, rounds=rounds, block=0.004)
        costs = sorted(_costs(made).items(), key=lambda item: -item[1])
        total = sum(cost for _, cost in costs)
        dearest = ", ".join(f"{what} {cost / total:.0%}" for what, cost in costs[:3])
        lines.append(
            [
                row.label,
                f"{times.median('Wengert') * 1e6:.0f}",
                f"{times.median('calls') * 1e6:.0f}",
                f"{times.ratio('calls', 'Wengert').median:.0%}",
                str(len(made)),
                dearest,
            ]
        )
    print(table(lines, markdown=markdown))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bare", description=__doc__)
    parser.add_argument("rows", nargs="+", choices=list(ROWS), metavar="ROW")
    parser.add_argument("--keep-freed-memory", action="store_true")
    parser.add_argument("--quick", action="store_true", help="few rounds, for a first look")
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    options = parser.parse_args()

    if options.keep_freed_memory:
        import wengert as wg

        wg.keep_freed_memory()
    print(describe_machine(), end="\n\n")
    report(options.rows, rounds=7 if options.quick else 30, markdown=options.markdown)
