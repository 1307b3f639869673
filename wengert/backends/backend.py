"""What Wengert knows about one array library: a record, and the namespace made from it."""

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property, partial
from types import ModuleType
from typing import Any

import numpy as np

from wengert.backends.dtypes import DTYPES, DType, dtype_of, learn_dtype

Kernel = Callable[..., Any]

#: What of the extension fft the primitives call; its other functions are compositions.
TRANSFORMS = ("fftn", "ifftn", "rfftn", "irfftn")


@contextmanager
def importing(needs: str, kind: type[Exception] = ImportError, end: Any = str) -> Iterator[None]:
    """Say what is needed, why it is not there, and ``end()``, whatever an import here raises.

    A library raises an OSError where a shared library of its own is missing, and some exit.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        known = isinstance(error, ImportError)
        reason = str(error) if known else f"{type(error).__name__}: {error}"
        cause = None if isinstance(error, ModuleNotFoundError) else error  # the reason says it
        raise kind(needs.replace("{}", reason) + end()) from cause


class BackendError(RuntimeError):
    """A backend is unknown, not installed or lacks a function, or arrays of two were mixed.

    Examples
    --------
    >>> wg.set_backend("no_such_library")
    Traceback (most recent call last):
        ...
    BackendError: set_backend('no_such_library'): there is no backend ...
    """


class MissingFunctionError(BackendError, AttributeError):
    """An array library has no function that an operation or its derivative needs."""


class Backend:
    """One array library: its types, its namespace, its devices, and the kernels it adds.

    A backend is a subclass that states what differs from the standard, and nothing else.

    Attributes
    ----------
    name : str
        The name that ``WENGERT_BACKEND`` selects it by.
    module : str
        The import path of its Array API namespace.
    kernels : Mapping[str, Callable]
        Functions that replace the namespace's own or stand where the standard is silent.
    immutable : bool
        Whether its arrays cannot be written in place, so that sharing memory is never seen.
    exchanging : bool
        Whether its functions exchange data with other processes, so that none may run once more
        in one of them, as when a compiled function is checked.
    packages : tuple of str
        Python packages and modules that are the library's own, with all that is below them.
        Compiled functions look at no code there: what it reads must not change between calls.
    elsewhere : Callable or None
        The device of a call's operands if results would be on another; None if operands decide.

    Examples
    --------
    >>> backend = wg.get_backend("numpy")
    >>> backend.to_numpy(wg.ones(2).array)
    array([1., 1.], dtype=float32)
    """

    name: str
    module: str
    kernels: Mapping[str, Kernel] = {}
    immutable: bool = False
    exchanging: bool = False
    packages: tuple[str, ...] = ()

    @cached_property
    def xp(self) -> Any:
        """The library's Array API namespace, imported when it is first needed."""
        return importlib.import_module(self.module)

    def public(self, module: Any) -> dict[str, Any]:
        """What a namespace of the library has, by name."""
        return {name: getattr(module, name) for name in dir(module) if name[0] != "_"}

    @cached_property
    def namespace(self) -> ModuleType:
        """The namespace in which rules compute on this library's raw arrays."""
        return make_namespace(self)

    def array_types(self) -> tuple[type, ...]:
        """The types of the library's arrays; arrays of their subclasses are the library's, too."""
        return (type(self.from_numpy(np.zeros(()))),)

    def require_device(self) -> None:
        """Raise RuntimeError if there is nothing to compute on, as without a GPU."""

    def raw_dtype(self, dtype: DType) -> Any:
        """The library's own dtype for Wengert's."""
        try:
            return getattr(self.xp, dtype.name)
        except AttributeError:
            remedy = "" if dtype.host == dtype.name else "; float32 holds its numbers exactly"
            raise TypeError(f"{self.name} has no data type {dtype.name}{remedy}") from None

    def device(self, array: Any) -> Any:
        """The device that holds ``array``, as the library names it."""
        return array.device

    def beside(self, array: Any, *, alike: bool = False) -> Any:
        """The device on which arrays are made that are used with ``array``; None for any.

        ``alike`` says that they have its shape, and so may be spread over several devices as it is.
        """
        return self.device(array)

    def parse_device(self, device: Any) -> Any:
        """The library's device for what a user wrote, as ``"cuda:0"``; ValueError without one."""
        for known in self.devices():
            if device == known or device == self.device_name(known):
                return known
        if not isinstance(device, str | int):  # an object of the library's, which judges it
            return device
        raise no_such_device(self, device)

    def device_name(self, device: Any) -> str:
        """The string that names a device, as `parse_device` takes it."""
        return str(device)

    def is_ready(self, array: Any) -> bool:
        """Whether the values of ``array`` can be read without computing them, as for printing."""
        return True

    def to_pickle(self, array: Any) -> tuple[Any, str | None]:
        """What a pickle has of ``array``: what `from_numpy` takes, and the name of the device.

        Without a name the array is made where new arrays are.
        """
        return self.to_numpy(array), None

    def devices(self) -> list[Any]:
        """The devices that can be used now."""
        info = getattr(self.xp, "__array_namespace_info__", None)
        if info is None:
            raise BackendError(
                f"the devices of {self.name} are unknown: {self.module} has no "
                "__array_namespace_info__. Write the method devices() of its record, as "
                "python -m backend_check --write does in a clone of Wengert's repository"
            )
        return list(info().devices())

    def to_device(self, array: Any, device: Any) -> Any:
        """Copy ``array`` to ``device``, or return it if it is there."""
        return array if device == self.device(array) else array.to_device(device)

    def to_numpy(self, array: Any) -> np.ndarray[Any, Any]:
        """The values of ``array`` as a NumPy array, which may share memory with it.

        Values of a dtype that NumPy lacks are in float32. Raises `BackendError` if the library
        exports the array neither by ``__array__`` nor by DLPack.
        """
        refusals = []
        exports: list[Kernel] = [np.asarray] if hasattr(array, "__array__") else []
        exports += [np.from_dlpack, partial(np.from_dlpack, device="cpu")]
        for export in exports:
            try:
                found: np.ndarray[Any, Any] = export(array)
            except Exception as error:  # each library refuses in its own way
                refusals.append(error)
            else:
                if found.dtype != object:  # one array as an element of another
                    return found
        kind = type(array)
        raise BackendError(
            f"{self.name} can't convert a {kind.__module__}.{kind.__qualname__} to NumPy "
            f"({refusals[0]}); a wengert.backends.Backend of your own can, by its to_numpy"
        )

    def from_numpy(self, array: np.ndarray[Any, Any], device: Any = None) -> Any:
        """Make an array of this library from a NumPy array, on ``device``."""
        return self.xp.asarray(array, device=device)

    def to_dlpack(self, array: Any, **asked: Any) -> Any:
        """The capsule by which another library takes the memory of ``array``."""
        return array.__dlpack__(**asked)

    def from_dlpack(self, x: Any, device: Any = None, copy: bool | None = None) -> Any:
        """Make an array of this library from one of any library, through DLPack."""
        return self.xp.from_dlpack(x, device=device, copy=copy)

    def draw(self, function: Kernel, arguments: tuple[Any, ...], device: Any = None) -> Any:
        """What ``function(*arguments)`` draws in host memory, as an array on ``device``."""
        return self.from_numpy(function(*arguments), device)

    def adopt(self, array: Any) -> Any:
        """A user's array as operations take it: off the library's own tape, in native byte order.

        Raises ValueError if its shape is not known.
        """
        return array

    def array(self, value: Any) -> Any:
        """``value`` as an array, where an operation may have answered with a scalar."""
        return value

    def alongside(self, other: "Backend") -> "Backend":
        """Another backend, to be used as this one is: where this one is traced, so is that."""
        return other

    def is_view(self, array: Any) -> bool:
        """Whether ``array`` may share its memory with another array that a user can see."""
        return not self.immutable

    def on(self, device: Any) -> AbstractContextManager[Any]:
        """A context in which results are on ``device``, where operands do not decide that."""
        return nullcontext()

    elsewhere: Callable[[tuple[Any, ...], dict[str, Any]], Any] | None = None

    def recomputing(self) -> AbstractContextManager[Kernel]:
        """A context in which values are computed again; of each array it says what to keep.

        Where arrays are graphs, equal ones are computed once, and held from the first use to the
        last: there it gives others that are not equal.
        """
        return nullcontext(_same)

    def synchronize(self) -> None:
        """Wait until the work handed to the device is done."""

    def __repr__(self) -> str:
        return f"<backend {self.name}>"


