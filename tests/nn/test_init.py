"""Initialisers and utilities."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.nn.test_functional import values
from wengert import nn
from wengert.nn import init


@pytest.mark.parametrize(
    ("fill", "low", "high", "mean", "std"),
    [
        (lambda t: init.uniform_(t, -1, 3), -1, 3, 1, 4 / math.sqrt(12)),
        (lambda t: init.normal_(t, 2, 0.5), -2, 6, 2, 0.5),
        (lambda t: init.xavier_uniform_(t, 2.0), -0.2, 0.2, 0, 0.2 / math.sqrt(3)),
        (lambda t: init.xavier_normal_(t), -1, 1, 0, math.sqrt(2 / 600)),
        (lambda t: init.kaiming_uniform_(t, math.sqrt(5)), -0.05, 0.05, 0, 0.05 / math.sqrt(3)),
        (
            lambda t: init.kaiming_uniform_(t, mode="fan_out", nonlinearity="relu"),
            -math.sqrt(6 / 200),
            math.sqrt(6 / 200),
            0,
            math.sqrt(2 / 200),
        ),
        (lambda t: init.kaiming_normal_(t, nonlinearity="tanh"), -1, 1, 0, 5 / 3 / 20),
    ],
)
def test_distributions(fill: Any, low: float, high: float, mean: float, std: float) -> None:
    wg.manual_seed(0)
    tensor = wg.empty(200, 400).requires_grad_()
    assert fill(tensor) is tensor
    assert tensor.is_leaf
    assert tensor.requires_grad
    v = values(tensor).astype(np.float64)
    assert low <= v.min()
    assert v.max() <= high
    # Deviations of the mean and of the deviation over 80 000 numbers, five times.
    assert abs(v.mean() - mean) < 5 * std / math.sqrt(v.size)
    assert abs(v.std() - std) < 5 * std / math.sqrt(2 * v.size)


@pytest.mark.parametrize("shape", [(60, 20), (20, 60), (30, 5, 4), (1, 4), (0, 3)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_orthogonal(backend: Any, shape: tuple[int, ...], dtype: str) -> None:
    wg.manual_seed(0)
    tensor = wg.empty(shape, dtype=dtype).requires_grad_()
    assert init.orthogonal_(tensor, 3.0) is tensor
    matrix = values(tensor).reshape(shape[0], -1) / 3 if tensor.size else np.zeros((0, 3))
    if matrix.shape[0] > matrix.shape[1]:
        matrix = matrix.T
    np.testing.assert_allclose(matrix @ matrix.conj().T, np.eye(len(matrix)), atol=1e-12)


@pytest.mark.parametrize("fill", [init.orthogonal_, init.trunc_normal_])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_short_numbers_are_made_of_long_ones(fill: Any, dtype: str) -> None:
    drawn = []
    for d in (dtype, "float64"):
        wg.manual_seed(5)
        drawn.append(values(fill(wg.empty((6, 4), dtype=d))))
    short, long = drawn
    np.testing.assert_array_equal(short, long.astype(dtype))


def test_orthogonal_matrices_are_equally_likely() -> None:
    """Each element of a random rotation of the plane is the cosine of an even angle."""
    wg.manual_seed(0)
    drawn = np.array([values(init.orthogonal_(wg.empty((2, 2)))) for _ in range(2000)])
    for found in (drawn[:, 0, 0], drawn[:, 1, 1], drawn[:, 0, 1]):
        assert kolmogorov(found, lambda x: 1 - np.arccos(np.clip(x, -1, 1)) / math.pi) < 1.95
    assert abs((np.linalg.det(drawn) > 0).mean() - 0.5) < 5 * 0.5 / 2000**0.5


def kolmogorov(found: np.ndarray, distribution: Any) -> float:
    """The largest distance of two distribution functions; above 1.95 once in a thousand times."""
    x = np.sort(found.astype(np.float64).ravel())
    share = np.arange(len(x) + 1) / len(x)
    exact = distribution(x)
    return max(abs(exact - share[1:]).max(), abs(exact - share[:-1]).max()) * len(x) ** 0.5


@pytest.mark.parametrize(
    ("mean", "std", "a", "b"),
    [
        (0, 1, -2, 2),
        (1, 0.5, -2, 1.2),
        (0, 0.02, -2, 2),
        (0, 1, 3, 4),
        (0, 1, -9, -8),
        (5, 1, 0, 3),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_truncated_normal_numbers(mean: float, std: float, a: float, b: float, dtype: str) -> None:
    wg.manual_seed(0)
    v = values(init.trunc_normal_(wg.empty((200, 100), dtype=dtype), mean, std, a, b))
    assert a <= v.min() and v.max() <= b
    turn = -1 if a > mean else 1  # so that small shares have all their digits

    def below(x: Any) -> Any:
        return np.vectorize(math.erfc)(-turn * (x - mean) / std / math.sqrt(2)) / 2

    low, high = below(a), below(b)
    assert kolmogorov(v, lambda x: (below(x) - low) / (high - low)) < 1.95


@pytest.mark.whole
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: init.uniform_(wg.ones(3), 1, 0), "a=1 is above b=0"),
        (lambda: init.uniform_(wg.ones(3), math.nan, 0), "a=nan is above"),
        (lambda: init.xavier_uniform_(wg.ones((3, 3)), -1), "is above b="),
        (lambda: init.normal_(wg.ones(3), 0, -1), "deviation of 0 or more, and std=-1"),
        (lambda: init.orthogonal_(wg.ones(3)), "orthogonal_ needs 2 axes or more"),
        (lambda: init.calculate_gain("sine"), "Unsupported nonlinearity sine"),
        (lambda: init.calculate_gain("conv4d"), "Unsupported nonlinearity conv4d"),
        (lambda: init.calculate_gain("leaky_relu", "x"), "not a valid number"),
        (lambda: init.xavier_normal_(wg.empty(3)), "fewer than 2 dimensions"),
        (lambda: init.kaiming_normal_(wg.empty(3, 3), mode="sideways"), "Mode sideways"),
        (lambda: init.uniform_(wg.zeros(3, dtype=wg.int64)), r"not wengert\.int64"),
        (lambda: init.zeros_(wg.ones(2).requires_grad_() * 2), "in-place"),
        (lambda: init.trunc_normal_(wg.ones(2), 0, 1, 2, 1), "a below b"),
        (lambda: init.trunc_normal_(wg.ones(2), 0, 1, 100, 101), "no share in"),
        (
            lambda: init.trunc_normal_(wg.ones(2, dtype="complex64")),
            "has no order",
        ),
    ],
)
def test_what_does_not_fit_is_told(call: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        call()


def test_constants(backend: Any) -> None:
    tensor = wg.empty(2, 3, dtype=wg.float64)
    for fill, value in (
        (init.ones_, 1),
        (init.zeros_, 0),
        (lambda t: init.constant_(t, 0.3), 0.3),
    ):
        assert (values(fill(tensor)) == value).all()
        assert tensor.backend is backend
        assert tensor.dtype == wg.float64
    assert values(init.constant_(wg.empty(2, dtype=wg.complex128), 1j)).tolist() == [1j, 1j]


def test_complex_numbers_have_both_parts_drawn() -> None:
    v = values(init.uniform_(wg.empty(1000, dtype=wg.complex64), -1, 1))
    for part in (v.real, v.imag):
        assert part.min() < -0.9
        assert part.max() > 0.9
    assert nn.Linear(3, 2, dtype=wg.complex64)(wg.ones(1, 3, dtype=wg.complex64)).shape == (1, 2)


def test_gains() -> None:
    """PyTorch's documentation has them: those that keep the variance of standard normal numbers."""
    expected = {"linear": 1, "conv1d": 1, "conv2d": 1, "conv_transpose3d": 1, "sigmoid": 1}
    expected |= {"tanh": 5 / 3, "relu": 2**0.5, "selu": 0.75}
    assert {name: init.calculate_gain(name) for name in expected} == expected
    assert init.calculate_gain("leaky_relu", 0.3) == pytest.approx((2 / (1 + 0.3**2)) ** 0.5)


