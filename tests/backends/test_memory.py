"""The allocator's setting: fewer pages are faulted in, and errors are clear."""

import ctypes

import pytest

import wengert as wg
from tests.scripts import python

FAULTS = """
import resource, sys
import numpy as np
import wengert as wg
if sys.argv[1:]:
    wg.keep_freed_memory()
x = wg.tensor(np.ones(10**6), requires_grad=True)
def step():
    y = x * 2 + 1
    y = y * x
    (y * y).backward(y.detach())
for _ in range(2):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(4):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
def test_a_process_that_keeps_memory_has_a_tenth_of_the_page_faults():
    assert int(python("-c", FAULTS, "keep").stdout) * 10 < int(python("-c", FAULTS).stdout)


@pytest.mark.parametrize(
    ("limit", "error"), [(1.5, TypeError), (True, TypeError), (-1, ValueError), (2**31, ValueError)]
)
def test_limits_that_make_no_sense(limit, error):
    with pytest.raises(error, match="limit should be"):
        wg.keep_freed_memory(limit)


def test_another_c_library_is_an_error(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    with pytest.raises(RuntimeError, match="glibc"):
        wg.keep_freed_memory()
