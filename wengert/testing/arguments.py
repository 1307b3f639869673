"""Arguments of a function under test: what they may be, and strategies that draw them together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

from wengert.backends import as_dtype
from wengert.tape.tensor import Tensor
from wengert.testing import strategies as ws

Strategy: TypeAlias = st.SearchStrategy[Any]
Pattern = tuple[int | str | EllipsisType, ...]

#: Values that are drawn often if they are in the domain, as rules tend to fail there.
SPECIAL = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5)


@dataclass(frozen=True)
class Argument:
    """An array argument: its shape, dtype and domain.

    Parameters
    ----------
    shape : tuple of int, str or Ellipsis
        A string is a length, the same wherever the check's arguments have that string. A leading
        ``...`` stands for further axes; the arguments that have it broadcast against each other.
    dtype : str or sequence of str, optional
        One dtype, or several to draw from; that of the check by default.
    domain : tuple of float
        Bounds of the elements, and of their real and imaginary parts.
    away_from : sequence of float
        Kinks and poles that no element comes near to.
    special : sequence of float
        Elements that come often, in the domain or not.
    unique : bool
        Whether no element comes twice.
    elements : strategy, optional
        Draws the elements, in place of the four parameters above.
    differentiated : bool
        Whether derivatives with respect to it are checked, if it is floating or complex.

    Examples
    --------
    >>> from wengert.testing import Argument, check_gradients
    >>> positive = Argument(("n",), domain=(0.1, 5.0))
    >>> check_gradients(wg.log, positive, examples=5, backends=["numpy"])
    """

    shape: Pattern = (...,)
    dtype: str | Sequence[str] | None = None
    domain: tuple[float, float] = (-2.0, 2.0)
    away_from: Sequence[float] = ()
    special: Sequence[float] = ()
    unique: bool = False
    elements: Strategy | None = None
    differentiated: bool = True

    def __post_init__(self) -> None:
        if not _is_pattern(self.shape):
            raise TypeError(
                f"{self.shape!r} is no shape: it should be a tuple of lengths, of names for "
                "lengths, and of ... as its first element at most"
            )

    def specials(self) -> list[float]:
        """The special values that are in the domain, and away from kinks."""
        low, high = self.domain
        return [
            x
            for x in SPECIAL
            if low <= x <= high and all(abs(x - point) >= ws.STEP for point in self.away_from)
        ]

    def generic(self, count: int, start: float) -> np.ndarray[Any, Any]:
        """Numbers of the domain without special ones.

        They are evenly spread, away from kinks, no short fractions, and no two are equal.
        """
        golden = 0.6180339887498949
        low, high = self.domain
        share = (np.arange(1, 4 * count + 4) * golden + start) % 1
        points = low + (high - low) * (0.02 + 0.96 * share)
        for kink in self.away_from:
            points = points[abs(points - kink) > (high - low) / 64]
        return np.resize(points, count) if points.size else np.full(count, (low + high) / 2)

    def around(self, place: int, dtype: str, side: int) -> Any:
        """An array with one of `specials` among `generic` numbers."""
        known = self.dtype if isinstance(self.dtype, str) else (self.dtype or [dtype])[0]
        kind = as_dtype(known)
        shape = tuple(n if isinstance(n, int) else side for n in self.shape if n is not ...)
        values = self.generic(math.prod(shape), 0.13 * place)
        special = self.specials()
        if special and values.size:
            values[0] = special[place % len(special)]
        made = np.reshape(values, shape).astype(kind.name)
        return made if self.differentiated else _untracked(made)

    def arrays(self, shape: tuple[int, ...], dtypes: Sequence[str]) -> Strategy:
        """Strategy of the argument's values, of a known shape."""
        given = dtypes if self.dtype is None else self.dtype
        kinds = [given] if isinstance(given, str) else list(given)
        special = self.specials()

        def drawn(dtype: str) -> Strategy:
            return ws.arrays(
                dtype,
                shape,
                elements=self.elements,
                unique=self.unique,
                domain=self.domain,
                away_from=self.away_from,
                special=[] if self.unique else [*special, *self.special],
            )

        arrays = st.one_of([drawn(as_dtype(kind).name) for kind in kinds])
        return arrays if self.differentiated else arrays.map(_untracked)


