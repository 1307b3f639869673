"""Data types: the standard's chapter of that name, and moves between devices and backends."""

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
    get_backend,
    target_device,
)
from wengert.interpreters.batching import as_it_is
from wengert.ops.define import operation
from wengert.tape.promotion import (
    KIND_RANK,
    SCALAR_KIND,
    SCALARS,
    check_range,
    common_dtype,
    get_default_dtype,
    number_type,
    promote,
    set_default_dtype,
)
from wengert.tape.tensor import Tensor, wrap

__all__ = [
    "astype",
    "can_cast",
    "get_default_dtype",
    "isdtype",
    "result_type",
    "set_default_dtype",
    "to_backend",
    "to_device",
]

# -- conversion ----------------------------------------------------------------------------------


def _cast(xp: Any, x: Any, dtype: Any, *, copy: bool = True) -> Any:
    # The standard's function takes ``dtype`` by position alone, and casts no complex array.
    if dtype_of(dtype).kind == "bool" and dtype_of(x.dtype).complex:
        return x != 0
    return xp.library.astype(x, dtype, copy=copy)


def _carry(source: Backend, x: Any, name: str, device: Any) -> Any:
    target = get_backend(name)
    if target is source:
        return x if device is None else target.to_device(x, device)
    dtype = dtype_of(x.dtype)
    raw = target.raw_dtype(dtype)
    made = target.from_numpy(source.to_numpy(source.array(x)), device)
    return made if dtype.host == dtype.name else target.xp.astype(made, raw)


