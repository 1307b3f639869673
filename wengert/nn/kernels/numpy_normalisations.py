"""NumPy's normalisations: few passes over the array.

Long rows are summed in parts of at most `LONGEST` numbers, so that no digits are lost, and their
products by BLAS, without an array of the products. Short rows take the composite's steps.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from wengert.backends.backend import Kernel, add_kernels
from wengert.backends.numpy_reductions import (
    FEW_SQUARES,
    LONGEST,
    call_silently,
    roots,
    sum_over,
    within,
)

__all__ = ["KERNELS"]

Shape = tuple[int, ...]
_add, _subtract, _multiply = np.add, np.subtract, np.multiply
_vecdot: Any = np.vecdot
_sum: Any = np.add.reduce

#: The shortest rows of which a product by BLAS is faster than the products and their sum.
SHORTEST = 96
#: The shortest rows that are faster one by one than from a buffer, and so long a buffer.
WIDE = 256
#: How many rows at most are taken together with one weight for each place, of so many numbers.
TOGETHER, MANY = 16, 1 << 16


class Rows(NamedTuple):
    """An array, as long rows if it has some: over them, and other axes, means are taken."""

    given: Shape  # of the array
    shape: Shape  # with the axes of a long row as one
    axis: Shape  # of means
    kept: Shape  # of a mean beside the shape
    number: int  # of the numbers in a mean
    long: bool
    weight: Shape  # of a weight beside the shape


@lru_cache(maxsize=1024)
def _rows(given: Shape, axis: Shape, weight: Shape = ()) -> Rows:
    weight = (1,) * (len(given) - len(weight)) + weight
    number = math.prod([given[i] for i in axis])
    for constant in (True, False):  # rows with one weight each, if these are long
        start = len(given)
        while start - 1 in axis and (weight[start - 1] == 1 or not constant):
            start -= 1
        length = math.prod(given[start:])
        if length >= SHORTEST and (constant or weight[start:] == given[start:]):
            shape = *given[:start], length
            own = *[i for i in axis if i < start], start
            kept = tuple([1 if i in own else n for i, n in enumerate(shape)])
            beside = *weight[:start], 1 if constant else length
            return Rows(given, shape, own, kept, number, True, beside)
    kept = tuple([1 if i in axis else n for i, n in enumerate(given)])
    return Rows(given, given, axis, kept, number, False, weight)


def _apply_unbuffered(function: Any, x: Any, more: Any, out: Any) -> Any:
    """A ufunc of rows and a number for each, or for each place, which NumPy would copy."""
    shape, count = x.shape, math.gcd(math.prod(x.shape[:-1]), TOGETHER)
    if more.shape[-1] > 1 and all(a.flags.c_contiguous for a in (x, out) if a is not None):
        long = -1, count * shape[-1]
        x, out = x.reshape(long), None if out is None else out.reshape(long)
        more = np.concatenate((more.reshape(-1),) * count)
    before = np.setbufsize(WIDE)
    try:
        return function(x, more, out).reshape(shape)
    finally:
        np.setbufsize(before)


def scaled_rows(x: Any, more: Any, *, out: Any = None) -> Any:
    """``x * more``, one number for each row, or for each place in a row."""
    return _apply_unbuffered(_multiply, x, more, out)


def shifted_rows(x: Any, more: Any, *, out: Any = None) -> Any:
    """``x + more``, likewise."""
    return _apply_unbuffered(_add, x, more, out)


def _by_rows(x: Any, more: Any) -> Any:
    """Whether that is faster than from NumPy's buffer."""
    if more.shape[-1] == 1:
        return x.shape[-1] >= WIDE
    return math.prod(x.shape) >= MANY and math.prod(more.shape) == x.shape[-1]


def _times(x: Any, more: Any, out: Any = None) -> Any:
    return scaled_rows(x, more, out=out) if _by_rows(x, more) else _multiply(x, more, out)


def _plus(x: Any, more: Any, out: Any = None) -> Any:
    return shifted_rows(x, more, out=out) if _by_rows(x, more) else _add(x, more, out)


@lru_cache(maxsize=256)
def _part(length: int) -> int:
    """The largest divisor of a length by whose parts rows are summed."""
    return max(n for n in range(1, LONGEST + 1) if length % n == 0)


def _total(x: Any, axis: Shape) -> Any:
    return sum_over(x, axis, True) if x.ndim > 1 else _sum(x, axis=axis, keepdims=True)


def _sum_rows(found: Any, rows: Rows, factor: Any) -> Any:
    """The sum over other axes of a number for each row, times a factor."""
    found = found if factor is None else _multiply(found, factor)
    others = rows.axis[:-1]
    if found.size >= FEW_SQUARES:
        return sum_over(found, others, True)
    return _sum(found, axis=others, keepdims=True) if others else found


