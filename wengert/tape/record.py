"""What recording an operation saves, how it is put on the tape, and who is told of it."""

from collections.abc import Callable, Iterable, Sequence
from inspect import unwrap
from operator import itemgetter
from typing import Any, Final

from wengert.backends import dtype_of
from wengert.backends.backend import rule_on_device
from wengert.tape.node import Node, Output, Several, mark, running_forwards, tick
from wengert.tape.observers import tell
from wengert.tape.tensor import Tensor, with_node

Rule = Callable[..., Any]

#: Where a saved value comes from: an input's position, `RESULT`, a range for a tuple of variadic
#: inputs, or None for a static value.
Origin = int | range | None
#: The origin of the result, which stands last in ``(*arrays, out)``.
RESULT: Final = -1


class Plan:
    """What recording an operation saves, and how its rules take it, for some tracked inputs.

    It is worked out from the rules' signatures, once.

    Attributes
    ----------
    primitive, tracked, tangent : Primitive, tuple of bool, bool
        Of which operation and inputs, and whether the rules give tangents, as in forward mode.
    shared : (callable, slice) or None
        What the rules have in common, and which of the saved values are its.
    steps : tuple of (int, callable, int or None, slice)
        For each tracked input: its position, its rule, and which of the saved values are the
        rule's: the place of the only one (None unless there is exactly one), and the slice.
    take : callable or None
        ``take((*arrays, out))`` gives the tuple to save, if inputs and result are all it needs.
    save : callable
        ``save(arrays, out, parameters)`` gives what the rules asked for; where ``take`` is not
        None, that does the same faster.
    origins : tuple of Origin
        Where each saved value came from, which interpreters read.
    """

    __slots__ = ("origins", "primitive", "save", "shared", "steps", "take", "tangent", "tracked")

    shared: tuple[Rule, slice] | None
    origins: tuple[Origin, ...]
    save: Callable[[Sequence[Any], Any, dict[str, Any]], tuple[Any, ...]]
    steps: tuple[tuple[int, Rule, int | None, slice], ...]
    take: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None

    def __init__(self, primitive: Any, tracked: tuple[bool, ...], tangent: bool = False) -> None:
        self.primitive, self.tracked = primitive, tracked
        self.tangent = tangent

    def _work_out(self) -> None:
        origins: list[Origin] = []
        values: list[str] = []

        def piece(rule: Rule, position: int) -> slice:
            start = len(origins)
            for name in argument_names(rule)[2:]:
                origin, value = self._source(name, position)
                origins.append(origin)
                values.append(value)
            return slice(start, len(origins))

        steps: list[tuple[int, Rule, int | None, slice]] = []
        for position, needed in enumerate(self.tracked):
            if needed:
                rule = self.primitive.rule(position, self.tangent)
                own = piece(rule, position)
                alone = own.stop == own.start + 1
                steps.append((position, rule, own.start if alone else None, own))
        shared = None if self.tangent else self.primitive.shared
        self.shared = (shared, piece(shared, 0)) if shared else None
        self.steps = tuple(steps)
        self.origins = tuple(origins)
        self.take = _taker([at for at in origins if isinstance(at, int)], len(origins))
        # One function of the expressions below takes a third of the time of one for each.
        saved = "".join([f"{value}, " for value in values])
        self.save = eval(f"lambda arrays, out, parameters: ({saved})")  # noqa: S307

    def common(self, xp: Any, g: Any, saved: tuple[Any, ...]) -> Any:
        """What the rules take as ``g``, of the cotangents of the results."""
        if self.shared is None:
            return g
        shared, piece = self.shared
        return rule_on_device(xp, shared)(xp, g, *saved[piece])

    def _source(self, name: str, position: int) -> tuple[Origin, str]:
        """The origin of what a rule names, and an expression for it.

        It is an expression of the inputs, the result and the parameters.
        """
        fixed, variadic = self.primitive.fixed, self.primitive.variadic
        first, arity = len(fixed), len(self.tracked)
        owner = name.removesuffix("_shape")
        if name in fixed:
            at = fixed.index(name)
            return at, f"arrays[{at}]"
        if name == "out":
            return RESULT, "out"
        if name == variadic:
            return range(first, arity), f"tuple(arrays[{first}:{arity}])"
        if name == "index" and variadic:
            return None, str(position - first)
        if owner != name and owner in fixed:
            return None, f"getattr(arrays[{fixed.index(owner)}], 'shape', ())"
        if name == "out_shape":
            return None, "out.shape"
        if owner != name and owner == variadic:
            return None, f"tuple([a.shape for a in arrays[{first}:{arity}]])"
        return None, f"parameters[{name!r}]"


class Unused(Plan):
    """A plan before its first use, when it is worked out: no program uses every plan."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        # Python calls this for an empty slot. The first read fills all.
        self._work_out()
        # Of another class from now on: CPython reads slots more slowly beside a `__getattr__`.
        self.__class__ = Plan  # type: ignore[assignment]
        return getattr(self, name)


def _taker(positions: list[int], count: int) -> Callable[[tuple[Any, ...]], tuple[Any, ...]] | None:
    """A C function that takes the saved values from ``(*arrays, out)``, if all are there."""
    if len(positions) < count:
        return None
    if len(positions) > 1:
        return itemgetter(*positions)
    if not positions:
        return itemgetter(slice(0))
    return itemgetter(slice(positions[0], None if positions[0] == RESULT else positions[0] + 1))


def argument_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names of a Python function's positional parameters."""
    code = unwrap(function).__code__
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount]
    return names


# -- on the tape ---------------------------------------------------------------------------------

_new_node = Node.__new__
_new_tensor = Tensor.__new__


def record(
    plan: Plan, parents: tuple[Node | None, ...], saved: tuple[Any, ...], out: Any
) -> Tensor:
    """Put an operation on the tape and return its result. The caller tells observers."""
    node = _new_node(Node)
    node.number = tick()
    node.plan = plan
    node.parents = parents
    node.saved = saved
    node.shape = out.shape
    node.dtype = out.dtype
    node.watch = None
    tensor = _new_tensor(Tensor)
    tensor._array = out
    tensor._grad = None
    tensor._node = node
    if running_forwards:
        mark(tensor)
    return tensor


def record_several(
    plan: Plan, parents: tuple[Node | None, ...], saved: tuple[Any, ...], outs: Sequence[Any]
) -> tuple[Tensor, ...]:
    """As `record`, of an operation with several results."""
    shape = tuple([out.shape for out in outs])
    node = Several(parents, saved, shape, tuple([out.dtype for out in outs]))
    node.plan = plan
    results = tuple(
        with_node(out, Output(node, i) if inexact(out) else None) for i, out in enumerate(outs)
    )
    for tensor in results if running_forwards else ():
        mark(tensor)
    return results


def inexact(array: Any) -> bool:
    """Whether a raw array is floating or complex."""
    return dtype_of(array.dtype).inexact


def observe(name: str, primitive: Any, inputs: Iterable[Any], results: Any) -> None:
    """Tell observers of an operation, with what it was called with and what it gave.

    Called only if there are observers; the rest is as for `Observer.operated`.
    """
    tell("operated", name, primitive, tensors_in(inputs), tensors_in((results,)))


def tensors_in(values: Iterable[Any]) -> list[Tensor]:
    """The Tensors among some values, and in the lists and tuples among them."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found.extend(tensors_in(value))
    return found
