"""Calls of the user's functions, in which a library in C may have replaced an error."""

from collections.abc import Callable
from typing import Any


def call_back(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a user's function; a refusal of `wengert.tape.leaving` is raised itself.

    NumPy makes it the cause of a ValueError where an element is assigned, and Python that of a
    SystemError where a callback has failed.
    """
    try:
        return function(*args, **kwargs)
    except (ValueError, SystemError) as error:
        cause = error.__cause__
        while isinstance(cause, ValueError | SystemError):
            cause = cause.__cause__
        if not hasattr(cause, "refused"):
            raise
        raise cause from None  # type: ignore[misc]
