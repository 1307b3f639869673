"""A clipped surrogate of Gaussian actions."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Normal

torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(0)


def draw(*shape, scale=1.0):
    return torch.from_numpy(scale * rng.normal(size=shape))


def init(model):
    for p in model.parameters():
        p.data.copy_(draw(*p.shape, scale=0.3))
    return model


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        self.critic = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        self.log_std = nn.Parameter(torch.zeros(1, 2))

    def forward(self, x):
        mu = self.actor(x)
        return Normal(mu, self.log_std.exp().expand_as(mu)), self.critic(x)


model = init(ActorCritic())
optimizer = optim.Adam(model.parameters(), lr=1e-2)
states, noise, returns = draw(12, 4), draw(12, 2), draw(12, 1)
with torch.no_grad():
    dist, values = model(states)
    actions = dist.mean + dist.stddev * noise
    old_log_probs = dist.log_prob(actions).sum(dim=-1, keepdim=True)
    advantages = returns - values
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
losses = []
for epoch in range(10):
    for i in range(0, 12, 6):
        idx = torch.arange(i, i + 6)
        dist, value = model(states[idx])
        new_log_probs = dist.log_prob(actions[idx]).sum(dim=-1, keepdim=True)
        ratio = (new_log_probs - old_log_probs[idx]).exp()
        surr1 = ratio * advantages[idx]
        surr2 = torch.clamp(ratio, 1.0 - 0.2, 1.0 + 0.2) * advantages[idx]
        actor_loss = -torch.min(surr1, surr2).mean()
        critic_loss = (returns[idx] - value).pow(2).mean()
        loss = 0.5 * critic_loss + actor_loss - 0.001 * dist.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
