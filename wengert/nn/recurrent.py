"""Recurrent networks as layers of whole sequences."""

from collections.abc import Sequence
from typing import Any, Literal

from wengert import ops
from wengert.nn import functional as F
from wengert.nn.cells import Recurrent, S
from wengert.nn.functional import recurrent
from wengert.nn.functional.dropout import probability
from wengert.nn.parameter import Parameter
from wengert.ops.hints import Refusing
from wengert.tape.leaving import warn
from wengert.tape.tensor import Tensor, wrap


class _Layers(Recurrent[S]):
    """Layers one after the other, each in one direction or in two."""

    num_layers: int
    batch_first: bool
    dropout: float
    bidirectional: bool

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,  # in PyTorch's place of these an LSTM has proj_size
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        name = type(self).__name__
        dropout = float(probability(name, dropout, "dropout"))
        if dropout and num_layers == 1:
            warn(
                f"{name} drops results between layers, so dropout={dropout} does nothing with one "
                "layer; set num_layers, or put nn.Dropout behind"
            )
        self._store(input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        self._store(bias=bias, batch_first=batch_first, bidirectional=bidirectional)
        self.dropout = dropout
        for ending in self._endings():
            first = ending.startswith("_l0")
            width = input_size if first else hidden_size * (1 + bidirectional)
            self._add_weights(ending, width, device, dtype)
        self.reset_parameters()

    def _endings(self) -> list[str]:
        """The ends of the parameters' names, of each layer and direction."""
        directions = ("", "_reverse")[: 1 + self.bidirectional]
        return [f"_l{layer}{end}" for layer in range(self.num_layers) for end in directions]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        found = map(self._weights, self._endings())
        return [[weight for weight in weights if weight is not None] for weights in found]

    def flatten_parameters(self) -> None:
        """Do nothing: the parameters need no common memory. PyTorch's programs call it."""

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, S]:
        """Return the results of all steps, and the last state of each layer and direction.

        The results of a `wengert.nn.utils.rnn.PackedSequence` are packed likewise. The state of an
        LSTM is a pair, h and c.
        """
        packed = input if hasattr(input, "batch_sizes") else None
        given = self._state_parts(hx)
        x = self._sequence(input, packed)
        batched = packed is not None or x.ndim == 3
        if not batched:
            x = ops.expand_dims(x, axis=0 if self.batch_first else 1)
        if self.batch_first and packed is None:
            x = ops.permute_dims(x, (1, 0, 2))
        out, last = self._run(x, packed, given, batched)
        if packed is not None:
            out = packed._replace(data=out)
        elif self.batch_first:
            out = ops.permute_dims(out, (1, 0, 2))
        if not batched:
            out = ops.squeeze(out, axis=0 if self.batch_first else 1)
            last = [ops.squeeze(part, axis=1) for part in last]
        state: Any = tuple(last) if self.mode == "LSTM" else last[0]
        return out, state

    def _run(
        self, x: Tensor, packed: Any, given: Sequence[Any] | None, batched: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """The results, and the Tensors of the last state."""
        sizes, order, back = (None, None, None) if packed is None else packed[1:]
        endings = self._endings()
        whole = (len(endings), x.shape[1] if sizes is None else sizes[0], self.hidden_size)
        if given is not None and order is not None:
            given = [ops.take(part, order, axis=1) for part in given]
        state = self._begin(x, given, whole if batched else (whole[0], whole[2]))
        starts = [ops.unstack(ops.reshape(part, whole)) for part in state]
        ends, results = [], []
        for at, ending in enumerate(endings):
            start = tuple([part[at] for part in starts])
            reverse = ending.endswith("_reverse")
            out, end = recurrent.run(
                self.mode, x, start, self._weights(ending), sizes, reverse=reverse
            )
            ends.append(end)
            results.append(out)
            if len(results) == 1 + self.bidirectional:  # those of a layer
                x = ops.concat(results, axis=-1) if self.bidirectional else out
                results = []
                if self.dropout and at + 1 < len(endings):
                    x = F.dropout(x, self.dropout, self.training)
        last = [ops.stack(parts) for parts in zip(*ends, strict=True)]
        return x, last if back is None else [ops.take(part, back, axis=1) for part in last]

    def _sequence(self, input: Any, packed: Any) -> Tensor:
        """Check an input, before anything is computed."""
        name, size = type(self).__name__, self.input_size
        if packed and type(packed.batch_sizes) is not tuple:
            raise TypeError(f"{name} takes packed sequences of wg.nn.utils.rnn, not {type(packed)}")
        x = wrap(packed.data if packed else input)
        if packed and (x.ndim != 2 or x.shape[-1] != size):
            raise RuntimeError(
                f"{name} got a packed sequence with rows of shape {tuple(x.shape)[1:]}; it needs "
                f"({size},)"
            )
        axes = "(N, T, " if self.batch_first else "(T, N, "
        if x.ndim not in (2, 3) or x.shape[-1] != size:
            raise RuntimeError(
                f"{name} got an input of shape {tuple(x.shape)}; it needs {axes}{size}), or (T, "
                f"{size}) without a batch"
            )
        if not x.shape[int(x.ndim == 3 and self.batch_first)] and not packed:
            raise RuntimeError(
                f"{name} needs a sequence of at least one step, not {tuple(x.shape)}"
            )
        self._check_dtype(x, self._weights("_l0")[0].dtype)
        return x

    def extra_repr(self) -> str:
        standard = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0}
        standard["bidirectional"] = False
        others = [f"{k}={getattr(self, k)}" for k, v in standard.items() if getattr(self, k) != v]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *others])


