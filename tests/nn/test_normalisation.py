"""Normalisations against formulas and against PyTorch: values, derivatives, averages, programs."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wengert as wg
from tests.nn.twins import check_twins
from tests.walking import refusals, refuse, walk
from wengert import nn
from wengert.backends import namespaces
from wengert.backends.backend import composites
from wengert.compiler.facts import KERNELS
from wengert.nn import functional as F

RNG = np.random.default_rng(5)
X = RNG.normal(size=(4, 6, 3, 2)) * 2 + 1
W, B = RNG.uniform(0.5, 2, size=6), RNG.normal(size=6)
MEAN, VAR = RNG.normal(size=6), RNG.uniform(0.5, 2, size=6)


def standard(x: np.ndarray, axis: Any, eps: float = 1e-5) -> np.ndarray:
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + eps)


def channels(v: np.ndarray) -> np.ndarray:
    return v[:, None, None]


#: Functions of an input, a weight and a bias, with what they are by their formulas.
FORMULAS: dict[str, tuple[Any, Any]] = {
    "layer": (
        lambda x, w, b: F.layer_norm(x.mT, 3, w[:3], b[:3], 0.1),
        lambda x, w, b: standard(np.swapaxes(x, -1, -2), -1, 0.1) * w[:3] + b[:3],
    ),
    "layers": (
        lambda x, w, b: F.layer_norm(x, (3, 2), w.reshape((3, 2)), b.reshape((3, 2))),
        lambda x, w, b: standard(x, (-1, -2)) * w.reshape(3, 2) + b.reshape(3, 2),
    ),
    "rms": (
        lambda x, w, b: F.rms_norm(x, (2,), w[:2]),
        lambda x, w, b: x / np.sqrt(np.mean(x * x, -1, keepdims=True) + 2.0**-52) * w[:2],
    ),
    "groups": (
        lambda x, w, b: F.group_norm(x, 2, w, b),
        lambda x, w, b: (
            standard(x.reshape(4, 2, 18), -1).reshape(x.shape) * channels(w) + channels(b)
        ),
    ),
    "instance": (
        lambda x, w, b: F.instance_norm(x, weight=w, bias=b, eps=0.3),
        lambda x, w, b: standard(x, (2, 3), 0.3) * channels(w) + channels(b),
    ),
    "batch": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        lambda x, w, b: standard(x, (0, 2, 3)) * channels(w) + channels(b),
    ),
    "averages": (
        lambda x, w, b: F.batch_norm(x, wg.asarray(MEAN), wg.asarray(VAR), w, b, eps=0.2),
        lambda x, w, b: (
            (x - channels(MEAN)) / np.sqrt(channels(VAR) + 0.2) * channels(w) + channels(b)
        ),
    ),
    "unit": (
        lambda x, w, b: F.normalize(x, 3.0, 2),
        lambda x, w, b: x / (abs(x) ** 3).sum(2, keepdims=True) ** (1 / 3),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_values(backend: Any, name: str) -> None:
    function, formula = FORMULAS[name]
    found = function(*map(wg.asarray, (X, W, B))).numpy()
    np.testing.assert_allclose(found, formula(X, W, B), rtol=1e-10)


def test_weights_and_biases_move_results_forward() -> None:
    """The tangent of ``y * weight + bias``."""
    x = wg.asarray(np.random.default_rng(0).normal(size=(4, 6)))
    w, b = wg.ones(6, dtype="float64"), wg.zeros(6, dtype="float64")
    for function in (
        lambda w, b: F.layer_norm(x, (6,), w, b),
        lambda w, b: F.group_norm(x, 3, w, b),
        lambda w, b: F.batch_norm(x, None, None, w, b, training=True),
    ):
        plain = function(w, b)
        tangent = wg.arange(6.0, dtype="float64")
        out, moved = wg.func.jvp(function, (w * 2, b), (tangent, tangent))
        np.testing.assert_allclose(out.numpy(), 2 * plain.numpy(), rtol=1e-12)
        expected = (plain + 1).numpy() * np.arange(6.0)
        np.testing.assert_allclose(moved.numpy(), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["layer", "rms", "group", "batch"])
def test_second_derivatives(name: str) -> None:
    """By all operands; the rules' own parts are differentiated, too."""
    functions: dict[str, Any] = {
        "layer": lambda x, w, b: F.layer_norm(x, (4,), w, b),
        "rms": lambda x, w, b: F.rms_norm(x, (4,), w) * b,
        "group": lambda x, w, b: F.group_norm(x, 2, w, b),
        "batch": lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
    }
    rng = np.random.default_rng(0)
    given = [wg.asarray(rng.normal(size=n), requires_grad=True) for n in ((3, 4), 4, 4)]
    function = functions[name]
    assert wg.testing.gradgradcheck(lambda *xs: wg.sum(function(*xs) ** 3), given, fast_mode=True)


