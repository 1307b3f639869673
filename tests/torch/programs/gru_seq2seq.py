"""An encoder and a decoder with attention."""

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


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 8)
        self.gru = nn.GRU(8, 8)

    def forward(self, input, hidden):
        embedded = self.embedding(input).view(1, 1, -1)
        return self.gru(embedded, hidden)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 8)
        self.attn = nn.Linear(16, 4)
        self.combine = nn.Linear(16, 8)
        self.gru = nn.GRU(8, 8)
        self.out = nn.Linear(8, 10)

    def forward(self, input, hidden, outputs):
        embedded = self.embedding(input).view(1, 1, -1)
        weights = F.softmax(self.attn(torch.cat((embedded[0], hidden[0]), 1)), dim=1)
        applied = torch.bmm(weights.unsqueeze(0), outputs.unsqueeze(0))
        output = F.relu(self.combine(torch.cat((embedded[0], applied[0]), 1)).unsqueeze(0))
        output, hidden = self.gru(output, hidden)
        return F.log_softmax(self.out(output[0]), dim=1), hidden


encoder, decoder = init(Encoder()), init(Decoder())
source, target = torch.tensor([[1], [4], [2], [7]]), torch.tensor([[3], [5], [9]])
optimizers = [optim.SGD(m.parameters(), lr=0.05) for m in (encoder, decoder)]
criterion = nn.NLLLoss()
losses = []
for step in range(20):
    for o in optimizers:
        o.zero_grad()
    hidden = torch.zeros(1, 1, 8)
    outputs = []
    for i in range(source.size(0)):
        output, hidden = encoder(source[i], hidden)
        outputs.append(output[0, 0])
    outputs = torch.stack(outputs)
    loss, word = 0, torch.tensor([[0]])
    for i in range(target.size(0)):
        output, hidden = decoder(word, hidden, outputs)
        loss += criterion(output, target[i])
        value, index = output.topk(1)
        word = index.squeeze().detach()
    loss.backward()
    for o in optimizers:
        o.step()
    losses.append(loss.item() / target.size(0))
