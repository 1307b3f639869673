"""The contents of constants, which may not change while a function is recorded.

A replay computes with the constants themselves, and does not repeat how the function changes them:
where a buffer is filled, used and restored it would see what stands there at last. Flags of arrays
that forbid writing would miss views that exist already, and would stop other threads.
"""

import hashlib
from typing import Any

import numpy as np

from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.lines import user_line
from wengert.compiler.program import Value


class Contents:
    """Digests of the NumPy arrays that operations have used as constants."""

    def __init__(self) -> None:
        self._known: dict[Value, tuple[Any, bytes, str]] = {}

    def note(self, value: Value, array: Any) -> None:
        """Take note of a constant that is used now, or raise if it has changed since."""
        if not isinstance(array, np.ndarray):
            return
        known = self._known.get(value)
        if known is None:
            self._known[value] = array, _digest(array), user_line()
        else:
            _compare(*known)

    def check(self) -> None:
        """Raise if a constant has changed since it was used."""
        for known in self._known.values():
            _compare(*known)


def _compare(array: Any, digest: bytes, line: str) -> None:
    if _digest(array) != digest:
        raise TraceError(
            f"{line}: a NumPy array of shape {array.shape} is used inside a function that is "
            "compiled, which changes its elements later; a replay would use the changed ones. Use "
            "a new array, wg.asarray(array, copy=True), or leave this part outside wg.compile"
        )


def _digest(array: Any) -> bytes:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return hashlib.blake2b(flat.data, digest_size=16).digest()
