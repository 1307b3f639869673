"""Creation functions of the standard: arrays from shapes and numbers.

Functions that convert existing data are in `wengert.ops.conversion`.
"""

import cmath
import math
from operator import index
from typing import Any

import numpy as np

from wengert.backends import (
    DTYPES,
    Backend,
    DType,
    Selection,
    as_dtype,
    backend_of,
    dtype_of,
    namespaces,
    selection,
)
from wengert.interpreters.namespaces import differentiable
from wengert.ops.axes import NUMBERS, number, raw_array, shape_of
from wengert.ops.data_type import (
    astype,
    check_storable,
    get_default_dtype,
    result_type,
    to_backend,
    to_device,
)
from wengert.ops.limits import finfo
from wengert.tape.promotion import check_range, default_complex_dtype, number_type
from wengert.tape.tensor import Tensor, only_element, untracked, wrap

__all__ = [
    "arange",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


def new_device(device: Any) -> tuple[Backend, Any]:
    """The backend on which new arrays are made, and the device on it."""
    chosen = selection()
    if isinstance(device, Selection):  # a Tensor's backend and device, as rules pass them on
        return chosen.backend.alongside(device.backend), device.device
    if device is None:
        return chosen.backend, chosen.device
    return chosen.backend, chosen.backend.parse_device(device)


def leaf(array: Any, requires_grad: bool) -> Tensor:
    """A new Tensor of a raw array, tracked if asked for."""
    made = untracked(array)
    if requires_grad:
        made.requires_grad = True
    return made


def default_dtype(*values: Any) -> DType:
    """The dtype that Python numbers get together."""
    if any(isinstance(value, complex) for value in values):
        return default_complex_dtype()
    if any(isinstance(value, float) for value in values):
        return get_default_dtype()
    return DTYPES["bool" if all(isinstance(value, bool) for value in values) else "int64"]


def as_lengths(size: tuple[Any, ...], function: str) -> tuple[int, ...]:
    """A shape given as a tuple, an integer, or several integers."""
    if len(size) == 1 and isinstance(size[0], tuple | list):
        size = tuple(size[0])
    try:
        shape = tuple([index(n) for n in size])
    except TypeError:
        raise TypeError(f"{function}: a shape is made of integers, and {size} is not") from None
    if shape and min(shape) < 0:
        raise ValueError(f"{function}: the lengths of a shape can't be negative, as in {shape}")
    return shape


def whole(value: Any, function: str, name: str) -> int:
    """An option that is an integer; an error that names it if it is something else."""
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"{function}: {name} is an integer, and {value!r} is not") from None


def _number(value: Any, function: str, kinds: Any = NUMBERS) -> Any:
    """A number, or an array of one element, as a Python number of one of some types."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, Tensor):
        plain = only_element(value)  # the caller differentiates the Tensor itself
    if not isinstance(plain, kinds):
        raise TypeError(f"{function} takes real numbers, and was given {value!r}")
    return plain


def floating_tensors(*values: Any) -> list[Tensor]:
    """The Tensors among numbers that a derivative may flow through."""
    return [value for value in values if isinstance(value, Tensor) and value.dtype.inexact]


def _end(value: Any, dtype: DType) -> Any:
    """A number, or a Tensor of one element, as an operand beside arrays of a dtype."""
    if not isinstance(value, Tensor):
        return value
    return differentiable.reshape(astype(value, dtype, copy=False), ())


def _check_steps(start: Any, stop: Any, dtype: DType) -> None:
    """Raise if a dtype does not hold the ends of a `linspace`, or the numbers between them."""
    for value in (start, stop, 0.0):
        check_storable("linspace", value, dtype)


def _far_apart(start: Any, stop: Any, dtype: DType) -> bool:
    """Whether the difference of finite numbers overflows."""
    if not (dtype.inexact and cmath.isfinite(start) and cmath.isfinite(stop)):
        return False
    length = complex(stop) - complex(start)
    return max(abs(length.real), abs(length.imag)) > finfo(dtype).max


def _fill(
    name: str, shape: tuple[Any, ...], dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    backend, where = new_device(device)
    wanted = get_default_dtype() if dtype is None else as_dtype(dtype)
    make = getattr(backend.namespace, name)
    array = make(as_lengths(shape, name), dtype=backend.raw_dtype(wanted), device=where)
    return leaf(array, requires_grad)


# -- of a shape ----------------------------------------------------------------------------------


def empty(
    shape: Any, *more: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return an array, its values not set; lengths may come one by one. Array API standard.

    Examples
    --------
    >>> wg.empty((2, 3)).shape
    (2, 3)
    """
    return _fill("empty", (shape, *more), dtype, device, requires_grad)


