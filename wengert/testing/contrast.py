"""Where a failure occurs and where it does not, in words: a failing case among its neighbours.

A neighbour differs from the failing case in one respect. If it passes, the message states that
respect; if it fails too, or cannot be checked, the message does not mention it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from wengert.func.trees import tree_flatten
from wengert.testing.arguments import SPECIAL, Argument, Axis
from wengert.testing.backends import installed_backends
from wengert.testing.likeness import Found, factor, likeness, name_factor
from wengert.testing.verdicts import BadlyScaledError, GradcheckError, KinkError

Array = np.ndarray[Any, Any]
#: The outcome of a neighbour: its error, that it is right, or that it could not be checked.
Outcome = GradcheckError | Literal["right", "unknown"]

#: Words, and changed leaves: if the words are true, the first change passes and the others fail.
Statement = tuple[str, Sequence[dict[int, Any]]]

#: How many neighbours are tried at most.
MOST = 24
#: How many statements are made at most; the first ones tell most.
STATEMENTS = 3


class Modes(NamedTuple):
    """The parameters by which a check includes forward and reverse mode."""

    forward: str
    reverse: str


#: By the order of the derivative.
MODES = {
    1: Modes("check_forward_ad", "check_backward_ad"),
    2: Modes("check_fwd_over_rev", "check_rev_over_rev"),
}


class Case(NamedTuple):
    """One call that was checked: with arguments on a backend, by the check of an order."""

    order: int
    #: With NumPy arrays for Tensors.
    call: tuple[Any, ...]
    #: Whether the elements of arrays lie apart in memory.
    apart: bool
    #: Of `gradcheck` or `gradgradcheck`.
    options: dict[str, Any]
    backend: str


def explain(
    error: GradcheckError, case: Case, again: Callable[[Case], Outcome], arguments: Sequence[Any]
) -> tuple[list[str], str | None]:
    """Return statements of where a case fails, and what the wrong derivative looks like.

    ``again`` returns the `Outcome` of a case; ``arguments`` are the specifications of its call.
    """
    said: list[str] = []
    if isinstance(error, KinkError | BadlyScaledError):  # the message names the reason
        return said, None
    if "not deterministic" in str(error):  # neighbours fail or pass by chance
        return said, None
    if case.order == 2:
        said.append("only in the second derivative: the first is right")
    if "the forward derivative" in str(error):
        said.append("only in forward mode: reverse mode is right")
    elif case.options.get(MODES[case.order].forward):
        alone = {**case.options, MODES[case.order].reverse: False, "check_grad_dtypes": False}
        if again(case._replace(options=alone)) == "right" and error.found is not None:
            said.append("only in reverse mode: forward mode is right")
    if case.apart and again(case._replace(apart=False)) == "right":
        said.append("only where an array's elements are not contiguous")
    other = "array_api_strict" if case.backend == "numpy" else "numpy"
    if other in installed_backends() and again(case._replace(backend=other)) == "right":
        said.append(f"only on {case.backend}: on {other} it is right")
    contrast = Contrast(lambda call: again(case._replace(call=call)), case.call, arguments)
    how = contrast.how(error.found)
    said += contrast.where()
    if not said and contrast.failed:
        said.append(f"{contrast.failed} of {contrast.tried} cases beside it fail too")
    return said, how


class Contrast:
    """A failing case and its neighbours.

    ``check`` returns the `Outcome` of a call like ``drawn``, which fails; ``arguments`` are the
    specifications that it was drawn from.
    """

    def __init__(
        self,
        check: Callable[[tuple[Any, ...]], Outcome],
        drawn: tuple[Any, ...],
        arguments: Sequence[Any],
    ) -> None:
        self.check, self.arguments = check, arguments
        self.leaves, self.structure = tree_flatten(drawn)
        self.top = list(drawn)
        self.tried = self.failed = 0
        self.moving = [
            i
            for i, leaf in enumerate(self.leaves)
            if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fc"
        ]

    def outcome(self, changed: dict[int, Any]) -> Outcome:
        """The outcome of the case with some leaves replaced."""
        if self.tried >= MOST:
            return "unknown"
        self.tried += 1
        leaves = [changed.get(i, leaf) for i, leaf in enumerate(self.leaves)]
        found = self.check(self.structure.unflatten(leaves))
        self.failed += isinstance(found, GradcheckError)
        return found

    def where(self) -> list[str]:
        """Statements of where the case fails, the most telling first."""
        said: list[str] = []
        for family in (self._shapes, self._axes, self._numbers, self._values):
            for words, (changed, *alike) in family():
                if len(said) == STATEMENTS:
                    return said
                if self.outcome(changed) == "right" and all(
                    isinstance(self.outcome(other), GradcheckError) for other in alike
                ):
                    said.append(words)
                    break  # of one family the first that is true: the others follow from it
        return said

    def how(self, found: Found | None) -> str | None:
        """What the wrong derivative looks like, such as a factor that grows with a length."""
        if found is None or found.analytic.shape[0] == 0 or not found.wrong.any():
            return None
        by = factor(found)
        if by is not None and by > 0:
            for n in sorted({n for i in self.moving for n in self.leaves[i].shape if n > 1}):
                other = self.outcome(self._resize({n: n + 1}))
                more = getattr(other, "found", None)
                moved = factor(more) if more is not None else None
                for words, power in (("1/n", -1), ("n", 1), ("1/n**2", -2), ("n**2", 2)):
                    if moved is not None and np.allclose(
                        [by, moved], [float(n) ** power, float(n + 1) ** power], 1e-5
                    ):
                        return f"off by a factor of {words}, where n = {n} is the length of an axis"
                if moved is not None and not np.isclose(moved, by, 1e-5):
                    return (
                        f"off by a factor of {name_factor(by)} here, and of {name_factor(moved)} "
                        f"where an axis of length {n} has {n + 1}"
                    )
        return likeness(found)

    # -- neighbours ------------------------------------------------------------------------------

    def _resize(self, lengths: dict[int, int]) -> dict[int, Array]:
        """All arrays, with the lengths of axes replaced by others."""
        changed: dict[int, Array] = {}
        for i in self.moving:
            x = self.leaves[i]
            shape = tuple(lengths.get(n, n) for n in x.shape)
            if shape != x.shape:
                changed[i] = self._generic(i, shape) if not x.size else np.resize(x, shape)
        return changed

    def _shapes(self) -> Iterator[Statement]:
        arrays = {i: self.leaves[i] for i in self.moving}
        shapes = [x.shape for x in arrays.values()]
        if any(0 in shape for shape in shapes):
            yield "only for empty arrays", [self._resize({0: 2})]
        try:
            common = np.broadcast_shapes(*shapes)
        except ValueError:
            common = ()
        if len(set(shapes)) > 1 and common:
            ones = {
                i: np.array(np.broadcast_to(x, _stretch(x.shape, common)))
                for i, x in arrays.items()
            }
            longer = {
                i: x.reshape((1,) * (len(common) - x.ndim) + x.shape) for i, x in arrays.items()
            }
            full = {i: np.array(np.broadcast_to(x, common)) for i, x in arrays.items()}
            if any(ones[i].shape != x.shape for i, x in arrays.items()):
                yield "only where an axis of length 1 is stretched", [ones]
            if any(longer[i].shape != x.shape for i, x in arrays.items()):
                yield "only where an array has fewer axes than another", [longer]
            yield "only under broadcasting", [full]
        if shapes and all(shape == () for shape in shapes):
            yield (
                "only for 0-d arrays",
                [{i: np.array(np.broadcast_to(x, (2,))) for i, x in arrays.items()}],
            )
        if any(1 in shape for shape in shapes):
            yield "only where an axis has length 1", [self._resize({1: 2})]
        if any(n > 1 for shape in shapes for n in shape):
            # Of the largest elements, which a rule that is wrong for large values also fails.
            short = {
                i: np.reshape(x.flat[np.argmax(abs(x))], (1,) * x.ndim)
                for i, x in arrays.items()
                if x.size
            }
            yield "only where an axis is longer than 1", [short]
        if len(set(shapes)) == 1 and len(shapes[0]) > 1:
            yield "only for two axes or more", [{i: x.reshape(-1) for i, x in arrays.items()}]

    def _axes(self) -> Iterator[Statement]:
        for at, given in enumerate(self.arguments):
            if not isinstance(given, Axis) or at >= len(self.top):
                continue
            axis, ndim = self.top[at], np.ndim(self.top[given.of])
            place = next((i for i, leaf in enumerate(self.leaves) if leaf is axis), None)
            if place is None or type(axis) is not int:
                continue
            if axis < 0:
                yield "only for a negative axis", [{place: axis + ndim}]
            for other in range(ndim):
                if other != axis % ndim:
                    end = "the last axis" if axis % ndim == ndim - 1 else f"axis {axis % ndim}"
                    yield f"only along {end}", [{place: other}]

    def _numbers(self) -> Iterator[Statement]:
        """Complex numbers beside real ones, and flags."""
        complexes = [i for i in self.moving if self.leaves[i].dtype.kind == "c"]
        if complexes:
            yield (
                "only for complex inputs",
                [{i: np.array(self.leaves[i].real) for i in complexes}],
            )
            yield (
                "only where an imaginary part is not 0",
                [{i: self.leaves[i].real.astype(np.complex128) for i in complexes}],
            )
        for i, leaf in enumerate(self.leaves):
            if isinstance(leaf, bool):
                yield f"only where an argument is {leaf}", [{i: not leaf}]

    def _values(self) -> Iterator[Statement]:
        arrays = {i: self.leaves[i] for i in self.moving if self.leaves[i].size}
        generic = {i: self._generic(i, x.shape) for i, x in arrays.items()}
        same = [
            (i, j)
            for at, i in enumerate(arrays)
            for j in list(arrays)[at + 1 :]
            if np.array_equal(arrays[i], arrays[j])
        ]
        for i, j in same:
            words = f"only where inputs[{i}] and inputs[{j}] are the same"
            yield words, [{j: generic[j]}, {i: generic[j], j: generic[j]}]
        for special in SPECIAL:
            there = {i: x for i, x in arrays.items() if np.any(x == special)}
            if there:
                near = {i: np.where(x == special, x + self._step(i), x) for i, x in there.items()}
                yield f"only at {special:g}", [near]
        for i, x in arrays.items():
            if x.dtype.kind == "f" and np.unique(x).size < x.size:
                yield "only where elements are equal", [{i: generic[i]}]
        real = {i: x for i, x in arrays.items() if x.dtype.kind == "f"}
        small = {i: np.asarray(x / 4) for i, x in real.items()}
        if real and all(self._is_within(i, x) for i, x in small.items()):
            yield "only for large values: at a quarter of them it is right", [small]
        for sign, words in ((-1, "negative"), (1, "positive")):
            flipped = {i: np.where(sign * x > 0, -x, x) for i, x in real.items()}
            within = all(self._is_within(i, x) for i, x in flipped.items())
            if within and any(np.any(sign * x > 0) for x in real.values()):
                yield f"only for {words} values", [flipped]

    def _step(self, i: int) -> float:
        """A small step that stays in an argument's domain."""
        given = self._argument(i)
        step = 0.0371
        return (
            step if given is None or self._is_inside(given, self.leaves[i].real + step) else -step
        )

    def _is_within(self, i: int, x: Array) -> bool:
        given = self._argument(i)
        if given is None or given.elements is not None:
            return False
        return self._is_inside(given, x)

    @staticmethod
    def _is_inside(given: Argument, x: Array) -> bool:
        return given.domain is None or bool(np.all((x >= given.domain[0]) & (x <= given.domain[1])))

    def _argument(self, i: int) -> Argument | None:
        for at, value in enumerate(self.top):
            if value is self.leaves[i] and at < len(self.arguments):
                given = self.arguments[at]
                return given if isinstance(given, Argument) else None
        return None

    def _generic(self, i: int, shape: tuple[int, ...]) -> Array:
        """Values where nothing special is, within the argument's domain."""
        given = self._argument(i) or Argument(domain=(0.25, 1.75))
        real, imaginary = given.generic(2 * math.prod(shape), 0.31 * i).reshape(2, *shape)
        return np.asarray(real + 1j * imaginary if self.leaves[i].dtype.kind == "c" else real)


def _stretch(shape: tuple[int, ...], common: tuple[int, ...]) -> tuple[int, ...]:
    """A shape whose lengths of 1 are replaced by those of the common shape."""
    there = common[len(common) - len(shape) :]
    return tuple(m if n == 1 else n for n, m in zip(shape, there, strict=True))
