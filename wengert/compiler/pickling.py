"""How compiled functions are pickled: with the state that they lead to, or not at all.

A function's pickle is its name, under which another process finds its own model. A program that
trains that one, and leaves the model beside it in the pickle as it was, would be silently wrong.
"""

import pickle
import sys
from collections.abc import Iterable
from types import CodeType, FunctionType, ModuleType
from typing import Any

from wengert.compiler.owners import of_user
from wengert.compiler.walk import find_state, globals_of
from wengert.tape.leaving import frames

__all__ = ["by_name"]

#: Modules whose functions `cloudpickle` takes with the globals that they read.
_BY_VALUE = frozenset({"__main__", "__mp_main__"})


def by_name(compiled: Any, given: Any, name: str) -> bool:
    """Whether a compiled function is pickled as its public name, of the function ``given``.

    Raises `pickle.PicklingError` where state would stay behind.
    """
    home = str(getattr(given, "__module__", None))
    found: Any = sys.modules.get(home)
    for part in name.split("."):
        found = getattr(found, part, None)
    # Packages carry cloudpickle under names of their own.
    by_value = any("cloudpickle" in str(frame.f_globals.get("__name__")) for frame in frames())
    named = found is compiled or found is given
    owners = _owners(given)
    if named and isinstance(given, FunctionType):
        cells = [cell.cell_contents for cell in given.__closure__ or ()]
        if _leaves([given.__defaults__, given.__kwdefaults__, cells]):
            owners.add(home)
    stateful = bool(owners)
    if owners := owners - _BY_VALUE:
        raise pickle.PicklingError(
            f"{name} leads to state of the module {min(owners)}, of which the process that reads "
            "the pickle has its own. Give the model and the like as arguments, or compile in a "
            "function that is given them"
        )
    if isinstance(given, FunctionType) and not by_value and (stateful or not named):
        raise pickle.PicklingError(
            f"{name} can't be pickled by its name alone: cloudpickle, as joblib uses it, takes the "
            "function and its state. Or give what it needs as arguments to a function of a module"
        )
    return found is compiled and not (by_value and home in _BY_VALUE)


def _leaves(x: Any, names: Iterable[str] = ()) -> bool:
    """Whether an object leads to Tensors, arrays or numbers; from modules by some names."""
    state = find_state([x], (), set(names))  # type: ignore[arg-type]
    return bool(state.tensors or state.arrays or state.numbers)


def _owners(given: Any) -> set[str]:
    """The modules whose globals or classes hold Tensors, arrays or numbers that functions read."""
    owner = getattr(given, "__self__", given)
    owners = _classes(owner if isinstance(owner, type) else type(owner))
    for place, code in find_state(given, (), set(), exact=True).held:
        if not isinstance(code, CodeType):
            continue
        function: Any = place.holder
        imported = {key: sys.modules[key] for key in sys.modules.keys() & {*code.co_names}}
        names = globals_of(code) & function.__globals__.keys()
        for held in [*imported.values(), *(function.__globals__[key] for key in names)]:
            if isinstance(held, type):
                owners |= _classes(held)
            elif isinstance(held, ModuleType):
                if of_user(held.__name__) and _leaves(held, code.co_names):
                    owners.add(held.__name__)
            # The walk has followed functions.
            elif not isinstance(held, FunctionType) and _leaves(held, code.co_names):
                owners.add(function.__module__)
    return owners


def _classes(cls: type) -> set[str]:
    """The modules of a class and its bases whose attributes hold Tensors, arrays or numbers."""
    own = [each for each in cls.__mro__ if of_user(each.__module__)]
    return {
        each.__module__
        for each in own
        if _leaves([x for x in vars(each).values() if not hasattr(x, "__get__")])
    }
