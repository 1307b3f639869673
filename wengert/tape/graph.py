"""Nodes, and what is saved for the backward pass: PyTorch's ``torch.autograd.graph``."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from wengert.backends import Backend, backend_of
from wengert.tape.hooks import Packing, RemovableHandle, packing
from wengert.tape.node import Node
from wengert.tape.observers import begin, end
from wengert.tape.tensor import Tensor, untracked

__all__ = ["Node", "RemovableHandle", "save_on_cpu", "saved_tensors_hooks"]


class saved_tensors_hooks:
    """Choose what is kept in the place of each array that is saved for the backward pass.

    Of every array that an operation saves inside the context, ``pack_hook`` is given a Tensor, and
    what it returns is kept in its place. When the backward pass comes to the operation,
    ``unpack_hook`` makes the Tensor of it again. So saved values can be compressed, moved, or
    written to a disk. Contexts nest, and the innermost alone is asked. It belongs to the running
    thread or task.

    Parameters
    ----------
    pack_hook : callable
        ``pack_hook(tensor)`` returns anything. The Tensor is not tracked; nothing that the hook
        does is recorded.
    unpack_hook : callable
        ``unpack_hook(packed)`` returns a Tensor of the same shape and dtype, with the same values
        as far as the gradients are to be right.

    Raises
    ------
    RuntimeError
        In the backward pass, if what ``unpack_hook`` returned has another shape or dtype; a
        TypeError, if it is no Tensor.

    Notes
    -----
    One array may be saved by several operations, and is packed for each. Shapes, numbers and
    dtypes are saved as they are.

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

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        for hook in (pack_hook, unpack_hook):
            if not callable(hook):
                raise TypeError(f"a hook is a function, not {type(hook).__name__}")
        self._hooks = Packing(pack_hook, unpack_hook)
        self._before: list[Packing | None] = []

    def __enter__(self) -> None:
        self._before.append(packing())
        begin(self._hooks, self._before[-1])

    def __exit__(self, *exception: object) -> None:
        end(self._hooks, self._before.pop())


class save_on_cpu(saved_tensors_hooks):
    """Keep what is saved for the backward pass in host memory, and move it back when it is used.

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
