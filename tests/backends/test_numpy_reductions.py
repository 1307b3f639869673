"""Reductions of NumPy's that go by rows give what NumPy's own give."""

import itertools
import warnings
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.nn.functional as F
from tests.peaks import peak_of
from wengert.backends import get_backend
from wengert.backends.numpy_reductions import FEW, FEWEST, LONGEST, SHORT

KERNELS = type(get_backend("numpy")).kernels
SHAPES = [
    (FEW - 1, 3), (200, 5), (FEW, SHORT), (FEW, SHORT + 1), (1, 9), (9, 1),
    (FEWEST, LONGEST), (FEWEST, LONGEST + 1), (FEWEST - 1, LONGEST),
    (30, 4, 6), (2, 3, 4, 5), (300, 2, 1), (512,), (0, 3), (3, 0), (5, 0, 2),
    (300, 4, 7), (8, 9, 8, 9), (2, 600, 5),
]  # fmt: skip
REDUCTIONS = {"sum": np.sum, "max": np.max, "min": np.min, "mean": np.mean}


def laid_out(x: Any) -> dict[str, Any]:
    """The same numbers in several orders in memory."""
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    return {
        "C": x,
        "Fortran": np.asfortranarray(x),
        "every other": wide[..., ::2],
        "backwards": np.flip(np.flip(x).copy()),
        "broadcast": np.broadcast_to(x[:1], x.shape),
    }


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "int32"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_every_choice_of_axes(name: str, dtype: str) -> None:
    if dtype == "int32" and name == "mean":
        pytest.skip("the standard's mean takes floating numbers")
    random = np.random.default_rng(0)
    fine = {"float16": 1e-2, "float32": 1e-5, "complex64": 1e-5}.get(dtype, 1e-13)
    for shape in SHAPES:
        numbers = (random.uniform(1, 2, shape) * random.choice([-1, 3], shape)).astype(dtype)
        ndim = len(shape)
        axes: list[Any] = [None, -1, 0]
        for number in range(1, ndim + 1):
            axes += itertools.combinations(range(ndim), number)
        for (order, x), axis, keepdims in itertools.product(
            laid_out(numbers).items(), axes, (False, True)
        ):
            if 0 in shape and (name != "sum"):
                continue
            # NumPy's own running sums of half precision lose digits.
            wide = x.astype("float32") if dtype == "float16" else x
            expected = np.asarray(REDUCTIONS[name](wide, axis=axis, keepdims=keepdims))
            expected = expected.astype(dtype) if dtype == "float16" else expected
            found = np.asarray(KERNELS[name](x, axis=axis, keepdims=keepdims))
            case = f"{name} of {shape}, {order}, over {axis}, keepdims={keepdims}"
            assert found.shape == expected.shape, case
            assert found.dtype == expected.dtype, case
            np.testing.assert_allclose(found, expected, rtol=fine, atol=10 * fine, err_msg=case)


@pytest.mark.parametrize("name", ["sum", "max", "min"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_row(name: str, value: float) -> None:
    for x in (np.arange(600.0).reshape(200, 3), np.arange(600.0).reshape(100, 2, 3)):
        x.reshape(-1)[100] = value
        for axis in ((x.ndim - 1,), (0,)):
            expected = REDUCTIONS[name](x, axis=axis)
            np.testing.assert_allclose(KERNELS[name](x, axis=axis), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((65537, 4, 2), (0, 2)), ((16384, 4, 7), (0, 2)), ((512, 8, 256), (0, 2)),
        ((65536, 4, 1), (0,)), ((2, 65536, 3), (1,)), ((2, 65000, 3), (0, 1)),
    ],
)  # fmt: skip
def test_sums_of_many_numbers_keep_their_digits(shape: tuple[int, ...], axis: Any) -> None:
    x = (np.random.default_rng(0).standard_normal(shape) * 0.1 + 100).astype("float32")
    exact = x.astype("float64")
    for name in ("sum", "mean", "var"):
        found, expected = KERNELS[name](x, axis=axis), getattr(exact, name)(axis)
        np.testing.assert_allclose(found, expected, rtol=1e-4 if name == "var" else 1e-6)
    if axis == (0, 2):
        y = F.batch_norm(wg.asarray(x), None, None, training=True).numpy()
        mean, deviation = (f(axis, keepdims=True) for f in (exact.mean, exact.std))
        exact = (exact - mean) / np.sqrt(deviation**2 + 1e-5)
        np.testing.assert_allclose(y, exact, atol=3e-4)  # in which 7e-6 of 100 is 7e-5


def test_pieces_of_columns_may_leave_the_range_where_columns_do_not() -> None:
    largest = np.finfo(np.float64).max
    x = np.zeros((4096, 20))
    x[0], x[200], x[201] = -0.9 * largest, 0.7 * largest, 0.7 * largest
    for y, axis in ((x, 0), (np.stack([x] * 3), 1)):
        np.testing.assert_allclose(KERNELS["sum"](y, axis=axis) / largest, 0.5, rtol=1e-15)
    with pytest.warns(RuntimeWarning, match="overflow"):
        KERNELS["sum"](np.full((4096, 20), 0.6 * largest), axis=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(300, 5), (60, 4, 7), (1200, 4, 2)])
