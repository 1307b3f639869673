"""CPython's references between objects, and its list of living ones; only this module reads them.

A count includes the references of the reading code. So it is compared with the count, read in the
same way, of an object with one known reference.
"""

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from sys import getrefcount
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def counts(objects: Iterable[Any]) -> list[int]:
    """How many references there are to each object: more than before if somebody else has it."""
    return list(map(getrefcount, objects))


_ALONE = counts([object()])[0]


def held_elsewhere(objects: Sequence[Any], known: int) -> list[Any]:
    """Those of a list's distinct objects to which more than it and ``known`` others refer."""
    return [objects[i] for i, n in enumerate(counts(objects)) if n > _ALONE + known]


def _count(x: Any) -> int:
    return getrefcount(x)


def _argument_count(x: Any) -> int:
    return _count(x)


_box = [object()]
_ONE_CONTAINER = _argument_count(_box[0])


def has_holders(x: Any) -> bool:
    """Whether anything refers to the caller's argument but one container, from which it came."""
    return getrefcount(x) > _ONE_CONTAINER


def holders(objects: Sequence[Any], kind: type[T]) -> list[T]:
    """The instances of a class that hold one of some objects in an attribute."""
    return [x for x in gc.get_referrers(*objects) if issubclass(type(x), kind)]


def living(kind: type[T]) -> list[T]:
    """The live instances of a class, in no order; also those that are being made."""
    return [x for x in gc.get_objects() if issubclass(type(x), kind)]


#: How deep `contents` looks, and at how many objects in each depth.
_DEPTH, _MOST = 8, 10_000


def contents(root: Any, closed: Callable[[Any], bool]) -> Iterator[list[Any]]:
    """``[root]``, the objects that it holds, and so on: each once, and none that closed ones hold.

    Functions and classes are closed.
    """
    found, seen = [root], set[int]()
    for _ in range(_DEPTH):
        yield found
        seen.update(map(id, found))
        opened = [x for x in found if not (closed(x) or isinstance(x, type | FunctionType))]
        inner = gc.get_referents(*opened)[:_MOST]
        found = [*{id(x): x for x in inner if id(x) not in seen}.values()]


def _base_count(view: np.ndarray[Any, Any]) -> int:
    return getrefcount(view.base)


_ONE_VIEW = _base_count(np.empty(2)[:1])


def has_shared_base(view: np.ndarray[Any, Any]) -> bool:
    """Whether anything but this view holds the array whose memory it shows."""
    return _base_count(view) > _ONE_VIEW
