"""Wengert's bars, measured: ``python -m benchmarks``.

Everything that is compared runs in one process, on one thread, in turns: a round gives each
contestant a few milliseconds, and rounds are repeated until the medians are steady. A ratio is
taken within a round, pair by pair, so that a machine which slows down slows both sides.
"""

import os

# Before any library starts its threads. The affinity holds those that would start some all the
# same, and what a library does beside Python's thread then counts as its time too.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC"):
    os.environ[_variable] = "1"
# An older core's name slows NumPy's products alone, and flatters every ratio to it.
for _variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(_variable, None)
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
os.environ["WENGERT_BACKEND"] = "numpy"
#: The cores that the process had before.
CORES: set[int] = set()
if hasattr(os, "sched_setaffinity"):
    CORES = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(CORES)})
