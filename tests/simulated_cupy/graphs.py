"""Streams that capture, and CUDA graphs: launches that are run again on the same memory.

What is captured is not computed, and what CuPy refuses meanwhile is refused. A graph has the
numbers with which it was captured. Its memory has to be somebody's when it runs: arrays that live,
or a pool that is the graph's alone. Of memory that CuPy's common pool may have given away by then
CuPy says nothing; here it is an error.
"""

import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cupy
import numpy as np

from tests.simulated_cupy.counters import launched, local, synchronised
from tests.simulated_cupy.devices import MemoryPool, current

_numbers = itertools.count(1)

#: By what is launched, the library that CuPy does not call while a stream captures.
_LIBRARIES = dict.fromkeys(("dot", "matmul", "tensordot", "trsm"), "cuBLAS")


class _Streams(threading.local):
    def __init__(self) -> None:
        self.stack: list[Stream] = []


_streams = _Streams()


class Capture:
    """What a stream captures."""

    def __init__(self) -> None:
        self.nodes: list[Callable[[], None]] = []
        self.pools: list[Any] = []
        self.inside, self.valid = False, True
        self.started = 0
        self.kept: list[Any] = []

    def launched(self, name: str, times: int) -> None:
        if name in _LIBRARIES:
            raise NotImplementedError(
                f"calling {_LIBRARIES[name]} API during stream capture is currently unsupported"
            )
        if not self.inside:
            raise NotImplementedError(f"the simulation can't capture {name}")
        self.started += times

    def waited(self, name: str) -> None:
        self.valid = False
        raise RuntimeError(
            f"the current stream is capturing, so synchronous API calls are disallowed ({name})"
        )

    def allocated(self) -> None:
        pool = getattr(local, "pool", None)
        if pool is None:
            raise RuntimeError("a graph would keep memory of the common pool, which others get")
        if not any(held() is pool for held in self.pools):
            self.pools.append(weakref.ref(pool))


def captured(function: Callable[..., Any]) -> Callable[..., Any]:
    """A call of the device, that a stream captures."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        capture = getattr(local, "capture", None)
        if capture is None or capture.inside:
            return function(*args, **kwargs)
        given = [x for x in _flat((*args, *kwargs.values())) if isinstance(x, cupy.ndarray)]
        before = [x._host.copy() for x in given]
        started, capture.inside = capture.started, True
        try:
            result = function(*args, **kwargs)
        finally:
            capture.inside = False
            for x, host in zip(given, before, strict=True):  # nothing is computed yet
                if x._host.flags.writeable:
                    x._host[...] = host
        if capture.started > started:
            _add(capture, function, args, kwargs, given, result)
        return result

    return call


def _add(
    capture: Capture, function: Any, args: Any, kwargs: Any, given: list[Any], result: Any
) -> None:
    made = [x for x in _flat((result,)) if isinstance(x, cupy.ndarray)]
    new = [i for i, x in enumerate(made) if not any(x is y for y in given)]
    for i in new:
        made[i]._host[...] = _garbage(made[i].dtype)
    own = [made[i]._host for i in new]
    alive = [weakref.ref(x if x.base is None else x.base) for x in given if _outside(x, capture)]
    args, kwargs = _twin(args), _twin(kwargs)
    capture.kept.append((args, kwargs, own))

    def again() -> None:
        if any(held() is None for held in alive):
            raise RuntimeError(f"{function.__name__} of a graph uses memory that was freed")
        answer = [x for x in _flat((function(*args, **kwargs),)) if isinstance(x, cupy.ndarray)]
        for i, host in zip(new, own, strict=True):
            host[...] = answer[i]._host

    capture.nodes.append(again)


def _garbage(dtype: np.dtype) -> Any:
    return np.nan if dtype.kind in "fc" else dtype.type(77)


def _outside(x: Any, capture: Capture) -> bool:
    """Whether an array's memory is not of a pool that the graph has for itself."""
    pool = x._pool if x.base is None else x.base._pool
    return pool is None


def _flat(x: Any) -> Iterator[Any]:
    for part in x:
        if isinstance(part, list | tuple):
            yield from _flat(part)
        else:
            yield part


