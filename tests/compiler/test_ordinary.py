"""Ordinary programs: training steps, state, control flow on shapes. Each has a program."""

import collections
import copy
import functools
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.ordinary import alike
from wengert.nn import functional

Made = tuple[Callable[..., Any], Callable[[], Any]]
CASES: dict[str, Callable[[], Made]] = {}
STATELESS: dict[str, Callable[..., Any]] = {}


def case(make: Callable[[], Made]) -> Callable[[], Made]:
    CASES[make.__name__] = make
    return make


def stateless(function: Callable[..., Any]) -> Callable[..., Any]:
    STATELESS[function.__name__] = function
    return function


def points(number: int = 5) -> list[tuple[Any]]:
    rng = np.random.default_rng(0)
    return [(wg.asarray(rng.normal(size=(4, 5)).astype(np.float32)),) for _ in range(number)]


def network(outputs: int = 3) -> Any:
    return wg.nn.Sequential(wg.nn.Linear(5, 6), wg.nn.Tanh(), wg.nn.Linear(6, outputs))


def loss_of(model: Any, x: Any) -> Any:
    return wg.mean(model(x) ** 2)


def left(*parts: Any) -> Callable[[], Any]:
    """What a test looks at: the values of parameters, and of what else there is."""

    def look() -> Any:
        found = []
        for part in parts:
            part = part() if callable(part) and not isinstance(part, wg.nn.Module) else part
            found += [*part.parameters()] if isinstance(part, wg.nn.Module) else [part]
        return wg.func.tree_map(lambda x: x.detach() if isinstance(x, wg.Tensor) else x, found)

    return look


# -- state that is replaced ----------------------------------------------------------------------


@case
def in_a_closure() -> Made:
    h = wg.zeros((4, 5))

    def step(x: Any) -> Any:
        nonlocal h
        h = wg.tanh(h + x)
        return h.sum()

    return step, left(lambda: h)


