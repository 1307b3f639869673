"""Saved programs with collectives, which run without Wengert."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.distributed as wd
from tests.distributed.training import OPTIMISERS, batches, model_of, say, stepper
from wengert.compiler import messages


class _Blocked:
    """Lets nothing of Wengert be imported."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] == "wengert":
            raise ImportError(f"{name} is blocked")


@contextmanager
def without_wengert() -> Iterator[None]:
    """Run a ``with`` block as where Wengert is not installed."""
    held = {name: sys.modules.pop(name) for name in [*sys.modules] if name[:7] == "wengert"}
    sys.meta_path.insert(0, _Blocked)  # type: ignore[arg-type]
    try:
        with pytest.raises(ImportError, match="is blocked"):
            import_module("wengert")
        yield
    finally:
        sys.meta_path.remove(_Blocked)  # type: ignore[arg-type]
        sys.modules.update(held)


def saved(folder: str) -> None:
    """A saved step goes on as the compiled one does, without Wengert."""
    own = Path(folder) / str(wd.rank)
    own.mkdir()
    sys.path.insert(0, str(own))
    for name in OPTIMISERS:
        saved_training(own / f"step_{name}.py", name)
    saved_collectives(own)
    say("saved programs")


def saved_training(path: Path, name: str) -> None:
    model = wd.replicate(model_of(1))
    compiled = wg.compile(stepper(model, OPTIMISERS[name](model.parameters()), together=True))
    (x, t), *_ = wd.shard(batches(1))
    for _ in range(3):
        compiled(x, t)
    compiled.save(path)
    given = x.numpy(), t.numpy()
    with without_wengert():
        found = import_module(path.stem)
        losses = [float(found.step(*given)) for _ in range(4)]
    expected = [compiled(x, t).item() for _ in range(4)]
    np.testing.assert_allclose(losses, expected, rtol=1e-10)
    assert len({*losses}) == 4
    for at, y in model.named_parameters():
        np.testing.assert_allclose(found.state[f"model.{at}"], y.detach().numpy(), atol=1e-10)


def saved_collectives(own: Path) -> None:
    """All collectives in one program, real and complex; and what a file refuses."""

    @wg.compile
    def each(x: Any, z: Any) -> Any:
        several = [wd.all_reduce(x), wd.all_reduce(x, "mean"), wd.all_reduce(x, "max")]
        several += [wd.all_gather(z), wd.reduce_scatter(z), wd.broadcast(x, wd.size - 1)]
        return *several, wd.reduce(z, wd.size - 1), wd.all_reduce(wg.sum(x))

    draw = np.random.default_rng(wd.rank)
    x, z = draw.standard_normal((2 * wd.size, 3)), draw.standard_normal(2 * wd.size) * (1 + 2j)
    for _ in range(2):
        expected = each(wg.asarray(x), wg.asarray(z))
    each.save(own / "each.py")
    text = (own / "each.py").read_text()
    with without_wengert():
        found = import_module("each").each(x, z)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-12)
    assert f"({wd.rank}, {wd.size})" in text
    (own / "other.py").write_text(
        text.replace(f"({wd.rank}, {wd.size})", "(3, 7)").replace("each.npz", "other.npz")
    )
    (own / "each.npz").rename(own / "other.npz")
    with pytest.raises(RuntimeError, match=f"rank 3 of 7, and runs on rank {wd.rank} of {wd.size}"):
        import_module("other")
    if wd.size > 1:
        differing(own)


def differing(own: Path) -> None:
    """Saved programs that differ on the ranks: an error on all of them."""
    # Alone, so that the processes can be recorded apart.
    carrier = messages.connected()
    messages.connect(_Same(carrier))

    @wg.compile
    def step(x: Any) -> Any:
        return wd.all_reduce(x)

    given = np.ones(2 + (wd.rank == 1))
    for _ in range(2):
        step(wg.asarray(given))
    step.save(own / "differs.py")
    messages.connect(carrier)
    with without_wengert():
        found = import_module("differs")
    with pytest.raises(found.ExchangeError, match=r"rank 1 in all_reduce\(x: float64 of shape \(3"):
        found.step(given)


class _Same(messages.Carrier):
    """All processes hold the same."""

    def __init__(self, like: Any) -> None:
        self.rank, self.size, self.written = like.rank, like.size, like.written
