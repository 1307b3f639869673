"""NumPy's integers, booleans and floats are taken wherever Python's are; a lone one is an array."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from backend_check.calls import FUNCTIONS, arguments, call, parameters

pytestmark = pytest.mark.filterwarnings("ignore")

NUMPY = {bool: (np.bool_,), int: (np.int64, np.int32, np.array), float: (np.float64,)}
AXES = ("axis", "dim")


def in_numpy(value: Any, kind: type) -> Any:
    """A number, or those of a tuple or list, as NumPy's."""
    if isinstance(value, tuple | list):
        return type(value)([in_numpy(each, kind) for each in value])
    return kind(value) if type(value) in NUMPY else value


def numbers(value: Any) -> Any:
    """The type of a number, or of those of a tuple or list."""
    if isinstance(value, tuple | list) and value:
        kinds = {numbers(each) for each in value}
        return kinds.pop() if len(kinds) == 1 else None
    return type(value) if type(value) in NUMPY else None


#: Calls that fail with Python's number: why.
APART: dict[tuple[str, str], str] = {
    ("x.max", "axis"): "PyTorch gives indices, too",
    ("x.min", "axis"): "likewise",
}


def made(name: str) -> tuple[Any, dict[str, Any]]:
    """A public function, and arguments with which it works; of constructors sizes, which are 2."""
    function = FUNCTIONS[name]
    if not name.startswith(("nn.", "optim.")):
        given = arguments(name)
        return function, {
            k: wg.asarray(x) if isinstance(x, np.ndarray) else x for k, x in given.items()
        }
    needed: dict[str, Any] = {"unflattened_size": (2, 1)}
    needed["params"] = [wg.zeros((2, 2), requires_grad=True)]
    if name.startswith("nn.Transformer") and not name.endswith("Layer"):
        kind = getattr(wg.nn, f"{name[3:]}Layer")
        needed |= dict.fromkeys(("encoder_layer", "decoder_layer"), kind(2, 2))
    return function, {
        k: needed.get(k, 2)
        for k, about in parameters(function).items()
        if about.default is about.empty and about.kind is about.POSITIONAL_OR_KEYWORD
    }


def told(name: str, given: dict[str, Any]) -> str:
    """What a call gives, or the error."""
    wg.manual_seed(0)
    try:
        out = call(name, given)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    # What a layer was given is shown as it was given.
    plain = isinstance(out, wg.nn.Module | wg.optim.Optimizer)
    return type(out).__name__ if plain else repr(out)


def walk() -> tuple[int, list[str]]:
    seen, wrong = 0, []
    for name in FUNCTIONS:
        function, given = made(name)
        for parameter, about in parameters(function).items():
            value = given.get(parameter, about.default)
            if value is None and parameter in AXES:
                value = 0
            kind = numbers(value)
            if kind is None or parameter == "keepdims":  # of which NumPy refuses its own booleans
                continue
            expected = told(name, given | {parameter: value})
            if ("Error: " in expected) is not ((name, parameter) in APART):
                wrong.append(f"{name}({parameter}={value}) is not tried: {expected}")
            if "Error: " in expected:
                continue
            seen += 1
            for numpy in NUMPY[kind]:
                found = told(name, given | {parameter: in_numpy(value, numpy)})
                if found != expected:
                    what = found.splitlines()[0]
                    wrong.append(f"{name}({parameter}={numpy.__name__}({value})): {what}")
    return seen, wrong


@pytest.mark.slow
def test_numbers_of_numpy_are_taken_where_those_of_python_are() -> None:
    seen, wrong = walk()
    assert seen > 300
    assert not wrong, "\n".join(wrong)


def test_a_lone_scalar_of_numpy_is_an_array() -> None:
    """In every function of one array; Python's number is refused as before."""
    seen, wrong = 0, []
    for name, function in FUNCTIONS.items():
        given = arguments(name)
        first = next(iter(parameters(function)), "")
        if name.startswith("x.") or name == "from_dlpack":  # methods, and what asks for a method
            continue
        if first not in ("x", "input", "a") or list(given) != [first]:
            continue
        for value in (np.float64(0.25), np.float32(0.25)):
            expected = told(name, {first: wg.asarray(np.asarray(value))})
            if "Error: " not in expected:
                seen += 1
                found = told(name, {first: value})
                if found != expected:
                    wrong.append(f"{name}({value!r}): {found}, not {expected}")
    assert seen > 100
    assert not wrong, "\n".join(wrong)
    f = lambda x: wg.exp(2 * x)
    assert f(np.array(0.5)).item() == wg.grad(f)(np.array(0.5)) / 2
    with pytest.raises(TypeError, match="given only: float"):
        wg.exp(0.5)
