"""CuPy, on the simulation of it: what a training step asks of a device, and what CuPy lacks."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.nn.functional as F
from tests import simulated_cupy
from tests.simulated_cupy import Counts, counting
from tests.walking import lines_of, walk
from wengert import nn, optim
from wengert.backends import Backend

VERSION = simulated_cupy.version()
OPTIMISERS = {
    "sgd": lambda parameters: optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: optim.SGD(parameters, lr=0.1, momentum=0.9),
    "adam": lambda parameters: optim.Adam(parameters, lr=0.1),
}
#: Launches of one step of two layers with cross entropy, with CuPy 13: eager, and compiled.
#: A norm without overflow takes 19 of an eager step, however many gradients there are.
LAUNCHES = {
    ("sgd", ""): (61, 20),
    ("sgd", "dropout"): (67, 23),
    ("sgd", "clipping"): (89, 27),
    ("momentum", ""): (69, 20),
    ("momentum", "dropout"): (75, 23),
    ("momentum", "clipping"): (97, 27),
    ("adam", ""): (101, 20),
    ("adam", "dropout"): (107, 23),
    ("adam", "clipping"): (129, 28),
}
#: How many fewer CuPy 14 makes of an eager step, as its ``where`` does not copy the condition.
FEWER = {"": 7, "dropout": 7, "clipping": 10}


pytestmark = [pytest.mark.simulated, pytest.mark.usefixtures("backend")]


def training(optimiser: str, extra: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A step of training, and what it is called with."""
    dropout = [nn.Dropout(0.5)] if extra == "dropout" else []
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), *dropout, nn.Linear(16, 4))
    updates = OPTIMISERS[optimiser](model.parameters())

    def step(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
        updates.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if extra == "clipping":
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        updates.step()
        return loss

    rng = np.random.default_rng(0)
    x = wg.asarray(rng.standard_normal((32, 8)), dtype="float32")
    return step, (x, wg.asarray(rng.integers(0, 4, 32)))


def counted(step: Callable[..., Any], arguments: tuple[Any, ...]) -> Counts:
    """What one call asks for, after the first ones."""
    for _ in range(3):
        step(*arguments)
    with counting() as counts:
        step(*arguments)
    return counts


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(("optimiser", "extra"), LAUNCHES)
def test_a_training_step_waits_for_nothing_and_copies_nothing(
    optimiser: str, extra: str, compiled: bool
) -> None:
    step, arguments = training(optimiser, extra)
    run = wg.compile(step) if compiled else step
    counts = counted(run, arguments)
    assert not counts.synchronisations
    assert not counts.copies
    fewer = FEWER[extra] if VERSION >= 14 and not compiled else 0
    assert sum(counts.launches.values()) == LAUNCHES[optimiser, extra][compiled] - fewer
    if compiled:
        assert "ran eagerly" not in str(run.report)


def test_launches_of_single_functions() -> None:
    x = wg.asarray(np.arange(4.0), dtype="float32")
    for call, launches in [
        (lambda: wg.clip(x, 1, 2), 2),
        (lambda: wg.clip(x, 1, None), 1),
        (lambda: wg.clip(x, None, wg.asarray(2.0)), 1),
        (lambda: wg.nn.functional.relu(x), 1),
        (lambda: wg.special.expit(x), 1),
        (lambda: wg.special.erf(x), 1),
    ]:
        call()
        with counting() as counts:
            call()
        assert sum(counts.launches.values()) == launches
        assert not counts.synchronisations


def test_clip_is_that_of_the_standard() -> None:
    x = np.asarray([-1.0, 0.5, 3.0, np.nan], dtype="float32")
    for low, high in ((0, 1), (None, 1), (0, None), (np.nan, 1.0), (None, None), (0, 1e300)):
        found = wg.clip(wg.asarray(x), low, high)
        with np.errstate(over="ignore"):
            wanted = x if low is None is high else np.clip(x, low, high)
        np.testing.assert_array_equal(found.numpy(), np.asarray(wanted, dtype="float32"))
        assert found.dtype is wg.float32


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "int32", "int64", "uint64", "float16", "complex64"]
)
def test_sums_at_places_of_every_dtype(dtype: str, backend: Backend) -> None:
    """CUDA adds few of them at places where two may meet."""
    values = np.asarray([1, 100, 100, 3, 120]).astype(dtype)
    places = np.asarray([0, 1, 1, 2, 1])
    if dtype == "complex64":
        values = values * (1 - 2j)
    wanted = np.zeros(4, dtype)
    np.add.at(wanted, places, values)
    x, at = backend.from_numpy(values), backend.from_numpy(places)
    found = backend.namespace.scatter_add(x, at, key=("array",), shape=(4,))
    np.testing.assert_array_equal(backend.to_numpy(found), wanted)
    two = backend.namespace.scatter_add(x[::-1], at, at, key=("array", "array"), shape=(4, 4))
    square = np.zeros((4, 4), dtype)
    np.add.at(square, (places, places), values[::-1])
    np.testing.assert_array_equal(backend.to_numpy(two), square)


@pytest.mark.skipif(VERSION < 14, reason="CuPy has it from version 14 on")
def test_eigenvalues_are_complex_also_where_there_are_none() -> None:
    found = wg.linalg.eig(wg.zeros((0, 0), dtype="float32"))
    assert found.eigenvalues.dtype is found.eigenvectors.dtype is wg.complex64
    assert found.eigenvectors.shape == (0, 0)


