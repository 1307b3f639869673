"""How a module that is a function with stored options is written down: as a row.

``class ELU(_Unit, of=F.elu): ...`` is the whole of a module. Its options are the parameters of
``__init__``, whose body is empty or checks them; bases share signatures, which type checkers see.
"""

import re
from collections.abc import Callable
from functools import wraps
from inspect import cleandoc
from typing import Any

from wengert.nn import functional as F
from wengert.nn.module import Module
from wengert.tape.tensor import Tensor


class Stored(Module):
    """A module without parameters, which calls a function with the options that it stores.

    Options become attributes of their names, or buffers if the signature has ``Tensor | None``.
    ``forward`` calls the function with its arguments, with the options that the function has, and
    with ``training`` if the function has that. The docstring is made of the function's.

    Parameters
    ----------
    of : callable, optional
        The function of `wengert.nn.functional`; none for a base.
    shown : str, optional
        The options that ``repr`` shows; all by default, and ``inplace`` where it is True.
    """

    _options: tuple[str, ...] = ()
    _shown: tuple[str, ...] | None = None

    def __init_subclass__(
        cls, of: Callable[..., Any] | None = None, shown: str | None = None, **others: Any
    ) -> None:
        super().__init_subclass__(**others)
        if shown is not None:
            cls._shown = tuple(shown.split())
        if of is None:
            return
        stub: Any = cls.__init__ if cls.__init__ is not object.__init__ else None
        cls._options = _arguments(stub) if stub else ()
        name = next(name for name in F.__all__ if getattr(F, name) is of)
        known = _arguments(getattr(of, "__wrapped__", of), 0)
        passed = [option for option in (*cls._options, "training") if option in known]
        if stub:
            cls.__init__ = _constructor(stub, cls._options)  # type: ignore[method-assign]
        cls.forward = _forward(cls, of, name, passed)  # type: ignore[method-assign]
        cls.__doc__ = cls.__doc__ or _documentation(cls, of, name)

    def _check(self) -> None:
        """Raise for options that do not fit."""

    def extra_repr(self) -> str:
        names = self._options if self._shown is None else self._shown
        values = {name: getattr(self, name) for name in names}
        if values.get("inplace") is False:
            del values["inplace"]
        return ", ".join(f"{name}={value!r}" for name, value in values.items())


class Single(Stored):
    """One of a single input."""

    def forward(self, input: Any) -> Tensor:
        raise NotImplementedError


def _arguments(function: Any, first: int = 1) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[first : code.co_argcount + code.co_kwonlyargcount]  # type: ignore[no-any-return]


def _constructor(stub: Any, names: tuple[str, ...]) -> Any:
    code, ends = stub.__code__, stub.__defaults__ or ()
    positional = code.co_varnames[1 : code.co_argcount]
    defaults = dict(zip(positional[len(positional) - len(ends) :], ends, strict=True))
    defaults |= stub.__kwdefaults__ or {}
    buffers = {n for n, kind in stub.__annotations__.items() if kind == Tensor | None}

    @wraps(stub)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        stub(self, *args, **kwargs)
        values = {**defaults, **dict(zip(positional, args, strict=False)), **kwargs}
        for name in names:
            if name in buffers:
                self.register_buffer(name, values[name])
            else:
                setattr(self, name, values[name])
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


def _documentation(cls: type[Stored], function: Any, name: str) -> str | None:
    """A docstring of the function's first sentence, and its descriptions of the options."""
    if not function.__doc__:  # left out by -OO
        return None
    text = cleandoc(function.__doc__)
    found = re.search(r"\n\nParameters\n-+\n(.*?)(?=\n\n[A-Z]\w+\n---|\Z)", text, re.DOTALL)
    options = [
        entry
        for entry in re.split(r"\n(?=\S)", found[1] if found else "")
        if {*entry.partition(" : ")[0].split(", ")} <= {*cls._options}
    ]
    described = "\n".join(["\n\nParameters\n----------", *options]) if options else ""
    origin = f"`functional.{name}` as a module.\nPyTorch: ``torch.nn.{cls.__name__}``."
    return "\n\n".join([text.partition("\n\n")[0], origin]) + described
