"""Q-learning with a target net, gathered values and a soft update."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
import copy

torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(0)


def draw(*shape, scale=1.0):
    return torch.from_numpy(scale * rng.normal(size=shape))


def init(model):
    for p in model.parameters():
        p.data.copy_(draw(*p.shape, scale=0.3))
    return model


class QNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1, self.layer2 = nn.Linear(4, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.layer2(F.relu(self.layer1(x)))


policy_net = init(QNetwork())
target_net = copy.deepcopy(policy_net)
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.Adam(policy_net.parameters(), lr=1e-2, amsgrad=True)
criterion = nn.SmoothL1Loss()
losses = []
for step in range(20):
    state, next_state = draw(8, 4), draw(8, 4)
    action = torch.from_numpy(rng.integers(0, 3, size=(8, 1))).long()
    reward = draw(8)
    done = torch.from_numpy((rng.uniform(size=8) > 0.8).astype(np.uint8))
    q = policy_net(state).gather(1, action)
    with torch.no_grad():
        next_values = target_net(next_state).max(1)[0].detach()
    expected = (next_values * 0.9) * (1 - done) + reward
    loss = criterion(q, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    for param in policy_net.parameters():
        param.grad.data.clamp_(-1, 1)
    optimizer.step()
    for target_param, param in zip(target_net.parameters(), policy_net.parameters()):
        target_param.data.copy_(target_param.data * 0.95 + param.data * 0.05)
    losses.append(loss.item())