def test_a_state_that_is_taken_changes_no_draw() -> None:
    wg.manual_seed(3)
    x = wg.zeros((5,))
    wanted = [wg.random.rand_like(x).numpy() for _ in range(4)]
    wg.manual_seed(3)
    found = [wg.random.rand_like(x).numpy()]
    with counting() as counts:
        state = wg.get_rng_state()
    assert not counts.synchronisations
    found += [wg.random.rand_like(x).numpy() for _ in range(3)]
    np.testing.assert_array_equal(found, wanted)
    wg.set_rng_state(state)
    np.testing.assert_array_equal(wg.random.rand_like(x).numpy(), wanted[1])


def test_a_device_prints_by_the_name_that_is_taken() -> None:
    x = wg.ones((2,), device="cuda:1")
    assert "device='cuda:1'" in repr(x)
    assert "device" not in repr(wg.ones((2,)))


def _device(x: wg.Tensor) -> int:
    return int(x.device)


MAKERS = {
    "arange": lambda **d: wg.arange(3, **d),
    "asarray": lambda **d: wg.asarray([1.0, 2.0], **d),
    "empty": lambda **d: wg.empty((2,), **d),
    "eye": lambda **d: wg.eye(2, **d),
    "full": lambda **d: wg.full((2,), 3.0, **d),
    "linspace": lambda **d: wg.linspace(0, 1, 3, **d),
    "linspace of complex numbers": lambda **d: wg.linspace(0, 1j, 3, **d),
    "normal": lambda **d: wg.random.randn(3, **d),
    "ones": lambda **d: wg.ones((2,), **d),
    "tensor": lambda **d: wg.tensor([1.0, 2.0], **d),
    "uniform": lambda **d: wg.random.rand(3, **d),
    "zeros": lambda **d: wg.zeros((2,), **d),
}


def test_arrays_are_made_on_the_device_that_is_named() -> None:
    for name, make in MAKERS.items():
        here, there = make(), make(device="cuda:1")
        assert (_device(here), _device(there)) == (0, 1), name
        with wg.use_backend("cupy:1"):
            assert _device(make()) == 1, name
        assert _device(make()) == 0, name


def test_arrays_like_others_and_copies_are_where_these_are() -> None:
    there = wg.ones((2, 2), device="cuda:1", requires_grad=True)
    for make in (wg.zeros_like, wg.ones_like, wg.empty_like, lambda x: wg.full_like(x, 2)):
        assert _device(make(there)) == 1
    again = pickle.loads(pickle.dumps(there))
    for made in (copy.deepcopy(there), again):
        assert _device(made) == 1
        assert made.requires_grad
        np.testing.assert_array_equal(made.detach().numpy(), np.ones((2, 2)))
    model = nn.Linear(2, 3).to(device="cuda:1")
    assert {_device(p) for p in copy.deepcopy(model).parameters()} == {1}
    assert {_device(p) for p in pickle.loads(pickle.dumps(model)).parameters()} == {1}


LOGITS = np.random.default_rng(0).normal(size=(7, 5)) * 3
WRONG = np.asarray([0, 4, 5, 3, -1, 1, 2])


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_row_that_there_is_not_is_nan(compiled: bool) -> None:
    """CuPy itself takes indices modulo the length."""
    wrong = (WRONG < 0) | (WRONG >= 5)

    def given(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
        return wg.sum(F.embedding(y, x[:5]), axis=1)

    run = wg.compile(given) if compiled else given
    for dtype in ("float32", "float64"):
        x, y = wg.asarray(LOGITS.astype(dtype)), wg.asarray(WRONG)
        with counting() as counts:
            found = run(x, y)
        assert not counts.synchronisations
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(np.isnan(found.numpy()), wrong)
        with wg.use_backend("numpy"):
            wanted = given(wg.asarray(LOGITS.astype(dtype)), wg.asarray(np.where(wrong, 0, WRONG)))
        np.testing.assert_allclose(found.numpy()[~wrong], wanted.numpy()[~wrong], rtol=1e-5)


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_of_a_class_that_there_is_not_is_nan(
    weighted: bool, smoothing: float, twice: bool
) -> None:
    x = wg.tensor(LOGITS.astype("float32"), requires_grad=True)
    weight = wg.ones(5, dtype="float32") if weighted else None
    options = {"ignore_index": -1, "reduction": "sum", "label_smoothing": smoothing}
    loss = F.cross_entropy(x, wg.tensor(WRONG), weight, **options)
    assert loss.dtype == x.dtype
    (found,) = wg.autograd.grad(loss, x, create_graph=twice)
    wrong = np.isnan(found.detach().numpy())
    np.testing.assert_array_equal(wrong, np.repeat(WRONG[:, None] == 5, 5, axis=1))


#: What CuPy refuses, of a device's array and a host's; `e` is on another device.
MIXED = lines_of("""
d + h  h + d  d < h  h * d  d @ h  h @ d  np.add(h, d)  np.concatenate([h, d])  cp.add(d, d, out=h)
cp.stack([d, h])  cp.where(h > 0, d, d)  cp.linalg.solve(cp.eye(2), h)  d.__iadd__(h)
d.__setitem__(slice(None), h)  h.__setitem__(slice(None), d)  np.asarray(d)  np.array([d, d])
h[cp.asarray([0])]  memoryview(d)  d + e  cp.concatenate([d, e])  d.__setitem__(slice(None), e)
""")


def test_the_simulation_refuses_what_cupy_refuses(backend: Backend) -> None:
    cp = backend.cupy
    d, h = cp.asarray([1.0, 2.0]), np.asarray([1.0, 2.0])
    with cp.cuda.Device(1):
        space = {"cp": cp, "np": np, "d": d, "h": h, "e": cp.asarray([1.0, 2.0])}

    def check(line: str) -> None:
        with pytest.raises((AttributeError, TypeError, ValueError)):
            eval(line, space)
        assert d.get().tolist() == h.tolist() == [1.0, 2.0]

    walk([(line,) for line in MIXED], check, whole=True)
