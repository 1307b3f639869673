"""Scans: a step that is repeated along an axis, with a state that each step passes on."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from operator import index
from typing import Any

from wengert import ops
from wengert.backends import generators
from wengert.func.arguments import _floating_array, _of_number, check_function, is_array
from wengert.func.checkpoint import checkpoint as recomputed
from wengert.func.trees import TreeDef, tree_flatten
from wengert.interpreters.namespaces import differentiable
from wengert.tape.grad_mode import no_grad
from wengert.tape.promotion import SCALARS, number_type
from wengert.tape.tensor import Tensor, with_node, wrapped

#: Runs a scan as one operation while a function is recorded: `wengert.compiler.loops`.
looping: ContextVar[Callable[..., Any] | None] = ContextVar("wengert_looping", default=None)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    state: Any,
    xs: Any = None,
    length: int | None = None,
    *,
    reverse: bool = False,
    checkpoint: bool | int = False,
) -> tuple[Any, Any]:
    """Call ``state, y = f(state, x)`` for each member ``x`` of a first axis.

    It is a Python loop, whose results are stacked. Inside `wengert.compile` the step is recorded
    once, and the program has a loop: it is compiled as fast for a thousand steps as for ten.

    Raises `ValueError` if lengths differ, or the state's structure, shapes or dtypes change;
    `TypeError` if ``f`` does not return a pair of trees of Tensors.

    Parameters
    ----------
    f : callable
        The step. What it closes over is differentiated, too.
    state : tree
        Tensors, arrays and numbers: the first state.
    xs : tree, optional
        Tensors and arrays with a first axis of one length.
    length : int, optional
        The number of steps, where there are no ``xs``.
    reverse : bool
        Whether the loop runs from the last member to the first. Results keep their places.
    checkpoint : bool or int
        Whether the backward pass computes the steps again, in segments of so many steps; True
        stands for the root of the length, which takes memory for twice as many steps.

    Returns
    -------
    state, ys
        The last state; and the trees ``y`` of all steps, stacked along a new first axis.

    Examples
    --------
    >>> def step(total, x):
    ...     total = total + x
    ...     return total, total**2
    >>> wg.scan(step, wg.asarray(0.0), wg.asarray([1.0, 2.0, 3.0]))
    (tensor(6.), tensor([ 1.,  9., 36.]))
    """
    check_function(f, "scan")
    given, structure = tree_flatten(state)
    raw, rows = tree_flatten(xs)
    leaves = _tensors(given, [*given, *raw], "the state", structure)
    members = [_member(x, f"xs{path}") for x, path in zip(raw, rows.paths(), strict=True)]
    count = _length({x.shape[0] for x in members}, length)
    step = Step(f, structure, rows, leaves)
    if not count:
        return _none(step, leaves, members)
    if reverse:
        members = [ops.flip(x, axis=0) for x in members]
    loop = None if checkpoint else looping.get()
    done = None if loop is None else loop(step, leaves, members, count)
    if done is None:
        size = math.isqrt(count - 1) + 1 if checkpoint is True else int(checkpoint)
        leaves, found = _run(step, leaves, members, count, size)
        done = leaves, [_stacked(y, at) for at, y in enumerate(zip(*found, strict=True))]
    leaves, ys = done
    if reverse:
        ys = [ops.flip(y, axis=0) for y in ys]
    return structure.unflatten(leaves), step.results.unflatten(ys)


def _member(x: Any, name: str) -> Tensor:
    """A Tensor of what has an axis of members."""
    if not isinstance(x, Tensor) and not is_array(x):
        raise TypeError(f"scan: {name} is a {type(x).__name__}, and should be a Tensor or an array")
    if not x.ndim:
        raise ValueError(f"scan: {name} has no axis to scan; close over what each step takes")
    return wrapped(x)


def _length(found: set[int], length: int | None) -> int:
    """The number of steps."""
    if length is not None:
        found = {*found, index(length)}
    if not found:
        raise ValueError("scan has neither xs nor a length: say how many steps there are")
    if len(found) > 1:
        raise ValueError(f"scan takes xs (and a length) of one length, not of {sorted(found)}")
    (count,) = found
    if count < 0:
        raise ValueError(f"scan can't make {count} steps")
    return count


def _tensors(
    values: Sequence[Any], beside: Sequence[Any], name: str, structure: TreeDef
) -> list[Tensor]:
    """Leaves as Tensors; numbers get the precision of the first floating array beside them."""
    if all(isinstance(x, Tensor) for x in values):
        return list(values)
    like, found = _floating_array(beside), list[Tensor]()
    for x, path in zip(values, structure.paths(), strict=True):
        if number_type(x) in (float, complex):
            found.append(_of_number(x, like))
        elif number_type(x) in SCALARS:
            found.append(ops.asarray(x))
        elif isinstance(x, Tensor) or is_array(x):
            found.append(wrapped(x))
        else:
            kind = type(x).__name__
            raise TypeError(f"scan: {name}{path} is a {kind}, and should be a Tensor or an array")
    return found


class Step:
    """A function of a scan, on leaves.

    Attributes
    ----------
    results : TreeDef
        The structure of what each step gives beside the state, once there was one.
    """

    results: TreeDef

    def __init__(
        self, f: Callable[..., Any], state: TreeDef, rows: TreeDef, leaves: Sequence[Tensor]
    ) -> None:
        self.f, self.state, self.rows = f, state, rows
        self.kinds = [(x.shape, x.dtype) for x in leaves]

    def __call__(
        self, leaves: Sequence[Tensor], members: Sequence[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        # New Tensors, which a step may change in place.
        state = self.state.unflatten([with_node(x._array, x._node) for x in leaves])
        returned = self.f(state, self.rows.unflatten(members))
        if not isinstance(returned, tuple) or len(returned) != 2:
            what = f"a tuple of {len(returned)}" if isinstance(returned, tuple) else returned
            raise TypeError(f"the function of a scan should return a pair (state, y), not {what!r}")
        after, structure = tree_flatten(returned[0])
        if structure != self.state:
            raise ValueError(
                f"the function of a scan gets the state {self.state} and returns {structure}: each "
                "step has to return a state like the one that it gets"
            )
        state = _tensors(after, leaves, "the state", structure)
        for path, x, (shape, dtype) in zip(structure.paths(), state, self.kinds, strict=True):
            if x.shape != shape or x.dtype is not dtype:
                raise ValueError(
                    f"scan: the state{path} begins as {dtype.name} of shape {tuple(shape)}, and a "
                    f"step returns {x.dtype.name} of shape {tuple(x.shape)}: begin with an array "
                    "of that kind (wg.astype, wg.broadcast_to), or return one of the first"
                )
        found, structure = tree_flatten(returned[1])
        known = vars(self).setdefault("results", structure)
        if structure != known:
            raise ValueError(f"scan: a step returns {structure} as y, and an earlier one {known}")
        return state, _tensors(found, leaves, "y", structure)


def _run(
    step: Step, state: Sequence[Tensor], xs: Sequence[Tensor], count: int, size: int
) -> tuple[Sequence[Tensor], list[Sequence[Tensor]]]:
    """The last state and the results of all steps, in checkpoints of some size, if not 0."""
    found: list[Sequence[Tensor]] = []
    if not size:
        for members in _members(xs, count):
            state, y = step(state, members)
            found.append(y)
        return state, found

    def segment(state: Sequence[Tensor], parts: Sequence[Tensor], steps: int) -> Any:
        return _run(step, state, parts, steps, 0)

    for start in range(0, count, size):
        parts = [x[start : start + size, ...] for x in xs]
        state, more = recomputed(segment, state, parts, min(size, count - start))
        found += more
    return state, found


def _members(xs: Sequence[Tensor], count: int) -> Iterator[Sequence[Tensor]]:
    return zip(*[ops.unstack(x, axis=0) for x in xs], strict=True) if xs else iter([()] * count)


def _stacked(parts: Sequence[Tensor], at: int) -> Tensor:
    """The results of all steps as one array."""
    if len(kinds := {(tuple(x.shape), x.dtype.name) for x in parts}) > 1:
        raise ValueError(f"scan: steps return y (leaf {at}) of several kinds: {sorted(kinds)}")
    return ops.stack(parts, axis=0)


def _none(step: Step, state: Sequence[Tensor], xs: Sequence[Tensor]) -> tuple[Any, Any]:
    """The answer of no steps: one on zeros tells the shapes of its results."""
    before = generators.get_rng_state()
    with no_grad():
        _, ys = step(state, [_zeros(x.shape[1:], x) for x in xs])
    generators.set_rng_state(before)
    empty = [_zeros((0, *y.shape), y) for y in ys]
    return step.state.unflatten(state), step.results.unflatten(empty)


def _zeros(shape: tuple[int, ...], like: Tensor) -> Tensor:
    return ops.zeros(shape, dtype=like.dtype, device=differentiable.device(like))
