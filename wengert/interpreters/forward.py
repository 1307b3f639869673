"""Forward derivatives: a primitive's result's tangent from tangents of its inputs."""

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

from wengert.backends import dtype_of, namespaces
from wengert.tape.primitive import NOT_IMPLEMENTED, UNDEFINED, ZERO, Declared, Primitive
from wengert.tape.record import Plan, Rule, Unused

Tangents = Sequence[Any]


def push(
    xp: Any,
    primitive: Primitive,
    inputs: Sequence[Any],
    parameters: dict[str, Any],
    out: Any,
    tangents: Tangents,
) -> Any:
    r"""Derivative of a primitive's result along tangents of its inputs, :math:`\dot y = J \dot x`.

    It is the counterpart of `Node.pull`, :math:`\bar x = J^H \bar y`, and mostly uses the same
    rules: a linear primitive is applied to the tangents, a multilinear one with each input replaced
    in turn, and an elementwise one has a diagonal Jacobian, which the reverse rule gives. Other
    primitives have forward rules.

    Inputs, parameters and ``out`` are as for the primitive's kernel. A tangent of zero is None, the
    result's too. With Tensors the result is on the tape, as a function of inputs and tangents.

    Raises
    ------
    NotImplementedError
        If the derivative for an input with a tangent is undefined, or has no rule.
    """
    moving = [
        None if t is None or not _moves(xp, primitive, position, t) else t
        for position, t in enumerate(tangents)
    ]
    if all(t is None for t in moving):
        return (None,) * len(out) if primitive.several else None
    derive = _own if primitive.jvps else _DERIVED[primitive.kind]
    tangent = derive(_Call(xp, primitive, inputs, parameters, out), moving)
    if primitive.several:
        return tuple(_conform(t, y) for t, y in zip(tangent, out, strict=True))
    return _conform(tangent, out)


def how(primitive: Primitive, name: str) -> str:
    """Tell where the forward derivative with respect to an input comes from.

    Returns
    -------
    str
        ``"derived"`` from the kind, ``"explicit"``, ``"zero"``, ``"undefined"``, or ``"none"``.
    """
    rule = _declaration(primitive, name)
    if rule is not None:
        return {ZERO: "zero", UNDEFINED: "undefined"}.get(rule, "none")
    return "explicit" if name in primitive.jvps else "derived"


def _declaration(primitive: Primitive, name: str) -> Declared | None:
    """The declaration instead of a forward derivative; None if there is a derivative."""
    rule = primitive.jvps.get(name, primitive.rules.get(name, NOT_IMPLEMENTED))
    if isinstance(rule, Declared):
        return rule
    derived = not primitive.jvps and primitive.kind in _DERIVED
    return None if name in primitive.jvps or derived else NOT_IMPLEMENTED


def _moves(xp: Any, primitive: Primitive, position: int, t: Any) -> bool:
    """Whether an input's tangent affects the result; raise if there is no derivative."""
    if not primitive.rules:
        return False
    name = primitive.input_at(position)
    rule = _declaration(primitive, name)
    if rule not in (None, ZERO):
        rule.rule(primitive.name, name)(xp, t)  # it raises
    return rule is None


class _Call(NamedTuple):
    """A primitive's application to inputs."""

    xp: Any
    primitive: Primitive
    inputs: Sequence[Any]
    parameters: dict[str, Any]
    out: Any

    def function(self, *inputs: Any) -> Any:
        """Apply the primitive to other inputs, recorded if these are Tensors."""
        primitive = self.primitive
        run = attrgetter(primitive.name)(self.xp) if self.xp.plain else primitive.bind
        return run(*inputs, **self.parameters)


# -- explicit forward rules ----------------------------------------------------------------------


class _Forwards:
    """A primitive with forward rules in place of reverse rules, for `Plan`."""

    adjoint = None

    def __init__(self, primitive: Primitive) -> None:
        self.primitive = primitive
        self.fixed, self.variadic = primitive.fixed, primitive.variadic

    def rule(self, position: int) -> Rule:
        return self.primitive.jvps[self.primitive.input_at(position)]  # type: ignore[return-value]


