"""Forward mode: arrays that carry a tangent, which every primitive pushes on.

Tensors hold Duals, and Duals hold raw arrays or other Duals, never Tensors: what is recorded while
a forward transform runs is recorded at its level, as operations on Duals. To the tape outside, the
whole transform is one operation with a node of its own, `Drop`, whose rule sweeps what was recorded
inside. So forward and reverse mode nest in any order, and a function may close over Tensors that
outer transforms follow.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

from wengert.backends import dtype_of, namespaces
from wengert.tape.forward import push
from wengert.tape.lifted import Lifted, apply, bottom, constant, namespace_of, raw
from wengert.tape.node import Node, Output, Parts, Several, conform, tick
from wengert.tape.primitive import Primitive
from wengert.tape.recording import recording
from wengert.tape.sweep import leading_to
from wengert.tape.tensor import Tensor, placed, untracked

__all__ = ["Drop", "Dual", "Lift", "drop", "lift"]


class Dual(Lifted):
    """A raw array with its derivative along a direction.

    Parameters
    ----------
    inner : array
        The primal value.
    tangent : array or None
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

    def values(self) -> Any:
        return self.inner.values() if isinstance(self.inner, Lifted) else self.inner

    def parts(self) -> dict[str, Any]:
        return {} if self.tangent is None else {"tangent": self.tangent}

    def detached(self) -> Any:
        return self.inner.detached() if isinstance(self.inner, Lifted) else self.inner

    def __repr__(self) -> str:
        return f"Dual({self.inner!r}, {self.tangent!r}, level={self.level})"


def _dual(value: Any, tangent: Any, level: int) -> Any:
    """A result: with its tangent, or plain where there can be none (indices, truth values)."""
    if not dtype_of(bottom(value).dtype).inexact:
        return raw(value)
    return Dual(value, tangent, level)


# -- in and out of a level -----------------------------------------------------------------------


class Lift(Node):
    """The place of a transform's argument inside: to what is recorded there it is a leaf.

    Attributes
    ----------
    level : int
        Of the transform.
    owners : tuple of (Node or None)
        The nodes outside of the primal value and of the tangent.
    """

    __slots__ = ("level", "owners")

    level: int
    owners: tuple[Node | None, Node | None]

    def __init__(self, dual: Dual, owners: tuple[Node | None, Node | None]) -> None:
        self.number = tick()
        self.parents = self.saved = ()
        self.shape, self.dtype, self.watch = dual.shape, dual.dtype, None
        self.level, self.owners = dual.level, owners

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        """Answer nothing: a sweep inside ends here."""
        return []

    def name(self) -> str:
        return "LiftBackward0"

    @property
    def operation(self) -> str:
        return "lift"


def lift(primal: Tensor, tangent: Tensor | None, level: int) -> Tensor:
    """Make a Tensor with a tangent of two Tensors of one shape and dtype."""
    dual = Dual(primal._array, None if tangent is None else tangent._array, level)
    owners = primal._node, None if tangent is None else tangent._node
    if recording() and owners != (None, None):
        return placed(dual, Lift(dual, owners))
    return untracked(dual)


def drop(tensors: Sequence[Tensor], level: int, start: int) -> list[tuple[Tensor, Tensor | None]]:
    """Take Tensors of a level apart: the primal values, and the tangents, outside.

    Parameters
    ----------
    tensors : sequence of Tensor
        Results of a transform's function, with a tangent or without.
    level : int
        Of the transform.
    start : int
        What the tape's clock was when it began: nodes with larger numbers are recorded inside.

    Returns
    -------
    list of (Tensor, Tensor or None)
        For each its primal value and its tangent, None being zero. Where a result was recorded,
        they are on the tape, as functions of what the transform's arguments and the Tensors that
        its function closed over are functions of.
    """
    pairs: list[tuple[Tensor, Tensor | None]] = []
    recorded: list[tuple[int, Tensor]] = []
    for i, tensor in enumerate(tensors):
        dual = tensor._array
        if not isinstance(dual, Dual) or dual.level != level:
            pairs.append((tensor, None))
            continue
        tangent = None if dual.tangent is None else untracked(dual.tangent)
        pairs.append((untracked(dual.inner), tangent))
        if tensor._node is not None:
            recorded.append((i, tensor))
    edges = _edges([tensor for _, tensor in recorded], level, start)
    if edges:
        node = Drop([tensor for _, tensor in recorded], level, start, edges)
        for slot, (i, _) in enumerate(recorded):
            primal, tangent = pairs[i]
            pairs[i] = (
                placed(primal._array, Output(node, 2 * slot)),
                None if tangent is None else placed(tangent._array, Output(node, 2 * slot + 1)),
            )
    return pairs