def test_averages_are_moved_and_not_recorded(backend: Any) -> None:
    layer = nn.BatchNorm2d(6, momentum=0.2, dtype=wg.float64)
    x = wg.asarray(X).requires_grad_()
    mean, var, held = np.zeros(6), np.ones(6), layer.running_mean
    for step in range(1, 4):
        layer(x)
        mean = 0.8 * mean + 0.2 * X.mean((0, 2, 3))
        var = 0.8 * var + 0.2 * X.var((0, 2, 3), ddof=1)
        assert layer.num_batches_tracked.item() == step
    assert layer.running_mean is held and not held.requires_grad
    np.testing.assert_allclose(layer.running_mean.numpy(), mean, rtol=1e-12)
    np.testing.assert_allclose(layer.running_var.numpy(), var, rtol=1e-12)
    layer.eval()
    expected = (X - channels(mean)) / np.sqrt(channels(var) + 1e-5)
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, rtol=1e-10)
    assert layer.num_batches_tracked.item() == 3
    layer.reset_running_stats()
    assert layer.running_mean.tolist() == [0] * 6 and layer.num_batches_tracked.item() == 0
    assert layer.running_var.tolist() == [1] * 6


def test_averages_of_all_batches(backend: Any) -> None:
    layer = nn.BatchNorm1d(6, momentum=None, affine=False, dtype=wg.float64)
    batches = RNG.normal(size=(3, 5, 6))
    for batch in batches:
        layer(wg.asarray(batch))
    np.testing.assert_allclose(layer.running_mean.numpy(), batches.mean((0, 1)), rtol=1e-10)
    variance = batches.var(1, ddof=1).mean(0)
    np.testing.assert_allclose(layer.running_var.numpy(), variance, rtol=1e-10)


@pytest.mark.oracle
@pytest.mark.parametrize("momentum", [0.3, None])
@pytest.mark.parametrize("shape", [(0, 6), (0, 6, 3), (2, 6, 0)])
def test_a_batch_of_nothing_moves_no_averages(momentum: Any, shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    layer = nn.BatchNorm1d(6, momentum=momentum)
    other = torch.nn.BatchNorm1d(6, momentum=momentum)
    for x in (X[:, :, 0].astype("float32"), np.zeros(shape, "float32")):
        out = layer(wg.asarray(x))
        assert tuple(out.shape) == tuple(other(torch.tensor(x)).shape)
    for name, value in other.state_dict().items():
        np.testing.assert_allclose(layer.state_dict()[name].numpy(), value.numpy(), rtol=1e-5)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("momentum", "variance"), [(0.1, 24500.9), (None, math.nan)])
