"""Arrays that come in, go out, and move between backends and devices."""

import array
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.backends import Backend, builtin_backends, get_backend

OTHERS = [n for n, found in builtin_backends().items() if found and n != "cupy"]


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int64", "uint8", "float32", "float64", "complex64", "complex128"]
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 2), (2, 3)])
def test_numpy_there_and_back(backend: Backend, dtype: str, shape: tuple[int, ...]) -> None:
    values = np.arange(max(np.prod(shape, dtype=int), 0)).reshape(shape).astype(dtype)
    x = wg.asarray(values)
    assert (x.backend, x.dtype, x.shape) == (backend, dtype, shape)
    back = x.numpy()
    assert back.dtype == values.dtype
    np.testing.assert_array_equal(back, values)


@pytest.mark.parametrize(
    "values",
    [
        np.arange(6.0)[::-1],
        np.arange(6.0).reshape(2, 3).T,
        np.arange(3.0).astype(">f8"),
        np.broadcast_to(np.arange(3.0), (2, 3)),
        np.float64(2.5),
    ],
    ids=["reversed", "transposed", "big-endian", "read-only", "scalar"],
)
def test_awkward_numpy_arrays(backend: Backend, values: Any) -> None:
    x = wg.asarray(values)
    assert x.dtype == wg.float64
    np.testing.assert_array_equal(x.numpy(), values)
    np.testing.assert_array_equal((x + 1).numpy(), values + 1)


def test_buffers(backend: Backend) -> None:
    np.testing.assert_array_equal(wg.asarray(array.array("d", [1, 2])).numpy(), [1.0, 2.0])
    assert wg.asarray(memoryview(b"ab")).dtype == wg.uint8


@pytest.mark.parametrize("target", OTHERS)
def test_to_backend_is_differentiated(backend: Backend, target: str) -> None:
    """Here a value goes two ways at once."""
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    moved = y.to_backend(target)
    assert (moved.backend.name, moved.dtype) == (target, wg.float32)
    np.testing.assert_array_equal(moved.detach().numpy(), [3.0, 6.0])
    loss = wg.sum(moved**2).to_backend(backend.name) + wg.sum(y)
    (g,) = wg.autograd.grad(loss, x, create_graph=True)
    assert g.backend is backend
    np.testing.assert_array_equal(g.detach().numpy(), [21.0, 39.0])
    (h,) = wg.autograd.grad(wg.sum(g), x)
    np.testing.assert_array_equal(h.numpy(), [18.0, 18.0])


def test_to_takes_dtypes_devices_and_tensors(backend: Backend) -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    assert x.to_backend(backend.name) is x.to_device(x.device) is x.to(wg.float32) is x
    with pytest.raises(wg.BackendError, match="no backend 'nosuch'"):
        x.to_backend("nosuch")
    assert x.to("float32", copy=True) is not x
    for y in (x.to(wg.float64), x.to("float64"), x.to(dtype=np.float64), x.double()):
        assert y.dtype is wg.float64
        assert y.requires_grad
    assert x.to(x.device, wg.complex64).dtype is wg.complex64
    with wg.use_backend("numpy"):
        other = wg.ones(1, dtype=wg.float64)
    moved = x.to(other)
    assert (moved.backend.name, moved.dtype) == ("numpy", wg.float64)
    with pytest.raises(ValueError, match=f"{backend.name} has no device 'nowhere'"):
        x.to("nowhere")


def test_devices_of_one_library() -> None:
    pytest.importorskip("array_api_strict")
    with wg.use_backend("array_api_strict"):
        x = wg.tensor([1.0, 2.0], requires_grad=True)
        y = (x * x).to_device("device1")
        assert y.device != x.device
        z = y * wg.tensor([3.0, 4.0], device="device1")
        z.backward(wg.ones_like(z))
        assert x.grad is not None
        assert x.grad.device == x.device
        np.testing.assert_array_equal(x.grad.numpy(), [6.0, 16.0])
        with pytest.raises(wg.BackendError, match=r"on two devices.*CPU_DEVICE.*device1"):
            x + y
        layer = wg.nn.Linear(2, 1).to(device="device1")
        with pytest.raises(wg.BackendError, match=r"linear was given arrays on two devices"):
            layer(wg.ones((3, 2)))
        assert wg.zeros_like(y).device == y.device
        with pytest.raises(ValueError, match="stream"):
            y.to_device(x.device, stream=1)


