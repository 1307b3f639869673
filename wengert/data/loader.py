"""Batches of a dataset, in an order that can be taken up again where it was left."""

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import nullcontext
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, TypedDict, TypeVar, Unpack, overload

import numpy as np

from wengert.backends import use_backend
from wengert.backends.backend import importing
from wengert.backends.states import check_names
from wengert.data.collation import collate_batch, convert_sample
from wengert.data.datasets import Subset, TensorDataset, gather, gathers, is_iterable, samples
from wengert.data.samplers import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    at_once,
    begin,
    length,
    plain,
    repeats,
    set_state_of,
    state_of,
)
from wengert.data.threads import prefetch
from wengert.ops.hints import Refusing

if TYPE_CHECKING:
    from wengert.tape.tensor import Tensor

__all__ = ["DataLoader", "progress"]


#: What a loader is made of once and for all: samplers and a place depend on them.
_FIXED: Final = frozenset({"dataset", "batch_size", "sampler", "batch_sampler", "drop_last"})


#: The type of a batch.
B = TypeVar("B")


class _Options(TypedDict, total=False):
    """The options of a loader that its batches' type does not depend on."""

    sampler: Iterable[Any] | None
    batch_sampler: Iterable[Any] | None
    drop_last: bool
    generator: Any
    prefetch: int
    backend: str | None
    device: Any


