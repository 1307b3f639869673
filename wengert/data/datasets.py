"""Datasets: samples by their indices."""

import math
import operator
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from wengert import ops
from wengert.backends import backend_of
from wengert.backends.generators import as_generator
from wengert.data.collation import is_array
from wengert.data.samplers import length, plain
from wengert.ops.conversion import beside
from wengert.tape.tensor import Tensor, untracked

__all__ = [
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T_co = TypeVar("T_co", covariant=True)
#: A dataset.
D = TypeVar("D")


@runtime_checkable
class Dataset(Protocol[T_co]):
    """Samples by their indices: a sequence, a PyTorch ``Dataset``, or any class with two methods.

    It need not be a subclass. One that has ``__getitems__(indices)`` is asked for all samples of a
    batch at once.

    Examples
    --------
    >>> class Squares(wg.data.Dataset):
    ...     def __getitem__(self, index):
    ...         return float(index), float(index) ** 2
    ...     def __len__(self):
    ...         return 4
    >>> x, y = next(iter(wg.data.DataLoader(Squares(), batch_size=4)))
    >>> y
    tensor([0., 1., 4., 9.])
    """

    def __getitem__(self, index: Any, /) -> T_co: ...
    def __len__(self) -> int: ...


@runtime_checkable
class IterableDataset(Protocol[T_co]):
    """Samples one after another, of which there may be no end: what has ``__iter__`` alone.

    Examples
    --------
    >>> class Lines(wg.data.IterableDataset):
    ...     def __iter__(self):
    ...         yield from (1.0, 2.0, 3.0)
    >>> [batch.tolist() for batch in wg.data.DataLoader(Lines(), batch_size=2)]
    [[1.0, 2.0], [3.0]]
    """

    def __iter__(self) -> Iterator[T_co]: ...


class TensorDataset:
    """Arrays of which each sample takes one row: index ``i`` gives ``(x[i], y[i], …)``.

    A loader takes the rows of a batch at once.

    Parameters
    ----------
    *tensors : Tensor, array, or frame
        Of any libraries, all of one length. Batches are moved to the selected backend.

    Raises
    ------
    TypeError
        If something else is given.
    ValueError
        If they differ in length, have none, or there are no arrays.

    Notes
    -----
    PyTorch: ``torch.utils.data.TensorDataset``.

    Examples
    --------
    >>> data = wg.data.TensorDataset(wg.ones((4, 2)), wg.asarray([0, 1, 1, 0]))
    >>> len(data)
    4
    >>> x, label = data[1]
    >>> x.shape, int(label)
    ((2,), 1)
    """

    def __init__(self, *tensors: Any) -> None:
        if not tensors:
            raise ValueError("TensorDataset takes one array or more")
        arrays = [
            each.to_numpy() if not is_array(each) and hasattr(each, "to_numpy") else each
            for each in tensors
        ]
        for each in arrays:
            if not is_array(each):
                what = (
                    f"an array of {each.dtype}" if hasattr(each, "dtype") else type(each).__name__
                )
                raise TypeError(
                    f"TensorDataset takes Tensors and arrays of numbers, and was given {what}"
                )
            if not each.shape:
                raise ValueError("TensorDataset takes arrays of one axis or more, and one has none")
        lengths = [each.shape[0] for each in arrays]
        if len(set(lengths)) > 1:
            raise ValueError(f"Size mismatch between tensors: they have the lengths {lengths}")
        self.tensors = tuple(arrays)

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(each[index] for each in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class Subset(Generic[D]):
    """Some samples of a dataset.

    Parameters
    ----------
    dataset : Dataset
        All samples.
    indices : sequence of int, or array
        Which of them, in this order.

    Examples
    --------
    >>> data = wg.data.Subset([10, 11, 12], [2, 0])
    >>> list(data)
    [12, 10]
    """

    def __init__(self, dataset: D, indices: Any) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.__getitems__(index)
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> Any:
        """All samples of a batch."""
        return samples(self.dataset, [_as_position(self.indices[i]) for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset:
    """Several datasets, one after another.

    Parameters
    ----------
    datasets : iterable of Dataset
        One or more, each with a length.

    Examples
    --------
    >>> data = wg.data.ConcatDataset([[1, 2], [3]])
    >>> len(data), data[2]
    (3, 3)
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("datasets should not be an empty iterable")
        self.cumulative_sizes = [*accumulate(length(each) for each in self.datasets)]

    def __getitem__(self, index: int) -> Any:
        n = len(self)
        if not -n <= index < n:
            raise IndexError(f"index {index} is out of range for {n} samples")
        index = index % n
        which = bisect_right(self.cumulative_sizes, index)
        start = self.cumulative_sizes[which - 1] if which else 0
        return samples(self.datasets[which], [index - start])[0]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


def random_split(
    dataset: D, lengths: Sequence[int | float], generator: Any = None
) -> list[Subset[D]]:
    """Split a dataset at random into parts that have no sample in common.

    Parameters
    ----------
    dataset : Dataset
        All samples.
    lengths : sequence of int or of float
        How many samples each part has, or fractions that sum to 1; what rounding leaves over goes
        to the first parts, one each.
    generator : int or numpy.random.Generator, optional
        As for `RandomSampler`: a seed gives the same parts on every backend.

    Returns
    -------
    list of Subset
        The parts.

    Raises
    ------
    ValueError
        If the lengths do not sum to the number of samples, or fractions to 1.

    Notes
    -----
    PyTorch: ``torch.utils.data.random_split``.

    Examples
    --------
    >>> train, test = wg.data.random_split(range(10), [0.8, 0.2], generator=0)
    >>> len(train), len(test)
    (8, 2)
    """
    n, sizes = length(dataset), [*map(plain, lengths)]
    if any(size < 0 for size in sizes):
        raise ValueError(f"lengths can't be negative: {sizes}")
    if not all(isinstance(size, int) for size in sizes):
        if not math.isclose(sum(sizes), 1):
            raise ValueError(f"fractions should sum to 1, and {sizes} sum to {sum(sizes)}")
        parts = [math.floor(n * size) for size in sizes]
        for i in range(n - sum(parts)):
            parts[i % len(parts)] += 1
        sizes = [*parts]
    if sum(sizes) != n:
        raise ValueError(f"lengths {sizes} sum to {sum(sizes)}, and the dataset has {n} samples")
    order = as_generator(generator).permutation(n)
    ends = [*accumulate(sizes)]
    return [Subset(dataset, part) for part in np.split(order, ends[:-1])]


# -- all samples of a batch at once --------------------------------------------------------------


def _as_position(index: Any) -> int:
    """An index that is a number, of whatever library."""
    if isinstance(index, (bool, np.bool)):  # which NumPy before 2.3 counts by
        raise _no_indices("bool")
    try:
        return operator.index(index)
    except TypeError:
        raise _no_indices(str(getattr(index, "dtype", type(index).__name__))) from None


def _no_indices(kind: str) -> TypeError:
    return TypeError(
        f"samples are chosen by integers, and an index is of {kind}; np.flatnonzero(mask) gives "
        "the indices of a mask"
    )


def samples(dataset: Any, indices: Sequence[Any]) -> Any:
    """The samples at some indices, each for itself."""
    if any(isinstance(index, bool) for index in indices):  # which Python counts as 0 and 1
        raise _no_indices("bool")
    if hasattr(dataset, "__getitems__"):
        return dataset.__getitems__(indices)
    if hasattr(dataset, "iloc"):
        return [dataset.iloc[index] for index in indices]
    return [dataset[index] for index in indices]


def is_iterable(dataset: Any) -> bool:
    """Whether a dataset is gone through in its own order alone."""
    if any(each.__name__ == "IterableDataset" for each in type(dataset).__mro__):
        return True  # PyTorch's has a __getitem__ that fails
    if hasattr(dataset, "__getitem__") or hasattr(dataset, "iloc"):
        return False
    if not hasattr(dataset, "__iter__"):
        raise TypeError(
            f"a dataset has __getitem__ and __len__, or __iter__, and a {type(dataset).__name__} "
            "has neither"
        )
    return True


def gathers(dataset: Any) -> bool:
    """Whether `gather` takes the rows of a batch from the arrays of a dataset."""
    if type(dataset) is Subset:
        return gathers(dataset.dataset)
    return type(dataset) is TensorDataset or is_array(dataset) or hasattr(dataset, "iloc")


def gather(dataset: Any, indices: Any) -> Any:
    """The rows at some indices, as arrays in the structure of a sample."""
    indices = np.asarray(indices)
    if indices.size and indices.dtype.kind not in "iu":
        raise _no_indices(str(indices.dtype))
    indices = indices.astype(np.int64, copy=False)
    if type(dataset) is Subset:
        held = dataset.indices
        chosen = held[indices] if isinstance(held, np.ndarray) else [held[i] for i in indices]
        return gather(dataset.dataset, chosen)
    if type(dataset) is TensorDataset:
        return [_rows(each, indices) for each in dataset.tensors]
    if hasattr(dataset, "iloc"):
        part = dataset.iloc[indices]
        if not hasattr(part, "columns"):
            return _column(part, part.name)
        if not part.columns.is_unique:
            raise ValueError("columns of a frame become a dict by their names, and some are equal")
        return {name: _column(part[name], name) for name in part.columns}
    return _rows(dataset, indices)


def _rows(array: Any, indices: np.ndarray[Any, Any]) -> Any:
    n = array.shape[0]
    if indices.size and not -n <= indices.min() <= indices.max() < n:  # some libraries clip
        raise IndexError(f"indices from {indices.min()} to {indices.max()} of {n} samples")
    indices = np.where(indices < 0, indices + n, indices)
    if isinstance(array, np.ndarray):
        return array[indices]
    tensor = array if isinstance(array, Tensor) else untracked(backend_of(array).adopt(array))
    return ops.take(tensor, beside(tensor, indices), axis=0)


def _column(column: Any, name: Any) -> Any:
    """Numbers as an array, and strings as a list."""
    found = column.to_numpy()
    if found.dtype.kind in "biufc":
        # The dtype of a batch would depend on what is missing in it.
        own = getattr(column.dtype, "categories", column).dtype
        if own.kind in "biu" and found.dtype.kind == "f":
            raise TypeError(
                f"the column {name!r} holds {own} and misses values; fill them, or convert it to "
                "float64, in which they are nan"
            )
        return found
    items = found.tolist()
    if not all(isinstance(item, str) for item in items):
        raise TypeError(
            f"the column {name!r} holds {column.dtype}, and batches hold numbers and strings; "
            "convert it"
        )
    return items
