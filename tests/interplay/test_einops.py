"""``einops.array_api`` takes Tensors, and is differentiated."""

import numpy as np
import pytest

import wengert as wg
from tests.interplay.compare import call_of, compare
from tests.walking import lines_of

einops = pytest.importorskip("einops.array_api")

IMAGES = np.random.default_rng(2).normal(size=(2, 4, 6, 3))

CALLS = lines_of("""
einops.rearrange(X, "b h w c -> b c h w")
einops.rearrange(X, "b h w c -> (b h) w c")
einops.rearrange(X, "b (h1 h2) (w1 w2) c -> b (h1 w1) h2 w2 c", h2=2, w2=3)
einops.rearrange(X, "b h w c -> b 1 (c w h)")  einops.rearrange(X, "b ... c -> b c ...")
einops.rearrange([X, Y], "n b h w c -> b (n h) w c")
einops.reduce(X, "b h w c -> b c", "mean")  einops.reduce(X, "b h w c -> c", "sum")
einops.reduce(X, "b (h 2) (w 3) c -> b h w c", "max")
einops.reduce(X, "b h w c -> h 1 1 c", "min")  einops.reduce(X, "b ... c -> b", "prod")
einops.repeat(X, "b h w c -> b (h 2) (w r) c", r=3)
einops.repeat(X, "b h w c -> n b h w c", n=2)
""")


@pytest.mark.parametrize("line", CALLS)
def test_calls(line, backend):
    compare(*call_of(line, {"einops": einops, "X": IMAGES, "Y": IMAGES + 1}))


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
