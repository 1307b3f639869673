"""Putting things back after a failure, also where an interrupt comes meanwhile."""

from collections.abc import Callable
from typing import TypeVar

__all__ = ["restoring"]

T = TypeVar("T")


def restoring(run: Callable[[], T], put_back: Callable[[], object]) -> T:
    """Run a function. If it fails, put things back, once more if that is interrupted.

    An interrupt may come where any function begins. So this one begins before ``run``, and not
    where it has failed: otherwise the interrupt would come before anything is put back.

    Parameters
    ----------
    run : callable
        What may fail.
    put_back : callable
        What undoes it; also if it is called twice, and if ``run`` has ended.
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