def _sums(x: Any, rows: Rows, factor: Any = None) -> Any:
    if not rows.long:
        return _total(x, rows.axis)
    shape = rows.shape
    part = _part(shape[-1])
    if part >= SHORTEST:
        shape = *shape[:-1], shape[-1] // part
        x = sum_over(x.reshape((math.prod(shape), part)), 1, False).reshape(shape)
    return _sum_rows(_sum(x, axis=-1, keepdims=True), rows, factor)


def _sums_of_products(x: Any, y: Any, rows: Rows, factor: Any = None) -> Any:
    if rows.long:
        return _sum_rows(_vecdot(x, y).reshape((*rows.shape[:-1], 1)), rows, factor)
    if x is y and len(rows.axis) == 1 and x.size <= FEW_SQUARES:
        return _vecdot(x, y, axis=rows.axis[0], keepdims=True)
    return _total(_multiply(x, y), rows.axis)


def inverse_roots(total: Any, z: Any, axis: Shape, number: int, eps: float) -> Any:
    """One over the root of the mean square and ``eps``, by the sums of squares where they hold."""
    if eps > 1e-30 or within(total):  # beside a usual term it is no matter how small a sum is
        inverse = total / number
        inverse += eps
        np.reciprocal(np.sqrt(inverse, inverse), inverse)
        if np.count_nonzero(inverse) == inverse.size:
            return inverse
    return 1 / np.hypot(roots(total, z, axis, number), math.sqrt(eps))


def standardised(
    x: Any, weight: Any, bias: Any, *, axis: Shape, eps: float, centred: bool
) -> tuple[Any, ...]:
    """Numbers over the root of their mean square, times a weight, plus a bias; and more.

    These are one over the root, the moments of centred ones, and what is multiplied by the weight.
    """
    rows = _rows(x.shape, axis, () if weight is None else weight.shape)
    z = x.reshape(rows.shape)
    mean = None
    if centred:
        mean = _sums(z, rows) / rows.number
        z = _plus(z, -mean)
    total = call_silently(_sums_of_products, z, z, rows)
    inverse = inverse_roots(total, z, rows.axis, rows.number, eps)
    y = _times(z, inverse, z if centred else None)
    moments = () if mean is None else (mean, total / rows.number)
    kept = tuple([1 if i in axis else n for i, n in enumerate(x.shape)])
    more = [a.reshape(kept) for a in (inverse, *moments)]
    if weight is None:
        return y.reshape(x.shape), *more
    out = _times(y, weight.reshape(rows.weight))
    if bias is not None:
        _plus(out, bias.reshape(rows.weight), out)
    return out.reshape(x.shape), *more, y.reshape(x.shape)


def standardised_cotangent(
    g: Any, y: Any, weight: Any, inverse: Any, *, axis: Shape, centred: bool
) -> Any:
    """The cotangent of the numbers, by their standardised ones ``y``."""
    rows = _rows(y.shape, axis, () if weight is None else weight.shape)
    g, y, inverse = g.reshape(rows.shape), y.reshape(rows.shape), inverse.reshape(rows.kept)
    scale, factor, own = inverse, None, None
    weight = None if weight is None else weight.reshape(rows.weight)
    if weight is not None and rows.long and weight.shape[-1] == 1:
        factor, scale = weight, _multiply(inverse, weight)
    elif weight is not None:
        g = own = _times(g, weight)
    slope = _sums_of_products(g, y, rows, factor) / -rows.number
    mean = _sums(g, rows, factor) / -rows.number if centred else None
    out = _times(g, scale, own)
    _add(out, _times(y, _multiply(slope, inverse)), out)
    if mean is not None:
        _plus(out, _multiply(mean, inverse), out)
    return out.reshape(rows.given)


def standardised_by_weight(g: Any, y: Any, *, axis: Shape, shape: Shape) -> Any:
    """The cotangent of the weight, or what sums to it."""
    rows = _rows(y.shape, axis, shape)
    if not rows.long or rows.weight[-1] != 1:
        return _multiply(g, y)
    return _vecdot(g.reshape(rows.shape), y.reshape(rows.shape)).reshape(
        (*rows.shape[:-1], *[1] * (y.ndim - len(rows.shape) + 1))
    )


KERNELS: Mapping[str, Kernel] = {
    "standardised": standardised,
    "standardised_by_weight": standardised_by_weight,
    "standardised_cotangent": standardised_cotangent,
}
add_kernels("numpy", KERNELS)
