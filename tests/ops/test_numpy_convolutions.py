"""NumPy's convolutions give what their composites give, in any layout of memory."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalogue.beyond import counts, problems
from tests.peaks import peak_of
from wengert.backends import get_backend
from wengert.backends.backend import composites
from wengert.ops.beyond import convolution as convolution  # declares the primitives
from wengert.ops.beyond import numpy_convolutions

KERNELS = numpy_convolutions.KERNELS
RNG = np.random.default_rng(0)
#: Kernel, stride, padding, dilation and groups; and the shape of an example.
OPTIONS: dict[str, tuple[Any, ...]] = {
    "plain": ((3, 3), (1, 1), ((0, 0), (0, 0)), (1, 1), 1, (2, 6, 7)),
    "rows that no block divides": ((3, 3), (1, 1), ((0, 0), (0, 0)), (1, 1), 1, (2, 7, 5)),
    "same": ((3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1, (2, 6, 7)),
    "one side": ((2, 3), (1, 1), ((0, 1), (2, 0)), (1, 1), 1, (3, 5, 4)),
    "pointwise": ((1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 2, (4, 5, 3)),
    "pointwise with a margin": ((1, 1), (1, 1), ((1, 1), (0, 0)), (1, 1), 1, (2, 5, 3)),
    "strided": ((3, 2), (2, 3), ((1, 1), (0, 1)), (1, 1), 1, (2, 7, 8)),
    "a stride beyond the kernel": ((2, 1), (3, 4), ((0, 0), (0, 0)), (1, 1), 1, (2, 9, 9)),
    "dilated": ((3, 3), (1, 1), ((2, 2), (3, 1)), (2, 3), 1, (2, 8, 8)),
    "dilated and strided": ((3, 3), (2, 4), ((3, 2), (1, 1)), (3, 2), 2, (4, 9, 10)),
    "in groups": ((3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 3, (6, 5, 5)),
    "each channel": ((3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 4, (4, 5, 5)),
    "wide margins": ((2, 2), (1, 1), ((4, 4), (3, 5)), (1, 1), 1, (1, 2, 1)),
    "a row of margins": ((2, 2), (3, 3), ((1, 1), (2, 2)), (2, 2), 1, (1, 1, 8)),
    "the whole image": ((5, 4), (1, 1), ((0, 0), (0, 0)), (1, 1), 1, (2, 5, 4)),
    "channels of several blocks": ((2, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), 1, (7, 9, 6)),
    "a phase in the margin alone": ((4, 1), (5, 4), ((2, 3), (3, 3)), (1, 2), 1, (1, 1, 3)),
    "zeros alone": ((1, 1), (3, 3), ((1, 1), (1, 1)), (1, 1), 1, (1, 1, 5)),
}
Call = tuple[str, tuple[Any, ...], dict[str, Any]]


def calls(case: str, dtype: str, batch: int = 3) -> list[Call]:
    """The three functions' arguments for a case, with random numbers."""
    size, stride, padding, dilation, groups, shape = OPTIONS[case]
    lengths = counts(shape[1:], size, stride, padding, dilation)
    produced = 2 * groups

    def draw(*sizes: int) -> Any:
        more = 1j * RNG.normal(size=sizes) if "complex" in dtype else 0
        return (RNG.normal(size=sizes) + more).astype(dtype)

    x, y = draw(batch, *shape), draw(batch, produced, *lengths)
    weight, bias = draw(produced, shape[0] // groups, *size), draw(produced)
    how = (stride, padding, dilation, groups)
    return [
        ("convolution", (x, weight, None), {"how": how}),
        ("convolution", (x, weight, bias), {"how": how}),
        ("convolution_input", (y, weight), {"lengths": shape[1:], "how": how}),
        ("convolution_weight", (x, y), {"size": size, "how": how}),
    ]


def both(name: str, arrays: Any, options: Any) -> tuple[Any, Any, list[list[str]]]:
    """What the kernel gives and what the composite does, and of what each warns."""
    xp = get_backend("numpy").namespace
    found, told = [], []
    for function in (KERNELS[name], lambda *given, **k: composites[name](xp, *given, **k)):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            found.append(function(*arrays, **options))
        # (In `matmul`, or in `dot`.)
        told.append(sorted({str(w.message).rpartition(" in ")[0] for w in seen}))
    return found[0], found[1], told


def laid_out(x: Any) -> dict[str, Any]:
    """The same numbers in several orders in memory."""
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    channels_last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    return {
        "Fortran": np.asfortranarray(x),
        "every other": wide[..., ::2],
        "backwards": np.flip(np.flip(x).copy()),
        "channels last": np.moveaxis(channels_last, -1, 1),
    }


@pytest.fixture(autouse=True)
def covered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of images of any number of channels."""
    monkeypatch.setattr(numpy_convolutions, "FEW", 0)
    monkeypatch.setattr(numpy_convolutions, "MANY", 1000)


@contextmanager
def at_once(numbers: int | None) -> Iterator[None]:
    """Let so many numbers of windows be made at once."""
    with pytest.MonkeyPatch.context() as patch:
        if numbers is not None:
            patch.setattr(numpy_convolutions, "AT_ONCE", numbers)
            patch.setattr(numpy_convolutions, "SMALL", 3 * numbers)
            patch.setattr(numpy_convolutions, "FEWEST", 2)
        yield


@pytest.fixture(params=[None, 8, 160, 300], ids=["whole", "row by row", "some rows", "more rows"])
def blocks(request: pytest.FixtureRequest) -> Any:
    """How much is computed at once."""
    with at_once(request.param):
        yield


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("case", OPTIONS)
def test_a_kernel_gives_what_its_composite_gives(case: str, dtype: str) -> None:
    fine = 100 * np.finfo(dtype).eps
    for name, arrays, options in calls(case, dtype):
        found, expected, told = both(name, arrays, options)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        assert found.flags.c_contiguous or not numpy_convolutions.covers(*arrays, **options)
        assert not told[0]
        np.testing.assert_allclose(found, expected, rtol=fine, atol=20 * fine)
        for order in laid_out(arrays[0]):
            turned = [None if a is None else laid_out(a).get(order, a) for a in arrays[:2]]
            again = KERNELS[name](*turned, *arrays[2:], **options)
            assert again.tobytes() == found.tobytes(), order


@pytest.mark.parametrize("case", OPTIONS)
def test_no_examples(case: str) -> None:
    for name, arrays, options in calls(case, "float32", batch=0):
        found, expected, _ = both(name, arrays, options)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        assert not found.any()


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("case", OPTIONS)
def test_what_is_not_finite_is_where_the_composite_has_it(case: str, value: float) -> None:
    """Each element of each operand in turn, of which an image has few."""
    for name, arrays, options in calls(case, "float32", batch=1):
        for k, array in enumerate(arrays):
            if array is None:
                continue
            for at in RNG.permutation(array.size)[:12]:
                planted = [None if a is None else a.copy() for a in arrays]
                planted[k].reshape(-1)[at] = value
                # Of which BLAS warns depends on what lies beside a matrix.
                found, expected, _ = both(name, planted, options)
                if name == "convolution_input" and k == 1:  # zeros beside ``y`` meet such a weight
                    assert not np.isfinite(found[~np.isfinite(expected)]).any()
                    found[np.isnan(found)] = expected[np.isnan(found)]
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", ["plain", "pointwise", "dilated and strided"])
def test_an_overflow_is_told(case: str) -> None:
    for name, arrays, options in calls(case, "float32"):
        large = [None if a is None else np.full_like(a, 3e38) for a in arrays]
        found, expected, told = both(name, large, options)
        np.testing.assert_array_equal(found, expected)
        assert "overflow encountered" in told[0]


@given(problems(2, 5), st.integers(1, 4), st.none() | st.integers(1, 500))
@settings(max_examples=100, deadline=None)
def test_any_options(problem: Any, batch: int, numbers: int | None) -> None:
    OPTIONS["drawn"] = problem
    try:
        with at_once(numbers):
            for name, arrays, options in calls("drawn", "float64", batch):
                found, expected, _ = both(name, arrays, options)
                np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
    finally:
        del OPTIONS["drawn"]


@pytest.mark.parametrize(
    ("shape", "numbers"),
    [((1, 4, 48, 48), 4096), pytest.param((8, 16, 128, 128), None, marks=pytest.mark.slow)],
)
def test_the_windows_of_a_batch_are_never_in_memory(
    shape: tuple[int, ...], numbers: int | None
) -> None:
    """They would take 9 times what the images take."""
    x = RNG.normal(size=shape).astype("f")
    weight = RNG.normal(size=(shape[1], shape[1], 3, 3)).astype("f")
    how = ((1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    with at_once(numbers):
        some = 4 * x.itemsize * numpy_convolutions.AT_ONCE
        for call in (
            lambda: KERNELS["convolution"](x, weight, None, how=how),
            lambda: KERNELS["convolution_input"](x, weight, lengths=shape[2:], how=how),
            lambda: KERNELS["convolution_weight"](x, x, size=(3, 3), how=how),
        ):
            assert peak_of(call) < 1.1 * x.nbytes + some
