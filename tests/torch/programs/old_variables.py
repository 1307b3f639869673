"""A program of the years of Variable, with weights updated through data."""

import torch
from torch.autograd import Variable

x = Variable(draw(16, 8), requires_grad=False)
y = Variable(draw(16, 2), requires_grad=False)
w1 = Variable(draw(8, 12), requires_grad=True)
w2 = Variable(draw(12, 2), requires_grad=True)
losses = []
for t in range(20):
    y_pred = x.mm(w1).clamp(min=0).mm(w2)
    loss = (y_pred - y).pow(2).sum()
    losses.append(loss.data.item())
    loss.backward()
    w1.data -= 1e-4 * w1.grad.data
    w2.data -= 1e-4 * w2.grad.data
    w1.grad.data.zero_()
    w2.grad.data.zero_()
