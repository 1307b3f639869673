"""The affine map of the last axis."""

import math
from typing import Any

from wengert import ops
from wengert.interpreters.batching import by_composite
from wengert.nn.functional.define import same_dtype
from wengert.tape.grad_mode import recording
from wengert.tape.marks import off_tape
from wengert.tape.node import running_forwards
from wengert.tape.observers import observing
from wengert.tape.primitive import Primitive
from wengert.tape.record import observe, record
from wengert.tape.tensor import Tensor, untracked


def _composite(xp: Any, x: Any, weight: Any, bias: Any) -> Any:
    out = xp.matmul(x, xp.matrix_transpose(weight))
    return out if bias is None else out + bias


def _by_weight(xp: Any, g: Any, x: Any) -> Any:
    if len(x.shape) == 1:
        return xp.expand_dims(g, axis=1) * xp.conj(x)
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
    # the bias is in no product
    jvps={
        "x": lambda xp, t, weight: xp.linear(t, weight, None),
        "weight": lambda xp, t, x: xp.linear(x, t, None),
        "bias": lambda xp, t: t,
    },
    composite=_composite,
    batch=by_composite,
)
_kernels, _plans = _linear.kernels, _linear.plans


def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    r"""Affine map of the last axis, :math:`x W^T + b`.

    An input (..., in), a weight (out, in) and a bias (out,) give a result (..., out). Cotangents:
    :math:`g \bar W` of the input, :math:`g^T \bar x` of the weight and the sum of :math:`g` over
    all but the last axis of the bias. Raises `RuntimeError` if the shapes do not fit, or the dtypes
    differ: a model would lose or gain precision without a word.
    PyTorch: ``torch.nn.functional.linear``.

    Examples
    --------
    >>> weight, bias = wg.asarray([[1.0, 2.0], [3.0, 4.0]]), wg.asarray([0.5, 0.0])
    >>> wg.nn.functional.linear(wg.asarray([1.0, 1.0]), weight, bias)
    tensor([3.5000, 7.0000])
    """
    try:
        x, w, b = input._array, weight._array, bias._array
    except AttributeError:  # a raw array, or no bias
        return _general(input, weight, bias)
    kind = type(x)
    if not (kind is type(w) is type(b) and x.ndim == 2 == w.ndim and b.shape == w.shape[:1]):
        return _general(input, weight, bias)
    if not x.dtype is w.dtype is b.dtype:
        return _general(input, weight, bias)
    # The most frequent call by far: `Primitive.bind` without its loop.
    try:
        out = _kernels[kind](x, w, b)
    except (TypeError, ValueError, RuntimeError):  # which says less than `_general` does
        return _general(input, weight, bias)
    by_x, by_w, by_b = input._node, weight._node, bias._node
    if (by_w is None and by_b is None and by_x is None) or not recording():
        result = off_tape(out, _linear, (by_x, by_w, by_b)) if running_forwards else untracked(out)
    else:
        plan = _plans[by_x is not None, by_w is not None, by_b is not None]
        result = record(plan, (by_x, by_w, by_b), plan.take((x, w, b, out)), out)  # type: ignore[misc]
    if observing:
        observe("linear", _linear, (input, weight, bias), result)
    return result


def _general(input: Any, weight: Any, bias: Any) -> Tensor:
    same_dtype("linear", input, weight, bias)
    x, w = tuple(input.shape), tuple(weight.shape)
    b = None if bias is None else tuple(bias.shape)
    if not x or len(w) != 2 or x[-1] != w[1] or b not in (None, w[:1]):
        raise RuntimeError(
            f"linear got an input of shape {x}, a weight of shape {w} and a bias of shape {b}; it "
            "needs (..., in), (out, in) and (out,)"
        )
    if len(x) < 3:
        return _linear.bind(input, weight, bias)  # type: ignore[no-any-return]
    rows = ops.reshape(input, (math.prod(x[:-1]), x[-1]))
    return ops.reshape(linear(rows, weight, bias), (*x[:-1], w[0]))
