"""Which backend new arrays are made on: the variable, the functions, threads, errors."""

import importlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.scripts import python
from wengert.backends import Backend, builtin_backends, get_backend, selection
from wengert.tape.primitive import PRIMITIVES

installed = [name for name, found in builtin_backends().items() if found and name != "cupy"]


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    words = code.split(" ", 1) if code.startswith("-m") else ["-c", code]
    return python("-W", "ignore", *words, code=None, **{"WENGERT_BACKEND": ""} | environment)


@pytest.mark.sampled
@pytest.mark.parametrize("name", installed)
def test_variable_decides_where_new_arrays_are_made(name: str) -> None:
    code = (
        "import wengert as wg, numpy as np\n"
        "made = [wg.ones(2), wg.asarray(np.ones(2)), wg.tensor([1.0]), wg.randn(2)]\n"
        "print({t.backend.name for t in made})"
    )
    assert run(code, WENGERT_BACKEND=name).stdout == f"{{{name!r}}}\n"


@pytest.mark.slow
def test_without_the_variable_it_is_numpy_and_it_may_name_a_device() -> None:
    pytest.importorskip("array_api_strict")
    code = "import wengert as wg; print(type(wg.ones(2).array), wg.randn(2).device)"
    assert run(f"import os; del os.environ['WENGERT_BACKEND']; {code}").stdout == run(code).stdout
    assert run(code).stdout == "<class 'numpy.ndarray'> cpu\n"
    done = run(code, WENGERT_BACKEND="array_api_strict:no_float64")
    assert done.stdout.endswith(" array_api_strict.Device('no_float64')\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("nosuch", ["WENGERT_BACKEND=nosuch", "no backend 'nosuch'", "Built in: numpy, cupy"]),
        ("numpy:gpu", ["WENGERT_BACKEND=numpy:gpu", "no device 'gpu'", "it has: cpu"]),
    ],
)
def test_a_wrong_variable_is_one_clear_error(value: str, said: list[str]) -> None:
    """Importing, and everything that makes no array, works all the same."""
    done = run("import wengert as wg; print(wg.pi > 3); wg.ones(2)", WENGERT_BACKEND=value)
    assert done.stdout == "True\n"
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("wengert.backends.backend.BackendError: ")
    assert [part for part in said if part not in last] == []


@pytest.mark.skipif(builtin_backends()["cupy"], reason="CuPy is installed")
def test_a_missing_library_says_what_to_install() -> None:
    with pytest.raises(wg.BackendError, match=r"install wengert\[cupy-cuda12x\]"):
        wg.set_backend("cupy")


@pytest.mark.slow
@pytest.mark.parametrize("raised", ["OSError('libcudart.so: no such file')", "SystemExit('libc')"])
def test_what_a_broken_library_raises_is_told_by_name(tmp_path: Path, raised: str) -> None:
    """Whatever the import of a library raises, the error says who needs it, and why it failed."""
    for name in ("torch", "conforming", "graphviz", "tqdm", "safetensors", "hypothesis", "scipy"):
        (tmp_path / f"{name}.py").write_text(f"raise {raised}\n")
    done = run(
        "import wengert as wg\n"
        "def told(function):\n"
        "    try:\n"
        "        function()\n"
        "    except (wg.BackendError, ImportError) as error:\n"
        "        print(error)\n"
        "told(lambda: wg.ones(2))\n"
        "told(lambda: wg.set_backend('conforming'))\n"
        "wg.set_backend('numpy')\n"
        "x = wg.ones(2, requires_grad=True)\n"
        "told(lambda: wg.draw(x * 2))\n"
        "told(lambda: wg.data.progress([1]))\n"
        "told(lambda: wg.save('x.safetensors', x=x))\n"
        "told(lambda: wg.testing.check_gradients)\n"
        "told(lambda: wg.optimize.minimize(lambda x: x * x, 1.0))\n"
        "told(lambda: wg.special.erf(x))\n",
        WENGERT_BACKEND="torch",
        PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]),
    )
    lines = done.stdout.splitlines()
    starts = [
        *("WENGERT_BACKEND=torch: the backend 'torch'", "set_backend('conforming'): there is no"),
        *("wg.draw needs", "a progress bar needs", "this is stored in the safetensors format"),
        *("wengert.testing.check_gradients needs", "wengert.optimize.minimize needs", "NumPy's"),
    ]
    assert [line[: len(start)] for line, start in zip(lines, starts, strict=True)] == starts
    assert all("lib" in line for line in lines) and "Installed: numpy" in lines[0], done.stderr


