"""Resampling as modules."""

from typing import Any

from wengert.nn import functional as F
from wengert.nn.define import Single, stores
from wengert.nn.families import of_layers
from wengert.nn.functional.resampling import Interpolation
from wengert.nn.module import Module
from wengert.tape.parameters import takes
from wengert.tape.tensor import Tensor

_Size = int | tuple[int, ...] | None
_Scale = float | tuple[float, ...] | None

_TEXT = of_layers("""
Parameters
----------
size : int or tuple, optional
    The spatial lengths of the result.
scale_factor : float or tuple, optional
    Instead, how much longer they are than the input's.
mode, align_corners, recompute_scale_factor
    As for the function.
""")


@takes(family=_TEXT)
class Upsample(Module):
    """`functional.interpolate` as a module.

    Examples
    --------
    >>> wg.nn.Upsample(scale_factor=2.0, mode="bilinear")(wg.ones((1, 3, 4, 4))).shape
    (1, 3, 8, 8)
    """

    def __init__(
        self,
        size: _Size = None,
        scale_factor: _Scale = None,
        mode: Interpolation = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(map(float, scale_factor))
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Any) -> Tensor:
        """Resample the input."""
        how: Any = (self.mode, self.align_corners, self.recompute_scale_factor)
        return F.interpolate(input, self.size, self.scale_factor, *how)

    def extra_repr(self) -> str:
        scaled = self.scale_factor is not None
        lengths = f"scale_factor={self.scale_factor!r}" if scaled else f"size={self.size!r}"
        return f"{lengths}, mode={self.mode!r}"


@takes(family=_TEXT)
class UpsamplingNearest2d(Upsample):
    """`Upsample` of images with mode ``"nearest"``.

    Examples
    --------
    >>> wg.nn.UpsamplingNearest2d(scale_factor=2)(wg.ones((1, 3, 4, 4))).shape
    (1, 3, 8, 8)
    """

    def __init__(self, size: _Size = None, scale_factor: _Scale = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


@takes(family=_TEXT)
class UpsamplingBilinear2d(Upsample):
    """`Upsample` of images with mode ``"bilinear"`` and aligned corners.

    Examples
    --------
    >>> wg.nn.UpsamplingBilinear2d(size=(8, 6))(wg.ones((1, 3, 4, 4))).shape
    (1, 3, 8, 6)
    """

    def __init__(self, size: _Size = None, scale_factor: _Scale = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


@stores(F.pixel_shuffle)
class PixelShuffle(Single):
    """Examples
    --------
    >>> wg.nn.PixelShuffle(2)(wg.ones((1, 8, 4, 4))).shape
    (1, 2, 8, 8)
    """

    def __init__(self, upscale_factor: int) -> None: ...


@stores(F.pixel_unshuffle)
class PixelUnshuffle(Single):
    """Examples
    --------
    >>> wg.nn.PixelUnshuffle(2)(wg.ones((1, 2, 8, 8))).shape
    (1, 8, 4, 4)
    """

    def __init__(self, downscale_factor: int) -> None: ...
