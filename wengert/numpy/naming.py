"""How NumPy's functions become this room's: by tables, and by what their arguments hold.

A call with a Tensor among its arguments, also in lists, is answered by the counterpart that
`wengert.protocols` has. Any other call is NumPy's own.
"""

import weakref
from collections.abc import Callable, Iterable
from functools import wraps
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np

import wengert as wg
from wengert.func import tree_leaves, tree_map
from wengert.protocols import array_ufunc, call_counterpart, no_counterpart
from wengert.protocols.translation import parameters_of
from wengert.protocols.ufuncs import ELEMENTWISE
from wengert.tape.node import is_lifted
from wengert.tape.tensor import Tensor, differentiates
from wengert.tape.views import show

#: Parameters that are no arrays: lists given for them are not joined.
_STATIC = """
arrays axes axis choicelist choices condlist destination filt funclist indices_or_sections new_shape
newshape obj operands out pad_width reps shape shift source subscripts tup
""".split()  # noqa: SIM905 -- a page of names is none to read
#: What becomes a Tensor: NumPy's arrays of text and objects stay.
_NUMBERS = "?bhilqBHILQefdFD"
_ALONG = ("expand_dims", "flip", "max", "mean", "min", "prod", "squeeze", "std", "sum", "var")
#: Tensors that NumPy would have as arrays of no axes, which change in place, and not as numbers.
ARRAYS: "weakref.WeakValueDictionary[int, Tensor]" = weakref.WeakValueDictionary()


def holds(kind: Any, values: Iterable[Any]) -> bool:
    """Whether there is an object of some kind among values, or in lists and tuples of these."""
    return any(
        isinstance(x, kind) or (isinstance(x, list | tuple) and holds(kind, x)) for x in values
    )


def as_array(x: Tensor) -> Tensor:
    """Note that a Tensor stands for an array, if it has no axes."""
    if not x.ndim:
        ARRAYS[id(x)] = x
    return x


def as_tensors(result: Any) -> Any:
    """Tensors for the arrays of numbers that NumPy has made."""
    if isinstance(result, tuple | list):
        return tree_map(as_tensors, result)
    if type(result) is np.ndarray and result.dtype.char in _NUMBERS and result.dtype.isnative:
        return as_array(Tensor(result))
    return result


def _own(theirs: Any, args: Any, keywords: Any, given: Any = None) -> Any:
    """NumPy's own result: Tensors, unless NumPy's arrays were ``given``, the arguments if None."""
    result = theirs(*args, **keywords)
    kept = holds(np.ndarray, given or [*args, *keywords.values()])
    return result if kept else as_tensors(result)


def _join(x: Any, name: str = "") -> Any:
    """A list or tuple that holds Tensors as one Tensor, if the parameter is an array."""
    nested = type(x) in (list, tuple) and name not in _STATIC and holds(Tensor, x)
    return wg.asarray(x) if nested else x


def transpose(x: Any, axes: Any = None, turn: Any = wg.matrix_transpose) -> Any:
    """All axes in reverse, unless told otherwise."""
    if axes is None and (n := x._array.ndim) == 2:
        return turn(x)
    return wg.permute_dims(x, tuple(range(n - 1, -1, -1)) if axes is None else axes)


def _at_once(dot: Any, product: Any = wg.matmul) -> Any:
    """A function of products; those of two matrices are the other product, and quick."""

    def call(a: Any, b: Any, *more: Any, **named: Any) -> Any:
        matrices = type(a) is type(b) is Tensor and 0 < a._array.ndim < 3 > b._array.ndim > 0
        return dot(a, b, *more, **named) if more or named or not matrices else product(a, b)

    return call


