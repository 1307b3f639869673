"""An image that is optimised, by Gram matrices of features."""

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


features = init(nn.Conv2d(3, 5, 3, padding=1))
for p in features.parameters():
    p.requires_grad = False
content, style = draw(1, 3, 6, 6), draw(1, 3, 6, 6)


def gram_matrix(input):
    a, b, c, d = input.size()
    f = input.view(a * b, c * d)
    return torch.mm(f, f.t()).div(a * b * c * d)


image = content.clone().requires_grad_(True)
optimizer = optim.Adam([image], lr=0.1)
losses = []
for step in range(20):
    with torch.no_grad():
        image.clamp_(-1, 1)
    optimizer.zero_grad()
    out = features(image)
    loss = F.mse_loss(out, features(content).detach())
    loss = loss + 100 * F.mse_loss(gram_matrix(out), gram_matrix(features(style)).detach())
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
