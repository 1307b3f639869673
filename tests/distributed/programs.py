"""The programs that the tests start on several processes: ``programs.py NAME ARGUMENT...``."""

import copy
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.distributed as wd
from wengert import nn, optim
from wengert.backends import messages
from wengert.distributed import averaging
from wengert.distributed.carriers import Line

#: The rows of the batches: even ones, an uneven one, and one with a row less than there are ranks.
SIZES = (8, 8, 7, 3)
OPTIMISERS: dict[str, Callable[..., Any]] = {
    "SGD": lambda parameters: optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": lambda parameters: optim.Adam(parameters, lr=0.01),
}


@contextmanager
def counted(expected: int) -> Iterator[None]:
    """Require so many collectives."""
    carrier = messages.connected()
    assert carrier is not None
    before = carrier.number
    yield
    assert carrier.number - before == expected, f"{carrier.number - before} of {expected}"


def say(*what: Any) -> None:
    print(f"rank {wd.rank}:", *what, flush=True)


def model_of(seed: int) -> nn.Module:
    wg.manual_seed(seed)
    wg.set_default_dtype(wg.float64)
    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3))


def batches(epochs: int = 2) -> list[tuple[Any, Any]]:
    draw = np.random.default_rng(3)
    return [
        (wg.asarray(draw.standard_normal((n, 5))), wg.asarray(draw.integers(0, 3, n)))
        for _ in range(epochs)
        for n in SIZES
    ]


# -- training --------------------------------------------------------------------------------------


def stepper(model: Any, optimiser: Any, together: bool) -> Callable[..., Any]:
    def step(x: Any, t: Any) -> Any:
        optimiser.zero_grad()
        if len(t):
            loss = nn.functional.cross_entropy(model(x), t)
            loss.backward()
        if together:
            wd.average(model, weight=len(t))
        optimiser.step()
        return loss.detach() if len(t) else wg.asarray(0.0)

    return step


def training(name: str, mode: str, overlap: bool = False) -> None:
    """The weights of one process that sees whole batches."""
    model = wd.replicate(model_of(seed=wd.rank), overlap=overlap)
    alone = copy.deepcopy(model)
    step = stepper(model, OPTIMISERS[name](model.parameters()), together=True)
    plain = stepper(alone, OPTIMISERS[name](alone.parameters()), together=False)
    if mode == "compiled":
        step = wg.compile(step)
    whole = batches()
    weights = {1.0}  # at first it is assumed to be 1
    for (x, t), (every, targets) in zip(wd.shard(whole), whole, strict=True):
        again = overlap and mode == "eager" and weights != {len(targets)}
        weights = {len(targets)}
        with counted(1 + again):
            loss = step(x, t)
        expected = plain(every, targets)
        with counted(1):
            found = wd.mean(loss, weight=len(t))
        assert abs(found.item() - expected.item()) < 1e-10, (found, expected)
    for (at, x), y in zip(model.named_parameters(), alone.parameters(), strict=True):
        worst = float(np.max(np.abs(x.detach().numpy() - y.detach().numpy())))
        assert worst < 1e-10, (at, worst)
    if mode == "compiled":
        assert "all_reduce(" in step.source
        assert step.report.recordings and step.report.checks, step.report
        assert "eagerly" not in str(step.report), step.report
    say("same weights")


def trainings() -> None:
    for name in OPTIMISERS:
        for mode in ("eager", "compiled"):
            training(name, mode)
            say(name, mode, "done")


# -- while the backward pass goes on ---------------------------------------------------------------


def overlapping() -> None:
    averaging.BUCKET = 200  # type: ignore[misc]  # bytes: three buckets
    for name in OPTIMISERS:
        training(name, "eager", overlap=True)
    training("Adam", "compiled", overlap=True)
    for case in (
        _once,
        _twice,
        _apart,
        _clipped,
        _penalised,
        _recorded,
        _failing,
        _anew,
        _other,
        _compiled,
    ):
        compare(case)
    frozen_and_unused()
    order()
    ended()
    say("overlapping")


def loss_of(model: Any) -> Any:
    x = wg.asarray(np.random.default_rng(wd.rank).standard_normal((4, 5)))
    return wg.sum(model(x) ** 2)


def _once(model: Any) -> None:
    loss_of(model).backward()


def _twice(model: Any) -> None:
    _once(model)
    _once(model)


def _apart(model: Any) -> None:
    """Ranks that make several backward passes, and ranks that make none."""
    for _ in range(wd.rank):
        _once(model)