def test_a_backend_without_a_device_is_not_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    def require_device(self: Backend) -> None:
        raise RuntimeError("no GPU is there")

    before = selection()
    monkeypatch.setattr(type(get_backend("numpy")), "require_device", require_device)
    with pytest.raises(wg.BackendError, match=r"^set_backend\('numpy'\): no GPU is there$"):
        wg.set_backend("numpy")
    for spec in (3, None, np):
        with pytest.raises(TypeError, match="a backend is a name"):
            wg.set_backend(spec)  # type: ignore[arg-type]
    assert selection() is before


@pytest.mark.skipif(not builtin_backends()["cupy"], reason="CuPy is not installed")
def test_every_function_has_a_kernel_on_cupy_also_without_a_gpu() -> None:
    namespace = importlib.import_module("wengert.backends.cupy").BACKEND.namespace
    lacking = set()
    importlib.import_module("tests.catalogue.table")  # names what is loaded when it is first used
    for name in PRIMITIVES:
        try:
            attrgetter(name)(namespace)
        except AttributeError:
            lacking.add(name)
    assert lacking <= {"linalg.eig"}  # which CuPy has from version 14 on


def test_use_backend_nests_and_ends() -> None:
    pytest.importorskip("array_api_strict")
    with wg.use_backend("array_api_strict"):
        assert wg.ones(1).backend.name == "array_api_strict"
        with wg.use_backend("numpy"):
            assert wg.ones(1).backend.name == "numpy"
        assert wg.ones(1).backend.name == "array_api_strict"
    with pytest.raises(KeyError), wg.use_backend("array_api_strict"):
        raise KeyError
    assert wg.get_backend() is selection().backend
    assert "use_backend" not in selection().reason


def test_set_backend_holds_in_every_thread_and_use_backend_in_its_own() -> None:
    pytest.importorskip("array_api_strict")
    before = selection().backend.name
    barrier = Barrier(2, timeout=60)

    def inside() -> str:
        with wg.use_backend("numpy"):
            return outside()

    def outside() -> str:
        barrier.wait()
        name = wg.ones(1).backend.name
        barrier.wait()
        return name

    wg.set_backend("array_api_strict")
    try:
        with ThreadPoolExecutor(2) as pool:
            first, second = pool.submit(inside), pool.submit(outside)
            assert first.result() == "numpy"
            assert second.result() == "array_api_strict"
    finally:
        wg.set_backend(before)


def test_a_failed_set_backend_changes_nothing() -> None:
    before = selection()
    for wrong in ("nosuch", "numpy:tpu"):
        with pytest.raises(wg.BackendError):
            wg.set_backend(wrong)
    assert selection() == before


def test_operations_follow_their_arrays_and_not_the_selection(backend: Backend) -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    with wg.use_backend("numpy"):
        y = wg.exp(x) * 2
        z = wg.zeros_like(x)
        y.backward(wg.ones_like(y))
        assert x.grad is not None
        assert {t.backend.name for t in (y, z, x.grad)} == {backend.name}


@pytest.mark.parametrize("name", ["nosuch", "dpnp", "cupy"])
def test_a_library_that_is_not_there_has_one_traceback(name: str) -> None:
    """The reason stands in the message."""
    if name in installed:
        pytest.skip(f"{name} is installed")
    with pytest.raises(wg.BackendError, match="No module named") as told:
        wg.set_backend(name)
    assert told.value.__suppress_context__ and told.value.__cause__ is None


def test_a_library_that_breaks_keeps_its_traceback(tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "broken_library.py").write_text("raise OSError('lib.so is missing')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(wg.BackendError, match=r"OSError: lib\.so is missing") as told:
        wg.set_backend("broken_library")
    assert isinstance(told.value.__cause__, OSError)


@pytest.mark.slow
def test_report() -> None:
    name = installed[-1]
    done = run("-m wengert", WENGERT_BACKEND=name)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"wengert {wg.__version__}, Python ")
    assert done.stdout.splitlines()[-1] == f"selected: {name} (WENGERT_BACKEND={name})"
    assert f"numpy {np.__version__}" in " ".join(done.stdout.split())


@pytest.mark.slow
def test_report_says_why_and_what_is_missing() -> None:
    pytest.importorskip("array_api_strict")
    assert run("-m wengert").stdout.splitlines()[-1] == (
        "selected: numpy (the default; WENGERT_BACKEND is not set)"
    )
    done = run("-m wengert", WENGERT_BACKEND="array_api_strict:device1")
    assert done.stdout.splitlines()[-1].startswith("selected: array_api_strict, device device1 (")
    done = run("-m wengert", WENGERT_BACKEND="nosuch")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.strip().startswith("error: WENGERT_BACKEND=nosuch: there is no backend")
    if not builtin_backends()["cupy"]:
        assert "not installed; install wengert[cupy-cuda12x]" in done.stdout