class DataLoader(Refusing, Generic[B]):
    """Batches of a dataset on the selected backend.

    Parameters
    ----------
    dataset : Dataset or IterableDataset
        A `TensorDataset`, a Tensor or array (its rows), a frame of pandas (batches are dicts by its
        columns), a sequence, a PyTorch ``Dataset``, or anything with ``__getitem__`` and
        ``__len__``. What has ``__iter__`` alone is gone through in its order.
    batch_size : int, optional
        How many samples a batch has. None gives single samples, as they are, with Tensors in the
        place of arrays.
    shuffle : bool
        Whether each epoch takes the samples in a new random order.
    sampler : iterable of int, optional
        Gives the order in the place of ``shuffle``.
    batch_sampler : iterable of list of int, optional
        Gives the indices of each batch, in the place of ``batch_size``, ``shuffle``, ``sampler``
        and ``drop_last``.
    drop_last : bool
        Whether a last batch that is smaller is left out.
    collate_fn : callable, optional
        Makes a batch of a list of samples; `default_collate`, by default.
    generator : int or numpy.random.Generator, optional
        The seed or generator of the order, as for `RandomSampler`: the order does not depend on the
        backend.
    prefetch : int
        How many batches a thread makes ahead; 0 makes each when it is asked for. An error in the
        thread is raised in the loop, and the thread ends with the loop.
    backend : str, optional
        Where batches are, such as ``"torch:cuda:0"``: as for `wengert.set_backend`. By default what
        is selected when the loop begins.
    device : optional
        A device of that backend.

    Attributes
    ----------
    epoch : int
        How many epochs have come to their end.

    Raises
    ------
    TypeError
        If a dataset without a length is to be shuffled, or an option is of another type.
    ValueError
        If options exclude one another.

    Notes
    -----
    PyTorch: ``torch.utils.data.DataLoader``. Its processes (``num_workers``) are not there.
    `state_dict` has the place in an epoch, whatever has been prefetched.

    Examples
    --------
    >>> data = wg.data.TensorDataset(wg.reshape(wg.arange(8.0), (4, 2)), wg.arange(4))
    >>> for x, y in wg.data.DataLoader(data, batch_size=3):
    ...     print(y)
    tensor([0, 1, 2])
    tensor([3])
    """

    @overload
    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        *,
        collate_fn: Callable[[list[Any]], B],
        **options: Unpack[_Options],
    ) -> None: ...
    @overload
    def __init__(
        self: "DataLoader[tuple[Tensor, ...]]",
        dataset: TensorDataset | Subset[TensorDataset],
        batch_size: int | None = 1,
        shuffle: bool = False,
        **options: Unpack[_Options],
    ) -> None: ...
    @overload
    def __init__(
        self: "DataLoader[Any]",
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        *,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        **options: Unpack[_Options],
    ) -> None: ...
    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        *,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        drop_last: bool = False,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        generator: Any = None,
        prefetch: int = 0,
        backend: str | None = None,
        device: Any = None,
    ) -> None:
        batch_size, drop_last, prefetch = plain(batch_size), plain(drop_last), plain(prefetch)
        if type(prefetch) is not int or prefetch < 0:
            raise ValueError(f"prefetch should be an integer of 0 or more, not {prefetch!r}")
        self.dataset = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.collate_fn = collate_fn
        self.prefetch = prefetch
        self.backend = backend
        self.device = device
        self.epoch = 0
        self._iterable = is_iterable(dataset)
        self.sampler, self.batch_sampler = self._samplers(
            shuffle, sampler, batch_sampler, generator
        )
        #: What has the state of the order.
        self._order: Any = self.sampler if self.batch_sampler is None else self.batch_sampler
        self._position = 0  # batches of the running epoch that the loop has had
        self._start: Any = None  # the sampler's state when the running epoch began
        self._resumes = False  # whether the next loop goes on with that epoch
        self._latest: object = None  # the loop that counts

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and "_latest" in self.__dict__:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized; "
                "make another loader"
            )
        object.__setattr__(self, name, value)

    def _samplers(self, shuffle: bool, sampler: Any, batch_sampler: Any, generator: Any) -> Any:
        if self._iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise TypeError(
                f"a {type(self.dataset).__name__} gives its samples in its own order: it has no "
                "__getitem__ for shuffle, sampler and batch_sampler"
            )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if self.batch_size != 1 or shuffle or sampler is not None or self.drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, "
                    "and drop_last"
                )
            self.batch_size = None
            return sampler, batch_sampler
        if self.batch_size is None:
            if self.drop_last:
                raise ValueError("batch_size=None gives single samples, of which none is dropped")
        else:
            BatchSampler((), self.batch_size, self.drop_last)  # which looks at both
        if self._iterable:
            return None, None
        if shuffle:
            sampler = RandomSampler(self.dataset, generator=generator)
        elif sampler is None:
            sampler = SequentialSampler(self.dataset)
        if self.batch_size is None:
            return sampler, None
        return sampler, BatchSampler(sampler, self.batch_size, self.drop_last)

    def __len__(self) -> int:
        if not self._iterable:
            return length(self._order)
        n = length(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    # -- loops -----------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[B]:
        # All happens when the first batch is asked for: some tools make an iterator and drop it.
        latest = self._latest = object()
        if self._resumes:
            self._resumes = False
            now = state_of(self._order)
            set_state_of(self._order, self._start)
            batches = self._batches(self._position)
            if at_once(self._order):  # others may have drawn from its generator since
                set_state_of(self._order, now)
        else:
            self._position = 0
            begin(self._order)
            self._start = state_of(self._order)
            batches = self._batches(0)
        if self.prefetch:
            batches = prefetch(batches, self.prefetch)
        try:
            for batch in batches:
                if self._latest is latest:
                    self._position += 1
                yield batch
        finally:
            batches.close()  # type: ignore[attr-defined]
        if self._latest is latest:
            self._position, self._start, self._latest = 0, None, None
            self.epoch += 1

    def _batches(self, skipped: int) -> Iterator[Any]:
        """The batches of an epoch after the first ones; the order is drawn now."""
        if self._iterable:
            make = self._sample if self.batch_size is None else self._collate
            return self._make_items(self._stream(skipped), make)
        if type(self.batch_sampler) is BatchSampler:
            indices: Iterator[Any] = self.batch_sampler.batches(skipped)
        else:
            indices = islice(iter(self._order), skipped, None)
        if self.batch_sampler is None:
            return self._make_items(indices, self._one)
        rows = self.collate_fn is None and gathers(self.dataset)
        return self._make_items(indices, self._gather_rows if rows else self._several)

    def _make_items(self, items: Iterator[Any], make: Callable[[Any], Any]) -> Iterator[Any]:
        """What is made of each item, on the backend that was asked for."""
        for item in items:
            with nullcontext() if self.backend is None else use_backend(self.backend):
                batch = make(item)
            yield batch
            del item, batch

    def _one(self, index: Any) -> Any:
        return self._sample(samples(self.dataset, [index])[0])

    def _sample(self, found: Any) -> Any:
        collate = self.collate_fn
        return convert_sample(found, self.device) if collate is None else collate(found)

    def _gather_rows(self, indices: Any) -> Any:
        return convert_sample(gather(self.dataset, indices), self.device)

    def _several(self, indices: Any) -> Any:
        if isinstance(indices, np.ndarray):
            indices = indices.tolist()
        return self._collate(samples(self.dataset, [*indices]))

    def _collate(self, found: list[Any]) -> Any:
        collate = self.collate_fn
        return collate_batch(found, self.device) if collate is None else collate(found)

    def _stream(self, skipped: int) -> Iterator[Any]:
        each = iter(self.dataset)
        if self.batch_size is None:
            yield from islice(each, skipped, None)
            return
        next(islice(each, skipped * self.batch_size, skipped * self.batch_size), None)
        while found := [*islice(each, self.batch_size)]:
            if len(found) == self.batch_size or not self.drop_last:
                yield found

    # -- state -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the place in the data: the epoch, how many of its batches are done, and its order.

        Returns
        -------
        dict
            For `load_state_dict`, and `wengert.save`. In the loop the batch at hand counts as done.
            A loop that was left by ``break`` counts as running until another begins.

        Raises
        ------
        ValueError
            In the middle of an epoch whose order comes from a sampler without ``state_dict``.
        """
        running = self._latest is not None or self._resumes
        if running and not repeats(self._order):
            raise ValueError(
                f"the order of a {type(self._order).__name__} without state_dict can't be taken up "
                "again in the middle; save between epochs, or give it state_dict and "
                "load_state_dict"
            )
        return {
            "epoch": self.epoch,
            "position": self._position,
            "order": self._start if running else state_of(self._order),
            "now": state_of(self._order),
            **self._units(),
        }

    def _units(self) -> dict[str, int | None]:
        """What a position counts: batches of how many samples, out of how many."""
        sized = isinstance(self.dataset, Sized) and not self._iterable
        return {"samples": len(self.dataset) if sized else None, "batch_size": self.batch_size}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go to a place in the data: the next loop has the rest of that epoch.

        An order that is random, of the loader or of a sampler with a ``state_dict``, is that of the
        run that was saved; in later epochs, too, if it has a generator, or Wengert's random numbers
        are loaded (``wengert.load(path, generator=True)``). A dataset without ``__getitem__`` is
        gone through to the place.

        Raises
        ------
        ValueError
            If names are missing or unexpected, the loader has another kind of order, or, in the
            middle of an epoch, another batch size or other samples. Nothing has changed then.
        """
        units = self._units()
        names = ("epoch", "position", "order", "now", *units)
        check_names(type(self).__name__, state_dict, names)
        epoch, position = state_dict["epoch"], state_dict["position"]
        for name, value in (("epoch", epoch), ("position", position)):
            if type(value) is not int or value < 0:
                raise ValueError(f"{name} should be an integer of 0 or more, not {value!r}")
        for name, here in units.items():
            if position and state_dict[name] != here:
                raise ValueError(
                    f"the epoch at whose batch {position} this was saved had {name} "
                    f"{state_dict[name]}, and here it has {here}"
                )
        try:
            batches: float = len(self)
        except TypeError:
            batches = float("inf")
        if position > batches:
            raise ValueError(
                f"batch {position} was reached, and an epoch here has {batches}: is drop_last what "
                "it was?"
            )
        before = state_of(self._order)
        try:
            for name in ("order", "now"):
                set_state_of(self._order, state_dict[name])
        except BaseException:
            set_state_of(self._order, before)
            raise
        self._start, self._position, self.epoch = state_dict["order"], position, epoch
        self._resumes, self._latest = position > 0, None


def progress(loader: Iterable[Any], **options: Any) -> Any:
    """Show a progress bar while a loader, or any other iterable, is gone through.

    Parameters
    ----------
    loader : iterable
        A loader that was stopped begins where it goes on.
    **options
        Those of ``tqdm``: ``desc="epoch 3"``, ``leave=False``, ``disable=True``.

    Returns
    -------
    tqdm
        Gives the same items. Its ``set_postfix(loss=...)`` shows numbers.

    Raises
    ------
    ImportError
        If the package tqdm is not installed.

    Notes
    -----
    Wengert's own.

    Examples
    --------
    >>> loader = wg.data.DataLoader([1.0, 2.0, 3.0], batch_size=2)
    >>> [batch.shape for batch in wg.data.progress(loader, disable=True)]
    [(2,), (1,)]
    """
    with importing("a progress bar needs the package tqdm ({}); install wengert[progress]"):
        tqdm = import_module("tqdm.auto").tqdm
    if isinstance(loader, DataLoader):
        options = {"initial": loader.state_dict()["position"] if loader._resumes else 0, **options}
    return tqdm(loader, **options)
