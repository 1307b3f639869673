"""Hooks: functions that a program registers, called with gradients or with saved values.

PyTorch's ``torch.autograd.graph``. A node becomes a `Hooked` one, another class over the same
slots, if it gets a hook, its values are packed, or anomaly detection checks it. The sweep inlines
plain nodes alone and calls the methods of others, so nodes without hooks cost nothing more.
"""

import weakref
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

from wengert.backends import Backend, backend_of, dtype_of
from wengert.tape.anomaly import check, describe, detecting
from wengert.tape.grad_mode import recording, set_grad_enabled, unrecorded
from wengert.tape.node import Node, constant_beside, recorded_by
from wengert.tape.observers import Observer, exchange, observers
from wengert.tape.tensor import Tensor, check_like, untracked

__all__ = ["Node", "RemovableHandle", "save_on_cpu", "saved_tensors_hooks"]

Hook = Callable[..., Any]

_next_id: Callable[[], int] = count().__next__


class RemovableHandle:
    """The handle of a registered hook: a context, whose `remove` takes the hook away.

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
        self._hooks = hooks  # copied with them, a handle belongs to the copy
        self._id = _next_id()
        hooks[self._id] = hook

    def remove(self) -> None:
        """Take the hook away, if it is still there."""
        self._hooks.pop(self._id, None)

    def __enter__(self) -> "RemovableHandle":
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


class Hooks(dict[int, Hook]):
    """Hooks of one kind on one node, in the order in which they were registered."""

    __slots__ = ()


class Extra:
    """The hooks on one node: on its Tensor's gradient, and after a leaf's accumulation."""

    __slots__ = ("accumulated", "gradient")

    def __init__(self) -> None:
        self.gradient, self.accumulated = Hooks(), Hooks()


class Hooked(Node):
    """A node with hooks, with packed values, or under anomaly detection."""

    __slots__ = ()

    def receive(self, g: Any) -> Any:
        if self.extra is None or not self.extra.gradient or g is None:
            return g
        recorded = isinstance(g, Tensor)
        with mode_of(recorded):
            for hook in list(self.extra.gradient.values()):
                answer = hook(g if recorded else untracked(g))
                if answer is not None:
                    what = f"the answer of hook {_name(hook)!r}"
                    like = backend_of(g._array if recorded else g)
                    check_like(what, answer, g.shape, dtype_of(g.dtype), like)
                    g = answer if recorded else constant_beside(answer._array, g)
        return g

    def values(self) -> tuple[Any, ...]:
        return tuple(map(unpack, super().values()))

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
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
        """Accumulate a leaf's cotangent by ``give``, and run the hooks that follow."""
        give(self, g)
        # As in PyTorch, the hooks of a frozen leaf run, with nothing accumulated.
        tensor = None if self.watch is None else self.watch()
        if tensor is not None:
            with mode_of(isinstance(g, Tensor)):
                for hook in list(self.extra.accumulated.values()):
                    hook(tensor)


#: For each class of nodes, the one that its nodes become members of.
_hooked: dict[type[Node], type[Hooked]] = {Node: Hooked}

#: Leaves whose gradients are accumulated during the sweep, as soon as they are complete.
eager: weakref.WeakSet[Node] = weakref.WeakSet()


def make_hooked(node: Node) -> None:
    """Make a node a `Hooked` one."""
    kind = type(node)
    if issubclass(kind, Hooked):
        return
    if kind not in _hooked:
        _hooked[kind] = type(f"Hooked{kind.__name__}", (Hooked, kind), {"__slots__": ()})
    node.extra = None
    node.__class__ = _hooked[kind]


def has_hooks(node: Node | None) -> bool:
    """Whether there are hooks on the Tensor of a node."""
    extra = node.extra if isinstance(node, Hooked) else None
    return extra is not None and bool(extra.gradient or extra.accumulated)


def extra_of(node: Node) -> Extra:
    """The hooks on a node, which has them from now on."""
    make_hooked(node)
    node.extra = node.extra or Extra()
    return node.extra  # type: ignore[no-any-return]


def mode_of(recorded: bool) -> set_grad_enabled | unrecorded:
    """The mode in which users' rules and hooks run in a sweep: recorded if the sweep is."""
    return set_grad_enabled(True) if recorded and recording() else unrecorded()


def _name(hook: Hook) -> str:
    return getattr(hook, "__qualname__", type(hook).__name__)


# -- registering hooks ---------------------------------------------------------------------------


def _callable(hook: Any) -> Hook:
    if not callable(hook):
        raise TypeError(f"a hook is a function, not {type(hook).__name__}")
    return hook  # type: ignore[no-any-return]


def _node_of(tensor: Tensor) -> Node:
    if tensor._node is None:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    return tensor._node


