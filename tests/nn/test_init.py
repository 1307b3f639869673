"""Initialisers."""

import math
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.nn.twins import values
from tests.walking import refusals, refuse, walk
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


#: Calls, their errors, and what these say.
REFUSED = r"""
init.uniform_(wg.ones(3), 1, 0) | ValueError | a=1 is above b=0
init.uniform_(wg.ones(3), math.nan, 0) | ValueError | a=nan is above
init.xavier_uniform_(wg.ones((3, 3)), -1) | ValueError | is above b=
init.normal_(wg.ones(3), 0, -1) | ValueError | deviation of 0 or more, and std=-1
init.orthogonal_(wg.ones(3)) | ValueError | orthogonal_ needs 2 axes or more
init.calculate_gain("sine") | ValueError | Unsupported nonlinearity sine
init.calculate_gain("conv4d") | ValueError | Unsupported nonlinearity conv4d
init.calculate_gain("leaky_relu", "x") | ValueError | not a valid number
init.xavier_normal_(wg.empty(3)) | ValueError | fewer than 2 dimensions
init.kaiming_normal_(wg.empty(3, 3), mode="sideways") | ValueError | Mode sideways
init.uniform_(wg.zeros(3, dtype=wg.int64)) | TypeError | not wengert\.int64
init.zeros_(wg.ones(2).requires_grad_() * 2) | RuntimeError | in-place
init.trunc_normal_(wg.ones(2), 0, 1, 2, 1) | ValueError | a below b
init.trunc_normal_(wg.ones(2), 0, 1, 100, 101) | ValueError | no share in
init.trunc_normal_(wg.ones(2, dtype="complex64")) | TypeError | has no order
"""


def test_what_does_not_fit_is_told() -> None:
    walk(refusals(REFUSED), refuse(init=init, math=math), whole=True)


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
