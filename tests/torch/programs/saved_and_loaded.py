"""A checkpoint is written, and training goes on from it."""

import torch
import tempfile
from torch import nn, optim

x, y = draw(10, 4), draw(10, 2)


def step(model, optimizer):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


model = init(nn.Linear(4, 2))
optimizer = optim.Adam(model.parameters(), lr=0.05)
losses = [step(model, optimizer) for _ in range(10)]
path = tempfile.mkdtemp() + "/checkpoint.pt"
torch.save({"epoch": 10, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
again = nn.Linear(4, 2)
other = optim.Adam(again.parameters(), lr=0.05)
checkpoint = torch.load(path, map_location="cpu")
again.load_state_dict(checkpoint["model"])
other.load_state_dict(checkpoint["optimizer"])
losses += [step(again, other) for _ in range(checkpoint["epoch"])]
