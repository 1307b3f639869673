"""NumPy's recurrent networks: a step is few calls, each of which writes into memory that is there.

The derivatives have the slopes of all steps at once, and then a loop of one product and a few
multiplications. Gates are blocks of a matrix's columns, and a step of a sequence is a matrix.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from wengert.backends.backend import Kernel
from wengert.backends.numpy_networks import scalar

__all__ = ["KERNELS"]

_add, _subtract, _multiply = np.add, np.subtract, np.multiply


class _Sigmoid:
    """Sigmoids of matrices of one shape, in place."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        # An array, since NumPy has no vector code for a number in `minimum`.
        self.limit = np.full(shape, 11 if dtype.char == "e" else 50, dtype)
        self.one, self.below = scalar(1, dtype), np.empty(shape, dtype)

    def __call__(self, x: Any) -> None:
        """Put ``exp(x) / (1 + exp(x))``, which is 1 long before the exponential overflows."""
        np.minimum(x, self.limit, out=x)
        np.exp(x, x)
        np.divide(x, _add(x, self.one, self.below), x)


def _blocks(x: Any, count: int) -> Any:
    """Parts of the last axis as an axis before it."""
    return x.reshape((*x.shape[:-1], count, x.shape[-1] // count))


def _before(first: Any, states: Any) -> Any:
    """The state before each step."""
    return np.concatenate((first[None], states[:-1]))


def _cap(x: Any, out: Any = None) -> Any:
    """``1 - x**2``."""
    out = np.square(x, out=out)
    return _subtract(scalar(1, x.dtype), out, out)


def _at(x: Any, t: int) -> Any:
    return None if x is None else x[t]


def _plus(out: Any, x: Any) -> None:
    """Add in place what there is."""
    if x is not None:
        _add(out, x, out)


def lstm(z: Any, weight: Any, h: Any, c: Any, projection: Any) -> tuple[Any, Any, Any]:
    """The results, states and gates of all steps."""
    steps, batch, width = z.shape
    n, dtype = width // 4, z.dtype
    gates, cells = z.copy(), np.empty((steps, batch, n), dtype)
    out = np.empty((steps, *h.shape), dtype)
    by_h, added, tanh = weight.T, np.empty((batch, width), dtype), np.empty((batch, n), dtype)
    sigmoid = _Sigmoid((batch, width), dtype)
    for t in range(steps):
        gate, cell = gates[t], cells[t]
        _add(gate, h.dot(by_h, added), gate)
        new = gate[:, 2 * n : 3 * n]
        np.tanh(new, tanh)
        sigmoid(gate)  # of all four, as one block is faster than two
        new[...] = tanh
        _multiply(gate[:, n : 2 * n], c, cell)
        _add(cell, _multiply(gate[:, :n], tanh, tanh), cell)
        c = cell
        np.tanh(cell, tanh)
        if projection is None:
            h = _multiply(gate[:, 3 * n :], tanh, out[t])
        else:
            h = _multiply(gate[:, 3 * n :], tanh, tanh).dot(projection.T, out[t])
    return out, cells, gates


def lstm_cotangents(
    g_out: Any,
    g_cells: Any,
    g_gates: Any,
    weight: Any,
    c: Any,
    projection: Any,
    out: Any,
    cells: Any,
    gates: Any,
) -> tuple[Any, ...]:
    """Those of z, h and c, and for a projection of the results with what later steps add."""
    four, tanh = _blocks(gates, 4), np.tanh(cells)
    slopes = np.square(four)
    _subtract(four, slopes, slopes)
    _cap(four[..., 2, :], slopes[..., 2, :])
    more = None if g_gates is None else _blocks(g_gates, 4) * slopes
    for i, factor in enumerate((four[..., 2, :], None, four[..., 0, :], tanh)):
        part = slopes[..., i, :]
        _multiply(part, _before(c, cells) if factor is None else factor, part)
    by_cell = _cap(tanh, tanh)
    _multiply(by_cell, four[..., 3, :], by_cell)
    kept = four[..., 1, :].copy()
    dh, dc, product = np.zeros(out.shape[1:], out.dtype), *map(np.zeros_like, (cells[0], cells[0]))
    totals = None if projection is None else np.empty_like(out)
    for t in reversed(range(len(out))):
        _plus(dh, _at(g_out, t))
        hidden = dh
        if totals is not None:
            totals[t] = dh
            hidden = dh.dot(projection)
        _add(dc, _multiply(hidden, by_cell[t], product), dc)
        _plus(dc, _at(g_cells, t))
        of_cell, of_out = slopes[t, :, :3], slopes[t, :, 3]
        _multiply(of_cell, dc[:, None], of_cell)
        _multiply(of_out, hidden, of_out)
        _plus(slopes[t], _at(more, t))
        slopes[t].reshape(gates.shape[1:]).dot(weight, dh)
        _multiply(dc, kept[t], dc)
    found = slopes.reshape(gates.shape), dh, dc
    return found if totals is None else (*found, totals)


def gru(z: Any, weight: Any, h: Any, bias: Any) -> tuple[Any, Any, Any]:
    """The results and gates of all steps, and what the state adds to the last gate."""
    steps, batch, width = z.shape
    n, dtype = width // 3, z.dtype
    gates, out, owns = z.copy(), *(np.empty((steps, batch, n), dtype) for _ in range(2))
    by_h, added, change = weight.T, np.empty((batch, width), dtype), np.empty((batch, n), dtype)
    sigmoid = _Sigmoid((batch, 2 * n), dtype)
    for t in range(steps):
        gate, own = gates[t], owns[t]
        h.dot(by_h, added)
        _plus(added, bias)
        both, new = gate[:, : 2 * n], gate[:, 2 * n :]
        _add(both, added[:, : 2 * n], both)
        sigmoid(both)
        own[...] = added[:, 2 * n :]
        _add(new, _multiply(gate[:, :n], own, change), new)
        np.tanh(new, new)
        _multiply(_subtract(h, new, change), gate[:, n : 2 * n], change)
        h = _add(new, change, out[t])
    return out, gates, owns


def gru_cotangents(
    g_out: Any,
    g_gates: Any,
    g_own: Any,
    weight: Any,
    h: Any,
    out: Any,
    gates: Any,
    own: Any,
) -> tuple[Any, Any, Any]:
    """Those of z, of what the state adds to each gate, and of the state at first."""
    three = _blocks(gates, 3)
    r, update, new = (three[..., i, :] for i in range(3))
    by_own = np.empty_like(three)
    to_r, to_update, to_own = (by_own[..., i, :] for i in range(3))
    cap = _cap(new)
    bells = _subtract(three[..., :2, :], np.square(three[..., :2, :]))
    by_new = _multiply(_subtract(scalar(1, new.dtype), update), cap)
    _multiply(own, bells[..., 0, :], to_r)
    more = None
    if g_gates is not None or g_own is not None:
        more, of_new = np.zeros_like(three), None
        if g_gates is not None:
            given = _blocks(g_gates, 3)
            of_new = given[..., 2, :] * cap
            more[..., :2, :] = given[..., :2, :] * bells
            more[..., 0, :] += of_new * to_r
            more[..., 2, :] = of_new * r
        _plus(more[..., 2, :], g_own)
    _multiply(to_r, by_new, to_r)
    _multiply(_subtract(_before(h, out), new, to_update), bells[..., 1, :], to_update)
    _multiply(by_new, r, to_own)
    totals, kept = np.empty_like(out), update.copy()
    dh, product = (np.zeros(out.shape[1:], out.dtype) for _ in range(2))
    for t in reversed(range(len(out))):
        total = totals[t]
        total[...] = dh
        _plus(total, _at(g_out, t))
        part = by_own[t]
        _multiply(part, total[:, None], part)
        _plus(part, _at(more, t))
        part.reshape(gates.shape[1:]).dot(weight, dh)
        _add(dh, _multiply(total, kept[t], product), dh)
    dz = by_own.copy()
    _multiply(totals, by_new, dz[..., 2, :])
    if more is not None and of_new is not None:
        _add(dz[..., 2, :], of_new, dz[..., 2, :])
    return dz.reshape(gates.shape), by_own.reshape(gates.shape), dh


KERNELS: Mapping[str, Kernel] = {
    "gru": gru,
    "gru_cotangents": gru_cotangents,
    "lstm": lstm,
    "lstm_cotangents": lstm_cotangents,
}
