"""Compares calls where libraries disagree: edge values, data types and parameters."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import wengert as wg
from wengert.backends import as_dtype, get_backend, use_backend
from wengert.backends.backend import MissingFunctionError
from wengert.backends.registry import selection
from wengert.testing.calls import FUNCTIONS, placed
from wengert.testing.edge_calls import BEYOND, OPEN, STANDARD
from wengert.testing.libraries import chapter
from wengert.testing.library_calls import COMPLEX, UP_TO_PHASE, Fault, described, difference, shown
from wengert.testing.problem import on_backend
from wengert.testing.time_limit import NoAnswer, time_limit

Of = Callable[..., Any]
#: The standard's elementwise functions, compared without an absolute tolerance.
ELEMENTWISE = frozenset(name for name in FUNCTIONS if chapter(name) == "elementwise")


def _drawn(name: str, spaces: list[tuple[str, dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """The arguments of a function's calls, as `STANDARD` says."""
    for names, space in spaces:
        if name not in names.split():
            continue
        rest = {key: values for key, values in space.items() if key != next(iter(space))}
        first = {key: values[0] for key, values in rest.items()}
        for lead in next(iter(space.values())):
            start = _named(next(iter(space)), lead)
            seen = [first, *({**first, key: x} for key, xs in rest.items() for x in xs[1:])]
            last = {key: values[-1] for key, values in rest.items()}
            if len(rest) > 1:
                seen.append(last)
            for each in seen:
                given = {k: v for key, value in each.items() for k, v in _named(key, value).items()}
                if _fits({**start, **given}):
                    yield {**start, **{k: v for k, v in given.items() if v is not None}}


def _named(key: str, value: Any) -> dict[str, Any]:
    names = key.split(",")
    return dict(zip(names, value, strict=True)) if len(names) > 1 else {key: value}


def _fits(given: dict[str, Any]) -> bool:
    """Whether the array has the axes, and the dtype holds its numbers."""
    x, axis, dtype = given.get("x"), given.get("axis"), given.get("dtype")
    if isinstance(axis, tuple) and x is not None and max(axis) >= x.ndim:
        return False
    if axis is None and "include_initial" in given and x is not None and x.ndim != 1:
        return False
    truncated = x is not None and x.ndim == 1  # of astype
    return not (dtype and "int" in dtype and x is not None and x.dtype.kind in "fc") or truncated


def edges(name: str, spec: str, limit: float) -> list[Fault]:
    """Compare calls of a function at edges with NumPy's: Wengert's, and the library's own.

    Parameters
    ----------
    name : str
        A function by its name in `FUNCTIONS`.
    spec : str
        What selects the library.
    limit : float
        How many seconds they may take together.

    Returns
    -------
    list of Fault
        What differs, or fails and does not on NumPy, each with the first call that shows it. Calls
        of Wengert's begin with ``wg.``.
    """
    faults: dict[tuple[bool, str], list[str]] = {}
    try:
        with time_limit(limit), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for own, given, strict in _each_call(name):
                of = _own if own else _wengerts
                call, told = _compared(name, given, spec, of, strict)
                if own and not told and _has_views(spec):
                    call, told = _compared(name, given, spec, _own_strided, strict)
                if told:
                    faults.setdefault((own, told), []).append(call)
    except NoAnswer as error:
        faults[True, str(error)] = [name]
    return [
        Fault(f"{calls[0]} and {len(calls) - 1} more" if calls[1:] else calls[0], told)
        for (_, told), calls in faults.items()
    ]


def has_edges(name: str) -> bool:
    """Whether there are calls of a function at edges."""
    return any(name in names.split() for names, _ in (*STANDARD, *BEYOND))


def _each_call(name: str) -> Iterator[tuple[bool, dict[str, Any], bool]]:
    """Each call: whether of the library's own function, its arguments, whether it must succeed."""
    for given in _drawn(name, STANDARD):
        single = {key: _each(x, _single) for key, x in given.items()}
        if name not in OPEN:
            yield True, given, True
            yield True, single, True
        yield False, given, True
    for given in _drawn(name, BEYOND):
        yield False, given, False


