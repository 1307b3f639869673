"""Operands of any kind as Tensors on one backend, as NumPy's functions and methods take them."""

from typing import Any

import numpy as np

from wengert.ops.conversion import as_numpy, beside, holds_tensors
from wengert.tape.promotion import KIND_RANK, check_range
from wengert.tape.tensor import Tensor


def operands(*values: Any) -> tuple[Tensor, ...]:
    """Everything as Tensors, on the backend and device of the first Tensor.

    Numbers get the dtype that they take beside it, lists that which NumPy gives them, or that of
    the Tensors in them.
    """
    if {*map(type, values)} == {Tensor}:  # almost all calls
        return values
    nests = [isinstance(x, list | tuple) and holds_tensors(x) for x in values]
    values = tuple([as_numpy(x) if nest else x for x, nest in zip(values, nests, strict=True)])
    tensors = [x for x in values if isinstance(x, Tensor)]
    # Beside a mask, indices and floating values a number takes the dtype of the last.
    like = max(tensors, key=lambda x: KIND_RANK[x.dtype.kind], default=None)
    return tuple([x if isinstance(x, Tensor) else _beside(x, like) for x in values])


def _beside(value: Any, like: Tensor | None) -> Tensor:
    if like is None or (hasattr(value, "dtype") and not isinstance(value, np.generic)):
        return Tensor(value if hasattr(value, "dtype") else np.asarray(value))
    if isinstance(value, bool | int | float | complex | np.generic) and like.dtype.kind != "bool":
        device = like.backend.beside(like._array)
        one = like.backend.namespace.ones((), dtype=like._array.dtype, device=device)
        value = value.item() if isinstance(value, np.generic) else value
        check_range("", value, like.dtype)
        return Tensor(one) * value  # type: ignore[no-any-return]
    return beside(like, value)
