"""Checks on PyTorch's DTensors in two processes, for `test_dtensor`: ``dtensors.py NAME...``."""

import copy
import importlib
import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

import wengert as wg
from tests.backends import sharded
from wengert.backends import BackendError
from wengert.backends.registry import register
from wengert.nn import functional as F

sys.path.append(str(Path(__file__).parents[2] / "examples" / "backends"))
BACKEND = register(importlib.import_module("wengert_dtensor").BACKEND)
Layout = importlib.import_module("wengert_dtensor").Layout

X = sharded.X
UNEVEN = X[:15]
SHORT = X[:1]
layouts_: dict = {}


def layouts():
    """Placements on a mesh of two processes, and on meshes of two axes."""
    line = init_device_mesh("cpu", (2,))
    wide, high = init_device_mesh("cpu", (1, 2)), init_device_mesh("cpu", (2, 1))
    return {
        "rows": Layout(line, (Shard(0),)),
        "columns": Layout(line, (Shard(1),)),
        "whole": Layout(line, (Replicate(),)),
        "rows, whole": Layout(high, (Shard(0), Replicate())),
        "whole, columns": Layout(wide, (Replicate(), Shard(1))),
        "columns, rows": Layout(wide, (Shard(1), Shard(0))),
    }


def spread(x, layout):
    """A Tensor of a DTensor, as PyTorch distributes it."""
    return wg.asarray(distribute_tensor(torch.tensor(x), layout.mesh, layout.placements))


def values(x):
    """What PyTorch itself gathers."""
    return x.detach().array.full_tensor().numpy()


def same(ours, theirs, tolerance=1e-10):
    assert ours.shape == np.shape(theirs)
    np.testing.assert_allclose(values(ours), theirs, rtol=tolerance, atol=tolerance)


def beside(x, values):
    """An array for a program that runs on `x`, whole in each process."""
    return wg.asarray(values) if x.backend.name == "numpy" else spread(values, x.device.whole)


#: Those of `sharded` that make arrays without a device.
MADE = ("det", "indexed", "repeated", "solve", "tril", "joined", "nested", "three axes")
PROGRAMS = {
    **{name: program for name, program in sharded.PROGRAMS.items() if name not in MADE},
    "joined": lambda x: wg.concat([x, wg.ones_like(x) * 2, x], axis=0),
    "stacked": lambda x: wg.stack([x, x * 2], axis=1),
    "reshaped": lambda x: wg.permute_dims(wg.reshape(x, (x.shape[0], 5, 1)), (2, 0, 1)),
    "flattened": lambda x: wg.reshape(x, (-1,)) * 2 + wg.flip(wg.reshape(x, (-1,))),
    "product": lambda x: x @ x.mT,
    "columns": lambda x: wg.mean(x, axis=1, keepdims=True) * x + wg.var(x, axis=0),
    "softmax": lambda x: wg.special.softmax(x, axis=1) + wg.special.log_softmax(x, axis=0),
    "det": lambda x: wg.linalg.det(x.mT @ x / 16 + x[0, 0] * 0 + 1),
    "complex": lambda x: wg.abs(wg.special.softmax(x * (1 + 2j), axis=1)),
    "norms": lambda x: F.layer_norm(x, (5,)) + F.normalize(x),
    "indexed": lambda x: x[beside(x, np.zeros(3, int)), 1],
    "taken": lambda x: wg.take(x, beside(x, np.asarray([4, 0])), axis=1),
    "solved": lambda x: wg.linalg.solve(x.mT @ x + beside(x, 9 * np.eye(5)), x.mT),
    "embedded": lambda x: F.embedding(beside(x, np.asarray([[0, 0], [0, 0]])), x),
    "extremes": lambda x: wg.max(x, axis=0) - wg.min(x, axis=1, keepdims=True),
    "chosen": lambda x: wg.where(x > wg.mean(x), x, -x) + F.relu(x),
    "scalar": lambda x: wg.sum(x, axis=0) + 1 + wg.exp(wg.sum(x)) * 1e-9,
    "like": lambda x: wg.full_like(x, 3.0) * x + wg.zeros_like(x),
    "power": lambda x: (x * x + 1) ** 1.5 / wg.sqrt(wg.sum(x * x, axis=0)),
}


