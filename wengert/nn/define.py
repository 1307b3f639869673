"""Modules that only store options: each is a row, ``ELU = module("ELU", F.elu)``."""

from collections.abc import Callable
from inspect import Parameter, Signature, cleandoc, signature
from typing import Any, ClassVar, Final

from wengert.nn import functional as F
from wengert.nn.module import Module
from wengert.ops.hints import Refusing

#: What a call of a module takes of its function's parameters; a lone ``x`` is called ``input``.
_INPUTS: Final = frozenset(["x", "input", "target", "x1", "x2", "var"])
#: Options that are arrays, which are buffers.
_BUFFERS: Final = ("weight", "pos_weight")


class Stored(Refusing, Module):
    """A module without parameters, which calls a function with the options that it stores."""

    _options: ClassVar[tuple[str, ...]] = ()
    _shown: ClassVar[Any] = None
    _check: ClassVar[Any] = None

    def _store(self, given: dict[str, Any]) -> None:
        """Keep options as attributes of their names, or as buffers, and check them."""
        for name in self._options:
            if name in _BUFFERS:
                self.register_buffer(name, given[name])
            else:
                setattr(self, name, given[name])
        if self._check is not None:
            self._check()

    def extra_repr(self) -> str:
        if self._shown is not None:
            return str(self._shown(self))
        values = {name: getattr(self, name) for name in self._options}
        shown = {n: v for n, v in values.items() if not (n == "inplace" and v is False)}
        return ", ".join(f"{name}={value!r}" for name, value in shown.items())


def module(
    name: str,
    function: Callable[..., Any],
    *,
    inplace: bool = False,
    shown: str | Callable[[Any], str] | None = None,
    check: Callable[[Any], None] | None = None,
) -> Any:
    """Make a module of a function: its options are the function's parameters, but for the inputs.

    ``forward`` passes the inputs and the options, and ``training`` if the function has that. An
    option ``inplace``, which changes nothing, may be the last.
    ``shown`` is what ``repr`` shows: a text with attributes of ``{0}``, or a function of the
    module; by default all options, and ``inplace`` where it is True. ``check`` raises for options
    that do not fit.
    """
    label = next(label for label in F.__all__ if getattr(F, label) is function)
    found = signature(function)
    inputs = [n for n in found.parameters if n in _INPUTS]
    options = [p for n, p in found.parameters.items() if n not in (*inputs, "training", "dtype")]
    passed = [p.name for p in options] + ["training"] * ("training" in found.parameters)
    if inplace:
        switch = Parameter("inplace", Parameter.POSITIONAL_OR_KEYWORD, default=False)
        options.append(switch.replace(annotation=bool))
    own = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    bare = [p.replace(annotation=Parameter.empty) for p in options]
    called = [{"x": "input"}.get(n, n) for n in inputs]
    # Written as source, `forward` is as fast as by hand, and errors name what is missing.
    source = (
        f"def __init__{Signature([own, *bare])}: self._store(locals())\n"
        f"def forward(self, {', '.join(called)}):\n"
        f"    return function({', '.join(called + [f'{n}=self.{n}' for n in passed])})\n"
    )
    plain = vars(function)["__wrapped__"] if inplace else function  # refuses no keywords
    space: dict[str, Any] = {"function": plain, "__name__": f"{__package__}.stored"}
    exec(compile(source, f"{__file__}:{name}", "exec"), space)  # noqa: S102 -- written above
    construct, forward = space["__init__"], space["forward"]
    construct.__annotations__ = {**{p.name: p.annotation for p in options}, "return": None}
    forward.__annotations__ = {**dict.fromkeys(called, Any), "return": found.return_annotation}
    forward.__doc__ = f"Call `functional.{label}` with the module's options."
    for method in (construct, forward):
        method.__qualname__ = f"{name}.{method.__name__}"
    text = shown.format if isinstance(shown, str) else shown
    content = {
        "__module__": space["__name__"],
        "__doc__": _documentation(name, label, function.__doc__),
        "__init__": construct,
        "forward": forward,
        "_options": tuple(p.name for p in options),
        "_shown": text and staticmethod(text),
        "_check": check,
    }
    return type(name, (Stored,), content)


def _documentation(name: str, label: str, text: str | None) -> str | None:
    """A docstring of the function's first sentence."""
    if not text:  # left out by -OO
        return None
    first = cleandoc(text).partition("\n\n")[0]
    return f"{first}\n\n`functional.{label}` as a module.\nPyTorch: ``torch.nn.{name}``."
