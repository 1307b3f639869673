"""A thread that makes batches ahead of the loop that takes them."""

import contextvars
import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any


def prefetch(batches: Iterator[Any], ahead: int) -> Iterator[Any]:
    """What an iterator gives, made by a thread that is some items ahead."""
    # The selected backend, and whether operations are recorded.
    context = contextvars.copy_context()
    made: SimpleQueue[tuple[str, Any]] = SimpleQueue()
    # Not a semaphore: Python's is written in Python, and an interrupt may leave its lock taken.
    slots: SimpleQueue[None] = SimpleQueue()
    for _ in range(ahead):
        slots.put(None)
    stopped: list[bool] = []

    def make() -> None:
        try:
            while True:
                slots.get()
                if stopped:
                    return
                try:
                    made.put(("batch", next(batches)))
                except StopIteration:
                    made.put(("end", None))
                    return
        except BaseException as error:  # the loop raises it
            made.put(("error", error))
        finally:
            batches.close()  # type: ignore[attr-defined]

    thread = threading.Thread(target=context.run, args=(make,), daemon=True, name="DataLoader")
    try:
        thread.start()
        while True:
            kind, item = made.get()
            if kind == "end":
                return
            if kind == "error":
                try:
                    raise item
                finally:
                    del item  # whose traceback holds this frame
            slots.put(None)
            yield item
            del item
    finally:
        stopped.append(True)
        slots.put(None)
        if thread.is_alive():  # an interrupt may have come before it had begun
            thread.join()
