"""NumPy's Fourier transforms on Tensors."""

from collections.abc import Callable
from typing import Any

from wengert.ops import fft
from wengert.protocols.translation import floats, translate

__all__ = ["TABLE"]

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")
SHIFTS = ("fftshift", "ifftshift")


def _along(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
        return function(*floats(a), n=n, axis=axis, norm=norm or "backward")

    return call


def _over(function: Callable[..., Any], axes: tuple[int, ...] | None = None) -> Callable[..., Any]:
    def call(a: Any, s: Any = None, axes: Any = axes, norm: Any = None) -> Any:
        return function(*floats(a), s=s, axes=axes, norm=norm or "backward")

    return call


TABLE: dict[str, Callable[..., Any]] = {
    **{name: _along(getattr(fft, name)) for name in ONE},
    **{name: _over(getattr(fft, name)) for name in SEVERAL},
    **{name[:-1] + "2": _over(getattr(fft, name), (-2, -1)) for name in SEVERAL},
    **{name: translate(getattr(fft, name), "x / axes") for name in SHIFTS},
}
