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

#: Parameters of these names are arrays, if nothing else says what they are.
ARRAYS = re.compile(
    r"[a-hj-mo-z][0-9]?|x[sy]?|inputs?|arrays?|arr|data|tensors?|values?|logits|weights?|bias|"
    r"theta|params?|left|right|vectors?|vec|matrix|mat|mean|std|sigma|mu|scale|loc|predictions?|"
    r"targets?|probs?|hidden|state|features?|points?|coordinates?|preds?|y_(?:pred|true|hat)|outputs?|"
    r"query|key|images?|signal|positions?|velocity|coefficients?|coeffs?|residuals?"
)
#: A shape in numpydoc: "array of shape (n, m)", "array, shape (n,)", "(n, m) array".
DOCUMENTED = re.compile(
    r"shape\s*[:=]?\s*\(([^()]*)\)|^\s*\(([^()]*)\)\s*(?:array|tensor)", re.IGNORECASE
)
#: Shapes of arrays that are not declared: the first that the function accepts are taken.
LAYOUTS: tuple[Callable[[int], list[Any]], ...] = (
    lambda n: [(...,)] * n,
    lambda n: [("n",)] * n,
    lambda n: [("n", "n")] * n,
    lambda n: [(f"n{i}", f"n{i + 1}") for i in range(n)],
    lambda n: [("n", "m")] + [("m",)] * (n - 1),
    lambda n: [("n", "m")] + [("n",)] * (n - 1),
    lambda n: [()] * n,
)

#: Calls with which each layout is tried.
TRIALS = 8


class UnusableError(Exception):
    """The command names something that does not exist or cannot be checked."""


class Target(NamedTuple):
    """A function, and arguments that it can be called with.

    Attributes
    ----------
    name : str
        Its name in the module.
    function : callable or None
        None if there is nothing to call.
    arguments : list
        As `check_gradients` takes them.
    source : str
        Where the arguments were found, in words.
    why_not : str
        Why it is not checked; empty if it is.
    options : dict
        Of `check_gradients`, if the function was decorated with it.
    """

    name: str
    function: Callable[..., Any] | None
    arguments: Sequence[Any] = ()
    source: str = ""
    why_not: str = ""
    options: dict[str, Any] | None = None


def find(spec: str, shapes: Sequence[Any]) -> list[Target]:
    """Return the targets that ``module``, ``module:function`` or a file's path names.

    Raises
    ------
    UnusableError
        If there is no such module or function, or the module cannot be imported.
    """
    place, _, name = spec.rpartition(":") if re.search(r":[\w.]+$", spec) else (spec, "", "")
    module = _imported(place)
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
    for each in names:
        value = getattr(module, each, None)
        made = value.func if isinstance(value, functools.partial) else value
        own = getattr(made, "__module__", None) == module.__name__
        if listed is None and not (own or isinstance(value, Module)):
            continue
        if not inspect.isclass(value):
            if callable(value):
                targets.append(_target(each, value, shapes))
        elif issubclass(value, Module):
            why = "it is a class of modules: check an instance, such as a function that calls one"
            targets.append(Target(each, None, why_not=why))
        elif issubclass(value, Function):
            why = f"it is an operation: check a function that calls {each}.apply"
            targets.append(Target(each, None, why_not=why))
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
    parts = [part.strip() for part in text.strip("() ").split(",") if part.strip()]
    made: list[Any] = []
    for part in parts:
        if part == "...":
            made.append(...)
        elif re.fullmatch(r"\d+", part):
            made.append(int(part))
        elif part.isidentifier():
            made.append(part)
        else:
            raise ValueError(f"{text!r} is no shape: give lengths or their names, as in 2,n")
    Argument(tuple(made))
    return tuple(made)


