"""The affine map of the last axis."""

import math
from typing import Any

from wengert import ops
from wengert.nn.functional.define import fused
from wengert.tape.primitive import Primitive, record
from wengert.tape.recording import recording
from wengert.tape.tensor import Tensor, untracked

__all__ = ["linear"]


@fused
def mm(xp: Any, x: Any, y: Any) -> Any:
    """Return the product of two matrices."""
    return xp.matmul(x, y)


@fused
def sum_rows(xp: Any, x: Any) -> Any:
    """Return the sum of a matrix's rows."""
    return xp.sum(x, axis=0)


def _forward(xp: Any, x: Any, weight: Any, bias: Any) -> Any:
    out = xp.matmul(x, xp.matrix_transpose(weight))
    return out if bias is None else xp.add(out, bias)


def _by_input(xp: Any, g: Any, weight: Any) -> Any:
    return xp.mm(g, xp.conj(weight)) if len(g.shape) == 2 else xp.matmul(g, xp.conj(weight))


def _by_weight(xp: Any, g: Any, x: Any) -> Any:
    if len(x.shape) == 1:
        return xp.multiply(xp.expand_dims(g, axis=1), xp.conj(x))
    return xp.mm(xp.matrix_transpose(g), xp.conj(x))


def _by_bias(xp: Any, g: Any) -> Any:
    return xp.sum_rows(g) if len(g.shape) == 2 else g


_linear = Primitive(
    "linear",
    ("x", "weight", "bias"),
    {"x": _by_input, "weight": _by_weight, "bias": _by_bias},
    kind="multilinear",
    forward=_forward,
    label="Addmm",
)
_kernels, _plans = _linear.kernels, _linear.plans


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
        if len(input.shape) > 2:
            rows = ops.reshape(input, (math.prod(input.shape[:-1]), input.shape[-1]))
            return ops.reshape(linear(rows, weight, bias), (*input.shape[:-1], weight.shape[0]))
        try:
            x, w, b = input._array, weight._array, bias._array
        except AttributeError:
            return _linear.bind(input, weight, bias)  # type: ignore[no-any-return]
        kind = type(x)
        if not kind is type(w) is type(b):
            return _linear.bind(input, weight, bias)  # type: ignore[no-any-return]
        # The most frequent call by far: `Primitive.bind` without its loop.
        out = _kernels[kind](x, w, b)
        nodes = input._node, weight._node, bias._node
        tracked = nodes[0] is not None, nodes[1] is not None, nodes[2] is not None
        if True not in tracked or not recording():
            return untracked(out)
        plan = _plans[tracked]
        return record(plan, nodes, plan.take((x, w, b, out)), out)
    except Exception as error:
        x, w = getattr(input, "shape", ()), getattr(weight, "shape", ())
        b = getattr(bias, "shape", w[:1])
        if not x or len(w) != 2 or x[-1] != w[1] or tuple(b) != tuple(w[:1]):
            raise RuntimeError(
                f"linear got an input of shape {tuple(x)}, a weight of shape {tuple(w)} and a bias "
                f"of shape {tuple(b)}; it needs (..., in), (out, in) and (out,)"
            ) from error
        raise
