"""Initialisers and utilities."""

import math
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert import nn
from wengert.nn import init


def values(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach().numpy())


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
        (lambda: init.trunc_normal_(wg.ones(2), 0, 1, 2, 1), "a below b"),
        (lambda: init.trunc_normal_(wg.ones(2), 0, 1, 100, 101), "no share in"),
        (
            lambda: init.trunc_normal_(wg.ones(2, dtype="complex64")),
            "has no order",
        ),
    ],
)
def test_what_does_not_fit_is_told(call: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
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


def test_fans_of_kernels() -> None:
    tensor = wg.empty(8, 4, 3, 3)
    bound = math.sqrt(6 / ((4 + 8) * 9))
    assert abs(values(init.xavier_uniform_(tensor))).max() <= bound


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "param"),
    [
        *((name, None) for name in ("linear", "conv2d", "sigmoid", "tanh", "relu", "selu")),
        ("leaky_relu", None),
        ("leaky_relu", 0.3),
    ],
)
def test_calculate_gain(name: str, param: Any) -> None:
    torch = pytest.importorskip("torch")
    assert init.calculate_gain(name, param) == torch.nn.init.calculate_gain(name, param)


def test_gains() -> None:
    """PyTorch's documentation has them: those that keep the variance of standard normal numbers."""
    expected = {"linear": 1, "conv2d": 1, "sigmoid": 1, "tanh": 5 / 3, "relu": 2**0.5, "selu": 0.75}
    assert {name: init.calculate_gain(name) for name in expected} == expected
    assert init.calculate_gain("leaky_relu", 0.3) == pytest.approx((2 / (1 + 0.3**2)) ** 0.5)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="Unsupported nonlinearity sine"):
        init.calculate_gain("sine")
    with pytest.raises(ValueError, match="not a valid number"):
        init.calculate_gain("leaky_relu", "x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        init.xavier_normal_(wg.empty(3))
    with pytest.raises(ValueError, match="Mode sideways"):
        init.kaiming_normal_(wg.empty(3, 3), mode="sideways")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"not wengert\.int64"):
        init.uniform_(wg.zeros(3, dtype=wg.int64))
    x = wg.ones(2).requires_grad_()
    with pytest.raises(RuntimeError, match="in-place"):
        init.zeros_(x * 2)


# -- utilities -------------------------------------------------------------------------------------


def gradients() -> tuple[list[nn.Parameter], list[np.ndarray]]:
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=(3, 2)), rng.normal(size=4)]
    parameters = [nn.Parameter(wg.asarray(np.zeros_like(a))) for a in arrays]
    for parameter, array in zip(parameters, arrays, strict=True):
        parameter.grad = wg.asarray(array)
    return [*parameters, nn.Parameter(wg.zeros(1))], arrays


@pytest.mark.oracle
@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.5, math.inf, 0.0, -1.0, -math.inf])
@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_clip_grad_norm(backend: Any, norm_type: float, max_norm: float) -> None:
    torch = pytest.importorskip("torch")
    parameters, arrays = gradients()
    held = parameters[0].grad
    before = values(held).copy()
    alias = held.detach()
    theirs = [torch.zeros(a.shape, requires_grad=True, dtype=torch.float64) for a in arrays]
    for parameter, array in zip(theirs, arrays, strict=True):
        parameter.grad = torch.tensor(array)
    expected = torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type)
    total = nn.utils.clip_grad_norm_(parameters, max_norm, norm_type)
    np.testing.assert_allclose(total.item(), expected.item(), rtol=1e-10)
    for ours, other in zip(parameters, theirs, strict=False):
        np.testing.assert_allclose(values(ours.grad), other.grad.numpy(), rtol=1e-10)
    assert parameters[0].grad is held
    np.testing.assert_array_equal(values(alias), before)


@pytest.mark.parametrize("norm_type", [1.0, 2.0, np.inf])
@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_clip_grad_norm_by_formula(backend: Any, norm_type: float, max_norm: float) -> None:
    arrays = [np.array([[0.5, -2.0], [1.5, 0.25]]), np.array([-3.0, 1.0])]
    parameters = [nn.Parameter(wg.zeros(each.shape, dtype=wg.float64)) for each in arrays]
    for parameter, array in zip(parameters, arrays, strict=True):
        parameter.grad = wg.asarray(array.copy())
    total = np.linalg.norm(np.concatenate([each.reshape(-1) for each in arrays]), norm_type)
    found = nn.utils.clip_grad_norm_(parameters, max_norm, norm_type)
    assert found.item() == pytest.approx(total)
    for parameter, array in zip(parameters, arrays, strict=True):
        scale = min(1.0, max_norm / (total + 1e-6))
        np.testing.assert_allclose(parameter.grad.numpy(), array * scale, rtol=1e-12)


@pytest.mark.parametrize("norm_type", [2.0, 3.0])
@pytest.mark.parametrize("size", [300.0, 6e4, 1e-4])
def test_gradients_of_half_precision_are_clipped_by_their_norm(
    size: float, norm_type: float
) -> None:
    """Their squares and sums are those of float32: no gradient becomes 0 for a scale that is."""
    a = np.asarray([size, -size / 2, size], "float16")
    parameter = nn.Parameter(wg.zeros(3, dtype="float16"))
    parameter.grad = wg.asarray(a)
    total = nn.utils.clip_grad_norm_(parameter, 1.0, norm_type)
    expected = (np.abs(a.astype("float64")) ** norm_type).sum() ** (1 / norm_type)
    assert total.item() == pytest.approx(expected, rel=1e-6)
    assert parameter.grad.dtype is wg.float16
    scale = min(1, 1 / (expected + 1e-6))
    np.testing.assert_allclose(values(parameter.grad), a * scale, rtol=2e-3)


