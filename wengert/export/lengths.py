"""Symbolic lengths of arrays, with which the user's code computes during a recording.

A recording is of one batch size. If Python branches on a length or rounds it, the program contains
only the outcome: ``min(len(x), 5)`` is 5 in all recordings. So symbolic lengths log each such
operation, and it is evaluated again for other batch sizes.
"""

import builtins
import inspect
import math
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, zip_longest
from threading import get_ident
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from wengert.compiler.capture.lines import callers
from wengert.compiler.capture.raw import RawArray
from wengert.compiler.capture.traced import current
from wengert.compiler.capture.traced_number import SymbolicNumber
from wengert.compiler.owners import of_user
from wengert.compiler.program import Line
from wengert.export.sizes import Sized, differ, sized
from wengert.ops.axes import bending
from wengert.tape.tensor import Tensor

__all__ = ["Asked", "Lengths", "differing", "refusal", "watched"]

#: A shape that was read, by its number, and the axis.
Key = tuple[int, int]
#: Computes a number from lengths, which are given by their keys.
Formula = Callable[[Callable[[Key], Any]], Any]


class Asked(NamedTuple):
    """An operation on lengths whose outcome is constant in the program.

    Attributes
    ----------
    line : Line or None
        The user's line.
    kind : str
        "decides" for a comparison, "rounds" for a function that is not smooth, "clips" for a
        `Bent` one, and "leaves" for an operation whose result is not symbolic.
    told : str
        The operation, for an error.
    keys : frozenset
        The lengths that the outcome depends on.
    answer : callable
        Computes the outcome; for a comparison with the sign of the difference.
    """

    line: Line | None
    kind: str
    told: str
    keys: frozenset[Key]
    answer: Formula


class Bent(NamedTuple):
    """A call of a piecewise function of lengths and constants, such as clipping.

    Attributes
    ----------
    line : Line or None
        The user's line.
    function : callable
        The function.
    numbers : tuple
        Its operands.
    small : bool
        Whether lengths below the recorded ones matter.
    """

    line: Line | None
    function: Callable[..., Any]
    numbers: tuple[Any, ...]
    small: bool


class Lengths:
    """The symbolic lengths of one recording, and the operations on them.

    Attributes
    ----------
    given : list of (Line, tuple)
        The shapes that were read, with the lines.
    asked : list of Asked
        Operations by the user's code.
    bent : list of Bent
        Piecewise functions called by Wengert's own code.
    """

    def __init__(self) -> None:
        self.given: list[tuple[Line, tuple[int, ...]]] = []
        self.asked: list[Asked] = []
        self.bent: list[Bent] = []
        self._trace: Any = None

    def _begin(self) -> None:
        trace = current()
        if trace is not self._trace:  # a new recording, such as after a `ChangeError`
            self.given, self.asked, self.bent, self._trace = [], [], [], trace

    def hear(self, function: Callable[..., Any], numbers: tuple[Any, ...], small: bool) -> None:
        """Log a call of a piecewise function."""
        self._begin()
        frames = callers(sys._getframe(2))
        frame = next((x for x in frames if of_user(x.f_globals.get("__name__"))), None)
        line = None if frame is None else _line(frame)
        self.bent.append(Bent(line, function, tuple(map(_plain, numbers)), small))

    def shape(self, lengths: Sequence[int], frame: FrameType) -> tuple[int, ...]:
        """Return a shape as symbolic lengths."""
        self._begin()
        number = len(self.given)
        self.given.append((_line(frame), tuple(lengths)))
        return tuple(
            [
                _Int(n)._from(self, frozenset({(number, axis)}), _looked((number, axis)))
                for axis, n in enumerate(lengths)
            ]
        )


def _looked(key: Key) -> Formula:
    return lambda at: at(key)


