"""How a program's processes find one another, and how one that fails ends them all."""

import atexit
import hashlib
import os
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from wengert.backends.backend import importing
from wengert.compiler.messages import Carrier, connect, connection
from wengert.distributed.carriers import SOON, Connected, join_error

__all__ = ["join"]

#: What launchers of MPI's tell their processes: Open MPI, MPICH and Intel MPI, PMIx.
_OF_MPI: Final = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK")
#: What torchrun tells them.
_OF_TORCH: Final = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
#: The module of a launcher's processes, the library that it needs, and the extra that installs it.
_LIBRARIES: Final = {"mpiexec": ("mpi", "mpi4py", "mpi"), "torchrun": ("gloo", "torch", "torch")}


def join(timeout: float) -> Carrier:
    """The carrier of this program's processes, made if there is none yet."""
    found = connection()
    if found is None:
        found = _find_carrier(timeout)
        connect(found)
        if isinstance(found, Connected):
            _end_together(found)
    elif isinstance(found, Connected):
        found.timeout = timeout
    return found


def by_launcher() -> str:
    """The launcher that has started this process; "" if none has."""
    if any(name in os.environ for name in _OF_MPI):
        return "mpiexec"
    return "torchrun" if all(name in os.environ for name in _OF_TORCH) else ""


def _find_carrier(timeout: float) -> Carrier:
    launcher = by_launcher()
    if not launcher:
        return Carrier()
    if launcher == "mpiexec":
        _meet(timeout)
    name, needs, extra = _LIBRARIES[launcher]
    with importing(
        f"{launcher} has started this program, and {needs} can't be imported ({{}}); "
        f"install wengert[{extra}], or start the program without {launcher}"
    ):
        found = import_module(f"wengert.distributed.{name}")
    return found.CARRIER(timeout)  # type: ignore[no-any-return]


def _meet(timeout: float) -> None:
    """Wait for the processes of this host: MPI itself would wait for ever where it begins.

    Open MPI has a folder for each program on each host; other MPIs are not waited for.
    """
    place, at = os.environ.get("PMIX_SERVER_TMPDIR"), "OMPI_COMM_WORLD_"
    rank, size, here = (int(os.environ.get(at + x, "0")) for x in ("RANK", "SIZE", "LOCAL_SIZE"))
    if place is None or not here:
        return
    program = os.environ.get("PMIX_NAMESPACE", "")
    folder = Path(place) / f"wengert-{hashlib.sha1(program.encode()).hexdigest()[:12]}"
    folder.mkdir(exist_ok=True)
    (folder / str(rank)).touch()
    begin = time.monotonic()
    while len(came := {int(path.name) for path in folder.iterdir()}) < here:
        if time.monotonic() > begin + timeout:
            late = [r for r in range(size) if r not in came] if here == size else []
            if "mpi4py.MPI" in sys.modules:  # at its end it would wait for the others
                atexit.register(os._exit, 1)
            raise join_error(rank, timeout, late)
        time.sleep(SOON)


def _end_together(carrier: Connected) -> None:
    """Let an error on one process end all, and the end of one wait for the others'."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> Any:
        # In one piece, as others write too; who has failed and why comes last.
        text = f"rank {carrier.rank} of {carrier.size} ends all: {kind.__name__}: {error}"
        # What is lost is no fault of the lines that run; torch's hook begins lines with the rank.
        if not carrier.lost and before is not sys.__excepthook__:
            before(kind, error, at)
        elif not carrier.lost:
            text = "".join(traceback.format_exception(kind, error, at)) + text
        print_line(text)
        carrier.abort()

    def end() -> None:
        if carrier.broken:
            carrier.abort()
        try:
            carrier.end()
        except Exception as error:  # of the last collective: a process has done less than others
            print_line(f"rank {carrier.rank} of {carrier.size}, at its end: {error}")
            carrier.abort()

    sys.excepthook = hook
    atexit.register(end)


def print_line(text: str) -> None:
    """Write a line of its own, which no other process's divides."""
    sys.stderr.write(f"{text}\n")
