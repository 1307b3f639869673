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


class _Layer(Module):
    """What layers of the encoder and the decoder share."""

    _crossed = False  # whether there is attention to another sequence

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

        def attention() -> MultiheadAttention:
            return MultiheadAttention(
                d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **place
            )

        self.self_attn = attention()
        if self._crossed:
            self.multihead_attn = attention()
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **place)
        self.norm_first = norm_first
        parts = range(1, 3 + self._crossed)
        for part in parts:
            setattr(self, f"norm{part}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place))
        for part in parts:
            setattr(self, f"dropout{part}", Dropout(dropout))
        self.activation = activation

    def _add_part(self, x: Tensor, part: int, function: Callable[[Tensor], Tensor]) -> Tensor:
        """A part's result, added to its input."""
        norm, dropout = getattr(self, f"norm{part}"), getattr(self, f"dropout{part}")
        if self.norm_first:
            return ops.add(x, dropout(function(norm(x))))
        return norm(ops.add(x, dropout(function(x))))  # type: ignore[no-any-return]

    def _attend(self, x: Tensor, mask: Any, padding: Any, is_causal: bool) -> Tensor:
        """The first part: attention of a sequence to itself."""
        options = {"need_weights": False, "is_causal": is_causal}
        return self._add_part(
            x, 1, lambda x: self.self_attn(x, x, x, padding, attn_mask=mask, **options)[0]
        )

    def _feed(self, x: Tensor, part: int) -> Tensor:
        """The last part: a network for each position."""
        return self._add_part(
            x, part, lambda x: self.linear2(self.dropout(self.activation(self.linear1(x))))
        )


class TransformerEncoderLayer(_Layer):
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

    def forward(
        self,
        src: Any,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Return a sequence of the shape of ``src``. The masks are those of attention."""
        return self._feed(self._attend(src, src_mask, src_key_padding_mask, is_causal), 2)


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself and to a memory, and then a network for each position.

    Vaswani et al., "Attention is all you need" (2017). Options are those of
    `TransformerEncoderLayer`. PyTorch: ``torch.nn.TransformerDecoderLayer``.

    Examples
    --------
    >>> layer = wg.nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> layer(wg.ones((4, 5, 8)), wg.ones((4, 7, 8))).shape
    (4, 5, 8)
    """

    _crossed = True

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return a sequence of the shape of ``tgt``. The masks are those of attention."""
        x = self._attend(tgt, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        masks = {"attn_mask": memory_mask, "key_padding_mask": memory_key_padding_mask}
        options = {"need_weights": False, "is_causal": memory_is_causal}
        x = self._add_part(
            x, 2, lambda x: self.multihead_attn(x, memory, memory, **masks, **options)[0]
        )
        return self._feed(x, 3)


class _Stack(Module):
    """Copies of a layer, one after the other."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        self.layers = ModuleList([deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _run(self, x: Any, *args: Any, **masks: Any) -> Any:
        for layer in self.layers:
            x = layer(x, *args, **masks)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
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
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Return a sequence of the shape of ``src``. Each layer has the masks."""
        return self._run(  # type: ignore[no-any-return]
            src,
            src_mask=mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=bool(is_causal),
        )


class TransformerDecoder(_Stack):
    """Copies of a `TransformerDecoderLayer` with its numbers, one after the other.

    PyTorch: ``torch.nn.TransformerDecoder``.

    Examples
    --------
    >>> layer = wg.nn.TransformerDecoderLayer(d_model=8, nhead=2, batch_first=True)
    >>> wg.nn.TransformerDecoder(layer, num_layers=2)(wg.ones((3, 5, 8)), wg.ones((3, 7, 8))).shape
    (3, 5, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return a sequence of the shape of ``tgt``. Each layer has the memory and the masks."""
        return self._run(  # type: ignore[no-any-return]
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=bool(tgt_is_causal),
            memory_is_causal=memory_is_causal,
        )
