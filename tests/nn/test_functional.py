"""Layers and losses against PyTorch: values, gradients and second derivatives in float64."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert import nn
from wengert.nn import functional as F
from wengert.testing import gradcheck, gradgradcheck

RNG = np.random.default_rng(7)
X = RNG.normal(size=(4, 3))
Y = RNG.normal(size=(4, 3))
P = RNG.uniform(0.05, 0.95, size=(4, 3))
T = RNG.uniform(size=(4, 3))
W = RNG.uniform(0.5, 2, size=3)
LABELS = np.asarray([0, 2, 1, 2])


def values(tensor: Any) -> np.ndarray:
    if isinstance(tensor, wg.Tensor):
        return np.asarray(tensor.detach().numpy())
    return np.asarray(tensor.numpy(force=True))


def check_against_torch(
    ours: Any, theirs: Any, inputs: list[np.ndarray], tracked: int, rtol: float = 1e-10
) -> None:
    """Compare a function of arrays with PyTorch's: its value, gradients and second derivatives.

    The first ``tracked`` inputs are differentiated.
    """
    torch = pytest.importorskip("torch")
    a = [wg.asarray(x) for x in inputs]
    b = [torch.tensor(x) for x in inputs]
    for tensors in (a, b):
        for tensor in tensors[:tracked]:
            tensor.requires_grad_()
    y, z = ours(*a), theirs(*b)
    assert y.dtype == wg.float64
    np.testing.assert_allclose(values(y), values(z), rtol=rtol, atol=1e-14)
    if not tracked:
        return
    seed = RNG.normal(size=tuple(y.shape))
    once = wg.autograd.grad(y, a[:tracked], wg.asarray(seed), create_graph=True, allow_unused=True)
    torch_once = torch.autograd.grad(
        z, b[:tracked], torch.tensor(seed), create_graph=True, allow_unused=True
    )
    plain = wg.autograd.grad(y, a[:tracked], wg.asarray(seed), retain_graph=True, allow_unused=True)
    for g, h, k in zip(once, torch_once, plain, strict=True):
        assert (g is None) == (h is None)
        if g is not None:
            np.testing.assert_allclose(values(g), values(h), rtol=rtol, atol=1e-12)
            np.testing.assert_allclose(values(k), values(h), rtol=rtol, atol=1e-12)
    seeds = [RNG.normal(size=tuple(x.shape)) for x in inputs[:tracked]]

    def twice(gs: Any, xs: Any, lib: Any, convert: Any) -> list[Any]:
        pairs = [(g, convert(s)) for g, s in zip(gs, seeds, strict=True) if g is not None]
        pairs = [(g, s) for g, s in pairs if g.requires_grad]
        if not pairs:
            return [None] * tracked
        gs, ss = zip(*pairs, strict=True)
        return list(lib.autograd.grad(gs, xs[:tracked], ss, allow_unused=True))

    for g, h in zip(
        twice(once, a, wg, wg.asarray), twice(torch_once, b, torch, torch.tensor), strict=True
    ):
        found = np.zeros(1) if g is None else values(g)
        wanted = np.zeros(1) if h is None else values(h)
        np.testing.assert_allclose(found + 0 * wanted, wanted + 0 * found, rtol=1e-8, atol=1e-11)


# -- all of PyTorch's options ------------------------------------------------------------------

REDUCTIONS = ("none", "mean", "sum")
Space = dict[str, tuple[Any, ...]]
REDUCED_BY: Space = {"reduction": REDUCTIONS}
OF_CLASSES = REDUCED_BY | {"weight": (None, W)}
SMOOTHED = OF_CLASSES | {"label_smoothing": (0.0, 0.2)}
INDEXED = [
    ((4, 3), LABELS),
    ((4, 3), np.asarray([0, -100, 1, 2])),
    ((3,), np.asarray(1)),
    ((2, 3, 2), np.asarray([[0, 2], [1, 1]])),
    ((2, 3, 2, 1), np.asarray([[[0], [2]], [[1], [1]]])),
]
#: Functions, their inputs, how many of these are differentiated, and the values of options.
AGAINST: list[tuple[str, list[np.ndarray], int, Space]] = [
    *(
        (name, [X * scale], 1, space)
        for scale in (1.0, 40.0)
        for name, space in (
            *((name, {}) for name in ("relu", "silu", "sigmoid", "logsigmoid", "tanh")),
            ("leaky_relu", {"negative_slope": (0.01, 0.3)}),
            ("elu", {"alpha": (1.0, 0.5)}),
            ("gelu", {"approximate": ("none", "tanh")}),
            ("softplus", {"beta": (1.0, 3.0), "threshold": (20.0, 2.0)}),
            ("softmax", {"dim": (1, -2)}),
            ("log_softmax", {"dim": (0,)}),
        )
    ),
    ("mse_loss", [X, Y], 2, REDUCED_BY),
    ("l1_loss", [X, Y], 2, REDUCED_BY),
    ("huber_loss", [X, Y], 2, REDUCED_BY | {"delta": (1.0, 0.4)}),
    ("smooth_l1_loss", [X, Y], 2, REDUCED_BY | {"beta": (1.0, 0.4, 0.0)}),
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
        check_against_torch(ours, theirs, inputs, tracked, rtol=1e-9)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "options", "inputs"),
    [
        *((name, {}, [X]) for name in ("ReLU", "SiLU", "Sigmoid", "LogSigmoid", "Tanh")),
        *((name, {}, [X]) for name in ("GELU", "Identity", "Flatten")),
        ("LeakyReLU", {"negative_slope": 0.2}, [X]),
        ("ELU", {"alpha": 0.3}, [X]),
        ("GELU", {"approximate": "tanh"}, [X]),
        ("Softplus", {"beta": 2.0}, [X]),
        ("Softmax", {"dim": 0}, [X]),
        ("LogSoftmax", {"dim": -1}, [X]),
        ("Flatten", {}, [X.reshape(2, 2, 3).swapaxes(1, 2)]),
        ("Flatten", {"start_dim": 0, "end_dim": 1}, [X.reshape(2, 2, 3).swapaxes(1, 2)]),
        ("CrossEntropyLoss", {"label_smoothing": 0.1, "ignore_index": 2}, [X, LABELS]),
        ("NLLLoss", {"reduction": "sum"}, [X, LABELS]),
        ("MSELoss", {}, [X, Y]),
        ("L1Loss", {"reduction": "none"}, [X, Y]),
        ("HuberLoss", {"delta": 0.5}, [X, Y]),
        ("SmoothL1Loss", {"beta": 0.5}, [X, Y]),
        ("BCELoss", {}, [P, T]),
        ("BCEWithLogitsLoss", {"reduction": "sum"}, [X, T]),
    ],
)
def test_modules_are_pytorchs(name: str, options: Any, inputs: list[np.ndarray]) -> None:
    torch = pytest.importorskip("torch")
    check_against_torch(getattr(nn, name)(**options), getattr(torch.nn, name)(**options), inputs, 1)


# -- layers ----------------------------------------------------------------------------------------


@pytest.mark.oracle
@pytest.mark.parametrize("shape", [(4, 3), (3,), (2, 5, 3), (0, 3), (2, 0, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(backend: Any, shape: tuple[int, ...], bias: bool) -> None:
    torch = pytest.importorskip("torch")
    arrays = [RNG.normal(size=shape), RNG.normal(size=(2, 3)), RNG.normal(size=2)][: 2 + bias]
    check_against_torch(F.linear, torch.nn.functional.linear, arrays, len(arrays))


@pytest.mark.oracle
def test_linear_of_complex_numbers() -> None:
    torch = pytest.importorskip("torch")
    arrays = [
        RNG.normal(size=shape) + 1j * RNG.normal(size=shape) for shape in ((4, 3), (2, 3), (2,))
    ]
    x, w, b = (wg.asarray(a, dtype=wg.complex128).requires_grad_() for a in arrays)
    p, q, r = (torch.tensor(a, requires_grad=True) for a in arrays)
    (abs(F.linear(x, w, b)) ** 2).sum().backward()
    (abs(torch.nn.functional.linear(p, q, r)) ** 2).sum().backward()
    for ours, theirs in ((x, p), (w, q), (b, r)):
        np.testing.assert_allclose(values(ours.grad), values(theirs.grad), rtol=1e-10)


@pytest.mark.parametrize(
    "tracked", [(True, False, False), (False, True, False), (False, False, True)]
)
def test_linear_tracks_what_needs_it(tracked: tuple[bool, ...]) -> None:
    tensors = [wg.asarray(a) for a in (X, RNG.normal(size=(2, 3)), RNG.normal(size=2))]
    for tensor, needed in zip(tensors, tracked, strict=True):
        tensor.requires_grad = needed
    F.linear(*tensors).sum().backward()
    assert tuple(tensor.grad is not None for tensor in tensors) == tracked


@pytest.mark.parametrize("other", range(3))
def test_linear_of_one_dtype_alone(other: int) -> None:
    given = [wg.ones(shape) for shape in ((2, 3), (4, 3), (4,))]
    given[other] = given[other].to(wg.float64)
    with pytest.raises(RuntimeError, match="different dtypes"):
        F.linear(*given)


def test_linear_as_a_composition(backend: Any) -> None:
    inputs = [wg.asarray(a).requires_grad_() for a in (X, RNG.normal(size=(2, 3)), np.ones(2))]
    x, w, b = inputs
    seed = wg.asarray(RNG.normal(size=(4, 2)))
    fused, composed = F.linear(x, w, b), x @ w.T + b
    np.testing.assert_allclose(values(fused), values(composed), rtol=1e-14)
    for g, h in zip(
        wg.autograd.grad(fused, inputs, seed), wg.autograd.grad(composed, inputs, seed), strict=True
    ):
        np.testing.assert_allclose(values(g), values(h), rtol=1e-13)
    fast = backend.name != "numpy"
    assert gradcheck(F.linear, inputs, fast_mode=fast)
    if backend.name != "dask":  # where each evaluation is a graph
        assert gradgradcheck(F.linear, inputs, fast_mode=fast)


@pytest.mark.parametrize("rows", [1, 2, 16, 32, 33, 128, 129])
@pytest.mark.parametrize("bias", [True, False])
def test_linear_of_few_rows_and_a_wide_layer(rows: int, bias: bool) -> None:
    """NumPy's kernel multiplies them the other way round from some size on."""
    rng = np.random.default_rng(rows)
    x, w, b = (
        rng.normal(size=n).astype(np.float32) for n in ((rows, 520), (2 * rows + 200, 520), 1)
    )
    b = b + np.arange(len(w), dtype=np.float32)
    for turned in (x, np.asfortranarray(x)):
        found = F.linear(*map(wg.asarray, (turned, w)), wg.asarray(b) if bias else None).numpy()
        exact = x.astype(np.float64) @ w.T.astype(np.float64) + (b if bias else 0)
        # The rounding of sums of 520 products of about 1, and of sums with biases of some hundreds.
        np.testing.assert_allclose(found, exact, rtol=1e-6, atol=520**0.5 * 520 * 6e-8)
        assert found.dtype == np.float32
        assert found.flags.c_contiguous
        assert found.flags.owndata


