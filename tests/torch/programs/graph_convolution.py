"""A graph convolution, with weights drawn by hand, and negative log-likelihood."""

import torch
import math
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.nn.parameter import Parameter
from torch.nn.modules.module import Module


class GraphConvolution(Module):
    def __init__(self, in_features, out_features, bias=True):
        super(GraphConvolution, self).__init__()
        self.weight = Parameter(torch.FloatTensor(in_features, out_features).double())
        if bias:
            self.bias = Parameter(torch.zeros(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        output = torch.mm(adj, torch.mm(input, self.weight))
        return output + self.bias if self.bias is not None else output


class GCN(nn.Module):
    def __init__(self):
        super(GCN, self).__init__()
        self.gc1, self.gc2 = GraphConvolution(5, 8), GraphConvolution(8, 3)

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, 0.5, training=False)
        return F.log_softmax(self.gc2(x, adj), dim=1)


adj = (draw(7, 7) > 0).double() + torch.eye(7)
adj = adj / adj.sum(1, keepdim=True)
features, labels = draw(7, 5), torch.LongTensor([0, 1, 2, 0, 1, 2, 0])
idx_train = torch.LongTensor(range(5))
model = init(GCN())
optimizer = optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
losses = []
for epoch in range(20):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss = F.nll_loss(output[idx_train], labels[idx_train])
    preds = output.max(1)[1].type_as(labels)
    correct = preds.eq(labels).double().sum()
    loss.backward()
    optimizer.step()
    losses += [loss.item(), (correct / len(labels)).item()]
