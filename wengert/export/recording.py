"""Recordings on arrays of array-api-strict, which consist of the standard's functions."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import numpy as np

from wengert.backends import Backend, Selection, backend_of, dtype_of, get_backend
from wengert.backends.array_api_strict import StrictBackend
from wengert.backends.registry import local_selection, namespaces
from wengert.compiler.calls import Call, tensors_of
from wengert.compiler.capture.lines import line_that_raised
from wengert.compiler.changes import Before
from wengert.compiler.compiled import Compiled
from wengert.compiler.emission.exported import ExportedProgram
from wengert.compiler.state import State, is_array
from wengert.export.errors import ExportError
from wengert.export.graph import SUMS
from wengert.nn.conversion import convert, replace
from wengert.tape.hooks import has_hooks
from wengert.tape.tensor import Tensor

__all__ = ["array_in", "preserving", "record", "resize"]


class _Recorder(StrictBackend):
    """array-api-strict, with functions that ONNX has beyond the standard."""

    @property
    def kernels(self) -> Mapping[str, Any]:  # type: ignore[override]
        sums = {name: partial(self._sum, name) for name in SUMS}
        return {"add_rows": self._add_rows, **sums}

    def _sum(self, name: str, x: Any, /, **parameters: Any) -> Any:
        """A sum or product, also of bools, which the standard leaves out."""
        xp = get_backend(self.name).namespace
        x = xp.astype(x, xp.int64) if x.dtype == xp.bool else x
        return getattr(xp, name)(x, **parameters)

    def _add_rows(self, x: Any, rows: Any, *, n: int) -> Any:
        """Sum the rows of ``x`` into ``n`` rows of zeros."""
        return get_backend(self.name).namespace.add_rows(x, rows, n=n)


@cache
def _recorder() -> _Recorder:
    return _Recorder()


@contextmanager
def _recording() -> Iterator[Backend]:
    """Let the recorder handle arrays of array-api-strict, and make new ones."""
    recorder = _recorder()
    kind = type(recorder.xp.zeros(()))
    before = get_backend(recorder.name).namespace
    token = local_selection.set(Selection(recorder, None, "wengert.export"))
    namespaces[kind] = recorder.namespace
    try:
        yield recorder
    finally:
        namespaces[kind] = before
        local_selection.reset(token)


def array_in(leaf: Any) -> Any:
    """Return the raw array of a Tensor, or a raw array itself; None for other objects."""
    if isinstance(leaf, Tensor):
        return leaf._array
    return leaf if is_array(leaf) else None


def resize(leaves: Sequence[Any], axes: Mapping[int, int], size: int) -> list[Any]:
    """Return leaves of another batch size, whose rows repeat the given ones."""
    made = list(leaves)
    for i, axis in axes.items():
        leaf, array = leaves[i], array_in(leaves[i])
        backend = backend_of(array)
        rows = np.arange(size) % array.shape[axis]
        held = backend.to_numpy(backend.array(array)).take(rows, axis)
        moved = backend.from_numpy(held, backend.device(array))
        made[i] = backend.xp.astype(moved, backend.raw_dtype(dtype_of(array.dtype)))
        if isinstance(leaf, Tensor):
            made[i] = Tensor(made[i])
            made[i].requires_grad = leaf.requires_grad
    return made


@contextmanager
def preserving(state: State, leaves: Sequence[Any]) -> Iterator[None]:
    """Restore the state and the leaves after a ``with`` block."""
    before = Before(state, leaves)
    try:
        yield
    finally:
        before.restore()


def record(
    strict: Compiled[..., Any], call: Call, state: State, leaves: Sequence[Any]
) -> ExportedProgram:
    """Record a call with other leaves on array-api-strict; its changes are undone."""
    quiet = np.errstate(all="ignore")  # the function itself, which runs in the check, may warn
    with preserving(state, leaves), _recording() as backend, quiet:
        moved = _move(state, leaves, backend)
        args, _ = call.layout.structure.unflatten(moved)
        try:
            ready = strict.record_call(args)
        except TypeError as error:
            _, lacks, dtype = str(error).partition("array_api_strict has no data type ")
            if not lacks:
                raise
            raise _no_such(dtype.split(";")[0], f"{line_that_raised(error)}: ") from error
        if not ready:
            raise ExportError(
                f"{strict.report.name} makes state in its first call, such as gradients, or what "
                "an optimizer keeps: call it once before you export it"
            )
        return strict.export()


def _no_such(dtype: str, where: str = "") -> TypeError:
    return TypeError(f"{where}{dtype} can't be exported; convert to another dtype, as float32")


def _move(state: State, leaves: Sequence[Any], backend: Backend) -> list[Any]:
    """Move a state to a library, and return the leaves moved there."""

    def transfer(array: Any) -> Any:
        dtype = dtype_of(array.dtype)
        if not hasattr(backend.xp, dtype.name):
            raise _no_such(dtype.name)
        return convert(array, backend, dtype)

    for tensor in tensors_of(leaves, state):
        node = tensor._node
        if node is not None and (not tensor.is_leaf or has_hooks(node)):
            raise ValueError(
                "a Tensor that was computed outside, or has hooks, can't be state or an argument "
                "of what is exported: detach it, or compute it inside"
            )
        grad = tensor._grad
        replace(tensor, transfer(tensor._array))
        tensor._grad = None if grad is None else Tensor(transfer(grad._array))
    for place in state.arrays:
        place.set(transfer(place.get()))
    return [transfer(x) if is_array(x) else x for x in leaves]
