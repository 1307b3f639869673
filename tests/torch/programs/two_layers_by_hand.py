"""The tutorial of two layers, with gradients by hand and through data."""

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(0)


def draw(*shape, scale=1.0):
    return torch.from_numpy(scale * rng.normal(size=shape))


N, D_in, H, D_out = 16, 20, 10, 5
x, y = draw(N, D_in), draw(N, D_out)
w1, w2 = draw(D_in, H), draw(H, D_out)
losses = []
for t in range(20):
    h = x.mm(w1)
    h_relu = h.clamp(min=0)
    y_pred = h_relu.mm(w2)
    loss = (y_pred - y).pow(2).sum().item()
    losses.append(loss)
    grad_y_pred = 2.0 * (y_pred - y)
    grad_w2 = h_relu.t().mm(grad_y_pred)
    grad_h = grad_y_pred.mm(w2.t()).clone()
    grad_h[h < 0] = 0
    w1 -= 1e-5 * x.t().mm(grad_h)
    w2 -= 1e-5 * grad_w2