def _clipped(model: Any) -> None:
    _once(model)
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)


def _penalised(model: Any) -> None:
    (g,) = wg.autograd.grad(loss_of(model), model[0].weight, create_graph=True)
    (loss_of(model) + wg.sum(g * g)).backward()


def _recorded(model: Any) -> None:
    """A gradient that can be differentiated itself."""
    loss_of(model).backward(create_graph=True)


def _failing(model: Any) -> None:
    """A backward pass that ends half-way, on one rank alone."""

    def fail(g: Any) -> None:
        raise ArithmeticError("half-way")

    if wd.rank == 0:
        handle = model[0].weight.register_hook(fail)
        with pytest.raises(ArithmeticError, match="half-way"):
            _once(model)
        handle.remove()
        model.zero_grad()
    _once(model)


def _anew(model: Any) -> None:
    """Gradients that are thrown away."""
    _once(model)
    model.zero_grad()
    wg.sum(model(wg.ones((1, 5)))).backward()


def _other(model: Any) -> None:
    """Collectives in between, one of them in the backward pass."""
    loss = wg.sum(wd.all_reduce(model(wg.ones((2, 5))) * (wd.rank + 1)))
    loss.backward()
    wd.mean(loss)


STEPS: dict[int, Any] = {}


def _compiled(model: Any) -> None:
    """A compiled backward pass, and an average outside."""
    if id(model) not in STEPS:
        STEPS[id(model)] = wg.compile(lambda x: wg.sum(model(x) ** 2).backward())
    STEPS[id(model)](wg.full((4, 5), wd.rank + 1.0))
    assert "eagerly" not in str(STEPS[id(model)].report)


def compare(run: Callable[[Any], None]) -> None:
    """Gradients that are sent in buckets, and those of a copy that are sent at once."""
    model = wd.replicate(model_of(7), overlap=True)
    plain = copy.deepcopy(model)
    found = averaging._OVERLAPS[model]
    # The last weights are of a rank that counts nothing, and has NaN, or no gradient.
    weighted = ((1, 1, 1, 1), (1, 2, 3, 4), (1, 2, 3, 4), (0, 2, 1, 1), (0, 2, 1, 1), (0, 2, 1, 1))
    for i, weights in enumerate(weighted):
        weight = weights[wd.rank]
        for each in (model, plain):
            each.zero_grad()
            run(each)
            if weight == 0 and i % 2:
                each.zero_grad()
            elif weight == 0:
                for x in each.parameters():
                    x.grad = None if x.grad is None else x.grad * float("nan")
            elif run is _apart and wd.rank == 0:
                weight = 0
            if run is _once and each is model:
                assert len(found._sent) == len(found.buckets) == 3
            wd.average(each, weight=weight)
        for x, y in zip(model.parameters(), plain.parameters(), strict=True):
            np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-12, atol=1e-300)
    assert wd.replicate(model) is model  # no buckets from now on
    _once(model)
    assert not found._sent and model not in averaging._OVERLAPS


def frozen_and_unused() -> None:
    """Parameters that come and go, and one that the loss does not depend on."""
    model = model_of(7)
    model[0].bias.requires_grad_(False)
    model = wd.replicate(model, overlap=True)
    for name in ("", "0.weight", "0.bias", "2.bias"):
        for key, x in model.named_parameters():
            if key == name:
                x.requires_grad_(not x.requires_grad)
        plain = copy.deepcopy(model)
        for _ in range(2):
            for each in (model, plain):
                each.zero_grad()
                _once(each)
                wd.average(each, weight=2)
            for x, y in zip(model.parameters(), plain.parameters(), strict=True):
                assert (x.grad is None) == (not x.requires_grad)
                if x.requires_grad:
                    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-12)
    model = wd.replicate(model_of(7), overlap=True)
    for _ in range(3):
        model.zero_grad()
        wg.sum(model[0](wg.ones((1, 5)))).backward()
        with pytest.raises(ValueError, match=r"2\.weight has no gradient on rank"):
            wd.average(model, weight=2)
    model[2].requires_grad_(False)
    wd.average(model, weight=2)
    np.testing.assert_allclose(model[0].bias.grad.numpy(), 1.0)


