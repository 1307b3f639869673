"""Checkpoints: the states of models, optimisers and the like in one file, loaded all or none."""

import json
import os
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wengert import ops
from wengert.backends import backend_of, generators, get_backend, selection
from wengert.storage.description import (
    Arrays,
    DescriptionError,
    Make,
    copy_state,
    describe,
    fields,
    of_tensors,
    parse,
    rebuild,
)
from wengert.storage.files import library, numpy_dtype_of, read_file, write_file

__all__ = ["load", "save"]

#: The key of the file's metadata, and the version of what is written there.
KEY, VERSION = "wengert", 1
#: Pairs of methods that give a state and take it.
_METHODS = (
    ("state_dict", "load_state_dict"),
    ("get_state", "set_state"),  # generators of PyTorch's
    ("getstate", "setstate"),  # Python's random.Random
)


class Holder(NamedTuple):
    """How the state of an object is taken, and given back."""

    get: Callable[[], Any]
    put: Callable[[Any], object]
    make: Make
    random: bool = True  # of a generator: each process of a program has its own


def holder_of(key: str, found: Any) -> Holder | None:
    """What is given by a keyword as something with a state; None for plain values."""
    if key == "generator" and found is True:
        return Holder(_random_state, _set_random_state, _make_array)
    if isinstance(found, type):
        raise TypeError(f"{key} is the class {found.__name__}; give an object of it")
    make = _made_of_torch if _is_of_torch(found) else _made_or_wider
    if hasattr(found, "bit_generator"):  # NumPy's Generator
        bits = found.bit_generator
        return Holder(lambda: bits.state, lambda state: setattr(bits, "state", state), make)
    for get, put in _METHODS:
        if hasattr(found, get) and hasattr(found, put):
            return Holder(getattr(found, get), getattr(found, put), make, get != "state_dict")
    return None


def save(path: str | os.PathLike[str], /, *wrong: Any, **states: Any) -> None:
    """Write a checkpoint: states of objects, and what else is to be known, by name.

    The file is in the safetensors format. Its arrays are those of the states, named by their places
    (``model.0.weight``), and its header describes the states in JSON. It is written beside its
    place and moved there when it is complete, so that a program that is stopped leaves the old file
    as it was.

    Parameters
    ----------
    path : path-like
        The file; one that exists is replaced, and keeps its permissions.
    **states
        By names of your choice: objects with ``state_dict`` and ``load_state_dict`` (modules,
        optimisers, schedulers, loaders, averaged models, PyTorch's too) and generators of NumPy,
        Python and PyTorch, of which the state is stored; and anything made of None, bools, numbers,
        strings, arrays, lists, tuples and dicts, as it is. ``generator=True`` stands for the random
        numbers of Wengert, on the host and on all devices.

    Raises
    ------
    ImportError
        If the package ``safetensors`` is not installed, or for bfloat16 and float8 ``ml_dtypes``.
    TypeError
        If a value is something else. Nothing has been written then.
    ValueError
        If values are nested more than 64 deep.

    See Also
    --------
    nn.save : Only the Tensors of one ``state_dict``.

    Notes
    -----
    Wengert's own. Floating numbers come back exactly. Complex arrays are stored as pairs of real
    ones. No pickle is written, and none is read.

    Examples
    --------
    >>> model = wg.nn.Linear(2, 3)
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     wg.save(f"{folder}/run.safetensors", model=model, generator=True, epoch=3)
    ...     wg.load(f"{folder}/run.safetensors", model=model, generator=True)
    {'epoch': 3}
    """
    write_states(_path("save", path, wrong), states, [], {})


def write_states(
    name: str, states: dict[str, Any], content: list[list[Any]], arrays: Arrays
) -> None:
    """Write states, beside what has been described already."""
    library("safetensors")
    for key, value in states.items():
        if key in ("__metadata__", "verify"):
            owner = "load" if key == "verify" else "the format"
            raise TypeError(f"{owner} keeps the name {key!r} for itself; choose another")
        holder = holder_of(key, value)
        described = describe(value if holder is None else holder.get(), key, arrays)
        content.append([key, "value" if holder is None else "state", described])
    text = json.dumps({"version": VERSION, "content": content}, allow_nan=False)
    write_file(name, arrays, {KEY: text})


