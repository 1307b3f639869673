"""Hooks: functions of the user's that are called as gradients pass, or as values are saved.

A node that gets a hook, whose values are packed, or that anomaly detection checks, becomes a
`Hooked` one: another class over the same slots. The sweep inlines plain nodes alone and calls the
methods of all others, so nodes without hooks cost nothing more.
"""

import weakref
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from wengert.backends import dtype_of, namespaces
from wengert.tape.anomaly import check, describe, detecting
from wengert.tape.grad_mode import recording, set_grad_enabled, unrecorded
from wengert.tape.node import (
    AccumulateGrad,
    Node,
    Output,
    Parts,
    conform,
    constant_beside,
    recorded_by,
    zeros_beside,
)
from wengert.tape.observers import Observer, observers
from wengert.tape.tensor import Tensor, untracked

Hook = Callable[..., Any]

_next_id: Callable[[], int] = count().__next__


class RemovableHandle:
    """What registering a hook returns: `remove` takes the hook away. It is a context, too.

    Examples
    --------
    >>> x = wg.tensor(2.0, requires_grad=True)
    >>> handle = x.register_hook(lambda g: 10 * g)
    >>> (x * x).backward()
    >>> x.grad
    tensor(40.)
    >>> handle.remove()
    """

    def __init__(self, hooks: "Hooks", hook: Hook) -> None:
        self._hooks = weakref.ref(hooks)
        self._id = _next_id()
        hooks[self._id] = hook

    def remove(self) -> None:
        """Take the hook away, if it is still there."""
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self._id, None)

    def __enter__(self) -> "RemovableHandle":
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


class Hooks(dict[int, Hook]):
    """Hooks of one kind on one node, in the order in which they were registered."""

    __slots__ = ("__weakref__",)


class Extra:
    """The hooks of one node.

    Attributes
    ----------
    gradient, before, after, accumulated : Hooks
        Those on the Tensor; on the node, before and after it runs; after accumulation.
    """

    __slots__ = ("accumulated", "after", "before", "gradient")

    def __init__(self) -> None:
        self.gradient, self.before, self.after = Hooks(), Hooks(), Hooks()
        self.accumulated = Hooks()


class Hooked(Node):
    """A node with hooks, with packed values, or under anomaly detection."""

    __slots__ = ()

    def receive(self, g: Any) -> Any:
        extra = self.extra
        if extra is None or not extra.gradient or g is None:
            return g
        tensor, array = isinstance(g, Tensor), g
        with mode_of(tensor):
            for hook in list(extra.gradient.values()):
                given = array if tensor else untracked(array)
                answer = hook(given)
                if answer is not None:
                    array = _accepted(hook, answer, array)
        return array

    def values(self) -> tuple[Any, ...]:
        return tuple(map(release, super().values()))

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        parents = self.parents
        if g is None:
            return []  # a leaf's cotangent that was delivered before
        if wanted is not None and not any(p is not None and p.number in wanted for p in parents):
            return []  # as in PyTorch, hooks are for nodes that have to run
        extra = self.extra
        if extra is None:
            return self._checked(g, wanted)
        if extra.before:
            g = _run_before(self, g)
        flows = self._checked(g, wanted)
        return _run_after(self, flows, g) if extra.after else flows

    def _checked(self, g: Any, wanted: Any) -> list[tuple[int, Any]]:
        detection = detecting()
        if detection is None:
            return super().flows(g, wanted)
        try:
            flows = super().flows(g, wanted)
        except Exception as error:
            error.add_note(f"That was in the derivative of {describe(self)}")
            raise
        if detection.check_nan:
            check(self, g, flows)
        return flows

    def deliver(self, g: Any, give: Callable[[Node, Any], None]) -> None:
        """Accumulate a leaf's cotangent by ``give``, with the node's hooks around it."""
        extra = self.extra
        if extra.before:
            g = _run_before(self, g)
        give(self, g)
        watch = self.watch
        # As in PyTorch, a leaf that was frozen has its hooks called, with nothing accumulated.
        tensor = None if watch is None else getattr(watch, "tensor", watch)()
        if tensor is not None:
            with mode_of(isinstance(g, Tensor)):
                for hook in list(extra.accumulated.values()):
                    hook(tensor)
        if extra.after:
            _run_after(self, [], g)


#: For each class of nodes, the one that its nodes become members of.
_hooked: dict[type[Node], type[Hooked]] = {Node: Hooked}

#: Leaves, by number, whose gradients are accumulated during the sweep as soon as they are complete.
eager: "dict[int, weakref.ref[Node]]" = {}


