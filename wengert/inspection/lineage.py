"""What each Tensor of a running program was computed from, whether it is on the tape or not."""

import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from wengert.inspection.breaks import GraphBreak, GraphBreaks, again, call_site, made
from wengert.interpreters.duals import Dual, DualInput
from wengert.interpreters.lifted import Lifted
from wengert.tape.grad_mode import recording
from wengert.tape.node import Node
from wengert.tape.observers import Observer
from wengert.tape.primitive import NOT_IMPLEMENTED, UNDEFINED, Primitive
from wengert.tape.tensor import Tensor

#: How values leave a Tensor: the kind of break, and how the program writes it.
WAYS = {
    "__array__": ("array", "np.asarray"),
    "__bool__": ("branch", "bool"),
    "__complex__": ("number", "complex"),
    "__deepcopy__": ("copy", "copy.deepcopy"),
    "__dlpack__": ("array", "from_dlpack"),
    "__float__": ("number", "float"),
    "__index__": ("number", "operator.index"),
    "__int__": ("number", "int"),
    "__reduce__": ("copy", "pickle or copy.copy"),
    "array": ("array", ".array"),
    "detach": ("detach", "detach"),
    "item": ("number", "item"),
    "numpy": ("array", "numpy"),
    "requires_grad": ("flag", "requires_grad"),
    "tolist": ("number", "tolist"),
}
#: The functions that run first where an operation is called by its name or by its operator.
DIRECTLY = frozenset(
    {"_divmod", "_rdivmod", "_to", "as_tensor", "asarray", "bind", "call", "method"}
)
_STATED: dict[Any, str] = {UNDEFINED: "undefined", NOT_IMPLEMENTED: "not implemented"}


def declared(node: Node, position: int) -> str | None:
    """Return what an operation declares of its derivative in an input; None if it has a rule.

    Returns
    -------
    str or None
        ``"zero"``, ``"undefined"`` or ``"not implemented"``.
    """
    plan = getattr(node, "plan", None)  # leaves, Functions and single results have none
    if plan is None:
        return None
    primitive: Primitive = plan.primitive
    if not primitive.varies(position, node.dtype, int(primitive.several)):
        return "zero"
    return _STATED.get(primitive.rules.get(primitive.input_at(position), NOT_IMPLEMENTED))


def moving(tensor: Tensor) -> bool:
    """Return whether a Tensor has a node or a tangent."""
    return tensor._node is not None or bool(_levels(tensor._array))


def _levels(array: Any) -> list[int]:
    """The levels of forward mode at which an array has a tangent."""
    found = []
    while isinstance(array, Lifted):
        if isinstance(array, Dual) and array.tangent is not None:
            found.append(array.level)
        array = array.inner
    if isinstance(array, Tensor):
        found += _levels(array._array)
    return found


class Tag(NamedTuple):
    """What a value was computed from.

    ``leaves`` are the numbers of leaves on the tape and, negated, levels of forward mode;
    ``breaks`` are the keys of the breaks that lie between.
    """

    leaves: frozenset[int]
    breaks: frozenset[Hashable]

    def __or__(self, other: "Tag") -> "Tag":
        return Tag(self.leaves | other.leaves, self.breaks | other.breaks)


NOTHING = Tag(frozenset(), frozenset())


def _key(one: GraphBreak) -> Hashable:
    """The key by which a break that occurs again is recognised."""
    return (
        one.kind,
        one.operation,
        one.filename,
        one.line,
        one.columns,
        one.through,
    )