# -- layers ----------------------------------------------------------------------------------------

STARTED: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "Linear": ((400, 100), {}),
    "Conv2d": ((16, 32, 5), {"groups": 2}),
    "ConvTranspose2d": ((16, 32, 5), {"groups": 2}),
    "LSTM": ((30, 100), {}),
    "GRUCell": ((30, 100), {}),
    "MultiheadAttention": ((64, 4), {}),
    "TransformerEncoderLayer": ((64, 4, 128), {}),
    "Embedding": ((200, 100), {}),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", STARTED)
def test_layers_start_as_pytorchs(backend: Any, name: str) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    wg.manual_seed(0)
    args, options = STARTED[name]
    ours, theirs = (getattr(lib, name)(*args, **options) for lib in (nn, torch.nn))
    for (key, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        a, b = values(p), q.detach().numpy()
        assert a.shape == b.shape and a.dtype == b.dtype, key
        # Of n uniform numbers the deviation is known to within 0.45 / sqrt(n) of itself.
        np.testing.assert_allclose(a.std(), b.std(), rtol=4 / a.size**0.5, err_msg=key)
        assert abs(a.mean() - b.mean()) <= 8 * b.std() / a.size**0.5
        if name != "Embedding":
            np.testing.assert_allclose(abs(a).max(), abs(b).max(), rtol=20 / a.size, err_msg=key)


def test_layers_without_numbers() -> None:
    assert nn.Linear(2, 2, bias=False).bias is None
    assert nn.Linear(2, 2, dtype=wg.float64).weight.dtype == wg.float64
    assert nn.Linear(0, 2)(wg.ones(3, 0)).shape == (3, 2)
    assert nn.MultiheadAttention(64, 4, bias=False).in_proj_bias is None


# -- utilities -------------------------------------------------------------------------------------


def gradients() -> tuple[list[nn.Parameter], list[np.ndarray]]:
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=(3, 2)), rng.normal(size=4)]
    parameters = [nn.Parameter(wg.asarray(np.zeros_like(a))) for a in arrays]
    for parameter, array in zip(parameters, arrays, strict=True):
        parameter.grad = wg.asarray(array)
    return [*parameters, nn.Parameter(wg.zeros(1))], arrays