def programs():
    """Values and first and second derivatives are those of NumPy, whatever the layout."""
    others = [at for at in layouts_ if at not in ("rows", "columns")]
    for given in (X, UNEVEN, SHORT):
        for count, (name, program) in enumerate(PROGRAMS.items()):
            if given is SHORT and name in ("sliced", "set", "norm", "det"):
                continue
            there = sharded.differentiate(program, wg.asarray(given, copy=True))
            expected = [y.detach().numpy() for y in there]
            # Both ways to divide, and of the others one after the other; of few rows one of both.
            some = ["rows", "columns", others[count % len(others)]]
            for at in some if given is X else [some[count % 2]]:
                found = sharded.differentiate(program, spread(given, layouts_[at]))
                for ours, theirs in zip(found, expected, strict=True):
                    try:
                        same(ours, theirs)
                    except AssertionError as error:
                        raise AssertionError(f"{name} of {given.shape} in {at}: {error}") from None


def placements():
    """What keeps its parts, and what is whole."""
    rows, columns, whole = (layouts_[name] for name in ("rows", "columns", "whole"))
    x, w = spread(X, rows).requires_grad_(), spread(X[:3], whole).requires_grad_()
    assert x.device == rows and x.backend.name == "dtensor"
    y = wg.tanh(F.linear(x, w))
    assert y.device == rows
    loss = wg.mean(y * y)
    assert loss.device == whole
    loss.backward()
    assert x.grad.device == rows and w.grad.device == whole
    parts = spread(X.T[:, :4], columns)
    assert (x.detach() @ parts).device.placements in (rows.placements, columns.placements)
    for made in (wg.zeros_like(x), wg.rand_like(x), wg.clone(x), wg.exp(x), wg.sum(x, axis=1)):
        assert made.device == rows, made.device
    assert wg.sum(x, axis=0).device == whole
    moved = x.to(columns)
    assert moved.device == columns
    wg.sum(moved * moved).backward()
    with wg.use_backend("dtensor"):
        for made in (
            wg.ones((4, 2), device=rows),
            wg.arange(4, device=rows),
            wg.randn(4, device=rows),
        ):
            assert made.device == rows
        with pytest.raises(BackendError, match="made in a layout"):
            wg.ones(3)
    with pytest.raises(BackendError, match="two backends, dtensor"):
        x + wg.asarray(torch.tensor(X))
    partial = DTensor.from_local(torch.ones(2, dtype=torch.float64), rows.mesh, [Partial()])
    total = wg.asarray(partial)
    assert total.device == whole and total.numpy().tolist() == [2.0, 2.0]


def reading():
    """No part is taken for the whole."""
    x = spread(X, layouts_["rows"])
    assert "..." in repr(x) and "Shard" in repr(x)
    for read in (
        x.numpy,
        x.tolist,
        lambda: np.asarray(x),
        lambda: pickle.dumps(x),
        lambda: wg.to_backend(x, "torch"),
        lambda: wg.nn.save({"x": x}, "x.safetensors"),
        lambda: wg.save("x.safetensors", x=x),
    ):
        with pytest.raises((BackendError, TypeError), match="gather it"):
            read()
    for export in (x.__dlpack__, lambda: np.from_dlpack(x), lambda: torch.from_dlpack(x)):
        with pytest.raises(BackendError, match="gather it"):
            export()
    for given in (x, x.array):
        with pytest.raises(BackendError, match="gather it"):
            wg.from_dlpack(given)
    whole = x.to(x.device.whole)
    np.testing.assert_array_equal(np.from_dlpack(whole), X)
    np.testing.assert_array_equal(wg.from_dlpack(whole.array).numpy(), X)
    np.testing.assert_array_equal(whole.numpy(), X)
    assert wg.sum(x).item() == pytest.approx(X.sum())
    assert bool(wg.any(x > 0)) and float(x[3, 1]) == X[3, 1]
    assert whole.to_backend("torch").array.__class__ is torch.Tensor
    assert x.shape == (16, 5) and len(x) == 16 and x.size == 80
    y = copy.deepcopy(x)
    y[0] = 1.0
    y += 1
    expected = X.copy()
    expected[0] = 1
    same(y, expected + 1)
    same(x, X)