class Lineage(Observer):
    """An observer that follows values through the program and notes where derivatives are lost.

    Parameters
    ----------
    names : mapping of int to str, optional
        The names of inputs, by the numbers of their nodes.
    """

    def __init__(self, names: Mapping[int, str] | None = None) -> None:
        self.breaks = GraphBreaks()
        self._names = names or {}
        self._places: dict[Hashable, tuple[list[GraphBreak], int]] = {}
        self._sources: dict[Hashable, frozenset[int]] = {}
        self._nodes: dict[int, Tag] = {}
        self._tensors: dict[int, tuple[Any, Tag]] = {}
        self._at: dict[int, list[Hashable]] = {}
        self._errors: list[tuple[Exception, Hashable]] = []

    @property
    def notes(self) -> tuple[GraphBreak, ...]:
        return self.breaks.notes

    # -- questions -----------------------------------------------------------------------------

    def tag(self, tensor: Tensor) -> Tag:
        """What a Tensor was computed from."""
        if tensor._node is not None:
            found = self._of_node(tensor._node)
        else:
            held = self._tensors.get(id(tensor))
            found = NOTHING if held is None else held[1]
        levels = _levels(tensor._array)
        return found | Tag(frozenset(-n for n in levels), frozenset()) if levels else found

    def union(self, tensors: Iterable[Tensor]) -> Tag:
        """What several Tensors were computed from."""
        total = NOTHING
        for tensor in tensors:
            total |= self.tag(tensor)
        return total

    def leaves_of(self, one: GraphBreak) -> frozenset[int]:
        """The leaves that the Tensor of a break was computed from."""
        return self._sources[_key(one)]

    def flows(self, one: GraphBreak, tag: Tag) -> bool:
        """Whether a value with this tag was computed from values that passed a break."""
        return _key(one) in tag.breaks

    def at(self, node: Node) -> list[GraphBreak]:
        """The breaks of the operation that a node records."""
        return [self._find(key) for key in self._at.get(node.number, ())]

    def cause_of(self, error: BaseException | None) -> GraphBreak | None:
        """The break that raised an error, or raised one of the errors that led to it."""
        while error is not None:
            for raised, key in self._errors:
                if raised is error:
                    return self._find(key)
            error = error.__cause__ or error.__context__
        return None

    def _find(self, key: Hashable) -> GraphBreak:
        where, i = self._places[key]
        return where[i]

    def _of_node(self, node: Node) -> Tag:
        """The tag of a node, including nodes that the observer has not seen recorded."""
        tags = self._nodes
        stack = [node]
        while stack:
            top = stack[-1]
            if top.number in tags:
                stack.pop()
                continue
            # The argument of a forward transform is a leaf inside; its sources are outside.
            sources = top.owners if isinstance(top, DualInput) else top.parents
            parents = [parent for parent in sources if parent is not None]
            # A leaf, or the argument of a reverse transform.
            if not parents and not isinstance(top, DualInput):
                tags[top.number] = Tag(frozenset({top.number}), frozenset())
                continue
            open_ = [parent for parent in parents if parent.number not in tags]
            if open_:
                stack.extend(open_)
                continue
            total = NOTHING
            for parent in parents:
                total |= tags[parent.number]
            tags[top.number] = total
        return tags[node.number]

    # -- what is told --------------------------------------------------------------------------

    def operated(
        self, name: str, primitive: Primitive | None, inputs: list[Tensor], results: list[Tensor]
    ) -> None:
        tag = self.union(inputs)
        if not tag.leaves:
            return
        source = next(filter(moving, inputs), None)
        if source is not None:
            for kind, noted in _losses(name, primitive, inputs, results):
                key = self._note(kind, name, source, tag, noted)
                if key is not None:
                    tag = tag._replace(breaks=tag.breaks | {key})
                    for result in results:
                        if result._node is not None:
                            self._at.setdefault(result._node.number, []).append(key)
        for result in results:
            self._mark(result, tag)

    def left(self, way: str, tensor: Tensor, answer: Any, error: Exception | None) -> None:
        tag = self.tag(tensor)
        if moving(tensor) or (way == "__bool__" and tag.leaves):
            kind, operation = WAYS[way]
            key = self._note(kind, operation, tensor, tag, noted=False)
            if key is not None:
                if error is not None:
                    self._errors.append((error, key))
                tag = tag._replace(breaks=tag.breaks | {key})
        if isinstance(answer, Tensor) and tag.leaves:
            self._mark(answer, tag)

    def refused(self, name: str, inputs: list[Tensor], error: Exception) -> None:
        source = next(filter(moving, inputs), None)
        if source is not None:
            tag = self.union(inputs)
            key = self._note("numpy", f"np.{name}", source, tag, noted=False)
            if key is not None:
                self._errors.append((error, key))

    def assigned(self, tensor: Tensor, result: Tensor) -> None:
        if result._node is None:
            self._mark(tensor, self.tag(result))

    # -- what is kept --------------------------------------------------------------------------

    def _mark(self, tensor: Tensor, tag: Tag) -> None:
        if tensor._node is not None:
            self._nodes[tensor._node.number] = tag
            return
        number = id(tensor)
        forget: Callable[[Any], Any] = lambda _: self._tensors.pop(number, None)
        self._tensors[number] = (weakref.ref(tensor, forget), tag)

    def _note(
        self, kind: str, operation: str, tensor: Tensor, tag: Tag, noted: bool
    ) -> Hashable | None:
        """List a break, or count it, and return its key; None if it is not the program's."""
        where = call_site()
        if where is None:
            return None
        if kind == "detach" and where.entry is not None:
            if where.entry != "tensor":  # one of Wengert's functions detaches on purpose
                return None
            kind, operation = "copy", "wg.tensor"
        elif kind == "branch":
            # Libraries branch to check arguments; branches of the program itself are breaks.
            noted = noted or (where.through is not None and not moving(tensor))
        elif kind in ("cast", "zero"):
            # Inside another of Wengert's functions it is a step of a derivative that is right.
            noted = noted or where.entry not in {*DIRECTLY, operation}
        elif kind in ("number", "array") and where.entry is not None:
            operation = f"{operation} in wg.{where.entry}"
        names = [self._names[leaf] for leaf in sorted(tag.leaves) if leaf in self._names]
        one = made(kind, operation, tensor, where, names)
        key = _key(one)
        held = self._places.get(key)
        if held is None:
            home = self.breaks._notes if noted else self.breaks._breaks
            self._places[key] = home, len(home)
            home.append(one)
        else:
            home, i = held
            home[i] = again(home[i])
        self._sources[key] = self._sources.get(key, frozenset()) | tag.leaves
        return key


def _losses(
    name: str, primitive: Primitive | None, inputs: list[Tensor], results: list[Tensor]
) -> list[tuple[str, bool]]:
    """The kinds of breaks at an operation on tracked Tensors, each with whether it is a note."""
    if primitive is not None and not primitive.rules:
        return [("condition", True)]
    if not any(result.dtype.inexact for result in results):
        # A cast to booleans compares with zero.
        cast = name == "astype" and results[0].dtype.name != "bool"
        return [("cast", False) if cast else ("condition", True)]
    if not any(map(moving, results)):
        if not recording() and any(tensor._node is not None for tensor in inputs):
            return [("no_grad", False)]
        # In forward mode the results have no tangent; a Function may declare that.
        return [("zero", False) if primitive is not None else ("condition", True)]
    node = results[0]._node
    if node is None:
        return []
    if primitive is not None and primitive.several:
        node = node.parents[0]
    stated = [
        declared(node, position)  # type: ignore[arg-type]
        for position, parent in enumerate(node.parents)  # type: ignore[union-attr]
        if parent is not None
    ]
    kinds: list[tuple[str, bool]] = [
        (kind, False) for kind in ("undefined", "not implemented") if kind in stated
    ]
    if "zero" in stated:
        kinds.append(("zero", any(kind != "zero" for kind in stated)))
    return kinds
