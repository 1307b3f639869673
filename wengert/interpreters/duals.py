"""Forward mode: dual arrays with a tangent, which every primitive propagates.

Tensors hold Duals, and Duals hold raw or lifted arrays, never Tensors: operations inside a forward
transform are recorded at its level. So forward and reverse mode nest in any order, and a function
may close over Tensors that outer transforms differentiate.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, reduce
from itertools import count
from typing import Any, NamedTuple

from wengert.backends import dtype_of, namespaces
from wengert.backends.backend import rule_on_device
from wengert.interpreters.levels import Exit, enter
from wengert.interpreters.lifted import (
    Lifted,
    apply,
    bottom,
    constant,
    namespace_of,
    raw,
)
from wengert.tape.grad_mode import record_always, recording, tangents_flow
from wengert.tape.node import conform
from wengert.tape.primitive import NOT_IMPLEMENTED, ZERO, Declared, Primitive
from wengert.tape.record import Plan, Unused
from wengert.tape.tensor import Tensor, untracked, with_node

Tangents = Sequence[Any]


class Dual(Lifted):
    """A raw array with its derivative along a direction: a dual number for each element.

    ``tangent`` has the shape and dtype of ``inner``, the primal value; it is None for zero. Where
    nobody knows it, as inside a `Function`, it is the error of asking for it.
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
        if level not in _running:
            check_running(inputs)
        out = apply(primitive, primals, parameters)
        if not primitive.rules:  # random numbers, indices, truth values
            return raw(out)
        if not tangents_flow():  # as in reverse mode, what `no_grad` computes is constant
            tangent: Any = (None,) * len(out) if primitive.several else None
        else:
            xp = namespace_of(*primals, *tangents)
            tangent = push(xp, primitive, primals, parameters, out, tangents)
        if primitive.several:
            return tuple([_dual(y, t, level) for y, t in zip(out, tangent, strict=True)])
        return _dual(out, tangent, level)

    def constant(self, value: Any) -> "Dual":
        return Dual(constant(value, self.inner), None, self.level)

    @property
    def varies(self) -> bool:
        return self.tangent is not None or (isinstance(self.inner, Lifted) and self.inner.varies)

    def values(self) -> Any:
        return self.inner.values() if isinstance(self.inner, Lifted) else self.inner

    def parts(self) -> dict[str, Any]:
        return {"tangent": self.tangent} if hasattr(self.tangent, "dtype") else {}

    def as_constant(self) -> Any:
        return self.inner.as_constant() if isinstance(self.inner, Lifted) else self.inner

    def with_values(self, value: Any) -> "Dual":
        if isinstance(value, Dual) and value.level == self.level:
            value = value.inner
        inner = self.inner.with_values(value) if isinstance(self.inner, Lifted) else value
        return Dual(inner, self.tangent, self.level)

    def derivative(self) -> Any:
        """The tangent, if it is known."""
        if isinstance(self.tangent, Exception):
            raise self.tangent
        return self.tangent

    def __repr__(self) -> str:
        return f"Dual({self.inner!r}, {self.tangent!r}, level={self.level})"


def _dual(value: Any, tangent: Any, level: int) -> Any:
    """A result with its tangent; a raw array if its dtype has no derivatives."""
    if not dtype_of(bottom(value).dtype).inexact:
        return raw(value)
    return Dual(value, tangent, level)


# -- entering and leaving a level ----------------------------------------------------------------


def make_dual(primal: Tensor, tangent: Tensor | None, level: int) -> Tensor:
    """Make a dual Tensor of a value and a tangent of the same shape and dtype.

    It gets a node inside if one of them has a node outside.
    """
    dual = Dual(primal._array, None if tangent is None else tangent._array, level)
    if not recording():
        return untracked(dual)
    return enter(dual, (primal._node, None if tangent is None else tangent._node))


#: The levels of the forward transforms whose functions run now, or are swept.
_running: list[int] = []


@contextmanager
def running(level: int) -> Iterator[None]:
    """A context in which the tangents of a level have their meaning."""
    _running.append(level)
    try:
        yield
    finally:
        _running.remove(level)


