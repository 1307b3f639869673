"""Averages of models, against PyTorch's and by formulas."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert import nn, optim
from wengert.optim import swa_utils

STEPS = 6


def network(lib: Any, **options: Any) -> Any:
    return lib.Sequential(
        lib.Linear(3, 4, **options), lib.BatchNorm1d(4, **options), lib.Linear(4, 2, **options)
    )


def batches() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(8, 3)) for _ in range(STEPS)]


def functions(lib: Any) -> dict[str, dict[str, Any]]:
    return {
        "mean": {},
        "moving": {"avg_fn": lib.get_ema_avg_fn(0.9)},
        "buffers": {"avg_fn": lib.get_ema_avg_fn(0.7), "use_buffers": True},
    }


@pytest.fixture
def in_double() -> Any:
    """PyTorch divides by the count in its default dtype."""
    torch = pytest.importorskip("torch")
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.mark.oracle
@pytest.mark.usefixtures("in_double")
@pytest.mark.parametrize("name", functions(swa_utils))
def test_averages_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    theirs_of = torch.optim.swa_utils
    twin = network(torch.nn, dtype=torch.float64)
    with wg.use_backend("numpy"):
        net = network(nn, dtype=wg.float64)
        net.load_state_dict({k: v.detach().numpy() for k, v in twin.state_dict().items()})
        ours = swa_utils.AveragedModel(net, **functions(swa_utils)[name])
        theirs = theirs_of.AveragedModel(twin, **functions(theirs_of)[name])
        one = optim.SGD(net.parameters(), lr=0.01)
        other = torch.optim.SGD(twin.parameters(), lr=0.01)
        for x in batches():
            for model, optimiser, lib in ((net, one, wg.asarray), (twin, other, torch.tensor)):
                optimiser.zero_grad()
                (model(lib(x)) ** 2).mean().backward()
                optimiser.step()
            ours.update_parameters(net)
            theirs.update_parameters(twin)
        mine, yours = ours.state_dict(), theirs.state_dict()
        assert mine.keys() == yours.keys()
        for key, value in mine.items():
            np.testing.assert_allclose(value.numpy(), yours[key].numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_moving_average_in_steps(backend: Any, compiled: bool) -> None:
    model = nn.Linear(2, 1, bias=False, dtype=wg.float64)
    averaged = swa_utils.AveragedModel(model, avg_fn=swa_utils.get_ema_avg_fn(0.5))
    optimiser = optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        optimiser.zero_grad()
        wg.sum(model.weight**2).backward()
        optimiser.step()
        averaged.update_parameters(model)

    run = wg.compile(step, strict=True) if compiled else step
    p, expected = model.weight.detach().numpy(), None
    for _ in range(STEPS):
        run()
        p = p * 0.8
        expected = p if expected is None else 0.5 * expected + 0.5 * p
        np.testing.assert_allclose(averaged.module.weight.detach().numpy(), expected, rtol=1e-12)
    assert int(averaged.n_averaged) == STEPS
    assert averaged.module.weight.backend is backend
    x = wg.ones((3, 2), dtype=wg.float64)
    np.testing.assert_allclose(averaged(x).detach().numpy(), np.full((3, 1), expected.sum()))
    if compiled:
        assert run.report.recordings <= 2


def test_a_model_of_buffers_alone(backend: Any) -> None:
    model = nn.BatchNorm1d(2, affine=False)
    with wg.use_backend("numpy"):
        averaged = swa_utils.AveragedModel(model, use_buffers=True)
    assert averaged.n_averaged.dtype is wg.int64
    assert averaged.n_averaged.backend is backend
    for k in (1.0, 4.0):
        model.running_mean.copy_(wg.full((2,), k))
        averaged.update_parameters(model)
    assert int(averaged.n_averaged) == 2
    assert averaged.module.running_mean.tolist() == [2.5, 2.5]
    model.weight = nn.Parameter(wg.ones(2))  # averaged alone; buffers are as they are
    averaged = swa_utils.AveragedModel(model)
    for k in (1.0, 4.0):
        model.running_mean.copy_(wg.full((2,), k))
        averaged.update_parameters(model)
    assert averaged.module.running_mean.tolist() == [4.0, 4.0]
    empty = swa_utils.AveragedModel(nn.ReLU())
    empty.update_parameters(nn.ReLU())
    assert empty.n_averaged.dtype is wg.int64 and int(empty.n_averaged) == 1


@pytest.mark.oracle
def test_a_model_that_is_moved_is_told(backend: Any) -> None:
    """Also between libraries that do not know each other's devices."""
    pytest.importorskip("torch")
    model = nn.Linear(2, 1)
    averaged = swa_utils.AveragedModel(model)
    averaged.update_parameters(model)
    model.to("torch" if backend.name != "torch" else "numpy")
    with pytest.raises(wg.BackendError, match="arrays of two backends"):
        averaged.update_parameters(model)
    assert int(averaged.n_averaged) == 1


def test_bad_input() -> None:
    model = nn.Linear(2, 1)
    with pytest.raises(TypeError, match="takes no multi_avg_fn, which is of lists: give avg_fn"):
        swa_utils.AveragedModel(model, multi_avg_fn=max)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match=r"use AveragedModel\(model, avg_fn=get_ema"):
        swa_utils.get_ema_multi_avg_fn  # noqa: B018
    with pytest.raises(ValueError, match="decay value 2"):
        swa_utils.get_ema_avg_fn(2)
    averaged = swa_utils.AveragedModel(model)
    with pytest.raises(ValueError, match=r"parameters or buffers of other shapes.*\(1, 3\)"):
        averaged.update_parameters(nn.Linear(3, 1))
    assert int(averaged.n_averaged) == 0
