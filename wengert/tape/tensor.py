"""The Tensor: an array, a flag, a gradient and a node."""

import math
import weakref
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.backends import Backend, BackendError, DType, backend_of, dtype_of, get_backend
from wengert.backends.lengths import known_lengths, unsized
from wengert.tape.grad_mode import following, recording, tangents_flow
from wengert.tape.node import (
    AccumulateGrad,
    Inside,
    Node,
    Output,
    is_lifted,
    mark,
    running_forwards,
)
from wengert.tape.observers import observing, tell
from wengert.tape.printing import format_tensor
from wengert.tape.views import Shown, same, show

IN_PLACE_ON_LEAF = (
    "a leaf Variable that requires grad is being used in an in-place operation. Change it inside "
    "`with wg.no_grad():`, as an optimiser does, or compute a new Tensor: y = x + 1 for x += 1."
)

#: Modules that are needed where values leave the tape, as in few programs.
_LEAVING = "wengert.tape.leaving"

if TYPE_CHECKING:
    from wengert.tape.methods import Methods  # what wengert.ops.operators attaches
else:
    Methods = object


class Tensor(Methods):
    """An array of any library, whose operations are recorded for differentiation.

    It is the Array API standard's array object; methods and operators call `wengert`'s functions.

    ``array`` is of any library that follows the standard. It is not copied, as by `wengert.tensor`.
    Raises `TypeError` if it is no array, and `RuntimeError` if it should require grad and is
    neither floating nor complex.

    Examples
    --------
    >>> x = wg.tensor([1.0, 2.0], requires_grad=True)
    >>> (x**2).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ("__weakref__", "_array", "_grad", "_leaf", "_node", "_shown")

    _array: Any
    _grad: "Tensor | None"
    _node: Node | None
    _leaf: Node | None  # only of leaves that were frozen: recorded operations may lead to it
    _shown: Shown  # only of views, and of Tensors that views were taken of

    def __init__(self, array: Any, *, requires_grad: bool = False) -> None:
        self._array = backend_of(array).adopt(array)
        self._grad = None
        self._node = None
        if requires_grad:
            self.requires_grad = True

    # -- the array ---------------------------------------------------------------------------

    @property
    def array(self) -> Any:
        """The raw array of the backend's library, not a copy of it; see `numpy` for errors."""
        check_leaving(self, "array")
        return backend_of(self._array).array(self._array)

    @property
    def backend(self) -> Backend:
        """The backend whose array this is."""
        return backend_of(self._array)

    @property
    def dtype(self) -> DType:
        """The data type, as one of Wengert's own."""
        return dtype_of(self._array.dtype)

    @property
    def device(self) -> Any:
        """The device, as the array library names it."""
        return backend_of(self._array).device(self._array)

    @property
    def shape(self) -> tuple[int, ...]:
        """The length along each axis."""
        return known_lengths(self._array.shape) if unsized else self._array.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._array.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the values as a NumPy array, which may share this Tensor's memory.

        Raises `RuntimeError` if the Tensor requires grad, or a transform differentiates it.
        """
        return self._host("numpy")

    def _host(self, way: str) -> np.ndarray[Any, Any]:
        check_leaving(self, way)
        if self.requires_grad:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
                "instead; for X.dot(w) of a NumPy array X write X @ w."
            )
        return host_values(self)

    def item(self) -> Any:
        """Return the only element as a Python number.

        Raises `ValueError` if there are several or none, and `RuntimeError` if a transform
        differentiates the Tensor: the derivative would be lost.
        """
        check_leaving(self, "item")
        return only_element(self)

    def tolist(self) -> Any:
        """Return the values as nested lists of Python numbers."""
        check_leaving(self, "tolist")
        return host_values(self).tolist()

    def __bool__(self) -> bool:
        if observing:
            tell("left", self, "__bool__")
        followed = self._node is not None or is_lifted(self._array)
        if followed and self.dtype.inexact and import_module(_LEAVING).is_flag():
            return bool(number_of(self, "__bool__"))
        return bool(only_element(self))

    def __int__(self) -> int:
        if self.dtype.inexact:
            check_leaving(self, "__int__")
        return int(only_element(self))

    def __float__(self) -> float:
        return float(number_of(self, "__float__"))

    def __complex__(self) -> complex:
        return complex(number_of(self, "__complex__"))

    def __index__(self) -> int:
        if self.ndim or not self.dtype.kind.endswith("integer"):
            raise TypeError(
                "only integer Tensors of one element can be an index, and this one has dtype "
                f"{self.dtype.name} and shape {tuple(self.shape)}"
            )
        return int(only_element(self))

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    __hash__ = object.__hash__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(self._host("__array__"), dtype=dtype, copy=copy)

    def __dlpack__(
        self,
        /,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        check_leaving(self, "__dlpack__")
        if self.requires_grad:
            raise BufferError("Can't export a Tensor that requires grad; use tensor.detach()")
        asked = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        array = self.array
        given = {k: v for k, v in asked.items() if v is not None}
        return backend_of(array).to_dlpack(array, **given)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self.array.__dlpack_device__()  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return format_tensor(self, host_values)

    def __format__(self, spec: str) -> str:
        return format(only_element(self), spec) if spec else repr(self)

    # -- the flag ----------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this Tensor are recorded. It can be set on leaves alone."""
        return self._node is not None and type(self._node) is not Inside

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if bool(value) == self.requires_grad:
            return
        if not value:
            if not self.is_leaf:
                raise RuntimeError(
                    "you can only change requires_grad flags of leaf variables. If you want to "
                    "use a computed variable in a subgraph that doesn't require differentiation "
                    "use var_no_grad = var.detach()."
                )
            self._leaf, self._node = self._node, None
            return
        if not self.dtype.inexact:
            raise RuntimeError(
                "only Tensors of floating point and complex dtype can require gradients, not "
                f"{self.dtype.name}; convert with wg.astype(x, wg.float32) first"
            )
        array, node = self._array, getattr(self, "_leaf", None)
        if node is not None and not _is_alike(node, array):
            node.watch, node = None, None
        if node is None:
            node = AccumulateGrad(shape=array.shape, dtype=array.dtype)
            node.watch = weakref.ref(self)
        self._node = node

    def requires_grad_(self, requires_grad: bool = True) -> "Tensor":
        """Set `requires_grad` and return this Tensor."""
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether this Tensor was not computed by a recorded operation."""
        return not self.requires_grad or isinstance(self._node, AccumulateGrad)

    @property
    def grad_fn(self) -> Node | None:
        """The recorded operation that gave this Tensor; None for a leaf."""
        node = None if self.is_leaf else self._node
        return node.parents[0] if isinstance(node, Output) else node

    def detach(self) -> "Tensor":
        """Return a Tensor of the same values that is not tracked, and has no tangent."""
        if observing:
            tell("left", self, "detach")
        detached = untracked(self._array.as_constant() if is_lifted(self._array) else self._array)
        show(detached, self, same, {})
        return detached

    # -- the gradient ------------------------------------------------------------------------

    @property
    def grad(self) -> "Tensor | None":
        """The gradient that `backward` accumulated, or None. It can be set, or deleted.

        A result has it only after `retain_grad`; a warning says so.
        """
        if self._grad is None and not (self.is_leaf or self.retains_grad):
            warn_of_leaving("grad")
        return self._grad

    @grad.setter
    def grad(self, value: "Tensor | None") -> None:
        if value is not None:
            check_like("assigned grad", value, self.shape, self.dtype, self.backend)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def retains_grad(self) -> bool:
        """Whether this is no leaf and `backward` keeps its gradient all the same."""
        return not self.is_leaf and self._node.watch is not None  # type: ignore[union-attr]

    def retain_grad(self) -> None:
        """Let `backward` fill ``.grad`` of this Tensor although it is no leaf.

        Raises `RuntimeError` if the Tensor does not require grad.
        """
        if self._node is None:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        self._node.watch = weakref.ref(self)

    # -- copies ------------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> "Tensor":
        followed = self._node is not None or is_lifted(self._array)
        if followed and (
            isinstance(self._node, Inside) or import_module(_LEAVING).copied_on_the_way()
        ):
            return memo.setdefault(id(self), self.clone())  # type: ignore[no-any-return]
        check_leaving(self, "__deepcopy__")
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol; use x.detach() first"
            )
        copied = type(self).__new__(type(self))
        copied._array = backend_of(self._array).namespace.asarray(self.array, copy=True)
        copied._node = None
        copied._grad = None if self._grad is None else self._grad.detach().clone()
        copied.requires_grad = self.requires_grad
        memo[id(self)] = copied
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        check_leaving(self, "__reduce__")
        if not self.is_leaf:
            raise RuntimeError("only leaf Tensors can be pickled; use x.detach() first")
        backend = backend_of(self._array)
        held, device = backend.to_pickle(self.array)
        kind, tracked = type(self), self.requires_grad
        return _unpickle, (kind, backend.name, held, tracked, self.dtype, device)


# -- values that leave, and values that change ----------------------------------------------------


def check_leaving(tensor: Tensor, way: str) -> None:
    """Tell observers that values leave by a method, and raise if a transform follows them."""
    if observing:
        tell("left", tensor, way)
    if is_lifted(tensor._array) or (following and tensor._node is not None):
        import_module(_LEAVING).refuse(tensor, way)


def warn_of_leaving(what: str) -> None:
    """Warn of values that leave the tape, as PyTorch does."""
    import_module(_LEAVING).warn(what)


def check_like(
    what: str, value: Any, shape: Any, dtype: DType | None = None, backend: Backend | None = None
) -> None:
    """Raise if a value is no Tensor of a shape, or has another dtype or backend than one given."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{what} should be a Tensor or None, not {type(value).__name__}")
    dtype = dtype or value.dtype
    if tuple(value.shape) != tuple(shape) or value.dtype is not dtype:
        raise RuntimeError(
            f"{what} has shape {tuple(value.shape)} and dtype {value.dtype.name}, but should have "
            f"shape {tuple(shape)} and dtype {dtype.name}"
        )
    if backend not in (None, value.backend):
        raise BackendError(
            f"{what} is on {value.backend.name}, but should be on {backend.name}: move it with "
            f"to_backend({backend.name!r})"
        )