def order() -> None:
    """The order of the buckets is one, whatever that of the backward passes is."""

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(5, 6), nn.Linear(5, 6)

        def forward(self, x: Any) -> Any:
            first, second = (self.a, self.b) if wd.rank % 2 else (self.b, self.a)
            return second(x * wg.sum(first(x)))

    wg.manual_seed(0)
    wg.set_default_dtype(wg.float64)
    model = wd.replicate(Two(), overlap=True)
    carrier: Any = messages.connected()
    start, begun, came = carrier.start, list[int](), list[str]()
    for name, x in model.named_parameters():
        x.register_post_accumulate_grad_hook(lambda x, name=name: came.append(name))

    def spied(name: str, x: Any, root: int, group: Any = None) -> Any:
        if group is not None:
            begun.append(x.size)
        return start(name, x, root, group)

    carrier.start = spied
    for _ in range(3):
        model.zero_grad()
        wg.sum(model(wg.ones((2, 5)))).backward()
        wd.average(model, weight=2)
    carrier.start = start
    assert begun == [6, 30, 6, 30] * 3
    assert len({*carrier.texts("buckets", str(begun))}) == 1
    assert len({*carrier.texts("passes", str(came))}) == min(wd.size, 2)


def ended() -> None:
    """The program may end between the backward pass and `average`, on some ranks."""
    model = wd.replicate(model_of(7), overlap=True)
    if wd.rank == 0:
        wg.sum(model[2](wg.ones((1, 6)))).backward()
    global unfinished  # which the end of the program meets
    unfinished = model
    complete = Line.complete

    def told(self: Line) -> None:
        complete(self)
        say("completed", len(self._going))

    Line.complete = told  # type: ignore[method-assign]


# -- once a call -----------------------------------------------------------------------------------


def once() -> None:
    """Collectives of a call, whatever the compiler does on one of the ranks."""
    w = wg.asarray(np.linspace(0.5, 1.5, 4), requires_grad=True)

    def step(x: Any, noisy: bool = False) -> Any:
        y = wd.all_reduce(wg.sin(w * wg.sum(x)))
        if noisy:
            print("stops the recording", file=sys.stderr)
        loss = wg.sum(wd.broadcast(y * y, wd.size - 1))
        (g,) = wg.autograd.grad(loss, w)
        return loss.detach(), g

    run = wg.compile(step)
    for i in range(8):
        # At steps 3 and 5 the last rank alone meets another shape, and so records and checks anew.
        rows = 3 if i in (3, 5) and wd.rank == wd.size - 1 else 2
        x = wg.asarray(np.full(rows, 0.1 * i))
        with counted(4):
            found = run(x)
        with counted(4):
            expected = step(x)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-13)
    programs = 2 if wd.rank == wd.size - 1 else 1
    assert run.report.recordings == run.report.checks == programs, run.report
    # A recording that is given up half-way, on one rank alone.
    for _ in range(3):
        with counted(4):
            found = run(x, wd.rank == 0)
        for one, other in zip(found, step(x), strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-13)
    assert ("eagerly" in str(run.report)) == (wd.rank == 0), run.report
    outside(w)
    say("once")


def outside(w: Any) -> None:
    """A sweep outside the compiled function, and none that a recording or a check makes."""
    run = wg.compile(lambda x: wg.sum(wd.all_reduce(wg.sin(w) * x)) ** 2)
    for _ in range(3):
        with counted(1):
            loss = run(wg.asarray(np.ones(4)))
        with counted(1):
            (found,) = wg.autograd.grad(loss, w)
        with counted(2):
            loss = run.eagerly(wg.asarray(np.ones(4)))
            (expected,) = wg.autograd.grad(loss, w)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-13)
    loss = run(wg.asarray(np.ones(4)))
    with pytest.raises(RuntimeError, match="collectives, which other processes may not run again"):
        wg.autograd.grad(loss, w, create_graph=True)


def kept() -> None:
    """A collective whose result is not used, and two that are equal, stay in the program."""

    @wg.compile
    def step(x: Any) -> Any:
        wd.all_reduce(x)
        return wd.all_reduce(x) + wd.all_reduce(x)

    for _ in range(3):
        with counted(3):
            step(wg.asarray(np.ones(2)))
    assert step.source.count("= all_reduce(") == 3, step.source
    say("kept")


