"""Kernels in pieces: programs call what NumPy's kernels call, and give what these give."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.bits import same_bits
from tests.compiler.ordinary import alike
from wengert.backends import get_backend, namespaces, numpy_networks
from wengert.compiler.capture.trace import Trace
from wengert.compiler.emission.emit import emit
from wengert.compiler.facts import KERNELS, PLAIN
from wengert.compiler.passes import optimise
from wengert.compiler.program import Program
from wengert.nn import functional as F
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
        for a, b in ((1, 1), (1, 0.25), (0.5, 1), (0.5, 0.25))
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
        ((x,), {}) for x in (X, X[0, 0].copy(), X.astype(np.float32), RNG.normal(size=(70, 60)))
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

#: Kernels that are called whole.
WHOLE = ("broadcast_to", "std", "take_along_axis", "tensordot")


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


def same(found: Any, expected: Any) -> bool:
    expected = expected if isinstance(expected, tuple) else (expected,)
    return all(same_bits(x, y) for x, y in zip(found, expected, strict=True))


@pytest.mark.whole
@pytest.mark.parametrize("name", CALLS)
def test_the_pieces_give_what_the_kernel_gives(name: str) -> None:
    """In whatever order elements are: where a program can't keep it, the kernel is called whole."""
    for operands, parameters in CALLS[name]:
        for order in "CF":
            given = tuple([np.array(x, order=order) if arrays((x,)) else x for x in operands])
            expected = kernel(name)(*given, **parameters)
            program = recorded(name, given, parameters)
            axis, keepdims = parameters.get("axis"), parameters.get("keepdims", False)
            looks = KERNELS.get(kernel(name), PLAIN).chooses
            whole = looks is not None and looks(given[0], axis, keepdims) is not None
            if order == "C" and name not in WHOLE and not whole:
                assert all(step.function is not kernel(name) for step in program.instructions)
            function = emit(optimise(program), NUMPY).function
            for run in (program, function, function):
                assert same(run(*arrays(given)), expected)


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


def test_momentum_of_one_beside_complex_infinities() -> None:
    """The kernel leaves out a product with 1, which would make them nan."""

    def make() -> Any:
        p = wg.asarray(np.array([1 + 1j, 2.0]), requires_grad=True)
        optimizer = wg.optim.SGD([p], lr=0.5, momentum=0.9)

        def step(g: Any, momentum: float) -> Any:
            optimizer.param_groups[0]["momentum"] = momentum
            p.grad = g
            optimizer.step()
            return p.detach() * 1

        return step, list

    infinite = [np.array([x + 1j, 1.0]) for x in (1.0, 1.0, np.inf, 1.0, 1.0)]
    calls = zip(map(wg.asarray, infinite), (0.9, 0.9, 0.8, 1.0, 0.7), strict=True)
    with np.errstate(invalid="ignore"):
        alike(make, list(calls))


def test_a_gradient_of_a_part_that_is_all_keeps_its_order() -> None:
    """Sums of arrays in another order round otherwise."""

    def function(offset: Any, weight: Any) -> Any:
        x = offset + wg.zeros((1000, 3), dtype=wg.float32)
        loss = wg.sum(wg.permute_dims(x[:, None], (2, 1, 0)) * weight)
        return wg.autograd.grad(loss, offset)[0]

    offset = wg.zeros(3, dtype=wg.float32).requires_grad_()
    weight = wg.asarray(RNG.normal(size=(3, 1, 1000)).astype(np.float32))
    alike(lambda: (function, list), [(offset, weight)] * 3)


LAYERS = {
    "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "layer_norm of rows": lambda x: F.layer_norm(x, x.shape[2:], wg.ones(x.shape[2:])),
    "group_norm": lambda x: F.group_norm(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "instance_norm": lambda x: F.instance_norm(x),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[2:]),
    "normalize": lambda x: F.normalize(x, dim=2),
    "std": lambda x: wg.std(x, axis=2),
    "vector_norm": lambda x: wg.linalg.vector_norm(x, axis=2),
    "logsumexp": lambda x: wg.logsumexp(x, axis=2),
    "softmax": lambda x: F.softmax(x, dim=2),
}


@pytest.mark.parametrize("length", [4, 300])
def test_programs_of_layers_do_not_fail(length: int) -> None:
    """Of short rows and of long ones, for which kernels go other ways."""
    values = np.random.default_rng(0).normal(size=(3, 4, length)).astype("float32")
    x = wg.asarray(values, requires_grad=True)
    for layer in LAYERS.values():

        def step(x: Any, layer: Any = layer) -> Any:
            y = layer(x)
            return wg.autograd.grad((y * wg.cos(y)).sum(), x)

        alike(lambda step=step: (step, list), [(x,)] * 3)  # type: ignore[misc]
