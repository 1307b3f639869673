"""A variational autoencoder by distributions."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Independent, Normal, kl_divergence

torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(0)


def draw(*shape, scale=1.0):
    return torch.from_numpy(scale * rng.normal(size=shape))


def init(model):
    for p in model.parameters():
        p.data.copy_(draw(*p.shape, scale=0.3))
    return model


encoder, decoder = init(nn.Linear(6, 4)), init(nn.Linear(2, 6))
x = draw(9, 6)
params = list(encoder.parameters()) + list(decoder.parameters())
optimizer = optim.RMSprop(params, lr=1e-2)
losses = []
for step in range(20):
    loc, log_scale = encoder(x).chunk(2, dim=-1)
    q = Normal(loc, F.softplus(log_scale) + 1e-3)
    z = q.loc + q.scale * draw(9, 2)
    log_p = Independent(Normal(decoder(z), 0.5), 1).log_prob(x)
    kl = kl_divergence(q, Normal(torch.zeros(2), torch.ones(2))).sum(-1)
    loss = (kl - log_p).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
