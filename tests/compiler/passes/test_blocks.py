"""Calls on large arrays are made for blocks of rows, and give the same bits."""

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.compiler.passes import blocks


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of some hundred elements are large."""
    monkeypatch.setattr(blocks, "LARGE", 1 << 11)
    monkeypatch.setattr(blocks, "BLOCK", 1 << 9)


def draw(*shape: int, seed: int = 0, dtype: str = "float64") -> wg.Tensor:
    return wg.asarray(np.random.default_rng(seed).normal(size=shape).astype(dtype))


def arithmetic(x: Any, y: Any) -> Any:
    z = x * y
    return ((z + 1) * x - wg.exp(-wg.abs(z))) * wg.tanh(x - y)


def row_of_a_result(x: Any, y: Any) -> Any:
    z = wg.exp(x) * 2 + y
    z = z * z[:1] + 1  # may be written over z, whose first row each block reads
    return (z * z[5:6] - x * 2) * z + wg.abs(z)


def element_of_a_result(x: Any, y: Any) -> Any:
    z = wg.exp(x)
    z = z * z[0, 0, ...] * 0.5  # an array without axes, in the memory of z
    return wg.tanh(wg.tanh(z * 2 - y) * 0.5)


def reversed_result(x: Any, y: Any) -> Any:
    z = wg.exp(x) * 2 + y
    z = wg.flip(z, axis=0) * z + x - 1
    return z * z + y * 2 - 1, wg.sum(z), wg.cumulative_sum(z * y + 1 - x, axis=0)


def gradients(x: Any, y: Any) -> Any:
    return wg.grad(lambda x, y: wg.sum(wg.sqrt(arithmetic(x, y) ** 2 + 1) * y), (0, 1))(x, y)


#: Functions with the shapes of their arguments.
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
    "vectors": (arithmetic, (1000,), (1000,)),
    "matrices": (arithmetic, (301, 7), (301, 7)),
    "rows that are long": (arithmetic, (5, 640), (5, 640)),
    "a row": (arithmetic, (301, 7), (7,)),
    "a matrix of one row": (arithmetic, (301, 7), (1, 7)),
    "a column": (arithmetic, (301, 7), (301, 1)),
    "a vector as long as a column": (arithmetic, (64, 64), (64,)),
    "a row of a result": (row_of_a_result, (64, 96), (64, 96)),
    "an element of a result": (element_of_a_result, (64, 96), (64, 96)),
    "a result that is reversed": (reversed_result, (301, 7), (301, 7)),
    "gradients": (gradients, (301, 7), (301, 7)),
    "gradients of a row": (gradients, (301, 7), (7,)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_blocks_give_the_bits_of_whole_calls(name: str, dtype: str) -> None:
    function, *shapes = FUNCTIONS[name]
    compiled = wg.compile(function)
    for k in range(4):
        given = [draw(*shape, seed=k + i, dtype=dtype) for i, shape in enumerate(shapes)]
        found, expected = compiled(*given), function(*given)
        for x, y in zip(wg.func.tree_leaves(found), wg.func.tree_leaves(expected), strict=True):
            assert x.numpy().tobytes() == y.numpy().tobytes()
    assert "for at in blocks" in compiled.source


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"momentum": 0.9, "nesterov": True}),
        ("SGD", {"weight_decay": 0.1}),
        ("Adam", {}),
        ("Adam", {"amsgrad": True}),  # NumPy's maxima take their memory by name
        ("Adamax", {}),
        ("RMSprop", {"centered": True}),
    ],
)
@pytest.mark.parametrize("layers", [1, 2])
def test_updates_in_place(layers: int, name: str, options: dict[str, Any]) -> None:
    def train(wrap: Callable[..., Any]) -> tuple[list[bytes], Any]:
        wg.manual_seed(0)
        more = [wg.nn.Tanh(), wg.nn.Linear(60, 200)] if layers == 2 else []
        model = wg.nn.Sequential(wg.nn.Linear(200, 60, bias=layers == 2), *more)
        optimizer = getattr(wg.optim, name)(model.parameters(), lr=0.01, **options)

        @wrap
        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = ((model(x) - 1) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        losses = [step(draw(30, 200, seed=k, dtype="float32")) for k in range(6)]
        left = [*losses, *model.parameters()]
        return [x.detach().numpy().tobytes() for x in left], step

    (found, step), (expected, _) = train(wg.compile), train(lambda f: f)
    assert found == expected
    # A handler of signals may run within a loop, and has to find the old or the new values.
    loops = [x for x in ast.walk(ast.parse(step.source)) if isinstance(x, ast.For)]
    assert not any("writable" in ast.unparse(loop) for loop in loops)
    assert "call for at in blocks" in step.source


@pytest.mark.parametrize("name", ["at", "call"])
def test_an_argument_may_be_named_as_what_a_loop_uses(name: str) -> None:
    weight = wg.nn.Parameter(wg.zeros((60, 200)))
    optimizer = wg.optim.SGD([weight], lr=0.5, momentum=0.5)
    held: dict[str, Any] = {"optimizer": optimizer, "weight": weight}
    exec(f"def step({name}):\n    weight.grad = {name}\n    optimizer.step()", held)
    step = wg.compile(held["step"])
    for _ in range(3):
        step(wg.ones((60, 200)))
    assert "call for at in blocks" in step.source
    assert "eagerly" not in str(step.report)
    np.testing.assert_array_equal(weight.detach().numpy(), -0.5 * (1 + 1.5 + 1.75))


def test_a_program_by_blocks_is_saved(tmp_path: Any) -> None:
    step = wg.compile(gradients)
    x, y = draw(301, 7), draw(301, 7, seed=1)
    for _ in range(3):
        expected = step(x, y)
    step.save(tmp_path / "step.py")
    text = (tmp_path / "step.py").read_text()
    assert "for at in blocks" in text
    held: dict[str, Any] = {"__file__": str(tmp_path / "step.py"), "__name__": "step"}
    exec(compile(text, "step.py", "exec"), held)
    for one, other in zip(held["gradients"](x.numpy(), y.numpy()), expected, strict=True):
        np.testing.assert_array_equal(one, other.numpy())


def test_short_runs_and_small_arrays_are_not_divided() -> None:
    short = wg.compile(lambda x: wg.exp(x * 2))
    small = wg.compile(lambda x: arithmetic(x, x))
    for _ in range(3):
        short(draw(1000))
        small(draw(30))
    assert "for at in" not in short.source + small.source


def test_a_vector_of_a_processor_has_the_same_elements_as_in_one_call() -> None:
    for shape in ((10_000,), (3000, 3), (400, 48), (100, 1000)):
        assert _rows(shape) * np.prod(shape[1:], dtype=int) % blocks.VECTOR == 0


def _rows(shape: tuple[int, ...]) -> int:
    compiled = wg.compile(lambda x: arithmetic(x, x))
    for _ in range(3):
        compiled(draw(*shape))
    return int(compiled.source.partition("slice(i, i + ")[2].partition(")")[0])
