"""NumPy's recurrent networks: a step is few calls, each of which writes into memory that is there.

The derivatives have the slopes of all steps at once, and then a loop of one product and a few
multiplications. Gates are given as blocks of a matrix's columns. A step has each of them as a
matrix of its own, which NumPy's functions go through three times as fast.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from wengert.backends.backend import Kernel, add_kernels
from wengert.backends.numpy_networks import scalar
from wengert.ops.beyond.numpy_convolutions import where_covered

__all__ = ["COVERED", "KERNELS"]

_add, _subtract, _multiply = np.add, np.subtract, np.multiply


def _gates(x: Any, count: int) -> Any:
    """A view (T, gates, N, H) of a sequence (T, N, gates H)."""
    return x.reshape((*x.shape[:-1], count, x.shape[-1] // count)).swapaxes(1, 2)


def _order_gates(x: Any, order: tuple[int, ...], sigmoids: int) -> Any:
    """Gates (T, gates, N, H) in an order: first those of sigmoids, which change their signs."""
    out = np.empty(x.shape, x.dtype)
    for k, gate in enumerate(order):
        # (NumPy 2.4's `negative` is wrong where elements of both arrays lie apart.)
        _multiply(x[:, gate], -1 if k < sigmoids else 1, out[:, k])
    return out


def _join_gates(blocks: Any, order: tuple[int, ...]) -> Any:
    """The sequence (T, N, gates H) of gates in an order."""
    steps, count, batch, n = blocks.shape
    out = np.empty((steps, batch, count * n), blocks.dtype)
    gates = _gates(out, count)
    for k, gate in enumerate(order):
        gates[:, gate] = blocks[:, k]
    return out


def _by_state(weight: Any, order: tuple[int, ...], sigmoids: int) -> Any:
    """Weights (gates N, H) as a matrix (H, N) for each gate."""
    apart = weight.reshape((1, len(order), -1, weight.shape[1])).swapaxes(2, 3)
    return _order_gates(apart, order, sigmoids)[0]


def _sigmoid(x: Any, one: Any) -> None:
    """Put ``1 / (1 + exp(x))``, the sigmoid of ``-x``: an exponential that overflows makes it 0."""
    np.exp(x, x)
    np.divide(one, _add(x, one, x), x)


def _states_before(first: Any, states: Any) -> Any:
    """The state before each step."""
    return np.concatenate((first[None], states[:-1]))


def _tanh_slope(x: Any, out: Any = None) -> Any:
    """``1 - x**2``."""
    out = np.square(x, out=out)
    return _subtract(scalar(1, x.dtype), out, out)


def _at(x: Any, t: int) -> Any:
    return None if x is None else x[t]


def _plus(out: Any, x: Any) -> None:
    """Add in place what there is."""
    if x is not None:
        _add(out, x, out)


#: The gates i, f, g and o of an LSTM, and r, z and n of a GRU: first those that are sigmoids.
_OF_LSTM, _OF_GRU = (0, 1, 3, 2), (0, 1, 2)


@np.errstate(over="ignore")  # of exponentials
def lstm(z: Any, weight: Any, h: Any, c: Any) -> tuple[Any, Any, Any]:
    """The results, states and gates of all steps."""
    blocks = _order_gates(_gates(z, 4), _OF_LSTM, 3)
    by_h = _by_state(weight, _OF_LSTM, 3)
    steps, dtype, one = len(z), z.dtype, scalar(1, z.dtype)
    cells, out = np.empty((steps, *c.shape), dtype), np.empty((steps, *h.shape), dtype)
    added, tanh = np.empty(blocks.shape[1:], dtype), np.empty(c.shape, dtype)
    for t in range(steps):
        gate, cell = blocks[t], cells[t]
        _add(gate, np.matmul(h, by_h, added), gate)
        new = gate[3]
        _sigmoid(gate[:3], one)
        np.tanh(new, new)
        _multiply(gate[1], c, cell)
        _add(cell, _multiply(gate[0], new, tanh), cell)
        c = cell
        np.tanh(cell, tanh)
        h = _multiply(gate[2], tanh, out[t])
    return out, cells, _join_gates(blocks, _OF_LSTM)


def lstm_cotangents(
    g_out: Any, g_cells: Any, g_gates: Any, weight: Any, c: Any, out: Any, cells: Any, gates: Any
) -> tuple[Any, Any, Any]:
    """Those of z, h and c."""
    four, tanh = _gates(gates, 4), np.tanh(cells)
    slopes = np.empty(four.shape, gates.dtype)
    np.square(four, slopes)
    _subtract(four, slopes, slopes)
    _tanh_slope(four[:, 2], slopes[:, 2])
    for i, factor in enumerate((four[:, 2], None, four[:, 0], tanh)):
        part = slopes[:, i]
        _multiply(part, _states_before(c, cells) if factor is None else factor, part)
    by_cell = _tanh_slope(tanh, tanh)
    _multiply(by_cell, four[:, 3], by_cell)
    kept = four[:, 1].copy()
    dz = np.empty(gates.shape, gates.dtype)
    parts = _gates(dz, 4)
    dh, dc, product = np.zeros(out.shape[1:], out.dtype), *map(np.zeros_like, (cells[0], cells[0]))
    for t in reversed(range(len(out))):
        _plus(dh, _at(g_out, t))
        _add(dc, _multiply(dh, by_cell[t], product), dc)
        _plus(dc, _at(g_cells, t))
        slope, part = slopes[t], parts[t]
        _multiply(slope[:3], dc, part[:3])
        _multiply(slope[3], dh, part[3])
        dz[t].dot(weight, dh)
        _multiply(dc, kept[t], dc)
    return dz, dh, dc


@np.errstate(over="ignore")  # of exponentials
def gru(z: Any, weight: Any, h: Any, bias: Any) -> tuple[Any, Any, Any]:
    """The results and gates of all steps, and what the state adds to the last gate."""
    blocks = _order_gates(_gates(z, 3), _OF_GRU, 2)
    by_h = _by_state(weight, _OF_GRU, 2)
    if bias is not None:
        bias = _by_state(bias[:, None], _OF_GRU, 2)
    steps, dtype, one = len(z), z.dtype, scalar(1, z.dtype)
    out, owns = (np.empty((steps, *h.shape), dtype) for _ in range(2))
    added, change = np.empty(blocks.shape[1:], dtype), np.empty(h.shape, dtype)
    for t in range(steps):
        gate = blocks[t]
        np.matmul(h, by_h, added)
        _plus(added, bias)
        both, new = gate[:2], gate[2]
        _add(both, added[:2], both)
        _sigmoid(both, one)
        owns[t] = own = added[2]
        _add(new, _multiply(gate[0], own, change), new)
        np.tanh(new, new)
        _multiply(_subtract(h, new, change), gate[1], change)
        h = _add(new, change, out[t])
    return out, _join_gates(blocks, _OF_GRU), owns


def gru_cotangents(
    g_out: Any, g_gates: Any, g_own: Any, weight: Any, h: Any, out: Any, gates: Any, own: Any
) -> tuple[Any, Any, Any]:
    """Those of z, of what the state adds to each gate, and of the state at first."""
    three = _gates(gates, 3)
    r, update, new = (three[:, i] for i in range(3))
    slopes = np.empty(three.shape, gates.dtype)
    to_r, to_update, to_own = (slopes[:, i] for i in range(3))
    cap = _tanh_slope(new)
    sigmoid_slopes = _subtract(three[:, :2], np.square(three[:, :2]))
    by_new = _multiply(_subtract(scalar(1, new.dtype), update), cap)
    _multiply(own, sigmoid_slopes[:, 0], to_r)
    _multiply(to_r, by_new, to_r)
    _multiply(_subtract(_states_before(h, out), new, to_update), sigmoid_slopes[:, 1], to_update)
    _multiply(by_new, r, to_own)
    by_own = np.empty(gates.shape, gates.dtype)
    parts = _gates(by_own, 3)
    totals, kept = np.empty_like(out), update.copy()
    dh, product = (np.zeros(out.shape[1:], out.dtype) for _ in range(2))
    for t in reversed(range(len(out))):
        total = totals[t]
        total[...] = dh
        _plus(total, _at(g_out, t))
        part = parts[t]
        _multiply(slopes[t], total, part)
        by_own[t].dot(weight, dh)
        _add(dh, _multiply(total, kept[t], product), dh)
    dz = by_own.copy()
    _multiply(totals, by_new, _gates(dz, 3)[:, 2])
    return dz, by_own, dh


#: Kernels that take no cotangents of gates, which second derivatives have.
COVERED: Mapping[Kernel, Kernel] = {
    gru_cotangents: lambda g_out, g_gates, g_own, *rest: g_gates is None and g_own is None,
    lstm_cotangents: lambda g_out, g_cells, g_gates, *rest: g_gates is None,
}
KERNELS: Mapping[str, Kernel] = {
    "gru": gru,
    "lstm": lstm,
    **{f.__name__: where_covered(f.__name__, f, covers) for f, covers in COVERED.items()},
}
add_kernels("numpy", KERNELS)
