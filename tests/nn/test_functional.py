"""Layers and losses against PyTorch: values, gradients and second derivatives in float64."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.nn.twins import check_twins, values
from tests.walking import refusals, refuse, walk
from wengert import nn
from wengert.nn import functional as F

RNG = np.random.default_rng(7)
X = RNG.normal(size=(4, 3))
P = RNG.uniform(0.05, 0.95, size=(4, 3))
T = RNG.uniform(size=(4, 3))
W = RNG.uniform(0.5, 2, size=3)
LABELS = np.asarray([0, 2, 1, 2])


REDUCTIONS = ("none", "mean", "sum")
Space = dict[str, tuple[Any, ...]]
REDUCED_BY: Space = {"reduction": REDUCTIONS}
OF_CLASSES = REDUCED_BY | {"weight": (None, W)}
SMOOTHED = OF_CLASSES | {"label_smoothing": (0.0, 0.2)}
NONE = np.zeros(3), np.asarray([0.0, 1.0, 2.0])
INDEXED = [
    ((4, 3), LABELS),
    ((4, 3), np.asarray([0, -100, 1, 2])),
    ((3,), np.asarray(1)),
    ((2, 3, 2), np.asarray([[0, 2], [1, 1]])),
    ((2, 3, 2, 1), np.asarray([[[0], [2]], [[1], [1]]])),
]
IMAGE = RNG.normal(size=(2, 3, 5, 6))
WINDOWS: Space = {"dilation": ((1, 2),), "padding": ((0, 1),), "stride": ((2, 1),)}
Q = RNG.normal(size=(5, 5))


def away_from_zero(*shape: int) -> np.ndarray:
    """Vectors of one number nearly 0 have derivatives of large differences."""
    return RNG.uniform(0.5, 2, shape) * RNG.choice([-1, 1], shape)


#: Functions, their inputs, how many of these are differentiated, and the values of options.
AGAINST: list[tuple[str, list[np.ndarray], int, Space]] = [
    ("normalize", [IMAGE[0]], 1, {"p": (1.0, 2.0, 3.5, math.inf), "dim": (0, (0, -1))}),
    ("scaled_dot_product_attention", [*IMAGE[:, 0], IMAGE[0, 1], Q], 4, {}),  # a mask has one, too
    *(
        ("cosine_similarity", [away_from_zero(*s) for s in pair], 2, {"dim": (0, 1, 2, -1, -2)})
        for shape in ((3, 4), (4,), (2, 1, 4), (1, 3, 1))
        for pair in (((2, 3, 4), shape), (shape, (2, 3, 4)))
    ),
    ("unfold", [IMAGE], 1, {"kernel_size": ((2, 3),)} | WINDOWS),
    ("unfold", [IMAGE[0]], 1, {"kernel_size": ((2, 3),)} | WINDOWS),
    ("binary_cross_entropy", [P, T], 1, OF_CLASSES),
    *(
        ("binary_cross_entropy_with_logits", [x, T], 2, OF_CLASSES | {"pos_weight": (None, W + 1)})
        for x in (X, X * 300.0)
    ),
    *(
        (name, [RNG.normal(size=shape), target], 1, space | {"ignore_index": ignored})
        for name, space in (("cross_entropy", SMOOTHED), ("nll_loss", OF_CLASSES))
        for shape, target in INDEXED
        for ignored in [(-100, 2)[: 2 - (target < 0).any()]]
    ),
    *(  # targets that are ignored, and classes of no weight
        ("cross_entropy", [X[:2], np.asarray(target)], 1, SMOOTHED | {"weight": (None, *NONE)})
        for target in ([-100, -100], [0, 0], [0, -100], [0, 1])
    ),
    *(
        ("cross_entropy", [RNG.normal(size=shape), RNG.uniform(size=shape)], 2, SMOOTHED)
        for shape in ((4, 3), (3,), (2, 3, 2))
    ),
]


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:(invalid|divide):RuntimeWarning")
@pytest.mark.parametrize(("name", "inputs", "tracked", "space"), AGAINST)
def test_functions_are_pytorchs(
    backend: Any, name: str, inputs: list[np.ndarray], tracked: int, space: Space
) -> None:
    torch = pytest.importorskip("torch")

    def call(lib: Any, options: dict[str, Any], convert: Any) -> Any:
        given = {k: convert(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        return lambda *xs: getattr(lib, name)(*xs, **given)

    every = [dict(zip(space, each, strict=True)) for each in itertools.product(*space.values())]
    for options in every if backend.name == "numpy" else (every[0], every[-1]):
        ours, theirs = (
            call(F, options, wg.asarray),
            call(torch.nn.functional, options, torch.tensor),
        )
        check_twins(ours, theirs, inputs, tracked)


# -- losses ----------------------------------------------------------------------------------------


@pytest.mark.oracle
def test_binary_losses_at_their_ends(backend: Any) -> None:
    torch = pytest.importorskip("torch")
    x = np.asarray([0.0, 1.0, 0.0, 1.0])
    y = np.asarray([0.0, 1.0, 1.0, 0.0])
    check_twins(
        lambda x, y: F.binary_cross_entropy(x, y, reduction="none"),
        lambda x, y: torch.nn.functional.binary_cross_entropy(x, y, reduction="none"),
        [x, y],
        0,
    )
    logits = wg.asarray([1e4, -1e4]).requires_grad_()
    loss = F.binary_cross_entropy_with_logits(logits, wg.asarray([0.0, 1.0]))
    loss.backward()
    assert loss.item() == 1e4
    assert values(logits.grad).tolist() == [0.5, -0.5]
    with (
        wg.use_backend("numpy"),
        pytest.raises(ValueError, match=r"between 0 and 1, and one is 1\.5"),
    ):
        F.binary_cross_entropy(wg.asarray([1.5]), wg.asarray([1.0]))


@pytest.mark.parametrize("shape", [(1, 3), (2, 3, 1), (1, 3, 2), (2, 1, 2)])
def test_losses_of_classes_have_the_shape_of_the_target(shape: Any) -> None:
    """Axes of length 1 are none of the classes'."""
    x = RNG.normal(size=shape)
    target = np.arange(x.size // shape[1]).reshape(shape[0], *shape[2:]) % shape[1]
    expected = -np.squeeze(np.take_along_axis(x, target[:, None], axis=1), axis=1)
    found = F.nll_loss(wg.asarray(x), wg.asarray(target), reduction="none")
    assert found.shape == target.shape
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.oracle
def test_cross_entropy_at_extremes(backend: Any) -> None:
    torch = pytest.importorskip("torch")
    x = np.asarray([[1e4, -1e4, 0.0], [-np.inf, 0.0, 1.0], [1e300, 0.0, -1e300]])
    target = np.asarray([1, 2, 0])
    check_twins(
        lambda x: F.cross_entropy(x, wg.asarray(target), reduction="none"),
        lambda x: torch.nn.functional.cross_entropy(x, torch.tensor(target), reduction="none"),
        [x],
        0,
    )
    logits = wg.asarray(x).requires_grad_()
    F.cross_entropy(logits, wg.asarray(target)).backward()
    assert np.isfinite(values(logits.grad)).all()


@pytest.mark.filterwarnings("ignore:Mean of empty|invalid value|divide by zero")
def test_classes_of_nothing_and_compiled(backend: Any) -> None:
    x, ignored = wg.ones(2, 3).requires_grad_(), wg.asarray([-100, -100])
    compiled = wg.compile(lambda x: wg.autograd.grad(F.cross_entropy(x, ignored), x)[0])
    for _ in range(2):
        assert not values(compiled(x)).any()
    if backend.name == "dask":  # whose maxima of no rows are errors
        return
    for target in (wg.zeros(0, dtype=wg.int64), wg.ones(0, 3)):
        assert math.isnan(F.cross_entropy(wg.ones(0, 3), target).item())
        assert F.cross_entropy(wg.ones(0, 3), target, reduction="sum").item() == 0
        assert F.cross_entropy(wg.ones(0, 3), target, reduction="none").shape == (0,)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
def test_class_indices_of_any_integer_dtype(backend: Any, dtype: str) -> None:
    x = wg.asarray(X)
    expected = F.cross_entropy(x, wg.asarray(LABELS)).item()
    assert F.cross_entropy(x, wg.asarray(LABELS.astype(dtype))).item() == expected


@pytest.mark.parametrize("wrong", [3, -1, -100 + 1, 7])
@pytest.mark.parametrize("options", [{}, {"weight": W}, {"label_smoothing": 0.1}])
def test_class_indices_out_of_range(backend: Any, wrong: int, options: dict[str, Any]) -> None:
    options = {k: wg.asarray(v) if k == "weight" else v for k, v in options.items()}
    target = wg.asarray([0, wrong, 1, 2])
    x = wg.asarray(X).requires_grad_()
    if backend.name in ("dask", "cupy"):  # to look would be to wait
        loss = F.cross_entropy(x, target, **options)
        assert math.isnan(loss.item())
        return
    with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds.* 3 classes"):
        F.cross_entropy(x, target, **options)
    with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds.* 3 classes"):
        F.nll_loss(x, target)
    ignored = F.cross_entropy(x, target, ignore_index=wrong, **options)
    assert math.isfinite(ignored.item())


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_classes_of_images_are_those_of_rows(dtype: str) -> None:
    x, target = wg.asarray(X, dtype=dtype), wg.asarray(LABELS)
    options: Any = {"reduction": "none", "label_smoothing": 0.25}
    rows = F.cross_entropy(x, target, **options)
    image = wg.moveaxis(wg.reshape(x, (2, 2, 3)), -1, 1)
    found = F.cross_entropy(image, wg.reshape(target, (2, 2)), **options)
    one = F.cross_entropy(x[0], target[0], **options)
    assert found.dtype is x.dtype and found.shape == (2, 2) and one.shape == ()
    np.testing.assert_array_equal(found.numpy().ravel(), rows.numpy())
    np.testing.assert_allclose(one.numpy(), rows.numpy()[0], rtol=1e-15)


def test_impossible_classes_add_nothing_where_they_are_not_the_target_s() -> None:
    x = wg.asarray([[0.0, -math.inf, 0.0]], dtype="float64")
    found = F.cross_entropy(x, wg.asarray([[0.25, 0.0, 0.75]]))
    assert found.item() == pytest.approx(math.log(2))
    assert F.cross_entropy(x, wg.asarray([[0.25, 0.5, 0.25]])).item() == math.inf


#: Calls, their errors, and what these say.
REFUSED = r"""
F.cross_entropy(x, t[:3]) | ValueError | batch_size \(4\).*\(3\)
F.cross_entropy(x[0], t) | ValueError | integers of shape \(\)
F.cross_entropy(wg.ones(4, 3, 2), t) | ValueError | of shape \(4, 2\)
F.cross_entropy(x, x[:, :2]) | RuntimeError | floating, of shape \(4, 3\)
F.cross_entropy(x, wg.astype(t, x.dtype)) | RuntimeError |
    a target of float64 and shape \(4,\) for logits of shape \(4, 3\): class indices are
    integers of shape \(4,\) \(cast with wg.astype\(target, wg.int64\)\); prob
F.cross_entropy(x, wg.astype(t, x.dtype), ignore_index=1) | RuntimeError | cast
F.cross_entropy(x, F.one_hot(t, 3)) | ValueError | int64 and .* of shape \(4,\); prob
F.cross_entropy(x, wg.astype(x, wg.complex128)) | RuntimeError | complex128
F.nll_loss(x, x) | RuntimeError | of shape \(4,\) \(cast with [^;]*$
F.one_hot(wg.astype(t, x.dtype)) | RuntimeError | float64: cast with
F.one_hot(t + 1, 3) | IndexError | Target 3 is out of bounds: .* 3 classes
F.binary_cross_entropy(x * 0, x) | ValueError | of target should be between
F.cross_entropy(x, t, wg.ones(2)) | RuntimeError | all or no classes
F.cross_entropy(x, F.softmax(x, 1), ignore_index=1) | RuntimeError |
    ignore_index is not supported for floating point target
F.one_hot(t, 2.5) | TypeError | integer of 64 bits as num_classes, not 2.5
F.group_norm(x, 1.5) | TypeError | integer of 64 bits as num_groups
F.cross_entropy(t, t) | ValueError | needs floating logits
F.cross_entropy(x, t > 1) | RuntimeError | a target of bool
F.cross_entropy(x, t, reduction="avg") | ValueError | avg is not a valid
F.cross_entropy(x, t, label_smoothing=2) | ValueError | between 0.0 and 1.0
F.nll_loss(t, t) | ValueError | needs floating values
F.mse_loss(x, x[:3]) | ValueError | should be the same
F.huber_loss(x, x, delta=0) | ValueError | non-positive
F.smooth_l1_loss(x, x, beta=-1) | ValueError | negative values
F.binary_cross_entropy(x, x[:3]) | ValueError | should be the same
F.binary_cross_entropy_with_logits(t, t) | TypeError | needs a real floating
F.softmax(x) | ValueError | needs dim
F.softmax(t, 0) | TypeError | needs a floating
F.gelu(x, approximate="fast") | ValueError | approximate
nn.CrossEntropyLoss(reduction="avg") | ValueError | avg is not a valid
nn.Flatten(1, 0)(x) | RuntimeError | cannot come after
nn.Flatten(3)(x) | IndexError | flatten: axis 3 is out of bounds
F.linear(wg.ones((2, 3)), wg.ones((4, 3), dtype="float64")) | RuntimeError | different dtypes
F.linear(wg.ones((2, 3), dtype="float64"), wg.ones((4, 3))) | RuntimeError | different dtypes
F.linear(x[:, :2], wg.ones((4, 2), dtype="float64"), wg.ones(4)) | RuntimeError | different dtypes
"""
SHAPES = (
    *(((4, 2), (2, 3), (2,)), ((4, 3), (3,), ()), ((), (2, 3), (2,)), ((7, 6), (4, 6, 5), (4,))),
    *(((4, 3), (2, 3), (3,)), ((4, 3), (2, 3), (4, 1))),
)


def test_bad_input() -> None:
    x, t = wg.asarray(X), wg.asarray(LABELS)
    walk(refusals(REFUSED), refuse(x=x, t=t), whole=True)
    for shapes in SHAPES:
        with pytest.raises(RuntimeError, match=r"needs \(\.\.\., in\), \(out, in\) and \(out,\)"):
            F.linear(*map(wg.ones, shapes))
    for loss in (F.mse_loss, F.huber_loss, F.smooth_l1_loss, F.kl_div):
        with pytest.raises(TypeError, match="takes real numbers, and was given complex128 and fl"):
            loss(wg.astype(x, wg.complex128), x)
    for loss, kind, value in itertools.product(
        (F.cross_entropy, F.nll_loss),
        (wg.int64, wg.int32),  # the first has a shorter way
        (1.5, np.nan, 2**70, None, "a", wg.asarray(0.5)),
    ):
        with pytest.raises(TypeError, match=f"{loss.__name__} takes an? .* as ignore_index, not "):
            loss(x, wg.astype(t, kind), ignore_index=value)


#: Losses, what they are of, and what the mean is taken of: the number of elements, or of weights.
REDUCED: list[tuple[str, list[np.ndarray], dict[str, Any], float]] = [
    ("cross_entropy", [X, LABELS], {}, 4),
    ("cross_entropy", [X, LABELS], {"label_smoothing": 0.25}, 4),
    ("cross_entropy", [X, LABELS], {"weight": W}, W[LABELS].sum()),
    ("cross_entropy", [X, LABELS], {"ignore_index": 2}, 2),
    ("cross_entropy", [X, LABELS], {"weight": W, "label_smoothing": 0.25}, W[LABELS].sum()),
    (
        "cross_entropy",
        [X, LABELS],
        {"weight": W, "label_smoothing": 0.25, "ignore_index": 0},
        W[LABELS[LABELS != 0]].sum(),
    ),
    ("cross_entropy", [X, LABELS], {"weight": W, "ignore_index": 0}, W[LABELS[1:]].sum()),
    ("cross_entropy", [X, P], {}, 4),
    ("cross_entropy", [X, P], {"weight": W, "label_smoothing": 0.25}, 4),
    ("nll_loss", [X, LABELS], {}, 4),
    ("nll_loss", [X, LABELS], {"weight": W}, W[LABELS].sum()),
    ("nll_loss", [X, LABELS], {"weight": W, "ignore_index": 0}, W[LABELS[1:]].sum()),
    ("binary_cross_entropy", [P, T], {}, 12),
    ("binary_cross_entropy", [P, T], {"weight": T}, 12),
    ("binary_cross_entropy_with_logits", [X, T], {}, 12),
    ("binary_cross_entropy_with_logits", [X, T], {"weight": T, "pos_weight": W}, 12),
]


def elements_by_formula(name: str, x: np.ndarray, y: np.ndarray, **options: Any) -> np.ndarray:
    """The losses of single elements, or of rows."""
    weight, smoothing = options.get("weight", np.ones(3)), options.get("label_smoothing", 0)
    if name.startswith("binary"):
        p = 1 / (1 + np.exp(-x)) if name.endswith("logits") else x
        right = options.get("pos_weight", 1) * y * np.log(p)
        return -weight * (right + (1 - y) * np.log(1 - p))
    logs = x if name == "nll_loss" else x - np.log(np.exp(x).sum(1, keepdims=True))
    counts = np.ones(4) if y.ndim == 2 else y != options.get("ignore_index", -100)
    shares = (y if y.ndim == 2 else np.eye(3)[y]) * (1 - smoothing) + smoothing / 3
    return -(counts * (shares * logs * weight).sum(1))


@pytest.mark.parametrize(("name", "inputs", "options", "count"), REDUCED)
def test_reductions(
    name: str, inputs: list[np.ndarray], options: dict[str, Any], count: float
) -> None:
    """The sum is that of the elements, and the mean is the sum divided."""
    given = {key: wg.asarray(x) if isinstance(x, np.ndarray) else x for key, x in options.items()}

    def loss(**reduction: str) -> np.ndarray:
        return values(getattr(F, name)(*map(wg.asarray, inputs), **given, **reduction))

    elements = loss(reduction="none")
    formula = elements_by_formula(name, *inputs, **options)
    np.testing.assert_allclose(elements, formula, rtol=1e-12)
    point = wg.asarray(inputs[0], requires_grad=True)
    target = wg.asarray(inputs[1])
    for reduction in ("mean", "sum"):
        check = lambda x, r=reduction: getattr(F, name)(x, target, **given, reduction=r)
        assert wg.testing.gradcheck(check, (point,))
    np.testing.assert_allclose(loss(reduction="sum"), elements.sum(), rtol=1e-12)
    np.testing.assert_allclose(loss(reduction="mean"), elements.sum() / count, rtol=1e-12)
    np.testing.assert_allclose(loss(), elements.sum() / count, rtol=1e-12)


@pytest.mark.parametrize("tracked", [*itertools.product([False, True], repeat=3)])
def test_maps_are_recorded_for_what_requires_grad(tracked: tuple[bool, bool, bool]) -> None:
    rng = np.random.default_rng(0)
    given = [
        wg.asarray(rng.normal(size=shape), requires_grad=tracks)
        for shape, tracks in zip(((5, 3), (4, 3), (4,)), tracked, strict=True)
    ]
    x, w, b = (each.detach().numpy() for each in given)
    out = F.linear(*given)
    np.testing.assert_allclose(values(out), x @ w.T + b, rtol=1e-12)
    assert out.requires_grad is any(tracked)
    if out.requires_grad:
        g = rng.normal(size=(5, 4))
        out.backward(wg.asarray(g))
        for each, tracks, slope in zip(given, tracked, (g @ w, g.T @ x, g.sum(0)), strict=True):
            assert (each.grad is None) is not tracks
            if tracks:
                np.testing.assert_allclose(values(each.grad), slope, rtol=1e-12)


def test_softmax_of_a_scalar_and_another_dtype() -> None:
    assert F.softmax(wg.asarray(3.0), 0).item() == 1.0
    assert F.log_softmax(wg.asarray(3.0), -1).item() == 0.0
    assert F.softmax(wg.asarray([1, 2]), 0, dtype=wg.float64).dtype == wg.float64


def test_one_hot(backend: Any) -> None:
    found = F.one_hot(wg.asarray([[0, 2], [1, 1]]))
    assert found.dtype == wg.int64
    np.testing.assert_array_equal(values(found), np.eye(3, dtype=int)[[[0, 2], [1, 1]]])
    assert F.one_hot(wg.asarray([1]), 5).shape == (1, 5)
    assert F.one_hot(wg.zeros(0, dtype=wg.int64), 2).shape == (0, 2)
    with pytest.raises(RuntimeError, match="index tensor"):
        F.one_hot(wg.ones(2))
    with pytest.raises(RuntimeError, match="empty"):
        F.one_hot(wg.zeros(0, dtype=wg.int64))
    if backend.name not in ("dask", "cupy"):
        for wrong in (2, -1):
            with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds.* 2 classes"):
                F.one_hot(wg.asarray([wrong]), 2)


def test_weights_of_losses_are_buffers() -> None:
    loss = nn.CrossEntropyLoss(wg.asarray(W))
    assert list(loss.state_dict()) == ["weight"]
    assert loss.to(wg.float32).weight.dtype == wg.float32
    assert list(nn.BCEWithLogitsLoss(pos_weight=wg.asarray(W)).state_dict()) == ["pos_weight"]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_binary_cross_entropy_at_certain_targets(dtype) -> None:
    """The slopes are the logarithms' own, -1 / x and 1 / (1 - x), where x is the target."""
    x = wg.tensor(np.asarray([0.0, 1.0], dtype), requires_grad=True)
    F.binary_cross_entropy(x, x.detach(), reduction="sum").backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, -1])
