"""Training by parts of batches: one model on all processes, and each one's rows."""

import json
from collections.abc import Iterable, Iterator
from hashlib import blake2b, file_digest
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from wengert.compiler import messages
from wengert.distributed.collectives import broadcast
from wengert.func.trees import tree_leaves, tree_map
from wengert.nn.module import Module
from wengert.optim.optimizer import Optimizer
from wengert.storage.checkpoints import Holder, holder_of, read_states, write_states
from wengert.storage.description import describe
from wengert.tape.grad_mode import no_grad
from wengert.tape.leaving import warn
from wengert.tape.tensor import Tensor

__all__ = ["load", "replicate", "save", "shard"]

M = TypeVar("M", bound=Module)
T = TypeVar("T")


@no_grad()
def replicate(model: M, *optimizers: Optimizer) -> M:
    """Give a model on all processes the parameters and buffers that it has on rank 0.

    The model changes in place and is returned. Before anything moves, names, shapes, dtypes and
    ``requires_grad`` are compared, and settings and states of optimisers, which do not move.
    Raises `ValueError` on all processes if they differ: with the first name, and what each rank has
    there. PyTorch: ``torch.nn.parallel.DistributedDataParallel``, when it is made.

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
    own = {
        name: f"{x.dtype.name} of shape {tuple(x.shape)}"
        + ("" if x.requires_grad or not x.dtype.inexact else ", without requires_grad")
        for name, x in held.items()
    }
    for i, optimizer in enumerate(optimizers):
        kind, own[kind] = f"optimizer {i}", type(optimizer).__name__
        own[f"the state of {kind}"] = _digest(optimizer.state_dict()["state"])
        for j, group in enumerate(optimizer.param_groups):
            settings = {f"{kind}, group {j}, {key}": value for key, value in group.items()}
            own |= {key: _setting(value) for key, value in settings.items()}
    texts = messages.carrier_for("replicate").texts("replicate", json.dumps(own))
    for name, found in _differences([json.loads(each) for each in texts]).items():
        ranks = "; ".join(f"rank {rank}: {what}" for rank, what in enumerate(found))
        raise ValueError(
            f"the processes differ in {name}: {ranks}. Make model and optimizer by the same code, "
            "with the same sizes and settings, on all"
        )
    for x in held.values():
        x._array = broadcast(x.detach())._array
    return model


def _differences(every: list[dict[str, str]]) -> dict[str, list[str]]:
    """By name, what the processes have where they differ."""
    found = {
        name: [each.get(name, "no such name") for each in every] for each in every for name in each
    }
    return {name: texts for name, texts in found.items() if len({*texts}) > 1}


def _setting(value: Any) -> str:
    """A setting of an optimiser in words; of its parameters, how many there are."""
    value = value.tolist() if isinstance(value, Tensor) else value
    value = float(value) if type(value) is int else value
    return f"{len(value)} parameters" if isinstance(value, list) else repr(value)


def shard(batches: Iterable[T]) -> Iterator[T]:
    """Yield this process's rows of batches that all processes make alike.

    Of a batch of n rows rank r has those from n·r/size to n·(r + 1)/size, rounded down: shares
    differ by one row at most, and all processes make the same number of steps. A share may be empty
    where a batch has fewer rows than there are processes.

    Batches are trees of Tensors and arrays of one length, as a `wengert.data.DataLoader` gives
    them, and the same on all processes: shuffle with the same seed. Raises `ExchangeError` if other
    processes have more or fewer batches, and `ValueError` if the first ones differ, or a batch has
    no arrays, or arrays of several lengths. PyTorch: ``torch.utils.data.DistributedSampler``, which
    repeats rows instead.

    Examples
    --------
    >>> import wengert.distributed as wd
    >>> wd.init()
    >>> list(wd.shard([wg.ones((4, 2)), wg.ones((4, 2))]))[0].shape
    (4, 2)
    """
    carrier = messages.carrier_for("shard")
    count = 0
    for batch in batches:
        shapes = [getattr(x, "shape", ()) for x in tree_leaves(batch)]
        if len({*(lengths := [tuple(shape)[:1] for shape in shapes])}) != 1 or () in lengths:
            raise ValueError(f"shard divides the rows of arrays, and a batch has shapes {shapes}")
        ((n,), *_) = lengths
        if not count and len({*carrier.texts("the first batch of shard", _digest(batch))}) > 1:
            raise ValueError(
                "shard takes rows of batches that all processes make alike, and the first batches "
                "of the processes differ: shuffle by DataLoader(..., generator=seed)"
            )
        start, stop = (n * r // carrier.size for r in (carrier.rank, carrier.rank + 1))
        count += 1
        yield tree_map(lambda x, start=start, stop=stop: x[start:stop, ...], batch)
    carrier.texts(f"the end of shard, after {count} batches", "")


def _digest(batch: Any) -> str:
    found = blake2b(digest_size=8)
    for x in tree_leaves(batch):
        array = np.asarray(x.detach().numpy() if isinstance(x, Tensor) else x)
        found.update(repr(x).encode() if array.dtype.hasobject else array.tobytes())
    return found.hexdigest()


def _same(held: Any, holder: Holder | None) -> str:
    """A digest of what all processes have alike: of modules no buffers, such as running means."""
    if isinstance(held, Module):
        return _digest([*held.parameters()])
    return _digest(holder.get() if holder else held)


def save(path: str | PathLike[str], /, **states: Any) -> None:
    """Write a checkpoint on rank 0, by `wengert.save`, while the other processes wait.

    States are those of rank 0, but of generators, ``generator=True`` among them, those of all
    processes. A warning names states and values that differ, buffers apart. The file is replaced
    whole or not at all. Raises `RuntimeError` where rank 0 can't write, and `ValueError` if names
    differ.

    Examples
    --------
    >>> import wengert.distributed as wd
    >>> from tempfile import TemporaryDirectory
    >>> wd.init()
    >>> model = wg.nn.Linear(2, 1)
    >>> with TemporaryDirectory() as folder:
    ...     wd.save(f"{folder}/run.safetensors", model=model, generator=True, epoch=3)
    ...     wd.load(f"{folder}/run.safetensors", model=model, generator=True)
    {'epoch': 3}
    """
    carrier = messages.carrier_for("save")
    holders = {key: holder_of(key, value) for key, value in states.items()}
    own = {key: holder.get() for key, holder in holders.items() if holder and holder.random}
    arrays: dict[str, Any] = {}
    described = {key: describe(x, f"{key}.{carrier.rank}", arrays) for key, x in own.items()}
    hosted = {name: (x.dtype.str, x.shape, x.tobytes().hex()) for name, x in arrays.items()}
    same = {key: "" if key in own else _same(states[key], x) for key, x in holders.items()}
    texts = carrier.texts("save", json.dumps([described, hosted, same]))
    every = [json.loads(each) for each in texts]
    if differ := _differences([each for *_, each in every]):
        what = f"save: the processes differ in {', '.join(differ)}"
        if any("no such name" in each for each in differ.values()):
            raise ValueError(what)
        warn(f"{what}; rank 0's are written")
    failed: Exception | None = None
    if carrier.rank == 0:
        content = [[key, "ranks", [each[key] for each, _, _ in every]] for key in own]
        for _, more, _ in every:
            for name, (dtype, shape, held) in more.items():
                arrays[name] = np.frombuffer(bytes.fromhex(held), dtype).reshape(shape)
        try:
            rest = {key: value for key, value in states.items() if key not in own}
            write_states(fspath(path), rest, content, arrays)
        except Exception as error:
            failed = error
    first = carrier.texts("save", f"{type(failed).__name__}: {failed}" if failed else "")[0]
    if first:
        raise failed or RuntimeError(f"rank 0 could not write {path}: {first}")


def load(path: str | PathLike[str], /, **objects: Any) -> dict[str, Any]:
    """Read a checkpoint on each process, as `wengert.load` does, and its own generators' states.

    Raises `ValueError` as `wengert.load`, if processes see different files, and where generators
    are to be loaded on more or fewer processes than have saved them.

    Examples
    --------
    >>> import wengert.distributed as wd
    >>> from tempfile import TemporaryDirectory
    >>> wd.init()
    >>> optimizer = wg.optim.SGD([wg.nn.Parameter(wg.ones(2))], lr=0.1)
    >>> with TemporaryDirectory() as folder:
    ...     wd.save(f"{folder}/run.safetensors", optimizer=optimizer, epoch=3)
    ...     wd.load(f"{folder}/run.safetensors", optimizer=optimizer)
    {'epoch': 3}
    """
    carrier, failed = messages.carrier_for("load"), None
    try:
        with Path(path).open("rb") as file:
            text = f"{file_digest(file, 'blake2b').hexdigest()} {sorted(objects)}"
    except OSError as error:
        failed, text = error, f"{type(error).__name__}: {error}"
    if len({*carrier.texts("load", text)}) > 1 or failed:
        other = f"{path}: another file, or other names, on other processes; nothing was loaded"
        raise failed or ValueError(other)
    return read_states(fspath(path), objects, process=(carrier.rank, carrier.size))