def test_variances_of_half_precision_are_averaged_in_single(
    backend: Any, momentum: Any, variance: float, compiled: bool
) -> None:
    """The variance of a batch, 245000, is outside its range, and so is the mean of all batches."""
    if not hasattr(backend.xp, "float16"):
        pytest.skip("has no float16")
    x = wg.asarray([[300.0], [-400.0]], dtype="float16")
    layer = nn.BatchNorm1d(1, momentum=momentum).half()
    with wg.no_grad():
        (wg.compile(layer) if compiled else layer)(x)
    found = layer.running_var.detach().to(wg.float64).numpy()
    np.testing.assert_allclose(found, [variance], rtol=1e-3)
    out = layer.eval()(x).detach().to(wg.float64).numpy().ravel()
    mean = -50 * (momentum or 1)
    np.testing.assert_allclose(out, (np.array([300, -400]) - mean) / variance**0.5, rtol=2e-3)


@pytest.mark.parametrize("training", [False, True])
def test_averages_wider_than_half_precision(training: bool) -> None:
    """The result is of the input's dtype, and rounded once."""
    layer = nn.BatchNorm1d(3, affine=False, dtype="float32").train(training)
    layer.running_mean.fill_(0.3), layer.running_var.fill_(1e-6)
    x = wg.asarray([[1.0, 2.0, 3.0], [1.5, 1.0, 7.0]], dtype="float16").requires_grad_()
    wide = x.detach().to(wg.float64).requires_grad_()
    out, exact = layer(x), layer.double()(wide)
    assert out.dtype == wg.float16
    np.testing.assert_allclose(out.detach().numpy(), exact.detach().numpy(), rtol=6e-4)
    (out * 2).sum().backward(), (exact * 2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), wide.grad.numpy(), rtol=1e-3, atol=1e-2)


def test_half_precision_counts_more_batches_than_its_range() -> None:
    layer = nn.BatchNorm1d(1, momentum=None).half()
    layer.num_batches_tracked.fill_(70_000)
    layer(wg.asarray([[-6e4], [-6e4]], dtype="float16"))
    np.testing.assert_allclose(layer.running_mean.numpy(), -6e4 / 70_001, rtol=2e-3)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_what_is_added_to_a_mean_square_by_default_is_pytorchs(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = (X[0, 0] * 1e-3).astype(dtype)
    found = F.rms_norm(wg.asarray(x), 2).numpy()
    expected = torch.nn.functional.rms_norm(torch.tensor(x), (2,)).numpy()
    np.testing.assert_allclose(found, expected, rtol=2e-3 if dtype == "float16" else 1e-6)


OPTIONS = st.fixed_dictionaries(
    {
        "affine": st.booleans(),
        "bias": st.booleans(),
        "eps": st.sampled_from([1e-5, 0.3]),
        "track_running_stats": st.booleans(),
        "momentum": st.sampled_from([0.1, 0.7, None]),
    }
)


def layers(lib: Any, dtype: Any, o: dict) -> list[Any]:
    named = {"dtype": dtype, "eps": o["eps"]}
    affine = {"affine": o["affine"], "bias": o["bias"]}
    running = named | affine | {n: o[n] for n in ("track_running_stats", "momentum")}
    members = running | {"momentum": o["momentum"] or 0.0, "track_running_stats": False}
    return [
        (lib.LayerNorm((3, 2), elementwise_affine=o["affine"], bias=o["bias"], **named), X),
        (lib.RMSNorm(2, elementwise_affine=o["affine"], **named), X),
        (lib.GroupNorm(3, 6, **named, **affine), X),
        (lib.BatchNorm1d(6, **running), X[:, :, 0, 0]),
        (lib.BatchNorm1d(6, **running), X[:, :, 0]),
        (lib.BatchNorm2d(6, **running), X),
        (lib.InstanceNorm1d(6, **members), X[:, :, 0]),
        (lib.InstanceNorm1d(6, **members), X[0, :, 0]),
        (lib.InstanceNorm2d(6, **members), X),
    ]


@pytest.mark.oracle
@pytest.mark.parametrize("momentum", [0.3, None])
def test_averages_that_are_no_longer_kept(momentum: float | None) -> None:
    torch = pytest.importorskip("torch")
    options = {"momentum": momentum, "track_running_stats": True}
    ours = nn.BatchNorm1d(6, **options, dtype=wg.float64)
    theirs = torch.nn.BatchNorm1d(6, **options, dtype=torch.float64)
    rng = np.random.default_rng(5)
    for kept, training in product((True, False, True), (True, False)):
        x = rng.normal(size=(3, 6, 4))
        for layer in (ours, theirs):
            layer.train(training).track_running_stats = kept
            if not kept and training:
                layer.reset_running_stats()  # does nothing
        found, expected = ours(wg.asarray(x)), theirs(torch.tensor(x))
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-9)
        for key, value in theirs.state_dict().items():
            np.testing.assert_allclose(ours.state_dict()[key].numpy(), value.numpy(), rtol=1e-9)


