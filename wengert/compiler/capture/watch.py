"""Watches the user's code for impure calls, which a replay would not make.

A profile hook sees each call before it is made. It checks calls made by the user's functions
against a list of pure functions, which depend on their arguments and change nothing else. A hook
halves Python's speed or worse. So a recording is watched only if the code names something that is
not known to be pure, and not while an operation is recorded.
"""

import builtins
import gc
import signal
import sys
from _thread import get_ident
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import takewhile
from types import (
    BuiltinFunctionType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any

from wengert.backends.registry import is_library
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.foreign import PURE, of_user, package_of
from wengert.compiler.capture.lines import callers, described
from wengert.compiler.capture.named import known
from wengert.compiler.capture.reads import codes, reads
from wengert.compiler.program import Line
from wengert.nn.module import Module
from wengert.optim.optimizer import Optimizer
from wengert.tape.tensor import Tensor

__all__ = ["Stopped", "Watch", "check_names", "functions_of", "needed", "unwatched"]


class Stopped(BaseException):
    """Ends a recording before a call is made; the user's ``except Exception`` does not catch it."""


#: Builtin functions that are impure.
_OPEN = {"breakpoint", "eval", "exec", "globals", "id", "input", "locals", "open", "print"}
_OPEN |= {"__import__", "compile", "help", "exit", "quit"}
_BUILTINS = frozenset(vars(builtins)) - _OPEN | {"__build_class__"}
#: Modules, with their submodules, whose functions are pure.
_PURE = PURE | {
    *("_abc", "_ast", "_bisect", "_codecs", "_collections", "_collections_abc", "_contextvars"),
    *("_decimal", "_functools", "_heapq", "_json", "_operator", "_pydecimal", "_sre"),
    *("_statistics", "_string", "_struct", "_weakref", "_weakrefset", "abc", "array", "ast"),
    *("bisect", "binascii", "cmath", "collections", "contextlib", "contextvars", "copy"),
    *("copyreg", "dataclasses", "decimal", "enum", "fractions", "functools", "heapq"),
    *("importlib", "_frozen_importlib", "_frozen_importlib_external", "itertools", "json"),
    *("keyword", "math", "numbers", "operator", "re", "reprlib", "statistics", "string"),
    *("struct", "textwrap", "types", "typing", "typing_extensions", "weakref", "wengert"),
}
#: Functions of other modules that read guarded objects.
_GUARDED = frozenset({"os.getenv", "os._Environ.__getitem__", "os._Environ.__iter__"})
#: Impure parts of these modules.
_IMPURE = (
    "_pytest",
    "numpy.lib.npyio",
    "numpy.lib._npyio_impl",
    "scipy.io",
    "torch.serialization",
)
#: Parts of names that tell of random draws, files or settings.
_TELLTALE = (
    *("getcontext", "localcontext", "geterr", "printoptions", "getbufsize", "get_default"),
    *("rand", "normal_", "uniform_", "bernoulli", "multinomial", "seed", "tofile", "save"),
    *("load", "fromfile", "memmap", "dump"),
)
#: Builtin classes whose methods change at most their own object.
_CLASSES: tuple[type, ...] = (
    *(bool, bytearray, bytes, complex, dict, float, frozenset, int, list, memoryview, object),
    *(range, set, slice, str, tuple, type, property, Exception, GeneratorType),
    *(type({}.keys()), type({}.values()), type({}.items())),
)


class Watch:
    """A watch on the calls of the user's functions.

    Parameters
    ----------
    functions : iterable of function
        The user's functions that the walk has reached. Other code of the user's, which only foreign
        code names (``close`` in `contextlib.closing`), may read what is not guarded.
    stop : bool
        Whether an impure call raises `Stopped` before it is made.

    Attributes
    ----------
    met : str
        The first impure call with its line; "" if there was none.
    """

    def __init__(self, functions: Iterable[Any], *, stop: bool) -> None:
        self.met = ""
        self._stop = stop
        self._reached = {code for f in functions for code in codes(f.__code__)}
        # The globals of code that is the user's, and of other code.
        self._users, self._others = set[int](), set[int]()
        self._collecting = self._watching = False

    @contextmanager
    def on(self) -> Iterator[None]:
        """Watch this thread in the ``with`` block; a hook that was set before is restored."""
        before, thread = (sys.getprofile(), sys.gettrace()), get_ident()
        self._watching = True

        def collects(phase: str, info: dict[str, int]) -> None:
            if get_ident() == thread:
                self._collecting = phase == "start"

        gc.callbacks.insert(0, collects)
        sys.setprofile(self._hook)
        try:
            yield
        finally:
            self._watching = False
            if before[0] is None or callable(before[0]):
                sys.setprofile(before[0])
            else:
                before[0].enable()  # a profiler of `cProfile`, before Python 3.12
            sys.settrace(before[1])
            gc.callbacks.remove(collects)

    def _hook(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "c_call":
            caller = frame
        elif event == "call" and frame.f_back is not None:
            caller = frame.f_back
        else:
            return
        # A fast exit for the engine's calls, nearly all.
        if id(frame.f_globals) in self._others and id(caller.f_globals) in self._others:
            return
        if self._collecting:  # finalisers of any objects may run
            return
        if event == "call" and self._of_user(frame):
            name = frame.f_code.co_qualname
            if frame.f_code not in self._reached and not any(map(_interrupting, callers(frame))):
                self._meet(caller, f"{name}, to which no name in the code leads,")
        elif not self._of_user(caller):
            return
        elif event == "c_call":
            if not _harmless(arg):
                self._meet(frame, _title(arg))
        else:
            module, name = str(frame.f_globals.get("__name__")), frame.f_code.co_qualname
            if not _pure(module, name) and not _of_collector(frame):
                self._meet(caller, f"{module}.{name}")

    def _of_user(self, frame: FrameType) -> bool:
        scope = frame.f_globals
        if id(scope) in self._users:
            return True
        if id(scope) not in self._others:
            (self._users if of_user(scope.get("__name__")) else self._others).add(id(scope))
        return id(scope) in self._users

    def _meet(self, frame: FrameType, what: str) -> None:
        if (self.met and not self._stop) or any(map(_importing, callers(frame))):
            return
        if any(map(_of_collector, callers(frame))):
            return
        if not self.met:
            line = described(Line(frame.f_code.co_filename, frame.f_lineno))
            self.met = f"{line}: {what} is called, which a replay would not call again"
        if self._stop:
            TraceError(self.met)  # `trace_errors` has it even if the function catches `Stopped`
            if not any(map(_finalising, callers(frame))):  # there Python ignores what is raised
                self._go_on(frame)
                raise Stopped(self.met)

    def _go_on(self, frame: FrameType) -> None:
        """Go on watching while the stack unwinds: Python removes a profile hook that raises."""
        for each in takewhile(lambda x: x.f_code.co_name != "_traced", callers(frame)):
            each.f_trace = self._leaving
        sys.settrace(self._leaving)

    def _leaving(self, frame: FrameType, event: str, arg: Any) -> Any:
        # Before `finally`, `except` and `__exit__` run; not once the watch has ended, where another
        # trace function, as of `coverage`, goes on in the frames that this one was given.
        if event == "exception" and self._watching:
            sys.setprofile(self._hook)
        return self._leaving


@contextmanager
def unwatched() -> Iterator[None]:
    """Let code run in a ``with`` block that no watch sees."""
    hook = sys.getprofile()
    watched = isinstance(getattr(hook, "__self__", None), Watch)
    if watched:
        sys.setprofile(None)
    try:
        yield
    finally:
        if watched:
            sys.setprofile(hook)


def _importing(frame: FrameType) -> bool:
    """Whether a frame imports a module, which must not be interrupted."""
    return frame.f_globals.get("__name__") == "importlib._bootstrap"


def _of_collector(frame: FrameType) -> bool:
    """Whether a frame is a callback of the garbage collector, where raising may be fatal."""
    return any(getattr(f, "__code__", None) is frame.f_code for f in gc.callbacks)


def _finalising(frame: FrameType) -> bool:
    """Whether a frame finalises an object."""
    return frame.f_code.co_name == "__del__"


def _interrupting(frame: FrameType) -> bool:
    """Whether a frame finalises an object or handles a signal, which may be at any time."""
    handlers = map(signal.getsignal, signal.valid_signals())
    codes = [getattr(handler, "__code__", None) for handler in handlers]
    return _finalising(frame) or frame.f_code in codes


def _title(function: Any) -> str:
    module = getattr(function, "__module__", None)
    held = getattr(function, "__self__", None)
    if not module and held is not None and not isinstance(held, ModuleType):
        cls = held if isinstance(held, type) else type(held)
        module = cls.__module__
    return f"{module}.{getattr(function, '__qualname__', function)}".removeprefix("builtins.")


def _harmless(function: Any) -> bool:
    """Whether a function written in C is pure, or changes its own object at most."""
    name, held = str(getattr(function, "__name__", "")), getattr(function, "__self__", None)
    if held is builtins:
        return name in _BUILTINS
    if held is None or isinstance(held, ModuleType):
        return _pure(str(getattr(function, "__module__", "") or ""), name)
    cls = held if isinstance(held, type) else type(held)
    for base in cls.__mro__:
        if name in vars(base):
            return base in _CLASSES or _pure(base.__module__, name)
    return _pure(cls.__module__, name)


def _pure(module: str, name: str) -> bool:
    """Whether a function of a module is pure."""
    package = package_of(module)
    if package == "wengert":
        return True  # its draws are recorded
    whole = f"{module}.{name}"
    if whole in _GUARDED:
        return True
    if not (package in _PURE or is_library(module)) or whole.startswith(_IMPURE):
        return False
    return not any(part in whole.lower() for part in _TELLTALE)


# -- checks before the function runs --------------------------------------------------------------


def check_names(functions: Iterable[Any]) -> None:
    """Raise if code names functions whose calls a profile hook does not see.

    These are NumPy's and CuPy's random functions, written in Cython, and impure functions that are
    passed to others, such as ``map``, which call them from C.
    """
    for function in functions:
        for number, chain, called in reads(function.__code__).loads:
            x, name = known(function, chain), (chain.name, *chain.path)[-1]
            line = Line(function.__code__.co_filename, number)
            if _draws(x):
                raise TraceError(
                    f"{described(line)}: {name} draws random numbers that a replay would not draw "
                    "anew; draw them by wg.random, or give them as an argument"
                )
            if not called and isinstance(x, BuiltinFunctionType) and not _harmless(x):
                raise TraceError(
                    f"{described(line)}: {name} is passed to a function that may call it, which a "
                    "replay would not; call it directly"
                )


def _draws(x: Any) -> bool:
    """Whether an object belongs to NumPy's or CuPy's random functions, and is no module."""
    if x is None or isinstance(x, ModuleType) or hasattr(type(x), "__getattr__"):
        return False  # such objects may have any attribute
    held = getattr(x, "__self__", None)
    cls = x if isinstance(x, type) else type(x)
    modules = [cls.__module__, getattr(x, "__module__", None), type(held).__module__]
    return any(str(module).startswith(("numpy.random", "cupy.random")) for module in modules)


def functions_of(objects: Iterable[Any], function: Callable[..., Any]) -> list[Any]:
    """The user's functions among reached objects."""
    found: dict[int, Any] = {}
    for x in (*objects, function):
        x = x.__func__ if isinstance(x, MethodType) else x  # others may fake it
        if isinstance(x, FunctionType) and of_user(x.__globals__.get("__name__")):
            found[id(x)] = x
    return list(found.values())


def needed(objects: Iterable[Any], functions: Iterable[Any]) -> bool:
    """Whether the code of functions names something that is not known to be pure."""
    asked: set[str] = set()
    for function in functions:
        names = _attributes(function)
        if names is None:
            return True
        asked |= names
    if not asked:
        return False
    found: set[str] = set()
    for x in objects:
        held = getattr(x, "__dict__", None)
        if held is not None and not isinstance(x, ModuleType | type):
            found.update(key for key, value in held.items() if _known(value))
        if isinstance(x, type) or of_user(type(x).__module__):
            for cls in (x if isinstance(x, type) else type(x)).__mro__:
                found.update(key for key, value in vars(cls).items() if _known(value))
    return not asked <= found


def _attributes(function: Any) -> set[str] | None:
    """Names that must be attributes of objects; None if a variable is not known to be pure."""
    scope, known = function.__globals__, _known_names()
    for cell in function.__closure__ or ():
        try:
            if not _known(cell.cell_contents):
                return None
        except ValueError:  # the cell is empty
            return None
    names = reads(function.__code__).every
    if not all(_known(scope[name]) for name in names if name in scope):
        return None
    return {name for name in names if name not in scope and name not in known}


def _known(x: Any) -> bool:
    """Whether an object calls nothing that has to be watched."""
    if isinstance(x, ModuleType):
        return package_of(x.__name__) in ("wengert", "math", "numpy", "torch", "jax")
    if isinstance(x, FunctionType | MethodType):
        return True  # the user's functions are checked one by one
    if isinstance(x, type):
        return (
            of_user(x.__module__) or x.__module__ == "builtins" or _pure(x.__module__, x.__name__)
        )
    if callable(x) and not isinstance(x, Module | Tensor):
        return of_user(type(x).__module__) or type(x).__module__.startswith(("wengert", "numpy"))
    return True


@cache
def _known_names() -> frozenset[str]:
    """Names of Wengert's functions and methods, and of pure builtin ones."""
    found: set[str] = set(_BUILTINS)
    for name, module in list(sys.modules.items()):
        if name.startswith(("wengert.ops", "wengert.nn", "wengert.func", "wengert.tape")):
            found.update(getattr(module, "__all__", ()))
    for cls in (Tensor, Module, Optimizer, *Module.__subclasses__(), list, dict, tuple, str, set):
        found.update(dir(cls))
    found |= {"nn", "optim", "func", "linalg", "special", "fft", "functional", "autograd"}
    return frozenset(found - {"load", "save"})  # impure in other libraries
