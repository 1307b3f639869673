"""Attention in several heads as a layer."""

from typing import Any

from wengert import ops
from wengert.nn import functional as F
from wengert.nn import init
from wengert.nn.functional.attention import additive_mask, attend
from wengert.nn.functional.dropout import probability
from wengert.nn.layers import Linear
from wengert.nn.module import Module
from wengert.nn.parameter import Parameter
from wengert.ops.hints import Refusing
from wengert.tape.tensor import Tensor, wrap


class MultiheadAttention(Refusing, Module):
    r"""Attention in several heads, of which each sees its own projections.

    Head :math:`h` is `functional.scaled_dot_product_attention` of :math:`x W_{q,h}^T + b_{q,h}` and
    so on; the heads' results, side by side, are projected once more. Queries are of shape (L, N, E)
    and keys and values of shape (S, N, E), the result and the weights of shapes (L, N, E) and
    (N, L, S); N is left out without a batch. E is a multiple of the number of heads. Raises
    `RuntimeError` if shapes or dtypes do not fit.

    Attributes
    ----------
    in_proj_weight : Parameter
        Of shape (3 E, E): of queries, keys and values. It starts by `init.xavier_uniform_`.
    in_proj_bias : Parameter or None
        Zeros at first.

    Examples
    --------
    >>> attention = wg.nn.MultiheadAttention(8, num_heads=2, batch_first=True)
    >>> x = wg.ones((4, 5, 8))
    >>> out, weights = attention(x, x, x)
    >>> out.shape, weights.shape
    ((4, 5, 8), (4, 5, 5))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        *,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError(
                f"MultiheadAttention: embed_dim={embed_dim} is a positive multiple of num_heads, "
                f"which is {num_heads}"
            )
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = probability("MultiheadAttention", dropout, "dropout")
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        of: dict[str, Any] = {"device": device, "dtype": dtype}
        self.in_proj_weight = Parameter(ops.empty((3 * embed_dim, embed_dim), **of))
        self.in_proj_bias = Parameter(ops.zeros((3 * embed_dim,), **of)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, **of)
        init.xavier_uniform_(self.in_proj_weight)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the result, and the weights or None.

        Parameters
        ----------
        key_padding_mask : Tensor, optional
            Of shape (N, S) or (S,). Of booleans, True leaves a key out; numbers are added.
        need_weights : bool
            Whether the weights are returned too. They are 0 for a query that may attend to no key,
            whose result is the bias of the last projection.
        attn_mask : Tensor, optional
            Of shape (L, S), or (N * num_heads, L, S); True leaves a key out.
        average_attn_weights : bool
            Whether the weights are the mean over heads, and not of shape (N, num_heads, L, S).
        is_causal : bool
            Says that ``attn_mask`` is the causal mask, which has to be given too.
        """
        inputs = (query, key, value)
        if query.shape[-1] != self.embed_dim:
            raise RuntimeError(
                f"multi-head attention was made for {self.embed_dim} features, and got a query of "
                f"shape {tuple(query.shape)}"
            )
        if is_causal and attn_mask is None:
            raise RuntimeError(
                "is_causal says that attn_mask is the causal mask, and there is none: give "
                "attn_mask too, ~wg.tril(wg.ones((L, S), dtype=wg.bool))"
            )
        batched, sequence = _check_sequences(inputs, self.batch_first)
        if not batched:
            rows = {id(x): ops.expand_dims(x, axis=0) for x in inputs}
            inputs = rows[id(query)], rows[id(key)], rows[id(value)]
            sequence = 1
            if key_padding_mask is not None:
                key_padding_mask = ops.expand_dims(wrap(key_padding_mask), axis=0)
        query, key, _ = inputs

        def split_heads(x: Tensor) -> tuple[Tensor, ...]:
            """Of queries, keys and values together, or of one: (batch, heads, length, depth)."""
            count = x.shape[2] // self.embed_dim
            split = ops.reshape(x, (*x.shape[:2], count, self.num_heads, self.head_dim))
            return ops.unstack(ops.permute_dims(split, (2, 1 - sequence, 3, sequence, 4)))

        projected = _project(inputs, self.in_proj_weight, self.in_proj_bias)
        q, k, v = [part for x in projected for part in split_heads(x)]
        causal = is_causal and key_padding_mask is None and not need_weights
        mask = _merge(None if causal else attn_mask, key_padding_mask, q, k)
        dropout_p = self.dropout if self.training else 0.0
        out, shares, nowhere = attend(q, k, v, mask, dropout_p, causal)
        back = (2, 0, 1, 3) if sequence == 0 else (0, 2, 1, 3)
        out = ops.reshape(ops.permute_dims(out, back), tuple(query.shape))
        out = F.linear(out, self.out_proj.weight, self.out_proj.bias)
        out = out if batched else ops.squeeze(out, axis=0)
        if not need_weights:
            return out, None
        shares = shares if nowhere is None else ops.where(nowhere, 0.0, shares)
        shares = ops.mean(shares, axis=1) if average_attn_weights else shares
        return out, shares if batched else ops.squeeze(shares, axis=0)


