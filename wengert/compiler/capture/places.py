"""What a function computes with beside its arguments: found by walking through what it can reach.

A function reaches its closure, the globals that it names, its defaults and its ``self``, and from
there modules, optimisers, containers and other objects. Tensors, the raw arrays and counters that
optimisers keep, and their hyper-parameters are state: a program gets them as inputs and gives them
back changed. Other numbers and strings decide what the program is, and are compared in each call.
"""

import dis
import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from wengert.compiler.capture.live import LiveNumber
from wengert.nn.module import Module
from wengert.optim.optimizer import Optimizer
from wengert.tape.tensor import Tensor

__all__ = ["OF_OPTIMIZER", "PROGRAMS", "Missing", "Place", "State", "TensorAt", "find_state"]

#: What decides a program, and is compared by value.
PLAIN = (bool, int, float, complex, str, bytes, type(None))
#: What may differ from call to call where an optimiser has it.
NUMBERS = (int, float, LiveNumber)
#: Ends the names of containers to which an optimiser may add.
OF_OPTIMIZER = " in an optimizer's state"
#: The attribute in which an object has its compiled methods, which is no state.
PROGRAMS = "_wengert_programs"
#: Containers with more elements are data.
LARGEST = 4096
#: How far other objects are followed.
DEEPEST = 8
#: Packages whose objects hold no Tensors of ours.
_FOREIGN = frozenset(sys.stdlib_module_names) | {
    *("array_api_compat", "array_api_strict", "cupy", "dask", "hypothesis", "jax", "jaxlib"),
    *("matplotlib", "numpy", "pandas", "pytest", "scipy", "sklearn", "torch", "tqdm"),
}


class Place(NamedTuple):
    """Where something is: an item of a dict or list, or what a closure's cell holds."""

    owner: Any
    key: Any
    name: str

    def get(self) -> Any:
        """What is there; `Missing` where nothing is."""
        if type(self.owner) is CellType:
            try:
                return self.owner.cell_contents
            except ValueError:
                return Missing
        try:
            return self.owner[self.key]
        except (KeyError, IndexError):
            return Missing

    def set(self, value: Any) -> None:
        """Put something else there."""
        if type(self.owner) is CellType:
            self.owner.cell_contents = value
        else:
            self.owner[self.key] = value


class Missing:
    """Stands for what is not there."""


class TensorAt(NamedTuple):
    """A Tensor, how a reader would call it, and where it is; None if nothing can be put there."""

    tensor: Tensor
    name: str
    place: Place | None


