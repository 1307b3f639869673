"""Compares each call of an array library's own functions with NumPy's."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import wraps
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from wengert.backends import EXTENSIONS, Backend, dtype_of, get_backend, namespaces
from wengert.tape.primitive import PRIMITIVES

#: Functions with uninitialised results.
UNSET = ("empty", "empty_like")
#: Functions that draw random numbers, besides those of `random`.
DRAWING = ("F.dropout", "F.dropout2d")
#: Functions with complex results by the standard; NumPy's are real if possible.
COMPLEX = ("linalg.eig", "linalg.eigvals")
#: Functions with results unique up to a sign or phase, whose magnitudes are compared.
UP_TO_PHASE = ("linalg.eig", "linalg.eigh", "linalg.qr", "linalg.svd")


class Fault(NamedTuple):
    """A call of a library's function that differs from NumPy's.

    Attributes
    ----------
    call, why : str
        The arguments in short, and what is wrong.
    """

    call: str
    why: str


class Comparisons:
    """A context in which each call of a library's functions is compared with NumPy's.

    Parameters
    ----------
    backend : Backend
        The backend whose library it is.
    seconds : float
        The time for the comparisons of each function. A lazy library recomputes a result's whole
        graph for each of them.

    Attributes
    ----------
    faults : dict
        The first wrong call of each function, by name.
    unfinished : set of str
        The functions whose time was spent before all their calls were compared.
    """

    def __init__(self, backend: Backend, seconds: float = 60.0) -> None:
        self.backend, self.seconds = backend, seconds
        self.faults: dict[str, Fault] = {}
        self.unfinished: set[str] = set()
        self._spent: defaultdict[str, float] = defaultdict(float)
        self._inside = False
        self._numpy = get_backend("numpy")

    def __enter__(self) -> "Comparisons":
        backend, public = self.backend, type(self.backend).public

        def comparing(module: Any) -> dict[str, Any]:
            extension = next((e for e in EXTENSIONS if module is getattr(backend.xp, e, None)), "")
            prefix = extension and f"{extension}."
            return {
                name: self._watch(prefix + name, found)
                if callable(found) and not isinstance(found, type)
                else found
                for name, found in public(backend, module).items()
            }

        backend.public = comparing  # type: ignore[method-assign]
        # The watched functions are the library's own to compiled functions, too.
        backend.packages = (*backend.packages, __name__)
        self._renew(backend.namespace)
        return self

    def __exit__(self, *error: Any) -> None:
        del self.backend.public, self.backend.packages
        self._renew(self.backend.namespace)

    def _renew(self, before: Any) -> None:
        """Rebuild the backend's namespace, and drop the primitives' cached kernels."""
        del self.backend.namespace
        for kind in [kind for kind, known in namespaces.items() if known is before]:
            namespaces[kind] = self.backend.namespace
            for primitive in PRIMITIVES.values():
                primitive.kernels.pop(kind, None)

    def _watch(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        reference: Any = self._numpy.xp
        for part in name.split("."):
            reference = getattr(reference, part, None)
        if not callable(reference) or name in UNSET:
            return function

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._inside or name in self.faults or name in self.unfinished:
                return function(*args, **kwargs)
            self._inside, start = True, perf_counter()
            try:
                before = self._on_host(args, kwargs)  # the call may change them
                found = function(*args, **kwargs)
            except Exception as error:
                self._note(name, args, kwargs, before, reference, error)
                raise
            else:
                self._note(name, args, kwargs, before, reference, found)
                return found
            finally:
                self._inside = False
                self._spent[name] += perf_counter() - start
                if self._spent[name] > self.seconds:
                    self.unfinished.add(name)

        return call

    def _on_host(self, args: Any, kwargs: dict[str, Any]) -> Any:
        """The arguments of a call as NumPy arrays; None if they can't be read."""
        named = {key: x for key, x in kwargs.items() if key not in ("device", "stream")}
        try:
            return self._on_numpy(args), self._on_numpy(named)
        except Exception:  # whatever a library raises
            return None

    def _note(
        self,
        name: str,
        args: Any,
        kwargs: dict[str, Any],
        before: Any,
        reference: Any,
        found: Any,
    ) -> None:
        if before is None:
            return
        positional, named = before
        try:
            with np.errstate(all="ignore"):
                expected = reference(*positional, **named)
            if name in COMPLEX:
                expected = _as_complex(expected)
        except Exception:  # NumPy refuses the call too, or there is no such call
            return
        if isinstance(found, Exception):
            why = describe(found)
        else:
            why = self._difference(found, expected, name in UP_TO_PHASE)
            if not _equal(self._on_host(args, kwargs), before):
                why = "it writes into its argument"
        if why:
            self.faults[name] = Fault(call_text(name, positional, named), why)

    def _on_numpy(self, value: Any) -> Any:
        """The same arguments with NumPy's arrays and dtypes."""
        if isinstance(value, dict):
            return {key: self._on_numpy(x) for key, x in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self._on_numpy(x) for x in value)
        if namespaces.get(type(value)) is self.backend.namespace:
            return np.array(self.backend.to_numpy(value), copy=True)
        try:
            return np.dtype(dtype_of(value).name)
        except (TypeError, ValueError):
            return value

    def _difference(self, found: Any, expected: Any, up_to_phase: bool) -> str:
        """How a result differs from NumPy's; "" where it does not."""
        if isinstance(expected, list | tuple):
            if len(found) != len(expected):
                return f"{len(found)} results instead of {len(expected)}"
            every = (
                self._difference(*pair, up_to_phase) for pair in zip(found, expected, strict=True)
            )
            return next(filter(None, every), "")
        if not isinstance(expected, np.ndarray | np.generic):
            return ""
        try:
            values = np.asarray(self.backend.to_numpy(self.backend.array(found)))
        except Exception as error:
            return f"its values can't be read ({type(error).__name__}: {error})"
        return difference(values, np.asarray(expected), up_to_phase)


