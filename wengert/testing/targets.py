"""The functions that ``python -m wengert check`` checks, and the arguments of each."""

import difflib
import functools
import importlib
import importlib.util
import inspect
import re
import sys
import types
import typing
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import hypothesis
import numpy as np
from hypothesis import strategies as st

from wengert.func.trees import tree_map
from wengert.nn import Module
from wengert.tape.function import Function
from wengert.tape.tensor import Tensor
from wengert.testing.arguments import Argument, Axis, calls
from wengert.testing.check import as_input
from wengert.testing.problem import inexact
from wengert.testing.tracebacks import first_line

#: Shapes of arrays without a declared shape: a function gets the first layout that it accepts.
LAYOUTS: tuple[Callable[[int], list[Any]], ...] = (
    lambda n: [(...,)] * n,
    lambda n: [("n",)] * n,
    lambda n: [("n", "n")] * n,
    lambda n: [(f"n{i}", f"n{i + 1}") for i in range(n)],
    lambda n: [("n", "m")] + [("m",)] * (n - 1),
    lambda n: [("n", "m")] + [("n",)] * (n - 1),
    lambda n: [()] * n,
)
#: Calls with which a function has to accept a layout.
TRIALS = 8


class UnusableError(Exception):
    """The command names something that does not exist or cannot be checked."""


class Target(NamedTuple):
    """A function, and arguments that it can be called with."""

    name: str
    #: None if there is nothing to call.
    function: Callable[..., Any] | None
    #: As `check_gradients` takes them.
    arguments: Sequence[Any] = ()
    #: Where the arguments were found, in words.
    source: str = ""
    #: Why the function is not checked; empty if it is.
    why_not: str = ""
    #: Of `check_gradients`, if the function was decorated with it.
    options: dict[str, Any] | None = None


