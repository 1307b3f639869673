"""Checkpoints: less is kept, and the gradients are the same to the last bit."""

import gc
import weakref
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import leaf
from wengert import nn
from wengert.autograd import CheckpointError, checkpoint, checkpoint_sequential, graph
from wengert.tape.observers import observing
from wengert.testing import gradcheck, gradgradcheck
from wengert.testing.problem import values

pytestmark = pytest.mark.usefixtures("backend")


def exactly(tensors, others):
    for a, b in zip(tensors, others, strict=True):
        np.testing.assert_array_equal(values(a), values(b))


def layers(count, width=8, drop=0.0):
    wg.manual_seed(0)
    return [
        nn.Sequential(nn.Linear(width, width), nn.Dropout(drop), nn.Tanh()) for _ in range(count)
    ]


def test_without_the_generators_states_draws_differ():
    wg.manual_seed(0)
    x = wg.ones(1000, requires_grad=True)

    def masked(x):
        return (x * x) * wg.random.rand_like(x)

    y = checkpoint(masked, x, preserve_rng_state=False)
    y.sum().backward()
    assert not np.array_equal(values(x.grad), 2 * values(y))
    x.grad = None
    y = checkpoint(masked, x)
    y.sum().backward()
    np.testing.assert_array_equal(values(x.grad), 2 * values(y))


# -- what is differentiated ----------------------------------------------------------------------


def function(x, y):
    z = wg.exp(x) * y
    return z * wg.sin(z)


def test_derivatives_of_first_and_second_order():
    inputs = [leaf(0.3, -0.2), leaf(1.5, 0.5)]
    assert gradcheck(lambda x, y: checkpoint(function, x, y), inputs)
    assert gradgradcheck(lambda x, y: checkpoint(function, x, y), inputs)
    plain = wg.autograd.grad(function(*inputs).sum(), inputs)
    exactly(plain, wg.autograd.grad(checkpoint(function, *inputs).sum(), inputs))


class Average(nn.Module):
    """Divides by averages of what it has seen: one is written into, one replaced, one counts."""

    def __init__(self):
        super().__init__()
        self.register_buffer("held", wg.ones(3))
        self.register_buffer("seen", wg.ones(3))
        self.register_buffer("count", None)

    def forward(self, x):
        if self.training:
            mean = wg.mean(x.detach() ** 2, axis=0)
            self.held += mean
            self.held *= 1.5
            self.seen = 0.5 * self.seen + 0.5 * mean
            self.count = wg.asarray(1) if self.count is None else self.count + 1
        return wg.exp(x / (self.held + self.seen) * self.count)


