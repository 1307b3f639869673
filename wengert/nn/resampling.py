"""Resampling as modules."""

from typing import Any

from wengert.nn import functional as F
from wengert.nn.define import Single, stores
from wengert.nn.functional.resampling import Interpolation

_Size = int | tuple[int, ...] | None
_Scale = float | tuple[float, ...] | None


@stores(F.interpolate)
class Upsample(Single):
    """Resample signals or images to other lengths.

    `functional.interpolate` as a module. PyTorch: ``torch.nn.Upsample``.

    Examples
    --------
    >>> wg.nn.Upsample(scale_factor=2.0, mode="bilinear")(wg.ones((1, 3, 4, 4))).shape
    (1, 3, 8, 8)
    """

    size: _Size
    scale_factor: Any
    mode: Interpolation
    align_corners: bool | None
    recompute_scale_factor: bool | None

    def __init__(
        self,
        size: _Size = None,
        scale_factor: _Scale = None,
        mode: Interpolation = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None: ...

    def _check(self) -> None:
        given = self.scale_factor
        several = isinstance(given, tuple)
        self.scale_factor = tuple(map(float, given)) if several else float(given) if given else None

    def extra_repr(self) -> str:
        scaled = self.scale_factor is not None
        lengths = f"scale_factor={self.scale_factor!r}" if scaled else f"size={self.size!r}"
        return f"{lengths}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of images with mode ``"nearest"``.

    PyTorch: ``torch.nn.UpsamplingNearest2d``.

    Examples
    --------
    >>> wg.nn.UpsamplingNearest2d(scale_factor=2)(wg.ones((1, 3, 4, 4))).shape
    (1, 3, 8, 8)
    """

    def __init__(self, size: _Size = None, scale_factor: _Scale = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of images with mode ``"bilinear"`` and aligned corners.

    PyTorch: ``torch.nn.UpsamplingBilinear2d``.

    Examples
    --------
    >>> wg.nn.UpsamplingBilinear2d(size=(8, 6))(wg.ones((1, 3, 4, 4))).shape
    (1, 3, 8, 6)
    """

    def __init__(self, size: _Size = None, scale_factor: _Scale = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


@stores(F.pixel_shuffle)
class PixelShuffle(Single):
    """Make images larger by their channels: each element becomes a square of r² channels' elements.

    `functional.pixel_shuffle` as a module. PyTorch: ``torch.nn.PixelShuffle``.

    Examples
    --------
    >>> wg.nn.PixelShuffle(2)(wg.ones((1, 8, 4, 4))).shape
    (1, 2, 8, 8)
    """

    def __init__(self, upscale_factor: int) -> None: ...


@stores(F.pixel_unshuffle)
class PixelUnshuffle(Single):
    """Make images smaller and their channels more: the inverse of `pixel_shuffle`.

    `functional.pixel_unshuffle` as a module. PyTorch: ``torch.nn.PixelUnshuffle``.

    Examples
    --------
    >>> wg.nn.PixelUnshuffle(2)(wg.ones((1, 2, 8, 8))).shape
    (1, 8, 4, 4)
    """

    def __init__(self, downscale_factor: int) -> None: ...
