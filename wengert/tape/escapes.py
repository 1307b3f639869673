"""Errors and warnings for values that leave Tensors, with the call that keeps the derivative.

A Python number or a raw array has no node. While a transform differentiates a Tensor, its values
may not become one: derivatives of what is computed from them would be silently wrong. Nothing here
runs unless values leave a Tensor that has a derivative.
"""

import sys
from dis import opmap
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.tape.grad_mode import following, recording
from wengert.tape.lines import applied, described, user_frame, warn

if TYPE_CHECKING:
    from types import FrameType

#: What happens to the Tensor, by the method that does it.
_DONE = {
    "__array__": "becomes an array off the tape",
    "__complex__": "becomes a Python number",
    "__deepcopy__": "is copied off the tape",
    "__dlpack__": "is exported to another library",
    "__float__": "becomes a Python number",
    "__int__": "becomes a Python number",
    "__reduce__": "is pickled",
    "array": "is asked for its raw array",
    "item": "becomes a Python number",
    "numpy": "becomes an array off the tape",
    "tensor": "becomes a leaf of its own",
    "tolist": "becomes Python numbers",
}
#: Methods that give away the raw array itself.
_WHOLE = ("__deepcopy__", "__dlpack__", "__reduce__", "array")
#: What to do about it, where nothing better is known.
_ADVICE = {
    "__deepcopy__": "x.clone() and wg.asarray(x, copy=True) are copies that stay on the tape",
    "__dlpack__": "Stay with Tensors: wengert has the functions of the Array API standard",
    "__int__": (
        "wg.trunc(x) cuts off the fraction and leaves a Tensor; the derivative of that is zero, so "
        "for a count or an index nothing is lost by int(x.detach())"
    ),
    "__reduce__": "x.clone() and wg.asarray(x, copy=True) are copies that stay on the tape",
    "tensor": (
        "wg.asarray(x) keeps it as it is, and wg.asarray(x, copy=True) and x.clone() are copies "
        "that stay on the tape"
    ),
}
_NUMBER = (
    "Compute with the Tensor itself: operators and wengert's functions take it, wg.stack and "
    'wg.asarray make an array of several; f"{x:.3f}" shows it'
)
_ARRAY = (
    "Stay with Tensors: wg.stack and wg.asarray make one of several, wengert has the functions of "
    "the Array API standard, and NumPy's functions take Tensors"
)
#: Counterparts under other names, of functions of Python's ``math`` and ``cmath``.
_ELSEWHERE = {
    "cbrt": "np.cbrt",
    "degrees": "np.degrees",
    "dist": "wg.linalg.vector_norm",
    "exp2": "np.exp2",
    "fabs": "wg.abs",
    "fmod": "np.fmod",
    "fsum": "wg.sum",
    "isclose": "np.isclose",
    "ldexp": "np.ldexp",
    "lgamma": "wg.special.gammaln",
    "modf": "np.modf",
    "phase": "np.angle",
    "radians": "np.radians",
}
_MAKERS = {"array", "asanyarray", "asarray", "ascontiguousarray", "fromiter"}


def _descends(node: Any, transform: Any) -> bool:
    """Whether a node was computed from a running transform's arguments."""
    seen: set[int] = set()
    stack = [node]
    while stack:
        node = stack.pop()
        if node.number in transform.numbers:
            return True
        for parent in node.parents:
            # Older nodes were there before the transform began.
            if parent is not None and parent.number > transform.start and parent.number not in seen:
                seen.add(parent.number)
                stack.append(parent)
    return False


def refuse(tensor: Any, way: str) -> None:
    """Raise if values may not leave a Tensor, since a transform or a trace follows them.

    Parameters
    ----------
    tensor : Tensor
        It is on the tape, or its array has others inside.
    way : str
        The name of the method by which they leave.
    """
    array, node = tensor._array, tensor._node
    # Under `no_grad` values are constants, but a lifted array is still no library's.
    if hasattr(array, "bottom") and (way in _WHOLE or (array.varies and recording() is not False)):
        raise array.refusal(*_told(way))
    # Inside a `Function` nothing is recorded either.
    if node is None or not recording():
        return
    if any(_descends(node, transform) for transform in tuple(following)):
        where, done, instead = _told(way)
        raise RuntimeError(
            f"{where}a Tensor that a transform differentiates {done}, and its derivative would be "
            f"lost. {instead}."
        )