def _compared(name: str, given: dict[str, Any], spec: str, of: Of, strict: bool) -> tuple[str, str]:
    """A call as text, and how its result differs from NumPy's."""
    args, kwargs = placed(name, given)
    call = f"{'wg.' if of is _wengerts else ''}{shown(name, args, kwargs)}"
    if of is _own_strided:
        call += " of every second element"
    try:
        with use_backend("numpy"), np.errstate(all="ignore"):
            expected = of(name, args, kwargs)
    except Exception:
        if of is _wengerts:
            raise
        return call, ""  # NumPy has no such function, or another one of that name
    if name in COMPLEX:
        expected = [x + 0j for x in expected]
    if not _has_types(spec, given):
        return call, ""  # the line of data types has it
    try:
        with use_backend(spec):
            found = of(name, args, kwargs)
    except (MissingFunctionError, AttributeError):
        return call, ""  # the table of functions has it
    except Exception as error:  # whatever a library raises
        return call, described(error) if strict else ""
    if len(found) != len(expected):
        return call, f"{len(found)} results instead of {len(expected)}"
    told = (
        difference(x, y, name in UP_TO_PHASE, near=_near(name, y))
        for x, y in zip(found, expected, strict=True)
    )
    return call, next(filter(None, told), "")


def _has_views(spec: str) -> bool:
    """Whether a library's arrays may lie in memory with other elements between theirs."""
    return not get_backend(spec.partition(":")[0]).immutable


def _has_types(spec: str, given: dict[str, Any]) -> bool:
    """Whether a library has the data types that a call names or is given."""
    backend = get_backend(spec.partition(":")[0])
    arrays = [x for part in given.values() for x in (part if isinstance(part, list) else [part])]
    names = {x.dtype.name for x in arrays if isinstance(x, np.ndarray)}
    try:
        for name in names | ({given["dtype"]} if isinstance(given.get("dtype"), str) else set()):
            backend.raw_dtype(as_dtype(name))
    except TypeError:
        return False
    return True


def _near(name: str, expected: Any) -> float:
    """The scale of the absolute tolerance: the largest element, because sums may cancel.

    It is 0 for elementwise functions.
    """
    if name in ELEMENTWISE:
        return 0.0
    sizes = np.abs(expected[np.isfinite(expected)]) if expected.dtype.kind in "fc" else []
    return float(np.max(sizes, initial=1.0))


def _wengerts(name: str, args: list[Any], kwargs: dict[str, Any]) -> list[Any]:
    out = _part(wg, name)(
        *_each(list(args), on_backend), **{k: _each(x, on_backend) for k, x in kwargs.items()}
    )
    return [
        x.backend.to_numpy(x.array) if isinstance(x, wg.Tensor) else np.asarray(x)
        for x in (out if isinstance(out, tuple | list) else [out])
    ]


def _single(array: Any) -> Any:
    """An array in single precision, if it is of floating or complex numbers."""
    with np.errstate(over="ignore"):
        return array.astype({"f": "float32", "c": "complex64"}.get(array.dtype.kind, array.dtype))


def _raw(array: Any) -> Any:
    return on_backend(array).array


def _strided(array: Any) -> Any:
    """Every second element of an array of the library's."""
    return _raw(np.stack([array, array], axis=-1))[..., 0]


def _own(name: str, args: list[Any], kwargs: dict[str, Any], raw: Of = _raw) -> list[Any]:
    """The same call of the library's own function."""
    backend = selection().backend
    extension, _, short = name.rpartition(".")
    module = getattr(backend.xp, extension) if extension else backend.xp
    if backend.name == "numpy":  # NumPy's own functions lack parameters of the standard
        function = _part(backend.namespace, name)
    else:
        function = backend.public(module).get(short) or getattr(module, short)
    named = {k: _each(x, raw) for k, x in kwargs.items()}
    if isinstance(named.get("dtype"), str):
        named["dtype"] = backend.raw_dtype(as_dtype(named["dtype"]))
    positional = _each(list(args), raw)
    if name == "astype":
        positional.append(named.pop("dtype"))
    out = function(*positional, **named)
    return [
        np.asarray(backend.to_numpy(x)) for x in (out if isinstance(out, tuple | list) else [out])
    ]


def _own_strided(name: str, args: list[Any], kwargs: dict[str, Any]) -> list[Any]:
    return _own(name, args, kwargs, _strided)


def _each(value: Any, converted: Of) -> Any:
    """An argument with its arrays converted."""
    if isinstance(value, list):
        return [_each(x, converted) for x in value]
    return converted(value) if isinstance(value, np.ndarray) else value


def _part(namespace: Any, name: str) -> Any:
    for part in name.split("."):
        namespace = getattr(namespace, part)
    return namespace
