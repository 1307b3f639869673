"""Types of transforms: the gradient of a function has the type of its first argument."""

from typing import Any, Literal, ParamSpec, Protocol, TypeVar

First = Literal[0]
Off = Literal[False]
P = ParamSpec("P")
#: An argument; of a lambda's all is allowed.
X = TypeVar("X", bound=Any)
Y = TypeVar("Y")
R_co = TypeVar("R_co", covariant=True)


class Derived(Protocol[P, R_co]):
    """A function of the same arguments; a class, which type checkers do not mix with lambdas."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
