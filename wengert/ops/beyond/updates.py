"""Functional updates: an array with a part of it changed, also where a key repeats elements."""

import math
from typing import Any, Final

import numpy as np

from wengert.backends.keys import SLOT
from wengert.interpreters.batching import by_composite
from wengert.interpreters.namespaces import differentiable
from wengert.ops.conversion import as_storable, asarray
from wengert.ops.creation import arange, zeros
from wengert.ops.data_type import astype, check_storable
from wengert.ops.elementwise import (
    add,
    divide,
    equal,
    maximum,
    minimum,
    multiply,
    remainder,
    subtract,
)
from wengert.ops.elementwise import pow as power
from wengert.ops.index_composites import combine_rows
from wengert.ops.indexing import getitem, parse_key, replace, take
from wengert.ops.manipulation import broadcast_to, concat, reshape
from wengert.ops.searching import searchsorted, where
from wengert.ops.shares import in_float32
from wengert.ops.sorting import argsort
from wengert.tape.primitive import Primitive
from wengert.tape.promotion import SCALARS, number_type
from wengert.tape.tensor import Tensor, wrap

# -- extremes, sums and products of the values for each row ----------------------------------------

# The arrays have one axis here, and non-negative integers say to which row each value belongs.


def _extreme_composite(better: str) -> Any:
    def forward(xp: Any, x: Any, value: Any, rows: Any) -> Any:
        if not rows.shape[0]:
            return xp.asarray(x, copy=True)
        pick = getattr(xp, better)
        best, held = combine_rows(xp, value, rows, x.shape[0], pick)
        return xp.where(held, pick(x, best), x)

    return forward


def _sums(xp: Any, value: Any, rows: Any, n: int) -> Any:
    """For each of ``n`` rows the sum of its values."""
    return xp.scatter_add(value, rows, key=(SLOT,), shape=(n,))


def _shares(xp: Any, x: Any, value: Any, rows: Any, out: Any, beaten: str) -> tuple[Any, Any, Any]:
    """Masks of beaten elements and values, and the share that each tie has of its row."""
    lose = getattr(xp, beaten)
    lost_x, lost_value = lose(x, out), lose(value, xp.take(out, rows, axis=0))
    tied = xp.astype(~lost_value, out.dtype)
    number = xp.astype(~lost_x, out.dtype) + _sums(xp, tied, rows, x.shape[0])
    # NaN beats all without being equal to them, as in `max`: the derivatives there are NaN.
    unknown = xp.isnan(out) & (number > 1)
    return lost_x, lost_value, xp.where(unknown, math.nan, xp.ones_like(number) / number)


def _extreme(name: str, better: str, beaten: str) -> Any:
    # Rules and forward rules multiply by the shares.
    @in_float32
    def by_x(xp: Any, g: Any, x: Any, value: Any, rows: Any, out: Any) -> Any:
        lost, _, share = _shares(xp, x, value, rows, out, beaten)
        return xp.where(lost, 0, g * share)

    @in_float32
    def value_rule(xp: Any, g: Any, x: Any, value: Any, rows: Any, out: Any) -> Any:
        _, lost, share = _shares(xp, x, value, rows, out, beaten)
        return xp.where(lost, 0, xp.take(g * share, rows, axis=0))

    @in_float32
    def value_tangent(xp: Any, t: Any, x: Any, value: Any, rows: Any, out: Any) -> Any:
        _, lost, share = _shares(xp, x, value, rows, out, beaten)
        moved = _sums(xp, xp.where(lost, 0, t), rows, x.shape[0])
        return moved * share

    return Primitive(
        name,
        ["x", "value", "rows"],
        {"x": by_x, "value": value_rule},
        composite=_extreme_composite(better),
        jvps={"x": by_x, "value": value_tangent},
        batch=by_composite,
    ).bind


