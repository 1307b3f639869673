"""Inspection: the standard's chapter of that name."""

from typing import Any

from wengert.backends import DTYPES, DType, selection
from wengert.ops.data_type import get_default_dtype, isdtype
from wengert.tape.promotion import default_complex_dtype

__all__ = ["__array_namespace_info__"]

#: Dtypes that the standard does not know.
_EXTENDED = ("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16")


class NamespaceInfo:
    """Abilities of the namespace on the selected backend."""

    def capabilities(self) -> dict[str, Any]:
        """Whether boolean indexing and data-dependent shapes work, and the most dimensions."""
        return dict(selection().backend.xp.__array_namespace_info__().capabilities())

    def default_device(self) -> Any:
        """The device on which new arrays are made."""
        chosen = selection()
        if chosen.device is not None:
            return chosen.device
        return chosen.backend.device(chosen.backend.xp.zeros(()))

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtypes that Python numbers get."""
        return {
            "real floating": get_default_dtype(),
            "complex floating": default_complex_dtype(),
            "integral": DTYPES["int64"],
            "indexing": DTYPES["int64"],
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The standard's dtypes that the backend has, by name, of a kind or of all."""
        chosen = selection()
        where = chosen.device if device is None else chosen.backend.parse_device(device)
        there = chosen.backend.xp.__array_namespace_info__().dtypes(device=where)
        return {
            name: dtype
            for name, dtype in DTYPES.items()
            if name in there and name not in _EXTENDED and (kind is None or isdtype(dtype, kind))
        }

    def devices(self) -> tuple[Any, ...]:
        """The devices that can be used now."""
        return tuple(selection().backend.devices())


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807 -- the standard's name
    """Return the abilities of the namespace on the selected backend.

    The object has the standard's methods: ``capabilities``, ``dtypes``, ``devices``, ....
    Array API standard.

    Examples
    --------
    >>> wg.__array_namespace_info__().default_device()
    'cpu'
    >>> wg.__array_namespace_info__().default_dtypes()["real floating"]
    wengert.float32
    """
    return NamespaceInfo()
