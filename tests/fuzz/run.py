"""Examining random programs, one or a block of them."""

import re
import warnings
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from tests.fuzz.judge import agree, by_pytorch, by_wengert, compare, confirmed, unstable
from tests.fuzz.recipes import program

__all__ = ["Finding", "block", "examine"]


class Finding(NamedTuple):
    """A program that is not as it should be."""

    kind: str
    message: str
    snippet: str


def examine(
    seed: int,
    *,
    oracle: bool = True,
    backends: Iterable[str] = (),
    forward: bool = True,
    avoid: frozenset[str] = frozenset(),
) -> tuple[Counter[str], list[Finding]]:
    """Run the program of a seed in every way that is asked for.

    Parameters
    ----------
    seed : int
        Which program.
    oracle : bool
        Whether to compare with PyTorch.
    backends : iterable of str
        Which backends to compare with NumPy.
    forward : bool
        Whether to compare forward mode with reverse mode.
    avoid : frozenset of str
        Recipes to leave out.
    """
    counts: Counter[str] = Counter()
    found: list[Finding] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            made = program(seed, avoid)
        except Exception as error:
            return counts, [
                Finding("writing", f"{type(error).__name__}: {error}", f"# seed {seed}")
            ]
        counts["programs"] += 1
        counts["statements"] += len(made.lines)
        counts.update(made.features)

        def note(kind: str, message: str | None) -> None:
            if message is not None:
                found.append(Finding(kind, message, made.snippet))

        def attempt(kind: str, run: Any, *args: Any, **keywords: Any) -> Any:
            try:
                return run(made, *args, **keywords)
            except Exception as error:
                note(kind, f"{type(error).__name__}: {error}")

        again = partial(by_wengert, forward=False)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", wg.ViewWarning)
            answer = attempt("NumPy", by_wengert, forward=forward)
        warned = any(issubclass(one.category, wg.ViewWarning) for one in told)
        if answer is None:
            return counts, found
        if forward:
            note("forward and reverse", agree(made, answer))
        if oracle:
            try:
                expected = by_pytorch(made)
            except Exception as error:
                expected = None
                if "views" in made.features and re.search(
                    "in-?place|single memory location", str(error)
                ):
                    counts["refused by PyTorch"] += 1
                else:
                    note("PyTorch", f"{type(error).__name__}: {error}")
            if expected is not None:
                different = compare(made, answer, expected, oracle=True)
                if different and warned:
                    counts["warned of"] += 1
                    different = None
                if different and confirmed(made, different, answer, again):
                    counts["wrong in PyTorch, by differences"] += 1
                    different = None
                if different and unstable(made, answer, again):
                    counts["ill-conditioned"] += 1
                    different = None
                note("PyTorch", different)
        for backend in backends:
            other = attempt(backend, by_wengert, backend, forward=False)
            if other is not None:
                counts[f"on {backend}"] += 1
                different = compare(made, answer, other, oracle=False)
                if different and unstable(made, answer, again):
                    counts["ill-conditioned"] += 1
                    different = None
                note(backend, different)
    return counts, found


def block(seeds: range, every: int, options: dict[str, Any]) -> Any:
    """Examine some programs: each ``every``-th on the other backends, too."""
    if options["oracle"]:
        import torch

        torch.set_num_threads(1)
    backends = options.pop("backends")
    counts: Counter[str] = Counter()
    found: list[Finding] = []
    for seed in seeds:
        others = backends if seed % every == 0 else ()
        more, findings = examine(seed, backends=others, **options)
        counts.update(more)
        found += findings
    return counts, found
