"""Recurrent networks as layers of whole sequences."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from wengert import ops
from wengert.interpreters.namespaces import differentiable
from wengert.nn import functional as F
from wengert.nn.cells import (
    GATES,
    Uniform,
    as_state,
    check_dtype,
    check_sizes,
    mode_of,
    pair,
)
from wengert.nn.functional import recurrent
from wengert.nn.functional.dropout import probability
from wengert.nn.parameter import Parameter
from wengert.tape.leaving import warn
from wengert.tape.tensor import Tensor, wrapped


class _Recurrent(Uniform):
    """What networks of whole sequences share."""

    _states = 1  # Tensors in a state
    mode: str  # of `GATES`
    proj_size = 0
    weight_ih_l0: Parameter

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        name, proj_size = type(self).__name__, self.proj_size
        check_sizes(name, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        if not 0 <= proj_size < hidden_size:
            raise ValueError(
                f"{name}: proj_size is 0, or positive and smaller than hidden_size={hidden_size}, "
                f"and not {proj_size}"
            )
        dropout = float(probability(name, dropout, "dropout"))
        if dropout and num_layers == 1:
            warn(
                f"{name} drops results between layers, so dropout={dropout} does nothing with one "
                "layer; set num_layers, or put nn.Dropout behind"
            )
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.bidirectional = bias, batch_first, bidirectional
        self.dropout = dropout
        rows, result = GATES[self.mode] * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            width = result * (1 + bidirectional) if layer else input_size
            shapes = {
                "weight_ih": (rows, width),
                "weight_hh": (rows, result),
                "bias_ih": (rows,),
                "bias_hh": (rows,),
                "weight_hr": (proj_size, hidden_size),
            }
            for ending in ("", "_reverse")[: 1 + bidirectional]:
                for kind in self._kinds():
                    made = Parameter(ops.empty(shapes[kind], device=device, dtype=dtype))
                    setattr(self, f"{kind}_l{layer}{ending}", made)
        self.reset_parameters()

    def _kinds(self) -> Iterator[str]:
        yield from ("weight_ih", "weight_hh")
        if self.bias:
            yield from ("bias_ih", "bias_hh")
        if self.proj_size:
            yield "weight_hr"

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [
            [getattr(self, f"{kind}_l{layer}{ending}") for kind in self._kinds()]
            for layer in range(self.num_layers)
            for ending in ("", "_reverse")[: 1 + self.bidirectional]
        ]

    def flatten_parameters(self) -> None:
        """Do nothing: the parameters need no common memory. PyTorch's programs call it."""

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return the results of all steps, and the last state of each layer and direction.

        The results of a `wengert.nn.utils.rnn.PackedSequence` are packed likewise.
        """
        out, (h,) = self._run(input, None if hx is None else (hx,))
        return out, h

    def _run(self, input: Any, given: Sequence[Any] | None) -> tuple[Any, list[Tensor]]:
        """The results, and the Tensors of the last state."""
        packed = input if hasattr(input, "batch_sizes") else None
        x = _sequence(self, input, packed)
        batched = packed is not None or x.ndim == 3
        if not batched:
            x = ops.expand_dims(x, axis=0 if self.batch_first else 1)
        if self.batch_first and packed is None:
            x = ops.permute_dims(x, (1, 0, 2))
        directions = 1 + self.bidirectional
        count = self.num_layers * directions
        width = x.shape[1] if packed is None else packed.batch_sizes[0]
        lengths = (self.proj_size or self.hidden_size, self.hidden_size)[: self._states]
        if given is not None and packed is not None and packed.sorted_indices is not None:
            given = [ops.take(part, packed.sorted_indices, axis=1) for part in given]
        starts = [
            _start(self, x, None if given is None else given[i], (count, width, n), batched)
            for i, n in enumerate(lengths)
        ]
        ends: list[tuple[Tensor, ...]] = []
        weights = self.all_weights
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            results = []
            for reverse in range(directions):
                at = layer * directions + reverse
                own: list[Any] = list(weights[at])
                if not self.bias:
                    own[2:2] = (None, None)
                state = tuple(start[at] for start in starts)
                back = bool(reverse)
                if packed is None:
                    out, end = recurrent.run(self.mode, x, state, own, reverse=back)
                else:
                    sizes = packed.batch_sizes
                    out, end = recurrent.run_packed(self.mode, x, sizes, state, own, reverse=back)
                results.append(out)
                ends.append(end)
            x = ops.concat(results, axis=-1) if self.bidirectional else results[0]
        last = [ops.stack(parts) for parts in zip(*ends, strict=True)]
        if packed is not None:
            if packed.unsorted_indices is not None:
                last = [ops.take(part, packed.unsorted_indices, axis=1) for part in last]
            return packed._replace(data=x), last
        out = ops.permute_dims(x, (1, 0, 2)) if self.batch_first else x
        if not batched:
            out = ops.squeeze(out, axis=0 if self.batch_first else 1)
            last = [ops.squeeze(part, axis=1) for part in last]
        return out, last

    def extra_repr(self) -> str:
        standard = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        told = [f"{k}={getattr(self, k)}" for k, v in standard.items() if getattr(self, k) != v]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *told])


def _sequence(module: _Recurrent, input: Any, packed: Any) -> Tensor:
    """Check an input, before anything is computed."""
    name = type(module).__name__
    if packed and type(packed.batch_sizes) is not tuple:
        raise TypeError(f"{name} takes packed sequences of wg.nn.utils.rnn, not {type(packed)}")
    x = wrapped(packed.data if packed else input)
    if packed and (x.ndim != 2 or x.shape[-1] != module.input_size):
        raise RuntimeError(
            f"{name} got a packed sequence with rows of shape {tuple(x.shape)[1:]}; it needs "
            f"({module.input_size},)"
        )
    axes = "(N, T, " if module.batch_first else "(T, N, "
    if x.ndim not in (2, 3) or x.shape[-1] != module.input_size:
        raise RuntimeError(
            f"{name} got an input of shape {tuple(x.shape)}; it needs {axes}{module.input_size}), "
            f"or (T, {module.input_size}) without a batch"
        )
    if not x.shape[int(x.ndim == 3 and module.batch_first)] and not packed:
        raise RuntimeError(f"{name} needs a sequence of at least one step, not {tuple(x.shape)}")
    check_dtype(name, x, module.weight_ih_l0)
    return x


def _start(
    module: _Recurrent, x: Tensor, given: Any, shape: tuple[int, int, int], batched: bool
) -> tuple[Tensor, ...]:
    """One Tensor of the state at first for each layer and direction, (N, H)."""
    count, _, length = shape
    if given is None:
        zeros = ops.zeros(shape[1:], dtype=x.dtype, device=differentiable.device(x))
        return (zeros,) * count
    wanted = shape if batched else (count, length)
    state = as_state(type(module).__name__, given, x, wanted)
    return ops.unstack(ops.reshape(state, shape))


class RNN(_Recurrent):
    """Simple recurrent network, :math:`h_t = f(W_{ih} x_t + b_{ih} + W_{hh} h_{t-1} + b_{hh})`.

    PyTorch: ``torch.nn.RNN``.

    Parameters
    ----------
    batch_first : bool
        Whether inputs and results are of shape (N, T, ...) and not (T, N, ...).
    dropout : float
        Probability of zero for results between layers, while training.
    bidirectional : bool
        Whether a second network runs from the end; the results of both are side by side.

    Attributes
    ----------
    weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 : Parameter
        Of each layer k, with ``_lk``, and ``_lk_reverse`` for the second direction. The gates'
        parts follow one another. All start uniform within one over the root of ``hidden_size``.

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
        self.mode, self.nonlinearity = mode_of(nonlinearity), nonlinearity
        more = batch_first, dropout, bidirectional, device, dtype
        super().__init__(input_size, hidden_size, num_layers, bias, *more)


