"""NumPy's kernels that are written here give what NumPy's functions of their names give."""

import inspect
import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.backends import get_backend
from wengert.backends.numpy import SHORT

RNG = np.random.default_rng(0)
KERNELS = type(get_backend("numpy")).kernels
M = RNG.normal(size=(3, 4))
ARRAYS: dict[str, Any] = {
    "matrix": M,
    "one row": M[:1],
    "transposed": M.T,
    "three axes": RNG.normal(size=(2, 3, 2)),
    "vector": M[0],
    "number": np.asarray(2.5),
    "no rows": M[:0],
    "single": M.astype(np.float32),
    "half": (M * 1e3).astype(np.float16),
    "half without rows": M[:0].astype(np.float16),
    "complex": M + 1j * M[::-1],
    "integers": np.arange(-5, 7).reshape(3, 4),
    "small integers": np.arange(12, dtype=np.int8).reshape(3, 4) * 10,
    "booleans": M > 0,
    "ties": np.array([[2.0, 1.0, 2.0, 0.0], [0.0, 0.0, 1.0, 1.0]]),
}
AXES: list[dict[str, Any]] = [
    {**axis, **kept}
    for axis, kept in product(
        [{}, {"axis": None}, {"axis": 0}, {"axis": 1}, {"axis": -1}, {"axis": (0, 1)}],
        [{}, {"keepdims": True}, {"keepdims": False}],
    )
]
TYPED = [{**way, **dtype} for way in AXES for dtype in ({}, {"dtype": np.dtype("float32")})]
CORRECTED = [{**way, "correction": n} for way in AXES for n in (0, 1, 4)] + AXES
SORTED = [
    {**axis, **down, **stable}
    for axis, down, stable in product(
        [{}, {"axis": 0}, {"axis": -1}],
        [{}, {"descending": True}],
        [{}, {"stable": True}, {"stable": False}],
    )
]
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "sum": TYPED,
    "prod": TYPED,
    "mean": AXES,
    "var": CORRECTED,
    "std": CORRECTED,
    "max": AXES,
    "min": AXES,
    "count_nonzero": AXES,
    "sort": SORTED,
    "argsort": SORTED,
    "real": [{}],
    "conj": [{}],
    "reciprocal": [{}],
    "matrix_transpose": [{}],
    "ones_like": [{}, {"dtype": np.dtype("int8")}, {"device": "cpu"}],
    "astype": [
        {"dtype": dtype, **copy}
        for dtype in map(np.dtype, ("bool", "float32", "complex128", "float64"))
        for copy in ({}, {"copy": True}, {"copy": False})
    ],
    "reshape": [{"shape": (-1,)}, {"shape": (-1,), "copy": True}, {"shape": (4, -1)}],
    "expand_dims": [{"axis": 0}, {"axis": 1}, {"axis": -1}, {"axis": -2}],
    "tril": [{}, *[{"k": k} for k in (-4, -1, 1, 3)]],
    "triu": [{}, *[{"k": k} for k in (-4, -1, 1, 3)]],
    "broadcast_to": [{"shape": (2, 3, 4)}, {"shape": (3, 4)}, {"shape": (300, 300, 4)}],
    "flip": [{}, {"axis": 0}, {"axis": -1}, {"axis": (1,)}, {"axis": (0, 1)}, {"axis": (0, -1)}],
    "argmax": [way for way in AXES if way.get("axis") != (0, 1)],
    "roll": [
        {"shift": shift, "axis": axis}
        for shift, axis in (((1,), (0,)), ((-5,), (1,)), ((1,), (-1,)), ((1, 2), (0, 1)), (3, None))
    ],
}
#: What is given by position.
POSITIONAL = {
    "astype": ["dtype"],
    "broadcast_to": ["shape"],
    "reshape": ["shape"],
    "roll": ["shift"],
}


def theirs(name: str, x: Any, **options: Any) -> Any:
    """What NumPy gives, where it takes these options, or the standard's words for it."""
    descending = options.pop("descending", False)
    if name in ("sort", "argsort"):
        axis = options.pop("axis", -1)
        order = np.argsort(-x.astype(float) if descending else x, axis=axis, stable=True)
        return order if name == "argsort" else np.take_along_axis(x, order, axis=axis)
    if name in ("var", "std"):
        options["ddof"] = options.pop("correction", 0)
        if name == "std" and x.dtype.char == "e":  # of which NumPy's overflows in half precision
            return np.std(x.astype("f"), **options).astype("e")
    if name == "reciprocal":
        return 1 / x
    if name == "astype":
        return x.astype(options.pop("dtype"), **options)
    if name == "matrix_transpose":
        return np.swapaxes(x, -1, -2)
    return getattr(np, name)(x, **options)


