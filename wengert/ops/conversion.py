"""Functions that convert existing data: the standard's, and PyTorch's ``tensor``."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from wengert.backends import BackendError, DType, as_dtype, backend_of, dtype_of
from wengert.backends.registry import lost_with
from wengert.interpreters.namespaces import differentiable as xp
from wengert.ops.axes import NUMBERS
from wengert.ops.creation import default_dtype, full, leaf, new_device
from wengert.ops.data_type import astype, result_type, to_backend, to_device
from wengert.ops.define import operation
from wengert.tape.promotion import SCALARS, check_range, limits, number_type
from wengert.tape.tensor import Tensor, check_leaving, untracked, warn_of_leaving, wrap
from wengert.tape.views import same, show, work_out

__all__ = ["as_tensor", "asarray", "clone", "from_dlpack", "from_numpy", "tensor"]


@operation(
    x=lambda xp, g: g,
    elementwise=True,
    linear="together",
    composite=lambda xp, x: xp.asarray(x, copy=True),
)
def clone(x: Any, /) -> Tensor:
    """Return a copy of an array, which stays tracked.

    The cotangent is that of the copy. PyTorch: ``torch.clone``.

    Examples
    --------
    >>> x = wg.ones(2, requires_grad=True)
    >>> y = wg.clone(x)
    >>> y *= 3  # x stays as it is
    >>> y.sum().backward()
    >>> x.grad
    tensor([3., 3.])
    """
    return clone.run(x)


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

    The cotangent of a Tensor is the result's. Raises `ValueError` if ``copy`` is False and a copy
    is needed, or sequences differ in length; `TypeError` if the data hold something else than
    numbers; `BackendError` if a sequence holds Tensors of several backends. ``copy=True`` always
    copies, False never does, and None only where it must. Array API standard.

    Parameters
    ----------
    obj : Tensor, array, number, nested sequence, or buffer
        A Tensor stays tracked, and so do those in lists and tuples, as by `stack`. NumPy arrays,
        Python numbers, sequences and buffers come to the selected backend; arrays of another
        library that is known stay in it, and sequences with Tensors in theirs.

    Examples
    --------
    >>> wg.asarray([[1, 2], [3, 4]], dtype=wg.float64)
    tensor([[1., 2.],
            [3., 4.]], dtype=wengert.float64)
    >>> import numpy as np
    >>> wg.asarray(np.arange(3.0)).dtype  # an array keeps its dtype
    wengert.float64
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if not isinstance(obj, Tensor):
        number = hasattr(obj, "regularise")  # that a trace follows
        if number or (isinstance(obj, list | tuple) and holds_tensors(obj)):
            if copy is False:
                what = "a Python number" if number else "joining arrays"
                raise ValueError(f"asarray: {what} needs a copy, and copy=False was given")
            if number:
                return leaf(_fill(obj, *_dtypes(obj, wanted), device)._array, requires_grad)
            obj, copy = _join(obj, wanted), None
        else:
            found = _from_library(obj)
            if found is None:
                return leaf(_from_host(obj, wanted, device, copy), requires_grad)
            if copy is False and not _shares(obj):
                raise ValueError("asarray: these data need a copy, and copy=False was given")
            obj = found
    result: Tensor = obj
    if wanted is not None and obj.dtype is not wanted:
        result = astype(result, wanted)
    if device is not None:
        result = to_device(result, device)
    if copy is False and result is not obj:
        raise ValueError("asarray: another dtype or device needs a copy, and copy=False was given")
    if copy and result is obj:
        result = clone(result)
    if requires_grad and not result.requires_grad:
        array, of = result._array, result
        result = leaf(array, True)
        show(result, of, same, {})
    return result


def laid_out(x: Tensor, ask: Callable[[Any], Any]) -> Tensor:
    """A Tensor itself, or a copy: as NumPy's ``ask`` gives an array of the same layout.

    Where the layout is not certain, the copy is noted as a view, so that no write is lost.
    """
    shown, real = getattr(x, "_shown", None), x._array
    arrays = [work_out(shown) if shown else np.empty(x.shape, np.bool_)]
    arrays += [real] if isinstance(real, np.ndarray) else []
    kept = {ask(one) is one for one in arrays}
    if kept == {True}:
        return x
    found: Tensor = clone(x)
    if True in kept:
        show(found, x, same, {})
    return found


def holds_tensors(obj: Any) -> bool:
    """Whether there is a Tensor, or a number that a trace follows, in nested sequences."""
    for item in obj:
        if type(item) in SCALARS:
            continue
        if isinstance(item, list | tuple):
            if holds_tensors(item):
                return True
        elif isinstance(item, Tensor) or hasattr(item, "regularise") or _follows_numpy(item):
            return True
        else:
            _check_bare(item)
    return False


def _check_bare(obj: Any) -> None:
    """Raise if something has a unit, or masks elements, which would be lost."""
    more = lost_with(type(obj))
    if more and np.any(getattr(obj, "mask", True)):
        raise TypeError(f"asarray takes numbers, and was given a {type(obj).__name__}; {more}")


def _join(obj: Any, wanted: DType | None) -> Tensor:
    """One Tensor of nested sequences that hold Tensors; tracked if one of these is.

    Backend, device and dtype are those of the Tensors; numbers have no dtype of their own, as in
    operations. Without Tensors there are numbers that a trace follows, and NumPy's dtype holds.
    """
    items: list[Any] = []
    shape = _collect(obj, items)
    if not _any_tensor(obj):
        of, wanted = _dtypes(obj, wanted)
        items = [_fill(x, of, wanted) for x in items]
    tensors = [x for x in items if isinstance(x, Tensor)]
    _check_backends(tensors)
    if wanted is None:
        wanted = result_type(*[x.number if hasattr(x, "regularise") else x for x in items])
    array = tensors[0]._array
    device = xp.device(untracked(getattr(array, "bottom", array)))
    parts = [
        asarray(x, dtype=wanted, device=None if isinstance(x, Tensor) else device) for x in items
    ]
    if len({tuple(x.shape) for x in parts}) == 1:
        joined = xp.stack(parts)
    else:
        joined = xp.concat([xp.reshape(x, (-1,)) for x in parts])
    return joined if tuple(joined.shape) == shape else xp.reshape(joined, shape)  # type: ignore[no-any-return]


def _any_tensor(obj: Any) -> bool:
    """Whether there is a Tensor in nested sequences."""
    return isinstance(obj, Tensor) or (isinstance(obj, list | tuple) and any(map(_any_tensor, obj)))


def as_numpy(obj: Any) -> Any:
    """Nested sequences as NumPy has them, Python's numbers in its dtypes.

    Those with Tensors, or numbers that a trace follows, are one Tensor.
    """
    if not holds_tensors(obj):
        try:
            return np.asarray(obj)
        except ValueError as error:
            raise ValueError(f"the sequences differ in length ({error})") from None
    return asarray(obj, dtype=None if _any_tensor(obj) else _host_array(_now(obj), None).dtype)


def as_storable(name: str, values: Any, dtype: DType) -> Any:
    """Nested sequences as an array (`as_numpy`) that fits a dtype.

    Raises `OverflowError` for an integer that the dtype does not hold.
    """
    found = as_numpy(values)
    if not found.size:  # nothing is of no kind
        return found.astype(np.bool_)
    if not isinstance(found, np.ndarray) or dtype.inexact:
        return found
    if found.dtype.kind in "fO":  # where int64 does not hold integers
        exact = np.asarray(values, dtype=object)
        if not all(isinstance(x, int | np.integer) for x in exact.flat):
            return found
        found = exact
    if found.dtype.kind in "iuO":
        for extreme in (found.min(), found.max()):
            check_range(name, int(extreme), dtype)
        return found.astype(dtype.host)
    return found


def _dtypes(obj: Any, wanted: DType | None) -> tuple[DType, DType]:
    """The dtypes that data, with numbers that a trace follows, have in NumPy and in a Tensor."""
    bare = _now(obj)
    array = _host_array(bare, wanted)
    wanted = _default_for(bare, array) if wanted is None else wanted
    _check_complex(array, wanted)
    return dtype_of(array.dtype), wanted


def _now(obj: Any) -> Any:
    """Data with the numbers that a trace follows as they are; zeros for the arrays among them."""
    if isinstance(obj, list | tuple):
        return [_now(item) for item in obj]
    if hasattr(obj, "regularise"):
        return obj.present()
    if isinstance(obj, np.generic) or hasattr(obj, "dtype"):
        dtype = obj.dtype if isinstance(obj.dtype, np.dtype) else dtype_of(obj.dtype).host
        return np.zeros(obj.shape, dtype)
    return obj


def _fill(x: Any, of: DType, wanted: DType, device: Any = None) -> Tensor:
    """An item in the dtype that NumPy gives the data, cast to the wanted one."""
    low, high = limits(wanted)
    if isinstance(x, Tensor | np.ndarray):
        made = asarray(x, dtype=of, device=device)
    elif wanted.kind.endswith("integer") and number_type(x) is float and not low <= x <= high:
        made = leaf(_from_host(float(x), wanted, device, None), False)  # libraries cut it otherwise
    else:
        # Large integers are rounded from their own dtype, and NaN is no integer to ``full``.
        direct = of.inexact and wanted.inexact and number_type(x) in (float, complex)
        made = full((), x, dtype=wanted if direct else of, device=device)
    return made if made.dtype is wanted else astype(made, wanted)


def _collect(obj: Any, items: list[Any]) -> tuple[int, ...]:
    """Add the items of nested sequences to a list, and return the shape of the nest."""
    if not isinstance(obj, list | tuple):
        if isinstance(obj, np.generic):  # a number like Python's own
            obj = obj.item()
        elif not isinstance(obj, Tensor):
            obj = _item(obj)
        items.append(obj)
        return tuple(getattr(obj, "shape", ()))
    shapes = [_collect(item, items) for item in obj]
    for shape in shapes:
        if shape != shapes[0]:
            raise ValueError(
                f"asarray: the sequences differ in length, or their items in shape: {shapes[0]} "
                f"and {shape} cannot be one array"
            )
    return (len(shapes), *(shapes[0] if shapes else ()))


def _item(obj: Any) -> Any:
    """An item of nested sequences, as a Tensor, a number or an array of NumPy's."""
    if type(obj) in SCALARS or hasattr(obj, "regularise"):
        return obj
    kind: Any
    for kind in NUMBERS:
        if isinstance(obj, kind):
            return kind(obj)
    found = _from_library(obj)
    return _host_array(obj, None) if found is None else found


