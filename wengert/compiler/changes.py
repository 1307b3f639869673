"""What there is before a call: to be put back, and what a function may not change.

It may not change Python values, generators of other libraries, and modes.
"""

import copy
import pickle
import random
import sys
import threading
from collections import OrderedDict, defaultdict, deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from wengert.backends import generators, registry
from wengert.compiler.calls import same_keys, tensors_of
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.traced import Traced
from wengert.compiler.capture.traced_number import TracedNumber
from wengert.compiler.state import Missing, State, is_plain, same
from wengert.ops.data_type import get_default_dtype, set_default_dtype
from wengert.tape.grad_mode import recording, set_recording
from wengert.tape.hooks import Hooks, has_hooks
from wengert.tape.tensor import Tensor

__all__ = ["CONTAINERS", "Before", "BegunError", "DrawError", "change_error", "show"]

#: Containers whose items are put back.
CONTAINERS = (list, deque, dict, OrderedDict, defaultdict, Hooks)


class DrawError(TraceError):
    """Random numbers are drawn during a call: by the function, or by another thread."""


class BegunError(Exception):
    """A call is none to record, as that in which an optimiser begins to keep something."""


class Held(NamedTuple):
    """What a Tensor has: array, node, gradient, and the gradient's array."""

    tensor: Tensor
    array: Any
    node: Any
    grad: Tensor | None
    slope: Any


class Before:
    """What a state and the arguments of a call hold before it."""

    def __init__(self, state: State, leaves: Sequence[Any]) -> None:
        self.state, self.tensors = state, tensors_of(leaves, state)
        slopes = [getattr(x._grad, "_array", None) for x in self.tensors]
        pairs = zip(self.tensors, slopes, strict=True)
        self.held = [Held(x, x._array, x._node, x._grad, slope) for x, slope in pairs]
        self._hooked = [x._node for x in self.tensors if has_hooks(x._node)]
        self._places = [(place, place.get()) for place in state.changing()]
        kept = [x for x, _, _ in state.sizes if type(x) in CONTAINERS]
        self._items = {id(x): (x, copy.copy(x)) for x in kept}
        self._rng, self._modes = generators.get_rng_state(), _modes()
        self._randoms = _random_states(state)
        #: Whether random numbers can't be drawn by another thread.
        self.alone = threading.active_count() == 1

    def check(self) -> None:
        """Raise if something has changed that a replay would not change."""
        state = self.state
        for x, size, name in state.sizes:
            before = size if type(size) is int else len(size)
            if id(x) in state.growing and len(x) > before:
                raise BegunError
            was = size if type(size) is list else self._items.get(id(x), (x, x))[1]
            keys = [key for key in (*x, *was) if type(key) is str and (key in x) != (key in was)]
            if keys and (type(size) is list or (type(size) is int and isinstance(x, dict))):
                does = "sets" if keys[0] in x else "deletes"
                raise TraceError(
                    f"the compiled function {does} the attribute {name}.{keys[0]}, which a replay "
                    "would not do. Return it, do it outside, or set it to a Tensor before"
                )
            if len(x) != before:
                raise TraceError(
                    f"the compiled function changes the length of {name} from {before} to "
                    f"{len(x)}, which a replay would not do. Return what it adds, and add it "
                    "outside"
                )
            if type(size) is not int and not same_keys(x, size):
                raise TraceError(f"the compiled function changes the keys of {name}; do it outside")
        for place, held in state.held:
            now = place.get()
            if now is held or getattr(now, "inner", None) is held:  # an array that is an input
                continue
            if not (is_plain(held) and is_plain(now) and same(held, now)):
                raise change_error(place.name, held, now)
        if any(has_hooks(x._node) and x._node not in self._hooked for x in self.tensors):
            raise TraceError(
                "the compiled function registers a hook on a Tensor that was there before, which a "
                "replay would not do; do it outside"
            )
        if _modes() != self._modes:
            raise TraceError(
                "the compiled function changes the mode (whether operations are recorded, the "
                "default dtype, or the backend) for what comes after it; do it outside"
            )
        for (name, drawn), (_, now) in zip(self._randoms, _random_states(state), strict=False):
            if drawn != now:
                raise DrawError(
                    f"the compiled function draws from {name}, where a replay would use the same "
                    "again. Draw by wg.random, or outside, and pass what is drawn"
                )

    def restore(self) -> None:
        """Put all of it back but other libraries' generators."""
        for x, array, node, grad, slope in self.held:
            x._array, x._node, x._grad = array, node, grad
            if has_hooks(node) and node not in self._hooked:
                node.extra.gradient.clear()
                node.extra.accumulated.clear()
            if grad is not None:
                grad._array = slope
        for container, items in self._items.values():
            if len(container) != len(items):
                container.clear()
                (container.update if isinstance(container, dict) else container.extend)(items)
        for place, x in (*self._places, *self.state.held):
            if place.kind != "part" and place.get() is not x:
                with suppress(Exception):  # of what is read-only, or checked by a setter
                    place.set(x)
        generators.set_rng_state(self._rng)
        state, dtype, registry.default = self._modes
        set_recording(state)
        if get_default_dtype() is not dtype:
            set_default_dtype(dtype)


def _modes() -> tuple[Any, ...]:
    return recording(), get_default_dtype(), registry.default


def change_error(name: str, before: Any, now: Any) -> TraceError:
    """The error for a place that has changed."""
    return TraceError(
        f"the compiled function changes {name} from {show(before)} to {show(now)}, which a "
        "replay would not do. Return it and keep it outside, or make it a Tensor"
    )


def show(x: Any) -> str:
    """A value as an error names it."""
    x = x.number if type(x) is TracedNumber else x
    if isinstance(x, Tensor | Traced):
        return "a Tensor" if isinstance(x, Tensor) else "an array"
    if not (is_plain(x) or x is Missing):
        return f"{'an' if type(x).__name__[0] in 'aeiouAEIOU' else 'a'} {type(x).__name__}"
    text = repr(x)
    return text if len(text) < 60 else text[:57] + "..."


def _random_states(state: State) -> list[tuple[str, Any]]:
    """The states of generators that are not Wengert's: the global ones, and those of a state."""
    found = [(name, _random_state(x)) for name, x in state.randoms]
    found.append(("random", random.getstate()))
    if "numpy.random" in sys.modules:
        found.append(("np.random", _random_state(np.random)))
    torch: Any = sys.modules.get("torch")
    if hasattr(torch, "default_generator"):
        devices = torch.default_generator, *torch.cuda.default_generators
        found += [("torch", _random_state(x)) for x in devices]
    return found


def _random_state(x: Any) -> Any:
    if hasattr(x, "getstate"):  # of Python's
        return x.getstate()
    if hasattr(x, "get_state"):  # of NumPy's old ones, and PyTorch's
        state = x.get_state()
        return state.tolist() if hasattr(state, "tolist") else (state[1].tobytes(), state[2:])
    return pickle.dumps(getattr(x, "bit_generator", x).state)
