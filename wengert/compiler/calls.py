"""Calls: their flattened arguments, and the signature that selects a program."""

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from wengert.backends import backend_of, selection
from wengert.compiler.owners import class_of_user
from wengert.compiler.program import order_of
from wengert.compiler.state import Exact, State, is_array, is_plain, same
from wengert.func.trees import TreeDef, tree_flatten
from wengert.ops.data_type import get_default_dtype
from wengert.tape.grad_mode import is_grad_enabled, is_inference_mode_enabled
from wengert.tape.hooks import has_hooks
from wengert.tape.tensor import Tensor

__all__ = ["Arguments", "Call", "Layout", "kind_of", "same_keys", "signature_of", "tensors_of"]


class Arguments:
    """The signature of a function, and its static arguments."""

    def __init__(self, function: Callable[..., Any], static: frozenset[str]) -> None:
        self._function, self.static = function, static
        #: Whether the code may ask for the type of a number, which a traced one would not tell.
        self.typed = False

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self._function)

    def positional(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Bind arguments, by position where possible."""
        with suppress(TypeError):  # which the function itself raises, and more often is right
            bound = self._signature.bind(*args, **kwargs)
            return bound.args, bound.kwargs
        return args, kwargs

    def names(self, count: int) -> list[str]:
        """The names of the first ``count`` positional arguments."""
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
        Whether each leaf is of a static argument, whose numbers are constants.
    """

    def __init__(self, structure: TreeDef, arguments: Arguments) -> None:
        self.structure, self._arguments = structure, arguments

    @cached_property
    def _pairs(self) -> list[tuple[str, TreeDef]]:
        positional, keyword = self.structure.children
        names = self._arguments.names(len(positional.children))
        given = zip(names, positional.children, strict=False)
        return [*given, *zip(keyword.extra.keys, keyword.children, strict=True)]

    @cached_property
    def names(self) -> list[str]:
        return [name + path for name, child in self._pairs for path in child.paths()]

    @property
    def static(self) -> list[bool]:
        static, typed = self._arguments.static, self._arguments.typed
        return [
            typed or name in static for name, child in self._pairs for _ in range(child.num_leaves)
        ]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout) or self.structure != other.structure:
            return False
        mine, others = ([x for _, x in layout._facts] for layout in (self, other))
        return same_keys(mine, others)

    def __hash__(self) -> int:
        return hash(self.structure.num_leaves)

    @cached_property
    def _facts(self) -> list[tuple[str, Any]]:
        """The classes, keys, factories and attributes of the structure, with their names."""
        found, structures = list[tuple[str, Any]](), [self.structure]
        for structure in structures:
            structures += structure.children
            extra = structure.extra
            if structure.cls is not None and class_of_user(structure.cls):
                found.append((structure.cls.__name__, structure.cls))
            keys = [getattr(extra, "factory", None), *getattr(extra, "inserted", ())]
            found += [*[("a key", x) for x in keys], *getattr(extra, "still", ())]
        return found

    def roots(self, leaves: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        """The leaves, and classes, keys and attributes of what they are in, with their names."""
        yield from zip(self.names, leaves, strict=True)
        for name, x in {id(x): (name, x) for name, x in self._facts if not is_plain(x)}.values():
            yield name, (x,) if isinstance(x, Tensor) or is_array(x) else x  # as part of the state

    @property
    def plain(self) -> bool:
        """Whether all arguments are leaves, given by position."""
        args, kwargs = self.structure.children
        return not kwargs.children and all(child.cls is None for child in args.children)


class Call:
    """The flattened arguments of one call.

    Attributes
    ----------
    args, kwargs : tuple, dict
        The arguments.
    leaves, layout : list, Layout
        Their leaves, and their structure.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], arguments: Arguments) -> None:
        self.args, self.kwargs = args, kwargs
        self.leaves, structure = tree_flatten((args, kwargs))
        self.layout = Layout(structure, arguments)

    @cached_property
    def kinds(self) -> Any:
        """The part of the signature that does not need the state."""
        pairs = zip(self.leaves, self.layout.static, strict=True)
        kinds = tuple([_kind(x, fixed) for x, fixed in pairs])
        return kinds, self.layout, is_grad_enabled(), is_inference_mode_enabled()


def signature_of(leaves: Sequence[Any], layout: Layout, state: State) -> dict[str, Any]:
    """The signature of a call, which selects its program."""
    held = [*(at.tensor for at in state.tensors), *leaves]
    objects = [*held, *[place.get() for place in state.arrays]]
    objects += [x._grad for x in held if isinstance(x, Tensor)]
    kept = [x for x in objects if isinstance(x, Tensor) or is_array(x)]
    numbers: dict[int, int] = {}
    which = tuple([numbers.setdefault(id(x), i) for i, x in enumerate(kept)])
    where, pairs = selection(), zip(leaves, layout.static, strict=True)
    return {
        "the structure of the arguments": layout,
        "an argument": tuple([_kind(x, fixed) for x, fixed in pairs]),
        "the recording mode": (is_grad_enabled(), is_inference_mode_enabled()),
        "where new arrays are made": (where.backend.name, str(where.device), get_default_dtype()),
        "the state": state.structure(),
        "a Tensor of the state": tuple([_kind(at.tensor, False) for at in state.tensors]),
        "a raw array of the state": tuple([kind_of(place.get()) for place in state.arrays]),
        "a gradient": tuple([_kind_of_gradient(x) for x in held]),
        "which Tensors, arrays and gradients are one": which,
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


def _kind_of_gradient(x: Any) -> Any:
    """The class and dtype of a Tensor's gradient, which may differ from the Tensor's."""
    grad = x._grad if isinstance(x, Tensor) else None
    return None if grad is None else (type(grad._array), grad._array.dtype)


def _kind(x: Any, fixed: bool) -> Any:
    """The part of an argument, or of a Tensor of the state, that belongs to the signature."""
    if isinstance(x, Tensor):
        node = x._node
        return (*kind_of(x._array), node and x.is_leaf, node is not None and has_hooks(node))
    if is_array(x):
        return kind_of(x)
    if type(x) is float and not fixed and math.isfinite(x):
        return float  # code asks for the identity of others
    if is_plain(x):
        return Exact(x)
    return "an object"  # the walk visits it


def kind_of(array: Any) -> tuple[Any, ...]:
    """The part of an array that belongs to the signature: all but its values."""
    if type(array) is np.ndarray:  # which takes a fraction of the time
        order = None if array.flags.c_contiguous else array.strides
        return np.ndarray, array.shape, array.dtype, "cpu", order
    device = str(backend_of(array).device(array))
    return (type(array), tuple(array.shape), array.dtype, device, order_of(array))


def same_keys(now: Any, then: Any) -> bool:
    """Whether as many keys or elements are the same objects, or plain and of equal types."""
    if isinstance(then, frozenset):
        known: dict[Any, Any] = {x: x for x in then}
        then = [known.get(x, known) for x in now] if len(now) == len(then) else ()
    pairs = zip(now, then, strict=False)
    alike = all(x is y or (is_plain(x) and same(x, y)) for x, y in pairs)
    return alike and len(now) == len(then)
