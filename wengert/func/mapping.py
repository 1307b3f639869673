"""Maps: a function of one example, called once for a whole batch."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from weakref import ref

from wengert import ops
from wengert.backends import generators
from wengert.func.arguments import Call, check_function, is_array, named_like, precision_of
from wengert.func.trees import TreeDef, tree_flatten
from wengert.interpreters.batched import Batched, BatchExit, make_batch
from wengert.interpreters.levels import leave
from wengert.interpreters.lifted import Lifted, new_level
from wengert.ops.random import Map, drawing_in, maps
from wengert.tape.callbacks import call_back
from wengert.tape.node import tick
from wengert.tape.observers import Observer, observed_by
from wengert.tape.promotion import SCALARS, at_least, number_type
from wengert.tape.tensor import Tensor, wrap


def vmap(
    function: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0,
    chunk_size: int | None = None, randomness: str = "error",
) -> Callable[..., Any]:  # fmt: skip
    """Return a function that maps another over axes of its arguments, without a loop.

    The function is written for one example, and called once: its Tensors look like one member of
    the batch. Operations run for all members together; those without a batch rule for each in turn.
    Results are in the kind of the arguments, as of `jvp`. Transforms nest in any order.

    Parameters
    ----------
    in_axes, out_axes : int, None or tree
        The members' axis of the arguments' leaves, and of the results'; None for what members have
        in common. A tuple has one for each argument; those given by keyword have the first axis.
    chunk_size : int, optional
        How many members are computed at once, which bounds the memory; all by default.
    randomness : {"error", "different", "same"}
        Whether random numbers are refused, drawn for each member, or the same for all.

    Examples
    --------
    >>> wg.vmap(wg.grad(lambda x: x**2))(wg.asarray([1.0, 2.0]))
    tensor([2., 4.])
    """
    check_function(function, "vmap")
    check_chunk_size(chunk_size)
    if randomness not in ("error", "different", "same"):
        raise ValueError(f"randomness is 'error', 'different' or 'same', not {randomness!r}")

    @named_like(function)
    def mapping(*args: Any, **kwargs: Any) -> Any:
        given, structure = tree_flatten((args, kwargs))
        leaves = list(given)
        axes = [*_axes(in_axes, args, "in_axes"), *_axes(0, kwargs, "in_axes")]
        own = [i for i, at in enumerate(axes) if at is not None]
        for i in own:
            leaves[i] = _move(leaves[i], axes[i], f"argument{structure.paths()[i][3:]}")
        lengths = [leaves[i].shape[0] for i in own]
        if len({*lengths}) != 1:
            raise ValueError(f"vmap maps over axes of one length, and was given some of {lengths}")
        call = Call(function, args, kwargs, (), False, [], [], [], given, precision_of(given))
        step, chunks = chunk_size or max(lengths[0], 1), []
        state = generators.get_rng_state() if chunk_size and randomness == "same" else None
        for start in range(0, max(lengths[0], 1), step):
            if state is not None:
                generators.set_rng_state(state)
            size, level = min(step, lengths[0] - start), new_level()
            drawing = partial(drawing_in, (*maps.get(), Map(level, size, randomness)))
            out = BatchExit(level, tick(), size, drawing)
            part = list(leaves)
            for i in own:
                x = part[i] if size == lengths[0] else part[i][start:][:size]
                part[i] = make_batch(x, level)
            writes = Writes("vmap calls in chunks what changes" if step < lengths[0] else "")
            chunk, ends, shape = _run(call, structure.unflatten(part), out, out_axes, writes)
            chunks.append(chunk)
        results = [
            parts[0] if at is None or len(parts) == 1 else ops.concat(parts, axis=at)
            for parts, at in zip(zip(*chunks, strict=True), ends, strict=True)
        ]
        return call.answer(shape.unflatten(results))

    return mapping


def check_chunk_size(chunk_size: Any) -> None:
    """Raise if this is neither None nor a positive integer."""
    if chunk_size is None:
        return
    if not isinstance(chunk_size, int) or isinstance(chunk_size, bool):
        raise TypeError(f"chunk_size should be an integer or None, not {chunk_size!r}")
    if chunk_size < 1:
        raise ValueError(f"chunk_size should be positive, not {chunk_size}")


class Writes(Observer):
    """Tensors that get mapped values in place, or any values in one of several calls, ``again``."""

    def __init__(self, again: str = "") -> None:
        self.again, self.found = again, list[tuple[Any, Any, Any]]()

    def assigned(self, tensor: Tensor, result: Tensor) -> None:
        new, old = (isinstance(x._array, Lifted) for x in (result, tensor))
        if self.again or new > old:
            self.found.append((ref(tensor), tensor._array, tensor._node))

    def replaced(self, module: Any, name: str) -> None:
        if self.again:
            raise RuntimeError(f"{self.again} the buffer {name}: running averages are for eval()")

    def check(self, results: Sequence[Tensor] = ()) -> None:
        """Make Tensors that outlive the function what they were, and raise."""
        inner, shape = {*map(id, results)}, None
        for held, array, node in reversed(self.found):
            x = held()
            mapped = x is not None and isinstance(x._array, Lifted)
            if x is not None and (self.again or mapped) and id(x) not in inner:
                x._array, x._node, shape = array, node, tuple(x.shape)
        if shape is not None:
            raise RuntimeError(
                f"{self.again or 'inside vmap mapped values were written into'} a Tensor of shape "
                f"{shape} that outlives the function: return them; running averages are for eval()"
            )


def _run(
    call: Call, inputs: Any, out: BatchExit, out_axes: Any, writes: Writes
) -> tuple[Any, Any, TreeDef]:
    """Call the function once: results with the members' axis in front, their axes, and tree."""
    with out.sweeping(), observed_by(writes), at_least(call.precision):
        returned = call_back(call.function, *inputs[0], **inputs[1])
        leaves, structure = tree_flatten(returned)
        names = [f"the result{path} of the mapped function" for path in structure.paths()]
        numbers = [ops.asarray(y) if number_type(y) in SCALARS else y for y in leaves]
        results = [_move(y, None, name) for y, name in zip(numbers, names, strict=True)]
    writes.check(results)
    axes = _axes(out_axes, returned, "out_axes")
    left = iter(leave([y for y, at in zip(results, axes, strict=True) if at is not None], out))
    for i, (y, at) in enumerate(zip(results, axes, strict=True)):
        if at is not None:
            results[i] = _move(next(left)[0], at, names[i], front=False)
        elif isinstance(y._array, Batched) and y._array.level == out.level:
            raise ValueError(f"{names[i]} differs between members; its out_axes is None")
    return results, axes, structure


