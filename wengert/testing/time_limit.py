"""A limit to how long a check of another's code may take."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["NoAnswer", "time_limit"]


class NoAnswer(BaseException):
    """A call has not returned in its time: no Exception, which the code called might handle."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `NoAnswer` in the block when it has taken so long, and again while it goes on.

    It works in Python's main thread where the system has timers (not on Windows), and once Python's
    own code runs again; elsewhere there is no limit.
    """
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def stop(*_: Any) -> None:
        raise NoAnswer(f"no answer in {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
