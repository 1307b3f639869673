"""Which code is the user's, and facts about objects and functions of other packages.

The walk does not look through code of the standard library, of array libraries and of Wengert's
engine, which is assumed constant. All other code is the user's.
"""

import builtins
import functools
import importlib
import operator
import os
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

from wengert.backends.registry import is_library
from wengert.compiler.capture.errors import TraceError

__all__ = [
    "PURE",
    "is_engine_class",
    "is_immutable",
    "is_module_level",
    "is_open",
    "of_user",
    "package_of",
    "reads_by_name",
    "refuse",
]

#: Packages whose functions are pure, but for those that `wengert.compiler.capture.watch` names.
PURE = frozenset(
    {
        *("array_api_compat", "array_api_strict", "cloudpickle", "cupy", "cytoolz", "dask"),
        *("distributed", "fsspec", "jax", "jaxlib", "ml_dtypes", "mpmath", "numpy", "opt_einsum"),
        *("partd", "scipy", "sympy", "tlz", "toolz", "torch"),
    }
)
#: Packages whose code is not looked through.
_FOREIGN = PURE | {
    *("cupyx", "hypothesis", "matplotlib", "numba", "pandas", "pytest", "sklearn", "tqdm"),
    *("triton", "_pytest"),
}
#: The directory of the standard library.
_LIBRARY = str(Path(os.__file__).parent)
#: Modules of Wengert's engine whose objects never change, note what a recording does, as an export
#: notes lengths, or do nothing in a program: those of all others are looked through.
_ENGINE = (
    "wengert.backends.backend",
    "wengert.backends.dtypes",
    "wengert.distributed.averaging",
    "wengert.export.lengths",
    "wengert.tape.primitive",
    "wengert.tape.record",
)
#: Classes, or packages of classes, of objects that never change.
_IMMUTABLE = frozenset(
    {
        *("builtins.range", "builtins.builtin_function_or_method", "builtins.method_descriptor"),
        *("builtins.wrapper_descriptor", "builtins.classmethod_descriptor", "builtins.object"),
        *("builtins.method-wrapper", "builtins.getset_descriptor", "builtins.member_descriptor"),
        *("_collections._tuplegetter", "collections._tuplegetter"),
        *("builtins.NotImplementedType", "builtins.property"),
        *("builtins.code", "types.GenericAlias", "types.UnionType"),
        *("datetime", "decimal.Decimal", "fractions.Fraction", "ipaddress", "pathlib", "re"),
        *("typing", "uuid", "zoneinfo", "operator", "string.Formatter", "inspect", "__future__"),
        *("dataclasses._FIELD_BASE", "dataclasses._MISSING_TYPE", "dataclasses._KW_ONLY_TYPE"),
        "dataclasses._HAS_DEFAULT_FACTORY_CLASS",
        *("numpy.ufunc", "numpy._ArrayFunctionDispatcher", "numpy.dtypes", "numpy.dtype"),
        *("numpy._globals", "torch.dtype", "torch.device", "torch.Size", "torch.layout"),
        *("torch.memory_format", "torch.Generator.device", "jax._src.numpy.scalar_types"),
        *("jaxlib.xla_extension.Device", "jaxlib._jax.Device", "cupy._core._kernel.ufunc"),
        *("array_api_strict._dtypes", "array_api_strict._array_object.Device", "abc"),
        *("jax._src.custom_derivatives", "jaxlib.xla_extension.PjitFunction", "ml_dtypes"),
        *("jaxlib._jax.PjitFunction", "array_api_strict._devices"),
    }
)
#: Classes of the standard library whose objects hold attributes alone, which code may set.
_OPEN = frozenset(
    {
        *("types.SimpleNamespace", "argparse.Namespace", "collections.UserDict"),
        *("collections.UserList", "collections.UserString", "collections.ChainMap"),
        *("functools.partialmethod", "string.Template"),
        *("dataclasses.Field", "dataclasses.InitVar", "dataclasses._DataclassParams"),
    }
)
#: Functions that read names that the walk can't foresee.
_REFUSED = {
    id(x): x.__name__
    for x in (builtins.eval, builtins.exec, builtins.globals, __import__, importlib.import_module)
} | {id(sys._getframe): "sys._getframe"}
#: Modules whose functions do so.
_REFUSED_MODULES = frozenset({"ctypes", "gc", "importlib", "inspect"})
#: Functions, and classes of functions, that take the name of an attribute.
_READING = (
    *(getattr, hasattr, vars, dir, object.__getattribute__, type.__getattribute__),
    *(operator.attrgetter, operator.methodcaller),
)


@functools.cache
def package_of(module: Any) -> str:
    """The package of a module's name."""
    package = str(module or "").partition(".")[0]
    if package.startswith("namedtuple_") and package not in sys.modules:
        return "collections"  # the globals of a constructor that `collections.namedtuple` makes
    return package


def of_user(module: str | None) -> bool:
    """Whether code of a module, by its name, is the user's."""
    return _unknown(module) and not is_library(str(module or ""))


@functools.cache
def _unknown(module: str | None) -> bool:
    """Whether a module is no part of Wengert, of the standard library, or of those named above."""
    package = package_of(module)
    if package == "wengert":
        return False
    if package in sys.stdlib_module_names:  # or a user's file of this name
        file = getattr(sys.modules.get(package), "__file__", None)
        return package == "__main__" or (file is not None and not file.startswith(_LIBRARY))
    return package not in _FOREIGN


def is_engine_class(kind: type) -> bool:
    """Whether a class is of Wengert's engine, which replays need not look at."""
    return kind.__module__ in _ENGINE


def is_immutable(kind: type) -> bool:
    """Whether objects of a class never change."""
    ours = package_of(kind.__module__) == "wengert"  # `typing.Generic` may be a base
    if ours or of_user(kind.__module__) or issubclass(kind, BaseException):
        return False
    for base in kind.__mro__[:-1] or (kind,):
        module = str(base.__module__)
        package = package_of(module)
        if {package, module, f"{module}.{base.__qualname__}"} & _IMMUTABLE:
            return True
    return False


def is_open(kind: type) -> bool:
    """Whether what objects of a class of the standard library hold are attributes."""
    return any(f"{base.__module__}.{base.__qualname__}" in _OPEN for base in kind.__mro__)


def is_module_level(function: FunctionType) -> bool:
    """Whether a function is not defined within another function."""
    return "<locals>" not in function.__code__.co_qualname


def reads_by_name(x: Any) -> bool:
    """Whether a function takes the name of an attribute."""
    return any(x is known for known in _READING)


def refuse(x: Any) -> None:
    """Raise for a function or module that reads names that can't be foreseen."""
    name = _REFUSED.get(id(x), "")
    if not name and x in map(sys.modules.get, _REFUSED_MODULES):
        name = str(x.__name__)
    if name:
        raise TraceError(f"the code looks names up by {name}, so they are not known before it runs")