def _twin(x: Any) -> Any:
    """Arguments with other arrays of the same memory, which keep no array alive."""
    if isinstance(x, list | tuple):
        return type(x)([_twin(part) for part in x])
    if isinstance(x, dict):
        return {key: _twin(part) for key, part in x.items()}
    return cupy.ndarray.at(x._host, x._device_id) if isinstance(x, cupy.ndarray) else x


class Graph:
    """``cupy.cuda.Graph``."""

    def __init__(self, *args: object) -> None:
        raise RuntimeError("Graph is not instantiable; use stream capture")

    @staticmethod
    def of(capture: Capture) -> "Graph":
        made = object.__new__(Graph)
        made._capture = capture
        return made

    def launch(self, stream: Any = None) -> None:
        if any(held() is None for held in self._capture.pools):
            raise RuntimeError("a graph uses memory of a pool that was freed")
        launched("graph")
        before, local.replaying = getattr(local, "replaying", False), True
        try:
            for node in self._capture.nodes:
                node()
        finally:
            local.replaying = before

    def upload(self, stream: Any = None) -> None:
        pass


Graph.__module__ = "cupy.cuda.graph"


class Event:
    """``cupy.cuda.Event``."""

    done = True

    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        self.stream: Stream | None = None

    def record(self, stream: Any = None) -> None:
        self.stream = get_current_stream() if stream is None else stream

    def synchronize(self) -> None:
        synchronised("Event.synchronize")


class Stream:
    """``cupy.cuda.Stream``: all that is asked of it is done at once.

    Attributes
    ----------
    waits : list of Stream
        Those of whose events it has waited for.
    """

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False) -> None:
        self.ptr = 0 if null else 2 if ptds else 1000 + next(_numbers)
        self.device_id = -1 if null or ptds else current()
        self.capture: Capture | None = None
        self.waits: list[Stream] = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return self.ptr

    def __enter__(self) -> "Stream":
        if self.device_id not in (-1, current()):
            raise RuntimeError(
                f"The device that the stream is created on ({self.device_id}) does not match with "
                f"the current device ({current()})"
            )
        _streams.stack.append(self)
        local.capture = self.capture
        return self

    def __exit__(self, *error: object) -> None:
        _streams.stack.pop()
        local.capture = get_current_stream().capture

    def synchronize(self) -> None:
        if self.capture is not None:
            self.capture.waited("Stream.synchronize")
        synchronised("Stream.synchronize")

    def record(self, event: Any = None) -> Event:
        event = Event() if event is None else event
        event.stream = self
        return event

    def wait_event(self, event: Event) -> None:
        assert event.stream is not None
        self.waits.append(event.stream)

    def begin_capture(self, mode: Any = None) -> None:
        if self.ptr in (0, 1):
            raise RuntimeError("cannot capture on the default (legacy) stream")
        if self.capture is not None:
            raise RuntimeError("cudaErrorIllegalState: the stream captures already")
        self.capture = Capture()
        if get_current_stream() is self:
            local.capture = self.capture

    def end_capture(self) -> Graph:
        capture, self.capture = self.capture, None
        if get_current_stream() is self:
            local.capture = None
        if capture is None:
            raise RuntimeError("cudaErrorIllegalState: the stream does not capture")
        if not capture.valid:
            raise RuntimeError("cudaErrorStreamCaptureInvalidated")
        return Graph.of(capture)

    def is_capturing(self) -> bool:
        return self.capture is not None


Stream.__module__ = "cupy.cuda.stream"
NULL = Stream(null=True)
Stream.null = NULL  # type: ignore[attr-defined]


def get_current_stream(device_id: int = -1) -> Stream:
    return _streams.stack[-1] if _streams.stack else NULL


@contextmanager
def using_allocator(allocator: Any = None) -> Iterator[None]:
    """``cupy.cuda.using_allocator``, of a pool's ``malloc``: of this thread."""
    before = getattr(local, "pool", None)
    local.pool = None if allocator is None else allocator.__self__
    try:
        yield
    finally:
        local.pool = before


def install() -> None:
    cuda = cupy.cuda
    for name, new in {
        "Stream": Stream, "Event": Event, "get_current_stream": get_current_stream,
    }.items():  # fmt: skip
        setattr(cuda, name, new)
        setattr(cuda.stream, name, new)
    cuda.Graph = Graph
    cuda.MemoryPool = cuda.memory.MemoryPool = MemoryPool
    cuda.using_allocator = cuda.memory.using_allocator = using_allocator