@case
def in_an_attribute_of_a_module() -> Made:
    class Model(wg.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.h = wg.nn.Linear(5, 5), wg.zeros((4, 5))

        def forward(self, x: Any) -> Any:
            self.h = wg.tanh(self.linear(self.h) + x).detach()
            return self.h

    model = Model()
    return model, left(lambda: model.h)


@case
def in_places_of_containers() -> Made:
    held = types.SimpleNamespace(a=wg.zeros(5), items=[wg.ones(5)], table={"c": wg.zeros(5)})

    def step(x: Any) -> Any:
        held.a = held.a + x[0]
        held.items[0] = held.items[0] * held.a
        held.table["c"] += x[1]
        return held.a + held.table["c"]

    return step, left(lambda: [held.a, *held.items, held.table["c"]])


@case
def a_tuple_of_an_lstm() -> Made:
    class Model(wg.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.state = wg.nn.LSTM(5, 3), (wg.zeros((1, 3)), wg.zeros((1, 3)))

        def forward(self, x: Any) -> Any:
            out, (h, c) = self.lstm(x, self.state)
            self.state = h.detach(), c.detach()
            return out

    model = Model()
    return model, left(lambda: model.state)


@case
def that_goes_round() -> Made:
    held = [wg.zeros((4, 5)), wg.ones((4, 5)), wg.full((4, 5), 2.0)]

    def step(x: Any) -> Any:
        held[0], held[1], held[2] = held[1], held[2], held[0] + x
        return held[0]

    return step, left(lambda: list(held))


@case
def that_is_the_argument() -> Made:
    held = types.SimpleNamespace(last=wg.zeros((4, 5)))

    def step(x: Any) -> Any:
        y = x + held.last
        held.last = x
        return y

    return step, left(lambda: held.last)


@case
def that_is_returned() -> Made:
    held = types.SimpleNamespace(h=wg.zeros((4, 5)))

    def step(x: Any) -> Any:
        held.h = held.h * 0.5 + x
        return held.h, held.h + 1

    return step, left(lambda: held.h)


@case
def changed_in_place() -> Made:
    h, k, b = wg.zeros((4, 5)), wg.zeros((4, 5)), wg.asarray(0)

    def step(x: Any) -> Any:
        nonlocal h, b
        h += x
        k[1:] = x[1:] * 2
        k.mul_(0.5).add_(h)
        b = b + 1
        return h * b, b % 2 == 0

    return step, left(lambda: [h, k, b])


@case
def a_carried_state_of_a_training() -> Made:
    model = wg.nn.Linear(5, 5)
    optimizer = wg.optim.Adam(model.parameters())
    h = wg.zeros((4, 5))

    def step(x: Any) -> Any:
        nonlocal h
        optimizer.zero_grad()
        new = wg.tanh(model(h) + x)
        loss = (new**2).sum()
        loss.backward()
        optimizer.step()
        h = new.detach()
        return loss.detach()

    return step, left(model, lambda: h)


# -- training steps --------------------------------------------------------------------------------


def training(
    after: Callable[[Any, Any, Any], Any] | None = None,
    *,
    optimizer: Callable[[Any], Any] = lambda parameters: wg.optim.SGD(parameters, lr=0.1),
    none: bool = True,
) -> Made:
    model = network()
    made = optimizer(model.parameters())

    def step(x: Any) -> Any:
        made.zero_grad(set_to_none=none)
        logits = model(x)
        loss = (logits**2).mean()
        loss.backward()
        found = after(model, logits, x) if after is not None else None
        made.step()
        return loss.detach(), found

    return step, left(model, lambda: [p.grad for p in model.parameters()])


def clipped(model: Any, logits: Any, x: Any) -> Any:
    total = wg.sqrt(sum((p.grad**2).sum() for p in model.parameters()))
    for p in model.parameters():
        p.grad.mul_(wg.minimum(1.0 / (total + 1e-6), 0.5))
    return total


def noisy(model: Any, logits: Any, x: Any) -> None:
    for p in model.parameters():
        p.grad += 0.01 * wg.randn(*p.shape)


def accuracy(model: Any, logits: Any, x: Any) -> Any:
    chosen = wg.argmax(logits, axis=-1)
    return wg.mean(wg.astype(chosen == 1, wg.float32)), wg.special.softmax(logits.detach(), axis=-1)


TRAININGS: dict[str, Callable[[], Made]] = {
    "plain": training,
    "zeroed gradients": lambda: training(none=False),
    "the logits afterwards": lambda: training(accuracy),
    "clipping by hand": lambda: training(clipped),
    "clipping": lambda: training(
        lambda model, logits, x: wg.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    ),
    "clipping of values": lambda: training(
        lambda model, logits, x: wg.nn.utils.clip_grad_value_(model.parameters(), 0.01)
    ),
    "noise": lambda: training(noisy),
    "gradients that are returned": lambda: training(
        lambda model, logits, x: [p.grad for p in model.parameters()]
    ),
    "another network's gradient": lambda: training(
        lambda model, logits, x: wg.autograd.grad(loss_of(model, x), [model[0].weight])[0]
    ),
    **{
        name: lambda make=make: training(optimizer=make)  # type: ignore[misc]
        for name, make in {
            "momentum": lambda p: wg.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
            "dampening": lambda p: wg.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1),
            "Adam": lambda p: wg.optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1),
            "AdamW": lambda p: wg.optim.AdamW(p, lr=0.01, maximize=True),
        }.items()
    },
}
CASES |= TRAININGS


