"""What of a call decides which program it needs, and whether it can have one."""

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.backends import backend_of, selection
from wengert.compiler.capture.live import LiveNumber
from wengert.compiler.capture.places import PLAIN, Exact, Fact, Layout, State, contents, is_array
from wengert.compiler.capture.recorded import Recording
from wengert.compiler.capture.traced import Traced
from wengert.compiler.program import order_of
from wengert.compiler.replay import draws
from wengert.compiler.report import told
from wengert.func.trees import TreeDef
from wengert.interpreters.lifted import Lifted
from wengert.nn.module import changes
from wengert.ops.data_type import get_default_dtype
from wengert.tape.hooks import has_hooks
from wengert.tape.recording import is_grad_enabled, is_inference_mode_enabled, observing
from wengert.tape.tensor import Tensor

__all__ = [
    "ARGUMENTS",
    "RECORDING",
    "Refusal",
    "alike",
    "difference",
    "failed",
    "never",
    "not_traceable",
    "obstacle",
    "of_arguments",
    "signature_of",
]

#: Leaves of arguments that are traced unless they are named static.
_NUMBERS = (int, float)

#: Why a call waits for another thread.
RECORDING = "another thread records a function of the same Tensors"

#: What a signature says first.
ARGUMENTS = "the structure of the arguments"


class Refusal:
    """A kind of calls that can't be recorded.

    Later calls of that kind are not looked at more closely: they have the same arguments, and no
    module was changed from outside. What else decides whether a call can be recorded is looked at
    again after 1, 2, 4, … calls, because looking takes as long as a small step.

    Attributes
    ----------
    arguments, signature : object
        Of these calls; no signature where the state can't be compared.
    reason : str
        Why.
    failed : bool
        Whether the recording has raised another error than a `TraceError`.
    version : int
        Of all modules' attributes, after the last call.
    """

    def __init__(
        self, arguments: Any, reason: str, signature: Any = None, *, failed: bool = False
    ) -> None:
        self.arguments, self.signature, self.reason = arguments, signature, reason
        self.failed, self.version = failed, changes[0]
        self._calls, self._looks_at = 0, 1

    def after(self, before: "Refusal") -> None:
        """Go on counting where another one for such calls has ended."""
        self._calls, self._looks_at = before._calls, before._looks_at

    def stands(self) -> bool:
        """Whether a call need not be looked at."""
        self._calls += 1
        if self._calls < self._looks_at and self.version == changes[0]:
            return True
        self._looks_at = 2 * self._calls
        return False


def failed(error: Exception) -> Refusal:
    """Why a call runs as it is of which the program, which has changed nothing, has failed.

    What the program itself raises the function may raise, too, and catch. What making the program
    raises is an error of the compiler.
    """
    at, ran = error.__traceback__, False
    while at is not None:
        ran, at = ran or at.tb_frame.f_code.co_filename == "<glue>", at.tb_next
    return Refusal(None, f"the program raised {told(error)}", failed=not ran)


def difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """How a signature differs from another, first of all."""
    for what, value in now.items():
        if what in before and before[what] != value:
            return f"{what} was {_shown(before[what], value)}"
    return "a number that decides the program has changed"


def _shown(before: Any, now: Any) -> str:
    """How a part of a signature differs from what it was."""
    if isinstance(before, tuple) and isinstance(now, tuple):
        pairs = [(a, b) for a, b in zip(before, now, strict=False) if a != b]
        if pairs:
            before, now = pairs[0]
    if isinstance(before, Fact) and isinstance(now, Fact):
        if before.name != now.name:
            return f"{before.name} was there, and {now.name} is now"
        return f"{before.name} was {before.what!r} and is {now.what!r} now"
    return f"{before!r} and is {now!r} now"


def never(function: Any) -> str:
    """Why a function can't be recorded whatever it does, if so."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    flags = 0 if code is None else code.co_flags
    if flags & (inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR):
        return "it is a coroutine or generator function, of which a call runs nothing"
    return ""


def not_traceable(leaves: Sequence[Any]) -> str:
    """Why a call cannot be traced, if it can't."""
    if observing:
        return "anomaly detection, hooks on saved values or graph_breaks() look at each operation"
    for leaf in leaves:
        array = leaf._array if isinstance(leaf, Tensor) else leaf
        if isinstance(array, Traced) or type(array) is LiveNumber:  # of a trace that is not here
            if isinstance(leaf, Tensor) and array.value in array.trace.inputs:
                return RECORDING
            raise array.trace.closed((array,))
        if isinstance(leaf, Tensor) and leaf._node is not None and has_hooks(leaf._node):
            return "there are hooks on an argument"
        if isinstance(array, Lifted):
            return f"the call is inside a transform ({type(array).__name__})"
    return ""


