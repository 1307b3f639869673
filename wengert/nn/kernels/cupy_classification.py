"""CuPy's cross entropy of classes: in one or two launches what would be many.

Each row is one thread's, which reads it several times: so rows are short (`SHORT`). A sum over all
rows is one block's, as CuPy's reductions to one number are: so that one is taken of few elements
(`FEW`) alone, and others by CuPy's own sum of the rows' losses.
"""

import re
from functools import cache
from typing import Any, Final

import numpy as np

from wengert.backends import get_backend
from wengert.backends.backend import add_kernels, composites

__all__ = ["covers", "cupy_softmax_cross_entropy", "softmax_cross_entropy_parts"]

#: Classes of the longest rows. (Chosen, and not measured on a GPU.)
SHORT: Final = 128
#: Logits that one block of threads goes through. (Chosen, and not measured on a GPU.)
FEW: Final = 1 << 17

_C_TYPES: Final = {"float32": "float", "float64": "double"}

# A row with a nan has a sum that is nan, whatever its largest element is taken for.
_ROWS: Final = """
template <typename Logits>
static __device__ T largest(const Logits& x, long long start, long long classes) {
    T top = x[start];
    for (long long c = 1; c < classes; c = c + 1) {
        T value = x[start + c];
        top = value > top ? value : top;
    }
    return top;
}
template <typename Logits>
static __device__ T summed(const Logits& x, long long start, long long classes, T top) {
    T total = T(0);
    for (long long c = 0; c < classes; c = c + 1) {
        total = total + exp(x[start + c] - top);
    }
    return total;
}
template <typename Logits>
static __device__ T loss_of(const Logits& x, long long start, long long classes, long long wanted, \
long long ignored, T smoothing, T top, T total) {
    T loss = T(0);
    if (wanted != ignored) {
        loss = T(NAN);
        if (wanted >= 0 && wanted < classes) {
            T chosen = x[start + wanted] - top;
            if (smoothing != T(0)) {
                T even = T(0);
                for (long long c = 0; c < classes; c = c + 1) {
                    even = even + (x[start + c] - top);
                }
                chosen = chosen * (T(1) - smoothing) + even / T(classes) * smoothing;
            }
            loss = log(total) - chosen;
        }
    }
    return loss;
}
"""
_NAN: Final = """
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
"""
#: A loss, and whether it counts, as one number: their sums are taken together.
_COUNTED: Final = """
template <typename Logits>
static __device__ complex<T> counted_loss(const Logits& x, long long row, long long classes, \
long long wanted, long long ignored, T smoothing) {
    T top = largest(x, row * classes, classes);
    T total = summed(x, row * classes, classes, top);
    T loss = loss_of(x, row * classes, classes, wanted, ignored, smoothing, top, total);
    return complex<T>(loss, wanted != ignored ? T(1) : T(0));
}
"""


def _with_type(kind: str, text: str) -> str:
    """The text with the type of the logits in it."""
    return re.sub(r"\bT\b", kind, text)


@cache
def _means(dtype: Any) -> Any:
    """The mean loss, and the number of rows that count."""
    from cupy import ReductionKernel

    kind = _C_TYPES[dtype]
    return ReductionKernel(
        f"raw {dtype} x, int64 target, int64 classes, int64 ignored, {dtype} smoothing",
        f"{dtype} loss, {dtype} counted",
        "counted_loss(x, _J, classes, target, ignored, smoothing)",  # of the element's number
        "a + b",
        "loss = a.real() / a.imag(), counted = a.imag()",
        "0",
        "softmax_cross_entropy_mean",
        reduce_type=f"complex<{kind}>",
        preamble=_NAN + _with_type(kind, _ROWS + _COUNTED),
    )


@cache
def _rows(dtype: Any) -> Any:
    """The loss of each row, and its derivative by each logit, divided by a number of rows."""
    from cupy import ElementwiseKernel

    kind = _C_TYPES[dtype]
    text = """
    long long start = i * classes;
    T top = largest(x, start, classes);
    T total = summed(x, start, classes, top);
    loss = loss_of(x, start, classes, target, ignored, smoothing, top, total);
    T part = (target != ignored ? T(1) : T(0)) / (counted > T(1) ? counted : T(1));
    if (target != ignored && (target < 0 || target >= classes)) {
        part = T(NAN);
    }
    for (long long c = 0; c < classes; c = c + 1) {
        T right = c == target ? T(1) : T(0);
        if (smoothing != T(0)) {
            right = right * (T(1) - smoothing) + smoothing / T(classes);
        }
        slope[start + c] = (exp(x[start + c] - top) / total - right) * part;
    }
    """
    return ElementwiseKernel(
        f"raw {dtype} x, int64 target, int64 classes, int64 ignored, {dtype} smoothing, "
        f"{dtype} counted",
        f"{dtype} loss, raw {dtype} slope",
        _with_type(kind, text),
        "softmax_cross_entropy",
        preamble=_NAN + _with_type(kind, _ROWS),
    )


def cupy_softmax_cross_entropy(
    x: Any, target: Any, *, ignore_index: int, reduction: str, label_smoothing: float
) -> tuple[Any, Any]:
    """The loss, and its derivative by each logit, of rows that `covers` says yes to."""
    import cupy

    rows, classes = x.shape
    dtype, given = str(x.dtype), (x, target, classes, ignore_index, label_smoothing)
    counted, loss = 1, None
    if reduction == "mean" and x.size <= FEW:
        loss, counted = cupy.empty((), dtype), cupy.empty((), dtype)
        _means(dtype)(*given, loss, counted)
    elif reduction == "mean":
        counted = cupy.sum(cupy.not_equal(target, ignore_index), dtype=dtype)
    losses, slope = cupy.empty(rows, dtype), cupy.empty(x.shape, dtype)
    _rows(dtype)(*given, counted, losses, slope)
    if reduction == "none":
        return losses, slope
    if loss is None:
        loss = cupy.sum(losses)
        loss = cupy.true_divide(loss, counted) if reduction == "mean" else loss
    return loss, slope


def covers(x: Any, target: Any, **options: Any) -> bool:
    """Whether these are logits and classes for which there are kernels."""
    return bool(
        x.dtype in (np.float32, np.float64)
        and target.dtype == np.int64
        and 0 < x.shape[1] <= SHORT
        and x.shape[0]
    )


def softmax_cross_entropy_parts(x: Any, target: Any, **options: Any) -> Any:
    """The loss and the slopes: by the kernels, or by the composite."""
    if covers(x, target):
        return cupy_softmax_cross_entropy(x, target, **options)
    xp = get_backend("cupy").namespace
    return composites["softmax_cross_entropy_parts"](xp, x, target, **options)


add_kernels("cupy", {"softmax_cross_entropy_parts": softmax_cross_entropy_parts})
