"""Which backends there are, which arrays belong to which, and which one is selected."""

import importlib
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from wengert.backends.backend import Backend, BackendError, importing, on_device

ENVIRONMENT_VARIABLE = "WENGERT_BACKEND"

#: The libraries that Wengert has a record of, and what to install for each.
KNOWN = {
    "numpy": "numpy",
    "cupy": "wengert[cupy-cuda12x] or wengert[cupy-cuda13x]",
    "torch": "wengert[torch]",
    "jax": "wengert[jax]",
    "dask": "wengert[dask]",
    "array_api_strict": "wengert[strict]",
    "ndonnx": "wengert[onnx]",
}
#: Those of them on which not all works, as ``python -m backend_check`` reports.
PARTIAL = frozenset({"ndonnx"})

#: The package that an array's type says it comes from, where that is not the backend's name.
_PACKAGES = {"jaxlib": "jax"}
#: Arrays of another kind in a library that has some, and the backend that has to be installed.
_OTHERS = {"torch.distributed.tensor.DTensor": "dtensor"}

_loaded: dict[str, Backend] = {}


def builtin_backends() -> dict[str, bool]:
    """The built-in backends by name, and whether the library of each is installed.

    No library is imported.

    Examples
    --------
    >>> from wengert.backends import builtin_backends
    >>> builtin_backends()["numpy"]  # whether it is installed
    True
    """
    from importlib.util import find_spec  # as for entry points, below

    return {name: find_spec(name) is not None for name in KNOWN if name not in PARTIAL}


def plugin_backends() -> dict[str, Any]:
    """Entry points of the group ``wengert.backends``, by name.

    Examples
    --------
    >>> from wengert.backends import plugin_backends
    >>> "numpy" in plugin_backends()  # built in
    False
    """
    from importlib.metadata import entry_points  # costs milliseconds, and most never need it

    return {point.name: point for point in entry_points(group="wengert.backends")}


def is_backend(name: str) -> bool:
    """Whether a backend of this name is built in, loaded, or an entry point."""
    return name in KNOWN or name in _loaded or name in plugin_backends()


def get_backend(name: str | None = None) -> Backend:
    """Return a backend by its name; without one, the backend that is selected now.

    The name may be the module of a library's Array API namespace. Raises `BackendError` for a name
    that no backend has, and if the library is not installed.

    Examples
    --------
    >>> wg.get_backend().name
    'numpy'
    >>> wg.get_backend("array_api_strict").name
    'array_api_strict'
    """
    if name is None:
        return selection().backend
    if name not in _loaded:
        _loaded[name] = _load(name)
    return _loaded[name]


def _load(name: str) -> Backend:
    if name in KNOWN:
        needs = f"the backend {name!r} needs a library that cannot be imported ({{}}); install "
        with importing(f"{needs}{KNOWN[name]}", BackendError, _installation):
            backend: Backend = importlib.import_module(f"wengert.backends.{name}").BACKEND
            backend.namespace  # noqa: B018 -- a missing library shows here, not at the first use
        return backend
    plugins = plugin_backends()
    if name not in plugins:
        return _conforming(name)
    needs = f"the backend {name!r} of an entry point cannot be imported ({{}})"
    with importing(needs, BackendError, _installation):
        made = plugins[name].load()
        backend = made() if isinstance(made, type) else made
    if not isinstance(backend, Backend):
        raise BackendError(
            f"the entry point {name!r} of 'wengert.backends' gave {made!r}; it should give a "
            "wengert.backends.Backend"
        )
    with importing(needs, BackendError, _installation):
        return register(backend)


def _conforming(name: str) -> Backend:
    """The backend of a library that is named by its namespace's module."""
    with importing(
        f"there is no backend {name!r}. Built in: {', '.join(builtin_backends())}. A library can "
        "be named by the module of its Array API namespace ({}), or registers in the entry-point "
        "group 'wengert.backends'",
        BackendError,
        _installation,
    ):
        xp = importlib.import_module(name)
        if not hasattr(xp, "__array_namespace_info__"):
            raise ImportError(f"{name} is no namespace of the Array API standard")
    return register(_Conforming(xp))


