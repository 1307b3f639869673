"""A critic with a penalty on its gradient, which is differentiated again."""

import torch
from torch import nn, optim
import torch.autograd as autograd

G = init(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4)))
D = init(nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.Linear(8, 1)))
opt_G, opt_D = optim.RMSprop(G.parameters(), lr=1e-3), optim.RMSprop(D.parameters(), lr=1e-3)
losses = []
for step in range(20):
    real, fake = draw(6, 4), G(draw(6, 3)).detach()
    alpha = torch.from_numpy(rng.uniform(size=(6, 1)))
    between = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    out = D(between)
    gradients = autograd.grad(
        outputs=out,
        inputs=between,
        grad_outputs=torch.ones(out.size()),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    gradients = gradients.view(gradients.size(0), -1)
    penalty = ((gradients.norm(2, dim=1) - 1) ** 2).mean()
    d_loss = -torch.mean(D(real)) + torch.mean(D(fake)) + 10 * penalty
    opt_D.zero_grad()
    d_loss.backward()
    opt_D.step()
    opt_G.zero_grad()
    g_loss = -torch.mean(D(G(draw(6, 3))))
    g_loss.backward()
    opt_G.step()
    losses += [d_loss.item(), g_loss.item()]
