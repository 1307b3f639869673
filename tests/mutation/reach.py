"""Which test reaches which lines: pytest plugins that collect it, and that choose tests."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType
from typing import NoReturn

import pytest

#: Of each test: the seconds it took, and of each file the lines as the bits of a number.
Reach = dict[str, tuple[float, dict[str, int]]]
#: Stands for a test: what is reached before the first one.
IMPORT = "import"
TOOL = 5
#: Seconds after which a test fails: six times what the slowest takes.
ENDLESS = 60.0


class EndlessError(BaseException):
    """A test does not end. What catches all exceptions lets this one pass."""


class Collect:
    """Collects what each test that passes reaches."""

    def __init__(self, root: Path) -> None:
        self.reach: Reach = {}
        self._start = f"{root / 'wengert'}{os.sep}"
        self._skip = len(f"{root}{os.sep}")
        self._lines: set[tuple[str, int]] = set()
        events = sys.monitoring
        events.use_tool_id(TOOL, "mutation")
        events.register_callback(TOOL, events.events.LINE, self._line)
        events.set_events(TOOL, events.events.LINE)

    def _line(self, code: CodeType, line: int) -> object:
        # What a module does when it is imported is no test's, not even the first one's.
        if code.co_flags & CO_OPTIMIZED and code.co_filename.startswith(self._start):
            self._lines.add((code.co_filename, line))
        return sys.monitoring.DISABLE

    def _end(self, name: str, seconds: float) -> None:
        files: dict[str, int] = {}
        for path, line in self._lines:
            path = path[self._skip :]
            files[path] = files.get(path, 0) | 1 << line
        self.reach[name] = seconds, files

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._end(IMPORT, 0.0)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._lines.clear()
        sys.monitoring.restart_events()
        self._passed = False
        started = time.perf_counter()
        result = yield
        if self._passed:
            self._end(item.nodeid, time.perf_counter() - started)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._passed = report.passed


class Choose:
    """Runs the tests of these names alone, in this order, and keeps which of them fail.

    One that does not end fails: an edit that makes a loop endless is noticed.
    """

    def __init__(self, names: list[str], endless: float = ENDLESS) -> None:
        self._order = {name: k for k, name in enumerate(names)}
        self._endless = endless
        self.failed: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self._order]
        items[:] = sorted(chosen, key=lambda item: self._order[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        signal.signal(signal.SIGALRM, _stop)
        # Again each second, for a `finally` or a callback may lose the first.
        signal.setitimer(signal.ITIMER_REAL, self._endless, 1.0)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def _stop(signal_number: int, frame: object) -> NoReturn:
    raise EndlessError
