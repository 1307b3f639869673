"""Kernels in pieces: programs call what NumPy's kernels call, and give what these give."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.bits import same_bits
from wengert.backends import get_backend, namespaces, numpy_networks
from wengert.compiler.capture.trace import Trace
from wengert.compiler.capture.traced_number import TracedNumber
from wengert.compiler.emission.emit import emit
from wengert.compiler.facts import KERNELS, PLAIN
from wengert.compiler.passes import optimise
from wengert.compiler.program import Program
from wengert.nn.kernels import numpy_classification

NUMPY = get_backend("numpy")
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(5, 7)), RNG.normal(size=(5, 7))
TALL, STACK = RNG.normal(size=(200, 5)), RNG.normal(size=(4, 5, 6))
TARGET = np.array([0, 3, 6, 2, 3])
#: Few rows for many others, in single precision.
FEW, MANY = (RNG.normal(size=(n, 128)).astype(np.float32) for n in (16, 64))

#: Operands and parameters of kernels.
CALLS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "add_normalised": [
        ((p, a, m, v, 1e-8), {})
        for p, m, v in ((X, Y, Y * Y), (X[0, 0].copy(), Y[0, 0], Y[0, 0] * Y[0, 0]))
        for a in (1, -0.5)
    ],
    "add_squares": [
        ((a, x, b, g), {})
        for x, g in ((X, Y), (X[0, 0].copy(), Y[0, 0]))
        for a in (1, 0.5)
        for b in (1, 0.25)
    ],
    "astype": [((X,), {"dtype": np.dtype(dtype)}) for dtype in (np.float32, bool, np.float64)],
    "axpby": [((a, X, b, Y), {}) for a in (1, 0.5) for b in (1, -0.25)],
    "broadcast_to": [((X[0],), {"shape": (3, 7)}), ((X[0],), {"shape": (1 << 14, 7)})],
    "clip": [((X, -0.5, 0.5), {})],
    "concat_arrays": [((X, Y), {"axis": 1})],
    "count_nonzero": [((X,), {"axis": 0})],
    "expand_dims": [((X,), {"axis": 1}), ((X,), {"axis": -1})],
    "log_softmax": [((x,), {"axis": axis}) for x in (X, X + 1j) for axis in ((0,), (1,), (0, 1))],
    "linear": [
        *[((X, RNG.normal(size=(3, 7)), bias), {}) for bias in (None, np.arange(3.0))],
        *[((FEW, MANY, bias), {}) for bias in (None, np.arange(64, dtype=np.float32))],
    ],
    "expit": [
        *[((x,), {}) for x in (X, X[0, 0].copy(), X.astype(np.float32), RNG.normal(size=(70, 60)))]
    ],
    "logistic_bell": [((X,), {"width": width}) for width in (1, 2)],
    "mask": [((X, np.maximum(Y, 0)), {})],
    "matmul": [((X, Y.T.copy()), {}), ((X[None], Y.T.copy()[None]), {})],
    "max": [((x,), {"axis": 1, "keepdims": True}) for x in (X, TALL)],
    "mean": [((X,), {"axis": axis}) for axis in (None, 0)],
    "min": [((x,), {"axis": 1}) for x in (X, TALL)],
    "permute_dims": [((X,), {"axes": (1, 0)})],
    "prod": [((X,), {"axis": (0, 1)})],
    "relu": [((X,), {}), ((RNG.normal(size=(1 << 8, 1 << 7)),), {})],
    "reshape": [((X,), {"shape": (7, 5)})],
    "softmax": [((x,), {"axis": axis}) for x in (X, X + 1j) for axis in ((0,), (1,), (0, 1))],
    "softmax_cross_entropy_parts": [
        ((x, TARGET), {"ignore_index": i, "reduction": reduction, "label_smoothing": smoothing})
        for x in (X, X.astype(np.float32), RNG.normal(size=(5, 20)))
        for i in (-100, 3)
        for reduction in ("none", "sum", "mean")
        for smoothing in (0.0, 0.1)
    ],
    "std": [((X,), {"axis": 1})],
    "sum": [
        *[((X,), {"axis": axis}) for axis in (None, 0, 1)],
        *[((STACK,), {"axis": axis, "keepdims": True}) for axis in (0, (1,), -1, (0, 1), (0, 2))],
        ((STACK.T,), {"axis": (1,)}),
    ],
    "take_along_axis": [((X, np.argsort(X, axis=1)), {"axis": 1})],
    "tensordot": [((X, Y), {"axes": ((0,), (0,))})],
    "var": [((X,), {"axis": 1, "correction": 1.0})],
    "where": [((X > 0, X, 0), {}), ((X > 0, 0, X), {}), ((X > 0, X, Y), {}), ((X > 0, X, 2.0), {})],
}


def recorded(name: str, operands: tuple[Any, ...], parameters: dict[str, Any]) -> Program:
    trace = Trace()
    with trace.running():
        given = [trace.input(x) if hasattr(x, "dtype") else x for x in operands]
        answer = trace.apply(NUMPY, name, given, parameters)
        return trace.program(answer if isinstance(answer, tuple) else (answer,))


def arrays(operands: tuple[Any, ...]) -> list[Any]:
    return [x for x in operands if hasattr(x, "dtype")]


def kernel(name: str) -> Callable[..., Any]:
    return NUMPY.kernels[name]


@pytest.mark.whole
@pytest.mark.parametrize("name", CALLS)
def test_the_pieces_give_what_the_kernel_gives(name: str) -> None:
    for operands, parameters in CALLS[name]:
        expected = kernel(name)(
            *[np.array(x) if type(x) is np.ndarray else x for x in operands], **parameters
        )
        program = recorded(name, operands, parameters)
        axis, keepdims = parameters.get("axis"), parameters.get("keepdims", False)
        looks = KERNELS.get(kernel(name), PLAIN).chooses
        whole = looks is not None and looks(operands[0], axis, keepdims) is not None
        if name not in ("broadcast_to", "std", "take_along_axis", "tensordot") and not whole:
            assert all(step.function is not kernel(name) for step in program.instructions)
        function = emit(optimise(program), NUMPY).function
        for found in (program(*arrays(operands)), *[function(*arrays(operands))] * 2):
            several = expected if isinstance(expected, tuple) else (expected,)
            assert all(same_bits(x, y) for x, y in zip(found, several, strict=True))


@pytest.mark.parametrize("name", [*numpy_networks.KERNELS, *numpy_classification.KERNELS])
def test_other_libraries_compose_what_the_kernels_give(name: str) -> None:
    for module in ("wengert.nn.functional", "wengert.optim"):  # where they are composed
        import_module(module)
    strict = get_backend("array_api_strict")
    xp = namespaces[type(strict.from_numpy(np.ones(1)))]
    for operands, parameters in CALLS[name]:
        given = [np.array(x) if isinstance(x, np.ndarray) else x for x in operands]
        expected = kernel(name)(*given, **parameters)
        given = [strict.from_numpy(np.asarray(x)) if hasattr(x, "dtype") else x for x in operands]
        found = getattr(xp, name)(*given, **parameters)
        found, expected = (x if isinstance(x, tuple) else (x,) for x in (found, expected))
        for ours, theirs in zip(found, expected, strict=True):
            digits = 1e-5 if theirs.dtype == np.float32 else 1e-12
            np.testing.assert_allclose(strict.to_numpy(ours), theirs, rtol=digits, atol=digits)


@pytest.mark.whole
@pytest.mark.parametrize("name", CALLS)
def test_elements_in_another_order(name: str) -> None:
    """What a kernel writes keeps its order: where a program's does not, it is called whole."""
    for operands, parameters in CALLS[name]:
        turned = [np.asfortranarray(x) if type(x) is np.ndarray else x for x in operands]
        expected = kernel(name)(*turned, **parameters)
        program = recorded(name, tuple(turned), parameters)
        found = emit(optimise(program), NUMPY).function(*arrays(tuple(turned)))
        several = expected if isinstance(expected, tuple) else (expected,)
        assert all(same_bits(x, y) for x, y in zip(found, several, strict=True))