class State:
    """What a function can reach.

    Attributes
    ----------
    tensors : list of TensorAt
        Each Tensor once.
    arrays : list of Place
        Raw arrays that optimisers keep.
    numbers : list of Place
        Hyper-parameters and counters of optimisers: they may differ from call to call.
    shares : list of int
        For each of the numbers the first that has to be the same: an optimiser's counters.
    statics : list of (Place, value)
        Plain values outside modules, which are compared in each call.
    settings : list of (str, value)
        Plain values of modules, such as ``training``. They only change through
        `Module.__setattr__`, which counts changes.
    links : list of (Place, object)
        How the state was reached: that the same objects are there is checked in each call.
    lengths : list of (container, int, str)
        Of lists and dicts that were walked through, with their names.
    objects : list
        Every mutable object that was reached: what a run can change.
    """

    def __init__(self) -> None:
        self.tensors: list[TensorAt] = []
        self.arrays: list[Place] = []
        self.numbers: list[Place] = []
        self.shares: list[int] = []
        self.statics: list[tuple[Place, Any]] = []
        self.settings: list[tuple[str, Any]] = []
        self.links: list[tuple[Place, Any]] = []
        self.lengths: list[tuple[Any, int, str]] = []
        self._seen: dict[int, Any] = {}
        self._names: dict[int, str] = {}
        self._optimizers: list[tuple[Optimizer, str]] = []
        self._counted = 0

    @property
    def objects(self) -> list[Any]:
        return list(self._seen.values())

    def structure(self) -> tuple[Any, ...]:
        """What has to be the same for one program: where there is what, without values."""
        return (
            tuple([at.name for at in self.tensors]),
            tuple([(place.key, place.name) for place in self.arrays]),
            tuple([(place.name, type(place.get())) for place in self.numbers]),
            tuple(self.shares),
            tuple([(place.name, type(value), value) for place, value in self.statics]),
            tuple([(name, type(value), value) for name, value in self.settings]),
        )

    # -- the walk ------------------------------------------------------------------------------

    def visit_function(self, function: Any, name: str, depth: int = 0) -> None:
        """Visit what a callable reaches."""
        if isinstance(function, functools.partial):
            self.visit_function(function.func, name, depth)
            self._items(function.args, name, depth)
            self._items(function.keywords, name, depth)
            return
        if isinstance(function, MethodType):
            self.visit(function.__self__, "self", None, depth)
            function = function.__func__
        if not isinstance(function, FunctionType):
            self.visit(function, name, None, depth)
            return
        if id(function) in self._seen:
            return
        self._seen[id(function)] = function
        code = function.__code__
        for free, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            place = Place(cell, None, free)
            held = place.get()
            if held is not Missing:
                self._at(place, held, free, depth)
        own = str(function.__module__).partition(".")[0] == "wengert"  # whose globals are no state
        for used in () if own else _names(code):
            if used in function.__globals__:
                place = Place(function.__globals__, used, used)
                self._at(place, function.__globals__[used], used, depth)
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            if not isinstance(default, PLAIN):
                self.visit(default, "default", None, depth)

    def visit(self, x: Any, name: str, place: Place | None, depth: int) -> None:
        """Visit an object."""
        if depth > DEEPEST or isinstance(x, ModuleType | type):
            return
        if isinstance(x, Tensor):
            if id(x) not in self._seen:
                self._seen[id(x)] = x
                self._names[id(x)] = name
                self.tensors.append(TensorAt(x, name, place))
            return
        if isinstance(x, FunctionType | MethodType | functools.partial):
            if not _foreign(x):
                self.visit_function(x, name, depth + 1)
            return
        if id(x) in self._seen:
            return
        if isinstance(x, list | tuple | dict):
            if len(x) <= LARGEST:
                self._seen[id(x)] = x
                self._items(x, name, depth)
            return
        if isinstance(x, Optimizer):
            self._seen[id(x)] = x
            self._optimizers.append((x, name))
            self._counted += 1
            return
        held = getattr(x, "__dict__", None)
        if held is None or (_foreign(type(x)) and not isinstance(x, Module)):
            function = getattr(x, "__wrapped__", None)
            if function is not None:
                self.visit_function(function, name, depth + 1)
            return
        self._seen[id(x)] = x
        if isinstance(x, Module):
            self._module(x, held, name, depth)
            return
        for key, value in list(held.items()):
            if key == PROGRAMS:
                continue
            self._at(Place(held, key, f"{name}.{key}"), value, f"{name}.{key}", depth)

    def _module(self, module: Module, held: dict[str, Any], name: str, depth: int) -> None:
        self._counted += 1
        self.settings.append((f"{name}.training", module.training))
        for key, value in list(held.items()):
            if key == PROGRAMS:
                continue
            if isinstance(value, PLAIN):
                if key != "training":
                    self.settings.append((f"{name}.{key}", value))
            else:
                self.visit(value, f"{name}.{key}", Place(held, key, f"{name}.{key}"), depth)

    def _at(self, place: Place, x: Any, name: str, depth: int) -> None:
        """Visit what is at a place that is checked in each call, if it leads to state."""
        if isinstance(x, PLAIN):
            self.statics.append((place, x))
            return
        before = self._size()
        link, at = len(self.links), len(self.statics)
        self.links.append((place, x))
        self.visit(x, name, place, depth + 1)
        if self._size() == before and not isinstance(x, Tensor | Module | Optimizer):
            del self.links[link:]
            if not isinstance(x, FunctionType | MethodType):
                del self.statics[at:]

    def _items(self, x: Any, name: str, depth: int) -> None:
        if not isinstance(x, tuple):
            self.lengths.append((x, len(x), name))
        pairs = x.items() if isinstance(x, dict) else enumerate(x)
        for key, value in list(pairs):
            if not isinstance(value, PLAIN):
                called = f"{name}[{key!r}]"
                if isinstance(x, tuple):
                    self.visit(value, called, None, depth + 1)
                else:
                    self._at(Place(x, key, called), value, called, depth)

    def _size(self) -> int:
        return len(self.tensors) + self._counted

    def finish(self) -> None:
        """Visit optimisers last: their parameters have better names elsewhere."""
        for optimizer, name in self._optimizers:
            held = vars(optimizer)
            for key in ("param_groups", "state"):
                self.links.append((Place(held, key, f"{name}.{key}"), held[key]))
            self.lengths.append((optimizer.param_groups, len(optimizer.param_groups), name))
            kept = optimizer.state
            self.lengths.append((kept, len(kept), f"{name}.state{OF_OPTIMIZER}"))
            self._groups(optimizer, name)

    def _groups(self, optimizer: Optimizer, name: str) -> None:
        for number, group in enumerate(optimizer.param_groups):
            prefix = name if len(optimizer.param_groups) == 1 else f"{name}.{number}"
            params = group["params"]
            self.lengths.append((params, len(params), f"{prefix}.params"))
            for key, value in group.items():
                if key == "params":
                    continue
                place = Place(group, key, f"{prefix}.{key}")
                if type(value) in NUMBERS:
                    self._number(place)
                else:
                    self.statics.append((place, value))
            counters: dict[tuple[str, Any], int] = {}
            for at, param in enumerate(params):
                self.visit(param, f"{prefix}.params[{at}]", None, 0)
                kept = optimizer.state.get(param)
                if kept is not None:
                    called = self._names[id(param)]
                    self.links.append((Place(optimizer.state, param, called), kept))
                    self._kept(kept, called, counters)

    def _kept(self, kept: dict[str, Any], name: str, counters: dict[tuple[str, Any], int]) -> None:
        """What an optimiser keeps for one parameter."""
        self.lengths.append((kept, len(kept), f"{name}{OF_OPTIMIZER}"))
        for key, value in kept.items():
            place = Place(kept, key, f"{name}.{key}")
            if type(value) in NUMBERS:
                known = value.value if isinstance(value, LiveNumber) else value
                self._number(place, counters.setdefault((key, known), len(self.numbers)))
            elif hasattr(value, "dtype"):
                self.arrays.append(place)
            else:
                self.statics.append((place, value))

    def _number(self, place: Place, shared: int | None = None) -> None:
        self.shares.append(len(self.numbers) if shared is None else shared)
        self.numbers.append(place)


