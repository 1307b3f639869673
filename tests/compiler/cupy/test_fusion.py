"""Kernels of CuPy's: fused programs compute what the function does, to the bit, in few launches."""

import contextlib
import importlib
import re
import runpy
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.nn.functional as F
from tests.compiler.ordinary import training_step
from tests.simulated_cupy import counting
from wengert import nn, optim
from wengert.compiler.cupy.routines import routine

pytestmark = [pytest.mark.simulated, pytest.mark.usefixtures("kernels")]


SHAPES = [(3, 4), (4,), (3, 1), (), (1, 4), (3, 4), (3, 4)]
DTYPES = [
    "float32", "float32", "float64", "int32", "int64", "uint8", "bool", "complex64", "float16",
]  # fmt: skip

UNARY: list[Callable[..., Any]] = [
    wg.exp, wg.log, wg.log1p, wg.sqrt, wg.sin, wg.tanh, wg.abs, wg.negative, wg.square, wg.floor,
    wg.sign, wg.isnan, wg.logical_not, wg.reciprocal, wg.conj, F.relu, F.silu, wg.special.expit,
    lambda x: wg.clip(x, 0, 2), lambda x: wg.astype(x, "float32"), lambda x: wg.astype(x, "int64"),
    lambda x: wg.astype(x, "bool"), lambda x: wg.expand_dims(x, axis=0),
    lambda x: wg.squeeze(wg.expand_dims(x, axis=-1), axis=-1), lambda x: x * 0.1, lambda x: 2 - x,
    lambda x: x > 1, lambda x: x == 2, lambda x: x**2, lambda x: 3 // x, lambda x: x % 2,
    lambda x: wg.where(x > 0, x, float("nan")), lambda x: wg.where(x > 0, -np.inf, x),
    lambda x: wg.sum(x, axis=-1, keepdims=True), lambda x: wg.max(x, axis=0), wg.mean, wg.sum,
    lambda x: x.T if x.ndim == 2 else x,
]  # fmt: skip
BINARY: list[Callable[..., Any]] = [
    wg.add, wg.subtract, wg.multiply, wg.divide, wg.maximum, wg.minimum, wg.floor_divide,
    wg.remainder, wg.pow, wg.atan2, wg.logaddexp, wg.copysign, wg.hypot, wg.equal, wg.less,
    wg.greater_equal, wg.not_equal, wg.logical_and, wg.logical_or, wg.bitwise_and, wg.bitwise_xor,
    wg.add, wg.multiply, lambda x, y: wg.where(x > y, x, y), lambda x, y: wg.where(x != 0, y, 1),
]  # fmt: skip

Plan = list[tuple[Callable[..., Any], tuple[int, ...]]]


def _given(rng: np.random.Generator) -> list[wg.Tensor]:
    found = []
    for shape in SHAPES:
        dtype = np.dtype(DTYPES[rng.integers(len(DTYPES))])
        x = rng.normal(0, 3, shape)
        if dtype.kind == "c":
            x = x + 1j * rng.normal(0, 3, shape)
        if dtype.kind == "u":
            x = abs(x)
        found.append(wg.asarray(np.asarray(x).astype(dtype)))
    return found


def _program(seed: int) -> tuple[Callable[..., Any], list[wg.Tensor]]:
    """A random program, of calls that take what there is, and what it is called with."""
    rng = np.random.default_rng(seed)
    given = _given(rng)
    values, plan = list(given), Plan()
    while len(plan) < 14:
        few = rng.random() < 0.5
        functions = UNARY if few else BINARY
        function = functions[rng.integers(len(functions))]
        at = tuple(int(i) for i in rng.integers(len(values), size=1 if few else 2))
        try:
            values.append(function(*[values[i] for i in at]))
        except (TypeError, ValueError):  # these are not for that function
            continue
        plan.append((function, at))
    shown = sorted({int(i) for i in rng.integers(len(given), len(values), size=5)})

    def program(*arrays: wg.Tensor) -> list[wg.Tensor]:
        found = list(arrays)
        for function, at in plan:
            found.append(function(*[found[i] for i in at]))
        return [found[i] for i in shown]

    return program, given


