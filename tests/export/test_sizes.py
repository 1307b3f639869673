"""What Python computes from the length of a batch, in models of all batches."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.export.sessions import Session
from wengert.compiler.capture.errors import CompileError
from wengert.export import ExportError, onnx

pytest.importorskip("ndonnx")
runtime = pytest.importorskip("onnxruntime")

SIZES = (1, 2, 4, 5, 6, 33, 1000)


def run(path: Path, x: Any) -> Any:
    return Session(path, {})(x=x)["output"]


def example(n: int) -> Any:
    return np.random.default_rng(n).normal(size=(n, 3))


#: What has no formula, and the operation that the error names.
REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a minimum": (lambda x: x * min(len(x), 6), "a number"),
    "a difference": (lambda x: x * abs(len(x) - 6), "a number"),
    "a quotient": (lambda x: x * (len(x) // 2), "a number"),
    "a remainder": (lambda x: x * (x.shape[0] % 7), "a number"),
    "a logarithm": (lambda x: x * math.log(len(x)), "a number"),
    "rounded": (lambda x: x * round(len(x) / 2), "a number"),
    "an array": (lambda x: x * np.minimum(np.asarray(len(x)), 6).item(), "a number"),
    "a branch": (lambda x: x * 2 + 1 if len(x) > 6 else x * 2, "the number of operations"),
    "other operations": (lambda x: x * 2 if len(x) > 6 else x + 2, "which operation runs"),
    "a loop": (lambda x: sum((x[i] for i in range(len(x))), 0 * x[0]), "the number of operations"),
    "a step": (lambda x: x[::2] + wg.ones((-(-len(x) // 2), 3)), "a number"),
    "a list": (lambda x: x * wg.asarray([len(x), 2.0, 1.0]), "does not come from the arguments"),
    "places": (lambda x: x[np.arange(len(x))[::-1].copy()], "does not come from the arguments"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_formula_is_an_error(tmp_path: Path, name: str) -> None:
    function, what = REFUSED[name]
    told = rf"^test_sizes.py, line \d+ \(.*\): .*{what}.* batch_axes=None"
    with pytest.raises(ExportError, match=told):
        onnx(function, wg.asarray(example(7)), tmp_path / "m")
    assert not (tmp_path / "m").exists()
    onnx(function, wg.asarray(example(7)), tmp_path / "m", batch_axes=None)
    x = example(7)
    np.testing.assert_allclose(run(tmp_path / "m", x), np.asarray(function(wg.asarray(x))))


def gradient(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: wg.grad(lambda y: wg.sum(function(y) ** 2))(x)


#: What is another function in batches that no recording has: the check finds it where asked.
FOUND: dict[str, Callable[[Any], Any]] = {
    "a minimum": lambda x: x * min(len(x), 5000),
    "a branch": lambda x: x * 2 if len(x) > 1000 else x,
    "a branch for one batch": lambda x: x * 2 if len(x) == 1024 else x,
    "a quotient": lambda x: x * (len(x) // 1000),
    "digits": lambda x: x * len(str(len(x) + 900)),
    "a mean by its length": lambda x: wg.sum(x[:100]) / len(x[:100]),
    "what is cut": gradient(lambda x: x[:100]),
    "what is cut behind": gradient(lambda x: x[-100:]),
    "a diagonal": lambda x: wg.linalg.diagonal(x, offset=-100),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_check_finds_what_differs_at_its_sizes(tmp_path: Path, name: str) -> None:
    size = 6000 if name == "a minimum" else 1024
    with pytest.raises(ExportError, match=rf"of batch size {size}, .*batch_axes=None"):
        onnx(FOUND[name], wg.asarray(example(7)), tmp_path / "m", check_sizes=(2, size))
    assert not (tmp_path / "m").exists()


@pytest.mark.filterwarnings("ignore:(Degrees of freedom|invalid value|divide by zero)")
@pytest.mark.parametrize("count", [2, 10, 100])
def test_more_degrees_of_freedom_than_elements(tmp_path: Path, count: int) -> None:
    function = lambda x: wg.var(x, axis=0, correction=count)
    onnx(function, wg.asarray(example(7)), tmp_path / "m", check_sizes=SIZES)
    for n in (*SIZES, count, count + 1):
        with np.errstate(all="ignore"):
            expected = function(wg.asarray(example(n))).numpy()
        np.testing.assert_allclose(run(tmp_path / "m", example(n)), expected, rtol=1e-12)
    if count > 2:  # in one row, and in two, the gradient is nan by any formula
        with pytest.raises(ExportError, match=r"depends on the batch size|of batch size"):
            onnx(gradient(function), wg.asarray(example(7)), tmp_path / "m", check_sizes=(200,))


#: What is right in one model for all batches.
FOLLOWED: dict[str, Callable[[Any], Any]] = {
    "pairs": lambda x: x * (len(x) * (len(x) - 1) // 2),
    "powers": lambda x: x * len(x) ** 2 + x * (len(x) + 1) ** -0.5,
    "arrays": lambda x: x * wg.asarray(len(x)) + wg.asarray(len(x) ** 0.5, dtype=x.dtype),
    "filled arrays": lambda x: wg.full((3,), len(x)) * x + wg.full_like(x, 2 * len(x)),
    "a magnitude": lambda x: x * abs(-len(x)) + x * round(x.size),
    "of features": lambda x: x * min(x.shape[1], 5) * (x.shape[1] // 2) * int(x.shape[1]),
    "a branch on features": lambda x: x * 2 if x.shape[-1] in {3, 4} else x,
    "a branch that all take": lambda x: x * 2 if len(x) + 1 > 0 else x,
    "a comparison of lengths": lambda x: x * 2 if len(x) == len(x + 1) else x,
    "shapes": lambda x: x + wg.reshape(wg.arange(3 * len(x), dtype=x.dtype), (len(x), x.shape[1])),
    "an operand on the left": lambda x: len(x) * x - len(x) + 1.5 * len(x) / (2 + x.shape[0]),
    "a raw array's": lambda x: wg.grad(lambda y: np.sum(y**2) / (len(y) + 1))(x),
    "NumPy's": lambda x: x * np.size(x) / np.shape(x)[0] + np.size(x, axis=0),
    "roots": lambda x: x * math.sqrt(len(x) / 2) / math.sqrt(x.shape[1]) * np.sqrt(x.shape[1]),
    "slices": lambda x: wg.sum(x[2:], axis=0) - wg.sum(x[::-1][1:] ** 2, axis=0),
    "slices' gradients": lambda x: wg.grad(lambda y: wg.sum(y[1:] ** 2) - wg.sum(y[::-1] ** 3))(x),
    "spread": lambda x: wg.grad(lambda y: wg.var(y, correction=1))(x) * wg.std(x, correction=1),
    "a list": lambda x: x + sum([len(x)] * len(x.shape)),
    "a quotient of two lengths": lambda x: x * (x.shape[0] / (x.shape[0] + 1)),
    "ones": lambda x: x + wg.ones((x.shape[0], 1), dtype=x.dtype),
    "an identity": lambda x: x @ x.T + wg.eye(x.shape[0], dtype=x.dtype),
    "differences": lambda x: (wg.expand_dims(x, axis=0) - wg.expand_dims(x, axis=1)) ** 2,
    "a reshaping": lambda x: wg.reshape(x, (-1,)),
    "repeats": lambda x: wg.concat([x, wg.repeat(x, 2, axis=0)]),
}


@pytest.mark.filterwarnings("ignore:(Degrees of freedom|Mean of empty|invalid value)")
@pytest.mark.parametrize("name", FOLLOWED)
def test_what_follows_the_batch_does_in_the_model(tmp_path: Path, name: str) -> None:
    function = FOLLOWED[name]
    onnx(function, wg.asarray(example(7)), tmp_path / "m")
    for n in SIZES:
        found, expected = run(tmp_path / "m", example(n)), function(wg.asarray(example(n))).numpy()
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_batches_that_the_function_refuses_are_refused(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        assert len(x) >= 3
        return wg.sum(x, axis=0) / (x.shape[0] - 2)

    onnx(function, wg.asarray(example(7)), tmp_path / "m", check_sizes=(1, 2, 3))
    for n in SIZES:
        if n < 3:
            with pytest.raises(Exception, match="Reshape"):
                run(tmp_path / "m", example(n))
        else:
            expected = function(wg.asarray(example(n)))
            np.testing.assert_allclose(run(tmp_path / "m", example(n)), expected.numpy())


def test_a_length_beside_numbers_of_the_state(tmp_path: Path) -> None:
    """A learning rate stays an input where it is multiplied by a length."""
    w = wg.tensor([1.0, 2.0, 3.0], dtype="float64", requires_grad=True)
    optimizer = wg.optim.SGD([w], lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = wg.sum((x @ w) ** 2) * (optimizer.param_groups[0]["lr"] * len(x))
        loss.backward()
        optimizer.step()
        return loss.detach()

    step(wg.asarray(example(7)))
    state = onnx(step, wg.asarray(example(7)), tmp_path / "m")
    (rate,) = [name for name in state if name.endswith("lr")]
    model, given = runtime.InferenceSession(tmp_path / "m"), {**state, "x": example(4)}
    one, two = (model.run(["output"], {**given, rate: np.asarray(r)})[0] for r in (0.1, 0.2))
    np.testing.assert_allclose(two, 2 * one)


def test_operators_of_raw_arrays_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"raw\.mul has no form .*give wg\.asarray\(x\)"):
        onnx(lambda x: x * (x.shape[0] + 3), example(7), tmp_path / "m")


def test_a_length_that_is_kept_is_a_tensor(tmp_path: Path) -> None:
    class Counter(wg.nn.Module):
        def __init__(self, rows: Any) -> None:
            super().__init__()
            self.rows = rows

        def forward(self, x: Any) -> Any:
            self.rows += len(x)
            return x * 2, len(x)

    with pytest.raises(CompileError, match=r"self\.rows from 0 to .*make it a Tensor"):
        onnx(Counter(0), wg.asarray(example(7)), tmp_path / "m")
    state = onnx(Counter(wg.asarray(0)), wg.asarray(example(7)), tmp_path / "m")
    model = runtime.InferenceSession(tmp_path / "m")
    names = [x.name for x in model.get_outputs()]
    for n in SIZES:
        found = dict(zip(names, model.run(None, {**state, "x": example(n)}), strict=True))
        assert (found["next.rows"], found["output.1"]) == (n, n)
