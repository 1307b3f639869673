"""Recurrent networks: functions that are run along a sequence.

An LSTM and a GRU are one primitive for a whole sequence (T, N, H). Their cotangents are vectors of
slopes, computed for all steps at once, and a loop of few operations; their tangents are those of
the composites. Results of all steps that the rules need, such as the gates, are results, too.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from wengert import ops
from wengert.backends import namespaces
from wengert.interpreters.batching import by_composite
from wengert.interpreters.duals import Dual, running
from wengert.interpreters.lifted import new_level
from wengert.nn.functional.activation import relu, tanh
from wengert.nn.functional.define import share
from wengert.nn.functional.linear import linear
from wengert.nn.kernels import cupy_recurrent as cupy_recurrent
from wengert.nn.kernels import numpy_recurrent as numpy_recurrent
from wengert.ops.shares import by_float32
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor

State = tuple[Tensor, ...]


def _split_gates(x: Any, count: int) -> list[Any]:
    """The gates' parts of the last axis."""
    n = x.shape[-1] // count
    return [x[..., i * n : (i + 1) * n] for i in range(count)]


def _sigmoid_slope(xp: Any, gate: Any) -> Any:
    return gate - xp.square(gate)


def _tanh_slope(xp: Any, value: Any) -> Any:
    return 1 - xp.square(value)


def _add(xp: Any, *terms: Any) -> Any:
    """The sum of the terms there are, or None."""
    held = [term for term in terms if term is not None]
    return functools.reduce(xp.add, held) if held else None


def _at(x: Any, t: int) -> Any:
    return None if x is None else x[t, ...]


def _states_before(xp: Any, first: Any, states: Any) -> Any:
    """The state before each step."""
    first = xp.expand_dims(first, axis=0)
    return xp.concat((first, states[:-1, ...]), axis=0) if states.shape[0] > 1 else first


def _times(xp: Any, x: Any, weight: Any) -> Any:
    """``x @ weight.T`` of the last axis."""
    return xp.matmul(x, xp.matrix_transpose(weight))


def _by_weight(xp: Any, g: Any, x: Any) -> Any:
    """The cotangent of a weight from those of its products, at all steps."""
    g, x = (xp.reshape(a, (-1, a.shape[-1])) for a in (g, x))
    return xp.matmul(xp.matrix_transpose(g), x)


def _tangents(composite: Callable[..., Any], t: Any, at: int, *inputs: Any) -> Any:
    """The tangents of a composite's results, along a tangent of the input at a position."""
    level = new_level()
    duals = [
        None if x is None else Dual(x, t if i == at else None, level) for i, x in enumerate(inputs)
    ]
    with running(level):
        results = composite(namespaces[Dual], *duals)
    zeros = namespaces[Dual].zeros_like
    return tuple([zeros(y.inner) if y.tangent is None else y.tangent for y in results])


# -- LSTM ----------------------------------------------------------------------------------------


def _lstm_composite(xp: Any, z: Any, weight: Any, h: Any, c: Any) -> tuple[Any, ...]:
    """The results, states and gates of all steps."""
    found = []
    for t in range(z.shape[0]):
        i, f, g, o = _split_gates(z[t, ...] + _times(xp, h, weight), 4)
        i, f, g, o = xp.expit(i), xp.expit(f), xp.tanh(g), xp.expit(o)
        c = f * c + i * g
        h = o * xp.tanh(c)
        found.append((h, c, i, f, g, o))
    h, c, *gates = (xp.stack(parts, axis=0) for parts in zip(*found, strict=True))
    return h, c, xp.concat(gates, axis=-1)


def _lstm_cotangents(
    xp: Any,
    g_out: Any,
    g_cells: Any,
    g_gates: Any,
    weight: Any,
    c: Any,
    out: Any,
    cells: Any,
    gates: Any,
) -> tuple[Any, Any, Any]:
    """The cotangents of z, h and c."""
    i, f, g, o = _split_gates(gates, 4)
    tanh = xp.tanh(cells)
    slopes = xp.concat(
        (_sigmoid_slope(xp, i), _sigmoid_slope(xp, f), _tanh_slope(xp, g), _sigmoid_slope(xp, o)),
        axis=-1,
    )
    more = None if g_gates is None else g_gates * slopes
    # How much the state, and for o the result, changes by what enters each gate.
    by_gates = slopes * xp.concat((g, _states_before(xp, c, cells), i, tanh), axis=-1)
    by_cell = o * _tanh_slope(xp, tanh)
    dh, dc, found = xp.zeros_like(out[0, ...]), xp.zeros_like(c), []
    for t in reversed(range(out.shape[0])):
        dh = _add(xp, dh, _at(g_out, t))
        dc = _add(xp, dc, dh * by_cell[t, ...], _at(g_cells, t))
        dz = xp.concat((dc, dc, dc, dh), axis=-1) * by_gates[t, ...]
        dz = _add(xp, dz, _at(more, t))
        found.append(dz)
        dh, dc = xp.matmul(dz, weight), dc * f[t, ...]
    return xp.stack(found[::-1], axis=0), dh, dc


