"""Checkpointing: values that the backward pass needs are recomputed instead of kept."""

import weakref
from _thread import RLock
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from functools import reduce
from typing import Any, TypeVar

from wengert.backends import Backend, backend_of, dtype_of, generators
from wengert.func.functional import swapped
from wengert.func.trees import TreeDef, tree_flatten, tree_leaves
from wengert.interpreters.batched import Batched
from wengert.interpreters.duals import Dual
from wengert.interpreters.lifted import Lifted, bottom, new_level
from wengert.tape.grad_mode import recording
from wengert.tape.hooks import pack, saved_tensors_hooks, unpack
from wengert.tape.node import Leaf, tick
from wengert.tape.observers import Observer, observed_by
from wengert.tape.primitive import anew
from wengert.tape.tensor import Tensor, untracked, with_node

R = TypeVar("R")


class CheckpointError(RuntimeError):
    """A checkpointed function behaved differently when it was run again.

    Examples
    --------
    >>> calls = []
    >>> def unsteady(x):
    ...     calls.append(1)
    ...     return wg.exp(x) if len(calls) == 1 else wg.exp(x[:1])
    >>> x = wg.ones(2, requires_grad=True)
    >>> wg.checkpoint(unsteady, x).sum().backward()
    Traceback (most recent call last):
        ...
    CheckpointError: checkpoint: the function 'unsteady' saved float32 (2,) on ...
    """