def test_a_compiled_reduction_goes_the_same_way(shape: tuple[int, ...], dtype: str) -> None:
    def f(x: Any) -> Any:
        y = wg.softmax(x, axis=-1) + wg.max(x, axis=-1, keepdims=True)
        ends = wg.sum(y, axis=(0, -1)), wg.var(x, axis=(0, -1)), wg.mean(y, axis=-1)
        return *ends, wg.sum(y, axis=0), wg.sum(y * x, axis=-1), wg.min(y, axis=-1)

    compiled = wg.compile(f)
    random = np.random.default_rng(1)
    for order in ("C", "F", "C", "F", "C"):
        x = wg.asarray(np.asarray(random.standard_normal(shape), dtype, order=order))
        for found, expected in zip(compiled(x), f(x), strict=True):
            assert np.array_equal(found.numpy(), expected.numpy())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_the_sigmoid_is_the_composite_to_the_last_bit(dtype: str) -> None:
    from wengert.ops.elementwise.sigmoid import _expit_composite

    ends = [np.inf, -np.inf, np.nan, 0.0, -0.0]
    x = np.concatenate([np.linspace(-800, 800, 4001), np.linspace(-20, 60, 801), ends])
    if "complex" in dtype:
        x = np.linspace(-50, 50, 801) + 1j * np.linspace(-3, 3, 801)
    x = x.astype(dtype)
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        found = KERNELS["expit"](x)
        expected = _expit_composite(get_backend("numpy").namespace, x)
        one = KERNELS["expit"](x[7])
        many = KERNELS["expit"](np.tile(x, 2))  # which are limited by another function
    assert found.dtype == expected.dtype == one.dtype
    assert np.array_equal(found, expected, equal_nan=True)
    assert one == found[7]
    assert np.array_equal(many, np.tile(found, 2), equal_nan=True)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_logarithm_of_the_sigmoid_is_softplus_turned_round(dtype: str) -> None:
    ends = [np.inf, -np.inf, np.nan, 0.0, -0.0]
    x = np.concatenate([np.linspace(-800, 800, 4001), ends]).astype(dtype)
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        mirrored = wg.log_expit(wg.asarray(x)).numpy()
        expected = -wg.softplus(wg.asarray(-x)).numpy()
    assert np.array_equal(mirrored, expected, equal_nan=True)


