"""Values that leave the tape: errors within transforms, warnings outside, and the program's line.

A Python number or a raw array has no node. While a transform differentiates a Tensor, its values
may not become one: derivatives of what is computed from them would be silently wrong. Nothing here
runs unless values leave a Tensor that has a derivative.
"""

import linecache
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from wengert.tape.grad_mode import following, recording, tangents_flow
from wengert.tape.node import is_lifted, walk


def is_own(frame: FrameType) -> bool:
    """Whether a frame runs this package's code."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "wengert"


@cache
def in_library(filename: str) -> bool:
    """Whether a file belongs to Python or to an installed package."""
    if filename.startswith("<frozen"):
        return True
    path = Path(filename)
    if {"site-packages", "dist-packages"} & set(path.parts):
        return True
    roots = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    return any(map(path.is_relative_to, roots))


def frames() -> Iterator[FrameType]:
    """The frames that run now, innermost first, without this package's own."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if not is_own(frame):
            yield frame
        frame = frame.f_back


def user_frame() -> FrameType | None:
    """The innermost frame of the program's own; failing that, the innermost of a library's."""
    outside = [*frames()]
    own = (frame for frame in outside if not in_library(frame.f_code.co_filename))
    return next(own, outside[0] if outside else None)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn the user, of the line of the program's own that is running: also of ``_WARNINGS``."""
    warn_at(user_frame(), _WARNINGS.get(message, message), category)


def warn_at(frame: FrameType | None, message: str, category: type[Warning]) -> None:
    """Warn of a frame's line."""
    if frame is None:
        warnings.warn(message, category, stacklevel=1)
        return
    home = frame.f_globals
    registry = home.setdefault("__warningregistry__", {})
    where = frame.f_code.co_filename, frame.f_lineno, home.get("__name__", "<string>")
    warnings.warn_explicit(message, category, *where, registry)


_STAY = (
    "Compute with the Tensor: operators (X @ w, not X.dot(w)), wengert's functions and NumPy's "
    "take it, wg.stack and wg.asarray join several, and wg.at(a)[key].set(value) replaces a part"
)
_COPY = "x.clone() and wg.asarray(x, copy=True) are copies that stay on the tape"
#: By the method that gives values away: what happens to the Tensor, and what to do instead.
_WAYS = {
    "__array__": ("becomes an array off the tape (np.asarray)", _STAY),
    "__bool__": ("becomes a plain value, as an option of a function does (bool)", _STAY),
    "__complex__": ("becomes a Python number (complex)", _STAY),
    "__deepcopy__": ("is copied off the tape (deepcopy)", _COPY),
    "__dlpack__": ("is exported to another library (dlpack)", _STAY),
    "__float__": ("becomes a Python number (float) or an element of a NumPy array", _STAY),
    "__int__": (
        "becomes a Python number (int)",
        "wg.trunc(x) leaves a Tensor; its derivative is zero, so int(x.detach()) loses nothing",
    ),
    "__reduce__": ("is pickled (reduce)", _COPY),
    "array": ("is asked for its raw array (.array)", _STAY),
    "item": ("becomes a Python number (item)", _STAY),
    "numpy": ("becomes an array off the tape (numpy)", _STAY),
    "tensor": ("becomes a leaf of its own (wg.tensor)", f"wg.asarray(x) keeps it; {_COPY}"),
    "tolist": ("becomes Python numbers (tolist)", _STAY),
}
#: Methods that give away the raw array itself.
_WHOLE = ("__deepcopy__", "__dlpack__", "__reduce__", "array")


def refuse(tensor: Any, way: str) -> None:
    """Raise if values may not leave a Tensor by a method, since a transform or a trace follows."""
    array, node = tensor._array, tensor._node
    # Under `no_grad` values are constants, but a lifted array is still no library's.
    if is_lifted(array) and (way in _WHOLE or (array.varies and tangents_flow())):
        raise _refusal(array.refusal(_line(), *_WAYS[way]))
    # Inside a `Function` nothing is recorded either.
    if node is None or not recording():
        return
    if any(
        one.number in transform.numbers
        for transform in tuple(following)
        for one in walk([node], transform.start)
    ):
        done, instead = _WAYS[way]
        message = (
            f"{_line()}a Tensor that a transform differentiates {done}, and its derivative would "
            f"be lost. {instead}."
        )
        raise _refusal(RuntimeError(message))


def _refusal(error: Exception) -> Exception:
    """The error, marked for `wengert.tape.callbacks`."""
    error.refused = True  # type: ignore[attr-defined]
    return error


def _line() -> str:
    """The program's line, as an error begins with it: file, number, text."""
    frame = user_frame()
    if frame is None:
        return ""
    text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    where = f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"
    return f"{where} ({text}): " if text else f"{where}: "


def is_flag() -> bool:
    """Whether the package's own code asks the caller for a truth value: a flag among options.

    What the program asks itself decides a branch, as in PyTorch.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not is_own(frame) and in_library(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None and is_own(frame)


#: PyTorch's warnings, by what the program does.
_WARNINGS = {
    "scalar": (
        "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
        "Consider using tensor.detach() first."
    ),
    "copy": (
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() "
        "or sourceTensor.detach().clone().requires_grad_(True), rather than "
        "wengert.tensor(sourceTensor). wengert.asarray(sourceTensor) stays on the tape."
    ),
    "grad": (
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
        "attribute won't be populated during autograd.backward(). If you indeed want the .grad "
        "field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. "
        "If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor "
        "instead."
    ),
}


#: Libraries that copy deeply what they then compute with, as xarray does to align and to sort: a
#: leaf of its own would take the gradient there.
_COPYING = frozenset({"xarray"})


def copied_on_the_way() -> bool:
    """Whether a deep copy is asked for by a library that computes with it."""
    for frame in frames():
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        # What holds the Tensor, such as a quantity, is copied on the same way.
        if package != "copy" and (package in _COPYING or frame.f_code.co_name != "__deepcopy__"):
            return package in _COPYING
    return False