def wrong() -> None:
    """A function that gives a collective other values in its second run: no silent difference."""
    from wengert.compiler.capture.errors import CompileError
    from wengert.compiler.exchanges import noted

    exchange, x = messages.exchange, np.ones(2)
    space = wg.get_backend("numpy").namespace
    with noted("step"):
        one = exchange(space, "all_reduce", x, op="sum")
        messages.rewind(0)
        two = exchange(space, "all_reduce", x * (1 + 1e-16), op="sum")
        np.testing.assert_array_equal(one, two)
        messages.rewind(0)
        for name, given in (("all_reduce", x * 2), ("all_gather", x)):
            with pytest.raises(CompileError, match="has run twice"):
                exchange(space, name, given, **({"op": "sum"} if name == "all_reduce" else {}))
            messages.rewind(0)
        messages.rewind(1)

    def once_less() -> None:
        with noted("step"):
            exchange(space, "all_reduce", x, op="sum")
            messages.rewind(0)

    with pytest.raises(CompileError, match="is not called by the function"):
        once_less()
    say("wrong")


# -- derivatives -----------------------------------------------------------------------------------


def derivatives(fast: str = "") -> None:
    """Gradients of the collectives, as a function of all ranks' inputs together."""
    from wengert.testing import gradcheck, gradgradcheck  # which imports much

    n, root = wd.size, wd.size - 1
    draw = np.random.default_rng(5)
    values = draw.standard_normal((n, 2 * n))
    weights = wg.asarray(np.random.default_rng(7 + wd.rank).standard_normal(2 * n * n))

    def own(X: Any) -> Any:
        """This rank's row of a matrix that all ranks have."""
        return wg.reshape(wd.reduce_scatter(X) / n, (2 * n,))

    def whole(y: Any) -> Any:
        """All ranks' results, on all ranks."""
        return wd.all_gather(wg.sin(y) * weights[: y.shape[0]])

    functions = {
        "all_reduce": lambda x: wd.all_reduce(x),
        "all_reduce mean": lambda x: wd.all_reduce(x, "mean"),
        "all_reduce max": lambda x: wd.all_reduce(x, "max"),
        "all_reduce min": lambda x: wd.all_reduce(x, "min"),
        "all_gather": wd.all_gather,
        "reduce_scatter": wd.reduce_scatter,
        "broadcast": lambda x: wd.broadcast(x, root),
        "reduce": lambda x: wd.reduce(x, root),
    }
    for name, f in functions.items():
        X = wg.asarray(values, requires_grad=True)
        function = lambda X, f=f: whole(f(own(X)))
        assert gradcheck(function, (X,), fast_mode=bool(fast)), name
        assert gradgradcheck(function, (X,), fast_mode=bool(fast)), name
        # Forward, and in batches of tangents and cotangents.
        back = wg.func.jacrev(function)(X.detach())
        ahead = wg.func.jacfwd(function)(X.detach())
        np.testing.assert_allclose(back.numpy(), ahead.numpy(), atol=1e-12, err_msg=name)
        z = wg.asarray(values[wd.rank] * (1 + 2j), requires_grad=True)
        if name.split()[-1] not in ("max", "min"):
            wg.sum(wg.real(f(z) * wg.asarray(1 - 1j))).backward()
            assert z.grad.dtype.complex and bool(wg.all(wg.isfinite(z.grad))), name
    say("derivatives")


def values() -> None:
    """What collectives give."""
    n, r = wd.size, wd.rank
    every = np.arange(6.0 * n * n).reshape(n, 2 * n, 3)
    for dtype in ("float32", "float64", "int64", "complex128"):
        given = every.astype(dtype)
        x = wg.asarray(given[r])
        expected = {
            "sum": (wd.all_reduce(x), given.sum(0)),
            "gather": (wd.all_gather(x), given.reshape(-1, 3)),
            "scatter": (wd.reduce_scatter(x), given.sum(0)[2 * r : 2 * r + 2]),
            "broadcast": (wd.broadcast(x, n - 1), given[-1]),
            "reduce": (wd.reduce(x, n - 1), given.sum(0) * (r == n - 1)),
        }
        if dtype[:5] == "float":
            expected |= {
                "mean": (wd.all_reduce(x, "mean"), given.mean(0)),
                "max": (wd.all_reduce(x, "max"), given[-1]),
                "min": (wd.all_reduce(x, "min"), given[0]),
            }
        for name, (found, right) in expected.items():
            assert found.dtype == x.dtype, name
            np.testing.assert_array_equal(found.numpy(), right, err_msg=name)
    flags = wd.broadcast(wg.asarray([r == 0, False]))
    assert flags.dtype == wg.bool and flags.numpy().tolist() == [True, False]
    assert wd.all_reduce(wg.asarray(2.0)).item() == 2.0 * n
    assert wd.all_gather(wg.zeros((0, 3))).shape == (0, 3)
    turned = wg.asarray(np.asfortranarray(every[r]))
    np.testing.assert_array_equal(wd.all_reduce(turned).numpy(), every.sum(0))
    say("values")


