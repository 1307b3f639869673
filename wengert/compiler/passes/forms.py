"""How calls use memory: which can write into it, and whose results have memory of their own.

Of a primitive its row says whether results may be views. The functions that write are NumPy's, and
CuPy's universal functions, which take ``out`` as NumPy's do.
"""

import importlib
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np

from wengert.backends import cupy_networks, numpy_networks, numpy_reductions
from wengert.backends.numpy import add_part, broadcast_to
from wengert.compiler.program import Instruction
from wengert.ops.operators import BINARY, EQUALITY, ORDER, UNARY
from wengert.tape.primitive import ALSO, PRIMITIVES, Primitive

__all__ = [
    "ARGMAX",
    "ASTYPE",
    "COPY",
    "DOT",
    "FORMS",
    "REPEAT",
    "RESHAPE",
    "TAKE",
    "TRANSPOSE",
    "VIEW",
    "Form",
    "Kernel",
    "Method",
    "form",
    "fresh",
    "getter",
    "put",
    "row",
    "set_part",
    "subtract_part",
    "taken",
]


class Method:
    """A method of its first operand, as a function: ``Method("dot")(x, y)`` is ``x.dot(y)``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, x: Any, *operands: Any, **parameters: Any) -> Any:
        return getattr(x, self.name)(*operands, **parameters)

    def __repr__(self) -> str:
        return f"Method({self.name!r})"


class Kernel:
    """A kernel of CuPy's, as a function; its results have memory of their own.

    Attributes
    ----------
    kind : {"ElementwiseKernel", "ReductionKernel"}
        Of CuPy's classes.
    arguments, keywords : tuple, dict
        What makes it.
    """

    def __init__(self, kind: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self.kind, self.arguments, self.keywords = kind, arguments, keywords
        self.__name__: str = arguments[-1]
        self._kernel: Any = None

    def __call__(self, *operands: Any, **parameters: Any) -> Any:
        if self._kernel is None:
            self._kernel = getattr(importlib.import_module("cupy"), self.kind)(
                *self.arguments, **self.keywords
            )
        return self._kernel(*operands, **parameters)


#: Copies an array.
COPY: Final = Method("copy")
#: The product of matrices: `np.matmul` of small ones takes a third of a microsecond longer.
DOT: Final = Method("dot")
#: Of an array by flat indices, all of which are there.
TAKE: Final = Method("take")
#: Of an array's one row along an axis, as often as there are zeros in the indices.
REPEAT: Final = Method("take")
ARGMAX: Final = Method("argmax")
ASTYPE: Final = Method("astype")
RESHAPE: Final = Method("reshape")
TRANSPOSE: Final = Method("transpose")
VIEW: Final = Method("view")
#: Takes an attribute: one function for each name, so that calls of it are known as equal.
getter: Final = cache(attrgetter)


def put(x: Any, places: Any, values: Any) -> Any:
    """A copy of ``x`` with other values at some places, counted along the whole array."""
    out = x.copy()
    out.put(places, values)
    return out


def set_part(x: Any, value: Any, *, key: tuple[Any, ...]) -> Any:
    """A copy of ``x`` with another value at a key without arrays."""
    out = x.copy()
    out[key] = value
    return out


def subtract_part(x: Any, value: Any, *, key: tuple[Any, ...]) -> Any:
    """A copy of ``x`` from which a value is subtracted at a key without arrays."""
    out = x.copy()
    out[key] -= value
    return out


class Form(NamedTuple):
    """What a call does with memory, and how it is written.

    Attributes
    ----------
    writes : str
        The call that writes into ``{out}``, of a function ``{f}`` and operands ``{0}``, ``{1}``, …,
        at a key ``{key}``; ``"keyword"`` where ``out=`` is added; "" where there is no such call.
    inside : {"any", "only", ""}
        Which operands' memory ``out`` may be, if they are like the result: any, or none, or it can
        only be that of the first.
    views : bool
        Whether the result may be a view of an operand, or an operand itself.
    takes : bool
        Whether it is a view wherever the places of the operand's elements allow it.
    statement : bool
        Whether the call that writes is no expression.
    """

    writes: str = ""
    inside: str = ""
    views: bool = False
    takes: bool = False
    statement: bool = False


_UNKNOWN: Final = Form(views=True)
_VIEW: Final = Form(views=True, takes=True)
_FRESH: Final = Form()
_REDUCTION: Final = Form("keyword")

#: By function.
FORMS: dict[Callable[..., Any], Form] = {
    **dict.fromkeys(numpy_networks.KERNELS.values(), _FRESH),
    **dict.fromkeys(numpy_reductions.KERNELS.values(), _FRESH),
    cupy_networks.cupy_softmax_cross_entropy: _FRESH,
    **dict.fromkeys(numpy_reductions.CHOOSING, _REDUCTION),
    COPY: Form("{out}[...] = {0}", statement=True),
    DOT: Form("{0}.dot({1}, {out})"),
    # Any mode but the default writes without a copy; no index is out of bounds.
    TAKE: Form('{0}.take({1}, None, {out}, "wrap")'),
    REPEAT: Form('{0}.take({1}, {2}, {out}, "clip")'),
    ARGMAX: Form("{0}.argmax({1}, {out})"),
    ASTYPE: Form('np.copyto({out}, {0}, "unsafe")', statement=True),
    RESHAPE: _VIEW,
    TRANSPOSE: _VIEW,
    VIEW: _VIEW,
    put: Form("{out}.put({1}, {2})", inside="only", statement=True),
    set_part: Form("{out}{key} = {1}", inside="only", statement=True),
    # Of a sweep that is recorded, which lets nothing be written over: its result is a new array.
    add_part: Form("{out}{key} += {1}", inside="only", statement=True),
    subtract_part: Form("{out}{key} -= {1}", inside="only", statement=True),
    np.zeros: Form("{out}.fill(0)", statement=True),
    # The kernel for small arrays, which it copies.
    broadcast_to: Form("{out}[...] = {0}", statement=True),
    np.concatenate: Form("keyword"),
    np.stack: Form("keyword"),
}

#: Whose third positional operand is no ``out`` any more.
_NAMED_OUT: Final = (np.maximum, np.minimum)


#: What Python calls the arithmetic of primitives.
_NUMBERS: Final = {
    f"number.{python}": name for python, name, *_ in (*BINARY, *UNARY, *ORDER, *EQUALITY)
}


def row(step: Instruction) -> Primitive | None:
    """The row of the primitive of which an instruction is a call."""
    name = _NUMBERS.get(step.name, step.name)
    return PRIMITIVES.get(name) or ALSO.get(name)


def form(step: Instruction) -> Form:
    """What is known about an instruction."""
    if step.form is None:
        step.form = _found(step)
    return step.form  # type: ignore[no-any-return]


def _found(step: Instruction) -> Form:
    function = step.function
    found = FORMS.get(function)
    if found is not None:
        return found
    if isinstance(function, Kernel):
        return _FRESH
    if type(function).__name__ == "ufunc":
        return _ufunc(function) if _ordinary(step) else _FRESH
    if isinstance(getattr(function, "__self__", None), np.ufunc):
        return _REDUCTION if function.__name__ == "reduce" else _FRESH
    used = step.used()
    given = step.parameters
    if given.get("copy") or given.get("own") is False or not any(x.shape is not None for x in used):
        return _FRESH
    found_row = row(step)
    if found_row is None or found_row.view is None:
        return _UNKNOWN
    if not found_row.view or any(x.shape for x in used[1:]):  # places that an index array names
        return _FRESH
    return _VIEW if len(used) == 1 else _UNKNOWN


def fresh(step: Instruction) -> bool:
    """Whether nothing else has the memory of the results."""
    return not form(step).views


def taken(step: Instruction) -> bool:
    """Whether it is a view that depends on nothing but its operand."""
    return form(step).takes and len(step.used()) == 1 and step.pure and not step.several


def _ordinary(step: Instruction) -> bool:
    """Whether a ufunc is called with its operands alone, and where it writes is in its order."""
    alone = not step.parameters or step.parameters == {"order": "C"}
    return alone and len(step.operands) == step.function.nin  # type: ignore[attr-defined]


def _ufunc(function: Any) -> Form:
    if function.nout != 1:
        return _FRESH
    taken = ", ".join(f"{{{i}}}" for i in range(function.nin))
    positional = isinstance(function, np.ufunc) and function not in _NAMED_OUT
    out = "{out}" if positional else "out={out}"
    # A generalised ufunc, such as matmul, reads an operand more than once.
    general = getattr(function, "signature", None) is not None
    found = Form(f"{{f}}({taken}, {out})", inside="" if general else "any")
    FORMS[function] = found
    return found
