"""REINFORCE with returns that are centred and scaled."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Bernoulli
from torch.autograd import Variable

torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(0)


def draw(*shape, scale=1.0):
    return torch.from_numpy(scale * rng.normal(size=shape))


def init(model):
    for p in model.parameters():
        p.data.copy_(draw(*p.shape, scale=0.3))
    return model


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(3, 8), nn.Linear(8, 1)

    def forward(self, x):
        return torch.sigmoid(self.fc2(F.relu(self.fc1(x))))


policy = init(Policy())
optimizer = optim.RMSprop(policy.parameters(), lr=0.01)
losses = []
for episode in range(20):
    states, actions, rewards = [], [], []
    for t in range(6):
        state = torch.from_numpy(rng.normal(size=3)).float().double()
        probs = policy(Variable(state))
        action = (rng.uniform() < probs.data.numpy()).astype(float)
        states.append(state)
        actions.append(float(action[0]))
        rewards.append(float(state[0].item() * (2 * action[0] - 1)))
    mean, std = np.mean(rewards), np.std(rewards)
    optimizer.zero_grad()
    total = 0
    for state, action, reward in zip(states, actions, rewards):
        m = Bernoulli(policy(state))
        loss = -m.log_prob(torch.tensor([action])) * ((reward - mean) / std)
        loss.backward()
        total += loss.item()
    optimizer.step()
    losses.append(total)
