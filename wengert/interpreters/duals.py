"""Forward mode: dual arrays with a tangent, which every primitive propagates.

Tensors hold Duals, and Duals hold raw or lifted arrays, never Tensors: operations inside a forward
transform are recorded at its level, as operations on Duals. To the tape outside, the whole
transform is one operation with the node `UnpackDual`, whose rule sweeps the operations recorded
inside. So forward and reverse mode nest in any order, and a function may close over Tensors that
outer transforms differentiate.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, reduce
from itertools import chain, count, repeat
from typing import Any, NamedTuple

from wengert.backends import dtype_of, namespaces
from wengert.backends.backend import rule_on_device
from wengert.interpreters.lifted import (
    Lifted,
    apply,
    bottom,
    constant,
    namespace_of,
    raw,
)
from wengert.tape.grad_mode import record_always, recording, tangents_flow
from wengert.tape.node import Leaf, Node, Output, Several, conform, walk
from wengert.tape.primitive import NOT_IMPLEMENTED, ZERO, Declared, Primitive
from wengert.tape.record import Plan, Unused
from wengert.tape.sweep import leading_to, sweep
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


class DualInput(Leaf):
    """The node of a forward transform's argument, a leaf of the graph inside.

    ``owners`` are the nodes of the primal value and of the tangent outside.
    """

    __slots__ = ("level", "owners")

    level: int
    owners: tuple[Node | None, Node | None]

    def __init__(self, dual: Dual, owners: tuple[Node | None, Node | None]) -> None:
        super().__init__(shape=dual.shape, dtype=dual.dtype)
        self.level, self.owners = dual.level, owners


def make_dual(primal: Tensor, tangent: Tensor | None, level: int) -> Tensor:
    """Make a dual Tensor of a value and a tangent of the same shape and dtype.

    It gets a node inside if one of them has a node outside.
    """
    dual = Dual(primal._array, None if tangent is None else tangent._array, level)
    owners = primal._node, None if tangent is None else tangent._node
    if recording() and owners != (None, None):
        return with_node(dual, DualInput(dual, owners))
    return untracked(dual)


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


class Exit(NamedTuple):
    """How results of a forward transform leave its level.

    At its begin, ``start`` was the tape's clock, so that nodes with larger numbers are recorded
    inside; ``connect`` says whether operations were recorded, and ``flowing`` whether tangents
    flowed: otherwise results are constant to all transforms outside.
    """

    level: int
    start: int
    connect: bool
    flowing: bool


def unpack_dual(tensors: Sequence[Tensor], out: Exit) -> list[tuple[Tensor, Tensor | None]]:
    """Split dual Tensors of a level into primal values and tangents outside; None for zero.

    The two parts of a recorded Tensor are on the tape outside, connected to the nodes of the
    transform's arguments and of the Tensors that its function closed over.
    """
    duals = [split(tensor._array, out.level) for tensor in tensors]
    if not (out.flowing and tangents_flow()):
        return [
            (untracked(y).detach(), None if t is None else untracked(t).detach()) for y, t in duals
        ]
    connect = out.connect and bool(recording())
    recorded = [
        (tensor._node, primal)
        for tensor, (primal, _) in zip(tensors, duals, strict=True)
        if connect and tensor._node is not None and primal is not tensor._array
    ]
    ways = _ways([node for node, _ in recorded], out)
    outputs: Iterator[Output] = iter(())
    if ways:
        node = UnpackDual(recorded, out, ways)
        outputs = map(Output, repeat(node), count())
    pairs: list[tuple[Tensor, Tensor | None]] = []
    for tensor, (primal, tangent) in zip(tensors, duals, strict=True):
        if primal is tensor._array:  # a constant of the level
            pairs.append((tensor if connect else untracked(primal), None))
            continue
        first = next(outputs, None) if tensor._node is not None else None
        second = next(outputs, None) if first is not None else None
        pairs.append(
            (with_node(primal, first), None if tangent is None else with_node(tangent, second))
        )
    return pairs


def split(array: Any, level: int) -> tuple[Any, Any]:
    """The value and the tangent at a level; other arrays are constants."""
    own = isinstance(array, Dual) and array.level == level
    return (array.inner, array.derivative()) if own else (array, None)


def without_tangent(tensor: Tensor, level: int) -> Tensor:
    """A Tensor with the same node, without its tangent at a level."""
    array = tensor._array
    own = isinstance(array, Dual) and array.level == level
    return with_node(Dual(array.inner, None, level), tensor._node) if own else tensor


def _ways(roots: Sequence[Node], out: Exit) -> list[tuple[Node, Node, int]]:
    """The ends of a sweep inside, each with a node outside and the cotangent's part for that.

    A sweep ends at the transform's arguments, and at nodes that were recorded before. A cotangent's
    tangent belongs to the primal value, and its value to the tangent.
    """
    inside = list(walk(roots, out.start))
    found = [
        (node, owner, 1 - i)
        for node in inside
        if isinstance(node, DualInput) and node.level == out.level
        for i, owner in enumerate(node.owners)
        if owner is not None
    ]
    older = {
        node.number: node
        for node in chain(roots, *[node.parents for node in inside])
        if node is not None and node.number < out.start
    }
    return found + [(node, node, 1) for node in older.values()]


class UnpackDual(Several):
    r"""A forward transform as one operation: its results are primal values and tangents in turn.

    Inside, the values were dual numbers :math:`z = x + \varepsilon \dot x`, and so are the
    cotangents, with their parts exchanged: that of :math:`y + \varepsilon \dot y` is
    :math:`\bar{\dot y} + \varepsilon \bar y`. The sweep of what was recorded takes it to
    :math:`\bar{\dot x} + \varepsilon \bar x`, for the adjoint of
    :math:`(x, \dot x) \mapsto (f(x), J(x) \dot x)` is
    :math:`\bar{\dot x} = J^H \bar{\dot y}`,
    :math:`\bar x = J^H \bar y + \partial_x (J^H \bar{\dot y}) \cdot \dot x`.

    ``results`` are the nodes inside with their values, ``ways`` the answer of `_ways`.
    """

    __slots__ = ("out",)

    operation = "unpack_dual"
    out: Exit

    def __init__(
        self,
        results: Sequence[tuple[Node, Any]],
        out: Exit,
        ways: Sequence[tuple[Node, Node, int]],
    ) -> None:
        twice = [primal for _, primal in results for _ in range(2)]
        super().__init__(
            tuple([owner for _, owner, _ in ways]),
            ([node for node, _ in results], ways),
            tuple([primal.shape for primal in twice]),
            tuple([primal.dtype for primal in twice]),
        )
        self.out = out

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        roots, ways = self.values()
        seeds = [
            (root, _exchange(g.items.get(2 * i), g.items.get(2 * i + 1), self.out.level))
            for i, root in enumerate(roots)
            if 2 * i in g.items or 2 * i + 1 in g.items
        ]
        asked = [
            (position, end.number, part)
            for position, (end, owner, part) in enumerate(ways)
            if wanted is None or owner.number in wanted
        ]
        targets = {number for _, number, _ in asked}
        if not targets:
            return []
        leading = leading_to(targets, [node for node, _ in seeds])
        seeds = [(node, g) for node, g in seeds if node.number in leading]
        # The cotangents carry tangents, also within `no_grad`.
        with running(self.out.level), record_always():
            arrived = sweep(seeds, keep=True, targets=targets, wanted=leading, stop_at_targets=True)
        cotangents = list(arrived.values())
        if cotangents and isinstance(cotangents[0], Tensor):
            pairs: list[Any] = unpack_dual(cotangents, self.out)
        else:
            pairs = [split(cotangent, self.out.level) for cotangent in cotangents]
        parts = {node.number: pair for node, pair in zip(arrived, pairs, strict=True)}
        found = [(at, parts[number][part]) for at, number, part in asked if number in parts]
        return [(position, part) for position, part in found if part is not None]


def _exchange(primal: Any, tangent: Any, level: int) -> Any:
    """The dual cotangent inside, in which value and tangent are exchanged."""
    if tangent is None:
        tangent = namespaces[type(primal)].zeros_like(primal)
    if isinstance(tangent, Tensor):
        return make_dual(tangent, primal, level)
    return Dual(tangent, primal, level)


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

    It is the counterpart of `Node.flows`, :math:`\bar x = J^H \bar y`, and mostly uses the same
    rules: a linear primitive is applied to the tangents, a multilinear one with each input replaced
    in turn, and an elementwise one has a diagonal Jacobian, which the reverse rule gives. Other
    primitives have forward rules.

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
def declared(primitive: Primitive, name: str) -> Declared | None:
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
    rule = declared(primitive, name)
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
