"""Sequences of different lengths, by PyTorch's names: padded to one Tensor, or packed."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert import ops
from wengert.ops.conversion import beside
from wengert.ops.hints import list_public
from wengert.tape.tensor import Tensor, wrap

__all__ = ["PackedSequence", "pack_padded_sequence", "pad_packed_sequence", "pad_sequence"]


list_public(__name__)


class PackedSequence(NamedTuple):
    """Sequences without padding, step after step, as `nn.RNN`, `GRU` and `LSTM` take them.

    ``data`` has the rows of the first step of all sequences, then those of the second, and so on;
    ``batch_sizes`` says how many sequences have each step. ``sorted_indices`` are the sequences in
    decreasing order of their lengths, and ``unsorted_indices`` the way back.

    Examples
    --------
    >>> packed = wg.nn.utils.rnn.pack_padded_sequence(wg.ones((3, 2, 1)), [3, 1])
    >>> packed.batch_sizes
    (2, 1, 1)
    """

    data: Tensor
    batch_sizes: tuple[int, ...]
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None


def pad_sequence(
    sequences: Sequence[Any], batch_first: bool = False, padding_value: float = 0.0
) -> Tensor:
    """Stack sequences of different lengths, padded at their ends to that of the longest.

    The result has the shape (T, N, ...), or (N, T, ...) with ``batch_first``.

    Examples
    --------
    >>> wg.nn.utils.rnn.pad_sequence([wg.ones(3), wg.ones(1)], batch_first=True)
    tensor([[1., 1., 1.],
            [1., 0., 0.]])
    """
    parts = [*map(wrap, sequences)]
    if not parts or not all(part.ndim for part in parts):
        raise RuntimeError("pad_sequence needs sequences, each of at least one axis")
    length = max(part.shape[0] for part in parts)
    padded = []
    for part in parts:
        widths = [(0, length - part.shape[0]), *[(0, 0)] * (part.ndim - 1)]
        is_whole = not part.dtype.inexact and float(padding_value).is_integer()
        value = int(padding_value) if is_whole else padding_value  # 0.0 pads integers with 0
        padded.append(ops.pad(part, widths, constant_values=value))
    return ops.stack(padded, axis=0 if batch_first else 1)


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Leave the padding out.

    ``input`` has the shape (T, N, ...), or (N, T, ...) with ``batch_first``, and ``lengths`` are
    those of the N sequences, Python numbers in a compiled function. Raises `RuntimeError` for
    lengths that do not decrease with ``enforce_sorted``, or are not between 1 and T.

    Examples
    --------
    >>> x = wg.tensor([[1.0, 2.0, 0.0], [3.0, 4.0, 5.0]])
    >>> pack = wg.nn.utils.rnn.pack_padded_sequence
    >>> pack(x, [2, 3], batch_first=True, enforce_sorted=False).data
    tensor([3., 1., 4., 2., 5.])
    """
    x = wrap(input)
    counts = [int(n) for n in (lengths.tolist() if hasattr(lengths, "tolist") else lengths)]
    if x.ndim < 2 or x.shape[0 if batch_first else 1] != len(counts):
        raise RuntimeError(
            f"there are {len(counts)} lengths for an input of shape {tuple(x.shape)}, with "
            f"batch_first={batch_first}"
        )
    if batch_first:
        x = ops.moveaxis(x, 0, 1)
    steps, width = x.shape[:2]
    if not counts or min(counts) < 1 or max(counts) > steps:
        raise RuntimeError(f"lengths are between 1 and {steps}, the number of steps: {counts}")
    order = sorted(range(width), key=lambda i: -counts[i])
    if enforce_sorted and order != [*range(width)]:
        raise RuntimeError(
            "lengths have to decrease with enforce_sorted=True; pass enforce_sorted=False"
        )
    sizes = tuple([sum(n > t for n in counts) for t in range(max(counts))])
    places = [t * width + i for t, size in enumerate(sizes) for i in order[:size]]
    rows = ops.reshape(x, (steps * width, *x.shape[2:]))
    both = (None, None) if enforce_sorted else (beside(x, order), beside(x, np.argsort(order)))
    return PackedSequence(ops.take(rows, beside(x, places), axis=0), sizes, *both)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Undo `pack_padded_sequence`: return the padded Tensor, and the lengths.

    Examples
    --------
    >>> rnn = wg.nn.utils.rnn
    >>> rnn.pad_packed_sequence(rnn.pack_padded_sequence(wg.ones((2, 2)), [2, 1]))
    (tensor([[1., 1.],
            [1., 0.]]), tensor([2, 1]))
    """
    data, sizes, _, back = sequence
    steps, width = len(sizes), sizes[0]
    places = np.full((steps, width), sum(sizes))  # that of the row of padding
    for t, (start, size) in enumerate(zip(np.cumsum((0, *sizes)), sizes, strict=False)):
        places[t, :size] = np.arange(start, start + size)
    lengths = beside(data, [sum(size > i for size in sizes) for i in range(width)])
    rows = ops.pad(data, [(0, 1), *[(0, 0)] * (data.ndim - 1)], constant_values=padding_value)
    out = ops.take(rows, beside(data, places.ravel()), axis=0)
    out = ops.reshape(out, (steps, width, *data.shape[1:]))
    if back is not None:
        out, lengths = ops.take(out, back, axis=1), ops.take(lengths, back)
    return (ops.moveaxis(out, 0, 1) if batch_first else out), lengths