_scatter_max = _extreme("scatter_max", "maximum", "less")
_scatter_min = _extreme("scatter_min", "minimum", "greater")

# -- the product of what comes to a place ----------------------------------------------------------


def _products(xp: Any, value: Tensor, rows: Tensor, n: int) -> Tensor:
    """For each of ``n`` rows the product of its values; 1 for none.

    The values are sorted by their rows, and those of each row are multiplied in pairs, in pairs of
    pairs, and so on. So no derivative divides by a value, and no row has a part in another.
    """
    order = argsort(rows)
    rows, value = take(rows, order, axis=0), take(value, order, axis=0)
    count, span = rows.shape[0], 1
    nth = subtract(
        arange(count, dtype=rows.dtype, device=xp.device(rows)),
        astype(searchsorted(rows, rows), rows.dtype),
    )
    while span < count:
        # A factor is taken where its place in its row is an odd multiple of the span.
        taken = equal(remainder(nth[span:], 2 * span), span)
        factors = where(taken, value[span:], 1)
        value = concat([multiply(value[:-span], factors), value[-span:]])
        span *= 2
    total = _sums(xp, where(equal(nth, 0), value, 0), rows, n)
    blank = zeros((n,), dtype="bool", device=xp.device(rows))
    return where(replace(blank, rows, True), total, 1)


# -- the public class ----------------------------------------------------------------------------