def checkpoint(
    function: Callable[..., R],
    *args: Any,
    preserve_rng_state: bool = True,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> R:
    """Call a function, and keep only its arguments for the backward pass.

    When the backward pass comes to the function's operations, the function is run again to
    recompute what they had saved. This trades time for memory: a chain of n layers in segments of
    √n keeps about 2√n results instead of n, for one more forward pass (Chen et al., Training deep
    nets with sublinear memory cost, 2016). Gradients, also of Tensors that the function closes
    over, are the same bitwise. Checkpoints nest, and derivatives of any order go through them.

    Raises `ValueError` for ``use_reentrant=True``, and `CheckpointError` in the backward pass, if
    the number, shapes, dtypes or devices of the saved arrays differ.

    Parameters
    ----------
    function : callable
        It has to do the same when it is called again with the same arguments.
    *args, **kwargs
        Its arguments: anything. Tensors in them, also inside of trees (`wengert.func`), are kept
        with the values that they have now.
    preserve_rng_state : bool
        Whether Wengert's random generators repeat their draws.
    use_reentrant : bool, optional
        PyTorch's choice between two ways. This is the one of ``False``; the other is refused.

    Notes
    -----
    The function is run again with the recording mode and the backend that were selected at the
    call. Tensors that it uses, such as parameters, and buffers that it writes have their values of
    the call during that run, and afterwards those of before. Other attributes and names have those
    of now. Python's and other libraries' random numbers are not repeated, and changes that it makes
    to other objects are made twice.

    Examples
    --------
    >>> x = wg.ones(3, requires_grad=True)
    >>> y = wg.checkpoint(lambda x: wg.exp(wg.sin(x)), x)  # only x is kept
    >>> y.sum().backward()
    >>> x.grad
    tensor([1.2534, 1.2534, 1.2534])
    """
    _check_reentrant("checkpoint", use_reentrant)
    if not callable(function):
        raise TypeError(f"checkpoint calls a function, not {type(function).__name__}")
    leaves, structure = tree_flatten((args, kwargs))
    if not recording():
        return _split(function(*args, **kwargs), leaves)  # type: ignore[no-any-return]
    frame = _Frame(function, leaves, structure, preserve_rng_state)
    with saved_tensors_hooks(frame.pack, frame.unpack), observed_by(frame):
        try:
            result = function(*args, **kwargs)
        finally:
            frame.close()
    return _split(result, leaves)  # type: ignore[no-any-return]


def _check_reentrant(name: str, use_reentrant: Any) -> None:
    if use_reentrant:
        raise ValueError(
            f"{name} has no use_reentrant=True, with which derivatives of higher order and of "
            "Tensors that the function closes over would be lost: leave it out, or say False"
        )


def _split(result: Any, arguments: list[Any]) -> Any:
    """The result, with a new Tensor for each one that is itself an argument."""
    given = {id(x) for x in arguments if isinstance(x, Tensor)}
    leaves, structure = tree_flatten(result)
    if not any(id(x) in given for x in leaves):
        return result
    return structure.unflatten([anew(x) if id(x) in given else x for x in leaves])


def checkpoint_sequential(
    functions: Iterable[Callable[[Any], Any]],
    segments: int,
    input: Any,
    *,
    preserve_rng_state: bool = True,
    use_reentrant: bool | None = None,
) -> Any:
    """Call functions one after the other, in segments that are checkpoints.

    Raises `ValueError` if there are fewer functions than segments; for ``use_reentrant=True``.

    Parameters
    ----------
    functions : iterable of callable
        Of one argument each, such as the layers of a ``wg.nn.Sequential``.
    segments : int
        In how many runs of about equal length they are divided. The last one keeps what it needs,
        for the backward pass begins with it.
    input : object
        The argument of the first.
    preserve_rng_state, use_reentrant : bool
        As for `checkpoint`.

    Examples
    --------
    >>> model = wg.nn.Sequential(wg.nn.Linear(4, 8), wg.nn.ReLU(), wg.nn.Linear(8, 1))
    >>> x = wg.ones((2, 4))
    >>> wg.checkpoint_sequential(model, 2, x).shape
    (2, 1)
    """
    _check_reentrant("checkpoint_sequential", use_reentrant)
    layers = list(functions)
    if not 1 <= segments <= len(layers):
        raise ValueError(f"{len(layers)} functions cannot be divided into {segments} segments")
    size = len(layers) // segments
    value = input
    for i in range(segments - 1):
        run = _chain(layers[i * size : (i + 1) * size])
        value = checkpoint(run, value, preserve_rng_state=preserve_rng_state)
    return _split(_chain(layers[(segments - 1) * size :])(value), tree_leaves(input))


def _chain(layers: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    return lambda value: reduce(lambda x, layer: layer(x), layers, value)


# -- recomputation -------------------------------------------------------------------------------


class _Holder:
    """Stands for a saved array in a node."""

    __slots__ = ("__weakref__", "array", "index")

    def __init__(self, index: int) -> None:
        self.index = index
        self.array: Any = None


def _set(owner: Any, names: Iterable[str], values: Iterable[Any]) -> None:
    for name, value in zip(names, values, strict=True):
        object.__setattr__(owner, name, value)


class _Frame(Observer):
    """One call of a checkpointed function: how to repeat it, and what it used and saved."""

    looks_inside = True

    def __init__(
        self, function: Callable[..., Any], leaves: list[Any], structure: TreeDef, preserve: bool
    ) -> None:
        self.function, self.structure = function, structure
        tensors = {id(x): x for x in leaves if isinstance(x, Tensor)}
        # Inside another checkpoint, that one recomputes the arguments.
        kept = {key: _Kept(x) for key, x in tensors.items()}
        self.leaves = [kept.get(id(x), x) for x in leaves]
        self.state = generators.get_rng_state() if preserve else None
        self.context = copy_context()
        self.holders: list[weakref.ref[_Holder]] = []
        self.saved: list[str] = []
        self.backends: set[Backend] = set()
        self.lock = RLock()
        self.level, self.since, self.running = new_level(), tick(), True
        #: What Tensors that the function uses, and modules as buffers, had when it ran.
        self.before: dict[Any, tuple[weakref.ref[Any], list[Any]]] = {}
        for (_, name), module in swapped.get().items():
            self._keep(module, name)

    # -- what the function uses ------------------------------------------------------------------

    def operated(self, name: str, primitive: Any, inputs: Any, results: Any) -> None:
        for tensor in inputs:
            self._use(tensor)

    def assigned(self, tensor: Tensor, result: Tensor) -> None:
        self._use(tensor)

    def replaced(self, module: Any, name: str) -> None:
        self._keep(module, name)

    def _use(self, tensor: Tensor) -> None:
        if tensor._node is None or tensor._node.number < self.since:  # not made by the function
            self._keep(tensor, "_array", "_node")

    def _keep(self, owner: Any, *names: str) -> None:
        if self.running and (id(owner), names) not in self.before:
            held = [getattr(owner, name) for name in names]
            self.before[id(owner), names] = weakref.ref(owner), held

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Restore the earlier state inside the context, and the present one at its end."""
        now = []
        for (_, names), (reference, held) in self.before.items():
            if (owner := reference()) is not None:
                now.append((owner, names, [getattr(owner, name) for name in names]))
                _set(owner, names, held)
        try:
            yield
        finally:
            for each in now:
                _set(*each)

    # -- what it saves ---------------------------------------------------------------------------

    def pack(self, tensor: Tensor) -> Any:
        if _is_inside(tensor, self.level):
            return tensor._array
        holder = _Holder(len(self.holders))
        holder.array = tensor._array  # the function may itself sweep what it has recorded
        self.holders.append(weakref.ref(holder))
        self.saved.append(_description(tensor))
        self.backends.add(backend_of(bottom(tensor)))
        return holder

    def close(self) -> None:
        """Free what was saved, after the function has returned, and what it made itself."""
        self.running = False
        self.before = {key: held for key, held in self.before.items() if held[0]() is not None}
        self._free()

    def _free(self) -> None:
        for reference in self.holders:
            if (holder := reference()) is not None:
                holder.array = None

    def unpack(self, holder: Any) -> Tensor:
        if not isinstance(holder, _Holder):
            return untracked(holder)
        if self.running:
            return untracked(holder.array)
        with self.lock:
            if holder.array is None:
                self._compute()
            # Freed after its use; a second use recomputes it.
            array, holder.array = holder.array, None
        return untracked(array)

    def _compute(self) -> None:
        """Run the function again, and fill the holders."""
        before = generators.get_rng_state() if self.state is not None else None
        try:
            if self.state is not None:
                generators.set_rng_state(self.state)
            with self.undone():
                count = self.context.copy().run(self._call)
            if count != len(self.holders):
                raise self._difference(f"{len(self.holders)} arrays", count)
        except BaseException:
            self._free()
            raise
        finally:
            if before is not None:
                generators.set_rng_state(before)

    def _call(self) -> int:
        """Call the function again; return how many arrays it saved."""
        again = {kept: kept.tensor() for kept in self.leaves if isinstance(kept, _Kept)}
        args, kwargs = self.structure.unflatten(
            again[x] if isinstance(x, _Kept) else x for x in self.leaves
        )
        level, count, owned = new_level(), 0, dict[Backend, Callable[[Any], Any]]()

        def pack(tensor: Tensor) -> Any:
            """Fill a holder. The node keeps the array, too, for sweeps inside the function."""
            nonlocal count
            array = tensor._array
            if _is_inside(tensor, level):
                return array
            at, count = count, count + 1
            if at >= len(self.holders):
                return array  # too many: `_compute` raises at the end
            if (saved := _description(tensor)) != self.saved[at]:
                raise self._difference(f"{self.saved[at]} as array {at}", saved)
            if (holder := self.holders[at]()) is not None:
                own = owned.get(backend_of(bottom(array)))
                holder.array = array if own is None else _map_arrays(own, array)
            return array

        with saved_tensors_hooks(pack, untracked), ExitStack() as stack:
            for backend in self.backends:
                owned[backend] = stack.enter_context(backend.recomputing())
            self.function(*args, **kwargs)
        return count

    def _difference(self, first: str, again: Any) -> CheckpointError:
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        return CheckpointError(
            f"checkpoint: the function {name!r} saved {first} for the backward pass when it was "
            f"called, and {again} when it was run again: a checkpointed function has to do the "
            "same both times"
        )


def _map_arrays(function: Callable[[Any], Any], array: Any) -> Any:
    """An array with a function applied to the library's own arrays in it; nodes stay."""
    if isinstance(array, Tensor):
        return with_node(_map_arrays(function, array._array), array._node)
    if isinstance(array, Dual | Batched):
        inner = _map_arrays(function, array.inner)
        if isinstance(array, Batched):
            return type(array)(inner, array.level)
        return Dual(inner, _map_arrays(function, array.tangent), array.level)
    return array if array is None or isinstance(array, Lifted) else function(array)


def _is_inside(tensor: Tensor, level: int) -> bool:
    """Whether a saved Tensor belongs to a transform that began after ``level``, in the function.

    A repeated call has another level for that transform, so that its arrays can't be exchanged.
    """
    array = tensor._array
    return isinstance(array, Lifted) and array.level > level


def _description(tensor: Tensor) -> str:
    """The properties of a saved array that are compared."""
    array = tensor._array
    where = getattr(array, "device", "")
    return f"{dtype_of(array.dtype).name} {tuple(array.shape)} on {where}"


class _Kept:
    """A kept Tensor of the arguments."""

    __slots__ = ("array", "is_leaf", "tracked")

    def __init__(self, tensor: Tensor) -> None:
        self.array = pack(tensor._array)
        self.tracked, self.is_leaf = tensor._node is not None, tensor.is_leaf

    def tensor(self) -> Tensor:
        """An equal Tensor with no graph behind it."""
        array = unpack(self.array)
        if self.tracked and not self.is_leaf:
            return with_node(array, Leaf(shape=array.shape, dtype=array.dtype))
        return untracked(array).requires_grad_(self.tracked)
