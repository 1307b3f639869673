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


@elementwise(weak=True, compares=True)
def equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether :math:`x_1 = x_2`. A nan equals nothing.

    Parameters
    ----------
    x1, x2 : Tensor, array or Python number
        Of any dtype, of shapes that broadcast together.

    Returns
    -------
    Tensor
        Of the broadcast shape, and bool.

    Notes
    -----
    Not tracked. Array API: ``equal``.
    """


@elementwise(weak=True, compares=True)
def not_equal(x1: Any, x2: Any, /) -> Tensor:
    r"""Whether :math:`x_1 \ne x_2`.

    Parameters
    ----------
    x1, x2 : Tensor, array or Python number
        Of any dtype, of shapes that broadcast together.

    Returns
    -------
    Tensor
        Of the broadcast shape, and bool.

    Notes
    -----
    Not tracked. Array API: ``not_equal``.
    """


@elementwise(weak=True, compares=True)
def less(x1: Any, x2: Any, /) -> Tensor:
    """Whether :math:`x_1 < x_2`.

    Parameters
    ----------
    x1, x2 : Tensor, array or Python number
        Real, of shapes that broadcast together.

    Returns
    -------
    Tensor
        Of the broadcast shape, and bool.

    Notes
    -----
    Not tracked. Array API: ``less``.
    """


@elementwise(weak=True, compares=True)
def less_equal(x1: Any, x2: Any, /) -> Tensor:
    r"""Whether :math:`x_1 \le x_2`.

    Parameters
    ----------
    x1, x2 : Tensor, array or Python number
        Real, of shapes that broadcast together.

    Returns
    -------
    Tensor
        Of the broadcast shape, and bool.

    Notes
    -----
    Not tracked. Array API: ``less_equal``.
    """


@elementwise(weak=True, compares=True)
def greater(x1: Any, x2: Any, /) -> Tensor:
    """Whether :math:`x_1 > x_2`.

    Parameters
    ----------
    x1, x2 : Tensor, array or Python number
        Real, of shapes that broadcast together.

    Returns
    -------
    Tensor
        Of the broadcast shape, and bool.

    Notes
    -----
    Not tracked. Array API: ``greater``.
    """


@elementwise(weak=True, compares=True)
def greater_equal(x1: Any, x2: Any, /) -> Tensor:
    r"""Whether :math:`x_1 \ge x_2`.

    Parameters
    ----------
    x1, x2 : Tensor, array or Python number
        Real, of shapes that broadcast together.

    Returns
    -------
    Tensor
        Of the broadcast shape, and bool.

    Notes
    -----
    Not tracked. Array API: ``greater_equal``.
    """


@elementwise()
def isfinite(x: Any, /) -> Tensor:
    """Whether neither infinite nor nan.

    Parameters
    ----------
    x : Tensor
        Of any dtype but bool.

    Returns
    -------
    Tensor
        Of the shape of ``x``, and bool.

    Notes
    -----
    Not tracked. Array API: ``isfinite``.
    """


@elementwise()
def isinf(x: Any, /) -> Tensor:
    """Whether infinite; for a complex number, whether one of its parts is.

    Parameters
    ----------
    x : Tensor
        Of any dtype but bool.

    Returns
    -------
    Tensor
        Of the shape of ``x``, and bool.

    Notes
    -----
    Not tracked. Array API: ``isinf``.
    """


@elementwise()
def isnan(x: Any, /) -> Tensor:
    """Whether nan; for a complex number, whether one of its parts is.

    Parameters
    ----------
    x : Tensor
        Of any dtype but bool.

    Returns
    -------
    Tensor
        Of the shape of ``x``, and bool.

    Notes
    -----
    Not tracked. Array API: ``isnan``.
    """


@elementwise(weak=True)
def logical_and(x1: Any, x2: Any, /) -> Tensor:
    """Whether both are true.

    Parameters
    ----------
    x1, x2 : Tensor, array or Python number
        Bool, of shapes that broadcast together.

    Returns
    -------
    Tensor
        Of the broadcast shape, and bool.

    Notes
    -----
    Not tracked. Array API: ``logical_and``.
    """


@elementwise(weak=True)
def logical_or(x1: Any, x2: Any, /) -> Tensor:
    """Whether one or both are true.

    Parameters
    ----------
    x1, x2 : Tensor, array or Python number
        Bool, of shapes that broadcast together.

    Returns
    -------
    Tensor
        Of the broadcast shape, and bool.

    Notes
    -----
    Not tracked. Array API: ``logical_or``.
    """


@elementwise(weak=True)
def logical_xor(x1: Any, x2: Any, /) -> Tensor:
    """Whether exactly one is true.

    Parameters
    ----------
    x1, x2 : Tensor, array or Python number
        Bool, of shapes that broadcast together.

    Returns
    -------
    Tensor
        Of the broadcast shape, and bool.

    Notes
    -----
    Not tracked. Array API: ``logical_xor``.
    """


@elementwise()
def logical_not(x: Any, /) -> Tensor:
    """Whether false.

    Parameters
    ----------
    x : Tensor
        Bool.

    Returns
    -------
    Tensor
        Of the shape of ``x``, and bool.

    Notes
    -----
    Not tracked. Array API: ``logical_not``.
    """


@elementwise(weak=True)
def bitwise_and(x1: Any, x2: Any, /) -> Tensor:
    """Bits that are set in both.

    Parameters
    ----------
    x1, x2 : Tensor, array or Python number
        Integer or bool, of shapes that broadcast together.

    Returns
    -------
    Tensor
        Of the broadcast shape, and of the promoted dtype.

    Notes
    -----
    Not tracked. Array API: ``bitwise_and``.
    """


@elementwise(weak=True)
def bitwise_or(x1: Any, x2: Any, /) -> Tensor:
    """Bits that are set in one or both.

    Parameters
    ----------
    x1, x2 : Tensor, array or Python number
        Integer or bool, of shapes that broadcast together.

    Returns
    -------
    Tensor
        Of the broadcast shape, and of the promoted dtype.

    Notes
    -----
    Not tracked. Array API: ``bitwise_or``.
    """


@elementwise(weak=True)
def bitwise_xor(x1: Any, x2: Any, /) -> Tensor:
    """Bits that are set in exactly one.

    Parameters
    ----------
    x1, x2 : Tensor, array or Python number
        Integer or bool, of shapes that broadcast together.

    Returns
    -------
    Tensor
        Of the broadcast shape, and of the promoted dtype.

    Notes
    -----
    Not tracked. Array API: ``bitwise_xor``.
    """


@elementwise()
def bitwise_invert(x: Any, /) -> Tensor:
    """Bits that are not set.

    Parameters
    ----------
    x : Tensor
        Integer or bool.

    Returns
    -------
    Tensor
        Of the shape of ``x``, and of its dtype.

    Notes
    -----
    Not tracked. Array API: ``bitwise_invert``.
    """


@elementwise(weak=True)
def bitwise_left_shift(x1: Any, x2: Any, /) -> Tensor:
    """Bits of ``x1`` moved up by ``x2`` places, :math:`x_1 2^{x_2}`.

    Parameters
    ----------
    x1, x2 : Tensor, array or Python number
        Integer; ``x2`` not negative, of shapes that broadcast together.

    Returns
    -------
    Tensor
        Of the broadcast shape, and of the promoted dtype.

    Notes
    -----
    Not tracked. Array API: ``bitwise_left_shift``.
    """


@elementwise(weak=True)
def bitwise_right_shift(x1: Any, x2: Any, /) -> Tensor:
    """Bits of ``x1`` moved down by ``x2`` places, keeping the sign.

    Parameters
    ----------
    x1, x2 : Tensor, array or Python number
        Integer; ``x2`` not negative, of shapes that broadcast together.

    Returns
    -------
    Tensor
        Of the broadcast shape, and of the promoted dtype.

    Notes
    -----
    Not tracked. Array API: ``bitwise_right_shift``.
    """