class GRU(_Recurrent):
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


class LSTM(_Recurrent):
    r"""Long short-term memory.

    .. math::

        i, f, o &= \sigma(W_{i \cdot} x_t + b_{i \cdot} + W_{h \cdot} h_{t-1} + b_{h \cdot}) \\
        g &= \tanh(W_{ig} x_t + b_{ig} + W_{hg} h_{t-1} + b_{hg}) \\
        c_t &= f c_{t-1} + i g \\
        h_t &= o \tanh c_t

    The parts of the parameters are those of i, f, g and o. Hochreiter and Schmidhuber, "Long
    short-term memory" (1997). Other options and the parameters are those of `RNN`.
    PyTorch: ``torch.nn.LSTM``.

    Parameters
    ----------
    proj_size : int
        If it is positive, the results are projected to this length by one more weight.

    Examples
    --------
    >>> lstm = wg.nn.LSTM(3, 5, num_layers=2, batch_first=True)
    >>> out, (h, c) = lstm(wg.ones((4, 7, 3)))
    >>> out.shape, h.shape, c.shape
    ((4, 7, 5), (2, 4, 5), (2, 4, 5))
    """

    _states = 2
    mode = "LSTM"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.proj_size = proj_size
        more = batch_first, dropout, bidirectional, device, dtype
        super().__init__(input_size, hidden_size, num_layers, bias, *more)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, tuple[Tensor, Tensor]]:
        """Return the results of all steps, and the pair of last states h and c."""
        out, (h, c) = self._run(input, None if hx is None else pair("LSTM", hx))
        return out, (h, c)