def _bits(x: wg.Tensor) -> tuple[Any, ...]:
    """All of an array, where one nan is like another."""
    host = np.array(x.detach().numpy())
    parts = [host.real, host.imag] if host.dtype.kind == "c" else [host]
    for part in parts:
        if part.dtype.kind == "f":
            part[np.isnan(part)] = np.nan
    return host.dtype, host.shape, host.tobytes()


def _launches(call: Callable[[], Any]) -> int:
    with counting() as counts:
        call()
    return sum(counts.launches.values())


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_compute_what_their_functions_do(seed: int) -> None:
    program, given = _program(seed)
    compiled = wg.compile(program, check=0)
    for _ in range(2):
        found = compiled(*given)
    assert "ran eagerly" not in str(compiled.report)
    for x, y in zip(found, program(*given), strict=True):
        assert _bits(x) == _bits(y)
    assert _launches(lambda: compiled(*given)) <= _launches(lambda: program(*given))


def _layered(*sizes: int, extra: Callable[[int], list[nn.Module]] = lambda n: []) -> nn.Module:
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), *extra(after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Normed(nn.Module):
    """Each row without its mean, over its deviation."""

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        low = x - wg.mean(x, axis=-1, keepdims=True)
        return low / wg.sqrt(wg.mean(low**2, axis=-1, keepdims=True) + 1e-5)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "2 layers": lambda: _layered(8, 16, 4),
    "4 layers": lambda: _layered(8, 16, 12, 16, 4),
    "dropout": lambda: _layered(8, 16, 4, extra=lambda n: [nn.Dropout(0.5)]),
    "layer norm": lambda: _layered(8, 16, 4, extra=lambda n: [Normed()]),
}
OPTIMISERS: dict[str, Callable[..., Any]] = {
    "SGD": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: optim.Adam(p, lr=0.01),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01),
}
#: Launches of a training step. An update of all parameters is one of them, whatever the optimiser.
LAUNCHES = {"2 layers": 20, "4 layers": 32, "dropout": 25, "layer norm": 37}