share("lstm_cotangents", _lstm_cotangents)
_lstm = Primitive(
    "lstm",
    ("z", "weight", "h", "c"),
    {
        "z": lambda xp, g: g[0],
        "weight": lambda xp, g, h, out: _by_weight(xp, g[0], _states_before(xp, h, out[0])),
        "h": lambda xp, g: g[1],
        "c": lambda xp, g: g[2],
    },
    shared=lambda xp, g, weight, c, out: xp.lstm_cotangents(*g, weight, c, *out),
    composite=_lstm_composite,
    jvps={
        name: lambda xp, t, z, weight, h, c, *, at=at: _tangents(
            _lstm_composite, t, at, z, weight, h, c
        )
        for at, name in enumerate(("z", "weight", "h", "c"))
    },
    several=True,
    dtypes="real floating",
    batch=by_composite,
).bind


# -- GRU -----------------------------------------------------------------------------------------


def _gru_composite(xp: Any, z: Any, weight: Any, h: Any, bias: Any) -> tuple[Any, ...]:
    """The results and gates of all steps, and what the state adds to n."""
    found = []
    for t in range(z.shape[0]):
        own = _times(xp, h, weight)
        own = own if bias is None else own + bias
        r, update, new = zip(_split_gates(z[t, ...], 3), _split_gates(own, 3), strict=True)
        r, update = xp.expit(xp.add(*r)), xp.expit(xp.add(*update))
        own = new[1]
        new = xp.tanh(new[0] + r * own)
        h = new + update * (h - new)
        found.append((h, own, r, update, new))
    h, own, *gates = (xp.stack(parts, axis=0) for parts in zip(*found, strict=True))
    return h, xp.concat(gates, axis=-1), own


def _gru_cotangents(
    xp: Any,
    g_out: Any,
    g_gates: Any,
    g_own: Any,
    weight: Any,
    h: Any,
    out: Any,
    gates: Any,
    own: Any,
) -> tuple[Any, Any, Any]:
    """The cotangents of z, of what the state adds to each gate, and of the state at first."""
    r, update, new = _split_gates(gates, 3)
    slopes = _sigmoid_slope(xp, r), _sigmoid_slope(xp, update), _tanh_slope(xp, new)
    of_r = own * slopes[0]
    # How much the result changes by what enters n, and by what the state before adds to each gate.
    by_new = (1 - update) * slopes[2]
    by_update = (_states_before(xp, h, out) - new) * slopes[1]
    by_own = xp.stack((by_new * of_r, by_update, by_new * r), axis=-2)
    more, of_new = None, None
    if g_gates is not None or g_own is not None:
        g_gates = xp.zeros_like(gates) if g_gates is None else g_gates
        of_r_gate, of_update, of_new = map(xp.multiply, _split_gates(g_gates, 3), slopes)
        more = (of_r_gate + of_new * of_r, of_update, _add(xp, of_new * r, g_own))
        more = xp.concat(more, axis=-1)
    dh, found, totals = xp.zeros_like(h), [], []
    for t in reversed(range(out.shape[0])):
        dh = _add(xp, dh, _at(g_out, t))
        totals.append(dh)
        of_own = xp.reshape(xp.expand_dims(dh, axis=-2) * by_own[t, ...], gates.shape[1:])
        of_own = _add(xp, of_own, _at(more, t))
        found.append(of_own)
        dh = dh * update[t, ...] + xp.matmul(of_own, weight)
    of_owns = xp.stack(found[::-1], axis=0)
    of_new = _add(xp, xp.stack(totals[::-1], axis=0) * by_new, of_new)
    return xp.concat((*_split_gates(of_owns, 3)[:2], of_new), axis=-1), of_owns, dh