@pytest.mark.parametrize("momentum", [0.3, None])
def test_averages_that_are_taken_away(momentum: float | None) -> None:
    layer = nn.BatchNorm1d(6, momentum=momentum, dtype=wg.float64)
    layer.running_mean = layer.running_var = None
    for training in (True, False):
        out = layer.train(training)(wg.asarray(X[:, :, 0, 0])).detach().numpy()
        np.testing.assert_allclose(out.mean(0), 0, atol=1e-12)
    layer.running_var = wg.ones(6, dtype="float64")
    with pytest.raises(RuntimeError, match="needs running_mean and running_var"):
        layer(wg.asarray(X[:, :, 0, 0]))


@pytest.mark.oracle
@settings(max_examples=20)
@given(options=OPTIONS)
def test_layers_are_pytorchs(options: dict) -> None:
    torch = pytest.importorskip("torch")
    with wg.use_backend("numpy"):
        ours, theirs = layers(nn, wg.float64, options), layers(torch.nn, torch.float64, options)
        for (a, x), (b, _) in zip(ours, theirs, strict=True):
            assert repr(a) == repr(b)
            rng = np.random.default_rng(3)
            for training in (True, True, False):
                a.train(training)
                b.train(training)
                check_twins(a, b, [x + rng.normal(size=x.shape)])
            state = b.state_dict()
            assert [*a.state_dict()] == [*state]
            for name, value in a.state_dict().items():
                np.testing.assert_allclose(value.numpy(), state[name].numpy(), rtol=1e-10)


#: For three channels, of two dtypes.
AVERAGES = wg.zeros(3, dtype="float32"), wg.ones(3, dtype="float64")


#: Calls, their errors, and what these say.
REFUSED = r"""
nn.LayerNorm(3)(wg.ones((2, 4))) | RuntimeError | expected input with shape \['\*', 3\]
nn.GroupNorm(4, 6) | ValueError | num_channels \(6\) must be divisible by num_groups \(4\)
F.group_norm(wg.ones((2, 6)), 4) | RuntimeError | divisible by num_groups
nn.GroupNorm(6, 6)(wg.ones((1, 6, 1))) | ValueError | more than 1 value per group
nn.BatchNorm1d(3)(wg.ones((1, 3))) | ValueError | more than 1 value per channel
nn.BatchNorm1d(3)(wg.ones((2, 4))) | ValueError | \(N, C\) or \(N, C, L\) with C=3
nn.BatchNorm2d(3)(wg.ones((2, 3))) | ValueError | BatchNorm2d takes an input \(N, C, H, W\)
nn.InstanceNorm1d(3)(wg.ones((2, 3, 1))) | ValueError | more than 1 spatial element
nn.InstanceNorm2d(3, track_running_stats=True) | ValueError | leave track_running_stats out
F.instance_norm(wg.ones((2, 3, 4)), wg.zeros(3)) | TypeError | positional
F.batch_norm(wg.ones((2, 3)), None, None) | RuntimeError | when training=False, and got None
F.batch_norm(wg.ones((2, 3)), wg.ones(2), wg.ones(3)) | RuntimeError | mean of shape \(3,\)
F.batch_norm(wg.ones((2, 3)), wg.ones(3), np.ones(3, "f"), training=True) | TypeError |
    updates its running_var, a Tensor and not a ndarray, in place
F.layer_norm(wg.ones((2, 3)), 3, wg.ones(2)) | RuntimeError | a weight of shape \(3,\)
nn.LayerNorm(3)(wg.ones((2, 3), dtype=wg.float64)) | RuntimeError | module.to\(wg.float64\)
F.rms_norm(wg.ones((2, 3), dtype=wg.int64), 3) | TypeError | real floating input, not one
F.batch_norm(wg.ones((2, 3)), *AVERAGES, training=False) | RuntimeError | var of float64
F.batch_norm(wg.ones((2, 3)), *AVERAGES, training=True) | RuntimeError | var of float64
"""


