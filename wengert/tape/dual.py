"""Forward mode: arrays that carry a tangent, which every primitive pushes on."""

from collections.abc import Sequence
from typing import Any

from wengert.backends import dtype_of
from wengert.tape.forward import push
from wengert.tape.lifted import Lifted, apply, bottom, constant, namespace_of, raw
from wengert.tape.primitive import Primitive

__all__ = ["Dual"]


class Dual(Lifted):
    """A raw array with its derivative along a direction.

    Parameters
    ----------
    inner : array or Tensor
        The primal value.
    tangent : array, Tensor or None
        The derivative, of the same shape and dtype; None is zero.
    level : int
        Which transform it belongs to, from `new_level`.
    """

    __slots__ = ("tangent",)

    tangent: Any

    def __init__(self, inner: Any, tangent: Any, level: int) -> None:
        self.inner = inner
        self.tangent = tangent
        self.level = level

    @classmethod
    def interpret(
        cls, level: int, primitive: Primitive, inputs: Sequence[Any], parameters: dict[str, Any]
    ) -> Any:
        primals: list[Any] = []
        tangents: list[Any] = []
        for x in inputs:
            own = isinstance(x, Dual) and x.level == level
            primals.append(x.inner if own else x)
            tangents.append(x.tangent if own else None)
        out = apply(primitive, primals, parameters)
        xp = namespace_of(*primals, *tangents)
        tangent = push(xp, primitive, primals, parameters, out, tangents)
        if primitive.several:
            return tuple(_dual(y, t, level) for y, t in zip(out, tangent, strict=True))
        return _dual(out, tangent, level)

    def constant(self, value: Any) -> "Dual":
        return Dual(constant(value, self.inner), None, self.level)

    def __repr__(self) -> str:
        return f"Dual({self.inner!r}, {self.tangent!r}, level={self.level})"


def _dual(value: Any, tangent: Any, level: int) -> Any:
    """A result: with its tangent, or plain where there can be none (indices, truth values)."""
    if not dtype_of(bottom(value).dtype).inexact:
        return raw(value)
    return Dual(value, tangent, level)
