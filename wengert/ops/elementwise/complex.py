"""Parts, conjugate, modulus and direction of complex numbers, and of real ones."""

from typing import Any

from wengert.ops.define import elementwise, operation
from wengert.ops.domain import NOT_ZERO
from wengert.ops.elementwise.rules import is_complex
from wengert.ops.euclidean import tangent_of_direction
from wengert.tape.promotion import SCALARS
from wengert.tape.tensor import Tensor

__all__ = ["abs", "conj", "imag", "real", "sign"]


@operation(x=lambda xp, g: xp.conj(g), elementwise=True, linear="together", view=None)
def conj(x: Any, /) -> Tensor:
    r"""Complex conjugate, :math:`x^*`; equal values for a real ``x``.

    The cotangent is :math:`\bar y^*`. A number gives a number, because operands in rules may be
    numbers. Array API standard.

    Examples
    --------
    >>> wg.conj(wg.asarray([1 + 2j, 3.0]))
    tensor([1.-2.j, 3.-0.j])
    """
    if type(x) in SCALARS or hasattr(x, "regularise"):  # a number that a trace follows
        return x.conjugate()  # type: ignore[no-any-return]
    return conj.run(x)


@elementwise(dtypes="complex", linear="together", view=True, x=lambda xp, g: g)
def real(x: Any, /) -> Tensor:
    r"""Real part, :math:`\operatorname{Re} x`.

    A real array, if the array library allows one here, gives equal values. The cotangent is
    :math:`\bar y`, which is real. Complex dtypes. The result is of the shape of ``x`` and its real
    dtype. Array API standard.

    Examples
    --------
    >>> wg.real(wg.asarray([1 + 2j, 3.0]))
    tensor([1., 3.])
    >>> wg.grad(lambda z: wg.real(z * z))(1 + 2j)
    (2-4j)
    """


@elementwise(dtypes="complex", linear="together", view=True, x=lambda xp, g: g * 1j)
def imag(x: Any, /) -> Tensor:
    r"""Imaginary part, :math:`\operatorname{Im} x`.

    The cotangent is :math:`i \bar y`, which is imaginary. Complex dtypes. The result is of the
    shape of ``x`` and its real dtype. Array API standard.

    Examples
    --------
    >>> wg.imag(wg.asarray([1 + 2j, 3.0]))
    tensor([2., 0.])
    >>> wg.grad(wg.imag)(1 + 2j)
    1j
    """


def _abs_rule(xp: Any, g: Any, x: Any) -> Any:
    return xp.along(g, x) if is_complex(x) else g * xp.sign(x)


@elementwise(dtypes="numeric", x=_abs_rule, domain=NOT_ZERO)
def abs(x: Any, /) -> Tensor:
    r"""Absolute value or modulus, :math:`|x|`.

    Derivative :math:`\operatorname{sign} x`, which is 0 at 0; the cotangent of a complex ``x`` is
    :math:`\bar y \, x / |x|`. The result is of the shape of ``x`` and its dtype, which is real for
    a complex ``x``. Array API standard.

    Examples
    --------
    >>> wg.abs(wg.asarray([-2.0, 3.0]))
    tensor([2., 3.])
    >>> wg.grad(wg.abs)(4j)
    1j
    """


def _sign_rule(xp: Any, g: Any, x: Any) -> Any:
    if not is_complex(x):
        return xp.zeros_like(g)
    # At 0 that is 0, and has no derivative.
    return xp.where(x == 0, xp.along(g, x), tangent_of_direction(xp, g, x))


@elementwise(dtypes="numeric", x=_sign_rule, domain=NOT_ZERO, flat=True)
def sign(x: Any, /) -> Tensor:
    r"""Sign, -1, 0 or 1; the direction :math:`x / |x|` for complex ``x``, and 0 at 0.

    Derivative 0 for real ``x``. For complex ``x``, with :math:`s = x / |x|`, the cotangent is
    :math:`(\bar y - s \operatorname{Re}(s^* \bar y)) / |x|`, and 0 at 0. Array API standard.

    Examples
    --------
    >>> wg.sign(wg.asarray([-2.0, 0.0, 3.0]))
    tensor([-1.,  0.,  1.])
    >>> wg.sign(wg.asarray([3 + 4j]))
    tensor([0.6000+0.8000j])
    """
