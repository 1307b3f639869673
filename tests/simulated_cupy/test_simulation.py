"""The simulation answers, refuses and counts as CuPy does.

What is expected stands in CuPy's documentation and sources: versions 13.6 and 14.0.
"""

import copy
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.simulated_cupy import counting, version

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


def test_results_are_arrays_also_of_no_axes(cp: Any) -> None:
    x = cp.arange(6.0).reshape(2, 3)
    for made in (x.sum(), cp.max(x), x[0, 0], cp.add(x[0, 0], 1), cp.linalg.norm(x), x.mean()):
        assert type(made) is cp.ndarray
        assert made.shape == ()


def test_arguments_are_those_of_the_installed_version(cp: Any) -> None:
    x = cp.arange(6.0)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        cp.sum(x, where=True)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        cp.zeros(3, device=0)
    with pytest.raises(TypeError, match="Wrong arguments"):
        cp.exp(x, order="C")
    assert hasattr(cp.linalg, "eig") == (version() >= 14)


def test_loops_are_those_of_the_tables(cp: Any) -> None:
    from cupyx.scipy import special

    assert special.expit(cp.ones(2, "e")).dtype == ("d" if version() >= 14 else "f")
    with pytest.raises(TypeError, match="Wrong type"):
        special.erf(cp.ones(2, "D"))
    with pytest.raises(TypeError, match="Wrong type"):
        cp.bitwise_and(cp.ones(2), cp.ones(2))
    with pytest.raises(TypeError, match="boolean subtract"):
        cp.subtract(cp.ones(2, "?"), cp.ones(2, "?"))
    with pytest.raises(TypeError, match="float16 is unsupported"):
        cp.linalg.inv(cp.ones((2, 2), "e"))


def test_numbers_beside_arrays(cp: Any) -> None:
    """Version 13 looks at a number's value; version 14 follows NumPy 2."""
    x = cp.ones(2, "f")
    assert (x * 2.5).dtype == "f"
    assert (x * 1e300).dtype == ("f" if version() >= 14 else "d")
    assert (cp.ones(2, "b") + 1).dtype == "b"
    assert (cp.ones(2, "b") + 1.0).dtype == "d"
    assert (cp.ones(2, "B") * 2).dtype == "B"
    assert (x + np.float64(1)).dtype == ("d" if version() >= 14 else "f")


@pytest.mark.parametrize("dtype", ["i", "I", "l", "L", "e", "f", "d", "F", "b"])
def test_what_is_added_at_places(cp: Any, dtype: str) -> None:
    takes = {"i", "I", "L", "e", "f", "d"} | ({"l"} if version() >= 14 else set())
    x, places = cp.zeros(3, dtype), cp.asarray([0, 2, 0, -1])
    if dtype not in takes:
        with pytest.raises(TypeError, match="only supports"):
            cp.add.at(x, places, cp.ones(4, dtype))
        return
    cp.add.at(x, places, cp.ones(4, dtype))
    np.testing.assert_array_equal(x.get(), [2, 0, 2])


def test_what_has_no_kernel_says_so(cp: Any) -> None:
    with pytest.raises(NotImplementedError, match="is not supported yet"):
        cp.multiply.at(cp.ones(3), cp.asarray([0]), 2.0)
    with pytest.raises(NotImplementedError, match="the simulation has no"):
        cp.kaiser(4, 2.0)


# -- indices -------------------------------------------------------------------------------------


def test_places_beyond_an_axis_wrap_around(cp: Any) -> None:
    x = cp.arange(4.0)
    np.testing.assert_array_equal(x[cp.asarray([4, -5, 1])].get(), [0, 3, 1])
    np.testing.assert_array_equal(cp.take(x, cp.asarray([7])).get(), [3])
    with pytest.raises(IndexError):
        x[4]


def test_an_ellipsis_for_no_axes_does_not_keep_arrays_apart(cp: Any) -> None:
    host = np.arange(24.0).reshape(2, 3, 4)
    x, rows = cp.asarray(host), np.asarray([0, 1])
    places = cp.asarray(rows)
    found = x[places, :, ..., places]
    np.testing.assert_array_equal(found.get(), host[rows, :, rows])


def test_views_share_memory_and_copies_do_not(cp: Any) -> None:
    x = cp.zeros((2, 3))
    x[0] = 1
    x.T[2] += 5
    x.reshape(-1)[1:2] = 7
    taken = x[cp.asarray([0])]
    taken[...] = 9
    np.testing.assert_array_equal(x.get(), [[1, 7, 6], [0, 0, 5]])
    assert x[0].base is x
    assert taken.base is None


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


