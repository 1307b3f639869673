"""Maps: a function of one example, called once for a whole batch."""

from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import ref

from wengert import ops
from wengert.backends import generators
from wengert.func.arguments import Call, check_function, is_array, named_like, precision_of
from wengert.func.jacobians import check_chunk_size
from wengert.func.trees import TreeDef, tree_flatten
from wengert.interpreters.batched import Batched, BatchExit, make_batch
from wengert.interpreters.levels import leave
from wengert.interpreters.lifted import Lifted, new_level
from wengert.ops.random import Map, drawing_in, maps
from wengert.tape.callbacks import call_back
from wengert.tape.node import tick
from wengert.tape.observers import Observer, observed_by
from wengert.tape.promotion import SCALARS, at_least, number_type
from wengert.tape.tensor import Tensor, wrapped


def vmap(
    function: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> Callable[..., Any]:
    """Return a function that maps another over axes of its arguments, without a loop.

    The function is written for one example, and called once: its Tensors look like one member of
    the batch, and operations run for all members together; those without a batch rule for each in
    turn. Results are in the kind of the arguments, as of `jvp`. Transforms nest with it in any
    order: ``vmap(grad(loss), in_axes=(None, 0, 0))`` gives gradients per example.

    Raises `ValueError` if axes or lengths do not fit, or nothing is mapped; `TypeError` if a mapped
    leaf, or a result, is no array. Inside, `TypeError` if Python asks for the value of a mapped
    Tensor, as ``if`` does, and `RuntimeError` if random numbers are drawn without leave.

    Parameters
    ----------
    in_axes : int, None or tuple
        The axis of the arguments' leaves to map over; None for those that all members have in
        common. A tuple has one for each argument, or a tree of these that begins as it does.
        Arguments given by keyword are mapped over their first axis.
    out_axes : int, None or tree
        Where results have the members' axis. None is for those that do not depend on the member.
    chunk_size : int, optional
        How many members are computed at once, which bounds the memory; all by default.
    randomness : {"error", "different", "same"}
        Whether random numbers are refused, drawn for each member, or the same for all.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert as wg
    >>> x = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> wg.vmap(wg.grad(lambda x: wg.sum(x**2)))(x)
    array([[2., 4.],
           [6., 8.]])
    """
    check_function(function, "vmap")
    check_chunk_size(chunk_size)
    if randomness not in ("error", "different", "same"):
        raise ValueError(f"randomness is 'error', 'different' or 'same', not {randomness!r}")

    @named_like(function)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree_flatten((args, kwargs))
        axes = [*_axes(in_axes, args, "in_axes"), *_axes(0, kwargs, "in_axes")]
        given, lengths = _fronts(leaves, axes, structure.paths())
        if len({*lengths.values()}) != 1:
            raise ValueError(f"vmap needs axes of one length to map over, and was given {lengths}")
        count = next(iter(lengths.values()))
        call = Call(function, args, kwargs, (), False, [], [], [], leaves, precision_of(leaves))
        step = chunk_size or max(count, 1)
        draws = generators.get_rng_state() if step < count and randomness == "same" else None
        chunks = []
        for start in range(0, max(count, 1), step):
            if start and draws is not None:
                generators.set_rng_state(draws)
            stop = min(start + step, count)
            level = new_level()
            inside = (*maps.get(), Map(level, stop - start, randomness))
            out = BatchExit(level, tick(), stop - start, partial(drawing_in, inside))
            part = [
                x if at is None else make_batch(x if step >= count else x[start:stop], out.level)
                for x, at in zip(given, axes, strict=True)
            ]
            chunk, places, shape = _run(call, structure.unflatten(part), out, out_axes)
            chunks.append(chunk)
        return call.answer(shape.unflatten(map(_joined, zip(*chunks, strict=True), places)))

    return mapped


class _Writes(Observer):
    """Tensors that take over mapped values in place, with their arrays before."""

    def __init__(self) -> None:
        self.found: list[tuple[Any, Any]] = []

    def assigned(self, tensor: Tensor, result: Tensor) -> None:
        if isinstance(result._array, Lifted) and not isinstance(tensor._array, Lifted):
            self.found.append((ref(tensor), tensor._array))

    def check(self, results: list[Tensor]) -> None:
        """Give Tensors that outlive the function their arrays again, and raise."""
        alive = [(x, array) for held, array in self.found if (x := held()) is not None]
        inner = {*map(id, results)}
        stale = [(x, a) for x, a in alive if isinstance(x._array, Lifted) and id(x) not in inner]
        for x, array in reversed(stale):
            x._array = array
        if stale:
            raise RuntimeError(
                f"inside vmap mapped values were written into a Tensor of shape "
                f"{tuple(stale[0][0].shape)} that is not mapped, and outlives the function: return "
                "them; running averages are for eval() or track_running_stats=False"
            )


def _run(
    call: Call, inputs: Any, out: BatchExit, out_axes: Any
) -> tuple[list[Tensor], list[Any], TreeDef]:
    """Call the function once: its results with the members' axis in front, their places, and tree.

    A result whose place is None is as it is.
    """
    args, kwargs = inputs
    writes = _Writes()
    with out.sweeping(), observed_by(writes), at_least(call.precision):
        returned = call_back(call.function, *args, **kwargs)
        leaves, structure = tree_flatten(returned)
        paths = structure.paths()
        results = [_result(y, path) for y, path in zip(leaves, paths, strict=True)]
    writes.check(results)
    places = _axes(out_axes, returned, "out_axes")
    left = iter(leave([y for y, at in zip(results, places, strict=True) if at is not None], out))
    for i, (y, at) in enumerate(zip(results, places, strict=True)):
        array = y._array
        if at is not None:
            (results[i],) = next(left)
            _check_axis(at, results[i], f"the result{paths[i]} with the members' axis")
        elif isinstance(array, Batched) and array.level == out.level:
            raise ValueError(f"the result{paths[i]} differs between members; its out_axes is None")
    return results, places, structure


def _result(y: Any, path: str) -> Tensor:
    if isinstance(y, Tensor):
        return y
    if number_type(y) in SCALARS or is_array(y):
        return ops.asarray(y)
    raise TypeError(f"the result{path} of vmap's function is a {type(y).__name__}, and no array")


def _joined(chunks: tuple[Tensor, ...], place: int | None) -> Tensor:
    """A result of all chunks, with the members' axis in its place."""
    if place is None:
        return chunks[0]
    whole = chunks[0] if len(chunks) == 1 else ops.concat(chunks)
    return ops.moveaxis(whole, 0, place) if place else whole


def _axes(axes: Any, tree: Any, what: str) -> list[Any]:
    """The entry of each leaf of a tree, of a tree of entries that begins as it does."""
    if isinstance(axes, list) and isinstance(tree, tuple):
        axes = tuple(axes)
    entries, structure = tree_flatten(axes, lambda x: x is None)
    for entry in entries:
        if isinstance(entry, bool) or not (entry is None or hasattr(entry, "__index__")):
            raise TypeError(f"{what} has integers, None, and trees of these, and not {entry!r}")
    parts = structure.flatten_up_to(tree, f"what {what} is for")
    pairs = zip(entries, parts, strict=True)
    return [entry for entry, part in pairs for _ in tree_flatten(part)[0]]


def _fronts(
    leaves: list[Any], axes: list[Any], paths: list[str]
) -> tuple[list[Any], dict[str, int]]:
    """The leaves, as Tensors with the axis in front where they are mapped; and these' lengths."""
    found, lengths = [], {}
    for x, axis, path in zip(leaves, axes, paths, strict=True):
        if axis is not None:
            name = f"argument{path[3:]}"
            if not isinstance(x, Tensor) and not is_array(x):
                raise TypeError(
                    f"{name} is a {type(x).__name__}, and has no axis to map over: give an "
                    "array, or None for it in in_axes"
                )
            x = wrapped(x)
            _check_axis(axis, x, name)
            x = ops.moveaxis(x, axis, 0) if axis else x
            lengths[name] = x.shape[0]
        found.append(x)
    return found, lengths


def _check_axis(axis: int, x: Tensor, what: str) -> None:
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"{what} has shape {tuple(x.shape)}, and no axis {axis}")
