"""The order of samples: indices, one by one or in batches."""

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Protocol, runtime_checkable

import numpy as np

from wengert.backends.generators import as_generator
from wengert.backends.states import check_names

__all__ = ["BatchSampler", "RandomSampler", "Sampler", "SequentialSampler"]


@runtime_checkable
class Sampler(Protocol):
    """What gives indices of samples: any iterable, such as a PyTorch ``Sampler``.

    One whose order is random has ``state_dict`` and ``load_state_dict``, so that a loader can begin
    an epoch again where it was stopped.

    Examples
    --------
    >>> class Backwards:
    ...     def __iter__(self):
    ...         return iter([2, 1, 0])
    >>> loader = wg.data.DataLoader([10, 11, 12], batch_size=3, sampler=Backwards())
    >>> [batch.tolist() for batch in loader]
    [[12, 11, 10]]
    """

    def __iter__(self) -> Iterator[Any]: ...


def plain(value: Any) -> Any:
    """A number of NumPy's as Python's; anything else as it is."""
    return value.item() if isinstance(value, np.generic | np.ndarray) and not value.ndim else value


def length(data: Any) -> int:
    """How many samples there are."""
    if not isinstance(data, Sized):
        raise TypeError(
            f"a {type(data).__name__} has no length; its samples can be taken in their order alone"
        )
    return len(data)


