"""What a recording refuses, with its line; and draws, which each replay makes anew."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.bits import same_bits
from wengert.compiler import CompileError

POINT = np.array([[0.5, -1.25, 2.0], [0.75, 1.5, -0.5]])

DRAWS: dict[str, Callable[[Any], Any]] = {
    "randn": lambda x: x + wg.randn(2, 3),
    "rand": lambda x: x + wg.rand(2, 3) * wg.rand(1, 3),
    "rand_like": lambda x: x * wg.rand_like(x),
    "dropout": lambda x: wg.nn.functional.dropout(x, 0.5, training=True),
    "randint": lambda x: x * wg.astype(wg.random.randint(0, 9, (2, 3)), x.dtype),
    "randperm": lambda x: wg.repeat(x, 9, axis=0)[wg.randperm(18)],
    "bernoulli": lambda x: wg.bernoulli(wg.clip(x, 0.2, 0.8)),
    "normal": lambda x: wg.normal(0.0, 1.0, (2, 3)) * x,
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_stay_live(backend: Any, name: str) -> None:
    """From one seed, replays draw what calls of the function draw."""
    x, found = wg.Tensor(backend.from_numpy(POINT)), []
    for run in (DRAWS[name], wg.compile(DRAWS[name])):
        wg.manual_seed(11)
        found.append([run(x).numpy() for _ in range(4)])
    assert all(map(same_bits, *found))
    assert any(not same_bits(found[0][0], x) for x in found[0][1:])


def _branch(x: Any) -> Any:
    return x if wg.sum(x) > 0 else -x


def _loop(x: Any) -> Any:
    while wg.max(x) > 1:
        x = x / 2
    return x


ERRORS: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "a branch": (_branch, "branch on the values", "if wg.sum(x) > 0"),
    "a loop": (_loop, "branch on the values", "while wg.max(x) > 1"),
    "item": (lambda x: x * x[0, 0].item(), r"\(item\)", "x[0, 0].item()"),
    "float": (lambda x: x * float(x[0, 0]), r"\(float\)", "float(x[0, 0])"),
    "int": (lambda x: x * int(x[0, 0]), r"\(int\)", "int(x[0, 0])"),
    "tolist": (lambda x: x.tolist(), r"\(tolist\)", "x.tolist()"),
    "printing": (lambda x: str(x), "values of a Tensor are read", "str(x)"),
    "formatting": (lambda x: f"{x[0, 0]:.3f}", "values of a Tensor are read", ":.3f"),
    "numpy": (lambda x: x.numpy(), r"off the tape \(numpy\)", "x.numpy()"),
    "detached numpy": (lambda x: x.detach().numpy(), r"off the tape \(numpy\)", "detach().numpy()"),
    "array": (lambda x: x.array, r"raw array \(\.array\)", "x.array"),
    "np.asarray": (lambda x: np.asarray(x), r"\(np\.asarray\)", "np.asarray(x)"),
    "a mask": (lambda x: x[x > 0], "indexing with a mask", "x[x > 0]"),
    "nonzero": (lambda x: wg.nonzero(x)[0], "what nonzero gives", "wg.nonzero(x)"),
    "unique": (lambda x: wg.unique_values(x), "what unique_values gives", "unique_values(x)"),
    "an index": (lambda x: range(10)[wg.argmax(x)], "values of a Tensor", "range(10)[wg.argmax"),
    "repeats": (lambda x: wg.repeat(x[0], wg.argsort(x[0])), "values of a Tensor", "wg.repeat"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_the_line(backend: Any, name: str) -> None:
    function, message, text = ERRORS[name]
    with pytest.raises(CompileError, match=message) as caught:
        wg.compile(function)(wg.Tensor(backend.from_numpy(POINT)))
    assert "test_trace.py, line " in str(caught.value)
    assert text in str(caught.value)


KEPT: list[Any] = []
USES: list[Callable[[Any, Any], Any]] = [
    lambda y, a: y + 1,
    lambda y, a: wg.exp(y),
    lambda y, a: y[0],
    lambda y, a: wg.sum(y, axis=0),
    lambda y, a: wg.concat([y, y]),
    lambda y, a: y.tolist(),
    lambda y, a: repr(y),
    lambda y, a: a + 1,
    lambda y, a: a > 1,
    lambda y, a: float(a),
]


def test_what_is_kept_after_the_recording_is_refused(backend: Any) -> None:
    def function(x: Any, a: Any) -> Any:
        globals()["KEPT"] += [wg.sin(x), a * 2]  # kept here, where the walk does not look
        return x * 2

    KEPT.clear()
    with pytest.raises(CompileError, match="escapes"):
        wg.compile(function)(wg.Tensor(backend.from_numpy(POINT)), 0.5)
    for use in USES:
        with pytest.raises(CompileError, match="which has ended") as caught:
            use(*KEPT)
        assert "# kept here" in str(caught.value)
