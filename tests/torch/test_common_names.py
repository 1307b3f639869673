"""No name that the room and PyTorch have in common gives another result without a word.

All names are called with the same arguments, many of which make no sense. Where both libraries give
a result, it is the same.
"""

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.walking import lines_of

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

CALLS = (
    *("f(x)", "f(x, 1)", "f(x, 0)", "f(x, -1)", "f(x, 1, True)", "f(x, y)", "f(s)", "f(s, s)"),
    *("f(v)", "f(v, v)", "f(v, 2)", "f(i)", "f(i, j)", "f(i, 1)", "f(k)", "f(k, k)", "f(h)"),
    *("f(x, 0, 1)", "f(k, x, y)", "f([x, y])", "f([x, y], 1)", "f(3)", "f(2, 3)", "f((2, 3))"),
    *("f(x, (0, 1))", "f(x, 0.5)", "f(x, x.shape)"),
)
#: Numbers that are drawn, memory that is not initialised, classes, and a dtype that NumPy lacks.
DRAWN = (
    *(
        *lines_of("""
bfloat16  bernoulli  bernoulli_  empty  empty_like  multinomial  new  new_empty
"""),
    ),
    *("normal", "normal_", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like"),
    *("random_", "randperm", "uniform_", "compile", "device", "dtype", "load", "save"),
    *("enable_grad", "inference_mode", "no_grad", "get_rng_state", "set_rng_state", "manual_seed"),
    *("set_default_dtype", "set_default_tensor_type", "set_printoptions", "set_num_threads"),
    *("use_deterministic_algorithms", "set_deterministic", "backward", "register_hook"),
    *("set_grad_enabled", "retain_grad", "register_post_accumulate_grad_hook", "Size", "Tensor"),
)
#: Where the two differ: no probability lies between 1 and 0, and booleans are squared as int8.
KNOWN = {"logit", "logit_", "square"}


def arguments(library: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    given = {
        "x": rng.normal(size=(3, 4)),
        "y": rng.normal(size=(3, 4)),
        "s": rng.normal(size=(3, 3)),
        "v": rng.normal(size=4),
        "i": rng.integers(-5, 9, size=(3, 4)),
        "j": rng.integers(1, 5, size=(3, 4)),
        "k": rng.normal(size=(3, 4)) > 0,
        "h": np.array([0.5, 1.5, -2.5]),
    }
    return {name: library.tensor(value) for name, value in given.items()}


def plain(value: Any) -> Any:
    if hasattr(value, "detach"):
        return str(value.dtype).rpartition(".")[2], value.detach().numpy()
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if type(value).__name__ in ("DType", "dtype"):
        return str(value).rpartition(".")[2]
    return value


def same(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == 2 == len(b):
        return a[0] == b[0] and same(a[1], b[1])
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        close = np.allclose(a, b, rtol=1e-6, atol=1e-7, equal_nan=True)
        return a.shape == b.shape and bool(close)
    numbers = bool | int | float | str | None
    if isinstance(a, numbers) and isinstance(b, numbers):
        return a == b
    return type(a).__name__ == type(b).__name__


def call(library: Any, name: str, line: str, method: bool) -> Any:
    """The result of a line, with the arguments as they are afterwards, or None for an error."""
    given = arguments(library)
    try:
        if method:
            found = eval(line, given | {"f": lambda x, *rest: getattr(x, name)(*rest)})
        else:
            found = eval(line, given | {"f": getattr(library, name)})
    except Exception:
        return None
    return plain([found, *[given[key] for key in "xik"]])


def differing(ours: Any, theirs: Any, names: set[str], method: bool) -> Iterator[str]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in sorted(names - {*DRAWN}):
            if name[0] == "_":
                continue
            for line in CALLS:
                one, other = (call(lib, name, line, method) for lib in (ours, theirs))
                if one is not None and other is not None and not same(one, other):
                    yield name
                    break


def test_the_rooms_names_mean_what_pytorchs_mean(room: Any) -> None:
    torch = pytest.importorskip("torch")
    functions = {n for n in vars(room) if callable(getattr(room, n)) and hasattr(torch, n)}
    functions -= {n for n in functions if n.endswith("Tensor")}
    assert len(functions) > 200
    assert set(differing(room, torch, functions, False)) <= KNOWN
    methods = {*dir(torch.Tensor)} & {*dir(wg.ones(1))}
    assert len(methods) > 250
    assert set(differing(room, torch, methods, True)) <= KNOWN


PAGE = Path(__file__).parents[2] / "docs" / "coming_from" / "pytorch.md"


def test_functions_of_the_core_that_mean_something_else_are_listed_on_the_page() -> None:
    torch = pytest.importorskip("torch")
    functions = {n for n in wg.__all__ if hasattr(torch, n) and callable(getattr(wg, n))}
    found = set(differing(wg, torch, functions, False)) - KNOWN
    _, _, text = PAGE.read_text().partition("## Names that mean something else")
    listed = set(re.findall(r"^\| `(\w+)", text.partition("\n## ")[0], re.MULTILINE))
    assert found == listed
