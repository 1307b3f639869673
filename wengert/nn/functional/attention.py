"""Attention: averages of values, weighted by how well their keys fit a query."""

import math
from typing import Any

from wengert import ops
from wengert.interpreters.namespaces import differentiable
from wengert.nn.functional.define import refusing
from wengert.nn.functional.dropout import dropout
from wengert.nn.functional.softmaxes import softmax
from wengert.ops.shares import wide
from wengert.tape.tensor import Tensor, wrap


@refusing
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    r"""Averages of values, :math:`\operatorname{softmax}(s\, Q K^T + M)\, V`.

    Queries (..., L, E), keys (..., S, E) and values (..., S, F) give a result (..., L, F). With the
    weights :math:`P`, the cotangent of :math:`V` is :math:`P^T G`, and that of the product is what
    `softmax` makes of :math:`G V^T`. Raises `RuntimeError` if shapes or dtypes do not fit, or both
    ``attn_mask`` and ``is_causal`` are given. Vaswani et al., "Attention is all you need" (2017).
    PyTorch: ``torch.nn.functional.scaled_dot_product_attention``.

    Parameters
    ----------
    attn_mask : Tensor, optional
        :math:`M`, of a shape that broadcasts to (..., L, S). Of booleans, True lets a query attend
        to a key. The result is zero for a query that may attend to none.
    dropout_p : float
        Probability with which a weight is set to zero, also outside of training.
    is_causal : bool
        Whether query i attends to the keys up to i alone; then there is no ``attn_mask``.
    scale : float or Tensor, optional
        :math:`s`, by default :math:`1 / \sqrt E`.

    Examples
    --------
    >>> query, key, value = wg.ones((2, 4, 8)), wg.ones((2, 6, 8)), wg.ones((2, 6, 3))
    >>> wg.nn.functional.scaled_dot_product_attention(query, key, value).shape
    (2, 4, 3)
    """
    q, k, v = wrap(query), wrap(key), wrap(value)
    dtypes = [x.dtype for x in (q, k, v)]
    real = all(dtype.kind == "real floating" for dtype in dtypes)
    if not real or any(dtype is not dtypes[0] for dtype in dtypes):
        names = ", ".join(dtype.name for dtype in dtypes)
        raise (RuntimeError if real else TypeError)(
            f"attention got a query, a key and a value of dtypes {names}; it needs one real "
            "floating dtype: convert them with wg.astype"
        )
    if is_causal and attn_mask is not None:
        raise RuntimeError(
            "scaled_dot_product_attention takes attn_mask or is_causal=True, and not both"
        )
    mask = None if attn_mask is None else additive_mask(attn_mask, "attn_mask", q, keep=True)
    shapes = tuple(q.shape), tuple(k.shape), tuple(v.shape)
    ranks = min(map(len, shapes)) >= 2
    if not ranks or shapes[0][-1] != shapes[1][-1] or shapes[1][-2] != shapes[2][-2]:
        raise RuntimeError(
            "attention got a query, a key and a value of shapes {}, {} and {}; it needs "
            "(..., L, E), (..., S, E) and (..., S, F)".format(*shapes)
        )
    if mask is not None:
        scores = (*ops.broadcast_shapes(q.shape[:-2], k.shape[:-2]), q.shape[-2], k.shape[-2])
        if ops.broadcast_shapes(mask.shape, scores) != scores:
            raise RuntimeError(f"attn_mask of shape {mask.shape} enlarges the scores' {scores}")
    return attend(q, k, v, mask, dropout_p, is_causal, scale)[0]


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    dropout_p: float,
    is_causal: bool = False,
    scale: Any = None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The averages, the weight of each key, and which queries have no key by a mask.

    There the softmax would be 0 / 0: it is taken elsewhere, and the averages are 0.
    """
    nowhere = None
    if is_causal:
        every = ops.ones((q.shape[-2], k.shape[-2]), dtype="bool", device=differentiable.device(q))
        mask = _additive(ops.tril(every), q)
    elif mask is not None:
        nowhere = ops.all(ops.equal(mask, -math.inf), axis=-1, keepdims=True)
        mask = ops.where(nowhere, 0.0, mask)
    if scale is None:
        scale = 1 / math.sqrt(q.shape[-1]) if q.shape[-1] else 1.0
    # Of half precision in float32: a score's rounding is an error of that size in the weight.
    scores = ops.matmul(ops.multiply(wide(ops, q), scale), ops.matrix_transpose(wide(ops, k)))
    weights = softmax(scores if mask is None else ops.add(scores, mask), -1)
    weights = weights if weights.dtype is q.dtype else ops.astype(weights, q.dtype)
    weights = dropout(weights, dropout_p) if dropout_p else weights
    out = ops.matmul(weights, v)
    return out if nowhere is None else ops.where(nowhere, 0.0, out), weights, nowhere


def _additive(allowed: Tensor, like: Tensor) -> Tensor:
    """What is added to the scores for a mask of booleans."""
    zero = ops.zeros((), dtype=like.dtype, device=differentiable.device(like))
    return ops.where(allowed, zero, -math.inf)


def additive_mask(mask: Any, name: str, like: Tensor, *, keep: bool) -> Tensor:
    """A mask as what is added to the scores; ``keep`` says what True means."""
    mask = wrap(mask)
    if mask.dtype.kind == "bool":
        return _additive(mask if keep else ops.logical_not(mask), like)
    if mask.dtype.kind != "real floating":
        raise RuntimeError(
            f"{name} is of booleans, or of real floating numbers that are added to the scores, and "
            f"not of {mask.dtype.name}"
        )
    return ops.astype(mask, like.dtype, copy=False)
