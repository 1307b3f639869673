"""A time limit for code under test."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["NoAnswer", "time_limit"]


class NoAnswer(BaseException):
    """A call has exceeded its time limit; not an `Exception`, which the code might handle."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `NoAnswer` in the ``with`` block after some seconds, again and again until it ends.

    There is no limit outside the main thread, nor on systems without timers (Windows). Code in C is
    interrupted when it returns to Python.
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