@cache
def _plan(primitive: Primitive, moving: tuple[bool, ...]) -> Plan:
    return Unused(_Forwards(primitive), moving)


def _own(call: _Call, tangents: Tangents) -> Any:
    """The sum of the forward rules of all tangents."""
    add = call.xp.add
    plan = _plan(call.primitive, tuple([t is not None for t in tangents]))
    named = plan.save(call.inputs, call.out, call.parameters)
    total: Any = None
    for position, rule, _, piece in plan.steps:
        part = rule(call.xp, tangents[position], *named[piece])
        if total is None:
            total = part
        else:
            total = tuple(map(add, total, part)) if call.primitive.several else add(total, part)
    return total


# -- forward rules derived from the kind ---------------------------------------------------------


def _linear(call: _Call, tangents: Tangents) -> Any:
    """The function of the tangents, with zeros for inputs without one."""
    primitive = call.primitive
    return call.function(
        *[
            t
            if t is not None
            else _zero(x)
            if primitive.input_at(position) in primitive.rules
            else x
            for position, (x, t) in enumerate(zip(call.inputs, tangents, strict=True))
        ]
    )


def _multilinear(call: _Call, tangents: Tangents) -> Any:
    """The sum of the function with one input after another replaced by its tangent."""
    total: Any = None
    for position, t in enumerate(tangents):
        if t is not None:
            part = call.function(*call.inputs[:position], t, *call.inputs[position + 1 :])
            total = part if total is None else call.xp.add(total, part)
    return total


def _elementwise(call: _Call, tangents: Tangents) -> Any:
    """The sum of each tangent times the diagonal of the Jacobian.

    A real diagonal is its own transpose, so that the reverse rule is applied to the tangent. With
    complex numbers each element has a 2 x 2 block, whose rows the rule gives for cotangents 1
    and i.
    """
    xp, out = call.xp, call.out
    plan = call.primitive.plans[tuple([t is not None for t in tangents])]
    saved = plan.save(call.inputs, out, call.parameters)
    numbers = any(dtype_of(a.dtype).complex for a in (out, *tangents) if a is not None)
    total: Any = None
    for position, rule, _, piece in plan.steps:
        t = tangents[position]
        if numbers:
            part = _along(xp, rule(xp, xp.ones_like(out), *saved[piece]), t)
            if dtype_of(out.dtype).complex:
                across = _along(xp, rule(xp, xp.full_like(out, 1j), *saved[piece]), t)
                part = xp.add(part, xp.multiply(across, 1j))
        else:
            part = rule(xp, _conform(t, out), *saved[piece])
        total = part if total is None else xp.add(total, part)
    return total


def _along(xp: Any, gradient: Any, t: Any) -> Any:
    """The derivative of a real function along a tangent."""
    change = xp.multiply(xp.conj(gradient), t)
    return xp.real(change) if dtype_of(change.dtype).complex else change


_DERIVED: dict[str, Callable[[_Call, Tangents], Any]] = {
    "elementwise": _elementwise,
    "linear": _linear,
    "structural": _linear,
    "multilinear": _multilinear,
}


# -- helpers -------------------------------------------------------------------------------------


def _zero(x: Any) -> Any:
    """Zeros like an array, 0 for a number, None for an absent input."""
    if x is None:
        return None
    return namespaces[type(x)].zeros_like(x) if hasattr(x, "dtype") else 0


def _conform(t: Any, y: Any) -> Any:
    """A tangent with the shape and dtype of its result."""
    if t is None:
        return None
    xp = namespaces[type(t)]
    if t.shape != y.shape:
        t = xp.broadcast_to(t, y.shape)
    if t.dtype != y.dtype:
        if dtype_of(t.dtype).complex and not dtype_of(y.dtype).complex:
            t = xp.real(t)
        t = xp.astype(t, y.dtype)
    return t
