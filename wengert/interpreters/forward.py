"""Forward derivatives: from tangents of a primitive's inputs to the tangent of its result."""

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

    It is the mate of `Node.pull`, :math:`\bar x = J^H \bar y`, and mostly comes from the same
    rules: a linear primitive is applied to the tangents themselves, a multilinear one with each
    input replaced in its turn, and the Jacobian of an elementwise one is diagonal, so that the
    rule knows all of it. The other primitives have forward rules of their own.

    Inputs, parameters and ``out`` are as for the primitive's kernel. A tangent is None where it is
    zero, also that of the result. With Tensors it is on the tape, as a function of inputs and
    tangents.

    Raises
    ------
    NotImplementedError
        If an input with a tangent has no derivative: because it is not defined, or because there
        is no rule for it.
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
    """What is stated instead of a forward derivative; None if there is one."""
    rule = primitive.jvps.get(name, primitive.rules.get(name, NOT_IMPLEMENTED))
    if isinstance(rule, Declared):
        return rule
    derived = not primitive.jvps and primitive.kind in _DERIVED
    return None if name in primitive.jvps or derived else NOT_IMPLEMENTED


def _moves(xp: Any, primitive: Primitive, position: int, t: Any) -> bool:
    """Whether a tangent of an input moves the result; an error where nothing is known of it."""
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
        """Apply it to other inputs: by its kernel, or recorded."""
        primitive = self.primitive
        run = attrgetter(primitive.name)(self.xp) if self.xp.plain else primitive.bind
        return run(*inputs, **self.parameters)


# -- forward rules of a primitive's own ----------------------------------------------------------


class _Forwards:
    """A primitive with its forward rules in the place of its rules: what `Plan` looks at."""

    def __init__(self, primitive: Primitive) -> None:
        self.primitive = primitive
        self.fixed, self.variadic = primitive.fixed, primitive.variadic

    def rule(self, position: int) -> Rule:
        return self.primitive.jvps[self.primitive.input_at(position)]  # type: ignore[return-value]


@cache
def _plan(primitive: Primitive, moving: tuple[bool, ...]) -> Plan:
    return Unused(_Forwards(primitive), moving)


def _own(call: _Call, tangents: Tangents) -> Any:
    """The sum of what each tangent causes."""
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


# -- forward rules that follow from the kind -----------------------------------------------------


def _linear(call: _Call, tangents: Tangents) -> Any:
    """The function itself, of the tangents: zeros for inputs that stay as they are."""
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
    """The sum over the inputs of the function with one of them replaced by its tangent."""
    total: Any = None
    for position, t in enumerate(tangents):
        if t is not None:
            part = call.function(*call.inputs[:position], t, *call.inputs[position + 1 :])
            total = part if total is None else call.xp.add(total, part)
    return total


def _elementwise(call: _Call, tangents: Tangents) -> Any:
    """Each tangent times the rule's own factor, for the Jacobian is diagonal.

    A real one is its own transpose: the rule does the same to tangents as to cotangents. With
    complex numbers each element has a 2 x 2 block, and the rule gives its rows, for the cotangents
    1 and i.
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
    """How much a real function changes along a tangent."""
    change = xp.multiply(xp.conj(gradient), t)
    return xp.real(change) if dtype_of(change.dtype).complex else change


_DERIVED: dict[str, Callable[[_Call, Tangents], Any]] = {
    "elementwise": _elementwise,
    "linear": _linear,
    "structural": _linear,
    "multilinear": _multilinear,
}


# -- what these share ----------------------------------------------------------------------------


def _zero(x: Any) -> Any:
    """Zeros like an input; for a number a number, and for an input that is absent nothing."""
    if x is None:
        return None
    return namespaces[type(x)].zeros_like(x) if hasattr(x, "dtype") else 0


def _conform(t: Any, y: Any) -> Any:
    """Give a tangent the shape and dtype of the result it belongs to."""
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
