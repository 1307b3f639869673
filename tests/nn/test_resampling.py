"""Interpolation and shuffled channels, against PyTorch and by their formulas."""

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
from wengert.testing import gradcheck


@st.composite
def resamplings(draw: Any) -> Any:
    count = draw(st.sampled_from([1, 2]))
    lengths = draw(st.tuples(*[st.integers(2, 9)] * count))
    linear = ("linear", "bilinear")[count - 1]
    options: dict[str, Any] = {"mode": draw(st.sampled_from(["nearest", linear]))}
    if options["mode"] == linear:
        options["align_corners"] = draw(st.sampled_from([None, True, False]))
    if draw(st.booleans()):
        options["size"] = draw(st.tuples(*[st.integers(1, 17)] * count))
    else:
        # PyTorch's derivative of signals takes other elements than its values do where the scale
        # is not the ratio of the lengths.
        scale = st.sampled_from([2.0, 3.0, 0.5] if count == 1 else [2.0, 3.0, 0.5, 1.3, 0.7])
        options["scale_factor"] = draw(st.tuples(*[scale] * count))
    return (2, 2, *lengths), options


@pytest.mark.oracle
@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(resamplings())
def test_interpolation_is_pytorchs(case: Any) -> None:
    torch = pytest.importorskip("torch")
    shape, options = case
    x = RNG.normal(size=shape)
    check_twins(
        lambda x: F.interpolate(x, **options),
        lambda x: torch.nn.functional.interpolate(x, **options),
        [x],
        1,
    )
    single = x.astype(np.float32)
    found = values(F.interpolate(wg.asarray(single), **options))
    expected = torch.nn.functional.interpolate(torch.tensor(single), **options).numpy()
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_nearest_elements(backend: Any) -> None:
    x = wg.asarray(np.arange(6.0).reshape(1, 1, 2, 3)).requires_grad_()
    larger = F.interpolate(x, scale_factor=2)
    np.testing.assert_array_equal(
        values(larger)[0, 0], np.arange(6).reshape(2, 3).repeat(2, 0).repeat(2, 1)
    )
    larger.sum().backward()
    np.testing.assert_array_equal(values(x.grad), np.full((1, 1, 2, 3), 4))
    # Places 0, 0.75, 1.5 and 2.25.
    line = wg.asarray(np.asarray([[[5.0, 6.0, 7.0]]]))
    assert values(F.interpolate(line, 4)).tolist() == [[[5, 5, 6, 7]]]
    # A scale of 1.3 gives floor(3.9) = 3 elements, at floor(i / 1.3).
    assert values(F.interpolate(line, scale_factor=1.3)).tolist() == [[[5, 5, 6]]]
    # Of images PyTorch keeps the elements where the lengths stay.
    image = F.interpolate(line[None], scale_factor=(1.0, 1.3))
    assert values(image).tolist() == [[[[5, 6, 7]]]]
    assert F.interpolate(wg.zeros(1, 1, 2, 2, 2), 4).shape == (1, 1, 4, 4, 4)


def test_means_of_neighbours(backend: Any) -> None:
    line = wg.asarray(np.asarray([[[1.0, 3.0, 7.0]]]))
    corners = F.interpolate(line, 5, mode="linear", align_corners=True)
    assert values(corners).tolist() == [[[1, 2, 3, 5, 7]]]
    # Places -0.25, 0.25, 0.75, ..., of which the first is moved to 0 and the last is past 2.
    edges = F.interpolate(line, scale_factor=2, mode="linear")
    assert values(edges).tolist() == [[[1, 1.5, 2.5, 4, 6, 7]]]
    assert values(F.interpolate(line, 1, mode="linear", align_corners=True)).tolist() == [[[1]]]
    same = F.interpolate(line, 3, mode="linear")
    assert same is not line
    np.testing.assert_array_equal(values(same), values(line))
    kept = F.interpolate(line, scale_factor=1.3, mode="linear")
    np.testing.assert_array_equal(values(kept), values(line))
    x = wg.asarray(RNG.normal(size=(1, 2, 3, 4))).requires_grad_()
    for corners in (True, False):
        both = F.interpolate(x, (5, 3), mode="bilinear", align_corners=corners)
        rows = F.interpolate(
            wg.reshape(wg.permute_dims(x, (0, 1, 3, 2)), (1, 8, 3)),
            5,
            mode="linear",
            align_corners=corners,
        )
        rows = wg.reshape(wg.permute_dims(wg.reshape(rows, (1, 2, 4, 5)), (0, 1, 3, 2)), (1, 10, 4))
        turned = F.interpolate(rows, 3, mode="linear", align_corners=corners)
        np.testing.assert_allclose(values(both).ravel(), values(turned).ravel(), rtol=1e-12)
        assert gradcheck(
            lambda x: F.interpolate(x, (5, 3), mode="bilinear", align_corners=corners),  # noqa: B023
            x,
            fast_mode=True,
        )


