"""How a module that is a function with stored options is written down: by its options."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from wengert.nn import functional as F
from wengert.nn.module import Module
from wengert.tape.tensor import Tensor

M = TypeVar("M", bound="Stored")


class Stored(Module):
    """A module without parameters, which calls a function with the options that it stores."""

    #: The options, and those of them that ``repr`` shows.
    _options: tuple[str, ...] = ()
    _shown: tuple[str, ...] | None = None

    def _check(self) -> None:
        """Raise for options that do not fit."""

    def extra_repr(self) -> str:
        names = self._options if self._shown is None else self._shown
        given = {name: getattr(self, name) for name in names}
        if given.get("inplace") is False:
            del given["inplace"]
        return ", ".join(f"{name}={value!r}" for name, value in given.items())


class Single(Stored):
    """One of a single input."""

    def forward(self, input: Any) -> Tensor:
        raise NotImplementedError


def stores(
    function: Callable[..., Any], *, shown: str | None = None
) -> Callable[[type[M]], type[M]]:
    """Make a class a module of a function, as a decorator.

    The options are the parameters of the ``__init__`` that it has, whose body may check them. They
    become attributes of their names, or buffers if the signature has ``Tensor | None``. ``forward``
    has the inherited signature. It calls the function with its arguments, with the options that the
    function has, and with ``training`` if the function has that.

    Parameters
    ----------
    function : callable
        Of `wengert.nn.functional`.
    shown : str, optional
        The options that ``repr`` shows; all by default, and ``inplace`` where it is True.
    """
    code = getattr(function, "__wrapped__", function).__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    def decorate(cls: type[M]) -> type[M]:
        stub: Any = cls.__init__ if cls.__init__ is not object.__init__ else None
        names = _arguments(stub) if stub else ()
        cls._options = names
        if shown is not None:
            cls._shown = tuple(shown.split())
        name = next(name for name in F.__all__ if getattr(F, name) is function)
        if stub:
            cls.__init__ = _constructor(cls, stub, names)  # type: ignore[method-assign]
        cls.forward = _forward(cls, function, name, [n for n in (*names, "training") if n in known])  # type: ignore[method-assign]
        return cls

    return decorate


def _arguments(method: Any) -> tuple[str, ...]:
    code = method.__code__
    return code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]  # type: ignore[no-any-return]


def _constructor(cls: type[Stored], stub: Any, names: tuple[str, ...]) -> Any:
    code, ends = stub.__code__, stub.__defaults__ or ()
    positional = code.co_varnames[1 : code.co_argcount]
    defaults = dict(zip(positional[len(positional) - len(ends) :], ends, strict=True))
    defaults |= stub.__kwdefaults__ or {}
    check: Any = cls.__init__
    buffers = {n for n, kind in stub.__annotations__.items() if kind == Tensor | None}

    @wraps(stub)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        check(self, *args, **kwargs)
        given = {**defaults, **dict(zip(positional, args, strict=False)), **kwargs}
        for name in names:
            value = given[name]
            if name in buffers:
                self.register_buffer(name, value)
                continue
            setattr(self, name, value)
        self._check()

    return construct


def _forward(cls: type[Stored], function: Any, name: str, passed: list[str]) -> Any:
    """The method that calls the function, written as source: it is as fast as by hand."""
    inputs = ", ".join(_arguments(cls.forward))
    options = "".join(f", {option}=self.{option}" for option in passed)
    source = f"def forward(self, {inputs}):\n    return function({inputs}{options})\n"
    names = {"function": function, "__name__": cls.__module__}
    exec(compile(source, f"{__file__}:{cls.__name__}", "exec"), names)  # noqa: S102 -- written above
    made: Any = names["forward"]
    made.__qualname__ = f"{cls.__qualname__}.forward"
    made.__annotations__ = cls.forward.__annotations__
    made.__doc__ = f"Call `functional.{name}` with the module's options."
    return made
