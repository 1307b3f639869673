"""Runs pytest on copies of the checkout, each time in a process of its own."""

import compileall
import importlib
import os
import pickle
import resource
import shutil
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing import connection, get_context
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Any

ROOT = Path(__file__).parents[2]
#: What tests import, before the processes part: of what is here, nothing is mutated.
SHARED = ("numpy", "pytest", "hypothesis", "mpmath", "scipy.special", "scipy.linalg", "dask.array")
MEMORY = 12 << 30


def copy_checkout(to: Path) -> Path:
    """Copy the checkout, with bytecode that is checked by content."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(ROOT, to, ignore=shutil.ignore_patterns(".*", "__pycache__", "_build"))
    for part in ("wengert", "tests"):
        compileall.compile_dir(
            to / part, quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH
        )
    return to


def run_all(
    trees: list[Path], tasks: deque[Any], work: Callable[[Path, Any], Any], limit: float
) -> Iterator[tuple[Any, Any]]:
    """Each task and what `work` of a tree and the task returned, or None if it took too long.

    Tasks run in forked processes, one in each tree at a time. More can be added on the way.
    """
    for name in SHARED:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    context, free = get_context("fork"), list(trees)
    running: dict[connection.Connection, tuple] = {}
    while tasks or running:
        while tasks and free:
            tree, task = free.pop(), tasks.popleft()
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_child, args=(theirs, tree, work, task))
            process.start()
            theirs.close()
            running[ours] = process, tree, task, time.monotonic() + limit
        for ours in connection.wait(list(running), timeout=0.2) or list(running):
            process, tree, task, end = running[ours]
            if ours.poll():
                try:
                    result = pickle.loads(ours.recv_bytes())
                except EOFError:
                    result = "died"
                if isinstance(result, Exception):
                    raise result
            elif time.monotonic() > end:
                result = None
            else:
                continue
            if process.is_alive():
                os.killpg(process.pid, signal.SIGKILL)
            process.join()
            ours.close()
            del running[ours]
            free.append(tree)
            yield task, result


def _child(pipe: connection.Connection, tree: Path, work: Callable, task: Any) -> None:
    os.setpgrp()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.chdir(tree)
    sys.path[:] = [str(tree)] + [p for p in sys.path if Path(p).resolve() != ROOT]
    os.environ["PYTHONPATH"] = str(tree)
    os.environ.pop("WENGERT_BACKEND", None)
    log = os.open(tree / "mutation.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    for name in list(sys.modules):
        if name.partition(".")[0] in ("tests", "wengert", "wengert_pytest"):
            del sys.modules[name]
    sys.path_importer_cache.clear()
    try:
        result = work(tree, task)
    except Exception:  # of this package, as pytest tells of those of tests
        result = RuntimeError(traceback.format_exc())
    pipe.send_bytes(pickle.dumps(result))
    os._exit(0)


def run_tests(file: str, plugin: object, *options: str) -> int:
    import pytest

    ignored = "ignore::pytest.PytestAssertRewriteWarning"  # of plugins that are in SHARED
    options = ("-q", "-W", ignored, "-p", "no:cacheprovider", "-p", "no:xdist", *options)
    return int(pytest.main([*options, "--wengert-backend=numpy", file], plugins=[plugin]))
