"""Convolutions, their adjoints and windows as columns, against PyTorch and by their formulas."""

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
def convolutions(draw: Any, transposed: bool = False) -> Any:
    """How many spatial axes there are, the shapes of the operands, and options that fit them."""
    count = draw(st.sampled_from([1, 2]))

    def each(least: int, most: int) -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(least, most), min_size=count, max_size=count)))

    groups, size, dilation = draw(st.sampled_from([1, 2, 3])), each(1, 3), each(1, 2)
    stride, lengths = each(1, 3), each(5, 7)
    padding: Any = draw(st.sampled_from([each(0, 2), draw(st.integers(0, 2))]))
    options = {"stride": stride, "dilation": dilation, "groups": groups}
    if transposed:
        most = [max(s, d) - 1 for s, d in zip(stride, dilation, strict=True)]
        options["output_padding"] = tuple([draw(st.integers(0, n)) for n in most])
        weight = (2 * groups, draw(st.integers(1, 2)), *size)
        produced = weight[1] * groups
    else:
        named = draw(st.sampled_from(["", "same", "valid"]))
        if named == "same":
            options["stride"] = 1
        padding = named or padding
        produced = groups * draw(st.integers(1, 2))
        weight = (produced, 2, *size)
    examples = draw(st.sampled_from([(), (1,), (2,)]))
    shapes = [(*examples, 2 * groups, *lengths), weight, (produced,)]
    return count, shapes[: draw(st.sampled_from([2, 3]))], {**options, "padding": padding}


@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions_are_pytorchs(transposed: bool) -> None:
    torch = pytest.importorskip("torch")
    name = "conv_transpose" if transposed else "conv"

    @few
    @given(convolutions(transposed))
    def check(case: Any) -> None:
        count, shapes, options = case
        arrays = [RNG.normal(size=shape) for shape in shapes]
        check_twins(
            lambda *given: getattr(F, f"{name}{count}d")(*given, **options),
            lambda *given: getattr(torch.nn.functional, f"{name}{count}d")(*given, **options),
            arrays,
            len(arrays),
        )

    check()


