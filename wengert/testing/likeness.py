"""How a wrong Jacobian differs from the right one, in words: a factor, transposed, zero."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from wengert.testing.differences import Reals, Segment

#: The relative distance up to which two numbers count as the same.
NEAR = 1e-5
#: The share of a wrong number up to which the right one is zero, but for rounding.
ZERO = 1e-10
#: Constants by which wrong derivatives are often off, with their names.
NAMED = {
    "pi": math.pi,
    "2 pi": 2 * math.pi,
    "1/pi": 1 / math.pi,
    "log 2": math.log(2),
    "1/log 2": 1 / math.log(2),
    "log 10": math.log(10),
    "1/log 10": 1 / math.log(10),
    "sqrt 2": math.sqrt(2),
    "1/sqrt 2": 1 / math.sqrt(2),
    "sqrt pi": math.sqrt(math.pi),
    "2/sqrt pi": 2 / math.sqrt(math.pi),
    "sqrt(pi)/2": math.sqrt(math.pi) / 2,
}
Array = np.ndarray[Any, Any]


class Found(NamedTuple):
    """Two Jacobians that differ: a row for each real number of the results."""

    #: The Jacobian that was given, the right one, and where they differ.
    analytic: Reals
    numerical: Reals
    wrong: Array
    #: The arrays that columns and rows belong to.
    inputs: list[Segment]
    results: list[Segment]


def factor(found: Found) -> float | None:
    """Return the factor by which all wrong entries are off; None if there is no single one."""
    wrong = found.wrong
    given, right = found.analytic[wrong], found.numerical[wrong]
    least = NEAR * _largest(found.numerical)
    if not given.size or not np.all(np.isfinite(given)) or np.any(abs(right) <= least):
        return None
    ratios = given / right
    return float(ratios[0]) if np.ptp(ratios) <= NEAR * abs(ratios[0]) else None


def name_factor(number: float) -> str:
    """Return a factor as a fraction, a multiple of a constant, or a decimal number."""
    fraction = Fraction(number).limit_denominator(64)
    if fraction != 1 and abs(float(fraction) - number) <= NEAR * abs(number):
        return str(fraction)
    for name, value in NAMED.items():
        for sign in (1, -1):
            if abs(sign * value - number) <= NEAR * abs(number):
                return name if sign > 0 else f"-{name}"
    return f"{number:.{7 if fraction == 1 else 6}g}"


def likeness(found: Found) -> str | None:
    """Return how the wrong Jacobian differs from the right one; None if no pattern is found."""
    wrong = found.wrong
    given, right = found.analytic[wrong], found.numerical[wrong]
    if np.any(np.isnan(given)):
        return "nan where it should be a number"
    if np.any(np.isinf(given)):
        return "infinite where it should be finite"
    if not given.any():
        return "zero where it should not be"
    if np.all(abs(right) <= ZERO * np.max(abs(given))):
        return "not zero where it should be"
    by = factor(found)
    if by is not None and abs(by + 1) <= NEAR:
        return "the sign is flipped"
    least = NEAR * _largest(found.numerical)
    for words, other in _others(found):
        if least and np.allclose(found.analytic, other, NEAR, least):
            return words
    if by is not None:
        return f"off by a factor of {name_factor(by)}"
    if given.size > 1 and np.ptp(given - right) <= NEAR * abs(given - right)[0]:
        return f"off by the same amount everywhere, {given[0] - right[0]:.6g}"
    return None


def _largest(entries: Reals) -> float:
    return float(np.max(abs(entries), initial=0.0, where=np.isfinite(entries)))


def _others(found: Found) -> Iterator[tuple[str, Reals]]:
    """Common mistakes in words, each with the right Jacobian changed by it."""
    right = found.numerical
    columns, rows = _signs(found.inputs), _signs(found.results)
    if np.any(columns < 0):
        yield "conjugated", right * columns
    if np.any(columns < 0) and np.any(rows < 0):
        yield "conjugated", right * columns * rows[:, None]
    if np.any(rows < 0):
        yield "conjugated", right * rows[:, None]
    for words in ("transposed", "in reverse order"):
        blocks, start, changed = [], 0, False
        for segment in found.inputs:
            shape, is_complex = segment
            block = right[:, start : start + segment.size]
            start += segment.size
            square = len(shape) > 1 and shape[-1] == shape[-2]
            if (square or (words != "transposed" and shape)) and block.size:
                # The last axis is that of real and imaginary parts.
                parts = block.reshape(len(right), *shape, 2 if is_complex else 1)
                moved = parts.swapaxes(-2, -3) if words == "transposed" else np.flip(parts, -2)
                block = moved.reshape(block.shape)
                changed = True
            blocks.append(block)
        if changed:
            yield words, np.concatenate(blocks, axis=1)


def _signs(segments: list[Segment]) -> Reals:
    """-1 for each imaginary part, and 1 for each other number."""
    return np.concatenate(
        [np.resize((1.0, -1.0) if s.complex else (1.0,), s.size) for s in segments] or [np.zeros(0)]
    )