def _same(array: Any) -> Any:
    return array


def no_such_device(backend: Backend, device: Any) -> ValueError:
    """The error for a device that is not there."""
    there = ", ".join(backend.device_name(known) for known in backend.devices())
    return ValueError(f"{backend.name} has no device {device!r}; it has: {there}")


class OnDevice:
    """A function with results on its operands' device; ``apart`` is called if these are several."""

    __slots__ = ("_apart", "_backend", "_elsewhere", "function")

    def __init__(self, backend: Backend, function: Kernel, apart: Kernel | None = None) -> None:
        self.function, self._apart = function, apart
        self._backend, self._elsewhere = backend, backend.elsewhere

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            device = self._elsewhere(args, kwargs)  # type: ignore[misc]
        except ValueError:
            if self._apart is None:
                raise
            return self._apart(*args, **kwargs)
        if device is None:
            return self.function(*args, **kwargs)
        with self._backend.on(device):
            return self.function(*args, **kwargs)


def on_device(backend: Backend | None, function: Any, apart: Kernel | None = None) -> Any:
    """A function with results on its operands' device: `OnDevice` if there is a current one."""
    if backend is None or backend.elsewhere is None:
        return function
    is_function = callable(function) and not isinstance(function, type)
    return OnDevice(backend, function, apart) if is_function else function


def rule_on_device(xp: Any, rule: Kernel) -> Kernel:
    """A rule or composite that runs on its operands' device, where operators would not."""
    return OnDevice(xp.backend, rule, rule) if xp.elsewhere else rule