@pytest.mark.parametrize(
    ("x", "w", "b"),
    [
        ((4, 2), (2, 3), (2,)),
        ((4, 3), (3,), ()),
        ((), (2, 3), (2,)),
        ((4, 3), (2, 3), (3,)),
        ((4, 3), (2, 3), (4, 1)),
    ],
)
def test_linear_of_shapes_that_do_not_fit(x: Any, w: Any, b: Any) -> None:
    with pytest.raises(RuntimeError, match=r"needs \(\.\.\., in\), \(out, in\) and \(out,\)"):
        F.linear(wg.ones(x), wg.ones(w), wg.ones(b))


# -- dropout ---------------------------------------------------------------------------------------


def test_dropout(backend: Any) -> None:
    wg.manual_seed(0)
    x = wg.ones(200, 100).requires_grad_()
    y = nn.Dropout(0.3)(x)
    v = values(y)
    kept = v != 0
    np.testing.assert_allclose(v[kept], 1 / 0.7, rtol=1e-6)
    # The share of zeros has a deviation of sqrt(0.21 / 20000) = 0.0032.
    assert abs(kept.mean() - 0.7) < 0.015
    assert abs(np.corrcoef(kept[1:].ravel(), kept[:-1].ravel())[0, 1]) < 0.05
    y.sum().backward()
    np.testing.assert_array_equal(values(x.grad), v)
    assert (values(nn.Dropout(0.3)(x)) != v).any()


