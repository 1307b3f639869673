"""Recurrent networks: functions that are run along a sequence.

Arrays here have the features on their first axis and the batch on their last: so the gates are
contiguous parts, and a step is one product with the weight as it is.
"""

from collections.abc import Callable, Sequence
from typing import Any

from wengert import ops
from wengert.nn.functional.activation import relu, sigmoid, tanh
from wengert.tape.tensor import Tensor

State = tuple[Tensor, ...]
#: Of a step's input projection (gates, N), the state and the recurrent parameters the next state,
#: whose first Tensor is the result.
Step = Callable[[Tensor, State, Sequence[Any]], State]


def projected(x: Tensor, kind: str, parameters: Sequence[Any]) -> Tensor:
    """The part of all gates that follows from inputs (I, ...) alone, in one product."""
    weight, _, bias, of_state, *_ = parameters
    columns = ops.matmul(weight, ops.reshape(x, (x.shape[0], -1)))
    if bias is not None:
        # A GRU's reset gate is between its new state and the bias of that.
        bias = bias if kind == "GRU" else ops.add(bias, of_state)
        columns = ops.add(columns, ops.expand_dims(bias, axis=1))
    return ops.reshape(columns, (columns.shape[0], *x.shape[1:]))


def _simple(activation: Callable[[Any], Tensor]) -> Step:
    def step(z: Tensor, state: State, parameters: Sequence[Any]) -> State:
        return (activation(ops.add(z, ops.matmul(parameters[1], state[0]))),)

    return step


def _lstm(z: Tensor, state: State, parameters: Sequence[Any]) -> State:
    h, c = state
    z = ops.add(z, ops.matmul(parameters[1], h))
    n = c.shape[0]
    entering = sigmoid(z[: 2 * n])
    c = ops.add(ops.multiply(entering[n:], c), ops.multiply(entering[:n], tanh(z[2 * n : 3 * n])))
    h = ops.multiply(sigmoid(z[3 * n :]), tanh(c))
    if len(parameters) > 4:  # the projection of the result
        h = ops.matmul(parameters[4], h)
    return h, c


def _gru(z: Tensor, state: State, parameters: Sequence[Any]) -> State:
    (h,) = state
    n = h.shape[0]
    own = ops.matmul(parameters[1], h)
    if parameters[3] is not None:
        own = ops.add(own, ops.expand_dims(parameters[3], axis=1))
    gates = sigmoid(ops.add(z[: 2 * n], own[: 2 * n]))
    new = tanh(ops.add(z[2 * n :], ops.multiply(gates[:n], own[2 * n :])))
    return (ops.add(new, ops.multiply(gates[n:], ops.subtract(h, new))),)


STEPS: dict[str, Step] = {
    "RNN_TANH": _simple(tanh),
    "RNN_RELU": _simple(relu),
    "LSTM": _lstm,
    "GRU": _gru,
}


def run(
    kind: str, x: Tensor, state: State, parameters: Sequence[Any], *, reverse: bool
) -> tuple[Tensor, State]:
    """Run a layer along sequences.

    Parameters
    ----------
    kind : str
        One of `STEPS`.
    x : Tensor
        Of shape (I, T, N).
    state : tuple of Tensor
        At first, each of shape (H, N).
    parameters : sequence of Tensor
        Weights of the input (gates, I) and of the state (gates, H), their biases or None, and for a
        projection of an LSTM's result its weight.
    reverse : bool
        Whether it runs from the end.

    Returns
    -------
    out : Tensor
        The first state after each step, (H, T, N).
    state : tuple of Tensor
        After the last step.
    """
    step = STEPS[kind]
    inputs = ops.unstack(projected(x, kind, parameters), axis=1)
    results = []
    for z in reversed(inputs) if reverse else inputs:
        state = step(z, state, parameters)
        results.append(state[0])
    if reverse:
        results.reverse()
    return ops.stack(results, axis=1), state
