"""NumPy's functions by their names, each with its counterpart."""

import math
from collections.abc import Callable
from typing import Any

from wengert.ops import (
    conversion,
    creation,
    data_type,
    grids,
    indexing,
    linalg,
    linear_algebra,
    manipulation,
    methods,
    searching,
    sorting,
    special,
    statistical,
    utility,
)
from wengert.ops import elementwise as ew
from wengert.ops import set as sets
from wengert.ops.beyond import pad
from wengert.ops.operands import operands
from wengert.protocols import UnsupportedError, choices, fitting, numeric, reductions, shapes
from wengert.protocols.translation import inexact, of_two, translate
from wengert.tape.tensor import Tensor

__all__ = ["TABLE"]


def _of_sorted(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``np.sort`` and ``np.argsort``: of the flattened array, where the axis is None."""

    def call(a: Any, *, axis: int | None = -1) -> Tensor:
        a, axis = (manipulation.reshape(a, (-1,)), 0) if axis is None else (a, axis)
        return function(a, axis=axis)

    return call


def _nan_extreme(function: Callable[..., Tensor], neutral: float) -> Callable[..., Tensor]:
    """``np.nanmax`` and ``np.nanmin``, NaN where there is nothing else."""
    present = reductions.nan_version(function, neutral)

    def call(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        if not a.dtype.inexact:
            return function(a, axis, keepdims=keepdims)
        absent = utility.all(ew.isnan(a), axis=axis, keepdims=keepdims)
        return searching.where(absent, math.nan, present(a, axis, keepdims=keepdims))

    return call


def _cross(a: Any, b: Any, *, axis: int | None = None, **axes: int) -> Tensor:
    x, y = operands(a, b)
    if axis is not None:
        axes = {"axisa": axis, "axisb": axis, "axisc": axis}
    if not axes and x.shape == y.shape:
        return linalg.cross(x, y)
    x = manipulation.moveaxis(x, axes.get("axisa", -1), -1)
    y = manipulation.moveaxis(y, axes.get("axisb", -1), -1)
    product = linalg.cross(*manipulation.broadcast_arrays(x, y))
    return manipulation.moveaxis(product, -1, axes.get("axisc", -1))


def _pad(array: Any, pad_width: Any, mode: Any = "constant", **keywords: Any) -> Tensor:
    if callable(mode):
        raise UnsupportedError("a function as mode writes in place, which Tensors do not have")
    (x,) = operands(array)
    return pad(x, pad_width, mode, **keywords)


def _take(
    a: Any, indices: Any, axis: int | None = None, out: None = None, mode: str = "raise"
) -> Tensor:
    if mode != "raise" or out is not None:
        raise UnsupportedError(f"mode={mode!r} and out= are not supported for Tensors")
    t = a if type(a) is Tensor else operands(a)[0]
    at = indices if hasattr(indices, "dtype") else operands(t, [indices])[1][0]
    if axis is None:
        t, axis = manipulation.reshape(t, (-1,)) if t.ndim != 1 else t, 0
    before = (slice(None),) * (axis % t.ndim)
    return indexing.getitem(t, (*before, at) if before else at)


#: NumPy's name to a function that takes NumPy's arguments.
TABLE: dict[str, Callable[..., Any]] = {
    **choices.TABLE,
    **fitting.TABLE,
    # creation and data types
    "astype": lambda x, dtype, /, **keywords: data_type.astype(x, dtype, **keywords),
    "copy": translate(conversion.clone, "a / -order -subok"),
    "empty_like": shapes.like(creation.empty_like),
    "full_like": shapes.like(shapes.filled_like, values=1),
    "iscomplexobj": lambda x: x.dtype.complex,
    "isrealobj": lambda x: not x.dtype.complex,
    "meshgrid": shapes.coordinates,
    "ndim": lambda a: a.ndim,
    "ones_like": shapes.like(creation.ones_like),
    "shape": lambda a: tuple(a.shape),
    "size": lambda a, axis=None: a.size if axis is None else a.shape[axis],
    "tril": translate(grids.tril, "m / k"),
    "triu": translate(grids.triu, "m / k"),
    "zeros_like": shapes.like(creation.zeros_like),
    # reductions
    "all": reductions.all_of,
    "amax": reductions.maximum_of,
    "amin": reductions.minimum_of,
    "any": reductions.any_of,
    "argmax": translate(searching.argmax, "a / axis -out keepdims"),
    "argmin": translate(searching.argmin, "a / axis -out keepdims"),
    "average": reductions.average,
    "count_nonzero": translate(searching.count_nonzero, "a / axis keepdims"),
    "cumprod": reductions.accumulate(statistical.cumulative_prod),
    "cumsum": reductions.accumulate(statistical.cumulative_sum),
    "cumulative_prod": reductions.accumulate(statistical.cumulative_prod),
    "cumulative_sum": reductions.accumulate(statistical.cumulative_sum),
    "max": reductions.maximum_of,
    "mean": reductions.mean_of,
    "min": reductions.minimum_of,
    "nancumprod": reductions.nan_version(reductions.accumulate(statistical.cumulative_prod), 1),
    "nancumsum": reductions.nan_version(reductions.accumulate(statistical.cumulative_sum), 0),
    "nanmax": _nan_extreme(reductions.maximum_of, -math.inf),
    "nanmean": reductions.nan_version(reductions.mean_of, None),
    "nanmin": _nan_extreme(reductions.minimum_of, math.inf),
    "nanprod": reductions.nan_version(reductions.product_of, 1),
    "nanstd": reductions.nan_version(reductions.spread_over(statistical.std), None),
    "nansum": reductions.nan_version(reductions.sum_of, 0),
    "nanvar": reductions.nan_version(reductions.spread_over(statistical.var), None),
    "prod": reductions.product_of,
    "ptp": lambda a, axis=None, *, keepdims=False: (
        statistical.max(a, axis=axis, keepdims=keepdims)
        - statistical.min(a, axis=axis, keepdims=keepdims)
    ),
    "std": reductions.spread_over(statistical.std),
    "sum": reductions.sum_of,
    "trapezoid": reductions.trapezoid,
    "var": reductions.spread_over(statistical.var),
    # shapes
    "append": lambda arr, values, axis=None: manipulation.concat(operands(arr, values), axis=axis),
    "block": shapes.block,
    "delete": shapes.delete,
    "insert": shapes.insert,
    "array_split": shapes.split(exact=False),
    "atleast_1d": shapes.at_least(1),
    "atleast_2d": shapes.at_least(2),
    "atleast_3d": shapes.at_least(3),
    "broadcast_arrays": lambda *args, subok=False: manipulation.broadcast_arrays(*operands(*args)),
    "broadcast_to": translate(manipulation.broadcast_to, "array shape / -subok"),
    "column_stack": shapes.stack_with(1, lambda x: manipulation.reshape(x, (-1, 1)), 2),
    "concatenate": shapes.concatenate,
    "diag": shapes.of_diagonal,
    "diagonal": shapes.diagonal,
    "dsplit": shapes.split_along(2),
    "dstack": shapes.stack_with(2, shapes.at_least(3), 3),
    "expand_dims": translate(manipulation.expand_dims, "a axis /"),
    "flip": translate(manipulation.flip, "m / axis"),
    "fliplr": lambda m: manipulation.flip(m, axis=1),
    "flipud": lambda m: manipulation.flip(m, axis=0),
    "hsplit": shapes.split_along(1),
    "hstack": shapes.stack_with(1, shapes.at_least(1), 1),
    "matrix_transpose": linear_algebra.matrix_transpose,
    "moveaxis": translate(manipulation.moveaxis, "a source destination /"),
    "pad": _pad,
    "ravel": shapes.ravel,
    "repeat": lambda a, repeats, axis=None: manipulation.repeat(
        a, operands(a, repeats)[1] if isinstance(repeats, list | tuple) else repeats, axis=axis
    ),
    "reshape": shapes.reshape,
    "roll": translate(manipulation.roll, "a shift / axis"),
    "rollaxis": shapes.rollaxis,
    "rot90": shapes.rot90,
    "split": shapes.split(exact=True),
    "squeeze": translate(manipulation.squeeze, "a / axis"),
    "stack": shapes.join,
    "swapaxes": translate(methods.swapaxes, "a axis1 axis2 /"),
    "tile": shapes.tile,
    "transpose": shapes.transpose,
    "trim_zeros": shapes.trim_zeros,
    "unstack": translate(manipulation.unstack, "x / axis"),
    "vsplit": shapes.split_along(0),
    "vstack": shapes.stack_with(0, shapes.at_least(2), 2),
    # products
    "convolve": numeric.convolve,
    "dot": of_two(methods.dot),
    "inner": numeric.inner,
    "correlate": numeric.correlate,
    "cross": _cross,
    "einsum": numeric.contraction,
    "kron": numeric.kron,
    "outer": numeric.outer,
    "tensordot": of_two(linear_algebra.tensordot),
    "trace": numeric.trace,
    "vdot": numeric.vdot,
    # searching, sorting, sets
    "argsort": translate(_of_sorted(sorting.argsort), "a / axis -kind -order -stable"),
    "argwhere": lambda a: manipulation.stack(searching.nonzero(a), axis=1),
    "flatnonzero": lambda a: searching.nonzero(shapes.ravel(a))[0],
    "isin": translate(of_two(sets.isin), "element test_elements / -assume_unique invert -kind"),
    "nonzero": translate(searching.nonzero, "a /"),
    "searchsorted": translate(of_two(searching.searchsorted), "a v / side sorter"),
    "select": numeric.select,
    "sort": translate(_of_sorted(sorting.sort), "a / axis -kind -order -stable"),
    "take": _take,
    "take_along_axis": translate(indexing.take_along_axis, "arr indices / axis"),
    "unique": numeric.unique,
    "where": numeric.where,
    # elementwise
    "allclose": lambda *args, **keywords: bool(utility.all(numeric.is_close(*args, **keywords))),
    "angle": numeric.angle,
    "around": numeric.round_to,
    "array_equal": numeric.array_equal,
    "clip": numeric.clip,
    "fix": ew.trunc,
    "imag": ew.imag,
    "isclose": numeric.is_close,
    "iscomplex": lambda x: ew.not_equal(ew.imag(x), 0),
    "isneginf": lambda x: ew.equal(x, -math.inf),
    "isposinf": lambda x: ew.equal(x, math.inf),
    "isreal": lambda x: ew.equal(ew.imag(x), 0),
    "nan_to_num": numeric.nan_to_num,
    "real": ew.real,
    "round": numeric.round_to,
    "sinc": lambda x: special.sinc(inexact(*operands(x))),
    "i0": lambda x: special.i0(inexact(*operands(x))),
    # statistics and numerical analysis
    "median": numeric.middle,
    "percentile": numeric.quantiles(100.0),
    "quantile": numeric.quantiles(1.0),
    "corrcoef": numeric.corrcoef,
    "cov": numeric.cov,
    "diff": numeric.diff,
    "gradient": numeric.gradient,
    "interp": numeric.interp,
    "polyval": numeric.polyval,
}
