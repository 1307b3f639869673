"""An autoencoder of transposed convolutions and upsampling."""

import numpy as np
import torch
from torch import nn, optim

torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(0)


def draw(*shape, scale=1.0):
    return torch.from_numpy(scale * rng.normal(size=shape))


def init(model):
    for p in model.parameters():
        p.data.copy_(draw(*p.shape, scale=0.3))
    return model


encoder = nn.Sequential(
    nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.ReLU(True), nn.Conv2d(4, 6, 3, stride=2, padding=1)
)
decoder = nn.Sequential(
    nn.ConvTranspose2d(6, 4, kernel_size=3, stride=2, padding=1, output_padding=1),
    nn.InstanceNorm2d(4),
    nn.ReLU(True),
    nn.Upsample(scale_factor=2),
    nn.ReflectionPad2d(1),
    nn.Conv2d(4, 1, 3),
    nn.Tanh(),
)
model = init(nn.Sequential(encoder, decoder))
x = torch.tanh(draw(3, 1, 8, 8))
optimizer = optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-5)
criterion = nn.MSELoss(size_average=False)
losses = []
for epoch in range(20):
    loss = criterion(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.data.item())
