"""Plans: what recording an operation saves, worked out once from its rules' signatures."""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

Rule = Callable[..., Any]


class Plan:
    """What recording an operation saves, and how its rules take it, for some tracked inputs.

    Attributes
    ----------
    primitive : Primitive
        Of which operation.
    steps : tuple of (int, callable, int, slice)
        For each tracked input: its position, its rule, and which of the saved values are the
        rule's: the position of the only one (or -1), and the slice of all.
    take : callable or None
        ``take((*arrays, out))`` gives the tuple to save, if inputs and result are all it needs.
    origins : tuple
        Where each saved value came from: an input's position, -1 for the result, a range for a
        tuple of variadic inputs, or None for a static value. The interpreters read it.
    """

    __slots__ = ("getters", "origins", "primitive", "steps", "take", "tracked")

    getters: list[Callable[..., Any]]
    origins: tuple[Any, ...]
    steps: tuple[tuple[int, Rule, int, slice], ...]
    take: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None

    def __init__(self, primitive: Any, tracked: tuple[bool, ...]) -> None:
        self.primitive = primitive
        self.tracked = tracked

    def _work_out(self) -> None:
        primitive, tracked = self.primitive, self.tracked
        steps: list[tuple[int, Rule, int, slice]] = []
        sources: list[tuple[str, Any]] = []
        for position, needed in enumerate(tracked):
            if needed:
                rule = primitive.rule(position)
                start = len(sources)
                names = argument_names(rule)[2:]
                sources.extend(self._source(name, position) for name in names)
                end = len(sources)
                steps.append((position, rule, start if end == start + 1 else -1, slice(start, end)))
        self.steps = tuple(steps)
        arity = len(tracked)
        first = len(primitive.fixed)
        self.origins = tuple(
            at if what == "input" else range(first, arity) if what == "variadic" else None
            for what, at in sources
        )
        self.take = _taker(sources)
        self.getters = [_getter(what, at, first, arity) for what, at in sources]

    def save(self, arrays: Sequence[Any], out: Any, parameters: dict[str, Any]) -> tuple[Any, ...]:
        """Return what the rules asked for. Where ``take`` is not None, it does the same faster."""
        return tuple([get(arrays, out, parameters) for get in self.getters])

    def _source(self, name: str, position: int) -> tuple[str, Any]:
        primitive = self.primitive
        first = len(primitive.fixed)
        if name in primitive.fixed:
            return "input", primitive.fixed.index(name)
        if name == "out":
            return "input", -1
        if name == primitive.variadic:
            return "variadic", None
        if name == "index" and primitive.variadic:
            return "constant", position - first
        if name.endswith("_shape"):
            owner = name.removesuffix("_shape")
            if owner in primitive.fixed:
                return "shape", primitive.fixed.index(owner)
            if owner == "out":
                return "shape", -1
            if owner == primitive.variadic:
                return "shapes", None
        return "parameter", name


class Unused(Plan):
    """A plan before its first use, when it is worked out: no program uses every plan."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        self._work_out()
        # Of another class from now on, for with a `__getattr__` CPython finds attributes later.
        self.__class__ = Plan  # type: ignore[assignment]
        return getattr(self, name)


def _taker(sources: list[tuple[str, Any]]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]] | None:
    """A C function that takes the saved values from ``(*arrays, out)``, if they are all there."""
    if any(what != "input" for what, _ in sources):
        return None
    positions = [at for _, at in sources]
    if len(positions) > 1:
        return itemgetter(*positions)
    if not positions:
        return itemgetter(slice(0))
    return itemgetter(slice(positions[0], None if positions[0] == -1 else positions[0] + 1))


def _getter(what: str, at: Any, first: int, arity: int) -> Callable[..., Any]:
    """A function of ``(arrays, out, parameters)`` that gives one value to save."""
    if what == "parameter":
        return lambda arrays, out, parameters: parameters[at]
    if what == "constant":
        return lambda arrays, out, parameters: at
    if what == "variadic":
        return lambda arrays, out, parameters: tuple(arrays[first:arity])
    if what == "shapes":
        return lambda arrays, out, parameters: tuple([a.shape for a in arrays[first:arity]])
    if what == "shape":
        if at == -1:
            return lambda arrays, out, parameters: out.shape
        return lambda arrays, out, parameters: getattr(arrays[at], "shape", ())
    if at == -1:
        return lambda arrays, out, parameters: out
    return lambda arrays, out, parameters: arrays[at]


def argument_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names of a Python function's positional parameters."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount]
