"""Attention in several heads as a layer."""

from typing import Any

from wengert import ops
from wengert.nn import init
from wengert.nn.functional.attention import multi_head_attention
from wengert.nn.functional.dropout import probability
from wengert.nn.layers import Linear
from wengert.nn.module import Module
from wengert.nn.parameter import Parameter
from wengert.ops.hints import Refusing
from wengert.tape.tensor import Tensor


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear` under the name that PyTorch's ``repr`` shows."""


class MultiheadAttention(Refusing, Module):
    r"""Attention in several heads, of which each sees its own projections.

    Head :math:`h` is `functional.scaled_dot_product_attention` of :math:`x W_{q,h}^T + b_{q,h}` and
    so on; the heads' results, side by side, are projected once more. Queries are of shape (L, N, E)
    and keys and values of shape (S, N, E), the result and the weights of shapes (L, N, E) and
    (N, L, S); N is left out without a batch. Raises `RuntimeError` if shapes or dtypes do not fit.

    Parameters
    ----------
    embed_dim : int
        Length E of the last axis of queries, keys, values and results.
    num_heads : int
        Divides ``embed_dim``.
    dropout : float
        Probability with which a weight is set to zero while training.
    bias : bool
        Whether the projections have biases.
    batch_first : bool
        Whether the batch is the first axis, and not the second.
    device, dtype : optional
        Of the parameters; the selected device and the default dtype otherwise.

    Attributes
    ----------
    in_proj_weight : Parameter
        Of shape (3 E, E): of queries, keys and values. It starts by `init.xavier_uniform_`.
    in_proj_bias : Parameter or None
        Zeros at first.
    out_proj : Linear
        The projection of the heads' results.

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
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **of)
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
        query, key, value : Tensor
            Of shapes (L, N, E) and (S, N, E), or without N.
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
        return multi_head_attention(
            (query, key, value),
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            (self.out_proj.weight, self.out_proj.bias),
            dropout_p=self.dropout if self.training else 0.0,
            key_padding_mask=key_padding_mask,
            attn_mask=attn_mask,
            need_weights=need_weights,
            average=average_attn_weights,
            is_causal=is_causal,
            batch_first=self.batch_first,
        )
