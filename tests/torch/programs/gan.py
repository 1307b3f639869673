"""A generator and a discriminator in turn."""

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


G = init(
    nn.Sequential(
        nn.Linear(4, 8),
        nn.LeakyReLU(0.2, inplace=True),
        nn.BatchNorm1d(8, 0.8),
        nn.Linear(8, 6),
        nn.Tanh(),
    )
)
D = init(
    nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 1), nn.Sigmoid())
)
adversarial_loss = nn.BCELoss()
optimizer_G = optim.Adam(G.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizer_D = optim.Adam(D.parameters(), lr=2e-3, betas=(0.5, 0.999))
Tensor = torch.cuda.DoubleTensor if torch.cuda.is_available() else torch.DoubleTensor
losses = []
for step in range(20):
    real_imgs = draw(5, 6).type(Tensor)
    valid = Tensor(real_imgs.size(0), 1).fill_(1.0)
    fake = Tensor(real_imgs.size(0), 1).fill_(0.0)
    optimizer_G.zero_grad()
    z = Tensor(rng.normal(0, 1, (5, 4)))
    gen_imgs = G(z)
    g_loss = adversarial_loss(D(gen_imgs), valid)
    g_loss.backward()
    optimizer_G.step()
    optimizer_D.zero_grad()
    d_loss = (
        adversarial_loss(D(real_imgs), valid) + adversarial_loss(D(gen_imgs.detach()), fake)
    ) / 2
    d_loss.backward()
    optimizer_D.step()
    losses += [g_loss.item(), d_loss.item()]
