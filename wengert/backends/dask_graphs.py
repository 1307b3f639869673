"""What is in dask's graphs: data, and what is to be computed again instead of being held."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import numpy as np

__all__ = ["data", "recomputing"]

#: The annotation of layers that are made while a function is run again. It never reaches a
#: scheduler: copies have none.
_MARK = "wengert-recomputed"


def data(array: Any) -> np.ndarray[Any, Any] | None:
    """The values of an array that its graph has in memory; None where they are to be computed."""
    from dask._task_spec import DataNode
    from dask.array.core import slices_from_chunks
    from dask.highlevelgraph import MaterializedLayer

    layer = array.dask.layers.get(array.name)
    if not isinstance(layer, MaterializedLayer) or array.dask.dependencies[array.name]:
        return None
    found = [x.value if isinstance(x, DataNode) else x for x in map(layer.get, _keys(array))]
    if not all(isinstance(x, np.ndarray) for x in found):
        return None
    if len(found) == 1:
        return np.asarray(found[0])
    out = np.empty(array.shape, array.dtype)
    for place, values in zip(slices_from_chunks(array.chunks), found, strict=True):
        out[place] = values
    return out


def _keys(array: Any) -> list[Any]:
    from dask.core import flatten

    return list(flatten(array.__dask_keys__()))


@contextmanager
def recomputing() -> Iterator[Callable[[Any], Any]]:
    """Give a function that copies the graphs of arrays made in the context, under keys of its own.

    Dask computes equal keys once and holds what has uses left, so that a recomputation under the
    first run's keys would be none. Copied are the layers made in the context, and of what they
    begin with the layers that come chunk by chunk from sources: chunks that are read, drawn or
    transformed again need not stay either. Shared are other layers before the context, data in
    memory, and reductions to the size of a chunk: to compute the mean again for ``exp(x) / mean``
    would be to hold all of ``exp(x)`` again.
    """
    import dask

    seed = uuid4().hex
    copies: dict[str, str] = {}  # name -> name of the copy, or the same where it is shared
    made: dict[str, Any] = {}
    with dask.annotate(**{_MARK: seed}):
        yield lambda array: _copy_of(array, seed, copies, made)


def _copy_of(array: Any, seed: str, copies: dict[str, str], made: dict[str, Any]) -> Any:
    from dask.array import Array
    from dask.base import clone_key
    from dask.highlevelgraph import HighLevelGraph

    layers, dependencies = array.dask.layers, array.dask.dependencies
    for name in _upwards(array.name, dependencies, copies):
        if _is_made_anew(name, layers, dependencies, seed, copies):
            copies[name] = clone_key(name, seed)
            made[name] = _copy(name, layers, dependencies[name], seed, copies)
        else:
            copies[name] = name
    if copies[array.name] == array.name:
        return array
    new, needs, stack = {}, {}, [(array.name, copies[array.name])]
    while stack:
        name, copy = stack.pop()
        if copy not in new:
            copied = copy != name
            new[copy] = made[name] if copied else layers[name]
            below = [(d, copies[d] if copied else d) for d in dependencies[name]]
            needs[copy] = {d for _, d in below}
            stack += below
    return Array(HighLevelGraph(new, needs), copies[array.name], array.chunks, meta=array._meta)


def _upwards(name: str, dependencies: Any, known: Any) -> Iterator[str]:
    """A layer and what it depends on, each after its own dependencies; none that is known."""
    stack, seen = [(name, False)], set()
    while stack:
        name, ready = stack.pop()
        if ready:
            yield name
        elif name not in seen and name not in known:
            seen.add(name)
            stack.append((name, True))
            stack += [(d, False) for d in dependencies[name]]


def _is_made_anew(
    name: str, layers: Any, dependencies: Any, seed: str, copies: dict[str, str]
) -> bool:
    """Whether the context has made a layer, or it comes chunk by chunk from sources."""
    layer, needs = layers[name], dependencies[name]
    below = [layers[d] for d in needs]
    if (layer.annotations or {}).get(_MARK) == seed:
        return _is_by_chunk(layer, below) or not _is_small(layer, below)
    # A copy is not copied again: in a loop, each step would double the graph.
    if _MARK in (layer.collection_annotations or {}):
        return False
    # What needs nothing and is not copied is data in memory.
    return all(copies[d] != d or not dependencies[d] for d in needs) and _is_by_chunk(layer, below)


def _is_by_chunk(layer: Any, needs: list[Any]) -> bool:
    """Whether each chunk of a layer is computed, from one chunk of each array at most."""
    from dask._task_spec import Task
    from dask.blockwise import Blockwise

    if isinstance(layer, Blockwise):
        kept = set(layer.output_indices)
        return all(kept.issuperset(indices or ()) for _, indices in layer.indices)
    tasks = _tasks(layer, needs)
    if not needs:
        return len(tasks) == len(layer) and all(isinstance(t, Task) for t in tasks.values())
    return all(len(task.dependencies) <= 1 for task in tasks.values())


def _is_small(layer: Any, needs: list[Any]) -> bool:
    """Whether a whole array is no larger than a chunk of what it is made of."""
    size = _size(layer, "shape")
    return any(size <= _size(one, "chunksize") for one in needs)  # false of an unknown size, nan


def _size(layer: Any, key: str) -> float:
    """How many elements a layer's array has, or its largest chunk; nan if that is not known."""
    return float(math.prod((layer.collection_annotations or {}).get(key, (math.nan,))))


def _tasks(layer: Any, needs: list[Any]) -> dict[Any, Any]:
    """The tasks of a layer, which may refer to those of the layers that it needs."""
    from dask._task_spec import convert_legacy_graph

    keys = {key for one in needs for key in one.get_output_keys()}
    tasks: dict[Any, Any] = convert_legacy_graph(dict(layer), {*layer, *keys})
    return tasks


def _copy(name: str, layers: Any, needs: Any, seed: str, copies: dict[str, str]) -> Any:
    """A layer under other keys, which refers to the copies of those below that have one."""
    from dask.base import clone_key
    from dask.blockwise import Blockwise
    from dask.highlevelgraph import MaterializedLayer

    layer = layers[name]
    own = [layer, *[layers[d] for d in needs if copies[d] != d]]
    keys = {key for one in own for key in one.get_output_keys()}
    if isinstance(layer, Blockwise):
        copy, _ = layer.clone(keys, seed)
    else:  # not `Layer.clone`, which leaves the keys inside of tasks as they are
        new = {key: clone_key(key, seed) for key in keys}
        tasks = _tasks(layer, [layers[d] for d in needs])
        copy = MaterializedLayer({new[k]: t.substitute(new, key=new[k]) for k, t in tasks.items()})
    # Neither tells a scheduler anything: with annotations, layers would not be fused.
    copy.annotations = {k: v for k, v in (layer.annotations or {}).items() if k != _MARK} or None
    copy.collection_annotations = {**(layer.collection_annotations or {}), _MARK: True}
    return copy
