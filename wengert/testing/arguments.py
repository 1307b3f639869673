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
#: Magnitudes beside those of the usual values, at which differences can still judge many functions.
SCALES = (4.0, 1e1, 1e2, 1e-2, 1e-4, 1e4, 1e-6, 1e6, 1e9)


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
    domain : tuple of float, optional
        Bounds of the elements, and of their real and imaginary parts. By default most calls have
        elements from -2 to 2, and a fifth magnitudes from 1e-6 to 1e10.
    away_from : sequence of float
        Kinks and poles that no element comes near to.
    special : sequence of float
        Elements that come often, in the domain or not.
    unique : bool
        Whether no element comes twice.
    elements : strategy, optional
        Draws the elements, in place of ``domain``, ``away_from`` and ``special``.
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
    domain: tuple[float, float] | None = None
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

    @property
    def usual(self) -> tuple[float, float]:
        """Bounds of the elements of most calls."""
        return self.domain or (-2.0, 2.0)

    def holds(self, values: Any, bounds: tuple[float, float] | None) -> Any:
        """Whether each value is within bounds, if any, and away from kinks."""
        low, high = bounds or (-math.inf, math.inf)
        values = np.asarray(values)
        within = (low <= values) & (values <= high)
        return within & np.all([abs(values - x) >= ws.STEP for x in self.away_from], axis=0)

    def specials(self) -> list[float]:
        """The special values that are in the domain, and away from kinks."""
        return [x for x in SPECIAL if self.holds(x, self.usual)]

    def generic(self, count: int, start: float) -> np.ndarray[Any, Any]:
        """Numbers of the domain that are none of the `specials`.

        They are evenly spread, away from kinks, no short fractions, and no two are equal.
        """
        golden = 0.6180339887498949
        low, high = self.usual
        share = (np.arange(1, 4 * count + 4) * golden + start) % 1
        points = low + (high - low) * (0.02 + 0.96 * share)
        for kink in self.away_from:
            points = points[abs(points - kink) > (high - low) / 64]
        return np.resize(points, count) if points.size else np.full(count, (low + high) / 2)

    def around(self, place: int, dtype: str, side: int, scaled: bool) -> Any:
        """An array with one of `specials` among `generic` numbers, or one of another scale."""
        known = self.dtype if isinstance(self.dtype, str) else (self.dtype or [dtype])[0]
        kind = as_dtype(known)
        named = [n for n in self.shape if scaled or n is not ...]
        shape = tuple(n if isinstance(n, int) else side for n in named)
        values = self.generic(math.prod(shape), 0.13 * place)
        special = self.specials()
        if scaled and kind.inexact:
            # Of each scale once all positive, as domains often are, and once of both signs.
            share = (0.3 + np.arange(values.size) * 0.6180339887498949 + 0.29 * place) % 1
            signs = np.where(np.arange(values.size) % 2 < place % 2, -1.0, 1.0)
            far = signs * np.round(10**share, 2) * SCALES[place // 2]
            values = np.where(self.holds(far, self.domain), far, values)
        elif special and values.size:
            values[0] = special[place % len(special)]
        made = np.reshape(values, shape).astype(kind.name)
        return made if self.differentiated else _as_constant(made)

    def arrays(self, shape: tuple[int, ...], dtypes: Sequence[str]) -> Strategy:
        """Strategy of the argument's values, of a known shape."""
        given = dtypes if self.dtype is None else self.dtype
        kinds = [given] if isinstance(given, str) else list(given)
        special = self.specials()

        def values_of(dtype: str) -> Strategy:
            return ws.arrays(
                dtype,
                shape,
                elements=self.elements,
                unique=self.unique,
                domain=self.usual,
                away_from=self.away_from,
                special=[] if self.unique else [*special, *self.special],
            )

        arrays = st.one_of([values_of(as_dtype(kind).name) for kind in kinds])
        return arrays if self.differentiated else arrays.map(_as_constant)


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


def _as_constant(array: np.ndarray[Any, Any]) -> Tensor:
    return Tensor(np.array(array))


def _is_pattern(value: Any) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(part, str) or type(part) is int or (part is ... and at == 0)
        for at, part in enumerate(value)
    )


def as_arguments(specifications: Sequence[Any]) -> list[Any]:
    """Return specifications with an `Argument` for each shape."""
    return [
        Argument((...,)) if given is ... else Argument(given) if _is_pattern(given) else given
        for given in specifications
    ]


@st.composite  # type: ignore[untyped-decorator]
def special_calls(
    draw: Any, specifications: Sequence[Any], dtype: str, side: int, scaled: bool = False
) -> Any:
    """Calls in which one element of each array is special, or all have one of the `SCALES`.

    There are so few that all of them are drawn. Lengths without a value are ``side``.
    """
    count = 2 * len(SCALES) if scaled else len(SPECIAL)
    place = draw(st.integers(0, count - 1))
    values: list[Any] = []
    for at, given in enumerate(as_arguments(specifications)):
        if isinstance(given, Argument):
            values.append(given.around((place + at) % count, dtype, side, scaled))
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
        Least and greatest length of an axis, and greatest number of axes, where none is given.
    """
    wanted = as_arguments(specifications)
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