class Swa(nn.Module):
    """Keeps averages of its own weights as it runs, and uses them."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.average = wg.optim.swa_utils.AveragedModel(self.layer)

    def forward(self, x):
        self.average.update_parameters(self.layer)
        return self.layer(x) * self.average(x).detach() * self.average.n_averaged


STATEFUL = {
    "batch norm": lambda: nn.BatchNorm1d(3),
    "cumulative": lambda: nn.BatchNorm1d(3, momentum=None),
    "spectral norm": lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)),
    "average": Average,
    "draws": lambda: nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5), Average()),
    "swa": Swa,
}


def nested(model):
    return lambda x: checkpoint(lambda x: checkpoint(model, x) * 2, x)


#: How a model is called twice before the sweep, beside calling it.
WAYS = {
    "plain": lambda model: lambda x: checkpoint(model, x) * 2,
    "closure": lambda model: lambda x: checkpoint(lambda: model(x)) * 2,
    "nested": nested,
    "sequential": lambda model: lambda x: checkpoint_sequential([model, nn.Identity()], 2, x) * 2,
}


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_what_a_function_writes_into_is_left_as_the_call_left_it(compiled):
    """Buffers, random numbers and gradients are those of calls without a checkpoint."""
    if wg.get_backend().name == "dask":
        pytest.skip("each step's graph holds those before it")

    def train(make, way):
        wg.manual_seed(0)
        model = make().train()
        x = wg.asarray(np.linspace(-1, 2, 12, dtype=np.float32).reshape(4, 3))
        x.requires_grad_(True)
        run = way(model)

        def step():
            loss = (run(x) + run(x * 2)).sum()
            for one in (x, *model.parameters()):
                one.grad = None
            loss.backward(retain_graph=True)
            loss.backward()
            return loss

        step()  # which makes a buffer that is None at first
        step = wg.compile(step) if compiled else step
        losses = [step() for _ in range(3)]
        grads = [one.grad for one in (x, *model.parameters()) if one.grad is not None]
        return [*losses, *grads, *model.state_dict().values(), wg.random.rand(2)]

    wrong = []
    for name, make in STATEFUL.items():
        if compiled and name == "draws":
            continue  # it draws again, which is refused
        expected = [values(t) for t in train(make, lambda model: lambda x: model(x) * 2)]
        for way, wrap in WAYS.items():
            found = [values(t) for t in train(make, wrap)]
            if not all(map(np.array_equal, found, expected)) or len(found) != len(expected):
                wrong.append((name, way))
    assert not wrong


def test_arrays_that_were_written_over_are_not_kept(backend):
    """What the function makes and drops itself has no past to be restored."""
    if backend.name in ("dask", "array_api_strict"):
        pytest.skip("dask keeps its graph, and array_api_strict's arrays take no weak references")
    first = []

    def function(x):
        with wg.no_grad():
            mask = wg.zeros(2)
            first.append(weakref.ref(mask._array))
            mask += 1
        h = x * 2
        first.append(weakref.ref(h._array))
        h += mask
        return h, wg.exp(h)

    kept = checkpoint(function, leaf(1.0, 2.0))
    assert [ref() for ref in first] == [None, None]
    assert all(one.requires_grad for one in kept)


def test_tensors_of_dataclasses_have_the_values_of_the_call():
    @dataclass
    class Batch:
        x: wg.Tensor
        scale: float = 2.0

    batch = Batch(leaf(2.0))
    y = checkpoint(lambda b: wg.exp(b.x) * b.scale, batch)
    before, batch.x, batch.scale = batch.x, leaf(7.0), 5.0
    y.backward()
    assert before.grad.item() == pytest.approx(2 * np.exp(2.0))


class Pair(NamedTuple):
    a: wg.Tensor
    b: float


def test_tuples_of_other_classes_and_what_only_looks_like_one():
    class Shape(tuple):
        __slots__ = ()

    class Row:
        _fields = ("a",)

    x, row = leaf(2.0), Row()

    def function(pair, shape, held):
        assert type(pair) is Pair and type(shape) is Shape and held is row
        return wg.exp(pair.a * pair.b * len(shape))

    checkpoint(function, Pair(x, 0.5), Shape((3, 4)), row).backward()
    assert x.grad.item() == pytest.approx(np.exp(2.0))


@pytest.mark.parametrize(
    ("wrap", "unwrap"),
    [
        (lambda h: h, lambda held: held),
        (lambda h: [h], lambda held: held[0]),
        (lambda h: ((h, 2),), lambda held: held[0][0]),
        (lambda h: {"h": h}, lambda held: held["h"]),
        (lambda h: Pair(h, 0.5), lambda held: held.a),
    ],
    ids=["Tensor", "list", "tuples", "dict", "NamedTuple"],
)
def test_values_are_those_of_the_call(wrap, unwrap):
    """Arguments that change after the call, in place, do not change what is computed again."""
    x = leaf(1.0, 2.0)
    h = x * 2
    y = checkpoint(lambda held: wg.sin(unwrap(held)) * wg.exp(unwrap(held)), wrap(h))
    h *= 100
    (g,) = wg.autograd.grad(y.sum(), x)
    z = x * 2
    exactly([g], wg.autograd.grad((wg.sin(z) * wg.exp(z)).sum(), x))


def test_operations_in_place_inside():
    def f(h, v):
        h += 1
        h *= v
        return wg.exp(h) * h

    def whole(x, call):
        h = x * 2
        y = call(h)
        return (y * h).sum()

    x, v = leaf(0.1, 0.2), leaf(0.5, 1.5)
    expected = wg.autograd.grad(whole(x, lambda h: f(h, v)), (x, v))
    exactly(expected, wg.autograd.grad(whole(x, lambda h: checkpoint(f, h, v)), (x, v)))


def test_only_one_recomputation_and_nothing_is_left(backend):
    if backend.name == "array_api_strict":
        pytest.skip("array_api_strict's arrays take no weak references")
    calls, alive = [], []

    def counted(x):
        calls.append(wg.is_grad_enabled())
        y = wg.exp(x)
        alive.append(weakref.ref(y._array))
        return wg.sin(y) * wg.tanh(y)

    x = leaf(0.5, 1.0)
    gc.collect()
    gc.disable()
    try:
        y = checkpoint(counted, x)
        if backend.name != "dask":  # whose graph holds what results are made of
            assert alive[0]() is None
        with wg.no_grad():
            y.backward(wg.ones(2, dtype=wg.float64))
        assert calls == [True, True]
        if backend.name != "dask":
            assert alive[1]() is None
    finally:
        gc.enable()
    assert not observing


def test_without_recording_the_function_is_called_and_nothing_else():
    calls = []
    with wg.no_grad():
        y = checkpoint(lambda x: (calls.append(None), wg.exp(x))[1], leaf(1.0))
    assert len(calls) == 1 and not y.requires_grad


def test_checkpoints_with_saved_value_hooks_around():
    packed = []
    x = leaf(0.3)
    with graph.saved_tensors_hooks(lambda t: (packed.append(tuple(t.shape)), t)[1], lambda t: t):
        y = checkpoint(lambda x: wg.exp(wg.exp(x)), wg.exp(x))
    assert packed == [(1,), (1,)]  # what exp saves outside, and the argument
    (g,) = wg.autograd.grad(y, x)
    exactly([g], wg.autograd.grad(wg.exp(wg.exp(wg.exp(x))), x))


# -- misuse --------------------------------------------------------------------------------------


class Changing:
    """Does something else each time it is called."""

    def __init__(self, *functions):
        self.functions = list(functions)

    def __call__(self, x):
        return self.functions.pop(0)(x)


@pytest.mark.parametrize(
    ("again", "message"),
    [
        (lambda x: wg.exp(x), "saved 2 arrays.*and 1 when it was run again"),
        (lambda x: wg.exp(wg.sin(wg.exp(x))), "saved 2 arrays.*and 3 when"),
        (lambda x: wg.exp(wg.exp(x[:1])), r"float64 \(2,\) on .* as array 0.*float64 \(1,\) on"),
        (lambda x: wg.exp(wg.astype(wg.exp(x), wg.float32)), r"array 1.*float32 \(2,\) on"),
    ],
)
def test_a_function_that_is_not_deterministic(again, message):
    x = leaf(1.0, 2.0)
    y = checkpoint(Changing(lambda x: wg.exp(wg.exp(x)), again), x)
    with pytest.raises(CheckpointError, match=message):
        y.sum().backward()
    assert x.grad is None and not observing


def test_the_generators_are_as_before_when_a_function_fails():
    class Sometimes(Exception):
        pass

    def fail(x):
        wg.random.rand(3)
        raise Sometimes

    y = checkpoint(Changing(lambda x: wg.exp(x), fail), leaf(1.0))
    wg.manual_seed(3)
    first = wg.random.rand(2)
    wg.manual_seed(3)
    with pytest.raises(Sometimes):
        y.backward()
    exactly([first], [wg.random.rand(2)])


def test_bad_arguments():
    with pytest.raises(TypeError, match="calls a function, not float"):
        checkpoint(1.0)
    with pytest.raises(ValueError, match="2 functions cannot be divided into 3 segments"):
        checkpoint_sequential([wg.exp, wg.sin], 3, leaf(1.0))
    with pytest.raises(ValueError, match=r"^checkpoint has no use_reentrant=True"):
        checkpoint(wg.exp, leaf(1.0), use_reentrant=True)
    with pytest.raises(ValueError, match=r"^checkpoint_sequential has no use_reentrant=True"):
        checkpoint_sequential([wg.exp], 1, leaf(1.0), use_reentrant=True)
    with pytest.raises(TypeError, match="early_stop"):
        checkpoint(wg.exp, leaf(1.0), early_stop=True)
    assert checkpoint_sequential([wg.exp, wg.sin, wg.tanh], 2, leaf(1.0)).requires_grad


def test_an_argument_that_is_returned_is_another_tensor() -> None:
    made = []

    def function(x: wg.Tensor, y: wg.Tensor) -> tuple[wg.Tensor, wg.Tensor]:
        made.append(y * 2)
        return x, made[-1]

    x, y = leaf(1.0), leaf(2.0)
    same, doubled = checkpoint(function, x, y)
    assert same is not x
    np.testing.assert_array_equal(same.detach().numpy(), x.detach().numpy())
    a, b = wg.autograd.grad(wg.sum(same * 3 + doubled), [x, y])
    assert (float(a.numpy().sum()), float(b.numpy().sum())) == (3.0, 2.0)


@pytest.mark.parametrize("use_reentrant", [None, False])
def test_pytorchs_keyword_is_not_the_functions(use_reentrant: bool | None) -> None:
    x = wg.tensor([0.5, 1.0], requires_grad=True)
    given = {"use_reentrant": use_reentrant, "preserve_rng_state": False}
    wg.sum(wg.checkpoint(lambda x, /: wg.exp(x), x, **given)).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([0.5, 1.0]), rtol=1e-6)
    layers = [wg.sin, wg.exp]
    assert wg.checkpoint_sequential(layers, 2, x, **given).shape == (2,)


def test_what_a_function_closes_over_may_change_before_the_backward_pass():
    """The tape has the values of the call, and so has the function when it runs again."""

    def slopes(run):
        w, b, x = (wg.tensor(v, requires_grad=True) for v in (2.0, 0.0, 1.0))
        c = wg.tensor(3.0)
        optimizer = wg.optim.SGD([w, b], lr=1.0)
        y = run(lambda x: wg.sin(x * w + b) * c, x)
        w.grad = b.grad = wg.tensor(1.0)
        optimizer.step()
        w.grad = b.grad = None
        c *= 5
        y.backward()
        return [t.grad.item() for t in (x, w, b)], w.item(), c.item()

    assert slopes(wg.checkpoint) == slopes(lambda f, x: f(x))
