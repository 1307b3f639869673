"""Warns of in-place changes that views would share in NumPy, and do not in Wengert.

Whether Tensors share memory is decided by the operations that made them, and so is the same for
every array library: the view operations run on an uninitialised NumPy array of the storage's shape,
and NumPy tells which results overlap. No element is read or written.
"""

import builtins
import dis
import operator
import weakref
from collections import ChainMap
from contextlib import suppress
from functools import lru_cache
from itertools import takewhile
from types import CodeType, FrameType, FunctionType
from typing import Any, Final

import numpy as np

from wengert.backends.keys import as_view
from wengert.backends.references import contents
from wengert.tape.leaving import frames, warn_at
from wengert.tape.views import work_out


class ViewWarning(UserWarning):
    """An in-place change that NumPy and PyTorch would show in other Tensors of the same memory.

    In Wengert it never changes another Tensor. Filter it by `warnings.filterwarnings`.

    Examples
    --------
    >>> import warnings
    >>> x = wg.zeros((2, 2))
    >>> row = x[0]
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     row += 1  # x keeps its zeros
    >>> told[0].category.__name__
    'ViewWarning'
    """


OF_A_VIEW: Final = (
    "a view is changed in place, and the change stays in it: the Tensor that it is a view of "
    "keeps its values, where in NumPy and PyTorch they change too. Assign into that one instead, "
    "as in x[1:] += 1 for v = x[1:]; v += 1. Or, if the change is to stay in v, say so by "
    "v = x[1:].clone()"
)
OF_THE_WHOLE: Final = (
    "a Tensor is changed in place while a view of it is alive, which keeps the old values, where "
    "in NumPy and PyTorch they change too. Take the view again after the change, as in "
    "x[1:] += 1; v = x[1:]. Or, if v is to keep the old values, say so by v = x[1:].clone()"
)
OF_A_CALL: Final = ". If a call gives the Tensor, name it before: x = f(); x[1:] += 1"

#: Whether such a change is an error, as `wengert.torch` and `wengert.numpy` have it.
lost_writes_raise = False
#: NumPy's limit of work to decide whether two arrays overlap.
WORK: Any = 10_000


def check(x: Any, result: Any, operand: Any, key: Any) -> None:
    """Warn if another live Tensor has elements that are about to change in ``x`` alone.

    ``result`` is the new value of ``x``, which nothing else holds; ``key`` says what part changes.
    The right-hand side is left out, as nobody sees that of ``x += x.T``; where lost writes are
    errors only if no variable holds it.
    """
    # Weak references to one object are equal, so that identities have to be compared.
    own, new = x._shown, getattr(result, "_shown", None)
    shown = weakref.getweakrefs(own.memory)
    others = [one for one in shown if one is not own and one is not new]
    if not others:
        return
    frame = next(frames(), None)
    beside = getattr(operand, "_shown", None)
    if lost_writes_raise and frame and any(one is operand for one in frame.f_locals.values()):
        beside = None
    others = [one for one in others if one is not beside]
    stored = frame is not None and _is_stored_back(frame, x)
    if stored:
        return  # the first half of x[1:] += 1: the second half warns
    changed = as_view(work_out(own), key=_basic(key))
    seen = [one for one in others if overlap(changed, work_out(one))]
    if seen:
        of_a_view = any(one.depth < own.depth for one in seen)
        text = OF_A_VIEW if of_a_view else OF_THE_WHOLE
        text += OF_A_CALL if stored is None else ""
        if lost_writes_raise:
            raise ViewWarning(text)
        warn_at(frame, text, ViewWarning)


# -- memory ----------------------------------------------------------------------------------------


def _basic(key: Any) -> tuple[Any, ...]:
    """A basic index; `...`, all elements, for an index with arrays, which are not read."""
    parts = key if type(key) is tuple else (key,)
    kinds = {type(None), type(Ellipsis), slice, int}
    static = all(type(part) in kinds or isinstance(part, np.integer) for part in parts)
    return parts if static else (...,)


def overlap(a: Any, b: Any) -> bool:
    """Whether two NumPy arrays overlap; True if that is too hard to decide."""
    try:
        return np.shares_memory(a, b, max_work=WORK)
    except (np.exceptions.TooHardError, OverflowError):
        return True


# -- the user's line -------------------------------------------------------------------------------

_UNKNOWN: Any = object()
#: What computes keys, and what they are for.
_BINARY = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv}
_BINARY |= {"%": operator.mod, "[]": operator.getitem, "": operator.getitem}


def _is_stored_back(frame: FrameType, x: Any) -> bool | None:
    """Whether the line stores what it has changed into a Tensor, as ``x[...] += y`` does.

    So does ``x[...] = iadd(x[...], y)``, as array-api-extra writes it. In ``views[0] += 1`` a list
    takes it, and no Tensor. None if that is not known, as of what a call gives.
    """
    found = _storing(frame.f_code, frame.f_lasti)
    target = _value(frame, *found) if found else None
    if target is _UNKNOWN:
        return None
    if _is_tensor(target):
        return True
    if not isinstance(getattr(type(target), "__setitem__", None), FunctionType):
        return False
    return not any(one is x for level in contents(target, _is_tensor) for one in level)