@pytest.mark.whole
@pytest.mark.parametrize("name", OPTIONS)
def test_a_kernel_gives_what_numpy_gives(name: str) -> None:
    compared = 0
    for (what, x), options in product(ARRAYS.items(), OPTIONS[name]):
        if name in ("sort", "argsort") and ("complex" in what or not x.ndim):
            continue
        if name in ("tril", "triu") and x.ndim < 2:
            continue
        if (name == "conj" and what == "booleans") or (
            name == "argsort" and options.get("stable") is False and what in ("ties", "booleans")
        ):
            continue
        case = f"{name} of {what} with {options}"
        given = [options[word] for word in POSITIONAL.get(name, ())]
        named = {word: x for word, x in options.items() if word not in POSITIONAL.get(name, ())}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                expected = np.asarray(theirs(name, x, **options))
            except (ValueError, IndexError):
                continue  # what NumPy refuses never comes to a kernel
            found = np.asarray(KERNELS[name](x, *given, **named))
        compared += 1
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype), case
        fine = {"e": 1e-2, "f": 1e-5}.get(expected.dtype.char, 1e-12)
        np.testing.assert_allclose(found, expected, rtol=fine, atol=fine, err_msg=case)
    assert compared >= 6


def test_every_kernel_of_one_array_with_options_is_compared() -> None:
    module = "wengert.backends.numpy"
    own = {name for name, kernel in KERNELS.items() if getattr(kernel, "__module__", "") == module}
    few = {"clip", "concat_arrays", "getitem", "linalg.eig", "matmul", "permute_dims", "setitem"}
    few |= {"linalg.pinv", "linalg.svd", "linalg.svdvals"}  # NumPy's, of what is finite
    few |= {"inverse_or_infinite", "stack_arrays", "take_along_axis", "softplus"}  # elsewhere
    few |= {"add_part", "scatter_add", "scatter_max", "scatter_min", "unique_values", "where"}
    assert {name for name in own if inspect.isfunction(KERNELS[name])} - few <= {*OPTIONS}


def test_copies_are_made_where_they_are_asked_for() -> None:
    x = M.copy()
    astype, reshape = KERNELS["astype"], KERNELS["reshape"]
    assert astype(x, x.dtype, copy=False) is x
    assert not np.shares_memory(astype(x, x.dtype), x)
    assert np.shares_memory(reshape(x, (12,)), x)
    assert not np.shares_memory(reshape(x, (12,), copy=True), x)
    assert np.shares_memory(reshape(x, (12,), copy=False), x)
    with pytest.raises(ValueError, match="copy"):
        reshape(x.T, (12,), copy=False)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(40_000, 2), (300, 100, SHORT), (300, 100, SHORT + 1)])
def test_a_number_for_each_short_row_is_repeated(shape: tuple[int, ...], order: Any) -> None:
    column = np.asarray(np.random.default_rng(0).random((*shape[:-1], 1)), order=order)
    found = KERNELS["broadcast_to"](column, shape)
    assert np.array_equal(found, np.broadcast_to(column, shape))
    assert np.shares_memory(found, column) == (shape[-1] > SHORT)
    assert found.flags.c_contiguous == (shape[-1] <= SHORT)
    with pytest.raises(ValueError, match="broadcast"):
        KERNELS["broadcast_to"](column[1:], shape)


@pytest.mark.parametrize("rows", [2, 32, 100, 128])
@pytest.mark.parametrize("biased", [False, True])
def test_a_wide_layer_is_the_product(rows: int, biased: bool) -> None:
    rng = np.random.default_rng(rows)
    x, weight = (rng.standard_normal(shape, np.float32) for shape in ((rows, 576), (512, 576)))
    bias = rng.standard_normal(512, np.float32) if biased else None
    result = KERNELS["linear"](x, weight, bias)
    exact = x.astype(float) @ weight.astype(float).T + (0 if bias is None else bias)
    np.testing.assert_allclose(result, exact, atol=1e-3)
    assert result.flags.c_contiguous and result.dtype == np.float32
    step = wg.compile(lambda *given: wg.nn.functional.linear(*given))
    given = [wg.asarray(a) for a in (x, weight, bias) if a is not None]
    for _ in range(2):
        np.testing.assert_array_equal(step(*given).numpy(), result)