def find(spec: str, shapes: Sequence[Any]) -> list[Target]:
    """Return the targets that ``module``, ``module:function`` or a file's path names.

    Raises
    ------
    UnusableError
        If there is no such module or function, or the module cannot be imported.
    """
    place, _, name = spec.rpartition(":") if re.search(r":[\w.]+$", spec) else (spec, "", "")
    module = _import(place)
    if name:
        found: Any = module
        for part in name.split("."):
            if not hasattr(found, part):
                near = difflib.get_close_matches(part, dir(found), 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise UnusableError(f"{place} has no function {name!r}{hint}")
            found = getattr(found, part)
        if not callable(found):
            raise UnusableError(f"{spec} is a {type(found).__name__}, which cannot be called")
        return [_target(name, found, shapes)]
    listed = getattr(module, "__all__", None)
    names = [n for n in vars(module) if not n.startswith("_")] if listed is None else list(listed)
    targets = []
    for name in names:
        value = getattr(module, name, None)
        plain = value.func if isinstance(value, functools.partial) else value
        own = getattr(plain, "__module__", None) == module.__name__
        if listed is None and not (own or isinstance(value, Module)):
            continue
        if not inspect.isclass(value):
            if callable(value):
                targets.append(_target(name, value, shapes))
        elif issubclass(value, Module):
            why = "it is a class of modules: check an instance, such as a function that calls one"
            targets.append(Target(name, None, why_not=why))
        elif issubclass(value, Function):
            why = f"it is an operation: check a function that calls {name}.apply"
            targets.append(Target(name, None, why_not=why))
    if not targets:
        raise UnusableError(
            f"{place} has no public functions of its own: those in __all__, or without it those "
            "whose names have no leading underscore"
        )
    return targets


def shape_of(text: str) -> tuple[Any, ...]:
    """Return the shape that ``--shape`` was given: ``2,3``, ``n,m``, ``...,n``, or "" for a number.

    Raises
    ------
    ValueError
        If the text is no shape.
    """
    shape: list[Any] = []
    for part in filter(None, (part.strip() for part in text.strip("() ").split(","))):
        if part == "...":
            shape.append(...)
        elif part.isdigit():
            shape.append(int(part))
        elif part.isidentifier():
            shape.append(part)
        else:
            raise ValueError(f"{text!r} is no shape: give lengths or their names, as in 2,n")
    Argument(tuple(shape))
    return tuple(shape)


def _import(place: str) -> types.ModuleType:
    path = Path(place)
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        if not path.is_file():
            raise UnusableError(f"there is no file {place!r}")
        spec: Any = importlib.util.spec_from_file_location(path.stem, path)
        sys.path.insert(0, str(path.resolve().parent))
        module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except UnusableError:
        raise
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        absent = isinstance(error, ModuleNotFoundError) and error.name
        if absent and (place == absent or place.startswith(f"{absent}.")):
            raise UnusableError(f"there is no module {place!r}") from error
        what = f"{type(error).__name__}: {error}"
        raise UnusableError(f"{place} cannot be imported: {what}") from error


def _target(name: str, value: Any, shapes: Sequence[Any]) -> Target:
    check = getattr(value, "wengert_check", None)
    if check is not None:
        options = {"kinks": check.kinks, "forward": check.forward, "single": check.single}
        options |= {"dtypes": check.dtypes, "order": check.order}
        options |= check.bounds | check.tolerances
        source = "its check_gradients declaration"
        return Target(name, check.function, check.arguments, source, options=options)
    function = value.forward if isinstance(value, Module) else value
    try:
        parameters = [
            p
            for p in inspect.signature(function).parameters.values()
            if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
    except (TypeError, ValueError):
        return Target(name, value, why_not="it has no signature: decorate a function that calls it")
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    if keywords:
        return Target(name, value, why_not=f"it needs keywords: {', '.join(keywords)}")
    if shapes and len(shapes) == len(parameters):
        return Target(name, value, [Argument(shape) for shape in shapes], "--shape")
    if shapes:
        why = f"it takes {len(parameters)} arguments, and --shape was given {len(shapes)} times"
        return Target(name, value, why_not=why)
    if not parameters:
        why = "it takes no arguments to differentiate: check a function that calls it with some"
        return Target(name, value, why_not=why)
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception:  # a name that exists for type checkers alone
        hints = {}
    arguments = [_argument(p.name, hints.get(p.name)) for p in parameters]
    if None in arguments:
        unknown = parameters[arguments.index(None)].name
        why = f"the type of its parameter {unknown!r} is no array's or number's: "
        why += "decorate a function that calls it with check_gradients"
        return Target(name, value, why_not=why)
    return _lay_out(Target(name, value, arguments, "its annotations" if hints else ""))


def _argument(name: str, hint: Any) -> Any:
    """The argument for an annotation: ``...`` for an array of unknown shape, None for no idea."""
    if typing.get_origin(hint) is typing.Annotated:
        for extra in hint.__metadata__:
            if isinstance(extra, Argument | Axis | st.SearchStrategy):
                return extra
        hint = hint.__origin__
    if hint in (None, int) and name in ("axis", "dim"):
        return Axis(0)
    if hint is None or hint is Any or isinstance(hint, typing.TypeVar):
        return ...
    if typing.get_origin(hint) is Literal:
        return st.sampled_from(typing.get_args(hint))
    if (isinstance(hint, type) and issubclass(hint, Tensor)) or "Array" in str(hint):
        return ...
    if np.ndarray in (hint, typing.get_origin(hint)):
        return ...
    plain: dict[Any, Any] = {float: Argument(()), complex: Argument((), dtype="complex128")}
    plain |= {bool: st.booleans(), int: st.integers(1, 3)}
    return plain.get(hint) if isinstance(hint, type) else None


def _lay_out(target: Target) -> Target:
    """The first layout of the arrays of unknown shape on which the function can be called."""
    free = [i for i, given in enumerate(target.arguments) if given is ...]
    errors = []
    for layout in LAYOUTS if free else (lambda n: [],):
        arguments = list(target.arguments)
        for i, shape in zip(free, layout(len(free)), strict=True):
            arguments[i] = Argument(shape)
        error = _refusal(target.function, arguments)
        if error is None:
            shown = ", ".join(_shape_text(arguments[i].shape) for i in free)
            sources = [target.source, f"shapes by trial: {shown}" if free else ""]
            source = " and ".join(filter(None, sources))
            return target._replace(arguments=arguments, source=source)
        errors.append(error)
    why = f"it raises for arrays of all shapes that were tried ({errors[0]}): give --shape"
    return target._replace(arguments=(), why_not=why)


def _shape_text(shape: tuple[Any, ...]) -> str:
    parts = ["..." if part is ... else str(part) for part in shape]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _refusal(function: Any, arguments: list[Any]) -> str | None:
    """Why a function cannot be called with such arguments; None if it can."""

    def call(drawn: tuple[Any, ...]) -> None:
        with np.errstate(all="ignore"):
            inexact(function(*tree_map(as_input, drawn)))

    settings = hypothesis.settings(
        max_examples=TRIALS,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
        report_multiple_bugs=False,
    )
    try:
        with warnings.catch_warnings(action="ignore"):  # the check gives them again
            settings(hypothesis.given(calls(arguments, min_side=1))(call))()
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        return f"{type(error).__name__}: {first_line(error)[:120]}"
    return None
