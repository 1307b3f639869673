"""What compiled programs call in place of a backend's fast kernels.

A kernel looks at shapes and dtypes in each call, and its temporaries are its own. A trace knows
shapes and dtypes, and a program has memory for temporaries: so it calls NumPy's functions, of which
the kernel is made, one by one. They give what the kernel gives, to the last bit.

A lowering takes the trace, and what the kernel takes. It returns NotImplemented where the kernel
itself should be called.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from wengert.backends import dtype_of
from wengert.backends.keys import cut
from wengert.backends.numpy import SMALL
from wengert.backends.numpy_networks import BITS, FILLED, WIDE, ones, row_layout, scalar, zeros
from wengert.compiler.kernels import (
    copied_into,
    counted_losses,
    number_counted,
    placed,
    polygamma,
    targets,
)
from wengert.compiler.passes.forms import ARGMAX, ASTYPE, DOT, RESHAPE, TAKE, TRANSPOSE, VIEW
from wengert.compiler.program import order_of
from wengert.interpreters.lifted import bottom

__all__ = ["lowered"]

#: Columns up to which rows are added faster to a whole array of copies than one by one.
NARROW: Final = 128

_reduce: Final[Mapping[str, Any]] = {
    "sum": np.add.reduce,
    "prod": np.multiply.reduce,
    "max": np.maximum.reduce,
    "min": np.minimum.reduce,
}


def _char(*arrays: Any) -> str:
    """The one real floating dtype of arrays, by its letter; "" if there is none."""
    chars = {getattr(getattr(x, "dtype", None), "char", "") for x in arrays}
    return chars.pop() if len(chars) == 1 and chars <= {"e", "f", "d"} else ""


# -- sums and products -----------------------------------------------------------------------------


def _reduction(name: str) -> Callable[..., Any]:
    function = _reduce[name]

    def lowered(
        trace: Any, x: Any, *, axis: Any = None, dtype: Any = None, keepdims: bool = False
    ) -> Any:
        rows = axis == 0 and dtype is None and not keepdims and len(x.shape) == 2
        if name == "sum" and rows and x.dtype.char in "fd":
            return trace.record("dot", DOT, ones(x.shape[0], x.dtype), x)  # by BLAS
        given = {"axis": axis}
        if dtype is not None:
            given["dtype"] = dtype
        if keepdims:
            given["keepdims"] = True
        return trace.call(name, function, (x,), given)

    return lowered


def _mean(trace: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    size = math.prod(x.shape)
    if not size or x.dtype.char == "e":
        return NotImplemented
    total = _SUM(trace, x, axis=axis, keepdims=keepdims) if keepdims else None
    if total is None:
        total = trace.call("sum", _reduce["sum"], (x,), {"axis": axis})
    return trace.record("divide", np.divide, total, size // math.prod(total.shape))


_SUM = _reduction("sum")


def _matmul(trace: Any, x1: Any, x2: Any) -> Any:
    if len(x1.shape) == len(x2.shape) == 2 and x1.dtype == x2.dtype:
        return trace.record("dot", DOT, x1, x2)
    return trace.record("matmul", np.matmul, x1, x2)


# -- shapes ----------------------------------------------------------------------------------------


def _reshape(trace: Any, x: Any, shape: tuple[int, ...], *, copy: bool | None = None) -> Any:
    return NotImplemented if copy is not None else trace.record("reshape", RESHAPE, x, shape)


def _expand_dims(trace: Any, x: Any, axis: int = 0) -> Any:
    if axis < 0:
        return NotImplemented
    return trace.record("expand_dims", RESHAPE, x, (*x.shape[:axis], 1, *x.shape[axis:]))


def _permute_dims(trace: Any, x: Any, axes: tuple[int, ...]) -> Any:
    return trace.record("permute_dims", TRANSPOSE, x, axes)


def _broadcast_to(trace: Any, x: Any, shape: tuple[int, ...]) -> Any:
    if math.prod(shape) > SMALL or len(shape) < len(x.shape):
        return NotImplemented
    return trace.record("broadcast_to", copied_into, x, tuple(shape))


def _concat_arrays(trace: Any, *arrays: Any, axis: int) -> Any:
    return trace.call("concat", np.concatenate, (arrays,), {"axis": axis})


def _creation(name: str) -> Callable[..., Any]:
    """NumPy's own function: there is one device, and nothing to look at in each call."""
    function = getattr(np, name)

    def lowered(trace: Any, *operands: Any, dtype: Any = None, device: Any = None) -> Any:
        return trace.call(name, function, operands, {"dtype": dtype})

    return lowered


