"""Batch rules: how primitives run once for a whole batch, with the batch axis in front.

A primitive's row has its rule, ``batch``. It takes the application
(`wengert.interpreters.batched.Application`) and the inner arrays, of which the batched ones have
the batch axis, and returns results with that axis. Here are the rules of families. A primitive
without a rule runs in a loop over the members.
"""

from collections.abc import Callable, Sequence
from typing import Any

Rule = Callable[..., Any]


def by_composite(call: Any, *inputs: Any, **parameters: Any) -> Any:
    """Marks a primitive whose composite runs on batched arrays; never called."""
    raise NotImplementedError


def elementwise(call: Any, *inputs: Any, **parameters: Any) -> Any:
    """Rule of an elementwise function."""
    positions = [i for i, x in enumerate(inputs) if hasattr(x, "shape")]
    rank = max([call.rank(i) for i in positions])
    aligned = list(inputs)
    for i in positions:
        aligned[i] = call.with_rank(i, rank)
    return call.run(*aligned, **parameters)


def as_it_is(call: Any, *inputs: Any, **parameters: Any) -> Any:
    """Rule of a function of one array that is elementwise, or acts on the last axes."""
    return call.run(*inputs, **parameters)


def shift_axes(axis: int | Sequence[int], rank: int) -> Any:
    """An axis, or several, counted with the batch axis."""
    if isinstance(axis, int):
        return (axis + rank if axis < 0 else axis) + 1
    return tuple([shift_axes(one, rank) for one in axis])


def over_axes(**defaults: Any) -> Rule:
    """Rule of a reduction over axes, all by default."""

    def rule(call: Any, x: Any, *, axis: Any = None, **parameters: Any) -> Any:
        rank = call.rank(0)
        axes = range(rank) if axis is None else (axis,) if isinstance(axis, int) else axis
        return call.run(x, axis=shift_axes(axes, rank), **{**defaults, **parameters})

    return rule


def along(**defaults: Any) -> Rule:
    """Rule of a function along given axes."""

    def rule(call: Any, x: Any, *, axis: Any = -1, **parameters: Any) -> Any:
        return call.run(x, axis=shift_axes(axis, call.rank(0)), **{**defaults, **parameters})

    return rule


def alone(position: int, **defaults: Any) -> Rule:
    """Rule of a function that runs once if one certain input alone is batched, else in a loop."""

    def rule(call: Any, *inputs: Any, **parameters: Any) -> Any:
        once = call.own[position] and sum(call.own) == 1
        return (call.run if once else call.each)(*inputs, **{**defaults, **parameters})

    return rule


def pairwise(call: Any, x1: Any, x2: Any, *, axis: int = -1) -> Any:
    """Rule of a function along one axis, counted from the end, of two arrays that broadcast."""
    rank = max(call.rank(0), call.rank(1))
    from_end = axis if axis < 0 else axis - call.rank(0)
    return call.run(call.with_rank(0, rank), call.with_rank(1, rank), axis=from_end)


def by_labels(call: Any, x1: Any, x2: Any, subscripts: tuple[str, str, str]) -> Any:
    """The product of two arrays by labels of axes; the batch axis gets a label of its own."""
    member = chr(max(map(ord, "".join(subscripts)), default=ord("a")) + 1)
    first, second, result = subscripts
    labels = (
        member + first if call.own[0] else first,
        member + second if call.own[1] else second,
        member + result,
    )
    return call.xp.einsum_pair(x1, x2, subscripts=labels)