def _axes(axes: Any, tree: Any, what: str) -> list[Any]:
    """The entry of each leaf of a tree, of a tree of entries that begins as it does."""
    axes = tuple(axes) if isinstance(axes, list) and isinstance(tree, tuple) else axes
    entries, structure = tree_flatten(axes, lambda x: x is None)
    for entry in entries:
        if isinstance(entry, bool) or not (entry is None or hasattr(entry, "__index__")):
            raise TypeError(f"{what} has integers, None, and trees of these, and not {entry!r}")
    parts = structure.flatten_up_to(tree, f"what {what} is for")
    return [at for at, part in zip(entries, parts, strict=True) for _ in tree_flatten(part)[0]]


def _move(x: Any, axis: int | None, name: str, front: bool = True) -> Tensor:
    """A Tensor of an array with an axis moved to the front, or with the first one moved there."""
    if not isinstance(x, Tensor) and not is_array(x):
        raise TypeError(f"{name} is a {type(x).__name__}, and no array (in_axes may be None)")
    x = wrap(x)
    if axis is not None and not -x.ndim <= axis < x.ndim:
        raise ValueError(f"{name} has shape {tuple(x.shape)}, and no axis {axis}")
    return ops.moveaxis(x, *((axis, 0) if front else (0, axis))) if axis else x
