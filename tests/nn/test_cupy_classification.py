"""Cross entropy in kernels of its own, on the simulation of CuPy: launches, and results."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.nn.functional as F
from tests.simulated_cupy import counting
from wengert.backends import Backend
from wengert.backends.backend import composites
from wengert.nn.kernels import cupy_classification

pytestmark = [pytest.mark.simulated, pytest.mark.usefixtures("backend")]

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(7, 5)) * 3
TARGET = np.asarray([0, 4, 2, 3, 2, 1, 0])
WRONG = np.asarray([0, 4, 5, 3, -1, 1, 2])


def _parts(backend: Backend, x: Any, target: Any, **options: Any) -> tuple[Any, Any]:
    """What the kernels compute, and what they stand for."""
    found = backend.namespace.softmax_cross_entropy_parts(x, target, **options)
    forward = composites["softmax_cross_entropy_parts"]
    return found, forward(backend.namespace, x, target, **options)


def _close(backend: Backend, found: Any, wanted: Any) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        rounding = 8 * float(np.finfo(one.dtype).eps)
        np.testing.assert_allclose(
            backend.to_numpy(one), backend.to_numpy(other), rtol=rounding, atol=rounding
        )


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("ignored", [-100, 2, 5])
@pytest.mark.parametrize("target", [TARGET, WRONG], ids=["right", "wrong"])
@pytest.mark.parametrize("many", [False, True])
def test_kernels_compute_what_they_stand_for(
    backend: Backend,
    monkeypatch: pytest.MonkeyPatch,
    dtype: str,
    reduction: str,
    smoothing: float,
    ignored: int,
    target: Any,
    many: bool,
) -> None:
    if many:
        monkeypatch.setattr(cupy_classification, "FEW", 4)
    x, classes = backend.from_numpy(LOGITS.astype(dtype)), backend.from_numpy(target)
    options = {"ignore_index": ignored, "reduction": reduction, "label_smoothing": smoothing}
    _close(backend, *_parts(backend, x, classes, **options))


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_rows_without_a_finite_sum_and_of_large_numbers(
    backend: Backend, reduction: str, smoothing: float
) -> None:
    rows = np.asarray([
        [1e300, -1e300, 0.0],
        [1000.0, 1001.0, 999.0],
        [np.nan, 0.0, 1.0],
        [0.0, np.nan, 1.0],
        [np.inf, 0.0, 1.0],
        [-np.inf, 0.0, 1.0],
        [-np.inf, -np.inf, -np.inf],
    ])  # fmt: skip
    target = np.asarray([0, 1, 2, 0, 0, 1, 2])
    options = {"ignore_index": 7, "reduction": reduction, "label_smoothing": smoothing}
    for few in (slice(0, 2), slice(5, 6), slice(0, 7)):
        x, classes = backend.from_numpy(rows[few]), backend.from_numpy(target[few])
        _close(backend, *_parts(backend, x, classes, **options))


def test_none_of_the_rows_counts_or_there_is_none(backend: Backend) -> None:
    options: dict[str, Any] = {"ignore_index": 1, "label_smoothing": 0.0}
    x, target = backend.from_numpy(LOGITS), backend.from_numpy(np.ones(7, np.int64))
    for reduction in ("mean", "sum", "none"):
        for part in (slice(0, 7), slice(0, 0)):
            found, wanted = _parts(backend, x[part], target[part], reduction=reduction, **options)
            _close(backend, found, wanted)
            assert not backend.to_numpy(found[1]).any()


def test_arrays_in_any_order(backend: Backend) -> None:
    options = {"ignore_index": 4, "reduction": "mean", "label_smoothing": 0.2}
    x = backend.from_numpy(np.ascontiguousarray(RNG.normal(size=(5, 14))))
    target = backend.from_numpy(np.repeat(TARGET, 2))
    _close(backend, *_parts(backend, x.T[::2], target[::2], **options))


def test_numbers_that_round_to_others_in_float32_are_told_apart(backend: Backend) -> None:
    """Classes and ``ignore_index`` are integers in the kernels, as they are in the composite."""
    x = backend.from_numpy(LOGITS.astype(np.float32))
    target = backend.from_numpy(np.asarray([0, 1, 2, 2**53 + 1, 3, 4, 0]))
    for ignored in (2**53, 2**53 + 1):
        options = {"ignore_index": ignored, "reduction": "mean", "label_smoothing": 0.0}
        found, wanted = _parts(backend, x, target, **options)
        _close(backend, found, wanted)
        assert np.isnan(backend.to_numpy(found[0])) == (ignored == 2**53)


LAUNCHES = {
    ("none", False): {"softmax_cross_entropy": 1},
    ("sum", False): {"softmax_cross_entropy": 1, "sum": 1},
    ("mean", False): {"softmax_cross_entropy": 1, "softmax_cross_entropy_mean": 1},
    ("mean", True): {
        "softmax_cross_entropy": 1,
        "cupy_not_equal": 1,
        "sum": 2,
        "cupy_true_divide": 1,
    },
}


@pytest.mark.parametrize(("reduction", "many"), LAUNCHES)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_launches(
    monkeypatch: pytest.MonkeyPatch, reduction: str, many: bool, compiled: bool
) -> None:
    if many:
        monkeypatch.setattr(cupy_classification, "FEW", 4)
    x = wg.asarray(LOGITS, dtype="float32", requires_grad=True)
    target = wg.asarray(TARGET)

    def loss(x: wg.Tensor, target: wg.Tensor) -> wg.Tensor:
        return F.cross_entropy(x, target, reduction=reduction)

    run = wg.compile(loss) if compiled else loss
    for _ in range(3):
        run(x, target)
    with counting() as counts:
        run(x, target)
    assert dict(counts.launches) == LAUNCHES[reduction, many]
    assert not counts.synchronisations
    assert not counts.copies


@pytest.mark.parametrize("classes", [128, 129])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_long_rows_are_composed_and_fused_as_other_calls(classes: int, compiled: bool) -> None:
    logits = RNG.normal(size=(6, classes))
    target = RNG.integers(0, classes, 6)

    def slopes(x: wg.Tensor, y: wg.Tensor) -> Any:
        return wg.func.value_and_grad(lambda x: F.cross_entropy(x, y))(x)

    run = wg.compile(slopes) if compiled else slopes
    given = wg.asarray(logits), wg.asarray(target)
    for _ in range(3):
        value, slope = run(*given)
    with counting() as counts:
        run(*given)
    own = classes == 128
    assert ("softmax_cross_entropy" in counts.launches) == own
    if compiled:
        # One of them multiplies the slope by a cotangent of ones, which stays an array.
        assert sum(counts.launches.values()) == (3 if own else 9)
    z = logits - logits.max(1, keepdims=True)
    probs = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    wanted = -np.log(probs[np.arange(6), target]).mean()
    probs[np.arange(6), target] -= 1
    np.testing.assert_allclose(value.numpy(), wanted, rtol=1e-14)
    np.testing.assert_allclose(slope.numpy(), probs / 6, rtol=1e-12, atol=1e-16)


def test_the_second_derivative_is_that_of_the_softmax() -> None:
    x, y = wg.asarray(LOGITS[:1]), wg.asarray(TARGET[:1])
    found = wg.func.hessian(lambda x: F.cross_entropy(x, y))(x)
    probs = np.exp(LOGITS[0]) / np.exp(LOGITS[0]).sum()
    wanted = np.diag(probs) - np.outer(probs, probs)
    np.testing.assert_allclose(found.numpy().reshape(5, 5), wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_class_that_there_is_not_has_no_finite_derivative(
    backend: Backend, reduction: str, dtype: str
) -> None:
    x, target = backend.from_numpy(LOGITS.astype(dtype)), backend.from_numpy(WRONG)
    options = {"ignore_index": -1, "reduction": reduction, "label_smoothing": 0.0}
    for _, slope in _parts(backend, x, target, **options):
        wrong = np.isnan(backend.to_numpy(slope)).all(axis=1)
        assert wrong.tolist() == (WRONG == 5).tolist()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_row_that_there_is_not_is_nan(compiled: bool) -> None:
    """CuPy itself takes indices modulo the length."""
    wrong = (WRONG < 0) | (WRONG >= 5)

    def given(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
        return wg.sum(F.embedding(y, x[:5]), axis=1)

    run = wg.compile(given) if compiled else given
    for dtype in ("float32", "float64"):
        x, y = wg.asarray(LOGITS.astype(dtype)), wg.asarray(WRONG)
        with counting() as counts:
            found = run(x, y)
        assert not counts.synchronisations
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(np.isnan(found.numpy()), wrong)
        with wg.use_backend("numpy"):
            wanted = given(wg.asarray(LOGITS.astype(dtype)), wg.asarray(np.where(wrong, 0, WRONG)))
        np.testing.assert_allclose(found.numpy()[~wrong], wanted.numpy()[~wrong], rtol=1e-5)


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_of_a_class_that_there_is_not_is_nan(
    weighted: bool, smoothing: float, twice: bool
) -> None:
    x = wg.tensor(LOGITS.astype("float32"), requires_grad=True)
    weight = wg.ones(5, dtype="float32") if weighted else None
    options = {"ignore_index": -1, "reduction": "sum", "label_smoothing": smoothing}
    loss = F.cross_entropy(x, wg.tensor(WRONG), weight, **options)
    assert loss.dtype == x.dtype
    (found,) = wg.autograd.grad(loss, x, create_graph=twice)
    wrong = np.isnan(found.detach().numpy())
    np.testing.assert_array_equal(wrong, np.repeat(WRONG[:, None] == 5, 5, axis=1))
