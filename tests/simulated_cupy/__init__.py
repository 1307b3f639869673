"""CuPy without a GPU: the installed wheel, with NumPy in the place of what it has compiled.

`install` changes the modules of CuPy in this process. CuPy's own Python runs on: its names, its
signatures, its tables of loops and what it refuses are those of the installed version. The arrays,
the kernels and NVIDIA's libraries are replaced, and counted. Nothing of this tells how fast a GPU
is, how it rounds, or whether a kernel compiles.
"""

import sys
from pathlib import Path

from tests.simulated_cupy.counters import Counts, counting

__all__ = ["Counts", "counting", "install", "installed", "preamble", "version"]


def install() -> None:
    """Put the simulation in CuPy's place, for as long as this process runs."""
    from tests.simulated_cupy.patching import install

    install()


def installed() -> bool:
    """Whether CuPy is simulated in this process."""
    return "tests.simulated_cupy.patching" in sys.modules


def version() -> int:
    """The major version of the CuPy that is simulated; 0 where none is."""
    if not installed():
        return 0
    import cupy

    return int(cupy.__version__.partition(".")[0])


def preamble() -> str:
    """What a program of another process begins with, to have the CuPy that this one has."""
    if not installed():
        return ""
    root = str(Path(__file__).parents[2])
    return (
        f"import sys; sys.path.insert(0, {root!r}); from tests.simulated_cupy import install\n"
        "install()\n"
    )
