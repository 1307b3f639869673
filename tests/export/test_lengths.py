"""What Python computes from the length of a batch, and decides by it, in models of all batches."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.compiler.capture.errors import CompileError
from wengert.export import ExportError, onnx

pytest.importorskip("ndonnx")
runtime = pytest.importorskip("onnxruntime")

SIZES = (0, 1, 2, 4, 5, 6, 33, 1000)


def run(path: Path, x: Any) -> Any:
    options = runtime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    return runtime.InferenceSession(path, options).run(None, {"x": x})[0]


def example(n: int) -> Any:
    return np.random.default_rng(n).normal(size=(n, 3))


#: What can't be in one model for all batches, and the operation that the error names.
REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a minimum": (lambda x: x * min(len(x), 5), ">|<"),
    "one above all recordings": (lambda x: x * min(len(x), 5000), ">|<"),
    "a maximum": (lambda x: x / max(len(x), 4), ">|<"),
    "of elements": (lambda x: x * min(x.size, 12), ">|<"),
    "of an intermediate result": (lambda x: x * min(len(x[2:]), 4), ">|<"),
    "of what NumPy says": (lambda x: x * min(np.shape(x)[0], 5), ">|<"),
    "of elements, by NumPy": (lambda x: x * min(np.size(x), np.size(x, 0), 5), ">|<"),
    "a difference": (lambda x: x * abs(len(x) - 3), "abs"),
    "a quotient": (lambda x: x * (len(x) // 100), "//"),
    "a quotient by it": (lambda x: x * (100 // x.shape[0]), "//"),
    "a remainder": (lambda x: x * (x.shape[0] % 1000), "%"),
    "both": (lambda x: x * divmod(len(x), 1000)[1], "//"),
    "shifted": (lambda x: x * (len(x) >> 7), ">>"),
    "rounded": (lambda x: x * round(len(x) / 1000), "round"),
    "floored": (lambda x: x * math.floor(len(x) / 1000), "floor"),
    "ceiled": (lambda x: x * math.ceil(len(x) / 1000), "ceil"),
    "cut off": (lambda x: x * int(len(x) / 1000), "int"),
    "a float": (lambda x: x * min(float(len(x)), 5.0), "float"),
    "a root": (lambda x: x * min(math.sqrt(len(x)), 50.0), ">|<"),
    "a root of a float": (lambda x: x * min(math.sqrt(len(x) / 2), 20.0), ">|<"),
    "a divisor": (lambda x: x * math.gcd(len(x), 1000), "math.gcd"),
    "of several": (lambda x: x * math.dist([len(x)], [800]), "math.dist"),
    "a logarithm": (lambda x: x * int(math.log10(len(x))), "int"),
    "NumPy's minimum": (lambda x: x * float(np.minimum(len(x), 5)), "minimum"),
    "NumPy's minimum of a list": (lambda x: x * float(np.min([len(x), 800])), "np.min"),
    "NumPy's limits": (lambda x: x * float(np.clip(len(x) / 2, 0, 800)), "np.clip"),
    "an array": (lambda x: x * np.minimum(np.asarray(len(x)), 800).item(), "np.asarray"),
    "digits": (lambda x: x * len(str(len(x))), "str"),
    "digits of a string": (lambda x: x * len(f"{len(x)}"), "format"),
    "bits": (lambda x: x * len(x).bit_length(), "bit_length"),
    "whether it is whole": (lambda x: x * (2 - (len(x) / 800).is_integer()), "is_integer"),
    "a branch": (lambda x: x * 2 if len(x) > 100 else x, ">"),
    "a branch for one batch": (lambda x: x * 2 if x.shape[0] == 3 else x, "=="),
    "one between those that are tried": (lambda x: x * 2 if len(x) == 5000 else x, "=="),
    "by a difference": (lambda x: x * 2 if len(x) - 3 else x, "a condition"),
    "a member of a set": (lambda x: x * 2 if len(x) in {300, 301} else x, "hash"),
    "a dictionary's key": (lambda x: x * {7: 2.0}.get(len(x), 1.0), "hash"),
    "a slice": (lambda x: x[: min(len(x), 3)], ">|<"),
    "a loop": (lambda x: sum((x[i] for i in range(min(len(x), 3))), 0 * x[0]), ">|<"),
}


def stored(key: Any) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        y = x * 1.0
        y[key] = 2.0
        return y

    return function


#: What a constant beyond the recordings cuts: other batches have other formulas.
CUT: dict[str, Callable[[Any], Any]] = {
    "an end": lambda x: x[:100],
    "an end from behind": lambda x: x[:-100],
    "a beginning": lambda x: x[100:],
    "a beginning from behind": lambda x: x[-100:],
    "both": lambda x: x[3:100],
    "backwards": lambda x: x[100::-1],
    "backwards until there": lambda x: x[:100:-1],
    "backwards from behind": lambda x: x[-100::-1],
    "backwards until there from behind": lambda x: x[:-100:-1],
    "a step": lambda x: x[::100],
    "a mean": lambda x: wg.mean(x[:100], axis=0),
    "a mean by its length": lambda x: wg.sum(x[:100]) / len(x[:100]),
    "of a result": lambda x: wg.sort(x, axis=0)[-100:],
    "of more axes": lambda x: (x @ wg.matrix_transpose(x))[:, 100:],
    "what is stored": stored(slice(None, 100)),
    "what is stored behind": stored(slice(-100, None)),
    "what is added": lambda x: wg.at(x)[:100].add(1.0),
    "a diagonal": lambda x: wg.linalg.diagonal(x, offset=-100),
    "a trace": lambda x: wg.linalg.trace(x @ wg.matrix_transpose(x), offset=100),
    "a diagonal of NumPy's": lambda x: np.diagonal(x, -100),
    "parts": lambda x: np.array_split(x, 100)[0],
    "parts at places": lambda x: np.split(x, [2, 100])[1],
    "differences": lambda x: wg.grad(lambda y: wg.sum(wg.diff(y, n=100, axis=0) ** 2))(x),
}


def gradient(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: wg.grad(lambda y: wg.sum(function(y) ** 2))(x)


@pytest.mark.parametrize("name", CUT)
@pytest.mark.parametrize("differentiated", [False, True])
def test_what_a_constant_cuts_in_larger_batches_alone_is_an_error(
    tmp_path: Path, name: str, differentiated: bool
) -> None:
    function = gradient(CUT[name]) if differentiated else CUT[name]
    told = r"^test_lengths.py, line \d+ \(.*\): what a constant leaves of a length.* of (99|1\d\d)"
    with pytest.raises(ExportError, match=told):
        onnx(function, wg.asarray(example(7)), tmp_path / "m", check=False)


@pytest.mark.filterwarnings("ignore:(Degrees of freedom|invalid value|divide by zero)")
@pytest.mark.parametrize("count", [2, 10, 100])
def test_more_degrees_of_freedom_than_elements(tmp_path: Path, count: int) -> None:
    function = lambda x: wg.var(x, axis=0, correction=count)
    onnx(function, wg.asarray(example(7)), tmp_path / "m", check=False)
    for n in (*SIZES, count, count + 1):
        with np.errstate(all="ignore"):
            expected = function(wg.asarray(example(n))).numpy()
        np.testing.assert_allclose(run(tmp_path / "m", example(n)), expected, rtol=1e-12)
    with pytest.raises(ExportError, match="what a constant leaves of a length"):
        onnx(gradient(function), wg.asarray(example(7)), tmp_path / "m", check=False)


@pytest.mark.parametrize("name", REFUSED)
def test_what_differs_from_batch_to_batch_is_an_error(tmp_path: Path, name: str) -> None:
    function, operation = REFUSED[name]
    told = rf"^test_lengths.py, line \d+ \(.*\): .*({operation}) .* batch_axes=None"
    with pytest.raises(ExportError, match=told):
        onnx(function, wg.asarray(example(7)), tmp_path / "m", check=False)
    assert not (tmp_path / "m").exists()
    onnx(function, wg.asarray(example(7)), tmp_path / "m", check=False, batch_axes=None)
    x = example(7)
    np.testing.assert_allclose(run(tmp_path / "m", x), np.asarray(function(wg.asarray(x))))


#: What is right in one model for all batches.
FOLLOWED: dict[str, Callable[[Any], Any]] = {
    "pairs": lambda x: x * (len(x) * (len(x) - 1) // 2),
    "powers": lambda x: x * len(x) ** 2 + x * (len(x) + 1) ** -0.5,
    "arrays": lambda x: x * wg.asarray(len(x)) + wg.asarray([len(x), 2.0, len(x) ** 0.5]) * 3,
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
}


@pytest.mark.filterwarnings("ignore:(Degrees of freedom|Mean of empty|invalid value)")
@pytest.mark.parametrize("name", FOLLOWED)
def test_what_follows_the_batch_does_in_the_model(tmp_path: Path, name: str) -> None:
    function = FOLLOWED[name]
    onnx(function, wg.asarray(example(7)), tmp_path / "m", check=False)
    for n in SIZES:
        expected = function(wg.asarray(example(n)))
        np.testing.assert_allclose(run(tmp_path / "m", example(n)), expected.numpy(), rtol=1e-12)


def test_batches_that_the_function_refuses_are_refused(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        assert len(x) >= 3
        return wg.sum(x, axis=0) / (x.shape[0] - 2)

    onnx(function, wg.asarray(example(7)), tmp_path / "m", check=False)
    for n in SIZES:
        if n < 3:
            with pytest.raises(Exception, match="Reshape"):
                run(tmp_path / "m", example(n))
        else:
            expected = function(wg.asarray(example(n)))
            np.testing.assert_allclose(run(tmp_path / "m", example(n)), expected.numpy())


@pytest.mark.parametrize("check", [False, True])
def test_an_empty_batch_for_which_the_function_decides_otherwise(
    tmp_path: Path, check: bool
) -> None:
    function = lambda x: wg.sum(x, axis=0) / max(len(x), 1)
    with pytest.warns(RuntimeWarning, match="the model takes batches of 1 and more"):
        onnx(function, wg.asarray(example(7)), tmp_path / "m", check=check)
    for n in SIZES[1:]:
        expected = function(wg.asarray(example(n)))
        np.testing.assert_allclose(run(tmp_path / "m", example(n)), expected.numpy())
    with pytest.raises(Exception, match="Reshape"):
        run(tmp_path / "m", example(0))


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
    model = runtime.InferenceSession(tmp_path / "m")
    x = example(4)
    one, two = (
        model.run(["output"], {**state, "x": x, rate: np.asarray(r)})[0] for r in (0.1, 0.2)
    )
    np.testing.assert_allclose(two, 2 * one)


def test_operators_of_raw_arrays_are_the_librarys(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"raw\.mul has no form .* give wg\.asarray\(x\)"):
        onnx(lambda x: x * (len(x) + 3), example(7), tmp_path / "m")


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


def test_the_lengths_of_others_are_ints(tmp_path: Path) -> None:
    """Lengths are replaced while a function is recorded, and no longer."""
    x = wg.asarray(example(7))
    before = (len, np.shape, np.size, wg.Tensor.shape, wg.Tensor.size)
    onnx(lambda x: x * len(x), x, tmp_path / "m", check=False)
    with pytest.raises(ZeroDivisionError):
        onnx(lambda x: x * (1 // (len(x) - x.shape[0])), x, tmp_path / "m", check=False)
    assert (len, np.shape, np.size, wg.Tensor.shape, wg.Tensor.size) == before
    assert type(len(x)) is int
    assert type(x.shape[0]) is int
