"""Attention: averages of values, weighted by how well their keys fit a query."""

import math
from typing import Any

from wengert import ops
from wengert.interpreters.namespaces import differentiable
from wengert.nn.functional.dropout import dropout
from wengert.nn.functional.linear import linear
from wengert.nn.functional.softmaxes import softmax
from wengert.ops.shares import wide
from wengert.tape.tensor import Tensor, wrapped

_NEVER = -math.inf


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    r"""Averages of values, :math:`\operatorname{softmax}(s\, Q K^T + M)\, V`.

    With the weights :math:`P`, the cotangent of :math:`V` is :math:`P^T G`, and that of the product
    is what `softmax` makes of :math:`G V^T`. The result is of shape (..., L, F). Raises
    `RuntimeError` if shapes or dtypes do not fit, or both ``attn_mask`` and ``is_causal`` are
    given. Vaswani et al., "Attention is all you need" (2017).
    PyTorch: ``torch.nn.functional.scaled_dot_product_attention``.

    Parameters
    ----------
    query : Tensor
        :math:`Q`, real floating, of shape (..., L, E).
    key : Tensor
        :math:`K`, of shape (..., S, E).
    value : Tensor
        :math:`V`, of shape (..., S, F).
    attn_mask : Tensor, optional
        :math:`M`, of a shape that broadcasts to (..., L, S). Of booleans, True lets a query attend
        to a key. The result is zero for a query that may attend to none.
    dropout_p : float
        Probability with which a weight is set to zero, also outside of training.
    is_causal : bool
        Whether query i attends to the keys up to i alone; then there is no ``attn_mask``.
    scale : float or Tensor, optional
        :math:`s`, by default :math:`1 / \sqrt E`.
    enable_gqa : bool
        Whether the third axis from the end may be shorter in ``key`` and ``value``: each of their
        heads serves a group of the query's.

    Examples
    --------
    >>> query, key, value = wg.ones((2, 4, 8)), wg.ones((2, 6, 8)), wg.ones((2, 6, 3))
    >>> wg.nn.functional.scaled_dot_product_attention(query, key, value).shape
    (2, 4, 3)
    """
    q, k, v = wrapped(query), wrapped(key), wrapped(value)
    _check(q, k, v)
    if is_causal and attn_mask is not None:
        raise RuntimeError(
            "scaled_dot_product_attention takes attn_mask or is_causal=True, and not both"
        )
    mask = None if attn_mask is None else _canonical(attn_mask, "attn_mask", q, keep=True)
    if enable_gqa:
        k, v = _shared(q, k, "key"), _shared(q, v, "value")
    _check_heads(q, k, v)
    rows, columns = q.shape[-2], k.shape[-2]
    nowhere = None
    if is_causal:
        every = ops.ones((rows, columns), dtype="bool", device=differentiable.device(q))
        mask = _additive(ops.tril(every), q)
    elif mask is not None:
        mask, nowhere = _seen(mask)
    if scale is None:
        scale = 1 / math.sqrt(q.shape[-1]) if q.shape[-1] else 1.0
    out = ops.matmul(_weights(q, k, mask, scale, dropout_p), v)
    return out if nowhere is None else ops.where(nowhere, 0.0, out)


def _seen(mask: Tensor) -> tuple[Tensor, Tensor]:
    """A mask in which each query has a key, and which queries have none by the given one.

    There the softmax would be 0 / 0: it is taken elsewhere, and then left.
    """
    nowhere = ops.all(ops.equal(mask, _NEVER), axis=-1, keepdims=True)
    return ops.where(nowhere, 0.0, mask), nowhere


def _weights(q: Tensor, k: Tensor, mask: Tensor | None, scale: Any, dropout_p: float) -> Tensor:
    """The weight of each key for each query."""
    # Of half precision in float32: a score's rounding is an error of that size in the weight.
    dtype, (q, k) = q.dtype, (wide(ops, x) for x in (q, k))
    scores = ops.matmul(ops.multiply(q, scale), ops.matrix_transpose(k))
    if mask is not None:
        scores = ops.add(scores, mask)
    weights = softmax(scores, -1)
    weights = weights if weights.dtype is dtype else ops.astype(weights, dtype)
    return dropout(weights, dropout_p) if dropout_p else weights