def _take_along_axis(trace: Any, x: Any, indices: Any, *, axis: int = -1) -> Any:
    return trace.call("take_along_axis", np.take_along_axis, (x, indices), {"axis": axis})


def _tensordot(trace: Any, x1: Any, x2: Any, *, axes: Any = 2) -> Any:
    return trace.call("tensordot", np.tensordot, (x1, x2), {"axes": axes})


# -- elements --------------------------------------------------------------------------------------


def _rounding(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def lowered(trace: Any, x: Any) -> Any:
        return trace.record(name, function, x) if x.dtype.kind == "f" else NotImplemented

    return lowered


def _astype(trace: Any, x: Any, dtype: Any, *, copy: bool = True) -> Any:
    dtype = np.dtype(dtype)
    if (x.dtype.kind == "c" and dtype.kind != "c") or not copy or x.dtype == dtype:
        return NotImplemented
    return trace.record("astype", ASTYPE, x, dtype)


def _where(trace: Any, condition: Any, x1: Any, x2: Any) -> Any:
    if type(x2) is int and x2 == 0 and hasattr(x1, "dtype"):
        kept, keep = x1, condition
    elif type(x1) is int and x1 == 0 and hasattr(x2, "dtype"):
        kept, keep = x2, None
    else:
        return trace.record("where", np.where, condition, x1, x2)
    if kept.dtype.char not in BITS or not kept.shape or kept.shape != condition.shape:
        return NotImplemented
    if keep is None:
        keep = trace.record("logical_not", np.logical_not, condition)
    return _masked(trace, kept, keep)


def _masked(trace: Any, x: Any, keep: Any) -> Any:
    """``x`` where ``keep`` holds, and zero elsewhere, without a branch for each element."""
    dtype, bits = x.dtype, BITS[x.dtype.char]
    whole = trace.record("view", VIEW, x, bits)
    factors = trace.record("astype", ASTYPE, keep, bits)
    product = trace.record("multiply", np.multiply, whole, factors)
    return trace.record("view", VIEW, product, dtype)


def _mask(trace: Any, x: Any, by: Any) -> Any:
    if x.dtype.char not in BITS or not x.shape or x.shape != by.shape:
        return NotImplemented
    return _masked(trace, x, trace.record("not_equal", np.not_equal, by, scalar(0, by.dtype)))


def _relu(trace: Any, x: Any) -> Any:
    if not _char(x) or not x.shape:
        return NotImplemented
    size, width = math.prod(x.shape), x.shape[-1]
    if size <= FILLED:
        zero = zeros(x.shape, x.dtype)
    elif 64 <= width <= 16 * WIDE:
        zero = zeros(width, x.dtype)
    else:
        zero = scalar(0, x.dtype)
    return trace.record("relu", np.maximum, x, zero)


def _linear(trace: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    given = (x, weight) if bias is None else (x, weight, bias)
    if not _char(*given) or len(x.shape) not in (1, 2) or len(weight.shape) != 2:
        return NotImplemented
    product = trace.record("dot", DOT, x, trace.apply(_numpy(), "matrix_transpose", (weight,), {}))
    if bias is None:
        return product
    if len(x.shape) == 2 and x.shape[0] > 1 and 0 < bias.shape[-1] <= NARROW:
        bias = trace.record("broadcast_to", copied_into, bias, tuple(product.shape))
    return trace.record("add", np.add, product, bias)


def _numpy() -> Any:
    from wengert.backends.numpy import BACKEND

    return BACKEND


# -- optimisers ------------------------------------------------------------------------------------


def _is_one(x: Any) -> bool:
    return type(x) in (int, float) and x == 1


def _axpby(trace: Any, a: Any, x: Any, b: Any, y: Any) -> Any:
    if not _char(x, y):
        return NotImplemented
    if not _is_one(b):
        y = trace.record("multiply", np.multiply, y, b)
    if _is_one(a):
        return trace.record("add", np.add, y, x)
    x = trace.record("multiply", np.multiply, x, a)
    return trace.record("add", np.add, x, y)


def _normalised(trace: Any, m: Any, v: Any, scale: Any, eps: Any) -> Any:
    if not _char(m, v):
        return NotImplemented
    root = trace.record("sqrt", np.sqrt, v)
    root = trace.record("divide", np.divide, root, scale)
    root = trace.record("add", np.add, root, eps)
    return trace.record("divide", np.divide, m, root)


# -- cross entropy ---------------------------------------------------------------------------------


def _along_rows(trace: Any, values: Any, rows: int, columns: int) -> Any:
    """One value for each row, to be used with a matrix."""
    _, row_of = row_layout(rows, columns)
    if row_of is None:
        return trace.record("expand_dims", RESHAPE, values, (rows, 1))
    return trace.record("take", TAKE, values, row_of)


def _softmax_cross_entropy_parts(
    trace: Any, x: Any, target: Any, *, ignore_index: int, reduction: str, label_smoothing: float
) -> Any:
    char = _char(x)
    if not char or char == "e" or target.dtype != np.int64 or 0 in x.shape:
        return NotImplemented
    rows, classes = x.shape
    call, record = trace.call, trace.record
    starts, total_of = row_layout(rows, classes)[0], ones(classes, x.dtype)
    mean = reduction == "mean"
    # Raises for a wrong class, so it stays though nobody needs what it gives.
    places, part, counted = call(
        "targets", targets, (target, classes, ignore_index, mean, x.dtype), {}, pure=False
    )
    top = record("add", np.add, record("argmax", ARGMAX, x, 1), starts)
    top = _along_rows(trace, record("take", TAKE, x, top), rows, classes)
    z = record("subtract", np.subtract, x, top)
    chosen = record("take", TAKE, z, places)
    if label_smoothing:
        chosen = record("multiply", np.multiply, chosen, 1 - label_smoothing)
        all_of = record("dot", DOT, z, total_of)
        even = record("multiply", np.multiply, all_of, label_smoothing / classes)
        chosen = record("add", np.add, chosen, even)
    z = record("exp", np.exp, z)
    total = record("dot", DOT, z, total_of)
    losses = record("subtract", np.subtract, record("log", np.log, total), chosen)
    losses = record("counted_losses", counted_losses, losses, counted)
    # Each row's part in the loss, and so in the slopes too.
    share = _along_rows(trace, record("divide", np.divide, part, total), rows, classes)
    z = record("multiply", np.multiply, z, share)
    if label_smoothing:
        even = record("multiply", np.multiply, part, label_smoothing / classes)
        z = record("subtract", np.subtract, z, _along_rows(trace, even, rows, classes))
        part = record("multiply", np.multiply, part, 1 - label_smoothing)
    right = record("subtract", np.subtract, record("take", TAKE, z, places), part)
    slope = record("put", placed, z, places, right)
    if reduction == "none":
        return losses, slope
    loss = record("dot", DOT, losses, ones(rows, x.dtype))
    if mean:
        loss = record(
            "divide", np.divide, loss, trace.number("counted", number_counted, (counted,))
        )
    return loss, slope


_NUMPY: Final[Mapping[str, Callable[..., Any]]] = {
    "astype": _astype,
    "axpby": _axpby,
    "broadcast_to": _broadcast_to,
    "concat_arrays": _concat_arrays,
    "expand_dims": _expand_dims,
    "linear": _linear,
    "mask": _mask,
    "matmul": _matmul,
    "mean": _mean,
    "normalised": _normalised,
    "permute_dims": _permute_dims,
    "relu": _relu,
    "reshape": _reshape,
    "softmax_cross_entropy_parts": _softmax_cross_entropy_parts,
    "take_along_axis": _take_along_axis,
    "tensordot": _tensordot,
    "where": _where,
    **{name: _creation(name) for name in ("empty", "full", "ones", "zeros")},
    **{name: _reduction(name) for name in _reduce},
    **{name: _rounding(name) for name in ("ceil", "floor", "trunc")},
}

# -- every library ---------------------------------------------------------------------------------


def _any_astype(trace: Any, backend: Any, x: Any, dtype: Any, *, copy: bool = True) -> Any:
    if dtype_of(dtype).kind == "bool" and dtype_of(x.dtype).complex:
        return trace.apply(backend, "not_equal", (x, 0), {})
    return trace.call("astype", backend.xp.astype, (x, dtype), {"copy": copy})


def _cut(trace: Any, backend: Any, x: Any, *, key: tuple[Any, ...]) -> Any:
    return trace.call("getitem", cut, (x,), {"key": key})


def _conj(trace: Any, backend: Any, x: Any) -> Any:
    return trace.record("conj", backend.xp.conj, x) if dtype_of(x.dtype).complex else x


def _real(trace: Any, backend: Any, x: Any) -> Any:
    return trace.record("real", backend.xp.real, x) if dtype_of(x.dtype).complex else x


def _imag(trace: Any, backend: Any, x: Any) -> Any:
    if not dtype_of(x.dtype).complex:
        return trace.apply(backend, "zeros_like", (x,), {})
    return trace.record("imag", backend.xp.imag, x)


#: Special functions that the library has under other parameters, by backend and name.
_SPELLED: Final = {("numpy", "polygamma"): polygamma}


def _special(
    trace: Any,
    backend: Any,
    kernel: Any,
    name: str,
    operands: Sequence[Any],
    parameters: Mapping[str, Any],
) -> Any:
    """The library's own special function, between casts where that is in half precision."""
    dtype, kind = operands[0].dtype, dtype_of(operands[0].dtype)
    if any(x.dtype != dtype for x in operands) or not kind.inexact:
        return NotImplemented
    if kind.complex and not kernel.complex:
        return NotImplemented
    if kind.itemsize < 4:
        single = backend.xp.float32
        operands = [trace.apply(backend, "astype", (x, single), {}) for x in operands]
    function = _SPELLED.get((backend.name, name)) or kernel.library()
    out = trace.call(name, function, operands, parameters)
    return out if out.dtype == dtype else trace.apply(backend, "astype", (out, dtype), {})


#: Of which a program has several functions in place of one.
_SEVERAL: Final = frozenset(
    {
        *("axpby", "mask", "normalised", "relu"),
        *("softmax_cross_entropy_parts", "where"),
    }
)

#: By backend and by the function's name.
_OF_LIBRARY: Final[dict[str, Mapping[str, Callable[..., Any]]]] = {"numpy": _NUMPY}
#: What every library has, without the looks at dtypes that a trace has taken already.
_COMMON: Final[Mapping[str, Callable[..., Any]]] = {
    "astype": _any_astype,
    "conj": _conj,
    "cut": _cut,
    "imag": _imag,
    "real": _real,
}


def lowered(
    trace: Any,
    backend: Any,
    name: str,
    operands: Sequence[Any],
    parameters: Mapping[str, Any],
) -> Any:
    """Record what a program calls in place of a backend's function; NotImplemented for itself."""
    own = _OF_LIBRARY.get(backend.name, {}).get(name)
    if name in _SEVERAL and any(order_of(bottom(x)) for x in operands if hasattr(x, "dtype")):
        own = None  # a kernel's temporaries may be in another order than those of a program
    answer = NotImplemented if own is None else own(trace, *operands, **parameters)
    if answer is not NotImplemented:
        return answer
    if name in _COMMON:
        return _COMMON[name](trace, backend, *operands, **parameters)
    kernel = backend.kernels.get(name)
    if hasattr(kernel, "library"):
        return _special(trace, backend, kernel, name, operands, parameters)
    return NotImplemented