def check_running(arrays: Sequence[Any]) -> None:
    """Raise if an array has a tangent of a forward transform that has ended."""
    for x in arrays:
        if isinstance(x, Dual) and x.tangent is not None and x.level not in _running:
            raise RuntimeError(
                "a Tensor from inside a forward transform (jvp, jacfwd) that has ended is used, "
                "where its tangent means nothing: return the Tensor from the function, as by "
                "has_aux, or keep x.detach()"
            )


@dataclass(slots=True, frozen=True)
class DualExit(Exit):
    r"""How results of a forward transform leave its level: as primal values and tangents.

    Inside, the values were dual numbers :math:`z = x + \varepsilon \dot x`, and so are the
    cotangents, with their parts exchanged: that of :math:`y + \varepsilon \dot y` is
    :math:`\bar{\dot y} + \varepsilon \bar y`. The sweep of what was recorded takes it to
    :math:`\bar{\dot x} + \varepsilon \bar x`, for the adjoint of
    :math:`(x, \dot x) \mapsto (f(x), J(x) \dot x)` is
    :math:`\bar{\dot x} = J^H \bar{\dot y}`,
    :math:`\bar x = J^H \bar y + \partial_x (J^H \bar{\dot y}) \cdot \dot x`.

    At its begin, ``connect`` says whether operations were recorded, and ``flowing`` whether
    tangents flowed: otherwise results are constant to all transforms outside.
    """

    connect: bool
    flowing: bool

    operation = "unpack_dual"
    parts = 2

    def split(self, array: Any) -> tuple[Any, Any]:
        return split(array, self.level)

    def seed(self, parts: Sequence[Any]) -> Any:
        primal, tangent = parts
        if tangent is None:
            tangent = namespaces[type(primal)].zeros_like(primal)
        if isinstance(tangent, Tensor):
            return make_dual(tangent, primal, self.level)
        return Dual(tangent, primal, self.level)

    def follows(self) -> tuple[bool, bool]:
        return self.flowing and tangents_flow(), self.connect and bool(recording())

    @contextmanager
    def sweeping(self) -> Iterator[None]:
        # The cotangents carry tangents, also within `no_grad`.
        with running(self.level), record_always():
            yield


def split(array: Any, level: int) -> tuple[Any, Any]:
    """The value and the tangent at a level; other arrays are constants."""
    own = isinstance(array, Dual) and array.level == level
    return (array.inner, array.derivative()) if own else (array, None)


def without_tangent(tensor: Tensor, level: int) -> Tensor:
    """A Tensor with the same node, without its tangent at a level."""
    array = tensor._array
    own = isinstance(array, Dual) and array.level == level
    return with_node(Dual(array.inner, None, level), tensor._node) if own else tensor


# -- tangents of results ---------------------------------------------------------------------------


def push(
    xp: Any,
    primitive: Primitive,
    inputs: Sequence[Any],
    parameters: dict[str, Any],
    out: Any,
    tangents: Tangents,
) -> Any:
    r"""Derivative of a primitive's result along tangents of its inputs, :math:`\dot y = J \dot x`.

    `Node.flows` is the counterpart, :math:`\bar x = J^H \bar y`. A linear primitive is applied to
    the tangents, a multilinear one with each input replaced in turn. The reverse rule of an
    elementwise one gives its diagonal Jacobian. Given forward rules (`jvps`) replace all three.

    Inputs, parameters and ``out`` are as for the primitive's kernel. A tangent of zero is None, the
    result's too. A derivative that is undefined, or has no rule, raises `NotImplementedError`.
    """
    moving = [
        t if t is not None and _moves(primitive, position, t) else None
        for position, t in enumerate(tangents)
    ]
    if all(t is None for t in moving):
        return (None,) * len(out) if primitive.several else None
    derive = _by_rules if primitive.jvps else _derivation(primitive)
    assert derive is not None  # `_moves` has refused others
    call = _Evaluation(xp, primitive, inputs, parameters, out)
    tangent = rule_on_device(xp, derive)(call, moving)
    if primitive.several:
        pairs = zip(tangent, out, strict=True)
        return tuple([None if t is None else conform(t, y) for t, y in pairs])
    return None if tangent is None else conform(tangent, out)


@cache
def declaration(primitive: Primitive, name: str) -> Declared | None:
    """The declaration instead of a forward derivative by an input; None if there is one."""
    missing = NOT_IMPLEMENTED if primitive.rules else ZERO
    rule = primitive.jvps.get(name, primitive.rules.get(name, missing))
    if isinstance(rule, Declared):
        return rule
    derived = not primitive.jvps and _derivation(primitive) is not None
    return None if name in primitive.jvps or derived else NOT_IMPLEMENTED


