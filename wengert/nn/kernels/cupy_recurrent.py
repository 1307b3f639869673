"""CuPy's LSTM: a step is one product and one kernel over its state (N, H)."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from wengert.backends.backend import Kernel, add_kernels

__all__ = ["KERNELS"]

#: What each kernel reads and writes, and its statements.
_TEXTS = {
    "lstm": (
        "z own before",
        "out cells gates",
        """
        gates[row] = expit(z[row] + own[at]);
        gates[row + width] = expit(z[row + width] + own[at + width]);
        gates[row + 2 * width] = tanh(z[row + 2 * width] + own[at + 2 * width]);
        gates[row + 3 * width] = expit(z[row + 3 * width] + own[at + 3 * width]);
        cells[now] = gates[row + width] * before[i] + gates[row] * gates[row + 2 * width];
        out[now] = gates[row + 3 * width] * tanh(cells[now]);
        """,
    ),
    "lstm_cotangents": (
        "g_out g_cells g_gates cells gates before dh",
        "dc dz",
        """
        T in = gates[row];
        T keep = gates[row + width];
        T fresh = gates[row + 2 * width];
        T show = gates[row + 3 * width];
        T high = tanh(cells[now]);
        T of_h = dh[i] + g_out[now];
        T of_c = dc[i] + of_h * show * (1 - high * high) + g_cells[now];
        dz[row] = (of_c * fresh + g_gates[row]) * (in - in * in);
        dz[row + width] = (of_c * before[i] + g_gates[row + width]) * (keep - keep * keep);
        dz[row + 2 * width] = (of_c * in + g_gates[row + 2 * width]) * (1 - fresh * fresh);
        dz[row + 3 * width] = (of_h * high + g_gates[row + 3 * width]) * (show - show * show);
        dc[i] = of_c * keep;
        """,
    ),
}
#: Where the elements of a step are: in its own gates, in all gates, and in all states.
_PLACES = """
        long long at = i / width * 4 * width + i % width;
        long long row = t * 4 * area + at;
        long long now = t * area + i;"""
_EXPIT = "template <typename T> static __device__ T expit(T x) { return 1 / (1 + exp(-x)); }"


@cache
def _library() -> Any:
    import cupy

    return cupy


@cache
def _kernel(name: str) -> Any:
    reads, writes, text = _TEXTS[name]
    takes, gives = (", ".join([f"raw T {x}" for x in part.split()]) for part in (reads, writes))
    takes += ", int64 t, int64 width, int64 area"
    return _library().ElementwiseKernel(takes, gives, _PLACES + text, name, preamble=_EXPIT)


def lstm(z: Any, weight: Any, h: Any, c: Any) -> tuple[Any, Any, Any]:
    """The results, states and gates of all steps."""
    out, cells = (_library().empty((len(z), *c.shape), z.dtype) for _ in range(2))
    gates, numbers = _library().empty(z.shape, z.dtype), (c.shape[-1], c.size)
    for t in range(len(z)):
        _kernel("lstm")(z, h @ weight.T, c, t, *numbers, out, cells, gates, size=c.size)
        h, c = out[t], cells[t]
    return out, cells, gates


def lstm_cotangents(
    g_out: Any, g_cells: Any, g_gates: Any, weight: Any, c: Any, out: Any, cells: Any, gates: Any
) -> tuple[Any, Any, Any]:
    """Those of z, h and c."""
    zero, pairs = _library().zeros((), c.dtype), ((g_out, out), (g_cells, cells), (g_gates, gates))
    given = [_library().broadcast_to(zero, x.shape) if g is None else g for g, x in pairs]
    dz, numbers = _library().empty(gates.shape, gates.dtype), (c.shape[-1], c.size)
    dh, dc = (_library().zeros(c.shape, c.dtype) for _ in range(2))
    for t in reversed(range(len(out))):
        reads = (*given, cells, gates, cells[t - 1] if t else c, dh, t, *numbers)
        _kernel("lstm_cotangents")(*reads, dc, dz, size=c.size)
        dh = dz[t] @ weight
    return dz, dh, dc


KERNELS: Mapping[str, Kernel] = {"lstm": lstm, "lstm_cotangents": lstm_cotangents}
add_kernels("cupy", KERNELS)
