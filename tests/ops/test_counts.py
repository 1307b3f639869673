"""Half precision: what is counted, and divided by counts, in more places than its numbers reach."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.backends import Backend

F = wg.nn.functional

#: More than float16's largest number, 65504.
N = 70_000
_RANDOM = np.random.default_rng(0)
_CLASSES = _RANDOM.integers(0, 3, N)
_ONES, _ROWS = np.ones(N), _RANDOM.standard_normal((N, 3))
_LINE = np.where(_RANDOM.random(N) < 0.5, 1.0, 2.0)


def _classes() -> Any:
    return wg.asarray(_CLASSES)


def _weight(x: Any) -> Any:
    return wg.asarray([1.0, 2.0, 3.0], dtype=x.dtype)


def _everywhere(x: Any) -> Any:
    return wg.ones_like(x, dtype="bool")


#: By name, a function and the numbers that it gets.
CASES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "mean": (wg.mean, 300 * _ONES),
    "max": (wg.max, _ONES),
    "min": (lambda x: wg.min(x, axis=0), np.stack([_ONES, 2 * _ONES], 1)),
    "softmax": (wg.softmax, _ONES),
    "softmax of columns": (lambda x: wg.softmax(x, axis=0), np.stack([_LINE, _ONES], 1)),
    "log_softmax": (lambda x: wg.log_softmax(x, axis=0), np.stack([_LINE, _ONES], 1)),
    "logsumexp": (lambda x: wg.logsumexp(x, axis=0), np.stack([_LINE, _ONES], 1)),
    "logsumexp at inf": (wg.logsumexp, math.inf * _ONES),
    "sum of columns": (lambda x: wg.sum(x, axis=0), np.stack([_ONES, _LINE], 1) / 8),
    "cumulative_sum": (wg.cumulative_sum, _ONES / 8),
    "take": (lambda x: wg.take(x, wg.zeros(30_000, dtype="int64")), np.ones(1)),
    "cross_entropy": (lambda x: F.cross_entropy(x, _classes()), _ROWS),
    "cross_entropy, smooth": (
        lambda x: F.cross_entropy(x, _classes(), _weight(x), label_smoothing=0.1),
        _ROWS,
    ),
    "cross_entropy of many classes": (
        lambda x: F.cross_entropy(x, wg.asarray([1]), label_smoothing=0.5),
        _LINE[None],
    ),
    "nll_loss": (lambda x: F.nll_loss(x, _classes()), _ROWS),
    "nll_loss, weighted": (lambda x: F.nll_loss(x, _classes(), _weight(x)), _ROWS),
    "kl_div": (lambda x: F.kl_div(x, wg.ones_like(x) / 4, reduction="batchmean"), _ROWS),
    "mse_loss": (lambda x: F.mse_loss(x, wg.zeros_like(x)), _LINE),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, N), _LINE[None, None]),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 16), np.full((1, 1, 16, 16), 300.0)),
    "avg_pool2d, step 1": (
        lambda x: F.avg_pool2d(x, 16, stride=1, padding=3, count_include_pad=False),
        _LINE[:900].reshape(1, 1, 30, 30) * 300,
    ),
    "adaptive_avg_pool1d": (lambda x: F.adaptive_avg_pool1d(x, 3), _LINE[None, None]),
    "np.mean": (lambda x: np.mean(x, where=_everywhere(x)), _LINE),
    "np.var": (lambda x: np.var(x, where=_everywhere(x)), np.where(_LINE > 1, 3.0, 0.0)),
    "np.average": (lambda x: np.average(x, weights=wg.ones_like(x)), _LINE),
    "np.cov": (lambda x: np.cov(x), np.stack([_LINE, _ONES])),
    "np.corrcoef": (lambda x: np.corrcoef(x), np.stack([_LINE, _ROWS[:, 0]])),
}

_VALUES = np.round(np.linspace(64, 192, 128)) / 256


def _even(shape: Any) -> Any:
    """Cotangents and tangents, which a half holds exactly."""
    return np.resize(_VALUES, shape)


def _modes(f: Callable[[Any], Any], x: Any) -> dict[str, Any]:
    """The value, and the derivatives backward and forward."""
    y, pull = wg.vjp(f, x)
    g = wg.asarray(_even(y.shape) / max(y.size, 1) ** 0.5, dtype=y.dtype)
    _, moved = wg.jvp(f, (x,), (wg.asarray(_even(x.shape), dtype=x.dtype),))
    (back,) = pull(g)
    return {"value": y, "backward": back, "forward": moved}


def _numbers(x: Any) -> Any:
    return wg.astype(x, "float64").numpy()


def _wrong(name: str, dtype: str, modes: Callable[..., Any] = _modes) -> Iterator[str]:
    """In which modes half precision is farther from float64 than its rounding explains."""
    f, values = CASES[name]
    x = wg.asarray(values, dtype=dtype)
    found, right = modes(f, x), modes(f, wg.astype(x, "float64"))
    info = wg.finfo(x.dtype)
    for mode, wanted in right.items():
        a, b = _numbers(found[mode]), _numbers(wanted)
        size = np.max(np.abs(b), initial=0.0, where=np.isfinite(b))
        # A few operations round, each once. Below the smallest normal number the step is fixed.
        bound = 8 * info.eps * size + 2 * info.eps * info.smallest_normal
        same = (a == b) | (np.abs(a - b) <= bound)
        if not same.all() or found[mode].dtype is not x.dtype:
            yield f"{name}, {mode}, {dtype}: {a[~same][:2]} for {b[~same][:2]}"


def _halves() -> Iterator[str]:
    for dtype in ("float16", "bfloat16"):
        try:
            wg.zeros(1, dtype=dtype)
        except TypeError:
            continue
        yield dtype


#: What has kernels of its own; the other functions are made of these, and take long on JAX.
_KERNELS = ("mean", "max", "softmax", "sum of columns", "take", "cross_entropy", "avg_pool2d")


@pytest.mark.slow
def test_half_precision_holds_no_counts(backend: Backend) -> None:
    fewer = _KERNELS[:2] if backend.name in ("jax", "dask") else _KERNELS
    names = CASES if backend.name in ("numpy", "torch") else fewer
    with np.errstate(all="ignore"):
        wrong = [each for name in names for d in _halves() for each in _wrong(name, d)]
    assert not wrong, "\n".join(wrong)


def test_second_derivatives_hold_no_counts() -> None:
    def second(f: Callable[[Any], Any], x: Any) -> dict[str, Any]:
        def along(x: Any) -> Any:
            return wg.sum(wg.grad(lambda x: wg.sum(wg.square(f(x) / 8), dtype="float32"))(x) * x)

        return {"second": wg.grad(along)(x)}

    with np.errstate(all="ignore"):
        names = ("mean", "max", "softmax of columns", "log_softmax", "logsumexp")
        wrong = [each for name in names for each in _wrong(name, "float16", second)]
    assert not wrong, "\n".join(wrong)


def test_scaled_loss_of_a_large_batch_keeps_its_gradient() -> None:
    # A share of 1 / 70000 of a small probability vanishes in float16, and not times the scale.
    logits = wg.asarray([[12.0, 0.0]] * N, dtype="float16")
    target = wg.zeros(N, dtype="int64")
    got = wg.grad(lambda x: F.cross_entropy(x, target) * 32768.0)(logits)
    p = 1 / (1 + math.exp(12))
    assert got.numpy()[0, 1] == pytest.approx(32768 * p / N, rel=2e-3, abs=2.0**-24)


def test_ties_of_values_that_come_to_one_place() -> None:
    x, value = wg.zeros(1, dtype="float16"), wg.ones(N, dtype="float16")
    places = wg.zeros(N, dtype="int64")
    got = wg.grad(lambda v: wg.sum(wg.at(x, places).max(v)))(value)
    np.testing.assert_allclose(got.numpy(), 1 / N, atol=2.0**-24)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize(("shape", "axis"), [((N,), None), ((N, 3), 0), ((3, N), 1)])
def test_many_equal_numbers_have_no_slope_of_their_deviation(backend, dtype, shape, axis) -> None:
    if dtype == "float16":
        try:
            backend.raw_dtype(wg.float16)
        except TypeError:
            pytest.skip(f"{backend.name} has no float16")
    x = wg.full(shape, 1 / 3, dtype=dtype)  # which a mean of so many rounds
    slope = wg.grad(lambda x: wg.sum(wg.std(x, axis=axis)))(x)
    _, tangent = wg.jvp(lambda x: wg.std(x, axis=axis), (x,), (wg.ones_like(x),))
    for found in (slope, tangent):
        assert not wg.any(found != 0)
