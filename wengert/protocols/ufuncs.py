"""NumPy's ufuncs, and their methods, on Tensors."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.ops import elementwise as ew
from wengert.ops import special
from wengert.ops.beyond import at
from wengert.ops.conversion import beside
from wengert.ops.data_type import astype
from wengert.ops.indexing import getitem, setitem, take_along_axis
from wengert.ops.linear_algebra import matmul, vecdot
from wengert.ops.manipulation import broadcast_arrays, expand_dims, reshape, squeeze
from wengert.ops.operands import operands
from wengert.ops.searching import where as where_
from wengert.ops.special import logsumexp
from wengert.ops.statistical import cumulative_prod, cumulative_sum
from wengert.protocols import UnsupportedError
from wengert.protocols.reductions import (
    accumulate,
    all_of,
    any_of,
    maximum_of,
    minimum_of,
    product_of,
    sum_of,
)
from wengert.protocols.translation import cast, floats, of_two, refuse
from wengert.tape.tensor import Tensor, assign, host_values

__all__ = ["TABLE"]

Function = Callable[..., Any]


# -- what the standard does not have ---------------------------------------------------------------


def _present(choose: Function) -> Function:
    """``fmax`` and ``fmin``: of a NaN and a number, the number."""
    return lambda x1, x2: where_(ew.isnan(x1), x2, where_(ew.isnan(x2), x1, choose(x1, x2)))


def _heaviside(x1: Tensor, x2: Tensor) -> Tensor:
    # The sign says of its derivative that it is zero, and of NaN that it is NaN.
    step = ew.divide(ew.add(ew.sign(x1), 1), 2)
    return where_(ew.equal(x1, 0), x2, step)


def _logaddexp2(x1: Tensor, x2: Tensor) -> Tensor:
    ln2 = math.log(2)
    return ew.divide(ew.logaddexp(ew.multiply(x1, ln2), ew.multiply(x2, ln2)), ln2)


def _reciprocal(x: Any) -> Tensor:
    (t,) = operands(x)
    if not t.dtype.inexact:
        raise UnsupportedError("the reciprocals of integers are integers in NumPy: write 1 / x")
    return ew.reciprocal(t)


def _special(ufunc: np.ufunc) -> Function | None:
    """Wengert's counterpart of one of SciPy's special functions, most of which are ufuncs."""
    function = getattr(special, ufunc.__name__, None)
    return None if function is None else _call(function)


# -- calls and methods -----------------------------------------------------------------------------


def _call(function: Function) -> Function:
    """Give a function the keywords of ufuncs."""

    def call(
        *inputs: Any, where: Any = True, dtype: Any = None, kept: Any = None, **keywords: Any
    ) -> Any:
        if keywords:
            refuse(keywords)
        if dtype is not None or list in map(type, inputs) or tuple in map(type, inputs):
            inputs = tuple([cast(x, dtype) for x in operands(*inputs)])
        if where is True:
            return function(*inputs)
        return _only_where(function, inputs, where, kept)

    return call


def _only_where(function: Function, inputs: tuple[Any, ...], where: Any, kept: Any) -> Tensor:
    """Compute at chosen places alone, so that no derivative of the others is ever taken."""
    if kept is None:
        raise ValueError("where= leaves elements uncomputed: give out=, which has them")
    *tensors, chosen = broadcast_arrays(*operands(*inputs, where, kept))[:-1]
    values = function(*[getitem(x, chosen) for x in tensors])
    result = astype(kept, kept.dtype)  # another Tensor of the same values, on the tape where it is
    setitem(result, chosen, values)
    return result


def _matrices(function: Function) -> Function:
    """A product of matrices or vectors with NumPy's keyword ``axis``, where it has that."""

    def call(*inputs: Any, dtype: Any = None, axis: int = -1, **keywords: Any) -> Tensor:
        refuse(keywords)
        tensors = [cast(x, dtype) for x in operands(*inputs)]
        return function(*tensors) if axis == -1 else function(*tensors, axis=axis)  # type: ignore[no-any-return]

    return call


def _outer(function: Function, x1: Any, x2: Any, **keywords: Any) -> Any:
    a, b = operands(x1, x2) if isinstance(x1, Tensor) else operands(x2, x1)[::-1]
    return function(reshape(a, (*a.shape, *[1] * b.ndim)), b, **keywords)


def _reduction(function: Function) -> Function:
    """A method of a ufunc: NumPy's function, but over the first axis unless told otherwise."""

    def call(x: Any, axis: Any = 0, dtype: Any = None, **keywords: Any) -> Tensor:
        if dtype is not None:
            x = astype(x, dtype)
        return function(x, axis=axis, **keywords)  # type: ignore[no-any-return]

    return call


