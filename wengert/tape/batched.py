"""Batches: arrays with a hidden first axis, along which a program runs once for all.

What a program computes for one cotangent, or along one tangent, it computes for a batch of them,
when each is a `Batched`: its shape is that of one of them, so that no rule and no program knows.
"""

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from wengert.backends import namespaces
from wengert.tape.batching import COMPOSED, Application, rule_of
from wengert.tape.interpreter import differentiable
from wengert.tape.lifted import Lifted, bottom, late_namespace, lifted, namespace_of
from wengert.tape.primitive import PRIMITIVES, Primitive
from wengert.tape.tensor import Tensor

__all__ = ["Batched", "RecordedBatched", "identity", "members"]


class Batched(Lifted):
    """A raw array of one member's shape, which stands for many.

    Parameters
    ----------
    inner : array or Tensor
        The members, along its first axis.
    level : int
        Which transform it belongs to, from `new_level`.
    """

    __slots__ = ()

    def __init__(self, inner: Any, level: int) -> None:
        self.inner = inner
        self.level = level

    @property
    def shape(self) -> Any:
        return self.inner.shape[1:]

    @classmethod
    def interpret(
        cls, level: int, primitive: Primitive, inputs: Sequence[Any], parameters: dict[str, Any]
    ) -> Any:
        if primitive.name in COMPOSED:
            return primitive.forward(lifted, *inputs, **parameters)  # type: ignore[misc]
        own = tuple([isinstance(x, Batched) and x.level == level for x in inputs])
        arrays = [x.inner if mine else x for x, mine in zip(inputs, own, strict=True)]
        call = Application(namespace_of(*arrays), primitive, own, arrays)
        out = rule_of(primitive)(call, *arrays, **parameters)
        if primitive.several:
            return tuple([cls(y, level) for y in out])
        return cls(out, level)

    def constant(self, value: Any) -> "Batched":
        count = self.inner.shape[0]
        xp = namespace_of(value)
        return type(self)(xp.broadcast_to(value, (count, *value.shape)), self.level)

    def detached(self) -> Any:
        inner = self.inner
        if isinstance(inner, Lifted):
            inner = inner.detached()
        elif isinstance(inner, Tensor):
            inner = inner.detach()
        return type(self)(inner, self.level)


class RecordedBatched(Batched):
    """A batch of cotangents with which the sweep itself is recorded, for ``create_graph=True``.

    Rules see what a node has saved as Tensors at their places on the tape.
    """

    __slots__ = ()


def members(x: Any, level: int, count: int) -> Any:
    """The members of a batch, along a first axis; of anything else, ``count`` equal ones."""
    if isinstance(x, Batched) and x.level == level:
        return x.inner
    return namespace_of(x).broadcast_to(x, (count, *x.shape))


def identity(
    arrays: Sequence[Any],
    level: int,
    start: int = 0,
    stop: int | None = None,
    *,
    recorded: bool = False,
) -> list[Batched]:
    """Rows of the identity of the space in which some arrays, taken together, are one vector.

    As tangents of the arrays they are the directions of their elements, one after the other, and
    as cotangents they choose the rows of a Jacobian.

    Parameters
    ----------
    arrays : sequence of array
        Raw arrays, lifted or not, whose shapes, dtypes and devices count.
    level : int
        Of the batch, from `new_level`.
    start, stop : int, optional
        Which rows; all by default.
    recorded : bool
        Whether these are cotangents of a sweep that is itself recorded.

    Returns
    -------
    list of Batched
        One for each array, of its shape and dtype, with ``stop - start`` members.
    """
    kind = RecordedBatched if recorded else Batched
    sizes = [math.prod(x.shape) for x in arrays]
    stop = sum(sizes) if stop is None else stop
    found, before = [], 0
    for x, size in zip(arrays, sizes, strict=True):
        like = bottom(x)
        xp = namespaces[type(like)]
        where = {"dtype": like.dtype, "device": xp.device(like)}
        count, diagonal = stop - start, start - before
        if -count < diagonal < size:
            rows = xp.eye(count, size, k=diagonal, **where)
        else:
            rows = xp.zeros((count, size), **where)
        found.append(kind(xp.reshape(rows, (count, *x.shape)), level))
        before += size
    return found


# -- the namespace of sweeps that are recorded ---------------------------------------------------


def _function(name: str) -> Any:
    """What a name does to batches of cotangents, to Tensors that were saved, and to both."""
    batched, alone = attrgetter(name)(lifted), attrgetter(name)(differentiable)
    if not callable(batched):  # a dtype
        return batched
    primitive = name in PRIMITIVES

    def function(*inputs: Any, **parameters: Any) -> Any:
        like = _batch(inputs) or getattr(parameters.get("device"), "like", None)
        if like is None:
            return alone(*inputs, **parameters)
        if primitive:
            return batched(*inputs, **parameters)
        return _recording(batched(*_constants(inputs, like), **parameters))

    return function


def _batch(inputs: Sequence[Any]) -> Batched | None:
    """The first batch among a function's inputs, or in a list of them."""
    for x in inputs:
        found = x if isinstance(x, Batched) else _batch(x) if isinstance(x, list | tuple) else None
        if found is not None:
            return found
    return None


def _constants(inputs: Sequence[Any], like: Batched) -> list[Any]:
    """Inputs as a composition takes them: Tensors too as batches, so that it sees these alone."""
    return [
        Batched(x.inner, x.level)
        if isinstance(x, Batched)
        else Batched(members(x, like.level, like.inner.shape[0]), like.level)
        if isinstance(x, Tensor)
        else type(x)(_constants(x, like))
        if isinstance(x, list | tuple)
        else x
        for x in inputs
    ]


def _recording(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(_recording, x))
    return RecordedBatched(x.inner, x.level) if isinstance(x, Batched) else x


def _device(x: Any) -> Any:
    return (lifted if isinstance(x, Lifted) else differentiable).device(x)


_recorded = late_namespace("wengert.tape.batched.recorded", _function)
vars(_recorded).update(plain=False, lift=differentiable.lift, backend=None, device=_device)
namespaces[RecordedBatched] = _recorded
