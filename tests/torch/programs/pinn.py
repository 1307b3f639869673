"""A differential equation fitted by a net, with LBFGS."""

import numpy as np
import torch
from torch import nn, optim
from collections import OrderedDict

torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(0)


def draw(*shape, scale=1.0):
    return torch.from_numpy(scale * rng.normal(size=shape))


def init(model):
    for p in model.parameters():
        p.data.copy_(draw(*p.shape, scale=0.3))
    return model


class DNN(nn.Module):
    def __init__(self, layers):
        super().__init__()
        names = []
        for i in range(len(layers) - 2):
            names.append(("layer_%d" % i, nn.Linear(layers[i], layers[i + 1])))
            names.append(("activation_%d" % i, nn.Tanh()))
        names.append(("last", nn.Linear(layers[-2], layers[-1])))
        self.layers = nn.Sequential(OrderedDict(names))

    def forward(self, x):
        return self.layers(x)


net = init(DNN([2, 6, 6, 1]))
x = torch.linspace(-1, 1, 8).view(-1, 1).requires_grad_(True)
t = torch.tensor(rng.uniform(size=(8, 1)), requires_grad=True)
optimizer = torch.optim.LBFGS(
    net.parameters(), lr=0.5, max_iter=20, history_size=10, line_search_fn="strong_wolfe"
)
losses = []


def closure():
    optimizer.zero_grad()
    u = net(torch.cat([x, t], dim=1))
    u_t = torch.autograd.grad(
        u, t, grad_outputs=torch.ones_like(u), retain_graph=True, create_graph=True
    )[0]
    u_x = torch.autograd.grad(
        u, x, grad_outputs=torch.ones_like(u), retain_graph=True, create_graph=True
    )[0]
    u_xx = torch.autograd.grad(
        u_x, x, grad_outputs=torch.ones_like(u_x), retain_graph=True, create_graph=True
    )[0]
    f = u_t + u * u_x - 0.01 * u_xx
    loss = torch.mean(f**2) + torch.mean((u + torch.sin(np.pi * x)) ** 2)
    loss.backward()
    losses.append(loss.item())
    return loss


optimizer.step(closure)
losses = losses[:20]
