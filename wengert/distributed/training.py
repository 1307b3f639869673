"""Training by parts of batches: one model on all processes, and each one's rows."""

import json
from collections.abc import Iterable, Iterator
from os import PathLike
from typing import Any, TypeVar

from wengert.compiler import messages
from wengert.distributed.collectives import broadcast
from wengert.func.trees import tree_leaves, tree_map
from wengert.nn.module import Module
from wengert.storage import save as save_checkpoint
from wengert.tape.grad_mode import no_grad
from wengert.tape.tensor import Tensor

__all__ = ["replicate", "save", "shard"]

M = TypeVar("M", bound=Module)
T = TypeVar("T")


@no_grad()
def replicate(model: M) -> M:
    """Give a model on all processes the parameters and buffers that it has on rank 0.

    Before anything moves, names, shapes, dtypes and ``requires_grad`` are compared.

    Parameters
    ----------
    model : Module
        Made by the same code on all processes. It changes in place.

    Returns
    -------
    Module
        ``model`` itself.

    Raises
    ------
    TypeError
        If ``model`` is no module.
    ValueError
        If the models differ, on all processes: with the first name, and what each rank has there.

    Notes
    -----
    PyTorch: ``torch.nn.parallel.DistributedDataParallel``, when it is made.

    Examples
    --------
    >>> import wengert.distributed as wd
    >>> wd.init()
    >>> model = wd.replicate(wg.nn.Linear(2, 1))
    >>> model(wg.ones((4, 2))).sum().backward()  # gradients are means over the processes
    """
    if not isinstance(model, Module):
        raise TypeError(f"replicate takes a Module, and not {type(model).__name__}")
    held = dict([*model.named_parameters(), *model.named_buffers()])
    text = json.dumps({name: _described(x) for name, x in held.items()})
    texts = messages.known("replicate").texts("replicate", text)
    every = [json.loads(each) for each in texts]
    for name in dict.fromkeys(name for each in every for name in each):
        found = [each.get(name, "no such name") for each in every]
        if len(set(found)) > 1:
            ranks = "; ".join(f"rank {rank}: {what}" for rank, what in enumerate(found))
            raise ValueError(
                f"the models differ in {name}: {ranks}. Make the model by the same code, with the "
                "same sizes, on all processes"
            )
    for x in held.values():
        x._array = broadcast(x.detach())._array
    return model


def _described(x: Tensor) -> str:
    frozen = "" if x.requires_grad or not x.dtype.inexact else ", without requires_grad"
    return f"{x.dtype.name} of shape {tuple(x.shape)}{frozen}"


def shard(batches: Iterable[T]) -> Iterator[T]:
    """Yield this process's rows of batches that all processes make alike.

    Of a batch of n rows rank r has those from n·r/size to n·(r + 1)/size, rounded down: shares
    differ by one row at most, and all processes make the same number of steps. A share may be empty
    where a batch has fewer rows than there are processes.

    Parameters
    ----------
    batches : iterable
        Trees of Tensors and arrays of one length, as a `wengert.data.DataLoader` gives them. They
        are the same on all processes: shuffle with the same seed.

    Yields
    ------
    object
        The tree with slices of the arrays.

    Raises
    ------
    ExchangeError
        If other processes have more or fewer batches.
    ValueError
        If a batch has no arrays, or arrays of several lengths.

    Notes
    -----
    PyTorch: ``torch.utils.data.DistributedSampler``, which repeats rows instead.

    Examples
    --------
    >>> import wengert.distributed as wd
    >>> wd.init()
    >>> list(wd.shard([wg.ones((4, 2)), wg.ones((4, 2))]))[0].shape
    (4, 2)
    """
    carrier = messages.known("shard")
    count = 0
    for batch in batches:
        lengths = {_rows(x) for x in tree_leaves(batch)}
        if len(lengths) != 1:
            raise ValueError(
                "shard divides the rows of a batch, which has "
                f"{f'arrays of {sorted(lengths)} rows' if lengths else 'no arrays'}"
            )
        (n,) = lengths
        start, stop = (n * r // carrier.size for r in (carrier.rank, carrier.rank + 1))
        count += 1
        yield tree_map(lambda x, start=start, stop=stop: x[start:stop, ...], batch)
    carrier.texts(f"the end of shard, after {count} batches", "")


def _rows(x: Any) -> int:
    shape = getattr(x, "shape", ())
    if not shape:
        raise ValueError(f"shard: a batch has {type(x).__name__} {x!r}, which has no rows")
    return int(shape[0])


def save(path: str | PathLike[str], /, **states: Any) -> None:
    """Write a checkpoint on rank 0, by `wengert.save`, while the other processes wait.

    The file is replaced as a whole or not at all.

    Parameters
    ----------
    path : path-like
        The file.
    **states
        As for `wengert.save`; those of rank 0 are written.

    Raises
    ------
    RuntimeError
        If rank 0 could not write the file, on the other ranks; on rank 0 its own error.

    Notes
    -----
    Wengert's own.

    Examples
    --------
    >>> import wengert.distributed as wd
    >>> from tempfile import TemporaryDirectory
    >>> wd.init()
    >>> model = wg.nn.Linear(2, 1)
    >>> with TemporaryDirectory() as folder:
    ...     wd.save(f"{folder}/run.safetensors", model=model, epoch=3)  # one process writes
    ...     wg.load(f"{folder}/run.safetensors", model=model)
    {'epoch': 3}
    """
    carrier = messages.known("save")
    failed: Exception | None = None
    if carrier.rank == 0:
        try:
            save_checkpoint(path, **states)
        except Exception as error:
            failed = error
    text = "" if failed is None else f"{type(failed).__name__}: {failed}"
    first = carrier.texts("save", text)[0]
    if failed is not None:
        raise failed
    if first:
        raise RuntimeError(f"rank 0 could not write {path}: {first}")
