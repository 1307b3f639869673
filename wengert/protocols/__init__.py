"""NumPy's protocols: ``np.exp(x)``, ``np.sum(x)`` and ``array * x`` give tracked Tensors.

NumPy hands a call with a Tensor among its arguments over, ufuncs by `array_ufunc` (NEP 13) and
other functions by `array_function` (NEP 18). Both look NumPy's name up in a table of functions of
this package; a name that is in no table is an error. The first such call imports the tables.
"""

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from wengert.names import HINTS
from wengert.ops.data_type import astype, check_storable
from wengert.ops.operators import GIVEN, is_foreign, strong
from wengert.tape.node import is_lifted
from wengert.tape.tensor import Tensor, differentiates

__all__ = ["UnsupportedError", "array_function", "array_ufunc", "call_counterpart"]


class UnsupportedError(TypeError):
    """An argument of NumPy's that Wengert's function does not have."""


#: Where a function's counterpart is found, by the module that NumPy says it comes from.
TABLES = {"numpy": "functions", "numpy.linalg": "linalg", "numpy.fft": "fft"}


@cache
def _table(module: str) -> dict[str, Callable[..., Any]]:
    return import_module(f"{__name__}.{module}").TABLE  # type: ignore[no-any-return]


@cache
def _of_ufunc(ufunc: np.ufunc, method: str) -> tuple[str, Callable[..., Any]]:
    """The name of a ufunc's method in errors, and its counterpart."""
    table = _table("ufuncs")
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    if getattr(np, ufunc.__name__, None) is ufunc or ufunc.__name__ == "clip":
        label = f"np.{name}"
        function = table.get(name)
        if function is None and method == "outer" and ufunc.__name__ in table and ufunc.nin == 2:
            function = partial(table["outer"], table[ufunc.__name__])
    else:  # one of SciPy's
        label = f"the ufunc {name}"
        function = table["special"](ufunc) if method == "__call__" else None
    if function is None:
        raise no_counterpart(label)
    return label, function


def array_ufunc(
    self: Tensor, ufunc: np.ufunc, method: str, /, *inputs: Any, out: Any = None, **keywords: Any
) -> Any:
    """Answer a call of a ufunc of NumPy's, or of its methods, with a Tensor among the arguments.

    Tensors in ``out`` take the results in place, as ``x += y`` does. Raises `TypeError` if there is
    no counterpart, or ``out`` is no Tensor.
    """
    for x in inputs:
        if type(x) is not np.ndarray and isinstance(x, np.ndarray) and is_foreign(x):
            return NotImplemented  # its own protocol answers
    if out is not None and type(out[0]) is np.ndarray and "wengert.numpy" in GIVEN:
        lost = (differentiates(x) or is_lifted(x._array) for x in inputs if isinstance(x, Tensor))
        if not any(lost):  # NumPy's array takes the values
            values = [x.detach().numpy() if isinstance(x, Tensor) else x for x in inputs]
            return getattr(ufunc, method)(*values, out=out, **keywords)
    label, function = _of_ufunc(ufunc, method)
    if method == "__call__" and keywords.get("where", True) is not True and out is not None:
        keywords["kept"] = out[0]  # whose elements stay where nothing is computed
    try:
        return call_counterpart(label, function, strong(*inputs), keywords, out)
    except TypeError:
        # Another object's own protocol answers.
        if any(hasattr(type(x), "__array_ufunc__") and is_foreign(x) for x in inputs):
            return NotImplemented
        raise


def array_function(
    self: Tensor,
    func: Callable[..., Any],
    types: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Answer a call of one of NumPy's other functions with a Tensor among its arguments.

    Raises `TypeError` if there is no counterpart that takes these arguments.
    """
    module = func.__module__
    name = f"{module.replace('numpy', 'np', 1)}.{func.__name__}"
    function = _table(TABLES[module]).get(func.__name__) if module in TABLES else None
    if function is None:
        raise no_counterpart(name)
    keywords = dict(kwargs)
    return call_counterpart(name, function, args, keywords, keywords.pop("out", None))


def no_counterpart(name: str) -> TypeError:
    """The error for one of NumPy's functions that Tensors have no counterpart of."""
    if name.startswith("np.save"):
        return TypeError(f"{name} stores arrays: pass x.numpy(), or x.detach().numpy() if tracked")
    home, _, own = name.replace("np", "wengert", 1).rpartition(".")
    way = HINTS.get(home, {}).get(own) or (
        "it with functions that have one, or as a wengert.autograd.Function with a derivative of "
        "its own; where none is needed, pass tensor.numpy()"
    )
    told = f"{name} has no counterpart that takes Tensors and is differentiated"
    return TypeError(f"{told}: write {way}")


def call_counterpart(
    name: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    keywords: dict[str, Any],
    out: Any,
) -> Any:
    """Answer a call of NumPy's function ``name`` by its counterpart; ``out`` takes the result."""
    targets = () if out is None else out if isinstance(out, tuple) else (out,)
    for target in targets:
        if target is not None and not isinstance(target, Tensor):
            raise TypeError(
                f"{name} can't write a Tensor's result into a {type(target).__name__}, which is "
                "not tracked: write a = a * x for a *= x, and leave out=; wg.at(a)[key].set(x) "
                "replaces a part"
            )
    try:
        result = function(*args, **keywords)
    except UnsupportedError as error:
        raise TypeError(f"{name}: {error}") from None
    except OverflowError as error:
        if not str(error).startswith("the number"):  # `operands` knows no name
            raise
        raise OverflowError(f"{name}: {error}") from None
    except TypeError as error:
        own = getattr(function, "__qualname__", "") + "()"
        if not str(error).startswith(own):
            raise
        # Python names the counterpart where the arguments do not fit its signature.
        more = ", of Tensors: this option has no counterpart with a derivative"
        more = more if "unexpected" in str(error) else ""
        raise TypeError(f"{name}(){str(error).removeprefix(own)}{more}") from None
    if not targets:
        return result
    results = result if isinstance(result, tuple) else (result,)
    if keywords.get("casting") == "unsafe":
        results = tuple(
            one if target is None else astype(one, target.dtype)
            for one, target in zip(results, targets, strict=True)
        )
    for one, target in zip(results, targets, strict=True):
        if target is not None:
            check_storable(name, one, target.dtype)
    written = tuple(
        one if target is None else target.copy_(one)
        for one, target in zip(results, targets, strict=True)
    )
    return written if isinstance(result, tuple) else written[0]