def test_a_device_that_is_not_there(cp: Any) -> None:
    with pytest.raises(RuntimeError, match="invalid device ordinal"), cp.cuda.Device(2):
        pass


# -- counters ------------------------------------------------------------------------------------


def test_launches_are_counted(cp: Any) -> None:
    x = cp.ones((3, 3))
    with counting() as counts:
        y = cp.exp(x) + 1
        y += x
        cp.matmul(x, y)
        y.T.reshape(3, 3)[0]
    assert counts.launches == {"cupy_exp": 1, "cupy_add": 2, "matmul": 1}
    with counting() as counts:
        cp.exp(cp.ones((0, 3)))
    assert not counts.launches
    assert not counts.synchronisations
    assert not counts.copies


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


def test_a_branch_runs_for_its_elements_alone(cp: Any) -> None:
    kernel = cp.ElementwiseKernel(
        "raw float32 a, raw float32 b",
        "raw float32 y",
        "if (i < 2) { y[i] = a[i]; } else { float t = b[i - 2]; y[i] = t + 1; }",
        "kernel",
    )
    a, b, y = cp.asarray([1, 2], "f"), cp.asarray([3, 4, 5], "f"), cp.empty(5, "f")
    kernel(a, b, y, size=5)
    np.testing.assert_array_equal(y.get(), [1, 2, 4, 5, 6])
    with pytest.raises(IndexError, match="beyond an array of 3"):
        kernel(a, b, cp.empty(6, "f"), size=6)


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


def test_what_kernels_refuse(cp: Any) -> None:
    kernel, x = _kernel(cp, "y = x + k"), cp.ones(3, "f")
    for call, error in (
        (lambda: kernel(cp.ones(3), 2), TypeError),  # float64
        (lambda: kernel(x, np.ones(3, "i")), TypeError),
        (lambda: kernel(x), TypeError),
        (lambda: kernel(x, cp.ones(2, "i")), ValueError),
        (lambda: kernel(x, 2, cp.ones(4, "f")), ValueError),
        (lambda: kernel(1.0, 2), ValueError),
        (lambda: kernel(x, 2, size=3), ValueError),
        (lambda: cp.ElementwiseKernel("float32 n", "float32 y", "y = n"), ValueError),
        (lambda: cp.ElementwiseKernel("raw float32 x", "raw float32 y", "")(x, size=3), ValueError),
    ):
        with pytest.raises(error):
            call()
    with cp.cuda.Device(1), pytest.raises(ValueError, match="different from the current device"):
        kernel(x, 2)


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


ROWS = """
template <typename Rows>
static __device__ complex<float> of_row(const Rows& x, long long row, long long k) {
    float found = 0;
    for (long long c = 0; c < k; c = c + 1) {
        if (x[row * 3 + c] > 0) {
            found = found + x[row * 3 + c];
        }
    }
    return complex<float>(found, 1.0f);
}
"""


def test_a_reduction_reads_whole_arrays_by_the_number_of_the_element(cp: Any) -> None:
    """As far as the element's own number of terms; it writes into the results that it is given."""
    expressions = "of_row(x, _J, k)", "a + b", "total = a.real(), mean = total / a.imag()", "0"
    types = "raw float32 x, int64 k", "float32 total, float32 mean"
    options = {"reduce_type": "complex<float>", "preamble": ROWS}
    kernel = cp.ReductionKernel(*types, *expressions, "rows", **options)
    x = cp.asarray(np.arange(-3.0, 6.0).reshape(3, 3), "f")
    total, mean = cp.empty((), "f"), cp.empty((), "f")
    with counting() as counts:
        assert kernel(x, cp.asarray([3, 2, 3]), total, mean) is total
    assert (float(total.get()), float(mean.get())) == (13.0, np.float32(13) / np.float32(3))
    assert counts.launches == {"rows": 1}
    with pytest.raises(IndexError, match="beyond an array of 9"):
        kernel(x, cp.asarray([3, 2, 4]), total, mean)
    with pytest.raises(ValueError, match="Out shape"):
        kernel(x, cp.asarray([3, 2, 3]), total, cp.empty(1, "f"))
    with pytest.raises(TypeError, match="Wrong number"):
        kernel(x, cp.asarray([3, 2, 3]), total)