def by_hand(x: Any, w: Any, b: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """A convolution as its formula has it, in loops."""
    x = np.pad(x, ((0, 0), (0, 0), *[(p, p) for p in padding]))
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    counts = [(n - span) // s + 1 for n, span, s in zip(x.shape[2:], spans, stride, strict=True)]
    out = np.empty((len(x), len(w), *counts))
    own, made = w.shape[1], len(w) // groups
    for o in range(len(w)):
        channels = slice(o // made * own, (o // made + 1) * own)
        for at in np.ndindex(*counts):
            window = [
                slice(i * s, i * s + span, d)
                for i, s, span, d in zip(at, stride, spans, dilation, strict=True)
            ]
            part = x[(slice(None), channels, *window)]
            out[(slice(None), o, *at)] = (part * w[o]).sum(axis=tuple(range(1, x.ndim))) + b[o]
    return out


FORMULAS = [
    ((2, 4, 5, 6), (6, 2, 3, 2), (2, 1), (1, 0), (1, 2), 2),
    ((1, 2, 4, 4), (3, 2, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((2, 2, 9), (2, 2, 3), (3,), (2,), (2,), 1),
    ((2, 3, 7), (6, 1, 2), (1,), (0,), (1,), 3),
]


@pytest.mark.parametrize(("shape", "kernel", "stride", "padding", "dilation", "groups"), FORMULAS)
def test_convolutions_by_their_formula(
    backend: Any, shape: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> None:
    x, w, b = (RNG.normal(size=s) for s in (shape, kernel, kernel[:1]))
    convolve = (F.conv1d, F.conv2d)[len(stride) - 1]
    found = convolve(*map(wg.asarray, (x, w, b)), stride, padding, dilation, groups)
    expected = by_hand(x, w, b, stride, padding, dilation, groups)
    np.testing.assert_allclose(values(found), expected, rtol=1e-12, atol=1e-12)
    one = convolve(*map(wg.asarray, (x[0], w, b)), stride, padding, dilation, groups)
    np.testing.assert_allclose(values(one), expected[0], rtol=1e-12, atol=1e-12)
    none = convolve(*map(wg.asarray, (x[:0], w, b)), stride, padding, dilation, groups)
    assert none.shape == (0, *expected.shape[1:])


@pytest.mark.parametrize(("shape", "kernel", "stride", "padding", "dilation", "groups"), FORMULAS)
def test_a_transposed_convolution_is_the_adjoint(
    backend: Any, shape: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> None:
    x, w = (wg.asarray(RNG.normal(size=s)) for s in (shape, kernel))
    count = len(stride)
    convolve = (F.conv1d, F.conv2d)[count - 1]
    adjoint = (F.conv_transpose1d, F.conv_transpose2d)[count - 1]
    y = convolve(x, w, None, stride, padding, dilation, groups)
    g = wg.asarray(RNG.normal(size=tuple(y.shape)))
    spans = [(k - 1) * d + 1 for k, d in zip(kernel[2:], dilation, strict=True)]
    # What the last window leaves of the input.
    more = tuple(
        [
            (n + 2 * p - span) % s
            for n, p, span, s in zip(shape[2:], padding, spans, stride, strict=True)
        ]
    )
    back = adjoint(g, w, None, stride, padding, more, groups, dilation)
    assert back.shape == x.shape
    # <conv(x), g> = <x, conv*(g)>
    np.testing.assert_allclose(values((y * g).sum()), values((x * back).sum()), rtol=1e-10)
    bias = wg.asarray(np.arange(1.0, back.shape[1] + 1))
    lifted = adjoint(g, w, bias, stride, padding, more, groups, dilation)
    added = (
        values(lifted) - values(back) - np.arange(1.0, back.shape[1] + 1).reshape(-1, *[1] * count)
    )
    np.testing.assert_allclose(added, 0, atol=1e-12)


#: Calls, their errors, and what these say.
REFUSED = r"""
F.conv2d(x[0, 0], w) | RuntimeError | of shape \(N, C, H, W\) or \(C, H, W\)
F.conv2d(x, w[:, :1]) | RuntimeError | it needs \(N, C, H, W\)
F.conv2d(x, w, wg.ones(2)) | RuntimeError | a bias of shape
F.conv2d(x, w, groups=0) | RuntimeError | groups=0
F.conv2d(x, w.to(wg.float64)) | RuntimeError | weight of float64
F.conv2d(x, [1]) | TypeError | a list as weight
F.conv2d(x, None) | TypeError | a NoneType as weight
F.conv2d(x, w, stride=0) | RuntimeError | stride of 1 at least
F.conv2d(x, w, stride=(1, 1, 1)) | RuntimeError | 2 of them as stride
F.conv2d(x, w, stride=1.5) | TypeError | integer or 2 of them as stride
F.conv2d(x, w, padding=-1) | RuntimeError | padding of 0 at least
F.conv2d(x, w, padding="full") | ValueError | 'same', 'valid' or integers
F.conv2d(x, w, stride=2, padding="same") | ValueError | is for stride 1
F.conv2d(x, w, dilation=4) | RuntimeError | windows of \(9, 9\) do not fit
F.conv_transpose2d(x, w) | RuntimeError | \(C, O/groups, k, k\)
F.conv_transpose2d(x, w[:2], output_padding=1) | RuntimeError | has to be less than the stride
F.conv_transpose2d(x, w[:2], padding=9) | RuntimeError | leaves nothing
nn.Conv2d(3, 2, 1, groups=2) | ValueError | in_channels must be divisible
nn.Conv2d(2, 2, 1, groups=0) | ValueError | positive
F.pad(x, (1,)) | RuntimeError | two widths for each
F.pad(x, (1, 1), mode="edge") | NotImplementedError | mode is one of
F.pad(x, (9, 1), mode="reflect") | RuntimeError | do not fit an axis
F.pad(x, (1, 1), mode="reflect", value=1) | ValueError | for mode 'constant'
F.pad(x, (-5, -5)) | RuntimeError | do not fit an axis
F.pad(x, (3, -5), mode="circular") | RuntimeError | do not fit an axis
"""


def test_what_does_not_fit() -> None:
    x, w = wg.ones(2, 2, 6, 6), wg.ones(4, 2, 3, 3)
    walk(refusals(REFUSED), refuse(x=x, w=w), whole=True)


# -- windows as columns, and margins ---------------------------------------------------------------


def test_a_convolution_is_a_product_with_columns(backend: Any) -> None:
    x, w = (wg.asarray(RNG.normal(size=s)) for s in ((2, 3, 5, 6), (4, 3, 2, 3)))
    columns = F.unfold(x, (2, 3), dilation=(1, 2), padding=1)
    out = wg.reshape(wg.reshape(w, (4, 18)) @ columns, (2, 4, 6, 4))
    expected = values(F.conv2d(x, w, dilation=(1, 2), padding=1))
    np.testing.assert_allclose(values(out), expected, rtol=1e-12, atol=1e-12)


MARGINS = [
    ((1, 2), "constant", None),
    ((1, -1, 0, 2), "constant", 3.0),
    ((2, 1, 1, 2), "reflect", None),
    ((2, -2, -1, 3), "reflect", None),
    ((-4, 4, 1, 0), "reflect", None),
    ((-1, 3), "replicate", None),
    ((-5, 2, 1, 1), "replicate", None),
    ((2, 0, 3, 1), "circular", None),
    ((-2, 2, 3, -1), "circular", None),
    ((-2, -1), "constant", None),
    ((0, 0), "constant", None),
    ((), "constant", None),
]


@pytest.mark.parametrize(("widths", "mode", "value"), MARGINS)
def test_margins(backend: Any, widths: Any, mode: str, value: Any) -> None:
    x = RNG.normal(size=(2, 3, 4, 5))
    pairs = [*zip(widths[::2], widths[1::2], strict=True)][::-1]
    wide = [(0, 0)] * (4 - len(pairs)) + pairs

    def cut(x: np.ndarray) -> np.ndarray:
        ends = zip(wide, x.shape, strict=True)
        return x[tuple(slice(max(-a, 0), n + min(b, 0)) for (a, b), n in ends)]

    name = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    options = {"constant_values": value or 0} if mode == "constant" else {}
    positive = [(max(a, 0), max(b, 0)) for a, b in wide]
    if mode in ("reflect", "replicate"):
        expected = cut(np.pad(x, positive, name[mode]))
    else:
        expected = np.pad(cut(x), positive, name[mode], **options)
    given = wg.asarray(x)
    found = F.pad(given, widths, mode, value)
    assert found is not given
    np.testing.assert_array_equal(values(found), expected)


@pytest.mark.oracle
def test_margins_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    for row in MARGINS:
        if row[0] and (row[1] == "constant" or len(row[0]) == 4):
            ours, theirs = (lambda x, f=f: f(x, *row) for f in (F.pad, torch.nn.functional.pad))  # noqa: B023
            check_twins(ours, theirs, [RNG.normal(size=(2, 3, 4, 5))], 1)


# -- modules ---------------------------------------------------------------------------------------


def test_modules_without_pytorch(backend: Any) -> None:
    x = wg.asarray(RNG.normal(size=(1, 2, 4, 4)), dtype=wg.float32)
    layer = nn.Conv2d(2, 4, 3, padding=1, groups=2)
    expected = F.conv2d(x, layer.weight, layer.bias, padding=1, groups=2)
    np.testing.assert_array_equal(values(layer(x)), values(expected))
    assert repr(layer).endswith("kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), groups=2)")
    back = nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=(1, 0))
    longer = F.conv_transpose2d(x, back.weight, back.bias, 2, 1, (1, 0))
    np.testing.assert_array_equal(values(back(x)), values(longer))
    assert nn.Conv1d(4, 3, 2)(x[0]).shape == (2, 3, 3)
    assert nn.ConvTranspose1d(4, 3, 2)(x[0]).shape == (2, 3, 5)
    for pad, mode in ((nn.ZeroPad2d, "constant"), (nn.ReflectionPad2d, "reflect")):
        turned = F.pad(x, (1, 0, 2, 0), mode)
        np.testing.assert_array_equal(values(pad((1, 0, 2, 0))(x)), values(turned))
    assert nn.Conv2d(0, 3, 1).bias.shape == (3,)