def _moves(primitive: Primitive, position: int, t: Any) -> bool:
    """Whether an input's tangent affects the result; raise if there is no derivative."""
    name = primitive.input_at(position)
    rule = declaration(primitive, name)
    if rule not in (None, ZERO):
        raise rule.refusal(primitive.name, name)
    if rule is None and isinstance(t, Exception):
        raise t
    return rule is None


class _Evaluation(NamedTuple):
    """A primitive with its inputs and their result."""

    xp: Any
    primitive: Primitive
    inputs: Sequence[Any]
    parameters: dict[str, Any]
    out: Any

    def apply(self, *inputs: Any) -> Any:
        """Apply the primitive to other inputs."""
        return apply(self.primitive, inputs, self.parameters)


# -- explicit forward rules ----------------------------------------------------------------------


@cache
def _plan(primitive: Primitive, moving: tuple[bool, ...]) -> Plan:
    return Unused(primitive, moving, tangent=True)


def _by_rules(call: _Evaluation, tangents: Tangents) -> Any:
    """The sum of the forward rules of all tangents."""
    add, several = call.xp.add, call.primitive.several
    plan = _plan(call.primitive, tuple([t is not None for t in tangents]))
    saved = plan.save(call.inputs, call.out, call.parameters)
    parts = [rule(call.xp, tangents[at], *saved[piece]) for at, rule, _, piece in plan.steps]
    return reduce((lambda a, b: tuple(map(add, a, b))) if several else add, parts)


# -- forward rules derived from the kind ---------------------------------------------------------


def _linear(call: _Evaluation, tangents: Tangents) -> Any:
    """The function of the tangents, with zeros for inputs without one."""
    primitive = call.primitive

    def tangent(position: int, x: Any, t: Any) -> Any:
        if t is not None or x is None or primitive.input_at(position) not in primitive.rules:
            return x if t is None else t
        return namespaces[type(x)].zeros_like(x) if hasattr(x, "dtype") else 0

    return call.apply(*map(tangent, count(), call.inputs, tangents))


def _multilinear(call: _Evaluation, tangents: Tangents) -> Any:
    """The sum of the function with one input after another replaced by its tangent."""
    inputs = call.inputs
    parts = [
        call.apply(*inputs[:position], t, *inputs[position + 1 :])
        for position, t in enumerate(tangents)
        if t is not None
    ]
    return reduce(call.xp.add, parts)


def _elementwise(call: _Evaluation, tangents: Tangents) -> Any:
    """The sum of each tangent times the diagonal of the Jacobian.

    A real diagonal is its own transpose, so that the reverse rule is applied to the tangent. With
    complex numbers each element has a 2 x 2 block, whose rows the rule gives for cotangents 1
    and i.
    """
    xp, out = call.xp, call.out
    plan = call.primitive.plans[tuple([t is not None for t in tangents])]
    saved = plan.save(call.inputs, out, call.parameters)
    numbers = any(dtype_of(a.dtype).complex for a in (out, *tangents) if a is not None)

    def part(rule: Any, named: tuple[Any, ...], t: Any) -> Any:
        if not numbers:
            return rule(xp, conform(t, out), *named)
        along = _along(xp, rule(xp, xp.ones_like(out), *named), t)
        if not dtype_of(out.dtype).complex:
            return along
        across = _along(xp, rule(xp, xp.full_like(out, 1j), *named), t)
        return xp.add(along, xp.multiply(across, 1j))

    parts = [part(rule, saved[piece], tangents[at]) for at, rule, _, piece in plan.steps]
    return reduce(xp.add, parts)


def _along(xp: Any, gradient: Any, t: Any) -> Any:
    """The derivative of a real function along a tangent."""
    change = xp.multiply(xp.conj(gradient), t)
    return xp.real(change) if dtype_of(change.dtype).complex else change


def _derivation(primitive: Primitive) -> Callable[[_Evaluation, Tangents], Any] | None:
    """The forward derivative that follows from what a function is."""
    if primitive.linear is not None:
        return _linear if primitive.linear == "together" else _multilinear
    return _elementwise if primitive.elementwise else None
