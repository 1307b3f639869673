"""Emission: what the source looks like, and that it is found."""

import gc
import linecache
import traceback
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.bits import same_bits
from tests.compiler.recorded import trace_arrays
from wengert.backends import Backend, get_backend
from wengert.compiler.capture.trace import Trace
from wengert.compiler.emission.emit import emit
from wengert.compiler.passes import optimise

NUMPY = get_backend("numpy")


def test_source() -> None:
    """The whole of a small one: imports, buffers, the user's lines, the library's names."""

    def function(x: Any, w: Any) -> Any:
        h = x @ w
        return wg.sum(wg.exp(h) * 2.0)

    x, w = np.ones((2, 3)), np.ones((3, 4))
    program = trace_arrays(function, x, w)
    first = function.__code__.co_firstlineno
    lines = emit(program, NUMPY, name="train.step").source.splitlines()
    assert lines == [
        "import numpy as np",
        "",
        "buffer_1 = np.empty((2, 4), np.float64)",
        "",
        "def train_step(x0, x1):",
        f"    # test_emit.py:{first + 1}  h = x @ w",
        "    matmul_1 = x0.dot(x1, buffer_1)",
        f"    # test_emit.py:{first + 2}  return wg.sum(wg.exp(h) * 2.0)",
        "    exp_1 = np.exp(matmul_1, matmul_1)",
        "    multiply_1 = np.multiply(exp_1, 2.0, exp_1)",
        "    sum_1 = np.add.reduce(multiply_1, axis=None)",
        "    return (sum_1,)",
    ]


def test_lines_of_the_sweep() -> None:
    def function(x: Any) -> Any:
        y = wg.sin(x)
        z = wg.exp(y)
        return wg.autograd.grad(wg.sum(z), [x])

    source = emit(optimise(trace_arrays(function, np.ones(2), requires_grad=True)), NUMPY).source
    line = function.__code__.co_firstlineno + 1
    assert f"    # adjoint of test_emit.py:{line}  y = wg.sin(x)\n    d_cos_1" in source


def test_names_and_constants_are_python() -> None:
    trace = Trace()
    with trace.running():
        x = trace.input(np.ones((2, 3)), "fc1.weight")
        same = trace.input(np.ones((2, 3)), "fc1_weight")
        named = trace.input(np.ones(3), "0.bias")
        number = trace.input(0.5, "class")
        inf = trace.call("add", np.add, (x, float("-inf")), {})
        cut = trace.apply(NUMPY, "getitem", (same,), {"key": (slice(None, 1), None, ..., 2)})
        power = trace.call("multiply", np.multiply, (named, number**2), {})
        cast = trace.call("full", np.full, ((2,), 1 + 2j), {"dtype": np.dtype("complex64")})
        constant = trace.call("add", np.add, (named, trace.constant(np.arange(3.0))), {})
    program = trace.program([inf, cut, power, cast, constant])
    emitted = emit(program, NUMPY)
    assert "def step(fc1_weight, fc1_weight_2, p0_bias, class_):" in emitted.source
    assert "fc1_weight + float('-inf')" in emitted.source
    assert "fc1_weight_2[:1, None, ..., 2]" in emitted.source
    assert "pow_1 = class_ ** 2" in emitted.source
    assert "np.full((2,), (1+2j), dtype=np.complex64)" in emitted.source
    assert "steps = np.arange(0.0" not in emitted.source  # it makes integers alone
    assert "# constant: float64 of shape (3,)" in emitted.source
    given = np.ones((2, 3)), np.zeros((2, 3)), np.arange(3.0), 3.0
    for x, y in zip(program(*given), emitted.function(*given), strict=True):
        assert same_bits(x, y)


def test_a_name_is_not_given_again_while_something_stands_for_it(backend: Backend) -> None:
    def function(x: Any, y: Any) -> Any:
        first = wg.exp(x)
        turned = wg.matrix_transpose(first)
        second = wg.exp(y)
        third = wg.exp(second)
        return wg.exp(third @ turned), wg.exp(second), first

    arrays = [backend.from_numpy(np.full((2, 2), value)) for value in (0.1, 0.2)]
    program = trace_arrays(function, *arrays)
    emitted = emit(optimise(program), backend)
    for x, y in zip(program(*arrays), emitted.function(*arrays), strict=True):
        assert same_bits(backend.to_numpy(x), backend.to_numpy(y)), emitted.source


def test_tracebacks_show_the_source() -> None:
    program = trace_arrays(lambda x: wg.linalg.inv(x), np.eye(2))
    emitted = emit(program, NUMPY, name="broken")
    with pytest.raises(np.linalg.LinAlgError) as caught:
        emitted.function(np.zeros((2, 2)))
    shown = "".join(traceback.format_exception(caught.value))
    assert "in broken" in shown and "inv_1 = np.linalg.inv(x0)" in shown


def test_the_source_goes_with_the_function() -> None:
    emitted = emit(trace_arrays(lambda x: wg.sin(x), np.ones(2)), NUMPY)
    file = emitted.function.__code__.co_filename
    assert "".join(linecache.getlines(file)) == emitted.source
    linecache.checkcache()
    assert linecache.getlines(file)
    del emitted
    gc.collect()
    assert file not in linecache.cache