def _edges(tensors: Sequence[Tensor], level: int, start: int) -> list[Node]:
    """The nodes at which a sweep inside ends: of arguments, and of what was recorded before."""
    found: dict[int, Node] = {}
    seen: set[int] = set()
    stack = [tensor._node for tensor in tensors]
    while stack:
        node = stack.pop()
        if node is None or node.number in seen:
            continue
        seen.add(node.number)
        if node.number < start or _is_lift(node, level):
            found[node.number] = node
        else:
            stack.extend(node.parents)
    return list(found.values())


class Drop(Several):
    r"""A forward transform as one operation: its results are primal values and tangents in turn.

    Inside, the values were dual numbers :math:`z = x + \varepsilon \dot x`, and so are the
    cotangents, with their parts exchanged: that of :math:`y + \varepsilon \dot y` is
    :math:`\bar{\dot y} + \varepsilon \bar y`. The sweep of what was recorded takes it to
    :math:`\bar{\dot x} + \varepsilon \bar x`, for the adjoint of
    :math:`(x, \dot x) \mapsto (f(x), J(x) \dot x)` is
    :math:`\bar{\dot x} = J^H \bar{\dot y}`,
    :math:`\bar x = J^H \bar y + \partial_x (J^H \bar{\dot y}) \cdot \dot x`.

    Attributes
    ----------
    level, start : int
        As for `drop`.
    """

    __slots__ = ("level", "start")

    level: int
    start: int

    def __init__(
        self, tensors: Sequence[Tensor], level: int, start: int, edges: Sequence[Node]
    ) -> None:
        self.number = tick()
        self.level, self.start = level, start
        self.saved = ([tensor._node for tensor in tensors], edges)
        self.parents = tuple([owner for _, owner, _ in self._ways()])
        self.watch = None
        self.shape = tuple(tensor._array.shape for tensor in tensors for _ in range(2))
        self.dtype = tuple(tensor._array.dtype for tensor in tensors for _ in range(2))

    def _ways(self) -> list[tuple[Node, Node, int]]:
        """Ways out: an edge, a node outside, and which part of a cotangent goes there."""
        # The tangent of a cotangent belongs to the value, and its value to the tangent.
        return [
            (edge, owner, 1 - part)
            for edge in self.values()[1]
            for part, owner in enumerate(_owners(edge, self.level))
            if owner is not None
        ]

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        seeds = [
            (root, _exchanged(g.items.get(2 * i), g.items.get(2 * i + 1), self.level))
            for i, root in enumerate(self.values()[0])
            if 2 * i in g.items or 2 * i + 1 in g.items
        ]
        ways = [
            (position, edge.number, part)
            for position, (edge, owner, part) in enumerate(self._ways())
            if wanted is None or owner.number in wanted
        ]
        arrived = _swept(seeds, {number for _, number, _ in ways})
        parts = dict(zip(arrived, self._apart(list(arrived.values())), strict=True))
        found = [
            (position, parts[number][part]) for position, number, part in ways if number in parts
        ]
        return [(position, more) for position, more in found if more is not None]

    def _apart(self, duals: list[Any]) -> list[Any]:
        if duals and isinstance(duals[0], Tensor):
            return drop(duals, self.level, self.start)
        return [
            (g.inner, g.tangent) if isinstance(g, Dual) and g.level == self.level else (g, None)
            for g in duals
        ]

    def name(self) -> str:
        return "DropBackward0"

    @property
    def operation(self) -> str:
        return "drop"


def _owners(edge: Node, level: int) -> tuple[Node | None, ...]:
    """The nodes outside that a cotangent at an edge goes to: of the value, and of the tangent."""
    return edge.owners if _is_lift(edge, level) else (edge,)


def _is_lift(node: Node, level: int) -> bool:
    return isinstance(node, Lift) and node.level == level


def _exchanged(primal: Any, tangent: Any, level: int) -> Any:
    """The cotangent inside, of those of a primal value and a tangent: their parts change places."""
    if tangent is None:
        tangent = namespaces[type(primal)].zeros_like(primal)
    if isinstance(tangent, Tensor):
        return lift(tangent, primal, level)
    return Dual(tangent, primal, level)


def _swept(seeds: list[tuple[Node, Any]], targets: set[int]) -> dict[int, Any]:
    """Run the rules from seeds to targets, as `wengert.tape.sweep` does, and no further."""
    arrived: dict[int, Any] = {}
    if not targets:
        return arrived
    wanted = leading_to(targets, [node for node, _ in seeds])
    due: list[int] = []
    reached: dict[int, list[Any]] = {}
    flows = [(node, g) for node, g in seeds if node.number in wanted]
    while True:
        for node, g in flows:
            g = conform(g, node)
            cell = reached.get(node.number)
            if cell is None:
                reached[node.number] = [node, g]
                heappush(due, -node.number)
            elif type(g) is Parts:
                cell[1] = cell[1].merge(g)
            else:
                cell[1] = namespaces[type(g)].add(cell[1], g)
        if not due:
            return arrived
        node, g = reached.pop(-heappop(due))
        if node.number in targets:
            arrived[node.number], flows = g, []
        else:
            flows = node.pull(node.receive(g), wanted)
