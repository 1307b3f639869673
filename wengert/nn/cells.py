"""Recurrent networks as layers of one step, and what layers of whole sequences share with them."""

import math
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from wengert import ops
from wengert.interpreters.namespaces import differentiable
from wengert.nn import init
from wengert.nn.functional import recurrent
from wengert.nn.functional.define import in_one_dtype
from wengert.nn.module import Module
from wengert.nn.parameter import Parameter
from wengert.ops.creation import whole
from wengert.tape.tensor import Tensor, wrap

#: Parts of the weights, a gate each.
GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


#: A state: a Tensor, or two of an LSTM.
S = TypeVar("S")


class Recurrent(Module, Generic[S]):
    """What layers of one step and of whole sequences share."""

    mode: str  # of `GATES`
    input_size: int
    hidden_size: int
    bias: bool

    def _store(self, **options: Any) -> None:
        """Keep options; an error unless sizes are positive integers."""
        name = type(self).__name__
        for option, value in options.items():
            is_size = option.endswith("_size") or option == "num_layers"
            if is_size and whole(value, name, option) <= 0:
                raise ValueError(f"{name}: {option} is positive, and {value} is not")
            setattr(self, option, value)

    def _add_weights(self, ending: str, width: int, device: Any, dtype: Any) -> None:
        """Weights and biases of a layer whose input is of a width."""
        rows = GATES[self.mode] * self.hidden_size
        for name, *columns in (
            ("weight_ih", width),
            ("weight_hh", self.hidden_size),
            ("bias_ih",),
            ("bias_hh",),
        ):
            shape = (rows, *columns)
            there = columns or self.bias
            made = Parameter(ops.empty(shape, device=device, dtype=dtype)) if there else None
            setattr(self, name + ending, made)

    def _weights(self, ending: str = "") -> list[Any]:
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        return [getattr(self, name + ending) for name in names]

    def reset_parameters(self) -> None:
        """Draw new parameters, uniform within one over the root of ``hidden_size``."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _check_dtype(self, x: Tensor, dtype: Any) -> None:
        if x.dtype is not dtype:
            raise RuntimeError(
                f"{type(self).__name__} got an array of {x.dtype.name} and has parameters of "
                f"{dtype.name}; " + in_one_dtype(x.dtype, dtype)
            )

    def _begin(self, x: Tensor, given: Sequence[Any] | None, shape: tuple[int, ...]) -> Any:
        """The Tensors of a state, zeros by default; an error unless they are of a shape."""
        if given is None:
            zeros = ops.zeros(shape, dtype=x.dtype, device=differentiable.device(x))
            return (zeros,) * (2 if self.mode == "LSTM" else 1)
        state = [wrap(part) for part in given]
        for part in state:
            if tuple(part.shape) != shape:
                raise RuntimeError(
                    f"{type(self).__name__} got a state of shape {tuple(part.shape)}; it needs "
                    f"{shape}"
                )
            self._check_dtype(part, x.dtype)
        return state

    def _state_parts(self, hx: Any) -> Sequence[Any] | None:
        """What a user gives as the state, as a sequence."""
        if hx is None or self.mode != "LSTM":
            return None if hx is None else (hx,)
        if not isinstance(hx, tuple | list) or len(hx) != 2:
            raise RuntimeError(f"{type(self).__name__} needs a state that is a pair, (h, c)")
        return hx


class _Cell(Recurrent[S]):
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self._store(input_size=input_size, hidden_size=hidden_size, bias=bias)
        self._add_weights("", input_size, device, dtype)
        self.reset_parameters()

    def forward(self, input: Any, hx: Any = None) -> S:
        """Return the next state of (N, input_size) and a state, by default of zeros."""
        name, given = type(self).__name__, self._state_parts(hx)
        x = wrap(input)
        if x.ndim not in (1, 2) or x.shape[-1] != self.input_size:
            raise RuntimeError(
                f"{name} got an input of shape {tuple(x.shape)}; it needs (N, {self.input_size}), "
                f"or ({self.input_size},) without a batch"
            )
        weights = self._weights()
        self._check_dtype(x, weights[0].dtype)
        shape = (*x.shape[:-1], self.hidden_size)
        state = [ops.reshape(h, (-1, shape[-1])) for h in self._begin(x, given, shape)]
        x = ops.reshape(x, (1, -1, self.input_size))
        _, after = recurrent.run(self.mode, x, tuple(state), weights)
        found: Any = tuple([ops.reshape(h, shape) for h in after])
        return found if self.mode == "LSTM" else found[0]  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ", bias=False" * (not self.bias)


class GRUCell(_Cell[Tensor]):
    """One step of a `GRU`.

    PyTorch: ``torch.nn.GRUCell``.

    Examples
    --------
    >>> wg.nn.GRUCell(4, 8)(wg.ones((3, 4))).shape
    (3, 8)
    """

    mode = "GRU"


class LSTMCell(_Cell[tuple[Tensor, Tensor]]):
    """One step of an `LSTM`, to the next pair of states h and c.

    PyTorch: ``torch.nn.LSTMCell``.

    Examples
    --------
    >>> h, c = wg.nn.LSTMCell(4, 8)(wg.ones((3, 4)))
    >>> h.shape, c.shape
    ((3, 8), (3, 8))
    """

    mode = "LSTM"
