"""The affine map of the last axis."""

import math
from typing import Any

from wengert import ops
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor

__all__ = ["linear"]


def _forward(xp: Any, x: Any, weight: Any, bias: Any) -> Any:
    out = xp.matmul(x, xp.matrix_transpose(weight))
    return out if bias is None else xp.add(out, bias)


def _by_weight(xp: Any, g: Any, x: Any) -> Any:
    if len(x.shape) == 1:
        return xp.multiply(xp.expand_dims(g, axis=1), xp.conj(x))
    return xp.matmul(xp.matrix_transpose(g), xp.conj(x))


def _by_bias(xp: Any, g: Any) -> Any:
    return xp.sum(g, axis=0) if len(g.shape) == 2 else g


_linear = Primitive(
    "linear",
    ("x", "weight", "bias"),
    {
        "x": lambda xp, g, weight: xp.matmul(g, xp.conj(weight)),
        "weight": _by_weight,
        "bias": _by_bias,
    },
    kind="multilinear",
    forward=_forward,
    label="Addmm",
).bind


def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    r"""Affine map of the last axis, :math:`x W^T + b`.

    Parameters
    ----------
    input : Tensor
        Of shape (..., in).
    weight : Tensor
        Of shape (out, in).
    bias : Tensor, optional
        Of shape (out,).

    Returns
    -------
    Tensor
        Of shape (..., out).

    Raises
    ------
    RuntimeError
        If the shapes do not fit.

    Notes
    -----
    Cotangents: :math:`g \bar W` of the input, :math:`g^T \bar x` of the weight and the sum of
    :math:`g` over all but the last axis of the bias.
    """
    try:
        if len(input.shape) < 3:
            return _linear(input, weight, bias)  # type: ignore[no-any-return]
        rows = ops.reshape(input, (math.prod(input.shape[:-1]), input.shape[-1]))
        return ops.reshape(_linear(rows, weight, bias), (*input.shape[:-1], weight.shape[0]))
    except Exception as error:
        x, w = getattr(input, "shape", ()), getattr(weight, "shape", ())
        b = getattr(bias, "shape", w[:1])
        if not x or len(w) != 2 or x[-1] != w[1] or tuple(b) != tuple(w[:1]):
            raise RuntimeError(
                f"linear got an input of shape {tuple(x)}, a weight of shape {tuple(w)} and a bias "
                f"of shape {tuple(b)}; it needs (..., in), (out, in) and (out,)"
            ) from error
        raise