def test_shuffled_channels(backend: Any) -> None:
    x = np.arange(2 * 18 * 2 * 3.0).reshape(2, 18, 2, 3)
    given = wg.asarray(x[:1]).requires_grad_()
    found = F.pixel_shuffle(wg.asarray(x), 3)
    for c, i, j, a, b in np.ndindex(2, 2, 3, 3, 3):
        np.testing.assert_array_equal(
            values(found)[:, c, 3 * i + a, 3 * j + b], x[:, 9 * c + 3 * a + b, i, j]
        )
    np.testing.assert_array_equal(values(F.pixel_shuffle(wg.asarray(x[0]), 3)), values(found)[0])
    assert gradcheck(lambda x: F.pixel_shuffle(x, 3), given, fast_mode=True)


#: Calls, their errors, and what these say.
REFUSED = r"""
F.interpolate(x) | ValueError | exactly one of size
F.interpolate(x, 2, 2.0) | ValueError | exactly one of size
F.interpolate(x, 2, mode="cubic") | NotImplementedError | mode is one of
F.interpolate(x, 2, mode="linear") | NotImplementedError | mode is one of
F.interpolate(x, 2, align_corners=True) | ValueError | align_corners
F.interpolate(wg.astype(x, wg.int64), 3, mode="bilinear") | TypeError | means, which are no int64
F.interpolate(x[0] > 0, 3, mode="linear") | TypeError | means, which are no bool
F.interpolate(x, scale_factor=0.1) | RuntimeError | greater than 0
F.interpolate(x, scale_factor=-1) | ValueError | positive number
F.interpolate(x, scale_factor=(2, 2, 2)) | ValueError | each of 2 axes
F.pixel_shuffle(x, 3) | RuntimeError | divisible by the square
F.pixel_shuffle(x, 0) | RuntimeError | upscale_factor of 1 at least
"""


def test_what_does_not_fit() -> None:
    walk(refusals(REFUSED), refuse(x=wg.ones(1, 4, 6, 6)), whole=True)


MODULES: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("Upsample", ((4, 9),), {}, "size=(4, 9), mode='nearest'"),
    (
        "Upsample",
        (),
        {"scale_factor": (2, 1.5), "mode": "bilinear", "align_corners": True},
        "scale_factor=(2.0, 1.5), mode='bilinear'",
    ),
    ("PixelShuffle", (2,), {}, "upscale_factor=2"),
]


@pytest.mark.whole
@pytest.mark.parametrize(("name", "args", "options", "text"), MODULES)
def test_modules(name: str, args: Any, options: dict[str, Any], text: str) -> None:
    ours = getattr(nn, name)(*args, **options)
    assert repr(ours) == f"{name}({text})"
    x = RNG.normal(size=(2, 4, 6, 4))
    out = ours(wg.asarray(x))
    if name.startswith("Ups"):
        named = {"size": ours.size, "scale_factor": ours.scale_factor, "mode": ours.mode}
        expected = F.interpolate(wg.asarray(x), **named, align_corners=ours.align_corners)
        np.testing.assert_array_equal(values(out), values(expected))
