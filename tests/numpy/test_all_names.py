"""All names of NumPy: Wengert's, NumPy's own, or an error, and never a lost derivative.

All functions are called with the same arguments, many of which make no sense. Where there is a
result, it is NumPy's; and where NumPy's changes with an argument, it is tracked.
"""

import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.numpy.compare import leaves, plain
from tests.walking import lines_of

CALLS = (
    *("f(x)", "f(x, y)", "f(x, 0)", "f(x, 1)", "f(s)", "f(s, s)", "f(v)", "f(v, v)", "f(v, 2)"),
    *("f([x, y])", "f([x, y], 1)", "f((v, v))", "f(x, axis=1)", "f(x, axis=0, keepdims=True)"),
    *("f(k, x, y)", "f(x, 0.5)", "f(2, v)", "f(v, i)", "f(i, v)", "f(x, (0, 1))", "f([v[0], 1.0])"),
    *("f(x, y, x)", "f(lambda a: a, x)", "f(v, [v[0], 2.0])", "f(k, x)", "f(v[0], 2.0, 3)", "f(i)"),
    *("f(0.0, v[1], 4)", "f(i, weights=v)", "f(v, where=[True] * 4, initial=0.0)", "f(x, i)"),
)
#: Functions that write files, run tests, show or set something, or leave memory as it was.
_LEFT_OUT = {
    *(
        *lines_of("""
save  savetxt  savez  savez_compressed  test  show_config  show_runtime  info
"""),
    ),
    *("seterr", "seterrcall", "setbufsize", "set_printoptions", "empty", "empty_like", "fromfile"),
    *("tofile", "load", "loadtxt", "genfromtxt", "fromregex", "get_include", "ndarray", "memmap"),
    *("vectorize", "frompyfunc", "source", "lookfor", "nditer", "nested_iters", "broadcast"),
}
#: Their orders are not told: a partition's of what is not asked for, and the one of unique values.
_KNOWN = {"partition", "argpartition", "unique_values"}


def arguments() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {
        "x": rng.normal(size=(4, 4)) + 4 * np.eye(4),
        "y": rng.normal(size=(4, 4)),
        "s": np.float64(0.6),
        "v": rng.uniform(0.1, 0.9, size=4),
        "i": np.array([0, 2, 1, 2]),
        "k": np.array([True, False, True, True]),
    }


def call(function: Any, line: str, given: dict[str, Any]) -> list[Any] | None:
    try:
        found = eval(line, given | {"f": function})
    except Exception:
        return None
    if isinstance(found, map | zip | filter | Iterator):
        return None
    found = leaves(found)
    return (
        found
        if all(isinstance(one, np.ndarray | np.generic | wg.Tensor | float) for one in found)
        else None
    )


def wrong(ours: Any, theirs: Any, names: list[str]) -> Iterator[str]:
    for name in names:
        for line in CALLS:
            own = call(getattr(theirs, name), line, arguments())
            if own is None:
                continue
            tracked = {
                key: wg.tensor(value, requires_grad=value.dtype.kind == "f")
                for key, value in arguments().items()
            }
            found = call(getattr(ours, name), line, tracked)
            if found is None:
                continue
            moved = {
                key: value + 1e-4 * np.cos(1 + np.arange(value.size)).reshape(value.shape)
                if value.dtype.kind == "f"
                else value
                for key, value in arguments().items()
            }
            after = call(getattr(theirs, name), line, moved)
            for one, other, then in zip(found, own, after or own, strict=False):
                value = plain(one)
                if name.startswith(("ascont", "asfort")):
                    continue  # of a number they make an array of one axis
                if value.shape != np.shape(other) or (
                    name not in _KNOWN
                    and not np.allclose(value, other, rtol=1e-7, atol=1e-9, equal_nan=True)
                ):
                    yield f"{name}: {line}: {value} against {other}"
                inexact = np.asarray(other).dtype.kind in "fc"
                changes = (
                    inexact
                    and np.shape(other) == np.shape(then)
                    and not np.array_equal(other, then, equal_nan=True)
                )
                if changes and not getattr(one, "requires_grad", False):
                    yield f"{name}: {line}: the derivative is lost"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", ["", "linalg", "fft", "random"])
def test_all_names(room: Any, module: str) -> None:
    ours, theirs = (getattr(lib, module) if module else lib for lib in (room, np))
    names = [n for n in dir(theirs) if n[0] != "_" and n not in _LEFT_OUT]
    assert not [n for n in names if not hasattr(ours, n)]
    functions = [
        n
        for n in names
        if callable(getattr(theirs, n)) and not isinstance(getattr(theirs, n), type)
    ]
    assert len(functions) > {"": 300, "linalg": 25, "fft": 16, "random": 40}[module]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if module != "random":
            assert list(wrong(ours, theirs, functions)) == []
            return
        for name in functions:  # which draw: what is tracked is refused
            for line in ("f(v)", "f(v, v)", "f(v[0], 2.0)", "f(v, 2)", "f(1.0, v)"):
                tracked = {"v": wg.tensor(arguments()["v"], requires_grad=True)}
                found = call(getattr(ours, name), line, tracked)
                assert found is None, (name, line)


def test_names_with_derivatives_are_wengerts(room: Any) -> None:
    """What is passed on as it is has no derivative, or few programs use it."""
    passed = {
        name
        for name in dir(np)
        if name[0] != "_"
        and callable(getattr(np, name))
        and not isinstance(getattr(np, name), type)
        and not getattr(room, name).__module__.startswith("wengert")
    }
    functions = import_module("wengert.numpy.functions")
    assert not passed & {*functions.TABLE, *functions.NAMES}
    with_derivatives = {
        *lines_of("""
einsum  interp  linspace  lstsq  histogram  polyfit  where  clip
""")
    }
    assert not passed & with_derivatives
