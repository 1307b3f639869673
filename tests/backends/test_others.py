"""Libraries that are not built in: by their namespace alone, and by an entry point."""

import importlib
import pickle
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.fft
import wengert.linalg
import wengert.special
from tests.backends import tiny
from tests.scripts import installed, python
from tests.walking import walk
from wengert.backends import registry
from wengert.backends.registry import backend_of, namespaces


def test_a_conforming_library_works_by_its_namespace_alone() -> None:
    x = wg.Tensor(tiny.Array([[1.0, 2.0], [3.0, 4.0]]), requires_grad=True)
    w = wg.asarray(tiny.Array([[0.5], [0.25]]))
    assert isinstance(w.array, tiny.Array)
    assert (x.backend.name, x.dtype) == (tiny.__name__, wg.float64)
    y = wg.sum(wg.exp(wg.tanh(x @ w) * 0.5)) + wg.sum(2 * wg.sin(x))
    y.backward()
    assert x.grad is not None
    assert isinstance(x.grad.array, tiny.Array)
    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    t = np.tanh(a @ np.array([[0.5], [0.25]]))
    expected = np.exp(t * 0.5) * 0.5 * (1 - t**2) * np.array([0.5, 0.25]) + 2 * np.cos(a)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-14)


def test_its_second_derivatives_and_moves_to_a_backend() -> None:
    x = wg.Tensor(tiny.Array([1.0, 2.0]), requires_grad=True)
    (g,) = wg.autograd.grad(wg.sum(x * x * x), x, create_graph=True)
    (h,) = wg.autograd.grad(wg.sum(g), x)
    np.testing.assert_allclose(h.numpy(), [6.0, 12.0], rtol=1e-14)
    wg.sum(x.to_backend("numpy") ** 2).backward()
    assert x.grad is not None
    assert isinstance(x.grad.array, tiny.Array)
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 4.0])


def test_what_it_lacks_is_named_and_it_is_not_mixed_with_others() -> None:
    x = wg.Tensor(tiny.Array([[1.0, 2.0], [3.0, 4.0]]))
    with wg.use_backend("numpy"):
        y = wg.ones((2, 2), dtype=wg.float64)
    for call, message in (
        (lambda: wg.linalg.eigvals(x), r"^tests.backends.tiny has no linalg\.eig in"),
        (backend_of(x.array).devices, r"no __array_namespace_info__. Write .* devices\(\)"),
        (lambda: x + y, "two backends"),
    ):
        with pytest.raises(wg.BackendError, match=message):
            call()


def test_what_is_no_array_is_refused() -> None:
    for wrong in ("text", object(), {"a": 1}):
        with pytest.raises(TypeError):
            wg.Tensor(wrong)
        with pytest.raises(TypeError):
            wg.asarray(wrong)
        with pytest.raises(TypeError, match="add takes Tensors"):
            wg.add(wg.ones(1), wrong)


TINY = """
from wengert.backends import Backend


class TinyBackend(Backend):
    name = "tiny"
    module = "tests.backends.tiny"

    def devices(self):
        return ["tiny"]

    def from_numpy(self, array, device=None):
        return self.xp.Array(array)


class Packed(Backend):
    name = "packed"
    module = "tinylib.array_api"
    devices = TinyBackend.devices


NAME = "tiny"
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A folder with a distribution whose entry points are backends, and no backend."""
    names = {"tiny": "TinyBackend", "wrong": "NAME", "packed": "Packed"}
    lines = [f"{name} = tiny_backend:{what}" for name, what in names.items()]
    installed(tmp_path, "tinylib", "\n".join(["[wengert.backends]", *lines]))
    (tmp_path / "tinylib").mkdir()
    (tmp_path / "tinylib" / "__init__.py").write_text("__version__ = '1.5'\n")
    (tmp_path / "tinylib" / "array_api.py").write_text("from numpy import asarray\n")
    (tmp_path / "tiny_backend.py").write_text(TINY)
    return tmp_path