class _Length(SymbolicNumber):
    """A symbolic number that was computed from lengths: an int or a float."""

    lengths: Lengths
    keys: frozenset[Key]
    formula: Formula

    def _from(self, lengths: Lengths, keys: frozenset[Key], formula: Formula) -> Any:
        self.lengths, self.keys, self.formula = lengths, keys, formula
        return self

    def _ask(self, kind: str, told: str, others: Sequence[Any], answer: Formula) -> None:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_globals is globals():
            frame = frame.f_back
        if frame is not None and of_user(frame.f_globals.get("__name__")):
            keys = self.keys.union(*[x.keys for x in others if isinstance(x, _Length)])
            self.lengths.asked.append(Asked(_line(frame), kind, told, keys, answer))

    def plain_number(self) -> Any:
        """The plain Python number."""
        return _plain(self)

    # The interface of traced numbers; int64 holds each length.
    present, number = plain_number, property(plain_number)

    def regularise(self, arrays: list[Any], weak: bool) -> type:
        """Replace symbolic numbers beside traced arrays by plain ones, in place."""
        arrays[:] = map(_plain, arrays)
        trace: Any = current()
        return trace.regularise(arrays, weak)  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        return _plain, (_plain(self),)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        if not any(isinstance(x, Tensor | RawArray | np.ndarray) for x in inputs):
            self._ask("leaves", f"NumPy's {ufunc.__name__}", inputs, lambda at: None)
        elif any(isinstance(x, Tensor | RawArray) for x in inputs):
            return NotImplemented
        return getattr(ufunc, method)(*map(_plain, inputs), **keywords)


class _Int(int, _Length):
    """A symbolic int."""


class _Float(float, _Length):
    """A symbolic float."""


def _plain(x: Any) -> Any:
    """The plain number of a symbolic one; other objects unchanged."""
    if isinstance(x, _Int):
        return int.__pos__(x)
    return float.__pos__(x) if isinstance(x, _Float) else x


def _formula(x: Any) -> Formula:
    return x.formula if isinstance(x, _Length) else lambda at: x


def _number(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, np.generic)


