"""States as text: nests of Python's numbers, strings and containers, with arrays kept apart.

A description is JSON. Numbers, strings, None and lists stand for themselves, and all else is an
object of one key, which says what it is: ``{"tuple": [1, 2]}``, ``{"float": "inf"}``,
``{"dict": [[0, {"tensor": "optimizer.state.0.exp_avg"}]]}``. Nothing in it names code.
"""

import json
import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from wengert.backends import dtype_of
from wengert.backends.registry import has_own_arithmetic
from wengert.storage.files import STORED, host_array
from wengert.tape.tensor import Tensor, wrap

#: Arrays by their names in the file.
Arrays = dict[str, np.ndarray[Any, Any]]
#: ``make(kind, array, dtype)`` makes what was described as a "tensor", "array" or "scalar".
Make = Callable[[str, np.ndarray[Any, Any], Any], Any]

#: How far states may be nested; deeper ones are taken to contain themselves, or to be an attack.
DEEPEST = 64
#: CPython reads no longer integers from text; in bits.
LONGEST = 14_000
_DICTS: dict[str, type[dict[Any, Any]]] = {
    "dict": dict,
    "OrderedDict": OrderedDict,
    "Counter": Counter,
}


class DescriptionError(ValueError):
    """What describes a state does not make sense."""


def describe(value: Any, name: str, arrays: Arrays, depth: int = 0) -> Any:
    """Return the description of a value, and put its arrays into ``arrays``.

    ``name`` is the value's place, with dots; the names of its arrays begin with it.
    """
    kind = type(value)
    if depth > DEEPEST:
        raise ValueError(f"{name} is nested more than {DEEPEST} deep, or contains itself")
    if value is None or kind in (bool, str):
        return value
    if kind is int:
        if value.bit_length() > LONGEST:
            raise ValueError(f"{name} is an integer of more than {LONGEST} bits")
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is complex:
        return {"complex": [describe(part, name, arrays) for part in (value.real, value.imag)]}
    if kind in (list, tuple):
        items = [describe(v, f"{name}.{i}", arrays, depth + 1) for i, v in enumerate(value)]
        return items if kind is list else {"tuple": items}
    if kind in _DICTS.values():
        return {
            kind.__name__: [
                [
                    describe(k, name, arrays, depth + 1),
                    describe(v, f"{name}.{k}", arrays, depth + 1),
                ]
                for k, v in value.items()
            ]
        }
    return _array(value, name, arrays)


def _array(value: Any, name: str, arrays: Arrays) -> dict[str, str]:
    kind = "tensor"
    if isinstance(value, np.generic | np.ndarray):
        if has_own_arithmetic(type(value)):
            raise TypeError(f"{name} is a {type(value).__name__}, of which a part would be lost")
        kind = "scalar" if isinstance(value, np.generic) else "array"
        value = np.asarray(value, dtype=value.dtype.newbyteorder("="))
    try:
        tensor = wrap(value).detach()
        dtype = tensor.dtype
    except TypeError:
        raise TypeError(
            f"{name} is of type {_kind(value)}, and can't be stored: files hold None, "
            "numbers, strings, arrays, and lists, tuples and dicts of them"
        ) from None
    if not dtype.complex and dtype not in STORED.values():
        raise TypeError(f"{name} holds {dtype.name}, which the safetensors format lacks")
    key, n = name, 1
    while key in arrays:  # {"a.b": x, "a": {"b": y}}
        n += 1
        key = f"{name}#{n}"
    if not dtype.complex:
        arrays[key] = host_array(tensor)
        return {kind: key}
    pairs = tensor.numpy()
    arrays[key] = np.stack([pairs.real, pairs.imag], axis=-1)
    return {f"complex {kind}": key}


def _kind(value: Any) -> str:
    return f"ndarray of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__


