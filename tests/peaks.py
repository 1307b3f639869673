"""Peaks of memory."""

import tracemalloc
from collections.abc import Callable
from typing import Any

__all__ = ["peak_of"]


def peak_of(function: Callable[[], Any]) -> int:
    """The most memory that is held at once beside what is there before."""
    function()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        function()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
