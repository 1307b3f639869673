"""Functions that square and take roots, of numbers whose squares leave the range."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.backends import Backend, namespaces
from wengert.ops.shares import divide

F = wg.nn.functional
POINT = np.asarray([[1.0, -2.0, 3.0, 0.5], [2.0, 1.0, -1.0, 4.0]])
OTHER = np.asarray([[0.5, 1.0, 2.0, -1.0], [1.0, 3.0, 1.0, 1.0]])
SHARES = np.asarray([[1.0, 0.5, -0.25, 2.0], [0.25, -1.0, 0.5, 1.0]])


#: Functions of numbers whose scale changes nothing.
FUNCTIONS = {
    "layer_norm": lambda x: F.layer_norm(x, 4, eps=0.0),
    "rms_norm": lambda x: F.rms_norm(x, 4, eps=0.0),
    "group_norm": lambda x: F.group_norm(x, 2, eps=0.0),
    "instance_norm": lambda x: F.instance_norm(x[None], eps=0.0),
    "batch_norm": lambda x: F.batch_norm(x.T, None, None, training=True, eps=0.0),
    "normalize": lambda x: F.normalize(x, eps=0.0),
    "cosine_similarity": lambda x: F.cosine_similarity(
        x, wg.asarray(OTHER, dtype=x.dtype), eps=0.0
    ),
    "normalize of order 3": lambda x: F.normalize(x, 3.0, eps=0.0),
    "weight_norm": lambda x: x / wg.nn.utils.parametrizations._WeightNorm(0)._norm(x),
    "corrcoef": lambda x: np.corrcoef(x),
}
SCALES = {"float64": (1e160, 1e-160, 1e-170), "float32": (1e20, 1e-25)}


def value_and_slope(function, point, dtype):
    x = wg.asarray(point, dtype=dtype).requires_grad_()
    y = function(x)
    weights = SHARES.reshape(-1)[: y.size].reshape(y.shape)
    y.backward(wg.asarray(weights, dtype=dtype))
    return [np.asarray(v.detach().tolist()) for v in (y, x.grad)]


@pytest.mark.filterwarnings("ignore:(overflow|underflow|invalid|divide):RuntimeWarning")
def test_the_scale_of_the_numbers_costs_no_digits(backend: Backend) -> None:
    wrong = []
    for name, function in FUNCTIONS.items():
        for dtype, scales in SCALES.items():
            if name == "corrcoef" and backend.name != "numpy":
                continue
            right, slope = value_and_slope(function, POINT, dtype)
            for scale in scales:
                found, steep = value_and_slope(function, POINT * scale, dtype)
                fine = {"rtol": 1e-4, "atol": 1e-5} if dtype == "float32" else {"atol": 1e-9}
                same = np.allclose(found, right, **fine)
                if not (same and np.allclose(steep * scale, slope, **fine)):
                    wrong.append((name, dtype, scale))
    assert wrong == []


#: Functions of vectors whose norms are outside the range.
UNITS = {
    "normalize": lambda x: F.normalize(x),
    "normalize, by sums": lambda x: F.normalize(x, 1.0),
    "normalize, by cubes": lambda x: F.normalize(x, 3.0),
    "normalize, by roots": lambda x: F.normalize(x, 0.25),
    "cosine_similarity": lambda x: F.cosine_similarity(x, wg.asarray([[1.0, 2.0]], dtype=x.dtype)),
    "weight_norm": lambda x: wg.nn.utils.parametrizations._WeightNorm(0)(wg.ones_like(x[:, :1]), x),
}


@pytest.mark.filterwarnings("ignore:(overflow|underflow|invalid|divide):RuntimeWarning")
@pytest.mark.parametrize("compiled", [False, True])
def test_norms_outside_the_range_divide(backend: Backend, compiled: bool) -> None:
    """Against numbers of scale 1 in double precision: slopes are theirs over the scale."""
    scales = {"float64": 2.0**1023, "float32": 2.0**127, "float16": 2.0**15}
    point = np.asarray([[1.9375, 1.5]])  # of norm 2.45, and numbers end below 2
    for dtype, scale in scales.items():
        if dtype == "float16" and not hasattr(backend.xp, dtype):
            continue
        for name, function in UNITS.items():
            double = dtype == "float64"
            if name == "weight_norm" and dtype != "float16":
                continue
            flushed = name in ("normalize", "cosine_similarity")
            if flushed and backend.name == "jax" and dtype != "float16":
                continue  # XLA flushes the reciprocal of the root or of the largest: nan

            def both(x: Any, g: Any, function: Any = function) -> Any:
                y, pull = wg.vjp(function, x)
                return y, *pull(g)

            run = wg.compile(both) if compiled else both
            right, slope = value_and_slope(function, point, "float64")
            # Slopes of single precision are subnormal, and those of half precision nearly so.
            gain = 2.0**-3 if dtype != "float16" else 2.0**10
            weights = SHARES.reshape(-1)[: np.size(right)].reshape(np.shape(right)) * gain
            x = wg.asarray(point * scale, dtype=dtype)
            y, g = run(x, wg.asarray(weights, dtype=dtype))
            fine = 1e-12 if double else 1e-6 if dtype == "float32" else 1e-3
            np.testing.assert_allclose(y.tolist(), right, rtol=fine, err_msg=name)
            steep = np.asarray(g.tolist()) * scale / gain
            step = float(wg.finfo(dtype).smallest_normal * wg.finfo(dtype).eps) * scale / gain
            if backend.name == "jax" and dtype != "float16":
                continue  # XLA flushes subnormal numbers to 0
            np.testing.assert_allclose(steep, slope, rtol=4 * fine, atol=2 * step, err_msg=name)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_no_weights_and_gradients_are_0_for_an_infinite_norm(backend: Backend) -> None:
    for dtype, large in (("float64", 2.0**1023), ("float32", 2.0**127)):
        x = wg.full((2, 4), large, dtype=dtype).requires_grad_()
        weights = UNITS["weight_norm"](x)
        assert all(np.isnan(weights.tolist()).reshape(-1))
        x.grad = x.detach().clone()
        assert wg.nn.utils.clip_grad_norm_(x, 1.0).item() == np.inf
        assert all(np.isnan(x.grad.tolist()).reshape(-1))


def test_what_overflows_has_no_slope_of_0(backend: Backend) -> None:
    for function in (wg.linalg.vector_norm, lambda x: wg.hypot(x[0], x[1])):
        x = wg.asarray([1.7e308, 1.7e308], dtype="float64").requires_grad_()
        with np.errstate(all="ignore"):
            function(x).backward()
            assert np.isnan(x.grad.numpy()).all()


def test_training_meets_no_nan_where_a_norm_is_0(backend: Backend) -> None:
    """First derivatives alone, through a graph that could be differentiated again."""
    x = wg.zeros((2, 3), dtype="float64").requires_grad_()
    y = wg.sum(wg.linalg.vector_norm(x, axis=1)) + wg.std(x) + wg.hypot(x[0, 0], x[0, 1])
    (g,) = wg.autograd.grad(y, x, create_graph=True)
    assert not np.asarray(g.tolist()).any()
    penalty = wg.sum((wg.linalg.vector_norm(x * x, axis=1) - 1) ** 2)
    penalty.backward()
    assert not np.asarray(x.grad.tolist()).any()
    wg.nn.utils.clip_grad_norm_([x], 1.0)
    assert not np.asarray(x.grad.tolist()).any()


#: Norms of two numbers.
NORMS = {
    "norm": wg.linalg.vector_norm,
    "norm of order 3": lambda x: wg.linalg.vector_norm(x, ord=3),
    "matrix_norm": lambda x: wg.linalg.matrix_norm(x[None]),
    "nuc": lambda x: wg.linalg.matrix_norm(x[None], ord="nuc"),
    "std": wg.std,
    "moduli": lambda x: wg.linalg.vector_norm(wg.abs(x + 0j)),
    "hypot": lambda x: wg.hypot(*x),
    "modulus": lambda x: wg.abs(x[0] + 1j * x[1]),
}
SMOOTH = [lambda d: wg.exp(-d * d), wg.cos, wg.square, lambda d: d]


@pytest.mark.filterwarnings("ignore:(invalid|divide):RuntimeWarning")
@pytest.mark.parametrize(
    ("name", "kind"), [*((n, "float64") for n in NORMS), *((n, "complex128") for n in [*NORMS][:6])]
)
def test_smooth_functions_of_a_norm_have_no_finite_second_derivative_at_0(backend, name, kind):
    """In no part of a complex number, either: 0 is wrong."""
    x, t = (wg.asarray(v, dtype=kind) for v in ([0, 0], [1.5, -2.0 if kind[0] == "f" else -2j]))
    for smooth in SMOOTH:

        def f(x, smooth=smooth):
            return smooth(NORMS[name](x))

        for second in (
            wg.hvp(f, (x,), (t,))[0],
            wg.jvp(wg.grad(f), (x,), (t,))[1],
            wg.jvp(lambda x, f=f: wg.jvp(f, (x,), (t,))[1], (x,), (t,))[1],
        ):
            parts = np.asarray(second.tolist())
            assert np.isnan([parts.real, parts.imag] if second.dtype.complex else parts).all()


def test_second_derivative_of_a_quotient_whose_slope_underflows() -> None:
    """log1p(x * x) of 99.8: the slope of 1 / (1 + x * x) there is 1e-8."""
    x = wg.asarray(-99.8, dtype="float16")
    gradient = wg.grad(lambda x: wg.log1p(wg.square(x)))
    bound = 2 * 99.8125 * 2.0**-25  # a cotangent of 2e-6 is rounded to a multiple of 2**-24
    for found in (wg.jvp(gradient, (x,), (wg.ones_like(x),))[1], wg.grad(gradient)(x)):
        assert abs(found.item() + 2.00692e-4) < bound


def test_a_cotangent_that_cancels_meets_no_infinity(backend: Backend) -> None:
    """Of ``|x - x + eps|`` both sides' shares cancel; the weight over the norm is out of range."""
    x, u = (wg.asarray([value], dtype="float32") for value in (1.5e10, 2.0**33))

    def f(x: Any) -> Any:
        return wg.linalg.vector_norm(x - x + 1e-30, axis=-1) * 1e32

    assert wg.jvp(wg.grad(f), (x,), (u,))[1].item() == 0
    assert wg.grad(lambda x: wg.sum(wg.grad(f)(x) * u))(x).item() == 0


