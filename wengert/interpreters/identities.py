"""Identity rules: when an operation returns an operand bitwise, so that programs can omit it.

A primitive's row has its rule, ``identity``. It takes the instruction, as a
`wengert.compiler.passes.simplify.Call`, and returns the operand that the result equals, or None.
An equality up to the sign of zero, or except at infinities, is no identity. The pass compares
shape and dtype itself. Here are the rules of families.
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
        Whether the left operand may be the 1.
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
    """Rule of ``n + 0`` of integers, and of ``x + -0.0`` of floats, since -0.0 + 0.0 is 0.0.

    Parameters
    ----------
    left : bool
        Whether the left operand may be the 0.
    sign : {1, -1}
        The sign of the zero that changes no float.
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
    """Rule of functions that keep the elements, and change shape or dtype at most."""
    return call.operands[0] if call.parameters.get("device") is None else None


def in_order(call: Any) -> Any:
    """Rule of a chain of functions that keep the elements' order and end with the first shape."""
    x, shape = call.operands[0], call.result.shape
    while x.shape != shape:
        before = call.maker(x)
        if before is None or before.rule is not in_order:
            return None
        x = before.operands[0]
    return x


def of_reals(call: Any) -> Any:
    """Rule of functions that leave real numbers unchanged."""
    return None if call.complex_of(call.operands[0]) else call.operands[0]


def of_integers(call: Any) -> Any:
    """Rule of functions that leave integers unchanged."""
    return call.operands[0] if call.whole else None


def over_no_axes(call: Any) -> Any:
    """Rule of a reduction over no axes."""
    return call.operands[0] if call.parameters.get("axis") == () else None