@operation(
    inputs=["x"], x=lambda xp, g: g, linear="together", view=None, composite=_cast, batch=as_it_is
)
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Copy an array to another data type.

    It stays tracked; the cotangent is cast back, and a real input of a complex result gets its real
    part. Raises `TypeError` if a complex array is to become a real one: take `real` or `abs` first.
    ``copy=False`` returns ``x`` itself where nothing changes. Array API standard.

    Examples
    --------
    >>> x = wg.tensor([1.0, 2.0], requires_grad=True)
    >>> y = wg.astype(x, wg.float64)
    >>> y.sum().backward()
    >>> x.grad.dtype
    wengert.float32
    """
    tensor = wrap(x)
    wanted = as_dtype(dtype)
    if tensor.dtype.complex and not wanted.complex and wanted.kind != "bool":
        raise TypeError(
            f"astype can't cast {tensor.dtype.name} to {wanted.name}, which would drop the "
            "imaginary part; take wg.real(x) or wg.abs(x) first"
        )
    if copy or tensor.dtype is not wanted:
        raw = backend_of(tensor._array).raw_dtype(wanted)
        tensor = astype.run(tensor, dtype=raw, copy=copy)
    return tensor if device is None else to_device(tensor, device)


@operation(
    inputs=["x"],
    x=lambda xp, g, source: xp.to_device(g, source),
    elementwise=True,
    linear="together",
    view=None,
    composite=lambda xp, x, device, source=None: xp.backend.to_device(x, device),
    effect="moves",
)
def to_device(x: Any, device: Any, /, *, stream: Any = None) -> Tensor:
    """Move an array to another device of its own library.

    The device is as the library names it, or a string such as ``"cuda:0"``. The cotangent moves
    back to where ``x`` is. An array that is there already is returned itself. Array API standard.

    Examples
    --------
    >>> x = wg.ones(2)
    >>> wg.to_device(x, x.device).device
    'cpu'
    """
    if stream is not None:
        raise ValueError("to_device: stream is not supported; pass None")
    tensor = wrap(x)
    backend = backend_of(tensor._array)
    source, target = backend.device(tensor._array), target_device(tensor._array, device)
    if source == target:
        return tensor
    return to_device.run(tensor, device=target, source=source)


@operation(
    inputs=["x"],
    x=lambda xp, g, source, origin: xp.to_backend(g, source, device=origin),
    elementwise=True,
    linear="together",
    view=None,
    composite=lambda xp, x, name, device=None, source=None, origin=None: _carry(
        xp.backend, x, name, device
    ),
    effect="moves",
)
def to_backend(x: Any, name: str, /, *, device: Any = None) -> Tensor:
    """Move an array to another array library.

    ``name`` may end with a device, as in ``"torch:cuda:0"``. The cotangent moves back to the
    backend and the device of ``x``. An array that is there already is returned itself.
    Wengert's own.

    Examples
    --------
    >>> x = wg.ones(2, requires_grad=True)
    >>> y = wg.to_backend(x, "array_api_strict")
    >>> y.backend.name
    'array_api_strict'
    >>> (y * y).sum().backward()
    >>> x.grad.backend.name  # the gradient comes back
    'numpy'
    """
    tensor = wrap(x)
    source = backend_of(tensor._array)
    if not isinstance(name, str):
        raise TypeError(f"to_backend takes the name of a backend, not {type(name).__name__}")
    plain, _, place = name.partition(":")
    target = get_backend(plain)
    where = target.parse_device(place) if place else device
    if target is source:
        return tensor if where is None else to_device(tensor, where)
    if isinstance(where, Selection):
        where = where.device
    if where is not None:
        where = target.parse_device(where)
    origin = source.device(tensor._array)
    return to_backend.run(tensor, name=plain, device=where, source=source.name, origin=origin)


# -- inspection ----------------------------------------------------------------------------------

_KINDS = {
    "bool": ("bool",),
    "signed integer": ("signed integer",),
    "unsigned integer": ("unsigned integer",),
    "integral": ("signed integer", "unsigned integer"),
    "real floating": ("real floating",),
    "complex floating": ("complex floating",),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind. Array API standard.

    Parameters
    ----------
    kind : dtype, str or tuple
        A dtype; one of the standard's kinds ``"bool"``, ``"signed integer"``,
        ``"unsigned integer"``, ``"integral"``, ``"real floating"``, ``"complex floating"``,
        ``"numeric"``; or a tuple of these, any of which may hold.

    Examples
    --------
    >>> wg.isdtype(wg.float32, "real floating")
    True
    >>> wg.isdtype(wg.int8, ("integral", wg.float64))
    True
    """
    asked = as_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(asked, one) for one in kind)
    if isinstance(kind, str) and kind in _KINDS:
        return asked.kind in _KINDS[kind]
    if isinstance(kind, str) and kind not in DTYPES:
        raise ValueError(f"{kind!r} is no kind of dtype; the kinds are {', '.join(_KINDS)}")
    return asked is as_dtype(kind)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether one dtype can be cast to another by the standard's type promotion.

    Array API standard.

    Examples
    --------
    >>> wg.can_cast(wg.float32, wg.float64)
    True
    >>> wg.can_cast(wg.float64, wg.float32)
    False
    """
    start, end = dtype_in(from_), as_dtype(to)
    return start is end or promote(start, end) is end


def result_type(*arrays_and_dtypes: Any) -> DType:
    """Return the dtype that an operation on these would have.

    Where the standard leaves it open, the dtype of the higher kind is taken (booleans, integers,
    real, complex); a Python number of a higher kind than the arrays stands for the default dtype of
    its kind. Raises `ValueError` if there is no array and no dtype; `TypeError` if there is no
    common dtype, as of uint64 and int64. Array API standard.

    Examples
    --------
    >>> wg.result_type(wg.float32, wg.float64)
    wengert.float64
    >>> wg.result_type(wg.ones(2, dtype=wg.int8), 3)
    wengert.int8
    """
    strong = [dtype_in(x) for x in arrays_and_dtypes if number_type(x) not in SCALARS]
    if not strong:
        raise ValueError("result_type needs at least one array or dtype")
    kinds = map(number_type, arrays_and_dtypes)
    return common_dtype(strong, [kind for kind in kinds if kind in SCALARS])


def dtype_in(x: Any) -> DType:
    """The dtype of a Tensor or an array, or the one that is given."""
    if isinstance(x, Tensor):
        return x.dtype
    if not isinstance(x, type | DType) and hasattr(x, "dtype"):
        return dtype_of(x.dtype)
    return as_dtype(x)


def storable(kind: str, dtype: DType) -> bool:
    """Whether arrays of a kind are stored in a dtype, which is NumPy's casting ``"same_kind"``.

    Complex numbers would lose a part in a real dtype, floating ones their fractions in integers,
    and signed integers their signs in unsigned ones.
    """
    if kind == "signed integer" and dtype.kind == "unsigned integer":
        return False
    return KIND_RANK[kind] <= KIND_RANK[dtype.kind]


def check_storable(name: str, value: Any, dtype: DType) -> None:
    """Raise if a dtype does not hold a number or an array that is to be stored in it.

    What has neither a dtype nor a number's type is left to others. Raises `TypeError` for None and
    for another kind, as `storable` says, and `OverflowError` for an integer beyond the dtype.
    """
    if value is None:  # which NumPy stores as NaN
        raise TypeError(f"{name}: a Tensor, an array or a number is stored, not None")
    value = value.item() if isinstance(value, np.generic) else value
    kind = SCALAR_KIND.get(number_type(value))
    if kind == "signed integer" and not dtype.inexact:
        kind = dtype.kind  # an integer of Python's is in its range, or not
    if kind is None and hasattr(value, "dtype"):
        kind = dtype_of(value.dtype).kind
    if kind is not None and not storable(kind, dtype):
        raise TypeError(
            f"{name}: a {kind} value does not fit an array of dtype {dtype.name}; convert one "
            "with wg.astype"
        )
    check_range(name, value, dtype)
