"""Mixed precision: float32 masters of half-precision parameters, and scaled losses."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert import nn, optim
from wengert.backends import Backend


@pytest.fixture(autouse=True)
def half_precision(request: pytest.FixtureRequest) -> None:
    if "backend" in request.fixturenames:
        found: Backend = request.getfixturevalue("backend")
        if not hasattr(found.xp, "float16"):
            pytest.skip(f"{found.name} has no float16")


def data(dtype: Any = wg.float16) -> tuple[wg.Tensor, wg.Tensor]:
    drawn = np.random.default_rng(0)
    x, y = drawn.normal(size=(16, 4)), drawn.normal(size=(16, 1))
    return wg.asarray(x.astype("float32")).to(dtype), wg.asarray(y.astype("float32"))


def model(dtype: Any = wg.float16) -> nn.Module:
    wg.random.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(dtype)


def test_steps_below_the_spacing_add_up(backend: Backend) -> None:
    p = nn.Parameter(wg.ones(3, dtype=wg.float16))
    optimizer = wg.amp.master_weights(optim.SGD([p], lr=1e-4))
    for _ in range(100):  # each smaller than half the spacing of float16 at 1
        p.grad = wg.ones(3, dtype=wg.float16)
        optimizer.step()
    assert p.dtype is wg.float16
    np.testing.assert_allclose(p.detach().numpy(), 0.99, atol=2**-11)


def test_gradients_in_double_precision_stay() -> None:
    p = nn.Parameter(wg.asarray([1.0, 2.0], dtype=wg.float64))
    optimizer, scaler = wg.amp.master_weights(optim.SGD([p])), wg.amp.GradScaler(init_scale=8.0)
    scaler.scale(wg.sum(p / 3)).backward()
    scaler.unscale_(optimizer)
    assert p.grad is not None and p.grad.dtype is wg.float64
    np.testing.assert_allclose(p.grad.numpy(), 1 / 3, rtol=1e-15)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: optim.SGD(p, lr=0.01, momentum=0.9, nesterov=True, weight_decay=0.1),
        lambda p: optim.Adam(p, lr=0.01, amsgrad=True),
        lambda p: optim.RMSprop(p, centered=True, momentum=0.5),
        lambda p: optim.Lion(p, lr=0.01),
    ],
)
def test_masters_are_what_float32_parameters_would_be(make: Any, backend: Backend) -> None:
    half = [nn.Parameter(wg.asarray([0.5, -1.25, 3.0]).to(wg.float16))]
    full = [nn.Parameter(wg.asarray([0.5, -1.25, 3.0], dtype=wg.float32))]
    masters, plain = wg.amp.master_weights(make(half)), make(full)
    for step in range(5):
        for p in (*half, *full):
            p.grad = wg.asarray([0.25, -0.5, 1.0 + step], dtype=p.dtype)
        masters.step()
        plain.step()
        state = masters.state[half[0]]
        held = wg.astype(half[0].detach(), wg.float32) + wg.asarray(state["residual"])
        np.testing.assert_array_equal(held.numpy(), full[0].detach().numpy())
        assert {wg.asarray(x).dtype for x in state.values() if hasattr(x, "dtype")} == {wg.float32}


def test_a_parameter_that_was_loaded_is_not_overwritten_by_its_old_master() -> None:
    p = nn.Parameter(wg.ones(2, dtype=wg.float16))
    optimizer = wg.amp.master_weights(optim.SGD([p], lr=1e-4))
    p.grad = wg.ones(2, dtype=wg.float16)
    optimizer.step()
    with wg.no_grad():
        p.copy_(wg.full(2, 5.0, dtype=wg.float16))
    optimizer.step()
    np.testing.assert_allclose(p.detach().numpy(), 5.0, atol=1e-3)


@pytest.mark.parametrize("compiled", [False, True])
def test_what_rounding_took_from_an_old_value_is_not_added_to_a_new_one(
    compiled: bool, backend: Backend
) -> None:
    p = nn.Parameter(wg.asarray([1000.5, 3.0], dtype=wg.float16))
    optimizer = wg.amp.master_weights(optim.SGD([p], lr=0.2))

    def train() -> None:
        optimizer.zero_grad()
        wg.sum(p).backward()
        optimizer.step()

    step = wg.compile(train) if compiled else train
    step()
    with wg.no_grad():
        p.copy_(wg.asarray([0.25, 0.25], dtype=wg.float16))
    step()
    np.testing.assert_allclose(p.detach().numpy(), 0.05, rtol=1e-3)


def test_small_cotangents_survive_by_the_scale() -> None:
    def gradient(scale: float) -> Any:
        p = nn.Parameter(wg.ones(1, dtype=wg.float16))
        optimizer = wg.amp.master_weights(optim.SGD([p], lr=1.0))
        scaler = wg.amp.GradScaler(init_scale=scale)
        scaler.scale(wg.sum(wg.astype(p, wg.float32)) * 1e-9).backward()
        scaler.unscale_(optimizer)
        return p.grad

    assert gradient(1.0).item() == 0
    assert gradient(2.0**16).dtype is wg.float32
    np.testing.assert_allclose(gradient(2.0**16).item(), 1e-9, rtol=2e-2)


def test_a_step_with_infinite_gradients_is_left_out(backend: Backend) -> None:
    p = nn.Parameter(wg.ones(2, dtype=wg.float32))
    optimizer = optim.SGD([p], lr=0.5, momentum=0.9)
    scaler = wg.amp.GradScaler(init_scale=8.0, growth_interval=2)
    scales = []
    for value in (1.0, float("inf"), 1.0, 1.0, float("nan"), 1.0):
        before = p.detach().numpy().copy()
        p.grad = None
        scaler.scale(wg.sum(p * value)).backward()
        scaler.step(optimizer)
        assert (p.detach().numpy() == before).all() != np.isfinite(value)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [8.0, 4.0, 4.0, 8.0, 4.0, 4.0]


@pytest.mark.parametrize("value", [1.0, float("inf")])
def test_parameters_on_two_backends_step_together(value: float) -> None:
    ours = nn.Parameter(wg.ones(2, dtype=wg.float32))
    theirs = nn.Parameter(wg.ones(2, dtype=wg.float32).to_backend("array_api_strict"))
    optimizer, scaler = optim.SGD([ours, theirs], lr=0.5), wg.amp.GradScaler(init_scale=8.0)
    for p, slope in ((ours, 1.0), (theirs, value)):
        p.grad = wg.full_like(p.detach(), 8.0 * slope)
    scaler.step(optimizer)
    scaler.update()
    expected = ([0.5, 0.5], 8.0) if value == 1 else ([1.0, 1.0], 4.0)
    for p in (ours, theirs):
        assert (p.tolist(), scaler.get_scale()) == expected


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_scaled_losses_are_at_least_of_single_precision(dtype: str) -> None:
    loss = wg.asarray(3.0, dtype=dtype, requires_grad=True)
    scaler = wg.amp.GradScaler(init_scale=2.0**16)  # 3 * 2**16 is beyond float16
    scaled = [scaler.scale(loss), *scaler.scale([loss]), *scaler.scale((loss,))]
    scaled += scaler.scale(iter([loss]))
    wide = "float32" if dtype == "float16" else dtype
    assert [(each.dtype.name, each.item()) for each in scaled] == [(wide, 3 * 2.0**16)] * 4
    assert type(scaler.scale([loss])) is list and type(scaler.scale((loss,))) is tuple
    with pytest.raises(ValueError, match="iterable of Tensors, and is a float"):
        scaler.scale(1.0)


@pytest.mark.oracle
def test_the_scale_goes_pytorch_s_way() -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=3)
    ours = wg.amp.GradScaler(init_scale=4.0, growth_interval=3)
    p, q = torch.nn.Parameter(torch.ones(2)), nn.Parameter(wg.ones(2, dtype=wg.float32))
    first, second = torch.optim.SGD([p], lr=0.1), optim.SGD([q], lr=0.1)
    for factor in (1.0, 1.0, 1.0, 2.0, np.inf, 1.0, np.nan, 3.0, 1.0, 1.0):
        first.zero_grad()
        second.zero_grad()
        theirs.scale((p * p * factor).sum()).backward()
        ours.scale(wg.sum(q * q * factor)).backward()
        theirs.step(first)
        ours.step(second)
        theirs.update()
        ours.update()
        assert ours.get_scale() == theirs.get_scale()
        np.testing.assert_allclose(q.detach().numpy(), p.detach().numpy(), rtol=1e-6)
    assert ours.state_dict() == theirs.state_dict()


def test_a_checkpoint_keeps_masters_and_scale(tmp_path: Path) -> None:
    x, y = data()

    def step(net: nn.Module, optimizer: Any, scaler: Any) -> None:
        optimizer.zero_grad()
        scaler.scale(wg.mean((wg.astype(net(x), wg.float32) - y) ** 2)).backward()
        scaler.step(optimizer)
        scaler.update()

    def made() -> tuple[Any, Any, Any]:
        net = model()
        optimizer = wg.amp.master_weights(optim.Adam(net.parameters(), lr=0.01))
        return net, optimizer, wg.amp.GradScaler(init_scale=64.0, growth_interval=3)

    net, optimizer, scaler = first = made()
    for _ in range(4):
        step(*first)
    wg.save(tmp_path / "run", model=net, optimizer=optimizer, scaler=scaler)
    again = made()
    wg.load(tmp_path / "run", **dict(zip(("model", "optimizer", "scaler"), again, strict=True)))
    for _ in range(3):
        step(*first)
        step(*again)
    assert again[2].state_dict() == scaler.state_dict()
    for a, b in zip(net.parameters(), again[0].parameters(), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def test_errors() -> None:
    p = nn.Parameter(wg.ones(2, dtype=wg.float16))
    p.grad = wg.ones(2, dtype=wg.float16)
    q = nn.Parameter(wg.ones(2))
    q.grad = wg.ones(2)
    scaler = wg.amp.GradScaler()
    with pytest.raises(ValueError, match="FP16"):
        scaler.unscale_(optim.SGD([p]))
    with pytest.raises(TypeError, match="LBFGS"):
        wg.amp.master_weights(optim.LBFGS([p]))
    unused = optim.SGD([nn.Parameter(wg.ones(2))])
    for call in (scaler.unscale_, scaler.step):
        with pytest.raises(RuntimeError, match="none of the optimizer's parameters has a gradient"):
            call(unused)
    scaler.unscale_(fine := optim.SGD([q]))
    with pytest.raises(
        RuntimeError, match=r"unscale_\(\) has already been called on this optimizer"
    ):
        scaler.unscale_(fine)
    optimizer = optim.Adam([p])
    optimizer.step()
    plain = copy.deepcopy(optimizer.state_dict())
    with pytest.raises(RuntimeError, match="before the first step"):
        wg.amp.master_weights(optimizer)
    masters = wg.amp.master_weights(optim.Adam([p]))
    with pytest.raises(ValueError, match="residual"):
        masters.load_state_dict(plain)
    scaler.step(masters)
    with pytest.raises(RuntimeError, match="already"):
        scaler.step(masters)
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(masters)
    scaler.update()
    with pytest.raises(RuntimeError, match="No gradients"):
        scaler.update()
    with pytest.raises(RuntimeError, match="was not enabled"):
        scaler.load_state_dict({})
    before = scaler.state_dict()
    for steps in (-5, 1.5, float("nan")):
        with pytest.raises(ValueError, match="_growth_tracker counts steps"):
            scaler.load_state_dict({**before, "scale": 2.0, "_growth_tracker": steps})
        assert scaler.state_dict() == before
    for wrong in ({"growth_factor": 1.0}, {"backoff_factor": 1.0}, {"growth_interval": 0}):
        with pytest.raises(ValueError, match="must be"):
            wg.amp.GradScaler(**wrong)
    for name in ("init_scale", "growth_factor", "backoff_factor", "growth_interval"):
        told = "the scale" if name == "init_scale" else name
        with pytest.raises(TypeError, match=f"^{told} should be a number .*, and is an"):
            wg.amp.GradScaler(**{name: wg.ones(2)})


def test_a_loaded_count_beyond_the_interval_does_not_grow_the_scale() -> None:
    p = nn.Parameter(wg.ones(2))
    optimizer, scaler = optim.SGD([p], lr=0.1), wg.amp.GradScaler(init_scale=8.0, growth_interval=2)
    scaler.load_state_dict({**scaler.state_dict(), "_growth_tracker": 5})
    scaler.scale(wg.sum(p)).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.state_dict()["_growth_tracker"] == 6 and scaler.get_scale() == 8.0
