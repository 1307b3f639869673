"""Which Tensors would be views of one storage in NumPy or PyTorch."""

import weakref
from typing import Any

import numpy as np


class Memory:
    """What in NumPy or PyTorch would be one storage, of which several Tensors are views.

    ``array`` is an empty NumPy array in its place, made when overlaps are first looked for.
    """

    __slots__ = ("__weakref__", "array", "complex", "shape")

    array: Any

    def __init__(self, x: Any) -> None:
        self.shape = tuple(x.shape)
        self.complex = x.dtype.complex
        self.array = None


class Shown(weakref.ref[Memory]):
    """Which part of a storage one Tensor is a view of.

    Only the Tensor holds it. So CPython's list of a storage's weak references is the list of its
    live views.
    ``steps`` are the view's operation, its parameters, and the steps before, ``depth`` of them;
    None for the whole storage.
    """

    __slots__ = ("depth", "memory", "steps")

    memory: Memory
    steps: Any
    depth: int


#: How long a chain of steps may grow before it is worked out.
DEPTH = 20


def show(view: Any, x: Any, operation: Any, parameters: dict[str, Any]) -> None:
    """Note that in NumPy or PyTorch a Tensor would be a view of another.

    ``operation`` is the primitive that gives the view on NumPy, or a function that does.
    """
    whole = getattr(x, "_shown", None) or _whole(x)
    memory = whole.memory
    view._shown = shown = Shown(memory)
    shown.memory = memory
    shown.steps = (operation, parameters, whole.steps)
    shown.depth = whole.depth + 1
    if shown.depth > DEPTH:
        shown.steps, shown.depth = (work_out(shown), None, None), 1


def _whole(x: Any) -> Shown:
    memory = Memory(x)
    x._shown = shown = Shown(memory)
    shown.memory, shown.steps, shown.depth = memory, None, 0
    return shown


def work_out(shown: Shown) -> Any:
    """The view of the uninitialised array that stands for the storage."""
    memory, steps, chain = shown.memory, shown.steps, []
    while steps is not None:
        operation, parameters, steps = steps
        chain.append((operation, parameters))
    if memory.array is None:
        memory.array = np.empty(memory.shape, np.complex64 if memory.complex else np.bool_)
    array = memory.array
    for operation, parameters in reversed(chain):
        if parameters is None:
            array = operation
        else:
            kernels = getattr(operation, "kernels", None)
            array = (operation if kernels is None else kernels[np.ndarray])(array, **parameters)
    return array


def same(array: Any) -> Any:
    """The view that is the whole, for `show`."""
    return array
