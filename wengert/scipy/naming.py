"""How SciPy's functions become this room's: by tables, and by what their arguments hold.

A call with a Tensor among its arguments is answered by the room's function, or refused where a
derivative would be lost. Any other call is SciPy's own.
"""

import inspect
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial, wraps
from importlib import abc, import_module, machinery, util
from types import ModuleType
from typing import Any

import numpy as np

from wengert.backends.backend import importing
from wengert.func import tree_map
from wengert.interpreters.duals import Dual
from wengert.ops.conversion import asarray, beside
from wengert.ops.data_type import astype
from wengert.ops.operands import operands
from wengert.protocols import call_counterpart
from wengert.tape.callbacks import call_back
from wengert.tape.node import is_lifted
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor, differentiates

ROOM = __name__.rpartition(".")[0]


def scipy_module(name: str) -> Any:
    """One of SciPy's modules; an error names the extra that brings SciPy."""
    with importing(f"{ROOM} needs SciPy 1.16 or later ({{}}); install wengert[scipy]"):
        return import_module(f"scipy.{name}" if name else "scipy")


# -- arguments -------------------------------------------------------------------------------------


def tensors_in(*values: Any) -> list[Tensor]:
    """The Tensors among values, and in lists, tuples and dicts of these."""
    found: list[Tensor] = []
    for x in values:
        if isinstance(x, Tensor):
            found.append(x)
        elif isinstance(x, list | tuple | dict):
            found += tensors_in(*(x.values() if isinstance(x, dict) else x))
    return found


def tracked(*values: Any) -> bool:
    """Whether a derivative by a Tensor among values may be asked for."""
    return any(
        is_lifted(x._array) or (differentiates(x) and x.dtype.inexact) for x in tensors_in(*values)
    )


def values_of(x: Any, label: str) -> Any:
    """NumPy's array of a Tensor's values, without its derivatives, or of anything else."""
    if isinstance(x, list | tuple) and tensors_in(x):
        (x,) = operands(x)
    if not isinstance(x, Tensor):
        return x
    array = x._array
    while isinstance(array, Dual):
        array = array.inner
    if is_lifted(array) or isinstance(array, Tensor):
        raise TypeError(
            f"{label} computes by SciPy, which takes values, and there are none within a "
            f"{type(array).__name__}: call it once for each member of a batch, outside compile"
        )
    return Tensor(array).numpy()


def like_first(given: Iterable[Any], array: Any) -> Tensor:
    """An array as a Tensor, where the first Tensor given is, or on the selected backend."""
    found = tensors_in(*given)
    return beside(found[0], np.asarray(array)) if found else asarray(np.asarray(array))


def inexact(*values: Any) -> tuple[Tensor, ...]:
    """Operands in floating dtypes: integers as float64."""
    return tuple([x if x.dtype.inexact else astype(x, "float64") for x in operands(*values)])


def _is_users(x: Any) -> bool:
    """Whether a function, a method or a callable object is the program's, and not SciPy's."""
    if not callable(x) or isinstance(x, type | np.ufunc | Guarded):
        return False
    homes = [getattr(x, "__module__", None), *(one.__module__ for one in type(x).__mro__)]
    return not any(str(home).startswith("scipy.") for home in homes)


def plain(x: Any, label: str, name: str) -> Any:
    """An argument as SciPy takes it; `TypeError` where a derivative would be lost."""
    if isinstance(x, Tensor):
        if tracked(x):
            raise TypeError(
                f"{label} is SciPy's own, and would lose the derivative of a Tensor ({name}): "
                "write it with functions that have one, or as a wengert.autograd.Function; where "
                "no derivative is needed, pass x.detach()"
            )
        return values_of(x, label)
    parts = x.values() if isinstance(x, dict) else x if isinstance(x, list | tuple) else ()
    if tensors_in(*parts) or any(map(callable, parts)):
        return tree_map(lambda part: plain(part, label, name), x)
    if not _is_users(x):
        if isinstance(x, Guarded):  # as interpolants of Tensors
            plain(vars(x).get("_tensors", []), label, name)
        return x

    @wraps(x)
    def call(*args: Any, **keywords: Any) -> Any:
        return plain(call_back(x, *args, **keywords), label, f"a result of {name}")

    return call


# -- functions -------------------------------------------------------------------------------------


def host(name: str, inputs: str, theirs: Any, rules: dict[str, Any], **facts: Any) -> Any:
    """A primitive that SciPy computes from NumPy's arrays, and that rules differentiate."""

    def composite(xp: Any, *arrays: Any, **parameters: Any) -> Any:
        last = arrays[-1]
        found = theirs(*[xp.backend.to_numpy(x) for x in arrays], **parameters)
        if isinstance(last, np.ndarray | np.generic):
            return found
        return xp.backend.from_numpy(np.asarray(found), xp.device(last))

    # Compiled programs call it whole, as what moves arrays to the host.
    facts |= {"composite": composite, "effect": "moves"}
    return Primitive(name, inputs.split(), rules, **facts).bind