def _register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Call a function with this Tensor's gradient whenever it is computed.

    Hooks run in the order of their registration, once in a backward pass, when all that flows to
    the Tensor has been added up and before it flows on.

    ``hook(grad)`` returns None, or a Tensor of the same shape and dtype that takes the gradient's
    place. The handle's method ``remove()`` takes the hook away. Raises `RuntimeError` if the
    Tensor does not require grad; in the backward pass `RuntimeError` or `TypeError`, if a hook
    returns another shape or dtype, or no Tensor.
    """
    return RemovableHandle(extra_of(_node_of(self)).gradient, _callable(hook))


def _register_post_accumulate_grad_hook(
    self: Tensor, hook: Callable[[Tensor], None]
) -> RemovableHandle:
    """Call a function with this leaf after a backward pass has added to its ``.grad``.

    It is called as soon as the gradient is complete, while the sweep goes on, so that it can use
    the gradient and free it: ``x.grad = None``. If the sweep then fails, what it did stays. The
    handle's method ``remove()`` takes the hook away. Raises `RuntimeError` if the Tensor is no
    leaf or does not require grad.
    """
    node = _node_of(self)
    if not self.is_leaf:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    eager.add(node)
    return RemovableHandle(extra_of(node).accumulated, _callable(hook))


Tensor.register_hook = _register_hook  # type: ignore[method-assign]
Tensor.register_post_accumulate_grad_hook = _register_post_accumulate_grad_hook  # type: ignore[method-assign]


# -- what is saved -------------------------------------------------------------------------------


class saved_tensors_hooks(Observer):
    """Choose how arrays are saved for the backward pass.

    Inside the context, ``pack_hook`` is given a Tensor of every array that an operation saves, and
    its answer is kept instead. In the backward pass ``unpack_hook`` makes the Tensor again. So
    saved values can be compressed, moved, or written to a disk. Contexts nest, and the innermost
    alone is asked. It belongs to the running thread or task.

    Parameters
    ----------
    pack_hook : callable
        ``pack_hook(tensor)`` returns anything. The Tensor is not tracked; nothing that the hook
        does is recorded.
    unpack_hook : callable
        ``unpack_hook(packed)`` returns a Tensor of the same shape and dtype, with the same values
        as far as the gradients are to be right.

    Notes
    -----
    One array may be saved by several operations, and is packed for each. Shapes, numbers and
    dtypes are saved as they are. The backward pass raises `RuntimeError` or `TypeError` if
    ``unpack_hook`` returns another shape or dtype, or no Tensor.

    Examples
    --------
    >>> kept = []
    >>> def pack(x):
    ...     kept.append(x.shape)
    ...     return wg.astype(x, wg.float16)
    >>> x = wg.ones((2, 3), requires_grad=True)
    >>> with wg.autograd.graph.saved_tensors_hooks(pack, lambda x: wg.astype(x, wg.float32)):
    ...     y = wg.square(x)
    >>> kept
    [(2, 3)]
    """

    looks_inside = True

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self._pack, self._unpack = _callable(pack_hook), _callable(unpack_hook)

    def __enter__(self) -> None:
        exchange(None, self)

    def __exit__(self, *exception: object) -> None:
        exchange(self, None)

    def operated(
        self, name: str, primitive: Any, inputs: list[Tensor], results: list[Tensor]
    ) -> None:
        own = next((result._node for result in results if result._node is not None), None)
        if own is None or primitive is None:  # a Function packs what it saves itself
            return
        node = recorded_by(own)
        if node.saved:
            node.saved = tuple([self._pack_value(value) for value in node.saved])
            make_hooked(node)

    def _pack_value(self, value: Any) -> Any:
        """A value that a node saves, packed if it is an array, or a tuple of arrays."""
        if type(value) is tuple:
            return tuple(map(self._pack_value, value))
        is_array = hasattr(value, "dtype") and hasattr(value, "shape")
        # The hooks inside have packed it already.
        return Packed(self, value) if is_array and not isinstance(value, type | Packed) else value


def _packing() -> saved_tensors_hooks | None:
    """The hooks on saved values of this thread or task, the innermost of them."""
    return next((one for one in observers() if isinstance(one, saved_tensors_hooks)), None)


class Packed:
    """A saved array as a pack hook left it."""

    __slots__ = ("dtype", "shape", "unpack", "value")

    def __init__(self, hooks: saved_tensors_hooks, array: Any) -> None:
        self.unpack = hooks._unpack
        self.shape, self.dtype = tuple(array.shape), dtype_of(array.dtype)
        with unrecorded():
            self.value = hooks._pack(untracked(array))

    def open(self) -> Any:
        """The array that the unpack hook gives for it."""
        with unrecorded():
            tensor = self.unpack(self.value)
        what = f"the answer of unpack hook {_name(self.unpack)!r}"
        check_like(what, tensor, self.shape, self.dtype)
        return tensor._array


def pack(array: Any) -> Any:
    """The array that is saved now, packed if hooks are on."""
    hooks = _packing()
    return array if hooks is None else Packed(hooks, array)


def unpack(value: Any) -> Any:
    """Unpack a result of `pack`, or a tuple of them, to the saved value."""
    kind = type(value)
    if kind is Packed:
        return value.open()
    return tuple(map(unpack, value)) if kind is tuple and Packed in map(type, value) else value


class save_on_cpu(saved_tensors_hooks):
    """Save arrays for the backward pass in host memory, and move them back when they are used.

    Inside the context, an array of another device becomes a NumPy array when it is saved. One that
    is in host memory already is kept as it is.

    Examples
    --------
    >>> x = wg.ones(3, requires_grad=True)
    >>> with wg.autograd.graph.save_on_cpu():
    ...     y = wg.exp(x)  # what it saves is kept in the computer's memory
    >>> y.sum().backward()
    >>> x.grad
    tensor([2.7183, 2.7183, 2.7183])
    """

    def __init__(self) -> None:
        super().__init__(_to_host, _from_host)


def _to_host(tensor: Tensor) -> Any:
    array = tensor._array
    # DLPack's number of host memory is 1. What does not tell, such as a dask array, has no device.
    with suppress(AttributeError, BufferError, ValueError):
        if array.__dlpack_device__()[0] != 1:
            backend = backend_of(array)
            return backend, backend.to_numpy(backend.array(array)), backend.device(array)
    return tensor


def _from_host(packed: Tensor | tuple[Backend, Any, Any]) -> Tensor:
    if isinstance(packed, Tensor):
        return packed
    backend, values, device = packed
    return untracked(backend.from_numpy(values, device))
