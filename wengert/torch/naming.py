"""How PyTorch's functions are listed: by name, with PyTorch's signatures."""

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

#: The names that PyTorch's functions take beside their own.
_NUMPYS = {"axis": "dim", "keepdims": "keepdim"}


def name_of_torch(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a line of a table its name, and the names of axes that NumPy has."""
    signature = inspect.signature(function)
    parameters = signature.parameters
    also = {k: v for k, v in _NUMPYS.items() if v in parameters and k not in parameters}

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        for key in options.keys() & also.keys():
            options[also[key]] = options.pop(key)
        return function(*args, **options)

    result = call if also else function
    if also or function.__name__[0] in "<_":
        result.__name__ = result.__qualname__ = name
        result.__doc__ = f"PyTorch's ``{name}``."
    return give_signature(result, function, *also) if also else result


#: PyTorch's functions of Tensors.
FUNCTIONS: dict[str, Callable[..., Any]] = {}


def register(function: Callable[..., Any]) -> Callable[..., Any]:
    """List a function by its name, without the underscore in front."""
    lines(**{function.__name__.strip("_"): function})
    return function


def lines(**table: Callable[..., Any]) -> None:
    """List functions by their names, with their own signatures."""
    FUNCTIONS.update((name, name_of_torch(name, line)) for name, line in table.items())


def members(home: Any, words: str) -> Iterator[tuple[str, Any]]:
    """Members of a module: ``name``, or ``name=other`` of another name there."""
    for word in words.split():
        name, _, other = word.partition("=")
        yield name, getattr(home, other or name)


def give_signature(call: Any, function: Any, *names: str) -> Any:
    """Give the signature of a function to another, with more keywords in place of ``**options``."""
    signature, kind = inspect.signature(function), inspect.Parameter
    own = [p for p in signature.parameters.values() if p.kind is not kind.VAR_KEYWORD]
    more = [name for name in names if name not in signature.parameters]
    own += [kind(name, kind.KEYWORD_ONLY, default=None) for name in more]
    call.__signature__ = signature.replace(parameters=own)
    return call
