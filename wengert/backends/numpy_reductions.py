"""NumPy's reductions over some axes, at which its own loops are slow.

NumPy starts a loop for each row: ten nanoseconds for a sum, thirty for a maximum, however short
the row is. Of an array in C's order BLAS sums a matrix by its product with ones, and a maximum runs
along the columns of transposed blocks. There NumPy too adds one number after the other, and
rounds alike. All other orders are NumPy's: BLAS would copy them, and NumPy halves long sums.

The order in memory is looked at in each call, and programs call these functions whole: cotangents
come in any order. Sums of rows that are not finite are NumPy's, with its warnings. BLAS adds
columns in another order: a sum that overflows on the way may be nan where NumPy's is infinite.
"""

import math
from collections.abc import Mapping
from contextvars import Context
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np

from wengert.backends.backend import Kernel
from wengert.backends.numpy_networks import FILLED, WIDE, ones, row_layout

__all__ = [
    "FEW_SQUARES",
    "KERNELS",
    "LONGEST",
    "are_moderate",
    "call_silently",
    "errors",
    "fold",
    "max_over",
    "min_over",
    "roots",
    "small_part",
    "squares",
    "sum_over",
    "within",
]

_add: Any = np.add.reduce
_vecdot: Any = np.vecdot
_max: Any = np.maximum.reduce
_min: Any = np.minimum.reduce

#: The longest rows that BLAS sums, and the fewest: up to so many numbers NumPy adds without halving
#: the row, as BLAS does; and so few rows it adds faster than BLAS's result is looked at.
LONGEST, FEWEST = 128, 96
#: The longest rows, and the fewest, of whose transposed copy a maximum is faster.
SHORT, FEW = 32, 32
#: From so many numbers on sums are those of pieces of this length.
MANY, WIDTH = 1 << 15, 1 << 10
#: Columns of this length are added number by number; of four times the length, their sums are.
PIECE = 1 << 7
#: Up to so many squares BLAS adds, which starts faster.
FEW_SQUARES = 1 << 12
#: At most so many elements are copied at once.
BLOCK = 1 << 16


class Rows(NamedTuple):
    """An array as a stack of matrices whose columns are reduced, or as a matrix with short rows."""

    over: str  # "columns" of a matrix or of a "stack", "rows", "long", "all", or axes "apart"
    #: The shape of the matrix or stack, None where the array has it; the last axes of those apart.
    parts: tuple[int, ...] | None
    length: int  # how many numbers each result is made from
    shape: tuple[int, ...] | None  # of the result; None where the reduction gives it
    made: tuple[int, ...]  # the shape that the reduction gives


