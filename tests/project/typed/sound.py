"""A user's program that type checkers have no fault to find with."""

from typing import assert_type

import numpy as np

import wengert as wg
import wengert.linalg
import wengert.nn.functional as F
from wengert import nn, optim
from wengert.special import digamma, logsumexp
from wengert.testing import check_gradients


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        self.hidden = nn.Linear(4, width)
        self.out = nn.Linear(width, 2)

    def forward(self, x: wg.Tensor, scale: float = 1.0) -> tuple[wg.Tensor, wg.Tensor]:
        h = F.relu(self.hidden(x))
        assert_type(h, wg.Tensor)
        return self.out(h) * scale, h


def loss(w: wg.Tensor, x: wg.Tensor) -> wg.Tensor:
    return wg.mean((x @ w - 1) ** 2)


# functions of the namespace, and methods
x = wg.ones((4, 4))
assert_type(x, wg.Tensor)
assert_type(wg.sum(x, 0), wg.Tensor)
assert_type(wg.exp(x), wg.Tensor)
assert_type(x.sum(axis=(0, 1), keepdims=True), wg.Tensor)
assert_type(x.reshape(2, -1).transpose(1, 0).ravel(), wg.Tensor)
assert_type(x.numel(), int)
assert_type(x.T @ x + 1, wg.Tensor)
assert_type(2 * x[0] - x, wg.Tensor)
assert_type(x.grad, wg.Tensor | None)
assert_type(x.shape, tuple[int, ...])
assert_type(wg.concat([x, x], axis=1), wg.Tensor)
assert_type(wg.einsum("ij,ij->", x, x), wg.Tensor)
assert_type(wg.softmax(x, axis=-1), wg.Tensor)
assert_type(wg.unique_counts(x).counts, wg.Tensor)
assert_type(wg.asarray(np.ones(3), dtype=wg.float64), wg.Tensor)
assert_type(wg.tensor([1.0, 2.0], requires_grad=True), wg.Tensor)
assert_type(wg.randn(3, 4), wg.Tensor)
assert_type(wg.pi, float)
assert_type(wg.float32, wg.DType)
assert_type(wg.__version__, str)

# extensions, by attribute and by import
assert_type(wg.linalg.solve(x + wg.eye(4), x), wg.Tensor)
assert_type(wengert.linalg.svd(x).S, wg.Tensor)
assert_type(wg.fft.rfft(x), wg.Tensor)
assert_type(wg.special.erf(x), wg.Tensor)
assert_type(logsumexp(x), wg.Tensor)
assert_type(digamma(x), wg.Tensor)

# what wraps keeps the types of what it wraps
net = Net(8)
assert_type(net(x), tuple[wg.Tensor, wg.Tensor])
assert_type(net(x, scale=2.0)[0], wg.Tensor)
assert_type(nn.Linear(4, 2)(x), wg.Tensor)
assert_type(nn.CrossEntropyLoss()(x, wg.argmax(x, 1)), wg.Tensor)
compiled = wg.compile(loss)
assert_type(compiled(x, x), wg.Tensor)
assert_type(compiled.source, str)
gradient = wg.grad(loss)
assert_type(gradient(x, x=x), wg.Tensor)
value, gradients = wg.value_and_grad(loss, argnums=(0, 1))(x, x)
assert_type(value, wg.Tensor)
assert_type(wg.value_and_grad(loss)(x, x), tuple[wg.Tensor, wg.Tensor])
wg.grad(lambda w: wg.sum(w**2))(x)
wg.func.elementwise_grad(wg.grad(loss))(x, x)


def penalised(w: dict[str, wg.Tensor], scale: float) -> wg.Tensor:
    return wg.sum(w["a"]) * scale


assert_type(wg.value_and_grad(penalised)({"a": x}, 2.0)[1], dict[str, wg.Tensor])
wg.grad(loss, 1)(x, x)

# containers and loaders keep the types of what they hold
layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
for layer in layers:
    assert_type(layer, nn.Linear)
assert_type(layers[0].weight, nn.Parameter)
assert_type(layers[1:], nn.ModuleList[nn.Linear])
assert_type(nn.ModuleDict({"a": nn.Conv2d(1, 2, 3)})["a"], nn.Conv2d)
assert_type(nn.ParameterList([x])[0], nn.Parameter)
later = nn.ModuleList()
later.append(nn.ReLU())
assert_type(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))[0].bias, nn.Parameter | None)
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Dropout(p=0.1))
model.append(nn.Softmax(dim=-1)).eval()
assert_type(nn.Dropout(0.2).p, float)
activation: nn.ReLU = nn.ReLU()
data = wg.data.TensorDataset(x, wg.arange(4))
for features, label in wg.data.DataLoader(data, batch_size=2, shuffle=True):
    assert_type(features, wg.Tensor)
    assert_type(label, wg.Tensor)


class Pairs(wg.data.Dataset[tuple[float, str]]):
    def __getitem__(self, index: int) -> tuple[float, str]:
        return 1.0, "a"

    def __len__(self) -> int:
        return 3


for batch in wg.data.DataLoader(Pairs(), collate_fn=len):
    assert_type(batch, int)
assert_type(wg.checkpoint(loss, x, x), wg.Tensor)


@wg.compile
def step(data: wg.Tensor, rate: float = 0.1) -> wg.Tensor:
    return data * rate


@wg.compile(static_argnames="n")
def power(data: wg.Tensor, n: int) -> wg.Tensor:
    return data**n


class Trainer:
    @wg.compile
    def step(self, data: wg.Tensor) -> wg.Tensor:
        return data * 2


@wg.no_grad()
def evaluate(data: wg.Tensor) -> float:
    return float(data.sum())


@wg.custom_vjp
def twice(data: wg.Tensor) -> wg.Tensor:
    return data * 2


@check_gradients(("n",), ("n",), backends=["numpy"])
def test_product(a: wg.Tensor, b: wg.Tensor) -> wg.Tensor:
    return a * b


test_product()
assert_type(test_product.function(x, x), wg.Tensor)
check_gradients(wg.logaddexp, ..., ..., examples=3)
assert_type(step(x, rate=0.5), wg.Tensor)
assert_type(power(x, n=3), wg.Tensor)
assert_type(Trainer().step(x), wg.Tensor)
assert_type(evaluate(x), float)
assert_type(twice(x), wg.Tensor)

optimizer = optim.Adam(net.parameters(), lr=1e-3)
optimizer.zero_grad()
with wg.no_grad():
    target = net(x)[0]
loss(net(x)[0], x).backward()
optimizer.step()
schedule = optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=100, pct_start=0.2)
rates: list[float] = schedule.get_last_lr()
