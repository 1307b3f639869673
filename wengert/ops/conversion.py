"""Creation functions of the standard that take data, and PyTorch's ``tensor``."""

from typing import Any

import numpy as np

from wengert.backends import BackendError, DType, as_dtype, backend_of, dtype_of
from wengert.ops.creation import NUMBERS, default_dtype, full, leaf, place
from wengert.ops.data_type import astype, to_device
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor, untracked

__all__ = ["as_tensor", "asarray", "clone", "from_dlpack", "from_numpy", "tensor"]

_clone = Primitive(
    "clone",
    ["x"],
    {"x": lambda xp, g: g},
    kind="linear",
    forward=lambda xp, x: xp.asarray(x, copy=True),
)


def clone(x: Any, /) -> Tensor:
    """Return a copy of an array, which stays tracked."""
    return _clone.bind(x)  # type: ignore[no-any-return]


def asarray(
    obj: Any,
    /,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Convert numbers, sequences and arrays of any library to a Tensor.

    Parameters
    ----------
    obj : Tensor, array, number, nested sequence, or buffer
        A Tensor stays tracked. NumPy arrays, Python numbers, sequences and buffers come to the
        selected backend; arrays of another library that is known stay in it.
    dtype : dtype, optional
        By default the array's own. Python floats get the default floating dtype, complex numbers
        the complex one of its precision, integers int64.
    device : device, optional
        Where the result is to be: where an array is, or the selected device, by default.
    copy : bool, optional
        True always copies, False never does, and None only where it must.
    requires_grad : bool
        Whether operations on the result are recorded. A Tensor that is not tracked gives a new
        leaf then.

    Raises
    ------
    ValueError
        If ``copy`` is False and a copy is needed.
    TypeError
        If ``obj`` holds something else than numbers.

    Notes
    -----
    Array API standard 2025.12, creation functions.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if not isinstance(obj, Tensor):
        found = _from_library(obj)
        if hasattr(obj, "regularise"):  # a number that a trace follows
            return full((), obj, dtype=wanted, device=device, requires_grad=requires_grad)
        if found is None:
            return leaf(_from_host(obj, wanted, device, copy), requires_grad)
        obj = found
    result: Tensor = obj
    if wanted is not None and obj.dtype is not wanted:
        result = astype(result, wanted)
    if device is not None:
        result = to_device(result, device)
    if copy is False and result is not obj:
        raise ValueError("asarray: the dtype or device differs, so a copy is needed; copy=False")
    if copy and result is obj:
        result = clone(result)
    if requires_grad and not result.requires_grad:
        result = leaf(result._array, True)
    return result


def _from_library(obj: Any) -> Tensor | None:
    """A Tensor of a raw array of another library than NumPy; None for anything else."""
    if isinstance(obj, (np.ndarray, np.generic, *NUMBERS, list, tuple)):
        return None
    try:
        backend = backend_of(obj)
    except (TypeError, BackendError):
        return None
    return untracked(backend.adopt(obj))


def _from_host(obj: Any, wanted: DType | None, device: Any, copy: bool | None) -> Any:
    """A raw array, on the selected backend, of NumPy's or Python's data."""
    backend, where = place(device)
    array = _host_array(obj, wanted)
    if wanted is None:
        wanted = _default_for(obj, array)
    if array.dtype.kind == "c" and not wanted.complex and wanted.kind != "bool":
        raise TypeError(f"asarray can't store complex numbers in {wanted.name}")
    raw = backend.raw_dtype(wanted)
    host = array.astype(wanted.host, copy=copy is True and array is obj)
    if copy is False and not np.may_share_memory(host, array):
        raise ValueError("asarray: Python data or another dtype needs a copy; copy=False")
    made = backend.from_numpy(host, where)
    if wanted.host != wanted.name:
        made = backend.namespace.astype(made, raw)
    if (
        copy is False
        and array.size
        and (array is not obj or not np.may_share_memory(array, backend.to_numpy(made)))
    ):
        raise ValueError(f"asarray: a copy is needed for {backend.name}; copy=False")
    return made


def _host_array(obj: Any, wanted: DType | None) -> np.ndarray[Any, Any]:
    if isinstance(obj, list | tuple):
        obj = _values(obj)
    # Told the dtype, NumPy neither loses large integers on the way nor wraps them.
    told = wanted is not None and wanted.kind.endswith("integer") and _flat(obj, int)
    try:
        array = np.asarray(obj, dtype=wanted.name if told else None)  # type: ignore[union-attr]
    except OverflowError as error:
        raise OverflowError(f"asarray: {error}") from None
    except ValueError as error:
        raise ValueError(f"asarray: the sequences differ in length ({error})") from error
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype == object and _flat(obj, int):
        raise OverflowError("asarray: an integer is too large for int64")
    try:
        dtype_of(array.dtype)
    except TypeError:
        raise TypeError(
            f"asarray takes numbers and arrays of numbers, and not {type(obj).__name__} "
            f"({array.dtype})"
        ) from None
    return array


def _values(obj: Any) -> Any:
    """Nested sequences with every Tensor replaced by its values."""
    if isinstance(obj, list | tuple):
        return [_values(item) for item in obj]
    return backend_of(obj._array).to_numpy(obj.array) if isinstance(obj, Tensor) else obj


def _flat(obj: Any, kinds: Any) -> bool:
    """Whether everything in nested sequences is of one of some Python types."""
    if isinstance(obj, list | tuple):
        return all(_flat(item, kinds) for item in obj)
    return type(obj) in kinds if isinstance(kinds, tuple) else isinstance(obj, kinds)


def _default_for(obj: Any, array: np.ndarray[Any, Any]) -> DType:
    """The dtype of converted data: Python's numbers have defaults, arrays keep their own."""
    if array.dtype.kind in "fc" and _flat(obj, NUMBERS):
        first = obj
        while isinstance(first, list | tuple) and first:
            first = first[0]
        if isinstance(first, int) and _flat(obj, int):  # NumPy's way out of int64
            raise OverflowError("asarray: an integer is too large for int64; pass dtype=wg.uint64")
        return default_dtype(1j if array.dtype.kind == "c" else 1.0)
    if array.dtype == np.uint64 and _flat(obj, NUMBERS):
        raise OverflowError("asarray: an integer is too large for int64; pass dtype=wg.uint64")
    return dtype_of(array.dtype)


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return a new leaf that holds a copy of ``data``: PyTorch's constructor.

    Parameters
    ----------
    data : Tensor, array, number, nested sequence, or buffer
        As for `asarray`. The result of a Tensor is on no tape.
    dtype, device, requires_grad
        As for `asarray`.
    """
    if isinstance(data, Tensor):
        data = data.detach()
    made = asarray(data, dtype=dtype, device=device, copy=True)
    return leaf(made._array, requires_grad)


def as_tensor(data: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """`asarray` under PyTorch's name."""
    return asarray(data, dtype=dtype, device=device)


def from_numpy(array: np.ndarray[Any, Any], /) -> Tensor:
    """Return a Tensor of a NumPy array on the selected backend, sharing memory where it can."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy takes a NumPy array, not {type(array).__name__}")
    return asarray(array)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return a Tensor of any object that has DLPack's protocol, on the selected backend.

    Parameters
    ----------
    x : object
        With ``__dlpack__`` and ``__dlpack_device__``.
    device : device, optional
        Where the result is to be.
    copy : bool, optional
        True always copies, False never does, and None only where it must.

    Raises
    ------
    BufferError
        If the data cannot be exported or imported.
    ValueError
        If ``copy`` is False and a copy is needed.
    """
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack takes an object with __dlpack__, not {type(x).__name__}")
    backend, where = place(device)
    return untracked(backend.from_dlpack(x, where, copy))