def _training(model: nn.Module, updates: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    step = training_step(updates, lambda x, y: F.cross_entropy(model(x), y))
    rng = np.random.default_rng(0)
    x = wg.asarray(rng.standard_normal((32, 8)), dtype="float32")
    return step, (x, wg.asarray(rng.integers(0, 4, 32)))


def _trained(make: Callable[[], nn.Module], optimiser: str, given: Any, compiled: bool) -> Any:
    """Losses, parameters, the launches of a step without copies and waits, and the step."""
    wg.manual_seed(0)
    model = make()
    step, others = _training(model, OPTIMISERS[optimiser](model.parameters()))
    given = others if given is None else (given[0], others[1][: given[1]])
    run = wg.compile(step, check=0) if compiled else step
    losses = [run(*given).detach().numpy() for _ in range(4)]
    left = [p.detach().numpy() for p in model.parameters()]
    with counting() as counts:
        run(*given)
    if compiled:
        assert not counts.copies
        assert not counts.synchronisations
    return losses, left, sum(counts.launches.values()), run


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("name", MODELS)
def test_training_steps_in_few_launches(name: str, optimiser: str) -> None:
    one, other = (_trained(MODELS[name], optimiser, None, compiled) for compiled in (False, True))
    for x, y in zip(one[0] + one[1], other[0] + other[1], strict=True):
        assert x.tobytes() == y.tobytes()
    assert other[2] == LAUNCHES[name]
    assert other[3].source.count("_update = cp.ElementwiseKernel(") == 1


class Reader(nn.Module):
    """What an LSTM has read at the end."""

    def __init__(self) -> None:
        self.lstm, self.out = nn.LSTM(8, 16), nn.Linear(16, 4)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        return self.out(self.lstm(x)[0][-1])


class Convolutions(nn.Module):
    """Two convolutions, each with a rectifier and maxima of windows."""

    def __init__(self) -> None:
        self.first, self.second = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.out = nn.Linear(256, 4)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        for layer in (self.first, self.second):
            x = F.max_pool2d(F.relu(layer(x)), 2)
        return self.out(x.reshape((x.shape[0], -1)))


class Encoder(nn.Module):
    """The mean of what a layer of a transformer makes."""

    def __init__(self) -> None:
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
        self.out = nn.Linear(16, 4)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        return self.out(self.layer(x).mean(axis=1))


#: A network, its input, and the launches of a training step, eager and compiled.
NETWORKS: dict[str, tuple[type[nn.Module], tuple[int, ...], tuple[int, int]]] = {
    "an LSTM of 20 steps": (Reader, (20, 32, 8), (149, 108)),
    "convolutions": (Convolutions, (32, 1, 16, 16), (170, 55)),
    "a layer of an encoder": (Encoder, (8, 10, 16), (190, 84)),
}


def test_networks_in_few_launches() -> None:
    found = {}
    for name, (make, shape, _) in NETWORKS.items():
        x = wg.asarray(np.random.default_rng(0).standard_normal(shape), dtype="float32")
        given = x, shape[int(make is Reader)]
        one, other = (_trained(make, "SGD", given, compiled) for compiled in (False, True))
        np.testing.assert_allclose(other[0], one[0], rtol=1e-5)
        found[name] = one[2], other[2]
    assert found == {name: row[2] for name, row in NETWORKS.items()}


def test_kernels_stand_in_the_source_by_the_line_that_they_are_of() -> None:
    @wg.compile
    def program(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
        return wg.exp(x * y) - 1

    line = program.__wrapped__.__code__.co_firstlineno + 2
    x = wg.asarray([1.0, 2.0], dtype="float32")
    program(x, x + 1)
    assert f"test_fusion_{line} = cp.ElementwiseKernel(" in program.source
    assert "float exp_1 = rounded(exp(multiply_1));" in program.source
    assert "float multiply_1 = rounded(x_1 * y_1);" in program.source


def test_saved_programs_have_their_kernels_and_changed_rates_record_nothing(tmp_path: Path) -> None:
    model = _layered(8, 16, 4)
    updates = optim.Adam(model.parameters(), lr=0.01)
    step, given = _training(model, updates)
    run = wg.compile(step)
    for _ in range(3):
        run(*given)
    before, source = str(run.report), run.source
    for rate in (0.5, 0.001):
        updates.param_groups[0]["lr"] = rate
        assert _launches(lambda: run(*given)) == LAUNCHES["2 layers"]
    assert (str(run.report), run.source) == (before, source)
    run.save(tmp_path / "program.py")
    text = (tmp_path / "program.py").read_text()
    assert "import wengert" not in text
    for kernel in re.findall(r"(\w+ = cp\.\w+Kernel\(.*?\n\))", run.source, re.DOTALL):
        assert kernel in text
    saved = runpy.run_path(str(tmp_path / "program.py"))["step"]
    arrays = [x.array for x in given]
    assert _launches(lambda: saved(*arrays)) == LAUNCHES["2 layers"]
    run(*given)
    np.testing.assert_array_equal(saved(*arrays).get(), run(*given).detach().numpy())


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("many", [False, True])
def test_updates_of_several_dtypes_or_of_many_parameters(optimiser: str, many: bool) -> None:
    """Each dtype has its own numbers, and a kernel no more arguments than there is room for."""
    found: list[list[bytes]] = []
    for compiled in (False, True):
        dtypes = ["float32"] * 60 if many else ["float32", "float64"]
        parameters = [wg.ones((3,), dtype=dtype, requires_grad=True) for dtype in dtypes]
        updates = OPTIMISERS[optimiser](parameters)

        def step(parameters: Any = parameters, updates: Any = updates) -> None:
            updates.zero_grad()
            sum(wg.sum(x**2).astype("float64") for x in parameters).backward()
            updates.step()

        run = wg.compile(step, check=0) if compiled else step
        for rate in (0.5, 0.25, 0.1, 0.1):
            updates.param_groups[0]["lr"] = rate
            run()
        found.append([x.detach().numpy().tobytes() for x in parameters])
    assert found[0] == found[1]
    if many and optimiser.startswith("Adam"):
        assert len(re.findall(r"_update\w* = cp.ElementwiseKernel\(", run.source)) > 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_divisions_by_numbers_stay_divisions(dtype: str) -> None:
    compiled = wg.compile(lambda x, y: x / 4 + y, check=0)
    x = wg.asarray([0.5, 3.0], dtype=dtype)
    for _ in range(2):
        compiled(x, x)
    assert f"{dtype} number_1" in compiled.source  # by a known power of 2, C multiplies


#: Numbers about the limits of types: which loop CuPy takes may depend on them.
NUMBERS = [
    0, 1, 5, -1, 127, 255, -129, 40_000, 70_000, 2**24 + 1, 2**31, 2**40 + 1, 2**62 + 1, 2**63, 0.5,
    0.1, -0.0, 70_000.5, 1e38, float("inf"), float("nan"), 1j,
]  # fmt: skip


@pytest.mark.parametrize("dtype", sorted({*DTYPES, "int8", "uint16", "uint64", "complex128"}))
def test_loops_are_those_that_cupy_takes(dtype: str) -> None:
    cupy = importlib.import_module("cupy")
    array, count = cupy.zeros(2, dtype), 0
    names = (
        "add multiply equal less greater_equal logical_and true_divide floor_divide power maximum "
        "left_shift bitwise_or arctan2"
    )
    for function in [getattr(cupy, name) for name in names.split()]:
        loops = {}
        for x in NUMBERS:
            with contextlib.suppress(TypeError):
                loops[repr(x)] = x, *function._loop([array, x], None)
        for x, takes, (gives,) in loops.values():
            known = routine(function, [array.dtype, x], gives)
            assert known is None or known.takes == takes
            open_ = routine(function, [array.dtype, type(x)], gives)
            for other, others, (result,) in loops.values():
                if open_ is not None and type(other) is type(x):
                    assert (open_.takes, open_.gives) == (others, result)
            count += known is not None
    assert count or dtype == "float16"


COMPARED: dict[str, tuple[Callable[..., Any], Any, Any, Any]] = {
    "half precision": (lambda x, t: (x == t) & (x < 5), np.float16([0.1, 2.5]), 0.5, 0.1),
    "a float32": (lambda x, t: (x == t) | (x < 0), np.float32([0.1, np.inf]), 0.5, 1e300),
    "a literal": (lambda x, t: (x == 1e300) | (x < t), np.float32([1, np.inf]), 0.5, 0.25),
    "large": (lambda x, t: (x == t) & (x > 0), np.uint64([2**63 + 1, 3]), 3, 2**63),
    "larger": (lambda x, t: (x > t) & (x > 0), np.uint64([2**62 + 1, 3]), 3, 2**62),
    "an integer": (lambda x, t: wg.astype(x * t + 1, "float64"), np.float32([1, 2]), 3, 2**24 + 1),
}


@pytest.mark.parametrize("name", COMPARED)
def test_numbers_are_compared_in_the_dtype_of_the_function(name: str) -> None:
    function, host, first, second = COMPARED[name]
    x, compiled = wg.asarray(host), wg.compile(function, check=0)
    for number in (first, first, second):
        found = compiled(x, number)
        np.testing.assert_array_equal(found.numpy(), function(x, number).numpy())
    assert "ran eagerly" not in str(compiled.report)


def test_a_chain_of_a_thousand_calls_is_several_kernels() -> None:
    @wg.compile
    def chain(x: wg.Tensor) -> wg.Tensor:
        for _ in range(1000):
            x = x * 0.999 + 0.001
        return x

    x = wg.asarray([1.5, 2.5], dtype="float32")
    for _ in range(2):
        found = chain(x)
    assert _launches(lambda: chain(x)) == 32  # of 64 calls each
    wanted = np.asarray([1.5, 2.5], "float32")
    for _ in range(1000):
        wanted = wanted * np.float32(0.999) + np.float32(0.001)
    np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize(
    "function",
    [lambda x: wg.sum(x[1:] * x[:-1]), lambda x: wg.sum(wg.sort(x) * x), lambda x: wg.mean(x**2)],
    ids=["parts", "sorted", "mean"],
)
def test_what_a_lone_call_takes_is_there(function: Callable[..., Any]) -> None:
    """No kernel is made of one product, and the view of the cotangent that it takes comes first."""
    slope, x = wg.grad(function), wg.asarray([2.0, 3.0, 1.0])
    compiled = wg.compile(slope)
    for _ in range(3):
        assert compiled(x).tolist() == slope(x).tolist()


def test_complex_roots_are_calls_of_their_own() -> None:
    import cupy

    for dtype, taken in (("float32", True), ("complex64", False), ("complex128", False)):
        kind = np.dtype(dtype)
        assert (routine(cupy.sqrt, [kind], kind) is not None) == taken
