"""Locks of NumPy arrays: nothing may write into them while a function is recorded."""

from typing import Any

import numpy as np

__all__ = ["Locks"]


class Locks:
    """Arrays that can't be written, and the arrays whose memory they show.

    A view that exists already can still be written.
    """

    def __init__(self) -> None:
        self._locked: list[np.ndarray[Any, Any]] = []

    def lock(self, array: Any) -> None:
        """Forbid writing into an array, and into what it is a view of."""
        if isinstance(array, np.ndarray):
            self.lock(array.base)
            if array.flags.writeable:
                array.flags.writeable = False
                self._locked.append(array)

    def release(self) -> None:
        """Allow all of it again, first of arrays that own their memory."""
        for array in self._locked:
            array.flags.writeable = True
        self._locked.clear()