def _made(function: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """Call a function of symbolic numbers; the result is symbolic."""
    result = function(*map(_plain, operands))
    kind = {int: _Int, float: _Float}.get(type(result))
    if kind is None:  # a complex number, or a tuple
        return result
    of = [x for x in operands if isinstance(x, _Length)]
    formulas = [*map(_formula, operands)]
    keys = frozenset().union(*[x.keys for x in of])
    return kind(result)._from(
        of[0].lengths, keys, lambda at: function(*[formula(at) for formula in formulas])
    )


def _arithmetic(
    name: str, function: Callable[..., Any], *, rounds: bool, reflected: bool
) -> Callable[..., Any]:
    def method(self: Any, other: Any, *modulus: Any) -> Any:
        if not all(map(_number, (other, *modulus))):
            return NotImplemented
        operands = (*((other, self) if reflected else (self, other)), *modulus)
        made = _made(function, operands)
        if rounds or modulus:
            formula = _formula(made) if isinstance(made, _Length) else lambda at: None
            self._ask("rounds", name, operands, formula)
        return made

    return method


def _smooth(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: _made(function, (self,))


def _rounding(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *given: Any) -> Any:
        made = _made(lambda x: function(x, *given), (self,))
        self._ask("rounds", function.__name__, (), made.formula)
        return made

    return method


def _comparison(name: str, function: Callable[..., bool]) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        if not _number(other):
            return NotImplemented
        mine, others = _formula(self), _formula(other)

        def answer(at: Callable[[Key], Any]) -> Any:
            x, y = mine(at), others(at)
            # If the sign changes between two tried sizes, equality may hold for one between.
            return function(x, y), (x > y) - (x < y) if name in ("==", "!=") else 0

        self._ask("decides", name, (other,), answer)
        return function(_plain(self), _plain(other))

    return method


def _leaving(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any) -> Any:
        self._ask("leaves", function.__name__, (), lambda at: None)
        return function(_plain(self))

    return method


def _method_leaving(kind: type, name: str) -> Callable[..., Any]:
    function = getattr(kind, name)

    def method(self: Any, *given: Any, **keywords: Any) -> Any:
        self._ask("leaves", name.strip("_"), (), lambda at: None)
        return function(_plain(self), *given, **keywords)

    return method


def _truth(self: Any) -> bool:
    formula = self.formula
    self._ask("decides", "a condition", (), lambda at: (bool(formula(at)), 0))
    return bool(_plain(self))


def _divmod(self: Any, other: Any) -> Any:
    return (self // other, self % other) if _number(other) else NotImplemented


def _rdivmod(self: Any, other: Any) -> Any:
    return (other // self, other % self) if _number(other) else NotImplemented


def _complete() -> None:
    smooth = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "**": "pow"}
    rounding = {"//": "floordiv", "%": "mod"}
    bits = {"&": "and_", "|": "or_", "^": "xor", "<<": "lshift", ">>": "rshift"}
    order = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
    for kind in (_Int, _Float):
        binary = chain(smooth.items(), rounding.items(), bits.items() if kind is _Int else ())
        for sign, name in binary:
            function = pow if name == "pow" else getattr(operator, name)  # with a modulus
            short = name.strip("_")
            for prefix in ("", "r"):
                method = _arithmetic(
                    sign, function, rounds=name not in smooth.values(), reflected=bool(prefix)
                )
                setattr(kind, f"__{prefix}{short}__", method)
        for sign, name in order.items():
            setattr(kind, f"__{name}__", _comparison(sign, getattr(operator, name)))
        asking: list[tuple[Any, Sequence[Any]]] = [
            (_rounding, (abs, round, math.floor, math.ceil, math.trunc)),
            (_leaving, (int, float, hash, repr, str)),
            (_smooth, (operator.neg, operator.pos)),
        ]
        for make, functions in asking:
            for each in functions:
                setattr(kind, f"__{each.__name__}__", make(each))
        others = {"bool": _truth, "divmod": _divmod, "rdivmod": _rdivmod}
        for name, other in others.items():
            setattr(kind, f"__{name}__", other)
        for name in ("__format__", "as_integer_ratio", "bit_count", "bit_length", "hex"):
            if hasattr(kind, name):
                setattr(kind, name, _method_leaving(kind.__mro__[1], name))
        if hasattr(kind, "is_integer"):
            setattr(kind, "is_integer", _method_leaving(kind.__mro__[1], "is_integer"))  # noqa: B010
    setattr(_Int, "__invert__", _smooth(operator.invert))  # noqa: B010 -- as those above


_complete()


def _line(frame: FrameType) -> Line:
    return Line(frame.f_code.co_filename, frame.f_lineno)


# -- a recording -----------------------------------------------------------------------------------


@contextmanager
def watched() -> Iterator[Lengths]:
    """Give the user's code symbolic lengths, in this thread and ``with`` block."""
    lengths, thread = Lengths(), get_ident()
    count, shape_of, size_of = builtins.len, np.shape, np.size

    def user() -> FrameType | None:
        """The caller's frame if it is the user's code; None for other code."""
        frame = sys._getframe(2)
        mine = get_ident() == thread and of_user(frame.f_globals.get("__name__"))
        return frame if mine else None

    def length(x: Any, /) -> int:
        frame = user() if isinstance(x, Tensor | RawArray) and x.shape else None
        return count(x) if frame is None else lengths.shape(x.shape, frame)[0]

    def numpys_shape(a: Any) -> tuple[int, ...]:
        frame = user() if isinstance(a, Tensor | RawArray) else None
        return shape_of(a) if frame is None else lengths.shape(a.shape, frame)

    def numpys_size(a: Any, axis: Any = None) -> int:
        frame = user() if isinstance(a, Tensor | RawArray) else None
        if frame is None:
            return size_of(a, axis)
        found = lengths.shape(a.shape, frame)
        chosen = range(count(found)) if axis is None else axis
        return math.prod([found[i] for i in (chosen if np.iterable(chosen) else (chosen,))])

    def shape(before: Callable[[Any], Any]) -> property:
        def get(self: Any) -> tuple[int, ...]:
            found, frame = before(self), user()
            return found if frame is None else lengths.shape(found, frame)

        return property(get)

    def size(before: Callable[[Any], Any]) -> property:
        def get(self: Any) -> int:
            frame = user()
            return before(self) if frame is None else math.prod(lengths.shape(self.shape, frame))

        return property(get)

    def of_numbers(module: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*operands: Any, **keywords: Any) -> Any:
            given = (*operands, *keywords.values())
            of = [x for x in chain(given, *filter(_several, given)) if isinstance(x, _Length)]
            if of and module == "math" and name in _FOLLOWED:
                return _made(function, operands)
            if of and not any(isinstance(x, Tensor | RawArray) for x in given):
                of[0]._ask("leaves", f"{module}.{name}", of[1:], lambda at: None)
            return function(*operands, **keywords)

        return call

    def put(kind: Any, name: str, made: Any) -> None:
        replaced.append((kind, name, vars(kind).get(name)))
        setattr(kind, name, made)

    replaced: list[tuple[Any, str, Any]] = []
    token = bending.set(lengths.hear)
    try:
        put(builtins, "len", length)
        put(np, "shape", numpys_shape)
        put(np, "size", numpys_size)
        for kind in (Tensor, RawArray):
            put(kind, "size", size(_elements if kind is RawArray else vars(kind)["size"].fget))
            put(kind, "shape", shape(inspect.getattr_static(kind, "shape").fget))
        for name in _MATH:
            put(math, name, of_numbers("math", name, getattr(math, name)))
        for name in _NUMPYS:
            put(np, name, of_numbers("np", name, getattr(np, name)))
        yield lengths
    finally:
        bending.reset(token)
        for kind, name, before in reversed(replaced):
            if before is None:
                delattr(kind, name)
            else:
                setattr(kind, name, before)


#: Functions of `math` with symbolic results, and those that call a method of the number.
_FOLLOWED = frozenset(
    {"cbrt", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "pow", "sqrt"}
)
_ASKING = frozenset({"ceil", "floor", "prod", "trunc"})
#: The other functions of `math`.
_MATH = sorted(
    name for name, x in vars(math).items() if callable(x) and name not in _ASKING and name[0] != "_"
)


#: Functions of NumPy whose results from symbolic numbers are plain.
_NUMPYS = (
    *("amax", "amin", "array", "asanyarray", "asarray", "average", "clip", "cumsum", "diff"),
    *("digitize", "interp", "max", "mean", "median", "min", "percentile", "prod", "quantile"),
    *("round", "searchsorted", "select", "sort", "std", "sum", "unique", "var", "where"),
)


def _several(x: Any) -> bool:
    return isinstance(x, tuple | list)


def _elements(x: Any) -> int:
    return math.prod(x.shape)


# -- all batch sizes -------------------------------------------------------------------------------

#: The batch sizes for which outcomes are compared: all small ones, some of each magnitude.
_TRIED = (*range(1, 1025), *(2**k + d for k in range(11, 32) for d in (-1, 0, 1)))


def differing(found: Sequence[Lengths], sizes: Sequence[int]) -> dict[int, Asked]:
    """Return the small batch sizes for which an outcome differs, each with the operation.

    Raises
    ------
    ValueError
        If outcomes differ for larger batches, or are unknown. It names the line.
    """
    lines = [[line for line, _ in each.given] for each in found]
    for given in zip_longest(*lines):
        if any(line != given[0] for line in given):
            raise differ("how often a length is asked for", next(filter(None, given)))
    formulas = _formulas(found, sizes)
    others: dict[int, Asked] = {}
    _refuse_bent(found, sizes, others)
    for asked in found[0].asked:
        followed = asked.keys & formulas.keys()
        if not followed:
            continue
        if asked.kind == "leaves" or not all(formulas[key] for key in followed):
            raise _unknown(asked)
        answers = _answers(asked, found[0], formulas)
        recorded = [answers(n) for n in sizes]
        fit = None
        if asked.kind == "rounds":
            fit = None if any(x is None for x in recorded) else sized(recorded, sizes)
            if fit is None:
                raise _unknown(asked)
        for n in (*_TRIED, *sizes, 0):
            answer = answers(n)
            if answer == recorded[0] if fit is None else _close(answer, fit, n):
                continue
            if n >= min(sizes):
                raise _unknown(asked, n)
            others.setdefault(n, asked)
    return others


def _refuse_bent(found: Sequence[Lengths], sizes: Sequence[int], others: dict[int, Asked]) -> None:
    """Raise if a piecewise function has another formula in larger batches; note small ones.

    Raises
    ------
    ValueError
        It names the line.
    """
    done = set[Any]()
    for calls in zip(*[each.bent for each in found], strict=False):
        line, function, _, small = calls[0]
        if any((x.line, x.function) != (line, function) for x in calls):
            return  # then the programs differ, too, and `common` raises
        operands = [*zip(*[x.numbers for x in calls], strict=True)]
        if all(len(set(x)) == 1 for x in operands):
            continue
        given = _fitted(operands, sizes)
        known = (function, given)
        if known in done:
            continue
        done.add(known)
        asked = Asked(line, "clips", "", frozenset(), lambda at: None)
        answers = [_parts(function(*x.numbers)) for x in calls]
        fit = None if given is None else _fitted([*zip(*answers, strict=True)], sizes)
        if given is None or fit is None:
            raise _unknown(asked)
        for n in (*_TRIED, *sizes, 0):
            if n < min(sizes) and not small:
                continue
            answer = _parts(function(*_at(given, n)))
            if not all(map(math.isclose, answer, _at(fit, n))):
                if n >= min(sizes):
                    raise _unknown(asked, n)
                others.setdefault(n, asked)


def _parts(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def _fitted(numbers: Sequence[Sequence[Any]], sizes: Sequence[int]) -> tuple[Any, ...] | None:
    """Equal numbers, and formulas for those that differ; None if one has no formula."""
    fits = [x[0] if len(set(x)) == 1 else sized(x, sizes) for x in numbers]
    lacking = any(fit is None and set(x) != {None} for fit, x in zip(fits, numbers, strict=True))
    return None if lacking else tuple(fits)


def _at(fits: Sequence[Any], n: int) -> tuple[Any, ...]:
    return tuple([x.at(n) if isinstance(x, Sized) else x for x in fits])


def _close(answer: Any, fit: Sized, n: int) -> bool:
    """Whether an outcome is the formula's value."""
    return answer is not None and math.isclose(answer, fit.at(n))


def _formulas(found: Sequence[Lengths], sizes: Sequence[int]) -> dict[Key, Sized | None]:
    """The formulas of lengths that depend on the batch size; None for unknown ones."""
    formulas: dict[Key, Sized | None] = {}
    for number, shapes in enumerate(zip(*[each.given for each in found], strict=True)):
        for axis, lengths in enumerate(zip(*[shape for _, shape in shapes], strict=True)):
            if len(set(lengths)) > 1:
                formulas[number, axis] = sized(lengths, sizes)
    return formulas


def _answers(
    asked: Asked, first: Lengths, formulas: Mapping[Key, Sized | None]
) -> Callable[[int], Any]:
    """The outcome as a function of the batch size; None where Python raises."""

    def answer(n: int) -> Any:
        def at(key: Key) -> Any:
            formula = formulas.get(key)
            return first.given[key[0]][1][key[1]] if formula is None else formula.at(n)

        try:
            return asked.answer(at)
        except (ArithmeticError, ValueError):
            return None

    return answer


def _unknown(asked: Asked, n: int | None = None) -> ValueError:
    if asked.kind == "leaves":
        what = (
            f"{asked.told} is given a length, and what comes of it is not followed (compute with "
            "the length itself, as in len(x) ** 0.5): it"
        )
    elif asked.kind == "clips":
        what = "what a constant leaves of a length, as the end of a slice does,"
    else:
        verb = "decides by" if asked.kind == "decides" else "gives for"
        what = f"what {asked.told} {verb} a length"
    return differ(what, asked.line, "" if n is None else f", as in a batch of {n}")


def refusal(asked: Asked, n: int) -> ValueError:
    """Return the error for a function that accepts a batch with another outcome."""
    return _unknown(asked, n)
