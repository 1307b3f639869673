"""Recurrent networks: functions that are run along a sequence.

Arrays here have the features on their first axis and the batch on their last: so the gates are
contiguous parts, and a step is one product with the weight as it is.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from wengert import ops
from wengert.interpreters.batching import composed
from wengert.nn.functional.activation import relu, sigmoid, tanh
from wengert.tape.primitive import Primitive
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


def _parts(x: Any, c: Any) -> tuple[Any, Any, Any]:
    """What an LSTM's gates i and f have of an array, g has and o has."""
    n = c.shape[0]
    return x[: 2 * n, ...], x[2 * n : 3 * n, ...], x[3 * n :, ...]


def _gates(xp: Any, z: Any, c: Any) -> tuple[Any, ...]:
    entering, new, o = _parts(z, c)
    entering, new, o = xp.expit(entering), xp.tanh(new), xp.expit(o)
    n = c.shape[0]
    after = xp.add(xp.multiply(entering[n:, ...], c), xp.multiply(entering[:n, ...], new))
    return xp.multiply(o, xp.tanh(after)), after, entering, new, o


def _bell(xp: Any, gate: Any) -> Any:
    """The slope of a sigmoid of a value."""
    return xp.subtract(gate, xp.square(gate))


def _cap(xp: Any, value: Any) -> Any:
    """The slope of a hyperbolic tangent of a value."""
    return xp.subtract(1, xp.square(value))


def _plus(xp: Any, *terms: Any) -> Any:
    """The sum of the terms there are, or None."""
    held = [term for term in terms if term is not None]
    return functools.reduce(xp.add, held) if held else None


def _times(xp: Any, g: Any, *factors: Any) -> Any:
    return None if g is None else functools.reduce(xp.multiply, factors, g)


def _by_cell(xp: Any, g: Any, out: Any, tanh: Any) -> Any:
    """The cotangent of the state after a step."""
    return _plus(xp, g[1], _times(xp, g[0], out[4], _cap(xp, tanh)))


def _by_gates(xp: Any, g: Any, c: Any, out: Any) -> Any:
    _, after, entering, new, o = out
    tanh = xp.tanh(after)
    dc = _by_cell(xp, g, out, tanh)
    first = None
    if dc is not None:
        first = xp.concat((xp.multiply(dc, new), xp.multiply(dc, c)))
    parts = (
        (_plus(xp, first, g[2]), entering, _bell),
        (_plus(xp, _times(xp, dc, entering[: c.shape[0], ...]), g[3]), new, _cap),
        (_plus(xp, _times(xp, g[0], tanh), g[4]), o, _bell),
    )
    return xp.concat(
        tuple(
            xp.zeros_like(value) if d is None else xp.multiply(d, slope(xp, value))
            for d, value, slope in parts
        )
    )


def _by_state(xp: Any, g: Any, c: Any, out: Any) -> Any:
    dc = _by_cell(xp, g, out, xp.tanh(out[1]))
    return xp.zeros_like(c) if dc is None else xp.multiply(dc, out[2][c.shape[0] :, ...])


def _of_gates(xp: Any, t: Any, c: Any, out: Any) -> tuple[Any, ...]:
    _, after, entering, new, o = out
    t_entering, t_new, t_o = _parts(t, c)
    t_entering = xp.multiply(t_entering, _bell(xp, entering))
    t_new, t_o = xp.multiply(t_new, _cap(xp, new)), xp.multiply(t_o, _bell(xp, o))
    n = c.shape[0]
    dc = xp.add(xp.multiply(t_entering[:n, ...], new), xp.multiply(entering[:n, ...], t_new))
    dc = xp.add(dc, xp.multiply(t_entering[n:, ...], c))
    tanh = xp.tanh(after)
    dh = xp.add(xp.multiply(t_o, tanh), _times(xp, dc, o, _cap(xp, tanh)))
    return dh, dc, t_entering, t_new, t_o


def _of_state(xp: Any, t: Any, c: Any, out: Any) -> tuple[Any, ...]:
    _, after, entering, new, o = out
    dc = xp.multiply(t, entering[c.shape[0] :, ...])
    dh = _times(xp, dc, o, _cap(xp, xp.tanh(after)))
    return dh, dc, xp.zeros_like(entering), xp.zeros_like(new), xp.zeros_like(o)


# One node for the dozen that a step would be. The gates are results too, for the rules' sake.
_lstm_cell = Primitive(
    "lstm_cell",
    ("z", "c"),
    {"z": _by_gates, "c": _by_state},
    kind="irregular",
    forward=_gates,
    jvps={"z": _of_gates, "c": _of_state},
    several=True,
    materialize=False,
    dtypes="real floating",
    batch=composed,
)


def _lstm(z: Tensor, state: State, parameters: Sequence[Any]) -> State:
    h, c = state
    h, c, *_ = _lstm_cell.bind(ops.add(z, ops.matmul(parameters[1], h)), c)
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