def drawing():
    """Random numbers differ between parts, and agree between copies, whatever the seeds are."""
    wg.manual_seed(dist.get_rank())
    for layout in layouts_.values():
        drawn = agreed(wg.rand_like(spread(X, layout)))
        assert np.unique(drawn).size == X.size
        with wg.use_backend("dtensor"):
            agreed(wg.randn(16, 5, device=layout.whole, dtype="float64"))
        dropped = agreed(F.dropout(spread(np.ones((16, 5)), layout), 0.5, training=True))
        assert 0 < (dropped == 0).sum() < 80
        assert not np.array_equal(dropped[:8], dropped[8:])


def agreed(x):
    """Values that both processes have."""
    own = values(x)
    every = [torch.empty(own.shape, dtype=torch.float64) for _ in range(2)]
    dist.all_gather(every, torch.tensor(own))
    assert torch.equal(*every)
    return own


def train(how, optimiser, compiled):
    """Five steps: the losses and the parameters."""
    wg.manual_seed(0)
    with wg.use_backend("torch"):
        net = wg.nn.Sequential(wg.nn.Linear(5, 8), wg.nn.Tanh(), wg.nn.Linear(8, 4)).double()
        x, t = wg.asarray(X), wg.asarray(sharded.CLASSES)
    if how:
        rows, columns, whole = (layouts_[name] for name in ("rows", "columns", "whole"))
        net.to("dtensor", device=whole)
        if how == "model":  # the first layer's rows, the second one's columns
            net[0].to(device=rows)
            net[2].weight.requires_grad_(False)
            net[2].weight._array = net[2].weight._array.redistribute(placements=columns.placements)
            net[2].weight.requires_grad_()
        x, t = (spread(v.numpy(), rows if how == "data" else whole) for v in (x, t))
    chosen = getattr(wg.optim, optimiser)(net.parameters(), lr=0.05)
    placed = [p.device for p in net.parameters()] if how else []

    def step(x, t):
        chosen.zero_grad()
        loss = F.cross_entropy(net(x), t)
        loss.backward()
        wg.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        chosen.step()
        return loss.detach()

    warnings.filterwarnings("ignore", ".*runs as it is")
    run = wg.compile(step, strict=False) if compiled else step
    losses = [run(x, t).item() for _ in range(5)]
    assert not compiled or "exchange data between processes" in str(run.report)
    if how:
        assert [p.device for p in net.parameters()] == placed
        assert [p.grad.device for p in net.parameters()] == placed
        return losses, [values(p) for p in net.parameters()]
    return losses, [p.detach().numpy() for p in net.parameters()]


def training():
    for optimiser in ("SGD", "Adam"):
        expected = train("", optimiser, False)
        for how in ("data", "model"):
            for compiled in (False, True):
                losses, parameters = train(how, optimiser, compiled)
                np.testing.assert_allclose(losses, expected[0], rtol=0, atol=1e-12)
                for ours, theirs in zip(parameters, expected[1], strict=True):
                    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


def main():
    dist.init_process_group("gloo")
    layouts_.update(layouts())
    warnings.simplefilter("error")
    for name in sys.argv[1].split("+"):
        globals()[name]()
        print(f"rank {dist.get_rank()}: {name}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
