"""From NumPy's arguments to Wengert's."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.backends import DType
from wengert.ops.conversion import as_storable, beside
from wengert.ops.data_type import astype, result_type
from wengert.ops.operands import operands
from wengert.protocols import UnsupportedError
from wengert.tape.tensor import Tensor

#: Arguments that ask for nothing that a Tensor has, and the values that they may take (None: any).
_HARMLESS: dict[str, tuple[Any, ...] | None] = {
    "assume_unique": None,
    "casting": ("same_kind", "unsafe", "safe", "equiv", "no"),
    "copy": None,
    "initial": (None,),
    "kind": None,
    "optimize": None,
    "order": (None, "C", "K", "A"),
    "out": (None,),
    "overwrite_input": None,
    "sparse": (False,),
    "stable": None,
    "subok": None,
    "where": (True,),
}


#: The parameters of NumPy's built-in functions, which they tell from version 2.4 on.
_BUILT_IN = {
    "arange": "start_or_stop stop step dtype device like",
    "bincount": "x weights minlength",
    "concatenate": "arrays axis out dtype casting",
    "copyto": "dst src casting where",
    "dot": "a b out",
    "empty_like": "prototype dtype order subok shape device",
    "inner": "a b",
    "vdot": "a b",
    "where": "condition x y",
}


def parameters_of(theirs: Callable[..., Any]) -> list[str]:
    """The names of the parameters of one of NumPy's functions."""
    name = getattr(theirs, "__name__", "")
    if name in _BUILT_IN:
        return _BUILT_IN[name].split()
    return list(inspect.signature(theirs).parameters)


def refuse(keywords: dict[str, Any]) -> None:
    """Raise an error for arguments that have no meaning here and are not NumPy's defaults.

    The error is an `UnsupportedError`, to which the caller adds the name of the function.
    """
    for name, value in keywords.items():
        allowed = _HARMLESS.get(name, ())
        if allowed is not None and not any(value is one or value == one for one in allowed):
            raise UnsupportedError(f"{name}={value!r} is not supported for Tensors")


def translate(function: Callable[..., Any], parameters: str) -> Callable[..., Any]:
    """A function of Wengert's under NumPy's signature.

    Parameters
    ----------
    parameters : str
        NumPy's parameters in order. Those before ``/`` are passed on by position; of the others,
        ``axis`` is passed on by name, and ``-order`` not at all: it may have its default alone.
    """
    before, _, after = parameters.partition("/")
    arrays = before.split()
    passed = {word.removeprefix("-"): word[0] != "-" for word in after.split()}
    names = arrays + list(passed)

    def call(*args: Any, **keywords: Any) -> Any:
        if len(args) > len(names):
            raise TypeError(f"{len(names)} arguments at most are taken, and {len(args)} were given")
        given = dict(zip(names, args, strict=False))
        for name, value in keywords.items():
            if name in given:
                raise TypeError(f"the argument {name} is given twice")
            given[name] = value
        missing = [name for name in arrays if name not in given]
        if missing:
            raise TypeError(f"missing argument: {missing[0]}")
        rest = {n: x for n, x in given.items() if n not in arrays and x is not np._NoValue}
        ours = {n: rest.pop(n) for n in [*rest] if passed.get(n)}
        refuse(rest)
        return function(*[given[name] for name in arrays], **ours)

    return call


def of_two(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of two arrays, which may be of any kind."""
    return lambda a, b, *more, **keywords: function(*operands(a, b), *more, **keywords)


def list_of(name: str, values: Any, x: Tensor, dtype: DType) -> Tensor:
    """A list as a Tensor beside another, to be stored in a dtype."""
    found = as_storable(name, values, dtype)
    if isinstance(found, Tensor):
        return found
    return beside(x, found)


def inexact(x: Tensor) -> Tensor:
    """A Tensor in a floating dtype, float64 for integers and booleans, as NumPy computes means."""
    return x if x.dtype.inexact else astype(x, "float64")


def floats(*values: Any) -> list[Tensor]:
    """Operands in floating dtypes, as NumPy's linear algebra and transforms compute."""
    return common([inexact(x) for x in operands(*values)])


def common(xs: Sequence[Tensor]) -> list[Tensor]:
    """Tensors in the dtype of their results, so that none is computed in a narrower one."""
    dtype = result_type(*xs) if len(xs) > 1 else None
    return [cast(x, dtype) for x in xs]


def cast(x: Tensor, dtype: Any) -> Tensor:
    """A Tensor in another dtype, or itself where None is asked for."""
    return x if dtype is None else astype(x, dtype, copy=False)


def as_new(x: Tensor) -> Tensor:
    """A result that is no view in NumPy, though it was made by operations that give views."""
    if hasattr(x, "_shown"):
        delattr(x, "_shown")
    return x