class RNN(_Layers[Tensor]):
    """Simple recurrent network, :math:`h_t = f(W_{ih} x_t + b_{ih} + W_{hh} h_{t-1} + b_{hh})`.

    With ``batch_first`` inputs and results are of shape (N, T, ...) and not (T, N, ...). While
    training, ``dropout`` sets results between layers to zero. A second network, of a
    ``bidirectional`` layer, runs from the end; the results of both are side by side.
    PyTorch: ``torch.nn.RNN``.

    Attributes
    ----------
    weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 : Parameter
        Of each layer k, with ``_lk``, and ``_lk_reverse`` for the second direction. The gates'
        parts follow one another.

    Examples
    --------
    >>> rnn = wg.nn.RNN(input_size=4, hidden_size=8, num_layers=2)
    >>> y, h = rnn(wg.ones((10, 3, 4)))  # 10 steps, 3 sequences
    >>> y.shape, h.shape
    ((10, 3, 8), (2, 3, 8))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: Literal["tanh", "relu"] = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"{nonlinearity!r} is no nonlinearity of an RNN: it is 'tanh' or 'relu'"
            )
        self.mode, self.nonlinearity = f"RNN_{nonlinearity.upper()}", nonlinearity
        more = bias, batch_first, dropout, bidirectional
        super().__init__(input_size, hidden_size, num_layers, *more, device=device, dtype=dtype)


class GRU(_Layers[Tensor]):
    r"""Gated recurrent units.

    .. math::

        r &= \sigma(W_{ir} x_t + b_{ir} + W_{hr} h_{t-1} + b_{hr}) \\
        z &= \sigma(W_{iz} x_t + b_{iz} + W_{hz} h_{t-1} + b_{hz}) \\
        n &= \tanh(W_{in} x_t + b_{in} + r (W_{hn} h_{t-1} + b_{hn})) \\
        h_t &= (1 - z) n + z h_{t-1}

    Cho et al., "Learning phrase representations using RNN encoder-decoder for statistical machine
    translation" (2014). Options but ``nonlinearity``, and the parameters, are those of `RNN`.
    PyTorch: ``torch.nn.GRU``.

    Examples
    --------
    >>> gru = wg.nn.GRU(input_size=4, hidden_size=8, batch_first=True, bidirectional=True)
    >>> y, h = gru(wg.ones((3, 10, 4)))
    >>> y.shape, h.shape
    ((3, 10, 16), (2, 3, 8))
    """

    mode = "GRU"


class LSTM(_Layers[tuple[Tensor, Tensor]], Refusing):
    r"""Long short-term memory.

    .. math::

        i, f, o &= \sigma(W_{i \cdot} x_t + b_{i \cdot} + W_{h \cdot} h_{t-1} + b_{h \cdot}) \\
        g &= \tanh(W_{ig} x_t + b_{ig} + W_{hg} h_{t-1} + b_{hg}) \\
        c_t &= f c_{t-1} + i g \\
        h_t &= o \tanh c_t

    The parts of the parameters are those of i, f, g and o. Hochreiter and Schmidhuber, "Long
    short-term memory" (1997). Options and parameters are those of `RNN`.
    PyTorch: ``torch.nn.LSTM``.

    Examples
    --------
    >>> lstm = wg.nn.LSTM(3, 5, num_layers=2, batch_first=True)
    >>> out, (h, c) = lstm(wg.ones((4, 7, 3)))
    >>> out.shape, h.shape, c.shape
    ((4, 7, 5), (2, 4, 5), (2, 4, 5))
    """

    mode = "LSTM"
