"""Judging a block of programs, in a process of its own or not."""

from collections import Counter

from tests.compiler.stateful.generator import drawn
from tests.compiler.stateful.judge import Finding, judged, shortest

__all__ = ["block"]


def block(seeds: range, show: int) -> tuple[int, list[tuple[str, str, str]]]:
    """Judge some programs."""
    found = []
    shown: Counter[str] = Counter()
    for seed in seeds:
        program = drawn(seed)
        try:
            finding = judged(program)
        except Exception as error:
            finding = Finding("writing", f"{type(error).__name__}: {error}", program)
        if finding is not None:
            if finding.kind != "writing" and shown[finding.kind] < show:
                finding = shortest(finding)
            shown[finding.kind] += 1
            found.append((finding.kind, f"seed {seed}: {finding.message}", finding.snippet))
    return len(seeds), found