def differentiates(value: Any) -> bool:
    """Whether a derivative flows through a value now."""
    if not isinstance(value, Tensor) or not recording():
        return False
    return value._node is not None or bool(getattr(value._array, "followed", False))


def number_of(tensor: Tensor, way: str) -> Any:
    """The number that a conversion or an option takes out, with a warning if it is tracked."""
    if tensor.dtype.inexact:
        check_leaving(tensor, way)
    number = only_element(tensor)
    if tensor.requires_grad and recording():
        warn_of_leaving("scalar")
    return number


def host_values(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The values to look at, which derivatives do not follow."""
    array = tensor._array
    values = array.values() if is_lifted(array) else array
    backend = backend_of(array)
    found = backend.array(values)
    return found if type(found) is np.ndarray else backend.to_numpy(found)


def only_element(tensor: Tensor) -> Any:
    """The only element as a Python number, which derivatives do not follow."""
    if tensor.size != 1:
        raise ValueError(
            f"a Tensor of shape {tuple(tensor.shape)} has {tensor.size} elements and cannot be "
            "converted to a Python scalar; item() needs exactly one"
        )
    return host_values(tensor).item()


def check_views(x: Any, result: Any = None, operand: Any = None, key: Any = ...) -> None:
    """Warn of a change in place, where a Tensor that shares its memory in PyTorch may be alive."""
    shown = getattr(x, "_shown", None)
    if shown is not None and weakref.getweakrefcount(shown.memory) > 1:
        import_module("wengert.tape.aliases").check(x, result, operand, key)


def assign(tensor: Tensor, result: "Tensor", operand: Any = None, key: Any = ...) -> "Tensor":
    """Let a Tensor take over another's value and node: the end of ``x += y``.

    The old array is left as it is, so nothing that was saved or shared can change. ``key``, the
    part that changes, and ``operand``, the right-hand side, are for the warning about views.
    """
    if recording() and isinstance(tensor._node, AccumulateGrad):
        raise RuntimeError(IN_PLACE_ON_LEAF)
    if result.shape != tensor.shape:
        raise RuntimeError(
            f"output with shape {tuple(tensor.shape)} doesn't match the broadcast shape "
            f"{tuple(result.shape)} of the in-place operation"
        )
    if result.dtype is not tensor.dtype:
        raise RuntimeError(
            f"result type {result.dtype.name} can't be stored in place in a Tensor of dtype "
            f"{tensor.dtype.name}"
        )
    check_views(tensor, result, operand, key)
    if observing:
        tell("assigned", tensor, result)
    array = tensor._array
    tensor._array = result._array
    node = result._node
    if node is None and is_lifted(array) and not tangents_flow():
        tensor._array = array.with_values(result._array)
    if node is not None or recording():
        if tensor.retains_grad and node is not None:
            tensor._node.watch, node.watch = None, tensor._node.watch  # type: ignore[union-attr]
        tensor._node = node
        if running_forwards:
            mark(tensor)
    return tensor


def _is_alike(a: Any, b: Any) -> bool:
    """Whether shapes and dtypes are equal; dtypes of two libraries are not compared."""
    return a.shape == b.shape and type(a.dtype) is type(b.dtype) and a.dtype == b.dtype


def _unpickle(
    cls: type[Tensor],
    name: str,
    array: Any,
    requires_grad: bool,
    dtype: DType | None = None,
    device: str | None = None,
) -> Tensor:
    tensor = cls.__new__(cls)
    backend = get_backend(name)
    there = {backend.device_name(known): known for known in backend.devices()} if device else {}
    tensor._array = backend.from_numpy(array, there.get(device or ""))  # None, if it is not there
    if dtype is not None and dtype.host != dtype.name:  # NumPy had it in a wider one
        tensor._array = backend.xp.astype(tensor._array, backend.raw_dtype(dtype))
    tensor._grad = tensor._node = None
    tensor.requires_grad = requires_grad
    return tensor


_new_tensor = Tensor.__new__


def wrap(x: Any) -> Tensor:
    """A Tensor as it is, and a raw array as a Tensor."""
    return x if isinstance(x, Tensor) else Tensor(x)


def untracked(array: Any) -> Tensor:
    """Return a Tensor of a raw array that is on no tape."""
    tensor = _new_tensor(Tensor)
    tensor._array = array
    tensor._grad = tensor._node = None
    return tensor


def with_node(array: Any, node: Node | None) -> Tensor:
    """Return a Tensor of a raw array that is the result of a node, or on no tape for None."""
    tensor = _new_tensor(Tensor)
    tensor._array = array
    tensor._grad = None
    tensor._node = node
    return tensor
