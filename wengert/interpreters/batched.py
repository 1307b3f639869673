"""Batches: arrays with a hidden first axis, over which a program is vectorised.

A `Batched` array has the shape of one member, so that rules and programs run unchanged on a batch
of cotangents or tangents.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

from wengert.backends import namespaces
from wengert.backends.backend import rule_on_device
from wengert.interpreters.batching import by_composite, elementwise
from wengert.interpreters.levels import Exit, enter
from wengert.interpreters.lifted import Lifted, apply, lifted, namespace_of
from wengert.tape.primitive import Primitive
from wengert.tape.promotion import SCALARS
from wengert.tape.tensor import Tensor


class Application(NamedTuple):
    """A primitive's application to arrays, some of which are batched.

    ``xp`` is the namespace of ``inputs``, the inner arrays; ``own`` says which of them are batched.
    """

    xp: Any
    primitive: Primitive
    own: tuple[bool, ...]
    inputs: Sequence[Any]

    @property
    def size(self) -> int:
        """The number of members."""
        length: int = self.inputs[self.own.index(True)].shape[0]
        return length

    def run(self, *inputs: Any, **parameters: Any) -> Any:
        """Apply the primitive to inner arrays."""
        return apply(self.primitive, inputs, parameters)

    def rank(self, position: int) -> int:
        """The number of an input's axes without the batch axis."""
        return len(self.inputs[position].shape) - self.own[position]

    def with_rank(self, position: int, rank: int) -> Any:
        """A batched input with axes of length 1 after the batch axis, to have ``rank`` others.

        An input that is not batched broadcasts as it is.
        """
        x = self.inputs[position]
        if not self.own[position] or len(x.shape) == rank + 1:
            return x
        shape = tuple(x.shape)
        return self.xp.reshape(x, (shape[0], *(1,) * (rank + 1 - len(shape)), *shape[1:]))

    def broadcast(self, position: int) -> Any:
        """An input with a batch axis, broadcast if it has none."""
        x = self.inputs[position]
        if self.own[position]:
            return x
        return self.xp.broadcast_to(x, (self.size, *x.shape))

    def with_batch_axis(self, position: int) -> Any:
        """An input with its batch axis, or with a new one of length 1."""
        x = self.inputs[position]
        return x if self.own[position] else self.xp.reshape(x, (1, *x.shape))

    def move_axis(self, x: Any, source: int, destination: int) -> Any:
        """An inner array with one axis moved."""
        order = [i for i in range(len(x.shape)) if i != source]
        order.insert(destination, source)
        return self.xp.permute_dims(x, tuple(order))

    def each(self, *inputs: Any, **parameters: Any) -> Any:
        """Run for each member, and stack the results."""
        take = self.xp.getitem
        results = [
            self.run(
                *[
                    take(x, key=(i, ...)) if own else x
                    for x, own in zip(inputs, self.own, strict=True)
                ],
                **parameters,
            )
            for i in range(self.size)
        ]
        if self.primitive.several:
            return tuple([self._stack(column) for column in zip(*results, strict=True)])
        return self._stack(results)

    def _stack(self, results: Sequence[Any]) -> Any:
        shapes = {tuple(y.shape) for y in results}
        if len(shapes) > 1:
            raise ValueError(
                f"{self.primitive.name} gives results of different shapes for the members of a "
                f"batch, such as {' and '.join(map(str, sorted(shapes)[:2]))}: they cannot be one "
                "array"
            )
        return namespace_of(*results).stack(list(results))