def _hasten(leaf: Node) -> None:
    number = leaf.number
    eager[number] = weakref.ref(leaf, lambda _: eager.pop(number, None))


def hooked(node: Node) -> None:
    """Make a node a `Hooked` one."""
    kind = type(node)
    if issubclass(kind, Hooked):
        return
    if kind not in _hooked:
        _hooked[kind] = type(f"Hooked{kind.__name__}", (Hooked, kind), {"__slots__": ()})
    node.extra = None
    node.__class__ = _hooked[kind]


def has_hooks(node: Node) -> bool:
    """Whether there are hooks on a node, or on the Tensor whose node it is."""
    extra = node.extra if isinstance(node, Hooked) else None
    return extra is not None and any(
        map(len, (extra.gradient, extra.before, extra.after, extra.accumulated))
    )


def extra_of(node: Node) -> Extra:
    """The hooks on a node, which has them from now on."""
    hooked(node)
    if node.extra is None:
        node.extra = Extra()
    return node.extra  # type: ignore[no-any-return]


class Delivery(Node):
    """A stop of the sweep at which some leaves' cotangents are complete, and are accumulated.

    The sweep meets it where its number is due, which lies just below that of the oldest node
    whose operand the leaves are.
    """

    __slots__ = ("give", "leaves", "reached")

    def __init__(
        self,
        number: float,
        leaves: Iterable[Node],
        reached: dict[int, list[Any]],
        give: Callable[[Node, Any], None],
    ) -> None:
        self.number = number  # type: ignore[assignment]
        self.leaves, self.reached, self.give = tuple(leaves), reached, give
        self.parents = self.saved = ()
        self.watch = None

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        for leaf in self.leaves:
            cell = self.reached.get(leaf.number)
            if cell is not None and cell[1] is not None:
                cotangent, cell[1] = cell[1], None
                leaf.deliver(leaf.receive(cotangent), self.give)  # type: ignore[attr-defined]
        return []


# -- running hooks -------------------------------------------------------------------------------


def mode_of(recorded: bool) -> set_grad_enabled | unrecorded:
    """The mode in which users' rules and hooks run in a sweep: recorded if the sweep is."""
    return set_grad_enabled(True) if recorded and recording() else unrecorded()


def _name(hook: Hook) -> str:
    return getattr(hook, "__qualname__", type(hook).__name__)


def _accepted(hook: Hook, answer: Any, g: Any) -> Any:
    """A hook's answer instead of the cotangent ``g``, a raw array or Tensor as that is."""
    if not isinstance(answer, Tensor):
        raise TypeError(
            f"hook {_name(hook)!r} returned {type(answer).__name__}; it should return a Tensor in "
            "the gradient's place, or None to leave it as it is"
        )
    array = g._array if isinstance(g, Tensor) else g
    new = answer._array
    if tuple(new.shape) != tuple(array.shape):
        raise RuntimeError(
            f"hook {_name(hook)!r} has changed the size of value: it was given a gradient of shape "
            f"{tuple(array.shape)} and returned one of shape {tuple(new.shape)}"
        )
    if dtype_of(new.dtype) is not dtype_of(array.dtype):
        raise RuntimeError(
            f"hook {_name(hook)!r} has changed the type of value: it was given a gradient of dtype "
            f"{dtype_of(array.dtype).name} and returned one of {dtype_of(new.dtype).name}"
        )
    there, here = namespaces[type(new)], namespaces[type(array)]
    if there is not here and None not in (there.backend, here.backend):
        raise RuntimeError(
            f"hook {_name(hook)!r} returned a gradient on {there.backend.name}, and was given one "
            f"on {here.backend.name}"
        )
    return answer if isinstance(g, Tensor) else constant_beside(new, g)


def _opened(g: Any, results: int) -> tuple[Any, ...]:
    """The cotangents of a node's results, raw or Tensors, None where there is none."""
    if type(g) is Parts:
        return tuple(map(g.items.get, range(results)))
    return (g,)


def _tensors(cotangents: Iterable[Any]) -> tuple[Tensor | None, ...]:
    return tuple(g if g is None or isinstance(g, Tensor) else untracked(g) for g in cotangents)