def _check_sequences(inputs: tuple[Any, Any, Any], batch_first: bool) -> tuple[bool, int]:
    """Whether there is a batch, and the axis of the sequences."""
    shapes = [tuple(x.shape) for x in inputs]
    query, key, value = shapes
    batched = len(query) == 3
    sequence = int(batched and batch_first)
    fits = {len(shape) for shape in shapes} in ({2}, {3}) and key[:-1] == value[:-1]
    if not fits or (batched and query[1 - sequence] != key[1 - sequence]):
        order = "(N, L, E), (N, S, ...)" if batch_first else "(L, N, E), (S, N, ...)"
        raise RuntimeError(
            f"multi-head attention got a query, a key and a value of shapes {query}, {key} and "
            f"{value}; it needs {order} and the key's, or (L, E), (S, ...) and the key's"
        )
    return batched, sequence


def _project(
    inputs: tuple[Any, Any, Any], weight: Tensor, bias: Tensor | None
) -> tuple[Tensor, ...]:
    """Queries, keys and values, side by side by one product if they are of one input."""
    query, key, value = inputs
    if query is key is value:
        return (F.linear(query, weight, bias),)
    width = weight.shape[1]
    weights = ops.unstack(ops.reshape(weight, (3, width, width)))
    parts = (None,) * 3 if bias is None else ops.unstack(ops.reshape(bias, (3, -1)))
    return tuple(F.linear(x, w, b) for x, w, b in zip(inputs, weights, parts, strict=True))


def _merge(attn_mask: Any, padding: Any, q: Tensor, k: Tensor) -> Tensor | None:
    """Both masks as what is added to scores."""
    batch, heads, rows, columns = *q.shape[:-1], k.shape[-2]
    merged = None
    if attn_mask is not None:
        merged = additive_mask(attn_mask, "attn_mask", q, keep=False)
        shape = tuple(merged.shape)
        if shape == (batch * heads, rows, columns):
            merged = ops.reshape(merged, (batch, heads, rows, columns))
        elif shape != (rows, columns):
            raise RuntimeError(
                f"attn_mask is of shape {shape}, and should be of {(rows, columns)} or "
                f"{(batch * heads, rows, columns)}"
            )
    if padding is not None:
        padding = additive_mask(padding, "key_padding_mask", q, keep=False)
        if tuple(padding.shape) != (batch, columns):
            raise RuntimeError(
                f"key_padding_mask is of shape {tuple(padding.shape)}, and should be of "
                f"{(batch, columns)}"
            )
        padding = ops.reshape(padding, (batch, 1, 1, columns))
        merged = padding if merged is None else ops.add(merged, padding)
    return merged
