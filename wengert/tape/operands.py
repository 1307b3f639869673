"""Operands that are not Tensors of one library: whether they go together, and as what arrays."""

from typing import Any

import numpy as np

from wengert.backends import Backend, BackendError, DType, backend_of, dtype_of
from wengert.backends.registry import lost_with
from wengert.tape.node import is_lifted
from wengert.tape.promotion import SCALARS, check_range, common_dtype


def regularise(row: Any, arrays: list[Any], inputs: tuple[Any, ...]) -> type:
    """Check a primitive's operands, replace those that are no arrays in place, and return the kind.

    Numbers become arrays where the row is not weak, and a user's arrays are adopted.
    """
    given = [a for a in arrays if a is not None and type(a) not in SCALARS]
    if not given:  # NumPy's functions give scalars for 0-d arrays, which are arrays alone
        arrays[:] = [np.asarray(x) if isinstance(x, np.generic) else x for x in inputs]
        given = [a for a in arrays if type(a) is np.ndarray]
    live = next((a for a in given if hasattr(a, "regularise")), None)
    if live is not None:  # a number that a trace follows, which kernels do not take
        return live.regularise(arrays, row.weak)  # type: ignore[no-any-return]
    if not given:
        what = ", ".join(type(a).__name__ for a in arrays if a is not None)
        raise TypeError(f"{row.name} takes Tensors or arrays, and was given only: {what}")
    owners = []
    for a in given:
        try:
            owners.append(backend_of(a))
        except TypeError:
            more = lost_with(type(a))
            advice = "; convert it with wg.asarray" if hasattr(a, "__len__") else ""
            advice = f"; {more}" if more else advice
            raise TypeError(
                f"{row.name} takes Tensors, arrays and Python numbers, not "
                f"{type(a).__name__}{'' if isinstance(a, str | bytes) else advice}"
            ) from None
    for a, owner in zip(given, owners, strict=True):
        if owner is not owners[0]:
            raise BackendError(
                f"{row.name} was given arrays of two backends, {owners[0].name} (shape "
                f"{tuple(given[0].shape)}) and {owner.name} (shape {tuple(a.shape)}); move one "
                f"with tensor.to_backend({owners[0].name!r})"
            )
    for i, a in enumerate(arrays):
        if a is not None and type(a) not in SCALARS:
            arrays[i] = owners[0].adopt(a)
    if not row.weak and len(given) < sum(a is not None for a in arrays):
        dtypes = [dtype_of(a.dtype) for a in given]
        like = getattr(given[0], "bottom", given[0])
        for i, a in enumerate(arrays):
            if type(a) in SCALARS:
                arrays[i] = _scalar(row.name, owners[0], a, dtypes, like)
    # A lifted array takes a library's as a constant, and no library takes a lifted one.
    return next((type(a) for a in given if is_lifted(a)), type(given[0]))


def _scalar(name: str, backend: Backend, value: Any, dtypes: list[DType], like: Any) -> Any:
    """A Python number as a 0-d array, in the dtype that it takes beside arrays of some dtypes."""
    dtype = common_dtype(dtypes, [type(value)])
    check_range(name, value, dtype)
    raw, device = backend.raw_dtype(dtype), backend.beside(like)
    return backend.namespace.asarray(value, dtype=raw, device=device)
