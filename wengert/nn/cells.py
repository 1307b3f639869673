"""Recurrent networks as layers of one step, and what layers of whole sequences share with them."""

import math
from collections.abc import Sequence
from typing import Any, Literal

from wengert import ops
from wengert.interpreters.namespaces import differentiable
from wengert.nn import init
from wengert.nn.functional import recurrent
from wengert.nn.functional.define import in_one_dtype
from wengert.nn.module import Module
from wengert.nn.parameter import Parameter
from wengert.ops.creation import whole
from wengert.tape.tensor import Tensor, wrapped

#: Parts of the weights, a gate each.
GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


def check_sizes(name: str, **sizes: Any) -> None:
    """Raise an error unless sizes are positive integers."""
    for option, size in sizes.items():
        if whole(size, name, option) <= 0:
            raise ValueError(f"{name}: {option} is positive, and {size} is not")


class Uniform(Module):
    """A module whose parameters start within one over the root of `hidden_size`."""

    hidden_size: int

    def reset_parameters(self) -> None:
        """Draw new parameters."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)


def check_dtype(name: str, x: Tensor, weight: Tensor) -> None:
    """Raise an error unless an array has the parameters' dtype."""
    if x.dtype is not weight.dtype:
        raise RuntimeError(
            f"{name} got an array of {x.dtype.name} and has parameters of {weight.dtype.name}; "
            + in_one_dtype(x.dtype, weight.dtype)
        )


def as_state(name: str, given: Any, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A state as a Tensor; an error unless it has a shape and the dtype of an input."""
    state = wrapped(given)
    if tuple(state.shape) != shape:
        raise RuntimeError(f"{name} got a state of shape {tuple(state.shape)}; it needs {shape}")
    check_dtype(name, state, x)
    return state


def pair(name: str, hx: Any) -> tuple[Any, Any]:
    """The state of an LSTM, as two."""
    if not isinstance(hx, tuple | list) or len(hx) != 2:
        raise RuntimeError(f"{name} needs a state that is a pair, (h, c)")
    h, c = hx
    return h, c


def mode_of(nonlinearity: str) -> str:
    """The key of `GATES` for a nonlinearity of an RNN."""
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f"{nonlinearity!r} is no nonlinearity of an RNN: it is 'tanh' or 'relu'")
    return f"RNN_{nonlinearity.upper()}"


class _Cell(Uniform):
    """What single steps share."""

    _mode: str  # of `GATES`

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_sizes(type(self).__name__, input_size=input_size, hidden_size=hidden_size)
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = GATES[self._mode] * hidden_size

        def empty(*shape: int) -> Parameter:
            return Parameter(ops.empty(shape, device=device, dtype=dtype))

        self.weight_ih = empty(rows, input_size)
        self.weight_hh = empty(rows, hidden_size)
        self.bias_ih = empty(rows) if bias else None
        self.bias_hh = empty(rows) if bias else None
        self.reset_parameters()

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return the next state of (N, input_size) and a state, by default of zeros."""
        return self._step(input, None if hx is None else (hx,), 1)[0]

    def _step(self, input: Any, given: Sequence[Any] | None, states: int) -> tuple[Tensor, ...]:
        name = type(self).__name__
        x = wrapped(input)
        if x.ndim not in (1, 2) or x.shape[-1] != self.input_size:
            raise RuntimeError(
                f"{name} got an input of shape {tuple(x.shape)}; it needs (N, {self.input_size}), "
                f"or ({self.input_size},) without a batch"
            )
        check_dtype(name, x, self.weight_ih)
        lead = tuple(x.shape[:-1])
        x = ops.reshape(x, (1, -1, self.input_size))
        if given is None:
            rows = (x.shape[1], self.hidden_size)
            state = (ops.zeros(rows, dtype=x.dtype, device=differentiable.device(x)),) * states
        else:
            shape = (*lead, self.hidden_size)
            parts = [as_state(name, part, x, shape) for part in given]
            state = tuple(ops.reshape(part, (-1, self.hidden_size)) for part in parts)
        parameters = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        _, after = recurrent.run(self._mode, x, state, parameters)
        return tuple(ops.reshape(h, (*lead, self.hidden_size)) for h in after)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ", bias=False" * (not self.bias)


class RNNCell(_Cell):
    """One step of an `RNN`.

    PyTorch: ``torch.nn.RNNCell``.

    Examples
    --------
    >>> cell = wg.nn.RNNCell(4, 8)
    >>> h = cell(wg.ones((3, 4)))
    >>> cell(wg.ones((3, 4)), h).shape
    (3, 8)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: Literal["tanh", "relu"] = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, bias, device, dtype)

    @property
    def _mode(self) -> str:  # type: ignore[override]
        return mode_of(self.nonlinearity)

    def extra_repr(self) -> str:
        other = "" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}"
        return super().extra_repr() + other


class GRUCell(_Cell):
    """One step of a `GRU`.

    PyTorch: ``torch.nn.GRUCell``.

    Examples
    --------
    >>> cell = wg.nn.GRUCell(4, 8)
    >>> h = cell(wg.ones((3, 4)))
    >>> cell(wg.ones((3, 4)), h).shape
    (3, 8)
    """

    _mode = "GRU"


class LSTMCell(_Cell):
    """One step of an `LSTM`.

    PyTorch: ``torch.nn.LSTMCell``.

    Examples
    --------
    >>> cell = wg.nn.LSTMCell(4, 8)
    >>> h, c = cell(wg.ones((3, 4)))
    >>> h, c = cell(wg.ones((3, 4)), (h, c))
    >>> h.shape, c.shape
    ((3, 8), (3, 8))
    """

    _mode = "LSTM"

    def forward(self, input: Any, hx: Any = None) -> tuple[Tensor, Tensor]:
        """Return the next pair of states h and c; the first pair is zeros by default."""
        h, c = self._step(input, None if hx is None else pair("LSTMCell", hx), 2)
        return h, c