def refusal_behind(error: BaseException) -> BaseException | None:
    """The error of Wengert's that a library in C has replaced by one of its own, if it has.

    What Python code raises from another error, it means to say.
    """
    while (cause := error.__cause__) is not None:
        frame, instruction = _innermost(error)
        if frame is None or frame.f_code.co_code[instruction] == _RAISE:
            return None
        frame, _ = _innermost(cause)
        if frame is not None and str(frame.f_globals.get("__name__")).startswith("wengert."):
            return cause
        error = cause
    return None


_RAISE = opmap["RAISE_VARARGS"]


def _innermost(error: BaseException) -> "tuple[FrameType | None, int]":
    """The frame in which an error was raised, and where in its code."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return (None, 0) if at is None else (at.tb_frame, at.tb_lasti)


def _told(way: str) -> tuple[str, str, str]:
    """Where a program is, what it does to the Tensor, and what to do instead."""
    frame = user_frame()
    name = {"__array__": "np.asarray", "array": ".array", "tensor": "wg.tensor"}.get(way, way)
    done = f"{_DONE[way]} ({name.strip('_')})"
    return "" if frame is None else f"{described(frame)}: ", done, advice(way)


def advice(way: str) -> str:
    """Which call keeps the derivative, in place of the one that the program makes."""
    frame = user_frame()
    written, called = ("", None) if frame is None else applied(frame)
    if way not in _ADVICE and called is not None:
        if isinstance(called, np.ndarray):
            return (
                "An element of a NumPy array can't hold it: make an array of several Tensors by "
                "wg.stack or wg.asarray, or replace a part of a Tensor by wg.at(a)[key].set(value)"
            )
        right = _counterpart(called)
        if right:
            return f"Use {right} in place of {written}: it takes Tensors"
    array = way in ("__array__", "__dlpack__", "array", "numpy")
    return _ADVICE.get(way, _ARRAY if array else _NUMBER)


def _counterpart(called: Any) -> str | None:
    """The function that does for Tensors what one of Python's or NumPy's does, if it is known."""
    kind = called if isinstance(called, type) else type(called)
    name = str(getattr(called, "__name__", ""))
    home = str(getattr(called, "__module__", None) or kind.__module__)
    if kind.__name__ in ("RClass", "CClass"):
        return "wg.concat"
    if issubclass(kind, np.generic):
        return f"wg.astype(x, {kind.__name__!r})"
    if home.partition(".")[0] == "numpy" and name in _MAKERS:
        return "wg.asarray"
    if home in ("math", "cmath") and name in _ELSEWHERE:
        return _ELSEWHERE[name]
    if home in ("math", "cmath") or home.partition(".")[0] == "numpy":
        package = sys.modules["wengert"]
        for prefix, module in (("wg", package), ("wg.special", package.special)):
            if name in module.__all__:
                return f"{prefix}.{name}"
    return None


#: PyTorch's warnings, by what the program does.
_WARNINGS = {
    # A tracked Tensor becomes a Python number.
    "scalar": (
        "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
        "Consider using tensor.detach() first."
    ),
    # A tracked Tensor is given to `tensor`.
    "copy": (
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() "
        "or sourceTensor.detach().clone().requires_grad_(True), rather than "
        "wengert.tensor(sourceTensor). wengert.asarray(sourceTensor) stays on the tape."
    ),
    # The gradient of a result is read that keeps none.
    "grad": (
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
        "attribute won't be populated during autograd.backward(). If you indeed want the .grad "
        "field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. "
        "If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor "
        "instead."
    ),
}


def warn_of(what: str) -> None:
    """Warn as PyTorch does, of one of ``_WARNINGS``."""
    warn(_WARNINGS[what])


#: Libraries that copy deeply what they then compute with, as xarray does to align and to sort: a
#: leaf of its own would take the gradient there.
_COPYING = frozenset({"xarray"})


def copied_on_the_way() -> bool:
    """Whether a deep copy is asked for by a library that computes with it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        # What holds the Tensor, such as a quantity, is copied on the same way.
        if package not in ("copy", "wengert") and (
            package in _COPYING or frame.f_code.co_name != "__deepcopy__"
        ):
            return package in _COPYING
        frame = frame.f_back
    return False