def describe(error: BaseException) -> str:
    """An error in a line."""
    first = str(error).strip().splitlines()[:1]
    return ": ".join([type(error).__name__, *first])


def call_text(name: str, args: Iterable[Any], kwargs: dict[str, Any]) -> str:
    """A call in a line."""
    each = [*map(_argument_text, args), *(f"{k}={_argument_text(x)}" for k, x in kwargs.items())]
    return f"{name}({', '.join(each)})"


def difference(found: Any, expected: Any, up_to_phase: bool = False) -> str:
    """How an array differs from another in shape, dtype or values; "" where it does not.

    Numbers may differ by a part of themselves, and by the same part of 1.
    """
    if found.shape != expected.shape:
        return f"shape {found.shape} instead of {expected.shape}"
    if found.dtype.kind == expected.dtype.kind == "U":  # texts, of any length
        return "" if found == expected else f"{found} instead of {expected}"
    if found.dtype != expected.dtype:
        return f"{found.dtype} instead of {expected.dtype}"
    if expected.dtype.kind not in "fc":
        wrong = np.asarray(found != expected)
        return (
            f"{_first_elements(found[wrong])} instead of {_first_elements(expected[wrong])}"
            if wrong.any()
            else ""
        )
    if up_to_phase:
        found, expected = np.abs(found), np.abs(expected)
    tolerance = np.finfo(expected.dtype).eps ** 0.6
    wrong = ~np.isclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    if not wrong.any():
        return ""
    found, expected = found[wrong], expected[wrong]
    why = f"{_first_elements(found)} instead of {_first_elements(expected)}"
    with np.errstate(all="ignore"):
        away = np.max(np.abs(found - expected) / np.abs(expected), initial=0)
    return f"{why}, by a part of {away:.1g}" if away < 1e-3 else why


def _equal(given: Any, before: Any) -> bool:
    """Whether arguments are unchanged."""
    if isinstance(before, dict):
        return all(_equal(given[key], x) for key, x in before.items())
    if isinstance(before, list | tuple):
        return all(map(_equal, given, before))
    if not isinstance(before, np.ndarray):
        return True
    return bool(np.array_equal(given, before, equal_nan=before.dtype.kind in "fc"))


def _as_complex(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(map(_as_complex, result))
    return result + result.dtype.type(0) * 1j


def _first_elements(array: Any) -> str:
    """Some elements, to tell two arrays apart by."""
    flat = array.reshape(-1)
    shown = ", ".join(f"{x:.6g}" if array.dtype.kind in "fc" else str(x) for x in flat[:4])
    return f"[{shown}{', ...' if flat.size > 4 else ''}]"


def _argument_text(value: Any) -> str:
    """An argument in a line: an array by its dtype and shape."""
    if isinstance(value, list | tuple) and len(value) < 7:
        inside = ", ".join(map(_argument_text, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{dtype_of(value.dtype).name} {_shape_text(value.shape)}"
    text = repr(value)
    return text if len(text) < 40 else f"{text[:36]} ..."


def _shape_text(shape: Iterable[Any]) -> str:
    lengths = tuple(shape)
    return f"({', '.join(map(str, lengths))}{',' if len(lengths) == 1 else ''})"