@pytest.mark.parametrize("name", ["tril", "triu"])
@pytest.mark.parametrize("shape", [(4, 4), (300, 300)])  # the latter is NumPy's own
def test_a_triangle_keeps_each_bit(name: str, shape: tuple[int, ...]) -> None:
    x = np.resize(np.array([np.nan, -0.0, np.inf, -np.inf, 1.0]), shape)
    with np.errstate(all="raise"):
        for order in (x, x.T):
            found, expected = KERNELS[name](order, k=1), getattr(np, name)(order, k=1)
            assert found.tobytes() == expected.tobytes()
    mine = KERNELS[name](np.ones((4, 4)))
    mine[...] = 7  # which is nobody else's
    assert np.array_equal(KERNELS[name](np.ones((4, 4))), getattr(np, name)(np.ones((4, 4))))


@pytest.mark.parametrize("length", [1, 7])
def test_places_of_a_vector_are_counted_from_both_ends(length: int) -> None:
    places = RNG.integers(-length, length, (5, 3))
    values = RNG.normal(size=(5, 3))
    found = KERNELS["scatter_add"](values, places, key=("array",), shape=(length,))
    expected = np.zeros(length)
    for place, value in zip(places.ravel(), values.ravel(), strict=True):
        expected[place] += value
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("condition", [M > 0, np.asarray(True), M[:1] > 0], ids=["m", "0-d", "row"])
@pytest.mark.parametrize(
    ("x", "y"), [(M, 0), (0, M), (M, 0.0), (M, -M), (M.astype(int), 0), (M + 1j, 0), (0, 0)]
)
def test_where(condition: Any, x: Any, y: Any) -> None:
    found, expected = KERNELS["where"](condition, x, y), np.where(condition, x, y)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


def blends(dtype: str) -> tuple[Any, Any]:
    """Two large arrays of all kinds of numbers, each beside each."""
    info = np.finfo(dtype)
    hard = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, info.max, -info.max, info.tiny, 1e-45]
    hard += [info.smallest_subnormal, 0.3, -0.3, 100.0, -100.0, 20.0]
    rng = np.random.default_rng(0)
    return rng.choice(np.array(hard, dtype), 10_000), rng.choice(np.array(hard, dtype), 10_000)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["hypot", "logaddexp"])
def test_large_arrays_have_the_values_of_small_ones(name: str, dtype: str) -> None:
    x, y = blends(dtype)
    limit = np.finfo(dtype).max / 4
    rng = np.random.default_rng(1)
    pairs = [
        (x, y),
        (rng.normal(size=10_000), rng.normal(size=10_000)),
        (rng.normal(size=10_000) * limit, rng.normal(size=10_000)),
        (np.exp(rng.uniform(-40, 40, 10_000)), np.exp(rng.uniform(-40, 40, 10_000))),
    ]
    for a, b in pairs:
        a, b = a.astype(dtype), b.astype(dtype)
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(a.astype(np.longdouble), b.astype(np.longdouble))
            expected = expected.astype(dtype)
            found = KERNELS[name](a, b)
        assert found.dtype == dtype
        # Near 0 logaddexp loses digits, here as in NumPy.
        slack = 2e-7 if dtype == "float32" else 4e-16
        np.testing.assert_allclose(
            found, expected, rtol=2 * np.finfo(dtype).eps, atol=slack * (name == "logaddexp")
        )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_softplus_of_few_numbers_is_that_of_many(dtype: str) -> None:
    x, _ = blends("float64")
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
        many = KERNELS["softplus"](x)
        few = np.concatenate([KERNELS["softplus"](part) for part in x.reshape(-1, 100)])
    np.testing.assert_allclose(many, few, rtol=4 * np.finfo(dtype).eps, atol=0)
    assert many[x == -np.inf].tolist() == [0] * np.sum(x == -np.inf)
    assert not np.signbit(many).any() or np.isnan(many[np.signbit(many)]).all()