# -- saved programs --------------------------------------------------------------------------------


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


# -- what goes wrong -------------------------------------------------------------------------------


def starts() -> None:
    say("started")


def raises() -> None:
    for i in range(5):
        if wd.rank == 1 and i == 3:
            raise ArithmeticError("of the second rank")
        wd.all_reduce(wg.asarray([1.0]))


def killed() -> None:
    for i in range(50):
        if wd.rank == 1 and i == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        wd.all_reduce(wg.asarray([1.0]))
        time.sleep(0.01)


def killed_first() -> None:
    """The process that the others have found one another by."""
    for i in range(50):
        if wd.rank == 0 and i == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        wd.all_reduce(wg.asarray([1.0]))


def models_differ() -> None:
    wd.replicate(nn.Sequential(nn.Linear(3, 4 + (wd.rank == 1)), nn.Linear(4, 2)))


def batch_fewer() -> None:
    model = wd.replicate(model_of(0))
    step = stepper(model, OPTIMISERS["SGD"](model.parameters()), together=True)
    own = batches(1)[: 3 if wd.rank == 1 else 4]
    for x, t in own:
        step(x, t)


def shard_fewer() -> None:
    model = wd.replicate(model_of(0))
    step = stepper(model, OPTIMISERS["SGD"](model.parameters()), together=True)
    for x, t in wd.shard(batches(1)[: 3 if wd.rank == 1 else 4]):
        step(x, t)


def hangs() -> None:
    wd.init(timeout=2)
    wd.all_reduce(wg.asarray([1.0]))
    if wd.rank == 1:
        time.sleep(100)
    wd.all_reduce(wg.asarray([1.0, 2.0]))


def leaves() -> None:
    """A rank that ends early, with a status of its own."""
    if wd.rank == 1:
        sys.exit(3)
    wd.all_reduce(wg.asarray([1.0]))


def interrupts() -> None:
    if wd.rank == 1:
        raise KeyboardInterrupt
    wd.all_reduce(wg.asarray([1.0]))


def shapes_differ() -> None:
    wd.all_reduce(wg.zeros(2 + wd.rank))


def saves(folder: str) -> None:
    model = wd.replicate(model_of(wd.rank))
    path = Path(folder) / "run.safetensors"
    wd.save(path, model=model, step=1)
    assert path.exists()
    wd.save(path, model=model, step=2)
    other = model_of(5)
    assert wg.load(path, model=other)["step"] == 2
    for x, y in zip(model.parameters(), other.parameters(), strict=True):
        np.testing.assert_array_equal(x.detach().numpy(), y.detach().numpy())
    text = "No such file" if wd.rank == 0 else "rank 0 could not write"
    with pytest.raises((RuntimeError, FileNotFoundError), match=text):
        wd.save(Path(folder) / "nowhere" / "x.safetensors", model=model)
    say("saved", sorted(x.name for x in Path(folder).iterdir()))


def killed_while_saving(folder: str) -> None:
    """Rank 0 is killed before the new file has taken the old one's place."""
    path, model = Path(folder) / "run.safetensors", model_of(0)
    wd.save(path, model=model, step=1)
    say("old file")
    if wd.rank == 0:
        Path.replace = lambda self, target: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
    wd.save(path, model=model, step=2)
    say("new file")


def reads(folder: str) -> None:
    say("step", wg.load(Path(folder) / "run.safetensors", model=model_of(0))["step"])


def torch_arrays() -> None:
    """Training on PyTorch's arrays, and the collectives of torch.distributed itself."""
    import torch
    import torch.distributed as dist

    with wg.use_backend("torch"):
        training("SGD", "eager")
        training("SGD", "compiled")
        x = torch.arange(6.0).reshape(2, 3) + wd.rank
        expected = x.clone()
        dist.all_reduce(expected)
        found = wd.all_reduce(x)
        assert found.backend.name == "torch"
        assert torch.equal(found.array, expected)


if __name__ == "__main__":
    wd.init(timeout=30)
    for name in sys.argv[1].split("+"):
        program = globals()[name]
        program(*sys.argv[2:] if program.__code__.co_argcount else ())
