"""What programs know of the backends' kernels, and of the parts of kernels."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from wengert.backends import cupy, numpy, numpy_reductions
from wengert.backends.backend import Kernel
from wengert.nn.kernels import cupy_classification, numpy_classification, numpy_normalisations
from wengert.ops.beyond import numpy_convolutions

__all__ = ["KERNELS", "PLAIN", "KernelFacts"]


class KernelFacts(NamedTuple):
    """Facts of one function.

    Attributes
    ----------
    looks : bool
        Whether the function reads values or chooses its memory. Programs call it whole.
    raises : bool
        Whether values raise errors.
    of_rows : bool
        Whether the function takes a number for each row, and can write into its first operand.
        Programs call it whole.
    chooses, reduction : callable or None
        ``chooses(x, axis, keepdims)`` is not None if the order in memory matters. Otherwise
        programs call this reduction of a ufunc.
    covers, kernel : callable or None
        Programs call the kernel if ``covers`` holds of the arguments, and otherwise the pieces of
        the composite.
    pieces : callable or None
        ``pieces()`` gives the functions that the kernel calls in turn, by name. Each takes the
        result of the one before and the next operand.
    """

    looks: bool = False
    raises: bool = False
    of_rows: bool = False
    chooses: Callable[..., Any] | None = None
    reduction: Kernel | None = None
    covers: Callable[..., bool] | None = None
    kernel: Kernel | None = None
    pieces: Callable[[], dict[str, Kernel]] | None = None


#: Facts of a function that is not listed.
PLAIN: Final = KernelFacts()

_LOOKS: Final = KernelFacts(looks=True)
_OF_ROWS: Final = KernelFacts(of_rows=True)


def _sums_by_rows(x: Any, axis: Any, keepdims: bool) -> Any:
    return numpy_reductions.rows(x.shape, axis, not keepdims)


def _clip_pieces() -> dict[str, Kernel]:
    library = cupy.BACKEND.cupy
    return {"maximum": library.maximum, "minimum": library.minimum}


KERNELS: Final[Mapping[Kernel, KernelFacts]] = {
    numpy_classification.targets: KernelFacts(looks=True, raises=True),
    numpy_classification.counted_losses: _LOOKS,
    numpy_classification.number_counted: _LOOKS,
    numpy.deviation_of_few: _LOOKS,
    numpy_normalisations.inverse_roots: _LOOKS,
    numpy_normalisations.units: _LOOKS,
    numpy_normalisations.scaled_rows: _OF_ROWS,
    numpy_normalisations.shifted_rows: _OF_ROWS,
    numpy_normalisations.steep_rows: _OF_ROWS,
    numpy_reductions.roots: _LOOKS,
    numpy_reductions.sum_over: KernelFacts(chooses=_sums_by_rows, reduction=np.add.reduce),
    numpy_reductions.max_over: KernelFacts(
        chooses=numpy_reductions.short_rows, reduction=np.maximum.reduce
    ),
    numpy_reductions.min_over: KernelFacts(
        chooses=numpy_reductions.short_rows, reduction=np.minimum.reduce
    ),
    **{
        function: KernelFacts(
            covers=numpy_convolutions.covers, kernel=numpy_convolutions.COVERED[name]
        )
        for name, function in numpy_convolutions.KERNELS.items()
    },
    cupy.clip: KernelFacts(pieces=_clip_pieces),
    cupy_classification.softmax_cross_entropy_parts: KernelFacts(
        covers=cupy_classification.covered, kernel=cupy_classification.cupy_softmax_cross_entropy
    ),
}
