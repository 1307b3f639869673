"""How calls use memory: which can write into given memory, and whose results may be views.

The row of a primitive says whether its results may be views. Functions that write into given
memory are NumPy's, and CuPy's universal functions, which take ``out`` as NumPy's do.
"""

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np

from wengert.backends import numpy_networks, numpy_reductions, numpy_special
from wengert.backends.numpy import add_part, broadcast_to
from wengert.compiler.cupy import Kernel
from wengert.compiler.facts import KERNELS, row_of
from wengert.compiler.passes.loops import Loop
from wengert.compiler.program import Instruction
from wengert.nn.kernels import numpy_classification, numpy_normalisations, numpy_recurrent
from wengert.ops.beyond import numpy_convolutions, numpy_pooling

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
    "Method",
    "elementwise",
    "form",
    "fresh",
    "getter",
    "is_take",
    "put",
    "set_part",
    "subtract_part",
]


class Method:
    """A method as a function: ``Method("dot")(x, y)`` is ``x.dot(y)``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, x: Any, *operands: Any, **parameters: Any) -> Any:
        return getattr(x, self.name)(*operands, **parameters)


#: Copies an array.
COPY: Final = Method("copy")
#: The product of matrices; for small ones faster than `np.matmul` by a third of a microsecond.
DOT: Final = Method("dot")
#: Elements at flat indices, which are all in bounds.
TAKE: Final = Method("take")
#: Repeats an axis of length 1: ``take`` with indices that are all zero.
REPEAT: Final = Method("take")
ARGMAX: Final = Method("argmax")
ASTYPE: Final = Method("astype")
RESHAPE: Final = Method("reshape")
TRANSPOSE: Final = Method("transpose")
VIEW: Final = Method("view")
#: Takes an attribute; cached, so that equal calls have the same function.
getter: Final = cache(attrgetter)


def put(x: Any, places: Any, values: Any) -> Any:
    """A copy of ``x`` with ``values`` at flat indices ``places``."""
    out = x.copy()
    out.put(places, values)
    return out


def set_part(x: Any, value: Any, *, key: tuple[Any, ...]) -> Any:
    """A copy of ``x`` with ``x[key] = value``, for a key without arrays."""
    out = x.copy()
    out[key] = value
    return out


def subtract_part(x: Any, value: Any, *, key: tuple[Any, ...]) -> Any:
    """A copy of ``x`` with ``x[key] -= value``, for a key without arrays."""
    out = x.copy()
    out[key] -= value
    return out


class Form(NamedTuple):
    """What a call does with memory, and the template of the call that writes into ``out``."""

    #: The template, with ``{out}``, function ``{f}``, operands ``{0}``, ``{1}``, … and ``{key}``;
    #: "keyword" if ``out=`` is added; "" if the call can't write into memory.
    writes: str = ""
    #: Which operand of the result's shape, dtype and layout ``out`` may be: "any", the first and
    #: nothing else ("only"), or none.
    inside: str = ""
    #: Whether the result may be a view of an operand, or an operand itself.
    views: bool = False
    #: Whether the result is a view whenever the operand's layout allows it.
    takes: bool = False
    #: Whether the template is a statement.
    statement: bool = False


_UNKNOWN: Final = Form(views=True)
_VIEW: Final = Form(views=True, takes=True)
_FRESH: Final = Form()
_REDUCTION: Final = Form("keyword")
_OF_ROWS: Final = Form("keyword", inside="any")

#: The forms of functions.
FORMS: dict[Callable[..., Any], Form] = {
    **{
        kernel: _FRESH
        for table in (
            *(numpy_convolutions.COVERED, numpy_networks.KERNELS, numpy_classification.KERNELS),
            *(numpy_normalisations.KERNELS, numpy_pooling.KERNELS, numpy_recurrent.KERNELS),
            *(numpy_reductions.KERNELS, numpy_special.KERNELS),
        )
        for kernel in table.values()
    },
    **dict.fromkeys(numpy_recurrent.COVERED, _FRESH),
    numpy_normalisations.inverse_roots: _FRESH,
    numpy_reductions.roots: _FRESH,
    **{x: _REDUCTION for x, facts in KERNELS.items() if facts.chooses is not None},
    **{x: _OF_ROWS for x, facts in KERNELS.items() if facts.of_rows},
    COPY: Form("{out}[...] = {0}", statement=True),
    DOT: Form("{0}.dot({1}, {out})"),
    # With the default mode, "raise", NumPy would buffer ``out``. No index is out of bounds.
    TAKE: Form('{0}.take({1}, None, {out}, "wrap")'),
    REPEAT: Form('{0}.take({1}, {2}, {out}, "clip")'),
    ARGMAX: Form("{0}.argmax({1}, {out})"),
    ASTYPE: Form('np.copyto({out}, {0}, "unsafe")', statement=True),
    RESHAPE: _VIEW,
    TRANSPOSE: _VIEW,
    VIEW: _VIEW,
    put: Form("{out}.put({1}, {2})", inside="only", statement=True),
    set_part: Form("{out}{key} = {1}", inside="only", statement=True),
    # In a recorded sweep it makes a new array, unlike in an eager one.
    add_part: Form("{out}{key} += {1}", inside="only", statement=True),
    subtract_part: Form("{out}{key} -= {1}", inside="only", statement=True),
    np.zeros: Form("{out}.fill(0)", statement=True),
    # The backend's kernel, which copies small arrays.
    broadcast_to: Form("{out}[...] = {0}", statement=True),
    np.concatenate: Form("keyword"),
    np.stack: Form("keyword"),
}

#: Functions that take ``out`` as a keyword alone.
_NAMED_OUT: Final = (np.maximum, np.minimum)


def form(step: Instruction) -> Form:
    """The form of an instruction."""
    if step.form is None:
        step.form = _find(step)
    return step.form  # type: ignore[no-any-return]


def _find(step: Instruction) -> Form:
    function = step.function
    found = FORMS.get(add_part if step.name == "add_part" else function)  # NumPy's or CuPy's
    if found is not None:
        return found
    if isinstance(function, Kernel | Loop):
        return _FRESH
    if type(function).__name__ == "ufunc":
        alone = not step.parameters or step.parameters == {"order": "C"}
        whole = len(step.operands) == function.nin  # type: ignore[attr-defined]
        return _ufunc(function) if alone and whole else _FRESH
    if isinstance(getattr(function, "__self__", None), np.ufunc):
        return _REDUCTION if function.__name__ == "reduce" else _FRESH
    used = step.uses()
    given = step.parameters
    if given.get("copy") or given.get("own") is False or not any(x.shape is not None for x in used):
        return _FRESH
    found_row = row_of(step.name)
    if found_row is None or found_row.view is None:
        return _UNKNOWN
    if not found_row.view or any(x.shape for x in used[1:]):  # of an index array
        return _FRESH
    return _VIEW if len(used) == 1 else _UNKNOWN


def elementwise(step: Instruction) -> bool:
    """Whether it calls a function of NumPy's that computes element by element."""
    return isinstance(step.function, np.ufunc) and step.function.signature is None


def fresh(step: Instruction) -> bool:
    """Whether the results share memory with nothing else."""
    return not form(step).views


def is_take(step: Instruction) -> bool:
    """Whether it is a pure view of its only operand."""
    return form(step).takes and len(step.uses()) == 1 and step.pure and not step.several


@cache
def _ufunc(function: Any) -> Form:
    """Without parameters; with ``axis``, a generalised ufunc has no such form."""
    if function.nout != 1:
        return _FRESH
    taken = ", ".join(f"{{{i}}}" for i in range(function.nin))
    positional = isinstance(function, np.ufunc) and function not in _NAMED_OUT
    out = "{out}" if positional else "out={out}"
    # A generalised ufunc, such as matmul, reads an operand more than once. Over its own operand
    # NumPy's sign takes ten times as long: that loop has a branch for each element (NumPy 2.4).
    apart = getattr(function, "signature", None) is not None or function is np.sign
    return Form(f"{{f}}({taken}, {out})", inside="" if apart else "any")