class Batched(Lifted):
    """A batch of arrays that has the shape of one member: ``inner`` has them on its first axis."""

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
        rule = primitive.batch
        if rule is None and primitive.elementwise and not primitive.several:
            arrays = _align(level, inputs)
            if arrays is not None:
                return cls(primitive.kernels[type(arrays[-1])](*arrays[:-1], **parameters), level)
        own = tuple([isinstance(x, Batched) and x.level == level for x in inputs])
        arrays = [x.inner if mine else x for x, mine in zip(inputs, own, strict=True)]
        call = Application(namespace_of(*arrays), primitive, own, arrays)
        if rule is by_composite:
            out = primitive.composite(lifted, *inputs, **parameters)  # type: ignore[misc]
            # A result may not depend on what is batched; the sweep goes by its type all the same.
            if primitive.several:
                return tuple([cls(members(y, level, call.size), level) for y in out])
            return cls(members(out, level, call.size), level)
        if rule is None:
            rule = elementwise if primitive.elementwise else Application.each
        out = rule_on_device(call.xp, rule)(call, *arrays, **parameters)
        if primitive.several:
            return tuple([cls(y, level) for y in out])
        return cls(out, level)

    def values(self) -> Any:
        raise TypeError(
            f"a Tensor inside vmap or a Jacobian has {self.inner.shape[0]} values, one a member: "
            "if, while, int() and item() can't read them; use wg.where, x[i], or return it first"
        )

    def refusal(self, where: str, done: str, instead: str) -> Exception:
        return RuntimeError(
            f"{where}a Tensor inside vmap or a Jacobian {done}, and has a value for each of "
            f"{self.inner.shape[0]} members. {instead}."
        )

    def constant(self, value: Any) -> "Batched":
        return type(self)(members(value, self.level, self.inner.shape[0]), self.level)

    def as_constant(self) -> Any:
        inner = self.inner.as_constant() if isinstance(self.inner, Lifted) else self.inner
        return type(self)(inner, self.level)

    def with_values(self, value: Any) -> Any:
        inner = self.inner
        if not isinstance(inner, Lifted):
            return value
        return type(self)(inner.with_values(members(value, self.level, inner.shape[0])), self.level)


def _align(level: int, inputs: Sequence[Any]) -> list[Any] | None:
    """The inner arrays if they broadcast as they are, followed by one of the batched ones.

    None if a member has fewer axes than another operand, or an inner array is no library's: these
    cases are left to the rule `elementwise`.
    """
    arrays: list[Any] = []
    like, rank, most = None, 0, 0
    for x in inputs:
        if isinstance(x, Batched) and x.level == level:
            x = x.inner
            axes = len(x.shape)
            if like is None:
                like, rank = x, axes
            elif axes != rank or type(x) is not type(like):
                return None
        elif type(x) not in SCALARS:
            if not hasattr(x, "shape"):
                return None
            most = max(most, len(x.shape))
            if isinstance(x, Lifted):
                return None
        arrays.append(x)
    if most >= rank or isinstance(like, Lifted):
        return None
    arrays.append(like)
    return arrays


def members(x: Any, level: int, count: int) -> Any:
    """The members of a batch along a first axis; another array is repeated ``count`` times."""
    if isinstance(x, Batched) and x.level == level:
        return x.inner
    return namespace_of(x).broadcast_to(x, (count, *x.shape))


# -- entering and leaving a level ----------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class BatchExit(Exit):
    """How results leave the level of a batch of ``count`` members: with their members' axis.

    A Tensor that the function closed over has the sum of its members' cotangents.
    """

    count: int
    sweeping: Callable[[], AbstractContextManager[Any]] = nullcontext

    operation = "unbatch"
    parts = 1

    def split(self, array: Any) -> tuple[Any]:
        return (members(array, self.level, self.count),)

    def seed(self, parts: Sequence[Any]) -> Any:
        (g,) = parts
        return make_batch(g, self.level) if isinstance(g, Tensor) else Batched(g, self.level)

    def total(self, part: Any) -> Any:
        return namespaces[type(part)].sum(part, axis=0)


def make_batch(x: Tensor, level: int) -> Tensor:
    """A Tensor whose members are along the first axis of another."""
    return enter(Batched(x._array, level), (x._node,))
