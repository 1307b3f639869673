"""What a recorded call may not do with its arguments, foreign Tensors, and NumPy arrays."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.backends import DTYPES
from wengert.backends.references import held_elsewhere, holders
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.raw import RawArray, shared
from wengert.compiler.capture.traced import Traced
from wengert.compiler.changes import changed
from wengert.func.trees import tree_flatten
from wengert.tape.tensor import Tensor

if TYPE_CHECKING:
    from wengert.compiler.recording import Call

__all__ = ["check_arguments", "check_dtype", "check_found", "check_memory"]


def check_dtype(x: Any, name: str) -> None:
    """Raise for an array of a dtype that the standard has not."""
    if isinstance(x, np.ndarray) and x.dtype.name not in DTYPES:
        raise TraceError(f"{name} is an array of {x.dtype}, which a program does not take")


def check_arguments(call: "Call") -> None:
    """Raise if the call has changed containers among the arguments."""
    if call.arguments is None:
        return
    given = {id(leaf) for leaf in call.leaves}
    leaves, now = tree_flatten(call.arguments, lambda x: id(x) in given and x is not None)
    names = call.layout.names
    if now != call.layout.structure:
        raise TraceError(
            "the compiled function changes the structure of its arguments, which a replay would "
            "not do. Make a new container"
        )
    for name, leaf, given_ in zip(names, leaves, call.leaves, strict=True):
        if leaf is not given_:
            raise changed(f"{name} among its arguments", given_, leaf)


def check_found(call: "Call", leaves: Sequence[Any]) -> None:
    """Raise if the function uses a Tensor that the walk has not found."""
    beside = [call.trace.constants[value] for value in call.trace.beside]
    # An array that only `constants` refers to was made in the trace.
    held = held_elsewhere(beside, known=1)
    arrays = {id(x) for x in held}
    known = {id(x) for x in (*call.tensors, *leaves)}
    if held and any(id(x._array) in arrays and id(x) not in known for x in holders(held, Tensor)):
        raise TraceError(
            "the compiled function uses a Tensor that is reached by none of the names in its code; "
            "pass it as an argument, or hold it in a variable or attribute"
        )


def check_memory(call: "Call") -> None:
    """Raise if what the caller gets shares memory with a raw array that he has, too."""
    inputs = {*call.inputs.values()}
    made = [x for x in call.outputs if isinstance(x, Traced) and x.value not in inputs]
    raw = [x for x in made if type(x) is RawArray]
    for x in made:
        others = [y for y in raw if y is not x] if type(x) is RawArray else raw
        for other in (*call._raws.values(), *others):
            if shared(x.inner, other.inner):
                raise TraceError(
                    "what the compiled function returns or keeps shares memory with "
                    f"{other.value.name or 'another raw array'}, which a replay would copy; "
                    "return or keep a copy"
                )
