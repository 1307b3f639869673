"""Pooling against PyTorch, and by its formula."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wengert as wg
from tests.nn.test_functional import RNG
from tests.nn.twins import check_twins, values
from tests.walking import refusals, refuse, walk
from wengert import nn
from wengert.nn import functional as F

few = settings(max_examples=25, deadline=None)


@st.composite
def pools(draw: Any) -> Any:
    count = draw(st.sampled_from([1, 2]))

    def each(least: int, most: int) -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(least, most), min_size=count, max_size=count)))

    size, dilation = each(1, 4), each(1, 2)
    padding = tuple([draw(st.integers(0, k // 2)) for k in size])
    stride = draw(st.sampled_from([None, each(1, 3)]))
    shape = (*draw(st.sampled_from([(), (2,)])), 2, *each(8, 11))
    options = {"stride": stride, "padding": padding}
    return count, shape, size, options, dilation


@pytest.mark.oracle
@pytest.mark.slow
@few
@given(pools(), st.booleans(), st.data())
def test_pools_are_pytorchs(case: Any, counts: bool, data: Any) -> None:
    torch = pytest.importorskip("torch")
    count, shape, size, options, dilation = case
    x = RNG.normal(size=shape)

    def both(name: str, *args: Any, **keywords: Any) -> None:
        check_twins(
            lambda x: getattr(F, name)(x, *args, **keywords),
            lambda x: getattr(torch.nn.functional, name)(x, *args, **keywords),
            [x],
            1,
        )

    both(f"max_pool{count}d", size, dilation=dilation, **options)
    both(f"avg_pool{count}d", size, count_include_pad=counts, **options)
    lengths = data.draw(st.tuples(*[st.integers(1, n + 2) for n in shape[-count:]]))
    both(f"adaptive_avg_pool{count}d", lengths[0] if count == 1 else lengths)


@pytest.mark.oracle
@pytest.mark.slow
@few
@given(pools(), st.sampled_from(["ties", "nan", "infinite"]))
def test_maxima_are_pytorchs(case: Any, what: str) -> None:
    torch = pytest.importorskip("torch")
    count, shape, size, options, dilation = case
    x = RNG.integers(-3, 3, size=shape).astype(np.float64)
    if what == "nan":
        x[RNG.random(shape) < 0.2] = np.nan
    if what == "infinite":
        x[RNG.random(shape) < 0.6] = -np.inf
    name, keywords = f"max_pool{count}d", {"dilation": dilation, **options}
    ours, theirs = wg.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    found = getattr(F, name)(ours, size, **keywords)
    expected = getattr(torch.nn.functional, name)(theirs, size, **keywords)
    np.testing.assert_array_equal(values(found), values(expected))
    seed = RNG.normal(size=found.shape)
    found.backward(wg.asarray(seed))
    expected.backward(torch.tensor(seed))
    np.testing.assert_allclose(values(ours.grad), values(theirs.grad), rtol=1e-12)


def windows_of(n: int, k: int, s: int, p: int, d: int) -> list[list[int]]:
    """The places of each window's elements along one axis, without those in the padding."""
    span = (k - 1) * d + 1
    starts = [i * s - p for i in range((n + 2 * p - span) // s + 1)]
    return [[i for i in range(a, a + span, d) if 0 <= i < n] for a in starts]


CASES = [
    ((2, 2, 6, 7), (2, 2), (2, 2), (0, 0), (1, 1)),
    ((2, 2, 6, 7), (3, 2), (2, 1), (1, 1), (1, 2)),
    ((1, 2, 7, 7), (3, 3), (2, 2), (1, 0), (1, 1)),
    ((2, 2, 8), (3,), (2,), (1,), (2,)),
    ((2, 2, 5), (2,), (3,), (1,), (1,)),
]


@pytest.mark.parametrize(("shape", "size", "stride", "padding", "dilation"), CASES)
def test_pools_by_their_formula(
    backend: Any, shape: Any, size: Any, stride: Any, padding: Any, dilation: Any
) -> None:
    count = len(size)
    x = RNG.normal(size=shape)
    given = wg.asarray(x)
    pool = (F.max_pool1d, F.max_pool2d)[count - 1]
    found = pool(given.requires_grad_(), size, stride, padding, dilation)
    axes = zip(shape[2:], size, stride, padding, dilation, strict=True)
    lines = [windows_of(*axis) for axis in axes]
    assert found.shape == (*shape[:2], *map(len, lines))
    seed, slope = RNG.normal(size=found.shape), np.zeros(shape)
    for at in np.ndindex(*map(len, lines)):
        inside = np.ix_(*[line[i] for line, i in zip(lines, at, strict=True)])
        part = x[(..., *inside)].reshape(*shape[:2], -1)
        np.testing.assert_array_equal(values(found)[(..., *at)], part.max(axis=-1))
        largest = x[(..., *inside)] == values(found)[(..., *at)].reshape(*shape[:2], *[1] * count)
        slope[(..., *inside)] += largest * seed[(..., *at)].reshape(*shape[:2], *[1] * count)
    found.backward(wg.asarray(seed))
    np.testing.assert_allclose(values(given.grad), slope, rtol=1e-12, atol=1e-15)
    if any(d > 1 for d in dilation):
        return
    mean = (F.avg_pool1d, F.avg_pool2d)[count - 1]
    found = values(mean(given, size, stride, padding, count_include_pad=False))
    with_padding = values(mean(given, size, stride, padding))
    for at in np.ndindex(*map(len, lines)):
        part = x[(..., *np.ix_(*[line[i] for line, i in zip(lines, at, strict=True)]))]
        inside_axes = tuple(range(2, 2 + count))
        np.testing.assert_allclose(found[(..., *at)], part.mean(axis=inside_axes), rtol=1e-12)
        expected = part.sum(axis=inside_axes) / np.prod(size)
        np.testing.assert_allclose(with_padding[(..., *at)], expected, rtol=1e-12)


@pytest.mark.parametrize("lengths", [(3, 4), (6, 7), (2, None), (4, 9), 1, None])
def test_adaptive_pools_by_their_formula(backend: Any, lengths: Any) -> None:
    x = RNG.normal(size=(2, 2, 6, 7))
    given = wg.asarray(x)
    asked = lengths if isinstance(lengths, tuple) else (lengths,) * 2
    counts = [n if c is None else c for n, c in zip((6, 7), asked, strict=True)]
    mean = F.adaptive_avg_pool2d(given, lengths)
    assert mean.shape == (2, 2, *counts)
    for i, j in np.ndindex(*counts):
        rows = slice(i * 6 // counts[0], -(-(i + 1) * 6 // counts[0]))
        columns = slice(j * 7 // counts[1], -(-(j + 1) * 7 // counts[1]))
        part = x[:, :, rows, columns]
        np.testing.assert_allclose(values(mean)[..., i, j], part.mean(axis=(2, 3)), rtol=1e-12)
    line = wg.asarray(x[0])
    one, other = F.adaptive_avg_pool1d(line[:, 0], 3), F.adaptive_avg_pool2d(line[:, :1], (1, 3))
    np.testing.assert_allclose(values(one), values(other)[:, 0], rtol=1e-12)


def test_ties_and_nan(backend: Any) -> None:
    x = wg.asarray([[[1.0, 2.0, 2.0, 2.0], [-np.inf, -np.inf, 0.0, np.nan]]]).requires_grad_()
    found = F.max_pool1d(x, 2, padding=1)
    np.testing.assert_array_equal(values(found)[0], [[1, 2, 2], [-np.inf, 0, np.nan]])
    found.sum().backward()
    np.testing.assert_array_equal(values(x.grad)[0], [[1, 1, 0, 1], [1, 0, 1, 1]])
    # The last of several nan, as PyTorch says; the first of equal maxima.
    y = wg.asarray([[[np.nan, np.nan, 1.0, 3.0, 3.0, 0.0]]]).requires_grad_()
    F.max_pool1d(y, 3).sum().backward()
    assert values(y.grad).tolist() == [[[0, 1, 0, 1, 0, 0]]]
    whole = F.max_pool1d(wg.asarray([[[3, 1, 2, 2]]]), 2)
    assert whole.dtype == wg.int64
    assert values(whole).tolist() == [[[3, 2]]]


@pytest.mark.parametrize(
    "name", [f"{kind}_pool{n}d" for kind in ("avg", "max", "adaptive_avg") for n in (1, 2)]
)
def test_errors_name_the_function(name: str) -> None:
    option = "output_size" if "adaptive" in name else "kernel_size"
    x = wg.ones((2,) * (int(name[-2]) + 1))
    with pytest.raises(RuntimeError, match=f"^{name} needs {option} of 1 at least, and got 0$"):
        getattr(F, name)(x, 0)
    with pytest.raises(TypeError, match=rf"^{name} takes .* as {option}, and was given 'a'$"):
        getattr(F, name)(x, "a")
    with pytest.raises(RuntimeError, match=f"^{name} takes an input of shape"):
        getattr(F, name)(x[0], 1)


#: Calls, their errors, and what these say.
REFUSED = r"""
F.max_pool2d(x, 9) | RuntimeError | do not fit into
F.max_pool2d(x, 2, padding=2) | RuntimeError | at most half
F.max_pool2d(x[:, :, :1], 2, padding=(1, 0), dilation=2) | RuntimeError | but padding alone
F.max_pool1d(x[0, :, :1, 0], 2, padding=1, dilation=2) | RuntimeError | alone
F.max_pool2d(wg.astype(x, wg.complex64), 2) | TypeError | have no order
F.max_pool2d(x, 2, dilation=0) | RuntimeError | dilation of 1 at least
F.max_pool2d(x, 2, 2, 0, 1, True) | TypeError | positional
nn.MaxPool2d(2, 2, 0, 1, True) | TypeError | positional
F.avg_pool2d(x[0, 0], 2) | RuntimeError | \(N, C, H, W\) or \(C, H, W\)
F.avg_pool2d([1], 2) | TypeError | not list
F.adaptive_avg_pool2d(x, (1, 2, 3)) | RuntimeError | 2 of them
nn.AvgPool1d(1.5)(x[0]) | TypeError | kernel_size
"""


def test_what_does_not_fit() -> None:
    walk(refusals(REFUSED), refuse(x=wg.ones(1, 2, 6, 6)), whole=True)


MODULES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("MaxPool1d", (2,), {}),
    ("MaxPool2d", (3, 2), {"padding": 1, "dilation": 1}),
    ("AvgPool1d", (2,), {"padding": 1, "count_include_pad": False}),
    ("AvgPool2d", ((3, 2),), {"stride": (2, 1)}),
    ("AdaptiveAvgPool1d", (3,), {}),
    ("AdaptiveAvgPool2d", ((3, None),), {}),
]


@pytest.mark.parametrize(("name", "args", "options"), MODULES)
def test_modules_are_their_functions(name: str, args: Any, options: dict[str, Any]) -> None:
    x = wg.asarray(RNG.normal(size=(2, 3, 7) if "1d" in name else (2, 3, 7, 6)))
    words = "".join("_" + c.lower() if c.isupper() else c for c in name)[1:]
    names = ("kernel_size", "stride") if "Adaptive" not in name else ("output_size",)
    expected = getattr(F, words)(x, **dict(zip(names, args, strict=False)), **options)
    np.testing.assert_array_equal(values(getattr(nn, name)(*args, **options)(x)), values(expected))
