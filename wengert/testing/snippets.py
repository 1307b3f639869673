"""Counterexamples as code: a few lines of Python that reproduce a failure."""

import ast
import inspect
import math
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert import ops
from wengert.backends import dtype_of
from wengert.tape.tensor import Tensor
from wengert.testing.problem import values


def _number_code(x: Any, inf: str) -> str:
    """Return code for a Python number, to the last bit; ``inf`` names the module of inf and nan."""
    if isinstance(x, complex):
        parts = (x.real, x.imag)
        if all(map(math.isfinite, parts)) and not any(
            p == 0 and math.copysign(1, p) < 0 for p in parts
        ):
            return repr(x)
        return f"complex({_number_code(x.real, inf)}, {_number_code(x.imag, inf)})"
    if isinstance(x, float) and not math.isfinite(x):
        return f"{inf}.nan" if math.isnan(x) else f"{inf}.inf" if x > 0 else f"-{inf}.inf"
    return repr(x)


def _array_code(array: np.ndarray[Any, Any], module: str, maker: str, options: str) -> str:
    """Return a call that makes an array, or zeros if it is empty."""
    if not array.size:
        return f"{module}.zeros({array.shape}, dtype={module}.{options})"
    return f"{module}.{maker}({value_code(array.tolist(), module)}, dtype={module}.{options})"


def value_code(value: Any, inf: str = "wg") -> str:
    """Return code for an argument: a Tensor, an array, a container of them, or anything else.

    ``inf`` names the module of a number's inf and nan.
    """
    if isinstance(value, Tensor):  # on the selected backend
        flag = ", requires_grad=True" if value.requires_grad else ""
        dtype = dtype_of(value._array.dtype).name
        return _array_code(values(value), "wg", "tensor", dtype + flag)
    if isinstance(value, np.ndarray):
        return _array_code(value, "np", "array", value.dtype.name)
    if type(value) is dict:
        return "{" + ", ".join(f"{k!r}: {value_code(v, inf)}" for k, v in value.items()) + "}"
    if type(value) in (list, tuple):
        items = ", ".join(value_code(v, inf) for v in value)
        return f"[{items}]" if type(value) is list else f"({items}{',' * (len(value) == 1)})"
    if isinstance(value, float | complex) and not isinstance(value, np.generic):
        return _number_code(value, inf)
    return repr(value)


def function_code(function: Callable[..., Any], name: str) -> tuple[list[str], str]:
    """Return lines that import or define a function, and the expression that names it.

    Parameters
    ----------
    function : callable
        The function.
    name : str
        What to call it if its own name is no identifier.
    """
    own = str(getattr(function, "__name__", name))
    if getattr(ops, own, None) is function:
        return [], f"wg.{own}"
    found = _import_line(function)
    if found:
        return found
    owner = getattr(function, "__self__", None)
    if isinstance(owner, type):  # as the `apply` of a Function
        lines, of = function_code(owner, name)
        return lines, f"{of}.{own}"
    called = own if own.isidentifier() else name
    source = None if inspect.ismethod(function) else _source(function, called)
    return (source, called) if source else (_placeholder(function, name), name)


def _import_line(function: Callable[..., Any]) -> tuple[list[str], str] | None:
    """The line that imports a function, and the expression that names it, if it can be imported."""
    module, qualified = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    home = sys.modules.get(module or "")
    if home is None or module in (None, "__main__") or "<" in qualified:
        return None
    outermost = qualified.partition(".")[0]
    found: Any = home
    for part in qualified.split("."):
        found = getattr(found, part, None)
    line = [f"from {module} import {outermost}"]
    if found is function or found == function:
        return line, qualified
    if getattr(found, "function", None) is function:  # decorated: the name is the test's
        return line, f"{qualified}.function"
    return None


def _source(function: Callable[..., Any], name: str) -> list[str]:
    """The definition of a function or class that cannot be imported, if it is found."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return []
    if function.__name__ == "<lambda>":
        found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
        return [f"{name} = {ast.unparse(found[0])}"] if len(found) == 1 else []
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef | ast.ClassDef):
        return []
    definition.decorator_list = []
    return ast.unparse(definition).splitlines()


def _placeholder(function: Callable[..., Any], name: str) -> list[str]:
    code = getattr(function, "__code__", None)
    where = f", line {code.co_firstlineno} of {code.co_filename}" if code else ""
    return [f"{name} = ...  # {getattr(function, '__qualname__', repr(function))}{where}"]


def block(lines: Sequence[str]) -> str:
    """Return lines of code as an indented block."""
    return textwrap.indent("\n".join(lines), "    ")
