"""The simulation answers, refuses and counts as CuPy does.

What is expected stands in CuPy's documentation and sources: versions 13.6 and 14.0.
"""

import copy
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.simulated_cupy import counting

pytestmark = [pytest.mark.backend, pytest.mark.simulated]


@pytest.fixture
def cp() -> Any:
    """CuPy, as it is simulated."""
    import cupy

    with cupy.cuda.Device(0):
        yield cupy


# -- what is refused -----------------------------------------------------------------------------


def test_nothing_is_converted_to_numpy_without_being_asked(cp: Any) -> None:
    x = cp.arange(3.0)
    for convert in (np.asarray, np.array, lambda x: np.ones(3) + np.asarray(x)):
        with pytest.raises(TypeError, match="Implicit conversion to a NumPy array"):
            convert(x)
    np.testing.assert_array_equal(x.get(), [0, 1, 2])
    np.testing.assert_array_equal(cp.asnumpy(x), [0, 1, 2])


def test_numpy_s_arrays_are_no_operands(cp: Any) -> None:
    x = cp.arange(3.0)
    host = np.ones(3)
    for call in (
        lambda: cp.add(x, host),
        lambda: x + host,
        lambda: host * x,
        lambda: cp.where(x > 1, x, host),
        lambda: cp.concatenate([x, host]),
        lambda: cp.matmul(x, host),
        lambda: cp.linalg.solve(cp.eye(3), host),
        lambda: cp.add(x, [1.0, 2.0, 3.0]),
    ):
        with pytest.raises((TypeError, AttributeError)):
            call()


# -- devices -------------------------------------------------------------------------------------


def test_arrays_are_where_they_were_made(cp: Any) -> None:
    here = cp.ones(3)
    with cp.cuda.Device(1):
        there = cp.ones(3)
        assert cp.cuda.Device().id == 1
    assert (here.device.id, there.device.id, cp.cuda.Device().id) == (0, 1, 0)
    for call in (
        lambda: here + there,
        lambda: cp.exp(there),
        lambda: there.sum(),
        lambda: there.astype("f"),
        lambda: there[cp.asarray([0])],
        lambda: cp.concatenate([here, there]),
    ):
        with pytest.raises(ValueError, match="different from the current device"):
            call()
    assert there[1:].device.id == 1
    assert there.copy().device.id == 0
    assert cp.asarray(there).device.id == 0
    assert copy.deepcopy(there).device.id == 1
    assert pickle.loads(pickle.dumps(there)).device.id == 0  # CuPy keeps no device


# -- counters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "synchronisations", "copies"),
    [
        (lambda s: s.x.get(), 1, 1),
        (lambda s: float(s.x[0]), 1, 1),
        (lambda s: bool(s.x[0] > 1), 1, 1),
        (lambda s: s.x[s.x > 1], 1, 0),
        (lambda s: s.cp.nonzero(s.x), 1, 0),
        (lambda s: s.x.__setitem__(s.x > 1, 0), 0, 1),  # of the value
        (lambda s: s.x.__setitem__(0, 5.0), 0, 0),
        (lambda s: s.cp.asarray([1.0, 2.0]), 0, 1),
        (lambda s: s.x[[0, 1]], 0, 1),
        (lambda s: s.cp.where(s.x > 1, s.x, 0), 0, 0),
        (lambda s: s.cp.linspace(s.x[0], s.x[1], 3), 1, 1),
        (lambda s: s.cp.cuda.Device().synchronize(), 1, 0),
    ],
)
def test_waiting_and_copies_are_counted(
    cp: Any, call: Any, synchronisations: int, copies: int
) -> None:
    given = SimpleNamespace(cp=cp, x=cp.arange(4.0))
    with counting() as counts:
        call(given)
    assert sum(counts.synchronisations.values()) == synchronisations
    assert sum(counts.copies.values()) == copies


# -- kernels -------------------------------------------------------------------------------------


def _kernel(cp: Any, body: str, **options: Any) -> Any:
    return cp.ElementwiseKernel("float32 x, int32 k", "float32 y", body, "kernel", **options)


def test_kernels_compute_with_the_types_of_c(cp: Any) -> None:
    x = cp.asarray([0.1, -2.5, 7.0], "f")
    k = cp.asarray([7, -7, 3], "i")
    with counting() as counts:
        found = _kernel(cp, "y = k / 2 + x * 0.1 > 0 ? k / 2 : -1.5f")(x, k)
    np.testing.assert_array_equal(found.get(), np.asarray([3, -1.5, 1], "f"))
    assert counts.launches == {"kernel": 1}
    # A literal of C is a double.
    found = cp.ElementwiseKernel("float32 x", "float64 y", "y = x * 0.1", "kernel")(x)
    np.testing.assert_array_equal(found.get(), np.asarray([0.1, -2.5, 7.0], "f").astype("d") * 0.1)
    wrapped = cp.ElementwiseKernel(
        "int8 x", "int8 y, bool z", "y = x * 2; z = y != x * 2", "kernel"
    )
    y, z = wrapped(cp.asarray([100, 3], "b"))
    np.testing.assert_array_equal(y.get(), [-56, 6])
    np.testing.assert_array_equal(z.get(), [True, False])


@pytest.mark.parametrize(
    "body",
    [
        "y = z", "x = 1", "y = exq(x)", "float x = 1; y = x", "y = x %", "y = NAN", "y = x[0]",
        "y = max(x, 1.0)", "y = x % 2.0f", "float y = 2",
    ],
)  # fmt: skip
def test_what_does_not_compile(cp: Any, body: str) -> None:
    from cupy.cuda.compiler import CompileException

    with pytest.raises(CompileException):
        _kernel(cp, body)(cp.ones(3, "f"), 2)


def test_a_reduction_computes_its_terms(cp: Any) -> None:
    kernel = cp.ReductionKernel(
        "float32 x, float32 y", "float32 z", "x * y", "a + b", "z = a", "0", "dots"
    )
    x = cp.asarray(np.arange(6.0).reshape(2, 3), "f")
    y = cp.asarray([1, 2, 3], "f")
    with counting() as counts:
        found = kernel(x, y, axis=1)
    np.testing.assert_array_equal(found.get(), [8, 26])
    assert kernel(x, y, axis=(0, 1), keepdims=True).shape == (1, 1)
    assert counts.launches == {"dots": 1}