def test_without_float64_nothing_makes_one() -> None:
    pytest.importorskip("array_api_strict")
    with wg.use_backend("array_api_strict:no_float64"):
        made = [wg.ones(2), wg.rand(2), wg.tensor([1.0, 2.0]), wg.linspace(0, 1, 3), wg.arange(3.0)]
        for x in made:
            assert x.dtype is wg.float32
            x.requires_grad = True
            y = wg.sum(x * 2.5 / (x + 3) - x**2)
            y.backward()
            assert x.grad is not None
            assert x.grad.dtype is wg.float32
        with pytest.raises(ValueError, match="float64"):
            wg.ones(2, dtype=wg.float64)


def test_mixed_backends_are_refused(backend: Backend) -> None:
    other = "numpy" if backend.name != "numpy" else "array_api_strict"
    x = wg.ones(2, requires_grad=True)
    with wg.use_backend(other):
        y = wg.ones(2)
    for operation in (wg.add, wg.matmul, lambda a, b: wg.concat([a, b]), lambda a, b: a / b):
        with pytest.raises(wg.BackendError, match=r"two backends.*to_backend\(") as caught:
            operation(x, y)
        assert backend.name in str(caught.value)
        assert other in str(caught.value)
    np.testing.assert_array_equal((x + y.to_backend(backend.name)).detach().numpy(), [2.0, 2.0])


@pytest.mark.oracle
def test_arrays_of_a_known_library_stay_in_it() -> None:
    torch = pytest.importorskip("torch")
    given = torch.arange(3.0)
    with wg.use_backend("numpy"):
        x = wg.asarray(given)
        assert x.backend.name == "torch"
        assert x.array is given
        assert wg.add(x, given).backend.name == "torch"
        assert wg.exp(given).backend.name == "torch"
        copied = wg.tensor(given)
        given[0] = 7
        assert copied.tolist() == [0.0, 1.0, 2.0]
    # PyTorch's own tape is left alone.
    parameter = torch.nn.Parameter(torch.ones(2))
    assert not wg.asarray(parameter).array.requires_grad


def test_dlpack_out(backend: Backend) -> None:
    if backend.name == "dask":
        pytest.skip("Dask has no DLPack")
    x = wg.tensor([1.0, 2.0])
    host = {"device": "cpu"} if backend.name == "cupy" else {}
    np.testing.assert_array_equal(np.from_dlpack(x, **host), [1.0, 2.0])
    x.requires_grad = True
    with pytest.raises(BufferError, match="detach"):
        np.from_dlpack(x, **host)


@pytest.mark.parametrize("source", [n for n in OTHERS if n != "dask"])
def test_dlpack_in(backend: Backend, source: str) -> None:
    given = get_backend(source).from_numpy(np.arange(3, dtype=np.float32))
    x = wg.from_dlpack(given)
    assert (x.backend, x.dtype) == (backend, wg.float32)
    np.testing.assert_array_equal(x.numpy(), [0.0, 1.0, 2.0])
    y = wg.from_dlpack(given, copy=True)
    np.testing.assert_array_equal(y.numpy(), [0.0, 1.0, 2.0])


def test_copy(backend: Backend) -> None:
    values = np.ones(3, dtype=np.float32)
    x = wg.asarray(values, copy=True)
    y = wg.tensor(values)
    values[0] = 5
    assert x.tolist() == y.tolist() == [1.0, 1.0, 1.0]
    t = wg.tensor([1.0], requires_grad=True)
    assert wg.asarray(t) is wg.asarray(t, copy=False) is t
    copied = wg.asarray(t, copy=True)
    assert copied is not t
    assert copied.requires_grad
    with pytest.raises(ValueError, match="copy"):
        wg.asarray(t, dtype=wg.float64, copy=False)
    with pytest.raises(ValueError, match="copy"):
        wg.asarray([1.0], copy=False)
    if backend.name in ("numpy", "torch", "array_api_strict"):
        assert np.shares_memory(wg.asarray(values, copy=False).numpy(), values)