@pytest.mark.slow
def test_an_entry_point_is_selected_by_its_name(plugin: Path) -> None:
    code = (
        "import wengert as wg\n"
        "x = wg.tensor([1.0, 2.0], requires_grad=True)\n"
        "wg.sum(x * x).backward()\n"
        "print(type(x.array).__module__, x.grad.tolist(), wg.ones(2).backend)\n"
        "from tests.backends import tiny\n"
        "print(wg.Tensor(tiny.Array([1.0])).backend is x.backend)\n"
    )
    done = python("-c", code, path=[plugin], WENGERT_BACKEND="tiny")
    assert done.stdout == "tests.backends.tiny [2.0, 4.0] <backend tiny>\nTrue\n", done.stderr
    report = python("-m", "wengert", path=[plugin], WENGERT_BACKEND="tiny").stdout
    assert "selected: tiny (WENGERT_BACKEND=tiny)" in report
    assert re.search(r"\npacked +1\.5 +tiny\n", report)  # the version of its package
    for name, message in (
        ("nosuch", "Installed: .*tiny"),
        ("wrong", "the entry point 'wrong' of 'wengert.backends' gave 'tiny'"),
    ):
        done = python("-m", "wengert", code=1, path=[plugin], WENGERT_BACKEND=name)
        assert re.search(message, done.stderr), done.stderr


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("make", [lambda x: np.ma.array(x, mask=[0, 1]), np.asmatrix])
def test_arrays_with_an_arithmetic_of_their_own_are_no_operands(make: Any) -> None:
    """Their bare elements would be taken for what they mean."""
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    other = make([1.0, 2.0])
    for function in (
        lambda: wg.add(x, other),
        lambda: x * other,
        lambda: other @ x,
        lambda: wg.sum(other),
        lambda: wg.where(x > 1, x, other),
        lambda: wg.concat([x, other]),
        lambda: wg.grad(lambda t: wg.sum(t**2))(other),
    ):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            function()
    plain = other.filled(0.0) if isinstance(other, np.ma.MaskedArray) else np.asarray(other)
    assert wg.asarray(plain).shape == plain.shape  # on demand


def test_a_library_is_selected_by_the_module_of_its_namespace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tiny, "__array_namespace_info__", object, raising=False)
    with wg.use_backend("tests.backends.tiny"):
        x = wg.zeros((2,), dtype="float64")
    assert isinstance(x.array, tiny.Array) and x.backend.name == "tests.backends.tiny"
    assert pickle.loads(pickle.dumps(x)).backend is x.backend
    with pytest.raises(wg.BackendError, match="json is no namespace of the Array API standard"):
        wg.set_backend("json")


def test_a_library_that_is_known_and_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ndonnx", None)
    monkeypatch.delitem(registry._loaded, "ndonnx", raising=False)
    known = vars(importlib.import_module("wengert.backends.ndonnx").BACKEND)
    for name in ("namespace", "xp"):
        monkeypatch.delitem(known, name, raising=False)
    with pytest.raises(wg.BackendError, match=r"install wengert\[onnx\]"):
        wg.set_backend("ndonnx")


def test_compiled_programs_of_a_library_and_what_stands_beside_it() -> None:
    """The library's own calls need no look; a project's code beside its namespace is the user's."""
    x = wg.asarray(tiny.Array([1.0, 2.0]))
    factor = [2.0]

    @wg.compile
    def scaled(x: Any) -> Any:
        return wg.sum(wg.exp(x) * factor[0])

    for factor[0] in (2.0, 2.0, 3.0):
        expected = factor[0] * np.exp([1.0, 2.0]).sum()
        assert scaled(x).item() == pytest.approx(expected, rel=1e-14)
    assert scaled.report.recordings == 2
    assert not registry.is_library("tests.backends.tiny")  # without a record that says so