def find_state(function: Callable[..., Any], arguments: Iterable[tuple[str, Any]] = ()) -> State:
    """Walk through what a function can reach.

    Parameters
    ----------
    function : callable
        Whose code is looked through.
    arguments : iterable of (str, object)
        The leaves of a call's arguments with their names. Modules, optimisers and other objects
        among them lead on; Tensors, raw arrays and numbers are no state.

    Raises
    ------
    TraceError
        If the function reaches something that can't be compared from call to call.
    """
    state = State()
    for name, x in arguments:
        if not (isinstance(x, Tensor) or hasattr(x, "dtype")):
            state.visit(x, name, None, 0)
    state.visit_function(function, getattr(function, "__name__", "function"))
    state.finish()
    return state


@functools.cache
def _names(code: Any) -> tuple[str, ...]:
    """The names that a function's code asks globals for, inner functions included."""
    return tuple(dict.fromkeys(_each_name(code)))


def _each_name(code: Any) -> Iterator[str]:
    # Names of attributes are among `co_names`, too.
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield step.argval
    for constant in code.co_consts:
        if hasattr(constant, "co_names"):
            yield from _each_name(constant)


def _foreign(x: Any) -> bool:
    """Whether a function or class is of a package that holds no state of ours."""
    package = str(getattr(x, "__module__", "")).partition(".")[0]
    if package == "wengert":
        # Modules, losses and transforms of functions lead on; the engine does not.
        return not str(x.__module__).startswith(("wengert.nn", "wengert.func"))
    return package in _FOREIGN