def function_of(function: Any) -> Any:
    """The function inside a result of `on_device`."""
    return function.function if type(function) is OnDevice else function


#: The standard's extensions, each a namespace in the namespace.
EXTENSIONS = ("linalg", "fft")


def make_namespace(backend: Backend) -> ModuleType:
    """Return the functions of one backend on its raw arrays: the plain interpreter's ``xp``.

    Of two functions of one name, the backend's own kernel comes before Wengert's composite, and
    that before the library's. The namespace is a plain module with every name in place, because
    Python finds attributes in nothing else as fast.

    Beside functions it has ``backend``; ``library``, the library's own namespace; ``device``, which
    tells where arrays are made beside one; ``records``, whether what rules compute is recorded, so
    that saved arrays are Tensors to them; and ``elsewhere``, whether results are on a current
    device instead of their operands'.
    """
    if backend.name in _added:
        dict.update(backend.kernels, _added[backend.name])
    xp = ModuleType(f"wengert.backends.{backend.name}.namespace")
    names = vars(xp)
    names["__getattr__"] = partial(_missing, backend, "")
    own: dict[str, Kernel] = {
        **{name: partial(composite, xp) for name, composite in composites.items()},
        **backend.kernels,
    }
    names.update(_functions(backend, backend.xp))
    for extension in EXTENSIONS:
        module = names[extension] = ModuleType(f"{xp.__name__}.{extension}")
        vars(module).update(_functions(backend, getattr(backend.xp, extension, None)))
        vars(module)["__getattr__"] = partial(_missing, backend, f"{extension}.")
    _fill(xp, backend, own)
    names.update(
        backend=backend,
        library=backend.xp,
        device=backend.beside,
        records=False,
        elsewhere=backend.elsewhere is not None,
        is_view=backend.is_view,
    )
    for name, dtype in DTYPES.items():
        if name in names:
            learn_dtype(names[name], dtype)
    _made.append(xp)
    return xp


def _fill(xp: ModuleType, backend: Backend, functions: Mapping[str, Kernel]) -> None:
    for name, function in functions.items():
        extension, _, short = name.rpartition(".")
        setattr(getattr(xp, extension) if extension else xp, short, on_device(backend, function))


def _functions(backend: Backend, module: Any) -> dict[str, Any]:
    return {name: on_device(backend, x) for name, x in backend.public(module).items()}


def _missing(backend: Backend, prefix: str, name: str) -> Any:
    """Raise the error for a missing function."""
    raise MissingFunctionError(
        f"{backend.name} has no {prefix}{name} in the version installed; to_backend('numpy') moves "
        "the arrays to where it is"
    )


def _conj(xp: Any, x: Any) -> Any:
    """Complex conjugate; a real array is returned as it is, and Python numbers are welcome."""
    if isinstance(x, complex | float | int) or not hasattr(x, "dtype"):
        return x.conjugate()
    return xp.library.conj(x) if dtype_of(x.dtype).complex else x


def _real(xp: Any, x: Any) -> Any:
    """Real part; a real array is returned as it is, where the standard leaves that open."""
    return xp.library.real(x) if dtype_of(x.dtype).complex else x


def _imag(xp: Any, x: Any) -> Any:
    """Imaginary part; that of a real array is zero, where the standard leaves that open."""
    return xp.library.imag(x) if dtype_of(x.dtype).complex else xp.zeros_like(x)


def composite_of(function: Any) -> Kernel | None:
    """The composite of a namespace's function, ``composite(xp, ...)``; None for a kernel."""
    function = function_of(function)
    if isinstance(function, partial) and function.func in composites.values():
        return function.func
    return None


#: Kernels that `add_kernels` was given, by backend.
_added: dict[str, Mapping[str, Kernel]] = {}
#: Composites by name, those too in whose place a backend has a kernel.
composites: dict[str, Kernel] = {"conj": _conj, "real": _real, "imag": _imag}
_made: list[ModuleType] = []


def add_composite(name: str, composite: Kernel) -> None:
    """Give every backend's namespace a function ``composite(xp, *arrays, **parameters)``.

    A backend's kernel of the name stands.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.backends import add_composite, namespaces
    >>> add_composite("soft_abs", lambda xp, x: xp.sqrt(xp.add(xp.square(x), 1)))
    >>> namespaces[np.ndarray].soft_abs(np.zeros(2))
    array([1., 1.])
    """
    if isinstance(composite, partial):  # as the namespace's own are
        raise TypeError(f"{name}: a composite is a function, not a partial one")
    composites[name] = composite
    for xp in _made:
        if name not in xp.backend.kernels:
            _fill(xp, xp.backend, {name: partial(composite, xp)})


def add_kernels(backend: str, kernels: Mapping[str, Kernel]) -> None:
    """Give one backend's namespace kernels of rows that stand in a room above."""
    _added[backend] = {**_added.get(backend, {}), **kernels}
    for xp in _made:
        if xp.backend.name == backend:
            xp.backend.kernels.update(kernels)
            _fill(xp, xp.backend, kernels)