@dataclass(frozen=True)
class Axis:
    """An axis of another argument, counted from either end.

    Parameters
    ----------
    of : int
        That argument's position.
    several : bool
        Whether tuples of axes are drawn, too.
    none : bool
        Whether None is drawn, too.

    Examples
    --------
    >>> from wengert.testing import Axis, check_gradients
    >>> def total(x, axis):
    ...     return wg.sum(x, axis=axis)
    >>> check_gradients(total, ("n", "m"), Axis(), examples=5, backends=["numpy"])
    """

    of: int = 0
    several: bool = False
    none: bool = False


def _untracked(array: np.ndarray[Any, Any]) -> Tensor:
    return Tensor(np.array(array))


def _is_pattern(value: Any) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(part, str) or type(part) is int or (part is ... and at == 0)
        for at, part in enumerate(value)
    )


def understood(specifications: Sequence[Any]) -> list[Any]:
    """Return specifications with an `Argument` for each shape."""
    return [
        Argument((...,)) if given is ... else Argument(given) if _is_pattern(given) else given
        for given in specifications
    ]


@st.composite  # type: ignore[untyped-decorator]
def special_calls(draw: Any, specifications: Sequence[Any], dtype: str, side: int) -> Any:
    """Calls in which one element of each array is special.

    There are so few that all of them are drawn. Lengths without a value are ``side``.
    """
    place = draw(st.integers(0, len(SPECIAL) - 1))
    values: list[Any] = []
    for at, given in enumerate(understood(specifications)):
        if isinstance(given, Argument):
            values.append(given.around((place + at) % len(SPECIAL), dtype, side))
        elif isinstance(given, st.SearchStrategy):
            values.append(draw(given))
        else:
            values.append(0 if isinstance(given, Axis) else given)
    return tuple(values)


@st.composite  # type: ignore[untyped-decorator]
def calls(
    draw: Any,
    specifications: Sequence[Any],
    *,
    dtypes: Sequence[str] = ("float64",),
    min_side: int = 0,
    max_side: int = 3,
    max_dims: int = 3,
) -> Any:
    """Tuples of arguments that fit together.

    Parameters
    ----------
    specifications : sequence
        For each argument an `Argument`; a shape as `Argument` takes it, or ``...`` for any; an
        `Axis`; a strategy; or the value itself.
    dtypes : sequence of str
        Of the arrays, where an `Argument` does not say it.
    min_side, max_side, max_dims : int
        Bounds for lengths and numbers of axes.
    """
    wanted = understood(specifications)
    open_ended = [
        at
        for at, given in enumerate(wanted)
        if isinstance(given, Argument) and given.shape[:1] == (...,)
    ]
    fixed = max((len(wanted[at].shape) - 1 for at in open_ended), default=0)
    leading: dict[int, tuple[int, ...]] = {}
    if open_ended:
        drawn = draw(
            ws.broadcastable(
                len(open_ended),
                max_dims=max(0, max_dims - fixed),
                min_side=min_side,
                max_side=max_side,
            )
        )
        leading = dict(zip(open_ended, drawn, strict=True))
    lengths: dict[str, int] = {}
    values: list[Any] = []
    for at, given in enumerate(wanted):
        if isinstance(given, Argument):
            named = [part for part in given.shape if part is not ...]
            for part in named:
                if isinstance(part, str) and part not in lengths:
                    lengths[part] = draw(st.integers(min_side, max_side))
            shape = tuple(lengths[n] if isinstance(n, str) else n for n in named)
            values.append(draw(given.arrays((*leading.get(at, ()), *shape), dtypes)))
        elif isinstance(given, st.SearchStrategy):
            values.append(draw(given))
        else:
            values.append(given)
    for at, given in enumerate(wanted):
        if isinstance(given, Axis):
            values[at] = _axis(draw, given, len(np.shape(values[given.of])))
    return tuple(values)


def _axis(draw: Any, given: Axis, ndim: int) -> Any:
    if given.several:
        return draw(ws.axes(ndim, none=given.none))
    choices = [ws.axis(ndim)] if ndim else []
    if given.none:
        choices.append(st.none())
    return draw(st.one_of(choices) if choices else st.nothing())
