"""Transformers: layers of attention and of networks for each position."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from wengert import ops
from wengert.nn import functional as F
from wengert.nn.attention import MultiheadAttention
from wengert.nn.containers import ModuleList
from wengert.nn.layers import Linear
from wengert.nn.module import Module
from wengert.nn.normalisation import LayerNorm
from wengert.nn.stored import Dropout
from wengert.tape.tensor import Tensor

Activation = Callable[[Tensor], Tensor]

_ACTIVATIONS: dict[str, Activation] = {"relu": F.relu, "gelu": F.gelu}


class TransformerEncoderLayer(Module):
    r"""Attention of a sequence to itself, and then a network for each position.

    Each part's result, of which ``dropout`` sets a share to zero while training, is added to its
    input; with ``norm_first`` the input is normalised, :math:`x + f(\operatorname{norm}(x))`, and
    not the sum, :math:`\operatorname{norm}(x + f(x))`. Vaswani et al., "Attention is all you need"
    (2017). PyTorch: ``torch.nn.TransformerEncoderLayer``.

    Examples
    --------
    >>> layer = wg.nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> layer(wg.ones((4, 5, 8))).shape
    (4, 5, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if isinstance(activation, str):
            if activation not in _ACTIVATIONS:
                raise ValueError(
                    f"activation is 'relu', 'gelu' or a function, and not {activation!r}"
                )
            activation = _ACTIVATIONS[activation]
        place = {"device": device, "dtype": dtype}
        more = {"bias": bias, "batch_first": batch_first}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, **more, **place)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **place)
        self.norm_first = norm_first
        self.norm1, self.norm2 = (
            LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place) for _ in range(2)
        )
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.activation = activation

    def forward(
        self,
        src: Any,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Return a sequence of the shape of ``src``. The masks are those of attention."""

        def attend(x: Tensor) -> Tensor:
            out, _ = self.self_attn(
                x, x, x, src_key_padding_mask, False, attn_mask=src_mask, is_causal=is_causal
            )
            return self.dropout1(out)

        def feed(x: Tensor) -> Tensor:
            inner = self.dropout(self.activation(self.linear1(x)))
            return self.dropout2(self.linear2(inner))

        if self.norm_first:
            x = ops.add(src, attend(self.norm1(src)))
            return ops.add(x, feed(self.norm2(x)))
        x = self.norm1(ops.add(src, attend(src)))
        return self.norm2(ops.add(x, feed(x)))


class TransformerEncoder(Module):
    """Copies of a `TransformerEncoderLayer` with its numbers, one after the other.

    PyTorch: ``torch.nn.TransformerEncoder``.

    Examples
    --------
    >>> layer = wg.nn.TransformerEncoderLayer(d_model=8, nhead=2, batch_first=True)
    >>> wg.nn.TransformerEncoder(layer, num_layers=2)(wg.ones((3, 5, 8))).shape
    (3, 5, 8)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        self.layers = ModuleList([deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Return a sequence of the shape of ``src``. Each layer has the masks."""
        x = src
        for layer in self.layers:
            x = layer(
                x,
                src_mask=mask,
                src_key_padding_mask=src_key_padding_mask,
                is_causal=bool(is_causal),
            )
        return x if self.norm is None else self.norm(x)  # type: ignore[no-any-return]