def test_code_is_the_library_s_where_its_record_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = backend_of(tiny.Array([1.0]))
    monkeypatch.setitem(registry._loaded, backend.name, backend)
    monkeypatch.setattr(backend, "packages", ("tests.backends.tiny",), raising=False)
    assert registry.is_library("tests.backends.tiny")
    assert registry.is_library("tests.backends.tiny.below")
    assert not registry.is_library("tests.backends.tiny_too")
    assert not registry.is_library("tests.backends")


def test_a_project_whose_package_is_a_namespace_is_the_user_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What its modules read is guarded, in the package of the namespace as elsewhere."""
    package, train = ModuleType("own_project"), ModuleType("own_project.train")
    vars(package).update({n: v for n, v in vars(tiny).items() if not n.startswith("__")})
    package.__array_namespace_info__ = object  # type: ignore[attr-defined]
    exec("RATE = 2.0\ndef scaled(x):\n    return x * RATE", vars(train))
    package.train = train  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "own_project", package)
    monkeypatch.setitem(sys.modules, "own_project.train", train)
    monkeypatch.delitem(namespaces, tiny.Array, raising=False)
    try:
        with wg.use_backend("own_project"):
            compiled = wg.compile(lambda x: train.scaled(x))
            x = wg.asarray(tiny.Array([3.0]))
            assert [compiled(x).item() for _ in range(3)] == [6.0] * 3
            train.RATE = 5.0  # type: ignore[attr-defined]
            assert compiled(x).item() == 15.0
    finally:
        registry._loaded.pop("own_project", None)
        namespaces.pop(tiny.Array, None)  # what was there before comes back


class OnDevice:
    """An array of another device, whose values the host gets if it asks."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, *, dl_device: tuple[int, int] | None = None, **options: Any) -> Any:
        if dl_device != (1, 0):
            raise BufferError("on another device")
        return np.arange(3.0).__dlpack__()


def test_values_are_asked_for_on_the_host() -> None:
    assert backend_of(tiny.Array([1.0])).to_numpy(OnDevice()).tolist() == [0.0, 1.0, 2.0]


GRID = np.arange(12.0).reshape(3, 4) / 4 - 1
SQUARE = np.asarray([[2.0, 9.0], [1.0, 3.0]])
INTS, NONE = np.asarray([3, 1, 3, 2], "int32"), np.zeros((2, 0))


def slope(function: Any) -> Any:
    return lambda x: wg.grad(lambda x: wg.sum(wg.square(function(x))))(x)


def replaced(key: Any, value: Any) -> Any:
    return lambda x: wg.at(x)[key].set(value)


def moved(make: Any) -> Any:
    """A parameter after two steps."""

    def run(x: wg.Tensor) -> wg.Tensor:
        x = x.detach().clone().requires_grad_()
        optimizer = make([x])
        for _ in range(2):
            optimizer.zero_grad()
            wg.sum(x * x * x).backward()
            optimizer.step()
        return x.detach()

    return run


