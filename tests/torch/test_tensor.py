"""Aliases of values, writes through views, options that do nothing, and files."""

import copy
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.scripts import python
from tests.walking import lines_of
from wengert import nn


def test_data_writes_through(room: Any) -> None:
    w = room.ones(2, 3, requires_grad=True)
    w.data.fill_(3.0)
    w.data[0] = 1.0
    w.data -= 0.5
    assert w.tolist() == [[0.5] * 3, [2.5] * 3]
    assert w.is_leaf and w.requires_grad and not w.data.requires_grad
    (w * w).sum().backward()
    w.grad.data.zero_()
    assert not w.grad.any()
    alias = w.data
    with room.no_grad():
        w *= 2
    assert alias[1, 0] == 5.0
    w.data, w.grad = room.zeros(4), None
    assert w.shape == (4,) and w.requires_grad
    (w + 1).sum().backward()
    assert w.grad.tolist() == [1.0] * 4


def test_a_tensor_that_data_was_set_to_is_shared_and_says_so(room: Any) -> None:
    w, value = room.ones(2, requires_grad=True), room.zeros(2)
    w.data = value
    with pytest.raises(wg.ViewWarning):
        value.add_(1)  # in PyTorch this changes w


def test_aliases_keep_their_values_where_data_is_set(room: Any) -> None:
    p, q = room.ones(2, requires_grad=True), room.zeros(2, requires_grad=True)
    backup = p.data
    p.data = room.tensor([5.0, 6.0])
    assert (p.tolist(), backup.tolist()) == ([5.0, 6.0], [1.0, 1.0])
    p.data = backup
    backup += 1  # in PyTorch the two share memory again
    assert (p.tolist(), backup.tolist()) == ([2.0, 2.0], [2.0, 2.0])
    p.data, q.data = q.data, p.data
    assert (p.tolist(), q.tolist()) == ([0.0, 0.0], [2.0, 2.0])
    old = q.data
    q.data = q.data * 2
    old.zero_()
    with room.no_grad():
        q += 1
    assert (old.tolist(), q.tolist(), p.tolist()) == ([0.0, 0.0], [5.0, 5.0], [0.0, 0.0])
    q.data.data = room.ones(2)  # in PyTorch that is another alias, which is gone
    assert q.tolist() == [5.0, 5.0]
    for kept in (copy.deepcopy(q.data), pickle.loads(pickle.dumps(q.data))):
        kept.zero_()
        assert q.tolist() == [5.0, 5.0] and kept.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "line",
    lines_of("""
x.view(-1).__setitem__(0, 1.0)  x.t().copy_(x + 1)  x[0].fill_(1.0)  x.data.view(-1).add_(1)
x.detach().zero_()  x.select(0, 0).fill_(2.0)  x.select(0, -1).__setitem__(0, 3.0)  x.mH.fill_(2.0)
nn.init.ones_(x[0]) * nn.init.zeros_(x[0])  nn.init.zeros_(x.data[0:1])
nn.init.uniform_(x.detach())  copy.copy(x).fill_(2.0)  copy.copy(nn.Parameter(x)).detach().zero_()
torch.meshgrid(x[0], x[1])[1].zero_()  x.t().diagonal().zero_()
torch.einsum("ii->i", x.t()).zero_()  torch.linalg.diagonal(x.mT).add_(1)
"""),
)
def test_a_write_through_a_view_is_an_error(room: Any, line: str) -> None:
    x = room.ones(2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the error is no warning, and stays
        with pytest.raises(wg.ViewWarning, match="clone"):
            eval(line, {"x": x, "nn": nn, "copy": copy, "torch": room})
    assert x.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_what_pytorch_gives_as_it_is_or_as_a_copy(room: Any) -> None:
    x = room.ones(2, 3)
    assert all(y is x for y in (+x, x.positive(), room.positive(x), x.contiguous()))
    with pytest.raises(TypeError, match="bool"):
        room.positive(x > 0)
    turned = x.t()
    turned.contiguous().add_(1)
    assert turned.sum() == 6
    summed = x.t() + 1  # whose layout only the array's own library knows
    with pytest.raises(wg.ViewWarning):
        summed.contiguous().add_(1)
    for wrapped in (nn.Parameter(x), room.ones(2, requires_grad=True), x):
        kept = copy.copy(wrapped)
        assert type(kept) is type(wrapped) and kept.requires_grad == wrapped.requires_grad


def test_reductions_without_nans(room: Any) -> None:
    x = room.tensor([[1.0, float("nan")], [2.0, 3.0]], requires_grad=True)
    assert x.nansum().item() == 6.0
    assert room.nanmean(x, 1, keepdim=True).tolist() == [[1.0], [2.5]]
    x.nanmean(dim=1).sum().backward()
    assert x.grad.tolist() == [[1.0, 0.0], [0.5, 0.5]]


def test_alpha_is_of_the_results_dtype(room: Any) -> None:
    small, flags = room.tensor([1, 0], dtype=room.int8), room.tensor([True, False])
    for found, dtype, values in (
        (room.add(small, flags, alpha=2), room.int8, [3, 0]),
        (room.add(flags, small, alpha=2), room.int8, [3, 0]),
        (room.add(flags, flags, alpha=2), room.bool, [True, False]),
        (room.add(flags, True, alpha=0), room.bool, [True, False]),
        (room.sub(small, 3, alpha=2), room.int8, [-5, -6]),
    ):
        assert (found.dtype, found.tolist()) == (dtype, values)


def test_a_write_into_a_state_dict_is_an_error(room: Any, tmp_path: Path) -> None:
    model = room.nn.Linear(1, 1)
    before = model.weight.tolist()
    state = model.state_dict()
    for write in (lambda v: v.copy_(room.zeros(1, 1)), lambda v: v.mul_(0.9), lambda v: v.zero_()):
        with pytest.raises(RuntimeError, match=r"no_grad.*copy_"):
            write(state["weight"])
    with pytest.raises(RuntimeError, match="clone"):
        state["weight"] += 1
    assert state["weight"].tolist() == before == model.weight.tolist()
    for copied in (copy.deepcopy(state), {k: v.clone() for k, v in state.items()}):
        copied["weight"].add_(1)
        model.load_state_dict(copied)
        assert model.weight.item() == pytest.approx(before[0][0] + 1)
    model.load_state_dict(state)
    room.save(state, tmp_path / "state.pt")
    room.load(tmp_path / "state.pt")["weight"].zero_()
    assert model.weight.tolist() == before
    model.state_dict(keep_vars=True)["weight"].data.zero_()
    assert model.weight.item() == 0


def test_data_is_not_there_where_it_would_be_lost(room: Any) -> None:
    with pytest.raises(RuntimeError, match="transforms"):
        wg.jvp(lambda x: (x.data * x).sum(), (room.ones(2),), (room.ones(2),))


def test_in_place_methods_refuse_other_kinds(room: Any) -> None:
    with pytest.raises(RuntimeError, match="can't be stored"):
        room.tensor([4]).sqrt_()
    with pytest.raises(RuntimeError, match="leaf"):
        room.ones(2, requires_grad=True).unsqueeze_(0)
    with pytest.raises(RuntimeError, match="leaf"):
        room.ones(2, requires_grad=True).normal_()


def test_options_that_do_nothing_say_so_once(room: Any) -> None:
    from wengert.torch.modules import say

    say.cache_clear()
    data = room.utils.data.TensorDataset(room.ones(4, 2))
    with pytest.warns(UserWarning, match="num_workers"):
        loader = room.utils.data.DataLoader(data, batch_size=2, num_workers=2)
    room.utils.data.DataLoader(data, batch_size=2, num_workers=2)
    assert len(list(loader)) == 2
    with pytest.warns(UserWarning, match="autocast"), room.autocast("cpu"):
        pass
    with room.autocast("cpu", enabled=False):
        pass


def test_files_are_no_pickles(room: Any, tmp_path: Path) -> None:
    model = room.nn.Linear(2, 3)
    room.save({"epoch": 3, "model": model.state_dict()}, tmp_path / "a.pt")
    found = room.load(tmp_path / "a.pt", map_location="cpu")
    assert found["epoch"] == 3 and not found["model"]["weight"].requires_grad
    room.save([model.weight, model.weight.detach()], tmp_path / "w.pt")
    assert [w.requires_grad for w in room.load(tmp_path / "w.pt")] == [True, False]
    model.load_state_dict(found["model"])
    wg.nn.save(model.state_dict(), tmp_path / "b.safetensors")
    assert set(room.load(tmp_path / "b.safetensors")) == {"weight", "bias"}
    with pytest.raises(TypeError, match="state_dict"):
        room.save(model, tmp_path / "c.pt")
    (tmp_path / "d.pt").write_bytes(b"\x80\x02}q\x00.")
    with pytest.raises(ValueError, match="pickle"):
        room.load(tmp_path / "d.pt")


def test_samples_have_the_moments_of_their_distributions(room: Any) -> None:
    room.manual_seed(0)
    D, n = room.distributions, 20_000
    covariance = [[2.0, 0.5], [0.5, 1.0]]
    for d, mean, variance in (
        (D.Normal(1.0, 2.0), 1.0, 4.0),
        (D.Laplace(1.0, 2.0), 1.0, 8.0),
        (D.Uniform(-1.0, 3.0), 1.0, 4 / 3),
        (D.Exponential(2.0), 0.5, 0.25),
        (D.Gamma(3.0, 2.0), 1.5, 0.75),
        (D.Beta(2.0, 3.0), 0.4, 0.04),
        (D.Bernoulli(0.3), 0.3, 0.21),
        (D.MultivariateNormal(room.zeros(2), room.tensor(covariance)), [0.0, 0.0], [2.0, 1.0]),
    ):
        drawn = d.sample((n,)).numpy()
        bound = 5 * np.sqrt(np.asarray(variance) / n)
        assert np.all(np.abs(drawn.mean(0) - mean) < bound), type(d).__name__
        assert np.allclose(drawn.var(0), variance, rtol=0.1), type(d).__name__
    counts = D.Categorical(room.tensor([0.2, 0.0, 0.8])).sample((n,)).bincount(minlength=3)
    assert np.allclose(counts.numpy() / n, [0.2, 0.0, 0.8], atol=0.02) and counts[1] == 0
    loc = room.zeros(3, requires_grad=True)
    D.Normal(loc, 1.0).rsample((5,)).sum().backward()
    assert loc.grad.tolist() == [5.0] * 3
    assert not D.Normal(loc, 1.0).sample().requires_grad
    with pytest.raises(NotImplementedError, match="concentration"):
        D.Gamma(room.ones(2, requires_grad=True), 1.0).rsample()


def test_the_core_imports_no_room() -> None:
    code = "import sys, wengert.nn, wengert.optim; print('wengert.torch' in sys.modules)"
    assert python("-c", code).stdout == "False\n"