def test_a_small_weight_of_a_large_norm_keeps_its_digits() -> None:
    """A weight over the norm is subnormal, and the direction over the norm is not."""

    def f(x: Any) -> Any:
        return wg.linalg.vector_norm(x) * 6.9e-22

    found = []
    for dtype in ("float32", "float64"):
        x, u = (wg.asarray(v, dtype=dtype) for v in ([-6e20, 1e21, -9e20], [1e12, 3e12, -2e12]))
        found += [wg.jvp(wg.grad(f), (x,), (u,))[1].numpy()]
        found += [wg.grad(lambda x, u=u: wg.sum(wg.grad(f)(x) * u))(x).numpy()]
    np.testing.assert_allclose(found[:2], found[2:], rtol=1e-5)


@pytest.mark.parametrize(("size", "g"), [(1e-6, 1e35), (1e5, 1e-37)])
def test_a_cotangent_of_a_norm_may_leave_the_range_when_divided_by_it(size, g) -> None:
    x = wg.tensor(np.asarray([1, 2, -2], np.float32) * np.float32(size), requires_grad=True)
    wg.linalg.vector_norm(x).backward(wg.tensor(np.float32(g)))
    expected = np.asarray([1, 2, -2]) / 3 * np.float32(g)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=3e-7)


def test_shares_have_the_dtype_that_is_asked_for() -> None:
    xp = namespaces[np.ndarray]
    for kind, wider in (
        ("float32", "float64"),
        ("float16", "float64"),
        ("complex64", "complex128"),
    ):
        x = np.ones(2, kind)
        for dtype in (None, np.dtype(wider)):
            found = divide(xp, x, 1000, dtype)
            assert found.dtype == (x.dtype if dtype is None else dtype)