def load(
    path: str | os.PathLike[str], /, *wrong: Any, verify: bool = True, **objects: Any
) -> dict[str, Any]:
    """Read a checkpoint, and load its states into objects: into all of them, or into none.

    Parameters
    ----------
    path : path-like
        What `save` has written. The Tensors of any other safetensors file are one state, such as
        that of a PyTorch model, and are loaded into the one object that is given.
    verify : bool
        Whether bytes are compared with the digest that `save` has written. For a file that memory
        does not hold, say False: arrays are then read one after the other.
    **objects
        The objects by the names under which their states were saved; ``generator=True`` sets
        Wengert's random numbers.

    Returns
    -------
    dict
        The values that were saved beside the states. If no object is given, the states too, with
        Tensors on the selected backend.

    Raises
    ------
    ImportError
        If the package ``ml_dtypes`` is not installed, for bfloat16 and float8.
    TypeError
        If what is given has no state; or if no object is given and the selected backend lacks a
        dtype of the file.
    ValueError
        If the file is no checkpoint, is damaged or not complete, was written by a later version,
        has no state of a name, or one that doesn't fit its object. Each object then has the state
        that it had before.

    Notes
    -----
    Wengert's own. A warning names the states that are left out where an optimiser's is loaded.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> model = wg.nn.Linear(2, 3)
    >>> with TemporaryDirectory() as folder:
    ...     wg.save(f"{folder}/run.safetensors", model=model, epoch=3)
    ...     wg.load(f"{folder}/run.safetensors", model=model)
    {'epoch': 3}
    """
    return read_states(_path("load", path, wrong), objects, verify=verify)


def read_states(
    name: str, objects: dict[str, Any], *, verify: bool = True, process: tuple[int, int] = (0, 1)
) -> dict[str, Any]:
    """Load states into objects, and return the values; ``process`` is a rank and a size."""
    holders = {}
    for key, found in objects.items():
        if (holder := holder_of(key, found)) is None:
            raise TypeError(f"{key} is a {type(found).__name__}, which has no load_state_dict")
        holders[key] = holder
    metadata, arrays = read_file(name, verify)
    try:
        states, values = _read_entries(metadata, arrays, holders, process)
        missing = [key for key in holders if key not in states]
        if missing:
            raise DescriptionError(
                f"there is no state of {', '.join(missing)}; there are: "
                f"{', '.join(states) or 'none'}"
            )
        built = {key: rebuild(states[key], arrays, holders[key].make) for key in holders}
        rest = values if holders else states | values
        result = {key: rebuild(each, arrays, _make_array) for key, each in rest.items()}
    except DescriptionError as error:
        raise ValueError(f"{name}: {error}") from error
    if not objects and KEY not in metadata:
        raise ValueError(f"{name} holds Tensors without a checkpoint; wg.nn.load returns them")
    left = [key for key in states if key not in holders]
    if left and any(type(state) is dict and "param_groups" in state for state in built.values()):
        text = (
            f"{name} also holds the states of {', '.join(left)}: a run that goes on without them "
        )
        warnings.warn(text + "differs. Load them beside the optimiser's", stacklevel=3)
    _put_all(name, holders, built)
    return result


def _path(function: str, path: Any, wrong: tuple[Any, ...]) -> str:
    if wrong or not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"{function} takes a path, and all else by name: "
            f"wg.{function}('run.safetensors', model=model)"
        )
    return os.fspath(path)