_SAME = "broadcast_to clip diff einsum moveaxis reshape roll stack take where"
#: What answers quickly, of an axis and of other arguments. Where it raises an error, as for what it
#: does not take, the counterpart answers, or tells.
_BY_AXIS: dict[str, Any] = {name: getattr(wg, name) for name in _ALONG}
_BY_AXIS |= {"cumprod": wg.cumulative_prod, "cumsum": wg.cumulative_sum}
_OTHERS: dict[str, Any] = {
    **{name: getattr(wg, name) for name in _SAME.split()},
    **{f"linalg.{name}": getattr(wg.linalg, name) for name in ("det", "inv", "solve")},
    "concatenate": wg.concat,
    "linalg.norm": wg.linalg.vector_norm,
    "hstack": lambda arrays: wg.concat(arrays, axis=int(arrays[0]._array.ndim != 1)),
    "ravel": lambda x: wg.reshape(x, (-1,)),
    "sort": lambda x, axis=-1: wg.sort(x, axis=axis),
    "transpose": transpose,
    "vstack": lambda arrays: (wg.stack if arrays[0]._array.ndim == 1 else wg.concat)(arrays),
}
#: Of these, also where the elements are integers.
_MOVES = "broadcast_to expand_dims flip moveaxis ravel reshape roll squeeze take transpose where"
_PLAIN = {Tensor, np.ndarray, int, float, tuple, type(None)}
_NONE: Any = object()


