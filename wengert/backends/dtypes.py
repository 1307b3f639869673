"""The data types of the standard, as singletons that mean the same on every backend."""

from collections import defaultdict
from typing import Any

import numpy as np


class DType:
    """A data type, equal across backends.

    Wengert has one object for each data type, whatever array library holds the data, so
    ``x.dtype == wg.float32`` reads the same on NumPy, CuPy and PyTorch. A library's own dtype
    (``np.float32``, ``torch.float32``) compares equal to the object that stands for it.

    Attributes
    ----------
    name : str
        The standard's name, such as ``"float32"``.
    kind : str
        One of ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"real floating"``,
        ``"complex floating"``: the kinds of the standard's ``isdtype``.
    itemsize : int
        Bytes an element.
    inexact : bool
        Whether values of this type have derivatives: real or complex floating.
    complex : bool
        Whether this is a complex type.
    narrow : bool
        Whether this is a floating type of less than float32's precision: its numbers are added,
        counted and divided by counts in float32.
    host : str
        NumPy's dtype that holds its values: its own name, or float32 for those that NumPy lacks.

    Examples
    --------
    >>> wg.float32.kind, wg.float32.itemsize
    ('real floating', 4)
    >>> wg.asarray([1.0, 2.0], dtype="float16").dtype is wg.float16
    True
    """

    __slots__ = ("complex", "host", "inexact", "itemsize", "kind", "name", "narrow")

    def __init__(self, name: str, kind: str, itemsize: int) -> None:
        self.name = name
        self.kind = kind
        self.itemsize = itemsize
        self.complex = kind == "complex floating"
        self.inexact = self.complex or kind == "real floating"
        self.narrow = self.inexact and itemsize < 4
        self.host = "float32" if name.startswith(("bfloat", "float8")) else name

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self is other
        try:
            known = _known.get(type(other))
            if known is not None and other in known:  # a sweep on Tensors asks for each cotangent
                return known[other] is self
            return as_dtype(other) is self
        except TypeError:  # it is no data type, or can't be hashed
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"wengert.{self.name}"

    @property
    def __numpy_dtype__(self) -> np.dtype[Any]:
        """What ``np.dtype(wg.float32)`` and NumPy's ``dtype=`` take this for."""
        try:
            return np.dtype(self.name)
        except TypeError:
            raise TypeError(
                f"NumPy has no data type {self.name}; use wg.float32 for its values there"
            ) from None

    @property
    def type(self) -> Any:
        """NumPy's scalar type of its values, such as ``np.float32``: other libraries ask for it."""
        return np.dtype(self.host).type

    if np.lib.NumpyVersion(np.__version__) < "2.4.0":  # which asks for it by another name
        dtype = __numpy_dtype__

    def __reduce__(self) -> tuple[Any, ...]:
        return (as_dtype, (self.name,))


DTYPES: dict[str, DType] = {
    name: DType(name, kind, itemsize)
    for kind, members in {
        "bool": {"bool": 1},
        "signed integer": {"int8": 1, "int16": 2, "int32": 4, "int64": 8},
        "unsigned integer": {"uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8},
        "real floating": {
            "float8_e4m3fn": 1,
            "float8_e5m2": 1,
            "float16": 2,
            "bfloat16": 2,
            "float32": 4,
            "float64": 8,
        },
        "complex floating": {"complex64": 8, "complex128": 16},
    }.items()
    for name, itemsize in members.items()
}

#: By type first: dtypes of two libraries are never compared, because some warn of that.
_known: defaultdict[type, dict[Any, DType]] = defaultdict(dict)
#: NumPy's classes of floating and complex dtypes that were met: `type` is the fastest question.
FLOATING: set[type] = set()


def dtype_of(raw: Any) -> DType:
    """Return Wengert's dtype for a library's own dtype object, found by its name.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.backends import dtype_of
    >>> dtype_of(np.dtype("float32"))
    wengert.float32
    """
    try:
        return _known[type(raw)][raw]
    except KeyError:
        # Every library prints a dtype as its name, at most behind its own ("torch.float32").
        native = raw if getattr(raw, "isnative", True) else raw.newbyteorder("=")
        name = str(native).rpartition(".")[2]
        if name not in DTYPES:
            raise TypeError(f"{raw!r} is no data type of the Array API standard") from None
        learn_dtype(raw, DTYPES[name])
        return DTYPES[name]


def learn_dtype(raw: Any, dtype: DType) -> None:
    """Take note of a library's own object for a dtype, however it prints."""
    _known[type(raw)].setdefault(raw, dtype)
    if dtype.inexact and isinstance(raw, np.dtype):
        FLOATING.add(type(raw))


def as_dtype(spec: Any) -> DType:
    """Return the dtype that ``spec`` names.

    Parameters
    ----------
    spec : DType, str, type or a library's dtype
        ``wg.float32``, ``"float32"``, ``np.float32``, ``np.dtype("f4")``, ``torch.float32``, or
        Python's ``bool``, ``int``, ``float``, ``complex``. The Python types mean bool, int64,
        float64 and complex128, as in NumPy. TypeError is raised for any other.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.backends import as_dtype
    >>> as_dtype("float32"), as_dtype(np.int8)
    (wengert.float32, wengert.int8)
    """
    if isinstance(spec, DType):
        return spec
    if isinstance(spec, str) and spec in DTYPES:
        return DTYPES[spec]
    if isinstance(spec, str | type | np.dtype):
        try:
            spec = np.dtype(spec)
        except (TypeError, ValueError):  # the latter of what reads like a list of formats
            raise TypeError(
                f"{spec!r} is no data type; the names are {', '.join(DTYPES)}"
            ) from None
    return dtype_of(spec)
