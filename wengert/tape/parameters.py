"""What every parameter of a public function is, declared beside the function.

A parameter is *differentiable*; or *constant*: it may be a Tensor too, and the derivative is zero
wherever it exists; or *undefined*: a Tensor, and to use its derivative is an error; or an *option*,
which takes no Tensor that a derivative flows through. A primitive's row says it by its rules, every
other function by `takes`. Errors, the documentation's tables and the tests read the declarations,
by `wengert.tape.options`.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar, Final, Self, TypeVar

from wengert.tape.grad_mode import recording

F = TypeVar("F", bound=Callable[..., Any])

#: Every declared function: its row, or what `takes` was told.
DECLARED: Final[dict[Callable[..., Any], Any]] = {}


def takes(
    differentiable: str = "",
    constant: str = "",
    undefined: str = "",
    **options: str,
) -> Callable[[F], F]:
    """Declare what each parameter of a function is, as a decorator.

    Parameters
    ----------
    differentiable, constant, undefined : str
        Names, with spaces between them. The others are options.
    **options : str
        What an option takes, in words, where `wengert.tape.options.OPTIONS` does not say it.
    """

    def declare(function: F) -> F:
        DECLARED[function] = (differentiable, constant, undefined, options)
        if isinstance(function, type):
            import_module("wengert.tape.options").check_constructor(function)
        return function

    return declare


class Refusing:
    """What refuses keywords of PyTorch's that it does not have, and says why.

    It is a base, because `inspect.signature` shows the first of ``__new__`` and ``__init__``.
    """

    #: What is said of each keyword.
    _refused: ClassVar[Mapping[str, str]] = {}

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse keywords."""
        for name in kwargs:
            if name in cls._refused:
                raise TypeError(f"{cls.__name__} takes no {name}, {cls._refused[name]}")
        return super().__new__(cls)


def differentiates(value: Any) -> bool:
    """Whether a derivative flows through a value now: a Tensor's, or one in a list or a tuple."""
    if isinstance(value, list | tuple):
        return any(map(differentiates, value))
    array = getattr(value, "_array", None)
    if array is None or not recording():
        return False
    return getattr(array, "followed", False) or getattr(value, "_node", None) is not None


def refuse() -> None:
    """Raise if a function that is running was given what it can't take; see `options.refuse`.

    What finds a Tensor where a plain value belongs, such as a conversion, or shapes that do not
    fit, asks here for the reason.
    """
    import_module("wengert.tape.options").refuse()  # which only errors need
