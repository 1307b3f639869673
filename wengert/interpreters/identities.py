"""Which operations return an operand, equal to the last bit: compiled programs leave them out.

The rule of a primitive stands in its row, ``identity``. It is called with the instruction, which
`wengert.compiler.passes.simplify.Call` describes, and answers with the operand that the result
equals, or with None. What equals only up to the sign of a zero, or except at infinities, is no
identity. Whether shape and dtype are the operand's too the pass sees. Here are the rules of whole
families.
"""

import math
from collections.abc import Callable
from typing import Any

Rule = Callable[[Any], Any]


def unit(*, left: bool) -> Rule:
    """Rule of ``x * 1``, and of ``1 * x`` with ``left``; not of complex numbers: inf * 0j is nan.

    Parameters
    ----------
    left : bool
        Whether the operands may change places.
    """

    def rule(call: Any) -> Any:
        x, y = call.operands
        if call.complex:
            return None
        if _equals(call.number(y), 1):
            return x
        return y if left and _equals(call.number(x), 1) else None

    return rule


def nil(*, left: bool, sign: int) -> Rule:
    """Rule of ``n + 0`` of integers, and of ``x + -0.0`` of floats: 0.0 would make a 0.0 of -0.0.

    Parameters
    ----------
    left : bool
        Whether the operands may change places.
    sign : {1, -1}
        That of the zero which changes no float.
    """

    def gone(call: Any, x: Any) -> bool:
        number = call.number(x)
        return _equals(number, 0) and (call.whole or math.copysign(1, number) == sign)

    def rule(call: Any) -> Any:
        x, y = call.operands
        if left and call.complex:
            return None
        if gone(call, y):
            return x
        return y if left and gone(call, x) else None

    return rule


def _equals(number: Any, one: int) -> bool:
    return isinstance(number, int | float) and number == one


def involution(call: Any) -> Any:
    """Rule of ``-(-x)``, and of the transpose of a transpose."""
    before = call.maker(call.operands[0])
    return before.operands[0] if before is not None and before.name == call.name else None


def idempotent(call: Any) -> Any:
    """Rule of ``maximum(x, x)``."""
    x, y = call.operands
    return x if x is y else None


def same_elements(call: Any) -> Any:
    """Rule of what gives the operand's elements, in another shape or dtype perhaps."""
    return call.operands[0] if call.parameters.get("device") is None else None


def in_order(call: Any) -> Any:
    """Rule of what keeps the elements in order: back to the shape that they had."""
    x, shape = call.operands[0], call.result.shape
    while x.shape != shape:
        before = call.maker(x)
        if before is None or before.rule is not in_order:
            return None
        x = before.operands[0]
    return x


def of_reals(call: Any) -> Any:
    """Rule of what does nothing to real numbers."""
    return None if call.complex_of(call.operands[0]) else call.operands[0]


def of_integers(call: Any) -> Any:
    """Rule of what does nothing to integers."""
    return call.operands[0] if call.whole else None


def over_no_axes(call: Any) -> Any:
    """Rule of a reduction over no axes."""
    return call.operands[0] if call.parameters.get("axis") == () else None