def _replaced(
    hook: Hook, answer: Any, given: tuple[Any, ...], what: str, like: Callable[[int], Any]
) -> tuple[Any, ...]:
    """What a node's hook answered, instead of what it was given."""
    if isinstance(answer, Tensor):
        answer = (answer,)
    if not isinstance(answer, tuple | list):
        raise TypeError(
            f"hook {_name(hook)!r} returned {type(answer).__name__}; it should return a tuple of "
            f"Tensors in the place of {what}, or None to leave them as they are"
        )
    if len(answer) != len(given):
        raise RuntimeError(
            f"hook {_name(hook)!r} returned {len(answer)} gradients in the place of the "
            f"{len(given)} {what}"
        )
    return tuple(
        old if new is None and old is None
        # As in PyTorch, None takes a gradient away.
        else None if new is None
        else _accepted(hook, new, like(at) if old is None else old)
        for at, (new, old) in enumerate(zip(answer, given, strict=True))
    )  # fmt: skip


def _run_before(node: Node, g: Any) -> Any:
    """Run the hooks on a node that see the cotangents of its results, and may replace them."""
    several = type(g) is Parts
    results = len(node.dtype) if several else 1
    given = _opened(g, results)
    example = next(item for item in given if item is not None)

    def zeros(at: int) -> Any:
        shape, dtype = (node.shape[at], node.dtype[at]) if several else (node.shape, node.dtype)
        return zeros_beside(example, shape, dtype)

    with mode_of(isinstance(example, Tensor)):
        for hook in list(node.extra.before.values()):
            answer = hook(_tensors(given))
            if answer is not None:
                given = _replaced(hook, answer, given, "grad_outputs", zeros)
    if not several:
        return zeros(0) if given[0] is None else given[0]
    items = {at: item for at, item in enumerate(given) if item is not None}
    return Parts(node, items or {0: zeros(0)})


def _run_after(node: Node, flows: list[tuple[int, Any]], g: Any) -> list[tuple[int, Any]]:
    """Run the hooks on a node that see the cotangents of its inputs, and may replace them."""
    parents = node.parents
    outputs = _opened(g, len(node.dtype) if type(g) is Parts else 1)
    example = next(item for item in outputs if item is not None)
    inputs: list[Any] = [None] * len(parents)
    for at, more in flows:
        parent = parents[at]
        if isinstance(more, Parts):
            return flows  # of an `Output`, which no hook can be on
        more = conform(more, parent)  # type: ignore[arg-type]
        inputs[at] = more if inputs[at] is None else namespaces[type(more)].add(inputs[at], more)
    given = tuple(inputs)

    def zeros(at: int) -> Any:
        parent = parents[at]
        if parent is None:
            return None
        return zeros_beside(example, parent.shape, parent.dtype)

    with mode_of(isinstance(example, Tensor)):
        for hook in list(node.extra.after.values()):
            answer = hook(_tensors(given), _tensors(outputs))
            if answer is not None:
                given = _replaced(hook, answer, given, "grad_inputs", zeros)
    return [(at, item) for at, item in enumerate(given) if item is not None]


# -- registering hooks ---------------------------------------------------------------------------


def _callable(hook: Any) -> Hook:
    if not callable(hook):
        raise TypeError(f"a hook is a function, not {type(hook).__name__}")
    return hook  # type: ignore[no-any-return]


def _tracked(tensor: Tensor) -> Node:
    if tensor._node is None:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    return tensor._node


