"""``einops.array_api`` takes Tensors, and is differentiated."""

import numpy as np
import pytest

import wengert as wg
from tests.interplay.compare import compare

einops = pytest.importorskip("einops.array_api")

IMAGES = np.random.default_rng(2).normal(size=(2, 4, 6, 3))

REARRANGEMENTS = (
    ("b h w c -> b c h w", {}),
    ("b h w c -> (b h) w c", {}),
    ("b (h1 h2) (w1 w2) c -> b (h1 w1) h2 w2 c", {"h2": 2, "w2": 3}),
    ("b h w c -> b 1 (c w h)", {}),
    ("b ... c -> b c ...", {}),
)
REDUCTIONS = (
    ("b h w c -> b c", "mean"),
    ("b h w c -> c", "sum"),
    ("b (h 2) (w 3) c -> b h w c", "max"),
    ("b h w c -> h 1 1 c", "min"),
    ("b ... c -> b", "prod"),
)
REPETITIONS = (
    ("b h w c -> b (h 2) (w r) c", {"r": 3}),
    ("b h w c -> n b h w c", {"n": 2}),
)


@pytest.mark.parametrize(("pattern", "sizes"), REARRANGEMENTS)
def test_rearrange(pattern, sizes, backend):
    compare(lambda x: einops.rearrange(x, pattern, **sizes), IMAGES)


@pytest.mark.parametrize(("pattern", "how"), REDUCTIONS)
def test_reduce(pattern, how, backend):
    compare(lambda x: einops.reduce(x, pattern, how), IMAGES)


@pytest.mark.parametrize(("pattern", "sizes"), REPETITIONS)
def test_repeat(pattern, sizes, backend):
    compare(lambda x: einops.repeat(x, pattern, **sizes), IMAGES)


def test_a_list(backend):
    compare(lambda x, y: einops.rearrange([x, y], "n b h w c -> b (n h) w c"), IMAGES, IMAGES + 1)


def test_pack_and_unpack(backend):
    def both(x, y):
        packed, shapes = einops.pack([x, y], "b * c")
        return [packed, *einops.unpack(packed * packed, shapes, "b * c")]

    compare(both, IMAGES, IMAGES[:, 0])


def test_to_numpy(backend):
    x = wg.asarray(IMAGES, requires_grad=True)
    with pytest.raises(BufferError, match="requires grad; use"):
        einops.asnumpy(x)


def test_mean_of_patches_by_hand(backend):
    """The gradient of a loss of patches: every pixel has its patch's share."""
    x = wg.asarray(IMAGES, requires_grad=True)
    patches = einops.reduce(x, "b (h 2) (w 2) c -> b h w c", "mean")
    wg.sum(patches**2).backward()
    means = IMAGES.reshape(2, 2, 2, 3, 2, 3).mean(axis=(2, 4))
    expected = np.repeat(np.repeat(means, 2, axis=1), 2, axis=2) * 2 / 4
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12)