def _running(ufunc: np.ufunc) -> Function:
    """Running extremes, whose derivative goes to the first element that is one."""

    def call(x: Tensor, axis: int = 0, dtype: Any = None, **keywords: Any) -> Tensor:
        refuse(keywords)
        x = cast(x, dtype)
        values = np.moveaxis(host_values(x), axis, -1)
        extremes = ufunc.accumulate(values, axis=-1)
        places = np.broadcast_to(np.arange(values.shape[-1]), values.shape)
        new = extremes[..., 1:] != extremes[..., :-1]
        new &= ~np.isnan(extremes[..., :-1])
        first = np.concatenate([np.ones_like(new[..., :1]), new], axis=-1)
        at = np.maximum.accumulate(np.where(first[..., : values.shape[-1]], places, 0), axis=-1)
        return take_along_axis(x, beside(x, np.moveaxis(at, -1, axis)), axis=axis)

    return call


def _update(name: str) -> Function:
    """``ufunc.at``, which counts repeated indices, as an in-place operation."""

    def call(x: Any, indices: Any, value: Any) -> None:
        if not isinstance(x, Tensor):
            raise UnsupportedError(f"the array to be changed is a Tensor, not a {type(x).__name__}")
        assign(x, getattr(at(x, indices), name)(value), value, indices)

    return call


#: Those that have NumPy's names in the standard, too.
_SAME = """
add bitwise_and bitwise_or bitwise_xor ceil clip copysign cos cosh divide equal exp expm1 floor
floor_divide greater greater_equal hypot isfinite isinf isnan less less_equal log log10 log1p log2
logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply negative nextafter
not_equal positive remainder sign signbit sin sinh sqrt square subtract tan tanh trunc
""".split()  # noqa: SIM905 -- a page of names is none to read
ELEMENTWISE: dict[str, Function] = {
    **{name: getattr(ew, name) for name in _SAME},
    "absolute": ew.abs,
    "arccos": ew.acos,
    "arccosh": ew.acosh,
    "arcsin": ew.asin,
    "arcsinh": ew.asinh,
    "arctan": ew.atan,
    "arctan2": ew.atan2,
    "arctanh": ew.atanh,
    "cbrt": lambda x: ew.copysign(ew.pow(ew.abs(x), 1 / 3), x),
    "conjugate": ew.conj,
    "deg2rad": lambda x: ew.multiply(x, math.pi / 180),
    "degrees": lambda x: ew.multiply(x, 180 / math.pi),
    "divmod": lambda x1, x2: (ew.floor_divide(x1, x2), ew.remainder(x1, x2)),
    "exp2": lambda x: ew.pow(2.0, x),
    "fabs": ew.abs,
    "fmax": of_two(_present(ew.maximum)),
    "fmin": of_two(_present(ew.minimum)),
    "heaviside": of_two(_heaviside),
    "invert": ew.bitwise_invert,
    "left_shift": ew.bitwise_left_shift,
    "logaddexp2": of_two(_logaddexp2),
    "power": ew.pow,
    "rad2deg": lambda x: ew.multiply(x, 180 / math.pi),
    "radians": lambda x: ew.multiply(x, math.pi / 180),
    "reciprocal": _reciprocal,
    "right_shift": ew.bitwise_right_shift,
    "rint": lambda x: ew.round(*floats(x)),
}

TABLE: dict[str, Function] = {name: _call(function) for name, function in ELEMENTWISE.items()}
TABLE |= {
    "matmul": _matrices(matmul),
    "matvec": _matrices(lambda x1, x2: squeeze(matmul(x1, expand_dims(x2, axis=-1)), axis=-1)),
    "vecdot": _matrices(vecdot),
    "outer": _outer,
    "special": _special,
    "add.reduce": _reduction(sum_of),
    "multiply.reduce": _reduction(product_of),
    "maximum.reduce": _reduction(maximum_of),
    "minimum.reduce": _reduction(minimum_of),
    "logical_and.reduce": _reduction(all_of),
    "logical_or.reduce": _reduction(any_of),
    "logaddexp.reduce": _reduction(logsumexp),
    "add.accumulate": _reduction(accumulate(cumulative_sum)),
    "maximum.accumulate": _running(np.maximum),
    "minimum.accumulate": _running(np.minimum),
    **{f"{name}.at": _update(name) for name in ("add", "subtract", "multiply", "divide")},
    "maximum.at": _update("max"),
    "minimum.at": _update("min"),
    "multiply.accumulate": _reduction(accumulate(cumulative_prod)),
}