SIZES = {
    "usual": ([1.5, -2.0], [0.25]),
    "large": ([1e20, -2e20], [3e19]),
    "small": ([1e-30, 2e-30], [1e-31]),
    "far apart": ([1e25, 1e-25], [3.0]),
    "zeros": ([0.0, 0.0], [0.0]),
    "one of zeros": ([3.0, 4.0], [0.0]),
}


@pytest.mark.parametrize("dtypes", [("float32", "float32"), ("float64", "float32")])
@pytest.mark.parametrize("name", SIZES)
def test_the_squares_of_gradients_neither_overflow_nor_vanish(
    backend: Any, name: str, dtypes: tuple[str, str]
) -> None:
    arrays = [np.asarray(a, dtype) for a, dtype in zip(SIZES[name], dtypes, strict=True)]
    parameters = [nn.Parameter(wg.zeros(a.shape, dtype=a.dtype.name)) for a in arrays]
    for parameter, array in zip(parameters, arrays, strict=True):
        parameter.grad = wg.asarray(array.copy())
    exact = np.linalg.norm(np.concatenate([a.astype("float64") for a in arrays]))
    total = nn.utils.clip_grad_norm_(parameters, 0.5)
    np.testing.assert_allclose(total.item(), exact, rtol=1e-6)
    for parameter, array in zip(parameters, arrays, strict=True):
        assert parameter.grad.dtype == array.dtype.name
        scale = min(1.0, 0.5 / (exact + 1e-6))
        expected = (array * scale).astype(array.dtype)
        np.testing.assert_allclose(values(parameter.grad), expected, rtol=1e-6)


def test_the_norm_of_complex_gradients() -> None:
    z = wg.asarray([3 + 4j, 1j], dtype="complex64")
    assert nn.utils.get_total_norm([z, wg.asarray([1.0])]).item() == pytest.approx(27**0.5)


@pytest.mark.parametrize("size", [1.0, 1e20, 1e-30])
def test_a_compiled_step_clips_to_the_same_digits(size: float) -> None:
    with wg.use_backend("numpy"):
        rng = np.random.default_rng(3)
        held = [rng.normal(size=s).astype("float32") for s in ((30, 7), (4,), (3, 5))]
        found = []
        for wrap in (lambda f: f, wg.compile):
            parameters = [nn.Parameter(wg.zeros(a.shape)) for a in held]

            def step(*given: Any, parameters: Any = parameters) -> Any:
                for p, g in zip(parameters, given, strict=True):
                    p.grad = g * size
                return nn.utils.clip_grad_norm_(parameters, size / 2), [p.grad for p in parameters]

            run = wrap(step)
            for _ in range(3):
                total, grads = run(*[wg.asarray(a) for a in held])
            found.append([x.numpy().tobytes() for x in (total, *grads)])
        assert found[0] == found[1]


def test_clip_grad_norm_of_what_is_not_finite() -> None:
    parameter = nn.Parameter(wg.zeros(2))
    parameter.grad = wg.asarray([1.0, math.inf])
    assert nn.utils.clip_grad_norm_(parameter, 1.0).item() == math.inf
    assert wg.all(wg.isnan(parameter.grad)).item()
    assert nn.utils.clip_grad_norm_([nn.Parameter(wg.zeros(2))], 1.0).item() == 0


def test_clip_grad_value(backend: Any) -> None:
    parameters, arrays = gradients()
    nn.utils.clip_grad_value_(parameters, 0.3)
    for parameter, array in zip(parameters, arrays, strict=False):
        np.testing.assert_allclose(values(parameter.grad), np.clip(array, -0.3, 0.3))


def test_the_norm_of_no_numbers_is_zero() -> None:
    empty = nn.Parameter(wg.zeros((0, 3)))
    empty.grad = wg.zeros((0, 3))
    for given in ([], [empty]):
        assert nn.utils.get_total_norm(given).item() == 0.0
        assert nn.utils.clip_grad_norm_(given, 1.0).item() == 0.0


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
        vector = lib.utils.parameters_to_vector(held)
        lib.utils.vector_to_parameters(vector + make(np.arange(7.0)), held)
        found.append([*norms, *[p.grad for p in held], vector, *held])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(values(ours), theirs.numpy(force=True), rtol=1e-12)


def test_parameters_as_a_vector(backend: Any) -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert vector.shape == (11,)
    assert vector.requires_grad
    nn.utils.vector_to_parameters(vector * 2, net.parameters())
    assert all(p.is_leaf and p.requires_grad for p in net.parameters())
    np.testing.assert_array_equal(
        values(nn.utils.parameters_to_vector(net.parameters())), 2 * values(vector)
    )
    with pytest.raises(ValueError, match="11 elements"):
        nn.utils.vector_to_parameters(vector[:5], net.parameters())
    with pytest.raises(TypeError, match="expected a Tensor"):
        nn.utils.vector_to_parameters([1.0], net.parameters())  # type: ignore[arg-type]