def test_numbers_that_change_are_compared_with_none() -> None:
    trace = Trace()
    with trace.running():
        a, x, y = trace.input(1.0, "a"), trace.input(X), trace.input(Y)
        assert type(a) is TracedNumber
        answer = trace.apply(NUMPY, "axpby", (a, x, a, y), {})
    program = trace.program((answer,))
    assert not trace.pinned
    assert not trace.decided
    for number in (1.0, 0.5):
        assert same_bits(program(number, X, Y)[0], kernel("axpby")(number, X, number, Y))


def test_momentum_of_one_beside_complex_infinities() -> None:
    """The kernel leaves out a product with 1, which would make them nan."""

    def run(compiled: bool) -> list[str]:
        p = wg.asarray(np.array([1 + 1j, 2.0]), requires_grad=True)
        optimizer, found = wg.optim.SGD([p], lr=0.5, momentum=0.9), []

        def step(g: Any) -> Any:
            p.grad = g
            optimizer.step()
            return p * 1

        function = wg.compile(step, check=0) if compiled else step
        for momentum, infinite in ((0.9, 1.0), (0.9, 1.0), (0.8, np.inf), (1.0, 1.0), (0.7, 1.0)):
            optimizer.param_groups[0]["momentum"] = momentum
            found.append(repr(function(wg.asarray(np.array([infinite + 1j, 1.0]))).tolist()))
        return found

    with np.errstate(invalid="ignore"):
        assert run(True) == run(False)