def _as_tensors(result: Any, given: Iterable[Any]) -> Any:
    """Tensors for the arrays of numbers that SciPy has made."""
    if isinstance(result, tuple | list):
        return tree_map(lambda part: _as_tensors(part, given), result)
    if type(result) is np.ndarray and result.dtype.char in "?bhilqBHILQfdFD":
        return like_first(given, result)
    return result


def run(label: str, theirs: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """SciPy's own result, of arguments whose derivatives are not lost."""
    numbers = [plain(x, label, f"argument {i}") for i, x in enumerate(args, 1)]
    result = theirs(*numbers, **{key: plain(x, label, key) for key, x in keywords.items()})
    return _as_tensors(result, [args, keywords]) if tensors_in(args, keywords) else result


def door(label: str, theirs: Any, ours: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """SciPy's function, or the room's: of Tensors, and of functions that may use some."""

    @wraps(theirs)
    def call(*args: Any, **keywords: Any) -> Any:
        if ours is None:
            return run(label, theirs, args, keywords)
        given = (*args, *keywords.values())
        if tensors_in(given) or any(_is_users(x) or isinstance(x, Guarded) for x in given):
            code = getattr(ours, "__code__", None)
            most = (
                code.co_argcount if code and not code.co_flags & inspect.CO_VARARGS else len(args)
            )
            if len(args) > most:  # the others are by keyword alone
                bound = [*inspect.signature(theirs).bind(*args, **keywords).arguments.items()]
                args, keywords = tuple([x for _, x in bound[:most]]), dict(bound[most:])
            return call_counterpart(label, ours, args, keywords, None)
        return theirs(*args, **keywords)

    call.__module__ = ROOM if ours is None else ours.__module__
    return call


class Guarded:
    """An object or class of SciPy's, that refuses tracked Tensors; ``ours`` takes calls."""

    def __init__(self, theirs: Any, label: str, ours: Any = None) -> None:
        self._theirs, self._label, self._ours = theirs, label, ours
        self.__doc__, self.__name__ = theirs.__doc__, label.rpartition(".")[2]
        self.__module__ = getattr(ours or theirs, "__module__", ROOM)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if self._ours is not None:
            return self._ours(*args, **keywords)
        return run(self._label, self._theirs, args, keywords)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._theirs, name)
        return door(f"{self._label}.{name}", found) if inspect.isroutine(found) else found

    def __dir__(self) -> list[str]:
        return dir(self._theirs)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, self._theirs) or type(value) is self._ours

    def __mro_entries__(self, bases: Any) -> tuple[Any, ...]:
        return (self._theirs,)


def publish(module: dict[str, Any], more: dict[str, Any]) -> None:
    """Give one of the room's modules SciPy's names: its own functions of these, and ``more``."""
    home = module["__name__"]
    name = home.removeprefix(f"{ROOM}.")
    own = {key: x for key, x in module.items() if getattr(x, "__module__", None) == home} | more
    found: dict[str, Any] = {}
    for key, one in inspect.getmembers(scipy_module(name)):
        ours, label = own.get(key), f"scipy.{name}.{key}"
        if key[0] == "_" or isinstance(one, ModuleType):
            continue
        found[key] = one
        if isinstance(ours, Guarded):
            found[key] = ours
        elif isinstance(one, np.ufunc) or inspect.isroutine(one):
            found[key] = door(label, one, ours)
        elif callable(one) and not (isinstance(one, type) and issubclass(one, BaseException)):
            found[key] = Guarded(one, label, ours)
    module.update(found, __path__=module.get("__path__", []), __getattr__=partial(submodule, home))
    module["__all__"] = [*found]


def submodule(home: str, name: str) -> Any:
    """A module of one of the room's, as its attribute."""
    try:
        return import_module(f"{home}.{name}")
    except ModuleNotFoundError as error:
        raise AttributeError(f"module {home!r} has no attribute {name!r}") from error


class _Modules(abc.MetaPathFinder, abc.Loader):
    """Finds SciPy's modules that have no file here: all of these is SciPy's own."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        with suppress(ModuleNotFoundError):  # as of what is no package in SciPy
            if fullname.startswith(f"{ROOM}.") and util.find_spec(fullname.partition(".")[2]):
                return machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def exec_module(self, module: ModuleType) -> None:
        publish(vars(module), {})


sys.meta_path.append(_Modules())