def parse(text: str) -> Any:
    """Return what a text in JSON says; `DescriptionError` if it says nothing."""
    try:
        return json.loads(text, object_pairs_hook=_Object, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise DescriptionError(f"the description of its states can't be read: {error}") from error


class _Object(list[tuple[str, Any]]):
    """An object of JSON, with keys that may come twice."""


def of_tensors(names: Iterable[str]) -> Any:
    """What would describe a dict of Tensors, parsed."""
    return _Object([("dict", [[name, _Object([("tensor", name)])] for name in names])])


def _no_constant(word: str) -> Any:
    raise DescriptionError(f"{word} is no JSON")


def fields(found: Any, *names: str) -> list[Any]:
    """The values of an object with exactly these keys."""
    if type(found) is not _Object or [key for key, _ in found] != [*names]:
        raise DescriptionError(f"an object with {', '.join(map(repr, names))} was expected")
    return [value for _, value in found]


def rebuild(found: Any, arrays: dict[str, tuple[Any, Any]], make: Make, depth: int = 0) -> Any:
    """Return the value of a parsed description; the arrays that it names are taken out."""
    if depth > DEEPEST:
        raise DescriptionError(f"its states are nested more than {DEEPEST} deep")
    if type(found) is list:
        return [rebuild(item, arrays, make, depth + 1) for item in found]
    if type(found) is not _Object:
        return found
    if len(found) != 1:
        raise DescriptionError(f"an object has {len(found)} keys instead of one")
    ((tag, content),) = found
    if tag in ("float", "complex"):
        return _number(tag, content)
    if tag in _DICTS:
        return _DICTS[tag](dict(_pairs(content, arrays, make, depth + 1)))
    if tag == "tuple" and type(content) is list:
        return tuple(rebuild(item, arrays, make, depth + 1) for item in content)
    kind = tag.removeprefix("complex ")
    if kind not in ("tensor", "array", "scalar") or type(content) is not str:
        raise DescriptionError(f"it has a {tag!r} that this version does not know")
    if content not in arrays:
        raise DescriptionError(f"the array {content!r} is missing, or named twice")
    array, dtype = arrays.pop(content)  # so that a short file makes no endless copies of one
    if kind != tag:
        if dtype.name not in ("float32", "float64") or array.shape[-1:] != (2,):
            raise DescriptionError(f"the array {content!r} holds no complex numbers")
        array = np.ascontiguousarray(array).view(f"complex{16 * dtype.itemsize}")[..., 0]
        dtype = dtype_of(array.dtype)
    if kind == "scalar" and array.shape:
        raise DescriptionError(f"the array {content!r} is no scalar")
    return make(kind, array, dtype)


def _number(tag: str, content: Any) -> float | complex:
    if tag == "float" and content in ("inf", "-inf", "nan"):
        return float(content)
    if tag == "complex" and type(content) is list and len(content) == 2:
        parts = [
            p if type(p) is float else _number("float", fields(p, "float")[0]) for p in content
        ]
        return complex(*parts)
    raise DescriptionError(f"{content!r} is no {tag} number")


def _pairs(
    content: Any, arrays: dict[str, tuple[Any, Any]], make: Make, depth: int
) -> Iterator[tuple[Any, Any]]:
    seen = set()
    for pair in content if type(content) is list else [None]:
        if type(pair) is not list or len(pair) != 2:
            raise DescriptionError("a dict is described by no pairs")
        key = rebuild(pair[0], arrays, make, depth)
        try:
            double = key in seen
            seen.add(key)
        except TypeError:
            raise DescriptionError(f"a {type(key).__name__} is the key of a dict") from None
        if double:
            raise DescriptionError(f"a dict has the key {key!r} twice")
        yield key, rebuild(pair[1], arrays, make, depth)


def copy_state(state: Any) -> Any:
    """A state that stays as it is when what it was taken from changes.

    Arrays of Tensors are replaced and not written into; those of others are copied.
    """
    if isinstance(state, Tensor):
        return state
    if type(state) in (list, tuple):
        return type(state)(map(copy_state, state))
    if type(state) in _DICTS.values():
        return type(state)({key: copy_state(value) for key, value in state.items()})
    return deepcopy(state)
