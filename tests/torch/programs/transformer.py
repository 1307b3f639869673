"""A transformer encoder with positions of sines."""

import torch
import math
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class Positions(nn.Module):
    def __init__(self, d_model, max_len=20):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(0)]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.pos = nn.Embedding(9, 8), Positions(8)
        layer = nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2)
        self.out = nn.Linear(8, 9)

    def forward(self, src):
        mask = torch.triu(torch.full((src.size(0), src.size(0)), float("-inf")), diagonal=1)
        return self.out(self.encoder(self.pos(self.embed(src) * math.sqrt(8)), mask=mask))


model = init(Model())
data = torch.from_numpy(rng.integers(0, 9, size=(7, 3)))
optimizer = optim.Adam(model.parameters(), lr=0.01)
scheduler = optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=lambda e: 0.95**e)
losses = []
for step in range(20):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(data[:-1]).reshape(-1, 9), data[1:].reshape(-1))
    loss.backward()
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
