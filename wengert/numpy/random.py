"""NumPy's ``numpy.random``: its own numbers, in its own arrays."""

from typing import Any

import numpy as np

from wengert.numpy.naming import namespace
from wengert.ops.indexing import getitem
from wengert.tape.tensor import Tensor, assign

_OWN = np.random
globals().update(namespace(_OWN, {}))


def shuffle(x: Any) -> None:
    """Shuffle along the first axis in place; a Tensor keeps its derivatives."""
    if not isinstance(x, Tensor):
        return _OWN.shuffle(x)
    order = np.arange(len(x))
    _OWN.shuffle(order)
    assign(x, getitem(x, order))
    return None


def permutation(x: Any) -> Any:
    """A permutation of a range, or a shuffled copy; a Tensor keeps its derivatives."""
    if isinstance(x, Tensor) and x.ndim:
        return getitem(x, _OWN.permutation(len(x)))
    return _OWN.permutation(x.item() if isinstance(x, Tensor) else x)
