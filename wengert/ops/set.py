"""Set functions: the standard's chapter of that name. Their values have no derivative."""

from typing import Any, NamedTuple

from wengert.interpreters.batching import alone
from wengert.ops.define import operation
from wengert.ops.elementwise import logical_not
from wengert.tape.primitive import UNDEFINED
from wengert.tape.tensor import Tensor

__all__ = [
    "UniqueAllResult",
    "UniqueCountsResult",
    "UniqueInverseResult",
    "isin",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


class UniqueAllResult(NamedTuple):
    """Result of `unique_all`.

    Examples
    --------
    >>> wg.unique_all(wg.asarray([3, 1, 3])).indices
    tensor([1, 0])
    """

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """Result of `unique_counts`.

    Examples
    --------
    >>> wg.unique_counts(wg.asarray([3, 1, 3])).counts
    tensor([1, 2])
    """

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """Result of `unique_inverse`.

    Examples
    --------
    >>> wg.unique_inverse(wg.asarray([3, 1, 3])).inverse_indices
    tensor([1, 0, 1])
    """

    values: Tensor
    inverse_indices: Tensor


@operation(x=UNDEFINED, several=True)
def unique_all(x: Any, /) -> UniqueAllResult:
    """Return the distinct elements, where each is first, which each element is, and how often.

    ``x`` is taken as flat. Each NaN counts as distinct. ``indices`` are the first occurrences in
    the flat array; ``inverse_indices`` rebuild ``x`` from the values. Differentiating through the
    values is an error. Array API standard.

    Examples
    --------
    >>> values, indices, inverse, counts = wg.unique_all(wg.asarray([3, 1, 3]))
    >>> values, counts
    (tensor([1, 3]), tensor([1, 2]))
    """
    return UniqueAllResult(*unique_all.run(x))


@operation(x=UNDEFINED, several=True)
def unique_counts(x: Any, /) -> UniqueCountsResult:
    """Return the distinct elements and how often each occurs.

    ``x`` is taken as flat. Returns ``values`` and ``counts``, as in `unique_all`.
    Array API standard.

    Examples
    --------
    >>> values, counts = wg.unique_counts(wg.asarray([3, 1, 3]))
    >>> values, counts
    (tensor([1, 3]), tensor([1, 2]))
    """
    return UniqueCountsResult(*unique_counts.run(x))


@operation(x=UNDEFINED, several=True)
def unique_inverse(x: Any, /) -> UniqueInverseResult:
    """Return the distinct elements and which of them each element is.

    ``x`` is taken as flat. Returns ``values`` and ``inverse_indices``, as in `unique_all`.
    Array API standard.

    Examples
    --------
    >>> x = wg.asarray([3.0, 1.0, 3.0])
    >>> values, inverse = wg.unique_inverse(x)
    >>> values[inverse]  # x again
    tensor([3., 1., 3.])
    """
    return UniqueInverseResult(*unique_inverse.run(x))


@operation(x=UNDEFINED)
def unique_values(x: Any, /) -> Tensor:
    """Return the distinct elements.

    ``x`` is taken as flat. The result is 1-d, of the dtype of ``x``; each NaN counts as distinct.
    Differentiating through it is an error. Array API standard.

    Examples
    --------
    >>> wg.unique_values(wg.asarray([3, 1, 3]))
    tensor([1, 3])
    """
    return unique_values.run(x)


@operation(dtypes={"x1 x2": "any"}, compares=True, batch=alone(0))
def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Tell for each element whether it is among given values. Array API standard.

    Examples
    --------
    >>> wg.isin(wg.asarray([1, 2, 3]), wg.asarray([2, 5]))
    tensor([False,  True, False])
    """
    # Not every library that has `isin` heeds its own ``invert``.
    found: Tensor = isin.run(x1, x2)
    return logical_not(found) if invert else found