class SequentialSampler:
    """The indices of a dataset in their order.

    Parameters
    ----------
    data_source : sized
        The dataset.

    Examples
    --------
    >>> list(wg.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def order(self) -> Sequence[int]:
        """All indices of an epoch."""
        return range(length(self.data_source))

    def __iter__(self) -> Iterator[int]:
        return iter(self.order())

    def __len__(self) -> int:
        return length(self.data_source)


class RandomSampler:
    """The indices of a dataset in random order.

    Parameters
    ----------
    data_source : sized
        The dataset.
    replacement : bool
        Whether an index may come several times.
    num_samples : int, optional
        How many indices there are in an epoch; all, by default. More than all are taken from
        several permutations.
    generator : int or numpy.random.Generator, optional
        The seed or generator of the order, which is the same for every backend. By default, each
        epoch takes a seed from Wengert's random numbers as it begins, as in PyTorch.

    Raises
    ------
    ValueError
        If there is nothing to choose from, or ``num_samples`` is not positive.

    Examples
    --------
    >>> sorted(wg.data.RandomSampler(range(5), generator=0))
    [0, 1, 2, 3, 4]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        num_samples, replacement = plain(num_samples), plain(replacement)
        if num_samples is not None and (type(num_samples) is not int or num_samples < 1):
            raise ValueError(f"num_samples should be a positive integer, not {num_samples!r}")
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement is True or False, not {replacement!r}")
        self.data_source = data_source
        self.replacement = replacement
        self.generator = None if generator is None else as_generator(generator)
        self._seeded: Any = None  # the generator of an epoch that begins
        self._num_samples = num_samples

    @property
    def num_samples(self) -> int:
        """How many indices an epoch has."""
        return length(self.data_source) if self._num_samples is None else self._num_samples

    def order(self) -> Sequence[int]:
        """All indices of an epoch, drawn now."""
        n, wanted = length(self.data_source), self.num_samples
        if wanted and not n:
            raise ValueError("there are no samples to choose from")
        generator, self._seeded = self.seeded(), None
        if self.replacement:
            drawn = generator.integers(n, size=wanted)
        else:
            rounds = [generator.permutation(n) for _ in range(-(-wanted // n) if n else 0)]
            drawn = np.concatenate(rounds)[:wanted] if rounds else np.zeros(0, dtype=np.int64)
        return drawn  # type: ignore[return-value]

    def seeded(self) -> "np.random.Generator":
        """The generator of the next order, which is seeded now if none was given."""
        if self.generator is not None:
            return self.generator
        if self._seeded is None:
            self._seeded = as_generator(None)
        return self._seeded  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[int]:
        return iter(np.asarray(self.order()).tolist())

    def __len__(self) -> int:
        return self.num_samples

    def state_dict(self) -> dict[str, Any]:
        """Return the generator's state: None between epochs that take seeds as they begin."""
        known = self._seeded if self.generator is None else self.generator
        return {"generator": None if known is None else known.bit_generator.state}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Set the generator's state."""
        check_names(type(self).__name__, state_dict, ("generator",))
        state = state_dict["generator"]
        if self.generator is not None:
            if state is None:
                raise ValueError("the order has a generator here, and had none when it was saved")
            self.generator.bit_generator.state = state
        elif state is None:
            self._seeded = None
        else:
            known = as_generator(0)
            known.bit_generator.state = state
            self._seeded = known


class BatchSampler:
    """Batches of indices that another sampler gives.

    Parameters
    ----------
    sampler : iterable
        Gives the indices.
    batch_size : int
        How many are in a batch.
    drop_last : bool
        Whether a last batch that is smaller is left out.

    Raises
    ------
    ValueError
        If ``batch_size`` is no positive integer.

    Examples
    --------
    >>> list(wg.data.BatchSampler(wg.data.SequentialSampler(range(5)), batch_size=2))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool = False) -> None:
        batch_size, drop_last = plain(batch_size), plain(drop_last)
        if type(batch_size) is not int or batch_size < 1:
            raise ValueError(f"batch_size should be a positive integer, but got {batch_size!r}")
        if not isinstance(drop_last, bool):
            raise TypeError(f"drop_last is True or False, not {drop_last!r}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        for batch in self.batches(0):
            yield batch if isinstance(batch, list) else np.asarray(batch).tolist()

    def batches(self, skipped: int) -> Iterator[Sequence[Any]]:
        """The batches of an epoch after the first ``skipped``; what is random is drawn now."""
        sampler: Any = self.sampler
        if at_once(sampler):  # all are known: batches are parts of one array
            return self._divide_order(sampler.order(), skipped)
        return self._chunks(iter(sampler), skipped)

    def _divide_order(self, order: Sequence[Any], skipped: int) -> Iterator[Sequence[Any]]:
        size = self.batch_size
        whole = len(order) - (len(order) % size if self.drop_last else 0)
        for start in range(skipped * size, whole, size):
            yield order[start : min(start + size, whole)]

    def _chunks(self, indices: Iterator[Any], skipped: int) -> Iterator[list[Any]]:
        batch: list[Any] = []
        for index in indices:
            batch.append(index)
            if len(batch) == self.batch_size:
                if skipped:
                    skipped -= 1
                else:
                    yield batch
                batch = []
        if batch and not self.drop_last and not skipped:
            yield batch

    def __len__(self) -> int:
        n, size = length(self.sampler), self.batch_size
        return n // size if self.drop_last else -(-n // size)

    def state_dict(self) -> dict[str, Any]:
        """Return the sampler's state."""
        return {"sampler": state_of(self.sampler)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Set the sampler's state."""
        check_names(type(self).__name__, state_dict, ("sampler",))
        set_state_of(self.sampler, state_dict["sampler"])


def state_of(sampler: Any) -> Any:
    """The state of a sampler; None for one that has none, whose order is always the same."""
    return sampler.state_dict() if hasattr(sampler, "state_dict") else None


def begin(sampler: Any) -> None:
    """Seed the order of an epoch, before its state is taken."""
    if isinstance(innermost := _innermost(sampler), RandomSampler):
        innermost.seeded()


def _innermost(sampler: Any) -> Any:
    return sampler.sampler if type(sampler) is BatchSampler else sampler


def at_once(sampler: Any) -> bool:
    """Whether a sampler, or that of batches, draws its order when a loop begins."""
    kind = type(_innermost(sampler))  # others have their own __iter__
    return kind in (SequentialSampler, RandomSampler)


def repeats(sampler: Any) -> bool:
    """Whether a sampler gives the same order again if it has the state that it had."""
    if type(sampler) is BatchSampler:
        return repeats(sampler.sampler)
    fixed = sampler is None or type(sampler) is SequentialSampler
    return fixed or hasattr(sampler, "state_dict") or hasattr(sampler, "__getitem__")


def set_state_of(sampler: Any, state: Any) -> None:
    """Give a sampler its state; an error if it has none, or lacks what has been saved."""
    if hasattr(sampler, "load_state_dict") != (state is not None):
        raise ValueError(
            f"the {type(sampler).__name__} here has {'a' if state is None else 'no'} state of its "
            "own, other than the one that was saved: was one of the loaders shuffled?"
        )
    if state is not None:
        sampler.load_state_dict(state)