def of_arguments(leaves: Sequence[Any], structure: TreeDef, static: Sequence[bool]) -> Any:
    """What of a call can be seen without looking at the state."""
    kinds = [_kind(x, fixed) for x, fixed in zip(leaves, static, strict=True)]
    return Layout(structure), kinds, is_grad_enabled(), is_inference_mode_enabled()


def signature_of(
    leaves: Sequence[Any], structure: TreeDef, static: Sequence[bool], state: State
) -> dict[str, Any]:
    """What decides which program a call needs."""
    seen = {id(at.tensor): -1 - i for i, at in enumerate(state.tensors)}
    order = [seen.setdefault(id(x), i) for i, x in enumerate(leaves) if isinstance(x, Tensor)]
    where = selection()
    return {
        ARGUMENTS: Layout(structure),
        "an argument": tuple([_kind(x, fixed) for x, fixed in zip(leaves, static, strict=True)]),
        "which arguments are the same Tensor": tuple(order),
        "the recording mode": (is_grad_enabled(), is_inference_mode_enabled()),
        "where new arrays are made": (where.backend.name, str(where.device), get_default_dtype()),
        "the state": state.structure(),
        "a Tensor of the state": tuple([_kind(at.tensor, False) for at in state.tensors]),
        "a raw array of the state": tuple([_kind(place.get(), False) for place in state.arrays]),
        "which gradients there are": _gradients([*(at.tensor for at in state.tensors), *leaves]),
    }


def alike(
    signature: dict[str, Any],
    structure: TreeDef,
    static: Sequence[bool],
    leaves: Sequence[Any],
    state: State,
) -> bool:
    """Whether a call reads what another has read that changes nothing, wherever it is made."""
    now = signature_of(leaves, structure, static, state)
    return all(
        now[what] == signature[what]
        for what in ("an argument", "the state", "a Tensor of the state")
    )


def obstacle(found: Recording, leaves: Sequence[Any]) -> str:
    """Why a function can't be run again, after its program, for the same results."""
    if found.effects:
        return "it changes state"
    if draws(found.program):
        return "it draws random numbers"
    if any(hasattr(x, "dtype") and not isinstance(x, Tensor) for x in leaves):
        return "it takes raw arrays"
    read = {value for step in found.program.instructions for value in step.used()}
    inputs = zip(found.refs, found.program.inputs, strict=True)
    if any(ref.kind not in ("tensor", "leaf") and value in read for ref, value in inputs):
        return "it reads gradients, or an optimizer"
    return ""


def _gradients(held: Sequence[Any]) -> tuple[Any, ...]:
    """Of each Tensor whether it has a gradient, and which other Tensor or gradient that is."""
    tensors = {id(x): -1 - i for i, x in enumerate(held) if isinstance(x, Tensor)}
    seen: dict[int, tuple[int, Any]] = {}
    found: list[Any] = []
    for i, x in enumerate(held):
        grad = x._grad if isinstance(x, Tensor) else None
        if grad is None:
            found.append(False if isinstance(x, Tensor) else None)
            continue
        first, owner = seen.setdefault(id(grad), (i, x))
        other = tensors.get(id(grad), first)
        found.append(True if owner is x and other >= 0 else ("the same as", other))
    return tuple(found)


def _kind(x: Any, fixed: bool) -> Any:
    """What of an argument or a part of the state decides the program."""
    if isinstance(x, Tensor):
        array = x._array
        tracked = None if x._node is None else x.is_leaf
        return (*_layout(array), tracked)
    if fixed and is_array(x):
        return contents(x)
    if is_array(x) and not fixed:
        return _layout(x)
    if type(x) in _NUMBERS and not fixed:
        return type(x)
    if type(x) in PLAIN or isinstance(x, np.generic):
        return Exact(x)
    return "an object"  # which the walk has looked through


def _layout(array: Any) -> tuple[Any, ...]:
    """What of an array decides the program: all but its values."""
    return (type(array), tuple(array.shape), array.dtype, _device(array), order_of(array))


def _device(array: Any) -> str:
    return str(backend_of(array).device(array))