@lru_cache(maxsize=1024)
def _storing(code: CodeType, at: int) -> tuple[list[dis.Instruction], int] | None:
    """The instructions that load the target and the key, and how many values these are.

    ``at`` is the offset of the instruction that changes what is stored.
    """
    steps = list(dis.get_instructions(code))
    here = max((n for n, step in enumerate(steps) if step.offset <= at), default=0)
    if steps[here].opname == "PRECALL":  # Python 3.11 specialises frequent calls
        here += 1
    changes = steps[here].opname
    is_operator = changes.startswith("BINARY_OP")
    between = ("SWAP",) if is_operator else ("LOAD_", "BUILD_", "PUSH_", "BINARY_")
    target = list(takewhile(lambda step: step.opname.startswith(between), steps[here + 1 :]))
    store = steps[here + 1 + len(target)].opname if len(steps) > here + 1 + len(target) else ""
    if store not in ("STORE_SUBSCR", "STORE_SLICE"):
        return None
    count = 3 if store == "STORE_SLICE" else 2
    if changes.startswith("CALL"):
        call, spot = _spot(steps[_start(steps, here + 1, 1) : here]), _spot(target)
        size = len(spot)
        for begin in range(len(call) - size):
            taken = call[begin + size] in _TAKES and call[begin : begin + size] == spot
            if taken and sum(name not in _OF_CALLS for name, _ in call[:begin]) <= 1:
                return target, count
        return None  # another place
    if not is_operator:
        return None  # itself a store: what follows is of another statement
    end = here
    while end and not (steps[end].opname.startswith("BINARY_") and steps[end - 1].opname == "COPY"):
        end -= 1
    while end and steps[end - 1].opname == "COPY":
        end -= 1
    return (steps[_start(steps, end, count) : end], count) if end else None


_TAKES = ("BINARY_SUBSCR", None), ("BINARY_SLICE", None), ("BINARY_OP", 26)  # in Python 3.14
_OF_CALLS = ("PUSH_NULL", "LOAD_ATTR", "LOAD_METHOD")


def _start(steps: list[dis.Instruction], end: int, count: int) -> int:
    """Where the instructions begin that give ``count`` values."""
    while end and count > 0:
        end -= 1
        step = steps[end]
        stores = step.opname.startswith("STORE_FAST_LOAD")  # the end of the statement before
        count -= 1 if stores else dis.stack_effect(step.opcode, step.arg, jump=False)
    return end


def _names(step: dis.Instruction) -> tuple[Any, ...]:
    """What is read: from Python 3.13 on one step may read two variables, or store and read one."""
    two = step.argval if isinstance(step.argval, tuple) and "FAST" in step.opname else None
    return (step.argval,) if two is None else two[step.opname.startswith("STORE_") :]


def _spot(steps: list[dis.Instruction]) -> list[tuple[str, Any]]:
    """Instructions to be compared."""
    load: Any = lambda name: "LOAD_FAST" if "LOAD_FAST" in name else name
    return [(load(step.opname), name) for step in steps for name in _names(step)]


def _value(frame: FrameType, steps: list[dis.Instruction], count: int) -> Any:
    """The first of the values that instructions load; a Tensor for what is in it."""
    space = ChainMap(frame.f_locals, frame.f_globals, vars(builtins))
    stack: list[Any] = []
    for step in steps:
        name, value = step.opname, step.argval
        taken, result = 1 - dis.stack_effect(step.opcode, step.arg, jump=False), _UNKNOWN
        of_attribute = name in ("LOAD_ATTR", "LOAD_METHOD")
        taken = 1 if of_attribute else 0 if "LOAD_" in name else taken
        if taken > len(stack):  # a part of another expression
            return _UNKNOWN
        if of_attribute:
            one = stack[-1]
            result = one if _is_tensor(one) else getattr(one, value, _UNKNOWN)
        elif name.startswith("LOAD_CONST") or name == "LOAD_SMALL_INT":
            result = value
        elif "LOAD_" in name:
            *more, result = [space.get(x, _UNKNOWN) for x in _names(step)]
            stack += more
        elif name == "BUILD_TUPLE":
            result = tuple(stack[-taken:])
        elif name in ("BINARY_OP", "BINARY_SUBSCR") and step.argrepr in _BINARY:
            one, other = stack[-2:]
            with suppress(Exception):
                result = one if _is_tensor(one) else _BINARY[step.argrepr](one, other)
        stack[len(stack) - taken :] = [result]
    return stack[-count] if len(stack) >= count else _UNKNOWN


def _is_tensor(x: Any) -> bool:
    return hasattr(type(x), "_shown")
