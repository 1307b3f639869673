"""Rows of a table, and of the table of unit vectors."""

import math
from typing import Any

from wengert import ops
from wengert.interpreters.batching import as_it_is
from wengert.nn.functional.classification import check_classes
from wengert.nn.functional.define import detach, integer, look, refusing
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor, wrap


def check_rows(values: Any, rows: int) -> None:
    """Raise for an index out of range."""
    wrong = values[(values < 0) | (values >= rows)]
    if wrong.shape[0]:
        raise IndexError(
            f"index out of range in self: {wrong[0]} is none of the {rows} rows, 0 to {rows - 1}"
        )


def as_padding(padding_idx: Any, rows: int) -> int | None:
    """The row of padding as a non-negative number."""
    if padding_idx is None:
        return None
    at = integer(padding_idx, "embedding", "padding_idx")
    if not -rows <= at < rows:
        raise ValueError(f"Padding_idx must be within num_embeddings={rows}, and is {at}")
    return at % rows  # type: ignore[no-any-return]


@refusing
def embedding(input: Any, weight: Any, padding_idx: int | None = None) -> Tensor:
    """Look up the rows of a table (V, D), floating or complex, by integer indices of any shape.

    The cotangent of a row is the sum of those of its places in the result, and 0 for the row
    ``padding_idx``. Raises `IndexError` if an index is out of range (checked where `cross_entropy`
    checks class indices; elsewhere such a row is nan); `ValueError`, `RuntimeError`, `TypeError` if
    ``padding_idx``, shapes or dtypes do not fit.
    PyTorch: ``torch.nn.functional.embedding``.

    Examples
    --------
    >>> table = wg.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> wg.nn.functional.embedding(wg.asarray([2, 0]), table)
    tensor([[5., 6.],
            [1., 2.]])
    """
    indices, table = wrap(input), wrap(weight)
    if not indices.dtype.kind.endswith("integer"):
        raise TypeError(
            f"embedding needs integer indices, not {indices.dtype.name}: cast with "
            "wg.astype(indices, wg.int64)"
        )
    if table.ndim != 2:
        raise RuntimeError(f"'weight' must be 2-D, and is of shape {tuple(table.shape)}")
    rows = table.shape[0]
    padding = as_padding(padding_idx, rows)
    checked = look(indices._array, check_rows, rows)
    flat = ops.reshape(indices, (-1,))
    out = ops.take(table, flat, axis=0)
    if padding is not None:
        out = ops.where(ops.expand_dims(ops.equal(flat, padding), axis=1), detach(out), out)
    if not checked:  # libraries take such an index modulo the length, or the last row
        inside = ops.logical_and(ops.greater_equal(flat, 0), ops.less(flat, rows))
        out = ops.where(ops.expand_dims(inside, axis=1), out, math.nan)
    return ops.reshape(out, (*indices.shape, table.shape[1]))


def one_hot(tensor: Any, num_classes: int = -1) -> Tensor:
    """Return vectors with a one at the given index and zeros elsewhere, of the dtype of ``tensor``.

    By default their length is one more than the largest index, which has to be read back from the
    device. An index out of range that is not checked gives zeros. Raises `IndexError` if an index
    is negative or too large (checked where `cross_entropy` checks); `RuntimeError` if there are no
    indices to tell the number of classes from. PyTorch: ``torch.nn.functional.one_hot``.

    Examples
    --------
    >>> wg.nn.functional.one_hot(wg.asarray([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    x = wrap(tensor)
    if not x.dtype.kind.endswith("integer"):
        raise RuntimeError(
            f"one_hot is only applicable to index tensor, not {x.dtype.name}: cast with "
            "wg.astype(tensor, wg.int64)"
        )
    num_classes = integer(num_classes, "one_hot", "num_classes")
    if num_classes == -1:
        if not x.size:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        num_classes = int(ops.max(x)) + 1
    if num_classes <= 0:
        raise RuntimeError(f"num_classes should be positive, not {num_classes}")
    check_classes(x._array, num_classes)
    return ops.astype(_class_mask.bind(x, classes=num_classes), x.dtype)


# (The public function of the name takes other arguments, and rules see that one.)
_class_mask = Primitive(
    "class_mask",
    ("x",),
    composite=lambda xp, x, classes: (
        xp.expand_dims(x, axis=-1) == xp.arange(classes, dtype=x.dtype, device=xp.device(x))
    ),
    batch=as_it_is,
)
