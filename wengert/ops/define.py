"""Decorators that make an operation of a function and its rules."""

from collections.abc import Callable, Sequence
from functools import update_wrapper
from inspect import CO_VARARGS
from typing import Any, Final, ParamSpec, Protocol, TypeVar, cast

from wengert.tape.calling import binary, single, unary
from wengert.tape.primitive import Declared, Primitive
from wengert.tape.record import argument_names

#: Facts of a row that have names, as `Primitive` takes them; other names are those of inputs.
_FACTS: Final = frozenset(Primitive.__init__.__kwdefaults__ or ())

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")


class Operation(Protocol[P, R]):
    """A public function with its primitive's call: ``run(*inputs, **parameters)``."""

    __name__: str
    run: Callable[..., R]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


def _row(name: str, inputs: Sequence[str], facts: dict[str, Any]) -> Primitive:
    """The row of facts and rules that are given together."""
    rules = {key: facts.pop(key) for key in [*facts] if key not in _FACTS}
    return Primitive(name, inputs, rules, **facts)


def _call(row: Primitive, plain: bool) -> Callable[..., Any]:
    """The fastest call of a primitive; ``plain`` says that it has no parameters."""
    if row.several or row.variadic or len(row.inputs) > 2:
        return row.bind
    if len(row.inputs) == 1:
        return unary(row) if plain and row.elementwise and not row.view else single(row)
    return binary(row) if plain else row.bind


def operation(
    name: str | None = None, inputs: Sequence[str] | None = None, **facts: Any
) -> Callable[[Callable[P, R]], Operation[P, R]]:
    """Make the primitive of a function, which calls it by ``function.run``.

    Parameters
    ----------
    name : str, optional
        The primitive's name, where it is not the function's.
    inputs : sequence of str, optional
        The primitive's inputs, where they are not the function's positional-only parameters, and
        the ``*arrays`` after them.
    **facts
        Argument name to rule, and the other facts that `Primitive` takes.

    Examples
    --------
    >>> from wengert.ops.define import operation
    >>> def scale(xp, x, by):
    ...     return x * by
    >>> @operation(x=lambda xp, g, by: g * by, linear="together", composite=scale)
    ... def scaled(x, /, by=2):
    ...     return scaled.run(x, by=float(by))
    >>> wg.grad(scaled)(3.0)
    2.0
    """

    def decorate(function: Callable[P, R]) -> Operation[P, R]:
        code = cast(Any, function).__code__
        names = [*code.co_varnames[: code.co_posonlyargcount]]
        plain = code.co_posonlyargcount == code.co_argcount
        if plain and code.co_flags & CO_VARARGS:
            names.append("*" + code.co_varnames[code.co_argcount + code.co_kwonlyargcount])
        row = _row(name or cast(Any, function).__name__, inputs or names, facts)
        public = cast(Operation[P, R], function)
        public.run = _call(row, plain and not (inputs or code.co_kwonlyargcount))
        return public

    return decorate


def elementwise(tracked: bool = True, **facts: Any) -> Callable[[F], F]:
    """Make an elementwise operation of a stub: the call of the primitive is the function.

    Parameters
    ----------
    tracked : bool
        Whether there are rules: results that are booleans or integers are not tracked. A derivative
        that is zero everywhere is `ZERO`.
    **facts
        As for `operation`.

    Raises
    ------
    TypeError
        If a floating result has no rules, or a rule asks for what there is not.
    """

    def decorate(stub: F) -> F:
        names = argument_names(stub)
        rules = [rule for key, rule in facts.items() if key not in _FACTS]
        if not rules and tracked:
            raise TypeError(
                f"{stub.__name__} has no derivative rule: give one for each argument, "
                "ZERO where it is zero, or UNDEFINED where there is none"
            )
        for rule in rules:
            if not isinstance(rule, Declared) and {*argument_names(rule)[2:]} - {*names, "out"}:
                raise TypeError(
                    f"a rule of {stub.__name__} asks for {argument_names(rule)[2:]}, and an "
                    f"elementwise function has {names} and out"
                )
        row = _row(stub.__name__, names, {**facts, "elementwise": True})
        return cast(F, update_wrapper(_call(row, plain=True), stub))

    return decorate
