"""Checking: the program and the function run from the same state, and are compared.

The program's changes are undone before the function runs, whose changes stay. So a wrong program
costs an error, and nothing else.
"""

import math
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import numpy as np

from wengert.backends import backend_of, dtype_of, generators
from wengert.compiler.capture.calls import Call, tensors_of
from wengert.compiler.capture.containers import of_one_structure, whole
from wengert.compiler.capture.places import State, is_array
from wengert.compiler.capture.recorded import swept
from wengert.compiler.capture.snapshot import Snapshot, alike, same_states
from wengert.compiler.emission.glue import MISS
from wengert.compiler.messages import apart
from wengert.compiler.refusals import Refusal, failed
from wengert.compiler.replay import Replay
from wengert.compiler.restoring import restoring
from wengert.func.trees import tree_flatten
from wengert.tape.hooks import Hooked
from wengert.tape.node import Node
from wengert.tape.sweep import ancestors, sweep
from wengert.tape.tensor import Tensor

__all__ = ["ROUNDING", "Checked", "check", "different", "distance"]

#: Elements up to which arrays are kept for the comparison; of larger ones only a digest is.
KEPT: Final = 1 << 12
#: Tolerance in units in the last place of an array's largest element. Programs call the same
#: kernels on the same operands, so they differ only where a library's rounding depends on the
#: operands' order in memory, as NumPy's of complex numbers.
ROUNDING: Final = {"float16": 4, "bfloat16": 2, "float32": 32, "float64": 32}
_PARTS = {"complex64": "float32", "complex128": "float64"}
#: `==` of classes that do not define it.
_BY_IDENTITY: Any = object.__eq__
_EPS = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23, "float64": 2**-52}


class Checked(NamedTuple):
    """What a check has found.

    Attributes
    ----------
    answer : object
        What the function returned.
    differences : list of str
        How the program's results or state differ from the function's.
    failed : Refusal or None
        The program's error, if it raised one.
    before, inputs : Snapshot, tuple
        The state before the call, and the program's inputs.
    raised : Exception or None
        The function's error, if the program raised none.
    """

    answer: Any
    differences: list[str]
    failed: Refusal | None
    before: Snapshot
    inputs: tuple[Any, ...]
    raised: Exception | None = None


def check(replay: Replay, function: Callable[[], Any], call: Call, state: State) -> Checked | None:
    """Run a call by its program and then by the function, from the same state.

    Returns None if the program's guards refuse the call. If both raise, the function's error is
    raised. An error of the program alone is reported in `Checked.failed`.
    """
    leaves = call.leaves
    before = Snapshot.of(state, leaves, contents=True)

    def replayed() -> tuple[Any, tuple[Any, ...], _Seen | None, Refusal | None]:
        try:
            given, inputs = replay.tried(call, state)
            if given is MISS:
                return given, inputs, None, None
            one, failing = _seen(given, before, _digest), None
            if not replay.adjoints:
                given = None
        except Exception as error:
            given, inputs, one, failing = None, (), None, failed(error, restored=True)
        before.restore()
        return given, inputs, one, failing

    given, inputs, one, failing = restoring(replayed, before.restore)
    if given is MISS:
        return None
    try:
        answer = function()
    except Exception as error:
        if one is None:
            raise
        return Checked(None, [], None, before, inputs, error)
    if one is None:
        return Checked(answer, [], failing, before, inputs)
    other = _seen(answer, before)
    found = list(_differences(one, other, state))
    if found:  # perhaps rounding alone, which a digest can't tell: compare whole arrays
        after = Snapshot.of(state, leaves, contents=True)

        def whole_arrays(seen: _Seen) -> _Seen:
            before.restore()
            with suppress(Exception):  # then the digests stand
                seen = _seen(replay.tried(call, state)[0], before)
            after.restore()
            return seen

        one = restoring(partial(whole_arrays, one), after.restore)
        found = list(_differences(one, other, state))
    if not found and replay.adjoints:
        found = list(_of_gradients(one, other, tensors_of(leaves, state)))
    return Checked(answer, found, failing, before, inputs)