def register(backend: Backend) -> Backend:
    """Let a backend have its library's arrays, and be selected by its name."""
    namespaces.update(dict.fromkeys(backend.array_types(), backend.namespace))
    return _loaded.setdefault(backend.name, backend)


def is_library(module: str) -> bool:
    """Whether a module, by its name, is below one of the ``packages`` of a loaded backend."""
    return any(
        f"{module}.".startswith(f"{package}.")
        for backend in _loaded.values()
        for package in backend.packages
    )


def _installation() -> str:
    names = [name for name, found in builtin_backends().items() if found] + list(plugin_backends())
    return f". Installed: {', '.join(names)}"


def has_own_arithmetic(kind: type) -> bool:
    """Whether arrays of a subclass of NumPy's mean more than their elements."""
    if kind is np.ndarray or not issubclass(kind, np.ndarray):
        return False
    priority = getattr(kind, "__array_priority__", 0.0)  # of a class without one a descriptor
    of_its_own = kind.__array_ufunc__ is not np.ndarray.__array_ufunc__
    return of_its_own or (isinstance(priority, int | float) and priority > 0)


def lost_with(kind: type) -> str:
    """How to take the numbers out of what has a unit or a mask beside them; "" for others."""
    if issubclass(kind, np.ndarray) and hasattr(kind, "filled"):
        return "its mask would be lost: say what stands there instead, as by x.filled(0.0)"
    if hasattr(kind, "magnitude") and hasattr(kind, "units"):
        return "its unit would be lost: take the numbers with q.magnitude, or call NumPy's function"
    if issubclass(kind, np.ndarray) and (hasattr(kind, "unit") or hasattr(kind, "units")):
        return "its unit would be lost: take the numbers with q.value"
    return ""


class _Namespaces(dict[type, Any]):
    """Array type to namespace: resolved once for each type, and a plain lookup from then on."""

    def __missing__(self, kind: type) -> Any:
        if has_own_arithmetic(kind):
            raise TypeError(
                f"{kind.__module__}.{kind.__qualname__} has an arithmetic of its own, which would "
                f"be lost here: {lost_with(kind) or 'convert it first, as by np.asarray(x)'}"
            )
        if (other := _OTHERS.get(f"{kind.__module__}.{kind.__qualname__}")) is not None:
            return self.setdefault(kind, get_backend(other).namespace)
        for base in kind.__mro__[1:]:
            if base in self:
                return self.setdefault(kind, self[base])
        package = kind.__module__.partition(".")[0]
        name = _PACKAGES.get(package, package)
        if name not in KNOWN:
            of_more = lost_with(kind)
            raise TypeError(
                f"{kind.__module__}.{kind.__qualname__} is no array type that is known"
                f"{of_more and '; '}{of_more}"
            )
        return self.setdefault(kind, get_backend(name).namespace)


#: The namespace in which rules run on values of a type. Raw arrays have their backend's; the
#: differentiable interpreter adds Tensor's own.
namespaces: dict[type, Any] = _Namespaces()


class _Conforming(Backend):
    """A library that nobody told Wengert about, but whose arrays name their namespace."""

    def __init__(self, xp: Any) -> None:
        self.name = self.module = xp.__name__
        self.xp = xp  # which need not be a module


def placed_by(operands: Iterable[Any], function: Any) -> Any:
    """A function with its results on its operands' device: `on_device`, of their backend."""
    for x in operands:
        if isinstance(x, list | tuple):
            found = placed_by(x, function)
            if found is not function:
                return found
        elif (xp := namespaces.get(type(x))) is not None and not xp.records:
            return on_device(xp.backend, function)
    return function


def backend_of(array: Any) -> Backend:
    """Return the backend of a raw array.

    Raises TypeError for what is no array of a known library and does not name its namespace.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.backends import backend_of
    >>> backend_of(np.ones(2)).name
    'numpy'
    """
    kind = type(array)
    try:
        namespace = namespaces[kind]
    except TypeError:
        if not hasattr(array, "__array_namespace__") or has_own_arithmetic(kind):
            raise
        for name in plugin_backends():
            with suppress(BackendError):  # another array's plugin may be broken
                get_backend(name)
        if kind not in namespaces:
            xp = array.__array_namespace__()
            namespaces[kind] = _loaded.setdefault(xp.__name__, _Conforming(xp)).namespace
        namespace = namespaces[kind]
    if namespace.records:
        raise TypeError(f"{kind.__qualname__} is not a raw array")
    backend: Backend | None = namespace.backend
    # An array with another inside (wengert.interpreters.lifted) is the backend's of the one inside.
    return backend_of(array.bottom) if backend is None else backend