def test_what_does_not_fit_is_told() -> None:
    walk(refusals(REFUSED), refuse(AVERAGES=AVERAGES), whole=True)


@pytest.mark.parametrize("shape", [(4, 0), (0, 0), (4, 0, 2)])
def test_no_channels_are_normalised_as_any(shape: tuple[int, ...]) -> None:
    assert F.batch_norm(wg.ones(shape), None, None, training=True).shape == shape
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        F.batch_norm(wg.ones((1, 0)), None, None, training=True)


def test_nothing_has_changed_after_an_error() -> None:
    layer = nn.BatchNorm1d(3)
    with pytest.raises(ValueError, match="more than 1 value"):
        layer(wg.ones((1, 3)))
    assert layer.num_batches_tracked.item() == 0


# -- NumPy's kernels, of long rows -----------------------------------------------------------------

#: Shapes of an input, of a weight beside it, and the axes of the means.
LONG: dict[str, tuple[tuple[int, ...], tuple[int, ...] | None, tuple[int, ...]]] = {
    "layer": ((3, 2, 128), (128,), (2,)),
    "layers": ((5, 12, 11), (12, 11), (1, 2)),
    "prime": ((4, 131), (131,), (1,)),
    "rows alone": ((6, 300), None, (1,)),
    "instance": ((2, 3, 16, 20), (3, 1, 1), (2, 3)),
    "batch": ((4, 3, 16, 16), (3, 1, 1), (0, 2, 3)),
    "one for a group": ((2, 3, 4, 128), (3, 1, 1), (2, 3)),
    "group": ((2, 3, 4, 100), (3, 4, 1), (2, 3)),
    "wide group": ((2, 3, 4, 256), (3, 4, 1), (2, 3)),
    "one row": ((512,), (512,), (0,)),
    "over all, a weight for each place": ((4, 128), (128,), (0, 1)),
    "a weight for part of a row": ((4, 8, 16), (8, 1), (1, 2)),
    "short": ((4, 5, 7), (5, 1), (0, 2)),
}


