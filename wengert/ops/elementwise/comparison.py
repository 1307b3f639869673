"""Comparisons, logic and bits: functions whose results are not tracked."""

from typing import Any

from wengert.ops.define import elementwise
from wengert.tape.tensor import Tensor

__all__ = [
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "equal",
    "greater",
    "greater_equal",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
]


@elementwise(dtypes="any", tracked=False, compares=True)
def equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether :math:`x_1 = x_2`. A nan equals nothing. Array API standard.

    Examples
    --------
    >>> wg.equal(wg.asarray([1.0, 2.0]), 2.0)
    tensor([False,  True])
    """


@elementwise(dtypes="any", tracked=False, compares=True)
def not_equal(x1: Any, x2: Any, /) -> Tensor:
    r"""Whether :math:`x_1 \ne x_2`. Array API standard.

    Examples
    --------
    >>> wg.not_equal(wg.asarray([1.0, wg.nan]), wg.asarray([1.0, wg.nan]))
    tensor([False,  True])
    """


@elementwise(dtypes="real numeric", tracked=False, compares=True)
def less(x1: Any, x2: Any, /) -> Tensor:
    """Whether :math:`x_1 < x_2`.

    Real dtypes. Array API standard.

    Examples
    --------
    >>> wg.less(wg.asarray([1.0, 2.0, 3.0]), 2.0)
    tensor([ True, False, False])
    """


@elementwise(dtypes="real numeric", tracked=False, compares=True)
def less_equal(x1: Any, x2: Any, /) -> Tensor:
    r"""Whether :math:`x_1 \le x_2`.

    Real dtypes. Array API standard.

    Examples
    --------
    >>> wg.less_equal(wg.asarray([1.0, 2.0, 3.0]), 2.0)
    tensor([ True,  True, False])
    """


@elementwise(dtypes="real numeric", tracked=False, compares=True)
def greater(x1: Any, x2: Any, /) -> Tensor:
    """Whether :math:`x_1 > x_2`.

    Real dtypes. Array API standard.

    Examples
    --------
    >>> wg.greater(wg.asarray([1.0, 2.0, 3.0]), 2.0)
    tensor([False, False,  True])
    """


@elementwise(dtypes="real numeric", tracked=False, compares=True)
def greater_equal(x1: Any, x2: Any, /) -> Tensor:
    r"""Whether :math:`x_1 \ge x_2`.

    Real dtypes. Array API standard.

    Examples
    --------
    >>> wg.greater_equal(wg.asarray([1.0, 2.0, 3.0]), 2.0)
    tensor([False,  True,  True])
    """


@elementwise(dtypes="numeric", tracked=False)
def isfinite(x: Any, /) -> Tensor:
    """Whether neither infinite nor nan. Array API standard.

    Examples
    --------
    >>> wg.isfinite(wg.asarray([1.0, wg.inf, wg.nan]))
    tensor([ True, False, False])
    """


@elementwise(dtypes="numeric", tracked=False)
def isinf(x: Any, /) -> Tensor:
    """Whether infinite; for a complex number, whether one of its parts is. Array API standard.

    Examples
    --------
    >>> wg.isinf(wg.asarray([1.0, -wg.inf, wg.nan]))
    tensor([False,  True, False])
    """


@elementwise(dtypes="numeric", tracked=False)
def isnan(x: Any, /) -> Tensor:
    """Whether nan; for a complex number, whether one of its parts is. Array API standard.

    Examples
    --------
    >>> wg.isnan(wg.asarray([1.0, wg.inf, wg.nan]))
    tensor([False, False,  True])
    """


@elementwise(dtypes="boolean", tracked=False)
def logical_and(x1: Any, x2: Any, /) -> Tensor:
    """Whether both are true. Array API standard.

    Examples
    --------
    >>> x = wg.asarray([-1.0, 0.5, 2.0])
    >>> wg.logical_and(x > 0, x < 1)
    tensor([False,  True, False])
    """


@elementwise(dtypes="boolean", tracked=False)
def logical_or(x1: Any, x2: Any, /) -> Tensor:
    """Whether one or both are true. Array API standard.

    Examples
    --------
    >>> x = wg.asarray([-1.0, 0.5, 2.0])
    >>> wg.logical_or(x < 0, x > 1)
    tensor([ True, False,  True])
    """


@elementwise(dtypes="boolean", tracked=False)
def logical_xor(x1: Any, x2: Any, /) -> Tensor:
    """Whether exactly one is true. Array API standard.

    Examples
    --------
    >>> wg.logical_xor(wg.asarray([True, True]), wg.asarray([True, False]))
    tensor([False,  True])
    """


@elementwise(dtypes="boolean", tracked=False)
def logical_not(x: Any, /) -> Tensor:
    """Whether false. Array API standard.

    Examples
    --------
    >>> wg.logical_not(wg.asarray([True, False]))
    tensor([False,  True])
    """


@elementwise(dtypes="integer or boolean", tracked=False)
def bitwise_and(x1: Any, x2: Any, /) -> Tensor:
    """Bits that are set in both. Array API standard.

    Examples
    --------
    >>> wg.bitwise_and(wg.asarray([12, 10]), 6)
    tensor([4, 2])
    """


@elementwise(dtypes="integer or boolean", tracked=False)
def bitwise_or(x1: Any, x2: Any, /) -> Tensor:
    """Bits that are set in one or both. Array API standard.

    Examples
    --------
    >>> wg.bitwise_or(wg.asarray([12, 10]), 6)
    tensor([14, 14])
    """


@elementwise(dtypes="integer or boolean", tracked=False)
def bitwise_xor(x1: Any, x2: Any, /) -> Tensor:
    """Bits that are set in exactly one. Array API standard.

    Examples
    --------
    >>> wg.bitwise_xor(wg.asarray([12, 10]), 6)
    tensor([10, 12])
    """


@elementwise(dtypes="integer or boolean", tracked=False)
def bitwise_invert(x: Any, /) -> Tensor:
    """Bits that are not set. Array API standard.

    Examples
    --------
    >>> wg.bitwise_invert(wg.asarray([0, 1, 5]))
    tensor([-1, -2, -6])
    """


@elementwise(dtypes="integer", tracked=False)
def bitwise_left_shift(x1: Any, x2: Any, /) -> Tensor:
    """Bits of ``x1`` moved up by ``x2`` places, :math:`x_1 2^{x_2}`.

    ``x2`` is not negative. Array API standard.

    Examples
    --------
    >>> wg.bitwise_left_shift(wg.asarray([1, 3]), 2)
    tensor([ 4, 12])
    """


@elementwise(dtypes="integer", tracked=False)
def bitwise_right_shift(x1: Any, x2: Any, /) -> Tensor:
    """Bits of ``x1`` moved down by ``x2`` places, keeping the sign.

    ``x2`` is not negative. Array API standard.

    Examples
    --------
    >>> wg.bitwise_right_shift(wg.asarray([4, 13]), 2)
    tensor([1, 3])
    """