def _read_entries(
    metadata: dict[str, str],
    arrays: dict[str, Any],
    holders: dict[str, Holder],
    process: tuple[int, int],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The descriptions of the states in a file, and those of the values beside them."""
    text = metadata.get(KEY)
    if text is None:
        if len(holders) > 1:
            raise DescriptionError(
                "it is no checkpoint of Wengert's but holds Tensors of one state, and can be "
                f"loaded into one object, not into {', '.join(holders)}"
            )
        return dict.fromkeys(holders, of_tensors(arrays)), {}
    found = parse(text)
    version, parts = fields(found, "version", "content")
    if version != VERSION:
        raise DescriptionError(
            f"its states are of version {version!r}, and this Wengert reads {VERSION}"
        )
    sorts: dict[str, dict[str, Any]] = {"state": {}, "value": {}}
    for part in parts if type(parts) is list else [None]:
        if type(part) is not list or len(part) != 3 or type(part[0]) is not str:
            raise DescriptionError("the list of its states can't be read")
        key, sort, described = part
        every = described if sort == "ranks" and type(described) is list else [described]
        if sort == "ranks" or (sort == "state" and key in holders and holders[key].random):
            if key in holders and len(every) != process[1]:
                raise DescriptionError(
                    f"{key} has the states of {len(every)} process(es), and is loaded on "
                    f"{process[1]}: wengert.distributed.load gives each of as many its own. Leave "
                    f"{key} out to load the rest"
                )
            sort, described = "state", every[process[0]] if key in holders else every
        if sort not in ("state", "value") or any(key in each for each in sorts.values()):
            raise DescriptionError(f"the entry {key!r} can't be read, or is there twice")
        sorts[sort][key] = described
    return sorts["state"], sorts["value"]


def _put_all(name: str, holders: dict[str, Holder], states: dict[str, Any]) -> None:
    """Give all objects their states; if one refuses, give all back those that they had."""
    # Generators come last: what loads a state might draw.
    keys = sorted(holders, key=lambda key: holders[key].put is _set_random_state)
    before = {key: copy_state(holders[key].get()) for key in keys}
    begun: list[str] = []
    try:
        for key in keys:
            begun.append(key)
            holders[key].put(states[key])
    except BaseException as error:
        for done in reversed(begun):
            try:
                holders[done].put(before[done])
            except Exception as second:  # an object that does not take its own state
                error.add_note(f"{done} could not be given back its state: {second}")
        if not isinstance(error, Exception):
            raise
        raise ValueError(
            f"{name}: the state of {begun[-1]} doesn't fit, and nothing was loaded: "
            f"{type(error).__name__}: {error}"
        ) from error


# -- what states are made of ---------------------------------------------------------------------


def _make_array(kind: str, array: np.ndarray[Any, Any], dtype: Any) -> Any:
    """A Tensor on the selected backend, or an array or scalar of NumPy's."""
    if kind == "tensor":
        return ops.asarray(array, dtype=dtype)
    array = array.astype(numpy_dtype_of(dtype), copy=False)
    return array[()] if kind == "scalar" else array


def _made_or_wider(kind: str, array: np.ndarray[Any, Any], dtype: Any) -> Any:
    """As `_made`; but in float32, exactly, where the backend lacks a short dtype.

    An object casts it to the dtype, and moves it to the place, of what it has.
    """
    if kind == "tensor" and dtype.host != dtype.name:
        try:
            selection().backend.raw_dtype(dtype)
        except TypeError:
            return ops.asarray(array)
    return _make_array(kind, array, dtype)


def _made_of_torch(kind: str, array: np.ndarray[Any, Any], dtype: Any) -> Any:
    """PyTorch's own tensor, for PyTorch's own objects."""
    if kind != "tensor":
        return _make_array(kind, array, dtype)
    torch = get_backend("torch")
    return torch.xp.astype(torch.from_numpy(array), torch.raw_dtype(dtype))


def _is_of_torch(found: Any) -> bool:
    return any(each.__module__.partition(".")[0] == "torch" for each in type(found).__mro__)


# -- Wengert's random numbers --------------------------------------------------------------------


def _random_state() -> dict[str, Any]:
    """The state of all generators, with NumPy's arrays."""
    state = generators.get_rng_state()
    streams = {
        key: each if isinstance(each, dict) else np.array(backend_of(each).to_numpy(each))
        for key, each in state["devices"]["streams"].items()
    }
    return {"host": state["host"], "devices": {**state["devices"], "streams": streams}}


def _set_random_state(state: Any) -> None:
    """Set the state of all generators, after a look at it: streams take theirs when they draw."""
    np.random.PCG64(0).state = state["host"]
    devices = state["devices"]
    if type(devices["seed"]) is not int or devices["seed"] < 0:
        raise ValueError(f"the seed {devices['seed']!r} is none")
    for key, each in devices["streams"].items():
        if type(key) is not tuple or [type(part) for part in key] != [str, str]:
            raise ValueError(f"{key!r} names no device")
        if isinstance(each, dict):
            np.random.SFC64(0).state = each  # type: ignore[assignment]
        elif not isinstance(each, np.ndarray) or each.dtype.kind not in "iu" or each.ndim != 1:
            raise ValueError(f"the random state of {key} is no vector of integers")
    generators.set_rng_state(state)
