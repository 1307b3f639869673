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
        """A part's result, added to what it was given."""
        norm, dropout = getattr(self, f"norm{part}"), getattr(self, f"dropout{part}")
        if self.norm_first:
            return ops.add(x, dropout(function(norm(x))))
        return norm(ops.add(x, dropout(function(x))))  # type: ignore[no-any-return]

    def _forwards(self, x: Tensor) -> Tensor:
        """The network for each position."""
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


def _attending(
    layer: MultiheadAttention, memory: Any, mask: Any, padding: Any, is_causal: bool
) -> Callable[[Tensor], Tensor]:
    """Attention of what it is given to a memory, or to itself."""

    def attend(x: Tensor) -> Tensor:
        to = x if memory is None else memory
        return layer(
            x,
            to,
            to,
            attn_mask=mask,
            key_padding_mask=padding,
            need_weights=False,
            is_causal=is_causal,
        )[0]

    return attend


class TransformerEncoderLayer(_Layer):
    r"""Attention of a sequence to itself, and then a network for each position.

    Vaswani et al., "Attention is all you need" (2017).
    PyTorch: ``torch.nn.TransformerEncoderLayer``.

    Parameters
    ----------
    dropout : float
        Probability of zero while training, of attention's weights and of what each part adds.
    norm_first : bool
        Whether the input of each part is normalised, :math:`x + f(\operatorname{norm}(x))`, and not
        its result, :math:`\operatorname{norm}(x + f(x))`.

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
        attend = _attending(self.self_attn, None, src_mask, src_key_padding_mask, is_causal)
        return self._add_part(self._add_part(src, 1, attend), 2, self._forwards)


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
        own = _attending(self.self_attn, None, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        cross = _attending(
            self.multihead_attn, memory, memory_mask, memory_key_padding_mask, memory_is_causal
        )
        x = self._add_part(self._add_part(tgt, 1, own), 2, cross)
        return self._add_part(x, 3, self._forwards)


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
    """Layers such as `TransformerEncoderLayer`, one after the other.

    PyTorch: ``torch.nn.TransformerEncoder``.

    Parameters
    ----------
    encoder_layer : Module
        Copied for each layer, with its numbers.

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
    """Layers such as `TransformerDecoderLayer`, one after the other.

    PyTorch: ``torch.nn.TransformerDecoder``.

    Parameters
    ----------
    decoder_layer : Module
        Copied for each layer, with its numbers.

    Examples
    --------
    >>> layer = wg.nn.TransformerDecoderLayer(d_model=8, nhead=2, batch_first=True)
    >>> decoder = wg.nn.TransformerDecoder(layer, num_layers=2)
    >>> targets, memory = wg.ones((3, 5, 8)), wg.ones((3, 7, 8))
    >>> decoder(targets, memory).shape
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