ENDS = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 2e-38, 3e38, -3e38]


def following(start: float, count: int = 20_000) -> Any:
    """Numbers of single precision, each next to the one before."""
    return (np.arange(count, dtype=np.uint32) + np.float32(start).view(np.uint32)).view(np.float32)


def errors_of(found: Any, expected: Any) -> Any:
    """Distances from values in double precision, in units of the last place."""
    with np.errstate(over="ignore", under="ignore"):
        unit = np.spacing(np.abs(expected.astype(np.float32)))
    return np.abs(found - expected) / unit


@pytest.mark.parametrize("name", ["erf", "erfc", "ndtr"])
def test_error_functions_of_large_arrays(name: str) -> None:
    special, mpmath = pytest.importorskip("scipy.special"), pytest.importorskip("mpmath")
    kernel, exact = KERNELS[name], getattr(mpmath, {"ndtr": "ncdf"}.get(name, name))
    few = np.concatenate([np.linspace(-14.5, 10.3, 400), np.geomspace(1e-40, 1, 100)])
    x = np.resize(few.astype(np.float32), 9_000)
    found = kernel(x)
    with mpmath.workdps(30):
        values = np.asarray([float(exact(mpmath.mpf(float(one)))) for one in x[:500]])
    assert errors_of(found[:500].astype(float), values).max() < 0.6
    x = np.random.default_rng(0).normal(size=(300, 300)).astype(np.float32) * 4
    for own in (x, x.T, x[::2, ::2], x[..., None]):
        found = kernel(own)
        assert found.shape == own.shape and found.dtype == np.float32
        exactly = getattr(special, name)(own.astype(float))
        assert errors_of(found.astype(float), exactly).max() < 0.6
    ends = np.resize(np.asarray(ENDS, np.float32), 9_000)
    few_ends = getattr(special, name)(ends[: len(ENDS)])
    found = kernel(ends)[: len(ENDS)]
    assert np.array_equal(found, few_ends, equal_nan=True)
    assert np.array_equal(np.signbit(found), np.signbit(few_ends))
    for start in (1e-3, 0.1, 0.5, 1.0, 2.0, 3.0, 3.7, 3.83, 3.99, 9.0, 10.0, 10.19):
        x = following(start)
        up, down = kernel(x), kernel(-x)
        assert (np.diff(up) * (-1 if name == "erfc" else 1) >= 0).all()
        assert (
            np.array_equal(down, -up)
            if name == "erf"
            else (np.diff(down) * (1 if name == "erfc" else -1) >= 0).all()
        )


@pytest.mark.parametrize("name", ["softplus", "log_expit", "logaddexp"])
def test_smooth_rectifiers_of_large_arrays_are_monotone(name: str) -> None:
    function = getattr(wg, name)
    sign = -1 if name == "log_expit" else 1
    for start in (-0.01, -0.5, -2.0, -9.0, -40.0, 0.01, 1.0, 8.0):
        x = following(start)
        given = [wg.asarray(x)] if name != "logaddexp" else [wg.asarray(x), wg.zeros_like(x)]
        found = function(*given).numpy()
        assert (np.diff(found) * np.sign(start) >= 0).all()
        exact = sign * np.logaddexp(sign * x.astype(float), 0)
        assert errors_of(found.astype(float), exact).max() < 1.01


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "int64"])
def test_where_of_large_arrays_keeps_their_bits(dtype: str) -> None:
    with np.errstate(over="ignore"):
        x, y = (a.astype(dtype) if dtype != "int64" else a.view(dtype) for a in blends("float64"))
    for a, b in ((x, y), (x[::2], y[::2]), (x, 0), (0, y), (x.reshape(100, 100).T, y[:100])):
        shape = np.broadcast_shapes(np.shape(a), np.shape(b))
        keep = np.random.default_rng(0).random(shape) < 0.5
        expected = np.where(keep, a, b).astype(dtype)
        assert KERNELS["where"](keep, a, b).tobytes() == expected.tobytes()
    assert KERNELS["where"](True, x, y).tobytes() == x.tobytes()
    many, a, b = np.arange(1000), x[:1000], y[:1000]  # integers stand for conditions in NumPy
    assert KERNELS["where"](many, a, b).tobytes() == np.where(many, a, b).tobytes()
