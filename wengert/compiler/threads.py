"""Mutual exclusion of threads that run compiled functions.

During a recording, the objects that a function reaches hold traced arrays; during a check, the
program's changes are undone. So the thread that records or checks is exclusive: no other thread
inspects a function's state, runs a program, or runs a function eagerly in place of one.

Waits have a time limit, because a function may itself wait for another thread. After the limit the
call runs eagerly.
"""

import sys
import time
from _thread import RLock, get_ident
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final
from weakref import WeakSet

__all__ = ["Pool", "eagerly", "exclusive", "inspecting", "pools"]

Function = Callable[..., tuple[Any, ...]]

#: Seconds for which a thread waits for another that inspects, records or checks.
PATIENCE: Final = 10.0
#: Seconds for which a thread waits for running calls before it is exclusive; new calls wait.
PAUSE: Final = 0.1

#: Held by the one thread that inspects the state of a function.
_lock = RLock()
#: The exclusive thread, or 0; guarded by the lock.
_owner = 0
#: The depth of eager calls of each thread.
_eager: dict[int, int] = {}
#: The copies of all programs that read and change state.
pools: "WeakSet[Pool]" = WeakSet()


class Pool:
    """Copies of a program, each with buffers of its own, which one call at a time uses.

    Calls overlap in threads, and where a signal handler calls the function that it interrupted. A
    thread becomes exclusive by taking all copies, so that calls need no lock.

    Attributes
    ----------
    take, give : callable
        Take an unused copy, or raise `IndexError`; give it back.
    """

    def __init__(self, first: Function, another: Callable[[], Function]) -> None:
        self._free, self._taken, self._all = [first], list[Function](), [first]
        self.take, self.give, self._another = self._free.pop, self._free.append, another

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        try:
            function = self.take()
        except IndexError:
            function = self._spare()
        try:
            return function(*inputs)
        finally:
            self.give(function)

    def another(self) -> Any:
        """A new copy; None while another thread is exclusive."""
        if _owned_by_another():
            return None
        function = self._spare()
        if _owned_by_another():  # it counts the new copy as running
            self._taken.append(function)
            return None
        return function

    def _spare(self) -> Function:
        if self._taken:
            return self._taken.pop()
        made = self._another()
        self._all.append(made)
        return made

    def stop(self) -> bool:
        """Take all unused copies; return whether no copy is in use."""
        _move(self._free, self._taken)
        return len(self._taken) >= len(self._all)

    def forget_lost(self) -> None:
        """Forget copies that were never given back, as after an interrupt."""
        self._all = list(self._taken)

    def go_on(self) -> None:
        """Make the copies available again."""
        _move(self._taken, self._free)


def _move(here: list[Function], there: list[Function]) -> None:
    try:
        while True:
            there.append(here.pop())
    except IndexError:  # it is empty; other threads take copies, too
        return


def _owned_by_another() -> bool:
    """Whether another thread is exclusive."""
    return _owner not in (0, get_ident())


@contextmanager
def inspecting() -> Iterator[bool]:
    """Inspect the state of a function, one thread at a time; False after a timeout."""
    if _lock._is_owned():  # type: ignore[attr-defined]
        yield True
        return
    me = get_ident()
    running = _eager.get(me, 0)
    try:
        _eager.pop(me, None)  # a waiting thread counts as not running
        mine = _lock.acquire(timeout=PATIENCE)
        if running:
            _eager[me] = running
        yield mine
    finally:
        if running:
            _eager[me] = running
        # Without asking first whether it is this thread's: an interrupt may come between two calls.
        try:  # noqa: SIM105 -- likewise
            _lock.release()
        except RuntimeError:  # after a timeout
            pass


@contextmanager
def exclusive() -> Iterator[bool]:
    """Be exclusive, within `inspecting`; False if other threads' calls do not end in time."""
    global _owner
    before, me = _owner, get_ident()
    if before == me:  # a function that is checked calls another compiled one
        yield True
        return
    stopped = list[Pool]()

    def ready() -> bool:
        running = [pool for pool in stopped if not pool.stop()]  # asks all of them
        return not running and all(thread == me for thread in list(_eager))

    try:
        _owner = me
        stopped += pools
        yield _wait(ready, PAUSE) or _lost(stopped)
    finally:
        _owner = before
        for pool in stopped:
            pool.go_on()


def _lost(programs: list[Pool]) -> bool:
    """Whether nothing runs. Then missing copies were lost in interrupts, and are forgotten."""
    me = get_ident()
    if any(_runs(frame, thread == me) for thread, frame in sys._current_frames().items()):
        return False
    _eager.clear()
    for pool in programs:
        pool.forget_lost()
    return True


def _runs(frame: FrameType | None, mine: bool) -> bool:
    """Whether a thread runs a program, or another than this one runs the compiler."""
    while frame is not None:
        code, module = frame.f_code, str(frame.f_globals.get("__name__"))
        if code.co_filename.startswith(("<glue>", "<compiled ")) or code is Pool.__call__.__code__:
            return True
        if not mine and module.startswith("wengert.compiler"):
            return True
        frame = frame.f_back
    return False


@contextmanager
def eagerly() -> Iterator[None]:
    """Run a function eagerly, while no other thread is exclusive."""
    me = get_ident()
    before = _eager.get(me, 0)

    def begun() -> bool:
        _eager[me] = before + 1  # before the check: the exclusive thread checks after it
        if before or not _owned_by_another():
            return True
        del _eager[me]
        return False

    try:
        if not _wait(begun, PATIENCE):
            _eager[me] = before + 1
        yield
    finally:
        if before:
            _eager[me] = before
        else:
            _eager.pop(me, None)


def _wait(ready: Callable[[], bool], seconds: float) -> bool:
    """Wait until ``ready()``; return False after a timeout."""
    if ready():
        return True
    end, pause = time.monotonic() + seconds, 1e-5
    while time.monotonic() < end:
        time.sleep(pause)
        if ready():
            return True
        pause = min(2 * pause, 1e-3)
    return False
