"""The dtype of an operation's operands together: one rule, whatever the array library does itself.

Where the standard says what the common dtype is, libraries agree, and nothing is done here. It is
silent on operands of different kinds, and on integers that floating functions are given: there the
rule is PyTorch's, in which the kinds are ranked and the default dtype decides.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import reduce
from typing import Any, Final

from wengert.backends import DTYPES, DType, as_dtype, dtype_of

SCALARS: Final = frozenset({bool, int, float, complex})
#: What kernels take beside arrays: of booleans they get integers.
NUMBERS: Final = SCALARS - {bool}
_INTEGRAL: Final = ("signed integer", "unsigned integer")
_FLOATING: Final = ("real floating", "complex floating")
#: What a row may say of dtypes: which kinds these are, and how docstrings name them.
DTYPES_FOR: Final = {
    "any": ("bool", *_INTEGRAL, *_FLOATING),
    "boolean": ("bool",),
    "complex": ("complex floating",),
    "floating": _FLOATING,
    "integer": _INTEGRAL,
    "integer or boolean": ("bool", *_INTEGRAL),
    "numeric": (*_INTEGRAL, *_FLOATING),
    "real floating": ("real floating",),
    "real numeric": (*_INTEGRAL, "real floating"),
}


def number_type(x: Any) -> type:
    """The type of an object; of a number that a trace follows, the type of that number."""
    return getattr(x, "follows", type(x))


# -- the default ---------------------------------------------------------------------------------

_default = DTYPES["float32"]
#: The default of the running thread or task, where a transform of raw arrays has set one.
_local: ContextVar[DType | None] = ContextVar("wengert_default_dtype", default=None)


def set_default_dtype(dtype: Any) -> None:
    """Choose the dtype that Python floats get in creation functions; float32 until then.

    Python complex numbers get the complex dtype of the same precision. Integers get the default
    dtype where a function makes them floating, or they meet a Python float.

    Raises `TypeError` if it is no real floating dtype.

    Examples
    --------
    >>> wg.set_default_dtype(wg.float64)
    >>> wg.zeros(2).dtype
    wengert.float64
    >>> wg.set_default_dtype(wg.float32)
    """
    global _default
    chosen = as_dtype(dtype)
    if chosen.kind != "real floating":
        raise TypeError(f"the default dtype is a real floating one, and not {chosen.name}")
    _default = chosen


def get_default_dtype() -> DType:
    """Return the dtype that Python floats get in creation functions.

    In a function that is transformed and was given raw arrays, it is at least as precise as these.

    Examples
    --------
    >>> wg.get_default_dtype()
    wengert.float32
    """
    return _local.get() or _default


def default_complex_dtype() -> DType:
    """The dtype that Python complex numbers get in creation functions."""
    return DTYPES["complex128" if get_default_dtype().name == "float64" else "complex64"]


class _Doubles:
    """A context in which float64 is the default; a generator would take twice as long."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _local.set(DTYPES["float64"])

    def __exit__(self, *exception: object) -> None:
        _local.reset(self._token)


_AS_IT_IS: Final = nullcontext()


def at_least(dtype: DType | None) -> AbstractContextManager[None]:
    """Make constants at least as precise as a floating or complex dtype in a ``with`` block."""
    if dtype is None or dtype.name not in ("float64", "complex128"):
        return _AS_IT_IS
    return _AS_IT_IS if get_default_dtype() is DTYPES["float64"] else _Doubles()


# -- the rule ------------------------------------------------------------------------------------

#: The kinds of dtypes in order: of two, a result has the higher.
KIND_RANK: Final = {
    "bool": 0,
    "signed integer": 1,
    "unsigned integer": 1,
    "real floating": 2,
    "complex floating": 3,
}
SCALAR_KIND: Final = {
    bool: "bool",
    int: "signed integer",
    float: "real floating",
    complex: "complex floating",
}
_SCALAR_RANK: Final = {scalar: KIND_RANK[kind] for scalar, kind in SCALAR_KIND.items()}


def promote(a: DType, b: DType) -> DType | None:
    """The standard's common dtype of two, or None where it leaves that open."""
    if a is b:
        return a
    if a.kind == b.kind:
        if a.itemsize == b.itemsize:  # float16 and bfloat16, or two of eight bits
            return DTYPES["float32"]
        return a if a.itemsize > b.itemsize else b
    kinds = {a.kind, b.kind}
    if kinds == {"signed integer", "unsigned integer"}:
        signed, unsigned = (a, b) if a.kind == "signed integer" else (b, a)
        if signed.itemsize > unsigned.itemsize:
            return signed
        return DTYPES.get(f"int{unsigned.itemsize * 16}")
    if kinds == {"real floating", "complex floating"}:
        real, other = (a, b) if a.kind == "real floating" else (b, a)
        return DTYPES["complex128"] if real.name == "float64" else other
    return None