_SIZES: list[tuple[list[float], list[float]]] = [
    ([1.5, -2.0], [0.25]),
    ([1e20, -2e20], [3e19]),
    ([1e-30, 2e-30], [1e-31]),
    ([1e25, 1e-25], [3.0]),
    ([0.0, 0.0], [0.0]),
    ([3.0, 4.0], [0.0]),
]
ORDERS = (1.0, 2.0, 3.5, 0.0, -1.0, -math.inf, math.inf, "inf")
#: Gradients, their dtypes, and orders of the norm. Squares neither overflow nor vanish; those of
#: half precision are summed in float32: no gradient becomes 0 for a scale that is.
CLIPPED: list[tuple[list[Any], tuple[str, ...], tuple[Any, ...]]] = [
    ([[[0.5, -2.0], [1.5, 0.25]], [-3.0, 1.0]], ("float64",) * 2, ORDERS),
    ([[3.0, 4.0], [3.0, 4.0]], ("float32", "float64"), (2.0, "inf")),
    *(([*s], d, (2.0,)) for s in _SIZES for d in (("float32",) * 2, ("float64", "float32"))),
    *(([[s, -s / 2, s]], ("float16",), (2.0, 3.0)) for s in (300.0, 6e4, 1e-4)),
    ([np.zeros((0, 3))], ("float32",), (2.0, 1.0)),
    ([], (), (2.0,)),
]


@pytest.mark.parametrize(("held", "dtypes", "orders"), CLIPPED)
def test_gradients_are_clipped_by_their_norm(
    backend: Any, held: list[Any], dtypes: tuple[str, ...], orders: tuple[Any, ...]
) -> None:
    if "float16" in dtypes and not hasattr(backend.xp, "float16"):
        pytest.skip("has no float16")
    arrays = [np.asarray(a, dtype) for a, dtype in zip(held, dtypes, strict=True)]
    for order, most in itertools.product(orders, (0.5, 100.0)):
        parameters = [nn.Parameter(wg.zeros(a.shape, dtype=a.dtype.name)) for a in arrays]
        for parameter, array in zip(parameters, arrays, strict=True):
            parameter.grad = wg.asarray(array.copy())
        grads = [p.grad for p in parameters]
        aliases = [g.detach() for g in grads]
        norms = [np.linalg.norm(a.astype("float64").ravel(), float(order)) for a in arrays]
        exact = np.linalg.norm(norms or [0.0], float(order))
        for total in (
            nn.utils.get_total_norm([p.grad for p in parameters], order),
            nn.utils.clip_grad_norm_(parameters, most, order),
        ):
            np.testing.assert_allclose(total.item(), exact, rtol=1e-6)
        for parameter, array in zip(parameters, arrays, strict=True):
            assert parameter.grad.dtype == array.dtype.name
            assert any(parameter.grad is g for g in grads)
            expected = array.astype("float64") * min(1.0, most / (exact + 1e-6))
            rtol = 2e-3 if array.dtype == "float16" else 1e-6
            np.testing.assert_allclose(values(parameter.grad), expected, rtol=rtol, atol=1e-45)
        for alias, array in zip(aliases, arrays, strict=True):
            np.testing.assert_array_equal(values(alias), array)


def test_clip_grad_value(backend: Any) -> None:
    z = wg.asarray([3 + 4j, 1j], dtype="complex64")
    assert nn.utils.get_total_norm([z, wg.asarray([1.0])]).item() == pytest.approx(27**0.5)
    far = wg.asarray([complex(1, 2), complex(np.inf, 0)], dtype="complex64")
    assert nn.utils.get_total_norm([far, z]).item() == np.inf  # and inf * 0j is nan
    parameters, arrays = gradients()
    nn.utils.clip_grad_value_(parameters, 0.3)
    for parameter, array in zip(parameters, arrays, strict=False):
        np.testing.assert_allclose(values(parameter.grad), np.clip(array, -0.3, 0.3))


@pytest.mark.oracle
def test_utilities_are_pytorchs() -> None:
    """At numbers that are not finite, too."""
    torch = pytest.importorskip("torch")
    arrays = [np.asarray([[1.0, -2.0], [math.inf, 0.5]]), np.asarray([math.nan, -math.inf, 0.1])]
    found = []
    for lib, make in ((nn, wg.asarray), (torch.nn, torch.tensor)):
        held = [lib.Parameter(make(np.zeros_like(a))) for a in arrays]
        for parameter, array in zip(held, arrays, strict=True):
            parameter.grad = make(array)
        norms = [
            lib.utils.get_total_norm([make(a) for a in chosen], order)
            for chosen in (arrays, arrays[:1], [arrays[0][:1], arrays[1][2:]])
            for order in (2.0, 1.0, math.inf)
        ]
        lib.utils.clip_grad_value_(held, 0.3)
        found.append([*norms, *[p.grad for p in held]])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(values(ours), theirs.numpy(force=True), rtol=1e-12)