def _check_backends(tensors: list[Tensor]) -> None:
    """Raise if Tensors do not belong to one backend."""
    names = [backend_of(getattr(x._array, "bottom", x._array)).name for x in tensors]
    for x, name in zip(tensors, names, strict=True):
        if name != names[0]:
            raise BackendError(
                f"asarray was given Tensors of two backends, {names[0]} (shape "
                f"{tuple(tensors[0].shape)}) and {name} (shape {tuple(x.shape)}); move one with "
                f"tensor.to_backend({names[0]!r})"
            )


def _from_library(obj: Any) -> Tensor | None:
    """A Tensor of a raw array of another library than NumPy; None for anything else."""
    if type(obj) is not np.ndarray and type(obj) not in SCALARS:
        _check_bare(obj)
    if issubclass(type(obj), (np.ndarray, np.generic, *NUMBERS, list, tuple)):
        return None  # but a traced array is of another type than it says
    try:
        backend = backend_of(obj)
    except (TypeError, BackendError):
        return None
    array = backend.adopt(obj)
    _check_dtype(obj, array.dtype)
    found = untracked(array)
    if _follows_numpy(obj):
        selected, device = new_device(None)
        return to_backend(found, selected.name, device=device)
    return found


def _follows_numpy(obj: Any) -> bool:
    """Whether this is an array of NumPy's that a trace follows: its type is not what it says."""
    numpys = np.ndarray, np.generic
    return isinstance(obj, numpys) and not issubclass(type(obj), numpys)