def _loaded(a: Any) -> Any:
    module = wg.nn.Module()
    module.register_buffer("w", wg.zeros(3, dtype=wg.float64))
    module.load_state_dict({"w": a})
    return module.w


def _filled(a: Any) -> wg.Tensor:
    x = _x()
    x[:] = a
    return x


_squares = lambda x: wg.sum(x * x)
_x = lambda: wg.asarray([1.0, 2.0, 3.0], dtype=wg.float64)


#: By which an array comes in: those that convert any library's, and those that take the backend's.
CONVERTING: dict[str, Any] = {
    "asarray": wg.asarray,
    "tensor": wg.tensor,
    "from_numpy": wg.from_numpy,
    "from_dlpack": wg.from_dlpack,
    "in a list": lambda a: wg.asarray([a, a]),
    "beside a Tensor": lambda a: wg.asarray([a, _x()]),
    "copy_": lambda a: _x().copy_(a),
    "copy_ of a list": lambda a: wg.zeros((2, 3), dtype=wg.float64).copy_([a, a]),
    "collate": lambda a: wg.data.default_collate([a, a]),
    "convert": wg.data.default_convert,
    "load_state_dict": _loaded,
}
TAKING: dict[str, Any] = {
    "Tensor": wg.Tensor,
    "Parameter": wg.nn.Parameter,
    "exp": wg.exp,
    "add": lambda a: wg.add(_x(), a),
    "+": lambda a: _x() + a,
    "reflected": lambda a: a * _x(),
    "+=": lambda a: _x().__iadd__(a),
    "where": lambda a: wg.where(_x() > 1, a, _x()),
    "stack": lambda a: wg.stack([_x(), a]),
    "NumPy's": lambda a: np.stack([_x(), a]),
    "set": _filled,
    "mse_loss": lambda a: wg.nn.functional.mse_loss(_x(), a),
    "grad": wg.grad(_squares),
    "grad of another": lambda a: wg.grad(lambda x, y: wg.sum(x * y))(np.ones(3), a),
    "hessian": wg.hessian(_squares),
    "tangent": lambda a: wg.jvp(_squares, (np.ones(3),), (a,)),
    "cotangent": lambda a: wg.vjp(lambda x: x * x, np.ones(3))[1](a),
}


def _doors(backend: Backend) -> dict[str, Any]:
    return {**CONVERTING, **(TAKING if backend.name == "numpy" else {})}


def test_no_mask_is_lost(backend: Backend) -> None:
    masked = np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 1, 0])
    whole = np.ma.masked_array([1.0, 2.0, 3.0])
    wrong: list[Any] = []
    refused = (TypeError, RuntimeError)  # the latter collects what a state lacks
    for name, door in _doors(backend).items():
        try:
            answer = door(masked)
        except refused as error:
            if name in ("asarray", "add", "grad", "Tensor") and "x.filled(0.0)" not in str(error):
                wrong.append((name, error))
        else:  # an operator may be the masked array's own, which keeps the mask
            if not isinstance(answer, np.ma.MaskedArray) and answer is not NotImplemented:
                wrong.append((name, answer))
    assert not wrong
    for make in (wg.asarray, wg.tensor, wg.from_numpy):
        np.testing.assert_array_equal(make(whole).numpy(), [1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="mask"):
        wg.asarray(np.ma.masked)


def test_every_door_takes_the_other_byte_order(backend: Backend) -> None:
    usual = np.asarray([1.0, 2.0, 3.0])
    for name, door in _doors(backend).items():
        both = (wg.func.tree_leaves(door(x)) for x in (usual.astype(">f8"), usual))
        for got, expected in zip(*both, strict=True):
            assert got.dtype == expected.dtype, name
            found, right = (wg.asarray(x).detach().numpy() for x in (got, expected))
            np.testing.assert_array_equal(found, right, name)
    if backend.name == "numpy":
        order = np.asarray([2, 0], dtype=">i8")
        np.testing.assert_array_equal(_x()[order].numpy(), [3.0, 1.0])
        np.testing.assert_array_equal(wg.take(_x(), order).numpy(), [3.0, 1.0])
