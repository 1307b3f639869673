"""Entering and leaving a level: outside, a forward transform or a batch is one operation.

Operations inside are recorded at the transform's level, as operations on lifted arrays. The node
`Leave` is the transform's operation outside, and its rule sweeps what was recorded inside.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import chain, count, repeat
from typing import Any, ClassVar

from wengert.tape.node import Leaf, Node, Output, Several, walk
from wengert.tape.sweep import leading_to, sweep
from wengert.tape.tensor import Tensor, untracked, with_node


class Entry(Leaf):
    """The node of a transform's argument, a leaf of the graph inside.

    ``owners`` are the nodes outside of what the lifted array was made of.
    """

    __slots__ = ("level", "owners")

    level: int
    owners: tuple[Node | None, ...]

    def __init__(self, lifted: Any, owners: tuple[Node | None, ...]) -> None:
        super().__init__(shape=lifted.shape, dtype=lifted.dtype)
        self.level, self.owners = lifted.level, owners


def enter(lifted: Any, owners: tuple[Node | None, ...]) -> Tensor:
    """A Tensor of a lifted array, with a node inside if an owner has a node outside."""
    if any(owner is not None for owner in owners):
        return with_node(lifted, Entry(lifted, owners))
    return untracked(lifted)


@dataclass(slots=True, frozen=True)
class Exit:
    """How results of a transform leave its level.

    At its begin, ``start`` was the tape's clock, so that nodes with larger numbers are recorded
    inside.
    """

    level: int
    start: int

    #: The operation's name on the tape, and how many parts of a lifted array there are outside.
    operation: ClassVar[str]
    parts: ClassVar[int]

    def split(self, array: Any) -> Any:
        """The parts of an array outside; None in the place of zero."""
        raise NotImplementedError

    def seed(self, parts: Sequence[Any]) -> Any:
        """The cotangent inside of a result's cotangents outside, not all of which are None."""
        raise NotImplementedError

    def total(self, part: Any) -> Any:
        """The cotangent outside of a Tensor that the function closed over."""
        return part

    def follows(self) -> tuple[bool, bool]:
        """Whether results have derivatives outside at all, and whether they are on its tape."""
        return True, True

    def sweeping(self) -> AbstractContextManager[Any]:
        """The context of a sweep inside."""
        return nullcontext()


def leave(tensors: Sequence[Tensor], out: Exit) -> list[tuple[Any, ...]]:
    """The parts outside of Tensors of a level; None for zero.

    Those of a recorded Tensor are on the tape outside, by the arguments' nodes and the closures'.
    """
    split = [out.split(tensor._array) for tensor in tensors]
    flowing, connect = out.follows()
    if not flowing:
        return [tuple([None if x is None else untracked(x).detach() for x in p]) for p in split]
    recorded = [
        (tensor._node, parts[0])
        for tensor, parts in zip(tensors, split, strict=True)
        if connect and tensor._node is not None and parts[0] is not tensor._array
    ]
    ends = _ends([node for node, _ in recorded], out)
    outputs: Iterator[Output] = iter(())
    if ends:
        outputs = map(Output, repeat(Leave(recorded, out, ends)), count())
    found: list[tuple[Any, ...]] = []
    for tensor, parts in zip(tensors, split, strict=True):
        if parts[0] is tensor._array:  # a constant of the level
            found.append((tensor if connect else untracked(parts[0]), *parts[1:]))
            continue
        nodes = [next(outputs, None) if tensor._node is not None else None for _ in parts]
        pairs = zip(parts, nodes, strict=True)
        found.append(tuple([None if x is None else with_node(x, n) for x, n in pairs]))
    return found


def _ends(roots: Sequence[Node], out: Exit) -> list[tuple[Node, Node, int]]:
    """Where the sweep inside stops: each node, its node outside, and the cotangent's part for it.

    A sweep ends at the transform's arguments, and at nodes that were recorded before. Parts of a
    cotangent are in the reverse order of the values that they belong to.
    """
    inside = list(walk(roots, out.start))
    found = [
        (node, owner, -1 - i)
        for node in inside
        if isinstance(node, Entry) and node.level == out.level
        for i, owner in enumerate(node.owners)
        if owner is not None
    ]
    older = {
        node.number: node
        for node in chain(roots, *[node.parents for node in inside])
        if node is not None and node.number < out.start
    }
    return found + [(node, node, -1) for node in older.values()]


class Leave(Several):
    """A transform as one operation: its results are the parts of each lifted result in turn.

    ``results`` are the nodes inside with their values outside, ``ends`` the answer of `_ends`.
    """

    __slots__ = ("out",)

    out: Exit

    def __init__(
        self,
        results: Sequence[tuple[Node, Any]],
        out: Exit,
        ends: Sequence[tuple[Node, Node, int]],
    ) -> None:
        parts = [value for _, value in results for _ in range(out.parts)]
        super().__init__(
            tuple([owner for _, owner, _ in ends]),
            ([node for node, _ in results], ends),
            tuple([value.shape for value in parts]),
            tuple([value.dtype for value in parts]),
        )
        self.out = out

    @property
    def operation(self) -> str:
        return self.out.operation

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        roots, ends = self.values()
        out, given = self.out, g.items
        seeds: list[Any] = []
        for i, root in enumerate(roots):
            parts = [given.get(at) for at in range(out.parts * i, out.parts * (i + 1))]
            if any(part is not None for part in parts):
                seeds.append((root, out.seed(parts)))
        asked = [
            (position, end, owner is end, part)
            for position, (end, owner, part) in enumerate(ends)
            if wanted is None or owner.number in wanted
        ]
        targets = {end.number for _, end, _, _ in asked}
        leading = leading_to(targets, [node for node, _ in seeds])
        seeds = [(node, g) for node, g in seeds if node.number in leading]
        with out.sweeping():
            arrived = sweep(seeds, keep=True, targets=targets, wanted=leading, stop_at_targets=True)
        inner = [*arrived.values()]
        recorded = any(isinstance(x, Tensor) for x in inner)
        split: list[Any] = leave(inner, out) if recorded else [*map(out.split, inner)]
        parts_of = dict(zip(arrived, split, strict=True))
        return [
            (position, out.total(g) if closed else g)
            for position, end, closed, part in asked
            if end in parts_of and (g := parts_of[end][part]) is not None
        ]
