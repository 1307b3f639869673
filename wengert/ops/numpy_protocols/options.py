"""Options of NumPy's functions, in which a Tensor that is differentiated is refused."""

from collections.abc import Callable
from functools import cache
from inspect import Parameter, signature
from typing import Any, Final

from wengert.tape.options import OPTIONS as OURS
from wengert.tape.options import option_error
from wengert.tape.parameters import differentiates

__all__ = ["OPTIONS", "check_options"]

_FLAG: Final = "True or False"

#: What options take, by name.
OPTIONS: Final = {
    **OURS,
    **dict.fromkeys(("assume_unique", "bias", "compute_uv", "deg", "equal_nan"), _FLAG),
    **dict.fromkeys(("hermitian", "overwrite_input", "return_counts", "return_index"), _FLAG),
    **dict.fromkeys(("return_inverse", "returned", "rowvar", "sorted", "sparse", "subok"), _FLAG),
    **dict.fromkeys(("decimals", "edge_order"), "an integer"),
    **dict.fromkeys(("casting", "kind", "order"), "one of the names that NumPy lists"),
}


@cache
def _places(function: Callable[..., Any]) -> tuple[tuple[int, str], ...]:
    """The positions of a function's options, and their names, in order."""
    places: list[tuple[int, str]] = []
    try:
        found = signature(function).parameters.values()
    except ValueError:  # of a function in C, before NumPy told
        return ()
    for at, parameter in enumerate(found):
        if parameter.kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
            break
        if parameter.name in OPTIONS:
            places.append((at, parameter.name))
    return tuple(places)


def check_options(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    """Raise for a Tensor that is given as an option and that a derivative flows through.

    Raises
    ------
    TypeError
        If there is one.
    """
    for at, option in _places(function):
        if at >= len(args):
            break
        if differentiates(args[at]):
            raise option_error(name, option, OPTIONS[option])
    for option, value in keywords.items():
        if option in OPTIONS and differentiates(value):
            raise option_error(name, option, OPTIONS[option])
