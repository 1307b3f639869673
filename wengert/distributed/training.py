"""Training by parts of batches: one model on all processes, and the mean of its gradients."""

import json
from collections.abc import Iterable, Iterator
from os import PathLike
from typing import Any, TypeVar

from wengert import ops
from wengert.backends import messages
from wengert.distributed.collectives import all_reduce, broadcast
from wengert.func.trees import tree_leaves, tree_map
from wengert.interpreters.differentiable import device
from wengert.nn.module import Module
from wengert.nn.parameter import listed
from wengert.storage import save as save_checkpoint
from wengert.tape.grad_mode import no_grad
from wengert.tape.tensor import Tensor

__all__ = ["average", "mean", "replicate", "save", "shard"]

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
    """
    if not isinstance(model, Module):
        raise TypeError(f"replicate takes a Module, and not {type(model).__name__}")
    held = dict([*model.named_parameters(), *model.named_buffers()])
    text = json.dumps({name: _described(x) for name, x in held.items()})
    every = [json.loads(each) for each in messages.known("replicate").texts("replicate", text)]
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


@no_grad()
def average(model: Module | Iterable[Tensor], weight: Any = 1) -> None:
    r"""Replace gradients by their weighted mean over the processes.

    With gradients :math:`g_r` and weights :math:`w_r` it is :math:`\sum_r w_r g_r / \sum_r w_r`.
    Where losses are means over the rows of a process and weights count these rows, it is the
    gradient of the mean over all rows, also if batches are uneven. All gradients and the weight
    travel together, in one `all_reduce` for each dtype.

    Parameters
    ----------
    model : Module or iterable of Tensor
        Whose gradients are replaced, of all that require grad.
    weight : number or Tensor
        Of this process, 0 or more: ``len(x)``, say. With weight 0 gradients count as zero, whatever
        they are, and may be None.

    Raises
    ------
    ValueError
        If the weight is negative, or a number above 0 where a Tensor that requires grad has none.

    Notes
    -----
    PyTorch: ``torch.nn.parallel.DistributedDataParallel``, which divides by the number of
    processes.
    """
    if isinstance(model, Module):
        named = [*model.named_parameters()]
    else:
        named = [(f"Tensor {i}", x) for i, x in enumerate(listed("average", model))]
    named = [(name, x) for name, x in named if x.requires_grad]
    empty = not isinstance(weight, Tensor) and weight == 0
    for name, x in named:
        if x._grad is None and not empty:
            raise ValueError(
                f"average: {name} has no gradient on rank {messages.known('average').rank}. Call "
                "backward first, and requires_grad_(False) for what the loss does not depend on"
            )
    for dtype in dict.fromkeys(x.dtype for _, x in named):
        some = [x for _, x in named if x.dtype is dtype]
        flat = [_weighted(x if x._grad is None else x._grad, weight) for x in some]
        total = all_reduce(ops.concat([*flat, _scalar(some[0], weight)]))
        mean = ops.divide(total[:-1], total[-1])
        start = 0
        for x in some:
            x.grad = ops.reshape(mean[start : start + x.size], tuple(x.shape))
            start += x.size


@no_grad()
def mean(x: Any, weight: Any = 1) -> Tensor:
    r"""Weighted mean of a value over the processes, to report it.

    It is :math:`\sum_r w_r x_r / \sum_r w_r`, and has no derivative: `average` is for gradients.

    Parameters
    ----------
    x : Tensor or array
        Floating, of the same shape and dtype on all processes: a loss, an accuracy.
    weight : number or Tensor
        Of this process, 0 or more. With weight 0 the value counts as zero, whatever it is.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``, the same on all processes.

    Raises
    ------
    TypeError
        If ``x`` is not floating.
    ValueError
        If the weight is negative.

    Notes
    -----
    Wengert's own.
    """
    held = ops.asarray(x)
    if not held.dtype.inexact:
        raise TypeError(f"mean takes a floating array, and not one of {held.dtype.name}")
    total = all_reduce(ops.concat([_weighted(held, weight), _scalar(held, weight)]))
    return ops.reshape(ops.divide(total[:-1], total[-1]), tuple(held.shape))


def _scalar(like: Tensor, weight: Any) -> Tensor:
    """A weight as an array of shape (1,) beside another."""
    if isinstance(weight, Tensor):
        return ops.reshape(ops.astype(weight, like.dtype), (1,))
    if weight < 0:
        raise ValueError(f"a weight is 0 or more, and not {weight!r}")
    return ops.full((1,), weight, dtype=like.dtype, device=device(like))


def _weighted(x: Tensor, weight: Any) -> Tensor:
    """The elements times the weight; zeros for weight 0, also where they are NaN."""
    flat = ops.reshape(x.detach(), (-1,))
    if isinstance(weight, Tensor):
        scale = _scalar(x, weight)
        return ops.where(ops.equal(scale, 0), ops.zeros_like(flat), ops.multiply(flat, scale))
    return ops.multiply(flat, weight) if weight != 0 else ops.zeros_like(flat)


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
