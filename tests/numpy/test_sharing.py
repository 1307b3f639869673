"""What shares memory in NumPy is the same Tensor, or a view that warns; other results are neither.

All functions and methods are called with arrays of each layout; many of the calls make no sense.
"""

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.numpy.compare import leaves
from tests.walking import lines_of
from wengert.tape.aliases import ViewWarning

ARRAYS = {
    "C": np.arange(1.0, 10.0).reshape(3, 3),
    "F": np.arange(1.0, 10.0).reshape(3, 3).T,
    "row": np.array([0.0, 2.0, 1.0, 0.0]),
    "cube": np.arange(8.0).reshape(2, 2, 2),
    "number": np.array(2.0),
    "complex": np.array([[1.0, 2.0j]]),
}
CALLS = lines_of("""
f(x)  f(x, 0)  f(x, 1)  f(x, -1)  f(x, (0, 1))  f(x, 0, 1)  f(x, 1, 0)  f(x, x)  f(1, x)  f(x, 1.0)
f([x])  f([x, x])  f(x, [0])  f(x, x.shape)  f("...", x)  f("ij->ji", x)  f("ii->i", x)  f(x, float)
f(x, axis=0)  f(x, 0, (1, 0))  f(x, 4)  f(x, x, x)  f(True, x, x)  f(x, "F")  f(x, None, "F")
f(x, None, "C")  f(x, None, "FO")  f(x, -1, copy=False)
""")
OPTIONS = {"copy": (False, None, True), "order": tuple("CFAK"), "subok": (True,)}
#: Of objects that are not arrays, of memory as it was, and of NumPy's settings.
LEFT_OUT = lines_of("""
__array__  __array_function__  __array_ufunc__  info  mintypecode  save  savetxt
set_printoptions  show_config  show_runtime  test
""")


def calls(function: Any) -> Iterator[str]:
    yield from CALLS
    try:
        names = inspect.signature(function).parameters
    except (TypeError, ValueError):
        names = {}
    for name, values in OPTIONS.items():
        for value in values if name in names else ():
            yield f"f(x, {name}={value!r})"


def results_of(function: Any, line: str, x: Any) -> list[Any]:
    try:
        return leaves(eval(line, {"f": function, "x": x}))
    except Exception:
        return []


def lost(one: Any, x: Any) -> bool:
    """Whether a change of one is neither seen in the other nor refused."""
    try:
        before = one.numpy().copy()
        x -= 3
    except ViewWarning:
        return False
    return np.array_equal(one.numpy(), before)


def wrong(name: str, ours: Any, theirs: Any, make: Any) -> Iterator[str]:
    for layout, values in ARRAYS.items():
        for line in calls(theirs):
            own = values.T.copy().T if layout == "F" else values.copy()
            other = make(values.T).T if layout == "F" else make(values)
            if (name, layout) in (("fftn", "number"), ("ifftn", "number")):
                continue  # of no axes
            results = results_of(theirs, line, own)
            tensors = results_of(ours, line, other)
            for i, (array, tensor) in enumerate(zip(results, tensors, strict=False)):
                if not isinstance(array, np.ndarray) or not isinstance(tensor, wg.Tensor):
                    continue
                shares = np.shares_memory(array, own)
                if tensor is other and not shares:
                    yield f"{name}: {line} of {layout}: the same, and in NumPy a copy"
                if tensor is not other and shares and array.size:
                    again = make(values.T).T if layout == "F" else make(values)
                    if lost(tensor, other) or lost(again, results_of(ours, line, again)[i]):
                        yield f"{name}: {line} of {layout}: a copy, and in NumPy a view"


def functions(room: Any, module: str) -> Iterator[tuple[str, Any, Any]]:
    ours, theirs = (getattr(lib, module) if module else lib for lib in (room, np))
    for name in dir(theirs):
        one = getattr(theirs, name)
        if name[0] != "_" and callable(one) and not isinstance(one, type) and name not in LEFT_OUT:
            yield name, getattr(ours, name), one


def methods() -> Iterator[tuple[str, Any, Any]]:
    for name in dir(np.ndarray):
        if name in LEFT_OUT or not hasattr(wg.Tensor, name):
            continue

        def call(x: Any, *args: Any, name: str = name, **named: Any) -> Any:
            value = getattr(x, name)
            return value(*args, **named) if callable(value) else value

        yield f"x.{name}", call, call


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", ["", "linalg", "fft", "methods"])
def test_memory_is_shared_as_in_numpy(room: Any, module: str) -> None:
    walked = [*(methods() if module == "methods" else functions(room, module))]
    assert len(walked) > {"": 300, "linalg": 25, "fft": 16, "methods": 60}[module]
    with np.errstate(all="ignore"):
        assert [told for one in walked for told in wrong(*one, room.array)] == []