class _Held(NamedTuple):
    """A Tensor as it is now."""

    kind: type
    array: Any
    node: Any


class _Seen(NamedTuple):
    """The results of a call, and the state after it.

    Attributes
    ----------
    structure, leaves : TreeDef, list
        Of the answer.
    parts : dict
        The parts of the state that the call changed: owner, key, value before, value after.
    random : dict
        The state of all generators.
    """

    structure: Any
    leaves: list[Any]
    parts: dict[tuple[int, Any], tuple[Any, Any, Any, Any]]
    random: Any


class _Digest(NamedTuple):
    """Stands for an array that is too large to keep."""

    kind: type
    shape: tuple[int, ...]
    dtype: Any
    digest: bytes


def _digest(array: Any) -> Any:
    """A digest of a large array; a small array itself."""
    if not is_array(array) or math.prod(array.shape) <= KEPT:
        return array
    held = np.ascontiguousarray(backend_of(array).to_numpy(array)).reshape(-1)
    digest = blake2b(held.view(np.uint8).data).digest()
    return _Digest(type(array), tuple(array.shape), array.dtype, digest)


def _seen(answer: Any, before: Snapshot, keep: Callable[[Any], Any] = lambda array: array) -> _Seen:
    """The results of a call, and its changes since a snapshot; ``keep`` maps changed arrays."""
    leaves, structure = tree_flatten(answer, whole)
    parts = {}
    for owner, key, then, now in before.changes():
        if key is ...:
            now = backend_of(owner).namespace.asarray(owner, copy=True)
        at = id(key) if isinstance(key, Tensor) else key
        parts[id(owner), at] = owner, key, _held(then), _held(now, keep)
    return _Seen(structure, [_held(x) for x in leaves], parts, generators.get_rng_state())


def _differences(one: _Seen, other: _Seen, state: State) -> Iterator[str]:
    """How the program's call differs from the function's."""
    if one.structure != other.structure:
        yield f"it returns {one.structure}, and the function {other.structure}"
        return
    names = [f"result{path}" for path in one.structure.paths()]
    for name, x, y in zip(names, one.leaves, other.leaves, strict=True):
        yield from different(name, x, y)
    known = {id(at.tensor): at.name for at in state.tensors}
    known |= {id(at.tensor._array): at.name for at in state.tensors}
    for at in dict.fromkeys([*one.parts, *other.parts]):
        owner, key, then, _ = one.parts.get(at) or other.parts[at]
        name = known.get(id(owner)) or type(owner).__name__
        name += "" if key in ("_array", ...) else f".{key}"
        then = owner if key is ... and at in one.parts else then  # it has been restored
        nows = [parts[at][3] if at in parts else then for parts in (one.parts, other.parts)]
        yield from different(name, *nows)
    if not same_states(one.random, other.random):
        yield "other random numbers are drawn"


def _held(x: Any, keep: Callable[[Any], Any] = lambda array: array) -> Any:
    if isinstance(x, Tensor):
        return _Held(type(x), keep(x._array), x._node)
    if isinstance(x, tuple) and of_one_structure(x, x):
        return tuple([_held(part, keep) for part in x])
    return keep(x)


def different(name: str, x: Any, y: Any) -> Iterator[str]:
    """How the program's value ``x`` differs from the function's value ``y``."""
    if x is y or (type(x) is not _Held and isinstance(x, type(y)) and isinstance(x, Node)):
        return
    if type(x) is _Digest:
        yield from _unequal(name, x, y)
    elif type(x) is not type(y) and not (_is_scalar(x) and _is_scalar(y)):
        yield f"{name} is a {_kind(x)}, and a {_kind(y)} by the function"
    elif type(x) is _Held:
        if x.kind is not y.kind or (x.node is None) != (y.node is None):
            yield f"{name} differs in its class, or in whether it requires grad"
        elif x.array is not y.array:
            yield from _unequal(name, x.array, y.array)
    elif hasattr(type(x), "dtype") and hasattr(type(x), "shape"):
        yield from _unequal(name, x, y)
    elif type(x) is tuple and len(x) == len(y):
        for i, parts in enumerate(zip(x, y, strict=True)):
            yield from different(f"{name}[{i}]", *parts)
    elif not _same(x, y):
        yield f"{name} is {_text(x)}, and {_text(y)} by the function"