def _shares(array: Any) -> bool:
    """Whether a Tensor of a raw array shares memory: not of a scalar, nor of one in other bytes."""
    return not isinstance(array, np.generic) and getattr(array.dtype, "isnative", True)


def _from_host(obj: Any, wanted: DType | None, device: Any, copy: bool | None) -> Any:
    """A raw array, on the selected backend, of NumPy's or Python's data."""
    backend, where = new_device(device)
    array = _host_array(obj, wanted)
    if wanted is None:
        wanted = _default_for(obj, array)
    _check_complex(array, wanted)
    raw = backend.raw_dtype(wanted)
    host = array.astype(wanted.host, copy=copy is True and array is obj)
    if copy is False and host is not array:
        raise ValueError(
            "asarray: Python data or another dtype needs a copy, and copy=False was given"
        )
    made = backend.from_numpy(host, where)
    if wanted.host != wanted.name:
        made = backend.namespace.astype(made, raw)
    raw = made.inner if hasattr(made, "look") else made  # where a trace follows it
    if copy is False and (
        array is not obj or (array.size and not np.may_share_memory(array, backend.to_numpy(raw)))
    ):
        raise ValueError(f"asarray: {backend.name} needs a copy, and copy=False was given")
    return made


def _check_complex(array: np.ndarray[Any, Any], wanted: DType) -> None:
    if array.dtype.kind == "c" and not wanted.complex and wanted.kind != "bool":
        raise TypeError(f"asarray can't store complex numbers in {wanted.name}")