def onto(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The sum of an array over the axes along which a shape broadcasts to it."""
    beside = (1,) * (x.ndim - len(shape)) + shape
    over = tuple(i for i, n in enumerate(beside) if n == 1)
    return x.sum(over, keepdims=True).reshape(shape)


@pytest.mark.whole
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LONG)
def test_kernels_are_their_composites(name: str, dtype: str) -> None:
    shape, beside, axis = LONG[name]
    rng = np.random.default_rng(1)
    xp, eps = namespaces[np.ndarray], float(np.finfo(dtype).eps)

    def drawn(of: Any, factor: float = 1) -> Any:
        return None if of is None else (factor * rng.normal(size=of)).astype(dtype)

    def check(kernel: str, *inputs: Any, like: Any = None, **options: Any) -> Any:
        """The composite's results in double precision, to which the kernel's are close."""
        wide = [None if x is None else x.astype("float64") for x in inputs]
        found = getattr(xp, kernel)(*inputs, **options)
        expected = composites[kernel](xp, *wide, **options)
        if not isinstance(found, tuple):
            found, expected = (found,), (expected,)
        for a, b in zip(found, expected, strict=True):
            assert a.dtype == dtype
            if like is not None:
                a, b = onto(a, like), onto(b, like)
            assert a.shape == b.shape
            # Rounding is in proportion to the largest terms, and grows as sums do.
            largest = float(np.abs(b).max()) + (math.sqrt(wide[0].size) if like else 1)
            np.testing.assert_allclose(a, b, rtol=0, atol=32 * eps * largest)
        return [b.astype(dtype) for b in expected]

    for x in (drawn(shape, 3) + 1, drawn(shape[::-1], 3).T + 1):  # in two orders in memory
        for centred in (True, False):
            options = {"axis": axis, "centred": centred}
            for weight, bias in product((drawn(beside), None), (drawn(beside), None)):
                if bias is not None and weight is None:
                    continue
                given = x.copy()
                found = check("standardised", x, weight, bias, eps=0.1, **options)
                y, inverse, g = found[0 if weight is None else -1], found[1], drawn(shape)
                check("standardised_cotangent", g, y, weight, inverse, **options)
                if weight is not None:
                    check("standardised_by_weight", g, y, like=beside, axis=axis, shape=beside)
                np.testing.assert_array_equal(x, given)


@pytest.mark.parametrize("shape", [(4, 4, 160), (6, 4, 16, 16), (3, 4, 5)])
def test_compiled_derivatives_are_the_eager_ones_to_the_bit(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    with wg.use_backend("numpy"):
        wg.manual_seed(0)
        norms = nn.BatchNorm1d if len(shape) == 3 else nn.BatchNorm2d
        layers = norms(4), nn.GroupNorm(2, 4), nn.LayerNorm(shape[-1]), nn.RMSNorm(shape[-1])
        parameters = [p for layer in layers for p in layer.parameters()]

        def step(x: Any, w: Any) -> Any:
            out = [wg.sum(layer(x) * w) for layer in layers]
            return out, wg.autograd.grad(sum(out), [x, *parameters])

        compiled = wg.compile(step)
        for _ in range(4):
            x, w = (wg.asarray(rng.normal(size=shape).astype("float32")) for _ in range(2))
            x.requires_grad_()
            state = layers[0].state_dict()
            held = {name: value.numpy().copy() for name, value in state.items()}
            values, slopes = step(x, w)
            averages = {name: v.numpy().copy() for name, v in layers[0].state_dict().items()}
            layers[0].load_state_dict({name: wg.asarray(v) for name, v in held.items()})
            others, more = compiled(x, w)
            for a, b in zip((*values, *slopes), (*others, *more), strict=True):
                np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
            for name, value in layers[0].state_dict().items():
                np.testing.assert_array_equal(value.numpy(), averages[name])


@pytest.mark.parametrize("function", [x for x, facts in KERNELS.items() if facts.of_rows])
def test_numpys_buffer_is_left_as_it_was(function: Any) -> None:
    before, number = np.setbufsize(4096), function.__code__.co_argcount - 1
    try:
        function(np.ones((2, 256)), *[np.ones((2, 1))] * number)
        assert np.getbufsize() == 4096
        with pytest.raises(ValueError, match="broadcast"):
            function(np.ones((2, 256)), *[np.ones((3, 1))] * number)
        assert np.getbufsize() == 4096
    finally:
        np.setbufsize(before)


@pytest.mark.parametrize("wide", [False, True])
def test_a_large_mean_loses_no_digits(wide: bool) -> None:
    """Of centred numbers products are taken, so that a mean of 1000 deviations is harmless."""
    x = (np.random.default_rng(4).normal(size=(3, 4096 if wide else 128)) + 1000).astype("float32")
    exact = standard(x.astype("float64"), -1)
    with wg.use_backend("numpy"):
        found = F.layer_norm(wg.asarray(x), x.shape[-1]).numpy()
    # The mean's own rounding is half a unit of 1000.
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=2 * 2.0**-14)


@pytest.mark.parametrize("length", [16, 128, 512])
@pytest.mark.parametrize("factor", [1e-14, 1e14])
def test_small_and_large_numbers_have_derivatives(backend: Any, length: int, factor: float) -> None:
    rng = np.random.default_rng(6)
    x, g = rng.normal(size=(2, 3, 2, length))
    w = rng.uniform(0.5, 2, size=length)

    def gradients(x: Any, function: Any, dtype: str) -> list[Any]:
        given = wg.asarray(x, dtype=dtype).requires_grad_()
        out = wg.sum(function(given) * wg.asarray(g, dtype=dtype))
        (found,) = wg.autograd.grad(out, [given])
        return found.numpy()

    for function in (
        lambda x: F.layer_norm(x, length, wg.asarray(w, dtype=x.dtype), eps=0.0),
        lambda x: F.group_norm(x, 2, eps=0.0),
    ):
        found = gradients(x * factor, function, "float32") * factor
        expected = gradients(x, function, "float64")
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("eps", [1e-12, 1e-8, 1e-6, 1e-5, 1e-3, 2e-3, 1e-2, 49.0])
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside zeros"])
def test_vectors_shorter_than_the_epsilon_are_divided_by_it(
    backend: Any, eps: float, dtype: str, beside: bool
) -> None:
    for n in (2, 3, 7, 8, 100):
        row = (0.3 * eps / n * np.arange(1, n + 1) / n).astype(dtype)
        g = np.arange(1.0, n + 1).astype(dtype)
        x = wg.tensor(np.stack([row, 0 * row]) if beside else row[None], requires_grad=True)
        wg.sum(F.normalize(x, eps=eps) * wg.asarray(g)).backward()
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy()[0], g / eps, rtol=1e-5)
        _, tangent = wg.jvp(lambda x: F.normalize(x, eps=eps), (x.detach(),), (x.detach(),))
        np.testing.assert_allclose(tangent.numpy()[0], row / eps, rtol=1e-5)


@pytest.mark.parametrize("p", [0.5, 1.0, 3.0, float("inf")])
@pytest.mark.parametrize("values", [[1.8e-14, 1.27e35], [3e38, 2e38], [-3e38, 1e-30]])
def test_other_norms_of_any_scale(p: float, values: list[float]) -> None:
    """Small numbers beside huge ones keep their slope, and sums beyond the range their result."""
    found = []
    for scale, dtype in ((1.0, wg.float32), (1e-40, wg.float64)):
        x = wg.asarray(np.array([values]) * scale, dtype=dtype).requires_grad_()
        y = F.normalize(x, p=p, dim=1, eps=0.0)
        (g,) = wg.autograd.grad((y * wg.asarray([[1.0, 2.0]], dtype=dtype)).sum(), x)
        found.append((y.detach().numpy(), g.numpy().astype(np.float64) * scale))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6, atol=1e-44)
    if p != 0.5:  # whose slope at 1e-14 beside 1e35 is beyond the range
        size = 1 / max(map(abs, values))
        np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-5, atol=1e-6 * size)


@pytest.mark.filterwarnings("ignore:(invalid|overflow):RuntimeWarning")
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
def test_beside_an_infinity_all_others_are_zero(backend: Any, p: float) -> None:
    """As PyTorch has it: the infinity itself is none of a direction's numbers."""
    for dtype in ("float32", "float64"):
        x = wg.asarray([[1.0, -math.inf, 2.0], [3.0, 0.0, 4.0]], dtype=dtype)
        found = F.normalize(x, p).numpy()
        np.testing.assert_array_equal(found[0], [0, math.nan, 0])
        assert np.isfinite(found[1]).all()