share("gru_cotangents", _gru_cotangents)
_gru = Primitive(
    "gru",
    ("z", "weight", "h", "bias"),
    {
        "z": lambda xp, g: g[0],
        "weight": lambda xp, g, h, out: _by_weight(xp, g[1], _states_before(xp, h, out[0])),
        "h": lambda xp, g: g[2],
        "bias": lambda xp, g: xp.sum(g[1], axis=(0, 1)),
    },
    shared=lambda xp, g, weight, h, out: xp.gru_cotangents(*g, weight, h, *out),
    composite=_gru_composite,
    jvps={
        name: lambda xp, t, z, weight, h, bias, *, at=at: _tangents(
            _gru_composite, t, at, z, weight, h, bias
        )
        for at, name in enumerate(("z", "weight", "h", "bias"))
    },
    several=True,
    dtypes="real floating",
    batch=by_composite,
).bind


# -- layers --------------------------------------------------------------------------------------

#: Of the input's projection (T, N, gates), the state and the recurrent parameters the results of
#: all steps, and the last state.
Layer = Callable[[Tensor, State, Sequence[Any]], tuple[Tensor, State]]


def _make_simple_layer(activation: Callable[[Any], Tensor]) -> Layer:
    def layer(z: Tensor, state: State, parameters: Sequence[Any]) -> tuple[Tensor, State]:
        (h,) = state
        results = []
        for entering in ops.unstack(z, axis=0):
            h = activation(ops.add(entering, linear(h, parameters[1])))
            results.append(h)
        return ops.stack(results, axis=0), (h,)

    return layer


def _lstm_layer(z: Tensor, state: State, parameters: Sequence[Any]) -> tuple[Tensor, State]:
    run_all = functools.partial(by_float32, _lstm) if z.dtype.narrow else _lstm
    out, cells, _ = run_all(z, parameters[1], *state)
    return out, (out[-1, ...], cells[-1, ...])


def _gru_layer(z: Tensor, state: State, parameters: Sequence[Any]) -> tuple[Tensor, State]:
    run_all = functools.partial(by_float32, _gru) if z.dtype.narrow else _gru
    out, *_ = run_all(z, parameters[1], *state, parameters[3])
    return out, (out[-1, ...],)


LAYERS: dict[str, Layer] = {
    "RNN_TANH": _make_simple_layer(tanh),
    "RNN_RELU": _make_simple_layer(relu),
    "LSTM": _lstm_layer,
    "GRU": _gru_layer,
}


def run(
    kind: str,
    x: Tensor,
    state: State,
    parameters: Sequence[Any],
    sizes: Sequence[int] | None = None,
    *,
    reverse: bool = False,
) -> tuple[Tensor, State]:
    """Run a layer along sequences (T, N, I), or packed ones: the rows of all steps, (rows, I).

    Parameters
    ----------
    state : tuple of Tensor
        At first, each of shape (N, H).
    parameters : sequence of Tensor
        Weights of the input (gates, I) and of the state (gates, H), and their biases or None.
    sizes : sequence of int, optional
        Of packed sequences, how many rows each step has; they never grow.
    """
    weight, _, bias, of_state = parameters
    if bias is not None and kind != "GRU":  # whose reset gate is between its new state and its bias
        bias = ops.add(bias, of_state)
    z = linear(x, weight, bias)  # of all steps by one product
    if sizes is None:
        out, state = LAYERS[kind](ops.flip(z, axis=0) if reverse else z, state, parameters)
        return ops.flip(out, axis=0) if reverse else out, state
    start, now = state, tuple([part[: sizes[-1] if reverse else sizes[0], ...] for part in state])
    results: list[Tensor] = []
    ended: list[State] = []
    for row, steps, batch in [*segments(sizes)][:: -1 if reverse else 1]:
        held = now[0].shape[0]
        if held > batch:  # sequences end
            ended.insert(0, tuple([part[batch:, ...] for part in now]))
            now = tuple([part[:batch, ...] for part in now])
        elif held < batch:  # sequences begin at their ends
            pairs = zip(now, start, strict=True)
            now = tuple([ops.concat((x, part[held:batch, ...]), axis=0) for x, part in pairs])
        entering = ops.reshape(z[row : row + steps * batch, :], (steps, batch, -1))
        entering = ops.flip(entering, axis=0) if reverse else entering
        out, now = LAYERS[kind](entering, now, parameters)
        out = ops.flip(out, axis=0) if reverse else out
        results.append(ops.reshape(out, (steps * batch, -1)))
    ends = [ops.concat(parts, axis=0) for parts in zip(now, *ended, strict=True)]
    return ops.concat(results[:: -1 if reverse else 1], axis=0), tuple(ends)


def segments(sizes: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """The steps with equal batches: the first row, the number of steps, and the batch."""
    row = 0
    for batch, steps in groupby(sizes):
        count = len([*steps])
        yield row, count, batch
        row += count * batch