SOFTMAX = [np.inf, -np.inf, np.nan, 0.0, 700.0]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_sums_of_exponentials_are_the_composites(name: str, dtype: str) -> None:
    """To the last bit, but for the order in which BLAS adds the numbers of a row."""
    pure = getattr(import_module("wengert.ops.special.softmax"), f"_{name}_composite")
    xp = get_backend("numpy").namespace
    random = np.random.default_rng(0)
    for shape, axes in {
        (): [()],
        (1,): [(0,), ()],
        (9,): [(0,)],
        (1, 9): [(1,), (0,), (0, 1)],
        (40, 9): [(1,), (0,), (0, 1)],
        (2, 3, 4): [(1,), (0, 2), (2,)],
        (3, 0): [(1,), (0,)],
    }.items():
        for axis, special, turned in itertools.product(axes, (False, True), (False, True)):
            x = np.asarray(random.normal(size=shape) * 5) + (1j if "complex" in dtype else 0)
            if special and shape and "complex" not in dtype:
                x[random.random(shape) < 0.4] = random.choice(SOFTMAX)
            x = np.asarray(x.astype(dtype), order="F" if turned else "C")
            options = [{}] if name != "logsumexp" else [{"keepdims": k} for k in (False, True)]
            for option in options:
                told: list[list[str]] = []
                values = []
                for function in (partial(pure, xp), KERNELS[name]):
                    with warnings.catch_warnings(record=True) as seen:
                        warnings.simplefilter("always")
                        values.append(np.asarray(function(x, axis=axis, **option)))
                    told.append(sorted(str(w.message) for w in seen))
                expected, found = values
                case = f"{name} of {x!r} over {axis}"
                assert (found.shape, found.dtype) == (expected.shape, expected.dtype), case
                assert told[0] == told[1], case
                row = len(axis) == 1 and x.size and shape[axis[0]] == x.size
                if row or (axis == (x.ndim - 1,) and x.dtype.char in "efd"):
                    fine = np.finfo(dtype).eps * 4
                    np.testing.assert_allclose(found, expected, fine, fine, err_msg=case)
                else:
                    assert np.array_equal(found, expected, equal_nan=True), case


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["sum", "max", "min", "mean"])
def test_no_large_array_is_copied(name: str) -> None:
    """Whatever its order in memory."""
    tall = np.ones((60_000, 20))
    stack = np.ones((100, 120, 100))
    arrays = {
        **laid_out(tall),
        "one column": np.broadcast_to(tall[:, :1], tall.shape),
        **{f"permuted by {p}": stack.transpose(p) for p in itertools.permutations(range(3))},
        "stepped": np.ones((100, 240, 100))[:, ::2],
        "broadcast in front": np.broadcast_to(stack[:1], stack.shape),
        "broadcast in the middle": np.broadcast_to(stack[:, :1], stack.shape),
    }
    for order, x in arrays.items():
        for axis, as_tuple in itertools.product(range(x.ndim), (False, True)):
            given = (axis,) if as_tuple else axis
            peak = peak_of(lambda: KERNELS[name](x, axis=given))  # noqa: B023
            result = x.size // x.shape[axis] * x.itemsize
            assert peak < 2 * result + x.size * x.itemsize / 8, (order, axis)


@pytest.mark.parametrize("shape", [(7, 1), (1, 7), (1, 7, 1)])
def test_one_sum_that_overflows_warns_as_numpy_s_does(shape: tuple[int, ...]) -> None:
    x = np.full(shape, np.finfo(np.float32).max, np.float32)
    with pytest.warns(RuntimeWarning, match="overflow encountered in reduce"):
        KERNELS["sum"](x, axis=(shape.index(7),))


def test_a_compiled_sweep_looks_at_the_order_of_the_cotangent_that_it_gets() -> None:
    def slopes(g: Any, *values: Any) -> Any:
        return wg.func.vjp(lambda x, b, c: (x + b) * c, *values)[1](g)

    random = np.random.default_rng(2)
    compiled = wg.compile(slopes)
    for _ in range(3):
        values = [random.standard_normal(shape) for shape in ((50, 9, 6), (9, 1), (50, 1, 1))]
        g = random.standard_normal((50, 9, 6))
        for order in laid_out(g).values():
            found, expected = (
                function(wg.asarray(order), *map(wg.asarray, values))
                for function in (compiled, slopes)
            )
            for ours, theirs in zip(found, expected, strict=True):
                assert ours.numpy().tobytes() == theirs.numpy().tobytes()


def test_large_sums_and_products_stay_in_the_range_where_numpys_do() -> None:
    big, tall = 1.2e308, np.ones((200, 1024))
    tall[:, 0], tall[:, 1:] = 0.02, 50 ** (1 / 1023)
    for x in (np.tile([big, -big / 2, -big / 2], 13_333), np.tile([2.0, 0.5], 1 << 17), tall):
        y = wg.asarray(x)
        pairs = [(wg.sum(y), np.sum(x)), (wg.mean(y), np.mean(x))]
        if x.max() < big:
            pairs.append((wg.prod(y, keepdims=True), np.prod(x, keepdims=True)))
        for found, wanted in pairs:
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-13)


def test_the_zero_of_an_extreme_is_numpys_and_that_of_programs() -> None:
    compiled = wg.compile(lambda x: (wg.max(x), wg.min(x)))
    for x in ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [-0.0, 0.0, 0.0], [0.0, -0.0]):
        y = wg.asarray(x)
        for found in ((wg.max(y), wg.min(y)), compiled(y)):
            wanted = np.max(x), np.min(x)
            assert [str(a.item()) for a in found] == [str(a.item()) for a in wanted]
