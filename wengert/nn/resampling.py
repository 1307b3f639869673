"""Resampling as modules; each is the function of its name."""

from typing import Any

from wengert.nn import functional as F
from wengert.nn.define import Single
from wengert.nn.functional.resampling import Interpolation


class Upsample(Single, of=F.interpolate):
    size: int | tuple[int, ...] | None
    scale_factor: Any
    mode: Interpolation
    align_corners: bool | None

    def __init__(
        self,
        size: int | tuple[int, ...] | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
        mode: Interpolation = "nearest",
        align_corners: bool | None = None,
    ) -> None: ...

    def _check(self) -> None:
        scale = self.scale_factor
        several = isinstance(scale, tuple)
        self.scale_factor = tuple(map(float, scale)) if several else float(scale) if scale else None

    def extra_repr(self) -> str:
        scaled = self.scale_factor is not None
        lengths = f"scale_factor={self.scale_factor!r}" if scaled else f"size={self.size!r}"
        return f"{lengths}, mode={self.mode!r}"


class PixelShuffle(Single, of=F.pixel_shuffle):
    def __init__(self, upscale_factor: int) -> None: ...
