"""Checking: a program and the function run from the same state, and are compared.

The program's changes are undone before the function runs, whose changes stay.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, Final, NamedTuple

import numpy as np

from wengert.backends import backend_of, dtype_of, generators
from wengert.compiler.binding import MISS, Failed
from wengert.compiler.calls import Call
from wengert.compiler.capture.errors import CompileError
from wengert.compiler.changes import Before, DrawError, show
from wengert.compiler.messages import apart
from wengert.compiler.replay import Replay
from wengert.compiler.state import State, is_array, is_plain
from wengert.func.trees import TreeDef, tree_flatten, tree_leaves
from wengert.tape.tensor import Tensor

__all__ = ["check", "different"]

#: Tolerance beside an array's largest element. Programs call the same kernels on the same operands,
#: so they differ only where a library's rounding depends on the operands' order in memory.
ROUNDING: Final = {
    "float16": 4 * 2**-10,
    "bfloat16": 2 * 2**-7,
    "float32": 32 * 2**-23,
    "complex64": 32 * 2**-23,
    "float64": 32 * 2**-52,
    "complex128": 32 * 2**-52,
}


def check(
    replay: Replay, function: Callable[[], Any], call: Call, state: State
) -> tuple[Any, list[str]] | Failed | None:
    """Run a call by its program and then by the function, from the same state.

    Returns what the function returned, and how the program differs; None if the program is not for
    the call, and an error of the program, after which the function has not run. The function's
    error is raised. With collectives both run apart from other processes, and then the function as
    it is.
    """
    before, exchanges = Before(state, call.leaves), replay.recording.exchanges
    with apart() if exchanges else nullcontext():
        try:
            given = replay.run_plainly(call, state)
            if given is MISS:
                return None
            if type(given) is Failed:
                return given
            one = _look(given, before)
        finally:
            before.restore()
        answer = function()
        other = _look(answer, before)
    found = [*_differences(one, other)]
    try:
        before.check()
    except CompileError as error:
        if not isinstance(error, DrawError) or before.alone:
            found.insert(0, str(error))
    if exchanges:
        before.restore()
        answer = function()
    return answer, found


class _Held(NamedTuple):
    """A Tensor as it is now, and which of those that were there, or that are met, it is."""

    kind: type
    array: Any
    node: Any
    grad: Any
    which: int


class _Seen(NamedTuple):
    """What a call has returned and left."""

    structure: TreeDef
    parts: list[tuple[str, Any]]
    random: list[Any]


def _look(answer: Any, before: Before) -> _Seen:
    objects = {id(x) for x in before.state.objects if not isinstance(x, tuple)}
    leaves, structure = tree_flatten(answer, lambda x: id(x) in objects and x is not None)
    parts = [(f"result{path}", x) for path, x in zip(structure.paths(), leaves, strict=True)]
    names = {id(at.tensor): at.name for at in before.state.tensors}
    parts += [(names.get(id(x), "an argument"), x) for x in before.tensors]
    parts += [(place.name, place.get()) for place in before.state.changing()]
    known = [id(x) for at in before.held for x in (at.tensor, at.grad)]
    which = {x: i for i, x in enumerate(dict.fromkeys(known))}
    held = [(name, _hold(x, which)) for name, x in parts]
    states = tree_leaves(generators.get_rng_state())  # texts of arrays would leave elements out
    random = [x.tolist() if hasattr(x, "tolist") else x for x in states]
    return _Seen(structure, held, random)


def _hold(x: Any, which: dict[int, int]) -> Any:
    if isinstance(x, Tensor):
        # The array first: reading one that is filled (`wengert.numpy`) ends the filling.
        array, number = x._array, which.setdefault(id(x), len(which))
        return _Held(type(x), array, x._node, _hold(x._grad, which), number)
    return tuple([_hold(y, which) for y in x]) if isinstance(x, tuple) else x


def _differences(one: _Seen, other: _Seen) -> Iterator[str]:
    """How the program's call differs from the function's."""
    if one.structure != other.structure:
        yield f"it returns {one.structure}, and the function {other.structure}"
        return
    for (name, x), (_, y) in zip(one.parts, other.parts, strict=True):
        yield from different(name, x, y)
    if one.random != other.random:
        yield "other random numbers are drawn"


def different(name: str, x: Any, y: Any) -> Iterator[str]:
    """How the program's value ``x`` differs from the function's value ``y``."""
    if x is y:
        return
    if type(x) is not type(y) and not (_is_scalar(x) and _is_scalar(y)):
        yield f"{name} is {_kind(x)}, and {_kind(y)} by the function"
    elif type(x) is _Held:
        if x.kind is not y.kind or (x.node is None) != (y.node is None):
            yield f"{name} differs in its class, or in whether it requires grad"
        elif x.array is not y.array:
            yield from _unequal(name, x.array, y.array)
        if x.which != y.which:
            yield f"{name} is another Tensor by the function"
        yield from different(f"{name}.grad", x.grad, y.grad)
    elif is_array(x) or isinstance(x, np.generic):
        yield from _unequal(name, x, y)
    elif type(x) is tuple and len(x) == len(y):
        for i, parts in enumerate(zip(x, y, strict=True)):
            yield from different(f"{name}[{i}]", *parts)
    elif is_plain(x) and repr(x) != repr(y):
        yield f"{name} is {show(x)}, and {show(y)} by the function"


def _is_scalar(x: Any) -> bool:
    """Whether this is a NumPy scalar, which may be replaced by a 0-d array."""
    return isinstance(x, np.generic | np.ndarray) and not x.shape


def _kind(x: Any) -> str:
    return f"a {x.kind.__name__}" if type(x) is _Held else show(x)


def _unequal(name: str, x: Any, y: Any) -> Iterator[str]:
    """How two arrays differ by more than rounding."""
    scalars = _is_scalar(x) and _is_scalar(y)
    if (
        (type(x) is not type(y) and not scalars)
        or tuple(x.shape) != tuple(y.shape)
        or x.dtype != y.dtype
    ):
        yield (
            f"{name} is a {type(x).__name__} of shape {tuple(x.shape)} and dtype {x.dtype}, and "
            f"a {type(y).__name__} of shape {tuple(y.shape)} and dtype {y.dtype} by the function"
        )
        return
    worst = distance(x, y)
    if worst > 0:
        yield f"{name} differs from what the function gives by up to {worst:.3g}"


def distance(x: Any, y: Any) -> float:
    """The largest difference of two arrays of one shape and dtype; 0 if it is rounding."""
    dtype = dtype_of(x.dtype).name
    one, other = (np.ravel(backend_of(each).to_numpy(each)) for each in (x, y))
    if one.tobytes() == other.tobytes():
        return 0.0
    if dtype not in ROUNDING:
        return 0.0 if np.array_equal(one, other) else 1.0
    kind = np.complex128 if "complex" in dtype else np.float64
    one, other = (each.astype(kind).view(np.float64) for each in (one, other))
    finite = np.isfinite(other)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
        return math.inf
    if not np.isfinite(one[finite]).all():
        return math.inf
    error = float(np.max(np.abs(one[finite] - other[finite]), initial=0.0))
    largest = float(np.max(np.abs(other[finite]), initial=0.0))
    return 0.0 if error <= ROUNDING[dtype] * largest else error
