"""Samples to batches: arrays of the selected backend in the samples' own structure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert import ops
from wengert.backends import backend_of, dtype_of, selection
from wengert.tape.tensor import Tensor

__all__ = ["default_collate", "default_convert"]


def place_array(value: Any, device: Any = None) -> Tensor:
    """An array or Tensor of any library, or numbers, as a Tensor on the selected backend."""
    if isinstance(value, np.ndarray | np.generic):
        value = np.asarray(value, dtype=value.dtype.newbyteorder("="))
    backend = selection().backend
    raw = value._array if isinstance(value, Tensor) else value
    if is_array(raw):
        source = backend_of(raw)
        if source is not backend:
            if isinstance(value, Tensor) and value.requires_grad:
                raise ValueError(
                    f"a sample on {source.name} requires grad, and batches on {backend.name} "
                    "would not be tracked; detach it, or select its backend"
                )
            array, dtype = source.to_numpy(source.adopt(raw)), dtype_of(raw.dtype)
            return ops.asarray(array, dtype=dtype, device=device)
    return ops.asarray(value, device=device)


def is_array(value: Any) -> bool:
    """Whether it is an array of some library, or a Tensor."""
    if isinstance(value, Tensor):
        return True
    if isinstance(value, np.ndarray):
        backend_of(value)  # which refuses masks and units
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind in "biufc"
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        return False
    try:
        backend_of(value)
    except TypeError:
        return False
    return True


def default_convert(data: Any) -> Any:
    """Turn the arrays in one sample into Tensors on the selected backend.

    Parameters
    ----------
    data : object
        Arrays, numbers of NumPy, and dicts, lists, tuples and named tuples of such.

    Returns
    -------
    object
        The same with Tensors. Python's numbers and strings, and what is no array, stay as they are.

    Notes
    -----
    PyTorch: ``torch.utils.data.default_convert``.

    Examples
    --------
    >>> import numpy as np
    >>> wg.data.default_convert({"x": np.ones(2), "name": "first"})
    {'x': tensor([1., 1.], dtype=wengert.float64), 'name': 'first'}
    """
    return convert_sample(data, None)


def convert_sample(data: Any, device: Any) -> Any:
    if isinstance(data, np.ndarray | np.generic):
        return place_array(data, device) if is_array(data) else data
    if is_array(data):
        return place_array(data, device)
    if isinstance(data, Mapping):
        items = {key: convert_sample(item, device) for key, item in data.items()}
        return _like_mapping(data, items)
    if isinstance(data, tuple | list):
        made = [convert_sample(item, device) for item in data]
        return type(data)(*made) if hasattr(data, "_fields") else made  # as in PyTorch
    return data


def default_collate(batch: Sequence[Any]) -> Any:
    """Join samples to a batch, on the selected backend.

    Arrays and Tensors of any library are stacked along a new first axis, numbers make a Tensor of
    one axis, and strings stay a sequence. Dicts, tuples and lists of such are joined item by item:
    dicts and named tuples stay what they are, and others become lists, as in PyTorch.

    Parameters
    ----------
    batch : sequence
        The samples, all of the structure of the first.

    Returns
    -------
    object
        The structure of a sample, with batches in it. Python's floats get the default floating
        dtype (in PyTorch, float64), integers int64, and arrays keep their dtype.

    Raises
    ------
    ValueError
        If the samples differ in shape, length or keys, or there are none.
    TypeError
        If a sample holds something else, such as None.

    Notes
    -----
    PyTorch: ``torch.utils.data.default_collate``.

    Examples
    --------
    >>> wg.data.default_collate([{"x": [1.0, 2.0], "name": "a"}, {"x": [3.0, 4.0], "name": "b"}])
    {'x': [tensor([1., 3.]), tensor([2., 4.])], 'name': ['a', 'b']}
    """
    return collate_batch(batch, None)


def collate_batch(batch: Sequence[Any], device: Any, where: str = "a sample") -> Any:
    if not len(batch):
        raise ValueError("a batch of no samples can't be joined")
    first = batch[0]
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        for each in batch:
            if not isinstance(each, Mapping) or each.keys() != first.keys():
                raise ValueError(
                    f"{where} has the keys {[*first]}, and another one "
                    f"{[*each] if isinstance(each, Mapping) else type(each).__name__}"
                )
        made = {
            key: collate_batch([each[key] for each in batch], device, f"{where}[{key!r}]")
            for key in first
        }
        return _like_mapping(first, made)
    if isinstance(first, tuple | list):
        for each in batch:
            if not isinstance(each, tuple | list) or len(each) != len(first):
                sequence = isinstance(each, tuple | list)
                raise ValueError(
                    f"{where} is a {type(first).__name__} of {len(first)}, and another one "
                    f"{f'has {len(each)}' if sequence else f'is a {type(each).__name__}'}; pass "
                    "collate_fn to join them in another way"
                )
        columns = zip(*batch, strict=True)
        parts = [collate_batch(c, device, f"{where}[{i}]") for i, c in enumerate(columns)]
        return type(first)(*parts) if hasattr(first, "_fields") else parts
    if is_array(first):
        return _stack_samples(batch, device, where)
    if isinstance(first, bool | int | float | complex):
        return _numbers(batch, device, where)
    raise TypeError(
        f"{where} is of type {type(first).__name__}; batches are made of arrays, numbers, strings, "
        "and dicts, lists and tuples of them. Pass collate_fn for others"
    )


def _numbers(batch: Sequence[Any], device: Any, where: str) -> Tensor:
    for each in batch:
        if not isinstance(each, bool | int | float | complex):
            raise TypeError(f"{where} is a number, and another one a {type(each).__name__}")
    return ops.asarray([*batch], device=device)


def _stack_samples(batch: Sequence[Any], device: Any, where: str) -> Tensor:
    for each in batch:
        if not is_array(each):
            raise TypeError(
                f"{where} is a {type(batch[0]).__name__}, and another one {_what(each)}; batches "
                "hold numbers"
            )
        if tuple(each.shape) != tuple(batch[0].shape):
            raise ValueError(
                f"{where} has the shape {tuple(batch[0].shape)}, and another one "
                f"{tuple(each.shape)}; pass collate_fn to pad them"
            )
    if all(isinstance(each, np.ndarray | np.generic) for each in batch):
        return place_array(np.stack(batch), device)
    return ops.stack([place_array(each, device) for each in batch])


def _what(value: Any) -> str:
    kind = f"a {type(value).__name__}"
    return f"{kind} of {value.dtype}" if hasattr(value, "dtype") else kind


def _like_mapping(given: Mapping[Any, Any], made: dict[Any, Any]) -> Any:
    """A dict, or the class of mapping that was given if it can be made of one."""
    if type(given) is dict:
        return made
    try:
        return type(given)(made)  # type: ignore[call-arg]
    except TypeError:
        return made
