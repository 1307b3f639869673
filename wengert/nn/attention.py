"""Attention in several heads as a layer."""

from typing import Any

from wengert import ops
from wengert.nn import init
from wengert.nn.functional.attention import multi_head_attention
from wengert.nn.functional.dropout import probability
from wengert.nn.layers import Linear
from wengert.nn.module import Module
from wengert.nn.parameter import Parameter
from wengert.tape.tensor import Tensor


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear` under the name that PyTorch's ``repr`` shows."""


class MultiheadAttention(Module):
    """Attention in several heads; see `functional.multi_head_attention_forward`.

    Parameters
    ----------
    embed_dim : int
        Length E of the last axis of queries and results.
    num_heads : int
        Divides ``embed_dim``.
    dropout : float
        Probability with which a weight is set to zero while training.
    bias : bool
        Whether the projections have biases.
    add_bias_kv : bool
        Whether one more key and value are learnt.
    add_zero_attn : bool
        Whether a key and a value of zeros are added.
    kdim, vdim : int, optional
        Lengths of the last axes of keys and values, if not E.
    batch_first : bool
        Whether the batch is the first axis, and not the second.
    device, dtype : optional
        Of the parameters; the selected device and the default dtype otherwise.

    Attributes
    ----------
    in_proj_weight : Parameter or None
        Of shape (3 E, E): of queries, keys and values. With other lengths of keys or values there
        are ``q_proj_weight``, ``k_proj_weight`` and ``v_proj_weight`` in its place. All start by
        `init.xavier_uniform_`.
    in_proj_bias : Parameter or None
        Zeros at first.
    out_proj : Linear
        The projection of the heads' results.
    bias_k, bias_v : Parameter or None
        The key and value added.

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
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError(
                f"MultiheadAttention: embed_dim={embed_dim} is a positive multiple of num_heads, "
                f"which is {num_heads}"
            )

        def empty(*shape: int) -> Parameter:
            return Parameter(ops.empty(shape, device=device, dtype=dtype))

        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.dropout = probability("MultiheadAttention", dropout, "dropout")
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self.add_zero_attn = add_zero_attn
        one = self.kdim == self.vdim == embed_dim
        self.q_proj_weight = None if one else empty(embed_dim, embed_dim)
        self.k_proj_weight = None if one else empty(embed_dim, self.kdim)
        self.v_proj_weight = None if one else empty(embed_dim, self.vdim)
        self.in_proj_weight = empty(3 * embed_dim, embed_dim) if one else None
        self.in_proj_bias = empty(3 * embed_dim) if bias else None
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, device=device, dtype=dtype
        )
        self.bias_k = empty(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = empty(1, 1, embed_dim) if add_bias_kv else None
        for weight in self._weights():
            init.xavier_uniform_(weight)
        for row in (self.in_proj_bias, self.out_proj.bias):
            if row is not None:
                init.zeros_(row)
        for row in (self.bias_k, self.bias_v):
            if row is not None:
                init.xavier_normal_(row)

    def _weights(self) -> tuple[Any, ...]:
        if self.in_proj_weight is not None:
            return (self.in_proj_weight,)
        return self.q_proj_weight, self.k_proj_weight, self.v_proj_weight

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
        """Return the result, and the weights or None."""
        return multi_head_attention(
            (query, key, value),
            self.embed_dim,
            self.num_heads,
            self._weights(),
            self.in_proj_bias,
            (self.out_proj.weight, self.out_proj.bias),
            extra=(self.bias_k, self.bias_v),
            add_zero_attn=self.add_zero_attn,
            dropout_p=self.dropout if self.training else 0.0,
            key_padding_mask=key_padding_mask,
            attn_mask=attn_mask,
            need_weights=need_weights,
            average=average_attn_weights,
            is_causal=is_causal,
            batch_first=self.batch_first,
        )