def join(a: DType, b: DType) -> DType:
    """The common dtype of two: the standard's, or else the one of the higher kind.

    Raises `TypeError` for uint64 and a signed integer, which no integer dtype holds.
    """
    found = promote(a, b)
    if found is not None:
        return found
    if KIND_RANK[a.kind] == KIND_RANK[b.kind]:
        raise TypeError(
            f"{a.name} and {b.name} have no common dtype, as no integers hold both; convert one "
            "with wg.astype"
        )
    return a if KIND_RANK[a.kind] > KIND_RANK[b.kind] else b


def common_dtype(dtypes: Iterable[DType], scalars: Iterable[type] = ()) -> DType:
    """The dtype of arrays and Python numbers together.

    A number changes nothing beside arrays of its kind or a higher one. Beside integers and booleans
    a float counts as the default dtype; beside a floating array a complex number has its precision.
    """
    found = reduce(join, dtypes)
    for scalar in scalars:
        rank, wanted = KIND_RANK[found.kind], _SCALAR_RANK[scalar]
        if wanted <= rank:
            continue
        if wanted == 1:
            found = DTYPES["int64"]
        elif wanted == 2:
            found = get_default_dtype()
        else:
            found = promote(found, DTYPES["complex64"]) or default_complex_dtype()
    return found


def limits(dtype: DType) -> tuple[int, int]:
    """The least and the largest integer that a dtype of integers, or of booleans, holds."""
    bits = 1 if dtype.kind == "bool" else 8 * dtype.itemsize
    if dtype.kind == "signed integer":
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1


def check_range(name: str, value: Any, dtype: DType) -> None:
    """Raise OverflowError for a Python integer that integers, or booleans, do not hold."""
    if number_type(value) is not int or dtype.inexact:
        return
    low, high = limits(dtype)
    if not low <= value <= high:
        raise OverflowError(
            f"{name}: the number {value} is out of bounds for {dtype.name} ({low} to {high}); "
            "convert the array with wg.astype first".removeprefix(": ")
        )


# -- operands ------------------------------------------------------------------------------------


def casts_of(
    name: str, arrays: Sequence[Any], positions: Iterable[int], floating: bool, compares: bool
) -> dict[int, DType | int]:
    """Which operands the promotion rule casts, and to what: a boolean number to an integer.

    ``arrays`` are raw arrays, Python numbers and None, of which those at ``positions`` have a
    dtype together. ``floating`` says that results are floating also where these are integers.
    Raises `TypeError` or `OverflowError` if there is no common dtype, or a number is beyond it.
    """
    held = {i: dtype_of(arrays[i].dtype) for i in positions if hasattr(arrays[i], "dtype")}
    if not held:
        return {}
    numbers = {i: number_type(arrays[i]) for i in positions if number_type(arrays[i]) in SCALARS}
    if compares and not numbers and {dtype.kind for dtype in held.values()} <= {*_INTEGRAL}:
        return {}  # integers are compared as they are, also uint64 with int64
    try:
        common = common_dtype(held.values(), numbers.values())
    except TypeError as error:
        raise TypeError(f"{name.removesuffix('_arrays')}: {error}") from None
    if floating and not common.inexact:
        common = get_default_dtype()
    if compares:
        common = _comparable(common, [arrays[i] for i in numbers], held.values())
    found: dict[int, DType | int] = {}
    for i, dtype in held.items():
        apart = dtype.inexact != common.inexact or (dtype.kind == "bool") != (common.kind == "bool")
        if apart or (compares and dtype is not common and not dtype.inexact):
            found[i] = common
    for i in numbers:
        x = arrays[i]
        if type(x) is bool and common.kind != "bool":
            found[i] = int(x)
        else:
            check_range(name, x, common)
    return found


def _comparable(common: DType, numbers: Iterable[Any], held: Iterable[DType]) -> DType:
    """Where operands are compared: integers with floating numbers in double precision."""
    if common.inexact:
        if all(dtype.inexact for dtype in held):
            return common
        return DTYPES["complex128" if common.complex else "float64"]
    try:
        for x in numbers:
            check_range("", x, common)
    except OverflowError:
        return DTYPES["int64"]
    return common
