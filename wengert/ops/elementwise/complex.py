"""Parts, conjugate, modulus and direction of complex numbers, and of real ones."""

from typing import Any

from wengert.interpreters import batching
from wengert.ops.define import elementwise
from wengert.ops.elementwise.rules import is_complex
from wengert.tape.domain import NOT_ZERO
from wengert.tape.parameters import takes
from wengert.tape.primitive import SCALARS, Primitive, unary
from wengert.tape.tensor import Tensor

__all__ = ["abs", "conj", "imag", "real", "sign"]

_conj = unary(
    Primitive(
        "conj",
        ("x",),
        {"x": lambda xp, g: xp.conj(g)},
        kind="linear",
        view=None,
        batch=batching.elementwise,
    )
)


@takes("x")
def conj(x: Any, /) -> Tensor:
    r"""Complex conjugate, :math:`x^*`; equal values for a real ``x``.

    Parameters
    ----------
    x : Tensor or Python number
        Of any dtype but bool. A number gives a number: rules meet those where an operand was one.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Notes
    -----
    The cotangent is :math:`\bar y^*`. Array API: ``conj``.
    """
    if type(x) in SCALARS or hasattr(x, "regularise"):  # a trace's number
        return x.conjugate()  # type: ignore[no-any-return]
    return _conj(x)


@elementwise(kind="linear", view=True, x=lambda xp, g: g)
def real(x: Any, /) -> Tensor:
    r"""Real part, :math:`\operatorname{Re} x`.

    Parameters
    ----------
    x : Tensor
        Complex; a real one gives equal values where the array library takes it.

    Returns
    -------
    Tensor
        Of the shape of ``x`` and its real dtype.

    Notes
    -----
    The cotangent is :math:`\bar y`, which is real. Array API: ``real``.
    """


@elementwise(kind="linear", view=True, x=lambda xp, g: xp.multiply(g, 1j))
def imag(x: Any, /) -> Tensor:
    r"""Imaginary part, :math:`\operatorname{Im} x`.

    Parameters
    ----------
    x : Tensor
        Complex.

    Returns
    -------
    Tensor
        Of the shape of ``x`` and its real dtype.

    Notes
    -----
    The cotangent is :math:`i \bar y`, which is imaginary. Array API: ``imag``.
    """


@elementwise(x=lambda xp, g, x: xp.multiply(g, xp.sign(x)), domain=NOT_ZERO)
def abs(x: Any, /) -> Tensor:
    r"""Absolute value or modulus, :math:`|x|`.

    Parameters
    ----------
    x : Tensor
        Of any dtype but bool.

    Returns
    -------
    Tensor
        Of the shape of ``x``, and of its dtype, or real dtype if it is complex.

    Notes
    -----
    Derivative :math:`\operatorname{sign} x`, which is 0 at 0; the cotangent of a complex ``x`` is
    :math:`\bar y \, x / |x|`. Array API: ``abs``.
    """


def _sign_rule(xp: Any, g: Any, x: Any) -> Any:
    if not is_complex(x):
        return xp.zeros_like(g)
    modulus = xp.abs(x)
    zero = xp.equal(modulus, 0)
    safe = xp.where(zero, 1, modulus)
    direction = xp.divide(x, safe)
    # A direction changes at right angles to itself alone.
    along = xp.multiply(xp.real(xp.multiply(g, xp.conj(direction))), direction)
    return xp.where(zero, 0, xp.divide(xp.subtract(g, along), safe))


@elementwise(x=_sign_rule, domain=NOT_ZERO)
def sign(x: Any, /) -> Tensor:
    r"""Sign, -1, 0 or 1; the direction :math:`x / |x|` for complex ``x``, and 0 at 0.

    Parameters
    ----------
    x : Tensor
        Of any dtype but bool.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Notes
    -----
    Derivative 0 for real ``x``. For complex ``x``, with :math:`s = x / |x|`, the cotangent is
    :math:`(\bar y - s \operatorname{Re}(s^* \bar y)) / |x|`, and 0 at 0. Array API: ``sign``.
    """
