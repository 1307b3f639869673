"""The contents of constants and inputs, which may not change while a function is recorded.

A replay computes with the arrays themselves, and does not repeat how the function changes them:
where a buffer is filled, used and restored it would see what stands there at last. Flags of arrays
that forbid writing would miss views that exist already, and would stop other threads.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.lines import user_line
from wengert.compiler.program import Value

#: An array, its digest, and where it comes from.
_Known = tuple[Any, bytes, str]


class Contents:
    """Digests of the NumPy arrays that operations use."""

    def __init__(self) -> None:
        self._known: dict[Value, _Known] = {}
        #: Of these the function also reaches the memory: each operation compares them, since one
        #: on a view does not name them.
        self._shared: list[_Known] = []

    def note(self, value: Value, array: Any) -> None:
        """Take note of a constant that is used now, or raise if it has changed since."""
        if not isinstance(array, np.ndarray):
            return
        known = self._known.get(value)
        if known is None:
            self._known[value] = array, _digest(array), user_line()
        else:
            _compare(*known)

    def share(self, array: Any, name: str, raws: Iterable[Any]) -> None:
        """Take note of an input, if the function reaches raw arrays in its memory."""
        if isinstance(array, np.ndarray) and any(
            isinstance(x, np.ndarray) and np.may_share_memory(array, x) for x in raws
        ):
            self._shared.append((array, _digest(array), name or "an input"))

    def check(self) -> None:
        """Raise if a constant has changed since it was used, or an input that is shared."""
        for known in self._known.values():
            _compare(*known)
        self.check_shared()

    def check_shared(self) -> None:
        for known in self._shared:
            _compare(*known)


def _compare(array: Any, digest: bytes, where: str) -> None:
    if _digest(array) != digest:
        raise TraceError(
            f"{where}: a NumPy array of shape {array.shape} is used inside a function that is "
            "compiled, which changes its elements; a replay would use the changed ones. Use "
            "a new array, wg.asarray(array, copy=True), or leave this part outside wg.compile"
        )


def _digest(array: Any) -> bytes:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return hashlib.blake2b(flat.data, digest_size=16).digest()
