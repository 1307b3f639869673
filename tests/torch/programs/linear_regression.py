"""A line fitted by hand-written gradient descent."""

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(0)


def draw(*shape, scale=1.0):
    return torch.from_numpy(scale * rng.normal(size=shape))


x = draw(50, 1)
y = 3 * x + 2 + 0.1 * draw(50, 1)
w = torch.zeros(1, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
losses = []
for epoch in range(20):
    loss = (x.mm(w) + b - y).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        b -= 0.1 * b.grad
        w.grad.zero_()
        b.grad.zero_()
    losses.append(loss.item())