def test_dropout_is_off_in_evaluation_and_at_its_ends(backend: Any) -> None:
    x = wg.ones(5)
    layer = nn.Dropout(0.9)
    for same in (layer.eval()(x), F.dropout(x, 0.9, training=False), F.dropout(x, 0.0)):
        assert same is not x
        np.testing.assert_array_equal(values(same), values(x))
    assert not values(F.dropout(x, 1.0)).any()
    for p in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="between 0 and 1"):
            nn.Dropout(p)
        with pytest.raises(ValueError, match="between 0 and 1"):
            F.dropout(x, p)


# -- losses ----------------------------------------------------------------------------------------


@pytest.mark.oracle
def test_binary_losses_at_their_ends(backend: Any) -> None:
    torch = pytest.importorskip("torch")
    x = np.asarray([0.0, 1.0, 0.0, 1.0])
    y = np.asarray([0.0, 1.0, 1.0, 0.0])
    check_against_torch(
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


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_cross_entropy_as_a_composition(backend: Any, reduction: str) -> None:
    """The fused operation is the composition: value, and derivatives up to the third."""
    target = wg.asarray([0, 2, -100, 1])
    rows = wg.asarray([0, 2, 0, 1])
    counted = wg.asarray([1.0, 1.0, 0.0, 1.0], dtype=wg.float64)

    def composed(x: Any) -> Any:
        log_probs = x - wg.logsumexp(x, axis=1, keepdims=True)
        losses = -wg.take_along_axis(log_probs, wg.expand_dims(rows, axis=1), axis=1)[:, 0]
        losses = losses * counted
        if reduction == "none":
            return losses
        return losses.sum() / (3 if reduction == "mean" else 1)

    x = wg.asarray(X).requires_grad_()
    fused = F.cross_entropy(x, target, reduction=reduction)
    level, other = fused, composed(x)
    for _ in range(3):
        np.testing.assert_allclose(values(level), values(other), rtol=1e-12, atol=1e-14)
        seed = wg.asarray(RNG.normal(size=tuple(level.shape)))
        (level,) = wg.autograd.grad(level, x, seed, create_graph=True)
        (other,) = wg.autograd.grad(other, x, seed, create_graph=True)
    (plain,) = wg.autograd.grad(fused, x, wg.ones_like(fused))
    (reference,) = wg.autograd.grad(composed(x), x, wg.ones_like(fused))
    np.testing.assert_allclose(values(plain), values(reference), rtol=1e-12, atol=1e-15)
    with pytest.raises(RuntimeError, match="second time"):
        fused.backward(wg.ones_like(fused))


@pytest.mark.oracle
def test_cross_entropy_at_extremes(backend: Any) -> None:
    torch = pytest.importorskip("torch")
    x = np.asarray([[1e4, -1e4, 0.0], [-np.inf, 0.0, 1.0], [1e300, 0.0, -1e300]])
    target = np.asarray([1, 2, 0])
    check_against_torch(
        lambda x: F.cross_entropy(x, wg.asarray(target), reduction="none"),
        lambda x: torch.nn.functional.cross_entropy(x, torch.tensor(target), reduction="none"),
        [x],
        0,
    )
    logits = wg.asarray(x).requires_grad_()
    F.cross_entropy(logits, wg.asarray(target)).backward()
    assert np.isfinite(values(logits.grad)).all()


@pytest.mark.filterwarnings("ignore:Mean of empty")
def test_cross_entropy_of_nothing(backend: Any) -> None:
    x = wg.ones(2, 3).requires_grad_()
    ignored = wg.asarray([-100, -100])
    for smoothing in (0.0, 0.1):
        for weight in (None, wg.asarray([0.0, 1.0, 2.0])):
            with np.errstate(all="ignore"):
                loss = F.cross_entropy(x, ignored, weight, label_smoothing=smoothing)
                (slope,) = wg.autograd.grad(loss, x, create_graph=True)
                (second,) = wg.autograd.grad(wg.sum(slope), x)
                # PyTorch's value, and its derivatives: no logit has a part in it.
                assert math.isnan(loss.item())
                assert not values(slope).any()
                assert not values(second).any()
    with np.errstate(all="ignore"):
        loss = F.nll_loss(x, ignored)
        assert math.isnan(loss.item())
        assert not values(wg.autograd.grad(loss, x)[0]).any()
        compiled = wg.compile(lambda x: wg.autograd.grad(F.cross_entropy(x, ignored), x)[0])
        assert not values(compiled(x)).any()
        assert not values(compiled(x)).any()
    loss = F.cross_entropy(x, ignored, reduction="sum")
    loss.backward()
    assert loss.item() == 0
    assert not values(x.grad).any()
    for target in (wg.zeros(0, dtype=wg.int64), wg.ones(0, 3)):
        with np.errstate(all="ignore"):
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


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda x, t: F.cross_entropy(x, t[:3]), ValueError, r"batch_size \(4\).*\(3\)"),
        (lambda x, t: F.cross_entropy(x[0], t), ValueError, r"integers of shape \(\)"),
        (lambda x, t: F.cross_entropy(wg.ones(4, 3, 2), t), ValueError, r"of shape \(4, 2\)"),
        (lambda x, t: F.cross_entropy(x, x[:, :2]), RuntimeError, r"floating, of shape \(4, 3\)"),
        (
            lambda x, t: F.cross_entropy(x, wg.astype(t, x.dtype)),
            RuntimeError,
            (
                r"a target of float64 and shape \(4,\) for logits of shape \(4, 3\): class indices "
                r"are integers of shape \(4,\) \(cast with wg.astype\(target, wg.int64\)\); prob"
            ),
        ),
        (
            lambda x, t: F.cross_entropy(x, wg.astype(t, x.dtype), ignore_index=1),
            RuntimeError,
            "cast",
        ),
        (
            lambda x, t: F.cross_entropy(x, F.one_hot(t, 3)),
            ValueError,
            r"int64 and .* of shape \(4,\); prob",
        ),
        (lambda x, t: F.cross_entropy(x, wg.astype(x, wg.complex128)), RuntimeError, "complex128"),
        (lambda x, t: F.nll_loss(x, x), RuntimeError, r"of shape \(4,\) \(cast with [^;]*$"),
        (lambda x, t: F.one_hot(wg.astype(t, x.dtype)), RuntimeError, "float64: cast with"),
        (lambda x, t: F.one_hot(t + 1, 3), IndexError, "Target 3 is out of bounds: .* 3 classes"),
        (lambda x, t: F.binary_cross_entropy(x * 0, x), ValueError, "of target should be between"),
        (lambda x, t: F.cross_entropy(x, t, wg.ones(2)), RuntimeError, "all or no classes"),
        (
            lambda x, t: F.cross_entropy(x, F.softmax(x, 1), ignore_index=1),
            RuntimeError,
            "ignore_index is not supported for floating point target",
        ),
        *(
            (
                lambda x, t, loss=loss, kind=kind, value=value: loss(
                    x, wg.astype(t, kind), ignore_index=value
                ),
                TypeError,
                f"{loss.__name__} takes an? .* as ignore_index, not ",
            )
            for loss in (F.cross_entropy, F.nll_loss)
            for kind in (wg.int64, wg.int32)  # the first has a shorter way
            for value in (1.5, np.nan, 2**70, None, "a", wg.asarray(0.5))
        ),
        (lambda x, t: F.one_hot(t, 2.5), TypeError, "integer of 64 bits as num_classes, not 2.5"),
        (lambda x, t: F.group_norm(x, 1.5), TypeError, "integer of 64 bits as num_groups"),
        (lambda x, t: F.cross_entropy(t, t), ValueError, "needs floating logits"),
        (lambda x, t: F.cross_entropy(x, t > 1), RuntimeError, "a target of bool"),
        (lambda x, t: F.cross_entropy(x, t, reduction="avg"), ValueError, "avg is not a valid"),
        (lambda x, t: F.cross_entropy(x, t, label_smoothing=2), ValueError, "between 0.0 and 1.0"),
        (lambda x, t: F.nll_loss(t, t), ValueError, "needs floating values"),
        (lambda x, t: F.mse_loss(x, x[:3]), ValueError, "should be the same"),
        *(
            (
                lambda x, t, loss=loss: loss(wg.astype(x, wg.complex128), x),
                TypeError,
                "takes real numbers, and was given complex128 and float64",
            )
            for loss in (F.mse_loss, F.huber_loss, F.smooth_l1_loss, F.kl_div)
        ),
        (lambda x, t: F.huber_loss(x, x, delta=0), ValueError, "non-positive"),
        (lambda x, t: F.smooth_l1_loss(x, x, beta=-1), ValueError, "negative values"),
        (lambda x, t: F.binary_cross_entropy(x, x[:3]), ValueError, "should be the same"),
        (lambda x, t: F.binary_cross_entropy_with_logits(t, t), TypeError, "needs a real floating"),
        (lambda x, t: F.softmax(x), ValueError, "needs dim"),
        (lambda x, t: F.softmax(t, 0), TypeError, "needs a floating"),
        (lambda x, t: F.gelu(x, approximate="fast"), ValueError, "approximate"),
        (lambda x, t: nn.CrossEntropyLoss(reduction="avg"), ValueError, "avg is not a valid"),  # type: ignore[arg-type]
        (lambda x, t: nn.Flatten(1, 0)(x), RuntimeError, "cannot come after"),
        (lambda x, t: nn.Flatten(3)(x), IndexError, "flatten: axis 3 is out of bounds"),
    ],
)
def test_bad_input(make: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make(wg.asarray(X), wg.asarray(LABELS))


def test_losses_by_hand(backend: Any) -> None:
    """The cases that have a way of their own, of their formulas."""
    logits = wg.asarray(X[0], requires_grad=True)
    loss = F.cross_entropy(logits, wg.asarray(2))
    assert loss.shape == ()
    shares = np.exp(X[0]) / np.sum(np.exp(X[0]))
    np.testing.assert_allclose(values(loss), -np.log(shares[2]))
    (g,) = wg.autograd.grad(loss, logits)
    np.testing.assert_allclose(values(g), shares - np.eye(3)[2])
    none = F.cross_entropy(logits, wg.asarray(2), reduction="none")
    assert none.shape == ()
    x, y = wg.asarray(X, requires_grad=True), wg.asarray(Y)
    for reduction, reduce in (("none", np.asarray), ("sum", np.sum), ("mean", np.mean)):
        loss = F.smooth_l1_loss(x, y, beta=0.0, reduction=reduction)
        np.testing.assert_allclose(values(loss), reduce(abs(X - Y)))
    (g,) = wg.autograd.grad(loss, x)
    np.testing.assert_allclose(values(g), np.sign(X - Y) / X.size)


#: Losses, what they are of, and what the mean is taken of: the number of elements, or of weights.
REDUCED: list[tuple[str, list[np.ndarray], dict[str, Any], float]] = [
    ("cross_entropy", [X, LABELS], {}, 4),
    ("cross_entropy", [X, LABELS], {"label_smoothing": 0.25}, 4),
    ("cross_entropy", [X, LABELS], {"weight": W}, W[LABELS].sum()),
    ("cross_entropy", [X, LABELS], {"ignore_index": 2}, 2),
    ("cross_entropy", [X, P], {}, 4),
    ("cross_entropy", [X, P], {"weight": W, "label_smoothing": 0.25}, 4),
    ("nll_loss", [X, LABELS], {}, 4),
    ("nll_loss", [X, LABELS], {"weight": W}, W[LABELS].sum()),
    ("nll_loss", [X, LABELS], {"weight": W, "ignore_index": 0}, W[LABELS[1:]].sum()),
    ("binary_cross_entropy", [P, T], {}, 12),
    ("binary_cross_entropy", [P, T], {"weight": T}, 12),
    ("binary_cross_entropy_with_logits", [X, T], {}, 12),
    ("binary_cross_entropy_with_logits", [X, T], {"weight": T, "pos_weight": W}, 12),
    ("mse_loss", [X, Y], {}, 12),
    ("l1_loss", [X, Y], {}, 12),
    ("smooth_l1_loss", [X, Y], {"beta": 0.5}, 12),
    ("huber_loss", [X, Y], {"delta": 0.5}, 12),
]


@pytest.mark.parametrize(("name", "inputs", "options", "count"), REDUCED)
def test_reductions(
    name: str, inputs: list[np.ndarray], options: dict[str, Any], count: float
) -> None:
    """The sum is that of the elements, and the mean is the sum divided."""
    given = {key: wg.asarray(x) if isinstance(x, np.ndarray) else x for key, x in options.items()}

    def loss(**reduction: str) -> np.ndarray:
        return values(getattr(F, name)(*map(wg.asarray, inputs), **given, **reduction))

    elements = loss(reduction="none")
    assert elements.ndim
    np.testing.assert_allclose(loss(reduction="sum"), elements.sum(), rtol=1e-12)
    np.testing.assert_allclose(loss(reduction="mean"), elements.sum() / count, rtol=1e-12)
    np.testing.assert_allclose(loss(), elements.sum() / count, rtol=1e-12)


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


@pytest.mark.oracle
def test_weights_of_losses_are_buffers() -> None:
    torch = pytest.importorskip("torch")
    loss = nn.CrossEntropyLoss(wg.asarray(W))
    assert list(loss.state_dict()) == ["weight"]
    loss.to(wg.float32)
    assert loss.weight.dtype == wg.float32
    loss.to(wg.float64)
    with_pos = nn.BCEWithLogitsLoss(pos_weight=wg.asarray(W))
    assert list(with_pos.state_dict()) == ["pos_weight"]
    check_against_torch(with_pos, torch.nn.BCEWithLogitsLoss(pos_weight=torch.tensor(W)), [X, T], 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: F.cross_entropy(x, wg.asarray(LABELS), wg.asarray(W), label_smoothing=0.1),
        lambda x: F.cross_entropy(x, wg.asarray(LABELS), reduction="none"),
        lambda x: F.binary_cross_entropy(F.sigmoid(x), wg.asarray(T)),
        lambda x: F.binary_cross_entropy_with_logits(x, wg.asarray(T)),
        lambda x: F.mse_loss(F.gelu(x), wg.asarray(Y)),
        lambda x: F.huber_loss(F.silu(x), wg.asarray(Y)),
    ],
)
def test_gradcheck(backend: Any, make: Any) -> None:
    x = wg.asarray(X).requires_grad_()
    fast = backend.name != "numpy"
    assert gradcheck(make, x, fast_mode=fast)
    if backend.name in ("numpy", "array_api_strict"):
        assert gradgradcheck(make, x, fast_mode=True)


