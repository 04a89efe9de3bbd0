"""Keeps the outputs of all steps, and with them what their backward needs."""

import torch
from torch import nn

import deepcontext

torch.manual_seed(0)
net = nn.Linear(64, 256)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.randn(2048, 64)
kept = []
for _ in range(30):
    scores = net(data)  # the problem
    loss = scores.square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    kept.append(scores)
    deepcontext.step()