def _check(q: Tensor, k: Tensor, v: Tensor) -> None:
    dtypes = [x.dtype for x in (q, k, v)]
    real = all(dtype.kind == "real floating" for dtype in dtypes)
    if not real or any(dtype is not dtypes[0] for dtype in dtypes):
        names = ", ".join(dtype.name for dtype in dtypes)
        raise (RuntimeError if real else TypeError)(
            f"attention got a query, a key and a value of dtypes {names}; it needs one real "
            "floating dtype: convert them with wg.astype"
        )


def _check_heads(q: Tensor, k: Tensor, v: Tensor) -> None:
    shapes = tuple(q.shape), tuple(k.shape), tuple(v.shape)
    fits = min(map(len, shapes)) >= 2 and (
        shapes[0][-1] == shapes[1][-1] and shapes[1][-2] == shapes[2][-2]
    )
    if not fits:
        raise RuntimeError(
            "attention got a query, a key and a value of shapes {}, {} and {}; it needs "
            "(..., L, E), (..., S, E) and (..., S, F)".format(*shapes)
        )


def _shared(q: Tensor, x: Tensor, name: str) -> Tensor:
    """Keys or values of as many heads as the query has, each for a group of heads."""
    heads, groups = (a.shape[-3] if a.ndim > 2 else 0 for a in (q, x))
    if not groups or heads % groups:
        raise RuntimeError(
            f"enable_gqa needs a number of heads of the query, axis -3 of {tuple(q.shape)}, that "
            f"is a multiple of the {name}'s, axis -3 of {tuple(x.shape)}"
        )
    return x if heads == groups else ops.repeat(x, heads // groups, axis=-3)


def _additive(allowed: Tensor, like: Tensor) -> Tensor:
    """What is added to the scores for a mask of booleans."""
    zero = ops.zeros((), dtype=like.dtype, device=differentiable.device(like))
    return ops.where(allowed, zero, _NEVER)


def _canonical(mask: Any, name: str, like: Tensor, *, keep: bool) -> Tensor:
    """A mask as what is added to the scores; ``keep`` says what True means."""
    mask = wrapped(mask)
    if mask.dtype.kind == "bool":
        return _additive(mask if keep else ops.logical_not(mask), like)
    if mask.dtype.kind != "real floating":
        raise RuntimeError(
            f"{name} is of booleans, or of real floating numbers that are added to the scores, and "
            f"not of {mask.dtype.name}"
        )
    return ops.astype(mask, like.dtype, copy=False)


def multi_head_attention(
    inputs: tuple[Any, Any, Any],
    num_heads: int,
    weight: Tensor,
    bias: Tensor | None,
    last: tuple[Tensor, Tensor | None],
    *,
    dropout_p: float,
    key_padding_mask: Any,
    attn_mask: Any,
    need_weights: bool,
    average: bool,
    is_causal: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor | None]:
    """The function of `wengert.nn.MultiheadAttention`.

    ``weight``, of shape (3 E, E), and ``bias`` make queries, keys and values; ``last`` are the
    weight and the bias after attention.
    """
    width = weight.shape[1]
    if inputs[0].shape[-1] != width:
        raise RuntimeError(
            f"multi-head attention was made for {width} features, and got a query of shape "
            f"{tuple(inputs[0].shape)}"
        )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "is_causal says that attn_mask is the causal mask, and there is none: give attn_mask "
            "too, ~wg.tril(wg.ones((L, S), dtype=wg.bool))"
        )
    batched, sequence = _check_sequences(inputs, batch_first)
    if not batched:
        rows = {id(x): ops.expand_dims(x, axis=0) for x in inputs}
        inputs = rows[id(inputs[0])], rows[id(inputs[1])], rows[id(inputs[2])]
        sequence = 1
        if key_padding_mask is not None:
            key_padding_mask = ops.expand_dims(wrapped(key_padding_mask), axis=0)
    query, key, _ = inputs
    depth = width // num_heads

    def heads(x: Tensor) -> Tensor:
        """(batch, heads, length, depth)."""
        split = ops.reshape(x, (*x.shape[:2], num_heads, depth))
        return ops.permute_dims(split, (1 - sequence, 2, sequence, 3))

    q, k, v = map(heads, _projections(inputs, weight, bias))
    causal = is_causal and key_padding_mask is None and not need_weights
    shape = query.shape[1 - sequence], num_heads, query.shape[sequence], key.shape[sequence]
    mask = _merge(None if causal else attn_mask, key_padding_mask, query, shape)
    shares = None
    if need_weights:
        nowhere = None
        if mask is not None:
            mask, nowhere = _seen(mask)
        shares = _weights(q, k, mask, 1 / math.sqrt(depth), dropout_p)
        shares = shares if nowhere is None else ops.where(nowhere, 0.0, shares)
        out = ops.matmul(shares, v)
        if average:
            shares = ops.mean(shares, axis=1)
    else:
        out = scaled_dot_product_attention(q, k, v, mask, dropout_p, causal)
    back = (2, 0, 1, 3) if sequence == 0 else (0, 2, 1, 3)
    out = linear(ops.reshape(ops.permute_dims(out, back), tuple(query.shape)), *last)
    if not batched:
        out = ops.squeeze(out, axis=0)
        shares = None if shares is None else ops.squeeze(shares, axis=0)
    return out, shares


