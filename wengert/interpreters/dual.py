"""Forward mode: dual arrays with a tangent, which every primitive propagates.

Tensors hold Duals, and Duals hold raw arrays or other Duals, never Tensors: operations inside a
forward transform are recorded at its level, as operations on Duals. To the tape outside, the whole
transform is one operation with the node `UnpackDual`, whose rule sweeps the operations recorded
inside. So forward and reverse mode nest in any order, and a function may close over Tensors that
outer transforms differentiate.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from wengert.backends import dtype_of, namespaces
from wengert.interpreters.forward import push
from wengert.interpreters.lifted import Lifted, apply, bottom, changed, constant, namespace_of, raw
from wengert.tape.autograd import leading_to, sweep
from wengert.tape.grad_mode import recording, transforming
from wengert.tape.node import Leaf, Node, Output, Several, tick
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor, placed, untracked


class Dual(Lifted):
    """A raw array with its derivative along a direction: a dual number for each element.

    Parameters
    ----------
    inner : array
        The primal value.
    tangent : array or None
        The derivative, of the same shape and dtype; None for zero.
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
        if not primitive.rules:  # random numbers, indices, truth values
            return raw(out)
        if recording() is False:  # as in reverse mode, what `no_grad` computes is constant
            if primitive.several:
                return tuple([_dual(y, None, level) for y in out])
            return _dual(out, None, level)
        xp = namespace_of(*primals, *tangents)
        tangent = push(xp, primitive, primals, parameters, out, tangents)
        if primitive.several:
            return tuple(_dual(y, t, level) for y, t in zip(out, tangent, strict=True))
        return _dual(out, tangent, level)

    def constant(self, value: Any) -> "Dual":
        return Dual(constant(value, self.inner), None, self.level)

    @property
    def varies(self) -> bool:
        return self.tangent is not None or (isinstance(self.inner, Lifted) and self.inner.varies)

    def values(self) -> Any:
        return self.inner.values() if isinstance(self.inner, Lifted) else self.inner

    def parts(self) -> dict[str, Any]:
        return {} if self.tangent is None else {"tangent": self.tangent}

    def changed(self, change: Callable[[Any], Any]) -> "Dual":
        return Dual(changed(self.inner, change), changed(self.tangent, change), self.level)

    def detached(self) -> Any:
        return self.inner.detached() if isinstance(self.inner, Lifted) else self.inner

    def assigned(self, value: Any) -> "Dual":
        if isinstance(value, Dual) and value.level == self.level:
            value = value.inner
        inner = self.inner.assigned(value) if isinstance(self.inner, Lifted) else value
        return Dual(inner, self.tangent, self.level)

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

    Attributes
    ----------
    level : int
        Of the transform.
    owners : tuple of (Node or None)
        The nodes of the primal value and of the tangent outside.
    """

    __slots__ = ("level", "owners")

    level: int
    owners: tuple[Node | None, Node | None]

    def __init__(self, dual: Dual, owners: tuple[Node | None, Node | None]) -> None:
        super().__init__(dual.shape, dual.dtype)
        self.level, self.owners = dual.level, owners

    def name(self) -> str:
        return "MakeDualBackward0"

    @property
    def operation(self) -> str:
        return "make_dual"


def make_dual(primal: Tensor, tangent: Tensor | None, level: int) -> Tensor:
    """Make a dual Tensor of a value and a tangent of the same shape and dtype.

    It gets a node inside if one of them has a node outside.
    """
    dual = Dual(primal._array, None if tangent is None else tangent._array, level)
    owners = primal._node, None if tangent is None else tangent._node
    if recording() and owners != (None, None):
        return placed(dual, DualInput(dual, owners))
    return untracked(dual)


class Exit(NamedTuple):
    """How results of a forward transform leave its level.

    Attributes
    ----------
    level : int
        Of the transform.
    start : int
        The tape's clock at its begin: nodes with larger numbers are recorded inside.
    connect : bool
        Whether recording was on at its begin. If the user had switched it off, results are
        constant to all transforms outside.
    """

    level: int
    start: int
    connect: bool | int

    def ways(self, edges: Sequence[Node]) -> list[tuple[Node, Node, int]]:
        """For each edge the nodes outside, and which part of its cotangent each of them gets."""
        found: list[tuple[Node, Node, int]] = []
        for edge in edges:
            if isinstance(edge, DualInput) and edge.level == self.level:
                owners = edge.owners
            else:
                owners = (edge, None)
            # A cotangent's tangent belongs to the primal value, and its value to the tangent.
            found += [(edge, owner, 1 - i) for i, owner in enumerate(owners) if owner is not None]
        return found


def unpack_dual(tensors: Sequence[Tensor], out: Exit) -> list[tuple[Tensor, Tensor | None]]:
    """Split dual Tensors of a level into primal values and tangents outside; None for zero.

    If a Tensor was recorded, its two parts are on the tape outside, connected to the nodes of the
    transform's arguments and of the Tensors that its function closed over.
    """
    duals = [_apart(tensor._array, out.level) for tensor in tensors]
    if out.connect is False or recording() is False:
        return [
            (untracked(y).detach(), None if t is None else untracked(t).detach()) for y, t in duals
        ]
    connect = out.connect and recording()
    recorded = [
        (tensor._node, dual)
        for tensor, dual in zip(tensors, duals, strict=True)
        if connect and tensor._node is not None and dual[0] is not tensor._array
    ]
    edges = _edges([node for node, _ in recorded], out)
    node = UnpackDual(recorded, out, edges) if out.ways(edges) else None
    pairs: list[tuple[Tensor, Tensor | None]] = []
    index = 0
    for tensor, (primal, tangent) in zip(tensors, duals, strict=True):
        if primal is tensor._array:
            pairs.append((tensor if connect else untracked(primal), None))
            continue
        nodes: tuple[Node | None, Node | None] = None, None
        if connect and tensor._node is not None:
            if node is not None:
                nodes = Output(node, index), Output(node, index + 1)
            index += 2
        moving = None if tangent is None else placed(tangent, nodes[1])
        pairs.append((placed(primal, nodes[0]), moving))
    return pairs


def _apart(array: Any, level: int) -> tuple[Any, Any]:
    """The value and the tangent at a level; other arrays are constants."""
    own = isinstance(array, Dual) and array.level == level
    return (array.inner, array.tangent) if own else (array, None)


def tangent_of(tensor: Tensor, level: int) -> Any:
    """The tangent of a Tensor at a level, as a raw array; None if it has none."""
    return _apart(tensor._array, level)[1]


def without_tangent(tensor: Tensor, level: int) -> Tensor:
    """A Tensor with the same node, without its tangent at a level."""
    value, tangent = _apart(tensor._array, level)
    return tensor if tangent is None else placed(Dual(value, None, level), tensor._node)


def _edges(roots: Sequence[Node], out: Exit) -> list[Node]:
    """The nodes at which a sweep inside ends: arguments, and nodes recorded before."""
    found: dict[int, Node] = {}
    seen: set[int] = set()
    stack: list[Node | None] = [*roots]
    while stack:
        node = stack.pop()
        if node is None or node.number in seen:
            continue
        seen.add(node.number)
        if node.number < out.start or (isinstance(node, DualInput) and node.level == out.level):
            found[node.number] = node
        else:
            stack.extend(node.parents)
    return list(found.values())


class UnpackDual(Several):
    r"""A forward transform as one operation: its results are primal values and tangents in turn.

    Inside, the values were dual numbers :math:`z = x + \varepsilon \dot x`, and so are the
    cotangents, with their parts exchanged: that of :math:`y + \varepsilon \dot y` is
    :math:`\bar{\dot y} + \varepsilon \bar y`. The sweep of what was recorded takes it to
    :math:`\bar{\dot x} + \varepsilon \bar x`, for the adjoint of
    :math:`(x, \dot x) \mapsto (f(x), J(x) \dot x)` is
    :math:`\bar{\dot x} = J^H \bar{\dot y}`,
    :math:`\bar x = J^H \bar y + \partial_x (J^H \bar{\dot y}) \cdot \dot x`.

    Parameters
    ----------
    results : sequence of (Node, (array, array))
        The nodes inside, with values and tangents.
    out : Exit
        As for `unpack_dual`.
    edges : sequence of Node
        The nodes at which a sweep inside ends.
    """

    __slots__ = ("out",)

    out: Exit

    def __init__(
        self,
        results: Sequence[tuple[Node, tuple[Any, Any]]],
        out: Exit,
        edges: Sequence[Node],
    ) -> None:
        self.number = tick()
        self.out = out
        self.saved = ([node for node, _ in results], edges)
        self.parents = tuple([owner for _, owner, _ in out.ways(edges)])
        self.watch = None
        self.shape = tuple(primal.shape for _, (primal, _) in results for _ in range(2))
        self.dtype = tuple(primal.dtype for _, (primal, _) in results for _ in range(2))

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        roots, edges = self.values()
        seeds = [
            (root, _exchanged(g.items.get(2 * i), g.items.get(2 * i + 1), self.out.level))
            for i, root in enumerate(roots)
            if 2 * i in g.items or 2 * i + 1 in g.items
        ]
        ways = [
            (position, edge.number, part)
            for position, (edge, owner, part) in enumerate(self.out.ways(edges))
            if wanted is None or owner.number in wanted
        ]
        targets = {number for _, number, _ in ways}
        if not targets:
            return []
        leading = leading_to(targets, [node for node, _ in seeds])
        seeds = [(node, g) for node, g in seeds if node.number in leading]
        with transforming():  # the cotangents carry tangents, also within `no_grad`
            arrived = sweep(seeds, keep=True, targets=targets, wanted=leading, ends=targets)
        cotangents = self._parts(list(arrived.values()))
        parts = {node.number: g for node, g in zip(arrived, cotangents, strict=True)}
        found = [(at, parts[number][part]) for at, number, part in ways if number in parts]
        return [(position, more) for position, more in found if more is not None]

    def _parts(self, cotangents: list[Any]) -> list[Any]:
        if cotangents and isinstance(cotangents[0], Tensor):
            return unpack_dual(cotangents, self.out)
        return [_apart(g, self.out.level) for g in cotangents]

    def name(self) -> str:
        return "UnpackDualBackward0"

    @property
    def operation(self) -> str:
        return "unpack_dual"


def _exchanged(primal: Any, tangent: Any, level: int) -> Any:
    """The dual cotangent inside, in which value and tangent are exchanged."""
    if tangent is None:
        tangent = namespaces[type(primal)].zeros_like(primal)
    if isinstance(tangent, Tensor):
        return make_dual(tangent, primal, level)
    return Dual(tangent, primal, level)
