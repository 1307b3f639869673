"""Attention: averages of values, weighted by how well their keys fit a query."""

import math
from operator import index
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


def multi_head_attention_forward(
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention in several heads, of which each sees its own projections.

    Head :math:`h` is `scaled_dot_product_attention` of :math:`x W_{q,h}^T + b_{q,h}` and so on; the
    heads' results, side by side, are projected once more. `wengert.nn.MultiheadAttention` has the
    parameters. It is differentiated as the attention and the projections are. Raises `RuntimeError`
    if shapes or dtypes do not fit. PyTorch: ``torch.nn.functional.multi_head_attention_forward``.

    Parameters
    ----------
    query : Tensor
        Of shape (L, N, E), or (L, E) without a batch.
    key, value : Tensor
        Of shapes (S, N, E) or (S, E); their last axes may have other lengths with weights of their
        own.
    in_proj_weight : Tensor or None
        Of shape (3 E, E): of queries, keys and values.
    in_proj_bias : Tensor or None
        Of shape (3 E,).
    bias_k, bias_v : Tensor or None
        Of shape (1, 1, E): one more key and value, after the others.
    add_zero_attn : bool
        Whether a key and a value of zeros are added.
    dropout_p : float
        Probability with which a weight is set to zero.
    out_proj_weight, out_proj_bias : Tensor
        Of shapes (E, E) and (E,); the bias may be None.
    training : bool
        Whether ``dropout_p`` counts.
    key_padding_mask : Tensor, optional
        Of shape (N, S) or (S,). Of booleans, True leaves a key out; numbers are added.
    need_weights : bool
        Whether the weights are returned too. They are 0 for a query that may attend to no key,
        whose result is the bias of the last projection.
    attn_mask : Tensor, optional
        Of shape (L, S), or (N * num_heads, L, S); True leaves a key out.
    use_separate_proj_weight : bool
        Whether the next three are used in place of ``in_proj_weight``.
    q_proj_weight, k_proj_weight, v_proj_weight : Tensor, optional
        Of shapes (E, E), (E, kdim) and (E, vdim).
    static_k, static_v : Tensor, optional
        Of shape (N * num_heads, S, E / num_heads): in place of the projections.
    average_attn_weights : bool
        Whether the weights returned are the mean over heads.
    is_causal : bool
        Says that ``attn_mask`` is the causal mask, which has to be given too.

    Returns
    -------
    out : Tensor
        Of shape (L, N, E) or (L, E).
    weights : Tensor or None
        Of shape (N, L, S), or (N, num_heads, L, S) for each head; N is left out without a batch.

    Examples
    --------
    >>> layer = wg.nn.MultiheadAttention(8, 2)
    >>> x = wg.ones((5, 1, 8))
    >>> y, weights = wg.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 8, 2, layer.in_proj_weight, layer.in_proj_bias, None, None, False, 0.0,
    ...     layer.out_proj.weight, layer.out_proj.bias,
    ... )
    >>> y.shape, weights.shape
    ((5, 1, 8), (1, 5, 5))
    """
    weights = (
        (q_proj_weight, k_proj_weight, v_proj_weight)
        if use_separate_proj_weight
        else (in_proj_weight,)
    )
    return multi_head_attention(
        (query, key, value),
        index(embed_dim_to_check),
        index(num_heads),
        weights,
        in_proj_bias,
        (out_proj_weight, out_proj_bias),
        extra=(bias_k, bias_v),
        add_zero_attn=add_zero_attn,
        dropout_p=dropout_p if training else 0.0,
        key_padding_mask=key_padding_mask,
        attn_mask=attn_mask,
        need_weights=need_weights,
        static=(static_k, static_v),
        average=average_attn_weights,
        is_causal=is_causal,
    )


def multi_head_attention(
    inputs: tuple[Any, Any, Any],
    width: int,
    num_heads: int,
    weights: tuple[Any, ...],
    bias: Any,
    last: tuple[Any, Any],
    *,
    extra: tuple[Any, Any] = (None, None),
    add_zero_attn: bool = False,
    dropout_p: float = 0.0,
    key_padding_mask: Any = None,
    attn_mask: Any = None,
    need_weights: bool = True,
    static: tuple[Any, Any] = (None, None),
    average: bool = True,
    is_causal: bool = False,
    batch_first: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """`multi_head_attention_forward`, also of batches first.

    ``weights`` are three, or one of all; ``last`` are the weight and the bias after attention.
    """
    if inputs[0].shape[-1] != width:
        raise RuntimeError(
            f"multi-head attention was made for {width} features, and got a query of shape "
            f"{tuple(inputs[0].shape)}"
        )
    batched, sequence = _check_sequences(inputs, batch_first)
    if not batched:
        inputs = _each(inputs, lambda x: ops.expand_dims(x, axis=0))
        sequence = 1
        if key_padding_mask is not None:
            key_padding_mask = ops.expand_dims(wrapped(key_padding_mask), axis=0)
    query, key, _ = inputs
    batch = query.shape[1 - sequence]
    if width % num_heads:
        raise RuntimeError(f"{width} features cannot be split among {num_heads} heads")
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "is_causal says that attn_mask is the causal mask, and there is none: give attn_mask "
            "too, ~wg.tril(wg.ones((L, S), dtype=wg.bool))"
        )
    depth = width // num_heads

    def heads(x: Tensor) -> Tensor:
        """(batch, heads, length, depth)."""
        split = ops.reshape(x, (*x.shape[:2], num_heads, depth))
        return ops.permute_dims(split, (1 - sequence, 2, sequence, 3))

    q, k, v = _projected(inputs, weights, bias)
    if (extra[0] is None) is not (extra[1] is None):
        raise RuntimeError("bias_k and bias_v are both given or both None")
    pairs = []
    for name, x, more, fixed in zip("kv", (k, v), extra, static, strict=True):
        if fixed is not None:
            if more is not None:
                raise RuntimeError(f"bias_{name} is for projections, and static_{name} is given")
            shape = (batch, num_heads, wrapped(fixed).shape[1], depth)
            if tuple(fixed.shape) != (batch * num_heads, *shape[2:]):
                raise RuntimeError(
                    f"static_{name} is of shape {tuple(fixed.shape)}, and should be of "
                    f"{(batch * num_heads, 'S', depth)}"
                )
            pairs.append(ops.reshape(fixed, shape))
            continue
        if more is not None:
            row = ops.reshape(more, (1, 1, width))
            lengths = (1, batch, width) if sequence == 0 else (batch, 1, width)
            x = ops.concat([x, ops.broadcast_to(row, lengths)], axis=sequence)
        pairs.append(heads(x))
    causal = is_causal and key_padding_mask is None and not need_weights
    mask = _merged(
        None if causal else attn_mask,
        key_padding_mask,
        query,
        (batch, num_heads, query.shape[sequence], key.shape[sequence]),
    )
    if add_zero_attn:
        here = differentiable.device(query)
        zero = ops.zeros((batch, num_heads, 1, depth), dtype=query.dtype, device=here)
        pairs = [ops.concat([x, zero], axis=-2) for x in pairs]
    k, v = pairs
    if mask is not None and (more := k.shape[-2] - mask.shape[-1]):
        mask = ops.pad(mask, (*[(0, 0)] * (mask.ndim - 1), (0, more)))
    q, shares = heads(q), None
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


def _each(inputs: tuple[Any, ...], change: Any) -> tuple[Any, ...]:
    """Change inputs, those that are one object only once."""
    changed = {id(x): change(x) for x in inputs}
    return tuple(changed[id(x)] for x in inputs)


def _projected(
    inputs: tuple[Any, Any, Any], weights: tuple[Any, ...], bias: Any
) -> tuple[Tensor, ...]:
    """Queries, keys and values, by one product if they are of one input."""
    query, key, value = inputs
    if len(weights) == 1 and query is key is value:
        together = linear(query, weights[0], bias)
        shape = (*together.shape[:-1], 3, together.shape[-1] // 3)
        return ops.unstack(ops.reshape(together, shape), axis=-2)
    if len(weights) == 1:
        width = weights[0].shape[1]
        weights = ops.unstack(ops.reshape(weights[0], (3, width, width)))
    parts = (None,) * 3 if bias is None else ops.unstack(ops.reshape(bias, (3, -1)))
    return tuple(linear(x, w, b) for x, w, b in zip(inputs, weights, parts, strict=True))


def _merged(attn_mask: Any, padding: Any, like: Tensor, shape: tuple[int, ...]) -> Tensor | None:
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