class Selection(NamedTuple):
    """Where new arrays are made.

    Examples
    --------
    >>> from wengert.backends import selection
    >>> selection().backend.name, selection().device
    ('numpy', None)
    """

    backend: Backend
    device: Any
    reason: str


def target_device(array: Any, device: Any) -> Any:
    """The device, as the library has it, for one that a user or a rule names for a raw array.

    A `Selection` names the device beside another array. An array that is there already stays as it
    is, however it is spread over several devices.

    Examples
    --------
    >>> from wengert.backends import target_device
    >>> target_device(wg.ones(2).array, "cpu")
    'cpu'
    """
    backend = backend_of(array)
    if not isinstance(device, Selection):
        return backend.parse_device(device)
    there = device.device in (None, backend.beside(array))
    return backend.device(array) if there else device.device


#: What `set_backend` has chosen, for all threads; None until it is first asked for.
default: Selection | None = None
local_selection: ContextVar[Selection | None] = ContextVar("wengert_backend", default=None)


def selection() -> Selection:
    """Return the backend and device on which new arrays are made, and why.

    The device is None where the library decides.

    Examples
    --------
    >>> from wengert.backends import selection
    >>> with wg.use_backend("array_api_strict"):
    ...     selection().backend.name
    'array_api_strict'
    """
    global default
    chosen = local_selection.get() or default
    if chosen is None:
        wanted = os.environ.get(ENVIRONMENT_VARIABLE, "")
        if wanted:
            chosen = _parse(wanted, f"{ENVIRONMENT_VARIABLE}={wanted}")
            _enter(chosen)
        else:
            chosen = _parse("numpy", f"the default; {ENVIRONMENT_VARIABLE} is not set")
        default = chosen
    return chosen


def _parse(spec: str, reason: str) -> Selection:
    if not isinstance(spec, str):
        raise TypeError(f"{reason}: a backend is a name, such as 'numpy' or 'torch:cuda:0'")
    name, _, device = spec.partition(":")
    try:
        backend = get_backend(name.strip())
        backend.require_device()
        return Selection(backend, backend.parse_device(device) if device else None, reason)
    except (RuntimeError, ValueError) as error:
        raise BackendError(f"{reason}: {error}") from error.__cause__


#: The contexts of devices that were selected, which nothing leaves.
_devices = ExitStack()


def _enter(chosen: Selection) -> None:
    """Let results be on the selected device from now on."""
    if chosen.device is not None:
        _devices.enter_context(chosen.backend.on(chosen.device))


def set_backend(spec: str) -> None:
    """Make new arrays on another backend from now on, in every thread.

    Parameters
    ----------
    spec : str
        ``"name"`` or ``"name:device"``, such as ``"torch"``, ``"cupy:1"``, ``"torch:cuda:0"``. If
        it can't be used, `BackendError` is raised, and the selection stays.

    Examples
    --------
    >>> wg.set_backend("numpy")
    >>> wg.zeros(2).backend.name
    'numpy'
    """
    global default
    default = _parse(spec, f"set_backend({spec!r})")
    _enter(default)


@contextmanager
def use_backend(spec: str) -> Iterator[None]:
    """Make new arrays on another backend inside a ``with`` block, in this thread or task.

    ``spec`` is that of `set_backend`.

    Examples
    --------
    >>> with wg.use_backend("array_api_strict"):
    ...     x = wg.zeros(2)
    >>> x.backend.name
    'array_api_strict'
    """
    chosen = _parse(spec, f"use_backend({spec!r})")
    token = local_selection.set(chosen)
    try:
        if chosen.device is None:
            yield
        else:
            with chosen.backend.on(chosen.device):
                yield
    finally:
        local_selection.reset(token)
