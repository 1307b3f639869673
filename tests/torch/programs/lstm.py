"""An LSTM over sequences of several lengths, packed."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(0)


def draw(*shape, scale=1.0):
    return torch.from_numpy(scale * rng.normal(size=shape))


def init(model):
    for p in model.parameters():
        p.data.copy_(draw(*p.shape, scale=0.3))
    return model


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 6, padding_idx=0)
        self.lstm = nn.LSTM(6, 7, num_layers=2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(14, 4)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(
            self.embed(tokens), lengths, batch_first=True, enforce_sorted=False
        )
        output, (h, c) = self.lstm(packed)
        output, _ = pad_packed_sequence(output, batch_first=True)
        return self.out(output)


sequences = [torch.from_numpy(rng.integers(1, 12, size=n)) for n in (3, 5, 2)]
tokens = pad_sequence(sequences, batch_first=True)
lengths = torch.tensor([len(s) for s in sequences])
model = init(Tagger())
optimizer = optim.Adam(model.parameters(), lr=0.01, betas=(0.9, 0.99), eps=1e-8)
losses = []
for step in range(20):
    optimizer.zero_grad()
    logits = model(tokens, lengths)
    loss = F.cross_entropy(logits.view(-1, 4), (tokens % 4).view(-1), ignore_index=0)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