def door(label: str, theirs: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function, of Tensors its counterpart; what is plain is answered quickly."""
    name = label.partition(".")[2]
    by_axis, special = name in _BY_AXIS, (_BY_AXIS | _OTHERS).get(name)
    own, any_kind = special or ours, special is None or name in _MOVES.split()
    names = parameters_of(theirs)
    out_at = names.index("out") if "out" in names and names[0] != "operands" else len(names)
    three = out_at > 2 and not by_axis

    @wraps(theirs)
    def call(a: Any = _NONE, b: Any = _NONE, /, *more: Any, axis: Any = _NONE, **named: Any) -> Any:
        if type(a) is Tensor:
            plain = any_kind or a._node is not None or a.dtype.inexact
        else:
            parts = a if type(a) in (list, tuple) else (b,) * (type(a) is str)
            plain = bool(special) and {*map(type, parts)} == {Tensor}
        try:
            if named or not plain:
                pass
            elif b is _NONE:
                return own(a) if axis is _NONE else own(a, axis=axis)
            elif type(b) in _PLAIN and not more:
                if axis is not _NONE:
                    return own(a, b, axis=axis)
                return own(a, axis=b) if by_axis else own(a, b)
            elif three and len(more) == 1 and axis is _NONE and {type(b), type(more[0])} <= _PLAIN:
                return own(a, b, more[0])
        except (AttributeError, TypeError, ValueError, OverflowError):  # told below, by name
            pass
        named |= {} if axis is _NONE else {"axis": axis}
        return general(*[x for x in (a, b, *more) if x is not _NONE], **named)

    def general(*args: Any, **keywords: Any) -> Any:
        if not (holds(Tensor, args) or holds(Tensor, keywords.values())):
            return _own(theirs, args, keywords)
        keywords.update(zip(names[out_at:], args[out_at:], strict=False))
        out, args = keywords.pop("out", None), args[:out_at] if out_at < len(names) else args
        if names[0] in ("arrays", "tup") and args and label != "np.block":
            args = ([_join(x) for x in args[0]], *args[1:])
        given = [_join(x, name) for name, x in zip(names, args, strict=False)]
        keywords = {name: _join(x, name) for name, x in keywords.items()}
        return call_counterpart(label, ours, (*given, *args[len(given) :]), keywords, out)

    call = wraps(theirs)(_at_once(call)) if name == "dot" else call
    call.__module__ = __name__
    return call


#: The types of operands that a ufunc's counterpart takes at once.
_FAST = {Tensor: (Tensor, float), float: (Tensor,)}


def of_ufunc(theirs: np.ufunc) -> Callable[..., Any]:
    """A ufunc, of Tensors its counterpart, with its methods."""
    known = ELEMENTWISE | {"matmul": wg.matmul}
    counterpart: Any = known.get(theirs.__name__) if theirs.nout == 1 else None

    def method(kind: str) -> Callable[..., Any]:
        own = getattr(theirs, kind)

        def run(*args: Any, **keywords: Any) -> Any:
            given = tuple(map(_join, args))
            keywords = {name: _join(x, name) for name, x in keywords.items()}
            if not (holds(Tensor, given) or holds(Tensor, keywords.values())):
                return _own(own, given, keywords)
            if kind in ("reduce", "accumulate"):
                keywords.update(zip(("axis", "dtype", "out"), given[1:], strict=False))
                given = given[:1]
            elif kind == "__call__" and given[theirs.nin :]:
                keywords["out"], given = given[theirs.nin :], given[: theirs.nin]
            out = keywords.pop("out", None)
            out = out if out is None or isinstance(out, tuple) else (out,)
            found = array_ufunc(None, theirs, kind, *given, out=out, **keywords)  # type: ignore[arg-type]
            if found is NotImplemented:
                raise TypeError(f"np.{theirs.__name__} takes no {[type(x).__name__ for x in args]}")
            return found

        return run

    general = method("__call__")

    def unary(x: Any, /, *more: Any, **keywords: Any) -> Any:
        if type(x) is Tensor and not more and not keywords:
            return counterpart(x)
        return general(x, *more, **keywords)

    def binary(x1: Any, x2: Any, /, *more: Any, **keywords: Any) -> Any:
        kinds = _FAST.get(type(x1))
        if kinds and type(x2) in kinds and not more and not keywords:
            return counterpart(x1, x2)
        return general(x1, x2, *more, **keywords)

    fast = (unary, binary)[theirs.nin - 1] if counterpart and theirs.nin < 3 else general
    call = wraps(theirs)(fast)
    for kind in ("reduce", "accumulate", "outer", "at", "reduceat"):
        setattr(call, kind, method(kind))
    call.__module__ = __name__
    return call


def plain(x: Any, label: str, lost: bool) -> Any:
    """A Tensor's values, not to be written into; `TypeError` if a derivative would be lost."""
    if isinstance(x, list | tuple) and holds(Tensor, x):
        return tree_map(lambda part: plain(part, label, lost), x)
    if not isinstance(x, Tensor):
        return x
    if is_lifted(x._array) or (lost and differentiates(x) and x.dtype.inexact):
        raise no_counterpart(label)
    array = x.detach().numpy().view()
    array.flags.writeable = False
    return array


def _show(found: Any, given: Any, label: str) -> None:
    """Note of which Tensors results of NumPy's own are views: those that are not writeable."""
    for part, x in product(tree_leaves(found), tree_leaves(given)):
        if not isinstance(part, Tensor) or not isinstance(x, Tensor) or part._array.flags.writeable:
            continue
        if np.shares_memory(part._array, x.detach().numpy()):
            if part.size != x.size:  # which part is not known
                raise no_counterpart(label)
            show(part, x, np.reshape, {"shape": part.shape})


def passing(label: str, theirs: Callable[..., Any], lost: bool = True) -> Callable[..., Any]:
    """NumPy's own function, which refuses Tensors whose derivative it would lose."""

    @wraps(theirs)
    def call(*args: Any, **keywords: Any) -> Any:
        values = [plain(x, label, lost) for x in args]
        named = {name: plain(x, label, lost) for name, x in keywords.items()}
        try:
            found = _own(theirs, values, named, [*args, *keywords.values()])
            _show(found, [args, keywords], label)
            return found
        except ValueError as error:
            raise (no_counterpart(label) if "read-only" in str(error) else error) from None

    return call


def namespace(
    module: ModuleType, table: dict[str, Callable[..., Any]], lost: bool = True
) -> dict[str, Any]:
    """The public names of one of NumPy's modules: doors by a table, and what is NumPy's own."""
    label = module.__name__.replace("numpy", "np", 1)
    found = {name: getattr(module, name) for name in dir(module) if name[0] != "_"}
    for name, theirs in found.items():
        if isinstance(theirs, np.ufunc):
            found[name] = of_ufunc(theirs)
        elif (own := table.get(getattr(theirs, "__name__", name))) is not None:
            found[name] = door(f"{label}.{name}", theirs, own)
        elif callable(theirs) and not isinstance(theirs, type):
            found[name] = passing(f"{label}.{name}", theirs, lost)
    return found
