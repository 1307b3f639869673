"""Warns of in-place changes that views would share in NumPy, and do not in Wengert.

Whether Tensors share memory is decided by the operations that made them, and so is the same for
every array library: the view operations run on an uninitialised NumPy array of the storage's shape,
and NumPy tells which results overlap. No element is read or written.
"""

import dis
import weakref
from functools import lru_cache
from itertools import chain, takewhile
from types import CodeType
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
    if frame is not None and (name := _stored_back(frame.f_code, frame.f_lasti)) is not None:
        root = frame.f_locals[name] if name in frame.f_locals else frame.f_globals.get(name)
        if _is_of_tensor(x, root):
            return  # the first half of x[1:] += 1: the second half warns
    changed = as_view(work_out(own), key=_basic(key))
    seen = [one for one in others if overlap(changed, work_out(one))]
    if seen:
        of_a_view = any(one.depth < own.depth for one in seen)
        text = OF_A_VIEW if of_a_view else OF_THE_WHOLE
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


@lru_cache(maxsize=1024)
def _stored_back(code: CodeType, at: int) -> str | None:
    """The line's first variable, if it stores what it has changed, as ``x[...] += y`` does.

    So does ``x[...] = iadd(x[...], y)``, as array-api-extra writes it. ``at`` is the offset of the
    instruction that changes it.
    """
    instructions = list(dis.get_instructions(code))
    here = max((n for n, i in enumerate(instructions) if i.offset <= at), default=0)
    if instructions[here].opname == "PRECALL":  # Python 3.11 specialises frequent calls
        here += 1
    is_operator = instructions[here].opname.startswith("BINARY_OP")
    if not is_operator and not instructions[here].opname.startswith("CALL"):
        return None  # itself a store: what follows is of another statement
    between = ("SWAP",) if is_operator else ("LOAD_", "BUILD_", "PUSH_")
    after = instructions[here + 1 :]
    target = list(takewhile(lambda i: i.opname.startswith(between), after))
    if not after[len(target) :] or not after[len(target)].opname.startswith("STORE_S"):
        return None
    spots = [(p.lineno, p.col_offset or 0) if (p := i.positions) else (0, 0) for i in instructions]
    line, start = spots[here]
    known = zip(instructions, spots, strict=True)
    loaded = _loads([i for i, at in known if at[0] == line and at[1] >= start])
    if not is_operator:
        stored = _loads(target)
        size = len(stored)
        if stored not in [loaded[n : n + size] for n in range(len(loaded) - size)]:
            return None  # elsewhere
        loaded = stored
    return next((name for name in loaded if isinstance(name, str)), "")


def _loads(instructions: list[dis.Instruction]) -> list[Any]:
    """Names and constants; from Python 3.13 on one instruction may read two variables."""
    values = [i.argval for i in instructions if i.opname.startswith("LOAD_")]
    return list(chain.from_iterable(v if isinstance(v, tuple) else (v,) for v in values))


def _is_tensor(x: Any) -> bool:
    return hasattr(type(x), "_shown")


def _is_of_tensor(x: Any, root: Any) -> bool:
    """Whether ``root`` has a Tensor of the same memory, and not ``x`` itself.

    ``views[0] += 1`` stores a view in a list, and in no Tensor.
    """
    known = False
    for found in contents(root, _is_tensor):
        if any(one is x for one in found):
            return False
        shown = [getattr(one, "_shown", None) for one in filter(_is_tensor, found)]
        known = known or x._shown in shown  # references to one memory are equal
    return known
