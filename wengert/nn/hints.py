"""Errors of networks that say what to write instead; imported where one is raised."""

import warnings
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, Final

#: Functions whose module has another name.
_CLASSES: Final = {"expit": "Sigmoid", "log_expit": "LogSigmoid"}


def no_module(given: Any, holder: str) -> TypeError:
    """Return the error for what is no module, with what to write instead."""
    text = f"{holder} holds modules, and "
    kind = type(given).__name__
    if isinstance(given, list | tuple):
        instead = f"give the modules one by one, {holder}(*modules)"
        return TypeError(f"{text}{kind} is not a Module subclass: {instead}")
    if not callable(given) or not hasattr(given, "__name__"):
        return TypeError(f"{text}{kind} is not a Module subclass")
    name = given.__name__
    if isinstance(given, type):
        return TypeError(f"{text}{name} is a class: write nn.{name}(), which makes a module of it")
    nn = import_module("wengert.nn")
    plain = name.replace("_", "")
    found = _CLASSES.get(name) or next((one for one in nn.__all__ if one.lower() == plain), None)
    instead = (
        f"write nn.{found}()"
        if found and isinstance(getattr(nn, found), type)
        else "call it in the forward of a subclass of nn.Module"
    )
    return TypeError(f"{text}{name} is a {kind} ({kind} is not a Module subclass): {instead}")


def no_state(given: Any) -> TypeError:
    """Return the error for what is no state_dict."""
    kind = type(given).__name__
    instead = ""
    if isinstance(given, str) or hasattr(given, "__fspath__"):
        instead = "; nn.load(path) reads one from a file"
    elif hasattr(given, "state_dict"):
        instead = "; pass its state_dict()"
    return TypeError(f"state_dict should be a mapping of names to Tensors, not {kind}{instead}")


def state_error(holder: Any, path: str, module: Any, names: Iterable[str]) -> TypeError:
    """Return the error for a module with ways of its own to a state, which are not called."""
    where = f" at {path!r}" if path else ""
    return TypeError(
        f"the {type(module).__name__}{where} defines {', '.join(names)}, which the state of "
        f"{type(holder).__name__} does not call, so that a part of it would be lost; keep arrays "
        "in buffers (register_buffer), and save what is no array by a name of its own "
        "(wg.save(path, model=model, more=...))"
    )


def no_parameters(function: str, given: Any) -> TypeError:
    """Return the error for what is no iterable of Tensors."""
    kind = type(given).__name__
    if hasattr(given, "parameters"):
        return TypeError(
            f"{function} takes the parameters of a module, and was given the module itself; pass "
            f"the {kind}'s parameters()"
        )
    called = ": call it, as in module.parameters()" if callable(given) else ""
    return TypeError(f"{function} takes an iterable of Tensors, and was given a {kind}{called}")


def renaming_hint(missing: Iterable[str], unexpected: Iterable[str]) -> str:
    """Return how to change names that differ in one prefix; otherwise how to load the others."""
    wanted, given = sorted(missing), sorted(map(str, unexpected))
    if not wanted or not given:
        return "Pass strict=False to load what there is and leave the rest."
    for more, less, change in (
        (given, wanted, "{{name.removeprefix({!r}): x for name, x in state_dict.items()}}"),
        (wanted, given, "{{{!r} + name: x for name, x in state_dict.items()}}"),
    ):
        prefix = more[0].removesuffix(less[0])
        if prefix != more[0] and more == [prefix + name for name in less]:
            return f"The names differ in {prefix!r} alone: load {change.format(prefix)}."
    return "Pass strict=False to load what there is and leave the rest."


def warn_of_held(module: Any, name: str, value: Any) -> None:
    """Warn of a list or dict of modules or parameters, which are not among a module's own."""
    parameter = import_module("wengert.nn.parameter").Parameter
    base = import_module("wengert.nn.module").Module
    own = {id(x) for listed in (module.modules(), module.parameters()) for x in listed}
    kind, items = type(value).__name__, value.values() if isinstance(value, Mapping) else value
    for what, cls in (("Module", base), ("Parameter", parameter)):
        if any(isinstance(x, cls) and id(x) not in own for x in items):
            named = isinstance(value, Mapping) and what == "Module"
            holder = "nn.ModuleDict" if named else f"nn.{what}List"
            warnings.warn(
                f"{type(module).__name__}.{name} is a {kind} of {what}s, which are not among the "
                f"module's parameters: no optimiser trains them, and state_dict and to leave them "
                f"out; write {holder}(...)",
                UserWarning,
                stacklevel=3,
            )
