"""The C that CuPy's functions of single elements are made of, as CuPy's own tables have it.

A universal function of CuPy has a routine for each loop, such as ``out0 = in0 + in1``, which is the
inside of a kernel. Kernels that do several functions at once are made of the same text, on
variables of the same types: so they compute the same.
"""

import cmath
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np

__all__ = [
    "NUMBERS",
    "ROUNDED",
    "WRAPPED",
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

#: C leaves open what an overflow of signed integers gives, and a shift by more than there are bits,
#: and so a compiler takes ``x + 1 > x`` for true. It knows nothing of what passes through here.
WRAPPED: Final = "\n".join([
    f"""static __device__ inline {name} wrapped({name} x) {{
    asm("" : "+{register}"(x));
    return x;
}}"""
    for name, register in (
        ("int", "r"), ("unsigned int", "r"), ("long long", "l"), ("unsigned long long", "l"),
    )
])  # fmt: skip

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
    folds : bool
        Whether a compiler may compute something else of a number that it knows.
    rounds : bool
        Whether the result may be merged with what takes it.
    wraps : bool
        Whether integers may overflow.
    """

    takes: tuple[Any, ...]
    gives: Any
    text: str
    preamble: str = ""
    folds: bool = False
    rounds: bool = False
    wraps: bool = False


class Reduced(NamedTuple):
    """The expressions of a ``ReductionKernel``.

    ``reduce`` makes one of ``a`` and ``b``, which have this ``type``, or None for that of the
    result; ``identity`` changes nothing.
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
    if type(function).__name__ == "ufunc" and type(function).__module__.startswith("cupy"):
        return function if hasattr(function, "_ops") else None
    if getattr(function, "__module__", None) == "cupy._sorting.search":
        from cupy._sorting import search

        return search._where_ufunc if function is search.where else None
    return None


def routine(function: Any, operands: Sequence[Any], gives: Any) -> Routine | None:
    """What a call of a universal function computes, or None where that is not sure.

    Operands are data types of arrays, Python's types of numbers that are not known, and numbers.
    """
    given = tuple(operands)
    return _find(function, given, tuple(map(type, given)), gives)


@lru_cache(maxsize=4096)
def _find(function: Any, operands: Any, types: Any, gives: Any) -> Routine | None:
    """What `routine` answers, which depends on the types of numbers, too: 1 is no 1.0."""
    if function.nin != len(operands) or function.nout != 1:
        return None
    if any(c_type(_own(x)) is None for x in operands):
        return None
    op = _loop(function, operands, gives)
    if op is None:
        return None
    takes, result = tuple([np.dtype(x) for x in op.in_types]), np.dtype(op.out_types[0])
    names = [c_type(x) for x in (*takes, result)]
    if None in names or result != gives or not isinstance(op.routine, str):
        return None
    calls = set(re.findall(r"\b([A-Za-z_]\w*)\s*\(", op.routine)) - _EXACT
    calls -= {"out0_type", "in0_type", "in1_type"}
    kinds = {x.kind for x in (*takes, result)}
    times = "*" in op.routine
    if not calls <= _KNOWN or (times and "f" in kinds and re.search(r"[-+]", op.routine)):
        return None
    # Products, quotients and roots of complex numbers are made of several operations.
    if "c" in kinds and (calls or re.search("[*/]|max|min|abs|sqrt", op.routine)):
        return None
    whole = result.kind in "iu"
    # By powers of 2 a compiler does not divide, but multiplies, and may merge that with a sum.
    folds = bool(calls) or bool(re.search("<<|>>|/|_floor_divide", op.routine))
    rounds = result.char in ROUNDED and (times or bool(calls))
    wraps = whole and (bool(calls) or bool(re.search("[-+*]|<<|>>|_floor_divide", op.routine)))
    text = op.routine.strip()
    return Routine(takes, result, text, function._preamble, folds, rounds, wraps)


def _loop(function: Any, operands: Sequence[Any], gives: Any) -> Any:
    """The loop that CuPy chooses, or None where it depends on a number that is not known.

    Python's numbers have no type beside arrays of their kind.
    """
    own = [x if isinstance(x, type) else type(x) for x in operands]
    weak = [x in (int, float, complex) for x in own]
    strong = [_KINDS[_own(x).kind] for x, number in zip(operands, weak, strict=True) if not number]
    fits = max(strong, default=-1) >= max(_KINDS[_own(x).kind] for x in operands)
    kinds = tuple([fits and y and x for x, y in zip(own, weak, strict=True)])
    find = function._ops._guess_routine_from_in_types
    found = {find(types, kinds) for types in product(*map(_owns, operands))}
    if len(found) == 1:
        return found.pop()
    # With a float the type of the result says which loop it was, unless several give that type.
    fitting = [op for op in function._ops.ops if op.out_types[0] == gives]
    return fitting[0] if len(fitting) == 1 and int not in operands else None


def _owns(x: Any) -> list[Any]:
    """The type of an array, and of a number by itself; several of one that is not known."""
    return [_own(x), np.dtype("uint64")] if x is int else [_own(x)]  # for those beyond int64


def _own(x: Any) -> Any:
    """The type of an array, or of a number by itself."""
    if isinstance(x, np.dtype):
        return x
    return np.dtype(x) if isinstance(x, type) else np.asarray(x).dtype


def _finite(x: Any) -> bool:
    """Whether it is no infinity and no nan; integers may be larger than any float."""
    return type(x) in (bool, int) or cmath.isfinite(x)


def conversion(given: Any, gives: Any) -> Routine | None:
    """What ``astype`` computes of real numbers: C's conversion."""
    given, gives = np.dtype(given), np.dtype(gives)
    name = c_type(gives)
    if name is None or c_type(given) is None or given.kind == "c":
        return None
    wraps = given.kind == "f" and gives.kind in "iu"  # C leaves open what is out of range
    return Routine((given,), gives, f"out0 = {cast(name, 'in0')}", wraps=wraps)


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