def _register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Call a function with this Tensor's gradient whenever it is computed.

    Hooks run in the order of their registration, once in a backward pass, when all that flows to
    the Tensor has been added up and before it flows on. They run before the hooks on the node.

    Parameters
    ----------
    hook : callable
        ``hook(grad)`` returns None, or a Tensor of the same shape and dtype that takes the
        gradient's place.

    Returns
    -------
    RemovableHandle
        Its method ``remove()`` takes the hook away.

    Raises
    ------
    RuntimeError
        If the Tensor does not require grad. In the backward pass, if a hook returns another shape
        or dtype; a TypeError, if it returns no Tensor.
    """
    return RemovableHandle(extra_of(_tracked(self)).gradient, _callable(hook))


def _register_post_accumulate_grad_hook(
    self: Tensor, hook: Callable[[Tensor], None]
) -> RemovableHandle:
    """Call a function with this leaf after a backward pass has added to its ``.grad``.

    It is called as soon as the gradient is complete, while the sweep goes on, so that it can use
    the gradient and free it: ``x.grad = None``. If the sweep then fails, what it did stays.

    Parameters
    ----------
    hook : callable
        ``hook(tensor)``; what it returns does not matter.

    Returns
    -------
    RemovableHandle
        Its method ``remove()`` takes the hook away.

    Raises
    ------
    RuntimeError
        If the Tensor is no leaf or does not require grad.
    """
    node = _tracked(self)
    if not self.is_leaf:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    _hasten(node)
    return RemovableHandle(extra_of(node).accumulated, _callable(hook))


def _register_node_hook(self: Node, hook: Hook) -> RemovableHandle:
    """Call a function with the gradients of this node's inputs and results after it has run.

    Parameters
    ----------
    hook : callable
        ``hook(grad_inputs, grad_outputs)``, both tuples of Tensors, and of None where there is no
        gradient. It returns None, or a tuple in the place of ``grad_inputs``.

    Returns
    -------
    RemovableHandle
        Its method ``remove()`` takes the hook away.
    """
    if isinstance(self, AccumulateGrad):
        _hasten(self)
    return RemovableHandle(extra_of(self).after, _callable(hook))


def _register_prehook(self: Node, hook: Hook) -> RemovableHandle:
    """Call a function with the gradients of this node's results before it runs.

    Parameters
    ----------
    hook : callable
        ``hook(grad_outputs)`` of a tuple of Tensors, and of None where there is no gradient. It
        returns None, or a tuple in their place.

    Returns
    -------
    RemovableHandle
        Its method ``remove()`` takes the hook away.
    """
    if isinstance(self, AccumulateGrad):
        _hasten(self)
    return RemovableHandle(extra_of(self).before, _callable(hook))


Tensor.register_hook = _register_hook  # type: ignore[method-assign]
Tensor.register_post_accumulate_grad_hook = _register_post_accumulate_grad_hook  # type: ignore[method-assign]
Node.register_hook = _register_node_hook  # type: ignore[method-assign]
Node.register_prehook = _register_prehook  # type: ignore[method-assign]


# -- what is saved -------------------------------------------------------------------------------


class Packing(Observer):
    """The observer that packs what operations save: a pair of hooks."""

    looks_inside = True

    def __init__(self, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Tensor]) -> None:
        self.pack, self.unpack = pack, unpack

    def operated(
        self, name: str, primitive: Any, inputs: list[Tensor], results: list[Tensor]
    ) -> None:
        own = next((result._node for result in results if result._node is not None), None)
        if own is None or primitive is None:  # a Function packs what it saves itself
            return
        node = recorded_by(own)
        if node.saved:
            node.saved = tuple([self._packed(value) for value in node.saved])
            hooked(node)

    def _packed(self, value: Any) -> Any:
        """A value that a node saves, packed if it is an array, or a tuple of arrays."""
        if type(value) is tuple:
            return tuple(map(self._packed, value))
        is_array = hasattr(value, "dtype") and hasattr(value, "shape")
        return Packed(self, value) if is_array and not isinstance(value, type) else value


def packing() -> Packing | None:
    """The hooks on saved values of this thread or task, the innermost of them."""
    return next((one for one in observers() if isinstance(one, Packing)), None)


class Packed:
    """A saved array as a pack hook left it."""

    __slots__ = ("dtype", "shape", "unpack", "value")

    def __init__(self, hooks: Packing, array: Any) -> None:
        self.unpack = hooks.unpack
        self.shape, self.dtype = tuple(array.shape), dtype_of(array.dtype)
        with unrecorded():
            self.value = hooks.pack(untracked(array))

    def open(self) -> Any:
        """The array that the unpack hook gives for it."""
        with unrecorded():
            tensor = self.unpack(self.value)
        hook = _name(self.unpack)
        if not isinstance(tensor, Tensor):
            raise TypeError(f"unpack hook {hook!r} returned {type(tensor).__name__}, not a Tensor")
        if tuple(tensor.shape) != self.shape or tensor.dtype is not self.dtype:
            raise RuntimeError(
                f"unpack hook {hook!r} returned shape {tuple(tensor.shape)} and dtype "
                f"{tensor.dtype.name} for a saved Tensor of shape {self.shape} and dtype "
                f"{self.dtype.name}"
            )
        return tensor._array


def hold(array: Any) -> Any:
    """What to keep of an array that is saved now: itself, or what the hooks make of it."""
    hooks = packing()
    return array if hooks is None else Packed(hooks, array)


def release(value: Any) -> Any:
    """A saved value as it was, from what `hold` returned; from a tuple of such, too."""
    kind = type(value)
    if kind is Packed:
        return value.open()
    return tuple(map(release, value)) if kind is tuple and Packed in map(type, value) else value


def supervise(nodes: Iterable[Node]) -> None:
    """Let anomaly detection see nodes that were recorded without it."""
    for node in nodes:
        if not isinstance(node, AccumulateGrad | Output):
            hooked(node)
