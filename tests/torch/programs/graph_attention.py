"""Attention over a graph, with masked scores."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(0)


def draw(*shape, scale=1.0):
    return torch.from_numpy(scale * rng.normal(size=shape))


def init(model):
    for p in model.parameters():
        p.data.copy_(draw(*p.shape, scale=0.3))
    return model


class GAT(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.W = nn.Parameter(torch.empty(size=(n_in, n_out)))
        nn.init.xavier_uniform_(self.W.data, gain=1.414)
        self.a = nn.Parameter(torch.empty(size=(2 * n_out, 1)))
        nn.init.xavier_uniform_(self.a.data, gain=1.414)
        self.leakyrelu = nn.LeakyReLU(0.2)
        self.n_out = n_out

    def forward(self, h, adj):
        Wh = torch.mm(h, self.W)
        Wh1 = torch.matmul(Wh, self.a[: self.n_out, :])
        Wh2 = torch.matmul(Wh, self.a[self.n_out :, :])
        e = self.leakyrelu(Wh1 + Wh2.T)
        zero_vec = -9e15 * torch.ones_like(e)
        attention = F.softmax(torch.where(adj > 0, e, zero_vec), dim=1)
        return F.elu(torch.matmul(attention, Wh))


adj = torch.eye(6) + (draw(6, 6) > 0.3).double()
h, y = draw(6, 4), draw(6, 3)
model = init(GAT(4, 3))
optimizer = optim.Adagrad(model.parameters(), lr=0.1)
losses = []
for step in range(20):
    optimizer.zero_grad()
    loss = F.mse_loss(model(h, adj), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