#: What libraries compute otherwise than NumPy, or Wengert for them: the array, and the functions.
#: JAX, which compiles each, has the first alone.
ELSEWHERE: list[tuple[np.ndarray, list[Any]]] = [
    (GRID[0], [
        moved(lambda x: wg.optim.AdamW(x, lr=0.1)), moved(lambda x: wg.optim.RMSprop(x, lr=0.1)),
        moved(lambda x: wg.optim.SGD(x, lr=0.1, momentum=0.9)), wg.special.log_ndtr,
    ]),
    (GRID, [
        lambda x: x[1:, ::-2], lambda x: x[[0, 2], None, [1, 3]], lambda x: x[1, ..., [0, 1]],
        slope(lambda x: x[::-1, 1:]), slope(lambda x: x[[0, 0, 2]]), slope(lambda x: x[[0], [1]]),
        slope(lambda x: x[x > 0]), replaced(np.s_[::-1, 0], 5.0), replaced([0, 2], 1.5),
        lambda x: wg.at(x)[[0, 0, 2]].max(x[::-1]), lambda x: wg.at(x)[[2, 0]].min(x[1:]),
        lambda x: wg.count_nonzero(x, axis=0), lambda x: wg.var(x, axis=(), correction=0),
        lambda x: wg.var(x, axis=1, correction=1), lambda x: wg.special.softmax(x, axis=(0, 1)),
        lambda x: wg.special.log_softmax(x, axis=(0, 1)), lambda x: wg.special.log_softmax(x, 0),
        lambda x: wg.fft.rfftn(x), lambda x: wg.fft.irfftn(x + 1j), wg.special.digamma,
        wg.special.log_ndtr, wg.special.sinc, lambda x: wg.special.polygamma(1, x + 1.5),
        lambda x: wg.special.zeta(x + 3, 1.5), wg.nn.functional.silu,
        wg.nn.functional.leaky_relu, wg.nn.functional.softplus, wg.tril,
        lambda x: wg.triu(x, k=1), lambda x: wg.astype(wg.sum(wg.astype(x, "float16")), "float32"),
        lambda x: wg.linspace(0, 1 + 1j, 4, endpoint=False), lambda x: wg.eye(3, 5, k=1),
        lambda x: wg.linalg.qr(x, mode="complete").R, wg.linalg.svdvals, wg.linalg.pinv,
    ]),
    (GRID + 1j, [lambda x: wg.special.softmax(x, axis=1), wg.special.expit, wg.triu]),
    (SQUARE, [
        lambda x: wg.linalg.eigh(x).eigenvalues, wg.linalg.eigvalsh,
        wg.linalg.cholesky, lambda x: wg.linalg.solve(x, x + 1),
        lambda x: wg.abs(wg.linalg.svd(x, full_matrices=True).Vh),
    ]),
    (INTS, [
        lambda x: wg.unique_all(x).indices, wg.unique_values, wg.cumulative_prod, wg.reciprocal,
        lambda x: wg.searchsorted(wg.sort(x), x, side="right"), wg.sum, wg.flip,
        lambda x: wg.astype(x, "uint16")[::-1],
    ]),
    (NONE, [
        lambda x: wg.fft.rfftn(x, s=(2, 4)), lambda x: wg.fft.fftn(x.mT, s=(2,), axes=(1,)),
        lambda x: wg.reshape(x, (0, 5)), lambda x: wg.roll(x, 1, axis=0),
        lambda x: wg.take(x, wg.asarray([1]), axis=0), lambda x: wg.special.softmax(x, axis=(0, 1)),
    ]),
]  # fmt: skip
OTHERS = [
    (name, at, index)
    for name, most in (("torch", None), ("dask", None), ("jax", 1))
    for at, (_, functions) in enumerate(ELSEWHERE[:most])
    for index in range(len(functions))
]


@pytest.mark.whole
@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
def test_what_each_library_computes_is_numpys() -> None:
    def check(name: str, at: int, index: int) -> None:
        if importlib.util.find_spec(name) is None:
            return
        array, functions = ELSEWHERE[at]
        found = []
        for library in (name, "numpy"):
            with wg.use_backend(library):
                result = functions[index](wg.asarray(array))
                found.append(result)
        np.testing.assert_allclose(found[0].numpy(), found[1].numpy(), rtol=1e-6, atol=1e-9)
        assert found[0].dtype is found[1].dtype and found[0].backend.name == name

    walk(OTHERS, check, whole=True)


@pytest.mark.whole
@pytest.mark.oracle
def test_devices_that_are_not_there_are_refused_by_each_library() -> None:
    for name, device in (("torch", "cuda:77"), ("torch", "nowhere"), ("jax", "cpu:77")):
        if importlib.util.find_spec(name) is not None:
            with wg.use_backend(name), pytest.raises(ValueError, match=f"{name} has no device"):
                wg.ones(2, device=device)
