"""How NumPy's and CuPy's functions use memory: where they write, and what they are views of."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np

from wengert.compiler.passes.sharing import fresh
from wengert.compiler.program import Instruction, Value

__all__ = ["FORMS", "Form", "Method", "form"]


class Method:
    """A method of its first operand, as a function: ``Method("dot")(x, y)`` is ``x.dot(y)``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, x: Any, *operands: Any, **parameters: Any) -> Any:
        return getattr(x, self.name)(*operands, **parameters)

    def __repr__(self) -> str:
        return f"Method({self.name!r})"


class Form(NamedTuple):
    """What a call does with memory, and how it is written.

    Attributes
    ----------
    writes : str
        The call that writes into ``{out}``, with operands ``{0}``, ``{1}``, ...; "" if it can't.
    plain : str
        The call that doesn't, if that is written in a way of its own.
    inside : {"any", "first", ""}
        Which operands' memory ``out`` may be, if they are like the result.
    views : bool
        Whether the result may be a view of an operand, or an operand itself.
    statement : bool
        Whether the call that writes is no expression.
    """

    writes: str = ""
    plain: str = ""
    inside: str = ""
    views: bool = False
    statement: bool = False


#: What nothing is known about.
_UNKNOWN: Final = Form(views=True)
_FRESH: Final = Form()

#: By function: what is neither a ufunc nor a view.
FORMS: dict[Callable[..., Any], Form] = {}

#: Ufuncs that take ``out`` by its name alone.
_NAMED_OUT = (np.maximum, np.minimum)


def _ufunc(function: np.ufunc) -> Form:
    if function.nout != 1:
        return _FRESH
    taken = ", ".join(f"{{{i}}}" for i in range(function.nin))
    out = "out={out}" if function in _NAMED_OUT else "{out}"
    name = function.__name__
    # A generalised ufunc, such as matmul, reads an operand more than once.
    inside = "any" if function.signature is None else ""
    return Form(f"{{np}}.{name}({taken}, {out})", inside=inside)


def form(step: Instruction) -> Form:
    """What is known about an instruction."""
    function = step.function
    found = FORMS.get(function)
    if found is not None:
        return found
    if isinstance(function, np.ufunc):
        if step.parameters or len(step.operands) != function.nin:
            return _FRESH
        found = FORMS[function] = _ufunc(function)
        return found
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc):
        return Form("{call}, out={out})") if function.__name__ == "reduce" else _FRESH
    if isinstance(function, attrgetter):
        return _UNKNOWN
    if step.name == "getitem":
        return _FRESH if any(isinstance(x, Value) for x in step.operands[1:]) else _UNKNOWN
    if step.name == "astype" and step.parameters.get("copy", True):
        return _FRESH
    return _FRESH if fresh(step) else _UNKNOWN
