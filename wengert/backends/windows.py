"""Sliding windows of the last axes, as views of arrays with strides."""

from collections.abc import Sequence
from typing import Any

from wengert.backends.backend import Kernel

__all__ = ["strided_windows", "torch_windows", "window_counts"]


def window_counts(
    lengths: Sequence[int], size: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[int, ...]:
    """How many windows there are along each axis."""
    axes = zip(lengths, size, stride, dilation, strict=True)
    return tuple([(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in axes])


def strided_windows(as_strided: Any, **options: Any) -> Kernel:
    """``sliding_windows`` by a function that makes views, as NumPy's and CuPy's do."""

    def sliding_windows(
        x: Any, *, size: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
    ) -> Any:
        lead = x.ndim - len(size)
        counts = window_counts(x.shape[lead:], size, stride, dilation)
        steps = x.strides[lead:]
        return as_strided(
            x,
            (*x.shape[:lead], *size, *counts),
            (
                *x.strides[:lead],
                *[step * d for step, d in zip(steps, dilation, strict=True)],
                *[step * s for step, s in zip(steps, stride, strict=True)],
            ),
            **options,
        )

    return sliding_windows


def torch_windows(
    x: Any, *, size: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> Any:
    """``sliding_windows`` by PyTorch's ``unfold``."""
    lead, count = x.ndim - len(size), len(size)
    for i, (k, s, d) in enumerate(zip(size, stride, dilation, strict=True)):
        x = x.unfold(lead + i, (k - 1) * d + 1, s)[..., ::d]
    places, inside = range(lead, lead + count), range(lead + count, lead + 2 * count)
    return x.permute(*range(lead), *inside, *places)
