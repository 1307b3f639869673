"""Arrays that are filled in a loop: writes into rows wait until the whole array is read.

``out[i] = value`` copies the array. Here rows are noted, and stored together once something other
than a row is read. So a loop over all rows takes the time of one `wengert.stack`.
"""

from typing import Any

import numpy as np

import wengert as wg
from wengert.backends import dtype_of
from wengert.backends.keys import as_view
from wengert.ops.indexing import getitem, replace, setitem
from wengert.tape.grad_mode import record_always, recording
from wengert.tape.node import AccumulateGrad, is_lifted, running_forwards
from wengert.tape.observers import observing
from wengert.tape.tensor import Tensor, check_views, untracked, with_node
from wengert.tape.views import show

_ARRAY: Any = vars(Tensor)["_array"]
_NODE: Any = vars(Tensor)["_node"]


class _Rows(dict[int, Tensor]):
    """The rows that wait, by their numbers, and the array that they will be stored in."""

    array: Any


_settled: Any = lambda name: property(
    lambda self: getattr(settle(self), name),
    lambda self, value: setattr(settle(self), name, value),
)


class Filling(Tensor):
    """A Tensor with rows that wait: whatever else reads it settles it, as a plain Tensor."""

    __slots__ = ()

    _array, _node = _settled("_array"), _settled("_node")
    dtype = property(lambda self: dtype_of(_ARRAY.__get__(self).array.dtype))
    ndim = property(lambda self: len(self.shape))
    shape = property(lambda self: _ARRAY.__get__(self).array.shape)


def settle(x: Any) -> Any:
    """Store the rows that wait: in one operation if untracked, and in one more if tracked."""
    rows: _Rows = _ARRAY.__get__(x)
    x.__class__ = Tensor
    x._array = rows.array
    base = with_node(x._array, x._node)
    told = observing[:]
    observing.clear()  # as when the rows were written, recorded and unobserved
    with record_always():
        for tracked in (False, True):
            places = [i for i, row in rows.items() if (row._node is not None) is tracked]
            if places:
                base = replace(base, places, wg.stack([rows[i] for i in places]))
    observing.extend(told)
    x._array, x._node = base._array, base._node
    return x


def _place(x: Any, key: Any) -> tuple[int, Any] | None:
    """The number of a row and the index in it, of a static index that begins with a number."""
    first, rest = (key[0], key[1:]) if type(key) is tuple and key else (key, ())
    if type(first) is not int and not isinstance(first, np.integer):
        return None
    n, i = x.shape[0], int(first)
    static = all(type(part) in (int, slice) or part is ... for part in rest)
    return (i % n, rest) if -n <= i < n and static else None  # other errors are the core's


def _waits(x: Any, value: Any) -> bool:
    """Whether a write can wait: of NumPy's arrays, recorded, and in no transform that lifts."""
    if observing or running_forwards or recording() is not True:
        return False
    if type(x) is not Filling:
        node = x._node
        leaf = type(node) is AccumulateGrad or (node is not None and node.watch is not None)
        if leaf or type(x) is not Tensor or type(x._array) is not np.ndarray:
            return False
    return not isinstance(value, Tensor) or not is_lifted(value._array)


def _row(x: Any, i: int) -> Any:
    """A row as it is now, as a Tensor of its own."""
    if type(x) is not Filling:
        return getitem(with_node(x._array, x._node), i)
    rows = _ARRAY.__get__(x)
    if (row := rows.get(i)) is None:
        return getitem(with_node(rows.array, _NODE.__get__(x)), i)
    return with_node(row._array, row._node)


def _substitute(x: Any, i: int, rest: Any, value: Any) -> Any:
    shape, dtype = x.shape[1:], x.dtype
    if not rest and isinstance(value, Tensor) and value.shape == shape and value.dtype is dtype:
        array = value._array  # whose memory may be the program's, as of `wengert.asarray`
        return with_node(array.copy() if type(array) is np.ndarray else array, value._node)
    if not rest and type(value) is float and dtype.kind == "real floating":
        return untracked(np.full(shape, value, dtype.name))
    return replace(_row(x, i), rest or ..., value)


def write(x: Any, key: Any, value: Any) -> None:
    """``x[key] = value``, which waits if it changes a row, or a part of one."""
    place = _place(x, key) if x.ndim else None
    if place is None or not _waits(x, value):
        setitem(x, key, value)
        return
    new = _substitute(x, *place, value)
    check_views(x, None, value, key)
    if type(x) is not Filling:
        rows = _Rows()
        rows.array = x._array
        x.__class__ = Filling
        _ARRAY.__set__(x, rows)
    _ARRAY.__get__(x)[place[0]] = new


def read(x: Any, key: Any) -> Any:
    """``x[key]``; one element is a number, and no view of its array."""
    place = _place(x, key) if type(x) is Filling else None
    if place is None:
        result = getitem(x, key)
    else:
        result = _row(x, place[0])
        if result.ndim:
            result = getitem(result, place[1]) if place[1] else result
            show(result, x, as_view, {"key": key if type(key) is tuple else (key,)})
    if not result.ndim and not (type(key) is tuple and ... in key) and hasattr(result, "_shown"):
        delattr(result, "_shown")
    return result
