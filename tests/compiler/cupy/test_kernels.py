"""Kernels' text, as a compiler of C++ takes it."""

import ctypes
import importlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.nn.functional as F
from tests.compiler.cupy.test_fusion import MODELS, _program, _training
from wengert import optim

pytestmark = [pytest.mark.simulated, pytest.mark.usefixtures("kernels"), pytest.mark.slow]

TYPES = {
    "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short",
    "uint16": "unsigned short", "int32": "int", "uint32": "unsigned int", "int64": "long long",
    "uint64": "unsigned long long", "float32": "float",
    "float64": "double", "complex64": "complex<float>", "complex128": "complex<double>",
}  # fmt: skip


class Run:
    """One launch: a kernel, what it was given, and what the simulation made of that."""

    def __init__(self, kernel: Any, given: list[np.ndarray], made: list[np.ndarray]) -> None:
        self.kernel, self.given, self.made = kernel, given, made
        self.names = [(p.type, p.name, p.raw) for p in kernel.ins]
        reduces = hasattr(kernel, "map")
        self.body = f"mapped_1 = {kernel.map};" if reduces else kernel.operation
        outs = [(str(made[0].dtype), "mapped_1", False)]
        self.outs = outs if reduces else [(p.type, p.name, p.raw) for p in kernel.outs]
        self.count = max([x.size for x in given], default=0)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    found: list[Run] = []
    kernels = importlib.import_module("tests.simulated_cupy.kernels")
    run, mapped = kernels.ElementwiseKernel._run, kernels.ReductionKernel._mapped

    def noted(kernel: Any, parameters: Any, given: Any, types: Any, shape: Any, count: int) -> None:
        before = [
            np.array(getattr(x, "_host", x), dtype)
            if p.raw
            else np.array(np.broadcast_to(np.asarray(getattr(x, "_host", x), dtype), shape))
            for p, x, dtype in zip(parameters, given, types, strict=True)
        ]
        run(kernel, parameters, given, types, shape, count)
        made = [np.array(x._host) for x in given[len(kernel.ins) :]]
        found.append(Run(kernel, before, made))
        found[-1].count = count

    def noted_map(kernel: Any, variables: Any, count: int) -> np.ndarray:
        made: np.ndarray = mapped(kernel, variables, count)
        given = [
            np.array(variables[p.name].host)
            if p.raw
            else np.array(np.broadcast_to(variables[p.name], count))
            for p in kernel.ins
        ]
        found.append(Run(kernel, [*given, np.zeros(count, made.dtype)], [made]))
        found[-1].count = count
        return made

    monkeypatch.setattr(kernels.ElementwiseKernel, "_run", noted)
    monkeypatch.setattr(kernels.ReductionKernel, "_mapped", noted_map)
    for name in MODELS:
        model = MODELS[name]()
        step, given = _training(model, optim.AdamW(model.parameters(), lr=0.01))
        _replayed(step, given)
    for seed in range(25):
        _replayed(*_program(seed))
    for dtype in ("int32", "int64"):
        limits = np.iinfo(dtype)
        _replayed(_overflowing, (wg.asarray([limits.max, limits.min, 3], dtype=dtype),))
    x = wg.asarray(np.linspace(-3, 3, 7), dtype="float32")
    y = wg.asarray(np.linspace(0.1, 3, 7), dtype="float64")
    classes = wg.asarray([0, 2, -100, 1, 5])
    for kind, smoothing in (("float32", 0.0), ("float64", 0.2)):
        logits = wg.asarray(np.linspace(-3, 3, 15).reshape(5, 3) ** 3, dtype=kind)
        _replayed(_entropy, (logits, classes, smoothing))
    _replayed(lambda x, y: [F.gelu(x) * F.silu(y), wg.log1p(wg.exp(y)) ** x, wg.sum(y * x)], (x, y))
    return [each for each in found if each.kernel.name != "take_along_axis"]