@case
def gradients_that_are_assigned() -> Made:
    model = wg.nn.Linear(5, 3)
    optimizer = wg.optim.Adam(model.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        parameters = list(model.parameters())
        loss = loss_of(model, x)
        for p, g in zip(parameters, wg.autograd.grad(loss, parameters), strict=True):
            p.grad = g
        optimizer.step()
        return loss.detach()

    return step, left(model, lambda: [p.grad for p in model.parameters()])


@case
def micro_batches_and_a_moving_average() -> Made:
    model = network()
    average = copy.deepcopy(model)
    optimizer = wg.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        total = wg.zeros(())
        for part in range(2):
            loss = loss_of(model, x[2 * part : 2 * part + 2]) / 2
            loss.backward()
            total = total + loss.detach()
        optimizer.step()
        with wg.no_grad():
            for p, q in zip(model.parameters(), average.parameters(), strict=True):
                q.mul_(0.9).add_(p * 0.1)
        return total

    return step, left(model, average)


@case
def two_networks_against_each_other() -> Made:
    maker, judge = network(5), network(1)
    of_maker, of_judge = [wg.optim.Adam(m.parameters()) for m in (maker, judge)]
    entropy = functional.binary_cross_entropy_with_logits

    def step(x: Any) -> Any:
        noise = wg.randn(4, 5)
        of_judge.zero_grad()
        made = maker(noise).detach()
        loss = entropy(judge(x), wg.ones((4, 1))) + entropy(judge(made), wg.zeros((4, 1)))
        loss.backward()
        of_judge.step()
        of_maker.zero_grad()
        other = entropy(judge(maker(noise)), wg.ones((4, 1)))
        other.backward()
        of_maker.step()
        return loss.detach(), other.detach()

    return step, left(maker, judge)


@case
def a_penalty_on_gradients() -> Made:
    model = network(1)
    optimizer = wg.optim.Adam(model.parameters())

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        at = x.detach().requires_grad_(True)
        (slope,) = wg.autograd.grad(model(at).sum(), [at], create_graph=True)
        loss = ((wg.sqrt((slope**2).sum(axis=1) + 1e-8) - 1) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, left(model)


@case
def running_statistics() -> Made:
    class Norm(wg.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = wg.nn.Parameter(wg.ones(5))
            self.register_buffer("mean", wg.zeros(5))
            self.register_buffer("count", wg.asarray(0))

        def forward(self, x: Any) -> Any:
            mean = x.mean(axis=0)
            with wg.no_grad():
                self.mean.mul_(0.9).add_(mean * 0.1)
                self.count += 1
            return (x - mean) * self.scale

    model = Norm()
    optimizer = wg.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(model, x)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, left(model, lambda: list(model.buffers()))


@case
def a_schedule_that_is_computed() -> Made:
    model = network()
    optimizer = wg.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        for group in optimizer.param_groups:
            group["lr"] *= 0.9
        optimizer.zero_grad()
        loss = loss_of(model, x)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, left(model, lambda: optimizer.param_groups[0]["lr"])


@case
def parameters_by_hand() -> Made:
    model = wg.nn.Linear(5, 3)

    def step(x: Any) -> Any:
        loss = loss_of(model, x)
        loss.backward()
        with wg.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
                p.grad = None
            model.weight /= wg.sqrt((model.weight**2).sum(axis=1, keepdims=True))
        return loss.detach()

    return step, left(model)


# -- transforms, and what has no state -------------------------------------------------------------

WEIGHT = np.random.default_rng(9).normal(size=(5, 5)).astype(np.float32)


@case
def transforms_with_a_captured_tensor() -> Made:
    w = wg.asarray(WEIGHT)

    def step(x: Any) -> Any:
        def f(v: Any) -> Any:
            return wg.sum(wg.sin(w @ v) * (w[0] - v) ** 3 / (w[1] ** 2 + 2))

        def g(v: Any) -> Any:
            return wg.tanh(w @ v) + w[0]

        v, t = x[0], x[1]
        return (
            wg.func.hvp(f, (v,), (t,)),
            wg.func.jvp(g, (v,), (t,)),
            wg.func.vjp(g, v)[1](t),
            *(wg.func.hessian(f)(v), wg.func.jacfwd(g)(v), wg.func.jacrev(g)(v)),
            wg.func.linearize(g, v)[1](t),
        )

    return step, list


@stateless
def branches_on_shapes(x: Any) -> Any:
    if x.ndim == 2 and x.shape[0] > 3:
        x = x.sum(axis=0)
    return [x * i for i in range(x.shape[0])], f"{x.shape}", len(x)


@stateless
def loops(x: Any) -> Any:
    y = x
    for i, row in enumerate(x):
        y = y + row * i
    for a, b in zip(x, x[::-1], strict=True):
        y = y * a - b
    return y, sum(row * 2 for row in x), {i: row + 1 for i, row in enumerate(x)}


@stateless
def changes_in_place(x: Any) -> Any:
    y = x * 2
    y += 1
    y[0] = 0.0
    y[1:, 2] += 5
    y[..., 0] = wg.sum(x, axis=1)
    y[y > 1] = 0.5
    y.add_(1).mul_(2)
    y **= 2
    return y, x.clone(), wg.at(x)[wg.asarray([2, 0])].add(1.0), wg.at(x)[0].max(0.0)


@stateless
def masks(x: Any) -> Any:
    keep = x > 0
    return wg.where(keep, x, 0.0), x * wg.astype(keep, x.dtype), x.masked_fill(keep, -1.0)


@stateless
def trees(x: Any) -> Any:
    y = x * 2
    return {"a": [y, (x, None)], "b": (y, 3, "text")}, y, wg.linalg.qr(x.T)


@stateless
def draws(x: Any) -> Any:
    noise = wg.randn(4, 5) + wg.rand(5)
    return x + noise, wg.random.randint(0, 9, (4,)), functional.dropout(x, 0.5)


@stateless
def recursion(x: Any, n: int = 3) -> Any:
    return x if n == 0 else wg.tanh(recursion(x, n - 1) * 1.5)


@stateless
def linear_algebra(x: Any) -> Any:
    a = x.mT @ x + 3 * wg.eye(5)
    return (
        *(wg.linalg.cholesky(a), wg.linalg.inv(a), wg.linalg.solve(a, x.mT)),
        *(wg.linalg.eigh(a), wg.linalg.slogdet(a), wg.linalg.svd(x), wg.linalg.matrix_rank(a)),
    )


@stateless
def integers(x: Any) -> Any:
    n = wg.astype(x * 9, wg.int64)
    return n + 1, n // 2, n % 3, n << 1, n & 3, ~n, n / 2, n**2, n > 1, wg.sum(n), -n


@stateless
def half_precision(x: Any) -> Any:
    h = wg.astype(x, wg.float16)
    return h * 2 + 1, wg.sum(h), wg.mean(h, axis=0), h @ h.T, wg.special.softmax(h, axis=-1)


@stateless
def complex_numbers(x: Any) -> Any:
    z = x + 1j * wg.sin(x)
    return z * z, wg.abs(z), wg.conj(z).mT @ z, z / (1 - 2j), wg.real(z) + wg.imag(z)


@stateless
def newton(x: Any) -> Any:
    def f(v: Any) -> Any:
        return wg.sum(v**4 - 3 * v**2 + v)

    v = x[0]
    return v - wg.linalg.solve(wg.hessian(f)(v) + wg.eye(5), wg.grad(f)(v))


@stateless
def runge_kutta(y: Any) -> Any:
    for _ in range(6):
        a = wg.sin(y) - y
        b = wg.sin(y + 0.05 * a) - (y + 0.05 * a)
        y = y + 0.1 / 2 * (a + b)
    return y


@stateless
def nearest(x: Any) -> Any:
    apart = wg.sum((x[:, None] - x[None]) ** 2, axis=-1)
    order = wg.argsort(apart, axis=1)[:, 1:3]
    return x[order].mean(axis=1), wg.take(x, order[:, 0], axis=0)


CASES |= {name: lambda f=f: (f, list) for name, f in STATELESS.items()}  # type: ignore[misc]


@pytest.mark.parametrize("name", CASES)
def test_compiled_as_eager(name: str) -> None:
    alike(CASES[name], points())


LAYERS = [
    *("ReLU", "ELU", "GELU", "LeakyReLU", "LogSigmoid", "SiLU", "Sigmoid", "Softplus", "Dropout"),
]


@pytest.mark.parametrize("layer", LAYERS)
def test_every_activation(layer: str) -> None:
    def make() -> Made:
        model = wg.nn.Sequential(wg.nn.Linear(5, 6), getattr(wg.nn, layer)(), wg.nn.Linear(6, 2))
        optimizer = wg.optim.SGD(model.parameters(), lr=0.1)

        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = loss_of(model, x)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step, left(model)

    alike(make, points())


LOSSES = ["BCEWithLogitsLoss", "HuberLoss", "L1Loss", "MSELoss", "SmoothL1Loss"]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss(loss: str, reduction: str) -> None:
    criterion = getattr(wg.nn, loss)(reduction=reduction)

    def step(x: Any) -> Any:
        return wg.value_and_grad(lambda x: wg.sum(criterion(x * 2, wg.special.expit(x))))(x)

    alike(lambda: (step, list), points())


@pytest.mark.parametrize(
    "options", [{}, {"label_smoothing": 0.125}, {"reduction": "sum"}, {"ignore_index": 1}]
)
def test_cross_entropy(options: dict[str, Any]) -> None:
    def step(x: Any, labels: Any) -> Any:
        return wg.value_and_grad(lambda x: functional.cross_entropy(x, labels, **options))(x)

    rng = np.random.default_rng(0)
    calls = [(x, wg.asarray(rng.integers(0, 5, 4))) for (x,) in points()]
    alike(lambda: (step, list), calls)


def test_numbers_in_rules() -> None:
    """A number of the arguments, in a derivative of a derivative."""

    def step(x: Any, s: float) -> Any:
        at = x[0].detach().requires_grad_(True)
        (slope,) = wg.autograd.grad(((at * s) ** 3).sum(), [at], create_graph=True)
        again = wg.autograd.grad((slope * s).sum(), [at])[0]
        return again, wg.hessian(lambda v: wg.sum((v * s) ** 3))(x[0])

    alike(lambda: (step, list), [(x, 1.5 + i) for i, (x,) in enumerate(points())])


def test_models_and_optimizers_as_arguments() -> None:
    def step(model: Any, optimizer: Any, x: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(model, x)
        loss.backward()
        optimizer.step()
        return loss.detach()

    answers = []
    for function in (step, wg.compile(step)):
        wg.manual_seed(0)
        model = network()
        optimizer = wg.optim.Adam(model.parameters())
        answers.append([function(model, optimizer, x).numpy().tobytes() for (x,) in points()])
    assert answers[0] == answers[1]


def test_a_learning_rate_for_each_value_of_a_number() -> None:
    """What is decided by a number that is compared is a constant of its program."""

    def make() -> Made:
        model = network()
        optimizer = wg.optim.SGD(model.parameters(), lr=0.1)

        def step(x: Any, epoch: int) -> Any:
            for group in optimizer.param_groups:
                group["lr"] = 0.05 * (1 + math.cos(math.pi * epoch / 3))
            optimizer.zero_grad()
            loss = loss_of(model, x)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step, left(model, lambda: optimizer.param_groups[0]["lr"])

    alike(make, [(x, i // 2) for i, (x,) in enumerate(points(8))])


def test_partial_functions_and_named_results() -> None:
    pair = collections.namedtuple("pair", "a b")
    alike(lambda: (functools.partial(lambda a, x: a * x + 1, 2.0), list), points())
    alike(lambda: (lambda x: pair(x * 2, x.shape), list), points(), compiles=False)