@lru_cache(maxsize=1024)
def rows(shape: tuple[int, ...], axis: Any, drop: bool, fewest: int = FEWEST) -> Rows | None:
    """How to reduce in one of these ways; None where NumPy's own reduction is to be taken.

    ``drop`` is ``not keepdims``: what another object says may change, and is no key.
    """
    ndim = len(shape)
    given = range(ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = sorted(i + ndim if i < 0 else i for i in given)
    number = len(axes)
    if not number or 0 in shape or len({*axes}) < number or axes[0] < 0 or axes[-1] >= ndim:
        return None  # or an error, which NumPy raises
    start, stop = axes[0], axes[0] + number
    if axes[-1] >= stop:
        if math.prod(shape) < FEW_SQUARES:
            return None
        run = tuple(i for i in axes if all(j in axes for j in range(i, axes[-1])))
        kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
        result = tuple(n for i, n in enumerate(shape) if i not in axes) if drop else kept
        return Rows("apart", run, 0, None, result)
    before, length, after = (
        math.prod(shape[part]) for part in (slice(start), slice(start, stop), slice(stop, None))
    )
    if length == 1:  # nothing to add
        return None
    parts: tuple[int, ...]
    made: tuple[int, ...]
    if before == after == 1:
        if length < MANY:
            return None
        over, parts, made = "all", (length,), ()
    elif after == 1:  # NumPy halves long sums again and again, which keeps their digits
        if length > FEW_SQUARES or before < (fewest if length <= LONGEST else MANY // length):
            return None
        over, parts, made = "rows" if length <= LONGEST else "long", (before, length), (before,)
    elif before == 1:
        over, parts, made = "columns", (length, after), (after,)
    else:
        over, parts, made = "stack", (before, length, after), (before, after)
    kept = tuple(1 if start <= i < stop else n for i, n in enumerate(shape))
    result = shape[:start] + shape[stop:] if drop else kept
    return Rows(
        over,
        None if parts == shape else parts,
        length,
        None if result == made else result,
        made,
    )


@lru_cache(maxsize=2)
def errors(how: Literal["ignore", "raise"]) -> Context:
    """A context in which NumPy's floating-point errors are ``"ignore"`` or ``"raise"``.

    With the latter a number that leaves the range, or loses digits at its end, is an error: the
    processor tells, in a quarter of the time of a look at the numbers. Of BLAS it may not.
    """
    context = Context()
    context.run(np.seterr, all=how)
    return context


def call_silently(function: Any, *operands: Any) -> Any:
    """A call of which NumPy doesn't warn, in a tenth of the time of ``np.errstate``."""
    return errors("ignore").copy().run(function, *operands)


def short_rows(x: Any, axis: Any, keepdims: bool) -> Rows | None:
    """How to find the extremes of short rows; None where NumPy's own reduction is to be taken."""
    how = None if axis is None else rows(x.shape, axis, not keepdims, FEW)
    return None if how is None or how.over != "rows" or how.length > SHORT else how


def fold(x: Any, reduce: Any) -> Any:
    """What a reduction makes of each of an array's pieces: rows of one length, and the rest."""
    flat = x.reshape(-1)
    stop = flat.size - flat.size % WIDTH
    return np.concatenate([reduce(flat[:stop].reshape(-1, WIDTH)), reduce(flat[None, stop:])])


def _sum_columns(x: Any, one: Any, out: Any = None) -> Any:
    """The sums of columns of one or more matrices; of many rows by those of pieces."""
    length = len(one)
    if length >= 4 * PIECE:
        stop = length - length % PIECE
        parts = x[..., :stop, :].reshape((*x.shape[:-2], -1, PIECE, x.shape[-1]))
        parts = call_silently(np.matmul, one[:PIECE], parts)
        if not np.isfinite(parts).all():  # a piece may leave the range where the column does not
            return _add(x, axis=-2, out=out)
        rest = x[..., stop:, :]
        x = parts if stop == length else np.concatenate([parts, rest], axis=-2)
        one = one[: x.shape[-2]]
    return one.dot(x, out) if x.ndim == 2 else np.matmul(one, x, out)


def sum_over(x: Any, axis: Any, keepdims: bool, *, out: Any = None) -> Any:
    """The sum of an array in single or double precision over axes."""
    how = rows(x.shape, axis, not keepdims)
    if how is None or not x.flags.c_contiguous:
        return _add(x, axis=axis, keepdims=keepdims, out=out)
    over, parts, length, shape, made = how
    if over == "apart":  # where NumPy adds one number after the other, too
        rest = tuple([i for i in axis if i % x.ndim not in parts])  # type: ignore[operator]
        found = sum_over(sum_over(x, parts, True), rest, True).reshape(made)
        if out is not None:
            np.copyto(out, found)
        return found if out is None else out
    if parts is not None:
        x = x.reshape(parts)
    into = out if out is None or shape is None else out.reshape(made, copy=False)
    one = ones(length if over != "all" else 1, x.dtype)
    if over == "all":
        # Pieces may overflow where the sum does not.
        found = call_silently(fold, x, lambda x: _vecdot(x, ones(x.shape[1], x.dtype)))
        found = _add(found if math.isfinite(np.vdot(found, found)) else x.reshape(-1), out=into)
    elif over in ("rows", "long"):
        # BLAS also computes with what lies beside short rows, and its warnings tell of that.
        found = call_silently(x.dot if over == "rows" else partial(_vecdot, x), one, into)
        if not math.isfinite(np.vdot(found, found)):
            _add(x, axis=1, out=found)
    else:
        found = _sum_columns(x, one, into)
    if out is not None:
        return out
    return found if shape is None else found.reshape(shape)


def max_over(x: Any, axis: Any = None, keepdims: bool = False, *, out: Any = None) -> Any:
    """The largest numbers over axes."""
    return _extreme(_max, x, axis, keepdims, out)


def min_over(x: Any, axis: Any = None, keepdims: bool = False, *, out: Any = None) -> Any:
    """The smallest numbers over axes."""
    return _extreme(_min, x, axis, keepdims, out)


def _extreme(reduce: Any, x: Any, axis: Any, keepdims: bool, out: Any) -> Any:
    how = short_rows(x, axis, keepdims)
    if how is None or not x.flags.c_contiguous:
        return reduce(x, axis, None, out, keepdims)
    _, parts, length, shape, made = how
    if parts is not None:
        x = x.reshape(parts)
    if x.size <= BLOCK and out is None:
        found = reduce(x.mT.copy(), axis=0)
        return found if shape is None else found.reshape(shape)
    if out is None:
        out = np.empty(made if shape is None else shape, x.dtype)
    into, step = out.reshape(made, copy=False), BLOCK // length
    for start in range(0, len(x), step):
        block = slice(start, start + step)
        reduce(x[block].mT.copy(), axis=0, out=into[block])
    return out


# -- roots of sums of squares ----------------------------------------------------------------------


@lru_cache(maxsize=64)
def _limits(dtype: Any) -> tuple[float, float, float]:
    """The least sum of squares that has all its digits, the largest number, the dtype's eps."""
    info = np.finfo(dtype)
    return float(info.smallest_normal / info.eps), float(info.max), float(info.eps)


def within(total: Any) -> bool:
    """Whether all sums of squares have their digits, and none is infinite or not a number."""
    low, high, _ = _limits(total.dtype)
    if total.ndim == 0:
        return low <= total.item() <= high  # type: ignore[no-any-return]
    return low <= total.item(total.argmin()) and total.item(total.argmax()) <= high  # type: ignore[no-any-return]


def squares(x: Any) -> Any:
    """Squared absolute values."""
    return x.real**2 + x.imag**2 if x.dtype.kind == "c" else x * x


def square_sum(x: Any, axis: Any, keepdims: bool, *, own: bool = False) -> Any:
    """The sum of squared absolute values over axes, of which nothing warns when it overflows.

    ``own`` says that the array may be written into.
    """
    if (axis is None or len(axis) == x.ndim) and x.size <= FEW_SQUARES and x.dtype.char in "fd":
        total = np.vdot(x, x)  # which never warns
        return total.reshape((1,) * x.ndim) if keepdims else total
    return call_silently(_square_sum, x, axis, keepdims, own)


def _square_sum(x: Any, axis: Any, keepdims: bool, own: bool) -> Any:
    if x.size <= FEW_SQUARES and axis is not None and len(axis) == 1 and x.dtype.char in "fd":
        return _vecdot(x, x, axis=axis[0], keepdims=keepdims)
    if (axis is None or len(axis) == x.ndim) and x.dtype.char in "fd" and x.flags.c_contiguous:
        total = _add(fold(x, lambda pieces: _vecdot(pieces, pieces)))
        return total.reshape((1,) * x.ndim) if keepdims else total
    terms = np.multiply(x, x, x) if own and x.dtype.kind == "f" else squares(x)
    if axis is None or x.ndim < 2:
        return _add(terms, axis=axis, keepdims=keepdims)
    return sum_over(terms, axis, keepdims)


def roots(total: Any, x: Any, axis: Any, number: float, centred: bool = False) -> Any:
    """The root of each sum of squares over axes, divided by a number.

    ``centred`` says that the squares are of numbers less their mean. Rows whose sum leaves the
    range are scaled by a power of two, and summed again.
    """
    root = np.sqrt(total if number == 1 else total / number)
    if not x.size or within(total):
        return root
    axis = tuple(range(x.ndim)) if axis is None else tuple([i % x.ndim for i in axis])
    rest = tuple([i for i in range(x.ndim) if i not in axis])
    low, high, _ = _limits(total.dtype)
    out = np.asarray(root).reshape([x.shape[i] for i in rest])
    bad = ~((low <= total) & (total <= high)).reshape(out.shape)
    found = x.transpose(rest + axis)[bad]
    found = found.reshape((len(found), -1))
    parts = found.view(total.dtype) if found.dtype.kind == "c" else found
    largest = _max(np.abs(parts), axis=1, keepdims=True)
    exponent = np.frexp(np.where(np.isfinite(largest), largest, 0))[1]
    scaled = np.ldexp(parts, -exponent)
    found = scaled.view(found.dtype) if found.dtype.kind == "c" else scaled
    if centred:
        found = found - _add(found, axis=1, keepdims=True) / found.shape[1]
    again = np.sqrt(_add(squares(found), axis=1) / number)
    out[bad] = np.ldexp(again, exponent[:, 0])
    return out.reshape(np.shape(total))


def vector_norm(x: Any, /, *, axis: tuple[int, ...], keepdims: bool = False) -> Any:
    """The 2-norm over axes."""
    return roots(square_sum(x, axis, keepdims), x, axis, 1)


def _are_large(x1: Any, x2: Any) -> bool:
    """Whether there is a vector form: of large real arrays of one shape and dtype."""
    shape = getattr(x1, "shape", None)
    if not shape or shape != getattr(x2, "shape", None) or x1.size <= WIDE:
        return False
    return x1.dtype == x2.dtype and x1.dtype.char in "fd"


def hypot(x1: Any, x2: Any, /) -> Any:
    """``np.hypot``, by the squares where all of their sums are in range."""
    if not _are_large(x1, x2):
        return np.hypot(x1, x2)
    total = call_silently(lambda: x1 * x1 + x2 * x2)
    return np.sqrt(total, total) if within(total) else np.hypot(x1, x2)


def are_moderate(x: Any) -> bool:
    """Whether all these positive numbers are so near 1 that quotients by them keep their digits."""
    low = _limits(x.dtype)[2]
    return low <= x.item(x.argmin()) and x.item(x.argmax()) <= 1 / low  # type: ignore[no-any-return]


def _divisor(norm: Any) -> Any:
    """Norms, but 1 where they are 0, and not a number where they are infinite."""
    if norm.size and norm.item(norm.argmin()) > 0 and norm.item(norm.argmax()) < math.inf:
        return norm
    return np.where(np.isinf(norm), math.nan, np.where(np.equal(norm, 0), 1, norm))


def direction(scale: Any, x: Any, norm: Any) -> Any:
    """``x / norm * scale``, by one pass where there are fewer norms and scales."""
    if scale.size == norm.size < x.size and are_moderate(norm):
        try:
            return x * errors("raise").copy().run(np.divide, scale, norm)
        except FloatingPointError:  # the quotient is out of range where the result may not be
            pass
    return x / _divisor(norm) * scale


def cosine_of(x: Any, y: Any) -> Any:
    """``x / hypot(x, y)``."""
    radius = np.hypot(x, y)
    safe = _divisor(radius)
    if safe is radius:
        return x / radius
    far, farther = np.isinf(x), np.isinf(y)
    ends = np.where(farther, math.nan, np.copysign(np.ones_like(radius), x))
    return np.where(far, ends, np.where(farther, 0, x / safe))


# -- sums of exponentials --------------------------------------------------------------------------


def _temporary(x: Any) -> Any:
    """An array of a kernel's own if it can be written into: no scalar, and no complex numbers.

    NumPy rounds their products otherwise when it writes into an operand.
    """
    return x if x.shape and x.dtype.kind == "f" else None


def _is_row(x: Any, axis: tuple[int, ...]) -> bool:
    """Whether there is one row, whose largest and whose sum can be plain numbers."""
    return len(axis) == 1 and 0 != x.shape[axis[0]] == x.size and x.dtype.char in "fd"


def _is_small(x: Any, axis: tuple[int, ...]) -> bool:
    """Whether it is a matrix of short rows whose calls take longer than what they compute."""
    short = axis == (1,) and x.ndim == 2 and 0 < x.size <= FILLED and x.shape[1] <= LONGEST
    return short and x.dtype.char in "fd"


def _top(x: Any, axis: tuple[int, ...]) -> Any:
    """The largest (real part) of each row, as a column, or that of the only row as a number."""
    if _is_row(x, axis):
        row = x.reshape(-1)
        return row[row.argmax()]
    if _is_small(x, axis):
        return x.take(x.argmax(1) + row_layout(*x.shape)[0]).reshape((-1, 1))
    return max_over(np.real(x) if x.dtype.kind == "c" else x, axis, True)


def _total(x: Any, axis: tuple[int, ...]) -> Any:
    """The sum of each row, likewise, of numbers from 0 to 1: BLAS has nothing to warn of."""
    if _is_row(x, axis):
        return x.reshape(-1).dot(ones(x.size, x.dtype))
    if _is_small(x, axis):
        return x.dot(ones(x.shape[1], x.dtype)).reshape((-1, 1))
    if x.ndim > 1 and x.dtype.char in "fd":
        return sum_over(x, axis, True)
    return _add(x, axis=axis, keepdims=True)


def softmax(x: Any, *, axis: tuple[int, ...]) -> Any:
    """``exp(x) / sum(exp(x))``."""
    if _is_row(x, axis):  # whose calls take longer than what they compute
        row = x.reshape(-1)
        out = np.subtract(row, row[row.argmax()])
        np.exp(out, out)
        return np.divide(out, out.dot(ones(len(out), x.dtype)), out).reshape(x.shape)
    if not x.size:
        return x.copy()
    if x.dtype.char == "e":  # whose sums end at 65504
        return softmax(x.astype(np.float32), axis=axis).astype(x.dtype)
    terms = np.subtract(x, _top(x, axis))
    terms = np.exp(terms, _temporary(terms))
    return np.divide(terms, _total(terms, axis), _temporary(terms))


def log_softmax(x: Any, *, axis: tuple[int, ...]) -> Any:
    """``x - log(sum(exp(x)))``."""
    if not x.size:
        return x.copy()
    if x.dtype.char == "e":
        return log_softmax(x.astype(np.float32), axis=axis).astype(x.dtype)
    low = np.subtract(x, _top(x, axis))
    return np.subtract(low, np.log(_total(np.exp(low), axis)), _temporary(low))


def logsumexp(x: Any, *, axis: tuple[int, ...], keepdims: bool) -> Any:
    """``log(sum(exp(x)))``."""
    if keepdims:
        shape = tuple([1 if i in axis else n for i, n in enumerate(x.shape)])
    else:
        shape = tuple([n for i, n in enumerate(x.shape) if i not in axis])
    if 0 in [x.shape[i] for i in axis]:
        return np.full(shape, -math.inf, x.dtype)
    if x.dtype.char == "e":
        return logsumexp(x.astype(np.float32), axis=axis, keepdims=keepdims).astype(x.dtype)
    top = _top(x, axis)
    finite = np.isfinite(top)
    if np.count_nonzero(finite) == top.size:
        terms = np.subtract(x, top)
        out = np.add(np.log(_total(np.exp(terms, _temporary(terms)), axis)), top)
    else:
        shift = np.where(finite, top, 0)
        total = _total(np.exp(np.subtract(x, shift)), axis)
        empty = np.equal(total, 0)
        out = np.add(np.log(np.where(empty, 1, total)), np.where(empty, -math.inf, shift))
    return out if out.shape == shape else out.reshape(shape)


def logaddexp(x1: Any, x2: Any, /) -> Any:
    """``np.logaddexp`` by functions that have vector code."""
    if not _are_large(x1, x2):
        return np.logaddexp(x1, x2)
    apart = call_silently(partial(np.subtract, dtype=np.float64), x1, x2)
    if math.isnan(apart.item(apart.argmax())):  # of two equal infinities, too
        return np.logaddexp(x1, x2)
    large = np.maximum(x1, x2)
    return np.add(small_part(apart), large, large, casting="same_kind")


def small_part(x: Any) -> Any:
    """``log(1 + exp(-abs(x)))``, in the array itself: a double, for its digits and its order."""
    np.negative(np.abs(x, x), x)
    return np.log1p(np.exp(x, x), x)


KERNELS: Mapping[str, Kernel] = {
    "cosine_of": cosine_of,
    "direction": direction,
    "hypot": hypot,
    "linalg.vector_norm": vector_norm,
    "log_softmax": log_softmax,
    "logaddexp": logaddexp,
    "logsumexp": logsumexp,
    "max": max_over,
    "min": min_over,
    "softmax": softmax,
}