def _entropy(x: wg.Tensor, classes: wg.Tensor, smoothing: float) -> list[wg.Tensor]:
    few = [classes, wg.where(classes == 5, -100, classes)]  # the loss is nan, and not
    return [F.cross_entropy(x, each, label_smoothing=smoothing) for each in few]


def _overflowing(x: wg.Tensor) -> list[wg.Tensor]:
    """What compilers would fold if integers did not wrap around."""
    return [x + 1 > x, x * 2 // 2, abs(x) < 0, x * x < 0, -x == x, x - 1 < x]


def _replayed(function: Any, given: Any) -> None:
    compiled = wg.compile(function, check=0)
    for _ in range(3):  # the first two may make state
        compiled(*given)


def _cpp(runs: list[Run]) -> Iterator[str]:
    """A function for each kernel, which is given the arrays' places."""
    yield "#include <cmath>\n#include <complex>\n#include <cstddef>\nusing namespace std;"
    yield "#define __device__"
    yield "template <typename T> T _floor_divide(T x, T y) { if (y == 0) return 0; T z = x / y;"
    yield "    return (x % y != 0 && (x < 0) != (y < 0)) ? z - 1 : z; }"
    for sign in ("<", ">", "<=", ">="):  # as CuPy has them, by the real parts first
        yield f"template <typename T> bool operator{sign}(complex<T> x, complex<T> y) {{ return "
        yield f"x.real() == y.real() ? x.imag() {sign} y.imag() : x.real() {sign} y.real(); }}"
    yield "static inline float _floor_divide(float x, float y) { return floor(x / y); }"
    yield "static inline double _floor_divide(double x, double y) { return floor(x / y); }"
    for number, run in enumerate(runs):
        preamble = re.sub(r'asm\("add[^\n]*\);', "", run.kernel.preamble)
        preamble = preamble.replace('"+l"', '"+r"')  # which is CUDA's alone
        yield f"namespace k{number} {{\n{preamble}\nvoid run(long long n, void **_given) {{"
        yield "for (ptrdiff_t i = 0; i < n; i++) {\nptrdiff_t _J = i;"
        for at, (kind, name, raw) in enumerate([*run.names, *run.outs]):
            place = f"(({TYPES[kind]} *)_given[{at}])"
            own = at >= len(run.names)
            if raw:
                yield f"{TYPES[kind]} *{name} = {place};"
            else:
                yield f"{'' if own else 'const '}{TYPES[kind]} &{name} = {place}[i];"
        yield f"{run.body};\n}}\n}}\n}}"
        yield f'extern "C" void run_{number}(long long n, void **x) {{ k{number}::run(n, x); }}'


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")
def test_a_compiler_of_cpp_reads_them_as_the_simulation_does(
    runs: list[Run], tmp_path: Path
) -> None:
    assert len(runs) > 50
    source, library = tmp_path / "kernels.cpp", tmp_path / "kernels.so"
    source.write_text("\n".join(_cpp(runs)))
    flags = ["-O1", "-ffp-contract=off", "-shared", "-fPIC", "-std=c++17", "-w"]
    subprocess.run(["g++", *flags, "-o", library, source], check=True)
    loaded = ctypes.CDLL(str(library))
    for number, run in enumerate(runs):
        arrays = [np.ascontiguousarray(x) for x in run.given]
        places = (ctypes.c_void_p * len(arrays))(*[x.ctypes.data for x in arrays])
        getattr(loaded, f"run_{number}")(ctypes.c_longlong(run.count), places)
        for found, wanted in zip(arrays[len(run.names) :], run.made, strict=True):
            close = {"rtol": 4e-6 if found.dtype.char in "fF" else 1e-13, "atol": 1e-30}
            wanted = wanted.reshape(found.shape)
            if found.dtype.kind in "fc":
                np.testing.assert_allclose(found, wanted, **close, err_msg=run.body)
            else:
                np.testing.assert_array_equal(found, wanted, err_msg=run.body)
