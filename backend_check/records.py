"""Writes the record of a library that has none, by trying where it differs from the standard."""

import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from wengert.backends import EXTENSIONS, Backend, get_backend
from wengert.backends.backend import TRANSFORMS
from wengert.tape.primitive import PRIMITIVES

#: Ways of getting at an array's values, the standard's first.
TO_NUMPY = (
    "np.asarray(array)",
    "np.from_dlpack(array)",
    "np.from_dlpack(array, device='cpu')",
    "array.asnumpy()",
    "array.unwrap_numpy()",
    "array.todense()",
    "array.compute()",
    "array.get()",
    "array.numpy()",
    "np.asarray(array.tolist())",
)
FROM_NUMPY = (
    "self.xp.asarray(array, device=device)",
    "self.xp.asarray(array)",
    "self.xp.from_dlpack(array)",
    "self.xp.asarray(array.tolist(), dtype=getattr(self.xp, array.dtype.name))",
)
DEVICE = ("array.device", "self.xp.default_device()", "'cpu'")
DEVICES = (
    "list(self.xp.__array_namespace_info__().devices())",
    "[self.xp.default_device()]",
    "['cpu']",
    "[self.device(self.from_numpy(np.zeros(1, 'float32')))]",
)
TO_DEVICE = ("array.to_device(device)", "self.xp.asarray(array, device=device)", "array")
RAW_DTYPE = ("getattr(self.xp, dtype.name)", "getattr(self.xp, f'{dtype.name}_')")

