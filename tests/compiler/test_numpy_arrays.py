"""NumPy's arrays inside compiled functions, on every backend: as Tensors, indices and values."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.bits import same_bits

F = wg.nn.functional

W = np.arange(12.0).reshape(4, 3) / 7
ROW = np.arange(3.0) / 3
ROWS = np.array([2, 0])
MASK = np.array([True, False, True, True])
NUMBER = np.float64(1.5)


def _set(x: Any, key: Any, value: Any) -> Any:
    made = wg.clone(x)
    made[key] = value
    return made


def _hvp(t: Any) -> Any:
    gradient = wg.grad(lambda v: wg.sum(v**3 * wg.asarray(W)))
    return wg.grad(lambda u: wg.sum(gradient(u) * wg.asarray(W)))(t)


CASES: dict[str, Callable[[Any], Any]] = {
    "asarray": lambda t: t * wg.asarray(W),
    "tensor": lambda t: t * wg.tensor(W, dtype=t.dtype, device=t.device),
    "another dtype": lambda t: wg.asarray(W, dtype=wg.float32),
    "computed by NumPy": lambda t: t * wg.asarray(np.sin(W)[:, :1] * 2 + W[::-1][0, 0]),
    "parts of what is computed": lambda t: t * ((W + 1) * 2)[1:, None][0, 0] * np.exp(W)[:, 0:1],
    "a list beside it": lambda t: t * wg.asarray(np.add(np.negative(W), [1.0, 2.0, 3.0])),
    "reflected": lambda t: t * (1.0 - W) - 2 / (W + 1) + t * (W @ W.T @ W),
    "two dtypes": lambda t: wg.asarray(W * ROWS[0] + np.float32(2) ** ROWS[0] - 3 ** ROWS[1]),
    "a comparison": lambda t: wg.where((W > 0.5) | ~MASK[:, None], t, 0.0),
    "rows": lambda t: sum(t * row + row[0] for row in W),
    "an operand": lambda t: t * W + W / (t + 1) - W * t,
    "its shape": lambda t: t * float(W.shape[0] + W.ndim + W.size + len(W)),
    "from_numpy": lambda t: wg.from_numpy(W) @ t.T,
    "a list of arrays": lambda t: t * wg.asarray([ROW, ROW, ROW, ROW]),
    "a list of numbers": lambda t: t[0, 0] + wg.asarray([NUMBER, 1.0, NUMBER]),
    "a number": lambda t: t * NUMBER + wg.asarray(NUMBER),
    "an index": lambda t: t[ROWS],
    "an index beside a list": lambda t: t[ROWS, [1, 2]],
    "take": lambda t: wg.take(t, wg.asarray(ROWS), axis=0),
    "where": lambda t: wg.where(wg.asarray(MASK)[:, None], t, 0.0),
    "set": lambda t: _set(t, 0, ROW),
    "set at an index": lambda t: _set(t, ROWS, ROW),
    "classes": lambda t: F.cross_entropy(t, wg.asarray(np.array([0, 1, 2, 0]))),
    "a gradient": lambda t: wg.grad(lambda u: wg.sum(u * wg.asarray(W)))(t),
    "a tangent": lambda t: wg.func.jvp(lambda u: u * u, (t,), (wg.asarray(W),))[1],
    "a second derivative": _hvp,
}


@pytest.mark.backend
@pytest.mark.parametrize("name", CASES)
def test_numpy_arrays(name: str) -> None:
    t = wg.asarray((np.arange(12.0) / 5).reshape(4, 3))
    expected, compiled = CASES[name](t), wg.compile(CASES[name])
    for _ in range(3):  # recorded, checked, replayed
        found = compiled(t)
        assert type(found.array) is type(expected.array)
        assert same_bits(found.numpy(), expected.numpy())


@pytest.mark.backend
def test_numpy_arguments_are_read_at_each_call() -> None:
    compiled = wg.compile(lambda x, rows: wg.asarray(x)[rows] * 2.0)
    for i in range(4):
        x, rows = W + i, np.array([i % 2, 3])
        np.testing.assert_array_equal(compiled(x, rows).numpy(), x[rows] * 2)


class Exporter:
    """Memory of another library, whose arrays NumPy does not make writeable again."""

    def __init__(self, array: Any) -> None:
        self.array, self.__array_interface__ = array, array.__array_interface__


def _of_what_is_read_only() -> Any:
    array = np.ones(4)
    view = array[1:]
    array.flags.writeable = False
    return view


@pytest.mark.parametrize(
    "make", [lambda: np.asarray(Exporter(np.ones(4)))[1:], _of_what_is_read_only, lambda: W[0]]
)
def test_arrays_that_numpy_does_not_unlock(make: Any) -> None:
    """The recording failed, and parameters stayed traced."""
    w, x = wg.nn.Parameter(wg.ones(3)), make()
    compiled = wg.compile(lambda x: wg.sum(w.detach() * wg.asarray(x)))
    for _ in range(3):
        assert same_bits(compiled(x), compiled.eagerly(x))
    assert x.flags.writeable
    assert type(w.array) is np.ndarray


@pytest.mark.backend
def test_raw_arrays_of_the_library(backend: Any) -> None:
    """They are inputs; views of them, and numbers beside them, are those of each call."""

    def function(x: Any, k: float) -> Any:
        return (
            (2.0 - x * k)[1:, ...] ** 2,
            wg.asarray(x[0, ...] > k) & True,
            wg.asarray(x.T + k) * k,
        )

    compiled = wg.compile(function, check=0)
    for i in range(4):
        x, k = backend.from_numpy(W + i), 0.5 + i
        for found, expected in zip(compiled(x, k), function(x, k), strict=True):
            assert type(found) is type(expected)
            a, b = [backend.to_numpy(getattr(y, "array", y)) for y in (found, expected)]
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-6)
    assert compiled.report.recordings == 1


def _of_torch(expression: str) -> Any:
    """The values of a compiled expression of PyTorch's arrays, whose code has no module's name."""
    scope: dict[str, Any] = {"torch": pytest.importorskip("torch"), "np": np}
    exec(f"def function(x, r): return x * ({expression})", scope)
    t = scope["torch"].ones(3) * 2
    return wg.compile(scope["function"])(wg.asarray(t), t).numpy()


FUNCTIONS = (
    "is_tensor(r) exp(r) ones(3)*r stack([r])[0] as_tensor(r) tensor(r) ones(3)[r>0] full((3,),r)"
)


@pytest.mark.parametrize(
    "call", [*[f"torch.{x}" for x in FUNCTIONS.split()], "np.ones(3)*r", "isinstance(r, int)"]
)
def test_refused_functions_of_torch(call: str) -> None:
    """They read memory, which an array that stands for another has not."""
    with pytest.raises(wg.compiler.CompileError, match=r"raw array.*write wg\.asarray"):
        _of_torch(call)


@pytest.mark.parametrize("call", ["r * torch.ones(3)", "4.0 * r - 3.0 * r", "abs(-r)"])
def test_operators_of_torch(call: str) -> None:
    np.testing.assert_array_equal(_of_torch(call), [4.0, 4.0, 4.0])


def _added(t: Any, w: Any) -> Any:
    w += t.shape[0]
    return t * w


ASARRAY = r"line \d+.*write wg\.asarray\(x\) first"
REFUSED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "in place": (_added, ASARRAY),
    "a mask": (lambda t, w: t[0, 0] * w[w > 0.5], ASARRAY),
    "a mask in a list": (lambda t, w: t[0, 0] * w[[w[0] > 0.5],], ASARRAY),
    "a ufunc's method": (lambda t, w: t * np.add.reduce(w), r"np\.add reduces.*wg\.asarray"),
    "into an array": (lambda t, w: t * np.sin(w, out=np.ones((4, 3))), ASARRAY),
    "a function": (lambda t, w: t * np.concatenate([w, w])[:4], ASARRAY),
    "where": (lambda t, w: t * np.where(w, w, 0), r"np\.where is called.*wg\.asarray"),
    "a median": (lambda t, w: t * np.median(w), "median is called with a raw array"),
    "a method": (lambda t, w: t * w.mean(), r"mean is asked.*wg\.asarray"),
    "an item": (lambda t, w: t * w.item(0), r"item is asked.*wg\.asarray"),
    "sorting": (lambda t, w: w.sort(), "sort is asked of a raw array"),
    "an attribute": (lambda t, w: t * w.real, ASARRAY),
    "a number": (lambda t, w: t * float(w[0, 0]), ASARRAY),
    "divmod": (lambda t, w: t * divmod(w, 2)[0], r"arrays.py, line.*divmod.*wg\.asarray"),
    "a copy": (lambda t, w: t * copy.copy(w), ASARRAY),
    "text": (lambda t, w: t * len(str(w)), ASARRAY),
    "its type": (lambda t, w: t * (2 if type(w) is np.ndarray else 3), "asks for the type"),
    "a view": (lambda t, w: wg.reshape(w, (3, 4)), "shares memory"),
    "a part that is returned": (lambda t, w: (t * 2, w[1:]), "shares memory"),
}


@pytest.mark.backend
@pytest.mark.parametrize("name", REFUSED)
def test_what_a_replay_would_not_do_with_numpy_arrays_is_an_error(name: str) -> None:
    t = wg.asarray((np.arange(12.0) / 5).reshape(4, 3))
    function, says = REFUSED[name]
    with pytest.raises(wg.compiler.CompileError, match=says):
        wg.compile(function)(t, W.copy())


def test_arrays_of_dtypes_without_a_name_are_refused() -> None:
    with pytest.raises(wg.compiler.CompileError, match="array of"):
        wg.compile(lambda x: x * (x.dtype == object))(np.ones(3, np.longdouble))
