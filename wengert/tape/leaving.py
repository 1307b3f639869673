"""Values that leave the tape: errors within transforms, warnings outside, and the program's line.

A Python number or a raw array has no node. While a transform differentiates a Tensor, its values
may not become one: derivatives of what is computed from them would be silently wrong. Nothing here
runs unless values leave a Tensor that has a derivative.
"""

import linecache
import sys
import sysconfig
import warnings
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from wengert.tape.grad_mode import following, recording, tangents_flow
from wengert.tape.node import is_lifted


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


def user_frame() -> FrameType | None:
    """The innermost frame of the program's own; failing that, the innermost of a library's."""
    frame: FrameType | None = sys._getframe(1)
    library: FrameType | None = None
    while frame is not None:
        if not is_own(frame):
            if not in_library(frame.f_code.co_filename):
                return frame
            library = library or frame
        frame = frame.f_back
    return library


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn the user, of the line of the program's own that is running."""
    wanted, level = user_frame(), 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame is not wanted:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


_STAY = (
    "Compute with the Tensor itself: operators, wengert's functions and NumPy's take Tensors, "
    "wg.stack and wg.asarray make an array of several, and wg.at(a)[key].set(value) replaces a part"
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
        raise array.refusal(_line(), *_WAYS[way])
    # Inside a `Function` nothing is recorded either.
    if node is None or not recording():
        return
    if any(_descends(node, transform) for transform in tuple(following)):
        done, instead = _WAYS[way]
        raise RuntimeError(
            f"{_line()}a Tensor that a transform differentiates {done}, and its derivative would "
            f"be lost. {instead}."
        )


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