#: NumPy's older names of the standard's functions, where these take the same arguments.
OLDER = {
    **{name: f"arc{name[1:]}" for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh")},
    "atan2": "arctan2",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "concat": "concatenate",
    "pow": "power",
}


class Probe(NamedTuple):
    """A library's differences from the standard.

    Attributes
    ----------
    methods : dict
        The expressions of methods that differ from those of `Backend`.
    immutable : bool
        Whether its arrays can't be written to.
    older, lacking : dict, list
        Functions of the standard that it has by an older name, and those that it lacks.
    """

    methods: dict[str, str]
    immutable: bool
    older: dict[str, str]
    lacking: list[str]


#: The parameters of the methods that a record may need, and the ways to try.
METHODS: dict[str, tuple[str, Sequence[str]]] = {
    "raw_dtype": ("dtype", RAW_DTYPE),
    "from_numpy": ("array, device=None", FROM_NUMPY),
    "to_numpy": ("array", TO_NUMPY),
    "device": ("array", DEVICE),
    "devices": ("", DEVICES),
    "to_device": ("array, device", TO_DEVICE),
}


def probe(xp: Any) -> Probe:
    """Try out a namespace."""
    found: dict[str, str] = {}
    sample = np.asarray([[1.5, -2.0], [0.25, 3.0]], dtype="float32")

    class Tried:
        """The record so far."""

    tried: Any = Tried()
    tried.xp = xp

    def first(method: str, works: Callable[[Callable[..., Any]], bool]) -> None:
        signature, ways = METHODS[method]
        for way in ways:
            function = _method(tried, signature, way)
            try:
                right = works(function)
            except Exception:  # whatever a library raises: this is not the way
                continue
            if right:
                found[method] = way
                setattr(tried, method, function)
                return

    class Float32:
        name = "float32"

    first("raw_dtype", lambda f: f(Float32) is not None)
    doubles = sample.astype("float64")
    first("from_numpy", lambda f: f(sample).dtype != f(doubles).dtype)
    if "from_numpy" not in found:  # a library without double precision
        first("from_numpy", lambda f: tuple(f(sample).shape) == sample.shape)
    if "from_numpy" not in found:
        raise ValueError(f"{xp.__name__} makes no array of a NumPy array: is it an array library?")
    array = tried.from_numpy(sample)
    first("to_numpy", lambda f: _same(f(array), sample))
    first("device", lambda f: f(array) is not None)
    first("devices", lambda f: str(tried.device(array)) in map(str, f()))
    first("to_device", lambda f: tuple(f(array, tried.device(array)).shape) == sample.shape)
    standard = {method: _default(method) for method in METHODS}
    differing = {m: way for m, way in found.items() if way not in standard[m]}
    older, lacking = {}, []
    for name in _needed_names():
        if not _has(xp, name):
            before = OLDER.get(name, "")
            if before and _has(xp, before):
                older[name] = before
            else:
                lacking.append(name)
    return Probe(differing, _is_immutable(tried.from_numpy(sample.copy())), older, lacking)


def _default(method: str) -> tuple[str, ...]:
    """The expressions that `Backend` uses by default."""
    return METHODS[method][1][: 3 if method == "to_numpy" else 1]  # type: ignore[return-value]


def _method(tried: Any, signature: str, way: str) -> Callable[..., Any]:
    made: Callable[..., Any] = eval(  # noqa: S307 -- one of the expressions above
        f"lambda {signature}: {way}", {"self": tried, "np": np}
    )
    return made


def _same(found: Any, expected: Any) -> bool:
    return (
        isinstance(found, np.ndarray)
        and found.dtype == expected.dtype
        and np.array_equal(found, expected)
    )


def _is_immutable(array: Any) -> bool:
    try:
        array[0, 0] = 1
    except Exception:
        return True
    return False


def _has(xp: Any, name: str) -> bool:
    for part in name.split("."):
        xp = getattr(xp, part, None)
    return callable(xp)


def _needed_names() -> Iterator[str]:
    """The standard's functions that Wengert does not compose of others."""
    namespace = get_backend("numpy").xp
    for prefix, module in (
        ("", namespace),
        *((f"{e}.", getattr(namespace, e)) for e in EXTENSIONS),
    ):
        for name in _standard(prefix):
            if hasattr(module, name):
                yield prefix + name


def _standard(prefix: str) -> list[str]:
    if prefix == "fft.":
        return list(TRANSFORMS)
    names = dir(wg.linalg if prefix else wg)
    return [name for name in names if prefix + name in PRIMITIVES]


def write_record(module: str, name: str, version: str, found: Probe) -> str:
    """The record as a Python file."""
    title = "".join(part.capitalize() for part in re.split(r"\W|_", name)) or "Library"
    lines = [
        f'"""{name} {version} as a backend of Wengert.',
        "",
        "To select it by WENGERT_BACKEND, a package that has this file declares:",
        "",
        '    [project.entry-points."wengert.backends"]',
        f'    {name} = "mypackage.{name}_backend:BACKEND"',
        '"""',
        "",
        *(["import numpy as np", ""] if "np." in "".join(found.methods.values()) else []),
        *([f"import {module} as xp", ""] if found.older else []),
        "from wengert.backends import Backend",
        "",
        "",
        f"class {title}Backend(Backend):",
        f'    name = "{name}"',
        f'    module = "{module}"',
    ]
    package = module.partition(".")[0]
    # Of a project, which may have programs beside its namespace, the namespace alone.
    installed = "site-packages" in str(getattr(sys.modules.get(package), "__file__", ""))
    lines += [
        "    # Compiled functions take what its code reads for constant: keep programs elsewhere.",
        f'    packages = ("{package if installed else module}",)',
    ]
    if found.immutable:
        lines.append("    immutable = True")
    if found.older:
        lines.append("    kernels = {")
        lines += [f'        "{new}": xp.{old},' for new, old in sorted(found.older.items())]
        lines.append("    }")
    if found.lacking:
        lines.append(
            "    # The standard's functions that it has not; kernels can stand in for them:"
        )
        lines += _wrap(sorted(found.lacking), "    # ")
    for method, way in found.methods.items():
        signature = ", ".join(filter(None, ("self", METHODS[method][0])))
        lines += [
            "",
            f"    def {method}({signature}):",
            f"        return {way.replace(chr(39), chr(34))}",
        ]
    return "\n".join([*lines, "", "", f"BACKEND = {title}Backend()", ""])


def _wrap(names: Sequence[str], indent: str) -> list[str]:
    return textwrap.wrap(", ".join(names), 96, initial_indent=indent, subsequent_indent=indent)


def run_record(text: str, name: str) -> Backend:
    """The backend that a record's text makes."""
    names: dict[str, Any] = {"__name__": f"{name}_backend"}
    exec(compile(text, f"<record of {name}>", "exec"), names)  # noqa: S102 -- written above
    backend: Backend = names["BACKEND"]
    return backend
