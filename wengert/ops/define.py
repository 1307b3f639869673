"""How an elementwise function is written down: a docstring and its rules."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Final, Literal, TypeVar

from wengert.tape.calling import binary, single, unary
from wengert.tape.domain import EVERYWHERE, Domain, Joint
from wengert.tape.primitive import Declared, Primitive
from wengert.tape.record import Rule, argument_names

#: Dtypes whose results are not differentiated.
_UNTRACKED: Final = ("boolean", "integer", "integer or boolean")

F = TypeVar("F", bound=Callable[..., Any])


def elementwise(
    *,
    linear: Literal["together", "each"] | None = None,
    view: bool | None = False,
    weak: bool | None = None,
    compares: bool = False,
    forward: Callable[..., Any] | None = None,
    domain: Domain | dict[str, Domain | Joint] = EVERYWHERE,
    dtypes: str = "floating",
    result: str | None = None,
    flat: bool = False,
    **rules: Rule | Declared,
) -> Callable[[F], F]:
    """Make a primitive of a stub, which has the function's name, arguments and docstring.

    Parameters
    ----------
    linear, view, weak, compares, forward, dtypes, domain, flat
        As for `Primitive`. Without a ``forward`` it is a function of the standard.
    result : {"dtype bool"}, optional
        The dtype of the result, where it is not the promoted one.
    **rules
        Argument name to rule. Without any, the result is not tracked, which is right for booleans
        and integers alone: a derivative that is zero everywhere is `ZERO`.

    Raises
    ------
    TypeError
        If a floating result has no rules, or a rule asks for what there is not.
    """

    def decorate(stub: F) -> F:
        names = argument_names(stub)
        if not rules and result != "dtype bool" and dtypes not in _UNTRACKED:
            raise TypeError(
                f"{stub.__name__} has no derivative rule: give one for each argument, "
                "ZERO where it is zero, or UNDEFINED where there is none"
            )
        for rule in rules.values():
            if not isinstance(rule, Declared) and {*argument_names(rule)[2:]} - {*names, "out"}:
                raise TypeError(
                    f"a rule of {stub.__name__} asks for {argument_names(rule)[2:]}, and an "
                    f"elementwise function has {names} and out"
                )
        primitive = Primitive(
            stub.__name__,
            names,
            rules,
            elementwise=True,
            linear=linear,
            view=view,
            weak=weak,
            compares=compares,
            forward=forward,
            dtypes=dtypes,
            domain=domain,
            flat=flat,
        )
        make = single if view else unary if len(names) == 1 else binary
        function = make(primitive)
        update_wrapper(function, stub)
        return function  # type: ignore[return-value]

    return decorate