def _imported(place: str) -> types.ModuleType:
    path = Path(place)
    try:
        if place.endswith(".py") or path.is_file():
            if not path.is_file():
                raise UnusableError(f"there is no file {place!r}")
            spec = importlib.util.spec_from_file_location(path.stem, path)
            if spec is None or spec.loader is None:
                raise UnusableError(f"{place!r} is no Python file")
            sys.path.insert(0, str(path.resolve().parent))
            module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
        return importlib.import_module(place)
    except UnusableError:
        raise
    except ModuleNotFoundError as error:
        if error.name and (place == error.name or place.startswith(f"{error.name}.")):
            raise UnusableError(f"there is no module {place!r}") from error
        raise UnusableError(f"{place} cannot be imported: {error}") from error
    except (Exception, SystemExit) as error:  # the user's code may raise anything
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
    called = value.forward if isinstance(value, Module) else value
    try:
        parameters = [
            p
            for p in inspect.signature(called).parameters.values()
            if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
    except (TypeError, ValueError):
        return Target(name, value, why_not="it does not tell its parameters: decorate a function")
    if any(p.kind is p.KEYWORD_ONLY for p in parameters):
        wanted = ", ".join(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
        return Target(name, value, why_not=f"it needs keywords: {wanted}")
    if shapes and len(shapes) == len(parameters):
        return Target(name, value, [Argument(shape) for shape in shapes], "--shape")
    if shapes:
        why = f"it takes {len(parameters)} arguments, and --shape was given {len(shapes)} times"
        return Target(name, value, why_not=why)
    if not parameters:
        why = "it takes no arguments to differentiate: check a function that calls it with some"
        return Target(name, value, why_not=why)
    return _guessed(name, value, parameters)


def _guessed(name: str, value: Any, parameters: list[inspect.Parameter]) -> Target:
    """Arguments by annotations, documentation and names."""
    function = value.forward if isinstance(value, Module) else value
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception:  # a name that exists for type checkers alone
        hints = {}
    documented = _documented(inspect.getdoc(function) or "")
    arguments: list[Any] = []
    sources: dict[str, None] = {}
    for p in parameters:
        given, source = _argument(p.name, hints.get(p.name), documented.get(p.name))
        if given is None:
            why = (
                f"nothing tells what its parameter {p.name!r} is: annotate it, say its shape in "
                "the docstring, give --shape, or decorate the function with check_gradients"
            )
            return Target(name, value, why_not=why)
        arguments.append(given)
        sources[source] = None
    return _laid_out(Target(name, value, arguments, " and ".join(sources)))


def _documented(text: str) -> dict[str, tuple[Any, ...]]:
    """Shapes of parameters, from a numpydoc docstring."""
    found = {}
    for match in re.finditer(r"^\s*(\w+(?:\s*,\s*\w+)*)\s*:\s*(.+)$", text, re.MULTILINE):
        shape = DOCUMENTED.search(match[2])
        if shape:
            try:
                made = shape_of(shape[1] if shape[1] is not None else shape[2])
            except (TypeError, ValueError):
                continue
            found.update(dict.fromkeys(re.split(r"\s*,\s*", match[1]), made))
    return found


def _argument(name: str, hint: Any, shape: tuple[Any, ...] | None) -> tuple[Any, str]:
    if shape is not None:
        return Argument(shape), "its docstring"
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        for extra in hint.__metadata__:
            if isinstance(extra, Argument | Axis | st.SearchStrategy):
                return extra, "its annotations"
        hint = hint.__origin__
        origin = typing.get_origin(hint)
    plain: dict[Any, Any] = {
        float: Argument(()),
        complex: Argument((), dtype="complex128"),
        bool: st.booleans(),
        int: Axis(0) if name in ("axis", "dim") else st.integers(1, 3),
    }
    if isinstance(hint, type) and hint in plain:
        return plain[hint], "its annotations"
    if origin is Literal:
        return st.sampled_from(typing.get_args(hint)), "its annotations"
    if (isinstance(hint, type) and issubclass(hint, Tensor)) or np.ndarray in (hint, origin):
        return ..., "its annotations"
    if getattr(hint, "__name__", "") in ("Array", "ArrayLike", "NDArray"):
        return ..., "its annotations"
    if hint is None or hint is Any or isinstance(hint, typing.TypeVar):
        if name in ("axis", "dim"):
            return Axis(0), "its parameters' names"
        if ARRAYS.fullmatch(name):
            return ..., "its parameters' names"
    return None, ""


def _laid_out(target: Target) -> Target:
    """The first layout of the arrays of unknown shape on which the function can be called."""
    free = [i for i, given in enumerate(target.arguments) if given is ...]
    errors = []
    for layout in LAYOUTS if free else (lambda n: [],):
        arguments = list(target.arguments)
        for i, shape in zip(free, layout(len(free)), strict=True):
            arguments[i] = Argument(shape)
        error = _refused(target.function, arguments)
        if error is None:
            source = target.source
            if free:
                shown = ", ".join(_shown(arguments[i].shape) for i in free)
                source += f", and shapes by trial: {shown}"
            return target._replace(arguments=arguments, source=source)
        errors.append(error)
    why = (
        f"it cannot be called with arrays of any shapes that were tried ({errors[0]}): give --shape"
    )
    return target._replace(arguments=(), why_not=why)


def _shown(shape: tuple[Any, ...]) -> str:
    parts = ["..." if part is ... else str(part) for part in shape]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _refused(function: Any, arguments: list[Any]) -> str | None:
    """Why a function cannot be called with such arguments; None if it can."""

    def trial(drawn: tuple[Any, ...]) -> None:
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
        with warnings.catch_warnings(action="ignore"):  # they come again when it is checked
            settings(hypothesis.given(calls(arguments, min_side=1))(trial))()
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        return f"{type(error).__name__}: {first_line(error)[:120]}"
    return None
