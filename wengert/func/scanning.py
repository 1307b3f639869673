"""Scans: a step that is repeated along an axis, with a state that each step passes on."""

import math
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from operator import index
from typing import Any

import numpy as np

from wengert import ops
from wengert.backends import Backend
from wengert.func.arguments import check_function
from wengert.func.checkpoint import checkpoint as recomputed
from wengert.func.trees import TreeDef, tree_flatten, tree_leaves
from wengert.tape.tensor import Tensor, untracked, with_node, wrap

_Place = tuple[Backend, Any] | None

#: Runs a scan as one operation while a function is recorded: `wengert.compiler.capture`.
looping: ContextVar[Callable[..., Any] | None] = ContextVar("wengert_looping", default=None)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    state: Any,
    xs: Any = None,
    length: int | None = None,
    *,
    checkpoint: bool | int = False,
) -> tuple[Any, Any]:
    """Call ``state, y = f(state, x)`` for each member ``x`` of a first axis.

    It is a Python loop. Inside `wengert.compile` equal steps become a loop of the program. What the
    step closes over is differentiated, too.

    Raises `ValueError` if there are no steps, if lengths differ, or if structures, shapes or dtypes
    change from step to step; `TypeError` if ``f`` does not return a pair.

    Parameters
    ----------
    f : callable
        The step, of trees of Tensors.
    state : tree
        Of Tensors, arrays or numbers, of the dtypes that steps return.
    xs : tree, optional
        Of Tensors or arrays with a first axis of one length. `wengert.flip` reverses them.
    length : int, optional
        The number of steps, where there are no ``xs``.
    checkpoint : bool or int
        Whether the backward pass computes steps again, in segments of so many; True stands for the
        root of their number.

    Returns
    -------
    state, ys
        The last state, and the trees ``y`` of all steps, stacked along a new first axis.

    Examples
    --------
    >>> def step(total, x):
    ...     total = total + x
    ...     return total, total**2
    >>> wg.scan(step, 0.0, wg.asarray([1.0, 2.0, 3.0]))
    (tensor(6.), tensor([ 1.,  9., 36.]))
    """
    check_function(f, "scan")
    # Numbers belong to the library of the arrays.
    arrays = (wrap(x) for x in tree_leaves((xs, state)) if hasattr(x, "dtype"))
    place = next(map(_place, arrays), None)
    (leaves, structure), (members, rows) = _flat(state, place), _flat(xs, place)
    lengths = {x.shape[0] if x.ndim else 0 for x in members}
    lengths |= set() if length is None else {_integer("length", length)}
    if len(lengths) != 1 or min(lengths) < 1:
        raise ValueError(
            "scan takes xs with first axes of one length, or a length, which is at least 1, and "
            f"found {sorted(lengths)}"
        )
    size = checkpoint if isinstance(checkpoint, bool) else _integer("checkpoint", checkpoint)
    if size < 0:
        raise ValueError(f"scan: checkpoint={checkpoint} is no number of steps")
    (count,) = lengths
    known: dict[str, Any] = {"the state": (structure, _kinds(leaves))}

    def step(leaves: Sequence[Tensor], members: Sequence[Tensor]) -> Any:
        # New Tensors, which a step may change in place.
        given = structure.unflatten([with_node(x._array, x._node) for x in leaves])
        returned: Any = f(given, rows.unflatten(members))
        if not isinstance(returned, tuple) or len(returned) != 2:
            what = type(returned).__name__
            raise TypeError(f"the step of a scan should return a pair (state, y), not a {what}")
        found = [_flat(tree, place) for tree in returned]
        for name, (leaves, tree) in zip(("the state", "y"), found, strict=True):
            now = tree, _kinds(leaves)
            if now != (before := known.setdefault(name, now)):
                shown = [f"{t if t.cls else 'one leaf'} with {kinds}" for t, kinds in (now, before)]
                raise ValueError(
                    f"scan: {name} of a step is {shown[0]}, and {shown[1]} before it. It has one "
                    "structure, and leaves of one shape and dtype: begin with such a state "
                    "(wg.astype, wg.broadcast_to)"
                )
        return found[0][0], found[1][0]

    loop = None if size else looping.get()
    done = None if loop is None else loop(step, leaves, members, count)
    if done is None:
        size = math.isqrt(count - 1) + 1 if size is True else int(size)
        last, found = _run(step, leaves, members, count, size)
        done = last, [ops.stack(parts, axis=0) for parts in zip(*found, strict=True)]
    return structure.unflatten(done[0]), known["y"][0].unflatten(done[1])


def _integer(name: str, value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"scan: {name}={value!r} is no whole number") from None


def _flat(tree: Any, place: _Place) -> tuple[list[Tensor], TreeDef]:
    leaves, structure = tree_flatten(tree)
    return [wrap(x) if hasattr(x, "dtype") else _number(x, place) for x in leaves], structure


def _place(x: Tensor) -> _Place:
    return x.backend, x.backend.beside(x._array)


def _number(x: Any, place: _Place) -> Tensor:
    made = ops.asarray(x)
    if place in (None, _place(made)):
        return made
    return untracked(place[0].from_numpy(np.asarray(x, made.dtype.name), place[1]))


def _kinds(leaves: Sequence[Tensor]) -> list[str]:
    return [f"{x.dtype.name}{list(x.shape)}" for x in leaves]


def _run(step: Any, state: Any, xs: Sequence[Tensor], count: int, size: int = 0) -> Any:
    """The last state and the results of all steps, in checkpoints of some size, if not 0."""
    found: list[list[Tensor]] = []
    if size:
        for at in range(0, count, size):
            parts = [x[at : at + size, ...] for x in xs]
            state, more = recomputed(_run, step, state, parts, min(size, count - at))
            found += more
        return state, found
    rows = [*zip(*[ops.unstack(x, axis=0) for x in xs], strict=True)] or [()] * count
    for members in rows:
        state, y = step(state, members)
        found.append(y)
    return state, found
