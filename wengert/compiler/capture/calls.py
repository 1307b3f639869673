"""Calls: their flattened arguments, and the signature that selects a program."""

import inspect
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import cached_property
from types import FunctionType
from typing import Any

import numpy as np

from wengert.backends import backend_of, selection
from wengert.compiler.capture.containers import whole
from wengert.compiler.capture.places import NUMBERS, PLAIN, Exact, State, contents, is_array, same
from wengert.compiler.program import order_of
from wengert.func.trees import TreeDef, tree_flatten
from wengert.ops.data_type import get_default_dtype
from wengert.tape.grad_mode import is_grad_enabled, is_inference_mode_enabled
from wengert.tape.tensor import Tensor

__all__ = [
    "Arguments",
    "Call",
    "Layout",
    "SharedError",
    "kind_of",
    "signature_of",
    "taken_apart",
    "tensors_of",
]


class Arguments:
    """The signature of a function, and its static arguments, whose numbers are constants."""

    def __init__(self, function: Callable[..., Any], static: frozenset[str]) -> None:
        self._function, self.static = function, static

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self._function)

    def positional(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Bind arguments, by position where possible."""
        bound = self._signature.bind(*args, **kwargs)
        return bound.args, bound.kwargs

    def names(self, count: int) -> list[str]:
        """The names of the first ``count`` positional arguments."""
        function = self._function
        if type(function) is FunctionType and not vars(function):
            code = function.__code__  # inspect.signature takes as long as half a small step
            if count <= code.co_argcount:
                return list(code.co_varnames[:count])
        try:
            known = self._signature.parameters.values()
        except (TypeError, ValueError):
            return [f"x{i}" for i in range(count)]
        names: list[str] = []
        for parameter in known:
            if parameter.kind is parameter.VAR_POSITIONAL:
                names += [f"{parameter.name}{i}" for i in range(count - len(names))]
            elif parameter.kind is not parameter.VAR_KEYWORD:
                names.append(parameter.name)
        return names


class Layout:
    """A structure of arguments, compared with the order and types of dict keys.

    Attributes
    ----------
    structure : TreeDef
        Of positional and keyword arguments.
    names : list of str
        A readable name of each leaf.
    static : list of bool
        Whether each leaf is of a static argument.
    """

    def __init__(self, structure: TreeDef, arguments: Arguments) -> None:
        self.structure, self._arguments = structure, arguments

    @cached_property
    def _given(self) -> list[tuple[str, TreeDef]]:
        positional, keyword = self.structure.children
        names = self._arguments.names(len(positional.children))
        given = zip(names, positional.children, strict=False)
        return [*given, *zip(keyword.extra.keys, keyword.children, strict=True)]

    @cached_property
    def names(self) -> list[str]:
        return [name + path for name, child in self._given for path in child.paths()]

    @cached_property
    def static(self) -> list[bool]:
        static = self._arguments.static
        return [name in static for name, child in self._given for _ in range(child.num_leaves)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and _same_layout(self.structure, other.structure)

    def __hash__(self) -> int:
        return hash(self.structure.num_leaves)

    def __repr__(self) -> str:
        return str(self.structure)

    def given(self, leaves: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        """The leaves with their names."""
        return zip(self.names, leaves, strict=True)

    @property
    def plain(self) -> bool:
        """Whether all arguments are leaves, given by position."""
        args, kwargs = self.structure.children
        return not kwargs.children and all(child.cls is None for child in args.children)


class SharedError(Exception):
    """A container among the arguments comes twice, or is also reached otherwise."""


class Call:
    """The flattened arguments of one call.

    Parameters
    ----------
    args, kwargs : tuple, dict
        Its arguments.
    arguments : Arguments
        Of the function.
    shared : container of int
        Identities of containers to take as leaves, as objects are, because they come more than
        once, or are also reached otherwise.

    Attributes
    ----------
    args, kwargs : tuple, dict
        The arguments.
    leaves, layout : list, Layout
        The arguments' leaves, and their structure.
    apart, whole : list
        The containers that are flattened, and those that are leaves.

    Raises
    ------
    SharedError
        If a container comes more than once and is not among the shared ones.
    """

    def __init__(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        arguments: Arguments,
        shared: Container[int],
    ) -> None:
        self.args, self.kwargs, self.whole = args, kwargs, list[Any]()
        self.leaves, structure, self.apart = taken_apart(args, kwargs, shared, self.whole)
        ids = [*map(id, self.apart)]
        if len({*ids}) < len(ids):
            raise SharedError(*self.whole, *[x for x in self.apart if ids.count(id(x)) > 1])
        self.layout = Layout(structure, arguments)

    def given(self, containers: Sequence[int]) -> tuple[Any, ...]:
        """The leaves, followed by some of the containers that are flattened."""
        return *self.leaves, *[self.apart[i] for i in containers]

    @cached_property
    def arguments(self) -> Any:
        """The part of the signature that does not need the state."""
        pairs = zip(self.leaves, self.layout.static, strict=True)
        kinds = tuple([_kind(x, fixed) for x, fixed in pairs])
        return kinds, self.layout, is_grad_enabled(), is_inference_mode_enabled()

    def check(self, reached: Mapping[int, Any]) -> None:
        """Raise if a flattened container is also reached otherwise: its copy would differ."""
        if found := [x for x in self.apart if id(x) in reached]:
            raise SharedError(*self.whole, *found)


def taken_apart(
    args: tuple[Any, ...], kwargs: dict[str, Any], shared: Container[int], kept: list[Any]
) -> tuple[list[Any], TreeDef, list[Any]]:
    """Flatten arguments: the leaves, their structure, and the containers that are flattened.

    ``shared`` has the identities of containers that are leaves, which are added to ``kept``.
    """
    apart: list[Any] = []

    def leaf(x: Any) -> bool:
        if id(x) in shared:
            kept.append(x)
            return True
        if whole(x):
            return True
        if not (x is None or x is args or x is kwargs or (type(x) is tuple and not x)):
            apart.append(x)
        return False

    leaves, structure = tree_flatten((args, kwargs), leaf)
    return leaves, structure, apart[1:]  # without the pair of both


def signature_of(leaves: Sequence[Any], layout: Layout, state: State) -> dict[str, Any]:
    """The signature of a call, which selects its program."""
    seen = {id(at.tensor): -1 - i for i, at in enumerate(state.tensors)}
    seen |= {id(x): -1 - i for i, x in enumerate(state.reached_arrays(), len(seen))}
    objects = [x for x in leaves if isinstance(x, Tensor) or is_array(x)]
    order = [seen.setdefault(id(x), i) for i, x in enumerate(objects)]
    where, pairs = selection(), zip(leaves, layout.static, strict=True)
    held = [*(at.tensor for at in state.tensors), *leaves]
    return {
        "the structure of the arguments": layout,
        "an argument": tuple([_kind(x, fixed) for x, fixed in pairs]),
        "which arguments are the same Tensor or array": tuple(order),
        "the recording mode": (is_grad_enabled(), is_inference_mode_enabled()),
        "where new arrays are made": (where.backend.name, str(where.device), get_default_dtype()),
        "the state": state.structure(),
        "a Tensor of the state": tuple([_kind(at.tensor, False) for at in state.tensors]),
        "a raw array of the state": tuple([kind_of(place.get()) for place in state.arrays]),
        "which gradients there are": _gradients(held),
        "a gradient": tuple([_kind_of_gradient(x) for x in held]),
    }


def tensors_of(leaves: Sequence[Any], state: State) -> list[Tensor]:
    """The Tensors that `Ref` indexes: those of the state, then those among the leaves."""
    tensors = [at.tensor for at in state.tensors]
    known = {id(tensor) for tensor in tensors}
    for leaf in leaves:
        if isinstance(leaf, Tensor) and id(leaf) not in known:
            known.add(id(leaf))
            tensors.append(leaf)
    return tensors


def _gradients(held: Sequence[Any]) -> tuple[Any, ...]:
    """For each Tensor whether it has a gradient, and which other Tensor or gradient that is."""
    tensors = {id(x): -1 - i for i, x in enumerate(held) if isinstance(x, Tensor)}
    seen: dict[int, tuple[int, Any]] = {}
    found: list[Any] = []
    for i, x in enumerate(held):
        grad = x._grad if isinstance(x, Tensor) else None
        if grad is None:
            found.append(False if isinstance(x, Tensor) else None)
            continue
        first, owner = seen.setdefault(id(grad), (i, x))
        other = tensors.get(id(grad), first)
        found.append(True if owner is x and other >= 0 else ("the same as", other))
    return tuple(found)


def _kind_of_gradient(x: Any) -> Any:
    """The class and dtype of a Tensor's gradient, which may differ from the Tensor's."""
    grad = x._grad if isinstance(x, Tensor) else None
    return None if grad is None else (type(grad._array), grad._array.dtype)


def _kind(x: Any, fixed: bool) -> Any:
    """The part of an argument, or of a Tensor of the state, that belongs to the signature."""
    if isinstance(x, Tensor):
        return (*kind_of(x._array), None if x._node is None else x.is_leaf)
    if is_array(x):
        return contents(x) if fixed else kind_of(x)
    if type(x) in NUMBERS and not fixed:
        return type(x)
    if type(x) in PLAIN or isinstance(x, np.generic):
        return Exact(x)
    return "an object"  # the walk has guards for it


def kind_of(array: Any) -> tuple[Any, ...]:
    """The part of an array that belongs to the signature: all but its values."""
    device = str(backend_of(array).device(array))
    return (type(array), tuple(array.shape), array.dtype, device, order_of(array))


def _same_layout(a: TreeDef, b: TreeDef) -> bool:
    if a is b:
        return True
    alike = a.cls is b.cls and len(a.children) == len(b.children) and _same_keys(a.extra, b.extra)
    return alike and all(map(_same_layout, a.children, b.children))


def _same_keys(a: Any, b: Any) -> bool:
    a, b = getattr(a, "inserted", a), getattr(b, "inserted", b)
    if type(a) is tuple and type(b) is tuple:
        return len(a) == len(b) and all(map(_same_keys, a, b))
    return a is b or (same(a, b) if type(a) in PLAIN else type(a) is type(b) and bool(a == b))
