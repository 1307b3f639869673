"""Comparisons, logic and bits: functions whose results are not tracked."""

from typing import Any

from wengert.interpreters.identities import involution
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


@elementwise(dtypes="any", result="dtype bool", weak=True, compares=True, symbol="==")
def equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether :math:`x_1 = x_2`. A nan equals nothing."""


@elementwise(dtypes="any", result="dtype bool", weak=True, compares=True, symbol="!=")
def not_equal(x1: Any, x2: Any, /) -> Tensor:
    r"""Whether :math:`x_1 \ne x_2`."""


@elementwise(dtypes="real numeric", result="dtype bool", weak=True, compares=True, symbol="<")
def less(x1: Any, x2: Any, /) -> Tensor:
    """Whether :math:`x_1 < x_2`."""


@elementwise(dtypes="real numeric", result="dtype bool", weak=True, compares=True, symbol="<=")
def less_equal(x1: Any, x2: Any, /) -> Tensor:
    r"""Whether :math:`x_1 \le x_2`."""


@elementwise(dtypes="real numeric", result="dtype bool", weak=True, compares=True, symbol=">")
def greater(x1: Any, x2: Any, /) -> Tensor:
    """Whether :math:`x_1 > x_2`."""


@elementwise(dtypes="real numeric", result="dtype bool", weak=True, compares=True, symbol=">=")
def greater_equal(x1: Any, x2: Any, /) -> Tensor:
    r"""Whether :math:`x_1 \ge x_2`."""


@elementwise(dtypes="numeric", result="dtype bool")
def isfinite(x: Any, /) -> Tensor:
    """Whether neither infinite nor nan."""


@elementwise(dtypes="numeric", result="dtype bool")
def isinf(x: Any, /) -> Tensor:
    """Whether infinite; for a complex number, whether one of its parts is."""


@elementwise(dtypes="numeric", result="dtype bool")
def isnan(x: Any, /) -> Tensor:
    """Whether nan; for a complex number, whether one of its parts is."""


@elementwise(dtypes="boolean", result="dtype bool", weak=True)
def logical_and(x1: Any, x2: Any, /) -> Tensor:
    """Whether both are true."""


@elementwise(dtypes="boolean", result="dtype bool", weak=True)
def logical_or(x1: Any, x2: Any, /) -> Tensor:
    """Whether one or both are true."""


@elementwise(dtypes="boolean", result="dtype bool", weak=True)
def logical_xor(x1: Any, x2: Any, /) -> Tensor:
    """Whether exactly one is true."""


@elementwise(dtypes="boolean", result="dtype bool", identity=involution)
def logical_not(x: Any, /) -> Tensor:
    """Whether false."""


@elementwise(dtypes="integer or boolean", weak=True, symbol="&")
def bitwise_and(x1: Any, x2: Any, /) -> Tensor:
    """Bits that are set in both."""


@elementwise(dtypes="integer or boolean", weak=True, symbol="|")
def bitwise_or(x1: Any, x2: Any, /) -> Tensor:
    """Bits that are set in one or both."""


@elementwise(dtypes="integer or boolean", weak=True, symbol="^")
def bitwise_xor(x1: Any, x2: Any, /) -> Tensor:
    """Bits that are set in exactly one."""


@elementwise(dtypes="integer or boolean", identity=involution, symbol="~")
def bitwise_invert(x: Any, /) -> Tensor:
    """Bits that are not set."""


@elementwise(dtypes="integer", weak=True, symbol="<<")
def bitwise_left_shift(x1: Any, x2: Any, /) -> Tensor:
    """Bits of ``x1`` moved up by ``x2`` places, :math:`x_1 2^{x_2}`.

    ``x2`` is not negative.
    """


@elementwise(dtypes="integer", weak=True, symbol=">>")
def bitwise_right_shift(x1: Any, x2: Any, /) -> Tensor:
    """Bits of ``x1`` moved down by ``x2`` places, keeping the sign.

    ``x2`` is not negative.
    """