def test_no_loss_is_recorded_where_nothing_is() -> None:
    x = wg.asarray(X).requires_grad_()
    with wg.no_grad():
        assert not F.cross_entropy(x, wg.asarray(LABELS)).requires_grad
        assert not F.linear(x, x).requires_grad
    assert F.cross_entropy(x, wg.asarray(LABELS)).grad_fn.name() == "CrossEntropyBackward0"


def test_mixed_backends_are_an_error() -> None:
    pytest.importorskip("array_api_strict")
    x = wg.asarray(X)
    with wg.use_backend("array_api_strict"):
        target, weight = wg.asarray(LABELS), wg.ones(2, 3, dtype=wg.float64)
    with pytest.raises(wg.BackendError, match=r"numpy.*array_api_strict"):
        F.cross_entropy(x, target)
    with pytest.raises(wg.BackendError, match=r"numpy.*array_api_strict"):
        F.linear(x, weight)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weight", [None, [0.0, 0.0, 0.0], [0.0, 1.0, 2.0]])
@pytest.mark.parametrize("target", [[-100, -100], [0, 0], [0, -100], [0, 1]])
def test_weights_of_zero_and_ignored_targets_are_pytorchs(
    smoothing: float, reduction: str, weight: Any, target: Any
) -> None:
    torch = pytest.importorskip("torch")
    logits = [[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]]
    options = {"label_smoothing": smoothing, "reduction": reduction}
    t = torch.tensor(logits, requires_grad=True)
    w = None if weight is None else torch.tensor(weight)
    loss = torch.nn.functional.cross_entropy(t, torch.tensor(target), w, **options)
    (expected,) = torch.autograd.grad(loss.sum(), t)
    x = wg.tensor(logits, requires_grad=True)
    w = None if weight is None else wg.tensor(weight)
    found = F.cross_entropy(x, wg.tensor(target), w, **options)
    (slope,) = wg.autograd.grad(wg.sum(found), x)
    np.testing.assert_allclose(values(found), loss.detach().numpy(), rtol=1e-6)
    np.testing.assert_allclose(values(slope), expected.numpy(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_binary_cross_entropy_at_certain_targets(dtype) -> None:
    """The slopes are the logarithms' own, -1 / x and 1 / (1 - x), where x is the target."""
    x = wg.tensor(np.asarray([0.0, 1.0], dtype), requires_grad=True)
    F.binary_cross_entropy(x, x.detach(), reduction="sum").backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, -1])