def _is_scalar(x: Any) -> bool:
    """Whether this is a NumPy scalar, which may be replaced by a 0-d array."""
    return isinstance(x, np.generic | np.ndarray) and not x.shape


def _kind(x: Any) -> str:
    return (x.kind if type(x) is _Held else type(x)).__name__


def _text(x: Any) -> str:
    text = repr(x)
    return text if len(text) < 60 else f"another {type(x).__name__}"


def _same(x: Any, y: Any) -> bool:
    """Whether two values of one type are equal. Objects without ``==`` count as equal."""
    if isinstance(x, float | complex):
        return alike(x, y) or bool(x != x and y != y)  # each run may make a NaN of its own
    if isinstance(x, list | tuple | dict | set | frozenset):
        return len(x) == len(y)  # the snapshot has their elements as parts of their own
    equal: Any = type(x).__eq__
    try:
        return equal is _BY_IDENTITY or bool(x == y)  # by identity each call's object differs
    except Exception:
        return True


def _unequal(name: str, x: Any, y: Any) -> Iterator[str]:
    """How two arrays differ by more than rounding."""
    if type(x) is _Digest:
        if x != _digest(y):
            yield f"{name} differs"
        return
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
    one, other = (backend_of(each).to_numpy(each) for each in (x, y))
    if one.tobytes() == other.tobytes():
        return 0.0
    part = _PARTS.get(dtype, dtype)
    if part not in ROUNDING:
        return 0.0 if np.array_equal(one, other) else 1.0
    if dtype in _PARTS:
        one, other = (np.stack([np.real(each), np.imag(each)]) for each in (one, other))
    one, other = one.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(other)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
        return math.inf
    if not np.isfinite(one[finite]).all():
        return math.inf
    error = float(np.max(np.abs(one[finite] - other[finite]), initial=0.0))
    largest = float(np.max(np.abs(other[finite]), initial=0.0))
    return 0.0 if error <= ROUNDING[part] * _EPS[part] * largest else error


# -- derivatives outside ---------------------------------------------------------------------------


def _of_gradients(one: _Seen, other: _Seen, tensors: Sequence[Tensor]) -> Iterator[str]:
    """How derivatives of the results differ."""
    # Hooks may have side effects, so that they must not run a second time.
    pairs = [
        (x, y)
        for x, y in zip(one.leaves, other.leaves, strict=True)
        if type(x) is _Held and x.node is not None
    ]
    nodes = ancestors([y.node for _, y in pairs])
    if any(isinstance(node, Hooked) and node.extra is not None for node in nodes):
        return
    numbers = {x._node.number: x for x in tensors if x._node is not None}
    for x, y in pairs:
        if x.node is y.node or swept(y.node):
            continue
        with apart():
            by_program, by_function = (_gradients(each, numbers) for each in (x, y))
        if by_program.keys() != by_function.keys():
            yield "the derivatives of a result reach other Tensors"
            return
        for number in by_program:
            yield from _unequal("a gradient", by_program[number], by_function[number])


def _gradients(x: _Held, numbers: Container[int]) -> dict[int, Any]:
    """The gradients of a result by the leaves' numbers; the graph is kept."""
    g = backend_of(x.array).namespace.ones_like(x.array)
    arrived = sweep([(x.node, g)], keep=True, targets=numbers)
    return {leaf.number: g for leaf, g in arrived.items() if g is not None}
