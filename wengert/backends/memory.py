"""Memory that arrays have freed: how much of it the process keeps for the next ones."""

from typing import Final

__all__ = ["keep_freed_memory"]

# Parameters of glibc's mallopt, from malloc.h, and the largest threshold that it takes: half of
# its HEAP_MAX_SIZE.
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_LARGEST: Final = 2**25


def keep_freed_memory(limit: int = 2**30) -> None:
    """Let the process keep memory that it has freed, instead of handing it back to the system.

    NumPy and PyTorch take the memory of each result from the C library. By default that hands large
    pieces back to the system as soon as they are free, so that each large result is written into
    pages that the system has to clear first. On arrays of ten thousand numbers and more that can
    take most of the time of elementwise operations.

    The setting is the whole process's, and nothing undoes it. Up to ``limit`` bytes at the end of
    the heap are kept, at most 2**31 - 1; arrays of more than 32 MiB are handed back in any case.
    ``MALLOC_TRIM_THRESHOLD_`` and ``MALLOC_MMAP_THRESHOLD_`` in the environment do the same before
    Python starts. Raises RuntimeError if the C library is not glibc, which alone has this setting.

    Examples
    --------
    >>> wg.keep_freed_memory(-1)
    Traceback (most recent call last):
    ...
    ValueError: limit should be from 0 to 2**31 - 1 bytes, not -1
    """
    if type(limit) is not int:
        raise TypeError(f"limit should be a number of bytes, not {limit!r}")
    if not 0 <= limit < 2**31:
        raise ValueError(f"limit should be from 0 to 2**31 - 1 bytes, not {limit}")
    import ctypes  # which most programs do not need

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        raise RuntimeError(
            "keep_freed_memory needs the C library glibc, which this process does not use; "
            "allocators of other systems have settings of their own"
        ) from None
    # The first call, of either, ends glibc's own adjustment of both.
    if not (mallopt(_MMAP_THRESHOLD, _LARGEST) and mallopt(_TRIM_THRESHOLD, limit)):
        raise RuntimeError("glibc refused the setting")
