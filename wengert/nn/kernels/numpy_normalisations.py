"""NumPy's normalisations: few passes over the array.

Long rows are summed in parts of at most `LONGEST` numbers, so that no digits are lost, and their
products by BLAS, without an array of the products. A weight that is one number for each row is
taken together with the root, and so costs no pass. Short rows take the composite's steps.
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
    are_moderate,
    roots,
    sum_over,
    unwarned,
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


class Rows(NamedTuple):
    """An array as rows: over them, and over some of the axes before, means are taken."""

    shape: Shape  # of the array, with the axes of a row as one
    others: Shape  # the other axes that are averaged
    kept: Shape  # of a mean beside the shape
    weight: Shape | None  # beside the shape; None: one for each place in a row of a matrix
    number: int  # of the numbers in a mean


@lru_cache(maxsize=1024)
def _rows(shape: Shape, axis: Shape, weight: Shape = ()) -> Rows | None:
    """The array as long rows, if possible with one weight for each; None where they are short."""
    ndim = len(shape)
    weight = (1,) * (ndim - len(weight)) + weight
    ends = [ndim, ndim]
    for which, alone in enumerate((True, False)):
        while (i := ends[which] - 1) >= 0 and i in axis and (weight[i] == 1 or not alone):
            ends[which] = i
    own, end = ends
    length, number = math.prod(shape[own:]), math.prod([shape[i] for i in axis])
    if length >= SHORTEST:
        others = tuple([i for i in axis if i < own])
        kept = (*[1 if i in axis else n for i, n in enumerate(shape[:own])], 1)
        return Rows((*shape[:own], length), others, kept, (*weight[:own], 1), number)
    length = math.prod(shape[end:])
    if length == number >= SHORTEST and weight == (1,) * end + shape[end:]:
        count = math.prod(shape[:end])
        return Rows((count, length), (), (count, 1), None, number)
    return None


def _apply_unbuffered(function: Any, x: Any, column: Any, out: Any) -> Any:
    """A ufunc of rows and a number for each, which NumPy would copy along a long one."""
    before = np.setbufsize(WIDE)
    try:
        return function(x, column, out)
    finally:
        np.setbufsize(before)


def scaled_rows(x: Any, column: Any, *, out: Any = None) -> Any:
    """``x * column``, one number for each row."""
    return _apply_unbuffered(_multiply, x, column, out)


def shifted_rows(x: Any, column: Any, *, out: Any = None) -> Any:
    """``x + column``, likewise."""
    return _apply_unbuffered(_add, x, column, out)


def _times(x: Any, column: Any, out: Any = None) -> Any:
    return scaled_rows(x, column, out=out) if x.shape[-1] >= WIDE else _multiply(x, column, out)


def _plus(x: Any, column: Any, out: Any = None) -> Any:
    return shifted_rows(x, column, out=out) if x.shape[-1] >= WIDE else _add(x, column, out)


def steep_rows(x: Any, slope: Any, inverse: Any, *, out: Any = None) -> Any:
    """``x * (slope * inverse**2)``, in which the square may leave the range."""
    if are_moderate(inverse):
        return _times(x, slope * inverse * inverse, out)
    return _times(_times(x, inverse), slope * inverse, out)


@lru_cache(maxsize=256)
def _part(length: int) -> int:
    """The largest divisor of a length by whose parts rows are summed."""
    return max(n for n in range(1, LONGEST + 1) if length % n == 0)


def _total(x: Any, axis: Shape) -> Any:
    return sum_over(x, axis, True) if x.ndim > 1 else _sum(x, axis=axis, keepdims=True)


def _squares(x: Any, axis: Shape) -> Any:
    if len(axis) == 1 and x.size <= FEW_SQUARES:
        return _vecdot(x, x, axis=axis[0], keepdims=True)
    return _total(_multiply(x, x), axis)


def _row_totals(x: Any, rows: Rows, *, alone: bool = False) -> Any:
    """The sum of each row, alone or with those that belong to one mean."""
    shape, others = rows.shape, () if alone else rows.others
    part = _part(shape[-1])
    if part >= SHORTEST:
        shape = *shape[:-1], shape[-1] // part
        x = sum_over(x.reshape((math.prod(shape), part)), 1, False).reshape(shape)
    return _sum(x, axis=(*others, len(shape) - 1), keepdims=True)


def _row_products(x: Any, y: Any, rows: Rows) -> Any:
    found = _column(_vecdot(x, y))
    return _sum(found, axis=rows.others, keepdims=True) if rows.others else found


def _column(x: Any) -> Any:
    return x.reshape((*x.shape, 1))


def _centre_rows(z: Any, rows: Rows) -> tuple[Any, Any]:
    """Rows less their mean, and the negative mean."""
    mean = _row_totals(z, rows) / -rows.number
    return _plus(z, mean), mean


def _outer(inverse: Any, weight: Any) -> Any:
    """A matrix of the products of a column and a row: faster by BLAS than two broadcast factors."""
    return inverse.dot(weight.reshape((1, -1)))


def _square_totals(z: Any, rows: Rows | None, axis: Shape) -> Any:
    """The sums of squares, of an array as rows or in its shape."""
    return unwarned(_squares, z, axis) if rows is None else unwarned(_row_products, z, z, rows)


def inverse_roots(total: Any, z: Any, shape: Shape, axis: Shape, number: int, eps: float) -> Any:
    """One over the root of the mean square and ``eps``, by the sums of squares where they hold."""
    if eps > 1e-30 or within(total):  # beside a usual term it is no matter how small a sum is
        inverse = total / number
        inverse += eps
        np.reciprocal(np.sqrt(inverse, inverse), inverse)
        if np.count_nonzero(inverse) == inverse.size:
            return inverse
    kept = tuple([1 if i in axis else n for i, n in enumerate(shape)])
    root = roots(total.reshape(kept), z.reshape(shape), axis, number)
    return (1 / np.hypot(root, math.sqrt(eps))).reshape(total.shape)


def standardised(
    x: Any, weight: Any, bias: Any, *, axis: Shape, eps: float, centred: bool
) -> tuple[Any, ...]:
    """Numbers over the root of their mean square, times a weight, plus a bias; and more.

    These are one over the root, and the numbers less their mean, if it is taken off.
    """
    shape = () if weight is None else weight.shape
    rows = _rows(x.shape, axis, shape)
    if rows is None or (bias is not None and bias.shape != shape):
        number = math.prod([x.shape[i] for i in axis])
        if centred:
            x = _subtract(x, _total(x, axis) / number)
        total = _square_totals(x, None, axis)
        inverse = inverse_roots(total, x, x.shape, axis, number, eps)
        out = _multiply(x, inverse)
        if weight is not None:
            _multiply(out, weight, out)
        if bias is not None:
            _add(out, bias, out)
        return (out, inverse, x) if centred else (out, inverse)
    z = x.reshape(rows.shape)
    if centred:
        z, _ = _centre_rows(z, rows)
    total = _square_totals(z, rows, axis)
    inverse = inverse_roots(total, z, x.shape, axis, rows.number, eps)
    if rows.weight is None:
        out = _outer(inverse, weight)
        _multiply(out, z, out)
        if bias is not None:
            _add(out, bias.reshape((-1,)), out)
    else:
        scale = inverse if weight is None else _multiply(inverse, weight.reshape(rows.weight))
        out = _times(z, scale)
        if bias is not None:
            _plus(out, bias.reshape(rows.weight), out)
    kept = tuple([1 if i in axis else n for i, n in enumerate(x.shape)])
    found = out.reshape(x.shape), inverse.reshape(kept)
    return (*found, z.reshape(x.shape)) if centred else found


def standardised_cotangent(
    g: Any, x: Any, weight: Any, inverse: Any, *, axis: Shape, centred: bool
) -> Any:
    """The cotangent of the numbers, of which ``x`` are less their mean, if it is taken off."""
    shape = x.shape
    rows = _rows(shape, axis, () if weight is None else weight.shape)
    if rows is None:
        number = x.size // (inverse.size or 1)
        given = g if weight is None else _multiply(g, weight)
        slope = _total(_multiply(given, x), axis) / number * inverse * inverse
        out = _multiply(x, slope)
        _multiply(_subtract(given, out, out), inverse, out)
        return _subtract(out, _total(out, axis) / number, out) if centred else out
    g, x, inverse = g.reshape(rows.shape), x.reshape(rows.shape), inverse.reshape(rows.kept)
    mean: Any = None
    term = None
    if rows.weight is None:
        row = weight.reshape((-1,))
        term = _multiply(g, x)
        products = _column(term.dot(row))
        if centred:
            mean = _multiply(_column(g.dot(row)), inverse)
        out = _outer(inverse, weight)
        _multiply(out, g, out)
    else:
        products, scale = _column(_vecdot(g, x)), inverse
        if weight is not None:
            weight = weight.reshape(rows.weight)
            products, scale = _multiply(products, weight), _multiply(inverse, weight)
        if centred:
            mean = _multiply(_row_totals(g, rows, alone=True), scale)
        if rows.others:
            products = _sum(products, axis=rows.others, keepdims=True)
            mean = _sum(mean, axis=rows.others, keepdims=True) if centred else None
        out = _times(g, scale)
    if centred:
        _plus(out, mean / -rows.number, out)
    slope = products / -rows.number * inverse
    return _add(out, steep_rows(x, slope, inverse, out=term), out).reshape(shape)


def standardised_by_weight(g: Any, x: Any, inverse: Any, *, axis: Shape, shape: Shape) -> Any:
    """The cotangent of the weight, which broadcasts from its shape."""
    rows = _rows(x.shape, axis, shape)
    if rows is None:
        out = _multiply(g, x)
        return _multiply(out, inverse, out)
    if rows.weight is None:
        products = _multiply(g.reshape(rows.shape), x.reshape(rows.shape))
        return inverse.reshape((-1,)).dot(products).reshape(shape)
    found = _column(_vecdot(g.reshape(rows.shape), x.reshape(rows.shape)))
    found = _multiply(found, inverse.reshape(rows.kept))
    over = [i for i, n in enumerate(rows.weight) if n == 1 and rows.shape[i] != 1]
    if over[:-1]:
        found = _sum(found, axis=tuple(over[:-1]), keepdims=True)
    return found.reshape(shape)


KERNELS: Mapping[str, Kernel] = {
    "standardised": standardised,
    "standardised_by_weight": standardised_by_weight,
    "standardised_cotangent": standardised_cotangent,
}
add_kernels("numpy", KERNELS)
