"""Undoing changes after a failure, even if an interrupt comes meanwhile."""

from collections.abc import Callable
from typing import TypeVar

__all__ = ["restoring"]

T = TypeVar("T")


def restoring(run: Callable[[], T], put_back: Callable[[], object]) -> T:
    """Run a function; if it fails, undo its changes by ``put_back``, even if that is interrupted.

    An interrupt may come at the begin of any function. So the ``try`` must be entered before
    ``run``: a handler called only after the failure could be interrupted before it does anything.
    ``put_back`` may be called twice, and after ``run`` has ended.
    """
    try:
        return run()
    except BaseException:
        try:
            put_back()
        except BaseException:  # an interrupt
            put_back()
            raise
        raise