class At:
    """A part of an array, to be read or replaced: what `at` returns.

    Every method takes what broadcasts to the shape of ``x[key]``, a Tensor, an array or a number,
    and returns a new Tensor of the shape and dtype of ``x``. None changes ``x``.
    """

    __slots__ = ("_keys", "_x")

    def __init__(self, x: Tensor, keys: tuple[Any, ...] = ()) -> None:
        self._x, self._keys = x, keys

    def __getitem__(self, key: Any) -> "At":
        if self._keys:
            raise ValueError("at: the index is given already; write wg.at(x)[key] with one key")
        return At(self._x, (key,))

    __call__ = __getitem__

    def __repr__(self) -> str:
        return f"<at of a Tensor of shape {tuple(self._x.shape)}>"

    @property
    def _key(self) -> Any:
        if not self._keys:
            raise ValueError("at: the index is missing; write wg.at(x)[key].set(value)")
        return self._keys[0]

    def get(self) -> Tensor:
        """Return ``x[key]``."""
        return getitem(self._x, self._key)

    def set(self, value: Any, /) -> Tensor:
        """Replace by ``value``; of several for one element one is kept, mostly the last.

        The derivative goes to the value that is kept.
        """
        return replace(self._x, self._key, value, "at.set")

    def add(self, value: Any, /) -> Tensor:
        """Add ``value``, once for each time that the key names an element."""
        return self._combine(value, "add", add, _sums)

    def subtract(self, value: Any, /) -> Tensor:
        """Subtract ``value``, once for each time that the key names an element."""
        return self._combine(value, "subtract", subtract, _sums)

    def multiply(self, value: Any, /) -> Tensor:
        """Multiply by ``value``, once for each time that the key names an element."""
        return self._combine(value, "multiply", multiply, _products)

    def divide(self, value: Any, /) -> Tensor:
        """Divide by ``value``, as `multiply`; for floating and complex dtypes."""
        if not self._x.dtype.inexact:
            raise TypeError(
                f"at.divide needs a floating or complex array, not {self._x.dtype.name}"
            )
        return self._combine(value, "divide", divide, _products)

    def power(self, value: Any, /) -> Tensor:
        """Raise to the power of ``value``; of several for one element one is kept, as in `set`.

        Powers of powers depend on their order, so they are not accumulated.
        """
        return self.set(power(self.get(), self._fitting(value, "power")))

    def max(self, value: Any, /) -> Tensor:
        """Take the larger of it and ``value``; those that tie share the derivative evenly."""
        return self._best(value, "max", maximum, _scatter_max)

    def min(self, value: Any, /) -> Tensor:
        """Take the smaller of it and ``value``; those that tie share the derivative evenly."""
        return self._best(value, "min", minimum, _scatter_min)

    def _best(self, value: Any, function: str, pick: Any, scatter: Any) -> Tensor:
        if self._x.dtype.complex:
            raise TypeError(f"at.{function} needs a real dtype: complex numbers have no order")
        return self._update(value, function, pick, scatter)

    def _combine(self, value: Any, function: str, operation: Any, gather: Any) -> Tensor:
        """``operation`` of each element and the values gathered for it."""

        def scatter(x: Tensor, value: Tensor, rows: Tensor) -> Tensor:
            return operation(x, gather(differentiable, value, rows, x.shape[0]))  # type: ignore[no-any-return]

        return self._update(value, function, operation, scatter)

    def _update(self, value: Any, function: str, operation: Any, scatter: Any) -> Tensor:
        """The array after ``operation``, or ``scatter`` if the key may repeat an element."""
        value = self._fitting(value, function)
        found = self._rows(value)
        if found is None:
            return self.set(operation(self.get(), value))
        return reshape(scatter(*found), self._x.shape)

    def _fitting(self, value: Any, function: str) -> Any:
        """``value`` as a number, or as a Tensor of the dtype of ``x``."""
        dtype = self._x.dtype
        if dtype.kind == "bool":
            raise TypeError(f"at.{function} needs a numeric array, not bool")
        if isinstance(value, np.generic):
            value = value.item()
        if type(value) is bool:
            value = int(value)
        elif value is not None and number_type(value) not in SCALARS:
            value = self._beside(value, function)
        check_storable(f"at.{function}", value, dtype)
        return value if number_type(value) in SCALARS else astype(value, dtype, copy=False)

    def _beside(self, value: Any, function: str) -> Tensor:
        """A Tensor as it is, data of Python or NumPy beside ``x``, another array as a Tensor."""
        if isinstance(value, list | tuple):
            value = as_storable(f"at.{function}", value, self._x.dtype)
        if isinstance(value, Tensor):
            return value
        if isinstance(value, np.ndarray):
            return asarray(value, device=differentiable.device(self._x))
        return Tensor(value)

    def _rows(self, value: Any) -> tuple[Tensor, Tensor, Tensor] | None:
        """``x``, the value and its rows, all of one axis; None where the key repeats no element."""
        x = self._x
        _, indices = parse_key(x, self._key)
        if all(i.dtype.kind == "bool" for i in indices):
            return None
        device = differentiable.device(x)
        size = math.prod(x.shape)
        places = getitem(reshape(arange(size, dtype="int64", device=device), x.shape), self._key)
        if number_type(value) in SCALARS:
            value = asarray(value, dtype=x.dtype, device=device)
        value = broadcast_to(value, places.shape)
        return reshape(x, (-1,)), reshape(value, (-1,)), reshape(places, (-1,))


_NOWHERE: Final = object()


def at(x: Any, key: Any = _NOWHERE, /) -> At:
    """Update a part of an array functionally: ``at(x)[key].add(value)``.

    The key may also be given as ``at(x, key)``. The methods ``set``, ``add``, ``subtract``,
    ``multiply``, ``divide``, ``power``, ``min``, ``max`` and ``get`` are differentiable in ``x``
    and the value. Where integer arrays name a place several times, sums, products and extremes take
    in all the values, on every library. Methods raise `IndexError` for a wrong index; `TypeError`
    if the value is of a higher kind than ``x``; `ValueError` if it does not broadcast, or there is
    no key, or two. array-api-extra: ``at``.

    Examples
    --------
    >>> wg.at(wg.zeros(3))[wg.asarray([0, 2, 2])].add(1.0)
    tensor([1., 0., 2.])
    """
    made = At(wrap(x))
    return made if key is _NOWHERE else made[key]
