"""``python -m backend_check``: what agrees, what a library gets wrong, and its record."""

import importlib.util
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import wengert as wg
from backend_check.checks import SCENES, compare, scenes
from backend_check.command import main
from backend_check.comparisons import Comparisons, difference
from tests.backends import tiny
from wengert.__main__ import main as of_the_package
from wengert.backends import get_backend, namespaces, registry
from wengert.tape.primitive import PRIMITIVES


def test_numpy_agrees_with_itself(capsys: pytest.CaptureFixture[str]) -> None:
    before = namespaces[np.ndarray]
    assert main(["numpy", "--only", "exp", "--only", "linalg.qr", "--only", "isin"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"numpy {np.__version__} (cpu)")
    assert [*map(str.split, out.splitlines())][2:] == [
        ["values", "float32", "reverse", "forward", "second", "batched", "compiled"],
        ["elementwise", *["1/1"] * 7],
        ["linalg", *["1/1"] * 7],
        ["set", "1/1", "1/1"],
        ["all", "3/3", "3/3", *["2/2"] * 5],
    ]
    assert (before.exp is np.exp) == (namespaces[np.ndarray].exp is np.exp)  # no longer watched


@pytest.mark.parametrize("name", SCENES)
def test_scenes(name: str, backend: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for other in [other for other in SCENES if other != name]:
            patch.delitem(SCENES, other)
        assert {n: o.verdict for n, o in scenes(backend.name)} == {name: "ok"}


class Awkward(tiny.Array):
    """Arrays that hand out no values but by a method of their own, and have no device."""

    conforming = False

    def __init__(self, values: Any) -> None:
        super().__init__(values._values if isinstance(values, tiny.Array) else values)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return sys.modules["awkward_library"]

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("no implicit conversion")

    def __dlpack__(self, **kwargs: Any) -> Any:
        raise BufferError("no export")

    def asnumpy(self) -> Any:
        return self._values

    def __getattribute__(self, name: str) -> Any:
        if name in ("device", "to_device") and not Awkward.conforming:
            raise AttributeError(name)
        return super().__getattribute__(name)

    def __getitem__(self, key: Any) -> "Awkward":
        return Awkward(super().__getitem__(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("arrays are immutable")


def made(value: Any) -> Any:
    if isinstance(value, tiny.Array):
        return Awkward(value)
    return type(value)(map(made, value)) if isinstance(value, tuple | list) else value


@pytest.fixture
def awkward(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A library that lacks and renames functions, and multiplies wrongly."""
    monkeypatch.delitem(namespaces, tiny.Array, raising=False)
    module: Any = ModuleType("awkward_library")
    module.__version__ = "3.1"
    for name, value in vars(tiny).items():
        if isinstance(value, tiny.DType):
            setattr(module, name, value)
        elif callable(value) and not isinstance(value, type) and name[0] != "_":
            setattr(module, name, lambda *a, _f=value, **k: made(_f(*a, **k)))
    module.power = module.pow
    del module.pow, module.tanh
    module.multiply = lambda x, y: made(tiny.multiply(tiny.multiply(x, y), 2))
    sys.modules["awkward_library"] = module
    yield module
    del sys.modules["awkward_library"]
    registry._loaded.pop("awkward_library", None)
    namespaces.pop(Awkward, None)
    for primitive in PRIMITIVES.values():
        primitive.kernels.pop(Awkward, None)


@pytest.mark.slow
def test_a_library_without_a_record(
    awkward: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "awkward_backend.py"
    chosen = ["exp", "pow", "tanh", "multiply", "sin"]
    only = [word for name in chosen for word in ("--only", name)]
    assert main(["awkward_library", "--write", str(path), *only]) == 1
    out = capsys.readouterr().out
    found, expected = map(
        float,
        re.search(
            r"\n  multiply\(float64 \(2, 3\), float64 \(2, 3\)\): \[(.*?),.* instead of \[(.*?),",
            out,
        ).groups(),
    )  # type: ignore[union-attr]
    assert found == pytest.approx(2 * expected, rel=1e-5)
    assert "differs: [0.3782, 0.3168, " in out
    assert "lacks: awkward_library has no tanh" in out
    assert "tanh (values, float32, reverse, forward, second, batched, compiled)" in out
    # Programs multiply by the library's function, and rules by the arrays' operator.
    assert out.count("fails") == out.count("fails: CompileError: the program of")
    spec = importlib.util.spec_from_file_location("awkward_backend", path)
    record: Any = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(record)  # type: ignore[union-attr]
    backend = record.BACKEND
    assert backend.immutable
    assert backend.kernels == {"pow": awkward.power}
    array = backend.from_numpy(np.asarray([1.5, 2.0]))
    np.testing.assert_array_equal(backend.to_numpy(array), [1.5, 2.0])
    assert backend.device(array) == "cpu"
    np.testing.assert_array_equal(backend.to_numpy(backend.to_device(array, "cpu")), [1.5, 2.0])
    written = path.read_text()
    assert "tanh" in written and "# The standard's functions that it has not" in written


def test_what_a_library_refuses_is_told_with_the_remedy(
    awkward: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Awkward, "conforming", True)
    monkeypatch.delattr(awkward, "cos")
    x = wg.asarray(Awkward(np.asarray([1.0])), requires_grad=True)
    for call, message in (
        (x.detach().numpy, r"can\'t convert .* \(no implicit conversion\).*to_numpy"),
        (lambda: wg.tanh(x), "awkward_library has no tanh in the version"),
        (wg.sum(wg.sin(x)).backward, "awkward_library has no cos in the version"),
    ):
        with pytest.raises(wg.BackendError, match=message):
            call()


def test_a_function_that_can_not_be_compiled_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    from wengert.nn.functional import regression

    lacking = eval("lambda values: (values < 0).any()", vars(regression))  # as code of its own
    monkeypatch.setattr(regression, "check_variances", lacking)
    found = compare("F.gaussian_nll_loss", "array_api_strict")
    assert found["reverse"].verdict == "ok"
    assert found["compiled"].verdict == "fails"
    assert "AttributeError" in found["compiled"].why


def test_comparisons_tell_what_differs() -> None:
    backend = get_backend("array_api_strict")
    with Comparisons(backend) as compared:
        assert compare("sin", "array_api_strict")["second"].verdict == "ok"
        wg.sum(wg.asarray(backend.from_numpy(np.ones((2, 3)))), axis=0)  # NumPy is told the axis
        assert not compared.faults
        assert compare("isin", "array_api_strict")["values"].verdict == "fails"
    assert compared.faults["isin"].call == "isin(float64 (2, 3), float64 (2, 3))"
    assert compared.faults["isin"].why.startswith("TypeError: Only integer")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
def test_a_function_that_never_answers_is_told_and_the_rest_checked(
    awkward: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def wait(x: Any) -> Any:
        asked.append(x)
        while True:
            with suppress(Exception):  # as a library may, which must not end the limit
                time.sleep(0.01)

    monkeypatch.setattr(awkward, "sin", wait)
    before = signal.getsignal(signal.SIGALRM)
    assert main(["awkward_library", "--only", "sin", "--only", "cos", "--limit", "0.05"]) == 1
    out = capsys.readouterr().out
    assert "fails: no answer in 0.05 s" in out
    assert "sin (values, float32, reverse, forward, second, batched, compiled)" in out
    assert "cos (reverse" in out  # whose derivative asks for the sine
    assert len(asked) < 10
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_differences() -> None:
    x = np.asarray([1.0, -2.0])
    assert difference(x, x.copy()) == ""
    assert difference(x[:1], x) == "shape (1,) instead of (2,)"
    assert difference(x.astype("float32"), x) == "float32 instead of float64"
    assert difference(-x, x) == "[-1, 2] instead of [1, -2]"
    assert difference(-x, x, up_to_phase=True) == ""
    assert difference(x + 1e-6, x) == "[1, -2] instead of [1, -2], by a part of 1e-06"
    assert difference(np.asarray([1]), np.asarray([2])) == "[1] instead of [2]"
    nan = np.asarray([np.nan])
    assert difference(nan, nan) == ""
    short, long = np.asarray("tensor(1)"), np.asarray("tensor(1.)")
    assert difference(short, long) == "tensor(1) instead of tensor(1.)"
    assert difference(long, long.copy()) == ""


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for run, words, message in (
        (main, ["no_such_library"], "No module named 'no_such_library'"),
        (main, ["json"], "is it an array library?"),
        (main, ["numpy:gpu", "--only", "sin"], "numpy has no device 'gpu'; it has: cpu"),
        (of_the_package, ["check-backend", "numpy"], "run python -m backend_check LIBRARY in a"),
    ):
        assert run(words) == 2
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["numpy", "--only", "sine"])
    assert "there is no function 'sine'" in capsys.readouterr().err
