"""Embeddings of triplets, normalised, with distances."""

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


model = init(nn.Sequential(nn.Linear(6, 8), nn.PReLU(), nn.Linear(8, 4)))
anchor, positive, negative = draw(7, 6), draw(7, 6), draw(7, 6)
optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
losses = []
for step in range(20):
    a, p, n = (F.normalize(model(v), p=2, dim=1) for v in (anchor, positive, negative))
    loss = F.triplet_margin_loss(a, p, n, margin=0.5)
    distances = torch.cdist(a, torch.cat([p, n]))
    hardest = distances.sort(dim=1).values[:, :3]
    loss = loss + hardest.std(dim=1).mean() + (1 - F.cosine_similarity(a, p)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
