"""The C that CuPy's functions of single elements are made of, as CuPy's own tables have it.

A universal function of CuPy has a routine for each loop, such as ``out0 = in0 + in1``, which is the
inside of a kernel. Kernels that do several functions at once are made of the same text, on
variables of the same types: so they compute the same.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

__all__ = [
    "OPTIONS",
    "Reduced",
    "Routine",
    "c_number",
    "c_type",
    "cast",
    "conversion",
    "reduction",
    "routine",
    "universal",
]

#: A product and a sum that follow one another in one kernel stay two roundings, as in two kernels.
OPTIONS: Final = ("--fmad=false",)

#: What CUDA calls the data types.
_C_TYPES: Final = {
    "?": "bool", "b": "signed char", "B": "unsigned char", "h": "short", "H": "unsigned short",
    "i": "int", "I": "unsigned int", "l": "long long", "L": "unsigned long long",
    "q": "long long", "Q": "unsigned long long", "e": "float16", "f": "float", "d": "double",
    "F": "complex<float>", "D": "complex<double>",
}  # fmt: skip

_KINDS: Final = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 2}

#: Functions of CUDA that are the same instructions with and without `OPTIONS`, or that are exact.
_SAME: Final = frozenset({
    "_floor_divide", "abs", "acos", "asin", "asinh", "atan", "bool", "ceil", "conj", "copysign",
    "cos", "cosh", "double", "exp", "exp2", "expit", "expm1", "fabs", "fabsf", "float", "floor",
    "if", "integral_power", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2",
    "log_expit", "max", "min", "pow", "powf", "rint", "signbit", "sin", "sqrt", "tan", "tanh",
    "trunc",
})  # fmt: skip


class Routine(NamedTuple):
    """The inside of a kernel.

    Attributes
    ----------
    takes, gives : tuple of dtype, dtype
        The types of ``in0``, ``in1``, … and of ``out0``.
    text : str
        Statements.
    preamble : str
        What they need to be defined.
    """

    takes: tuple[Any, ...]
    gives: Any
    text: str
    preamble: str = ""


class Reduced(NamedTuple):
    """What a reduction does: the expressions of a ``ReductionKernel``.

    Attributes
    ----------
    reduce : str
        How ``a`` and ``b`` become one.
    identity : str
        Of which nothing changes.
    type : str or None
        Of ``a`` and ``b``; None for that of the result.
    """

    reduce: str
    identity: str
    type: str | None


def c_type(dtype: Any) -> str | None:
    """The name of a data type in CUDA, or None."""
    return _C_TYPES.get(np.dtype(dtype).char)


def cast(name: str, text: str) -> str:
    """An expression for something as the type of this name."""
    return f"(({name})({text}))" if " " in name else f"{name}({text})"


def c_number(x: Any, dtype: Any) -> str | None:
    """A finite Python number as an expression of a type; None where the type lacks it."""
    dtype, name = np.dtype(dtype), c_type(dtype)
    if name is None or type(x) not in (bool, int, float, complex) or not np.isfinite(x):
        return None
    if dtype.kind == "b":
        return None if x not in (0, 1) else str(bool(x)).lower()
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        fits = type(x) in (bool, int) and limits.min <= x <= limits.max and abs(x) < 1 << 63
        return cast(name, str(int(x))) if fits else None
    if dtype.kind == "c":
        z = complex(x)
        return f"{name}({z.real!r}, {z.imag!r})"
    if type(x) is complex:
        return None
    with np.errstate(over="ignore"):
        value = dtype.type(x).item()
    if not np.isfinite(value):
        return None
    # C rounds a literal to double first, which rounds twice on the way to half precision.
    return cast(name, repr(float(x) if dtype.char in "fd" and abs(x) < 1 << 53 else value))


def universal(function: Any) -> Any:
    """The universal function of CuPy that a function of a program is, or None."""
    function = getattr(function, "of_reals", function)  # a kernel of Wengert's says what it calls
    if type(function).__name__ == "ufunc" and type(function).__module__.startswith("cupy"):
        return function if hasattr(function, "_ops") else None
    if getattr(function, "__module__", None) == "cupy._sorting.search":
        from cupy._sorting import search

        return search._where_ufunc if function is search.where else None
    return None


def routine(function: Any, operands: Sequence[Any], gives: Any) -> Routine | None:
    """What a call of a universal function computes, or None where that is not sure.

    Parameters
    ----------
    function : ufunc
        Of CuPy.
    operands : sequence
        Data types of arrays, Python's types of numbers that are not known, and numbers.
    gives : dtype
        Of the result.
    """
    if function.nin != len(operands) or function.nout != 1:
        return None
    for op in function._ops.ops:
        takes = tuple([np.dtype(x) for x in op.in_types])
        if all(_fits(x, dtype, operands) for x, dtype in zip(operands, takes, strict=True)):
            break
    else:
        return None
    result = np.dtype(op.out_types[0])
    names = [c_type(x) for x in (*takes, result)]
    if None in names or result != gives or not isinstance(op.routine, str):
        return None
    if not _same(op.routine, (*takes, result), function._preamble):
        return None
    return Routine(takes, result, op.routine.strip(), function._preamble)


def _fits(x: Any, dtype: Any, operands: Sequence[Any]) -> bool:
    """Whether an operand may be given to a loop of this type, as CuPy decides it."""
    if isinstance(x, np.dtype) or dtype.kind == "V":  # bfloat16, which is no type here
        return not isinstance(x, np.dtype) or np.can_cast(x, dtype)
    kind = type(x) if not isinstance(x, type) else x
    own = np.dtype(kind)
    most = max([_KINDS[y.kind] for y in operands if isinstance(y, np.dtype)], default=-1)
    if _KINDS[own.kind] > most:  # numbers of a higher kind are arrays of no axes
        return np.can_cast(own, dtype)
    if own.kind == "c" and dtype.kind != "c":
        return False
    if isinstance(x, type):  # a number that may be any
        return (kind is float and dtype.char in "fdFD") or (kind is int and dtype.char in "lqfd")
    return _KINDS[dtype.kind] >= _KINDS[own.kind] and _representable(x, dtype)


def _representable(x: Any, dtype: Any) -> bool:
    if dtype.kind in "iu":
        return bool(np.iinfo(dtype).min <= x <= np.iinfo(dtype).max)
    return dtype.kind != "f" or not np.isfinite(x) or c_number(x, dtype) is not None


def _same(text: str, dtypes: Sequence[Any], preamble: str) -> bool:
    """Whether a routine computes the same bits whether or not products and sums are contracted."""
    calls = set(re.findall(r"\b([A-Za-z_]\w*)\s*\(", text)) - {"out0_type", "in0_type", "in1_type"}
    if any(x.kind == "c" for x in dtypes):
        # CuPy's complex products are sums of products.
        return not re.search(r"[*/]", text) and calls <= {"conj", "isnan"}
    if any(x.kind == "f" for x in dtypes) and "*" in text and re.search(r"[-+]", text):
        return False
    return calls <= _SAME


def conversion(given: Any, gives: Any) -> Routine | None:
    """What ``astype`` computes between numbers that C converts: of real ones, and not half ones."""
    given, gives = np.dtype(given), np.dtype(gives)
    name = c_type(gives)
    if (
        name is None
        or c_type(given) is None
        or given.kind == "c"
        or "e" in (given.char, gives.char)
    ):
        return None
    return Routine((given,), gives, f"out0 = {cast(name, 'in0')}")


def reduction(name: str, dtype: Any, gives: Any) -> Reduced | None:
    """What CuPy's reduction of this name does, if its table says that of C's operators alone."""
    from cupy import _core

    math = _core._routines_math
    found = {"sum": math.sum_auto_dtype, "prod": math.prod_auto_dtype}.get(name)
    if found is None or c_type(dtype) is None or np.dtype(dtype).kind == "c":
        return None
    for op in found._ops.ops:
        if np.dtype(op.in_types[0]) == dtype and np.dtype(op.out_types[0]) == gives:
            before, reduce, after, kind = op.routine
            if (before, after) != ("in0", "out0 = type_out0_raw(a)") or len(reduce) != len("a + b"):
                return None
            return Reduced(reduce, str(found.identity), kind)
    return None