def _check_sequences(inputs: tuple[Any, Any, Any], batch_first: bool) -> tuple[bool, int]:
    """Whether there is a batch, and the axis of the sequences."""
    shapes = [tuple(x.shape) for x in inputs]
    query, key, value = shapes
    batched = len(query) == 3
    sequence = int(batched and batch_first)
    ranks = {len(shape) for shape in shapes} in ({2}, {3})
    if (
        not ranks
        or key[:-1] != value[:-1]
        or (batched and query[1 - sequence] != key[1 - sequence])
    ):
        order = "(N, L, E), (N, S, ...)" if batch_first else "(L, N, E), (S, N, ...)"
        raise RuntimeError(
            f"multi-head attention got a query, a key and a value of shapes {query}, {key} and "
            f"{value}; it needs {order} and the key's, or (L, E), (S, ...) and the key's"
        )
    return batched, sequence


def _projections(
    inputs: tuple[Any, Any, Any], weight: Tensor, bias: Tensor | None
) -> tuple[Tensor, ...]:
    """Queries, keys and values, by one product if they are of one input."""
    query, key, value = inputs
    if query is key is value:
        together = linear(query, weight, bias)
        shape = (*together.shape[:-1], 3, together.shape[-1] // 3)
        return ops.unstack(ops.reshape(together, shape), axis=-2)
    width = weight.shape[1]
    weights = ops.unstack(ops.reshape(weight, (3, width, width)))
    parts = (None,) * 3 if bias is None else ops.unstack(ops.reshape(bias, (3, -1)))
    return tuple(linear(x, w, b) for x, w, b in zip(inputs, weights, parts, strict=True))


def _merge(attn_mask: Any, padding: Any, like: Tensor, shape: tuple[int, ...]) -> Tensor | None:
    """Both masks as what is added to scores of a shape."""
    batch, num_heads, rows, columns = shape
    merged = None
    if attn_mask is not None:
        merged = _canonical(attn_mask, "attn_mask", like, keep=False)
        given = tuple(merged.shape)
        if given == (batch * num_heads, rows, columns):
            merged = ops.reshape(merged, shape)
        elif given != (rows, columns):
            raise RuntimeError(
                f"attn_mask is of shape {given}, and should be of {(rows, columns)} or "
                f"{(batch * num_heads, rows, columns)}"
            )
    if padding is not None:
        padding = _canonical(padding, "key_padding_mask", like, keep=False)
        if tuple(padding.shape) != (batch, columns):
            raise RuntimeError(
                f"key_padding_mask is of shape {tuple(padding.shape)}, and should be of "
                f"{(batch, columns)}"
            )
        padding = ops.reshape(padding, (batch, 1, 1, columns))
        merged = padding if merged is None else ops.add(merged, padding)
    return merged