def ones(
    shape: Any, *more: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return an array of ones; lengths may come one by one, ``ones(2, 3)``. Array API standard.

    Examples
    --------
    >>> wg.ones((2, 2))
    tensor([[1., 1.],
            [1., 1.]])
    """
    return _fill("ones", (shape, *more), dtype, device, requires_grad)


def zeros(
    shape: Any, *more: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return an array of zeros; lengths may come one by one, ``zeros(2, 3)``. Array API standard.

    Examples
    --------
    >>> wg.zeros((2, 3), dtype=wg.int64)
    tensor([[0, 0, 0],
            [0, 0, 0]])
    """
    return _fill("zeros", (shape, *more), dtype, device, requires_grad)


def full(
    shape: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return an array of one value. Array API standard.

    A Tensor of no axes as ``fill_value`` gives its dtype, and the result is differentiable in it.

    Examples
    --------
    >>> wg.full((2, 2), 7.0)
    tensor([[7., 7.],
            [7., 7.]])
    >>> wg.grad(lambda value: wg.full((2, 2), value).sum())(7.0)
    4.0
    """
    if isinstance(fill_value, Tensor) and not fill_value.ndim:
        lengths = as_lengths((shape,), "full")
        return _spread("full", fill_value, lengths, dtype, device, requires_grad)
    fill_value = _fill_value(fill_value, "full")
    backend, where = new_device(device)
    wanted = default_dtype(_now(fill_value)) if dtype is None else as_dtype(dtype)
    check_storable("full", fill_value, wanted)
    array = backend.namespace.full(
        as_lengths((shape,), "full"), fill_value, dtype=backend.raw_dtype(wanted), device=where
    )
    return leaf(array, requires_grad)


def _fill_value(value: Any, function: str) -> Any:
    """A number, also out of an array of no axes, which SciPy fills with."""
    if hasattr(value, "dtype") and not value.shape:
        value = number(value, function, "fill_value")
    if not isinstance(_now(value), NUMBERS):
        raise TypeError(
            f"{function} takes a number or a Tensor of no axes, not {type(value).__name__}; for an "
            "array's values use wg.broadcast_to"
        )
    return value


def _spread(
    function: str, value: Tensor, shape: Any, dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    """An array of a Tensor's value, which stays tracked, on the Tensor's backend."""
    wanted = value.dtype if dtype is None else as_dtype(dtype)
    check_storable(function, value, wanted)
    value = astype(value, wanted, copy=False)
    if wanted.kind == "bool":  # which nothing is differentiable in
        made = full(shape, bool(value), dtype=wanted, device=differentiable.device(value))
    else:
        here = ones(shape, dtype=wanted, device=differentiable.device(value))
        made = differentiable.multiply(here, value)
    return _finish(made, device, requires_grad)


def _finish(made: Tensor, device: Any, requires_grad: bool) -> Tensor:
    """A result of Tensors, on the wanted device; a leaf if asked for, and no Tensor is tracked."""
    if device is not None:
        made = to_device(made, device)
    if requires_grad and not made.requires_grad:
        made.requires_grad = True
    return made


def _now(value: Any) -> Any:
    """A number; of a number that a trace follows, its value now."""
    return value.number if hasattr(value, "regularise") else value


def _like(
    name: str, x: Any, values: tuple[Any, ...], dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    shape_of(x)
    array = raw_array(x)
    backend = backend_of(array)
    raw = array.dtype if dtype is None else backend.raw_dtype(as_dtype(dtype))
    where = backend.beside(array, alike=True) if device is None else backend.parse_device(device)
    make = getattr(backend.namespace, name)
    return leaf(make(tuple(array.shape), *values, dtype=raw, device=where), requires_grad)


def empty_like(
    x: Any, /, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return an array like ``x``, its values not set. Array API standard.

    Examples
    --------
    >>> wg.empty_like(wg.ones((2, 3))).shape
    (2, 3)
    """
    return _like("empty", x, (), dtype, device, requires_grad)


def ones_like(
    x: Any, /, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return an array of ones like ``x``. Array API standard.

    Examples
    --------
    >>> wg.ones_like(wg.asarray([3, 4]))
    tensor([1, 1])
    """
    return _like("ones", x, (), dtype, device, requires_grad)


def zeros_like(
    x: Any, /, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return an array of zeros like ``x``. Array API standard.

    Examples
    --------
    >>> wg.zeros_like(wg.asarray([[1.0, 2.0]]))
    tensor([[0., 0.]])
    """
    return _like("zeros", x, (), dtype, device, requires_grad)


def full_like(
    x: Any,
    /,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return an array of one value like ``x``. Array API standard.

    The result is differentiable in a Tensor ``fill_value``, which has no axes.

    Examples
    --------
    >>> wg.full_like(wg.zeros(3), 2.5)
    tensor([2.5000, 2.5000, 2.5000])
    """
    if isinstance(fill_value, Tensor) and not fill_value.ndim:
        x = wrap(x)
        fill_value = to_backend(fill_value, x.backend.name, device=differentiable.device(x))
        wanted = x.dtype if dtype is None else dtype
        where = x.device if device is None else device
        return _spread("full_like", fill_value, x.shape, wanted, where, requires_grad)
    fill_value = _fill_value(fill_value, "full_like")
    shape_of(x)
    held = dtype_of(x.dtype) if dtype is None else as_dtype(dtype)
    check_storable("full_like", fill_value, held)
    if fill_value is not _now(fill_value):  # such numbers only the namespace of x takes
        array = raw_array(x)
        raw = backend_of(array).raw_dtype(held)
        made = namespaces[type(array)].full_like(array, fill_value, dtype=raw)
        return leaf(made, requires_grad) if device is None else to_device(made, device)
    return _like("full", x, (fill_value,), dtype, device, requires_grad)


def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return evenly spaced numbers of the half-open interval ``[start, stop)``.

    ``arange(stop)`` starts at 0. The numbers are differentiable in Tensors ``start`` and ``step``;
    ``stop`` decides only how many there are. The dtype is by default int64 for integers, that of
    floating Tensors, and the default floating dtype otherwise. Raises `ValueError` if ``step`` is
    0. Array API standard.

    Examples
    --------
    >>> wg.arange(5)
    tensor([0, 1, 2, 3, 4])
    >>> wg.arange(1.0, 2.0, 0.25)
    tensor([1.0000, 1.2500, 1.5000, 1.7500])
    >>> wg.grad(lambda step: wg.arange(0, 3, step).sum())(1.0)  # of 0 + step + 2 step
    3.0
    """
    backend, where = new_device(device)
    if stop is None:
        start, stop = 0, start
    tensors = floating_tensors(start, stop, step)
    if dtype is None and tensors:
        dtype = result_type(*tensors)
    given = start, step
    start, stop, step = (_number(value, "arange", int | float) for value in (start, stop, step))
    if not step:
        raise ValueError("arange: step can't be 0")
    wanted = default_dtype(0, start, stop, step) if dtype is None else as_dtype(dtype)
    if not (wanted.inexact or floating_tensors(*given)):
        start, stop, step = map(_whole, (start, stop, step))
    check_storable("arange", start, wanted)
    if not wanted.inexact and {*map(number_type, (start, stop, step))} == {int}:
        steps = (stop - start - (1 if step > 0 else -1)) // step  # to the last number
        if steps >= 0:
            check_range("arange", start + steps * step, wanted)
    else:
        check_storable("arange", step, wanted)
    if floating_tensors(*given):
        count = max(math.ceil((stop - start) / step), 0)
        where = differentiable.device(floating_tensors(*given)[0])
        counts = arange(count, dtype=wanted, device=where)
        first, by = (_end(value, wanted) for value in given)
        made = differentiable.add(differentiable.multiply(counts, by), first)
        return _finish(made, device, requires_grad)
    array = backend.namespace.arange(
        start, stop, step, dtype=backend.raw_dtype(wanted), device=where
    )
    return leaf(array, requires_grad)


def _whole(value: Any) -> Any:
    """A floating number without a fraction as an integer."""
    return int(value) if number_type(value) is float and value.is_integer() else value


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
    requires_grad: bool = False,
) -> Tensor:
    """Return ``num`` evenly spaced numbers from ``start`` to ``stop``. Array API standard.

    The numbers are differentiable in Tensors ``start`` and ``stop``, which give the dtype. By
    default it is the default floating dtype, or the complex one of its precision.
    Array API standard.

    Examples
    --------
    >>> wg.linspace(0.0, 1.0, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    >>> wg.grad(lambda stop: wg.linspace(0.0, stop, 5).sum())(1.0)
    2.5
    """
    backend, where = new_device(device)
    tensors = floating_tensors(start, stop)
    num = whole(num, "linspace", "num")
    if num < 0:
        raise ValueError(f"linspace: num can't be negative, and is {num}")
    if tensors:
        numbers = [1j for value in (start, stop) if isinstance(value, complex)]
        wanted = result_type(*tensors, *numbers) if dtype is None else as_dtype(dtype)
        where = differentiable.device(tensors[0])
        _check_steps(start, stop, wanted)
        real = DTYPES[f"float{4 * wanted.itemsize}"] if wanted.complex else wanted
        after = linspace(0.0, 1.0, num, dtype=real, device=where, endpoint=endpoint)
        first, last = (_end(value, wanted) for value in (start, stop))
        # Both ends are exact.
        before = differentiable.multiply(differentiable.subtract(1, after), first)
        made = differentiable.add(before, differentiable.multiply(after, last))
        return _finish(made, device, requires_grad)
    start, stop = (_number(value, "linspace") for value in (start, stop))
    wanted = default_dtype(0.0, start, stop) if dtype is None else as_dtype(dtype)
    _check_steps(start, stop, wanted)
    if _far_apart(start, stop, wanted):
        first = full((), start, dtype=wanted, device=device)
        made = linspace(first, stop, num, dtype=wanted, endpoint=endpoint)
        return made.requires_grad_(requires_grad)
    array = backend.namespace.linspace(
        start, stop, num, dtype=backend.raw_dtype(wanted), device=where, endpoint=endpoint
    )
    return leaf(array, requires_grad)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a matrix with ones on its ``k``-th diagonal (above the main one if positive).

    Array API standard.

    Examples
    --------
    >>> wg.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    >>> wg.eye(2, 3, k=1)
    tensor([[0., 1., 0.],
            [0., 0., 1.]])
    """
    backend, where = new_device(device)
    wanted = get_default_dtype() if dtype is None else as_dtype(dtype)
    rows, columns = as_lengths((n_rows, n_rows if n_cols is None else n_cols), "eye")
    array = backend.namespace.eye(
        rows, columns, k=whole(k, "eye", "k"), dtype=backend.raw_dtype(wanted), device=where
    )
    return leaf(array, requires_grad)