def _check_dtype(obj: Any, dtype: Any) -> None:
    """Raise if data are no numbers."""
    try:
        dtype_of(dtype)
    except TypeError:
        raise TypeError(
            f"asarray takes numbers and arrays of numbers, and not {type(obj).__name__} ({dtype})"
        ) from None


def _host_array(obj: Any, wanted: DType | None) -> np.ndarray[Any, Any]:
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
    _check_dtype(obj, array.dtype)
    return array


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


def beside(x: Tensor, values: Any, dtype: Any = None) -> Tensor:
    """NumPy's arrays or numbers as a Tensor where ``x`` is, in another dtype if one is given."""
    owner = backend_of(x._array)
    where = owner.beside(x._array)
    if _follows_numpy(values):
        made = to_backend(untracked(values), owner.name, device=where)
    else:
        _check_bare(values)
        made = untracked(owner.from_numpy(np.asarray(values), where))
    return made if dtype is None else astype(made, dtype, copy=False)


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return a new leaf that holds a copy of ``data``: PyTorch's constructor.

    Raises `ValueError` if sequences differ in length; `TypeError` if the data hold something else
    than numbers; `BackendError` if a sequence holds Tensors of several backends; `RuntimeError` if
    a transform differentiates ``data``, a Tensor: the derivative would be lost.
    PyTorch: ``torch.tensor``.

    Parameters
    ----------
    data : Tensor, array, number, nested sequence, or buffer
        As for `asarray`: a sequence of Tensors stays tracked. A Tensor alone does not, as in
        PyTorch: if it is on the tape a warning says so, and while a transform differentiates it
        this is an error.

    Examples
    --------
    >>> wg.tensor([1.0, 2.0])
    tensor([1., 2.])
    >>> wg.tensor(3.0, requires_grad=True)
    tensor(3., requires_grad=True)
    """
    if isinstance(data, Tensor):
        check_leaving(data, "tensor")
        if data._node is not None:
            warn_of_leaving("copy")
        data = data.detach()
    return asarray(data, dtype=dtype, device=device, copy=True, requires_grad=requires_grad)


def as_tensor(data: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Convert to a Tensor: `asarray` under PyTorch's name.

    The cotangent of a Tensor is the result's. Raises `ValueError` if sequences differ in length;
    `TypeError` if the data hold something else than numbers; `BackendError` if a sequence holds
    Tensors of several backends. PyTorch: ``torch.as_tensor``.

    Examples
    --------
    >>> x = wg.ones(2)
    >>> wg.as_tensor(x) is x
    True
    >>> wg.as_tensor([1, 2])
    tensor([1, 2])
    """
    return asarray(data, dtype=dtype, device=device)


def from_numpy(array: np.ndarray[Any, Any], /) -> Tensor:
    """Return a Tensor of a NumPy array on the selected backend, sharing memory where it can.

    Raises `TypeError` if ``array`` is none of NumPy's. PyTorch: ``torch.from_numpy``.

    Examples
    --------
    >>> import numpy as np
    >>> array = np.zeros(2)
    >>> x = wg.from_numpy(array)
    >>> array[0] = 1.0  # the memory is shared
    >>> x
    tensor([1., 0.], dtype=wengert.float64)
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy takes a NumPy array, not {type(array).__name__}")
    return asarray(array)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return a Tensor of any object that has DLPack's protocol, on the selected backend.

    Raises `TypeError` if ``x`` does not have the protocol; `BufferError` if the data cannot be
    exported or imported; `ValueError` if ``copy`` is False and a copy is needed. ``copy=True``
    always copies, False never does, and None only where it must. Array API standard.

    Examples
    --------
    >>> import numpy as np
    >>> wg.from_dlpack(np.asarray([1.0, 2.0]))
    tensor([1., 2.], dtype=wengert.float64)
    """
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack takes an object with __dlpack__, not {type(x).__name__}")
    _check_bare(x)
    with suppress(TypeError):  # of what is no raw array
        if backend_of(x).exchanging:  # whose own export is one process's part
            x = wrap(x)
        elif not _shares(x) and copy is not False:
            x = backend_of(x).adopt(x)
    backend, where = new_device(device)
    return untracked(backend.from_dlpack(x, where, copy if copy is None else bool(copy)))