def test_what_looks_at_values_raises_in_each_run() -> None:
    operands, parameters = CALLS["softmax_cross_entropy_parts"][0]
    program = optimise(recorded("softmax_cross_entropy_parts", operands, parameters))
    with pytest.raises(IndexError, match="Target 7 is out of bounds"):
        emit(program, NUMPY).function(X, np.array([0, 1, 7, 2, 3]))
    ignored = optimise(replace(program, outputs=program.inputs))  # nobody looks at the loss
    with pytest.raises(IndexError, match="Target 7 is out of bounds"):
        emit(ignored, NUMPY).function(X, np.array([0, 1, 7, 2, 3]))


def _into_an_operand(x: Any) -> Any:
    return np.exp(x, x)


def _into_a_view(x: Any) -> Any:
    out = x + 1
    flat = out.reshape((-1,))
    np.exp(out, out)
    return flat


def _another_order(x: Any) -> Any:
    out = np.exp(x.mT)
    return np.add(x.reshape((7, 5)), out, out)


def _by_values(x: Any) -> Any:
    return x + 1 if x.shape and np.max(x) > 0 else x


def _another_dtype(x: Any) -> Any:
    out = x.astype(np.dtype(np.float32))
    return np.multiply(out, x, out)


@pytest.mark.parametrize(
    "kernel", [_into_an_operand, _into_a_view, _another_order, _by_values, _another_dtype]
)
def test_what_has_no_pieces_is_called_whole(
    monkeypatch: pytest.MonkeyPatch, kernel: Callable[..., Any]
) -> None:
    monkeypatch.setattr(NUMPY, "kernels", {**NUMPY.kernels, "silu": kernel})
    monkeypatch.setattr(NUMPY.namespace, "silu", kernel)
    program = recorded("silu", (X.copy(),), {})
    assert [step.function for step in program.instructions] == [kernel]
    assert same_bits(program(X.copy())[0], kernel(X.copy()))


def test_a_gradient_of_a_part_that_is_all_keeps_its_order() -> None:
    """Sums of arrays in another order round otherwise."""

    def function(offset: Any, weight: Any) -> Any:
        x = offset + wg.zeros((1000, 3), dtype=wg.float32)
        loss = wg.sum(wg.permute_dims(x[:, None], (2, 1, 0)) * weight)
        return wg.autograd.grad(loss, offset)[0]

    offset = wg.zeros(3, dtype=wg.float32).requires_grad_()
    weight = wg.asarray(RNG.normal(size=(3, 1, 1000)).astype(np.float32))
    compiled, expected = wg.compile(function), function(offset, weight)
    for _ in range(2):
        assert same_bits(compiled(offset, weight).numpy(), expected.numpy())
    assert "ran eagerly" not in str(compiled.report)
