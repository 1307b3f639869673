"""The C that CuPy's functions of single elements are made of, as CuPy's own tables have it.

A universal function of CuPy has a routine for each loop, such as ``out0 = in0 + in1``, which is the
inside of a kernel. Kernels that do several functions at once are made of the same text, on
variables of the same types: so they compute the same.
"""

import cmath
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

__all__ = [
    "NUMBERS",
    "ROUNDED",
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

#: CUDA merges a product with a sum that takes it, which then rounds once. Of calls that are kernels
#: of their own it merges nothing, and so their results pass a sum with -0 here: it changes no
#: number, and as it says how it rounds, it is not merged with the product before it.
ROUNDED: Final = {
    "f": """static __device__ inline float rounded(float x) {
    asm("add.rn.f32 %0, %0, 0f80000000;" : "+f"(x));
    return x;
}""",
    "d": """static __device__ inline double rounded(double x) {
    asm("add.rn.f64 %0, %0, 0d8000000000000000;" : "+d"(x));
    return x;
}""",
}

#: What CUDA calls the data types. Of half precision CuPy has classes that not every kernel knows.
_C_TYPES: Final = {
    "?": "bool", "b": "signed char", "B": "unsigned char", "h": "short", "H": "unsigned short",
    "i": "int", "I": "unsigned int", "l": "long long", "L": "unsigned long long",
    "q": "long long", "Q": "unsigned long long", "f": "float", "d": "double",
    "F": "complex<float>", "D": "complex<double>",
}  # fmt: skip

#: Python's numbers.
NUMBERS: Final = (bool, int, float, complex)

_KINDS: Final = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 2}

#: Functions whose result is exact, or one rounding.
_EXACT: Final = frozenset({
    "_floor_divide", "abs", "bool", "ceil", "conj", "copysign", "double", "fabs", "fabsf", "float",
    "floor", "if", "isfinite", "isinf", "isnan", "max", "min", "rint", "signbit", "sqrt", "trunc",
})  # fmt: skip
#: Others that are known.
_KNOWN: Final = frozenset({
    "acos", "asin", "asinh", "acosh", "atan", "atan2", "atanh", "cos", "cosh", "erf", "erfc", "exp",
    "exp2", "expit", "expm1", "hypot", "integral_power", "log", "log10", "log1p", "log2",
    "log_expit", "pow", "powf", "sin", "sinh", "tan", "tanh",
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
    calls : bool
        Whether functions are called that a compiler may compute otherwise of a number it knows.
    rounds : bool
        Whether the result may be merged with what takes it.
    """

    takes: tuple[Any, ...]
    gives: Any
    text: str
    preamble: str = ""
    calls: bool = False
    rounds: bool = False


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
    if name is None or type(x) not in NUMBERS or not _finite(x):
        return None
    if dtype.kind == "b":
        return None if x not in (0, 1) else str(bool(x)).lower()
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        fits = type(x) in (bool, int) and limits.min <= x <= limits.max and abs(x) < 1 << 63
        return cast(name, str(int(x))) if fits else None
    if abs(x) > float(np.finfo(dtype).max):
        return None
    if dtype.kind == "c":
        z = complex(x)
        return f"{name}({z.real!r}, {z.imag!r})"
    if type(x) is complex:
        return None
    return cast(name, repr(float(x) if abs(x) < 1 << 53 else dtype.type(x).item()))


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
    given = tuple(operands)
    return _found(function, given, tuple(map(type, given)), gives)


@lru_cache(maxsize=4096)
def _found(function: Any, operands: Any, types: Any, gives: Any) -> Routine | None:
    """What `routine` answers, which depends on the types of numbers, too: 1 is no 1.0."""
    if function.nin != len(operands) or function.nout != 1:
        return None
    if any(isinstance(x, np.dtype) and c_type(x) is None for x in operands):
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
    calls = set(re.findall(r"\b([A-Za-z_]\w*)\s*\(", op.routine)) - _EXACT
    calls -= {"out0_type", "in0_type", "in1_type"}
    kinds = {x.kind for x in (*takes, result)}
    product = "*" in op.routine
    if not calls <= _KNOWN or (product and "f" in kinds and re.search(r"[-+]", op.routine)):
        return None
    # Products and quotients of complex numbers are made of several operations.
    if "c" in kinds and (calls or re.search("[*/]|max|min|abs", op.routine)):
        return None
    rounds = result.char in ROUNDED and (product or bool(calls))
    return Routine(takes, result, op.routine.strip(), function._preamble, bool(calls), rounds)


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
    return dtype.kind != "f" or not _finite(x) or c_number(x, dtype) is not None


def _finite(x: Any) -> bool:
    """Whether it is no infinity and no nan; integers may be larger than any float."""
    return type(x) in (bool, int) or cmath.isfinite(x)


def conversion(given: Any, gives: Any) -> Routine | None:
    """What ``astype`` computes of real numbers: C's conversion."""
    given, gives = np.dtype(given), np.dtype(gives)
    name = c_type(gives)
    if name is None or c_type(given) is None or given.kind == "c":
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
